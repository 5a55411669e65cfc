//! Results as OpenMessaging Benchmark (OMB) writes them: the fields of its class `TestResult`.
//!
//! There is one object per cell, over all its runs, and no field that OMB does not have, because its tools refuse unknown
//! ones. What was not measured is null, or an empty list or table.

use crate::histogram_text::each_percentile;
use crate::records::{ReadError, read_records};
use crate::report::Report;
use pubmark_model::cell::label;
use pubmark_model::options::OptionValues;
use pubmark_model::pattern::Topics;
use pubmark_model::record::{RunRecord, Series};
use pubmark_model::times::TimeFigures;
use pubmark_model::units::{MICROSECOND, MILLISECOND, Ns, SECOND};
use pubmark_model::workload::Workload;
use pubmark_stats::{Histogram, HistogramError};
use serde_json::{Map, Value};

/// Percentiles with a field of their own: the end of its name, and the fraction.
const PERCENTILES: [(&str, f64); 6] =
    [("50pct", 0.5), ("75pct", 0.75), ("95pct", 0.95), ("99pct", 0.99), ("999pct", 0.999), ("9999pct", 0.9999)];

/// Percentiles for each halving of the distance to 100 % in a table of quantiles, as in OMB.
const TICKS_PER_HALF: f64 = 100.0;

/// Percentiles are rounded to this part of a percent, because they are sums of fractions.
const KEY_PRECISION: f64 = 1e9;

/// Reasons why no result can be written.
#[derive(Debug, thiserror::Error)]
pub enum OmbJsonError {
    /// The records cannot be read.
    #[error(transparent)]
    Records(#[from] ReadError),
    /// A histogram cannot be read.
    #[error("{cell}: {source}")]
    Histogram {
        /// Label of the cell.
        cell: String,
        /// The cause.
        source: HistogramError,
    },
    /// There is nothing to write.
    #[error("no run was measured: see `pubmark report` for the reasons")]
    Empty,
}

/// The times of OMB: the beginning of the fields' names, and the unit of their values in ns.
struct OmbTime {
    by_slice: &'static str,
    aggregated: &'static str,
    unit_ns: Ns,
    /// True if percentiles are whole numbers.
    whole: bool,
}

const PUBLISH: OmbTime =
    OmbTime { by_slice: "publishLatency", aggregated: "aggregatedPublishLatency", unit_ns: MILLISECOND, whole: false };

const PUBLISH_DELAY: OmbTime = OmbTime {
    by_slice: "publishDelayLatency",
    aggregated: "aggregatedPublishDelayLatency",
    unit_ns: MICROSECOND,
    whole: true,
};

const END_TO_END: OmbTime = OmbTime {
    by_slice: "endToEndLatency",
    aggregated: "aggregatedEndToEndLatency",
    unit_ns: MILLISECOND,
    whole: false,
};

impl Report {
    /// Returns the result of the only cell or, if there are several, an array with the result of each. Runs that failed
    /// are left out. If a run has several flows, the result is of all of them.
    ///
    /// # Errors
    /// The records cannot be read, or no run was measured.
    pub fn omb_json(&self) -> Result<Value, OmbJsonError> {
        let mut cells: Vec<(String, Vec<RunRecord>)> = Vec::new();
        for run in read_records(self.folder())?.runs.into_iter().filter(|run| run.error.is_none()) {
            let label = label(&run.cell);
            match cells.iter_mut().find(|(known, _)| *known == label) {
                Some((_, runs)) => runs.push(run),
                None => cells.push((label, vec![run])),
            }
        }
        let (title, is_one) = (&self.study().title, cells.len() == 1);
        let named = |label: &str| if is_one { title.clone() } else { format!("{title}: {label}") };
        let results = cells.iter().map(|(label, runs)| {
            result(&named(label), runs).map_err(|source| OmbJsonError::Histogram { cell: label.clone(), source })
        });
        let mut results = results.collect::<Result<Vec<Value>, OmbJsonError>>()?;
        match results.len() {
            0 => Err(OmbJsonError::Empty),
            1 => Ok(results.remove(0)),
            _ => Ok(results.into()),
        }
    }
}

/// Returns the result of a cell's runs.
fn result(name: &str, runs: &[RunRecord]) -> Result<Value, HistogramError> {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| drop(out.insert(key.to_owned(), value));
    let first = &runs[0];
    let shape = Shape::of(first);
    put("workload", name.into());
    put("driver", first.system.clone().into());
    put("messageSize", shape.message_size.into());
    put("topics", shape.topics.into());
    put("partitions", first.options.number("partitions").max(1).into());
    put("producersPerTopic", shape.producers_per_topic.into());
    put("consumersPerTopic", shape.consumers_per_topic.into());
    put("publishRate", slices(runs, |run| rates(&run.series, &run.series.sent, run.window_ns)));
    put("publishErrorRate", slices(runs, error_rates));
    put("consumeRate", slices(runs, |run| rates(&run.series, &run.series.delivered, run.window_ns)));
    put("backlog", slices(runs, backlog));
    let mut times = TimeFigures::<Option<Histogram>>::none();
    for run in runs {
        let decoded = |text: &Option<String>| text.as_deref().map(Histogram::decode).transpose();
        let latency = decoded(&run.histograms.latency)?;
        let (send_lag, ack_latency) = (decoded(&run.histograms.send_lag)?, decoded(&run.histograms.ack_latency)?);
        times.add(&TimeFigures { latency, send_lag, ack_latency, ..TimeFigures::none() })?;
    }
    let TimeFigures { latency, send_lag, ack_latency, .. } = &times;
    for (time, histogram) in [(PUBLISH, ack_latency), (PUBLISH_DELAY, send_lag), (END_TO_END, latency)] {
        by_slice(&time, runs, &mut put);
        aggregated(&time, histogram.as_ref().filter(|all| !all.is_empty()), &mut put);
    }
    Ok(out.into())
}

/// Clients by topic, as OMB counts them.
struct Shape {
    /// Bytes; `None` if flows differ.
    message_size: Option<u64>,
    topics: u64,
    /// `None` if topics differ.
    producers_per_topic: Option<u64>,
    /// Of each subscription, which is what OMB writes here; `None` if topics differ.
    consumers_per_topic: Option<u64>,
}

impl Shape {
    fn of(run: &RunRecord) -> Shape {
        let workloads = flows(run);
        let drawn = |workload: &Workload| workload.topics.as_ref().map_or(1, |topics| u64::from(topics.count()));
        let topics_of = |workload: &Workload| match workload.pattern.topics() {
            Topics::Own => u64::from(workload.publishers) * drawn(workload),
            Topics::Shared => drawn(workload),
            Topics::Tree => u64::from(workload.publishers) * u64::from(workload.tree_parameters),
        };
        let producers_of = |workload: &Workload| match workload.pattern.topics() {
            Topics::Own | Topics::Tree => 1,
            Topics::Shared => u64::from(workload.publishers),
        };
        let consumers_of =
            |workload: &Workload| if workload.is_divided() { u64::from(workload.subscribers) } else { 1 };
        let same = |of: &dyn Fn(&Workload) -> u64| {
            let mut all = workloads.iter().map(|(workload, _)| of(workload));
            let first = all.next()?;
            all.all(|other| other == first).then_some(first)
        };
        Shape {
            message_size: same(&|workload| workload.payload_bytes),
            topics: workloads.iter().map(|(workload, _)| topics_of(workload)).sum(),
            producers_per_topic: same(&producers_of),
            consumers_per_topic: same(&consumers_of),
        }
    }
}

/// Returns the flows of a run with their figures by slice.
fn flows(run: &RunRecord) -> Vec<(&Workload, &Series)> {
    let own: Vec<_> = run.flows.iter().filter_map(|flow| flow.own.as_ref()).collect();
    match own.is_empty() {
        true => vec![(&run.workload, &run.series)],
        false => own.into_iter().map(|own| (&own.workload, &own.series)).collect(),
    }
}

/// Returns the entries of all runs in order.
fn slices(runs: &[RunRecord], of: impl Fn(&RunRecord) -> Vec<Value>) -> Value {
    runs.iter().flat_map(of).collect()
}

/// Returns counts by slice as rates. The last slice of a window can be shorter.
fn rates(series: &Series, counts: &[u64], window_ns: Ns) -> Vec<Value> {
    let length_ns = |index: u64| window_ns.saturating_sub(series.slice_ns.saturating_mul(index)).min(series.slice_ns);
    let rate = |(index, count): (usize, &u64)| match length_ns(index as u64) {
        0 => Value::Null,
        length_ns => (*count as f64 / (length_ns as f64 / SECOND as f64)).into(),
    };
    counts.iter().enumerate().map(rate).collect()
}

/// Returns the rate of refused messages by slice: records have only their number over the window.
fn error_rates(run: &RunRecord) -> Vec<Value> {
    if run.counts.refused == 0 { vec![0.0.into(); run.series.sent.len()] } else { Vec::new() }
}

/// Returns the copies that were sent in the window and have not arrived, at the end of each slice.
fn backlog(run: &RunRecord) -> Vec<Value> {
    let flows = flows(run);
    if flows.iter().any(|(workload, _)| workload.pattern.round_trip()) {
        return Vec::new();
    }
    let mut waiting = vec![0_i128; run.series.sent.len()];
    for (workload, series) in flows {
        let copies = match workload.pattern.topics() {
            Topics::Shared if !workload.is_divided() => i128::from(workload.subscribers),
            _ => 1,
        };
        let mut sum = 0;
        for ((waiting, sent), delivered) in waiting.iter_mut().zip(&series.sent).zip(&series.delivered) {
            sum += i128::from(*sent) * copies - i128::from(*delivered);
            *waiting += sum;
        }
    }
    waiting.into_iter().map(|count| u64::try_from(count).unwrap_or(0).into()).collect()
}

/// Writes the lists of a time by slice. Records have median, p99 and maximum of the latency.
fn by_slice(time: &OmbTime, runs: &[RunRecord], put: &mut impl FnMut(&str, Value)) {
    let list = |of: fn(&Series) -> &Vec<u64>| -> Value {
        if time.by_slice != END_TO_END.by_slice {
            return Value::Array(Vec::new());
        }
        let ms = |ns: &u64| Value::from(*ns as f64 / time.unit_ns as f64);
        let measured = runs.iter().filter(|run| run.times.latency.is_some());
        measured.flat_map(|run| of(&run.series).iter().map(ms).collect::<Vec<Value>>()).collect()
    };
    put(&format!("{}Avg", time.by_slice), Value::Array(Vec::new()));
    for (end, level) in PERCENTILES {
        let value = match level {
            0.5 => list(|series| &series.latency_p50_ns),
            0.99 => list(|series| &series.latency_p99_ns),
            _ => Value::Array(Vec::new()),
        };
        put(&format!("{}{end}", time.by_slice), value);
    }
    put(&format!("{}Max", time.by_slice), list(|series| &series.latency_max_ns));
}

/// Writes the figures of a time over the window.
fn aggregated(time: &OmbTime, histogram: Option<&Histogram>, put: &mut impl FnMut(&str, Value)) {
    let scaled = |ns: f64| ns / time.unit_ns as f64;
    let value = |ns: u64| match time.whole {
        true => Value::from((ns + time.unit_ns / 2) / time.unit_ns),
        false => Value::from(scaled(ns as f64)),
    };
    let of = |read: &dyn Fn(&Histogram) -> Value| histogram.map_or(Value::Null, read);
    put(&format!("{}Avg", time.aggregated), of(&|all| scaled(all.mean()).into()));
    for (end, level) in PERCENTILES {
        put(&format!("{}{end}", time.aggregated), of(&|all| value(all.value_at(level))));
    }
    put(&format!("{}Max", time.aggregated), of(&|all| value(all.max())));
    let mut quantiles = Map::new();
    if let Some(histogram) = histogram {
        each_percentile(histogram, TICKS_PER_HALF, &mut |ns, level, _| {
            let percent = (level * 100.0 * KEY_PRECISION).round() / KEY_PRECISION;
            quantiles.insert(format!("{percent:?}"), value(ns));
        });
    }
    put(&format!("{}Quantiles", time.aggregated), quantiles.into());
}
