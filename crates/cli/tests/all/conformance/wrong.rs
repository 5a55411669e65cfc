//! Agents that measure wrongly: each is the agent of docs/add-a-language.md, or one
//! of those in Node beside this file, with one line changed.

/// A fault, the case that names it, and the change that makes it.
pub struct Wrong {
    pub what: &'static str,
    pub case: &'static str,
    pub right: &'static str,
    pub wrong: &'static str,
}

const fn wrong(what: &'static str, case: &'static str, right: &'static str, wrong: &'static str) -> Wrong {
    Wrong { what, case, right, wrong }
}

pub const WRONG: &[Wrong] = &[
    wrong(
        "the time of sending stands for the time at which a message was due",
        "send-schedule",
        "self.write(self.sent, due, free)",
        "self.write(self.sent, now(), free)",
    ),
    wrong(
        "each send puts off all that follow",
        "send-schedule",
        "            self.sent += 1\n        self.done",
        "            self.sent += 1\n            self.window.start += sent - due\n        self.done",
    ),
    wrong(
        "what is late is skipped",
        "send-stopped",
        "            self.sent += 1\n        self.done",
        "            self.sent += 1 + (now() - due) // (50 * MILLISECOND)\n        self.done",
    ),
    wrong(
        "what is late is dated later",
        "send-stopped",
        "self.write(self.sent, due, free)",
        "self.write(self.sent, max(due, now() - MILLISECOND), free)",
    ),
    wrong(
        "publishers have no offset",
        "send-many",
        "// self.window.per_ks * self.id //",
        "// self.window.per_ks * 0 //",
    ),
    wrong(
        "sequences begin at 1",
        "send-sequences",
        "self.write(self.sent, due, free)",
        "self.write(self.sent + 1, due, free)",
    ),
    wrong(
        "messages name another publisher",
        "send-sequences",
        "intended, self.id, sequence, sent, free)",
        "intended, self.id + 1, sequence, sent, free)",
    ),
    wrong(
        "the body is empty",
        "send-body",
        "bytearray(body(work[\"payload_bytes\"]))",
        "bytearray(work[\"payload_bytes\"])",
    ),
    wrong("the body is another", "send-body", "0x7075626D61726B31", "0x7075626D61726B32"),
    wrong(
        "messages are a byte short",
        "send-body",
        "bytearray(body(work[\"payload_bytes\"]))",
        "bytearray(body(work[\"payload_bytes\"] - 1))",
    ),
    wrong(
        "short messages are lengthened",
        "send-short",
        "room for room in (16, 24, 32) if room <= len(self.message)",
        "32 for _ in (0,)",
    ),
    wrong(
        "no message says when it was sent",
        "send-lag",
        "intended, self.id, sequence, sent, free)",
        "intended, self.id, sequence, intended, intended)",
    ),
    wrong(
        "messages say that they were sent later than they were",
        "send-instants",
        "intended, self.id, sequence, sent, free)",
        "intended, self.id, sequence, sent + SECOND, free)",
    ),
    wrong(
        "publishers were free only when they sent",
        "send-free",
        "intended, self.id, sequence, sent, free)",
        "intended, self.id, sequence, sent, sent)",
    ),
    wrong(
        "publishers were free before anything was due",
        "send-free",
        "intended, self.id, sequence, sent, free)",
        "intended, self.id, sequence, sent, 0)",
    ),
    wrong(
        "no probe is sent",
        "send-probes",
        "            if now() >= self.next_marker:",
        "            if self.done and now() >= self.next_marker:",
    ),
    wrong(
        "no end marker is sent",
        "send-end-markers",
        "            if now() >= self.next_marker:",
        "            if not self.done and now() >= self.next_marker:",
    ),
    wrong("the warm-up is offered too", "send-totals", "\"offered\": self.offered}", "\"offered\": self.sent}"),
    wrong("the window begins with the warm-up", "send-totals", "\"window_first\": self.first", "\"window_first\": 0"),
    wrong(
        "the window ends a message early",
        "send-totals",
        "\"window_end\": self.sent,",
        "\"window_end\": self.sent - 1,",
    ),
    wrong("a count is not kept", "send-count", "self.offered >= self.window.count", "self.offered > self.window.count"),
    wrong(
        "the lag is never told",
        "send-lag",
        "\"send_lag\": times(self.publishers, \"send_lag\")",
        "\"send_lag\": None",
    ),
    wrong(
        "the own lag is never told",
        "send-own-lag",
        "\"own_lag\": times(self.publishers, \"own_lag\")",
        "\"own_lag\": None",
    ),
    wrong("the own lag is always 0", "send-own-lag", "self.own_lag[sent - free] += 1", "self.own_lag[0] += 1"),
    wrong(
        "histograms count everything twice",
        "send-lag",
        "merged[value // step * step] += count",
        "merged[value // step * step] += 2 * count",
    ),
    wrong("histograms keep two digits", "send-lag", "histogram(counters, digits=3)", "histogram(counters, digits=1)"),
    wrong(
        "histograms are no histograms",
        "receive-latency",
        "    return sorted(merged.items()) or None",
        "    return \"abc\" if merged else None",
    ),
    wrong("slices are 7 ns long", "send-series", "self.window.slice if self.window else 0, \"sent\"", "7, \"sent\""),
    wrong(
        "no slice has anything sent",
        "send-series",
        "\"sent\": columns(self.publishers, \"series\")",
        "\"sent\": []",
    ),
    wrong("memory is told in KiB", "send-usage", "kib[\"Rss:\"] << 10", "kib[\"Rss:\"]"),
    wrong("no processor time is told", "send-usage", "\"cpu_ns\": time.process_time_ns()", "\"cpu_ns\": 0"),
    wrong(
        "the window's length is told in milliseconds",
        "send-usage",
        "\"wall_ns\": now()",
        "\"wall_ns\": now() // MILLISECOND",
    ),
    wrong(
        "no library is named",
        "send-versions",
        "versions={\"library\": \"kernel\", \"version\": platform.release()}",
        "versions={}",
    ),
    wrong("progress is never said", "send-progress", "            say(\"progress\", sent", "            dict(sent"),
    wrong(
        "progress says half of it",
        "send-progress",
        "publisher.sent for publisher in self.publishers),",
        "publisher.sent // 2 for publisher in self.publishers),",
    ),
    wrong(
        "it prints what is no word of the protocol",
        "send-progress",
        "            say(\"progress\", sent",
        "            print(\"so far so good\", flush=True)\n            say(\"progress\", sent",
    ),
    wrong("a word is said twice", "send", "            self.once(\"ready\")", "            say(\"ready\")"),
    wrong("its result has no flow", "send", "flows=[flow]", "flows=[]"),
    wrong(
        "it ends with another status",
        "send",
        "        elif kind == \"exit\":\n            sys.exit(0)",
        "        elif kind == \"exit\":\n            sys.exit(3)",
    ),
    wrong(
        "what the system made it wait for is its own lag",
        "send-blocked",
        "self.free = free + now() - sent  # the call was the system's",
        "self.free = free",
    ),
    wrong("it sends on after stop", "stop-early", " or \"result\" in self.said", ""),
    wrong(
        "it stays when its input has ended",
        "input-ends-at-once",
        "sys.exit(1)  # the coordinator has gone",
        "time.sleep(9)",
    ),
    wrong(
        "it passes over commands that it does not know",
        "unknown-command",
        "fatal(\"this cannot be done: %.200s\" % line.decode())",
        "pass",
    ),
    wrong(
        "it begins late without a word",
        "late-start",
        "elif kind == \"start\" and command[\"at_ns\"] > now():",
        "elif kind == \"start\":",
    ),
    wrong(
        "it speaks every version",
        "other-version",
        "if kind == \"hello\" and command[\"protocol\"] == 2:\n            say(\"hello\", protocol=2,",
        "if kind == \"hello\":\n            say(\"hello\", protocol=command[\"protocol\"],",
    ),
    wrong(
        "it has every driver",
        "unknown-driver",
        "elif kind == \"prepare\" and command[\"driver\"] == \"kernel\" and",
        "elif kind == \"prepare\" and",
    ),
    wrong("it takes every option", "unknown-option", " and not command[\"options\"]:", ":"),
    wrong(
        "it goes on when it is greeted in another version",
        "other-version",
        "message=message, fatal=True",
        "message=message, fatal=False",
    ),
    wrong(
        "it goes on without a driver",
        "unknown-driver",
        "message=message, fatal=True",
        "message=message, fatal=False",
    ),
    wrong("it goes on when it is late", "late-start", "message=message, fatal=True", "message=message, fatal=False"),
    wrong(
        "it refuses a field that it does not know",
        "unknown-field",
        "            self.work = command[\"flows\"][0][\"workload\"]\n",
        "            self.work = command[\"flows\"][0][\"workload\"]\n            \
         \"of_a_later_version\" in self.work and fatal(\"what is that?\")\n",
    ),
    wrong(
        "it stays when its input has ended before it had an order",
        "input-ends-after-hello",
        "sys.exit(1)  # the coordinator has gone",
        "sys.exit(1) if self.work else time.sleep(9)",
    ),
    wrong(
        "it stays when its input has ended before the start",
        "input-ends-while-ready",
        "sys.exit(1)  # the coordinator has gone",
        "sys.exit(1) if self.window else time.sleep(9)",
    ),
    wrong(
        "it stays when its input has ended in the window",
        "input-ends-while-sending",
        "sys.exit(1)  # the coordinator has gone",
        "time.sleep(9) if self.window else sys.exit(1)",
    ),
    wrong(
        "probes are messages to it",
        "stop-before-start",
        "self.id, \"sent\": self.sent,",
        "self.id, \"sent\": self.sent + (not self.window),",
    ),
    wrong(
        "no option took effect",
        "send-versions",
        "applied={\"tcp_nodelay\": True, \"batch_messages\": 1}",
        "applied={}",
    ),
    wrong(
        "who sends has something arrive",
        "send-empty",
        "\"arrived\": counts[\"arrived\"]",
        "\"arrived\": counts[\"arrived\"] + len(self.publishers)",
    ),
    wrong(
        "the result of who receives has no flow",
        "receive",
        "flows=[flow]",
        "flows=[flow] if self.publishers else []",
    ),
    wrong(
        "who receives has a publisher",
        "receive-empty",
        "            \"publishers\": [publisher.total() for publisher in self.publishers],",
        "            \"publishers\": [publisher.total() for publisher in self.publishers] or\n            \
         [dict(publisher=0, sent=0, window_first=0, window_end=0, offered=0)],",
    ),
    wrong(
        "two publishers share one row of sequences",
        "receive-two",
        "{publisher: set() for publisher in self.hears}",
        "dict.fromkeys(self.hears, set())",
    ),
    wrong(
        "what came while it was stopped came in time",
        "receive-stopped",
        "self.latency[max(0, latency)] += 1",
        "self.latency[min(max(0, latency), 100 * MILLISECOND)] += 1",
    ),
    wrong(
        "of two publishers one tells its lag",
        "meet-pairs",
        "times(self.publishers, \"own_lag\")",
        "times(self.publishers[:1], \"own_lag\")",
    ),
    wrong(
        "of two subscribers one keeps books",
        "meet-fan-out",
        "sum(of(self.subscribers, \"counts\"), Counter())",
        "sum(of(self.subscribers[:1], \"counts\"), Counter())",
    ),
    wrong(
        "two publishers that meet a subscriber share one row of sequences",
        "meet-fan-in",
        "{publisher: set() for publisher in self.hears}",
        "dict.fromkeys(self.hears, set())",
    ),
    wrong("its bodies are those that it alone knows", "to-built-in", "0x7075626D61726B31", "0x7075626D61726B32"),
    wrong("it knows no bodies but its own", "from-built-in", "0x7075626D61726B31", "0x7075626D61726B32"),
    wrong("its clock is the wall's", "hello", "now = time.monotonic_ns", "now = time.time_ns"),
    wrong("it names another process", "hello", "pid=os.getpid()", "pid=2**31 - 1"),
    wrong(
        "it is ready at once",
        "receive-ready",
        "if all(subscriber.probed >= set(subscriber.hears) for subscriber in self.subscribers):",
        "if True:",
    ),
    wrong(
        "one publisher of two is enough to be ready",
        "receive-ready",
        "subscriber.probed >= set(subscriber.hears)",
        "subscriber.probed",
    ),
    wrong(
        "it is drained at once",
        "drain-deadline",
        "(at >= self.deadline or all(s.complete(self.totals) for s in self.subscribers))",
        "True",
    ),
    wrong(
        "it always waits for the deadline",
        "drain-complete",
        " or all(s.complete(self.totals) for s in self.subscribers))",
        ")",
    ),
    wrong(
        "end markers are nothing to it",
        "drain-marked",
        "publisher in self.ended or whole(publisher)",
        "whole(publisher)",
    ),
    wrong(
        "latencies are microseconds",
        "receive-latency",
        "at - intended - own, self.before",
        "(at - intended - own) // 1000, self.before",
    ),
    wrong(
        "latencies count from the sending",
        "receive-latency",
        "at - intended - own, self.before",
        "at - sent, self.before",
    ),
    wrong(
        "the sender's own lag is the system's",
        "receive-latency",
        "sent - free if length >= 32 and intended <= free <= sent else 0",
        "0",
    ),
    wrong(
        "the time of arrival says what is of the window",
        "receive-latency",
        "measured, twice = window.holds(intended)",
        "measured, twice = window.holds(at)",
    ),
    wrong(
        "the latency from the due time is the headline",
        "receive-intended",
        "self.intended[max(0, at - intended)]",
        "self.intended[max(0, latency)]",
    ),
    wrong(
        "the latency from the sending is that from the due time",
        "receive-service",
        "self.service[max(0, at - sent)]",
        "self.service[max(0, at - intended)]",
    ),
    wrong(
        "the latency from the sending is never told",
        "receive-service",
        "times(self.subscribers, \"service\")",
        "None",
    ),
    wrong(
        "short messages have the latency of a time that they do not carry",
        "receive-short",
        "        if length >= 24:\n",
        "        if True:\n",
    ),
    wrong(
        "jitter is told in microseconds",
        "receive-jitter",
        "abs(latency - before[1])",
        "abs(latency - before[1]) // 1000",
    ),
    wrong("jitter is not looked at", "receive-jitter", "self.pairs += 1", "self.pairs += 0"),
    wrong("nothing arrived in time", "receive-arrived", "\"arrived\": counts[\"arrived\"]", "\"arrived\": 0"),
    wrong(
        "whatever arrived was in time",
        "receive-arrived",
        "self.counts[\"arrived\"] += window.holds(at)",
        "self.counts[\"arrived\"] += 1",
    ),
    wrong("no slice has anything delivered", "receive-series", "columns(self.subscribers, \"delivered\")", "[]"),
    wrong(
        "the ledger is off by one",
        "receive-counts",
        "sum(first <= sequence < end for",
        "sum(first < sequence < end for",
    ),
    wrong(
        "what came was all that was expected",
        "receive-losses",
        "\"expected\": end - first",
        "\"expected\": sum(first <= s < end for s in self.seen[publisher])",
    ),
    wrong(
        "duplicates are not counted",
        "receive-duplicates",
        "            self.counts[\"duplicated\"] += measured\n            return",
        "            return",
    ),
    wrong(
        "duplicates have a latency",
        "receive-flawed-latency",
        "            self.counts[\"duplicated\"] += measured\n            return",
        "            self.counts[\"duplicated\"] += measured",
    ),
    wrong(
        "order is not looked at",
        "receive-reordered",
        "measured and sequence < self.highest.get(publisher, 0)",
        "False",
    ),
    wrong("messages may have any length", "receive-foreign", "length == self.work[\"payload_bytes\"]", "length >= 16"),
    wrong(
        "numbers that nobody gave away are no matter",
        "receive-foreign",
        "sum(sequence >= sent for sequence in self.seen[publisher])",
        "0",
    ),
    wrong("bodies are not compared", "receive-bodies", "message[32:] != self.body[32:]", "False"),
    wrong(
        "damaged messages have a latency",
        "receive-bodies",
        "            self.counts[\"corrupted\"] += 1\n            return\n        if twice",
        "            self.counts[\"corrupted\"] += 1\n        if twice",
    ),
    wrong(
        "it says that it takes differing clocks out, and writes its own",
        "send-clock-offset",
        "\"transports\": [\"tcp\"]}",
        "\"transports\": [\"tcp\"], \"clock_offset\": True}",
    ),
    wrong(
        "it says that it takes differing clocks out, and reads its own",
        "receive-clock-offset",
        "\"transports\": [\"tcp\"]}",
        "\"transports\": [\"tcp\"], \"clock_offset\": True}",
    ),
];

/// Of the agent in Node, whose clients can be killed.
pub const WRONG_IN_NODE: &[Wrong] = &[
    wrong("a killed publisher's listener stays", "crash", "    this.listener.close();\n", ""),
    wrong("a killed publisher counts on", "crash", "    this.step();\n    this.done = true;\n", ""),
    wrong("killed subscribers hear on", "receive-crash", "    for (const stream of streams) stream.destroy();\n", ""),
    wrong("killed subscribers are waited for", "receive-crash", "return crashed || ", "return "),
];

const WORKLOAD: &str = "  return workload;\n";
const FLOW: &str = "  return flow;\n";
const REPLIES: &str = "far.on(\"data\", (bytes) => near.write(bytes));";
const SPOILS: &str =
    "far.on(\"data\", (bytes) => near.write(bytes.map((byte, at) => (at === bytes.length - 1 ? byte ^ 1 : byte))));";

/// Of pubmark's own agent behind a relay, over the sockets of the kernel: told
/// otherwise than it was, or with another result.
pub const WRONG_RELAYED: &[Wrong] = &[
    wrong(
        "its gaps are those of another seed",
        "send-poisson",
        WORKLOAD,
        "  return { ...workload, seed: workload.seed + 1 };\n",
    ),
    wrong("it sends no bursts", "send-burst", WORKLOAD, "  return { ...workload, arrival: \"uniform\" };\n"),
    wrong("a count at max is not kept", "send-max", WORKLOAD, "  return { ...workload, extent: { count: 499 } };\n"),
    wrong("pairs share one rate", "send-pairs", WORKLOAD, "  return { ...workload, rate: workload.rate / 2 };\n"),
    wrong(
        "in a pipeline each subscriber hears all",
        "send-pipeline",
        WORKLOAD,
        "  return { ...workload, pattern: \"fan-out\" };\n",
    ),
    wrong(
        "the latency of a request is not its round trip",
        "send-requests",
        FLOW,
        "  flow.histograms.latency = [[1e6, flow.ledger.delivered]];\n  return flow;\n",
    ),
    wrong("what is not echoed is not counted", "send-echoed", FLOW, "  flow.ledger.unanswered = 0;\n  return flow;\n"),
    wrong(
        "a stopped publisher had no pause",
        "send-stopped",
        FLOW,
        "  result.pauses = { count: 0, longest_ns: 0, longest_at_ns: 0 };\n  return flow;\n",
    ),
    wrong(
        "a stopped subscriber had no pause",
        "receive-stopped",
        FLOW,
        "  result.pauses = { count: 0, longest_ns: 0, longest_at_ns: 0 };\n  return flow;\n",
    ),
    wrong(
        "pauses are told in microseconds",
        "receive-stopped",
        FLOW,
        "  result.pauses.longest_ns = Math.floor(result.pauses.longest_ns / 1000);\n  return flow;\n",
    ),
    wrong(
        "one message has a lag of the receiver's",
        "receive-stopped",
        FLOW,
        "  flow.histograms.receive_lag = [[1000, 1]];\n  return flow;\n",
    ),
    wrong(
        "there was no silence",
        "receive-silence",
        FLOW,
        "  flow.stalls = { count: 0, longest_ns: 0, longest_at_ns: 0 };\n  return flow;\n",
    ),
    wrong("nothing arrived of a count at max", "receive-max", FLOW, "  flow.arrived = 0;\n  return flow;\n"),
    wrong("a pipeline's messages are not named", "receive-pipeline", FLOW, "  flow.seen = [];\n  return flow;\n"),
    wrong("a reply is not its request", "reply", REPLIES, SPOILS),
    wrong(
        "in a pipeline of its own each subscriber hears all",
        "meet-pipeline",
        WORKLOAD,
        "  return { ...workload, pattern: \"fan-out\" };\n",
    ),
    wrong(
        "requesters have no lag of their own",
        "meet-request-reply",
        FLOW,
        "  flow.histograms.own_lag = null;\n  return flow;\n",
    ),
    wrong("an echo is counted as none", "meet-fan-out-echo", FLOW, "  flow.ledger.unanswered = 1;\n  return flow;\n"),
    wrong(
        "whoever is stopped has no lag of its own",
        "meet-stopped",
        FLOW,
        "  flow.histograms.own_lag = [[1000, 1]];\n  return flow;\n",
    ),
    wrong(
        "echoes of another's have no times",
        "echo-to-built-in",
        FLOW,
        "  flow.histograms.latency = null;\n  return flow;\n",
    ),
    wrong("what it echoes it has twice", "echo-from-built-in", FLOW, "  flow.ledger.duplicated = 1;\n  return flow;\n"),
];

const GOES: &str = "    near.on(\"close\", () => far.end());\n";
/// DISCONNECT of MQTT.
const POLITE: &str = "    near.on(\"close\", () => far.end(Buffer.of(0xe0, 0)));\n";
const STAYS: &str = "    near.on(\"close\", () => {});\n";
const GOES_ON: &str = "    let last;\n    near.on(\"data\", (bytes) => (last = bytes));\n    \
    near.on(\"close\", () => setInterval(() => far.write(last), 5));\n";

/// Of the same agent at a server, whose clients can be killed there.
pub const WRONG_AT_A_SERVER: &[Wrong] = &[
    wrong(
        "it holds what comes itself",
        "server-delays",
        "(bytes) => near.write(bytes));",
        "(bytes) => setTimeout(() => near.write(bytes), 100));",
    ),
    wrong(
        "what a server loses was not expected",
        "server-losses",
        FLOW,
        "  flow.ledger.expected = flow.ledger.delivered;\n  return flow;\n",
    ),
    wrong(
        "what a server doubles is not counted",
        "server-duplicates",
        FLOW,
        "  flow.ledger.duplicated = 0;\n  return flow;\n",
    ),
    wrong(
        "what a server damages is not counted",
        "server-damage",
        FLOW,
        "  flow.ledger.corrupted = 0;\n  return flow;\n",
    ),
    wrong(
        "what a server keeps waiting is not late",
        "server-stalls",
        FLOW,
        "  flow.histograms.intended_latency = [[1e6, 1]];\n  return flow;\n",
    ),
    wrong("acknowledgements are off by one", "server-acked", FLOW, "  flow.acked += 1;\n  return flow;\n"),
    wrong("what was not acknowledged is not named", "server-acked", FLOW, "  flow.unacked = [];\n  return flow;\n"),
    wrong("what did not come is not named", "server-acked", FLOW, "  flow.missing = [];\n  return flow;\n"),
    wrong("in a tree something is out of order", "meet-tree", FLOW, "  flow.ledger.reordered = 1;\n  return flow;\n"),
    wrong("a killed publisher takes its leave of the server", "server-crash", GOES, POLITE),
    wrong("a killed publisher stays connected", "server-crash", GOES, STAYS),
    wrong("a killed publisher goes on", "server-crash", GOES, GOES_ON),
    wrong("a killed subscriber takes its leave of the server", "server-receive-crash", GOES, POLITE),
    wrong("a killed subscriber stays connected", "server-receive-crash", GOES, STAYS),
];
