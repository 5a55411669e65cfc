//! RESP 2 and 3: the protocol of Redis and Valkey.
//!
//! Source: the RESP specification in the documentation of Redis. Values of unknown length and
//! attributes are not supported: servers send them only on request.

use crate::{Malformed, decimal};

/// Longest line in bytes, including its end: simple strings, errors, numbers.
pub const MAX_LINE_BYTES: usize = 16 << 10;
/// Longest string in bytes: the servers' `proto-max-bulk-len`.
pub const MAX_BULK_BYTES: u64 = 512 << 20;
/// Maximum number of values in one item, including nested ones.
pub const MAX_VALUES: u64 = 4096;
/// Maximum depth of nested arrays.
pub const MAX_DEPTH: usize = 8;

/// A value. Items of RESP 2 are a subset of those of RESP 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// `+`: a simple string.
    Simple(&'a [u8]),
    /// `-` or `!`: an error; by convention it begins with a code in capitals.
    Error(&'a [u8]),
    /// `:`: a number.
    Integer(i64),
    /// `$` or, with its kind before it, `=`: any bytes.
    Bulk(&'a [u8]),
    /// `_`, and the string and the array of length -1 in RESP 2.
    Null,
    /// `#`: `true` or `false`.
    Boolean(bool),
    /// `,` or `(`: a fraction or a long number, as written.
    Number(&'a [u8]),
    /// `*` or `~`: values in order.
    Array(Values<'a>),
    /// `%`: keys and values alternating.
    Map(Values<'a>),
    /// `>`: an unsolicited message of the server.
    Push(Values<'a>),
}

/// The values within an item, complete and valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values<'a> {
    bytes: &'a [u8],
    left: u64,
}

impl<'a> Iterator for Values<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        self.left = self.left.checked_sub(1)?;
        // All of them were checked with the item, so none is invalid or missing.
        let (item, taken) = Item::decode(self.bytes).ok()??;
        self.bytes = &self.bytes[taken..];
        Some(item)
    }
}

/// The front of a value: the whole value, unless it contains others.
enum Front<'a> {
    Whole(Item<'a>),
    /// Contains this number of values.
    Holds(fn(Values<'a>) -> Item<'a>, u64),
}

impl<'a> Item<'a> {
    /// Reads one item from the front of `bytes`. Returns it with its length; `None` if more bytes
    /// are needed.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some((front, front_bytes)) = front(bytes)? else { return Ok(None) };
        let (holds, count) = match front {
            Front::Whole(item) => return Ok(Some((item, front_bytes))),
            Front::Holds(holds, count) => (holds, count),
        };
        let Some(held_bytes) = held_bytes(&bytes[front_bytes..], count)? else { return Ok(None) };
        let end_bytes = front_bytes + held_bytes;
        Ok(Some((holds(Values { bytes: &bytes[front_bytes..end_bytes], left: count }), end_bytes)))
    }

    /// Returns the length of the item at the front of `bytes`, up to the end of the value that is
    /// arriving, as far as its length is known; otherwise the number of bytes so far.
    pub fn announced(bytes: &[u8]) -> u64 {
        let mut taken = 0;
        while let Ok(Some((_, front_bytes))) = front(&bytes[taken..]) {
            taken += front_bytes;
        }
        let rest = &bytes[taken..];
        let length = match rest.split_first() {
            Some((b'$' | b'=' | b'!', rest)) => line(rest).ok().flatten().and_then(decimal::read),
            _ => None,
        };
        (taken as u64).saturating_add(length.map_or(rest.len() as u64, |length| length.saturating_add(2)))
    }

    /// Returns the text of a simple or bulk string.
    pub fn text(&self) -> Option<&'a [u8]> {
        match self {
            Item::Simple(text) | Item::Bulk(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the values within an array, a map or a push.
    pub fn values(&self) -> Option<Values<'a>> {
        match self {
            Item::Array(values) | Item::Map(values) | Item::Push(values) => Some(*values),
            _ => None,
        }
    }
}

/// Returns the length of `count` values, if they are complete. It uses no recursion, and does not
/// parse strings.
fn held_bytes(bytes: &[u8], count: u64) -> Result<Option<usize>, Malformed> {
    let mut left = [0; MAX_DEPTH];
    let mut depth = 0;
    let mut values = count;
    let mut taken = 0;
    left[0] = count;
    loop {
        if values > MAX_VALUES {
            return Err(Malformed::new(format!("more than {MAX_VALUES} values in one item")));
        }
        while left[depth] == 0 {
            match depth.checked_sub(1) {
                Some(outer) => depth = outer,
                None => return Ok(Some(taken)),
            }
        }
        left[depth] -= 1;
        let Some((front, front_bytes)) = front(&bytes[taken..])? else { return Ok(None) };
        taken += front_bytes;
        if let Front::Holds(_, count) = front {
            depth += 1;
            *left.get_mut(depth).ok_or_else(|| Malformed::new(format!("arrays deeper than {MAX_DEPTH}")))? = count;
            values += count;
        }
    }
}

fn front(bytes: &[u8]) -> Result<Option<(Front<'_>, usize)>, Malformed> {
    const KINDS: &[u8] = b"+-:$=_#,(*~%>!";
    let Some((kind, rest)) = bytes.split_first() else { return Ok(None) };
    if !KINDS.contains(kind) {
        return Err(Malformed::new(format!("no value begins with '{}'", kind.escape_ascii())));
    }
    let Some(line) = line(rest)? else { return Ok(None) };
    let line_bytes = 1 + line.len() + 2;
    let unfit = || Malformed::new(format!("what follows '{}' does not fit it", char::from(*kind)));
    let whole = |item| Ok(Some((Front::Whole(item), line_bytes)));
    match kind {
        b'+' => whole(Item::Simple(line)),
        b'-' => whole(Item::Error(line)),
        b':' => whole(Item::Integer(integer(line).ok_or_else(unfit)?)),
        b'_' if line.is_empty() => whole(Item::Null),
        b'#' if line == b"t" || line == b"f" => whole(Item::Boolean(line == b"t")),
        b',' | b'(' if !line.is_empty() => whole(Item::Number(line)),
        b'$' | b'*' if line == b"-1" => whole(Item::Null),
        b'$' | b'=' | b'!' => {
            let count = decimal::read(line).filter(|count| *count <= MAX_BULK_BYTES).ok_or_else(unfit)?;
            let end_bytes = line_bytes + count as usize + 2;
            let Some(text) = bytes.get(line_bytes..end_bytes) else { return Ok(None) };
            let text = text.strip_suffix(b"\r\n").ok_or_else(|| Malformed::new("no CR LF follows a string"))?;
            let item = match kind {
                b'$' => Item::Bulk(text),
                b'!' => Item::Error(text),
                // Three letters and a colon give the kind of the text.
                _ => Item::Bulk(text.get(4..).filter(|_| text[3] == b':').ok_or_else(unfit)?),
            };
            Ok(Some((Front::Whole(item), end_bytes)))
        }
        b'*' | b'~' | b'%' | b'>' => {
            let count = decimal::read(line).filter(|count| *count <= MAX_VALUES).ok_or_else(unfit)?;
            let (holds, count): (fn(_) -> _, _) = match kind {
                b'%' => (Item::Map, 2 * count),
                b'>' => (Item::Push, count),
                _ => (Item::Array, count),
            };
            Ok(Some((Front::Holds(holds, count), line_bytes)))
        }
        _ => Err(unfit()),
    }
}

/// Returns the line up to its CR LF.
fn line(bytes: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let Some(feed) = bytes.iter().take(MAX_LINE_BYTES - 1).position(|byte| *byte == b'\n') else {
        return match bytes.len() < MAX_LINE_BYTES - 1 {
            true => Ok(None),
            false => Err(Malformed::new(format!("the line is longer than {MAX_LINE_BYTES} bytes"))),
        };
    };
    bytes[..feed].strip_suffix(b"\r").map(Some).ok_or_else(|| Malformed::new("the line ends in no CR LF"))
}

fn integer(text: &[u8]) -> Option<i64> {
    // The standard library parses numbers with the most digits, such as i64::MIN.
    match text.first() {
        Some(b'0'..=b'9') if text.len() <= 18 => decimal::read(text).map(|number| number as i64),
        _ => std::str::from_utf8(text).ok()?.parse().ok(),
    }
}

/// Appends a command of the client, which is an array of strings in both versions.
pub fn put_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    put_front(out, b'*', words.len());
    for word in words {
        put_bulk(out, word);
    }
}

/// Appends a string of any bytes.
pub fn put_bulk(out: &mut Vec<u8>, text: &[u8]) {
    put_front(out, b'$', text.len());
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// Appends the front of an array (`*`), a map (`%`, where a key and its value count once) or a push
/// (`>`) of `count` values.
pub fn put_front(out: &mut Vec<u8>, kind: u8, count: usize) {
    out.push(kind);
    decimal::put(out, count as u64);
    out.extend_from_slice(b"\r\n");
}

/// Appends a number.
pub fn put_integer(out: &mut Vec<u8>, number: i64) {
    out.push(b':');
    if number < 0 {
        out.push(b'-');
    }
    decimal::put(out, number.unsigned_abs());
    out.extend_from_slice(b"\r\n");
}

/// Appends a simple string (`+`) or an error (`-`). The caller must ensure that it contains no line
/// end.
pub fn put_line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.push(kind);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// A client's command, as far as publishing and subscribing need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RespCommand<'a> {
    /// HELLO, with the requested version; options follow it.
    Hello(Option<&'a [u8]>, Values<'a>),
    /// AUTH: the user, if one is named, and the password.
    Auth(Option<&'a [u8]>, &'a [u8]),
    /// PUBLISH: channel and message.
    Publish(&'a [u8], &'a [u8]),
    /// RPUSH of one message: list and message.
    Push(&'a [u8], &'a [u8]),
    /// BLPOP of one list: its name.
    Pop(&'a [u8]),
    /// XADD of one field: stream and value.
    Add(&'a [u8], &'a [u8]),
    /// XGROUP CREATE: the stream.
    Group(&'a [u8]),
    /// XREADGROUP of one stream: its name, and the identifier after which to read; `>` stands for new
    /// entries.
    Read(&'a [u8], &'a [u8]),
    /// XACK: the number of its words, which are stream, group and identifiers.
    Acknowledge(usize),
    /// SUBSCRIBE: the channels.
    Subscribe(Values<'a>),
    /// PSUBSCRIBE: the patterns.
    PatternSubscribe(Values<'a>),
    /// PING, with a text to return.
    Ping(Option<&'a [u8]>),
    /// QUIT.
    Quit,
    /// Any other command: its name.
    Other(&'a [u8]),
}

impl<'a> RespCommand<'a> {
    /// Parses an item that a client has sent. [`Item::decode`] has already refused commands in one
    /// line, as typed by hand.
    pub fn of(item: &Item<'a>) -> Result<Self, Malformed> {
        let none = || Malformed::new("a command is an array of strings");
        let Item::Array(mut words) = *item else { return Err(none()) };
        let name = words.next().and_then(|name| name.text()).ok_or_else(none)?;
        let rest = words;
        let mut next = || words.next().and_then(|word| word.text());
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let few = || Malformed::new("a command lacks its arguments");
        Ok(if is("PUBLISH") {
            RespCommand::Publish(next().ok_or_else(few)?, next().ok_or_else(few)?)
        } else if is("RPUSH") {
            RespCommand::Push(next().ok_or_else(few)?, next().ok_or_else(few)?)
        } else if is("BLPOP") {
            RespCommand::Pop(next().ok_or_else(few)?)
        } else if is("XADD") {
            RespCommand::Add(next().ok_or_else(few)?, last(rest).1.ok_or_else(few)?)
        } else if is("XGROUP") {
            RespCommand::Group(rest.into_iter().nth(1).and_then(|word| word.text()).ok_or_else(few)?)
        } else if is("XREADGROUP") {
            let (stream, after) = last(rest);
            RespCommand::Read(stream.ok_or_else(few)?, after.ok_or_else(few)?)
        } else if is("XACK") {
            RespCommand::Acknowledge(rest.count())
        } else if is("SUBSCRIBE") {
            RespCommand::Subscribe(rest)
        } else if is("PSUBSCRIBE") {
            RespCommand::PatternSubscribe(rest)
        } else if is("PING") {
            RespCommand::Ping(next())
        } else if is("HELLO") {
            let version = next();
            RespCommand::Hello(version, words)
        } else if is("AUTH") {
            let first = next().ok_or_else(few)?;
            next().map_or(RespCommand::Auth(None, first), |password| RespCommand::Auth(Some(first), password))
        } else if is("QUIT") {
            RespCommand::Quit
        } else {
            RespCommand::Other(name)
        })
    }
}

/// Returns the last two words of a command.
fn last(words: Values<'_>) -> (Option<&[u8]>, Option<&[u8]>) {
    words.fold((None, None), |(_, before), word| (before, word.text()))
}

#[cfg(test)]
mod tests;
