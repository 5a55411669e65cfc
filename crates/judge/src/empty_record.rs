//! A record before anything is measured.

use pubmark_model::cell::Cell;
use pubmark_model::plan::Place;
use pubmark_model::protocol::Flow;
use pubmark_model::record::{
    Counts, FlowRecord, LinkFigures, MachineLoad, OwnFigures, Rates, RunRecord, SCHEMA, Series, Verdict,
};
use pubmark_model::secret::{is_secret_name, recorded};
use pubmark_model::system::System;
use pubmark_model::times::TimeFigures;
use pubmark_model::tuning::Tuning;
use serde_json::Map;
use std::collections::BTreeMap;

fn blank_flow(Flow { name, workload }: Flow) -> FlowRecord {
    FlowRecord { name, own: Some(Box::new(OwnFigures::blank(workload.recorded()))), ..FlowRecord::default() }
}

/// Returns an empty record of a run, with all that is known before the run.
pub fn blank(cell: &Cell, system: Option<&System>, place: Place, started: String) -> RunRecord {
    let secret = |name: &str| system.map_or_else(|| is_secret_name(name), |system| system.is_secret(name));
    RunRecord {
        schema: SCHEMA,
        cell: cell.axes.clone(),
        repeat: place.repeat,
        session: 1,
        position: place.position,
        system: cell.system.name.clone(),
        versions: [("pubmark".to_owned(), env!("CARGO_PKG_VERSION").into())].into_iter().collect(),
        started,
        workload: cell.workload.recorded(),
        options: recorded(&cell.options, secret),
        settings: system.and_then(|system| Tuning::of(system, cell.settings, &cell.options, &cell.workload)),
        applied: Map::new(),
        window_ns: 0,
        counts: Counts::default(),
        refusals: Vec::new(),
        limits_reached: Vec::new(),
        violations: BTreeMap::new(),
        rates: Rates::default(),
        times: TimeFigures::none(),
        pacing: None,
        jitter_ns: None,
        server: None,
        deployment: None,
        connections: None,
        churn: None,
        wills: None,
        discovery_ns: None,
        pilot: None,
        wire: None,
        generator: None,
        faults: cell.script(place.repeat),
        fault_log: Vec::new(),
        recovery: None,
        link: cell.link.map(|asked| LinkFigures { asked, usage: None }),
        agents: Vec::new(),
        drain_time_ns: None,
        catch_up: None,
        rebalances: None,
        stalls: None,
        system_file: None,
        histograms: TimeFigures::none(),
        series: Series::default(),
        subscribers: Vec::new(),
        flows: if cell.flows.is_empty() { Vec::new() } else { cell.flows().into_iter().map(blank_flow).collect() },
        usage_series: None,
        phases: None,
        machine: MachineLoad::default(),
        hosts: Vec::new(),
        clocks: Vec::new(),
        remarks: Vec::new(),
        error: None,
        verdict: Verdict::default(),
    }
}
