//! Reads the settings from a system file, and their differences from the vendor defaults.

use super::System;
use crate::diagnostic::Diagnostic;
use crate::document::{Scalar, Table, flag};
use crate::figure_group::FigureGroup;
use crate::options::{OptionKind, OptionSpec};
use crate::secret::HIDDEN;
use crate::tuning::{DefaultValue, Fixed, RecommendedSetting};
use serde_json::Value;

const OPTION: [&str; 9] = ["kind", "default", "doc", "secret", "stock", "stays", "why", "moves", "with_durable"];

fn kind(text: &str) -> Option<OptionKind> {
    Some(match text {
        "bool" => OptionKind::Bool,
        "count" => OptionKind::Count,
        "size" => OptionKind::Size,
        "time" => OptionKind::Time,
        "text" => OptionKind::Text,
        _ => return None,
    })
}

fn group(text: &str) -> Result<FigureGroup, String> {
    let found = FigureGroup::ALL.iter().find(|group| serde_json::to_value(group).ok() == Some(Value::from(text)));
    let known = "counts, rates, latency_p50, latency_p99, cost";
    found.copied().ok_or_else(|| format!("`{text}` is not a group of figures: {known}"))
}

/// Content of an option's table, before its kind is known.
#[derive(Default)]
struct Said {
    default: Option<Scalar>,
    stock: Option<Scalar>,
    stays: Option<String>,
    why: Option<String>,
}

impl System {
    pub(super) fn read_option(&mut self, name: &str, table: &Table, errors: &mut Vec<Diagnostic>) {
        let mut spec = OptionSpec {
            name: name.into(),
            kind: OptionKind::Text,
            default: None,
            doc: String::new(),
            tuned: None,
            secret: None,
        };
        let mut said = Said::default();
        for entry in table.entries.iter().filter(|entry| entry.key != "moves") {
            let Some(value) = entry.one(errors) else { continue };
            match entry.key.as_str() {
                "kind" => match kind(&value.text) {
                    Some(kind) => spec.kind = kind,
                    None => errors.push(Diagnostic::at(
                        value.at,
                        format!("`{}` is not one of bool, count, size, time, text", value.text),
                    )),
                },
                "default" => said.default = Some(value.clone()),
                "stock" => said.stock = Some(value.clone()),
                "stays" => said.stays = Some(value.text.clone()),
                "why" => said.why = Some(value.text.clone()),
                "secret" => match flag(&value.text) {
                    Ok(secret) => spec.secret = Some(secret),
                    Err(error) => errors.push(Diagnostic::at_value(value.at, format!("secret: {error}"))),
                },
                "with_durable" => {}
                "doc" => spec.doc = value.text.clone(),
                _ => errors.push(entry.unknown("an option", OPTION)),
            }
        }
        let (kind, secret) = (spec.kind, spec.is_secret());
        let mut read = |value: Option<Scalar>| -> Option<Value> {
            let value = value?;
            let read = kind.read(&value.text);
            let refused = |error| match secret {
                true => Diagnostic::at(value.at, format!("this is not a {}", kind.word())),
                false => Diagnostic::at_value(value.at, error),
            };
            read.map_err(|error| errors.push(refused(error))).ok()
        };
        spec.default = read(said.default);
        let stock = read(said.stock);
        let refuse = |text: String| Diagnostic::at(table.at, format!("the option `{name}` {text}"));
        let stock = match (stock, said.stays) {
            (Some(_), Some(_)) => {
                errors.push(refuse("has both `stock` and `stays`: it has its makers' default, or keeps ours".into()));
                None
            }
            (Some(stock), None) if spec.default.as_ref() == Some(&stock) => {
                let shown = if secret { HIDDEN.into() } else { stock };
                errors.push(refuse(format!("has the `stock` value {shown}, which is the default as well")));
                None
            }
            (Some(stock), None) => Some(DefaultValue::Value(stock)),
            (None, Some(stays)) => Some(DefaultValue::Stays(stays)),
            (None, None) => None,
        };
        spec.tuned = match (stock, said.why) {
            (Some(stock), Some(why)) => Some(RecommendedSetting {
                stock,
                why,
                moves: table.words("moves", group, errors),
                with_durable: table.words("with_durable", flag, errors).contains(&true),
            }),
            (Some(_), None) => {
                errors.push(refuse("is not its makers' and has no `why`: give the reason".into()));
                None
            }
            (None, Some(_)) => {
                errors.push(refuse("has a `why` without `stock`, its makers' default, or `stays`".into()));
                None
            }
            (None, None) => None,
        };
        self.options.retain(|option| option.name != spec.name);
        self.options.push(spec);
    }

    /// Reads the options that bound a queue. The options of the system are known.
    pub(super) fn read_full_queue(&mut self, table: &Table, errors: &mut Vec<Diagnostic>) {
        for entry in &table.entries {
            let Some(value) = entry.one(errors) else { continue };
            let Some(option) = self.option(&entry.key) else {
                errors.push(entry.unknown("full_queue", self.options.iter().map(|option| option.name.as_str())));
                continue;
            };
            match option.kind.read(&value.text) {
                Ok(read) => self.full_queue.push((entry.key.clone(), read)),
                Err(error) => errors.push(Diagnostic::at_value(value.at, error)),
            }
        }
    }

    pub(super) fn read_fixed(&mut self, name: &str, table: &Table, errors: &mut Vec<Diagnostic>) {
        let mut fixed = Fixed { name: name.into(), value: String::new(), stock: None, why: String::new() };
        for entry in &table.entries {
            let Some(value) = entry.one(errors) else { continue };
            match entry.key.as_str() {
                "value" => fixed.value = value.text.clone(),
                "stock" => fixed.stock = Some(value.text.clone()),
                "why" => fixed.why = value.text.clone(),
                _ => errors.push(entry.unknown("a fixed setting", ["value", "stock", "why"])),
            }
        }
        for (key, text) in [("value", &fixed.value), ("why", &fixed.why)] {
            if text.is_empty() {
                errors.push(Diagnostic::at(table.at, format!("the fixed setting `{name}` has no `{key}`")));
            }
        }
        self.fixed.push(fixed);
    }
}
