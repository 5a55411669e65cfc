//! The figures of a cell: what is measured, computed over its runs.

use pubmark_model::claim::Figure;
use pubmark_model::record::{FigureGroup, RunRecord};
use pubmark_stats::{Estimate, Interval, Runs, typical_run};
use serde::{Serialize, Serializer};

mod reading;

pub use reading::Reading;
pub(crate) use reading::cpu_cores;

/// A difference in proportion that is one of computing.
const ROUNDING: f64 = 1e-12;

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
    fn is_counted(self) -> bool {
        matches!(self.group(), FigureGroup::Counts | FigureGroup::Rates) || self == Column::Late
    }
}

/// The figures of one cell; those that could not be measured are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// By column.
    values: Vec<Value>,
    /// Whether a loop of the generator was at its limit in a run of which the
    /// delivered rate is.
    is_lower_bound: bool,
    /// How the multiple of the floor's delivered rate is to be read.
    over_floor: Sign,
}

/// What a cell's runs say of one figure.
#[derive(Clone, Debug, Default, PartialEq)]
struct Value {
    estimate: Option<Estimate>,
    readings: Vec<Reading>,
    is_quotable: bool,
    /// As a multiple of the floor's.
    over_floor: Option<Estimate>,
}

/// How a figure is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sign {
    /// As it stands.
    #[default]
    Equal,
    /// The system reaches at least so much: a loop of the generator was at its
    /// limit.
    AtLeast,
    /// At most so much, as what it is a multiple of is at least what it is.
    AtMost,
}

impl Figures {
    /// The figure with its interval, if it was measured: over the runs that may
    /// be quoted for it or, where there are none, over those that may not.
    pub fn get(&self, column: Column) -> Option<Estimate> {
        self.value(column).and_then(|value| value.estimate)
    }

    /// The same, where it may be quoted.
    pub fn quotable(&self, column: Column) -> Option<Estimate> {
        self.get(column).filter(|_| self.may_be_quoted(column))
    }

    /// Whether there is a run whose verdict allows the figure.
    pub fn may_be_quoted(&self, column: Column) -> bool {
        self.value(column).is_some_and(|value| value.is_quotable)
    }

    /// What each of the runs that may be quoted says of the figure, those that
    /// say nothing left out. Empty for figures that are no single run's.
    pub fn each(&self, column: Column) -> &[Reading] {
        match self.value(column) {
            Some(value) if value.is_quotable => &value.readings,
            _ => &[],
        }
    }

    /// How a figure is to be read: at `max`, messages a second may be a lower
    /// bound.
    pub fn sign(&self, column: Column) -> Sign {
        match column {
            Column::Delivered | Column::DeliveredBytes if self.is_lower_bound => Sign::AtLeast,
            Column::FloorDelivered => self.over_floor,
            _ => Sign::Equal,
        }
    }

    fn value(&self, column: Column) -> Option<&Value> {
        self.values.get(column as usize)
    }

    /// What the runs say, whether or not they may be quoted.
    pub(crate) fn shown(&self, column: Column) -> &[Reading] {
        self.value(column).map_or(&[], |value| &value.readings)
    }

    /// The figure as a multiple of the floor's in the same block.
    pub fn over_floor(&self, column: Column) -> Option<Estimate> {
        self.value(column).and_then(|value| value.over_floor)
    }

    pub(crate) fn set_over_floor(&mut self, column: Column, multiple: Option<Estimate>, sign: Sign) {
        let place = match column {
            Column::LatencyP50 => Some(Column::FloorLatency),
            Column::Delivered => Some(Column::FloorDelivered),
            _ => None,
        };
        let is_quotable = self.may_be_quoted(column);
        if let Some(value) = self.values.get_mut(column as usize) {
            value.over_floor = multiple;
        }
        if let Some(value) = place.and_then(|place| self.values.get_mut(place as usize)) {
            (value.estimate, value.is_quotable) = (multiple, is_quotable);
        }
        if column == Column::Delivered {
            self.over_floor = sign;
        }
    }

    /// The figures over these runs, all of one cell and all made: each over
    /// those whose verdict allows it or, where there are none, over all.
    pub(crate) fn of(made: &[&RunRecord]) -> Figures {
        let values = Column::ALL.iter().map(|column| Value::of(*column, made));
        let is_lower_bound = counted(made, FigureGroup::Rates).0.iter().any(|run| run.rates.lower_bound);
        Figures { values: values.collect(), is_lower_bound, over_floor: Sign::Equal }
    }
}

impl Value {
    fn of(column: Column, made: &[&RunRecord]) -> Value {
        let (runs, is_quotable) = counted(made, column.group());
        let readings: Vec<Reading> = runs.iter().filter_map(|run| Reading::of(column, run)).collect();
        Value { estimate: typical(column, &readings), readings, is_quotable, over_floor: None }
    }
}

/// Whether a run may be quoted for these figures.
pub(crate) fn allows(run: &RunRecord, group: FigureGroup) -> bool {
    let verdict = &run.verdict;
    run.error.is_none() && (verdict.valid || (!verdict.reasons.is_empty() && verdict.allows(group)))
}

/// The runs that figures of this group are of, and whether they may be quoted.
pub(crate) fn counted<'a>(made: &[&'a RunRecord], group: FigureGroup) -> (Vec<&'a RunRecord>, bool) {
    let allowed: Vec<&RunRecord> = made.iter().copied().filter(|run| allows(run, group)).collect();
    match allowed.is_empty() {
        true => (made.to_vec(), false),
        false => (allowed, true),
    }
}

/// The median over the runs with its 95 % interval, no further than the figure
/// can reach.
pub(crate) fn typical(column: Column, readings: &[Reading]) -> Option<Estimate> {
    let values: Vec<f64> = readings.iter().map(|reading| reading.value).collect();
    let step = match column.is_counted() {
        true => 0.0,
        false => readings.iter().map(|reading| reading.step).fold(0.0, f64::max),
    };
    let Estimate { value, interval } = typical_run(Runs { values: &values, step })?;
    let most = if column == Column::DeliveredRatio { 1.0 } else { f64::INFINITY };
    // Of equal values, logarithms and back leave a last digit.
    let end = |end: f64| if (end - value).abs() <= value.abs() * ROUNDING { value } else { end };
    let within = |Interval { lo, hi }| Interval { lo: end(lo.max(0.0).min(value)), hi: end(hi.min(most).max(value)) };
    Some(Estimate { value, interval: interval.map(within) })
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

    #[test]
    fn an_interval_ends_where_the_figure_does() {
        let readings = |values: &[f64]| -> Vec<Reading> {
            let each = values.iter().zip(1..);
            each.map(|(value, repeat)| Reading { value: *value, step: 0.0, repeat }).collect()
        };
        let interval = |column, values: &[f64]| typical(column, &readings(values)).and_then(|found| found.interval);
        assert_eq!(interval(Column::DeliveredRatio, &[0.8, 1.0]).map(|found| found.hi), Some(1.0));
        assert_eq!(interval(Column::Lost, &[0.0, 7.0]).map(|found| found.lo), Some(0.0));
        assert_eq!(interval(Column::Lost, &[0.0, 0.0]), Some(Interval { lo: 0.0, hi: 0.0 }));
    }
}
