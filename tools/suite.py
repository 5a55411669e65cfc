#!/usr/bin/env python3
"""Runs all tests; a test of the whole program that fails beside others runs again, alone.

These tests measure real servers and clients, several at once, so one may take from another the time that
it needs. A test that fails alone too has failed, and so have all if more than MOST fail. What passed only
alone is written to the file of the first argument, which `make test` prints at its end: its cause is to be found.
"""

import pathlib
import re
import subprocess
import sys

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


def play(command):
    """Runs a command, shows what it prints, and returns its exit code and its lines."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        for line in running.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    return running.returncode, lines


def main(told):
    """Returns the exit code of the tests."""
    code, lines = play([*CARGO, "--no-fail-fast"])
    failed = failures(lines)
    tests = [test for _, test in failed]
    if code == 0 or not tests or len(tests) > MOST or any(binary != WHOLE_PROGRAM for binary, _ in failed):
        return code
    print(f"\nagain, alone: {', '.join(tests)}", flush=True)
    code, _ = play([*CARGO, "--test", "all", "--", "--exact", "--test-threads=1", *tests])
    if code == 0:
        with pathlib.Path(told).open("a") as file:
            file.writelines(f"{test}\n" for test in tests)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
