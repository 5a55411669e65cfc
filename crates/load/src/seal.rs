//! The checksum of a message's header, which follows the header directly. It
//! distinguishes a damaged header from a message that was never sent and from one that
//! was late.

use pubmark_model::header::FREE_LEN;
use pubmark_model::header::SEALED_LEN;

/// Writes the checksum of its header into a message. A message that is too short is left
/// unchanged.
#[inline]
pub fn seal(message: &mut [u8]) {
    if let Some((header, rest)) = message.split_at_mut_checked(FREE_LEN)
        && let Some(field) = rest.first_chunk_mut::<{ SEALED_LEN - FREE_LEN }>()
    {
        *field = crc32c::crc32c(header).to_le_bytes();
    }
}

/// True if a message's header fits its checksum.
#[inline]
pub fn is_sealed(message: &[u8]) -> bool {
    let sum = message.get(FREE_LEN..SEALED_LEN).and_then(|field| field.try_into().ok()).map(u32::from_le_bytes);
    sum.is_some_and(|sum| sum == crc32c::crc32c(&message[..FREE_LEN]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::header::{Header, pattern, renumber};

    #[test]
    fn any_bit_of_the_header_that_is_turned_breaks_the_seal() {
        let header =
            Header { intended_ns: 1_000_000_000, publisher: 7, sequence: 258, sent_ns: Some(5), free_ns: Some(4) };
        for length in [36, 64, 1_024] {
            let mut message = pattern(length);
            assert!(header.write(&mut message) && !is_sealed(&message));
            seal(&mut message);
            assert!(is_sealed(&message));
            assert_eq!(message[36..], pattern(length)[36..], "the body is not touched");
            for bit in 0..36 * 8 {
                message[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_sealed(&message), "bit {bit}");
                message[bit / 8] ^= 1 << (bit % 8);
            }
            renumber(&mut message, 259);
            assert!(!is_sealed(&message));
        }
        let mut short = pattern(35);
        seal(&mut short);
        assert!(short == pattern(35) && !is_sealed(&short));
    }
}
