#!/usr/bin/env python3
"""Runs all tests; a test of the whole program that fails beside others runs again, alone.

    tools/suite.py FILE TARGET...

These tests measure real servers and clients, several at once, so one may take from another the time that
it needs. A test that fails alone too has failed, and so have all if more than MOST fail. What passed only
alone is written to FILE, which `make test` prints at its end: its cause is to be found.

Tests wait for much of their time. In it, make builds the TARGETs, which run nothing that measures, only where a
processor is idle (SCHED_IDLE). They begin when the tests are built.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

MOST = 3
CARGO = ["cargo", "test", "--workspace", "--locked"]
BINARY = re.compile(r"^\s*(?:Running|Doc-tests) (\S+)")
FAILED = re.compile(r"^test (\S+)(?: - .*)? \.\.\. FAILED$")
WHOLE_PROGRAM = "tests/all/main.rs"


def failures(lines):
    """Returns the failed tests of an output of cargo: (binary, test).

    >>> failures(["  Running tests/all/main.rs (x)", "test a::b ... FAILED", "test c ... ok", "Doc-tests d", "test e - f ... FAILED"])
    [('tests/all/main.rs', 'a::b'), ('d', 'e')]
    """
    binary, found = "", []
    for line in lines:
        if match := BINARY.match(line):
            binary = match[1]
        elif match := FAILED.match(line):
            found.append((binary, match[1]))
    return found


class Beside:
    """A command that gets only the time that nothing else wants."""

    def __init__(self, targets):
        self.command = ["chrt", "--idle", "0", "make", "--no-print-directory", *targets]
        self.said = tempfile.TemporaryFile("w+")
        self.running = None

    def start(self):
        """Starts the command, once."""
        if self.running is None:
            self.running = subprocess.Popen(self.command, stdout=self.said, stderr=subprocess.STDOUT)

    def end(self):
        """Waits for the command, shows what it printed, and returns its exit code: 0 if it was never started."""
        if self.running is None:
            return 0
        code = self.running.wait()
        self.said.seek(0)
        print(f"\n{' '.join(self.command)}: exit code {code}\n{self.said.read()}", end="", flush=True)
        return code


def play(command, tests_built=lambda: None):
    """Runs a command, shows what it prints, and returns its exit code and its lines."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        for line in running.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
            if BINARY.match(line):
                tests_built()
    return running.returncode, lines


def main(told, targets):
    """Returns the exit code of the tests, or of what ran beside them."""
    beside = Beside(targets)
    code = tests(told, beside.start)
    return beside.end() or code


def tests(told, built):
    """Returns the exit code of the tests, and calls `built` as soon as the first of them runs."""
    code, lines = play([*CARGO, "--no-fail-fast"], built)
    failed = failures(lines)
    names = [test for _, test in failed]
    if code == 0 or not names or len(names) > MOST or any(binary != WHOLE_PROGRAM for binary, _ in failed):
        return code
    print(f"\nagain, alone: {', '.join(names)}", flush=True)
    code, _ = play([*CARGO, "--test", "all", "--", "--exact", "--test-threads=1", *names])
    if code == 0:
        with pathlib.Path(told).open("a") as file:
            file.writelines(f"{test}\n" for test in names)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
