#!/usr/bin/env python3
"""How often `pubmark ab` alarms without a change, and finds one, while others use the machine.

tools/regressions.py [--pairs N] [--levels 0,0.5,1,1.5] [--factors 1,2,10] [--budget 60s]

Two peers delay each message by 1 ms, and by 1 ms times a factor. For each level (processors that other programs
use) and factor, N comparisons decide the gate 'p99 > +10%'. A factor of 1 is no change: a broken gate is an alarm.
Prints a Markdown table: how often the gate was broken, held or open, and the median number of repeats.
The program is $PUBMARK (default: target/release/pubmark).
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PUBMARK = os.environ.get("PUBMARK", str(ROOT / "target/release/pubmark"))
DELAY_MS = 1
# Long enough for 1,000 messages a run, which a p99 needs.
RUN = ["--pairs", "5", "--rate", "500", "--duration", "500ms", "--warmup", "200ms", "--payload", "64B"]
SPIN = "import time\nwhile True:\n    end = time.perf_counter() + {busy}\n    while time.perf_counter() < end: pass\n    time.sleep({idle})"
OUTCOMES = {1: "broken", 0: "held"}


def spinners(level):
    """Starts programs that use so many processors together, in slices of 10 ms."""
    started = []
    while level > 0:
        share = min(level, 1)
        code = SPIN.format(busy=0.01 * share, idle=0.01 * (1 - share))
        started.append(subprocess.Popen([sys.executable, "-c", code]))
        level -= share
    return started


def peer(folder, delay_ms):
    """Starts a peer that delays each message. Returns it and its endpoint."""
    script = folder / f"{delay_ms}.toml"
    script.write_text(f'delay = {{ fixed = "{delay_ms}ms" }}\n')
    command = [PUBMARK, "peer", "--script", script]
    # It ends with its standard input.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    port = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
    return process, f"mqtt://127.0.0.1:{port[1]}"


def compare(folder, one, other, number, budget):
    """Runs one comparison. Returns its outcome and its repeats."""
    out = folder / f"ab-{number}"
    arms = ["--a", f"options.endpoint={one}", "--b", f"options.endpoint={other}"]
    gate = ["--fail-on", "p99 > +10%", "--budget", budget]
    command = [PUBMARK, "ab", "mqtt", *RUN, *arms, *gate, "--json", "-q", "--out", out]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    runs = (out / "runs.jsonl").read_text().splitlines() if out.exists() else []
    repeats = max((json.loads(run)["repeat"] for run in runs), default=0)
    return OUTCOMES.get(done.returncode, "open"), repeats


def main():
    """Parses the command line, measures, and prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--levels", default="0,0.5,1,1.5")
    parser.add_argument("--factors", default="1,2,10")
    parser.add_argument("--budget", default="60s")
    asked = parser.parse_args()
    print("| processors used by others | p99 of B | broken | held | open | repeats (median) | minutes |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for level in map(float, asked.levels.split(",")):
        for factor in map(int, asked.factors.split(",")):
            with tempfile.TemporaryDirectory() as scratch:
                folder, begun = pathlib.Path(scratch), time.monotonic()
                others = spinners(level)
                (a, one), (b, other) = peer(folder, DELAY_MS), peer(folder, DELAY_MS * factor)
                try:
                    found = [compare(folder, one, other, number, asked.budget) for number in range(asked.pairs)]
                finally:
                    for process in [a, b, *others]:
                        process.kill()
                        process.wait()
            count = [sum(outcome == kind for outcome, _ in found) for kind in ("broken", "held", "open")]
            repeats = statistics.median(repeats for _, repeats in found)
            minutes = (time.monotonic() - begun) / 60
            print(f"| {level:g} | {factor} × | {' | '.join(map(str, count))} | {repeats:g} | {minutes:.1f} |", flush=True)


main()
