//! Who an agent is.

use serde::{Deserialize, Serialize};

/// The program that played clients, by its own account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentIdentity {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}
