//! Faults of the agent behind a relay, beside this folder: with changed commands, with a changed result, or with
//! clients that do not die as they should.

use super::{Wrong, wrong};

const WORKLOAD: &str = "  return workload;\n";
const FLOW: &str = "  return flow;\n";
const REPLIES: &str = "far.on(\"data\", (bytes) => near.write(bytes));";
const SPOILS: &str =
    "far.on(\"data\", (bytes) => near.write(bytes.map((byte, at) => (at === bytes.length - 1 ? byte ^ 1 : byte))));";

/// Faults of pubmark's own agent behind a relay, over the sockets of the kernel: with changed commands, or with a
/// changed result.
pub const WRONG_RELAYED: &[Wrong] = &[
    wrong("its gaps are those of another seed", "send-poisson", WORKLOAD, "  return { ...workload, seed: 1 };\n"),
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
    wrong(
        "a request without a reply was delivered",
        "send-unanswered",
        FLOW,
        "  flow.ledger.delivered = flow.ledger.expected;\n  return flow;\n",
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

/// Faults of the same agent at a server, whose clients can be killed there.
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
