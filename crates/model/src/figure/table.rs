//! The rows of the figure table: first the times of messages by percentile, then the figures that
//! are one number per run.

use super::row::{Figure, FigureDescription, Percentile, Scope, Source, Unit};
use crate::figure_group::FigureGroup;
use crate::protocol::{ClientProcessors, RuntimeFigures};
use crate::record::{DiskFigures, Rates, RunRecord, SyncFigures, Usage};
use crate::times::TIMES;

const LOWER: Option<&str> = Some("lower");
const HIGHER: Option<&str> = Some("higher");
const NEITHER: Option<&str> = None;

/// The smallest page of memory, bytes.
const PAGE: f64 = 4_096.0;

/// Index of the headline latency among the times of messages.
pub(super) const LATENCY: usize = 0;

/// The rows of each time, in the order of [`crate::times::TimeFigures`]: its name in keys, the text
/// typed before a percentile, its label, and its meaning.
macro_rules! times {
    ($($name:literal, $typed:literal, $label:literal, $about:literal;)+) => {
        const TIME_ROWS: [[FigureDescription; Percentile::COUNT]; TIMES] = in_order([$([
            time(Percentile::Min, concat!($name, "_min_ns"), &[concat!($typed, "min")], concat!($label, " min"),
                concat!("least ", $about)),
            time(Percentile::Mean, concat!($name, "_mean_ns"), &[concat!($typed, "mean")], concat!($label, " mean"),
                concat!("mean ", $about)),
            time(Percentile::P50, concat!($name, "_p50_ns"), &[concat!($typed, "p50")], concat!($label, " p50"),
                concat!("median ", $about)),
            time(Percentile::P90, concat!($name, "_p90_ns"), &[concat!($typed, "p90")], concat!($label, " p90"),
                concat!("90th percentile of the ", $about)),
            time(Percentile::P95, concat!($name, "_p95_ns"), &[concat!($typed, "p95")], concat!($label, " p95"),
                concat!("95th percentile of the ", $about)),
            time(Percentile::P99, concat!($name, "_p99_ns"), &[concat!($typed, "p99")], concat!($label, " p99"),
                concat!("99th percentile of the ", $about, "; needs 1,000 messages")),
            time(Percentile::P999, concat!($name, "_p999_ns"), &[concat!($typed, "p999")], concat!($label, " p99.9"),
                concat!("99.9th percentile of the ", $about, "; needs 10,000 messages")),
            time(Percentile::Max, concat!($name, "_max_ns"), &[concat!($typed, "max")], concat!($label, " max"),
                concat!("greatest ", $about)),
        ]),+]);
    };
}

const fn time(
    percentile: Percentile,
    key: &'static str,
    short: &'static [&'static str],
    label: &'static str,
    about: &'static str,
) -> FigureDescription {
    let group = match percentile {
        Percentile::Min | Percentile::P50 => FigureGroup::LatencyP50,
        _ => FigureGroup::LatencyP99,
    };
    let source = Source::Time(0, percentile);
    let (unit, scope) = (Unit::Ns, Scope::Flow);
    FigureDescription { key, short, label, unit, scope, better: LOWER, group, about, source, step: None }
}

/// Gives each row the index of its time.
const fn in_order(
    mut rows: [[FigureDescription; Percentile::COUNT]; TIMES],
) -> [[FigureDescription; Percentile::COUNT]; TIMES] {
    let mut place = 0;
    while place < TIMES {
        let mut each = 0;
        while each < Percentile::COUNT {
            if let Source::Time(_, percentile) = rows[place][each].source {
                rows[place][each].source = Source::Time(place, percentile);
            }
            each += 1;
        }
        place += 1;
    }
    rows
}

times! {
    "latency", "", "latency", "time from due to arrival, without the generator delay";
    "intended_latency", "intended ", "latency from the due time,", "time from due to arrival, with the generator delay";
    "service_latency", "service ", "service latency", "time from send to arrival, without the wait before the send";
    "send_lag", "send_lag ", "send lag", "time from due to send";
    "own_lag", "own_lag ", "generator delay", "generator delay: how late the load generator itself sent";
    "receive_lag", "receive_lag ", "receive lag", "upper bound of the wait for the busy receiving loop of the load generator";
    "ack_latency", "ack_latency ", "time to acknowledgement", "time from due until the publisher had the server's acknowledgement, without the generator delay";
    "request_latency", "request ", "request latency", "time from a requester's send to the replier's receipt";
    "reply_latency", "reply ", "reply latency", "time from a replier's send to the requester's receipt";
    "replier_time", "replier_time ", "replier's own time", "time from a replier's receipt of a request until it sent the answer";
}

/// A table of numbers: the constant, the key, other names, the part of a run that it describes, the
/// group that it becomes unusable with, its unit, its better direction, its label, its source, its
/// meaning.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = $key:literal [$($short:literal),*] $scope:ident $group:ident $unit:ident $better:ident,
        $label:literal, $source:expr, $(step $step:expr,)? $about:literal;)+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Place { $($name),+ }

        const NUMBERS: [FigureDescription; [$($key),+].len()] = [$(FigureDescription {
            key: $key,
            short: &[$($short),*],
            label: $label,
            unit: Unit::$unit,
            scope: Scope::$scope,
            better: $better,
            group: FigureGroup::$group,
            about: $about,
            source: $source,
            step: step!($($step)?),
        }),+];

        impl Figure {
            $($(#[$doc])* pub const $name: Figure = Figure((TIME_COUNT + Place::$name as usize) as u8);)+
        }
    };
}

macro_rules! step {
    () => {
        None
    };
    ($step:expr) => {
        Some($step)
    };
}

const TIME_COUNT: usize = TIMES * Percentile::COUNT;

/// All rows.
pub(super) static TABLE: [FigureDescription; TIME_COUNT + NUMBERS.len()] = {
    let mut table = [NUMBERS[0]; TIME_COUNT + NUMBERS.len()];
    let mut place = 0;
    while place < table.len() {
        table[place] = match place < TIME_COUNT {
            true => TIME_ROWS[place / Percentile::COUNT][place % Percentile::COUNT],
            false => NUMBERS[place - TIME_COUNT],
        };
        place += 1;
    }
    table
};

macro_rules! named_times {
    ($($(#[$doc:meta])* $name:ident = $time:literal $percentile:ident;)+) => {
        impl Figure {
            $($(#[$doc])* pub const $name: Figure = Figure(($time * Percentile::COUNT + Percentile::$percentile as usize) as u8);)+
        }
    };
}

named_times! {
    /// Least latency.
    LATENCY_MIN = 0 Min;
    /// Mean latency.
    LATENCY_MEAN = 0 Mean;
    /// Median latency.
    LATENCY_P50 = 0 P50;
    /// 90th percentile of latency.
    LATENCY_P90 = 0 P90;
    /// 95th percentile of latency.
    LATENCY_P95 = 0 P95;
    /// 99th percentile of latency.
    LATENCY_P99 = 0 P99;
    /// 99.9th percentile of latency.
    LATENCY_P999 = 0 P999;
    /// Greatest latency.
    LATENCY_MAX = 0 Max;
    /// Median latency from the due time, including the generator delay.
    INTENDED_P50 = 1 P50;
    /// 99th percentile of latency from the due time.
    INTENDED_P99 = 1 P99;
    /// Median latency from the send.
    SERVICE_P50 = 2 P50;
    /// 99th percentile of latency from the send.
    SERVICE_P99 = 2 P99;
    /// Median send lag.
    SEND_LAG_P50 = 3 P50;
    /// 99th percentile of send lag.
    SEND_LAG_P99 = 3 P99;
    /// Median generator delay.
    OWN_LAG_P50 = 4 P50;
    /// 99th percentile of generator delay.
    OWN_LAG_P99 = 4 P99;
    /// Median receive lag.
    RECEIVE_LAG_P50 = 5 P50;
    /// 99th percentile of receive lag.
    RECEIVE_LAG_P99 = 5 P99;
    /// Median time to acknowledgement.
    ACK_P50 = 6 P50;
    /// 95th percentile of the time to acknowledgement.
    ACK_P95 = 6 P95;
    /// 99th percentile of the time to acknowledgement.
    ACK_P99 = 6 P99;
    /// Greatest time to acknowledgement.
    ACK_MAX = 6 Max;
}

const fn number(read: fn(&RunRecord) -> Option<f64>) -> Source {
    Source::Number(read)
}

/// Returns a rate of a run that has a window. A window that is given by a number of messages has no
/// length if nothing arrived; older records have rates over one nanosecond there.
fn rate(run: &RunRecord, pick: fn(&Rates) -> f64) -> Option<f64> {
    let has_window = run.workload.window_ns().is_some() || run.counts.delivered > 0;
    has_window.then(|| pick(&run.rates))
}

/// Adds a usage of generator (including the library) and server: the cost of the system as a whole.
/// `None` if a part was not measured: the generator, or a remote server.
fn together(run: &RunRecord, of: impl Fn(&Usage) -> f64) -> Option<f64> {
    let generator = of(run.generator.as_ref()?);
    match (&run.server, &run.deployment) {
        (Some(server), _) => Some(generator + of(server)),
        (None, None) => Some(generator),
        (None, Some(_)) => None,
    }
}

fn server(run: &RunRecord, of: impl Fn(&Usage) -> f64) -> Option<f64> {
    run.server.as_ref().map(of)
}

fn syncs(run: &RunRecord) -> Option<SyncFigures> {
    run.deployment.as_ref()?.syncs
}

fn disk(run: &RunRecord) -> Option<DiskFigures> {
    run.deployment.as_ref()?.disk
}

/// Divides a total by the sent messages.
fn each_sent(run: &RunRecord, total: u64) -> Option<f64> {
    (run.counts.sent > 0).then(|| total as f64 / run.counts.sent as f64)
}

/// Divides a total by the delivered messages.
fn each(run: &RunRecord, total: f64) -> Option<f64> {
    (run.counts.delivered > 0).then(|| total / run.counts.delivered as f64)
}

fn count(value: u64) -> Option<f64> {
    Some(value as f64)
}

fn runtimes(run: &RunRecord) -> impl Iterator<Item = RuntimeFigures> {
    run.agents.iter().filter_map(|agent| agent.runtime)
}

fn allocated(run: &RunRecord) -> Option<f64> {
    let known: Vec<u64> = runtimes(run).filter_map(|own| own.allocated_bytes).collect();
    each(run, known.iter().sum::<u64>() as f64).filter(|_| known.len() == run.agents.len())
}

/// Returns by how much the messages still to arrive grew from the window's beginning to its end, as
/// a share of the messages due in the window, 0 to 1. Those that the system did not take in time
/// count, lost ones do not.
pub fn backlog(run: &RunRecord) -> f64 {
    (run.backlog_copies() / run.counts.due_copies().max(1.0)).max(0.0)
}

numbers! {
    /// Messages due a second, over all publishers.
    OFFERED = "offered_per_s" [] Flow Rates PerS NEITHER, "offered",
        number(|run| rate(run, |rates| rates.offered_per_s)),
        "messages due, all publishers together";
    /// Messages sent a second.
    SENT = "sent_per_s" [] Flow Rates PerS HIGHER, "sent",
        number(|run| rate(run, |rates| rates.sent_per_s)),
        "messages that the system accepted in the window, all publishers together";
    /// Messages delivered a second, over all subscribers.
    DELIVERED = "delivered_per_s" [] Flow Rates PerS HIGHER, "delivered",
        number(|run| rate(run, |rates| rates.delivered_per_s)),
        "messages that arrived in the window, all subscribers together";
    /// Bytes of payload delivered a second.
    DELIVERED_BYTES = "delivered_bytes_per_s" [] Flow Rates BytesPerS HIGHER, "delivered bytes",
        number(|run| rate(run, |rates| rates.delivered_bytes_per_s)),
        "payload that arrived in the window";
    /// Delivered over expected.
    DELIVERED_RATIO = "delivered_ratio" [] Flow Counts Share HIGHER, "delivered ratio",
        number(|run| run.counts.delivered_ratio()),
        "copies that arrived, as a share of those expected";
    /// Expected copies that did not arrive, over those expected.
    LOST_RATIO = "lost_ratio" [] Flow Counts Share LOWER, "lost ratio",
        number(|run| run.counts.delivered_ratio().map(|ratio| 1.0 - ratio)),
        "copies that had not arrived when the drain ended, as a share of those expected";
    /// What is owed at the window's end.
    BACKLOG = "backlog" [] Flow Rates Share LOWER, "backlog",
        number(|run| (run.counts.sent > 0).then(|| backlog(run))),
        "growth of what is due and has not arrived, as a share of what was due in the window";
    /// From the last send until the last message arrived, ns.
    DRAIN_TIME = "drain_time_ns" ["drain_time"] Flow LatencyP99 Ns LOWER, "time to drain",
        number(|run| count(run.drain_time_ns?)),
        "time from the last send until the last message that waited had arrived";
    /// From the first subscription of late subscribers until the last of them had caught up, ns.
    CATCH_UP_TIME = "catch_up_time_ns" ["catch_up_time"] Flow LatencyP99 Ns LOWER, "time to catch up",
        number(|run| count(run.catch_up?.time_ns()?)),
        "`subscribers_start`: time from the subscription until no message waited that was due more than `late_after` ago";
    /// Messages delivered a second to late subscribers until they had caught up.
    REPLAY_RATE = "replay_per_s" ["replay_rate"] Flow Rates PerS HIGHER, "replayed",
        number(|run| run.catch_up?.replay_per_s()),
        "`subscribers_start`: messages delivered in that time, the warm-up's too, all subscribers together";
    /// Rebalances of the subscribers' consumer group.
    REBALANCES = "rebalances" [] Flow Counts Count NEITHER, "rebalances",
        number(|run| count(run.rebalances?.count().into())),
        "`options.group = \"coordinator\"`: new assignments of the consumer group from the window's beginning on";
    /// Longest time without partitions of a member of a consumer group, ns.
    REBALANCE_PAUSE = "rebalance_pause_ns" ["rebalance_pause"] Flow LatencyP99 Ns LOWER, "pause of a rebalance",
        number(|run| count(run.rebalances?.longest_pause_ns)),
        "`options.group = \"coordinator\"`: longest time from the instant at which a member gave up its partitions, or lost its connection, until it read again; 0 without a rebalance";
    /// Most copies sent and not delivered at the end of a slice.
    LAG_MAX = "lag_max" [] Flow Rates Count LOWER, "consumer lag, largest",
        number(|run| count(run.series.lag.iter().copied().max()?)),
        "most messages sent and not delivered, at the end of a slice (a twentieth of the window, at most 1 s); lost ones count";
    /// Messages lost.
    LOST = "lost" [] Flow Counts Count LOWER, "lost",
        number(|run| count(run.counts.lost)),
        "expected copies that had not arrived when the drain ended";
    /// Messages that the server refused.
    REFUSED = "refused" [] Flow Counts Count LOWER, "refused",
        number(|run| count(run.counts.refused).filter(|refused| run.workload.qos > 0 || *refused > 0.0)),
        "messages that the server refused; not counted as acknowledged or lost";
    /// Messages that were due and that the system never took.
    NOT_SENT = "not_sent" [] Flow Counts Count LOWER, "not sent",
        number(|run| count(run.counts.not_sent)),
        "messages that were due and that the system did not accept; in no other count";
    /// Arrivals after the first of a message.
    DUPLICATED = "duplicated" [] Flow Counts Count LOWER, "duplicated",
        number(|run| count(run.counts.duplicated)),
        "arrivals of a message after its first";
    /// Arrivals after a later message.
    REORDERED = "reordered" [] Flow Counts Count LOWER, "reordered",
        number(|run| count(run.counts.reordered)),
        "arrivals after a later message of the same publisher";
    /// Messages whose echo did not arrive.
    UNANSWERED = "unanswered" [] Flow Counts Count LOWER, "unanswered",
        number(|run| count(run.counts.unanswered).filter(|_| run.workload.pattern.echoed())),
        "fan-out-echo messages without an echo";
    /// Requests without an answer in time.
    TIMED_OUT = "timed_out" [] Flow Counts Count LOWER, "timed out",
        number(|run| count(run.counts.timed_out?)),
        "requests without an answer within `timeout`: answered later, or lost";
    /// Damaged arrivals. Older records have 0 here if bodies were not checked.
    CORRUPTED = "corrupted" [] Flow Counts Count LOWER, "corrupted",
        number(|run| count(run.counts.corrupted.filter(|_| run.workload.checks_bodies())?)),
        "arrivals with a wrong length, header or body";
    /// Messages that the server acknowledged (QoS 1 and 2).
    ACKED = "acked" [] Flow Counts Count NEITHER, "acknowledged",
        number(|run| count(run.counts.acked).filter(|_| run.workload.qos > 0)),
        "messages that the server acknowledged";
    /// Messages that the server acknowledged and a subscriber did not receive.
    ACKED_LOST = "acked_lost" [] Flow Counts Count LOWER, "acknowledged and lost",
        number(|run| count(run.counts.acked_lost.filter(|_| run.workload.qos > 0)?)),
        "acknowledged messages that a subscriber had not received when the drain ended";
    /// Acknowledged messages that a subscriber did not receive, of those that were acknowledged.
    ACKED_LOST_RATIO = "acked_lost_ratio" [] Flow Counts Share LOWER, "acknowledged and lost, share",
        number(|run| {
            let acked = Some(run.counts.acked).filter(|acked| run.workload.qos > 0 && *acked > 0)?;
            Some(count(run.counts.acked_lost?)? / acked as f64)
        }),
        "`acked_lost` as a share of `acked`";
    /// Messages that were delivered later than `late_after`.
    LATE = "late" [] Flow LatencyP99 Count LOWER, "late",
        number(|run| count(run.counts.late).filter(|_| run.times.latency.is_some())),
        "delivered messages with a latency above `late_after`";
    /// Standard deviation of latency, ns.
    LATENCY_STDDEV = "latency_stddev_ns" ["stddev"] Flow LatencyP99 Ns LOWER, "latency standard deviation",
        number(|run| Some(run.times.latency.as_ref()?.stddev)),
        "standard deviation of the time from due to arrival, without the generator delay";
    /// Mean delay variation between consecutive messages, ns.
    JITTER = "jitter_ns" ["jitter"] Flow LatencyP99 Ns LOWER, "jitter",
        number(|run| run.jitter_ns),
        "mean change of latency between consecutive messages of a stream (RFC 3393)";
    /// Time of a message, ns: half of a round trip, the median latency at a rate, or the time
    /// between deliveries if unthrottled.
    MESSAGE_TIME = "message_time_ns" ["message_time"] Flow LatencyP50 Ns LOWER, "time of a message",
        Source::Block,
        "half of a median round trip; at a fixed rate the median latency; unthrottled, the time between deliveries";
    /// Time of a message of the language's floor, a loop over a queue, ns.
    LANGUAGE_FLOOR = "language_floor_ns" [] Flow LatencyP50 Ns LOWER, "floor of the language",
        Source::Block,
        "time of a message of the same agent over a queue of its language";
    /// Cost of the binding, ns: the time of a message less that of the language's floor in the same
    /// block.
    BINDING = "binding_ns" ["binding"] Flow LatencyP50 Ns LOWER, "binding",
        Source::Block,
        "time of a message minus that of the language floor in the same repeat; absent if the floor scatters more";
    /// The time of a message as a multiple of the baseline's in the same block.
    OVER_BASELINE = "over_baseline" [] Flow LatencyP50 Multiple LOWER, "over the baseline",
        Source::Block,
        "time of a message as a multiple of the baseline's in the same repeat";
    /// Median latency as a multiple of the floor's in the same block.
    FLOOR_LATENCY = "floor_latency" [] Flow LatencyP50 Multiple LOWER, "latency over the floor",
        Source::Cells,
        "median latency as a multiple of the kernel's in the same repeat";
    /// Messages delivered a second as a multiple of the floor's in the same block.
    FLOOR_DELIVERED = "floor_delivered" [] Flow Rates Multiple HIGHER, "delivered over the floor",
        Source::Cells,
        "messages delivered as a multiple of the kernel's in the same repeat";
    /// From the first client's opening until all had received a message from each other, ns.
    DISCOVERY = "discovery_ns" ["discovery"] Client LatencyP50 Ns LOWER, "until all had heard each other",
        number(|run| count(run.discovery_ns?)),
        "time from the first client's start until all had heard each other; libraries only";
    /// From the start until the figures were steady in a pilot run, ns.
    STEADY_AFTER = "steady_after_ns" ["steady_after"] Flow LatencyP50 Ns LOWER, "until steady",
        number(|run| count(run.pilot.filter(|pilot| pilot.repeat == run.repeat)?.steady_after_ns?)),
        step |run| run.pilot.map_or(1.0, |pilot| pilot.slice_ns as f64),
        "warm-up time: from the start of a pilot run until its figures were steady";
    /// Time without a connection to the server because of a fault, over the window.
    FAULT_RATIO = "fault_ratio" [] Flow Counts Share NEITHER, "share of faults",
        number(RunRecord::fault_ratio),
        "share of the window in which a fault separated clients from the server";
    /// Longest silence of a subscriber that contains a fault of the server or a link, ns.
    SILENCE = "fault_silence_ns" ["fault_silence"] Flow Rates Ns LOWER, "silence of a fault",
        number(|run| count(run.recovery?.silence_ns?)),
        "longest silence of a subscriber with a fault of the server or a link in it";
    /// The longest silence less the scripted length of its fault, ns.
    BEYOND = "outage_beyond_ns" ["outage_beyond"] Flow Rates Ns LOWER, "outage beyond the fault",
        number(|run| count(run.recovery?.beyond_ns?)),
        "longest silence of a subscriber minus the requested length of the fault in it";
    /// From the end of a fault until its backlog was caught up, ns. If that did not happen within
    /// the window, the time that was watched, a lower bound.
    CAUGHT_UP = "caught_up_after_ns" ["caught_up", "caught_up_after"] Flow LatencyP99 Ns LOWER, "caught up after",
        number(|run| count(run.recovery.and_then(|cost| cost.caught_up_after_ns.or(cost.watched_ns))?)),
        step |run| run.workload.slice_ns() as f64,
        "time from the end of a fault until the backlog was delivered and latency and rate were as before it; exact to a slice (a twentieth of the window, at most 1 s), and finer if that takes two slices or more";
    /// From the start of a killed server until it listened, ns.
    LISTENS_AFTER = "listens_after_ns" ["listens_after"] Server LatencyP99 Ns LOWER, "listens after",
        number(|run| count(run.recovery?.listens_after_ns?)),
        "time from the start of a killed server until it listened";
    /// From the end of a fault until the last client had reconnected, ns.
    CLIENTS_BACK = "clients_back_after_ns" ["clients_back_after", "reconnect_time"] Client LatencyP99 Ns LOWER, "all clients back after",
        number(|run| count(run.recovery?.clients_back_after_ns?)),
        "time from the end of a fault until the last client was reconnected";
    /// Lost connections that clients did not restore.
    CLIENTS_NOT_BACK = "clients_not_back" [] Client Counts Count LOWER, "clients not back",
        number(|run| count(run.recovery?.clients_not_back?)),
        "connections lost in a fault of the server or a link and not restored";
    /// Connections that clients opened.
    CONNECTED = "connected" [] Client Counts Count HIGHER, "connected",
        number(|run| count(run.connections.as_ref()?.opened)),
        "connections that clients opened";
    /// Median time of connecting, ns.
    CONNECT_P50 = "connect_p50_ns" ["connect p50", "connect_latency p50"] Client LatencyP50 Ns LOWER, "connect p50",
        number(|run| count(run.connections.as_ref()?.time_ns.as_ref()?.p50)),
        "median time until the server accepted a client";
    /// 99th percentile of connection times, ns.
    CONNECT_P99 = "connect_p99_ns" ["connect p99", "connect_latency p99"] Client LatencyP99 Ns LOWER, "connect p99",
        number(|run| count(run.connections.as_ref()?.time_ns.as_ref()?.p99)),
        "99th percentile of the time until the server accepted a client";
    /// Median time of the TLS handshake, ns.
    TLS_HANDSHAKE_P50 = "tls_handshake_p50_ns" ["tls_handshake p50"] Client LatencyP50 Ns LOWER, "TLS handshake p50",
        number(|run| count(run.connections.as_ref()?.tls_handshake_ns.as_ref()?.p50)),
        "median TLS handshake, part of `connect_p50_ns`";
    /// 99th percentile of the times of the TLS handshake, ns.
    TLS_HANDSHAKE_P99 = "tls_handshake_p99_ns" ["tls_handshake p99"] Client LatencyP99 Ns LOWER, "TLS handshake p99",
        number(|run| count(run.connections.as_ref()?.tls_handshake_ns.as_ref()?.p99)),
        "its 99th percentile";
    /// Median time of subscribing, ns.
    SUBSCRIBE_P50 = "subscribe_p50_ns" ["subscribe p50"] Client LatencyP50 Ns LOWER, "subscribe p50",
        number(|run| count(run.connections.as_ref()?.subscribe_ns.as_ref()?.p50)),
        "median time from acceptance to the confirmed subscription";
    /// 99th percentile of the times of subscribing, ns.
    SUBSCRIBE_P99 = "subscribe_p99_ns" ["subscribe p99"] Client LatencyP99 Ns LOWER, "subscribe p99",
        number(|run| count(run.connections.as_ref()?.subscribe_ns.as_ref()?.p99)),
        "its 99th percentile";
    /// Clients that came and went.
    CHURN_CONNECTED = "churn_connected" [] Client Counts Count HIGHER, "churn connected",
        number(|run| count(run.churn.as_ref()?.counts.connected)),
        "clients of `churn` that subscribed";
    /// Clients that should have come and gone and failed.
    CHURN_FAILED = "churn_failed" [] Client Counts Count LOWER, "churn failed",
        number(|run| count(run.churn.as_ref()?.counts.failed)),
        "those that did not";
    /// Clients that came too late.
    CHURN_LATE = "churn_late" [] Client LatencyP99 Count LOWER, "churn late",
        number(|run| count(run.churn.as_ref()?.late)),
        "those accepted later than `late_after`";
    /// Median time until a client that came was accepted, ns.
    CHURN_CONNECT_P50 = "churn_connect_p50_ns" ["churn_connect p50"] Client LatencyP50 Ns LOWER, "churn connect p50",
        number(|run| count(run.churn.as_ref()?.connect_ns.as_ref()?.p50)),
        "median time from due to acceptance of a client of `churn`, without the generator delay";
    /// 99th percentile of the times until a client that came was accepted, ns.
    CHURN_CONNECT_P99 = "churn_connect_p99_ns" ["churn_connect p99"] Client LatencyP99 Ns LOWER, "churn connect p99",
        number(|run| count(run.churn.as_ref()?.connect_ns.as_ref()?.p99)),
        "its 99th percentile";
    /// 99th percentile of the times of the TLS handshake of clients that came, ns.
    CHURN_TLS_P99 = "churn_tls_handshake_p99_ns" ["churn_tls_handshake p99"] Client LatencyP99 Ns LOWER, "churn TLS handshake p99",
        number(|run| count(run.churn.as_ref()?.tls_handshake_ns.as_ref()?.p99)),
        "99th percentile of their TLS handshake";
    /// 99th percentile of the times of subscribing of clients that came, ns.
    CHURN_SUBSCRIBE_P99 = "churn_subscribe_p99_ns" ["churn_subscribe p99"] Client LatencyP99 Ns LOWER, "churn subscribe p99",
        number(|run| count(run.churn.as_ref()?.subscribe_ns.as_ref()?.p99)),
        "99th percentile of their time to subscribe";
    /// Median time from the end of a publisher until its last will arrived, ns.
    WILL_P50 = "will_latency_p50_ns" ["will_latency p50"] Flow LatencyP50 Ns LOWER, "last will p50",
        number(|run| count(run.wills.as_ref()?.latency_ns.as_ref()?.p50)),
        "`last_will`: median time from the end of a publisher's connection until a subscriber got its will";
    /// 99th percentile of these times, ns.
    WILL_P99 = "will_latency_p99_ns" ["will_latency p99"] Flow LatencyP99 Ns LOWER, "last will p99",
        number(|run| count(run.wills.as_ref()?.latency_ns.as_ref()?.p99)),
        "its 99th percentile";
    /// Greatest of these times, ns.
    WILL_MAX = "will_latency_max_ns" ["will_latency max"] Flow LatencyP99 Ns LOWER, "last will max",
        number(|run| count(run.wills.as_ref()?.latency_ns.as_ref()?.max)),
        "its greatest";
    /// Last wills that should have arrived.
    WILLS_DUE = "wills_due" [] Flow Counts Count NEITHER, "last wills due",
        number(|run| count(run.wills.as_ref()?.counts.due)),
        "`last_will`: wills of publishers that ended without a goodbye, once for each of their subscribers";
    /// Last wills that arrived.
    WILLS_RECEIVED = "wills_received" [] Flow Counts Count HIGHER, "last wills received",
        number(|run| count(run.wills.as_ref()?.counts.received)),
        "those that arrived by the end of the drain";
    /// Last wills that arrived and should not have.
    WILLS_UNDUE = "wills_undue" [] Flow Counts Count LOWER, "last wills undue",
        number(|run| count(run.wills.as_ref()?.counts.undue)),
        "wills of publishers that had not ended, or with a goodbye";
    /// Lost connections that clients restored.
    RECONNECTED = "reconnected" [] Client Counts Count NEITHER, "reconnected",
        number(|run| count(run.connections.as_ref()?.reconnected)),
        step |run| Figure::RECONNECTED.value(run).unwrap_or(0.0).sqrt(),
        "connections that clients restored after a loss";
    /// Median time without a connection, ns.
    RECONNECT_P50 = "reconnect_p50_ns" ["reconnect p50"] Client LatencyP50 Ns LOWER, "reconnect p50",
        number(|run| count(run.connections.as_ref()?.reconnect_ns.as_ref()?.p50)),
        "median time without a connection";
    /// 99th percentile of the times without a connection, ns.
    RECONNECT_P99 = "reconnect_p99_ns" ["reconnect p99"] Client LatencyP99 Ns LOWER, "reconnect p99",
        number(|run| count(run.connections.as_ref()?.reconnect_ns.as_ref()?.p99)),
        "99th percentile of the time without a connection";
    /// CPU time of generator, library and server for a delivered message, ns.
    CPU_PER_MESSAGE = "cpu_ns_per_message" ["cpu_per_message"] Machine Cost Ns LOWER, "CPU per message",
        number(|run| each(run, together(run, |usage| usage.cpu_s)? * 1e9)),
        "CPU time of generator, library and server per delivered message";
    /// Processors used by generator, library and server together.
    CPU_CORES = "cpu_cores" [] Machine Cost Cores LOWER, "CPU",
        number(|run| together(run, |usage| usage.cpu_cores)),
        "CPUs used by generator, library and server together";
    /// Processors used by the server.
    SERVER_CPU = "server_cpu_cores" ["server_cpu"] Server Cost Cores LOWER, "server CPU",
        number(|run| server(run, |usage| usage.cpu_cores)),
        "CPUs used by the server";
    /// Standard deviation of the processors used by the server.
    SERVER_CPU_STDDEV = "server_cpu_stddev_cores" ["server_cpu_stddev"] Server Cost Cores LOWER, "server CPU, standard deviation",
        number(|run| run.server.as_ref()?.cpu_cores_stddev),
        "standard deviation of the CPUs used by the server, from slice to slice of the window";
    /// Largest resident set of generator and server together, bytes.
    MEMORY_MAX = "rss_bytes_max" ["memory_max"] Machine Cost Bytes LOWER, "memory, largest",
        number(|run| together(run, |usage| usage.rss_bytes_max as f64)), step |_| PAGE,
        "largest resident set of generator and server together";
    /// Median unique set of generator and server together, bytes.
    MEMORY_OWN = "uss_bytes_median" ["memory_own"] Machine Cost Bytes LOWER, "memory, own",
        number(|run| together(run, |usage| usage.uss_bytes_median as f64)), step |_| PAGE,
        "median unique set of generator and server together";
    /// Median resident set of the server, bytes.
    SERVER_MEMORY = "server_rss_bytes_median" ["server_memory"] Server Cost Bytes LOWER, "server memory",
        number(|run| server(run, |usage| usage.rss_bytes_median as f64)), step |_| PAGE,
        "median resident set of the server";
    /// Largest resident set of the server, bytes.
    SERVER_MEMORY_MAX = "server_rss_bytes_max" ["server_memory_max"] Server Cost Bytes LOWER, "server memory, largest",
        number(|run| server(run, |usage| usage.rss_bytes_max as f64)), step |_| PAGE,
        "largest resident set of the server";
    /// Median unique set of the server, bytes.
    SERVER_MEMORY_OWN = "server_uss_bytes_median" ["server_memory_own"] Server Cost Bytes LOWER, "server memory, own",
        number(|run| server(run, |usage| usage.uss_bytes_median as f64)), step |_| PAGE,
        "median unique set of the server";
    /// Bytes of storage that the server changed.
    SERVER_WRITTEN = "server_written_bytes" ["server_written"] Server Cost Bytes LOWER, "server, written",
        number(|run| count(run.server.as_ref()?.written_bytes?)), step |_| PAGE,
        "what the server wrote to storage, in whole pages, as the kernel counts it when a page changes; without file system and memory (tmpfs)";
    /// Bytes of storage that the server changed for a sent message.
    SERVER_WRITTEN_PER_MESSAGE = "server_written_bytes_per_message" ["server_written_per_message"] Server Cost Bytes LOWER, "server, written per message",
        number(|run| each_sent(run, run.server.as_ref()?.written_bytes?)),
        step |run| PAGE / run.counts.sent.max(1) as f64,
        "the same, per sent message";
    /// Syncs of files that the server waited for.
    SERVER_SYNCS = "server_syncs" [] Server Cost Count LOWER, "server, syncs",
        number(|run| count(syncs(run)?.count)),
        "fsync, fdatasync, msync and syncing writes of the server; as root, on ext4, xfs and btrfs, without a container";
    /// Time that threads of the server spent in syncs, ns.
    SERVER_SYNC_TIME = "server_sync_time_ns" ["server_sync_time"] Server Cost Ns LOWER, "server, time in syncs",
        number(|run| count(syncs(run)?.time_ns?)), step |_| 1e3,
        "time that its threads spent in them; on ext4";
    /// Write requests to the disk whose power is cut.
    DISK_WRITES = "disk_writes" [] Server Cost Count LOWER, "writes of the disk",
        number(|run| count(disk(run)?.writes?)),
        "write requests to the server's disk, until its power was cut; only with that fault";
    /// Flushes of the disk whose power is cut.
    DISK_FLUSHES = "disk_flushes" [] Server Cost Count LOWER, "flushes of the disk",
        number(|run| count(disk(run)?.flushes)),
        "flushes of that disk: syncs at the same time share one, and a sync may need two; of a ledger, its syncs";
    /// Time of the flushes of the disk whose power is cut, ns.
    DISK_FLUSH_TIME = "disk_flush_time_ns" ["disk_flush_time"] Server Cost Ns LOWER, "time in flushes",
        number(|run| count(disk(run)?.flush_ns?)), step |_| 1e6,
        "time that these flushes took";
    /// Context switches of generator and server for a delivered message.
    SWITCHES = "context_switches_per_message" ["context_switches"] Machine Cost PerMessage LOWER, "context switches per message",
        number(|run| each(run, together(run, |usage| usage.voluntary_switches as f64 + usage.involuntary_switches as f64)?)),
        "context switches of generator and server per delivered message";
    /// Largest median latency of a subscriber, as a multiple of the smallest.
    SUBSCRIBER_SPREAD = "subscriber_spread" [] Flow LatencyP50 Multiple LOWER, "spread over subscribers",
        number(|run| {
            let medians = || run.subscribers.iter().filter_map(|one| Some(one.latency_ns.as_ref()?.p50.max(1)));
            Some(medians().max()? as f64 / medians().min()? as f64)
        }),
        "largest median latency of a subscriber, as a multiple of the smallest; libraries only, 2 to 64 subscribers";
    /// Probability that a publisher's and a subscriber's thread were on the same processor.
    SHARED_PROCESSOR = "shared_processor_ratio" ["shared_processor"] Client Cost Share NEITHER, "on one processor",
        number(|run| {
            let mut all = ClientProcessors::default();
            run.agents.iter().for_each(|agent| all.add(&agent.ran_on));
            all.shared_ratio()
        }),
        "probability that a thread of a publisher and one of a subscriber ran on the same CPU, from samples of both";
    /// Share of the window for which a runtime paused its program.
    RUNTIME_PAUSED = "runtime_paused_share" ["runtime_paused"] Client LatencyP99 Share LOWER, "stopped by the runtime",
        number(|run| {
            let paused = runtimes(run).filter_map(|own| own.pauses).map(|pauses| pauses.total_ns).max()?;
            Some(paused as f64 / run.window_ns.max(1) as f64)
        }),
        step |run| 1.0 / run.window_ns.max(1) as f64,
        "share of the window for which the language runtime stopped an agent, as the runtime reports";
    /// Longest pause of a program by its runtime, ns.
    RUNTIME_PAUSE_MAX = "runtime_pause_max_ns" ["runtime_pause_max"] Client LatencyP99 Ns LOWER, "longest stop by the runtime",
        number(|run| count(runtimes(run).filter_map(|own| own.pauses).map(|pauses| pauses.longest_ns).max()?)),
        "longest stop of an agent by its language runtime, as the runtime reports";
    /// Bytes that the agents' programs allocated for a delivered message.
    ALLOCATED = "allocated_bytes_per_message" ["allocated"] Client Cost Bytes LOWER, "allocated per message",
        number(allocated),
        "memory allocated by agents per delivered message, as their runtimes report";
    /// Bytes that network interfaces carried for a delivered message.
    WIRE_BYTES = "wire_bytes_per_message" ["wire_bytes"] Machine Cost Bytes LOWER, "on the wire per message",
        number(|run| each(run, run.wire.as_ref()?.sent_bytes as f64)),
        "bytes sent by network interfaces per delivered message, with headers, acknowledgements, retransmissions and other programs";
    /// Largest possible error of a latency between two hosts due to their clocks, ns: the largest
    /// of the cell's runs.
    CLOCK_BOUND = "clock_bound_ns" ["clock_bound"] Machine LatencyP50 Ns LOWER, "clocks",
        number(|run| count(run.widest_clocks()?.bound_ns)),
        "possible clock error in each latency between two hosts; the largest of the runs";
}
