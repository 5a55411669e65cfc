//! Which figures there are, each a column of `summary.csv`.

use pubmark_model::claim::Figure;
use pubmark_model::record::FigureGroup;
use serde::{Serialize, Serializer};

/// In what a figure is measured.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// A second.
    PerS,
    /// Bytes a second.
    BytesPerS,
    /// Bytes.
    Bytes,
    /// Of 1.
    Share,
    /// A number.
    Count,
    /// Processors.
    Cores,
    /// Times as much as something else.
    Multiple,
}

/// A figure in words, for people.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FigureDescription {
    /// Its name in `summary.csv`.
    pub key: &'static str,
    /// What tables and plots call it.
    pub label: &'static str,
    /// In what it is measured.
    pub unit: Unit,
    /// Which is better, `lower` or `higher`; none where neither is.
    pub better: Option<&'static str>,
    /// What stands or falls with it.
    pub group: FigureGroup,
    /// What it means.
    pub about: &'static str,
}

const LOWER: Option<&str> = Some("lower");
const HIGHER: Option<&str> = Some("higher");
const NEITHER: Option<&str> = None;

/// The table of figures: the name in the file, what it stands and falls with, the
/// label, the unit, which is better, and what it means.
macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident = $word:literal $group:ident, $label:literal, $unit:ident, $better:expr, $about:literal;)+) => {
        /// A figure, as a column of `summary.csv`.
        ///
        /// Each is a run's own figure; a cell's is the median over its runs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Column { $($(#[$doc])* $name),+ }

        impl Column {
            /// Every figure, in the order of the file.
            pub const ALL: &'static [Column] = &[$(Column::$name),+];

            /// The figure in words.
            pub fn description(self) -> &'static FigureDescription {
                match self {
                    $(Column::$name => &FigureDescription {
                        key: $word,
                        label: $label,
                        unit: Unit::$unit,
                        better: $better,
                        group: FigureGroup::$group,
                        about: $about,
                    }),+
                }
            }

            /// The column's name in the file.
            pub fn word(self) -> &'static str {
                self.description().key
            }
        }
    };
}

columns! {
    /// Messages due a second, over all publishers.
    Offered = "offered_per_s" Rates, "offered", PerS, NEITHER, "messages due by the schedule, over all publishers";
    /// Messages sent a second.
    Sent = "sent_per_s" Rates, "sent", PerS, NEITHER, "messages that the system took, over all publishers";
    /// Messages delivered a second, over all subscribers.
    Delivered = "delivered_per_s" Rates, "delivered", PerS, HIGHER, "messages that arrived within the window, over all subscribers";
    /// Bytes of payload delivered a second.
    DeliveredBytes = "delivered_bytes_per_s" Rates, "delivered bytes", BytesPerS, HIGHER, "payload that arrived within the window";
    /// Delivered over expected, 0 to 1.
    DeliveredRatio = "delivered_ratio" Counts, "delivered ratio", Share, HIGHER, "copies that arrived of those that should have";
    /// Messages lost.
    Lost = "lost" Counts, "lost", Count, LOWER, "copies that should have arrived and had not when the drain ended";
    /// Arrivals beyond the first of a message.
    Duplicated = "duplicated" Counts, "duplicated", Count, LOWER, "arrivals beyond the first of a message";
    /// Arrivals behind a later message.
    Reordered = "reordered" Counts, "reordered", Count, LOWER, "arrivals behind a later message of the same publisher";
    /// Messages whose echo did not come.
    Unanswered = "unanswered" Counts, "unanswered", Count, LOWER, "messages of fan-out-echo whose echo did not come";
    /// Arrivals that were damaged.
    Corrupted = "corrupted" Counts, "corrupted", Count, LOWER, "arrivals with a wrong length, header or body";
    /// Least latency, ns.
    LatencyMin = "latency_min_ns" LatencyP50, "latency min", Ns, LOWER, "the fastest message, from when it was due, less the generator's own lag";
    /// Mean latency, ns.
    LatencyMean = "latency_mean_ns" LatencyP99, "latency mean", Ns, LOWER, "mean latency of all messages";
    /// Median latency, ns.
    LatencyP50 = "latency_p50_ns" LatencyP50, "latency p50", Ns, LOWER, "half of the messages took no longer, from when they were due, less the generator's own lag";
    /// 90th percentile of latency, ns.
    LatencyP90 = "latency_p90_ns" LatencyP99, "latency p90", Ns, LOWER, "9 in 10 messages took no longer, from when they were due, less the generator's own lag";
    /// 95th percentile of latency, ns.
    LatencyP95 = "latency_p95_ns" LatencyP99, "latency p95", Ns, LOWER, "19 in 20 messages took no longer, from when they were due, less the generator's own lag";
    /// 99th percentile of latency, ns; of at least 1,000 samples.
    LatencyP99 = "latency_p99_ns" LatencyP99, "latency p99", Ns, LOWER, "99 in 100 messages took no longer, from when they were due, less the generator's own lag";
    /// 99.9th percentile of latency, ns; of at least 10,000 samples.
    LatencyP999 = "latency_p999_ns" LatencyP99, "latency p99.9", Ns, LOWER, "999 in 1,000 messages took no longer, from when they were due, less the generator's own lag";
    /// Largest latency, ns.
    LatencyMax = "latency_max_ns" LatencyP99, "latency max", Ns, LOWER, "the slowest message";
    /// Median latency from the due time, the generator's own lag included, ns.
    IntendedP50 = "intended_latency_p50_ns" LatencyP50, "latency from the due time, p50", Ns, LOWER, "half of the messages took no longer, from when they were due, the generator's own lag included";
    /// 99th percentile of latency from the due time, ns.
    IntendedP99 = "intended_latency_p99_ns" LatencyP99, "latency from the due time, p99", Ns, LOWER, "99 in 100 messages took no longer, from when they were due, the generator's own lag included";
    /// Median latency from actual send time, ns.
    ServiceP50 = "service_latency_p50_ns" LatencyP50, "service latency p50", Ns, LOWER, "median latency from actual send time: blind to what waited to be sent";
    /// 99th percentile of latency from actual send time, ns.
    ServiceP99 = "service_latency_p99_ns" LatencyP99, "service latency p99", Ns, LOWER, "99th percentile from actual send time: blind to what waited to be sent";
    /// Median of actual send time less intended time, ns.
    SendLagP50 = "send_lag_p50_ns" LatencyP50, "send lag p50", Ns, LOWER, "median time from when a message was due until it was sent";
    /// 99th percentile of actual send time less intended time, ns.
    SendLagP99 = "send_lag_p99_ns" LatencyP99, "send lag p99", Ns, LOWER, "99th percentile of the time from when a message was due until it was sent";
    /// Median of the part of the send lag that the generator caused, ns.
    OwnLagP50 = "own_lag_p50_ns" LatencyP50, "own lag p50", Ns, LOWER, "median of the part of the send lag that the load generator caused";
    /// 99th percentile of the part of the send lag that the generator caused, ns.
    OwnLagP99 = "own_lag_p99_ns" LatencyP99, "own lag p99", Ns, LOWER, "99th percentile of the part of the send lag that the load generator caused";
    /// Median of the longest time that a message can have waited for the busy
    /// receiving loop, ns.
    ReceiveLagP50 = "receive_lag_p50_ns" LatencyP50, "receive lag p50", Ns, LOWER, "median of the longest time that a message can have waited for our busy receiving loop";
    /// 99th percentile of the same, ns.
    ReceiveLagP99 = "receive_lag_p99_ns" LatencyP99, "receive lag p99", Ns, LOWER, "99th percentile of the longest time that a message can have waited for our busy receiving loop";
    /// Mean delay variation between consecutive messages, ns.
    Jitter = "jitter_ns" LatencyP99, "jitter", Ns, LOWER, "mean change of latency from one message to the next of a stream (RFC 3393)";
    /// Processors used by generator, library and server together.
    CpuCores = "cpu_cores" Cost, "CPU", Cores, LOWER, "processors kept busy by generator, library and server together";
    /// CPU time of generator, library and server for a delivered message, ns.
    CpuPerMessage = "cpu_ns_per_message" Cost, "CPU per message", Ns, LOWER, "CPU time of generator, library and server for a delivered message";
    /// Largest resident set of generator and server together, bytes.
    RssMax = "rss_bytes_max" Cost, "memory, largest", Bytes, LOWER, "largest resident set of generator and server together";
    /// Median unique set of generator and server together, bytes.
    Uss = "uss_bytes_median" Cost, "memory, own", Bytes, LOWER, "median unique set of generator and server together";
    /// Context switches of generator and server for a delivered message.
    SwitchesPerMessage = "context_switches_per_message" Cost, "context switches per message", Count, LOWER, "of generator and server, for a delivered message";
    /// Median latency as a multiple of the floor's in the same block.
    FloorLatency = "floor_latency" LatencyP50, "latency over the floor", Multiple, LOWER, "median latency as a multiple of the kernel's in the same block";
    /// Messages delivered a second as a multiple of the floor's in the same block.
    FloorDelivered = "floor_delivered" Rates, "delivered over the floor", Multiple, HIGHER, "messages delivered as a multiple of the kernel's in the same block";
    /// Processors used by the server.
    ServerCores = "server_cpu_cores" Cost, "server CPU", Cores, LOWER, "processors kept busy by the server";
    /// Median resident set of the server, bytes.
    ServerRss = "server_rss_bytes_median" Cost, "server memory", Bytes, LOWER, "median resident set of the server";
    /// Largest resident set of the server, bytes.
    ServerRssMax = "server_rss_bytes_max" Cost, "server memory, largest", Bytes, LOWER, "largest resident set of the server";
    /// Median unique set of the server, bytes.
    ServerUss = "server_uss_bytes_median" Cost, "server memory, own", Bytes, LOWER, "median unique set of the server";
    /// Messages that the server acknowledged (QoS 1 and 2).
    Acked = "acked" Counts, "acknowledged", Count, NEITHER, "messages that the server took responsibility for";
    /// Messages that the server acknowledged and a subscriber had not got when
    /// the drain ended.
    AckedLost = "acked_lost" Counts, "acknowledged and lost", Count, LOWER, "messages that the server acknowledged and a subscriber had not got when the drain ended";
    /// Connections that clients got.
    Connected = "connected" Counts, "connected", Count, HIGHER, "connections that clients got";
    /// Median time of connecting, ns.
    ConnectP50 = "connect_p50_ns" LatencyP50, "connect p50", Ns, LOWER, "median time until the server accepted a client";
    /// 99th percentile of the times of connecting, ns.
    ConnectP99 = "connect_p99_ns" LatencyP99, "connect p99", Ns, LOWER, "99th percentile of the time until the server accepted a client";
    /// Messages that were delivered later than `late_after`.
    Late = "late" LatencyP99, "late", Count, LOWER, "messages delivered later than `late_after`";
    /// Connections that clients got again after they had lost them.
    Reconnected = "reconnected" Counts, "reconnected", Count, NEITHER, "connections that clients got again after losing them";
    /// 99th percentile of the times without a connection, ns.
    ReconnectP99 = "reconnect_p99_ns" LatencyP99, "reconnect p99", Ns, LOWER, "99th percentile of the times without a connection";
    /// How long a message takes: half of a round trip, the median latency at a
    /// rate, or the time from one delivery to the next where there is none, ns.
    MessageTime = "message_time_ns" LatencyP50, "time of a message", Ns, LOWER, "half of a median round trip; the median latency at a given rate; unthrottled, the time from one delivery to the next";
    /// The same of the language's floor: its loop over a queue, ns.
    LanguageFloor = "language_floor_ns" LatencyP50, "floor of the language", Ns, LOWER, "the time of a message of the same agent over a queue of its own language";
    /// What the binding costs beyond that in the same block, ns.
    Binding = "binding_ns" LatencyP50, "binding", Ns, LOWER, "the time of a message less that of the floor of its language in the same block; withheld where the floor scatters by more";
    /// The time of a message as a multiple of the baseline's in the same block.
    OverBaseline = "over_baseline" LatencyP50, "over the baseline", Multiple, LOWER, "the time of a message as a multiple of the baseline's in the same block";
    /// For how much of the window a runtime stopped its program, 0 to 1.
    RuntimePaused = "runtime_paused_share" LatencyP99, "stopped by the runtime", Share, LOWER, "the part of the window for which the runtime of the language stopped an agent, by its own account";
    /// The longest time for which a runtime stopped its program, ns.
    RuntimePauseMax = "runtime_pause_max_ns" LatencyP99, "longest stop by the runtime", Ns, LOWER, "the longest time for which the runtime of the language stopped an agent, by its own account";
    /// What the agents' programs allocated for a delivered message, bytes.
    Allocated = "allocated_bytes_per_message" Cost, "allocated per message", Bytes, LOWER, "what the agents allocated for a delivered message, by their runtimes' account";
    /// What network interfaces carried for a delivered message, bytes.
    WireBytes = "wire_bytes_per_message" Cost, "on the wire per message", Bytes, LOWER, "what network interfaces sent for a delivered message: headers, acknowledgements, what was sent again and other programs' bytes included";
    /// From the first client's opening until all had heard each other, ns.
    Discovery = "discovery_ns" LatencyP50, "until all had heard each other", Ns, LOWER, "from the first client's opening until everybody had heard whom they should hear; a library's only";
    /// From the start until the figures were steady in a pilot run, ns.
    SteadyAfter = "steady_after_ns" LatencyP50, "until steady", Ns, LOWER, "from the start of a pilot run until its figures were steady: what the system and its agents take to get warm";
    /// What the clocks of two hosts may be wrong by in a latency from one to the
    /// other, ns: of the cell's runs the largest.
    ClockBound = "clock_bound_ns" LatencyP50, "clocks", Ns, LOWER, "what the clocks of two hosts may have added to each latency from one to the other, or taken from it: the largest of the runs; no repeat averages it out";
    /// The longest silence of a subscriber in which a fault of the server or a link
    /// lies, ns.
    Silence = "fault_silence_ns" LatencyP99, "silence of a fault", Ns, LOWER, "the longest silence of a subscriber in which a fault of the server or a link lies";
    /// That less the time that was asked for, ns.
    Beyond = "outage_beyond_ns" LatencyP99, "outage beyond the fault", Ns, LOWER, "the longest silence of a subscriber less the time for which the fault within it was asked";
    /// From the end of a fault until its backlog was caught up, ns.
    CaughtUp = "caught_up_after_ns" LatencyP99, "caught up after", Ns, LOWER, "from the end of a fault until all that was due before it and arrives at all had arrived, and as much arrived as before it; to a slice of the window";
    /// From the start of a server that was killed until it listened, ns.
    ListensAfter = "listens_after_ns" LatencyP99, "listens after", Ns, LOWER, "from the start of the server after it was killed until it listened";
    /// From the end of a fault until the last client had its connection again, ns.
    ClientsBack = "clients_back_after_ns" LatencyP99, "all clients back after", Ns, LOWER, "from the end of a fault until the last client had its connection again";
    /// Messages that were due and that the system never took.
    NotSent = "not_sent" Counts, "not sent", Count, LOWER, "messages that were due by the schedule and that the system did not take: in no other count of what became of messages";
    /// Lost connections that clients did not get again.
    ClientsNotBack = "clients_not_back" Counts, "clients not back", Count, LOWER, "connections lost where a fault of the server or a link happened, and not had again";
    /// Messages that the server refused.
    Refused = "refused" Counts, "refused", Count, LOWER, "messages that the server refused, in words or by a code: neither acknowledged nor lost";
}

impl From<Figure> for Column {
    fn from(figure: Figure) -> Column {
        match figure {
            Figure::LatencyP50 => Column::LatencyP50,
            Figure::LatencyP99 => Column::LatencyP99,
            Figure::LatencyMean => Column::LatencyMean,
            Figure::LatencyMax => Column::LatencyMax,
            Figure::Delivered => Column::Delivered,
            Figure::CpuCores => Column::CpuCores,
            Figure::CpuPerMessage => Column::CpuPerMessage,
            Figure::Jitter => Column::Jitter,
            Figure::Uss => Column::Uss,
            Figure::ServerCores => Column::ServerCores,
            Figure::ServerRss => Column::ServerRss,
            Figure::DeliveredRatio => Column::DeliveredRatio,
        }
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl Column {
    /// What stands or falls with it where something spoils a run.
    pub fn group(self) -> FigureGroup {
        self.description().group
    }

    /// Whether it is of times that begin at a sender and end at a receiver, which
    /// may have a clock each.
    pub fn is_one_way(self) -> bool {
        let word = self.word();
        ["latency_", "intended_latency_", "service_latency_"].iter().any(|kind| word.starts_with(kind))
    }

    /// Whether messages are counted for it, and no clock or sample is read: its
    /// noise is all between runs.
    pub(super) fn is_counted(self) -> bool {
        matches!(self.group(), FigureGroup::Counts | FigureGroup::Rates) || self == Column::Late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ranked_figure_has_the_name_of_its_column() {
        for figure in Figure::ALL {
            assert_eq!(Column::from(figure).word(), figure.word());
        }
    }
}
