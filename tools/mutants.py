#!/usr/bin/env python3
"""Makes wrong agents of a right one, a mistake each, and prints which case of `pubmark agent-check` refuses each.

    tools/mutants.py [--pubmark PROGRAM] [--python PYTHON] [--jobs N] [--whole] [NAME...]

The right agent is agents/zeromq-python over tcp. A mutant is a copy of it in which one mistake was made; the check of a
mutant ends at the first case that refuses it, unless --whole asks for all of them. Mistakes that change no figure by
more than a histogram's own rounding are called harmless: they need not be refused. The last line is the score. The exit
code is 1 if the right agent is refused, or if a mutant passes that is not harmless.
"""

import argparse
import concurrent.futures
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "agents" / "zeromq-python"
B, P, A = "books.py", "pubmark_agent.py", "agent.py"

MUTANTS, HARMLESS = {}, set()


def mutant(name, *patches, harmless=False):
    """A mistake: of each file, a text that is there once, and what stands there instead."""
    assert name not in MUTANTS, name
    MUTANTS[name] = patches
    if harmless:
        HARMLESS.add(name)


# Places of the agent that several mistakes are made at.
LATENCY = "                latency = max(0, whole - sent + free) if intended <= free <= sent else whole\n"
ROUNDED = "    return [at if at < most else at >> (shift := at.bit_length() - bits) << shift for at in times]\n"
ARRIVAL = "            if message is not None and take(message, asked if busy else 0, now()):\n"
WINDOW_STALL = "            if length > stall:\n"
SEED = 'for draw in random(next(random(work["seed"] ^ (publisher << 32)))):\n'
DUE = "        yield offset + index // burst * burst * 10**12 // per_ks\n"
SEND = "            if not send(stamp(intended, sequence, at, free)):\n                at = free = now()\n                continue\n"
FREE = "            free += ended - at  # the call was the system's\n"
OWN = '            figures.times["own_lag"].update(rounded(map(sub, sent, free)))\n'
LAG = '            figures.times["send_lag"].update(rounded(map(sub, sent, intended)))\n'
JITTER = "                    figures.jitter += abs(latency - stream.latency)\n"
BODY = "        if self.body and bytes(message[self.body_at :]) != self.body:\n            self.unsound.add(row)\n"
OFFERED = "        offered = sent - first + self.unsent\n"
UNSOUND = '            if row - 1 in unsound:\n                counts["corrupted"] += 1\n'
STRAYS = "            self.damaged += len(stream.strays)\n"
BAD_TIME = "            if stream is None or intended < start or intended > at + SECOND:\n"
NEGATIVE = '            elif at < intended:\n                counts["negative"] += 1\n'
STAMP = "        ahead, id = self.ahead, self.id\n"
OUTER = '        ahead = self.work.get("ahead_ns", 0)\n'

# Mistakes that pubmark 71b0650 refused.
mutant("hist-7-bits", (B, "def rounded(times, bits=12):\n", "def rounded(times, bits=7):\n"))
mutant("hist-5-bits", (B, "def rounded(times, bits=12):\n", "def rounded(times, bits=5):\n"))
mutant("latency-only-5-bits", (B, LATENCY, LATENCY + "                latency = rounded([latency], 5)[0]\n"))
mutant("sent-stamp-in-header-is-free", (B, STAMP, STAMP + "        sent = free\n"))
mutant("clock-coarse-4ms", (B, "now = time.monotonic_ns  # CLOCK_MONOTONIC\n",
       "now = lambda: time.monotonic_ns() // 4000000 * 4000000\n"))
mutant("arrival-ms-truncated", (P, ARRIVAL, ARRIVAL.replace("now()", "now() // MILLISECOND * MILLISECOND")))
mutant("arrival-taken-before-recv", (P, ARRIVAL, ARRIVAL.replace("now()", "asked")))
mutant("arrival-after-2ms-of-work", (P, "            message = recv()\n            if message is not None and",
       "            message = recv()\n            if message is not None:\n                time.sleep(0.002)\n"
       "            if message is not None and"))
mutant("latency-ewma", (B, LATENCY, LATENCY +
       "                latency = self.ewma = int(0.9 * getattr(self, 'ewma', latency) + 0.1 * latency)\n"))
mutant("service-is-latency", (B, "services.append(max(0, at - sent))", "services.append(latency)"))
mutant("slice-latency-all-in-first", (B, "figures.latency.setdefault(place, Counter())",
       "figures.latency.setdefault(0, Counter())"))
mutant("series-by-intended", (B, "place = (at - begin) // slice_ns if at < end else window.slices",
       "place = (intended - begin) // slice_ns if at < end else window.slices"))
mutant("last-message-not-counted", (B, "stream.seen.count(1, first, end)", "stream.seen.count(1, first, end - 1)"))
mutant("arrived-without-late-warmup", (B, "if begin <= at < end and (measured or not window.open):",
       "if begin <= at < end and measured:"))
mutant("never-sent-sequences-passed-over", (B, STRAYS, ""))
mutant("full-verify-not-last-byte", (B, BODY, BODY.replace("self.body_at :]) != self.body",
       "self.body_at : -1]) != self.body[:-1]")))
mutant("stall-at-from-start", (B, "max(0, begin - self.window.begin)", "max(0, begin - self.window.start)"))
mutant("offset-not-taken-from-sent", (B, "intended, sent, free = intended - ahead, sent and sent - ahead,",
       "intended, sent, free = intended - ahead, sent,"))
mutant("own-lag-capped-10ms", (B, OWN, OWN.replace("map(sub, sent, free)",
       "min(10 * MILLISECOND, a - b) for a, b in zip(sent, free)")),
       (B, "        ahead, id = self.ahead, self.id\n", STAMP + "        free = max(free, sent - 10 * MILLISECOND)\n"))
mutant("own-lag-below-1ms-is-0", (B, STAMP, STAMP + "        free = sent if sent - free < MILLISECOND else free\n"))
mutant("sent-is-offered", (B, "        sent, first = self.count, min(self.first, self.count)\n",
       "        sent, first = self.count + self.unsent, min(self.first, self.count)\n"),
       (B, OFFERED, "        offered = sent - first\n"))
mutant("warmup-in-window-at-max", (B, "bisect_left(self.columns[0], window.begin, 0, self.count)",
       "bisect_left(self.columns[0], window.start if window.open else window.begin, 0, self.count)"))
mutant("rss-in-KiB", (P, '(kib["Rss:"] << 10,', '(kib["Rss:"],'))
mutant("pauses-in-own-sleep-only", (P, "            before, woke = max(woke, self.window.begin), now()\n",
       "            before, woke = max(woke, self.window.begin), min(now(), woke + NAP)\n"))
mutant("ready-at-first-probe", (P, "len(self.incoming.probed) == len(incoming.hears)", "self.incoming.probed")
       if False else (P, "if not self.is_ready and len(incoming.probed) == len(incoming.hears):",
                      "if not self.is_ready and incoming.probed:"))
mutant("subscribers-merged-expected", (B, 'figures.counts["expected"] += 0 if competing else end - first',
       'figures.counts["expected"] = 0 if competing else end - first'))

# Mistakes that pubmark 71b0650 let pass.
mutant("hist-highest-1s-clamped", (B, ROUNDED, "    times = [min(at, SECOND) for at in times]\n" + ROUNDED))
mutant("hist-32-bit-ns", (B, ROUNDED, "    times = [at & 0xFFFFFFFF for at in times]\n" + ROUNDED))
mutant("latency-from-sent-if-above-1s", (B, LATENCY, LATENCY +
       "                latency = at - sent if latency > SECOND and sent else latency\n"))
for extra in (2, 10, 30):
    mutant(f"latency-plus-{extra}ms", (B, LATENCY, LATENCY + f"                latency += {extra} * MILLISECOND\n"))
mutant("arrival-stamp-plus-10ms", (P, ARRIVAL, ARRIVAL.replace("now()", "now() + 10 * MILLISECOND")))
mutant("late-above-1s-skipped", (P, "            intended = due if dues else at\n",
       "            if dues and at - due > SECOND:\n                due = window.start + next(dues)\n"
       "                continue\n            intended = due if dues else at\n"))
mutant("late-above-1s-schedule-slips", (P, "            intended = due if dues else at\n",
       "            if dues and at - due > SECOND:\n                slipped += at - due\n                due = at\n"
       "            intended = due if dues else at\n"),
       (P, "                due = window.start + next(dues)\n        outgoing.end",
        "                due = window.start + slipped + next(dues)\n        outgoing.end"),
       (P, "        at, free, woke, sequence = now(), 0, 0, 0\n", "        at, free, woke, sequence, slipped = now(), 0, 0, 0, 0\n"))
mutant("own-lag-above-1s-is-systems", (P, "            free = max(free, intended)\n",
       "            free = max(free, intended)\n            free = at if at - free > SECOND else free\n"))
mutant("latency-only-first-1000", (B, "            elif timed:\n", "            elif timed and len(latencies) < 1000:\n"))
mutant("poll-every-5ms", (P, "            message = recv()\n            if message is not None and",
       "            busy or time.sleep(0.005)\n            message = recv()\n            if message is not None and"),
       (A, "socket.sndtimeo, socket.rcvtimeo = WAIT_MS, 0 if driver.work[\"receive\"] == \"spin\" else WAIT_MS",
        "socket.sndtimeo, socket.rcvtimeo = WAIT_MS, 0 if client[\"role\"] == \"subscriber\" else WAIT_MS"))
mutant("first-after-pause-lost", (P, ARRIVAL,
       "            if message is not None and now() - getattr(self, 'heard', now()) > SECOND:\n"
       "                self.heard = now()\n                continue\n"
       "            self.heard = now() if message is not None else getattr(self, 'heard', now())\n" + ARRIVAL))
mutant("negative-clipped-not-counted", (B, NEGATIVE, ""), (B, "whole = at - intended\n", "whole = max(0, at - intended)\n"))
mutant("full-verify-first-4KiB", (B, BODY, BODY.replace("self.body_at :]) != self.body", "self.body_at : 4096]) != self.body[: 4096 - self.body_at]")))
mutant("silence-below-400ms-not-told", (B, WINDOW_STALL, "            if length > max(stall, 400 * MILLISECOND):\n"))
mutant("arrived-counts-duplicates", (B, "                counts[\"duplicated\"] += measured\n",
       "                counts[\"duplicated\"] += measured\n                inside += begin <= at < end\n"))
mutant("jitter-of-intended-latency", (B, JITTER, "                    figures.jitter += abs(whole - stream.latency)\n"),
       (B, "stream.before, stream.latency = sequence, latency", "stream.before, stream.latency = sequence, whole"))
mutant("jitter-across-gaps", (B, "if stream.before + 1 == sequence or competing and stream.before >= 0:",
       "if stream.before >= 0:"))
mutant("jitter-shared-by-publishers",
       (B, "if stream.before + 1 == sequence or competing and stream.before >= 0:", "if self.before_any:"),
       (B, JITTER, "                    figures.jitter += abs(latency - self.latency_any)\n"),
       (B, "                stream.before, stream.latency = sequence, latency\n",
        "                self.before_any, self.latency_any = True, latency\n"),
       (B, "        self.probed, self.ended, self.damaged", "        self.before_any = False\n        self.probed, self.ended, self.damaged"))
mutant("damage-blamed-on-next-message", (B, UNSOUND.split("\n")[0] + "\n", "            if row - 2 in unsound:\n"))
mutant("call-time-is-own-lag", (P, FREE, ""))
mutant("refusal-is-own-lag", (P, SEND, SEND.replace("at = free = now()", "at = now()")))
mutant("offered-is-sent", (B, OFFERED, "        offered = sent - first\n"))
mutant("poisson-seed-without-publisher", (B, SEED, 'for draw in random(next(random(work["seed"]))):\n'))
mutant("poisson-seed-xor-unshifted", (B, SEED, 'for draw in random(next(random(work["seed"] ^ publisher))):\n'))
mutant("period-truncated-adds-up", (B, DUE, "        yield offset + index // burst * (burst * 10**12 // per_ks)\n"))
mutant("usage-cpu-of-one-thread", (P, "        cpu = time.process_time_ns()\n", "        cpu = time.thread_time_ns()\n"))
mutant("pin-ignored", (P, "            if self.cpus:\n", "            if False:\n"))
mutant("totals-by-place-not-id", (P, "        return [client.outgoing.total() for client in self.clients if client.outgoing]\n",
       "        all = [client.outgoing.total() for client in self.clients if client.outgoing]\n"
       "        return [{**total, 'publisher': place} for place, total in enumerate(all)]\n"))
mutant("drained-by-count-with-duplicates", (B, "        return self.distinct[1] >= sent\n", "        return True\n"))
mutant("hist-one-bucket-up-above-1ms", (B, ROUNDED, ROUNDED.replace("<< shift for", "<< shift + (at > 10**6 and 0) for").replace(
       "at >> (shift := at.bit_length() - bits) << shift + (at > 10**6 and 0)",
       "((at >> (shift := at.bit_length() - bits)) + (at > 10**6)) << shift")), harmless=True)
mutant("clock-us-truncated", (B, "now = time.monotonic_ns  # CLOCK_MONOTONIC\n",
       "now = lambda: time.monotonic_ns() // 1000 * 1000\n"), harmless=True)
mutant("latency-whole-if-free-after-sent-not-checked", (B, LATENCY, LATENCY.replace(
       " if intended <= free <= sent else whole", " if intended <= free else whole")))
mutant("late-reply-taken-for-next", (P, "                self.incoming.take(reply, 0, at)\n                return at\n",
       "                self.incoming.take(reply, 0, at)\n                return at\n") if False else
       (A, "            socket.req_relaxed = 1\n", "            socket.req_relaxed, socket.req_correlate = 1, 0\n"), harmless=True)
# Of the kinds that the causes name.
mutant("rate-whole-numbers", (B, 'return None if work["rate"] == "max" else round(work["rate"] * 1000)',
       'return None if work["rate"] == "max" else int(work["rate"]) * 1000'))
mutant("rate-tenths", (B, 'round(work["rate"] * 1000)', 'round(work["rate"] * 10) * 100'))
mutant("sequence-16-bit-sent", (B, STAMP, STAMP + "        sequence = sequence if sequence >= END else sequence & 0xFFFF\n"))
mutant("sequence-16-bit-received", (B, "        columns[4][row] = sequence\n", "        columns[4][row] = sequence & 0xFFFF\n"))
mutant("body-sent-first-16KiB", (B, "bytearray(body(work[\"payload_bytes\"]))\n",
       "bytearray(body(min(16384, work[\"payload_bytes\"])).ljust(work[\"payload_bytes\"], b'\\0'))\n"))
mutant("full-verify-first-16KiB", (B, BODY, BODY.replace("self.body_at :]) != self.body", "self.body_at : 16384]) != self.body[: 16384 - self.body_at]")))
mutant("full-verify-every-second", (B, BODY, BODY.replace("if self.body and", "if self.body and row % 2 == 0 and")))
mutant("full-verify-samples-of-body", (B, BODY, BODY.replace(
       "bytes(message[self.body_at :]) != self.body", "bytes(message[self.body_at :: 64]) != self.body[::64]")))
mutant("pause-above-1s-not-told", (P, "if (length := min(woke, self.window.end) - before) >= PAUSE:",
       "if SECOND > (length := min(woke, self.window.end) - before) >= PAUSE:"))
mutant("silence-above-1s-not-told", (B, WINDOW_STALL, "            if SECOND > length > stall:\n"))
mutant("one-silence-told", (B, '        self.found["count"] += 1\n', '        self.found["count"] = 1\n'))
mutant("silence-at-end-not-told", (B, "            arrivals.append(max([*arrivals[-1:], min(window.end, killed)]))\n", "            pass\n"))
mutant("silence-at-beginning-not-told", (B, "        arrivals.insert(0, window.begin)\n", ""))
mutant("send-lag-capped-1s", (B, LAG, LAG.replace("map(sub, sent, intended)", "min(SECOND, a - b) for a, b in zip(sent, intended)")))
mutant("own-lag-capped-1s", (B, OWN, OWN.replace("map(sub, sent, free)", "min(SECOND, a - b) for a, b in zip(sent, free)")))
mutant("intended-latency-capped-1s", (B, "wholes.append(whole)", "wholes.append(min(whole, SECOND))"))
mutant("receive-lag-is-0", (B, "lags.append(backlog)", "lags.append(0)"))
mutant("usage-user-is-cpu", (P, "        user = int(cpu * used.ru_utime / max(1e-9, used.ru_utime + used.ru_stime))\n", "        user = cpu\n"))
mutant("usage-from-process-start", (P, "        usage = {\"wall_ns\": self.course[-1][0] - began, **used(self.course[-1])}\n",
       "        first = (0,) * len(first)\n        usage = {\"wall_ns\": self.course[-1][0] - began, **used(self.course[-1])}\n"))
mutant("uss-is-rss", (P, '(kib["Private_Clean:"] + kib["Private_Dirty:"]) << 10', 'kib["Rss:"] << 10'))
mutant("offset-of-burst-without-k", (B, "    offset = burst * 10**12 // per_ks * publisher", "    offset = 10**12 // per_ks * publisher"))
mutant("too-long-taken", (B, "        if len(message) != self.length:\n", "        if len(message) < self.length:\n"))
mutant("intended-before-start-taken", (B, BAD_TIME, BAD_TIME.replace(" or intended < start", "")))
FIRST = len(MUTANTS)

# More of them, to see whether the suite knows the kinds or the examples.
mutant("future-taken", (B, BAD_TIME, BAD_TIME.replace(" or intended > at + SECOND", "")))
mutant("header-verify-looks-at-bodies", (B, ' if work["verify"] == "full" else b""', ""))
mutant("warmup-damage-counted", (B, "            self.unsound.add(row)\n", "            self.unsound.add(row)\n            self.damaged += 0 if int.from_bytes(message[12:16], 'little') >= 50 else 1\n"))
mutant("warmup-duplicates-counted", (B, 'counts["duplicated"] += measured', 'counts["duplicated"] += 1'))
mutant("duplicates-counted-once", (B, '                counts["duplicated"] += measured\n',
       '                counts["duplicated"] += measured and (publisher, sequence) not in self.twice\n'
       '                self.twice.add((publisher, sequence))\n'),
       (B, "        self.probed, self.ended, self.damaged", "        self.twice = set()\n        self.probed, self.ended, self.damaged"))
mutant("reordered-by-adjacent", (B, "            if sequence >= stream.next:\n                stream.next = sequence + 1\n",
       "            if sequence >= stream.next:\n                stream.next = sequence + 1\n            elif sequence == stream.next + 1:\n                pass\n")
       if False else (B, "                stream.next = sequence + 1\n            elif measured:\n                counts[\"reordered\"] += 1\n",
                      "                stream.next = sequence + 1\n            elif measured:\n                counts[\"reordered\"] += 1\n                stream.next = sequence + 1\n"))
mutant("latency-of-duplicates-too", (B, "                counts[\"duplicated\"] += measured\n                continue\n",
       "                counts[\"duplicated\"] += measured\n                if measured:\n                    latencies.append(max(0, at - intended))\n                continue\n"))
mutant("own-lag-of-receiver-ignored-above-1s", (B, LATENCY, LATENCY.replace(
       "intended <= free <= sent else", "intended <= free <= sent < free + SECOND else")))
mutant("latency-minus-receive-lag", (B, LATENCY, LATENCY + "                latency = max(0, latency - backlog)\n"))
mutant("free-is-end-of-last-send", (P, FREE, "            free = ended\n"))
mutant("free-is-intended", (B, STAMP, STAMP + "        free = intended\n"))
mutant("first-sent-is-start", (B, "figures.first_sent = min([figures.first_sent, *sent[self.first : self.first + 1]])",
       "figures.first_sent = min([figures.first_sent, *sent[:1]])"))
mutant("last-arrival-is-stop", (B, "figures.last_arrival = max(figures.last_arrival, last)", "figures.last_arrival = now()"))
mutant("offset-sign", (B, OUTER, OUTER + "        ahead = abs(ahead)\n"), (B, 'self.ahead = work.get("ahead_ns", 0)  #', 'self.ahead = abs(work.get("ahead_ns", 0))  #'))
mutant("seed-32-bit", (B, SEED, SEED.replace('work["seed"]', 'work["seed"] % 2**32')))
mutant("seed-float", (B, SEED, SEED.replace('work["seed"]', 'int(float(work["seed"])) % 2**64')))
mutant("any-end-marker-is-enough", (B, "            return len(self.ended) == len(self.hears)\n        if self.distinct", "            return len(self.ended) == len(self.hears)\n        if self.distinct")
       if False else (B, "        if len(self.ended) == len(self.hears) or self.work[\"pattern\"] == \"pipeline\" or self.count < sent:\n            return len(self.ended) == len(self.hears)\n",
                      "        if self.ended or self.work[\"pattern\"] == \"pipeline\" or self.count < sent:\n            return bool(self.ended)\n"))
mutant("hears-everybody", (B, "            stream = streams.get(publisher)\n", "            stream = streams.get(publisher) or next(iter(streams.values()))\n"))
mutant("hears-from-0", (P, 'first, count = (self.id, 1) if self.sends else (order["hears_first"], order["hears_count"])',
       'first, count = (self.id, 1) if self.sends else (0, order["hears_first"] + order["hears_count"])'))
mutant("late-after-window-not-delivered", (B, "            measured = begin <= intended < end\n", "            measured = begin <= intended < end and at < end\n"))
mutant("series-sent-by-intended", (B, "rows = [bisect_left(sent, bound) for bound in bounds]", "rows = [bisect_left(intended, bound) for bound in bounds]"))
mutant("received-progress-is-0", (P, "        fields = {\"sent\": sum(one.count for one in sent), \"received\": received}\n",
       "        fields = {\"sent\": sum(one.count for one in sent), \"received\": 0}\n"))
mutant("probes-every-second", (P, "            over.wait(pause)\n", "            over.wait(1)\n"))
mutant("latency-times-1.01", (B, LATENCY, LATENCY + "                latency += latency // 100\n"))
mutant("sent-stamp-after-call", (P, "            if not send(stamp(intended, sequence, at, free)):\n",
       "            if not send(stamp(intended, sequence, at + 2 * MILLISECOND, free)):\n"))
mutant("round-trip-counts-from-sent", (B, LATENCY, LATENCY +
       "                latency = at - sent if self.work['pattern'] == 'request-reply' else latency\n"))
mutant("awaited-reply-is-own-lag", (P, "                at = free = ask(at + work[\"drain_ns\"])\n", "                at = ask(at + work[\"drain_ns\"])\n"))
mutant("no-reply-still-delivered", (P, "            if at >= deadline or at >= self.control.until:\n                return at\n",
       "            if at >= deadline or at >= self.control.until:\n                self.incoming.take(self.marker(self.outgoing.count - 1), 0, at)\n                return at\n"))
mutant("latency-floor-100us", (B, LATENCY, LATENCY + "                latency = max(0, latency - 100 * MICROSECOND)\n"), harmless=True)
mutant("outliers-dropped", (B, "            elif timed:\n", "            elif timed and at - intended < 3 * SECOND:\n"))
mutant("gives-up-at-window-end", (P, '        give_up = window.end + work["drain_ns"]\n', "        give_up = window.end\n"))
mutant("usage-until-stop", (P, "        self.wait(end)\n        self.read()\n", "        while not self.stop.is_set():\n            self.stop.wait(0.01)\n        self.read()\n"))


def patched(name, patches, folder):
    """A copy of the agent with these changes."""
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__", "build"))
    for file, right, wrong in patches:
        text = (folder / file).read_text()
        if text.count(right) != 1:
            sys.exit(f"{name}: {file} has {text.count(right)} times: {right!r}")
        (folder / file).write_text(text.replace(right, wrong))
    return folder / "agent.py"


def check(name, patches, asked):
    """The cases that refuse a mutant; the first alone unless the whole was asked for."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as place:
        agent = patched(name, patches, pathlib.Path(place) / "agent")
        words = asked.pubmark.split() + (["zeromq", "tcp"] if asked.bare else ["agent-check", "--driver", "zeromq", "--transport", "tcp"])
        words += (([asked.only] if asked.bare else ["--only", asked.only]) if asked.only else [])
        words += ["--", asked.python, "-B", str(agent)]
        run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
        refused, lines = [], []
        for line in run.stdout:
            lines.append(line.rstrip())
            if line.startswith("FAIL"):
                refused.append(line.split()[1])
            elif refused and line.strip().startswith("came:") or asked.bare and refused:
                if not asked.whole and patches:
                    break
        run.stdout.close()
        run.terminate()
        return name, refused, lines, run.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="mutants by name, or by the beginning of their names; else all")
    parser.add_argument("--pubmark", default=str(ROOT / "target" / "debug" / "pubmark"))
    cache = pathlib.Path.home() / ".cache/pubmark/systems/zeromq-python/python/bin/python"
    parser.add_argument("--python", default=str(cache), help="a Python that has pyzmq")
    parser.add_argument("--jobs", type=int, default=2, help="checks at once [default: 2]")
    parser.add_argument("--whole", action="store_true", help="every case that refuses a mutant, not the first alone")
    parser.add_argument("--only", default="", help="cases, as `agent-check --only` takes them")
    parser.add_argument("--dry-run", action="store_true", help="only see that each changes what it names")
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    everybody = {"right": (), **MUTANTS}
    chosen = {name: patches for name, patches in everybody.items() if not asked.names or name.startswith(tuple(asked.names))}
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        for name, patches in chosen.items():
            patched(name, patches, pathlib.Path(place) / name)
    if asked.dry_run:
        return 0
    passed = []
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for name, refused, lines, _ in pool.map(lambda of: check(*of, asked), chosen.items()):
            print(f"{name:44} {', '.join(refused) if refused else 'PASSES' + (' (harmless)' if name in HARMLESS else '')}", flush=True)
            if refused and name == "right":
                print("\n".join(lines))
            if not refused:
                passed.append(name)
    right = {True: "the right agent passes", False: "the right agent is refused"}["right" in passed]
    right = right if "right" in chosen else "the right agent was not checked"
    mutants = [name for name in chosen if name != "right"]
    missed = [name for name in mutants if name in passed]
    first = [name for name in mutants if name in list(MUTANTS)[:FIRST]]
    print(f"{len(mutants) - len(missed)} of {len(mutants)} mutants are refused "
          f"({sum(name not in passed for name in first)} of the first {len(first)}); "
          f"{right}.")
    refused = "right" in chosen and "right" not in passed
    return 1 if refused or set(missed) - HARMLESS else 0


if __name__ == "__main__":
    sys.exit(main())
