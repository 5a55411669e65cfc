//! What a study asks: `[[claims]]` and `[questions]`.

use super::parse::Parser;
use crate::asked::{AUTO, AskedQuestions, Precision};
use crate::claim::{Claim, Statement};
use crate::diagnostic::Diagnostic;
use crate::document::{Entry, Scalar, Table};
use crate::figure::Figure;
use crate::objective::Objective;

const CLAIM: [&str; 7] = ["id", "says", "figure", "best", "among", "require", "share"];
const QUESTIONS: [&str; 4] = ["best", "claims", "differ", "within"];

impl Parser<'_> {
    /// Reads an entry of `[[claims]]`.
    pub(super) fn claim(&mut self, table: &Table) {
        let (mut id, mut says, mut share) = (String::new(), String::new(), 1.0);
        let (mut figure, mut require) = (None, None);
        let (mut best, mut among) = (Vec::new(), Vec::new());
        for entry in &table.entries {
            match entry.key.as_str() {
                "best" => best = self.system_names(&entry.values),
                "among" => among = self.system_names(&entry.values),
                name if !CLAIM.contains(&name) => self.unknown(entry.unknown("[[claims]]", CLAIM)),
                _ => {
                    let Some(value) = entry.one(&mut self.errors) else { continue };
                    let text = value.text.as_str();
                    let read = match entry.key.as_str() {
                        "id" | "says" => {
                            text.clone_into(if entry.key == "id" { &mut id } else { &mut says });
                            Ok(())
                        }
                        "figure" => Figure::ranking(text).map(|read| figure = Some(read)).map_err(|e| e.to_string()),
                        "require" => Objective::parse(text).map(|read| require = Some(read)).map_err(|e| e.to_string()),
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
                        // Nothing can be said of it any more.
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
        if given("require") && ranks {
            let message = "a [[claims]] entry has `require`, or `figure` and `best`: two statements are two entries";
            self.errors.push(Diagnostic::at(table.at, message));
        } else if !(given("id") && given("says") && (given("require") || given("figure") && given("best"))) {
            let message = "a [[claims]] entry needs `id`, `says`, and `figure` and `best` or else `require`";
            self.errors.push(Diagnostic::at(table.at, message));
        }
        let statement = match require {
            Some(objective) => Statement::Keeps(objective),
            None => Statement::Best { figure: figure.unwrap_or(Figure::LATENCY_P50), best, among },
        };
        self.study.claims.push(Claim { id, says, statement, conditions: Vec::new(), share });
    }

    /// Names of systems, as they are known.
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

    /// Reads `[questions]`: what it does not name is not asked.
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

    /// What is read of each value; in a folder of results, what is not understood any
    /// more is not asked.
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
