//! Limits of silence on a host connection. Both ends send heartbeats, and so receive from
//! each other more often than that.

use crate::error::HostError;
use pubmark_model::units::parse_time;
use std::time::Duration;

/// A host that is silent for this long is lost to its coordinator.
pub const OF_HOST: Duration = Duration::from_secs(20);
/// A host whose coordinator is silent for this long ends everything on it.
pub const OF_COORDINATOR: Duration = Duration::from_secs(60);

/// Environment variable with another limit for either end: `PUBMARK_SILENCE=5s`. Set it at
/// both ends, because heartbeats come three times as often.
const VARIABLE: &str = "PUBMARK_SILENCE";
/// Minimum limit: shorter silences occur on a busy machine.
const LEAST: Duration = Duration::from_secs(1);

/// Returns how long the other end may be silent.
///
/// # Errors
/// If the environment variable is not a time, or less than a second.
pub fn allowed(usual: Duration) -> Result<Duration, HostError> {
    let Ok(asked) = std::env::var(VARIABLE) else { return Ok(usual) };
    let silence = parse_time(&asked).map(Duration::from_nanos).ok().filter(|silence| *silence >= LEAST);
    silence.ok_or_else(|| HostError::Failed(format!("{VARIABLE}={asked}: write a time from 1s on")))
}
