//! What an agent did otherwise than it should.

use pubmark_host::talk::TalkError;

/// Why an agent is not as it should be, or could not be tried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// It did something else than what was due; what it did.
    #[error("{0}")]
    Did(String),
    /// It could not be tried; why.
    #[error("{0}")]
    NotTried(String),
}

impl Wrong {
    /// An agent did this instead of what was due.
    pub fn did(what: impl Into<String>) -> Wrong {
        Wrong::Did(what.into())
    }
}

impl From<TalkError> for Wrong {
    fn from(error: TalkError) -> Wrong {
        Wrong::Did(error.to_string())
    }
}

/// An error where `holds` is false.
pub fn due(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Wrong> {
    if holds { Ok(()) } else { Err(Wrong::Did(otherwise())) }
}
