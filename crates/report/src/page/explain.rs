//! What the words of a report mean, for people: the figures, and the reasons
//! of a verdict with what to do about each.

use crate::figures::Column;
use pubmark_model::record::{FigureGroup, Reason};
use serde::Serialize;

/// In what a figure is measured.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Ns,
    PerS,
    BytesPerS,
    Bytes,
    Share,
    Count,
    Cores,
    Multiple,
}

/// A figure in words.
#[derive(Serialize)]
pub struct FigureDescription {
    pub key: &'static str,
    pub label: &'static str,
    pub unit: Unit,
    pub better: Option<&'static str>,
    pub group: FigureGroup,
    pub about: &'static str,
}

const LOWER: Option<&str> = Some("lower");
const HIGHER: Option<&str> = Some("higher");

/// All figures, in the order of `summary.csv`.
pub fn figures() -> Vec<FigureDescription> {
    Column::ALL.iter().map(|column| figure(*column)).collect()
}

/// The figure in words.
pub fn figure(column: Column) -> FigureDescription {
    let (label, unit, better, about) = words(column);
    FigureDescription { key: column.word(), label, unit, better, group: column.group(), about }
}

#[rustfmt::skip]
fn words(column: Column) -> (&'static str, Unit, Option<&'static str>, &'static str) {
    use Unit::{Bytes, BytesPerS, Cores, Count, Multiple, Ns, PerS, Share};
    match column {
        Column::Offered => ("offered", PerS, None, "messages due by the schedule, over all publishers"),
        Column::Sent => ("sent", PerS, None, "messages that the system took, over all publishers"),
        Column::Delivered => ("delivered", PerS, HIGHER, "messages that arrived within the window, over all subscribers"),
        Column::DeliveredBytes => ("delivered bytes", BytesPerS, HIGHER, "payload that arrived within the window"),
        Column::DeliveredRatio => ("delivered ratio", Share, HIGHER, "copies that arrived of those that should have"),
        Column::Lost => ("lost", Count, LOWER, "copies that should have arrived and had not when the drain ended"),
        Column::Duplicated => ("duplicated", Count, LOWER, "arrivals beyond the first of a message"),
        Column::Reordered => ("reordered", Count, LOWER, "arrivals behind a later message of the same publisher"),
        Column::Corrupted => ("corrupted", Count, LOWER, "arrivals with a wrong length, header or body"),
        Column::LatencyMin => ("latency min", Ns, LOWER, "the fastest message, from when it was due, less the generator's own lag"),
        Column::LatencyMean => ("latency mean", Ns, LOWER, "mean latency of all messages"),
        Column::LatencyP50 => ("latency p50", Ns, LOWER, "half of the messages took no longer, from when they were due, less the generator's own lag"),
        Column::LatencyP90 => ("latency p90", Ns, LOWER, "9 in 10 messages took no longer, from when they were due, less the generator's own lag"),
        Column::LatencyP95 => ("latency p95", Ns, LOWER, "19 in 20 messages took no longer, from when they were due, less the generator's own lag"),
        Column::LatencyP99 => ("latency p99", Ns, LOWER, "99 in 100 messages took no longer, from when they were due, less the generator's own lag"),
        Column::LatencyP999 => ("latency p99.9", Ns, LOWER, "999 in 1,000 messages took no longer, from when they were due, less the generator's own lag"),
        Column::LatencyMax => ("latency max", Ns, LOWER, "the slowest message"),
        Column::IntendedP50 => ("latency from the due time, p50", Ns, LOWER, "half of the messages took no longer, from when they were due, the generator's own lag included"),
        Column::IntendedP99 => ("latency from the due time, p99", Ns, LOWER, "99 in 100 messages took no longer, from when they were due, the generator's own lag included"),
        Column::ServiceP50 => ("service latency p50", Ns, LOWER, "median latency from actual send time: blind to what waited to be sent"),
        Column::ServiceP99 => ("service latency p99", Ns, LOWER, "99th percentile from actual send time: blind to what waited to be sent"),
        Column::SendLagP50 => ("send lag p50", Ns, LOWER, "median time from when a message was due until it was sent"),
        Column::SendLagP99 => ("send lag p99", Ns, LOWER, "99th percentile of the time from when a message was due until it was sent"),
        Column::OwnLagP50 => ("own lag p50", Ns, LOWER, "median of the part of the send lag that the load generator caused"),
        Column::OwnLagP99 => ("own lag p99", Ns, LOWER, "99th percentile of the part of the send lag that the load generator caused"),
        Column::ReceiveLagP50 => ("receive lag p50", Ns, LOWER, "median of the longest time that a message can have waited for our busy receiving loop"),
        Column::ReceiveLagP99 => ("receive lag p99", Ns, LOWER, "99th percentile of the longest time that a message can have waited for our busy receiving loop"),
        Column::Jitter => ("jitter", Ns, LOWER, "mean change of latency from one message to the next of a stream (RFC 3393)"),
        Column::CpuCores => ("CPU", Cores, LOWER, "processors kept busy by generator, library and server together"),
        Column::CpuPerMessage => ("CPU per message", Ns, LOWER, "CPU time of generator, library and server for a delivered message"),
        Column::RssMax => ("memory, largest", Bytes, LOWER, "largest resident set of generator and server together"),
        Column::Uss => ("memory, own", Bytes, LOWER, "median unique set of generator and server together"),
        Column::SwitchesPerMessage => ("context switches per message", Count, LOWER, "of generator and server, for a delivered message"),
        Column::FloorLatency => ("latency over the floor", Multiple, LOWER, "median latency as a multiple of the kernel's in the same block"),
        Column::FloorDelivered => ("delivered over the floor", Multiple, HIGHER, "messages delivered as a multiple of the kernel's in the same block"),
        Column::ServerCores => ("server CPU", Cores, LOWER, "processors kept busy by the server"),
        Column::ServerRss => ("server memory", Bytes, LOWER, "median resident set of the server"),
        Column::ServerRssMax => ("server memory, largest", Bytes, LOWER, "largest resident set of the server"),
        Column::ServerUss => ("server memory, own", Bytes, LOWER, "median unique set of the server"),
        Column::Acked => ("acknowledged", Count, None, "messages that the server took responsibility for"),
        Column::AckedLost => ("acknowledged and lost", Count, LOWER, "messages that the server acknowledged and a subscriber had not got when the drain ended"),
        Column::Connected => ("connected", Count, HIGHER, "connections that clients got"),
        Column::ConnectP50 => ("connect p50", Ns, LOWER, "median time until the server accepted a client"),
        Column::ConnectP99 => ("connect p99", Ns, LOWER, "99th percentile of the time until the server accepted a client"),
        Column::Late => ("late", Count, LOWER, "messages delivered later than `late_after`"),
        Column::Reconnected => ("reconnected", Count, None, "connections that clients got again after losing them"),
        Column::ReconnectP99 => ("reconnect p99", Ns, LOWER, "99th percentile of the times without a connection"),
    }
}

/// A reason of a verdict in words.
#[derive(Serialize)]
pub struct Explanation {
    pub meaning: &'static str,
    pub advice: &'static str,
}

/// What a reason means, and what to do.
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
            "Too few messages for the percentile that is quoted.",
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
            "A limit was hit: memory, open files, ports or processors.",
            "Raise the limit or lower the load; pubmark doctor shows the machine's limits.",
        ),
        Reason::Failed => (
            "The run could not be made.",
            "The error says why; pubmark run --resume tries it again.",
        ),
    };
    Explanation { meaning, advice }
}

/// Every reason.
pub const REASONS: [Reason; 14] = [
    Reason::GeneratorSaturated,
    Reason::NotSteady,
    Reason::OfferedRateMissed,
    Reason::ConnectionsMissed,
    Reason::MessagesLost,
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
