//! The arms of a study: two settings, A and B, that are measured in turns.
//!
//! An arm is a part of the study: the cells of A and B differ only in the keys that the arms set.
//! So records, tables and reports need no knowledge of arms; the study's table `[ab]` holds the
//! question.

use crate::ab::{ArmsGoal, ENDS, end_of};
use crate::claim::Condition;
use crate::diagnostic::Diagnostic;
use crate::flow::key_of_flow;
use crate::secret::secret;
use crate::setting::{Section, as_typed, key};
use crate::study::axis::plain;
use crate::study::{Axis, Skip, Study, StudyPart};
use crate::system::Systems;
use serde_json::Value;

/// Keys and values of each arm, as typed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arms {
    /// Settings of A, the baseline.
    pub a: Vec<(String, String)>,
    /// Settings of B, which is compared with A.
    pub b: Vec<(String, String)>,
}

impl Arms {
    /// Returns the study with each of its cells in both arms.
    ///
    /// # Errors
    /// An arm sets a key that cannot be set, or both arms are the same.
    pub fn split(&self, study: &Study, mut goal: ArmsGoal, systems: Systems<'_>) -> Result<Study, Diagnostic> {
        let mut study = study.clone();
        let mut arms =
            [Arms::resolved(&study, &self.a, "--a", systems)?, Arms::resolved(&study, &self.b, "--b", systems)?];
        let mut keys: Vec<String> = Vec::new();
        for (name, _) in arms.iter().flatten() {
            if !keys.contains(name) {
                keys.push(name.clone());
            }
        }
        for name in &keys {
            let base = base(&mut study, name);
            for (arm, flag) in arms.iter_mut().zip(["--a", "--b"]) {
                if arm.iter().any(|(other, _)| other == name) {
                    continue;
                }
                match base.as_deref() {
                    Some([value]) => arm.push((name.clone(), value.clone())),
                    // The value comes from the system's file, or the study has one for all cells.
                    _ if name.starts_with("options.") => {}
                    Some(_) => {
                        let message = format!("{flag} has no `{name}`, and the study has several values of it");
                        return Err(Diagnostic::whole(message).help(format!("write {flag} {name}=VALUE as well")));
                    }
                    None => {
                        let message = format!("{flag} has no `{name}`, and neither has the study");
                        return Err(Diagnostic::whole(message).help(format!("write {flag} {name}=VALUE as well")));
                    }
                }
            }
        }
        let sorted = |arm: &[(String, Value)]| {
            let mut arm: Vec<String> = arm.iter().map(|(name, value)| format!("{name}={value}")).collect();
            arm.sort();
            arm
        };
        if sorted(&arms[0]) == sorted(&arms[1]) && self.a != self.b {
            return Err(Diagnostic::whole("A and B are the same").help("give --a and --b different values"));
        }
        goal.keys = keys;
        put(&mut study, &arms);
        study.claims.clear();
        study.baseline = None;
        study.reference = None;
        // Each repeat is a block; the number of repeats is not known in advance.
        study.settings.set("repeats", "1").map_err(Diagnostic::whole)?;
        study.ab = Some(goal);
        study.find_systems(systems);
        Ok(study)
    }

    fn resolved(
        study: &Study,
        typed: &[(String, String)],
        flag: &str,
        systems: Systems<'_>,
    ) -> Result<Vec<(String, Value)>, Diagnostic> {
        let one = |(name, text): &(String, String)| {
            let bad = |message: String| Diagnostic::whole(format!("{flag} {name}: {message}"));
            if let Some(option) = name.strip_prefix("options.") {
                if secret(option, study.is_secret(None, option, systems), text) {
                    return Err(bad("an arm is recorded, and cannot have a secret value".into())
                        .help("give both arms the same with --set"));
                }
                return Ok((name.clone(), plain(text)));
            }
            if name == "system" {
                let system = systems(text)
                    .ok_or_else(|| bad(format!("unknown system `{text}`")).help("`pubmark systems` lists them"))?;
                return Ok((name.clone(), system.name.as_str().into()));
            }
            if let Some((flow, key)) = key_of_flow(name) {
                if study.flows.iter().all(|known| known.name != flow) {
                    return Err(bad(format!("the study has no flow `{flow}`")));
                }
                let value = key.read(text).map_err(|error| bad(error.to_string()))?;
                return Ok((name.clone(), value));
            }
            let known = key(name).filter(|key| key.section != Section::Run);
            let known = known.ok_or_else(|| {
                bad("no key of which two settings can be measured".into())
                    .help("a key of [workload] or [limits], flows.NAME.KEY, options.NAME, or system")
            })?;
            let value = known.read(text).map_err(|error| bad(error.to_string()))?;
            Ok((known.name.to_owned(), value))
        };
        let arm = typed.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        for (index, (name, _)) in arm.iter().enumerate() {
            if arm[..index].iter().any(|(other, _)| other == name) {
                return Err(Diagnostic::whole(format!("{flag} sets `{name}` twice")));
            }
        }
        Ok(arm)
    }
}

/// Removes a key's values from the study and returns them: the arms set the key instead.
fn base(study: &mut Study, name: &str) -> Option<Vec<Value>> {
    let on_axis = study.axes.iter().find(|axis| axis.name == name).map(|axis| axis.values.clone());
    if name == "system" {
        return on_axis;
    }
    study.axes.retain(|axis| axis.name != name);
    let mut in_parts: Vec<Value> = Vec::new();
    for part in &mut study.parts {
        let mine = part.axes.iter().filter(|axis| axis.name == name).flat_map(|axis| axis.values.clone());
        in_parts.extend(mine);
        part.axes.retain(|axis| axis.name != name);
    }
    if let Some((flow, key)) = key_of_flow(name) {
        let mut flows = study.flows.iter_mut().filter(|known| known.name == flow);
        let taken = flows.find_map(|flow| key.take(&mut flow.settings)).map(|value| vec![value]);
        return on_axis.or(taken);
    }
    let taken = key(name).and_then(|key| key.take(&mut study.settings)).map(|value| vec![value]);
    on_axis.or((!in_parts.is_empty()).then_some(in_parts)).or(taken)
}

/// Turns the arms into parts of the study.
fn put(study: &mut Study, arms: &[Vec<(String, Value)>; 2]) {
    let whole = [StudyPart { name: String::new(), axes: Vec::new() }];
    let parts = if study.parts.is_empty() { whole.to_vec() } else { std::mem::take(&mut study.parts) };
    let mut skips: Vec<Skip> = Vec::new();
    for part in &parts {
        for (arm, end) in arms.iter().zip(ENDS) {
            let name = if part.name.is_empty() { end.to_owned() } else { format!("{}-{end}", part.name) };
            let mut axes = part.axes.clone();
            let own = arm.iter().filter(|(name, _)| name != "system");
            axes.extend(own.map(|(name, value)| Axis { name: name.clone(), values: vec![value.clone()] }));
            study.parts.push(StudyPart { name, axes });
        }
    }
    let system =
        |arm: &[(String, Value)]| arm.iter().find(|(name, _)| name == "system").map(|(_, value)| value.clone());
    if let (Some(a), Some(b)) = (system(&arms[0]), system(&arms[1])) {
        // Systems are combined with all parts, so each arm skips the other arm's system.
        let values = if a == b { vec![a.clone()] } else { vec![a.clone(), b.clone()] };
        study.axes.iter_mut().filter(|axis| axis.name == "system").for_each(|axis| axis.values.clone_from(&values));
        for (not, end) in [(b.clone(), ENDS[0]), (a.clone(), ENDS[1])].into_iter().filter(|_| a != b) {
            let names = study.parts.iter().map(|part| part.name.as_str());
            let mine = names.filter(|name| end_of(name) == Some(end)).map(Value::from).collect();
            let conditions =
                vec![("system".to_owned(), Condition::OneOf(vec![not])), ("part".to_owned(), Condition::OneOf(mine))];
            skips.push(Skip { conditions, why: OTHERS.into() });
        }
    }
    // A condition that skips a part skips both arms of it.
    for (name, condition) in study.skips.iter_mut().flat_map(|skip| &mut skip.conditions) {
        if let Condition::OneOf(values) = condition
            && name == "part"
        {
            let both = |value: &Value| ENDS.map(|end| Value::from(format!("{}-{end}", as_typed(value))));
            *values = values.iter().flat_map(both).collect();
        }
    }
    skips.append(&mut study.skips);
    study.skips = skips;
    let names = study.parts.iter().map(|part| part.name.as_str().into()).collect();
    study.axes.retain(|axis| axis.name != "part");
    study.axes.push(Axis { name: "part".into(), values: names });
}

/// Reason shown for a cell that is skipped because its system belongs to the other arm.
const OTHERS: &str = "the other arm's system";
