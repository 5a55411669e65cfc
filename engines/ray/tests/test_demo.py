"""What `make demo-hosts` plays, over the same three nodes by a command prefix and by Ray:
a broker on the first, clients on the others. The two results have to agree."""

import json
import os
import subprocess
import tempfile
import unittest

from . import test_ray
from .nodes import NAMES, Nodes, address

NARROWED = ["iot-edge", "--quick", "--only", "system=mosquitto", "--only", "part=latency", "--only", "payload=1KiB"]


class Demo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = Nodes()
        cls.addClassCleanup(cls.nodes.close)

    def run_on_driver(self, command, folder):
        environment = test_ray.OverRay.environment(self)
        options = {"env": environment, "capture_output": True, "text": True, "timeout": test_ray.PATIENCE_S}
        return self.nodes.run(NAMES[0], command, cwd=folder, **options)

    def hosts(self, folder):
        """The nodes as hosts of a file, with the roles that they have by Ray."""
        tables = []
        for index, name in enumerate(NAMES, start=1):
            roles = ["server"] if index == 1 else ["publishers", "subscribers"]
            reach = json.dumps(["nsenter", f"--net=/run/netns/{name}"])
            tables.append(f'[hosts.node{index}]\nreach = {reach}\naddress = "{address(name)}"\nroles = {json.dumps(roles)}\n')
        path = os.path.join(folder, "hosts.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(tables))
        return path

    def test_the_demo_says_the_same_by_a_prefix_and_by_ray(self):
        with tempfile.TemporaryDirectory(prefix="pme-demo-") as folder:
            common = [test_ray.PUBMARK, "run", *NARROWED, "-q"]
            for out, on in [("prefix", ["--hosts", self.hosts(folder)]), ("ray", ["--on", f"ray:{test_ray.CLUSTER}"])]:
                told = self.run_on_driver([*common, *on, "--out", out], folder)
                # On a busy machine a cell may have no answer, and says so.
                self.assertIn(told.returncode, (0, 3), told.stderr)
                with open(os.path.join(folder, out, "runs.jsonl"), encoding="utf-8") as file:
                    runs = [json.loads(line) for line in file]
                self.assertEqual([run["error"] for run in runs], [None, None], out)
                for run in runs:
                    self.assertEqual([host["name"] for host in run["hosts"]], ["node1", "node2", "node3"])
                    self.assertEqual({agent["host"] for agent in run["agents"]}, {"node2", "node3"})
                    self.assertEqual((run["counts"]["delivered"], run["counts"]["lost"]), (1_000, 0), out)
            # A gate is broken only by a change that is beyond the noise.
            gates = ["--fail-on", "p50 > +50%, lost > 0, delivered < -1%", "--allow-noisy"]
            for pair in (["prefix", "ray"], ["ray", "prefix"]):
                words = [test_ray.PUBMARK, "compare", *pair, *gates]
                told = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
                self.assertIn(told.returncode, (0, 3), f"{pair}: {told.stdout}{told.stderr}")


if __name__ == "__main__":
    unittest.main()
