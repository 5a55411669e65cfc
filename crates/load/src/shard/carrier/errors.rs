//! Errors that mean more than a failed connection.

use std::io::{self, ErrorKind};

/// Makes an error that would occur at another attempt again.
pub fn denied(text: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, text.into())
}

/// Makes an error for a peer that speaks another protocol.
pub fn foreign(text: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text.into())
}
