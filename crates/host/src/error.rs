//! What a host could not do.

/// Why something could not be done here.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The user wants no more.
    #[error("interrupted")]
    Interrupted,
    /// It could not be done; the text says what, why, and the way out.
    #[error("{0}")]
    Failed(String),
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
