//! Constraints on systems, such as `p99 < 20ms and server_memory < 100MB`, and which systems meet
//! them.

use crate::analysis::{CellResult, by_cell};
use crate::axes::axis_value;
use crate::bound_check::{BoundVerdict, BoundedRuns};
use crate::compare::AxisFilter;
use crate::document::{Document, Entry, Head, Mark, Row, table};
use crate::report::Report;
use crate::text::clean;
use crate::{markdown, terminal};
use pubmark_model::cell::label;
use pubmark_model::objective::{Objective, ObjectiveError, ObjectiveTerm};
use serde_json::{Value, json};

/// Longest constraint, name and reason that is shown, characters.
const CHARS: usize = 160;

/// Facts of a system's file that can be asked for.
const FACTS: [&str; 4] = ["system", "licence", "license", "language"];

/// A constraint on a system.
#[derive(Clone, Debug)]
pub struct Constraints {
    text: String,
    terms: Vec<Constraint>,
}

#[derive(Clone, Debug)]
enum Constraint {
    /// A figure of the cell lies within a bound.
    Figure(ObjectiveTerm),
    /// A fact of the system contains this text.
    Fact { name: String, value: String },
    /// The cell lies at this value of an axis: other cells are not looked at.
    Axis(AxisFilter),
}

/// Why constraints cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum ConstraintError {
    /// A term is no bound of a figure.
    #[error(transparent)]
    Objective(#[from] ObjectiveError),
    /// No cell has this value of an axis.
    #[error("no cell has {name} = {value}; it has {there}")]
    Value {
        /// The axis.
        name: String,
        /// The requested value.
        value: String,
        /// The existing values.
        there: String,
    },
}

/// Result of the constraints for a cell, with its evidence.
struct Fit<'a> {
    result: &'a CellResult,
    /// `None` if its runs show neither.
    meets: Option<bool>,
    why: String,
}

impl Constraints {
    /// Reads constraints on the cells of a report: bounds of figures, values of axes
    /// (`qos = 1`), and `licence = MIT`, with `and` between them.
    ///
    /// # Errors
    /// Which of them is none, and what would be.
    pub fn parse(text: &str, report: &Report) -> Result<Constraints, ConstraintError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut terms = Vec::new();
        for words in words.split(|word| word.eq_ignore_ascii_case("and")) {
            let term = words.join(" ");
            let equal = term.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
            let is_axis = |name: &str| report.cells().iter().any(|result| result.cell.axes.contains_key(name));
            terms.push(match equal {
                Some((name, value)) if FACTS.contains(&name) => {
                    Constraint::Fact { name: name.into(), value: value.into() }
                }
                Some((name, value)) if is_axis(name) => {
                    let only = AxisFilter::new(name, value);
                    if !report.cells().iter().any(|result| only.holds(result)) {
                        let there = values(report, name);
                        return Err(ConstraintError::Value { name: name.into(), value: value.into(), there });
                    }
                    Constraint::Axis(only)
                }
                _ => {
                    let mut of_figure = Objective::parse(&term)?.of_whole_runs()?.terms().to_vec();
                    Constraint::Figure(of_figure.remove(0))
                }
            });
        }
        Ok(Constraints { text: clean(text, CHARS), terms })
    }
}

/// The values of an axis, as they are typed.
fn values(report: &Report, axis: &str) -> String {
    let mut values: Vec<String> =
        report.cells().iter().filter_map(|result| Some(axis_value(axis, result.cell.axes.get(axis)?))).collect();
    values.sort();
    values.dedup();
    clean(&values.join(", "), CHARS)
}

impl Constraint {
    /// True if a cell is among the selected ones.
    fn is_at(&self, result: &CellResult) -> bool {
        if let Constraint::Axis(only) = self { only.holds(result) } else { true }
    }
}

impl Report {
    fn fits(&self, constraints: &Constraints) -> Vec<Fit<'_>> {
        let runs_of = by_cell(self.cells().len(), self.cells_of_runs().iter().copied().zip(self.runs()));
        let cells = self.cells().iter().zip(runs_of);
        let cells = cells.filter(|(result, _)| result.cell.skipped.is_none() && !result.is_reference);
        let cells = cells.filter(|(result, _)| constraints.terms.iter().all(|term| term.is_at(result)));
        cells
            .map(|(result, runs)| {
                let (mut meets, mut why) = (Some(true), Vec::new());
                for term in &constraints.terms {
                    let (verdict, what) = match term {
                        Constraint::Axis(_) => continue,
                        Constraint::Fact { name, value } => {
                            let system = &result.cell.system;
                            let own = match name.as_str() {
                                "system" => &system.name,
                                "language" => &system.language,
                                _ => &system.licence,
                            };
                            let has = match name.as_str() {
                                // C is not C++.
                                "language" => own.eq_ignore_ascii_case(value),
                                _ => own.to_lowercase().contains(&value.to_lowercase()),
                            };
                            let shown = if own.is_empty() { "is not known" } else { own };
                            ((!own.is_empty()).then_some(has), format!("{name} {shown}"))
                        }
                        Constraint::Figure(term) => {
                            let name = term.text();
                            match (BoundedRuns { term, runs: &runs }).once() {
                                BoundVerdict::Kept => (Some(true), String::new()),
                                BoundVerdict::Broken(what) => (Some(false), format!("{name}: {what}")),
                                BoundVerdict::Open(what) => (None, format!("{name}: {what}")),
                                BoundVerdict::Unknown(why) => (None, format!("{name}: {why}")),
                            }
                        }
                    };
                    meets = match (meets, verdict) {
                        (Some(false), _) | (_, Some(false)) => Some(false),
                        (Some(true), verdict) => verdict,
                        (None, _) => None,
                    };
                    if verdict != Some(true) {
                        why.push(what);
                    }
                }
                Fit { result, meets, why: clean(&why.join("; "), CHARS) }
            })
            .collect()
    }

    /// Returns which systems meet constraints, as text for a terminal.
    pub fn fitting(&self, constraints: &Constraints, width: usize, colour: bool) -> String {
        terminal::render(&self.fitting_document(constraints), width, colour)
    }

    /// Returns the same as Markdown.
    pub fn fitting_markdown(&self, constraints: &Constraints) -> String {
        markdown::render(&self.fitting_document(constraints))
    }

    /// Returns the same as JSON: an object for each cell with its axes, `meets` (null where its
    /// runs show neither) and `why`.
    pub fn fitting_json(&self, constraints: &Constraints) -> Value {
        let fits = self.fits(constraints);
        let one = |fit: &Fit<'_>| json!({"cell": fit.result.cell.axes, "meets": fit.meets, "why": fit.why});
        json!({"where": constraints.text, "cells": fits.iter().map(one).collect::<Vec<Value>>()})
    }

    fn fitting_document(&self, constraints: &Constraints) -> Document {
        let fits = self.fits(constraints);
        let mut systems: Vec<&str> = fits.iter().map(|fit| fit.result.cell.system.name.as_str()).collect();
        systems.sort_unstable();
        systems.dedup();
        let count = |system: &str, meets: Option<bool>| {
            fits.iter().filter(|fit| fit.result.cell.system.name == system && fit.meets == meets).count()
        };
        let sentence = |system: &&str| {
            let [yes, no, open] = [Some(true), Some(false), None].map(|meets| count(system, meets));
            let open = if open > 0 { format!(", {open} open") } else { String::new() };
            format!("{}: {yes} of {} cells meet them{open}.", clean(system, CHARS), yes + no + count(system, None))
        };
        systems.sort_by_key(|system| std::cmp::Reverse(count(system, Some(true))));
        let head = |name: &str| Head::new(name, false, 0);
        let row = |fit: &Fit<'_>| {
            let mut axes = fit.result.cell.axes.clone();
            axes.shift_remove("system");
            let (mark, word) = match fit.meets {
                Some(true) => (Mark::Good, "meets"),
                Some(false) => (Mark::Plain, "does not"),
                None => (Mark::Muted, "open"),
            };
            let texts =
                [clean(&fit.result.cell.system.name, CHARS), clean(&label(&axes), CHARS), word.into(), fit.why.clone()];
            Row { entries: texts.map(Entry::plain).into(), mark, bar: None }
        };
        let mut ordered: Vec<&Fit<'_>> = fits.iter().collect();
        ordered.sort_by_key(|fit| match fit.meets {
            Some(true) => 0,
            None => 1,
            Some(false) => 2,
        });
        let rows: Vec<Row> = ordered.into_iter().map(row).collect();
        let heads = ["system", "cell", "answer", "why not"].map(head).into();
        Document {
            title: clean(&self.study().title, CHARS),
            question: format!("Which systems meet: {}", constraints.text),
            constants: String::new(),
            answers: systems.iter().map(sentence).collect(),
            tables: if rows.is_empty() {
                Vec::new()
            } else {
                vec![table("Cells", heads, vec![rows], Vec::new(), true)]
            },
            claims: None,
            closing: Vec::new(),
        }
    }
}
