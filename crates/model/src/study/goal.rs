//! `[capacity]` and `[ab]`: what the records are to say.

use crate::ab::ArmsGoal;
use crate::capacity::{CapacityGoal, LoadAxis, WITHIN};
use crate::diagnostic::Diagnostic;
use crate::document::Table;
use crate::objective::Objective;

const KEYS: [&str; 4] = ["until", "over", "within", "start"];

/// Reads the table; reports all that is wrong with it.
pub(super) fn read(table: &Table, errors: &mut Vec<Diagnostic>) -> Option<CapacityGoal> {
    let mut goal = CapacityGoal { until: Objective::usual(), over: LoadAxis::Rate, within: 0.05, start: 100.0 };
    for entry in &table.entries {
        let Some(value) = entry.one(errors) else { continue };
        let text = value.text.as_str();
        let wrong = match entry.key.as_str() {
            "until" => Objective::parse(text).map(|until| goal.until = until).err().map(|error| error.to_string()),
            "over" => LoadAxis::parse(text).map(|over| goal.over = over).err().map(|error| error.to_string()),
            "within" => match fraction(text) {
                Some(within) => {
                    goal.within = within;
                    None
                }
                None => Some(format!("`{text}` is none of 1% to 50%")),
            },
            "start" => match text.parse().ok().filter(|start: &f64| start.is_finite() && *start > 0.0) {
                Some(start) => {
                    goal.start = start;
                    None
                }
                None => Some(format!("`{text}` is no load above 0")),
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

/// Reads `[ab]`. Its gates are for a report to understand.
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

/// `5%`, as a fraction within the bounds.
fn fraction(text: &str) -> Option<f64> {
    let percent: f64 = text.trim().strip_suffix('%')?.trim_end().parse().ok()?;
    Some(percent / 100.0).filter(|within| WITHIN.contains(within))
}
