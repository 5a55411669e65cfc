//! `pubmark ab`: measures two settings in turns until the gates are decided.

use super::bench::{AskedWorkload, study_of};
use super::measure::{Measurement, PAGE, planned};
use super::shared::{pairs, system};
use super::target::{is_system, study_at};
use super::{gates, measure, promises};
use crate::args::AbArgs;
use crate::failure::{Code, Failure};
use crate::output::{Voice, print};
use crate::progress::estimate::{cost, in_words};
use crate::progress::table::CANNOT_ESTIMATE;
use pubmark_model::ab::{ArmsGoal, ArmsPoint};
use pubmark_model::arms::Arms;
use pubmark_model::promise::Promise;
use pubmark_model::record::RunRecord;
use pubmark_model::study::Study;
use pubmark_model::units::{Ns, SECOND, parse_time};
use pubmark_report::compare::{ArmsResult, GateOutcome, GateResult, Gates};
use pubmark_report::words::{BROKEN, HELD};
use pubmark_study::plan::StudyPlan;
use pubmark_study::registry::Registry;
use pubmark_study::strategy::Decided;
use pubmark_study::turns::{Turns, TurnsEnd, TurnsLook};
use std::path::Path;

/// Default window of a run of a target that is not a study.
const WINDOW: &str = "3s";

/// Measures two arms in turns, and decides gates.
pub fn ab(args: &AbArgs, mut registry: Registry, voice: Voice) -> Result<Code, Failure> {
    promises::refuse(args.promise.as_deref(), "ab")?;
    measure::begin(&args.measure)?;
    let budget_ns = parse_time(&args.budget).map_err(|error| Failure::usage(format!("--budget: {error}")))?;
    let gates = Gates::parse(&args.gates.fail_on, &args.gates.require, true).map_err(Failure::usage)?;
    gates::check_junit(args.gates.junit.as_deref())?;
    if gates.is_empty() {
        return Err(Failure::usage("nothing is asked: give --fail-on 'p99 > +10%', or --require 'p99 < 5ms'"));
    }
    let (name, study) = asked(args, &mut registry)?;
    promises::refuse(study.promise().map(Promise::word), "ab")?;
    gates.of_flows(&study.flows).map_err(Failure::usage)?;
    let arms = Arms { a: arm(&args.a, "--a", &mut registry)?, b: arm(&args.b, "--b", &mut registry)? };
    let goal = ArmsGoal { keys: Vec::new(), fail_on: args.gates.fail_on.clone(), require: args.gates.require.clone() };
    let study = arms.split(&study, goal, &|name| registry.find(name)).map_err(|error| planned(vec![error]))?;
    let mut plan = StudyPlan::new(study).map_err(planned)?;
    measure::prepare(&mut plan, &args.measure, &planned, voice)?;
    let points = plan.study().ab.as_ref().map(|goal| goal.points(plan.cells())).unwrap_or_default();
    if points.is_empty() {
        return Err(Failure::usage("there is no place at which both A and B can be measured here"));
    }
    if args.measure.dry_run {
        dry_run(&plan, &points, args);
        return Ok(Code::Done);
    }
    let mut measurement = Measurement::begin(&args.measure, &format!("ab-{name}"), &registry, voice)?;
    let mut look = |records: &[RunRecord]| look(&plan, records);
    let mut strategy = Turns::new(&plan, &points, budget_ns, &mut look);
    let ending = measurement.measure(&plan, None, &mut strategy)?;
    let (end, block_ns) = (strategy.end(), strategy.all_points_ns());
    let report = measurement.report()?;
    let folder = measurement.folder();
    // The output comes from the records, like a later report of the folder.
    let Some(found) = report.arms() else {
        return Err(Failure::run(format!("{}: the gates cannot be read back", folder.display())));
    };
    let title = &plan.study().title;
    let terminal = |width, colour| found.terminal(title, width, colour);
    measure::show(&args.measure, || Ok(found.json()), || found.markdown(title), terminal)?;
    gates::write_junit(args.gates.junit.as_deref(), "pubmark ab", &found.gates)?;
    voice.note(&format!("report: {}", folder.join(PAGE).display()));
    let why = match end {
        _ if ending.interrupted => "interrupted: finished runs are kept",
        TurnsEnd::Failing => "open: run after run failed",
        TurnsEnd::Most => "open after the largest number of blocks",
        TurnsEnd::Time | TurnsEnd::Told => "open when the budget was used up",
    };
    let code = conclude(&found, why, block_ns, folder, voice);
    measurement.linger();
    Ok(code)
}

/// Prints the points at which both arms would be measured, and the maximum time.
fn dry_run(plan: &StudyPlan, points: &[ArmsPoint], args: &AbArgs) {
    let cells = plan.cells();
    let mut block_ns: Ns = 0;
    for point in points {
        for (arm, cell) in [("A", &cells[point.a]), ("B", &cells[point.b])] {
            print(&format!("{arm}: {}", cell.label()));
            block_ns += cost(cell);
        }
    }
    print(&format!("a run of each takes about {}; they take turns for {} at most", in_words(block_ns), args.budget));
}

/// Summarizes the records of two arms so far.
fn look(plan: &StudyPlan, records: &[RunRecord]) -> TurnsLook {
    let runs: Vec<&RunRecord> = records.iter().collect();
    // The gates were parsed before anything was measured.
    let Ok(Some(found)) = ArmsResult::of(plan.study(), plan.cells(), &runs) else { return TurnsLook::default() };
    let mut look = TurnsLook { blocks_more: found.more(), wanted: found.wanted, ..TurnsLook::default() };
    for gate in &found.gates {
        let mut decided = |gate: &GateResult, answer: &str| {
            look.decided.push(Decided { text: format!("`{}`", gate.gate), answer: answer.to_owned() });
        };
        match gate.outcome {
            GateOutcome::Passed => decided(gate, HELD),
            GateOutcome::Failed => decided(gate, BROKEN),
            GateOutcome::TooNoisy | GateOutcome::Undecided => look.open.push(gate.sentence()),
        }
    }
    look
}

/// Prints what is still open. Returns the exit code.
fn conclude(found: &ArmsResult, why: &str, block_ns: Ns, folder: &Path, voice: Voice) -> Code {
    match found.gates_say() {
        GateOutcome::Failed => return Code::Gate,
        GateOutcome::Passed => return Code::Done,
        GateOutcome::TooNoisy | GateOutcome::Undecided => {}
    }
    let more = match found.more() {
        Some(blocks) => {
            let seconds = (blocks as u64 * block_ns).div_ceil(SECOND).max(1);
            format!("about {blocks} more blocks needed; to continue, use the same command with --budget {seconds}s")
        }
        None => format!("{CANNOT_ESTIMATE}; to continue, use the same command with a longer --budget"),
    };
    voice.note(&format!("{why}; {more}, --out {} and --resume", folder.display()));
    Code::Run
}

/// Returns the keys of an arm. Replaces a system file's path by the system's name.
fn arm(typed: &[String], flag: &str, registry: &mut Registry) -> Result<Vec<(String, String)>, Failure> {
    let mut one = |(key, value): (String, String)| match key.as_str() {
        "system" => Ok((key, system(registry, &value)?.name.clone())),
        _ => Ok((key, value)),
    };
    pairs(typed, flag)?.into_iter().map(&mut one).collect()
}

/// Returns name and study of the measurement, before it has arms.
fn asked(args: &AbArgs, registry: &mut Registry) -> Result<(String, Study), Failure> {
    let target = args.target.as_str();
    if !is_system(target, registry) {
        let window = args.duration.iter().map(|window| ("duration".to_owned(), window.clone())).collect();
        return study_at(target, window, &args.only, (&args.workload, &args.measure), registry);
    }
    if !args.only.is_empty() {
        return Err(Failure::usage("--only narrows a study, and this is one system with one workload"));
    }
    let mut workload = AskedWorkload::of(target, &args.workload, &args.measure);
    let window = args.duration.clone().unwrap_or_else(|| WINDOW.into());
    let is_set = |key: &str| args.workload.set.iter().any(|set| set.split('=').next().map(str::trim) == Some(key));
    if args.duration.is_some() || !(is_set("duration") || is_set("count")) {
        workload.set.push(("duration".into(), window));
    }
    let study = study_of(workload, registry)?;
    let name = study.axis("system").and_then(|axis| axis.values[0].as_str()).unwrap_or(target).to_owned();
    Ok((name, study))
}
