//! Exit codes, and errors that know theirs.

use pubmark_study::conduct::ConductError;
use pubmark_study::results::ResultsError;
use std::process::ExitCode;

/// Every exit code of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Done.
    Done = 0,
    /// A gate, a threshold or a claim failed.
    Gate = 1,
    /// Bad usage or a bad file.
    Usage = 2,
    /// A run could not be made, was interrupted, or is invalid.
    Run = 3,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code as u8)
    }
}

/// What ends the program early: what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The user asked for what cannot be.
    #[error("{0}")]
    Usage(String),
    /// Something could not be done.
    #[error("{0}")]
    Run(String),
}

impl Failure {
    /// The exit code that says so.
    pub fn code(&self) -> Code {
        match self {
            Failure::Usage(_) => Code::Usage,
            Failure::Run(_) => Code::Run,
        }
    }

    /// Bad usage.
    pub fn usage(text: impl ToString) -> Failure {
        Failure::Usage(text.to_string())
    }

    /// Something could not be done.
    pub fn run(text: impl ToString) -> Failure {
        Failure::Run(text.to_string())
    }
}

impl From<ConductError> for Failure {
    fn from(error: ConductError) -> Failure {
        match &error {
            ConductError::Results(ResultsError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::StorageFull =>
            {
                Failure::run(error)
            }
            ConductError::Plan(_) | ConductError::Results(_) => Failure::usage(error),
        }
    }
}
