//! `pubmark capacity`: finds the highest load that meets an objective.

use super::bench::{AskedWorkload, study_of};
use super::measure::{Measurement, PAGE, planned};
use super::promises::TESTS;
use super::target::{is_system, study_at};
use super::{fit, measure, promises, searches};
use crate::args::CapacityArgs;
use crate::failure::{Code, Failure};
use crate::output::{Voice, print};
use crate::progress::estimate::in_words;
use pubmark_host::machine;
use pubmark_model::capacity::{CapacityGoal, LoadAxis, WITHIN};
use pubmark_model::cell::Cell;
use pubmark_model::fault::{self, Script};
use pubmark_model::objective::Objective;
use pubmark_model::payload::Payload;
use pubmark_model::pin::Pin;
use pubmark_model::plan::why_unbound;
use pubmark_model::promise::Promise;
use pubmark_model::setting::as_typed;
use pubmark_model::study::{Axis, Study};
use pubmark_model::units::{Ns, SECOND, format_time, parse_time};
use pubmark_report::{CapacityResult, Report, UntestedPromise};
use pubmark_study::capacity::{CapacityRequest, Search};
use pubmark_study::plan::StudyPlan;
use pubmark_study::registry::Registry;
use pubmark_study::repeats::Repeats;
use pubmark_study::searches::CAPACITY_USUAL;
use pubmark_study::strategy::Strategy;
use serde_json::{Value, json};
use std::path::Path;

/// Name of the axis of faults.
const FAULT: &str = "fault";
/// Window of a step, unless the run of full length has a shorter one.
const STEP: Ns = 4 * SECOND;
/// Window of the run of full length, unless a fault needs a longer one.
const FULL: Ns = 10 * SECOND;
/// Number of steps for which there is time by default in the search for a recovery, and the time of a step beside its
/// window.
const RECOVERY_STEPS: u64 = 20;
const OVERHEAD: Ns = 3 * SECOND;
/// First rate of a search, messages per second of all publishers together.
const START_PER_S: f64 = 400.0;

/// Default target width of the capacity interval.
const WITHIN_USUAL: f64 = 0.05;

/// Searches for the capacity of a system, or of each cell of a study.
pub fn capacity(args: &CapacityArgs, mut registry: Registry, voice: Voice) -> Result<Code, Failure> {
    measure::begin(&args.measure)?;
    let given_ns = args.budget.as_deref().map(parse_time).transpose();
    let given_ns = given_ns.map_err(|error| Failure::usage(format!("--budget: {error}")))?;
    let full_ns = args.duration.as_deref().map(parse_time).transpose();
    let full_ns = full_ns.map_err(|error| Failure::usage(format!("--duration: {error}")))?;
    let cards = promises::cards(&args.cards, &registry)?;
    let promise = args.promise.as_deref().map(promises::read).transpose()?;
    let Asked { name, study, goal, budget_ns, recovery_ns, pin, promise, tests } = asked(args, promise, &mut registry)?;
    if let Some(pin) = pin {
        voice.note(&format!("processors: {pin} (`--set pin=none` leaves that to the kernel)"));
    }
    if let (Some(full_ns), Some(least_ns)) = (full_ns, recovery_ns.filter(|least_ns| full_ns < Some(*least_ns))) {
        let [full, least] = [full_ns, least_ns].map(format_time);
        return Err(Failure::usage(format!(
            "--duration: a window of {full} does not show what follows the fault: it takes {least} or more"
        )));
    }
    let full_ns = full_ns.unwrap_or(FULL.max(recovery_ns.unwrap_or(0)));
    let usual_ns = CAPACITY_USUAL.max(RECOVERY_STEPS * recovery_ns.map_or(0, |window_ns| window_ns + OVERHEAD));
    let budget_ns = given_ns.or(budget_ns).unwrap_or(usual_ns);
    if full_ns < SECOND || budget_ns < full_ns {
        return Err(Failure::usage("--duration is 1s or more, and --budget no shorter than it"));
    }
    let of_study = !is_system(&args.target, &registry) || study.axes.iter().any(|axis| axis.values.len() > 1);
    // Cells that cannot be measured here are skipped before their search begins.
    let mut cells = StudyPlan::new(study).map_err(planned)?;
    if let Some(promise) = promise.filter(|_| tests.is_none()) {
        can_rank_at(promise, (&cells, &cards), is_system(&args.target, &registry))?;
    }
    let survey = measure::prepare(&mut cells, &args.measure, &planned, voice)?;
    let mut tests = tests.map(StudyPlan::new).transpose().map_err(planned)?;
    if let Some(tests) = &mut tests {
        measure::prepare(tests, &args.measure, &planned, voice)?;
    }
    let request = CapacityRequest {
        study: cells.study(),
        step_ns: STEP.min(full_ns),
        full_ns,
        budget_ns,
        ends_ns: None,
        enough_each_per_s: None,
    };
    let mut strategy = Search::new(&request, &goal).map_err(planned)?;
    let mut plan = strategy.first_steps().map_err(planned)?;
    if let Some(why) = fit::leave_out(&mut plan, &survey).0.first() {
        return Err(Failure::usage(why));
    }
    if args.measure.dry_run {
        dry_run(&request, &goal, strategy.rows());
        tests.iter().for_each(|tests| print(&format!("then {}", test_runs(tests, promise))));
        return Ok(Code::Done);
    }
    let mut measurement = Measurement::begin(&args.measure, &format!("capacity-{name}"), &registry, voice)?;
    let mut ending = measurement.measure(&plan, None, &mut strategy)?;
    if let Some(tests) = tests.as_ref().filter(|_| !ending.interrupted) {
        voice.note(&test_runs(tests, promise));
        ending.interrupted = measurement.search(tests, Path::new(TESTS), &mut Repeats::new(tests))?.interrupted;
    }
    let mut report = measurement.report()?;
    let folder = measurement.folder();
    let ranked = promise.map(|promise| rank_at(promise, &mut report, cards, (folder, &registry)));
    let untested = ranked.transpose()?.flatten();
    // The output comes from the records, like a later report of the folder.
    let found = report.capacities();
    let data = || if report.promise().is_some() { report.json() } else { json(of_study, &found) };
    measure::show_report(&args.measure, &report, || Ok(data()))?;
    voice.note(&format!("report: {}", folder.join(PAGE).display()));
    if let Some(promise) = promise.filter(|_| untested.is_none() && tests.is_some()) {
        let (folder, cards) = (folder.display(), folder.join(TESTS));
        let cards = cards.display();
        voice.note(&format!("a later report: pubmark report {folder} --promise '{promise}' --cards {cards}"));
    }
    untested.iter().for_each(|why| voice.note(&why.to_string()));
    let given_up = strategy.given_up();
    let mut code = conclude(ending.interrupted, &given_up, &found, voice);
    if untested.is_some() {
        code = code.worst(Code::Run);
    }
    if code == Code::Run && given_up.is_empty() {
        voice.note(&format!("to go on: the same command and --out {} --resume, with any --budget", folder.display()));
    }
    measurement.linger();
    Ok(code)
}

/// Checks that there are systems to rank, and that a card or a cell tests the promise.
fn can_rank_at(promise: Promise, (plan, cards): (&StudyPlan, &[Report]), is_one: bool) -> Result<(), Failure> {
    if is_one {
        return Err(Failure::usage("--promise: one system is not ranked: give a study, or measure `pubmark card`"));
    }
    let is_tested = plan.tests(promise) || cards.iter().any(|card| card.tests(promise));
    if is_tested { Ok(()) } else { Err(Failure::usage(UntestedPromise { promise })) }
}

/// Ranks a report at a promise, by the runs of cards and by those in its folder that test it. Returns why it cannot be.
fn rank_at(
    promise: Promise,
    report: &mut Report,
    mut cards: Vec<Report>,
    (folder, registry): (&Path, &Registry),
) -> Result<Option<UntestedPromise>, Failure> {
    let tests = folder.join(TESTS);
    if tests.join("runs.jsonl").exists() {
        cards.push(measure::load(&tests, registry)?);
    }
    let untested = report.hold_to(promise, &cards).err();
    if untested.is_none() {
        Report::write_html(&[&*report], &folder.join(PAGE)).map_err(Failure::run)?;
    }
    Ok(untested)
}

/// Describes the runs that test a promise in one line.
fn test_runs(tests: &StudyPlan, promise: Option<Promise>) -> String {
    let promise = promise.map_or("", Promise::word);
    format!("runs that test `{promise}`: {}", tests.extent().1)
}

/// Prints the planned searches, one line per cell, and their maximum time.
fn dry_run(request: &CapacityRequest<'_>, goal: &CapacityGoal, cells: &[Cell]) {
    for cell in cells {
        print(&format!(
            "{}: how far `{}` holds over {}, from {} {}",
            cell.label(),
            goal.of_axes(&cell.axes).until,
            goal.text_of(goal.over),
            (goal.over.amount(goal.start) * 1e3).round() / 1e3,
            goal.over.unit()
        ));
    }
    let count = searches::counted(cells.len());
    let all_ns = request.budget_ns.saturating_mul(cells.len() as u64);
    print(&format!("{count}, {} each at most, {} in all", in_words(request.budget_ns), in_words(all_ns)));
}

fn json(of_study: bool, found: &[CapacityResult]) -> serde_json::Value {
    let none = json!({"estimate": null, "lo": null, "hi": null, "limited_by": null, "steps": []});
    let mut all = found.iter().map(CapacityResult::json);
    if of_study { all.collect() } else { all.next().unwrap_or(none) }
}

/// Prints what is still open. Returns the exit code.
fn conclude(interrupted: bool, given_up: &[(&Cell, &str)], found: &[CapacityResult], voice: Voice) -> Code {
    let several = found.len() + given_up.len() > 1;
    let of = |label: &str| if several { format!("{label}: ") } else { String::new() };
    // What held before the search was given up stands.
    let holds = |label: &str| found.iter().any(|one| one.label == label && one.answer().lo.is_some());
    let end = |label: &str| if holds(label) { "the search ends" } else { "no result" };
    let given = given_up.iter().map(|(cell, why)| (cell.label(), why));
    let mut open: Vec<String> = given.map(|(label, why)| format!("{}{}: {why}", of(&label), end(&label))).collect();
    let gave_up = |label: &str| given_up.iter().any(|(cell, _)| cell.label() == label);
    for one in found.iter().filter(|one| !gave_up(&one.label)) {
        let answer = one.answer();
        let why = match answer.estimate {
            // The steps give the result: a run that could not confirm it does not withdraw it.
            Some(_) if answer.settled => {
                if let Some(why) = one.climb.unconfirmed() {
                    voice.note(&format!("{}not confirmed: {why}", of(&one.label)));
                }
                if one.climb.drifts() {
                    let why = "machine drift exceeds --within; a longer search does not narrow the interval";
                    voice.note(&format!("{}{why}", of(&one.label)));
                }
                continue;
            }
            Some(_) => "the interval is wider than --within asks: use a longer --budget or a wider --within",
            None => "no result within the budget: use a longer --budget",
        };
        open.push(format!("{}{why}", of(&one.label)));
    }
    if interrupted {
        open = vec!["interrupted: finished steps are kept".to_owned()];
    }
    open.iter().for_each(|why| voice.note(why));
    if open.is_empty() && !found.is_empty() { Code::Done } else { Code::Run }
}

/// Parameters of the command.
struct Asked {
    /// The target's name, for the results folder.
    name: String,
    study: Study,
    goal: CapacityGoal,
    /// Time limit for the search of a cell, if the study sets one, ns.
    budget_ns: Option<Ns>,
    /// Shortest window that shows what follows the faults, if the objective is about that, ns.
    recovery_ns: Option<Ns>,
    /// Default location of server and clients.
    pin: Option<Pin>,
    /// The promise that systems are ranked at.
    promise: Option<Promise>,
    /// Cells that test it, if the study has such beside those that are searched.
    tests: Option<Study>,
}

/// The target of the command.
struct Target {
    name: String,
    study: Study,
    /// The load that the study searches, or the usual one.
    over: LoadAxis,
    /// The promise that systems are ranked at, and the cells that test it.
    promise: (Option<Promise>, Option<Study>),
}

/// Returns the target.
fn target(args: &CapacityArgs, promise: Option<Promise>, registry: &mut Registry) -> Result<Target, Failure> {
    if is_system(&args.target, registry) {
        if !args.only.is_empty() {
            return Err(Failure::usage("--only narrows a study, and this is one system with one workload"));
        }
        let mut workload = AskedWorkload::of(&args.target, &args.workload, &args.measure);
        workload.set.push(("repeats".to_owned(), "1".to_owned()));
        let study = study_of(workload, registry)?;
        let name = study.axis("system").and_then(|axis| axis.values[0].as_str()).unwrap_or_default().to_owned();
        return Ok(Target { name, study, over: LoadAxis::Rate, promise: (promise, None) });
    }
    let (name, mut study) = study_at(&args.target, Vec::new(), &args.only, (&args.workload, &args.measure), registry)?;
    let promise = promise.or(study.promise());
    let tests = promise.and_then(|promise| promises::take_tests(&mut study, promise));
    let is_tested = |promise| StudyPlan::new(study.clone()).is_ok_and(|plan| plan.tests(promise));
    let has_tests = tests.is_some() || !args.cards.is_empty();
    if let Some(promise) = promise.filter(|promise| !has_tests && !is_tested(*promise)) {
        return Err(Failure::usage(UntestedPromise { promise }));
    }
    study.settings.set("repeats", "1").map_err(Failure::usage)?;
    let asks = study.asked_capacity().map(|(_, asked)| asked.parts.join(", ")).filter(|parts| !parts.is_empty());
    let part = study.chosen_parts().into_iter().next().flatten();
    let over = study.searched_over(part.as_deref()).unwrap_or(LoadAxis::Rate);
    study.without_parts().map_err(|parts| {
        let asks = asks.map_or_else(String::new, |asks| {
            format!("; its [capacity] asks for {asks}: `pubmark run` searches all of these, each after the other")
        });
        Failure::usage(format!(
            "a search is of one part of {name}: choose it with --only part=…, one of {}{asks}",
            parts.join(", ")
        ))
    })?;
    study.claims.clear();
    Ok(Target { name, study, over, promise: (promise, tests) })
}

/// Returns the study to measure and the goal.
fn asked(args: &CapacityArgs, promise: Option<Promise>, registry: &mut Registry) -> Result<Asked, Failure> {
    let given = &args.workload;
    let Target { name, mut study, over: over_of_study, promise: (promise, tests) } = target(args, promise, registry)?;
    let until = match (&args.until, &study.capacity) {
        (Some(text), _) => Objective::parse(text).map_err(|error| Failure::usage(format!("--until: {error}")))?,
        (None, Some(goal)) => goal.until.clone(),
        (None, None) => Objective::usual(),
    };
    let (over, flow) = match (&args.over, &study.capacity) {
        (Some(text), _) => CapacityGoal::read_over(text).map_err(|error| Failure::usage(format!("--over: {error}")))?,
        (None, goal) => (over_of_study, goal.as_ref().and_then(|goal| goal.flow.clone())),
    };
    let within = match (&args.within, &study.capacity) {
        (Some(text), _) => fraction(text)?,
        (None, goal) => goal.as_ref().map_or(WITHIN_USUAL, |goal| goal.within),
    };
    if over == LoadAxis::Rate && given.rate.as_deref().is_some_and(|rate| rate.contains(char::is_alphabetic)) {
        return Err(Failure::usage("--rate: a search over rates begins at a number, and not at max"));
    }
    let mut goal = CapacityGoal { until, over, flow, within, start: 1.0, asked: None };
    let flows: Vec<&str> = study.flows.iter().map(|flow| flow.name.as_str()).collect();
    if let Some((what, help)) = goal.check_flows(&flows) {
        return Err(Failure::usage(format!("{what}: {help}")));
    }
    let key = goal.key();
    let varies = |text: &str| Payload::parse(text).is_ok_and(|payload| !matches!(payload, Payload::Constant(_)));
    if over == LoadAxis::Payload && given.payload.as_deref().is_some_and(varies) {
        return Err(Failure::usage("--payload: a search over payloads begins at one size, such as 64B"));
    }
    let asked_start = study
        .asked_capacity()
        .filter(|(goal, _)| goal.over == over)
        .and_then(|(_, asked)| asked.start)
        .map(|start| over.amount(start));
    let lowest = if is_system(&args.target, registry) && goal.flow.is_none() { None } else { lowest(&study, &goal) };
    // The search sets both itself.
    study.lift(&["duration", "count", &key]);
    if study.axis("count").is_some() {
        return Err(Failure::usage("--set count: a search has windows of time; --duration is that of its last run"));
    }
    let is_list = study.axis(&key).is_some_and(|axis| axis.values.len() > 1);
    if is_list && is_system(&args.target, registry) {
        return Err(Failure::usage(format!(
            "--{}: a search begins at one load, and finds the others itself",
            over.key()
        )));
    }
    let from = study.axis(&key).and_then(|axis| axis.values.first().map(as_typed));
    study.axes.retain(|axis| axis.name != "duration" && axis.name != key);
    let is_given = match over {
        LoadAxis::Rate => given.rate.is_some(),
        LoadAxis::Pairs => given.pairs.is_some(),
        LoadAxis::Publishers => given.publishers.is_some(),
        LoadAxis::Subscribers => given.subscribers.is_some(),
        LoadAxis::Payload => given.payload.is_some(),
        LoadAxis::Burst => given.arrival.is_some(),
        LoadAxis::Cpus => given.cpus.is_some(),
        LoadAxis::Memory => given.memory.is_some(),
    };
    let recovery_ns = beside_its_recovery(&mut study, &goal)?;
    let cells = StudyPlan::new(study.clone()).map_err(planned)?;
    if over == LoadAxis::Rate && cells.cells().iter().any(|cell| goal.workload(cell).rate.trace().is_some()) {
        return Err(Failure::usage(
            "a trace has no rate that a search could raise: search over another load with --over, or compare speeds with \
             `pubmark ab TARGET --a trace_speed=1 --b trace_speed=2`",
        ));
    }
    let pin = if is_system(&args.target, registry) && !over.is_limit() { apart(args, &cells) } else { None };
    if let Some(pin) = &pin {
        study.settings.set("pin", &pin.to_string()).map_err(Failure::usage)?;
    }
    let publishers = cells.cells().first().map_or(1.0, |cell| f64::from(goal.workload(cell).publishers));
    let number = from.filter(|_| is_given).and_then(|text| text.trim_start_matches("burst:").parse::<f64>().ok());
    goal.start = match (over, number) {
        (LoadAxis::Cpus | LoadAxis::Memory, Some(given)) => over.amount(given),
        // `pubmark run` begins with the same load.
        (_, None) if asked_start.or(lowest).is_some() => asked_start.or(lowest).unwrap_or(1.0),
        (_, None) if study.capacity.as_ref().is_some_and(|goal| goal.over == over) => {
            study.capacity.as_ref().map_or(1.0, |goal| goal.start)
        }
        (LoadAxis::Rate, Some(each)) => each * publishers,
        (LoadAxis::Rate, None) => START_PER_S,
        (LoadAxis::Payload, None) => 64.0,
        (LoadAxis::Cpus, None) => over.amount(machine::usable_cpus().len() as f64),
        (LoadAxis::Memory, None) => over.amount(machine::memory_bytes().unwrap_or(1 << 30) as f64),
        (_, found) => found.unwrap_or(1.0).max(1.0),
    };
    let budget_ns = study.asked_capacity().and_then(|(_, asked)| asked.budget_ns);
    study.title = format!("Capacity of {}", study.title);
    study.question = format!("How far does `{}` hold?", goal.until);
    study.capacity = Some(goal.clone());
    Ok(Asked { name, study, goal, budget_ns, recovery_ns, pin, promise, tests })
}

/// Adds the cells without a fault to a study whose objective is about what follows one. Returns the shortest window
/// that shows that, ns; of another objective, that with the study's faults in it. `None` without a fault.
fn beside_its_recovery(study: &mut Study, goal: &CapacityGoal) -> Result<Option<Ns>, Failure> {
    study.lift(&[FAULT]);
    if !goal.until.is_of_fault() {
        return around_faults(study);
    }
    let (mut values, scripts) = faults(study)?;
    let window_ns = |script: &Script| {
        goal.until.recovery_window_ns(script).map_err(|error| Failure::usage(format!("--until: {error}")))
    };
    if scripts.is_empty() {
        window_ns(&Script::default())?;
    }
    let windows = scripts.iter().map(window_ns).collect::<Result<Vec<Ns>, Failure>>()?;
    let longest_ns = windows.into_iter().max();
    let text = format_time(longest_ns.unwrap_or(FULL));
    study.settings.set("duration", &text).map_err(Failure::usage)?;
    values.insert(0, fault::NONE.into());
    study.axes.retain(|axis| axis.name != FAULT);
    study.axes.push(Axis { name: FAULT.into(), values });
    Ok(longest_ns)
}

/// Lengthens the windows of a study until its faults lie within them. Returns the shortest such window, ns; `None` without
/// a fault.
fn around_faults(study: &mut Study) -> Result<Option<Ns>, Failure> {
    let longest_ns = faults(study)?.1.iter().filter_map(Script::window_ns).max();
    let text = longest_ns.map(|ns| format_time(ns.max(FULL)));
    text.map_or(Ok(()), |text| study.settings.set("duration", &text)).map_err(Failure::usage)?;
    Ok(longest_ns)
}

/// Returns the faults on a study's axis, as values and as scripts.
fn faults(study: &Study) -> Result<(Vec<Value>, Vec<Script>), Failure> {
    let mut values = study.axis(FAULT).map_or_else(Vec::new, |axis| axis.values.clone());
    values.retain(|value| value != fault::NONE);
    let scripts = values.iter().map(|value| Script::parse(&as_typed(value)));
    let scripts = scripts.collect::<Result<Vec<Script>, _>>().map_err(|error| Failure::usage(error.to_string()))?;
    Ok((values, scripts))
}

/// Returns the lowest load that a study sets for its cells; `None` if it sets none, as with `max`.
fn lowest(study: &Study, goal: &CapacityGoal) -> Option<f64> {
    let plan = StudyPlan::new(study.clone()).ok()?;
    let played = plan.cells().iter().filter(|cell| cell.skipped.is_none());
    played.filter_map(|cell| goal.load_of(cell)).reduce(f64::min)
}

/// Returns separate processors for server and clients if no location is given and both are here: else each would be
/// measured with the load of the other.
fn apart(args: &CapacityArgs, plan: &StudyPlan) -> Option<Pin> {
    let is_said = |text: &String| ["pin", "cpus", "placement"].contains(&text.split('=').next().unwrap_or_default());
    let given = &args.workload;
    if given.cpus.is_some() || args.measure.hosts.is_some() || given.set.iter().any(is_said) {
        return None;
    }
    let pin = Pin::apart(&machine::usable_cores())?;
    let binds = |cell: &Cell| cell.system.server.is_some() && why_unbound(&cell.system, &cell.options).is_none();
    plan.cells().iter().all(binds).then_some(pin)
}

/// Parses a percentage such as `5%` as a fraction.
fn fraction(text: &str) -> Result<f64, Failure> {
    let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let within = percent.map(|percent| percent / 100.0).filter(|within| WITHIN.contains(within));
    within.ok_or_else(|| Failure::usage(format!("--within: `{text}` is not one of 1% to 50%")))
}
