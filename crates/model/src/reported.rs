//! What a host reports of the servers of a run, for its record.

use crate::record::{Deployment, Usage};
use serde::{Deserialize, Serialize};

/// What is to be said of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// How it came to run, and under which limits.
    pub deployment: Deployment,
    /// What it used in the window.
    pub usage: Option<Usage>,
    /// Its name and version, where its own program tells them.
    pub version: Option<String>,
    /// Why it ended before it was told to.
    pub exit_reason: Option<String>,
    /// What of pubmark's own failed beside it, its keeper for instance: then the run says
    /// nothing of the server.
    #[serde(default)]
    pub own_failure: Option<String>,
}

/// What is to be said of the link's proxy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// What it used in the window.
    pub usage: Option<Usage>,
    /// Its name and version.
    pub version: Option<String>,
}
