//! What a run is made with, and why there may be none.

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
    /// The run could not be made.
    #[error("{0}")]
    Failed(String),
}

impl From<HostError> for RunError {
    fn from(error: HostError) -> RunError {
        match error {
            HostError::Interrupted => RunError::Interrupted,
            failed => RunError::Failed(failed.to_string()),
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
