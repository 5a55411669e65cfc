//! Lines of the Redis command MONITOR: `1339518083.107412 [0 127.0.0.1:60866] "publish" "channel" "message"`.

/// A command of a line.
pub(super) struct Published {
    /// Time, as written.
    pub time: String,
    /// The channel.
    pub channel: String,
    /// Length of the message, bytes.
    pub bytes: u64,
}

/// Parses a line. Returns `Ok(None)` for another command than PUBLISH and SPUBLISH.
pub(super) fn parse(line: &str) -> Result<Option<Published>, &'static str> {
    const FORM: &str = "not a line of MONITOR, such as 12.5 [0 127.0.0.1:60866] \"publish\" \"channel\" \"message\"";
    let (time, rest) = line.split_once(' ').ok_or(FORM)?;
    let rest = rest.strip_prefix('[').and_then(|rest| rest.split_once("] ")).ok_or(FORM)?.1;
    let mut rest = rest;
    let mut next = || {
        let (argument, after) = argument(rest)?;
        rest = after.strip_prefix(' ').unwrap_or(after);
        Some(argument)
    };
    let command = next().ok_or(FORM)?;
    if !["publish", "spublish"].iter().any(|known| command.eq_ignore_ascii_case(known.as_bytes())) {
        return Ok(None);
    }
    let (channel, message) = (next().ok_or(FORM)?, next().ok_or(FORM)?);
    let channel = String::from_utf8_lossy(&channel).into_owned();
    Ok(Some(Published { time: time.to_owned(), channel, bytes: message.len() as u64 }))
}

/// Splits off one quoted argument, and returns its bytes and the rest.
fn argument(text: &str) -> Option<(Vec<u8>, &str)> {
    let text = text.strip_prefix('"')?;
    let (bytes, mut at, mut out) = (text.as_bytes(), 0, Vec::new());
    loop {
        match *bytes.get(at)? {
            b'"' => return Some((out, text.get(at + 1..)?)),
            b'\\' => {
                let escaped = *bytes.get(at + 1)?;
                at += 2;
                out.push(match escaped {
                    b'x' => {
                        let digits = text.get(at..at + 2)?;
                        at += 2;
                        u8::from_str_radix(digits, 16).ok()?
                    }
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 7,
                    b'b' => 8,
                    other => other,
                });
            }
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
}
