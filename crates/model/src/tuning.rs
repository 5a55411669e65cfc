//! Settings of a system that differ from its makers' defaults: which, why, and
//! which of the two a run had.

use crate::figure_group::FigureGroup;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// Whose defaults a run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// The makers'.
    Stock,
    /// Ours, each with its reason in the system's file.
    #[default]
    Tuned,
}

/// A text that says whose defaults of nobody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("settings must be stock (vendor defaults) or tuned (recommended settings), but are `{0}`")]
pub struct UnknownUse(String);

impl Use {
    /// Both.
    pub const ALL: [Use; 2] = [Use::Stock, Use::Tuned];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Use::Stock => "stock",
            Use::Tuned => "tuned",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Result<Use, UnknownUse> {
        let found = Use::ALL.into_iter().find(|known| known.word() == text);
        found.ok_or_else(|| UnknownUse(text.to_owned()))
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What becomes of a setting where the makers' defaults are asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Stock {
    /// It has this value, canonical.
    Value(Value),
    /// It stays as it is, for this reason.
    Stays(String),
}

/// Why a setting is not the makers'.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// Theirs.
    pub stock: Stock,
    /// The reason for ours.
    pub why: String,
    /// The figures that hang on it more than a little: those of a finding name it.
    pub moves: Vec<FigureGroup>,
    /// Whether it has an effect only where subscriptions outlive the server.
    pub with_durable: bool,
}

/// A setting that no option changes, and that is not the makers'.
#[derive(Clone, Debug, PartialEq)]
pub struct Fixed {
    /// Its name.
    pub name: String,
    /// Ours.
    pub value: String,
    /// Theirs, in words; none where their documentation does not say.
    pub stock: Option<String>,
    /// Why ours, and why it stays.
    pub why: String,
}

/// A difference from the makers' defaults that was in force in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingDifference {
    /// The setting: the name of an option, or of the system's own setting.
    pub name: String,
    /// What it was.
    pub value: Value,
    /// What its makers' default is; none where it is not known.
    pub stock: Option<Value>,
    /// Why it was not that.
    pub why: String,
    /// The figures that hang on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<FigureGroup>,
}

/// Whose defaults a run had, and what was not the makers' all the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// Whose defaults were asked for.
    #[serde(rename = "use")]
    pub asked: Use,
    /// Each difference that was in force.
    pub differences: Vec<SettingDifference>,
}
