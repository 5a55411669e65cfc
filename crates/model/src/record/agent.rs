//! Who an agent is, and what it cannot say of itself.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The program that played clients, by its own account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentIdentity {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The versions of its runtime and of what it is built on, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
}

/// What an agent cannot tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Untold {
    /// Whether it stood still.
    Pauses,
    /// The delay of its publishers that the system did not cause.
    OwnLag,
    /// How long messages waited for its receiving loop.
    ReceiveLag,
    /// Whether its subscribers heard nothing for a while.
    Stalls,
}
