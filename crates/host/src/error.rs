//! What a host could not do.

use crate::proxy::http::ProxyError;
use crate::server::container::EngineError;
use pubmark_model::endpoint::EndpointError;
use pubmark_model::server::PlaceError;
use std::io;

/// Why something could not be done here.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The user wants no more.
    #[error("interrupted")]
    Interrupted,
    /// The system said no.
    #[error("{what}: {source}")]
    Io {
        /// What was to be done, or to which file.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// A server's program, or what prepares it, did not come to run.
    #[error("{system} was not started: {why}{log}")]
    NotStarted {
        /// The system.
        system: String,
        /// Why.
        why: String,
        /// The end of its log, in words that follow others.
        log: String,
        /// What Docker said, where that is why.
        source: Option<Box<EngineError>>,
    },
    /// A server ended before it listened.
    #[error("{system} ended while starting: {how}{log}")]
    Ended {
        /// The system.
        system: String,
        /// How.
        how: String,
        /// The end of its log, in words that follow others.
        log: String,
    },
    /// A server runs, and does not do what says that it is ready.
    #[error("{system} {missing} within {seconds} s{log}")]
    NotReady {
        /// The system.
        system: String,
        /// What it did not do.
        missing: String,
        /// How long it was given, s.
        seconds: f64,
        /// The end of its log, in words that follow others.
        log: String,
    },
    /// Another process listens where the server should.
    #[error("port {port} is held by pid {pid} ({name}), not by {system}{log}")]
    PortHeld {
        /// The port.
        port: u16,
        /// Who holds it.
        pid: i32,
        /// That process's name.
        name: String,
        /// The system.
        system: String,
        /// The end of its log, in words that follow others.
        log: String,
    },
    /// All ports are taken.
    #[error("no {count} free TCP ports from {first} to {last}")]
    NoPorts {
        /// How many are needed.
        count: usize,
        /// The first that was looked at.
        first: u16,
        /// The last.
        last: u16,
    },
    /// What a link is put before is no server that can be named.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A text of a system's file has a place that is none.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Something cannot be written as a line.
    #[error(transparent)]
    Encoding(#[from] serde_json::Error),
    /// A host that is this machine could not do it.
    #[error("host {name}: {source}")]
    Host {
        /// The host.
        name: String,
        /// Why.
        source: Box<HostError>,
    },
    /// The proxy of a link did not do as it was told.
    #[error("{what}: {source}")]
    Link {
        /// What is not so for that reason.
        what: &'static str,
        /// What the proxy did.
        source: ProxyError,
    },
    /// What is asked for cannot be; the text says what, why, and the way out.
    #[error("{0}")]
    Failed(String),
}

impl HostError {
    /// An error of the system's, and what was to be done.
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
