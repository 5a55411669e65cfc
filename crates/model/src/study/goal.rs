//! Reads `[capacity]` and `[ab]`.

use crate::ab::ArmsGoal;
use crate::capacity::{AskedCapacity, CapacityGoal, LoadAxis, WITHIN};
use crate::diagnostic::Diagnostic;
use crate::document::Table;
use crate::objective::Objective;
use crate::units::parse_time;

const KEYS: [&str; 7] = ["until", "objective", "over", "within", "start", "parts", "budget"];

/// Reads `[capacity]`; reports all its errors.
pub(super) fn read(table: &Table, errors: &mut Vec<Diagnostic>) -> Option<CapacityGoal> {
    let mut goal = CapacityGoal {
        until: Objective::usual(),
        over: LoadAxis::Rate,
        flow: None,
        within: 0.05,
        start: 100.0,
        asked: None,
    };
    let given = |name: &str| table.entries.iter().find(|entry| entry.key == name);
    if given("objective").is_some() {
        goal.asked = Some(AskedCapacity::default());
    }
    if let Some(both) = given("until").filter(|_| goal.asked.is_some()) {
        let message = "`objective` asks for the capacity, and `until` says what the records have: write one of them";
        errors.push(Diagnostic::at(both.key_at, message));
    }
    for entry in &table.entries {
        if entry.key == "parts" {
            match &mut goal.asked {
                Some(asked) => asked.parts = entry.values.iter().map(|value| value.text.clone()).collect(),
                None => errors.push(Diagnostic::at(entry.key_at, "`parts` are those whose `objective` is asked for")),
            }
            continue;
        }
        if let ("over", Some(asked)) = (entry.key.as_str(), &mut goal.asked) {
            let mut all = Vec::new();
            for value in &entry.values {
                match CapacityGoal::read_over(&value.text) {
                    Ok((over, flow)) => {
                        goal.flow = goal.flow.take().or(flow);
                        all.push(over);
                    }
                    Err(error) => errors.push(Diagnostic::at_value(value.at, error)),
                }
            }
            if let [first, more @ ..] = all.as_slice() {
                (goal.over, asked.more) = (*first, more.to_vec());
            }
            continue;
        }
        let Some(value) = entry.one(errors) else { continue };
        let text = value.text.as_str();
        let wrong = match entry.key.as_str() {
            "budget" => match (parse_time(text), &mut goal.asked) {
                (Ok(ns), Some(asked)) => {
                    asked.budget_ns = Some(ns);
                    None
                }
                (Ok(_), None) => Some("`budget` is that of each search, where an `objective` is asked for".into()),
                (Err(error), _) => Some(error.to_string()),
            },
            "until" | "objective" => {
                Objective::parse(text).map(|until| goal.until = until).err().map(|error| error.to_string())
            }
            "over" => CapacityGoal::read_over(text).map(|(over, flow)| (goal.over, goal.flow) = (over, flow)).err(),
            "within" => match fraction(text) {
                Some(within) => {
                    goal.within = within;
                    None
                }
                None => Some(format!("`{text}` is not one of 1% to 50%")),
            },
            "start" => match text.parse().ok().filter(|start: &f64| start.is_finite() && *start > 0.0) {
                Some(start) => {
                    goal.start = start;
                    goal.asked.iter_mut().for_each(|asked| asked.start = Some(start));
                    None
                }
                None => Some(format!("`{text}` is not a load above 0")),
            },
            _ => {
                errors.push(entry.unknown("[capacity]", KEYS));
                None
            }
        };
        errors.extend(wrong.map(|message| Diagnostic::at_value(value.at, message)));
    }
    Some(goal)
}

/// Reads `[ab]`. The report parses its gates.
pub(super) fn read_ab(table: &Table, errors: &mut Vec<Diagnostic>) -> ArmsGoal {
    let mut goal = ArmsGoal::default();
    for entry in &table.entries {
        let texts = entry.values.iter().map(|value| value.text.clone()).collect();
        match entry.key.as_str() {
            "keys" => goal.keys = texts,
            "fail_on" => goal.fail_on = texts,
            "require" => goal.require = texts,
            _ => errors.push(entry.unknown("[ab]", ["keys", "fail_on", "require"])),
        }
    }
    goal
}

/// Parses `5%` as a fraction within the bounds.
fn fraction(text: &str) -> Option<f64> {
    let percent: f64 = text.trim().strip_suffix('%')?.trim_end().parse().ok()?;
    Some(percent / 100.0).filter(|within| WITHIN.contains(within))
}
