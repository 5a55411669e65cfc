//! Codecs, a file a protocol. Nothing here touches a socket or a clock, and no
//! bytes make anything here panic.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod amqp;
mod decimal;
pub mod mqtt;
pub mod nats;
pub mod resp;

/// Bytes that are no word of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

impl Malformed {
    /// Says what was met and what was expected.
    pub fn new(text: impl Into<String>) -> Self {
        Malformed(text.into())
    }
}
