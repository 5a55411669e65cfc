#!/usr/bin/env python3
"""Runs all tests; a test of the whole program that fails beside others runs again, alone.

    tools/suite.py FILE TARGET...

These tests measure real servers and clients, several at once, so one may take from another the time that
it needs. A test that fails alone too has failed, and so have all if more than MOST fail. What passed only
alone is written to FILE, which `make test` prints at its end: its cause is to be found.

Tests wait for much of their time. In it, make builds the TARGETs, which run nothing that measures, only where a
processor is idle (SCHED_IDLE). They begin when the tests are built. Tests that measure one at a time run beside the
others of the whole program, in a process of their own: elsewhere those that wait would take the others' places.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

MOST = 3
CARGO = ["cargo", "test", "--workspace", "--locked"]
BINARY = re.compile(r"^\s*(?:Running|Doc-tests) (\S+)(?: \((\S+)\))?")
FAILED = re.compile(r"^test (\S+)(?: - .*)? \.\.\. FAILED$")
WHOLE_PROGRAM = "tests/all/main.rs"
FOLDER = os.path.abspath("crates/cli")
ONE_AT_A_TIME = "known_answers::"


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
    """A command beside others."""

    def __init__(self):
        self.command, self.running = [], None
        self.said = tempfile.TemporaryFile("w+")

    def start(self, command, **more):
        """Starts a command, once."""
        if self.running is None:
            self.command = command
            self.running = subprocess.Popen(command, stdout=self.said, stderr=subprocess.STDOUT, **more)

    def end(self):
        """Waits for the command, shows what it printed, and returns its exit code and its lines: none if it was never
        started."""
        if self.running is None:
            return 0, []
        code = self.running.wait()
        self.said.seek(0)
        said = self.said.read()
        print(f"\n{' '.join(self.command)}: exit code {code}\n{said}", end="", flush=True)
        return code, said.splitlines()


def play(command, begins=lambda name, path: None):
    """Runs a command, shows what it prints, and returns its exit code and its lines. Calls `begins` with each binary
    of tests."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        for line in running.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
            if match := BINARY.match(line):
                begins(*match.groups())
    return running.returncode, lines


def main(told, targets):
    """Returns the exit code of the tests, or of what ran beside them."""
    idle = Beside()
    code = tests(told, lambda: idle.start(["chrt", "--idle", "0", "make", "--no-print-directory", *targets]))
    return idle.end()[0] or code


def tests(told, built):
    """Returns the exit code of the tests, and calls `built` as soon as the first of them runs."""
    own = Beside()

    def begins(name, path):
        built()
        if name == WHOLE_PROGRAM:
            command = [os.path.abspath(path), ONE_AT_A_TIME, "--test-threads=1"]
            own.start(command, cwd=FOLDER, env={**os.environ, "CARGO_MANIFEST_DIR": FOLDER})

    code, lines = play([*CARGO, "--no-fail-fast", "--", "--skip", ONE_AT_A_TIME], begins)
    own_code, own_lines = own.end()
    code = code or own_code
    failed = failures(lines) + [(WHOLE_PROGRAM, test) for _, test in failures(own_lines)]
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
