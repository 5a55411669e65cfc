//! Exit codes, and errors with their exit codes.

use pubmark_import::trace::TraceError;
use pubmark_study::results::ResultsError;
use pubmark_study::runner::StudyError;
use std::process::ExitCode;

/// Exit codes of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Done.
    Done = 0,
    /// A gate, a threshold or a claim failed.
    Gate = 1,
    /// Bad usage or a bad file.
    Usage = 2,
    /// A cell has no result, or the user interrupted.
    Run = 3,
}

impl Code {
    /// Returns the more important of two codes: first a broken gate, because more runs would not fix it; then a missing
    /// result.
    pub fn worst(self, other: Code) -> Code {
        let rank = |code: Code| match code {
            Code::Done => 0,
            Code::Run => 1,
            Code::Usage => 2,
            Code::Gate => 3,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code as u8)
    }
}

/// Error that ends the program early: what is wrong, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request is impossible.
    #[error("{0}")]
    Usage(String),
    /// The results folder is already in use.
    #[error("{0}")]
    Occupied(String),
    /// There is no room for results.
    #[error("{0}")]
    Full(String),
    /// An operation failed.
    #[error("{0}")]
    Run(String),
}

impl Failure {
    /// Returns the exit code of this error.
    pub fn code(&self) -> Code {
        match self {
            Failure::Usage(_) | Failure::Occupied(_) => Code::Usage,
            Failure::Full(_) | Failure::Run(_) => Code::Run,
        }
    }

    /// Returns an error of bad usage.
    pub fn usage(text: impl ToString) -> Failure {
        Failure::Usage(text.to_string())
    }

    /// Returns an error of a failed operation.
    pub fn run(text: impl ToString) -> Failure {
        Failure::Run(text.to_string())
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Failure {
        Failure::usage(error)
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Failure {
        match &error {
            StudyError::Results(ResultsError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::StorageFull =>
            {
                Failure::Full(error.to_string())
            }
            StudyError::Results(ResultsError::Occupied(_)) => Failure::Occupied(error.to_string()),
            StudyError::Look(_) => Failure::run(error),
            StudyError::Plan(_) | StudyError::Results(_) => Failure::usage(error),
        }
    }
}
