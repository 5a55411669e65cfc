//! An agent's identity, and the figures it does not support.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The program that played clients, as it describes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentIdentity {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The versions of its runtime and of its dependencies, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
}

/// A figure that an agent does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnsupportedFigure {
    /// Pauses of the agent.
    Pauses,
    /// Generator delay of its publishers.
    OwnLag,
    /// Time that messages waited for its receiving loop.
    ReceiveLag,
    /// Silences of its subscribers.
    Stalls,
}
