//! Faults as they happened, and the figures of what they cost.

use crate::fault::{Act, Target};
use crate::units::Ns;
use serde::{Deserialize, Serialize};

/// A fault as it happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultEvent {
    /// What happened.
    pub what: Act,
    /// Whom.
    pub who: Target,
    /// The host whose network it was, where it was a host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// When the last of its processes had been sent the signal, all of the
    /// link's connections had been reset, or the last agent of a side had been
    /// told that its clients are killed, ns from the window's beginning; none
    /// where it never was.
    pub at_ns: Option<Ns>,
    /// When the first of them was sent the signal to go on, the server was
    /// started again or the link began to be repaired, ns from the window's
    /// beginning; none where it never was, as of clients that are killed.
    pub until_ns: Option<Ns>,
    /// When the server listened again that had been killed, ns from the window's
    /// beginning; none where it did not within the window, of other faults, and in
    /// records of versions that did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listens_ns: Option<Ns>,
    /// What else is to be known of it.
    pub note: Option<String>,
}

/// What it cost that the server ended or stood still, or that clients were cut off
/// from it: what a run's own figures say of it, computed by [`Recovery::of`].
///
/// Faults that overlap, and those that begin before the one before is caught up,
/// count as one here. What was lost, late or delivered twice is in the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// The longest silence of a subscriber, ns; none where it is of another time than
    /// the faults, or no silence was long enough to be one.
    pub silence_ns: Option<Ns>,
    /// That less what was asked for of the faults within it, ns; 0 where it was
    /// shorter.
    pub beyond_ns: Option<Ns>,
    /// From the end of the fault until all that was due before it and arrives at all
    /// had arrived, and as much arrived as before the fault, ns; of several the longest.
    /// In steps of a slice of `series`, rounded up. None where it was not so within
    /// the window, and where `watched_ns` is none.
    pub caught_up_after_ns: Option<Ns>,
    /// From the end of the last fault to the window's end, ns: so long it was watched
    /// for; none where that is less than a slice, and where no times were measured.
    pub watched_ns: Option<Ns>,
    /// From the start of the server after a kill until it listened, ns; of several the
    /// longest.
    pub listens_after_ns: Option<Ns>,
    /// From the end of the fault until the last client had its connection again, ns: the
    /// longest time without one, less how long the fault was. None where none was lost,
    /// where some did not come back, and where faults were several.
    pub clients_back_after_ns: Option<Ns>,
    /// Lost connections that their clients did not get again; none for libraries.
    pub clients_not_back: Option<u64>,
}
