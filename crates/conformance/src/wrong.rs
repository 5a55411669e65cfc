//! Faults of an agent.

use pubmark_host::conversation::TalkError;

/// Reason why an agent fails a case, or could not be tried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaseFailure {
    /// Its behaviour was not as expected; the text describes it.
    #[error("{0}")]
    Did(String),
    /// It could not be tried; the text says why.
    #[error("{0}")]
    NotTried(String),
}

impl CaseFailure {
    /// Returns an error with the agent's unexpected behaviour.
    pub fn did(what: impl Into<String>) -> CaseFailure {
        CaseFailure::Did(what.into())
    }
}

impl From<TalkError> for CaseFailure {
    fn from(error: TalkError) -> CaseFailure {
        CaseFailure::Did(error.to_string())
    }
}

/// Returns an error if `holds` is false.
pub fn due(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), CaseFailure> {
    if holds { Ok(()) } else { Err(CaseFailure::Did(otherwise())) }
}
