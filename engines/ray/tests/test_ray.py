"""Studies over three nodes of Ray, one of which is killed. `make test-ray` runs this."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

from .nodes import NAMES, PORT, Nodes, address

PUBMARK = os.environ.get("PUBMARK", "")
HERE = os.path.dirname(sys.executable)
CLUSTER = f"{address(NAMES[0])}:{PORT}"
PATIENCE_S = 180

# Ray itself may stand in a folder of pubmark's.
OURS = re.compile(r"/pubmark (host|agent|keep|launch|run)\b|pubmark[-_]ray|sbin/mosquitto")

STUDY = """title = "Over Ray"
[workload]
pairs = 2
rate = {rate}
payload = "{payload}"
warmup = "300ms"
duration = "{duration}"
[run]
repeats = {repeats}
[axes]
system = ["mosquitto"]
"""


class OverRay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = Nodes()
        cls.addClassCleanup(cls.nodes.close)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pme-study-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def study(self, rate=100, payload="1KiB", duration="2s", repeats=3):
        text = STUDY.format(rate=rate, payload=payload, duration=duration, repeats=repeats)
        path = os.path.join(self.folder, "study.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def environment(self):
        path = f"{HERE}:{os.environ['PATH']}:/usr/sbin"
        return {**os.environ, "PATH": path, "PUBMARK": PUBMARK, "RAY_USAGE_STATS_ENABLED": "0"}

    def runtime_env(self):
        """A file that has Ray start what runs on the nodes with this variable."""
        path = os.path.join(self.folder, "env.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write('env_vars:\n  PME_MARK: "seen"\n')
        return path

    def command(self, options, study, out="r"):
        pubmark_ray = os.path.join(HERE, "pubmark-ray")
        return [pubmark_ray, "run", f"--address={CLUSTER}", *options, study, "-q", "--out", os.path.join(self.folder, out)]

    def on_driver(self, command):
        """Runs a command on the head node."""
        options = {"env": self.environment(), "capture_output": True, "text": True, "timeout": PATIENCE_S}
        return self.nodes.run(NAMES[0], command, cwd=self.folder, **options)

    def records(self, out="r"):
        with open(os.path.join(self.folder, out, "runs.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def good(self, out="r"):
        """A run without an error. On a busy machine one may begin too late, and says so."""
        runs = self.records(out)
        good = [run for run in runs if run["error"] is None]
        self.assertTrue(good, [run["error"] for run in runs])
        return good[0]

    def assert_nothing_is_left(self, names):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            left = {name: self.nodes.processes(name).values() for name in names}
            left = [command for all in left.values() for command in all if OURS.search(command)]
            if not left:
                return
            self.assertLess(time.monotonic(), deadline, left)
            time.sleep(0.05)

    def test_a_study_is_played_on_three_nodes_and_its_messages_do_not_cross_the_engine(self):
        # The first carries the program, where the nodes have none of this build.
        first = self.on_driver(self.command([], self.study()))
        self.assertIn(first.returncode, (0, 3), first.stderr)
        options = ["--label=place=in(here,there)", f"--runtime-env={self.runtime_env()}"]
        heavy = self.on_driver(self.command(options, self.study(rate=500, payload="16KiB", duration="3s"), "heavy"))
        run, before = self.good("heavy"), self.good()
        self.assertEqual([host["name"] for host in run["hosts"]], ["node1", "node2", "node3"])
        self.assertIn(address(NAMES[0]), run["deployment"]["endpoint"])
        self.assertEqual({agent["host"] for agent in run["agents"]}, {"node2", "node3"})
        self.assertEqual(before["counts"]["delivered"], 400)
        self.assertEqual(run["counts"]["delivered"], 3_000)
        carried = sum(map(int, re.search(r"carried (\d+) bytes .* and (\d+) back", heavy.stderr).groups()))
        messages = len(self.records("heavy")) * run["counts"]["delivered"] * 16 * 1024
        self.assertLess(carried, messages / 20, "lines only go through the engine")
        self.assert_nothing_is_left(NAMES)

    def test_pubmark_itself_hands_over_to_the_engine(self):
        out = os.path.join(self.folder, "r")
        command = [PUBMARK, "run", self.study(), "--on", f"ray:{CLUSTER}", "-q", "--out", out]
        told = self.on_driver(command)
        self.assertIn(told.returncode, (0, 3), told.stderr)
        self.assertEqual(self.good()["counts"]["delivered"], 400)

    def test_a_study_is_a_job_of_the_clusters(self):
        words = {key: self.environment()[key] for key in ("PATH", "PUBMARK")}
        submit = [os.path.join(HERE, "ray"), "job", "submit", f"--address=http://{address(NAMES[0])}:8265"]
        submit += ["--runtime-env-json", json.dumps({"env_vars": words}), "--", "pubmark-ray", "run", self.study()]
        # From another machine of the same network.
        options = {"env": self.environment(), "capture_output": True, "text": True, "timeout": PATIENCE_S}
        told = self.nodes.run(NAMES[1], [*submit, "--out", os.path.join(self.folder, "r")], **options)
        self.assertEqual(self.good()["counts"]["delivered"], 400)
        self.assertIn("bytes to 3 nodes", told.stdout, "what the driver says is the job's log")

    def test_a_cluster_that_cannot_give_as_much_says_so(self):
        many = self.on_driver(self.command(["--nodes=4"], self.study()))
        self.assertEqual(many.returncode, 3)
        self.assertIn("4 hosts are wanted, and the cluster has 3 nodes", many.stderr)
        elsewhere = self.on_driver(self.command(["--label=place=there"], self.study()))
        self.assertEqual(elsewhere.returncode, 3)
        self.assertIn("the cluster has 0 nodes with the labels {'place': 'there'}", elsewhere.stderr)
        rare = self.on_driver(self.command(["--resource=fast=1", "--timeout=5"], self.study()))
        self.assertEqual(rare.returncode, 3)
        self.assertRegex(rare.stderr, "did not give 3 nodes with .*'fast': 1.0.* within 5")

    def test_a_killed_driver_leaves_nothing_on_any_node(self):
        driver = self.nodes.start(
            NAMES[0], self.command([], self.study(duration="600s", repeats=1)), env=self.environment(), stderr=subprocess.DEVNULL
        )
        self.wait_for_agents()
        driver.kill()
        driver.wait()
        # pubmark itself was below the driver, and hears nothing of its end but by its hosts.
        self.assert_nothing_is_left(NAMES)

    # The last, for tests run by their names: the node does not come back.
    def test_the_loss_of_a_node_is_said_by_its_name(self):
        driver = self.nodes.start(
            NAMES[0],
            self.command([], self.study(duration="20s", repeats=2)),
            env=self.environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        self.wait_for_agents()
        self.nodes.kill(NAMES[2])
        _, told = driver.communicate(timeout=PATIENCE_S)
        self.assertEqual(driver.returncode, 3, told)
        runs = self.records()
        self.assertEqual(len(runs), 2, "the study goes on")
        for run in runs:
            self.assertIn("node3", run["error"], told)
        self.assert_nothing_is_left(NAMES[:2])

    def wait_for_agents(self):
        """Until a run has begun on the last node."""
        deadline = time.monotonic() + PATIENCE_S
        while not any(re.search(r"/pubmark agent", command) for command in self.nodes.processes(NAMES[2]).values()):
            self.assertLess(time.monotonic(), deadline, "no agent was started")
            time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
