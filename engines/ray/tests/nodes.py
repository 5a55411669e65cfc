"""Three nodes of Ray on this machine, each in a network namespace of its own."""

import os
import shutil
import subprocess
import sys
import tempfile

HUB = "pme-hub"
NAMES = ["pme-h1", "pme-h2", "pme-h3"]
PORT = 6379
RAY = os.path.join(os.path.dirname(sys.executable), "ray")


def address(name):
    """The node's, on their network."""
    return f"10.204.78.{NAMES.index(name) + 1}"


def ip(*words):
    """Runs `ip`; it has to succeed."""
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


class Nodes:
    """They end when this is closed."""

    def __init__(self):
        # Ray's sockets lie below it: their paths must be short.
        self.folder = tempfile.mkdtemp(prefix="pme-", dir="/tmp")
        try:
            self._make_network()
            self._start_ray()
        except Exception:
            self.close()
            raise

    def _make_network(self):
        ip("netns", "add", HUB)
        ip("-n", HUB, "link", "add", "hub", "type", "bridge")
        ip("-n", HUB, "link", "set", "hub", "up")
        for number, name in enumerate(NAMES):
            ip("netns", "add", name)
            ip("-n", HUB, "link", "add", f"e{number}", "type", "veth", "peer", "name", "e", "netns", name)
            ip("-n", HUB, "link", "set", f"e{number}", "master", "hub", "up")
            ip("-n", name, "address", "add", f"{address(name)}/24", "dev", "e")
            ip("-n", name, "link", "set", "e", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def _start_ray(self):
        # Jobs are taken by the head's dashboard.
        common = ["--disable-usage-stats", "--num-cpus=2", "--labels=place=here", "--object-store-memory=100000000"]
        for name in NAMES:
            place = [f"--node-ip-address={address(name)}"]
            if name == NAMES[0]:
                place += ["--head", "--include-dashboard=true", f"--port={PORT}", f"--dashboard-host={address(name)}", f"--temp-dir={self.folder}/r"]
            else:
                place += [f"--address={address(NAMES[0])}:{PORT}"]
            self.run(name, [RAY, "start", *place, *common], check=True, capture_output=True, timeout=120)

    def run(self, name, command, **options):
        """Runs a command on a node."""
        return subprocess.run(["ip", "netns", "exec", name, *command], **options)

    def start(self, name, command, **options):
        """Starts a command on a node."""
        return subprocess.Popen(["ip", "netns", "exec", name, *command], **options)

    def processes(self, name):
        """The commands of a node's processes, by their numbers."""
        told = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False, timeout=30)
        found = {}
        for pid in map(int, told.stdout.split()):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    found[pid] = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                pass
        return found

    def kill(self, name):
        """Kills all that runs on a node, as if its power had failed."""
        for pid in self.processes(name):
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass

    def close(self):
        """Nothing is left."""
        for name in NAMES:
            self.kill(name)
        for name in [*NAMES, HUB]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False, timeout=30)
        shutil.rmtree(self.folder, ignore_errors=True)
