//! The load from which a system recovers from a fault, beside its capacity without one.

use crate::axes::{axis_name, axis_value, differs};
use crate::capacity::{CapacityResult, RecoveryHeadroom, show};
use crate::document::{Entry, Head, Mark, Note, Row, Table};
use crate::text::clean;
use pubmark_model::capacity::{CapacityAnswer, CapacityStep, StepOutcome};
use pubmark_model::record::BacklogOutlook;
use serde_json::{Map, Value};

/// Longest objective and fault that are shown, characters.
const TEXT_CHARS: usize = 200;
/// Name of the axis of faults.
const FAULT: &str = "fault";

/// Returns the place of a search without its fault.
fn place(result: &CapacityResult) -> Map<String, Value> {
    let mut axes = result.axes.clone();
    axes.remove(FAULT);
    axes
}

/// Sets beside each capacity with recovery that without a fault.
pub(crate) fn join(all: &mut [CapacityResult]) {
    for index in 0..all.len() {
        let result = &all[index];
        if !result.climb.goal().until.is_of_fault() {
            continue;
        }
        let is_base =
            |other: &&CapacityResult| !other.climb.goal().until.is_of_fault() && place(other) == place(result);
        let Some(base) = all.iter().find(is_base) else { continue };
        let (with, without) = (result.answer(), base.answer());
        let (headroom, headroom_range) = free(&with, &without);
        let carried = without.lo.unwrap_or(0.0);
        let steps = || result.climb.steps().iter().filter(|step| step.counts);
        let held = |load: f64| steps().any(|step| step.outcome == StepOutcome::Held && step.load >= load);
        // Other programs on the machine can keep a backlog from shrinking, too.
        let failed = |step: &&CapacityStep| step.outcome == StepOutcome::Failed && !held(step.load);
        let lasts =
            |step: &&CapacityStep| failed(step) && step.prospect == Some(BacklogOutlook::Lasts) && step.load < carried;
        let lasting = steps().filter(lasts).map(|step| step.load).reduce(f64::min);
        let over = result.climb.goal().over;
        let found = RecoveryHeadroom {
            without_fault: without.estimate.map(|load| over.amount(load)),
            headroom,
            headroom_range,
            lasts_from: lasting.map(|load| over.amount(load)),
            lasting: lasting.map(|load| sentence(result, load)),
            without_text: base.load_text(),
        };
        all[index].recovery = Some(found);
    }
}

/// Returns the share of the capacity without a fault that must stay free, and its range. Of one lower bound follows one
/// end of the range; between two, the share may be any.
fn free(with: &CapacityAnswer, without: &CapacityAnswer) -> (Option<f64>, Option<[f64; 2]>) {
    let share = |with: Option<f64>, without: Option<f64>| Some((1.0 - with? / without?).clamp(0.0, 1.0));
    let exact = !with.lower_bound && !without.lower_bound;
    let least = if with.lower_bound { Some(0.0) } else { share(with.hi, without.lo) };
    let most = if without.lower_bound { Some(1.0) } else { share(with.lo, without.hi) };
    let range = least.zip(most).map(|(least, most)| [least, most]).filter(|range| *range != [0.0, 1.0]);
    (share(with.estimate, without.estimate).filter(|_| exact), range)
}

/// Returns the table, if an objective is about recovery.
pub(crate) fn table(all: &[CapacityResult]) -> Option<Table> {
    let shown: Vec<(&CapacityResult, &RecoveryHeadroom)> =
        all.iter().filter_map(|result| Some((result, result.recovery.as_ref()?))).collect();
    let (first, _) = *shown.first()?;
    let varies = |axis: &&String| *axis == FAULT || differs(axis, shown.iter().map(|(result, _)| &result.axes));
    let axes: Vec<&String> = first.axes.keys().filter(varies).collect();
    let goal = first.climb.goal();
    let mut heads: Vec<Head> = axes.iter().map(|axis| Head::new(axis_name(axis), false, 0)).collect();
    heads.push(Head::new("load", false, 0));
    heads.extend(["without a fault", "with recovery", "headroom", "90 %"].map(|name| Head::new(name, true, 0)));
    let row = |(result, beside): &(&CapacityResult, &RecoveryHeadroom)| {
        let place =
            axes.iter().map(|axis| result.axes.get(*axis).map_or_else(String::new, |value| axis_value(axis, value)));
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let range = |[least, most]: [f64; 2]| format!("{:.0} to {}", least * 100.0, percent(most));
        let (share, range) = match (beside.headroom, beside.headroom_range) {
            (Some(share), found) => (percent(share), found.map_or_else(String::new, range)),
            (None, Some([least, 1.0])) => (format!("≥ {}", percent(least)), String::new()),
            (None, Some([_, most])) => (format!("≤ {}", percent(most)), String::new()),
            (None, None) => Default::default(),
        };
        let own =
            [result.climb.goal().over.word().to_owned(), beside.without_text.clone(), result.load_text(), share, range];
        Row { entries: place.chain(own).map(Entry::plain).collect(), mark: Mark::Plain, bar: None }
    };
    let mut notes = vec![format!(
        "{}; without a fault: `{}`; with recovery: `{}`. headroom: the share of the capacity without a fault that must \
         stay free, so that the system recovers in time. 90 %: its interval",
        goal.over.unit(),
        clean(&goal.until.without_fault().to_string(), TEXT_CHARS),
        clean(&goal.until.to_string(), TEXT_CHARS),
    )];
    notes.extend(shown.iter().filter_map(|(_, beside)| beside.lasting.clone()));
    Some(Table {
        title: "Recovery".into(),
        heads,
        groups: vec![shown.iter().map(row).collect()],
        notes: notes.into_iter().map(Note::on_rows).collect(),
        ends_in_prose: false,
        whole: "--json",
        bars: None,
    })
}

/// Names the load from which a system does not recover by itself.
fn sentence(result: &CapacityResult, load: f64) -> String {
    let goal = result.climb.goal();
    format!(
        "{}: from {} {} on, the backlog did not shrink after the fault: the system does not recover by itself, although \
         it carries this load without a fault",
        clean(&result.label, TEXT_CHARS),
        show(goal, load),
        goal.over.unit()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_lower_bound_follows_one_end_of_the_headroom() {
        let answer = |estimate: f64, lower_bound: bool| CapacityAnswer {
            estimate: Some(estimate),
            lo: Some(0.9 * estimate),
            hi: (!lower_bound).then_some(1.1 * estimate),
            lower_bound,
            ..CapacityAnswer::default()
        };
        let rounded = |(share, range): (Option<f64>, Option<[f64; 2]>)| {
            let percent = |share: f64| (share * 100.0).round();
            (share.map(percent), range.map(|range| range.map(percent)))
        };
        let told = |with, without| rounded(free(&with, &without));
        assert_eq!(told(answer(500.0, false), answer(1_000.0, false)), (Some(50.0), Some([39.0, 59.0])));
        assert_eq!(told(answer(500.0, false), answer(1_000.0, true)), (None, Some([39.0, 100.0])), "it may carry more");
        assert_eq!(told(answer(500.0, true), answer(1_000.0, false)), (None, Some([0.0, 59.0])));
        assert_eq!(told(answer(500.0, true), answer(1_000.0, true)), (None, None));
    }
}
