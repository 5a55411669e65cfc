//! Figures of last wills.

use crate::last_will::WillCounts;
use pubmark_stats::Summary;
use serde::{Deserialize, Serialize};

/// Figures of the last wills of publishers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WillFigures {
    /// Their counts.
    #[serde(flatten)]
    pub counts: WillCounts,
    /// Time from the end of a publisher's connection until its will arrived, ns; `None` if none arrived.
    pub latency_ns: Option<Summary>,
}
