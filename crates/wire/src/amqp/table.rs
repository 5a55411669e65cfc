//! Field tables, and the fields of methods.

use crate::Malformed;

/// Names and values as received. They are parsed only by a look-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldTable<'a>(pub &'a [u8]);

/// A value in a table, as far as it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// A text.
    Text(&'a [u8]),
    /// `true` or `false`.
    Flag(bool),
    /// A table within the table.
    Table(FieldTable<'a>),
    /// Any other value.
    Other,
}

impl<'a> FieldTable<'a> {
    /// Returns the value of this name; `None` if there is none, or if the table is damaged before
    /// it.
    pub fn find(&self, name: &str) -> Option<FieldValue<'a>> {
        let mut fields = Fields(self.0);
        while !fields.0.is_empty() {
            let key: Short<'_> = Field::take(&mut fields).ok()?;
            let value = value(&mut fields).ok()?;
            if key.0 == name.as_bytes() {
                return Some(value);
            }
        }
        None
    }

    /// Returns the text of this name.
    pub fn text(&self, name: &str) -> Option<&'a [u8]> {
        match self.find(name) {
            Some(FieldValue::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// Reads one value. Arrays and tables give their length, so they are skipped, not parsed.
fn value<'a>(fields: &mut Fields<'a>) -> Result<FieldValue<'a>, Malformed> {
    let fixed = match u8::take(fields)? {
        b'S' => return Field::take(fields).map(FieldValue::Text),
        b'F' => return Field::take(fields).map(FieldValue::Table),
        b't' => return Field::take(fields).map(FieldValue::Flag),
        b'A' | b'x' => return <&[u8]>::take(fields).map(|_| FieldValue::Other),
        b'V' => 0,
        b'b' | b'B' => 1,
        b's' | b'u' | b'U' => 2,
        b'I' | b'i' | b'f' => 4,
        b'D' => 5,
        b'l' | b'L' | b'd' | b'T' => 8,
        kind => return Err(Malformed::new(format!("no value in a table is of kind '{}'", kind.escape_ascii()))),
    };
    fields.bytes(fixed).map(|_| FieldValue::Other)
}

/// Appends a name and a text to a table's bytes.
pub fn put_text(table: &mut Vec<u8>, name: &str, text: &str) {
    Short(name.as_bytes()).put(table);
    table.push(b'S');
    text.as_bytes().put(table);
}

/// Appends a name and a flag to a table's bytes.
pub fn put_flag(table: &mut Vec<u8>, name: &str, flag: bool) {
    Short(name.as_bytes()).put(table);
    table.push(b't');
    flag.put(table);
}

/// Appends a name and a number to a table's bytes.
pub fn put_integer(table: &mut Vec<u8>, name: &str, number: i64) {
    Short(name.as_bytes()).put(table);
    table.push(b'l');
    table.extend_from_slice(&number.to_be_bytes());
}

/// Appends a name and a table to a table's bytes.
pub fn put_table(table: &mut Vec<u8>, name: &str, value: FieldTable<'_>) {
    Short(name.as_bytes()).put(table);
    table.push(b'F');
    value.put(table);
}

/// Appends the length of the rest in four bytes, and the rest.
pub(super) fn put_sized(out: &mut Vec<u8>, rest: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    rest(out);
    let size = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&size.to_be_bytes());
}

/// The remaining arguments of a method.
pub(super) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(short)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(short)?;
        self.0 = rest;
        Ok(*bytes)
    }
}

fn short() -> Malformed {
    Malformed::new("a method or a table ends within a field")
}

/// A field of a method.
pub(super) trait Field<'a>: Sized {
    fn take(fields: &mut Fields<'a>) -> Result<Self, Malformed>;
    fn put(&self, out: &mut Vec<u8>);
}

/// A text of at most 255 bytes; longer ones are cut when written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Short<'a>(pub &'a [u8]);

impl<'a> From<&'a str> for Short<'a> {
    fn from(text: &'a str) -> Self {
        Short(text.as_bytes())
    }
}

impl<'a> Field<'a> for Short<'a> {
    fn take(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let count = u8::take(fields)?;
        fields.bytes(count.into()).map(Short)
    }
    fn put(&self, out: &mut Vec<u8>) {
        let text = &self.0[..self.0.len().min(255)];
        out.push(text.len() as u8);
        out.extend_from_slice(text);
    }
}

/// A text of any length.
impl<'a> Field<'a> for &'a [u8] {
    fn take(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        let count = u32::take(fields)?;
        fields.bytes(count as usize)
    }
    fn put(&self, out: &mut Vec<u8>) {
        put_sized(out, |out| out.extend_from_slice(self));
    }
}

impl<'a> Field<'a> for FieldTable<'a> {
    fn take(fields: &mut Fields<'a>) -> Result<Self, Malformed> {
        Field::take(fields).map(FieldTable)
    }
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
}

/// A bit in an octet of its own.
impl Field<'_> for bool {
    fn take(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        u8::take(fields).map(|octet| octet & 1 == 1)
    }
    fn put(&self, out: &mut Vec<u8>) {
        out.push((*self).into());
    }
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Field<'_> for $type {
            fn take(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
                fields.array().map(<$type>::from_be_bytes)
            }
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }
    )*};
}
numbers!(u8 u16 u32 u64);
