//! The figures of a cell: what is measured, computed over its runs.

use pubmark_model::claim::Figure;
use pubmark_model::record::{Histograms, RunRecord, Usage};
use pubmark_stats::{Estimate, Histogram, HistogramError, Summary, bootstrap_median, bootstrap_quantile};
use serde::{Serialize, Serializer};

/// Fewest latencies over all runs of which a 99th percentile is given.
const P99_SAMPLES_MIN: u64 = 1_000;
/// Fewest latencies over all runs of which a 99.9th percentile is given.
const P999_SAMPLES_MIN: u64 = 10_000;
/// The width of a histogram's buckets as a share of the value. No figure is
/// taken to be measured better.
const RESOLUTION: f64 = 1.0 / 1_024.0;
/// A quantile so small that it is the lowest value.
const LOWEST: f64 = f64::MIN_POSITIVE;

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident = $word:literal),+ $(,)?) => {
        /// A figure, as a column of `summary.csv`.
        ///
        /// Counts and rates are medians over the runs; latencies, other than
        /// the mean, come from the runs' histograms merged.
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
    /// Mean latency of a run, ns; its median over the runs.
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
    /// Largest latency of all runs, ns.
    LatencyMax = "latency_max_ns",
    /// Median latency from actual send time, ns.
    ServiceP50 = "service_latency_p50_ns",
    /// 99th percentile of latency from actual send time, ns.
    ServiceP99 = "service_latency_p99_ns",
    /// Median of actual send time less intended time, ns.
    SendLagP50 = "send_lag_p50_ns",
    /// 99th percentile of actual send time less intended time, ns.
    SendLagP99 = "send_lag_p99_ns",
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
    /// Median latency as a multiple of the floor's.
    FloorLatency = "floor_latency",
    /// Messages delivered a second as a multiple of the floor's.
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
    /// Messages that the server acknowledged and a subscriber never got.
    AckedLost = "acked_lost",
    /// Connections that clients got.
    Connected = "connected",
    /// Median time of a run's connecting, ns; its median over the runs.
    ConnectP50 = "connect_p50_ns",
    /// 99th percentile of a run's connecting, ns; its median over the runs.
    ConnectP99 = "connect_p99_ns",
    /// Messages that were delivered later than `late_after`.
    Late = "late",
    /// Connections that clients got again after they had lost them.
    Reconnected = "reconnected",
    /// 99th percentile of a run's times without a connection, ns; its median
    /// over the runs.
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

/// The figures of one cell; those that could not be measured are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    values: Vec<Option<Estimate>>,
    each: Vec<Vec<Reading>>,
}

/// What one run says of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The figure, in its own unit.
    pub value: f64,
    /// The least difference that the measurement can tell, in the same unit.
    pub step: f64,
}

impl Figures {
    /// The figure with its interval, if it was measured.
    pub fn get(&self, column: Column) -> Option<Estimate> {
        self.values.get(column as usize).copied().flatten()
    }

    /// What each of the runs says of the figure, those that say nothing left
    /// out; a percentile is the run's own, of at least as many samples as the
    /// cell's. Empty for figures that are no single run's.
    pub fn each(&self, column: Column) -> &[Reading] {
        self.each.get(column as usize).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn set(&mut self, column: Column, estimate: Option<Estimate>) {
        self.values.resize(Column::ALL.len().max(self.values.len()), None);
        self.values[column as usize] = estimate;
    }

    /// The figures over these runs, all of one cell.
    pub(crate) fn of(runs: &[&RunRecord], seed: u64) -> Result<Figures, HistogramError> {
        let each = |column: &Column| runs.iter().filter_map(|run| reading(*column, run)).collect();
        let mut figures = Figures { each: Column::ALL.iter().map(each).collect(), ..Figures::default() };
        for column in Column::ALL.iter().copied() {
            let values: Vec<f64> = runs.iter().filter_map(|run| scalar(column, run)).collect();
            figures.set(column, bootstrap_median(&values, seed));
        }
        for (histogram, quantiles) in QUANTILES {
            let decoded = runs
                .iter()
                .filter_map(|run| histogram(&run.histograms).map(Histogram::decode))
                .collect::<Result<Vec<_>, _>>()?;
            let decoded: Vec<&Histogram> = decoded.iter().collect();
            let samples: u64 = decoded.iter().map(|histogram| histogram.count()).sum();
            for (column, quantile, samples_min) in *quantiles {
                if samples >= *samples_min {
                    figures.set(*column, bootstrap_quantile(&decoded, *quantile, seed));
                }
            }
        }
        Ok(figures)
    }
}

/// A column, the quantile that it shows, and the fewest samples that it needs.
type Quantile = (Column, f64, u64);

/// Which of a run's histograms.
type Pick = fn(&Histograms) -> Option<&str>;

/// The columns that come from merged histograms.
const QUANTILES: &[(Pick, &[Quantile])] = &[
    (
        |histograms| histograms.latency.as_deref(),
        &[
            (Column::LatencyMin, LOWEST, 1),
            (Column::LatencyP50, 0.50, 1),
            (Column::LatencyP90, 0.90, 1),
            (Column::LatencyP95, 0.95, 1),
            (Column::LatencyP99, 0.99, P99_SAMPLES_MIN),
            (Column::LatencyP999, 0.999, P999_SAMPLES_MIN),
            (Column::LatencyMax, 1.0, 1),
        ],
    ),
    (
        |histograms| histograms.service_latency.as_deref(),
        &[(Column::ServiceP50, 0.50, 1), (Column::ServiceP99, 0.99, P99_SAMPLES_MIN)],
    ),
    (
        |histograms| histograms.send_lag.as_deref(),
        &[(Column::SendLagP50, 0.50, 1), (Column::SendLagP99, 0.99, P99_SAMPLES_MIN)],
    ),
];

/// What one run says of a figure that is one number a run.
fn scalar(column: Column, run: &RunRecord) -> Option<f64> {
    let counts = &run.counts;
    let each = |total: f64| (counts.delivered > 0).then(|| total / counts.delivered as f64);
    Some(match column {
        Column::Offered => run.rates.offered_per_s,
        Column::Sent => run.rates.sent_per_s,
        Column::Delivered => run.rates.delivered_per_s,
        Column::DeliveredBytes => run.rates.delivered_bytes_per_s,
        Column::DeliveredRatio => counts.delivered_ratio()?,
        Column::Lost => counts.lost as f64,
        Column::Duplicated => counts.duplicated as f64,
        Column::Reordered => counts.reordered as f64,
        Column::Corrupted => counts.corrupted as f64,
        Column::LatencyMean => run.latency_ns.as_ref()?.mean,
        Column::Jitter => run.jitter_ns?,
        Column::CpuCores => together(run, |usage| usage.cpu_cores)?,
        Column::CpuPerMessage => each(together(run, |usage| usage.cpu_s)? * 1e9)?,
        Column::RssMax => together(run, |usage| usage.rss_bytes_max as f64)?,
        Column::Uss => together(run, |usage| usage.uss_bytes_median as f64)?,
        Column::ServerCores => run.server.as_ref()?.cpu_cores,
        Column::ServerRss => run.server.as_ref()?.rss_bytes_median as f64,
        Column::ServerRssMax => run.server.as_ref()?.rss_bytes_max as f64,
        Column::ServerUss => run.server.as_ref()?.uss_bytes_median as f64,
        Column::Acked if run.workload.qos > 0 => counts.acked as f64,
        Column::AckedLost if run.workload.qos > 0 => counts.acked_lost as f64,
        Column::Connected => run.connections.as_ref()?.opened as f64,
        Column::ConnectP50 => run.connections.as_ref()?.time_ns.as_ref()?.p50 as f64,
        Column::ConnectP99 => run.connections.as_ref()?.time_ns.as_ref()?.p99 as f64,
        Column::Late if run.latency_ns.is_some() => counts.late as f64,
        Column::Reconnected => run.connections.as_ref()?.reconnected as f64,
        Column::ReconnectP99 => run.connections.as_ref()?.reconnect_ns.as_ref()?.p99 as f64,
        Column::SwitchesPerMessage => {
            each(together(run, |usage| usage.voluntary_switches as f64 + usage.involuntary_switches as f64)?)?
        }
        _ => return None,
    })
}

/// What one run says of any figure that a run has.
fn reading(column: Column, run: &RunRecord) -> Option<Reading> {
    let value = scalar(column, run).or_else(|| percentile(column, run).map(|ns| ns as f64))?;
    Some(Reading { value, step: step(column, run).max(value.abs() * RESOLUTION) })
}

/// A run's own percentile, ns.
fn percentile(column: Column, run: &RunRecord) -> Option<u64> {
    let of = |summary: &Option<Summary>, samples_min: u64, pick: fn(&Summary) -> u64| {
        summary.as_ref().filter(|summary| summary.count >= samples_min).map(pick)
    };
    match column {
        Column::LatencyMin => of(&run.latency_ns, 1, |summary| summary.min),
        Column::LatencyP50 => of(&run.latency_ns, 1, |summary| summary.p50),
        Column::LatencyP90 => of(&run.latency_ns, 1, |summary| summary.p90),
        Column::LatencyP95 => of(&run.latency_ns, 1, |summary| summary.p95),
        Column::LatencyP99 => of(&run.latency_ns, P99_SAMPLES_MIN, |summary| summary.p99),
        Column::LatencyP999 => of(&run.latency_ns, P999_SAMPLES_MIN, |summary| summary.p999),
        Column::LatencyMax => of(&run.latency_ns, 1, |summary| summary.max),
        Column::ServiceP50 => of(&run.service_latency_ns, 1, |summary| summary.p50),
        Column::ServiceP99 => of(&run.service_latency_ns, P99_SAMPLES_MIN, |summary| summary.p99),
        Column::SendLagP50 => of(&run.send_lag_ns, 1, |summary| summary.p50),
        Column::SendLagP99 => of(&run.send_lag_ns, P99_SAMPLES_MIN, |summary| summary.p99),
        _ => None,
    }
}

/// The least difference in a figure that a run could have shown: a message,
/// a page of memory, a nanosecond.
fn step(column: Column, run: &RunRecord) -> f64 {
    /// Bytes; smaller pages there are none.
    const PAGE: f64 = 4_096.0;
    let a_second = 1e9 / run.window_ns.max(1) as f64;
    match column {
        Column::Offered | Column::Sent | Column::Delivered => a_second,
        Column::DeliveredBytes => a_second * run.workload.payload_bytes as f64,
        Column::DeliveredRatio => 1.0 / run.counts.expected.max(1) as f64,
        Column::RssMax | Column::Uss | Column::ServerRss | Column::ServerRssMax | Column::ServerUss => PAGE,
        Column::CpuCores | Column::ServerCores | Column::SwitchesPerMessage => 0.0,
        _ => 1.0,
    }
}

/// Generator (with the library in it) and server: the cost of the system as a
/// whole. A server that was not sampled, as at an external endpoint, counts
/// nothing, and a run without the generator's share has no such figure.
fn together(run: &RunRecord, of: impl Fn(&Usage) -> f64) -> Option<f64> {
    let generator = of(run.generator.as_ref()?);
    Some(generator + run.server.as_ref().map_or(0.0, of))
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
