//! How long the line between a coordinator and a host may be silent: both say that
//! they are there, and so hear of each other more often than that.

use crate::error::HostError;
use pubmark_model::units::parse_time;
use std::time::Duration;

/// A host that is silent for so long is lost to its coordinator.
pub const OF_HOST: Duration = Duration::from_secs(20);
/// A host whose coordinator is silent for so long ends all that stands there.
pub const OF_COORDINATOR: Duration = Duration::from_secs(60);

/// Says otherwise, at either end: `PUBMARK_SILENCE=5s`. Both ends have to be told,
/// for the signs of life come three times as often.
const VARIABLE: &str = "PUBMARK_SILENCE";
/// Less is no silence, but a machine that is busy.
const LEAST: Duration = Duration::from_secs(1);

/// How long the other end may be silent.
///
/// # Errors
/// Where the environment asks for what is no time, or for less than a second.
pub fn allowed(usual: Duration) -> Result<Duration, HostError> {
    let Ok(asked) = std::env::var(VARIABLE) else { return Ok(usual) };
    let silence = parse_time(&asked).map(Duration::from_nanos).ok().filter(|silence| *silence >= LEAST);
    silence.ok_or_else(|| HostError::Failed(format!("{VARIABLE}={asked}: write a time from 1s on")))
}
