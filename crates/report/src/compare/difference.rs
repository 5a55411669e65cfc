//! Differences between A and B other than figures.

use crate::analysis::CellResult;
use crate::report::Report;
use crate::text::clean;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};

/// Keys that differ between any two runs.
const MOMENTARY: [&str; 4] = ["time", "load_average", "calibration", "doctor"];
/// Longest key or value that is kept, characters.
const CHARS: usize = 100;
/// Most differences that are kept.
const DIFFERENCES_MAX: usize = 500;

/// Something beside the figures that is not the same.
#[derive(Serialize, Clone, Debug, PartialEq, Eq, Hash)]
pub struct EnvironmentDifference {
    /// What: a key of `environment.json`, or of the cells' settings.
    pub what: String,
    /// Value in A; `None` if A does not have it.
    pub a: Option<String>,
    /// Value in B.
    pub b: Option<String>,
}

/// The machines' differences, then those of what was measured.
pub(super) fn differences(a: &Report, b: &Report, cells: &[(&CellResult, &CellResult)]) -> Vec<EnvironmentDifference> {
    let systems: HashSet<&str> = cells.iter().map(|(cell, _)| cell.cell.system.name.as_str()).collect();
    let mut found = between(&environment(a.environment(), &systems), &environment(b.environment(), &systems));
    let mut seen: HashSet<EnvironmentDifference> = HashSet::new();
    for (a, b) in cells {
        if a.cell.workload == b.cell.workload && a.cell.options == b.cell.options && setup(a) == setup(b) {
            continue;
        }
        for difference in between(&setup(a), &setup(b)) {
            if seen.len() < DIFFERENCES_MAX && seen.insert(difference.clone()) {
                found.push(difference);
            }
        }
    }
    found.truncate(DIFFERENCES_MAX);
    found
}

/// Returns the recorded facts about the machine, and about the compared systems.
fn environment(recorded: &Value, systems: &HashSet<&str>) -> Value {
    let Value::Object(recorded) = recorded else { return json!({}) };
    let mut kept: Map<String, Value> = recorded.clone();
    kept.retain(|key, _| !MOMENTARY.contains(&key.as_str()));
    if let Some(Value::Object(versions)) = kept.get_mut("versions") {
        versions.retain(|system, _| systems.contains(system.as_str()));
    }
    Value::Object(kept)
}

/// Returns the settings of a cell.
fn setup(result: &CellResult) -> Value {
    let cell = &result.cell;
    json!({
        "workload": cell.workload,
        "limits": cell.limits,
        "options": cell.options,
        "faults": cell.faults,
        "link": cell.link,
    })
}

fn between(a: &Value, b: &Value) -> Vec<EnvironmentDifference> {
    let (a, b) = (leaves(a), leaves(b));
    let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differ = keys.into_iter().filter(|key| a.get(*key) != b.get(*key));
    let text = |value: Option<&String>| value.map(|value| clean(value, CHARS));
    differ
        .map(|key| EnvironmentDifference { what: clean(key, CHARS), a: text(a.get(key)), b: text(b.get(key)) })
        .take(DIFFERENCES_MAX)
        .collect()
}

/// Every value that is not an object, by the path to it; nulls are left out.
fn leaves(value: &Value) -> BTreeMap<String, String> {
    fn collect(value: &Value, path: String, into: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    collect(value, path, into);
                }
            }
            Value::Null => {}
            Value::String(text) => {
                into.insert(path, text.clone());
            }
            value => {
                into.insert(path, value.to_string());
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(value, String::new(), &mut found);
    found
}
