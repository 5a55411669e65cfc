//! Numbers of Zenoh's messages, flags of their headers, and limits.

use super::read::{NUMBER, UNIT};

/// Version of the protocol.
pub const VERSION: u8 = 9;
/// Bytes of a batch at most, with its length.
pub const MAX_BATCH_BYTES: u16 = u16::MAX;
/// Bytes before each batch.
pub(super) const LENGTH_BYTES: usize = 2;
/// Bytes of an identifier at most.
pub const MAX_ID_BYTES: usize = 16;
/// Version of the additions since 1.0: fragments have marks for the first one, and for those that were given up.
pub const PATCH: u8 = 1;
/// Resolution of sequence numbers and of requests: 32 bits each.
pub const DEFAULT_RESOLUTION: u8 = 0x0A;

/// Numbers of the transport messages.
pub(super) const OAM: u8 = 0x00;
pub(super) const INIT: u8 = 0x01;
pub(super) const OPEN: u8 = 0x02;
pub(super) const CLOSE: u8 = 0x03;
pub(super) const KEEP_ALIVE: u8 = 0x04;
pub(super) const FRAME: u8 = 0x05;
pub(super) const FRAGMENT: u8 = 0x06;

/// The number of a message in its header, and flags of the header.
pub(super) const NUMBER_MASK: u8 = 0x1F;
pub(super) const ACK: u8 = 0x20;
pub(super) const SIZES: u8 = 0x40;
pub(super) const SECONDS: u8 = 0x40;
pub(super) const WHOLE_SESSION: u8 = 0x20;
pub(super) const RELIABLE: u8 = 0x20;
pub(super) const FRAGMENTS_FOLLOW: u8 = 0x40;
pub(super) const EXTENSIONS: u8 = 0x80;

/// Extensions, by number and encoding.
pub(super) const PATCH_EXTENSION: u8 = 0x07 | NUMBER;
pub(super) const PRIORITY_EXTENSION: u8 = 0x01 | NUMBER;
pub(super) const FIRST_EXTENSION: u8 = 0x02 | UNIT;
pub(super) const DROP_EXTENSION: u8 = 0x03 | UNIT;
