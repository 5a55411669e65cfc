//! Bounded reading of Zenoh's numbers, byte strings and extensions.

use crate::Malformed;

/// Bytes of the longest number. All bits of its last byte count.
const NUMBER_BYTES: u32 = 9;

/// Bits of an extension's header: another extension follows, how the body is encoded, that the extension must be
/// understood, and its number.
const MORE: u8 = 0x80;
const ENCODING: u8 = 0x60;
const MANDATORY: u8 = 0x10;
/// Encodings of an extension's body: none, a number, or bytes.
pub(super) const UNIT: u8 = 0x00;
pub(super) const NUMBER: u8 = 0x20;
pub(super) const BYTES: u8 = 0x40;

/// Bytes that are left to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

/// Body of an extension.
pub(super) enum ExtensionBody {
    Unit,
    Number(u64),
    Bytes,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes all bytes that are left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.rest.split_first().ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(*first)
    }

    /// Returns the next byte without taking it.
    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    #[inline]
    pub(super) fn take(&mut self, bytes: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads a number: seven bits in each byte, the lowest first.
    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for place in 0..NUMBER_BYTES - 1 {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << (7 * place);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Ok(number | u64::from(self.byte()?) << (7 * (NUMBER_BYTES - 1)))
    }

    /// Reads a number that must fit into a smaller type.
    #[inline]
    pub(super) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed> {
        let number = self.number()?;
        T::try_from(number).map_err(|_| Malformed::new(format!("the number {number} is too large for its field")))
    }

    /// Reads bytes after their number.
    #[inline]
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.small::<usize>()?;
        self.take(count)
    }

    /// Reads the extensions of a message if its header says that there are any. Passes each to `each`, which returns
    /// whether it knows the extension by its number and encoding; the others are skipped, unless they are mandatory.
    #[inline]
    pub(super) fn extensions(
        &mut self,
        any: bool,
        of: &str,
        mut each: impl FnMut(u8, ExtensionBody) -> bool,
    ) -> Result<(), Malformed> {
        let mut more = any;
        while more {
            let header = self.byte()?;
            more = header & MORE != 0;
            let body = match header & ENCODING {
                UNIT => ExtensionBody::Unit,
                NUMBER => ExtensionBody::Number(self.number()?),
                BYTES => {
                    self.bytes()?;
                    ExtensionBody::Bytes
                }
                _ => return Err(Malformed::new(format!("extension 0x{header:02X} of {of} has no known encoding"))),
            };
            if !each(header & !(MORE | MANDATORY), body) && header & MANDATORY != 0 {
                let number = header & 0x0F;
                return Err(Malformed::new(format!("{of} has extension {number}, which has to be understood")));
            }
        }
        Ok(())
    }
}

#[cold]
fn cut_off() -> Malformed {
    Malformed::new("a message ends before its end")
}

/// Appends a number.
#[inline]
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    for _ in 0..NUMBER_BYTES - 1 {
        if number < 0x80 {
            break;
        }
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bytes after their number.
#[inline]
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
