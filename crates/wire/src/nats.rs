//! The NATS client protocol: lines of words, and payloads after a length.
//!
//! Source: "Client Protocol" in the documentation of NATS, and the actual output of nats-server
//! 2.9. Words are accepted in any case; lines must end in CR LF.

pub mod headers;

use crate::{Malformed, decimal};

/// Longest line in bytes, including its end: nats-server's `max_control_line`.
pub const MAX_LINE_BYTES: usize = 4 << 10;
/// Longest INFO line in bytes, including its end. It lists every server of a cluster.
pub const MAX_INFO_BYTES: usize = 64 << 10;
/// Longest body in bytes, including headers: the largest `max_payload` of nats-server.
pub const MAX_BODY_BYTES: u64 = 64 << 20;
/// First line of headers.
pub const HEADERS_VERSION: &[u8] = b"NATS/1.0";

const END: &[u8] = b"\r\n";
/// First words of a server's items.
const FROM_SERVER: &[&str] = &["MSG", "HMSG", "PING", "PONG", "INFO", "+OK", "-ERR"];

/// An item sent by a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromServer<'a> {
    /// A JSON object that describes the server.
    Info(&'a [u8]),
    /// MSG, or HMSG if there are headers.
    Message {
        /// The subject that it was published to.
        subject: &'a [u8],
        /// The subscription's name, as chosen by the client.
        subscription: &'a [u8],
        /// Subject for an answer.
        reply: Option<&'a [u8]>,
        /// Version line and fields, including the empty line at their end; empty if there are none.
        headers: &'a [u8],
        /// The message without headers.
        payload: &'a [u8],
    },
    /// Requests a PONG.
    Ping,
    /// Answers a PING.
    Pong,
    /// Confirms any item, if the client asked for confirmations.
    Ok,
    /// An error, without its quotes. The server closes the connection after most of them.
    Error(&'a [u8]),
}

/// An item sent by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromClient<'a> {
    /// A JSON object that describes the client.
    Connect(&'a [u8]),
    /// PUB, or HPUB if there are headers.
    Publish {
        /// The subject.
        subject: &'a [u8],
        /// Subject for an answer.
        reply: Option<&'a [u8]>,
        /// Version line and fields, including the empty line at their end; empty if there are none.
        headers: &'a [u8],
        /// The message without headers.
        payload: &'a [u8],
    },
    /// Subscribes to messages.
    Subscribe {
        /// The subjects.
        subject: &'a [u8],
        /// Group that shares the messages.
        group: Option<&'a [u8]>,
        /// Name of the subscription, which its messages carry.
        subscription: &'a [u8],
    },
    /// Ends a subscription.
    Unsubscribe {
        /// Its name.
        subscription: &'a [u8],
        /// Number of messages after which it ends; `None` for at once.
        after: Option<u64>,
    },
    /// Requests a PONG.
    Ping,
    /// Answers a PING.
    Pong,
}

impl<'a> FromServer<'a> {
    /// Reads one item from the front of `bytes`. Returns it with its length; `None` if more bytes
    /// are needed.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some(line) = Line::read(bytes, FROM_SERVER)? else { return Ok(None) };
        match line.word {
            "MSG" | "HMSG" => {
                let words = line.words()?;
                let Some(body) = Body::read(bytes, &line, &words, 2)? else { return Ok(None) };
                let (subject, subscription, reply) = match body.before {
                    [subject, subscription] => (*subject, *subscription, None),
                    [subject, subscription, reply] => (*subject, *subscription, Some(*reply)),
                    _ => return Err(line.unfit()),
                };
                let Body { headers, payload, end_bytes, .. } = body;
                Ok(Some((FromServer::Message { subject, subscription, reply, headers, payload }, end_bytes)))
            }
            "INFO" => Ok(Some((FromServer::Info(line.rest), line.end_bytes))),
            "PING" => line.alone(FromServer::Ping),
            "PONG" => line.alone(FromServer::Pong),
            "+OK" => line.alone(FromServer::Ok),
            _ => {
                let text = line.rest;
                let text = text.strip_prefix(b"'").and_then(|text| text.strip_suffix(b"'")).unwrap_or(text);
                Ok(Some((FromServer::Error(text), line.end_bytes)))
            }
        }
    }

    /// Returns the length of the item at the front of `bytes` if its line has arrived; otherwise
    /// the number of bytes so far.
    pub fn announced(bytes: &[u8]) -> u64 {
        let body = |line: &Line<'_>| match line.word {
            "MSG" | "HMSG" => decimal::read(line.words().ok()?.as_slice().last()?),
            _ => None,
        };
        let line = Line::read(bytes, FROM_SERVER).ok().flatten();
        let told = line.and_then(|line| Some((line.end_bytes + END.len()) as u64).zip(body(&line)));
        told.map_or(bytes.len() as u64, |(beside, body)| beside.saturating_add(body))
    }

    /// Appends the item. The caller must ensure that words contain no white space, and texts no
    /// line end.
    pub fn put(&self, out: &mut Vec<u8>) {
        match *self {
            FromServer::Info(json) => put_line(out, &[b"INFO", json]),
            FromServer::Message { subject, subscription, reply, headers, payload } => {
                let word: &[u8] = if headers.is_empty() { b"MSG" } else { b"HMSG" };
                put_words(out, &[word, subject, subscription], reply);
                put_body(out, headers, payload);
            }
            FromServer::Ping => put_line(out, &[b"PING"]),
            FromServer::Pong => put_line(out, &[b"PONG"]),
            FromServer::Ok => put_line(out, &[b"+OK"]),
            FromServer::Error(text) => {
                out.extend_from_slice(b"-ERR '");
                out.extend_from_slice(text);
                out.extend_from_slice(b"'\r\n");
            }
        }
    }
}

impl<'a> FromClient<'a> {
    /// Reads one item from the front of `bytes`. Returns it with its length; `None` if more bytes
    /// are needed.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        const WORDS: &[&str] = &["PUB", "HPUB", "PING", "PONG", "SUB", "UNSUB", "CONNECT"];
        let Some(line) = Line::read(bytes, WORDS)? else { return Ok(None) };
        let item = match line.word {
            "PUB" | "HPUB" => {
                let words = line.words()?;
                let Some(body) = Body::read(bytes, &line, &words, 1)? else { return Ok(None) };
                let (subject, reply) = match body.before {
                    [subject] => (*subject, None),
                    [subject, reply] => (*subject, Some(*reply)),
                    _ => return Err(line.unfit()),
                };
                let Body { headers, payload, end_bytes, .. } = body;
                return Ok(Some((FromClient::Publish { subject, reply, headers, payload }, end_bytes)));
            }
            "SUB" => match *line.words()?.as_slice() {
                [subject, subscription] => FromClient::Subscribe { subject, group: None, subscription },
                [subject, group, subscription] => FromClient::Subscribe { subject, group: Some(group), subscription },
                _ => return Err(line.unfit()),
            },
            "UNSUB" => match *line.words()?.as_slice() {
                [subscription] => FromClient::Unsubscribe { subscription, after: None },
                [subscription, after] => {
                    let after = decimal::read(after).ok_or_else(|| line.unfit())?;
                    FromClient::Unsubscribe { subscription, after: Some(after) }
                }
                _ => return Err(line.unfit()),
            },
            "PING" => return line.alone(FromClient::Ping),
            "PONG" => return line.alone(FromClient::Pong),
            _ => FromClient::Connect(line.rest),
        };
        Ok(Some((item, line.end_bytes)))
    }

    /// Appends the item. The caller must ensure that words contain no white space, and texts no
    /// line end.
    pub fn put(&self, out: &mut Vec<u8>) {
        match *self {
            FromClient::Connect(json) => put_line(out, &[b"CONNECT", json]),
            FromClient::Publish { subject, reply, headers, payload } => {
                let word: &[u8] = if headers.is_empty() { b"PUB" } else { b"HPUB" };
                put_words(out, &[word, subject], reply);
                put_body(out, headers, payload);
            }
            FromClient::Subscribe { subject, group: None, subscription } => {
                put_line(out, &[b"SUB", subject, subscription]);
            }
            FromClient::Subscribe { subject, group: Some(group), subscription } => {
                put_line(out, &[b"SUB", subject, group, subscription]);
            }
            FromClient::Unsubscribe { subscription, after } => {
                put_words(out, &[b"UNSUB", subscription], None);
                if let Some(after) = after {
                    out.push(b' ');
                    decimal::put(out, after);
                }
                out.extend_from_slice(END);
            }
            FromClient::Ping => put_line(out, &[b"PING"]),
            FromClient::Pong => put_line(out, &[b"PONG"]),
        }
    }
}

fn put_words(out: &mut Vec<u8>, words: &[&[u8]], last: Option<&[u8]>) {
    for (index, word) in words.iter().copied().chain(last).enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(word);
    }
}

fn put_line(out: &mut Vec<u8>, words: &[&[u8]]) {
    put_words(out, words, None);
    out.extend_from_slice(END);
}

fn put_body(out: &mut Vec<u8>, headers: &[u8], payload: &[u8]) {
    if !headers.is_empty() {
        out.push(b' ');
        decimal::put(out, headers.len() as u64);
    }
    out.push(b' ');
    decimal::put(out, (headers.len() + payload.len()) as u64);
    out.extend_from_slice(END);
    out.extend_from_slice(headers);
    out.extend_from_slice(payload);
    out.extend_from_slice(END);
}

/// A complete line.
struct Line<'a> {
    word: &'static str,
    rest: &'a [u8],
    /// Length of the line, including its end, bytes.
    end_bytes: usize,
}

impl<'a> Line<'a> {
    /// Reads the first line, if it is complete. A peer of another protocol is detected by its first
    /// bytes, because it may never send a line end.
    fn read(bytes: &'a [u8], words: &'static [&'static str]) -> Result<Option<Self>, Malformed> {
        let begins = |word: &&&str| {
            let shared = word.len().min(bytes.len());
            bytes[..shared].eq_ignore_ascii_case(&word.as_bytes()[..shared])
                && bytes.get(word.len()).is_none_or(|after| b" \t\r".contains(after))
        };
        let word = *words
            .iter()
            .find(begins)
            .ok_or_else(|| Malformed::new(format!("the line begins with none of {}", words.join(", "))))?;
        let max_bytes = if word == "INFO" || word == "CONNECT" { MAX_INFO_BYTES } else { MAX_LINE_BYTES };
        let Some(feed) = bytes.iter().take(max_bytes).position(|byte| *byte == b'\n') else {
            return match bytes.len() < max_bytes {
                true => Ok(None),
                false => Err(Malformed::new(format!("the line is longer than {max_bytes} bytes"))),
            };
        };
        let line = bytes[..feed].strip_suffix(b"\r").ok_or_else(|| Malformed::new("the line ends in no CR LF"))?;
        Ok(Some(Line { word, rest: line[word.len()..].trim_ascii(), end_bytes: feed + 1 }))
    }

    fn unfit(&self) -> Malformed {
        Malformed::new(format!("what follows {} does not fit it", self.word))
    }

    fn alone<T>(&self, item: T) -> Result<Option<(T, usize)>, Malformed> {
        if self.rest.is_empty() { Ok(Some((item, self.end_bytes))) } else { Err(self.unfit()) }
    }

    fn words(&self) -> Result<Words<'a>, Malformed> {
        let mut words = Words { words: [&[]; 5], count: 0 };
        for word in self.rest.split(|byte| b" \t".contains(byte)).filter(|word| !word.is_empty()) {
            *words.words.get_mut(words.count).ok_or_else(|| self.unfit())? = word;
            words.count += 1;
        }
        Ok(words)
    }
}

/// Words of a line: no valid line has more than five after its first.
struct Words<'a> {
    words: [&'a [u8]; 5],
    count: usize,
}

impl<'a> Words<'a> {
    fn as_slice(&self) -> &[&'a [u8]] {
        &self.words[..self.count]
    }
}

/// Content after a line that ends in one length, or in two if there are headers.
struct Body<'a, 'w> {
    /// The line's words before the lengths.
    before: &'w [&'a [u8]],
    headers: &'a [u8],
    payload: &'a [u8],
    /// Length of line and body, including their ends, bytes.
    end_bytes: usize,
}

impl<'a, 'w> Body<'a, 'w> {
    /// Reads the body. `names` words come before the lengths, and one more if there is a reply
    /// subject.
    fn read(bytes: &'a [u8], line: &Line<'a>, words: &'w Words<'a>, names: usize) -> Result<Option<Self>, Malformed> {
        let headed = line.word.starts_with('H');
        let length = |word: &[u8]| {
            let bytes = decimal::read(word).ok_or_else(|| line.unfit())?;
            match bytes <= MAX_BODY_BYTES {
                true => Ok(bytes as usize),
                false => Err(Malformed::new(format!("a body of {bytes} bytes is longer than {MAX_BODY_BYTES} bytes"))),
            }
        };
        let (before, headers_bytes, body_bytes) = match (words.as_slice(), headed) {
            ([before @ .., total], false) => (before, 0, length(total)?),
            ([before @ .., headers, total], true) => (before, length(headers)?, length(total)?),
            _ => return Err(line.unfit()),
        };
        if headers_bytes > body_bytes || !(names..=names + 1).contains(&before.len()) {
            return Err(line.unfit());
        }
        let end_bytes = line.end_bytes + body_bytes + END.len();
        let Some(body) = bytes.get(line.end_bytes..end_bytes) else { return Ok(None) };
        let body = body.strip_suffix(END).ok_or_else(|| Malformed::new("no CR LF follows the payload"))?;
        let (headers, payload) = body.split_at(headers_bytes);
        if headed && !(headers.starts_with(HEADERS_VERSION) && headers.ends_with(b"\r\n\r\n")) {
            return Err(Malformed::new("headers are not those of NATS/1.0"));
        }
        Ok(Some(Body { before, headers, payload, end_bytes }))
    }
}

#[cfg(test)]
mod tests;
