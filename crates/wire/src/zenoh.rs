//! Zenoh 1.x (protocol version 9) over TCP: the part that a session in mode client needs, from both sides. Queries,
//! scouting, compression, shared memory, priorities and authentication are not part of it.
//!
//! Messages travel in batches of at most 64 KiB, each after its length (two bytes, the lower one first). A frame's
//! network messages follow its header; one that is longer than a batch travels in fragments.

mod codes;
mod encode;
mod network;
mod read;
mod transport;

pub use codes::{DEFAULT_RESOLUTION, MAX_BATCH_BYTES, MAX_ID_BYTES, PATCH, VERSION};
pub use encode::{DATA_PRIORITY, DO_NOT_DROP, EXPRESS, FrameChannel};
pub use network::{Declaration, InterestMode, KeyExpr, NetworkItem};
pub use transport::{BatchReader, INVALID_REASON, InitTerms, LIMIT_REASONS, NodeKind, TransportItem, close_reason};

#[cfg(test)]
mod tests;
