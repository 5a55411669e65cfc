//! `pubmark bench`: one cell without a file.

use super::gates;
use super::run::{Carried, Outlets, WayOn, carry_out, conclude, finish, fresh, leave_no_empty, missing, note_replaced};
use super::shared::{hosts, pairs, raise_open_files, system};
use crate::args::{BenchArgs, WorkloadArgs};
use crate::failure::{Code, Failure};
use crate::output::{Voice, colour, print, width};
use pubmark_model::endpoint::Endpoint;
use pubmark_model::line::JsonLine;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_report::read_records;
use pubmark_study::ask::check_options;
use pubmark_study::conduct::ConductError;
use pubmark_study::fit::leave_out;
use pubmark_study::plan::StudyPlan;
use pubmark_study::registry;
use serde_json::{Value, json};

/// Measures one system by one workload.
pub fn bench(args: &BenchArgs, voice: Voice) -> Result<Code, Failure> {
    registry::load().map_err(Failure::usage)?;
    raise_open_files();
    let gates = gates::own(&args.gates)?;
    let study = study(args)?;
    let mut plan = StudyPlan::new(study).map_err(|errors| Failure::from(ConductError::Plan(errors)))?;
    if let Some(why) = leave_out(&mut plan, &missing).0.first() {
        return Err(Failure::usage(why));
    }
    check_options(&plan).map_err(|errors| Failure::from(ConductError::Plan(errors)))?;
    note_replaced(&plan, voice);
    let study = plan.study();
    let system = study.axis("system").and_then(|axis| axis.values[0].as_str()).unwrap_or_default();
    let name = format!("bench-{system}");
    let folder = args.out.clone().map_or_else(|| fresh(&name), Ok)?;
    let outlets = Outlets { metrics: args.serving.metrics, watch: None };
    let Carried { over: ending, lock, .. } = carry_out(&plan, None, &folder, false, voice, outlets)
        .map_err(|error| WayOn::Again.advise(error))
        .inspect_err(|_| leave_no_empty(&folder, args.out.as_deref()))?;
    let report = finish(&folder)?;
    drop(lock);
    if args.json {
        // As they are written: a report has less of each.
        let records = read_records(&folder).map_err(Failure::run)?.runs;
        let runs: Vec<Value> =
            records.iter().filter_map(|record| serde_json::from_slice(&record.to_json().ok()?).ok()).collect();
        let cell = records.first().map(|record| record.cell.clone()).unwrap_or_default();
        let summary = report.summary_json().as_array().and_then(|rows| rows.first().cloned()).unwrap_or_default();
        print(
            &serde_json::to_string_pretty(&json!({"cell": cell, "runs": runs, "summary": summary})).unwrap_or_default(),
        );
    } else if args.markdown {
        print(&report.markdown());
    } else {
        print(&report.terminal(width(), colour()));
    }
    let code = conclude(&ending, &report, &folder, voice, WayOn::Again);
    let gate = gates::decide(&report, &gates, &args.gates, "pubmark bench", voice)?;
    Ok(gate.map_or(code, |gate| gate.worst(code)))
}

/// A study of one cell, whose axes are what was asked for.
fn study(args: &BenchArgs) -> Result<Study, Failure> {
    let mut workload = AskedWorkload::of(&args.target, &args.workload);
    let own = [("duration", &args.duration), ("count", &args.count), ("repeats", &args.repeats)];
    workload.set.extend(own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))));
    study_of(workload)
}

/// A workload as it was asked for.
pub struct AskedWorkload<'a> {
    target: &'a str,
    given: &'a WorkloadArgs,
    /// Keys that are set beside it.
    pub set: Vec<(String, String)>,
}

impl<'a> AskedWorkload<'a> {
    /// What these arguments say.
    pub fn of(target: &'a str, given: &'a WorkloadArgs) -> AskedWorkload<'a> {
        AskedWorkload { target, given, set: Vec::new() }
    }
}

/// A study of one cell, whose axes are what was asked for.
pub fn study_of(workload: AskedWorkload<'_>) -> Result<Study, Failure> {
    let AskedWorkload { target, given: args, set: own } = workload;
    let endpoint = match target.contains("://") {
        true => Some(Endpoint::parse(target).map_err(Failure::usage)?),
        false => None,
    };
    let name = endpoint.as_ref().map_or(target, |endpoint| endpoint.protocol.word());
    let system = system(name)?;
    let mut set = Vec::new();
    if let (None, Some(first)) = (&args.transport, system.transports.first()) {
        set.push(("transport".to_owned(), first.word().to_owned()));
    }
    set.extend(args.typed());
    set.extend(own);
    if endpoint.is_some() {
        set.push(("options.endpoint".into(), target.to_owned()));
    }
    set.extend(pairs(&args.set, "--set")?);
    let text = format!("title = \"{name}\"\nquestion = \"\"\n[axes]\nsystem = [\"{name}\"]\n", name = system.name);
    let reading = ReadOptions { set: &set, ..ReadOptions::default() };
    let mut study = Study::parse("the command line", &text, &registry::find, &reading).map_err(|errors| {
        let lines: Vec<String> = errors
            .errors
            .iter()
            .map(|error| {
                let message = error.message.replace("--set ", "--");
                error.help.as_ref().map_or(message.clone(), |help| format!("{message}\n  help: {help}"))
            })
            .collect();
        Failure::usage(lines.join("\n"))
    })?;
    if let Some(named) = &args.hosts {
        study.hosts = hosts(named)?;
    }
    study.lift(&["transport", "pattern", "pairs", "publishers", "subscribers", "rate", "payload", "agents"]);
    Ok(study)
}
