//! What an agent measured of last wills.

use super::histograms::PackedHistogram;
use crate::last_will::UnexpectedWill;
use serde::{Deserialize, Serialize};

/// Counts and times of the last wills for an agent's subscribers, each once for each subscriber.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WillResult {
    /// Wills of connections that had ended without a goodbye when their publishers had sent everything.
    pub due: u64,
    /// Those that arrived, each counted once.
    pub received: u64,
    /// Others that arrived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unexpected: Vec<UnexpectedWill>,
    /// Time from the end of a connection until its will arrived, as a histogram: 0 if the client noticed the end later.
    #[serde(default)]
    pub latency: Option<PackedHistogram>,
}
