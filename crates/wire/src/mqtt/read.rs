//! Reads the data types of MQTT from a borrowed slice (MQTT 3.1.1, 1.5; MQTT 5, 1.5).

use crate::Malformed;

/// The rest of a packet's body.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8], Malformed> {
        let Some((taken, rest)) = self.0.split_at_checked(count) else { return Err(short(what, count, self.0.len())) };
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self, what: &str) -> Result<u8, Malformed> {
        let Some((first, rest)) = self.0.split_first() else { return Err(short(what, 1, 0)) };
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn short(&mut self, what: &str) -> Result<u16, Malformed> {
        let Some((taken, rest)) = self.0.split_first_chunk() else { return Err(short(what, 2, self.0.len())) };
        self.0 = rest;
        Ok(u16::from_be_bytes(*taken))
    }

    pub(super) fn long(&mut self, what: &str) -> Result<u32, Malformed> {
        let Some((taken, rest)) = self.0.split_first_chunk() else { return Err(short(what, 4, self.0.len())) };
        self.0 = rest;
        Ok(u32::from_be_bytes(*taken))
    }

    /// Reads a packet identifier, never 0 (MQTT 3.1.1, 2.3.1; MQTT 5, 2.2.1).
    pub(super) fn packet_id(&mut self) -> Result<u16, Malformed> {
        match self.short("a packet identifier")? {
            0 => Err(Malformed::new("packet identifier 0: they count from 1")),
            id => Ok(id),
        }
    }

    /// Reads a variable byte integer (MQTT 5, 1.5.5) in its shortest form.
    pub(super) fn variable(&mut self, what: &str) -> Result<u32, Malformed> {
        let (value, used) = variable(self.0)?.ok_or_else(|| short(what, self.0.len() + 1, self.0.len()))?;
        if used > 1 && self.0[used - 1] == 0 {
            return Err(Malformed::new(format!("{what} takes more bytes than it needs")));
        }
        self.0 = &self.0[used..];
        Ok(value)
    }

    /// Reads bytes after their length (MQTT 5, 1.5.6).
    pub(super) fn binary(&mut self, what: &str) -> Result<&'a [u8], Malformed> {
        let count = self.short(what)?;
        self.take(usize::from(count), what)
    }

    /// Reads a string: UTF-8 without U+0000 (MQTT 3.1.1, 1.5.3; MQTT 5, 1.5.4).
    pub(super) fn text(&mut self, what: &str) -> Result<&'a str, Malformed> {
        let bytes = self.binary(what)?;
        if bytes.contains(&0) {
            return Err(Malformed::new(format!("{what} holds U+0000")));
        }
        std::str::from_utf8(bytes).map_err(|_| Malformed::new(format!("{what} is not UTF-8")))
    }

    /// Reads the name of a topic, without wildcards (MQTT 3.1.1, 3.3.2.1).
    pub(super) fn topic(&mut self) -> Result<&'a str, Malformed> {
        let bytes = self.binary("a topic")?;
        if let Some(wrong) = bytes.iter().find(|byte| matches!(byte, 0 | b'+' | b'#')) {
            return Err(Malformed::new(format!("the topic of a PUBLISH holds {:?}", char::from(*wrong))));
        }
        std::str::from_utf8(bytes).map_err(|_| Malformed::new("a topic is not UTF-8"))
    }

    /// Checks that no bytes are left.
    pub(super) fn end(&self, packet: &str) -> Result<(), Malformed> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(Malformed::new(format!("{packet} goes on for {left} bytes after its last field"))),
        }
    }
}

#[cold]
fn short(what: &str, wanted: usize, there: usize) -> Malformed {
    Malformed::new(format!("a packet ends within {what}: {there} bytes are left where {wanted} are needed"))
}

/// Reads a variable byte integer at the start of `bytes`; returns it with its length, or `None` if
/// more bytes are needed. More than four bytes are malformed.
pub(super) fn variable(bytes: &[u8]) -> Result<Option<(u32, usize)>, Malformed> {
    let mut value = 0;
    for (place, byte) in bytes.iter().take(4).enumerate() {
        value |= u32::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(Some((value, place + 1)));
        }
    }
    if bytes.len() < 4 { Ok(None) } else { Err(Malformed::new("a length of more than four bytes")) }
}
