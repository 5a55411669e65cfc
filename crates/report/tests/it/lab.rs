//! Studies and run records made by hand.

use pubmark_model::cell::Cell;
use pubmark_model::plan;
use pubmark_model::record::{FigureGroup, Finding, Reason, RunRecord, SCHEMA, Usage, Verdict};
use pubmark_model::study::{ReadOptions, Study};
use pubmark_model::system::System;
use pubmark_model::times::TimeFigures;
use pubmark_report::{CellResult, Records, Report};
use pubmark_stats::Histogram;
use std::path::Path;
use std::sync::{Arc, LazyLock};

static SYSTEMS: LazyLock<Vec<System>> = LazyLock::new(|| {
    let file = |name: &str| {
        format!(
            "title = \"{name}\"\nabout = \"a\"\nlicence = \"MIT\"\nhomepage = \"h\"\n\
             driver = \"mock\"\npatterns = [\"pairs\", \"request-reply\"]\nqos = [0, 1, 2]\n"
        )
    };
    let server = "[server]\nendpoint = \"mqtt://127.0.0.1:{port}\"\ncommand = [\"delta\"]\n";
    let broker = file("delta").replace("\"mock\"", "\"mqtt\"") + server;
    let others =
        ["alpha", "beta", "gamma", "kernel", "mock"].map(|name| System::parse(name, name, &file(name)).unwrap());
    // A binding, and the floor of its language.
    let bound = file("bound").replace("driver", "floor = \"floor\"\ndriver");
    let floor = file("floor").replace("\"mock\"", "\"null\"");
    let stream = broker.replace("mqtt", "nats");
    let more = [("delta", broker), ("stream", stream), ("bound", bound), ("floor", floor)];
    others.into_iter().chain(more.map(|(name, text)| System::parse(name, name, &text).unwrap())).collect()
});

/// The systems that the studies of these tests may name.
pub fn systems(name: &str) -> Option<Arc<System>> {
    SYSTEMS.iter().find(|system| system.name == name).cloned().map(Arc::new)
}

/// A study and its records so far.
pub struct Lab {
    pub study: Study,
    cells: Vec<Cell>,
    pub records: Records,
}

impl Lab {
    /// A study with these lines after its title.
    pub fn new(text: &str) -> Lab {
        let text = format!("title = \"T\"\nquestion = \"Q?\"\n{text}");
        let study = Study::parse("study.toml", &text, &systems, &ReadOptions::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let cells = plan::cells(&study).unwrap();
        Lab { study, cells, records: Records::default() }
    }

    /// Adds a valid run of the cell with this label, changed by `change`.
    pub fn run(&mut self, label: &str, repeat: u32, change: impl FnOnce(&mut RunRecord)) {
        let cell = self.cells.iter().find(|cell| cell.label() == label);
        let cell = cell.unwrap_or_else(|| panic!("no cell `{label}`"));
        let mut record = record(cell, repeat);
        change(&mut record);
        self.records.runs.push(record);
    }

    /// Adds runs of a cell, all of whose messages took one of these times each.
    pub fn latencies(&mut self, label: &str, each_ns: &[u64]) {
        for (repeat, ns) in (1..).zip(each_ns) {
            self.run(label, repeat, |run| latency(run, &[(*ns, 20_000)]));
        }
    }

    /// Adds runs of a cell, each with a rate of delivery.
    pub fn rates(&mut self, label: &str, each_per_s: &[f64]) {
        for (repeat, rate) in (1..).zip(each_per_s) {
            self.run(label, repeat, |run| run.rates.delivered_per_s = *rate);
        }
    }

    pub fn report(&self) -> Report {
        Report::of(self.study.clone(), &self.records).unwrap()
    }

    /// Writes the results folder, with this after the records.
    pub fn write(&self, dir: &Path, tail: &str) {
        std::fs::write(dir.join("study.toml"), self.study.to_toml()).unwrap();
        let lines: String = self.records.runs.iter().map(|run| serde_json::to_string(run).unwrap() + "\n").collect();
        std::fs::write(dir.join("runs.jsonl"), lines + tail).unwrap();
    }
}

/// A valid run with nothing measured but a full delivery.
fn record(cell: &Cell, repeat: u32) -> RunRecord {
    let mut run = RunRecord {
        churn: None,
        wills: None,
        drain_time_ns: None,
        catch_up: None,
        rebalances: None,
        schema: SCHEMA,
        cell: cell.axes.clone(),
        repeat,
        session: 1,
        position: 0,
        system: cell.system.name.clone(),
        versions: Default::default(),
        started: "2026-01-01T00:00:00Z".into(),
        workload: cell.workload.clone(),
        options: Default::default(),
        refusals: Vec::new(),
        limits_reached: Vec::new(),
        violations: Default::default(),
        settings: None,
        applied: Default::default(),
        window_ns: 1_000_000_000,
        counts: Default::default(),
        rates: Default::default(),
        times: TimeFigures::none(),
        pacing: None,
        jitter_ns: None,
        server: None,
        deployment: None,
        connections: None,
        discovery_ns: None,
        pilot: None,
        wire: None,
        generator: None,
        agents: Vec::new(),
        stalls: None,
        system_file: None,
        histograms: TimeFigures::none(),
        flows: Vec::new(),
        subscribers: Vec::new(),
        series: Default::default(),
        usage_series: None,
        phases: None,
        machine: Default::default(),
        hosts: Vec::new(),
        clocks: Vec::new(),
        remarks: Vec::new(),
        error: None,
        faults: Default::default(),
        fault_log: Vec::new(),
        recovery: None,
        link: None,
        verdict: Verdict { valid: true, ..Verdict::default() },
    };
    run.counts.expected = 20_000;
    run.counts.delivered = 20_000;
    run.counts.corrupted = Some(0);
    run.rates.delivered_per_s = 20_000.0;
    run
}

/// Gives a run latencies: times with how many messages took them.
pub fn latency(run: &mut RunRecord, times: &[(u64, u64)]) {
    let histogram = histogram(times);
    run.times.latency = histogram.summary();
    run.histograms.latency = Some(histogram.encode());
}

pub fn histogram(times: &[(u64, u64)]) -> Histogram {
    let mut histogram = Histogram::latency();
    for (ns, count) in times {
        histogram.record_n(*ns, *count);
    }
    histogram
}

/// Makes a run invalid.
pub fn spoil(run: &mut RunRecord, reason: Reason, evidence: &str) {
    run.verdict.valid = false;
    run.verdict.reasons.push(Finding {
        reason,
        evidence: evidence.into(),
        figures: FigureGroup::all(),
        overload: false,
    });
}

/// Makes some figures of a run not to be quoted.
pub fn spoil_for(run: &mut RunRecord, reason: Reason, figures: &[FigureGroup]) {
    run.verdict.valid = false;
    run.verdict.reasons.push(Finding { reason, evidence: "seen".into(), figures: figures.into(), overload: false });
}

/// Makes a run one whose system did not carry the load.
pub fn overload(run: &mut RunRecord) {
    spoil_for(run, Reason::NotSteady, FigureGroup::LATENCY);
    run.verdict.reasons.iter_mut().for_each(|finding| finding.overload = true);
}

/// Makes a run one that could not be made.
pub fn fail(run: &mut RunRecord, error: &str) {
    run.error = Some(error.into());
    spoil(run, Reason::Failed, error);
}

pub fn usage(cpu_s: f64) -> Usage {
    Usage { cpu_s, cpu_cores: cpu_s, ..Usage::default() }
}

/// The cell with this label.
pub fn cell<'a>(report: &'a Report, label: &str) -> &'a CellResult {
    let mut cells = report.cells().iter();
    let found = cells.find(|result| result.cell.label() == label);
    found.unwrap_or_else(|| panic!("no cell `{label}`"))
}
