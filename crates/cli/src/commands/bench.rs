//! `pubmark bench`: measures one cell without a file.

use super::shared::{by_flags, hosts, pairs, system};
use super::study::{StudyTarget, measure_study};
use super::{budget, gates, measure};
use crate::args::{BenchArgs, MeasureArgs, WorkloadArgs};
use crate::failure::{Code, Failure};
use crate::output::Voice;
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::flow::{OWN_KEYS, why_no_name};
use pubmark_model::line::JsonLine;
use pubmark_model::question::{AskedQuestions, Precision};
use pubmark_model::record::RunRecord;
use pubmark_model::setting::StopRule;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_model::system::System;
use pubmark_report::{Report, read_records};
use pubmark_study::plan::StudyPlan;
use pubmark_study::registry::Registry;
use pubmark_study::study_files;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Default time limit of `--precision`.
const BUDGET: &str = "5m";

/// Measures one system with one workload.
pub fn bench(args: &BenchArgs, mut registry: Registry, voice: Voice) -> Result<Code, Failure> {
    measure::begin(&args.measure)?;
    let gates = gates::own(&args.gates)?;
    let budget_ns =
        args.precision.is_some().then(|| budget::read(args.budget.as_deref().unwrap_or(BUDGET))).transpose()?;
    let mut plan = StudyPlan::new(study(args, &mut registry)?).map_err(measure::planned)?;
    let gates = gates.of_flows(&plan.study().flows).map_err(Failure::usage)?;
    let asked = plan.extent();
    measure::prepare(&mut plan, &args.measure, &measure::planned, voice)?;
    let system = plan.study().axis("system").and_then(|axis| axis.values[0].as_str()).unwrap_or_default();
    let target = StudyTarget { name: &format!("bench-{system}"), reference: None, earlier: Vec::new(), asked };
    let Some(measured) = measure_study(&plan, target, budget_ns, &args.measure, (&registry, voice))? else {
        return Ok(Code::Done);
    };
    let result = (&measured.report, measured.folder());
    measure::show_study((&args.measure, args.all), result, voice, || {
        // Records as they were written: a report keeps less of each.
        let records = read_records(measured.folder()).map_err(Failure::run)?.runs;
        let records: Vec<RunRecord> = records.into_iter().flat_map(RunRecord::by_flow).collect();
        Ok(told(&measured.report, &records))
    })?;
    measured.conclude((&gates, &args.gates), "pubmark bench", &args.measure, voice)
}

/// Returns the cell with its runs and its figures or, if lists were given, all cells.
fn told(report: &Report, records: &[RunRecord]) -> Value {
    let summary = report.summary_json();
    let of_cell = |cell: usize| {
        let axes = &report.cells()[cell].cell.axes;
        let runs = records.iter().filter(|record| record.cell == *axes);
        let runs: Vec<Value> = runs.filter_map(|record| serde_json::from_slice(&record.to_json().ok()?).ok()).collect();
        json!({"cell": axes, "runs": runs, "summary": summary[cell]})
    };
    match report.cells().len() {
        1 => of_cell(0),
        cells => json!({"cells": (0..cells).map(of_cell).collect::<Vec<_>>()}),
    }
}

/// Returns a study of one cell or, if lists were given, of several. Its axes are the arguments given.
fn study(args: &BenchArgs, registry: &mut Registry) -> Result<Study, Failure> {
    let mut workload = AskedWorkload::of(&args.target, &args.workload, &args.measure);
    let own = [("duration", &args.duration), ("count", &args.count), ("repeats", &args.repeats)];
    workload.set.extend(own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))));
    workload.set.extend(args.headroom.then(|| ("headroom".to_owned(), "true".to_owned())));
    let Some(precision) = &args.precision else { return study_of(workload, registry) };
    let within = Precision::parse(precision).map_err(|error| Failure::usage(format!("--precision: {error}")))?;
    workload.set.push(("stop".into(), StopRule::Decided.to_string()));
    let mut study = study_of(workload, registry)?;
    study.questions = Some(AskedQuestions { within: vec![within], ..AskedQuestions::none() });
    Ok(study)
}

/// A workload from the command line.
pub struct AskedWorkload<'a> {
    target: &'a str,
    given: &'a WorkloadArgs,
    measure: &'a MeasureArgs,
    /// Additional keys to set.
    pub set: Vec<(String, String)>,
}

impl<'a> AskedWorkload<'a> {
    /// Returns the workload of these arguments.
    pub fn of(target: &'a str, given: &'a WorkloadArgs, measure: &'a MeasureArgs) -> AskedWorkload<'a> {
        AskedWorkload { target, given, measure, set: Vec::new() }
    }
}

/// Returns a study of one cell, whose axes are the arguments given.
pub fn study_of(workload: AskedWorkload<'_>, registry: &mut Registry) -> Result<Study, Failure> {
    let AskedWorkload { target, given: args, measure, set: own } = workload;
    let endpoint = match target.contains("://") {
        true => Some(Endpoint::parse(target).map_err(Failure::usage)?),
        false => None,
    };
    let qos = args.qos.as_ref().and_then(|qos| qos.parse().ok());
    let system = match &endpoint {
        Some(endpoint) => of_endpoint(endpoint, qos, registry)?,
        None => system(registry, target)?,
    };
    let systems = |name: &str| registry.find(name);
    let mut set = Vec::new();
    if let (None, Some(first)) = (&args.transport, system.transports.first()) {
        set.push(("transport".to_owned(), first.word().to_owned()));
    }
    let names_qos = args.qos.is_some() || args.set.iter().any(|pair| pair.starts_with("qos="));
    if let Some(least) = system.qos.iter().min().filter(|least| **least > 0 && !names_qos) {
        set.push(("qos".to_owned(), least.to_string()));
    }
    set.extend(args.typed());
    let own_flags: Vec<String> = own.iter().map(|(key, _)| key.clone()).collect();
    set.extend(own);
    if endpoint.is_some() {
        set.push(("options.endpoint".into(), target.to_owned()));
    }
    set.extend(pairs(&args.set, "--set")?);
    let flags: Vec<String> = own_flags.into_iter().chain(args.typed().into_iter().map(|(key, _)| key)).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let flows = args.flow.iter().map(|text| flow(text)).collect::<Result<String, Failure>>()?;
    let name = &system.name;
    let text = format!("title = \"{name}\"\nquestion = \"\"\n[axes]\nsystem = [\"{name}\"]\n{flows}");
    let reading = ReadOptions { set: &set, ..ReadOptions::default() };
    let mut study = Study::parse("the command line", &text, &systems, &reading).map_err(|errors| {
        let errors = by_flags(errors, &flags).errors;
        let line = |error: &Diagnostic| match &error.help {
            Some(help) => format!("{}\n  help: {help}", error.message),
            None => error.message.clone(),
        };
        let lines: Vec<String> = errors.iter().map(line).collect();
        Failure::usage(lines.join("\n"))
    })?;
    study_files::load(&mut study, Path::new("")).map_err(Failure::usage)?;
    if let Some(named) = &measure.hosts {
        study.hosts = hosts(named)?;
    }
    match study.flows.is_empty() {
        true => study.lift(&[
            "transport",
            "pattern",
            "pairs",
            "publishers",
            "subscribers",
            "rate",
            "trace",
            "payload",
            "agents",
        ]),
        false => study.lift(&["transport", "agents"]),
    }
    Ok(study)
}

/// Returns the system for a server at an endpoint: that of the protocol, or one with the same driver that has this
/// quality of service.
fn of_endpoint(endpoint: &Endpoint, qos: Option<u8>, registry: &mut Registry) -> Result<Arc<System>, Failure> {
    let usual = system(registry, endpoint.protocol.word())?;
    let Some(qos) = qos.filter(|qos| !usual.qos.contains(qos)) else { return Ok(usual) };
    let fits = |other: &Arc<System>| other.driver == usual.driver && other.qos.contains(&qos);
    Ok(registry.systems().into_iter().find(fits).unwrap_or(usual))
}

/// Returns the table of a study for a flow as typed: `NAME: PATTERN, KEY=VALUE, …`.
fn flow(text: &str) -> Result<String, Failure> {
    let wrong = |what: &str| {
        let form = "write it as 'alarms: fan-out, subscribers=10, rate=20, payload=64B'";
        Failure::usage(format!("--flow '{text}': {what}: {form}"))
    };
    let (name, keys) = text.split_once(':').ok_or_else(|| wrong("there is no name before a colon"))?;
    if let Some(why) = why_no_name(name.trim()) {
        return Err(wrong(&why));
    }
    let mut table = format!("[flows.{}]\n", name.trim());
    for part in keys.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or(("pattern", part));
        let key = key.trim().replace('-', "_");
        if !OWN_KEYS.contains(&key.as_str()) {
            return Err(wrong(&format!("a flow has no key `{key}`; it has: {}", OWN_KEYS.join(", "))));
        }
        table += &format!("{key} = {}\n", json!(value.trim()));
    }
    Ok(table)
}
