//! Explanations of a report's words: figures, and reasons of a verdict with advice.

use pubmark_model::figure::{Figure, FigureDescription};
use pubmark_model::record::{Reason, RunRecord};
use serde::Serialize;
use std::collections::BTreeMap;

/// Returns all figures, in the order of `summary.csv`.
pub fn figures() -> Vec<&'static FigureDescription> {
    Figure::columns().map(|column| column.description()).collect()
}

/// A reason of a verdict in words.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Explanation {
    pub meaning: &'static str,
    pub advice: &'static str,
}

/// Returns the meaning of a reason, with advice.
#[rustfmt::skip]
pub fn reason(reason: Reason) -> Explanation {
    let (meaning, advice) = match reason {
        Reason::GeneratorSaturated => (
            "The load generator itself was late: it measured its own limit, not the system's.",
            "Lower the rate or the number of clients, give it more processors, or see what it can do here: pubmark calibrate.",
        ),
        Reason::NotSteady => (
            "The figures moved in one direction, a backlog grew, or there was a silence: the window has no one value.",
            "A longer warm-up or window; where the backlog grows, the rate is more than the system sustains.",
        ),
        Reason::OfferedRateMissed => (
            "Fewer messages were sent than were due: the system did not take them.",
            "Lower the rate; this one is beyond what the system takes.",
        ),
        Reason::ConnectionsMissed => (
            "Fewer clients got a connection than wanted one: it was another load than was asked for.",
            "The server's limits on connections and open files; a lower connect_rate or a longer connect_timeout.",
        ),
        Reason::MessagesLost => (
            "Messages were lost that the guarantee of this workload does not allow to be lost.",
            "The system or its settings: see its log, its queue limits and its quality of service.",
        ),
        Reason::Duplicates => (
            "Messages came more than once where the guarantee forbids it.",
            "The system or its settings; reconnections and redeliveries cause it.",
        ),
        Reason::Reordered => (
            "Messages of one publisher came out of order where the guarantee forbids it.",
            "The system or its settings; several threads within a server cause it.",
        ),
        Reason::Corrupted => (
            "Messages came with a wrong length, header or body.",
            "The system or the network between: this must not happen.",
        ),
        Reason::TooFewSamples => (
            "Too few messages for this percentile.",
            "A longer window or a higher rate.",
        ),
        Reason::Clock => (
            "A clock ran backwards or apart from another's.",
            "One host, or clocks that are disciplined.",
        ),
        Reason::NoisyMachine => (
            "Something else used the processors during the window, or the hypervisor took them away.",
            "Stop other work; see what is wrong with the machine: pubmark doctor.",
        ),
        Reason::ServerDied => (
            "The server ended during the run.",
            "Its log is in the results folder under logs/.",
        ),
        Reason::ResourceLimitHit => (
            "A limit was hit: memory, disk, a quota or a full queue of the server, open files, ports or processors.",
            "Raise the limit or lower the load; pubmark doctor shows the machine's limits.",
        ),
        Reason::LedgerDisk => (
            "The server's data lay on a file system of pubmark's own, which writes no disk: its syncs take no time of one.",
            "Quote the losses only; measure latencies on a real disk, in another run.",
        ),
        Reason::MessagesRefused => (
            "The server refused messages, in words or by a code.",
            "Change what the reason beside it names: rights of the user, settings of the server, or the message.",
        ),
        Reason::Failed => (
            "The run did not take place or did not end.",
            "The error says why; pubmark run --resume tries it again.",
        ),
        Reason::Later(_) => (
            "A later pubmark made this record, and knows a reason that this one does not.",
            "What was seen is beside it; the pubmark that made the record explains it.",
        ),
    };
    Explanation { meaning, advice }
}

/// Returns the meaning of each reason in these records, including reasons that this version does
/// not know.
pub fn reasons<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> BTreeMap<String, Explanation> {
    let of_runs = runs.flat_map(|run| &run.verdict.reasons).map(|finding| finding.reason);
    REASONS.into_iter().chain(of_runs).map(|one| (one.to_string(), reason(one))).collect()
}

/// Every reason.
const REASONS: [Reason; 16] = [
    Reason::GeneratorSaturated,
    Reason::NotSteady,
    Reason::OfferedRateMissed,
    Reason::ConnectionsMissed,
    Reason::MessagesLost,
    Reason::LedgerDisk,
    Reason::MessagesRefused,
    Reason::Duplicates,
    Reason::Reordered,
    Reason::Corrupted,
    Reason::TooFewSamples,
    Reason::Clock,
    Reason::NoisyMachine,
    Reason::ServerDied,
    Reason::ResourceLimitHit,
    Reason::Failed,
];
