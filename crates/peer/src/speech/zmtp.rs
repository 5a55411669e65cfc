//! ZMTP 3.0 (RFC 23) without security, as libzmq uses it over TCP: both publishers (PUB) and subscribers (SUB) connect
//! to the peer, which takes the opposite type for each. A message is one frame and has no topic; a subscription is to
//! everything.

use super::protocol::{Ask, Hub, Speech};
use crate::routes::{Address, Filter};
use pubmark_wire::Malformed;

/// Ten bytes of signature, of which the middle ones are arbitrary; then version 3.0, the mechanism in 20 bytes, 1 byte
/// that says whether this is the mechanism's server, and 31 bytes of padding.
const GREETING_BYTES: usize = 64;
const VERSION: [u8; 2] = [3, 0];
const MECHANISM: &[u8; 20] = b"NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// Bits of a frame's first byte.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;
/// Maximum length of a frame, bytes.
const MAX_BYTES: u64 = 128 << 20;
/// First bytes of a subscriber's messages.
const CANCEL: u8 = 0;
const SUBSCRIBE: u8 = 1;
/// All messages have this topic, and a client has one subscription.
const EVERYTHING: Filter<'static> = Filter::Exact(b"");
const TOKEN: u32 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its greeting has not been received.
    Silent,
    /// Its READY has not been received.
    Greeted,
    Publisher,
    Subscriber,
    /// The conversation is over.
    Over,
}

/// A connection.
pub struct ZmtpServer {
    denied: bool,
    state: State,
}

impl Speech for ZmtpServer {
    const SCHEME: &'static str = "tcp";
    const DRIVER: &'static str = "zeromq";

    fn new(denied: bool) -> Self {
        ZmtpServer { denied, state: State::Silent }
    }

    fn greet(&mut self, out: &mut Vec<u8>) -> bool {
        let front = out.len();
        out.extend_from_slice(&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f]);
        out.extend_from_slice(&VERSION);
        out.extend_from_slice(MECHANISM);
        out.resize(front + GREETING_BYTES, 0);
        false
    }

    fn input(&mut self, bytes: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<usize, Malformed> {
        let mut done = 0;
        if self.state == State::Silent {
            let Some(greeting) = bytes.first_chunk::<GREETING_BYTES>() else { return early(bytes) };
            early(greeting)?;
            if greeting[10] < VERSION[0] || greeting[12..32] != *MECHANISM {
                return Err(Malformed::new("the client speaks ZMTP before 3.0, or wants security"));
            }
            self.state = State::Greeted;
            done = GREETING_BYTES;
        }
        while self.state != State::Over
            && let Some((flags, body, used)) = frame(&bytes[done..])?
        {
            self.frame(flags, body, out, hub)?;
            done += used;
        }
        Ok(if self.state == State::Over { bytes.len() } else { done })
    }

    fn deliver(&mut self, _: u32, _: Address<'_>, payload: &[u8], _: u8, out: &mut Vec<u8>) {
        put(out, 0, payload);
    }
}

impl ZmtpServer {
    fn frame(&mut self, flags: u8, body: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<(), Malformed> {
        match (self.state, flags & COMMAND > 0) {
            _ if flags & MORE > 0 => return Err(Malformed::new("a message of several frames")),
            (State::Greeted, true) if self.denied => {
                put(out, COMMAND, b"\x05ERROR\x0fcome back later");
                self.state = State::Over;
                hub(Ask::Close);
            }
            (State::Greeted, true) => {
                let theirs = body.strip_prefix(b"\x05READY").and_then(|rest| property(rest, b"Socket-Type"));
                let ours = match theirs {
                    Some(b"PUB") => &b"SUB"[..],
                    Some(b"SUB") => b"PUB",
                    _ => return Err(Malformed::new("neither a PUB nor a SUB is ready")),
                };
                put(out, COMMAND, &[b"\x05READY\x0bSocket-Type\0\0\0\x03", ours].concat());
                if ours == b"SUB" {
                    put(out, 0, &[SUBSCRIBE]);
                    self.state = State::Publisher;
                } else {
                    self.state = State::Subscriber;
                }
            }
            (State::Publisher, false) => {
                hub(Ask::Publish { to: Address::default(), payload: body, qos: 0 });
            }
            (State::Subscriber, false) => match body {
                [SUBSCRIBE] => {
                    hub(Ask::Subscribe(EVERYTHING, TOKEN));
                }
                [CANCEL] => {
                    hub(Ask::Unsubscribe(EVERYTHING, TOKEN));
                }
                _ => return Err(Malformed::new("a subscription to less than everything")),
            },
            // Only 3.1 expects answers, and it knows that this is 3.0.
            (State::Publisher | State::Subscriber, true) => {}
            _ => return Err(Malformed::new("a message before READY")),
        }
        Ok(())
    }
}

/// Checks that an incomplete greeting can be the beginning of one.
fn early(bytes: &[u8]) -> Result<usize, Malformed> {
    let sound = bytes.first().is_none_or(|first| *first == 0xff) && bytes.get(9).is_none_or(|last| *last == 0x7f);
    sound.then_some(0).ok_or_else(|| Malformed::new("no greeting of ZMTP"))
}

/// First byte, content, and total length of a frame.
type Frame<'a> = (u8, &'a [u8], usize);

/// Reads a frame: its first byte, its content, and its total length; `None` if more bytes are needed.
fn frame(bytes: &[u8]) -> Result<Option<Frame<'_>>, Malformed> {
    let Some((flags, rest)) = bytes.split_first() else { return Ok(None) };
    if flags & !(MORE | LONG | COMMAND) != 0 {
        return Err(Malformed::new(format!("a frame begins with {flags:#04x}")));
    }
    let (size, rest) = if flags & LONG > 0 {
        let Some((size, rest)) = rest.split_first_chunk() else { return Ok(None) };
        (u64::from_be_bytes(*size), rest)
    } else {
        let Some((size, rest)) = rest.split_first() else { return Ok(None) };
        (u64::from(*size), rest)
    };
    if size > MAX_BYTES {
        return Err(Malformed::new(format!("a frame of {size} bytes is longer than {MAX_BYTES} bytes")));
    }
    let Some(body) = rest.get(..size as usize) else { return Ok(None) };
    Ok(Some((*flags, body, bytes.len() - rest.len() + body.len())))
}

fn put(out: &mut Vec<u8>, flags: u8, body: &[u8]) {
    match u8::try_from(body.len()) {
        Ok(size) => out.extend_from_slice(&[flags, size]),
        Err(_) => {
            out.push(flags | LONG);
            out.extend_from_slice(&(body.len() as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(body);
}

/// Returns the value of this name: names have a length of one byte, values of four.
fn property<'a>(mut bytes: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    loop {
        let (size, rest) = bytes.split_first()?;
        let (found, rest) = rest.split_at_checked(usize::from(*size))?;
        let (size, rest) = rest.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*size) as usize)?;
        if found.eq_ignore_ascii_case(name) {
            return Some(value);
        }
        bytes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speech::Handled;
    use proptest::prelude::*;

    fn say(zmtp: &mut ZmtpServer, bytes: &[u8]) -> Result<(usize, Vec<u8>, Vec<String>), Malformed> {
        let (mut out, mut asked) = (Vec::new(), Vec::new());
        let hub = &mut |ask: Ask<'_>| {
            asked.push(match ask {
                Ask::Publish { payload, .. } => payload.escape_ascii().to_string(),
                other => format!("{other:?}"),
            });
            Handled { answer: crate::speech::PublisherAnswer::Acknowledged, listeners: 0 }
        };
        let used = zmtp.input(bytes, &mut out, hub)?;
        Ok((used, out, asked))
    }

    /// Returns the greeting that libzmq 4.3 sends to a server that has not sent anything yet.
    fn greeting() -> Vec<u8> {
        let mut bytes = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL".to_vec();
        bytes.resize(GREETING_BYTES, 0);
        bytes
    }

    fn ready(kind: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let text = format!("\x05READY\x0bSocket-Type\0\0\0\x03{kind}\x08Identity\0\0\0\0");
        put(&mut bytes, COMMAND, text.as_bytes());
        bytes
    }

    fn connected(kind: &str) -> ZmtpServer {
        let mut zmtp = ZmtpServer::new(false);
        say(&mut zmtp, &[greeting(), ready(kind)].concat()).unwrap();
        zmtp
    }

    #[test]
    fn a_publisher_is_heard_wherever_its_bytes_are_cut() {
        let mut words = [greeting(), ready("PUB")].concat();
        let long = vec![b'x'; 300];
        put(&mut words, 0, b"short");
        put(&mut words, 0, &long);
        for cut in 0..words.len() {
            let mut zmtp = ZmtpServer::new(false);
            let (used, mut out, mut asked) = say(&mut zmtp, &words[..cut]).unwrap();
            let (rest, more, others) = say(&mut zmtp, &words[used..]).unwrap();
            out.extend(more);
            asked.extend(others);
            assert_eq!(used + rest, words.len());
            assert_eq!(out, b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB\0\x01\x01");
            assert_eq!(asked, ["short".to_owned(), "x".repeat(300)]);
        }
    }

    #[test]
    fn a_subscriber_gets_what_it_asks_for() {
        let mut zmtp = connected("SUB");
        let (_, out, asked) = say(&mut zmtp, b"\0\x01\x01\0\x01\0").unwrap();
        assert!(out.is_empty());
        assert_eq!(asked, ["Subscribe(Exact([]), 0)", "Unsubscribe(Exact([]), 0)"]);
        let mut out = Vec::new();
        zmtp.deliver(TOKEN, Address::default(), &[7; 256], 0, &mut out);
        assert_eq!(frame(&out), Ok(Some((LONG, &[7; 256][..], out.len()))));
        assert!(say(&mut zmtp, b"\0\x02\x01a").is_err());
    }

    #[test]
    fn what_it_does_not_know_it_refuses() {
        for bytes in [
            b"GET / HTTP/1.1".to_vec(),
            greeting().iter().map(|byte| if *byte == 3 { 1 } else { *byte }).collect(),
            [greeting(), ready("REQ")].concat(),
            [greeting(), b"\0\x02hi".to_vec()].concat(),
            [greeting(), ready("PUB"), b"\x01\x02hi\0\x01x".to_vec()].concat(),
            [greeting(), b"\x80".to_vec()].concat(),
            [greeting(), b"\x02\xff\0\0\0\0\0\0\0".to_vec()].concat(),
        ] {
            assert!(say(&mut ZmtpServer::new(false), &bytes).is_err(), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_denied_connection_is_told_so() {
        let mut zmtp = ZmtpServer::new(true);
        let (_, out, asked) = say(&mut zmtp, &[greeting(), ready("SUB")].concat()).unwrap();
        assert!(out.starts_with(b"\x04\x16\x05ERROR"));
        assert_eq!(asked, ["Close"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..60), state in 0..3) {
            let mut zmtp = match state {
                0 => ZmtpServer::new(false),
                1 => connected("PUB"),
                _ => connected("SUB"),
            };
            if let Ok((used, ..)) = say(&mut zmtp, &bytes) {
                prop_assert!(used <= bytes.len());
            }
            let mut zmtp = ZmtpServer::new(false);
            let _ = say(&mut zmtp, &[greeting(), b"\x04\x1e\x05READY".to_vec(), bytes].concat());
        }
    }
}
