//! What a run is made with, and why there may be none.

use crate::lead::Refusal;
use crate::live::News;
use crate::servers::Servers;
use pubmark_host::error::HostError;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Why there is no record of a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// A host could not do its part.
    #[error(transparent)]
    Host(HostError),
    /// An agent did not play its part.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Something that the run needs ended, which says more than what agents made of it.
    #[error("{end}; meanwhile: {source}")]
    Ended {
        /// What ended, and how.
        end: String,
        /// What agents made of it.
        source: Box<RunError>,
    },
    /// The run could not be made; the text says what, why, and the way out.
    #[error("{0}")]
    Failed(String),
}

impl RunError {
    /// Returns an error of the system's, with what was to be done.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> RunError {
        let error = HostError::io(what);
        move |source| RunError::Host(error(source))
    }
}

impl From<HostError> for RunError {
    fn from(error: HostError) -> RunError {
        match error {
            HostError::Interrupted => RunError::Interrupted,
            failed => RunError::Host(failed),
        }
    }
}

/// A run that could not be made, and why.
pub fn failed(text: impl Into<String>) -> RunError {
    RunError::Failed(text.into())
}

/// What a run needs beside its cell.
pub struct RunContext<'a> {
    /// How to start an agent.
    pub agent: &'a [String],
    /// Where logs go.
    pub logs: &'a Path,
    /// Whether processors are kept awake while the run is on.
    pub awake: bool,
    /// Set when the user wants to stop.
    pub interrupt: &'a AtomicBool,
    /// The server that an earlier run may have left.
    pub servers: &'a mut Servers,
    /// Told what is new, on the coordinator's thread: it has to return at once.
    pub news: &'a mut dyn FnMut(News),
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;
    use std::io::ErrorKind;

    #[test]
    fn an_error_keeps_its_sources_and_its_text() {
        let full = HostError::io("no folder")(ErrorKind::StorageFull.into());
        let host = HostError::Host { name: "b".into(), source: full.into() };
        let error = RunError::Ended { end: "the server ended".into(), source: RunError::from(host).into() };
        assert_eq!(error.to_string(), "the server ended; meanwhile: host b: no folder: no storage space");
        let sources = std::iter::successors(error.source(), |&error| error.source());
        let io = sources.last().and_then(|error| error.downcast_ref::<std::io::Error>());
        assert_eq!(io.map(std::io::Error::kind), Some(ErrorKind::StorageFull));
        assert!(matches!(RunError::from(HostError::Interrupted), RunError::Interrupted));
    }
}
