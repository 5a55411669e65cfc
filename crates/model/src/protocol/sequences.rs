//! Sequences that competing subscribers received, as agents report them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};

/// Sequences of one publisher that arrived at one subscriber.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeenBits {
    /// The publisher.
    pub publisher: u32,
    /// One bit per sequence from 0, least significant first: base64 of raw DEFLATE.
    pub bits: String,
}

impl SeenBits {
    /// Packs the bits of a publisher's sequences, least significant first.
    pub fn of(publisher: u32, bits: &[u8]) -> SeenBits {
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::fast());
        // Writing into memory cannot fail.
        let packed = deflate.write_all(bits).and_then(|()| deflate.finish()).unwrap_or_default();
        SeenBits { publisher, bits: STANDARD.encode(packed) }
    }

    /// Unpacks the bits of `messages` sequences, and of a few more. However much is packed, no more
    /// is read. `None` if they cannot be unpacked.
    pub fn read(&self, messages: u64) -> Option<Vec<u8>> {
        let packed = STANDARD.decode(&self.bits).ok()?;
        let mut bits = Vec::new();
        DeflateDecoder::new(packed.as_slice()).take(messages / 8 + 9).read_to_end(&mut bits).ok()?;
        Some(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_is_read(bits in proptest::collection::vec(any::<u8>(), 0..300)) {
            let seen = SeenBits::of(3, &bits);
            prop_assert_eq!(seen.read(8 * bits.len() as u64), Some(bits));
        }
    }

    #[test]
    fn what_is_none_is_told_and_what_is_endless_is_cut() {
        let read = |bits: &str| SeenBits { publisher: 0, bits: bits.into() }.read(80);
        assert_eq!((read("?"), read("BwAA")), (None, None), "no base64, and no DEFLATE");
        assert_eq!(SeenBits::of(0, &vec![0xff; 10 << 20]).read(80), Some(vec![0xff; 19]));
        // From Python's zlib: `zlib.compressobj(wbits=-15)` of b"\x03\x80".
        assert_eq!(read("Y24AAA=="), Some(vec![0x03, 0x80]));
    }
}
