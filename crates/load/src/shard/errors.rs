//! Errors that end a shard.

use crate::session::{SessionError, SettingsError};
use rustix::io::Errno;

/// The reason why a shard cannot go on. One failed connection is not enough, unless it is
/// the first, or would fail again and again.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// The protocol's settings are not valid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Waiting for events failed.
    #[error("epoll: {0}")]
    Epoll(#[from] Errno),
    /// The server cannot be reached, or does not accept the clients.
    #[error(transparent)]
    Connect(Box<ConnectError>),
    /// The server refuses what publishers send, or ends their connections.
    #[error("{0}")]
    Refused(Box<str>),
    /// No message of the publishers arrives.
    #[error("no probe arrived: the server took subscriptions and refused no message, and does not deliver{0}")]
    NoProbe(&'static str),
}

/// A server that cannot be reached, or that does not accept the clients.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect to {to}: {why}")]
pub struct ConnectError {
    /// The server.
    pub to: String,
    /// Error of the last attempt.
    #[source]
    pub why: ConnectFailure,
}

/// The failure of attempts to connect.
#[derive(Debug, thiserror::Error)]
pub enum ConnectFailure {
    /// The connection failed, or took too long.
    #[error("{0}")]
    Failed(String),
    /// The server refused, or speaks another protocol.
    #[error(transparent)]
    Session(#[from] SessionError),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error is returned for each event, so it must not be larger than a text.
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
