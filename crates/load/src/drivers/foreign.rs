//! How sessions show what came instead of what was expected.

use crate::session::SessionError;

/// Bytes of the peer that an error shows.
const SHOWN_BYTES: usize = 40;

/// The peer speaks something else than `expected`: the error shows how it began.
pub fn foreign(expected: &str, bytes: &[u8], why: &str) -> SessionError {
    SessionError::Foreign(format!("this is no {expected}: it sent \"{}\" ({why})", printable(bytes)))
}

/// The first bytes, with a dot for each that cannot be printed.
pub fn printable(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(SHOWN_BYTES)];
    shown.iter().map(|byte| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '.' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_bytes_are_shown() {
        assert_eq!(printable(b"HTTP/1.1 400\r\n\x00\xff"), "HTTP/1.1 400....");
        assert_eq!(printable(&[b'x'; 100]), "x".repeat(40));
    }
}
