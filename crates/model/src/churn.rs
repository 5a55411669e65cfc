//! Clients that come and go beside those that are measured: their rate, and their times.

use crate::profile::{Profile, Rate};
use crate::units::UnitError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// Highest number of clients that come in a second, in thousandths.
const FASTEST_PER_KS: u64 = 100_000_000;

/// The value without clients that come and go.
const NONE: &str = "none";

/// Error for a text that is not a rate of clients.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChurnError {
    /// The rate is invalid.
    #[error(transparent)]
    Rate(#[from] UnitError),
    /// The rate is too high, or has no schedule.
    #[error("`{0}` is not a number of clients a second: write one up to `100000/s`, a rate over time, or `none`")]
    Range(String),
}

/// The rate at which clients connect, subscribe and disconnect, beside those that are measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Churn(Option<Profile>);

impl Churn {
    /// No clients come and go.
    pub const NONE: Churn = Churn(None);

    /// Parses clients a second (`50/s` or `50`), a rate that changes, or `none`.
    pub fn parse(text: &str) -> Result<Churn, ChurnError> {
        let text = text.trim();
        if text == NONE {
            return Ok(Churn::NONE);
        }
        let profile = Rate::parse(text.strip_suffix("/s").unwrap_or(text))?.profile();
        let fits = |profile: &Profile| *profile.per_ks().end() <= FASTEST_PER_KS;
        profile.filter(fits).map(|profile| Churn(Some(profile))).ok_or_else(|| ChurnError::Range(text.to_owned()))
    }

    /// True if no clients come and go.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the rate over time, from the start on; `None` if no clients come and go.
    pub fn profile(&self) -> Option<&Profile> {
        self.0.as_ref()
    }

    /// Returns the numbers of the clients that are due in a window of this length after a warm-up, both in ns.
    pub fn due(&self, warmup_ns: u64, window_ns: u64) -> Range<u64> {
        self.profile().map_or(0..0, |profile| {
            profile.due_before(warmup_ns)..profile.due_before(warmup_ns.saturating_add(window_ns))
        })
    }
}

impl fmt::Display for Churn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.profile() {
            None => f.write_str(NONE),
            Some(profile) if profile.is_constant() => write!(f, "{}/s", Rate::Due(profile.clone())),
            Some(profile) => Rate::Due(profile.clone()).fmt(f),
        }
    }
}

impl TryFrom<String> for Churn {
    type Error = ChurnError;
    fn try_from(text: String) -> Result<Self, ChurnError> {
        Churn::parse(&text)
    }
}

impl From<Churn> for String {
    fn from(churn: Churn) -> String {
        churn.to_string()
    }
}

/// Clients that come and go and were due in the window: `due` = `connected` + `failed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChurnCounts {
    /// Clients that were due.
    pub due: u64,
    /// Clients that the server accepted and that subscribed.
    pub connected: u64,
    /// Clients that did not get that far: refused, reset, or not answered by the end of the drain. None tries again.
    pub failed: u64,
}

impl ChurnCounts {
    /// Adds the counts of other clients.
    pub fn add(&mut self, other: &ChurnCounts) {
        self.due = self.due.saturating_add(other.due);
        self.connected = self.connected.saturating_add(other.connected);
        self.failed = self.failed.saturating_add(other.failed);
    }
}

/// One of something for each time of clients that connect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Default + Deserialize<'de>"))]
pub struct ConnectTimes<T> {
    /// Until the server accepted the client, by the protocol.
    #[serde(default)]
    pub connect: T,
    /// The handshake of TLS, which is part of it.
    #[serde(default)]
    pub tls_handshake: T,
    /// From then until the server confirmed the subscription.
    #[serde(default)]
    pub subscribe: T,
}

impl<T> ConnectTimes<T> {
    /// Makes one of another kind from each.
    pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> ConnectTimes<U> {
        let ConnectTimes { connect, tls_handshake, subscribe } = self;
        ConnectTimes { connect: make(connect), tls_handshake: make(tls_handshake), subscribe: make(subscribe) }
    }

    /// Returns references to each.
    pub fn as_ref(&self) -> ConnectTimes<&T> {
        let ConnectTimes { connect, tls_handshake, subscribe } = self;
        ConnectTimes { connect, tls_handshake, subscribe }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::SECOND;

    #[test]
    fn rates_of_clients_read_back() {
        for (text, canonical) in [
            ("50/s", "50/s"),
            ("50", "50/s"),
            (" 0.5/s ", "0.5/s"),
            ("none", "none"),
            ("ramp 10 to 100 in 5s", "ramp 10 to 100 in 5s"),
        ] {
            let churn = Churn::parse(text).unwrap();
            assert_eq!(churn.to_string(), canonical);
            assert_eq!(Churn::parse(canonical), Ok(churn));
        }
        for bad in ["max", "0/s", "-1", "50/m", "100001/s", ""] {
            assert!(Churn::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn those_that_are_due_follow_from_the_rate() {
        let churn = Churn::parse("50/s").unwrap();
        assert_eq!(churn.due(SECOND, 2 * SECOND), 50..150);
        assert_eq!(churn.due(SECOND / 100, SECOND / 50), 1..2);
        assert_eq!(Churn::NONE.due(SECOND, SECOND), 0..0);
    }
}
