//! The actual faults of a run, and the figures of their cost.

use crate::fault::{Act, Target};
use crate::units::Ns;
use serde::{Deserialize, Serialize};

/// A fault as it happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultEvent {
    /// The kind of fault.
    pub what: Act,
    /// The part that it affected.
    pub who: Target,
    /// The host, if the fault affected a host's network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Number of the server's member that it affected, from 1, if it named one or its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<u32>,
    /// Number of the other member, from 1, if the link between two was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<u32>,
    /// Instant, ns from the window's beginning, at which the last of its processes had been sent
    /// the signal, all of the link's connections had been reset, or the last agent of a side had
    /// been told that its clients are killed or cut; `None` if that never happened.
    pub at_ns: Option<Ns>,
    /// Instant, ns from the window's beginning, at which the first of its processes was sent the
    /// signal to continue, the server was restarted, or the repair of the link began; `None` if
    /// that never happened, as for killed clients. For clients that are cut, the same instant.
    pub until_ns: Option<Ns>,
    /// Instant at which the killed server listened again, ns from the window's beginning; `None` if
    /// it did not within the window, for other faults, and in records of versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listens_ns: Option<Ns>,
    /// Further information.
    pub note: Option<String>,
}

/// Cost of a server's end or pause, or of clients' disconnection from it, computed from a run's own
/// figures by [`Recovery::of`].
///
/// Overlapping faults, and faults that begin before the previous one is caught up, count as one
/// here. Lost, late and duplicated messages are in the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// Longest silence of a subscriber, ns; `None` if it does not coincide with the faults, or no
    /// silence was long enough to count.
    pub silence_ns: Option<Ns>,
    /// That silence less the scripted length of the faults within it, ns; 0 if it was shorter.
    pub beyond_ns: Option<Ns>,
    /// From the end of the fault until all messages due before it that arrive at all had arrived, as
    /// much arrived as before the fault, and latency was what it was before it, ns; with several
    /// faults, the longest. Exact to a slice of `series`, and better where latency fell for two
    /// slices or more. `None` if that did not happen within the window, or if `watched_ns` is
    /// `None`.
    pub caught_up_after_ns: Option<Ns>,
    /// From the end of the last fault to the window's end, ns: the time for which recovery was
    /// observed. `None` if that is less than a slice, or if no times were measured.
    pub watched_ns: Option<Ns>,
    /// The backlog at the window's end; `None` if `caught_up_after_ns` is known or `watched_ns` is
    /// not, and in records of versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prospect: Option<BacklogOutlook>,
    /// From the start of the server after a kill until it listened, ns; with several kills, the
    /// longest.
    pub listens_after_ns: Option<Ns>,
    /// From the end of the fault until the last client had reconnected, ns: the longest time
    /// without a connection, less the length of the fault. `None` if no connection was lost, if
    /// some were not restored, and if there were several faults.
    pub clients_back_after_ns: Option<Ns>,
    /// Lost connections that their clients did not restore; `None` for libraries.
    pub clients_not_back: Option<u64>,
}

/// A backlog that was not gone when the window ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BacklogOutlook {
    /// It shrank: a longer window would show its end.
    Shrinks {
        /// Length of a window that is long enough if it goes on like this, ns.
        window_ns: Ns,
    },
    /// It was not smaller than at the end of the fault: the system does not recover by itself.
    Lasts,
}
