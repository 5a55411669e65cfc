//! Codecs, one file for each protocol. Nothing here uses a socket or a clock, and no input bytes
//! cause a panic.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod amqp;
pub mod amqp1;
mod decimal;
pub mod kafka;
pub mod mqtt;
pub mod nats;
pub mod resp;
pub mod zenoh;

/// Error for bytes that violate the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

impl Malformed {
    /// Creates the error; `text` says what was found and what was expected.
    pub fn new(text: impl Into<String>) -> Self {
        Malformed(text.into())
    }
}
