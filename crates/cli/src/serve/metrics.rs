//! `--metrics`: the state of a study, in the text format that Prometheus scrapes (OpenMetrics 1.0). Everything is made
//! on request.

use super::{HttpRequest, HttpResponse, HttpServer};
use crate::failure::Failure;
use crate::output::note;
use crate::progress::board::{CellState, Current, SharedBoard, Sums};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use pubmark_host::clock;
use pubmark_host::server::watch::{ServerNow, ServerWatch};
use pubmark_model::figure::{Figure, Unit};
use pubmark_model::units::{Ns, SECOND};
use pubmark_study::live::Phase;
use pubmark_study::runner::Tally;
use std::fmt::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of cells beyond which further ones have no series.
const CELLS_MAX: usize = 1_000;
/// Minimum interval of snapshots of a server, ns.
const LOOK: Ns = SECOND;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves the metrics at an address, and prints it.
pub fn serve(shared: Arc<SharedBoard>, address: SocketAddr) -> Result<HttpServer, Failure> {
    let mut registry = Registry::with_prefix("pubmark");
    registry.register_collector(Box::new(Metrics { shared, looked: Mutex::default() }));
    let answer = move |request: &HttpRequest| match request.path.as_str() {
        "/metrics" => {
            let mut text = String::new();
            match encode(&mut text, &registry) {
                Ok(()) => HttpResponse::ok(CONTENT_TYPE, text.into_bytes()),
                Err(_) => HttpResponse::status(503),
            }
        }
        _ => HttpResponse::status(404),
    };
    let server = HttpServer::start("--metrics", address, Arc::new(answer))?;
    note(&format!("metrics: http://{}/metrics", server.address));
    Ok(server)
}

struct Metrics {
    shared: Arc<SharedBoard>,
    looked: Mutex<Option<Looked>>,
}

/// A snapshot of a server.
#[derive(Clone, Copy)]
struct Looked {
    at_ns: Ns,
    /// Start of the run to which the server belongs; identifies the run.
    run_ns: Ns,
    seen: Option<ServerNow>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Metrics")
    }
}

/// Data copied from the board at once, so that nobody waits for the text.
struct Snapshot {
    now_ns: Ns,
    /// Cells by number, from 0.
    cells: Vec<(usize, CellState)>,
    current: Option<(Current, CellState)>,
    tally: Tally,
    sums: Sums,
    runs: usize,
    left_ns: Ns,
    offered: Option<u64>,
}

impl Metrics {
    fn snapshot(&self) -> Snapshot {
        let now_ns = clock::now();
        let board = self.shared.lock();
        Snapshot {
            now_ns,
            cells: board.cells.iter().cloned().enumerate().take(CELLS_MAX).collect(),
            current: board.current.as_ref().map(|current| (current.clone(), board.cells[current.cell].clone())),
            tally: board.tally(),
            sums: board.sums,
            runs: board.runs,
            left_ns: board.left_ns(now_ns),
            offered: board.offered(now_ns),
        }
    }

    fn look(&self, watch: &ServerWatch, run_ns: Ns, now_ns: Ns) -> Option<ServerNow> {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = looked.filter(|last| last.run_ns == run_ns && now_ns < last.at_ns + LOOK) {
            return last.seen;
        }
        let seen = watch.now();
        *looked = Some(Looked { at_ns: now_ns, run_ns, seen });
        seen
    }
}

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let snapshot = self.snapshot();
        let mut writer = Writer(encoder);
        study(&mut writer, &snapshot)?;
        cells(&mut writer, &snapshot.cells)?;
        let Some((current, cell)) = &snapshot.current else { return Ok(()) };
        run(&mut writer, current, cell, &snapshot)?;
        let watch = current.server.as_ref();
        match watch.and_then(|watch| self.look(watch, current.began_ns, snapshot.now_ns)) {
            Some(seen) => server(&mut writer, &cell.system, seen),
            None => Ok(()),
        }
    }
}

/// Labels, with values in the format's syntax.
type Labels<'a> = Vec<(&'a str, String)>;

const NONE: &Labels<'static> = &Vec::new();

/// Escapes a value: the encoder writes values unchanged.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn label<'a>(name: &'a str, value: &str) -> Labels<'a> {
    vec![(name, escaped(value))]
}

fn of_cell<'a>(index: usize, cell: &CellState) -> Labels<'a> {
    let number = (index + 1).to_string();
    vec![("cell", number), ("system", escaped(&cell.system)), ("label", escaped(&cell.label))]
}

fn with<'a>(mut labels: Labels<'a>, name: &'a str, value: &str) -> Labels<'a> {
    labels.push((name, escaped(value)));
    labels
}

struct Writer<'a>(DescriptorEncoder<'a>);

/// Series of one name.
struct Family<'a>(MetricEncoder<'a>);

impl Writer<'_> {
    fn gauges<'s>(&'s mut self, name: &'s str, help: &str) -> Result<Family<'s>, Error> {
        Ok(Family(self.0.encode_descriptor(name, help, None, MetricType::Gauge)?))
    }

    /// Begins a family of counters. Their names get the suffix `_total`.
    fn counters<'s>(&'s mut self, name: &'s str, help: &str) -> Result<Family<'s>, Error> {
        Ok(Family(self.0.encode_descriptor(name, help, None, MetricType::Counter)?))
    }
}

impl Family<'_> {
    fn gauge(&mut self, labels: &Labels<'_>, value: impl EncodeGaugeValue) -> Result<(), Error> {
        match labels.is_empty() {
            true => self.0.encode_gauge(&value),
            false => self.0.encode_family(labels)?.encode_gauge(&value),
        }
    }

    fn counter(&mut self, labels: &Labels<'_>, value: impl EncodeCounterValue) -> Result<(), Error> {
        self.0.encode_family(labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }
}

fn seconds(ns: Ns) -> f64 {
    ns as f64 / SECOND as f64
}

fn study(writer: &mut Writer<'_>, snapshot: &Snapshot) -> Result<(), Error> {
    writer.gauges("runs_planned", "Runs of the study")?.gauge(NONE, snapshot.runs as i64)?;
    writer.gauges("study_left_seconds", "Estimate of the time left")?.gauge(NONE, seconds(snapshot.left_ns))?;
    let Tally { valid, invalid, failed } = snapshot.tally;
    let mut runs = writer.counters("runs", "Runs that are over, by verdict")?;
    for (verdict, count) in [("valid", valid), ("invalid", invalid), ("failed", failed)] {
        runs.counter(&label("verdict", verdict), count as u64)?;
    }
    let Sums { offered, sent, delivered, lost } = snapshot.sums;
    let mut messages = writer.counters("window_messages", "Messages of the windows of runs that are over")?;
    for (count, value) in [("offered", offered), ("sent", sent), ("delivered", delivered), ("lost", lost)] {
        messages.counter(&label("count", count), value)?;
    }
    Ok(())
}

/// Writes each figure of the last finished run of each cell that has one.
fn cells(writer: &mut Writer<'_>, cells: &[(usize, CellState)]) -> Result<(), Error> {
    for figure in Figure::columns() {
        let value =
            |cell: &CellState| cell.last.as_ref()?.iter().find(|(of, _)| *of == figure).map(|(_, value)| *value);
        let mut values = cells.iter().filter_map(|(index, cell)| Some((*index, cell, value(cell)?))).peekable();
        if values.peek().is_none() {
            continue;
        }
        let (name, help, unit) = (series_name(figure), figure.description().about, base_unit(figure));
        let mut family = writer.gauges(&name, help)?;
        for (index, cell, value) in values {
            family.gauge(&of_cell(index, cell), value / unit)?;
        }
    }
    Ok(())
}

/// Returns the name of a figure's series, with the base unit: seconds, not nanoseconds.
fn series_name(figure: Figure) -> String {
    let name = figure.key().replace("_ns", "_seconds");
    let name = name.strip_suffix("_per_s").map_or(name.clone(), |start| format!("{start}_per_second"));
    format!("cell_{name}")
}

/// Returns the divisor from a figure's value to the base unit of its series: ns into seconds.
fn base_unit(figure: Figure) -> f64 {
    if figure.unit() == Unit::Ns { SECOND as f64 } else { 1.0 }
}

/// Writes the current run.
fn run(writer: &mut Writer<'_>, current: &Current, cell: &CellState, snapshot: &Snapshot) -> Result<(), Error> {
    let phase = match current.phase {
        Phase::Starting => "starting",
        Phase::Load { from_ns, .. } if snapshot.now_ns < from_ns => "warm-up",
        Phase::Load { .. } => "window",
        Phase::Draining => "draining",
    };
    let labels = with(of_cell(current.cell, cell), "repeat", &current.repeat.to_string());
    writer.gauges("run_info", "The run that is on")?.gauge(&with(labels, "phase", phase), 1)?;
    let figures = current.figures.unwrap_or_default();
    let offered = snapshot.offered.unwrap_or(figures.sent);
    let mut messages = writer.gauges("run_messages", "Messages of the run that is on, warm-up included")?;
    for (count, value) in [("offered", offered), ("sent", figures.sent), ("received", figures.received)] {
        messages.gauge(&label("count", count), value as f64)?;
    }
    let mut rates = writer.gauges("run_messages_per_second", "The same, over about the last second")?;
    for (count, value) in [("sent", figures.sent_per_s), ("received", figures.received_per_s)] {
        rates.gauge(&label("count", count), value)?;
    }
    let Some(lag_ns) = figures.own_lag_max_ns else { return Ok(()) };
    let help = "Greatest lag of a send that the generator itself caused, over about the last second";
    writer.gauges("run_own_lag_max_seconds", help)?.gauge(NONE, seconds(lag_ns))
}

fn server(writer: &mut Writer<'_>, system: &str, seen: ServerNow) -> Result<(), Error> {
    let labels = label("system", system);
    let help = "CPU time of the run's server since it was started";
    writer.counters("server_cpu_seconds", help)?.counter(&labels, seconds(seen.cpu_ns))?;
    let help = "Resident memory of the run's server";
    writer.gauges("server_resident_memory_bytes", help)?.gauge(&labels, seen.rss_bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_labels_stay_within_their_quotes_and_cells_without_end_have_no_series() {
        let shared = Arc::new(SharedBoard::default());
        for index in 0..CELLS_MAX + 5 {
            let mut cell = CellState::default();
            cell.label = if index == 0 { "a\"} 1\\\n</script>".into() } else { format!("cell {index}") };
            cell.last = Some(vec![(Figure::DELIVERED_RATIO, 0.5)]);
            shared.lock().cells.push(cell);
        }
        let mut registry = Registry::with_prefix("pubmark");
        registry.register_collector(Box::new(Metrics { shared, looked: Mutex::default() }));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let series: Vec<&str> = text.lines().filter(|line| line.starts_with("pubmark_cell_delivered_ratio{")).collect();
        assert_eq!(series.len(), CELLS_MAX);
        assert_eq!(series[0], r#"pubmark_cell_delivered_ratio{cell="1",system="",label="a\"} 1\\\n</script>"} 0.5"#);
        assert!(text.ends_with("# EOF\n"));
    }
}
