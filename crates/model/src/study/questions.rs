//! Reads a study's questions: `[[claims]]` and `[questions]`.

use super::parse::Parser;
use crate::claim::{Claim, Expression, Names, Statement};
use crate::diagnostic::{Diagnostic, meant};
use crate::document::{Entry, Scalar, Table};
use crate::figure::Figure;
use crate::objective::Objective;
use crate::question::{AUTO, AskedQuestions, Precision};

const CLAIM: [&str; 11] =
    ["id", "says", "expr", "figure", "best", "among", "require", "share", "restates", "gate", "narrowed"];
const QUESTIONS: [&str; 4] = ["best", "claims", "differ", "within"];

impl Parser<'_> {
    /// Reads an entry of `[[claims]]`.
    pub(super) fn claim(&mut self, table: &Table) {
        let (mut id, mut says, mut share) = (String::new(), String::new(), 1.0);
        let (mut figure, mut require, mut expr) = (None, None, None);
        let (mut restates, mut gate, mut narrowed) = (None, false, false);
        let (mut best, mut among) = (Vec::new(), Vec::new());
        let mut broken = false;
        for entry in &table.entries {
            match entry.key.as_str() {
                "best" => best = self.system_names(&entry.values),
                "among" => among = self.system_names(&entry.values),
                name if !CLAIM.contains(&name) => self.unknown(entry.unknown("[[claims]]", CLAIM)),
                "expr" => {
                    let Some(value) = entry.one(&mut self.errors) else { continue };
                    match self.expression(value) {
                        Ok(read) => expr = Some(read),
                        // The claim cannot be tested any more.
                        Err(_) if self.study.recorded => return,
                        Err(errors) => {
                            self.errors.extend(errors);
                            broken = true;
                        }
                    }
                }
                _ => {
                    let Some(value) = entry.one(&mut self.errors) else { continue };
                    let text = value.text.as_str();
                    let read = match entry.key.as_str() {
                        "id" | "says" => {
                            text.clone_into(if entry.key == "id" { &mut id } else { &mut says });
                            Ok(())
                        }
                        "figure" => Figure::ranking(text).map(|read| figure = Some(read)).map_err(|e| e.to_string()),
                        "require" => Objective::parse(text)
                            .and_then(Objective::of_whole_runs)
                            .map(|read| require = Some(read))
                            .map_err(|e| e.to_string()),
                        "restates" => {
                            restates = Some(text.to_owned());
                            Ok(())
                        }
                        key @ ("gate" | "narrowed") => match text.parse() {
                            Ok(read) => {
                                *(if key == "gate" { &mut gate } else { &mut narrowed }) = read;
                                Ok(())
                            }
                            Err(_) => Err(format!("`{key}` is true or false")),
                        },
                        _ => match text.parse() {
                            Ok(read) if (0.0..=1.0).contains(&read) => {
                                share = read;
                                Ok(())
                            }
                            _ => Err("`share` is a number from 0 to 1".to_owned()),
                        },
                    };
                    match read {
                        Ok(()) => {}
                        // The claim cannot be tested any more.
                        Err(_) if self.study.recorded && entry.key != "share" => return,
                        Err(message) => self.errors.push(Diagnostic::at_value(value.at, message)),
                    }
                }
            }
        }
        let given = |name: &str| {
            let entry = table.entries.iter().find(|entry| entry.key == name);
            entry.is_some_and(|entry| entry.values.iter().any(|value| !value.text.is_empty()))
        };
        let ranks = ["figure", "best", "among"].into_iter().any(given);
        let statements = [given("expr"), given("require"), ranks].into_iter().filter(|given| *given).count();
        if statements > 1 {
            let message = "a [[claims]] entry has one statement: `expr`, or `require`, or `figure` and `best`";
            self.errors.push(Diagnostic::at(table.at, message).help("write an entry for each, with the same `id`"));
        } else if !(given("id") && given("says") && statements == 1 && (!ranks || given("figure") && given("best"))) {
            let message = "a [[claims]] entry needs `id`, `says`, and `expr`, or `figure` and `best`, or `require`";
            self.errors.push(Diagnostic::at(table.at, message));
        }
        let statement = match (expr, require) {
            (Some(expression), _) => Statement::Says(expression),
            (None, Some(objective)) => Statement::Keeps(objective),
            // Its errors are reported, but its conditions are still checked.
            (None, None) if broken => Statement::Keeps(Objective::usual()),
            (None, None) => Statement::Best { figure: figure.unwrap_or(Figure::LATENCY_P50), best, among },
        };
        let written = table.entries.iter().find(|entry| entry.key == "expr").and_then(|entry| entry.values.first());
        self.claims_at.push(written.map_or(table.at, |value| self.start_of(value).unwrap_or(value.at)));
        self.study.claims.push(Claim { id, says, statement, restates, gate, narrowed, conditions: Vec::new(), share });
    }

    /// Reads an expression; its errors have their places in the file.
    fn expression(&self, value: &Scalar) -> Result<Expression, Vec<Diagnostic>> {
        let system = |name: &str| match self.axis_value("system", &Scalar { text: name.into(), at: 0 }) {
            Ok(known) => Ok(known.as_str().unwrap_or(name).to_owned()),
            Err(error) => {
                let names = self.names.iter().map(String::as_str);
                Err((error.message, meant(name, names).map(|meant| format!("did you mean {meant}?")).or(error.help)))
            }
        };
        let on_axis = |axis: &str, text: &str| {
            let read = self.axis_value(axis, &Scalar { text: text.into(), at: 0 });
            read.map_err(|error| (format!("{axis}: {}", error.message), error.help))
        };
        let is_flow = |name: &str| self.study.flows.iter().any(|flow| flow.name == name);
        let names = Names { system: &system, is_flow: &is_flow, value: &on_axis };
        Expression::parse(&value.text, &names).map_err(|errors| {
            let start = self.start_of(value);
            let located = errors.into_iter().map(|error| {
                let place = start.map_or(value.at, |start| start + error.at);
                let found = Diagnostic::at_value(place, error.message);
                error.help.into_iter().fold(found, Diagnostic::help)
            });
            located.collect()
        })
    }

    /// Returns where the text of a value begins after its quote; `None` if the file writes it with
    /// escapes.
    fn start_of(&self, value: &Scalar) -> Option<usize> {
        let raw = self.text.get(value.at..)?;
        let quotes = ["\"\"\"\n", "'''\n", "\"\"\"", "'''", "\"", "'"];
        let quote = quotes.into_iter().find(|quote| raw.starts_with(quote))?;
        raw[quote.len()..].starts_with(&value.text).then_some(value.at + quote.len())
    }

    /// Returns the canonical names of systems.
    fn system_names(&mut self, values: &[Scalar]) -> Vec<String> {
        let mut names = Vec::new();
        for scalar in values {
            match self.axis_value("system", scalar) {
                Ok(name) => names.push(name.as_str().unwrap_or(&scalar.text).to_owned()),
                Err(error) => self.errors.push(error),
            }
        }
        names
    }

    /// Reads `[questions]`: questions that it does not name are not asked.
    pub(super) fn questions(&mut self, table: &Table) {
        let mut asked = AskedQuestions::none();
        for entry in &table.entries {
            match entry.key.as_str() {
                "best" => {
                    asked.best = self.each(entry, |text| match text {
                        AUTO => Ok(None),
                        text => Figure::ranking(text).map(Some).map_err(|error| format!("{error}, or \"{AUTO}\"")),
                    })
                }
                "within" => asked.within = self.each(entry, |text| Precision::parse(text).map_err(|e| e.to_string())),
                "differ" => {
                    for scalar in &entry.values {
                        let name = |name: &str| Scalar { text: name.trim().into(), at: scalar.at };
                        let names: Vec<Scalar> = scalar.text.split(',').map(name).collect();
                        match <[String; 2]>::try_from(self.system_names(&names)) {
                            Ok(pair) => asked.differ.push(pair),
                            Err(_) if names.len() == 2 => {}
                            Err(_) => self.errors.push(Diagnostic::at_value(
                                scalar.at,
                                "`differ` has two systems each: differ = [\"mosquitto, nats\"]".to_owned(),
                            )),
                        }
                    }
                }
                "claims" => {
                    let Some(value) = entry.one(&mut self.errors) else { continue };
                    match value.text.parse() {
                        Ok(claims) => asked.claims = claims,
                        Err(_) => {
                            self.errors.push(Diagnostic::at_value(value.at, "`claims` is true or false".to_owned()))
                        }
                    }
                }
                _ => self.unknown(entry.unknown("[questions]", QUESTIONS)),
            }
        }
        self.study.questions = Some(asked);
    }

    /// Parses each value of an entry; in a results folder, values that are no longer understood are
    /// left out.
    fn each<T>(&mut self, entry: &Entry, read: impl Fn(&str) -> Result<T, String>) -> Vec<T> {
        let mut all = Vec::new();
        for scalar in &entry.values {
            match read(&scalar.text) {
                Ok(one) => all.push(one),
                Err(_) if self.study.recorded => {}
                Err(error) => self.errors.push(Diagnostic::at_value(scalar.at, error)),
            }
        }
        all
    }
}
