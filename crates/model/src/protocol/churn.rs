//! What an agent measured of clients that come and go.

use super::histograms::PackedHistogram;
use crate::churn::{ChurnCounts, ConnectTimes};
use serde::{Deserialize, Serialize};

/// Counts and times of the clients that came and went, as far as they were due in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChurnResult {
    /// Their counts.
    #[serde(flatten)]
    pub counts: ChurnCounts,
    /// Error of the first client that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
    /// Their times: `connect` from the due time, without the generator delay.
    #[serde(default)]
    pub times: ConnectTimes<Option<PackedHistogram>>,
    /// The generator delay: how late the agent itself began to connect.
    #[serde(default)]
    pub own_lag: Option<PackedHistogram>,
}
