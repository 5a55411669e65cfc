//! `pubmark ab`: two settings in turns, until the gates are decided.

use super::bench::{AskedWorkload, study_of};
use super::run::{PAGE, finish, fresh, leave_no_empty, note_replaced};
use super::shared::{agent_command, interrupt_flag, pairs, raise_open_files, system};
use super::target::{is_system, study_at};
use super::{fit, gates};
use crate::args::AbArgs;
use crate::failure::{Code, Failure};
use crate::output::{Voice, colour, print, width};
use crate::progress::turns::TurnsDisplay;
use pubmark_model::ab::ArmsGoal;
use pubmark_model::arms::Arms;
use pubmark_model::study::Study;
use pubmark_model::units::{Ns, SECOND, parse_time};
use pubmark_report::compare::{ArmsResult, GateOutcome, Gates};
use pubmark_study::ask::check_agents;
use pubmark_study::conduct::{Conduct, ConductError};
use pubmark_study::plan::StudyPlan;
use pubmark_study::registry;
use pubmark_study::turns::{TurnsEnd, TurnsEnding, TurnsRequest, take_turns};
use std::path::Path;

/// The window of a run of a target that is no study.
const WINDOW: &str = "3s";

/// Measures two arms in turns, and decides gates.
pub fn ab(args: &AbArgs, voice: Voice) -> Result<Code, Failure> {
    registry::load().map_err(Failure::usage)?;
    raise_open_files();
    let budget_ns = parse_time(&args.budget).map_err(|error| Failure::usage(format!("--budget: {error}")))?;
    let gates = Gates::parse(&args.gates.fail_on, &args.gates.require, true).map_err(Failure::usage)?;
    gates::check_junit(args.gates.junit.as_deref())?;
    if gates.is_empty() {
        return Err(Failure::usage("nothing is asked: give --fail-on 'p99 > +10%', or --require 'p99 < 5ms'"));
    }
    let (name, study) = asked(args)?;
    let arms = Arms { a: arm(&args.a, "--a")?, b: arm(&args.b, "--b")? };
    let goal = ArmsGoal { keys: Vec::new(), fail_on: args.gates.fail_on.clone(), require: args.gates.require.clone() };
    let planned = |errors| Failure::from(ConductError::Plan(errors));
    let study = arms.split(&study, goal, &registry::find).map_err(|error| planned(vec![error]))?;
    let mut plan = StudyPlan::new(study).map_err(planned)?;
    let survey = fit::survey(&plan, false, voice)?;
    let (left_out, left) = fit::leave_out(&mut plan, &survey);
    left_out.iter().for_each(|why| voice.note(&format!("left out: {why}")));
    left.map_err(|error| planned(vec![error]))?;
    check_agents(&plan, &survey.greetings).map_err(planned)?;
    note_replaced(&plan, voice);
    let points = plan.study().ab.as_ref().map(|goal| goal.points(plan.cells())).unwrap_or_default();
    if points.is_empty() {
        return Err(Failure::usage("there is no place at which both A and B can be measured here"));
    }
    let folder = args.out.clone().map_or_else(|| fresh(&format!("ab-{name}")), Ok)?;
    let (interrupt, agent) = (interrupt_flag()?, agent_command()?);
    let how = Conduct { folder: &folder, resume: args.resume, reference: None, agent: &agent, interrupt: &interrupt };
    let request = TurnsRequest { plan: &plan, points: &points, budget_ns };
    let mut display = TurnsDisplay::new(voice, &plan);
    let over = take_turns(&request, &how, &mut display)
        .map_err(Failure::from)
        .inspect_err(|_| leave_no_empty(&folder, args.out.as_deref()))?;
    let report = finish(&folder)?;
    let TurnsEnding { end, round_ns, lock, .. } = over;
    drop(lock);
    // What is said is what the records say: the same as of a report of the folder.
    let Some(found) = report.arms() else {
        return Err(Failure::run(format!("{}: the gates cannot be read back", folder.display())));
    };
    show(args, &plan.study().title, &found);
    gates::write_junit(args.gates.junit.as_deref(), "pubmark ab", &found.gates)?;
    voice.note(&format!("report: {}", folder.join(PAGE).display()));
    Ok(conclude(&found, end, round_ns, &folder, voice))
}

fn show(args: &AbArgs, title: &str, found: &ArmsResult) {
    if args.json {
        print(&serde_json::to_string_pretty(&found.json()).unwrap_or_default());
    } else if args.markdown {
        print(&found.markdown(title));
    } else {
        print(&found.terminal(title, width(), colour()));
    }
}

/// Says what is still open, and by exit code how it came out.
fn conclude(found: &ArmsResult, end: TurnsEnd, round_ns: Ns, folder: &Path, voice: Voice) -> Code {
    match found.gates_say() {
        GateOutcome::Failed => return Code::Gate,
        GateOutcome::Passed => return Code::Done,
        GateOutcome::TooNoisy | GateOutcome::Undecided => {}
    }
    let why = match end {
        TurnsEnd::Interrupted => "interrupted: finished runs are kept",
        TurnsEnd::Failing => "undecided: run after run could not be made",
        TurnsEnd::Most => "undecided after as many blocks as there may be",
        TurnsEnd::Time | TurnsEnd::Told => "undecided in the time",
    };
    let more = match found.more() {
        Some(blocks) => {
            let seconds = (blocks as u64 * round_ns).div_ceil(SECOND).max(1);
            format!(
                "about {blocks} blocks more would tell, as far as can be seen: the same command with --budget {seconds}s"
            )
        }
        None => "how much more would tell cannot be said yet: the same command with a longer --budget".to_owned(),
    };
    voice.note(&format!("{why}; {more}, --out {} and --resume goes on", folder.display()));
    Code::Run
}

/// The keys of an arm. A system that is named by its file is known by its name.
fn arm(typed: &[String], flag: &str) -> Result<Vec<(String, String)>, Failure> {
    let one = |(key, value): (String, String)| match key.as_str() {
        "system" => Ok((key, system(&value)?.name.clone())),
        _ => Ok((key, value)),
    };
    pairs(typed, flag)?.into_iter().map(one).collect()
}

/// What is measured, before it has arms: its name, and its study.
fn asked(args: &AbArgs) -> Result<(String, Study), Failure> {
    let target = args.target.as_str();
    if !is_system(target) {
        let window = args.duration.iter().map(|window| ("duration".to_owned(), window.clone())).collect();
        return study_at(target, window, &args.only, &args.workload);
    }
    if !args.only.is_empty() {
        return Err(Failure::usage("--only narrows a study, and this is one system with one workload"));
    }
    let mut workload = AskedWorkload::of(target, &args.workload);
    let window = args.duration.clone().unwrap_or_else(|| WINDOW.into());
    let is_set = |key: &str| args.workload.set.iter().any(|set| set.split('=').next().map(str::trim) == Some(key));
    if args.duration.is_some() || !(is_set("duration") || is_set("count")) {
        workload.set.push(("duration".into(), window));
    }
    let study = study_of(workload)?;
    let name = study.axis("system").and_then(|axis| axis.values[0].as_str()).unwrap_or(target).to_owned();
    Ok((name, study))
}
