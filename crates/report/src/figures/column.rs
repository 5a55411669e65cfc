//! Which figures there are, each a column of `summary.csv`.

use pubmark_model::claim::Figure;
use pubmark_model::record::FigureGroup;
use serde::{Serialize, Serializer};

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident = $word:literal),+ $(,)?) => {
        /// A figure, as a column of `summary.csv`.
        ///
        /// Each is a run's own figure; a cell's is the median over its runs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Column { $($(#[$doc])* $name),+ }

        impl Column {
            /// Every figure, in the order of the file.
            pub const ALL: &'static [Column] = &[$(Column::$name),+];

            /// The column's name in the file.
            pub fn word(self) -> &'static str {
                match self { $(Column::$name => $word),+ }
            }
        }
    };
}

columns! {
    /// Messages due a second, over all publishers.
    Offered = "offered_per_s",
    /// Messages sent a second.
    Sent = "sent_per_s",
    /// Messages delivered a second, over all subscribers.
    Delivered = "delivered_per_s",
    /// Bytes of payload delivered a second.
    DeliveredBytes = "delivered_bytes_per_s",
    /// Delivered over expected, 0 to 1.
    DeliveredRatio = "delivered_ratio",
    /// Messages lost.
    Lost = "lost",
    /// Arrivals beyond the first of a message.
    Duplicated = "duplicated",
    /// Arrivals behind a later message.
    Reordered = "reordered",
    /// Arrivals that were damaged.
    Corrupted = "corrupted",
    /// Least latency, ns.
    LatencyMin = "latency_min_ns",
    /// Mean latency, ns.
    LatencyMean = "latency_mean_ns",
    /// Median latency, ns.
    LatencyP50 = "latency_p50_ns",
    /// 90th percentile of latency, ns.
    LatencyP90 = "latency_p90_ns",
    /// 95th percentile of latency, ns.
    LatencyP95 = "latency_p95_ns",
    /// 99th percentile of latency, ns; of at least 1,000 samples.
    LatencyP99 = "latency_p99_ns",
    /// 99.9th percentile of latency, ns; of at least 10,000 samples.
    LatencyP999 = "latency_p999_ns",
    /// Largest latency, ns.
    LatencyMax = "latency_max_ns",
    /// Median latency from the due time, the generator's own lag included, ns.
    IntendedP50 = "intended_latency_p50_ns",
    /// 99th percentile of latency from the due time, ns.
    IntendedP99 = "intended_latency_p99_ns",
    /// Median latency from actual send time, ns.
    ServiceP50 = "service_latency_p50_ns",
    /// 99th percentile of latency from actual send time, ns.
    ServiceP99 = "service_latency_p99_ns",
    /// Median of actual send time less intended time, ns.
    SendLagP50 = "send_lag_p50_ns",
    /// 99th percentile of actual send time less intended time, ns.
    SendLagP99 = "send_lag_p99_ns",
    /// Median of the part of the send lag that the generator caused, ns.
    OwnLagP50 = "own_lag_p50_ns",
    /// 99th percentile of the part of the send lag that the generator caused, ns.
    OwnLagP99 = "own_lag_p99_ns",
    /// Median of the longest time that a message can have waited for the busy
    /// receiving loop, ns.
    ReceiveLagP50 = "receive_lag_p50_ns",
    /// 99th percentile of the same, ns.
    ReceiveLagP99 = "receive_lag_p99_ns",
    /// Mean delay variation between consecutive messages, ns.
    Jitter = "jitter_ns",
    /// Processors used by generator, library and server together.
    CpuCores = "cpu_cores",
    /// CPU time of generator, library and server for a delivered message, ns.
    CpuPerMessage = "cpu_ns_per_message",
    /// Largest resident set of generator and server together, bytes.
    RssMax = "rss_bytes_max",
    /// Median unique set of generator and server together, bytes.
    Uss = "uss_bytes_median",
    /// Context switches of generator and server for a delivered message.
    SwitchesPerMessage = "context_switches_per_message",
    /// Median latency as a multiple of the floor's in the same block.
    FloorLatency = "floor_latency",
    /// Messages delivered a second as a multiple of the floor's in the same block.
    FloorDelivered = "floor_delivered",
    /// Processors used by the server.
    ServerCores = "server_cpu_cores",
    /// Median resident set of the server, bytes.
    ServerRss = "server_rss_bytes_median",
    /// Largest resident set of the server, bytes.
    ServerRssMax = "server_rss_bytes_max",
    /// Median unique set of the server, bytes.
    ServerUss = "server_uss_bytes_median",
    /// Messages that the server acknowledged (QoS 1 and 2).
    Acked = "acked",
    /// Messages that the server acknowledged and a subscriber had not got when
    /// the drain ended.
    AckedLost = "acked_lost",
    /// Connections that clients got.
    Connected = "connected",
    /// Median time of connecting, ns.
    ConnectP50 = "connect_p50_ns",
    /// 99th percentile of the times of connecting, ns.
    ConnectP99 = "connect_p99_ns",
    /// Messages that were delivered later than `late_after`.
    Late = "late",
    /// Connections that clients got again after they had lost them.
    Reconnected = "reconnected",
    /// 99th percentile of the times without a connection, ns.
    ReconnectP99 = "reconnect_p99_ns",
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
        match self {
            Column::DeliveredRatio
            | Column::Lost
            | Column::Duplicated
            | Column::Reordered
            | Column::Corrupted
            | Column::Acked
            | Column::AckedLost
            | Column::Connected
            | Column::Reconnected => FigureGroup::Counts,
            Column::Offered | Column::Sent | Column::Delivered | Column::DeliveredBytes | Column::FloorDelivered => {
                FigureGroup::Rates
            }
            Column::LatencyMin
            | Column::LatencyP50
            | Column::IntendedP50
            | Column::ServiceP50
            | Column::SendLagP50
            | Column::OwnLagP50
            | Column::ReceiveLagP50
            | Column::ConnectP50
            | Column::FloorLatency => FigureGroup::LatencyP50,
            Column::LatencyMean
            | Column::LatencyP90
            | Column::LatencyP95
            | Column::LatencyP99
            | Column::LatencyP999
            | Column::LatencyMax
            | Column::IntendedP99
            | Column::ServiceP99
            | Column::SendLagP99
            | Column::OwnLagP99
            | Column::ReceiveLagP99
            | Column::Jitter
            | Column::ConnectP99
            | Column::ReconnectP99
            | Column::Late => FigureGroup::LatencyP99,
            Column::CpuCores
            | Column::CpuPerMessage
            | Column::RssMax
            | Column::Uss
            | Column::SwitchesPerMessage
            | Column::ServerCores
            | Column::ServerRss
            | Column::ServerRssMax
            | Column::ServerUss => FigureGroup::Cost,
        }
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
