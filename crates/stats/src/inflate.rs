//! A decompressor for the zlib format (RFC 1950) with DEFLATE (RFC 1951),
//! whose output is bounded before a byte of it is trusted.

/// Why compressed data could not be expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InflateError {
    /// The data ends before the stream does, or goes on after it.
    #[error("compressed data has the wrong length")]
    Length,
    /// The output would exceed the limit.
    #[error("expands beyond the limit")]
    TooLarge,
    /// The data breaks a rule of the format.
    #[error("{0}")]
    Format(&'static str),
    /// The Adler-32 checksum of the output differs from the one given.
    #[error("checksum differs")]
    Checksum,
}

const CODE_BITS_MAX: usize = 15;
const END_OF_BLOCK: u16 = 256;

/// Base and extra bits of the length symbols 257..=285.
const LENGTHS: [(u16, u8); 29] = [
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 0),
    (11, 1),
    (13, 1),
    (15, 1),
    (17, 1),
    (19, 2),
    (23, 2),
    (27, 2),
    (31, 2),
    (35, 3),
    (43, 3),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 4),
    (115, 4),
    (131, 5),
    (163, 5),
    (195, 5),
    (227, 5),
    (258, 0),
];

/// The order in which the lengths of the code-length code are written.
const CODE_LENGTH_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Expands a zlib stream to at most `limit` bytes.
///
/// # Errors
/// See [`InflateError`]. Bytes after the stream are an error too.
pub(crate) fn zlib(data: &[u8], limit: usize) -> Result<Vec<u8>, InflateError> {
    let (header, data) = data.split_first_chunk::<2>().ok_or(InflateError::Length)?;
    let (body, checksum) = data.split_last_chunk::<4>().ok_or(InflateError::Length)?;
    if header[0] & 0x0f != 8 || !u16::from_be_bytes(*header).is_multiple_of(31) {
        return Err(InflateError::Format("no zlib header"));
    }
    if header[1] & 0x20 != 0 {
        return Err(InflateError::Format("preset dictionary"));
    }
    let mut inflater = Inflater { bits: Bits { data: body, held: 0, held_count: 0 }, out: Vec::new(), limit };
    while !inflater.block()? {}
    if !inflater.bits.data.is_empty() {
        return Err(InflateError::Length);
    }
    if adler32(&inflater.out) != u32::from_be_bytes(*checksum) {
        return Err(InflateError::Checksum);
    }
    Ok(inflater.out)
}

fn adler32(data: &[u8]) -> u32 {
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in data {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    b << 16 | a
}

/// Bits in the order of the stream: from the least significant of each byte.
struct Bits<'a> {
    data: &'a [u8],
    held: u32,
    held_count: u8,
}

impl Bits<'_> {
    /// The next `count` bits, at most 16.
    fn take(&mut self, count: u8) -> Result<u16, InflateError> {
        while self.held_count < count {
            let (byte, rest) = self.data.split_first().ok_or(InflateError::Length)?;
            self.held |= u32::from(*byte) << self.held_count;
            self.held_count += 8;
            self.data = rest;
        }
        let taken = self.held & ((1 << count) - 1);
        self.held >>= count;
        self.held_count -= count;
        Ok(taken as u16)
    }

    /// Drops the rest of the current byte. Fewer than 8 bits are ever held.
    fn align(&mut self) {
        self.held = 0;
        self.held_count = 0;
    }
}

/// A canonical Huffman code: how many codes each length has, and the symbols
/// in the order of their codes.
struct Code {
    counts: [u16; CODE_BITS_MAX + 1],
    symbols: Vec<u16>,
}

impl Code {
    /// Makes the code from the length of each symbol's code (0: unused).
    /// Incomplete codes are let through, as a lone distance code is one; what
    /// they leave out is an error when met.
    fn new(lengths: &[u8]) -> Result<Self, InflateError> {
        let mut counts = [0_u16; CODE_BITS_MAX + 1];
        for length in lengths.iter().filter(|length| **length > 0) {
            counts[usize::from(*length)] += 1;
        }
        let mut free = 1_i32;
        for count in &counts[1..] {
            free = 2 * free - i32::from(*count);
            if free < 0 {
                return Err(InflateError::Format("over-subscribed code"));
            }
        }
        let mut next = [0_usize; CODE_BITS_MAX + 1];
        for length in 1..CODE_BITS_MAX {
            next[length + 1] = next[length] + usize::from(counts[length]);
        }
        let mut symbols = vec![0; lengths.len()];
        for (symbol, length) in lengths.iter().enumerate().filter(|(_, l)| **l > 0) {
            let position = &mut next[usize::from(*length)];
            symbols[*position] = symbol as u16;
            *position += 1;
        }
        Ok(Self { counts, symbols })
    }

    fn read(&self, bits: &mut Bits) -> Result<u16, InflateError> {
        // At each length: the first code, its position in `symbols`, and the
        // bits read so far.
        let (mut first, mut position, mut code) = (0_usize, 0_usize, 0_usize);
        for count in &self.counts[1..] {
            code |= usize::from(bits.take(1)?);
            let count = usize::from(*count);
            if code < first + count {
                return Ok(self.symbols[position + code - first]);
            }
            position += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        Err(InflateError::Format("unused code"))
    }
}

struct Inflater<'a> {
    bits: Bits<'a>,
    out: Vec<u8>,
    limit: usize,
}

impl Inflater<'_> {
    /// Expands one block and says whether it was the last.
    fn block(&mut self) -> Result<bool, InflateError> {
        let last = self.bits.take(1)? == 1;
        match self.bits.take(2)? {
            0 => self.stored()?,
            1 => {
                let mut lengths = [8_u8; 288];
                lengths[144..256].fill(9);
                lengths[256..280].fill(7);
                self.compressed(&Code::new(&lengths)?, &Code::new(&[5; 30])?)?;
            }
            2 => {
                let (literals, distances) = self.dynamic_codes()?;
                self.compressed(&literals, &distances)?;
            }
            _ => return Err(InflateError::Format("reserved block type")),
        }
        Ok(last)
    }

    fn room_for(&self, len: usize) -> Result<(), InflateError> {
        if len > self.limit - self.out.len() {
            return Err(InflateError::TooLarge);
        }
        Ok(())
    }

    fn stored(&mut self) -> Result<(), InflateError> {
        self.bits.align();
        let len = self.bits.take(16)?;
        if self.bits.take(16)? != !len {
            return Err(InflateError::Format("stored length is inconsistent"));
        }
        let len = usize::from(len);
        self.room_for(len)?;
        let (bytes, rest) = self.bits.data.split_at_checked(len).ok_or(InflateError::Length)?;
        self.out.extend_from_slice(bytes);
        self.bits.data = rest;
        Ok(())
    }

    fn dynamic_codes(&mut self) -> Result<(Code, Code), InflateError> {
        let literal_count = usize::from(self.bits.take(5)?) + 257;
        let distance_count = usize::from(self.bits.take(5)?) + 1;
        let length_count = usize::from(self.bits.take(4)?) + 4;
        if literal_count > 286 || distance_count > 30 {
            return Err(InflateError::Format("too many symbols"));
        }
        let mut lengths = [0_u8; 19];
        for position in &CODE_LENGTH_ORDER[..length_count] {
            lengths[*position] = self.bits.take(3)? as u8;
        }
        let length_code = Code::new(&lengths)?;
        let total = literal_count + distance_count;
        let mut lengths: Vec<u8> = Vec::with_capacity(total);
        while lengths.len() < total {
            let symbol = length_code.read(&mut self.bits)?;
            let (length, repeat) = match symbol {
                0..=15 => (symbol as u8, 1),
                16 => {
                    let previous = lengths.last().copied();
                    let previous = previous.ok_or(InflateError::Format("nothing to repeat"))?;
                    (previous, 3 + self.bits.take(2)?)
                }
                17 => (0, 3 + self.bits.take(3)?),
                _ => (0, 11 + self.bits.take(7)?),
            };
            let end = lengths.len() + usize::from(repeat);
            if end > total {
                return Err(InflateError::Format("too many code lengths"));
            }
            lengths.resize(end, length);
        }
        let (literals, distances) = lengths.split_at(literal_count);
        Ok((Code::new(literals)?, Code::new(distances)?))
    }

    fn compressed(&mut self, literals: &Code, distances: &Code) -> Result<(), InflateError> {
        loop {
            let symbol = literals.read(&mut self.bits)?;
            if symbol < END_OF_BLOCK {
                self.room_for(1)?;
                self.out.push(symbol as u8);
                continue;
            }
            if symbol == END_OF_BLOCK {
                return Ok(());
            }
            let (base, extra) =
                *LENGTHS.get(usize::from(symbol) - 257).ok_or(InflateError::Format("reserved length"))?;
            let len = usize::from(base + self.bits.take(extra)?);
            let distance = self.distance(distances)?;
            self.room_for(len)?;
            let start =
                self.out.len().checked_sub(distance).ok_or(InflateError::Format("distance before the start"))?;
            // Byte by byte, because a copy may overlap what it appends.
            for position in start..start + len {
                self.out.push(self.out[position]);
            }
        }
    }

    /// Distances double every two symbols from the fifth on.
    fn distance(&mut self, distances: &Code) -> Result<usize, InflateError> {
        let symbol = distances.read(&mut self.bits)?;
        if symbol < 4 {
            return Ok(usize::from(symbol) + 1);
        }
        let extra = (symbol / 2 - 1) as u8;
        let base = usize::from(2 + symbol % 2) << extra;
        Ok(base + usize::from(self.bits.take(extra)?) + 1)
    }
}
