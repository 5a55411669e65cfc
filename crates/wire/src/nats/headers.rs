//! Headers of messages: a line with the version and perhaps a status, then fields.

use super::{END, HEADERS_VERSION};
use crate::decimal;

/// Returns the status in the first line, as JetStream sends it in place of a message: 404 for no
/// messages, 408 for a request that has expired, 503 for a subject that nobody answers.
pub fn status(headers: &[u8]) -> Option<u16> {
    let line = headers.strip_prefix(HEADERS_VERSION)?.split(|byte| *byte == b'\r').next()?;
    let code = line.strip_prefix(b" ")?.split(|byte| *byte == b' ').next()?;
    decimal::read(code)?.try_into().ok()
}

/// Returns the text behind the status; empty if there is none.
pub fn status_text(headers: &[u8]) -> &[u8] {
    let line = headers.split(|byte| *byte == b'\r').next().unwrap_or_default();
    line.splitn(3, |byte| *byte == b' ').nth(2).unwrap_or_default()
}

/// Returns the number in the field of this name.
pub fn number(headers: &[u8], name: &[u8]) -> Option<u64> {
    let mut lines = headers.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(b":"))?;
    decimal::read(value.trim_ascii())
}

/// Returns headers as [`super::FromClient::Publish`] takes them. The caller must ensure that names contain no colon, and values
/// no line end.
pub fn block<'a>(list: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut block = HEADERS_VERSION.to_vec();
    block.extend_from_slice(END);
    for (name, value) in list {
        for part in [name.as_bytes(), b": ", value.as_bytes(), END] {
            block.extend_from_slice(part);
        }
    }
    block.extend_from_slice(END);
    block
}

/// Adds an identifier, by which JetStream drops a message that it has, to headers that may be empty:
/// `NAME-NUMBER`.
pub fn add_id(headers: &mut Vec<u8>, name: &[u8], number: u64) {
    match headers.is_empty() {
        true => [HEADERS_VERSION, END].iter().for_each(|part| headers.extend_from_slice(part)),
        // Without the empty line at their end.
        false => headers.truncate(headers.len() - END.len()),
    }
    for part in [b"Nats-Msg-Id: ", name, b"-"] {
        headers.extend_from_slice(part);
    }
    decimal::put(headers, number);
    headers.extend_from_slice(b"\r\n\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPIRED: &[u8] =
        b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 12\r\nNats-Pending-Bytes: 0\r\n\r\n";

    #[test]
    fn a_status_and_its_fields_are_read() {
        assert_eq!((status(EXPIRED), status_text(EXPIRED)), (Some(408), &b"Request Timeout"[..]));
        assert_eq!(number(EXPIRED, b"Nats-Pending-Messages"), Some(12));
        assert_eq!(number(EXPIRED, b"Nats-Pending"), None);
        assert_eq!((status(b"NATS/1.0 503\r\n\r\n"), status_text(b"NATS/1.0 503\r\n\r\n")), (Some(503), &b""[..]));
    }

    #[test]
    fn headers_without_a_status_have_none() {
        let mut headers = Vec::new();
        add_id(&mut headers, b"p0", 17);
        assert_eq!(headers, b"NATS/1.0\r\nNats-Msg-Id: p0-17\r\n\r\n");
        add_id(&mut headers, b"p1", 8);
        assert_eq!(headers, b"NATS/1.0\r\nNats-Msg-Id: p0-17\r\nNats-Msg-Id: p1-8\r\n\r\n");
        for bytes in [&headers[..], b"", b"NATS/1.0 x", b"NATS/1.0 99999999 x\r\n"] {
            assert_eq!(status(bytes), None, "{}", bytes.escape_ascii());
        }
        assert_eq!(number(b"NATS/1.0\r\nA: x\r\n\r\n", b"A"), None);
    }
}
