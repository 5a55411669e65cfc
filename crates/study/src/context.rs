//! Inputs of a run, and reasons why it has no record.

use crate::lead::Refusal;
use crate::live::News;
use crate::servers::Servers;
use pubmark_host::error::HostError;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Reason why a run has no record.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// A host could not do its part.
    #[error(transparent)]
    Host(HostError),
    /// An agent broke the protocol or could not play its part.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A process that the run needs ended, which explains more than the agents' errors.
    #[error("{end}; meanwhile: {source}")]
    Ended {
        /// Name of the process and how it ended.
        end: String,
        /// Error of the agents that followed.
        source: Box<RunError>,
    },
    /// The run could not be made; the text says what failed, why, and the advice.
    #[error("{0}")]
    Failed(String),
}

impl RunError {
    /// Returns a converter of operating system errors into a [`RunError`]; `what` names the action that failed.
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

/// Returns an error for a run that could not be made, with the reason.
pub fn failed(text: impl Into<String>) -> RunError {
    RunError::Failed(text.into())
}

/// Inputs of a run beside its cell.
pub struct RunContext<'a> {
    /// Command that starts an agent.
    pub agent: &'a [String],
    /// Folder of the logs.
    pub logs: &'a Path,
    /// True if processors are kept awake during the run.
    pub awake: bool,
    /// Set when the user interrupts.
    pub interrupt: &'a AtomicBool,
    /// The server that an earlier run may have left.
    pub servers: &'a mut Servers,
    /// Receives news on the coordinator's thread: it must return at once.
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
