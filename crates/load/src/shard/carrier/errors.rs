//! Errors that say more than that a connection failed.

use std::io::{self, ErrorKind};

/// An error that another attempt would meet again.
pub fn denied(text: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, text.into())
}

/// The peer speaks something else.
pub fn foreign(text: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text.into())
}
