//! Writing a study as resolved: what the results folder keeps, and what
//! `--resume` compares.

use super::Study;
use super::axis::PART;
use crate::asked::AUTO;
use crate::claim::{Condition, Statement};
use crate::figure::Figure;
use crate::secret::recorded_text;
use crate::setting::{KEYS, Section};
use crate::units::format_time;
use serde_json::Value;
use std::fmt::Write;

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn value(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

fn list<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let values: Vec<String> = values.into_iter().map(self::value).collect();
    format!("[{}]", values.join(", "))
}

fn condition(name: &str, condition: &Condition) -> String {
    match condition {
        Condition::OneOf(values) => format!("{} = {}\n", quoted(name), list(values)),
        Condition::AtMost(most) => format!("{} = \"<={most}\"\n", quoted(name)),
        Condition::AtLeast(least) => format!("{} = \">={least}\"\n", quoted(name)),
    }
}

fn texts<T: AsRef<str>>(all: &[T]) -> String {
    list(&all.iter().map(|text| Value::from(text.as_ref())).collect::<Vec<_>>())
}

/// Where the table of the published figures begins. No text in the file can
/// look like it: line ends are escaped in all of them.
const REFERENCE: &str = "\n[reference]\n";

impl Study {
    /// A study as [`Study::to_toml`] writes it, without what it is compared with:
    /// the part that decides what is measured.
    pub fn without_reference(text: &str) -> &str {
        text.split_once(REFERENCE).map_or(text, |(study, _)| study)
    }

    /// A study as [`Study::to_toml`] writes it, without its parts: what a search for
    /// a capacity asks, whichever loads it has come to.
    pub fn without_part_tables(text: &str) -> String {
        let mut within = false;
        let kept = text.lines().filter(|line| {
            // No text in the file begins a line: line ends are escaped in all of them.
            if line.starts_with('[') {
                within = line.starts_with("[parts.");
            }
            !within
        });
        kept.flat_map(|line| [line, "\n"]).collect()
    }

    /// The study as a file that reads back to the same study.
    pub fn to_toml(&self) -> String {
        let mut out = String::from("# As resolved: defaults filled in, overrides applied.\n");
        let _ = writeln!(out, "title = {}\nquestion = {}", quoted(&self.title), quoted(&self.question));
        if let Some(baseline) = &self.baseline {
            let _ = writeln!(out, "baseline = {}", quoted(baseline));
        }
        for section in [Section::Workload, Section::Limits, Section::Faults, Section::Settings, Section::Run] {
            let keys = KEYS.iter().filter(|key| key.section == section);
            let mut keys: Vec<_> = keys.filter_map(|key| Some((key.name, key.value(&self.settings)?))).collect();
            keys.sort_unstable_by_key(|(name, _)| *name);
            if !keys.is_empty() {
                let _ = writeln!(out, "\n[{}]", section.name());
            }
            for (name, setting) in keys {
                let _ = writeln!(out, "{name} = {}", value(&setting));
            }
        }
        if !self.transports.is_empty() {
            out.push_str("\n[transports]\n");
        }
        for (system, transport) in &self.transports {
            let _ = writeln!(out, "{} = {}", quoted(system), quoted(transport.word()));
        }
        out.push_str("\n[axes]\n");
        for axis in self.axes.iter().filter(|axis| !axis.name.starts_with("options.") && axis.name != PART) {
            let _ = writeln!(out, "{} = {}", axis.name, list(&axis.values));
        }
        for axis in self.axes.iter().filter_map(|axis| axis.name.strip_prefix("options.").map(|name| (name, axis))) {
            let _ = writeln!(out, "options.{} = {}", quoted(axis.0), list(&axis.1.values));
        }
        for part in &self.parts {
            let _ = writeln!(out, "\n[parts.{}]", quoted(&part.name));
            for axis in &part.axes {
                let name = axis.name.strip_prefix("options.").map(|name| format!("options.{}", quoted(name)));
                let _ = writeln!(out, "{} = {}", name.as_deref().unwrap_or(&axis.name), list(&axis.values));
            }
        }
        for skip in &self.skips {
            let _ = writeln!(out, "\n[[skip]]\nwhy = {}", quoted(&skip.why));
            for (name, wanted) in &skip.conditions {
                out.push_str(&condition(name, wanted));
            }
        }
        let mut systems: Vec<Option<&str>> = self.options.iter().map(|option| option.system.as_deref()).collect();
        systems.sort_unstable();
        systems.dedup();
        for system in systems {
            match system {
                None => out.push_str("\n[options]\n"),
                Some(system) => {
                    let _ = writeln!(out, "\n[options.{}]", quoted(system));
                }
            }
            for option in self.options.iter().filter(|option| option.system.as_deref() == system) {
                let shown = recorded_text(&option.name, option.secret, &option.text);
                let _ = writeln!(out, "{} = {}", quoted(&option.name), quoted(&shown));
            }
        }
        for claim in &self.claims {
            let _ = writeln!(out, "\n[[claims]]\nid = {}\nsays = {}", quoted(&claim.id), quoted(&claim.says));
            let _ = match &claim.statement {
                Statement::Best { figure, best, among } => {
                    let (best, among) = (texts(best), texts(among));
                    writeln!(out, "figure = \"{}\"\nbest = {best}\namong = {among}", figure.key())
                }
                Statement::Keeps(objective) => writeln!(out, "require = {}", quoted(&objective.to_string())),
            };
            let _ = writeln!(out, "share = {}", claim.share);
            if !claim.conditions.is_empty() {
                out.push_str("[claims.where]\n");
            }
            for (name, wanted) in &claim.conditions {
                out.push_str(&condition(name, wanted));
            }
        }
        if let Some(asked) = &self.questions {
            let best = asked.best.iter().map(|figure| figure.map_or(AUTO, Figure::key));
            let differ: Vec<String> = asked.differ.iter().map(|[one, other]| format!("{one}, {other}")).collect();
            let within: Vec<String> = asked.within.iter().map(ToString::to_string).collect();
            let _ = writeln!(
                out,
                "\n[questions]\nbest = {}\nclaims = {}\ndiffer = {}\nwithin = {}",
                texts(&best.collect::<Vec<_>>()),
                asked.claims,
                texts(&differ),
                texts(&within)
            );
        }
        out.push_str(&self.hosts.to_toml(quoted));
        if let Some(goal) = &self.capacity {
            let _ = writeln!(
                out,
                "\n[capacity]\n{} = {}\nover = \"{}\"\nwithin = \"{}%\"",
                if goal.asked.is_some() { "objective" } else { "until" },
                quoted(&goal.until.to_string()),
                goal.over,
                (goal.within * 1e8).round() / 1e6
            );
            let start = goal.asked.as_ref().map_or(Some(goal.start), |asked| asked.start);
            let _ = start.map_or(Ok(()), |start| writeln!(out, "start = {start}"));
            if let Some(asked) = goal.asked.as_ref().filter(|asked| !asked.parts.is_empty()) {
                let _ = writeln!(out, "parts = {}", texts(&asked.parts));
            }
            let budget_ns = goal.asked.as_ref().and_then(|asked| asked.budget_ns);
            let _ = budget_ns.map_or(Ok(()), |ns| writeln!(out, "budget = {}", quoted(&format_time(ns))));
        }
        if let Some(ab) = &self.ab {
            let [keys, fail_on, require] = [&ab.keys, &ab.fail_on, &ab.require].map(|all| texts(all));
            let _ = writeln!(out, "\n[ab]\nkeys = {keys}\nfail_on = {fail_on}\nrequire = {require}");
        }
        // The last table: what is before it is the study, for `--resume`.
        if let Some(reference) = &self.reference {
            out.push_str(REFERENCE);
            let note = reference.note.as_ref().map(|note| ("note", note));
            for (key, text) in [("source", &reference.source), ("machine", &reference.machine)].into_iter().chain(note)
            {
                let _ = writeln!(out, "{key} = {}", quoted(text));
            }
        }
        out
    }
}
