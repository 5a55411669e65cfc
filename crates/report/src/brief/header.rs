//! Title, workload and warnings: the first lines of the short result.

use super::block::{NAME_CHARS, grouped, rate};
use super::duration::elapsed;
use super::line::{Line, Tone, Wrapping};
use crate::analysis::{CellResult, Status};
use crate::axes::{axis_name, axis_value};
use crate::findings::findings;
use crate::report::Report;
use crate::settings;
use crate::text::{clean, counted};
use pubmark_model::cell::Cell;
use pubmark_model::fault;
use pubmark_model::flow::{FLOW, StudyFlow};
use pubmark_model::study::Study;
use pubmark_model::units::{format_size, format_time};
use pubmark_model::workload::{Extent, Rate};
use serde_json::Value;

/// Systems that are named.
const SYSTEMS_MAX: usize = 6;
/// Longest title, in characters.
const TITLE_CHARS: usize = 200;
/// Most lines of a sentence about the machine or about what was delivered.
const SENTENCE_LINES: usize = 3;

/// Returns the title, the workload, a warning about the machine, and the fate of
/// acknowledged messages.
pub(crate) fn lines(report: &Report, width: usize) -> Vec<Line> {
    let title = Wrapping { width, lines_max: 1, indent: 0 };
    let mut lines = title.lines(&clean(&report.study().title, TITLE_CHARS), Tone::Heading);
    lines.extend(Wrapping { width, lines_max: 2, indent: 2 }.lines(&workload(report).join(" · "), Tone::Plain));
    let sentence = Wrapping { width, lines_max: SENTENCE_LINES, indent: 2 };
    let said = findings(report);
    let busy = said.iter().find(|said| said.about == "machine").map(|said| said.text.clone());
    if let Some(warning) = busy.or_else(|| doctor(report)) {
        lines.extend(sentence.lines(&format!("⚠ {warning}"), Tone::Warning));
    }
    // Several capacities have a table.
    let is_one = said.iter().filter(|said| said.about == "capacity").count() == 1;
    for said in said.iter().filter(|said| said.about == "delivery" || said.about == "capacity" && is_one) {
        lines.extend(sentence.lines(&said.text, if said.outcome == "lost" { Tone::Warning } else { Tone::Plain }));
    }
    lines
}

/// Returns what `pubmark doctor` found wrong with the machine before the runs.
fn doctor(report: &Report) -> Option<String> {
    let found = report.environment().get("doctor")?.as_array()?;
    let text = |one: &Value, key: &str| one.get(key).and_then(Value::as_str).map(|text| clean(text, TITLE_CHARS));
    let bad = found.iter().filter(|one| one.get("severity").and_then(Value::as_str) == Some("bad"));
    let said: Vec<String> =
        bad.filter_map(|one| Some(format!("{}: {}", text(one, "what")?, text(one, "found")?))).collect();
    (!said.is_empty()).then(|| format!("before the runs, {} (`pubmark doctor`)", said.join("; ")))
}

/// Returns the systems, what all cells have in common, repeats and duration.
fn workload(report: &Report) -> Vec<String> {
    let study = report.study();
    let run: Vec<&CellResult> = report.cells().iter().filter(|result| result.status != Status::Skipped).collect();
    let mut parts = vec![systems(&run)];
    parts.extend(of_cells(study, &run));
    let options = study.axes.iter().filter(|axis| axis.values.len() == 1 && axis.name.starts_with("options."));
    parts.extend(options.map(|axis| format!("{} {}", axis_name(&axis.name), axis_value(&axis.name, &axis.values[0]))));
    parts.extend(settings::constant(report).filter(|settings| settings.ends_with("stock")));
    parts.push(match study.until_decided() {
        true => "repeated until decided".to_owned(),
        false => counted(study.repeats() as usize, "repeat"),
    });
    parts.extend(elapsed(report.runs()));
    parts.extend(study.quick.then(|| "--quick: do not publish".to_owned()));
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns the systems, references aside unless there is nothing else.
fn systems(run: &[&CellResult]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let has_rivals = run.iter().any(|result| !result.is_reference);
    for result in run.iter().filter(|result| !(result.is_reference && has_rivals)) {
        let name = result.cell.system.name.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.len() {
        0..=SYSTEMS_MAX => names.iter().map(|name| clean(name, NAME_CHARS)).collect::<Vec<_>>().join(", "),
        count => format!("{count} systems"),
    }
}

/// Returns flows, limits, faults and windows, as far as all cells have the same.
fn of_cells(study: &Study, run: &[&CellResult]) -> Vec<String> {
    let Some(first) = run.first().map(|result| &result.cell) else { return Vec::new() };
    let of_flow = |flow: &StudyFlow| {
        let is_of = |result: &&&CellResult| result.cell.axes.get(FLOW).is_some_and(|name| *name == flow.name.as_str());
        let own: Vec<&CellResult> = run.iter().filter(is_of).copied().collect();
        format!("{}: {}", flow.name, traffic(&own).join(", "))
    };
    let mut parts = match study.flows.is_empty() {
        true => traffic(run),
        false => study.flows.iter().map(of_flow).collect(),
    };
    if all(run, |cell| cell.limits == first.limits) {
        parts.extend(first.limits.cpus.map(|cpus| format!("{cpus} CPUs")));
        parts.extend(first.limits.memory_bytes.map(|bytes| format!("{} memory", format_size(bytes))));
    }
    let fault = first.faults.to_string();
    if fault != fault::NONE && all(run, |cell| cell.faults == first.faults) {
        parts.push(clean(&fault, TITLE_CHARS));
    }
    let extent = first.workload.extent;
    if all(run, |cell| cell.workload.extent == extent) {
        parts.push(match extent {
            Extent::TimeNs(ns) => format!("windows of {}", format_time(ns)),
            Extent::Count(count) => format!("{} messages each", grouped(&count.to_string())),
        });
    }
    parts
}

/// Returns the traffic of cells, as far as all have the same.
fn traffic(run: &[&CellResult]) -> Vec<String> {
    let Some(own) = run.first().map(|result| &result.cell.workload) else { return Vec::new() };
    let mut parts = Vec::new();
    if all(run, |cell| cell.workload.pattern == own.pattern) {
        parts.push(own.pattern.to_string());
    }
    if all(run, |cell| (cell.workload.publishers, cell.workload.subscribers) == (own.publishers, own.subscribers)) {
        let (from, to) = (own.publishers as usize, own.subscribers as usize);
        parts.push(format!("{} → {}", counted(from, "publisher"), counted(to, "subscriber")));
    }
    if let Some(transport) = own.transport.filter(|own| all(run, |cell| cell.workload.transport == Some(*own))) {
        parts.push(transport.word().to_owned());
    }
    let same_size = |cell: &Cell| {
        (cell.workload.payload_bytes, &cell.workload.payload_sizes) == (own.payload_bytes, &own.payload_sizes)
    };
    if all(run, same_size) {
        parts.extend(match (&own.payload_sizes, own.sizes_vary()) {
            (Some(sizes), _) => Some(format!("{} (mean {:.0} B)", sizes.text(), sizes.mean_bytes())),
            (None, false) => Some(format_size(own.payload_bytes)),
            // The sizes are those of the trace, which follows.
            (None, true) => None,
        });
    }
    if all(run, |cell| cell.workload.rate == own.rate) && own.rate != Rate::Max {
        parts.push(rate(own));
    }
    if own.qos > 0 && all(run, |cell| cell.workload.qos == own.qos) {
        parts.push(format!("QoS {}", own.qos));
    }
    let arrival = own.arrival.to_string();
    if arrival != "uniform" && all(run, |cell| cell.workload.arrival == own.arrival) {
        parts.push(arrival);
    }
    parts
}

/// Returns whether a condition holds for all cells.
fn all(run: &[&CellResult], is_so: impl Fn(&Cell) -> bool) -> bool {
    run.iter().all(|result| is_so(&result.cell))
}
