//! A host's reports on the servers of a run, for its record.

use crate::record::{Deployment, Usage};
use serde::{Deserialize, Serialize};

/// A host's report on a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// Its deployment and limits.
    pub deployment: Deployment,
    /// Its usage in the window.
    pub usage: Option<Usage>,
    /// Its name and version, if its own program reports them.
    pub version: Option<String>,
    /// Reason why it ended before it was stopped.
    pub exit_reason: Option<String>,
    /// Failure of pubmark's own processes beside it, such as its keeper; the run then says nothing
    /// about the server.
    #[serde(default)]
    pub own_failure: Option<String>,
}

/// A host's report on a link's proxy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Its usage in the window.
    pub usage: Option<Usage>,
    /// Its name and version.
    pub version: Option<String>,
}
