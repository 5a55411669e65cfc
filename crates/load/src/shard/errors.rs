//! Why a shard cannot go on.

use crate::session::{SessionError, SettingsError};
use rustix::io::Errno;

/// Why a shard cannot go on. One connection that fails is no reason, unless it
/// is the first, or would fail again and again.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// The protocol's settings are of no use.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Waiting for events failed.
    #[error("epoll: {0}")]
    Epoll(#[from] Errno),
    /// The server cannot be reached, or does not let the clients in.
    #[error(transparent)]
    Connect(Box<ConnectError>),
    /// The server does not take what publishers send, or ends their connections.
    #[error("{0}")]
    Refused(Box<str>),
    /// Nothing that publishers send arrives.
    #[error("no probe arrived: the server took subscriptions and refused no message, and does not deliver{0}")]
    NoProbe(&'static str),
}

/// A server that cannot be reached, or that does not let the clients in.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect to {to}: {why}")]
pub struct ConnectError {
    /// The server.
    pub to: String,
    /// What the last attempt met.
    #[source]
    pub why: ConnectFailure,
}

/// What attempts to connect met.
#[derive(Debug, thiserror::Error)]
pub enum ConnectFailure {
    /// The connection failed, or took too long.
    #[error("{0}")]
    Failed(String),
    /// The server said no, or speaks something else.
    #[error(transparent)]
    Session(#[from] SessionError),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is handed up from each event: no more than a text took there.
    #[test]
    fn an_error_is_no_larger_than_a_text() {
        assert_eq!(size_of::<Result<(), ShardError>>(), size_of::<String>());
    }

    #[test]
    fn what_the_server_said_is_kept() {
        let why = SessionError::Denied("wrong password".into());
        let error = ShardError::Connect(Box::new(ConnectError { to: "mqtt://h:1".into(), why: why.into() }));
        assert_eq!(error.to_string(), "cannot connect to mqtt://h:1: wrong password");
        let mut cause: &dyn std::error::Error = &error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        assert_eq!(cause.to_string(), "wrong password");
    }
}
