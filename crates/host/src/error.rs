//! Errors of a host.

use crate::proxy::http::ProxyError;
use crate::server::container::EngineError;
use pubmark_model::endpoint::EndpointError;
use pubmark_model::server::PlaceError;
use std::io;

/// The reason why an operation on this host failed.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// The operation, or the file.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A server's program, or a preparation of it, did not start.
    #[error("{system} was not started: {why}{log}")]
    NotStarted {
        /// The system.
        system: String,
        /// The reason.
        why: String,
        /// The end of its log, worded to follow other text.
        log: String,
        /// The engine's error, if it is the cause.
        source: Option<Box<EngineError>>,
    },
    /// A server ended before it listened.
    #[error("{system} ended while starting: {how}{log}")]
    Ended {
        /// The system.
        system: String,
        /// Description of its end.
        how: String,
        /// The end of its log, worded to follow other text.
        log: String,
    },
    /// A server runs, but did not become ready.
    #[error("{system} {missing} within {seconds} s{log}")]
    NotReady {
        /// The system.
        system: String,
        /// The missing condition.
        missing: String,
        /// Time that it had, s.
        seconds: f64,
        /// The end of its log, worded to follow other text.
        log: String,
    },
    /// Another process listens at the server's port.
    #[error("port {port} is held by pid {pid} ({name}), not by {system}{log}")]
    PortHeld {
        /// The port.
        port: u16,
        /// Process id of the listener.
        pid: i32,
        /// Name of that process.
        name: String,
        /// The system.
        system: String,
        /// The end of its log, worded to follow other text.
        log: String,
    },
    /// All ports are taken.
    #[error("no {count} free TCP ports from {first} to {last}")]
    NoPorts {
        /// Number of ports needed.
        count: usize,
        /// First port that was tried.
        first: u16,
        /// Last port that was tried.
        last: u16,
    },
    /// The endpoint of a link's server is malformed.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A text of a system file has an unknown placeholder.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A value cannot be written as a line.
    #[error(transparent)]
    Encoding(#[from] serde_json::Error),
    /// A host that is this machine failed.
    #[error("host {name}: {source}")]
    Host {
        /// The host.
        name: String,
        /// Its error.
        source: Box<HostError>,
    },
    /// The proxy of a link failed.
    #[error("{what}: {source}")]
    Link {
        /// The operation that failed.
        what: &'static str,
        /// The proxy's error.
        source: ProxyError,
    },
    /// Any other failure; the text contains the operation, the reason and advice.
    #[error("{0}")]
    Failed(String),
}

impl HostError {
    /// Makes an error from a system error and the operation that failed.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> HostError {
        let what = what.into();
        move |source| HostError::Io { what, source }
    }
}

impl From<String> for HostError {
    fn from(text: String) -> HostError {
        HostError::Failed(text)
    }
}

impl From<&str> for HostError {
    fn from(text: &str) -> HostError {
        HostError::Failed(text.to_owned())
    }
}
