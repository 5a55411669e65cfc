//! Documents of the OpenTelemetry protocol (OTLP 1.x) in their JSON encoding: metrics and logs.

use super::{Family, Labels, MetricKind, figures, of_cell, with};
use crate::progress::board::{CellState, LastRun};
use pubmark_model::flow::{ALL, FLOW};
use pubmark_model::record::{FaultEvent, RunRecord};
use pubmark_model::units::Ns;
use serde_json::{Value, json};

/// Aggregation temporality of sums that count from a start.
const CUMULATIVE: u32 = 2;
/// Severity number of information.
const INFO: u32 = 9;

/// An instant, by the clock of the program and by that of the world.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Monotonic time, ns.
    pub ns: Ns,
    /// Time since 1970, ns.
    pub unix_ns: Ns,
}

impl Now {
    /// Returns an earlier instant as the time since 1970, ns.
    pub fn unix_ns_of(self, earlier_ns: Ns) -> Ns {
        self.unix_ns.saturating_sub(self.ns.saturating_sub(earlier_ns))
    }
}

/// The program as the source of data.
pub struct OtlpSource {
    /// Identifies this process among those that push to one collector: its results folder.
    pub instance: String,
}

impl OtlpSource {
    /// Returns a document of metrics at this time.
    pub fn metrics(&self, families: &[Family], now: Now) -> Value {
        let metrics: Vec<Value> = families.iter().map(|family| metric(family, now)).collect();
        json!({ "resourceMetrics": [{
            "resource": self.resource(),
            "scopeMetrics": [{ "scope": scope(), "metrics": metrics }],
        }] })
    }

    /// Returns a document with a log record for each fault of a run that happened; `None` if there were none.
    pub fn faults(&self, run: &FinishedRun) -> Option<Value> {
        let events = run.faults.iter().filter_map(|fault| {
            let mut attributes = attributes(&run.labels);
            let until_ns = fault.until_ns.zip(fault.at_ns).map(|(until_ns, at_ns)| until_ns.saturating_sub(at_ns));
            attributes.extend(until_ns.map(|length_ns| number("duration_ns", length_ns)));
            Some(json!({
                "timeUnixNano": run.window_unix_ns?.checked_add(fault.at_ns?)?.to_string(),
                "severityNumber": INFO,
                "severityText": "INFO",
                "eventName": "pubmark.fault",
                "body": { "stringValue": format!("{} {}", fault.what.word(), fault.who.word()) },
                "attributes": attributes,
            }))
        });
        let events: Vec<Value> = events.collect();
        (!events.is_empty()).then(|| {
            json!({ "resourceLogs": [{
                "resource": self.resource(),
                "scopeLogs": [{ "scope": scope(), "logRecords": events }],
            }] })
        })
    }

    fn resource(&self) -> Value {
        let own = [
            ("service.name", "pubmark"),
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("service.instance.id", &self.instance),
        ];
        json!({ "attributes": attributes(&own.map(|(name, value)| (name.into(), value.to_owned())).into()) })
    }
}

/// A finished run: its labels, its result by flow, its faults.
pub struct FinishedRun {
    labels: Labels,
    results: Vec<(Labels, LastRun)>,
    faults: Vec<FaultEvent>,
    window_unix_ns: Option<Ns>,
}

impl FinishedRun {
    /// Returns the result of a record of this cell, which has this index; `window_unix_ns`: the beginning of its
    /// window, ns since 1970.
    pub fn of(record: &RunRecord, (index, cell): (usize, &CellState), window_unix_ns: Option<Ns>) -> FinishedRun {
        let mut labels = with(of_cell(index, cell), "repeat", &record.repeat.to_string());
        for (name, value) in record.cell.iter().filter(|(name, _)| *name != "system") {
            labels.push((name.clone().into(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
        }
        // Each flow has its own figures, and "all" those of the run.
        let of_flow = |run: &RunRecord, flow: &str| (with(labels.clone(), FLOW, flow), LastRun::of(run));
        let mut results = Vec::new();
        if record.error.is_none() {
            let flows = record.flows.iter().filter_map(|flow| Some((record.of_flow(flow.clone())?, &flow.name)));
            results.extend(flows.map(|(run, name)| of_flow(&run, name)));
            results.push(of_flow(record, ALL));
        }
        FinishedRun { labels, results, faults: record.fault_log.clone(), window_unix_ns }
    }

    /// Returns its figures.
    pub fn figures(&self) -> Vec<Family> {
        let runs: Vec<_> = self.results.iter().map(|(labels, run)| (labels.clone(), run)).collect();
        figures(&runs)
    }
}

fn metric(family: &Family, now: Now) -> Value {
    // JSON has no infinity.
    let samples = family.samples.iter().filter(|(_, value)| value.is_finite());
    let points = samples.map(|(labels, value)| {
        let mut point =
            json!({ "attributes": attributes(labels), "timeUnixNano": now.unix_ns.to_string(), "asDouble": value });
        if let MetricKind::Counter { since_ns } = family.kind {
            point["startTimeUnixNano"] = now.unix_ns_of(since_ns).to_string().into();
        }
        point
    });
    let points: Vec<Value> = points.collect();
    let name = format!("pubmark_{}", family.name);
    let (kind, data) = match family.kind {
        MetricKind::Gauge => ("gauge", json!({ "dataPoints": points })),
        MetricKind::Counter { .. } => {
            ("sum", json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true }))
        }
    };
    json!({ "name": name, "description": family.help, "unit": unit(&family.name), kind: data })
}

fn scope() -> Value {
    json!({ "name": "pubmark", "version": env!("CARGO_PKG_VERSION") })
}

fn attributes(labels: &Labels) -> Vec<Value> {
    labels.iter().map(|(name, value)| json!({ "key": name, "value": { "stringValue": value } })).collect()
}

/// Returns an attribute with a number, which JSON has as a text.
fn number(name: &str, value: u64) -> Value {
    json!({ "key": name, "value": { "intValue": value.to_string() } })
}

/// Returns the unit of a metric by UCUM, from the end of its name.
fn unit(name: &str) -> &'static str {
    if name.ends_with("_seconds") {
        "s"
    } else if name.ends_with("bytes") || name.contains("_bytes_m") {
        "By"
    } else {
        "1"
    }
}
