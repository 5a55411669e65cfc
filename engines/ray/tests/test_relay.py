"""What is carried between pubmark and a node, without Ray."""

import os
import subprocess
import sys
import tempfile
import time
import unittest

from pubmark_ray.node import Node
from pubmark_ray.relay import Relay

PATIENCE_S = 30


class Here:
    """A node that is this process."""

    def __init__(self):
        self.node = Node()
        self.carried_bytes = [0, 0]

    def call(self, method, *arguments, timeout_s):
        return getattr(self.node, method)(*arguments)


class Lost(Here):
    """One that is lost when a shell is to be started."""

    def call(self, method, *arguments, timeout_s):
        raise RuntimeError("node b is lost: its machine failed")


class Carried(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.hosts = {"a": Here(), "b": Lost()}
        self.relay = Relay(folder.name, self.hosts)
        self.addCleanup(self.relay.close)

    def reach(self, host, command, said=b""):
        words = [sys.executable, "-m", "pubmark_ray.cli", "reach", self.relay.path, host, *command]
        return subprocess.run(words, input=said, capture_output=True, timeout=PATIENCE_S, check=False)

    def test_streams_and_status_are_those_of_the_command(self):
        said = os.urandom(3_000_000)
        done = self.reach("a", ["sh", "-c", "cat; echo sorry >&2; exit 7"], said)
        self.assertEqual((done.stdout == said, done.stderr, done.returncode), (True, b"sorry\n", 7))
        there, back = self.hosts["a"].carried_bytes
        self.assertEqual((there, back), (len(said), len(said) + len(b"sorry\n7")))

    def test_a_command_ends_when_who_reached_is_killed(self):
        words = [sys.executable, "-m", "pubmark_ray.cli", "reach", self.relay.path, "a", "sh", "-c", "echo up; cat"]
        reached = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(reached.stdout.readline(), b"up\n")
        reached.kill()
        reached.communicate()
        process, _ = self.hosts["a"].node._sessions[0]
        deadline = time.monotonic() + PATIENCE_S
        while process.poll() is None:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_a_lost_node_says_why_and_a_gone_driver_too(self):
        lost = self.reach("b", ["sh"])
        self.assertEqual((lost.returncode, lost.stderr), (1, b"node b is lost: its machine failed\n"))
        self.relay.close()
        os.unlink(self.relay.path)
        gone = self.reach("a", ["sh"])
        self.assertEqual(gone.returncode, 1)
        self.assertIn(b"the driver on Ray has gone", gone.stderr)


if __name__ == "__main__":
    unittest.main()
