//! Errors of the event loop.

use std::io;

/// Reason why a peer could not go on.
#[derive(Debug, thiserror::Error)]
#[error("the peer's {what}: {source}")]
pub struct ServeError {
    what: &'static str,
    source: io::Error,
}

pub fn failed<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> ServeError {
    move |error| ServeError { what, source: error.into() }
}
