//! What an agent measured of last wills.

use super::histograms::PackedHistogram;
use crate::last_will::WillCounts;
use serde::{Deserialize, Serialize};

/// Counts and times of the last wills for an agent's subscribers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WillResult {
    /// Their counts.
    #[serde(flatten)]
    pub counts: WillCounts,
    /// Time from the end of a connection until its will arrived, as a histogram: 0 if the client noticed the end later.
    #[serde(default)]
    pub latency: Option<PackedHistogram>,
}
