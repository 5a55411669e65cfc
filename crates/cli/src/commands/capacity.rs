//! `pubmark capacity`: the highest load at which an objective holds.

use super::bench::{AskedWorkload, study_of};
use super::run::{PAGE, finish, fresh, leave_no_empty, missing, note_replaced};
use super::shared::{agent_command, interrupt_flag, raise_open_files};
use crate::args::CapacityArgs;
use crate::failure::{Code, Failure};
use crate::output::{Voice, colour, print, width};
use crate::progress::climb::ClimbDisplay;
use pubmark_model::capacity::{CapacityGoal, LoadAxis, WITHIN};
use pubmark_model::objective::Objective;
use pubmark_model::setting::as_typed;
use pubmark_model::study::Study;
use pubmark_model::units::{Ns, SECOND, parse_time};
use pubmark_report::{CapacityResult, Report};
use pubmark_study::ask::check_options;
use pubmark_study::climb::{CapacityRequest, climb, first};
use pubmark_study::conduct::{Conduct, ConductError};
use pubmark_study::fit::leave_out;
use pubmark_study::plan::StudyPlan;
use pubmark_study::registry;
use serde_json::json;

/// The window of a step, where the run of full length has not a shorter one.
const STEP: Ns = 4 * SECOND;
/// Messages a second, of all publishers together, that a search over rates begins with.
const START_PER_S: f64 = 400.0;

/// Searches for the capacity of a system.
pub fn capacity(args: &CapacityArgs, voice: Voice) -> Result<Code, Failure> {
    registry::load().map_err(Failure::usage)?;
    raise_open_files();
    let budget_ns = parse_time(&args.budget).map_err(|error| Failure::usage(format!("--budget: {error}")))?;
    let full_ns = parse_time(&args.duration).map_err(|error| Failure::usage(format!("--duration: {error}")))?;
    if full_ns < SECOND || budget_ns < full_ns {
        return Err(Failure::usage("--duration is 1s or more, and --budget no shorter than it"));
    }
    let (study, goal) = asked(args)?;
    let request = CapacityRequest { study: &study, step_ns: STEP.min(full_ns), full_ns, budget_ns };
    let planned = |errors| Failure::from(ConductError::Plan(errors));
    let mut plan = first(&request, &goal).map_err(planned)?;
    if let Some(why) = leave_out(&mut plan, &missing).0.first() {
        return Err(Failure::usage(why));
    }
    check_options(&plan).map_err(planned)?;
    note_replaced(&plan, voice);
    let system = study.axis("system").and_then(|axis| axis.values[0].as_str()).unwrap_or_default();
    let folder = args.out.clone().map_or_else(|| fresh(&format!("capacity-{system}")), Ok)?;
    let (interrupt, agent) = (interrupt_flag()?, agent_command()?);
    let how = Conduct { folder: &folder, resume: false, reference: None, agent: &agent, interrupt: &interrupt };
    let mut display = ClimbDisplay::new(voice, goal.over);
    let over = climb(&request, &goal, &how, &mut display)
        .map_err(Failure::from)
        .inspect_err(|_| leave_no_empty(&folder, args.out.as_deref()))?;
    let report = finish(&folder)?;
    drop(over.lock);
    // What is said is what the records say: the same as of a report of the folder.
    let found = report.capacities().into_iter().next();
    show(args, &report, found.as_ref());
    voice.note(&format!("report: {}", folder.join(PAGE).display()));
    Ok(conclude(over.ending.interrupted, over.given_up, found.as_ref(), voice))
}

fn show(args: &CapacityArgs, report: &Report, found: Option<&CapacityResult>) {
    match found {
        _ if !args.json => print(&report.terminal(width(), colour())),
        Some(found) => print(&serde_json::to_string_pretty(&found.json()).unwrap_or_default()),
        None => print(&json!({"estimate": null, "lo": null, "hi": null, "limited_by": null, "steps": []}).to_string()),
    }
}

/// Says what is still open, by exit code.
fn conclude(interrupted: bool, given_up: Option<String>, found: Option<&CapacityResult>, voice: Voice) -> Code {
    let why = match (interrupted, given_up, found.map(CapacityResult::answer)) {
        (true, ..) => "interrupted: finished steps are kept".to_owned(),
        (_, Some(why), _) => format!("no answer: {why}"),
        (_, _, Some(answer)) if answer.estimate.is_some() && answer.settled => {
            if !answer.confirmed {
                voice.note("not confirmed: no run of full length held at the low end within the budget");
            }
            return Code::Done;
        }
        (_, _, Some(answer)) if answer.estimate.is_some() => {
            "the interval is wider than was asked for: a longer --budget, or a wider --within".to_owned()
        }
        _ => "no answer within the budget: a longer --budget".to_owned(),
    };
    voice.note(&why);
    Code::Run
}

/// The study of what is measured, and what is to be found.
fn asked(args: &CapacityArgs) -> Result<(Study, CapacityGoal), Failure> {
    let until = match &args.until {
        Some(text) => Objective::parse(text).map_err(|error| Failure::usage(format!("--until: {error}")))?,
        None => Objective::usual(),
    };
    let over = LoadAxis::parse(&args.over).map_err(|error| Failure::usage(format!("--over: {error}")))?;
    let percent = args.within.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let within = percent.map(|percent| percent / 100.0).filter(|within| WITHIN.contains(within));
    let within = within.ok_or_else(|| Failure::usage(format!("--within: `{}` is none of 1% to 50%", args.within)))?;
    let given = &args.workload;
    if over == LoadAxis::Rate && given.rate.as_deref() == Some("max") {
        return Err(Failure::usage("--rate: a search over rates begins at a number, and not at max"));
    }
    let mut workload = AskedWorkload::of(&args.target, given);
    workload.set.push(("repeats".into(), "1".into()));
    let mut study = study_of(workload)?;
    // Both are the search's own to set.
    study.lift(&["duration", "count", over.key()]);
    if study.axis("count").is_some() {
        return Err(Failure::usage("--set count: a search has windows of time; --duration is that of its last run"));
    }
    let from = study.axis(over.key()).and_then(|axis| axis.values.first().map(as_typed));
    study.axes.retain(|axis| axis.name != "duration" && axis.name != over.key());
    let is_given = match over {
        LoadAxis::Rate => given.rate.is_some(),
        LoadAxis::Pairs => given.pairs.is_some(),
        LoadAxis::Publishers => given.publishers.is_some(),
        LoadAxis::Subscribers => given.subscribers.is_some(),
        LoadAxis::Payload => given.payload.is_some(),
        LoadAxis::Burst => given.arrival.is_some(),
    };
    let cells = StudyPlan::new(study.clone()).map_err(|errors| Failure::from(ConductError::Plan(errors)))?;
    let publishers = cells.cells().first().map_or(1.0, |cell| f64::from(cell.workload.publishers));
    let number = from.filter(|_| is_given).and_then(|text| text.trim_start_matches("burst:").parse::<f64>().ok());
    let start = match (over, number) {
        (LoadAxis::Rate, Some(each)) => each * publishers,
        (LoadAxis::Rate, None) => START_PER_S,
        (LoadAxis::Payload, None) => 64.0,
        (_, found) => found.unwrap_or(1.0).max(1.0),
    };
    let goal = CapacityGoal { until, over, within, start };
    study.title = format!("Capacity of {}", study.title);
    study.question = format!("How far does `{}` hold?", goal.until);
    study.capacity = Some(goal.clone());
    Ok((study, goal))
}
