//! Settings of a system that differ from the vendor defaults, with their reasons, and the server
//! configuration of a run.

use crate::figure_group::FigureGroup;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// Server configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// Vendor defaults.
    Stock,
    /// pubmark's recommended settings, each with its reason in the system's file.
    #[default]
    Tuned,
}

/// Error for a text that is not a server configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("settings must be stock (vendor defaults) or tuned (recommended settings), but are `{0}`")]
pub struct UnknownUse(String);

impl Use {
    /// Both configurations.
    pub const ALL: [Use; 2] = [Use::Stock, Use::Tuned];

    /// Returns its word.
    pub fn word(self) -> &'static str {
        match self {
            Use::Stock => "stock",
            Use::Tuned => "tuned",
        }
    }

    /// Parses the word.
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

/// Value of a recommended setting under the vendor defaults.
#[derive(Clone, Debug, PartialEq)]
pub enum DefaultValue {
    /// The vendor default, canonical.
    Value(Value),
    /// The setting stays as it is, for this reason.
    Stays(String),
}

/// The vendor default of a recommended setting, and the reason for the difference.
#[derive(Clone, Debug, PartialEq)]
pub struct RecommendedSetting {
    /// The vendor default.
    pub stock: DefaultValue,
    /// The reason for the recommended setting.
    pub why: String,
    /// The figures that it influences more than a little: findings about them name it.
    pub moves: Vec<FigureGroup>,
    /// True if it has an effect only if subscriptions outlive the server.
    pub with_durable: bool,
}

/// A setting that no option changes, and that differs from the vendor default.
#[derive(Clone, Debug, PartialEq)]
pub struct Fixed {
    /// Its name.
    pub name: String,
    /// Its recommended value.
    pub value: String,
    /// The vendor default in words; `None` if the vendor's documentation does not give it.
    pub stock: Option<String>,
    /// The reason for the value, and for keeping it.
    pub why: String,
}

/// An effective difference from the vendor defaults in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingDifference {
    /// The setting: the name of an option, or of the system's own setting.
    pub name: String,
    /// Its effective value.
    pub value: Value,
    /// The vendor default; `None` if it is unknown.
    pub stock: Option<Value>,
    /// The reason for the difference.
    pub why: String,
    /// The figures that it influences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<FigureGroup>,
}

/// The server configuration of a run, and its effective differences from the vendor defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// The requested configuration.
    #[serde(rename = "use")]
    pub asked: Use,
    /// The effective differences.
    pub differences: Vec<SettingDifference>,
}
