//! Writes a resolved study, which the results folder keeps and `--resume` compares.

use super::axis::PART;
use super::{Axis, Study};
use crate::claim::{Condition, Statement};
use crate::figure::Figure;
use crate::question::AUTO;
use crate::secret::recorded_text;
use crate::setting::{KEYS, Section};
use crate::toml_values::{list, texts, value};
use crate::units::format_time;
use toml::{Table, Value};

/// Table of published figures; it changes nothing that is measured.
const REFERENCE: &str = "reference";
/// Table of parts; a capacity search adds parts while it measures.
const PARTS: &str = "parts";

/// Formats a number, as an integer if it is whole.
fn number(number: f64) -> Value {
    match number.fract() == 0.0 && number.abs() < 1e15 {
        true => Value::Integer(number as i64),
        false => Value::Float(number),
    }
}

fn conditions(all: &[(String, Condition)]) -> impl Iterator<Item = (String, Value)> {
    all.iter().map(|(name, condition)| {
        let wanted = match condition {
            Condition::OneOf(values) => list(values),
            Condition::AtMost(most) => format!("<={most}").into(),
            Condition::AtLeast(least) => format!(">={least}").into(),
        };
        (name.clone(), wanted)
    })
}

/// Returns the table of axes; those that are options are a table within it.
fn axes(all: &[Axis]) -> Table {
    let (mut table, mut options) = (Table::new(), Table::new());
    for axis in all.iter().filter(|axis| axis.name != PART) {
        match axis.name.strip_prefix("options.") {
            Some(name) => options.insert(name.to_owned(), list(&axis.values)),
            None => table.insert(axis.name.clone(), list(&axis.values)),
        };
    }
    insert_table(&mut table, "options", options);
    table
}

/// Adds a table, unless it is empty.
fn insert_table(to: &mut Table, name: &str, table: Table) {
    if !table.is_empty() {
        to.insert(name.to_owned(), table.into());
    }
}

fn insert_tables(to: &mut Table, name: &str, tables: impl Iterator<Item = Table>) {
    let tables: Vec<Value> = tables.map(Value::Table).collect();
    if !tables.is_empty() {
        to.insert(name.to_owned(), tables.into());
    }
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> Table {
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl Study {
    /// Returns true if two studies, as [`Study::to_toml`] writes them, measure the same; if
    /// `parts_may_grow`, their parts may differ.
    pub fn measures_the_same(one: &str, other: &str, parts_may_grow: bool) -> bool {
        let measured = |text: &str| {
            let mut table: Table = text.parse().ok()?;
            table.remove(REFERENCE);
            parts_may_grow.then(|| table.remove(PARTS));
            Some(table)
        };
        measured(one).is_some_and(|one| measured(other) == Some(one))
    }

    /// Formats the study as a file that parses back to the same study.
    pub fn to_toml(&self) -> String {
        let mut out = table([("title", (&*self.title).into()), ("question", (&*self.question).into())]);
        out.extend(self.baseline.as_ref().map(|baseline| ("baseline".to_owned(), (&**baseline).into())));
        for section in [Section::Workload, Section::Limits, Section::Faults, Section::Settings, Section::Run] {
            let keys = KEYS.iter().filter(|key| key.section == section);
            let mut keys: Vec<_> = keys.filter_map(|key| Some((key.name, key.value(&self.settings)?))).collect();
            keys.sort_unstable_by_key(|(name, _)| *name);
            let keys = keys.into_iter().map(|(name, setting)| (name.to_owned(), value(&setting)));
            insert_table(&mut out, section.name(), keys.collect());
        }
        let flows = self.flows.iter().map(|flow| {
            let keys = KEYS.iter().filter_map(|key| Some((key.name.to_owned(), value(&key.value(&flow.settings)?))));
            (flow.name.clone(), keys.collect::<Table>().into())
        });
        insert_table(&mut out, "flows", flows.collect());
        insert_table(&mut out, "sizes", self.sizes_table());
        insert_table(&mut out, "traces", self.traces_table());
        insert_table(&mut out, "payloads", self.payloads_table());
        let transports = self.transports.iter().map(|(system, transport)| (system.clone(), transport.word().into()));
        insert_table(&mut out, "transports", transports.collect());
        out.insert("axes".into(), axes(&self.axes).into());
        let parts = self.parts.iter().map(|part| (part.name.clone(), axes(&part.axes).into()));
        insert_table(&mut out, PARTS, parts.collect());
        let skips = self.skips.iter().map(|skip| {
            let mut table = table([("why", (&*skip.why).into())]);
            table.extend(conditions(&skip.conditions));
            table
        });
        insert_tables(&mut out, "skip", skips);
        insert_table(&mut out, "options", self.options_table());
        insert_tables(&mut out, "claims", self.claims.iter().map(claim));
        if let Some(asked) = &self.questions {
            let table = table([
                ("best", texts(asked.best.iter().map(|figure| figure.map_or(AUTO, Figure::key)))),
                ("claims", asked.claims.into()),
                ("differ", texts(asked.differ.iter().map(|[one, other]| format!("{one}, {other}")))),
                ("within", texts(asked.within.iter().map(ToString::to_string))),
            ]);
            out.insert("questions".into(), table.into());
        }
        insert_table(&mut out, "hosts", self.hosts.to_toml());
        insert_table(&mut out, "capacity", self.capacity_table());
        if let Some(ab) = &self.ab {
            let [keys, fail_on, require] = [&ab.keys, &ab.fail_on, &ab.require].map(texts);
            out.insert("ab".into(), table([("keys", keys), ("fail_on", fail_on), ("require", require)]).into());
        }
        if let Some(reference) = &self.reference {
            let [source, machine] = [&reference.source, &reference.machine].map(|text| text.clone().into());
            let mut table = table([("source", source), ("machine", machine)]);
            table.extend(reference.note.clone().map(|note| ("note".to_owned(), note.into())));
            out.insert(REFERENCE.into(), table.into());
        }
        format!("# As resolved: defaults filled in, overrides applied.\n{out}")
    }

    /// Returns the table of options: those of all systems first, then a table for each system with
    /// options of its own.
    fn options_table(&self) -> Table {
        let mut table = Table::new();
        for option in &self.options {
            let shown = recorded_text(&option.name, option.secret, &option.text);
            let own = match &option.system {
                None => Some(&mut table),
                Some(system) => table.entry(system.clone()).or_insert_with(|| Table::new().into()).as_table_mut(),
            };
            own.map(|own| own.insert(option.name.clone(), shown.into()));
        }
        table
    }

    fn capacity_table(&self) -> Table {
        let Some(goal) = &self.capacity else { return Table::new() };
        let asked = goal.asked.as_ref();
        let over: Vec<String> = goal.loads().map(|over| goal.text_of(over)).collect();
        let mut table = table([
            (if asked.is_some() { "objective" } else { "until" }, goal.until.to_string().into()),
            ("over", if let [over] = over.as_slice() { over.as_str().into() } else { texts(&over) }),
            ("within", format!("{}%", (goal.within * 1e8).round() / 1e6).into()),
        ]);
        let start = asked.map_or(Some(goal.start), |asked| asked.start).map(number);
        let parts = asked.filter(|asked| !asked.parts.is_empty()).map(|asked| texts(&asked.parts));
        let budget = asked.and_then(|asked| asked.budget_ns).map(|ns| format_time(ns).into());
        for (name, value) in [("start", start), ("parts", parts), ("budget", budget)] {
            table.extend(value.map(|value| (name.to_owned(), value)));
        }
        table
    }
}

fn claim(claim: &crate::claim::Claim) -> Table {
    let mut out = table([("id", (&*claim.id).into()), ("says", (&*claim.says).into())]);
    out.extend(match &claim.statement {
        Statement::Best { figure, best, among } => {
            table([("figure", figure.key().into()), ("best", texts(best)), ("among", texts(among))])
        }
        Statement::Keeps(objective) => table([("require", objective.to_string().into())]),
        Statement::Says(expression) => table([("expr", (&*expression.text).into())]),
    });
    out.extend(claim.restates.as_deref().map(|restates| ("restates".to_owned(), restates.into())));
    for (name, is_set) in [("gate", claim.gate), ("narrowed", claim.narrowed)] {
        out.extend(is_set.then(|| (name.to_owned(), true.into())));
    }
    out.insert("share".into(), number(claim.share));
    insert_table(&mut out, "where", conditions(&claim.conditions).collect());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studies_are_compared_by_what_they_say_and_not_by_how_it_is_written() {
        let study = "title = \"a\"\n[run]\nblocks = 3\n[axes]\nsystem = [\"mqtt\"]\n";
        let same = "# A comment.\ntitle = 'a'\naxes = { system = [ \"mqtt\" ] }\nrun.blocks = 3\n";
        let compared = format!("{study}[reference]\nsource = \"s\"\n");
        let grown = format!("{study}[parts.p]\npayload = [64]\n");
        let other = study.replace("blocks = 3", "blocks = 4");
        for (text, alike, alike_grown) in
            [(study, true, true), (same, true, true), (&*compared, true, true), (&*grown, false, true)]
        {
            assert_eq!(Study::measures_the_same(study, text, false), alike, "{text}");
            assert_eq!(Study::measures_the_same(text, study, true), alike_grown, "{text}");
        }
        for text in [other.as_str(), "title = ", ""] {
            assert!(!Study::measures_the_same(study, text, true) && !Study::measures_the_same(text, study, true));
        }
        assert!(!Study::measures_the_same("title = ", "title = ", true), "what cannot be read is nobody's study");
    }
}
