//! A Zenoh router: a session in mode router, as `zenohd` is one with plugins.

use crate::settings::{config, reason};
use zenoh::{Session, Wait};

/// Where a router listens if nobody says otherwise.
pub const DEFAULT_LISTEN: &str = "tcp/127.0.0.1:7447";

/// Sessions that a router accepts; the library's own default is 1,000. The
/// limit on open files is met first.
const MAX_SESSIONS: u32 = 100_000;

/// Sessions that may be in the middle of opening; the library's own default is 100.
const ACCEPT_PENDING: u32 = 10_000;

/// Opens a router on `listen`, such as `tcp/127.0.0.1:7447`, that routes until
/// the session is dropped. It neither scouts nor gossips, and has no
/// administration space. All else is as `zenohd` has it (among it, each message
/// that bears no time stamp is given one), or as `settings` say: keys and JSON
/// values of the library's configuration.
pub fn open(listen: &str, settings: &[(&str, &str)]) -> Result<Session, String> {
    let mut config = config(&[
        ("mode", "router".into()),
        ("listen/endpoints", vec![listen].into()),
        ("transport/unicast/max_sessions", MAX_SESSIONS.into()),
        ("transport/unicast/accept_pending", ACCEPT_PENDING.into()),
        ("adminspace/enabled", false.into()),
    ])?;
    for (key, value) in settings {
        config
            .insert_json5(key, value)
            .map_err(|error| format!("zenoh does not take {value} for {key}: {}", reason(error)))?;
    }
    zenoh::open(config).wait().map_err(|error| format!("no router can listen on {listen}: {}", reason(error)))
}
