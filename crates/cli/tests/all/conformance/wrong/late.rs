//! Faults of the agent of docs/add-a-language.md with delays of seconds, with blocked sends, with a part of the
//! clients, or with figures that contradict each other.

use super::{Wrong, wrong};

/// Faults, each with one line changed.
pub const WRONG_LATE: &[Wrong] = &[
    wrong(
        "what a slow reader made it wait for is its own lag",
        "send-slow",
        "self.ready = now()  # it is offered again, and the wait was the system's",
        "pass",
    ),
    wrong(
        "what it gives up was never offered",
        "send-given-up",
        "            self.offered += due >= self.window.begin\n            if given_up:\n                continue\n",
        "            if given_up:\n                continue\n            self.offered += due >= self.window.begin\n",
    ),
    wrong(
        "it never gives up",
        "send-given-up",
        "now() >= self.window.end + self.work[\"drain_ns\"]\n            sent",
        "False\n            sent",
    ),
    wrong(
        "the first message was sent at the start",
        "send-first",
        "self.first_sent = self.first_sent or sent",
        "self.first_sent = self.window.start",
    ),
    wrong(
        "publishers are numbered by their place",
        "send-part",
        "self.once(\"sent\", publishers=[publisher.total() for publisher in self.publishers])",
        "self.once(\"sent\", publishers=[dict(one.total(), publisher=at) for at, one in enumerate(self.publishers)])",
    ),
    wrong("it stays on every processor", "send-pinned", "os.sched_setaffinity(0, cpus)", "pass"),
    wrong(
        "processor time is that of its start as well",
        "send-usage",
        "else after[name] - before[name]",
        "else after[name]",
    ),
    wrong(
        "no lag is above a second",
        "send-stopped-long",
        "self.send_lag[sent - due]",
        "self.send_lag[min(sent - due, SECOND)]",
    ),
    wrong(
        "rates are whole numbers",
        "send-many",
        "self.per_ks = round(work[\"rate\"] * 1000)",
        "self.per_ks = int(work[\"rate\"]) * 1000",
    ),
    wrong(
        "periods are cut off before they are added up",
        "send-many",
        "self.number * 1000 * SECOND // self.window.per_ks",
        "self.number * (1000 * SECOND // self.window.per_ks)",
    ),
    wrong(
        "each latency is 2 ms more",
        "receive-latency",
        "latency, before = at - intended - own,",
        "latency, before = at - intended - own + 2 * MILLISECOND,",
    ),
    wrong(
        "latencies are 1 ms more, and are part of what is not",
        "receive-apart",
        "latency, before = at - intended - own,",
        "latency, before = at - intended - own + MILLISECOND,",
    ),
    wrong(
        "every arrival is 5 ms later",
        "receive-service",
        "heard[ready].take(message, now())",
        "heard[ready].take(message, now() + 5 * MILLISECOND)",
    ),
    wrong("jitter goes over gaps", "receive-gaps", "if before and before[0] + 1 == sequence:", "if before:"),
    wrong("the last message came when the window was over", "receive-last", "self.last = at", "self.last = window.end"),
    wrong("no clock is ever wrong", "receive-negative", "if changed or at < intended:", "if changed:"),
    wrong(
        "what comes twice arrives twice",
        "receive-flawed-arrived",
        "        if twice:\n",
        "        if twice:\n            self.counts[\"arrived\"] += window.holds(at)\n",
    ),
    wrong("it hears all publishers from 0 on", "receive-part", "range(client[\"hears_first\"],", "range(0,"),
    wrong("sequences have 16 bits", "receive-many", "seen.add(sequence)", "seen.add(sequence & 0xFFFF)"),
    wrong(
        "no latency is above a second",
        "receive-late",
        "self.latency[max(0, latency)]",
        "self.latency[min(max(0, latency), SECOND)]",
    ),
    wrong(
        "what came behind a second's stop came in time",
        "receive-stopped-long",
        "self.intended[max(0, at - intended)]",
        "self.intended[min(at - intended, SECOND)]",
    ),
    wrong(
        "it never received anything yet",
        "receive-progress",
        "subscriber.counts[\"received\"] for subscriber in self.subscribers",
        "0 for subscriber in self.subscribers",
    ),
    wrong(
        "the end marker of one publisher is that of all",
        "drain-follows",
        "return all(publisher in self.ended or whole(publisher) for publisher in self.hears)",
        "return any(publisher in self.ended or whole(publisher) for publisher in self.hears)",
    ),
    wrong(
        "slices count what the sum does not",
        "figures-agree",
        "            self.counts[\"arrived\"] += 1\n",
        "            self.counts[\"arrived\"] += measured\n",
    ),
];
