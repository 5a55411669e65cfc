//! Figures of clients that come and go.

use crate::churn::ChurnCounts;
use pubmark_stats::Summary;
use serde::{Deserialize, Serialize};

/// Figures of the clients that came and went, as far as they were due in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChurnFigures {
    /// Their counts.
    #[serde(flatten)]
    pub counts: ChurnCounts,
    /// Clients that the server accepted later than `late_after` after their due time.
    pub late: u64,
    /// Error of the first client that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
    /// Time from a client's due time until the server accepted it, without the generator delay, ns.
    pub connect_ns: Option<Summary>,
    /// The part of it that the handshake of TLS took, ns; `None` without TLS.
    pub tls_handshake_ns: Option<Summary>,
    /// Time from then until the server confirmed the subscription, ns.
    pub subscribe_ns: Option<Summary>,
    /// The generator delay: how late pubmark itself began to connect, ns.
    pub own_lag_ns: Option<Summary>,
}
