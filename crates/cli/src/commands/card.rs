//! `pubmark card`: measures what a system's acknowledgements are worth when something happens to it.

use super::bench::{AskedWorkload, study_of};
use super::measure;
use super::shared::pairs;
use super::study::{StudyTarget, measure_study};
use crate::args::{CardArgs, WorkloadArgs};
use crate::failure::{Code, Failure};
use crate::output::Voice;
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::fault::Script;
use pubmark_model::setting::as_typed;
use pubmark_model::study::{Axis, Study, StudyPart};
use pubmark_model::units::{Ns, SECOND, format_time, parse_time};
use pubmark_report::{CARD, CARD_EVENTS, CardEvent, GuaranteeCard, NotMeasured, Report};
use pubmark_study::plan::StudyPlan;
use pubmark_study::registry::Registry;
use serde_json::Value;
use std::path::Path;

/// Keys that the card sets unless `--set` does, with their values.
const USUAL: [(&str, &str); 4] = [("pairs", "3"), ("rate", "100"), ("duration", "6s"), ("repeats", "1")];
/// Keys that make the rows of the card.
const OWN: [&str; 3] = ["fault", "consume", "count"];
/// Share of what is sent to them that slow subscribers take.
const SLOW: f64 = 0.5;
/// Default drain, and the part of a longer one in which nothing need arrive, ns.
const DRAIN: Ns = 10 * SECOND;
const MARGIN: Ns = 4 * SECOND;

/// Measures the card of a system.
pub fn card(args: &CardArgs, mut registry: Registry, voice: Voice) -> Result<Code, Failure> {
    measure::begin(&args.measure)?;
    let study = study(args, &mut registry)?;
    let system = study.axis("system").and_then(|axis| axis.values[0].as_str()).unwrap_or_default();
    let full_queue = full_queue(&pairs(&args.set, "--set")?, system, &registry);
    let (mut plan, refused) = planned(&study, &full_queue)?;
    let asked = plan.extent();
    measure::prepare(&mut plan, &args.measure, &measure::planned, voice)?;
    let target = StudyTarget { name: &format!("card-{system}"), reference: None, earlier: Vec::new(), asked };
    let Some(measured) = measure_study(&plan, target, None, &args.measure, (&registry, voice))? else {
        refused.iter().for_each(|row| voice.note(&format!("not measured: {}: {}", row.event.what, row.why)));
        return Ok(Code::Done);
    };
    let card = GuaranteeCard::of(&measured.report, refused);
    let page = measured.folder().join(measure::PAGE);
    write(&card, measured.folder())?;
    Report::write_html(&[&measured.report], &page).map_err(Failure::run)?;
    let json = || Ok(card.json());
    measure::show(&args.measure, json, || card.markdown(), |width, colour| card.terminal(width, colour))?;
    voice.note(&format!("report: {}", page.display()));
    let interrupted = measured.end(voice);
    Ok(if card.has_a_row() && !interrupted { Code::Done } else { Code::Run })
}

/// Writes the card into its results folder, so that the page of the folder shows it.
fn write(card: &GuaranteeCard, folder: &Path) -> Result<(), Failure> {
    let path = folder.join(CARD);
    let text = serde_json::to_string_pretty(&card.json()).unwrap_or_default() + "\n";
    let written = pubmark_files::replace(&path, |out| out.write_all(text.as_bytes()));
    written.map_err(|error| Failure::run(format!("cannot write {}: {error}", path.display())))
}

/// Returns the study of the workload, with an axis of qualities of service and without the rows.
fn study(args: &CardArgs, registry: &mut Registry) -> Result<Study, Failure> {
    let given = pairs(&args.set, "--set")?;
    if let Some((key, _)) = given.iter().find(|(key, _)| OWN.contains(&key.as_str())) {
        return Err(Failure::usage(format!(
            "--set {key}: the rows of the card set it: use `pubmark bench` for one of your own"
        )));
    }
    let is_given = |name: &str| given.iter().any(|(key, _)| key == name);
    let workload = WorkloadArgs { set: args.set.clone(), ..WorkloadArgs::default() };
    let mut asked = AskedWorkload::of(&args.target, &workload, &args.measure);
    let usual = USUAL.iter().filter(|(name, _)| !(is_given(name) || *name == "pairs" && sets_clients(&given)));
    asked.set.extend(usual.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let time =
        |name: &str| asked.set.iter().rev().find(|(key, _)| key == name).and_then(|(_, text)| parse_time(text).ok());
    let drain_ns = drain_ns(time("duration"), time("warmup"));
    if !is_given("drain") && drain_ns > DRAIN {
        asked.set.push(("drain".to_owned(), format_time(drain_ns)));
    }
    let mut study = study_of(asked, registry)?;
    if !is_given("qos") {
        let system = study.axis("system").and_then(|axis| axis.values[0].as_str()).and_then(|name| registry.find(name));
        let mut levels: Vec<u8> = system.map_or_else(Vec::new, |system| system.qos.clone());
        levels.sort_unstable();
        study.lift(&["qos"]);
        study.axes.retain(|axis| axis.name != "qos");
        study.axes.push(Axis { name: "qos".into(), values: levels.into_iter().map(Value::from).collect() });
    } else {
        study.lift(&["qos"]);
    }
    study.title = format!("Guarantee card of {}", study.title);
    study.question = "What are its acknowledgements worth?".into();
    Ok(study)
}

/// Returns the options that bound the messages that wait for a subscriber, without those that `--set` sets; an error
/// for the row if the system has none.
fn full_queue(given: &[(String, String)], system: &str, registry: &Registry) -> Result<Vec<Axis>, String> {
    let all = registry.find(system).map(|system| system.full_queue.clone()).unwrap_or_default();
    if all.is_empty() {
        return Err(format!("no option of {system} bounds what waits for a subscriber ([full_queue] of its file)"));
    }
    // In a study file, a text that is a number becomes one, and the cell of a record must be that of its file.
    let as_in_study = |value: Value| match value.as_str().map(str::parse::<u64>) {
        Some(Ok(number)) => number.into(),
        _ => value,
    };
    let axis = |(name, value)| Axis { name: format!("options.{name}"), values: vec![as_in_study(value)] };
    let axes = all.into_iter().map(axis);
    Ok(axes.filter(|axis| given.iter().all(|(key, _)| *key != axis.name)).collect())
}

/// Returns the drain in which slow subscribers take what waits for them after a window and its warm-up, ns.
fn drain_ns(window_ns: Option<Ns>, warmup_ns: Option<Ns>) -> Ns {
    let sent_ns = window_ns.unwrap_or(0).saturating_add(warmup_ns.unwrap_or(0));
    (sent_ns as f64 * (1.0 / SLOW - 1.0)) as Ns + MARGIN
}

fn sets_clients(given: &[(String, String)]) -> bool {
    given.iter().any(|(key, _)| ["publishers", "subscribers"].contains(&key.as_str()))
}

/// Returns the plan of the rows that can be measured, and the others.
fn planned(study: &Study, full_queue: &Result<Vec<Axis>, String>) -> Result<(StudyPlan, Vec<NotMeasured>), Failure> {
    let (mut parts, mut refused): (Vec<StudyPart>, Vec<NotMeasured>) = (Vec::new(), Vec::new());
    for event in CARD_EVENTS {
        let part = part(study, event, full_queue).and_then(|part| {
            let errors =
                |errors: Vec<Diagnostic>| errors.first().map_or_else(String::new, |error| error.message.clone());
            StudyPlan::new(with(study, vec![part.clone()])).map_err(errors).map(|_| part)
        });
        match part {
            Ok(part) => parts.push(part),
            Err(why) => refused.push(NotMeasured { event, why }),
        }
    }
    match parts.is_empty() {
        // No row can be played: the reason is that of the workload.
        true => Err(StudyPlan::new(study.clone()).err().map_or_else(
            || Failure::usage(refused.first().map_or_else(String::new, |row| row.why.clone())),
            measure::planned,
        )),
        false => Ok((StudyPlan::new(with(study, parts)).map_err(measure::planned)?, refused)),
    }
}

/// Returns the study with these parts.
fn with(study: &Study, parts: Vec<StudyPart>) -> Study {
    let names = parts.iter().map(|part| part.name.as_str().into()).collect();
    let mut study = study.clone();
    study.axes.push(Axis { name: "part".into(), values: names });
    study.parts = parts;
    study
}

/// Returns the part of a row.
fn part(study: &Study, event: CardEvent, full_queue: &Result<Vec<Axis>, String>) -> Result<StudyPart, String> {
    let axis = |name: &str, value: Value| Axis { name: name.to_owned(), values: vec![value] };
    let mut axes = Vec::new();
    if let Some(text) = event.fault {
        let script = Script::parse(text).map_err(|error| error.to_string())?;
        axes.push(axis("fault", script.to_string().into()));
    }
    if event.is_slow {
        let rate = study.axis("rate").and_then(|axis| axis.values.first()).map(as_typed);
        let rate = rate.and_then(|rate| rate.parse::<f64>().ok());
        let taken = rate.map(|rate| format!("{:.0}", (rate * SLOW).max(1.0)));
        let taken = taken.ok_or("slow subscribers need a rate that is a number: use --set rate=100")?;
        let key = pubmark_model::setting::key("consume").ok_or("there is no key `consume`")?;
        axes.push(axis("consume", key.read(&taken).map_err(|error| error.to_string())?));
    }
    if event.is_bounded {
        axes.extend(full_queue.clone()?);
    }
    Ok(StudyPart { name: event.name.to_owned(), axes })
}
