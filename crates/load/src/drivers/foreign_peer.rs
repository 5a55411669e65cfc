//! Errors for peers that speak another protocol than the expected one.

use crate::session::SessionError;

/// Bytes of the peer that an error shows.
const SHOWN_BYTES: usize = 40;

/// Makes the error for a peer that does not speak `expected`. It shows the peer's first
/// bytes.
pub fn foreign(expected: &str, bytes: &[u8], why: &str) -> SessionError {
    SessionError::Foreign(format!("the server does not speak {expected}: it sent \"{}\" ({why})", printable(bytes)))
}

/// Returns the first bytes as text, with a dot for each that cannot be printed.
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
