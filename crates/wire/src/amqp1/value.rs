//! Values of AMQP's type system (part 1), as far as frames and sections need them.

use crate::Malformed;

const NULL: u8 = 0x40;
const TRUE: u8 = 0x41;
const FALSE: u8 = 0x42;
/// Descriptor of a value that is described by a name instead of a number.
const NAMED: u64 = u64::MAX;

/// A value: its descriptor if it has one, its format code, and its bytes without their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value<'a> {
    pub descriptor: Option<u64>,
    code: u8,
    bytes: &'a [u8],
}

/// Takes values from the front of bytes.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or_else(|| Malformed::new("a value is longer than its frame"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, bytes: usize) -> Result<usize, Malformed> {
        Ok(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    fn of(&mut self, code: u8) -> Result<&'a [u8], Malformed> {
        let count = match code >> 4 {
            0x4 => 0,
            0x5 => 1,
            0x6 => 2,
            0x7 => 4,
            0x8 => 8,
            0x9 => 16,
            0xa | 0xc | 0xe => self.number(1)?,
            0xb | 0xd | 0xf => self.number(4)?,
            _ => return Err(Malformed::new(format!("no type has the code 0x{code:02x}"))),
        };
        self.take(count)
    }

    /// Takes a value with its descriptor; if it has several, with the first.
    pub fn value(&mut self) -> Result<Value<'a>, Malformed> {
        let mut descriptor = None;
        loop {
            let code = self.number(1)? as u8;
            if code != 0 {
                return Ok(Value { descriptor, code, bytes: self.of(code)? });
            }
            let code = self.number(1)? as u8;
            let own = Value { descriptor: None, code, bytes: self.of(code)? };
            descriptor = descriptor.or_else(|| Some(own.number().unwrap_or(NAMED)));
        }
    }
}

impl<'a> Value<'a> {
    fn unfit(&self, wanted: &str) -> Malformed {
        Malformed::new(format!("a value of type 0x{:02x} where {wanted} is wanted", self.code))
    }

    fn number(&self) -> Result<u64, Malformed> {
        match self.code {
            0x43 | 0x44 => Ok(0),
            0x50 | 0x52 | 0x53 | 0x60 | 0x70 | 0x80 => {
                Ok(self.bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
            }
            _ => Err(self.unfit("a number")),
        }
    }

    /// Returns the bytes of a binary value.
    pub fn binary(&self) -> Option<&'a [u8]> {
        [0xa0, 0xb0].contains(&self.code).then_some(self.bytes)
    }

    /// Returns the values of a list.
    pub fn list(&self) -> Result<Fields<'a>, Malformed> {
        let mut reader = Reader(self.bytes);
        let left = match self.code {
            0x45 => 0,
            0xc0 => reader.number(1)?,
            0xd0 => reader.number(4)?,
            _ => return Err(self.unfit("a list")),
        };
        Ok(Fields { reader, left })
    }
}

/// The values of a list, in order.
pub(super) struct Fields<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Fields<'a> {
    /// Takes the next value; one that is left out at the end is null.
    pub fn next<F: Field<'a>>(&mut self) -> Result<F, Malformed> {
        if self.left == 0 {
            return F::of(Value { descriptor: None, code: NULL, bytes: &[] });
        }
        self.left -= 1;
        F::of(self.reader.value()?)
    }
}

/// A value as Rust has it.
pub(super) trait Field<'a>: Sized {
    fn of(value: Value<'a>) -> Result<Self, Malformed>;
    fn put(&self, out: &mut Vec<u8>);
}

impl<'a, F: Field<'a>> Field<'a> for Option<F> {
    fn of(value: Value<'a>) -> Result<Self, Malformed> {
        if value.code == NULL { Ok(None) } else { F::of(value).map(Some) }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Some(field) => field.put(out),
            None => out.push(NULL),
        }
    }
}

impl Field<'_> for bool {
    fn of(value: Value<'_>) -> Result<bool, Malformed> {
        match (value.code, value.bytes) {
            (TRUE, _) | (0x56, [1]) => Ok(true),
            (FALSE, _) | (0x56, [0]) => Ok(false),
            _ => Err(value.unfit("true or false")),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.push(if *self { TRUE } else { FALSE });
    }
}

/// Numbers have a form for each width; two of them have short forms.
macro_rules! numbers {
    ($($type:ty: $code:literal, $put:expr;)*) => {$(
        impl Field<'_> for $type {
            fn of(value: Value<'_>) -> Result<$type, Malformed> {
                value.number()?.try_into().map_err(|_| value.unfit("a smaller number"))
            }

            fn put(&self, out: &mut Vec<u8>) {
                let short: Option<(u8, u8)> = $put;
                match (*self as u8, short) {
                    (0, Some((zero, _))) if *self == 0 => out.push(zero),
                    (byte, Some((_, short))) if <$type>::from(byte) == *self => out.extend_from_slice(&[short, byte]),
                    _ => {
                        out.push($code);
                        out.extend_from_slice(&self.to_be_bytes());
                    }
                }
            }
        }
    )*};
}

numbers! {
    u8: 0x50, None;
    u16: 0x60, None;
    u32: 0x70, Some((0x43, 0x52));
    u64: 0x80, Some((0x44, 0x53));
}

/// Texts and bytes differ in their code only.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident: $code:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<'a>(pub &'a [u8]);

        impl<'a> From<&'a str> for $name<'a> {
            fn from(text: &'a str) -> Self {
                $name(text.as_bytes())
            }
        }

        impl<'a> Field<'a> for $name<'a> {
            fn of(value: Value<'a>) -> Result<Self, Malformed> {
                // The long form has another first digit.
                match [$code, $code + 0x10].contains(&value.code) {
                    true => Ok($name(value.bytes)),
                    false => Err(value.unfit(stringify!($name))),
                }
            }

            fn put(&self, out: &mut Vec<u8>) {
                put_sized(out, $code, self.0.len());
                out.extend_from_slice(self.0);
            }
        }
    )*};
}

texts! {
    /// Bytes.
    Binary: 0xa0;
    /// A text.
    Text: 0xa1;
    /// A name that the standard or a server defines.
    Symbol: 0xa3;
}

/// One name or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbols<'a>(Value<'a>);

impl<'a> Symbols<'a> {
    /// One name.
    pub fn one(name: &'a str) -> Symbols<'a> {
        Symbols(Value { descriptor: None, code: 0xa3, bytes: name.as_bytes() })
    }

    /// Returns the names.
    pub fn names(self) -> impl Iterator<Item = &'a [u8]> {
        let mut reader = Reader(self.0.bytes);
        let length = match self.0.code {
            0xe0 => 1,
            0xf0 => 4,
            _ => 0,
        };
        let (left, code) = match length {
            0 => (1, None),
            _ => (reader.number(length).unwrap_or(0), reader.number(1).ok()),
        };
        (0..left).map_while(move |_| match code {
            None => Some(reader.0),
            Some(code @ (0xa3 | 0xb3)) => reader.of(code as u8).ok(),
            Some(_) => None,
        })
    }
}

impl<'a> Field<'a> for Symbols<'a> {
    fn of(value: Value<'a>) -> Result<Self, Malformed> {
        match value.code {
            0xa3 | 0xb3 => Ok(Symbols(Value { descriptor: None, code: 0xa3, ..value })),
            0xe0 | 0xf0 => Ok(Symbols(Value { descriptor: None, ..value })),
            _ => Err(value.unfit("a name or several")),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        let (code, bytes) = (self.0.code, self.0.bytes);
        match code {
            // The number of names within has the width of the length.
            0xf0 => {
                out.push(code);
                out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            }
            _ => put_sized(out, code, bytes.len()),
        }
        out.extend_from_slice(bytes);
    }
}

/// Appends the front of a value with this many bytes: the code of its short or its long form, and its length.
pub(super) fn put_sized(out: &mut Vec<u8>, code: u8, bytes: usize) {
    match u8::try_from(bytes) {
        Ok(bytes) => out.extend_from_slice(&[code, bytes]),
        Err(_) => {
            out.push(code + 0x10);
            out.extend_from_slice(&(bytes as u32).to_be_bytes());
        }
    }
}

/// Appends a list with this descriptor and number of fields.
pub(super) fn put_described(out: &mut Vec<u8>, descriptor: u8, count: u32, fields: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[0, 0x53, descriptor, 0xd0, 0, 0, 0, 0]);
    let begin = out.len();
    out.extend_from_slice(&count.to_be_bytes());
    fields(out);
    let bytes = (out.len() - begin) as u32;
    out[begin - 4..begin].copy_from_slice(&bytes.to_be_bytes());
}
