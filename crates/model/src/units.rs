//! Parses and formats sizes, times and rates with units.

/// Nanoseconds. Instants count from an arbitrary origin of CLOCK_MONOTONIC.
pub type Ns = u64;

/// Returns the sum of numbers from outside, saturating at the highest number.
pub fn total(all: impl IntoIterator<Item = u64>) -> u64 {
    all.into_iter().fold(0, u64::saturating_add)
}

/// One second in nanoseconds.
pub const SECOND: Ns = 1_000_000_000;
/// One millisecond in nanoseconds.
pub const MILLISECOND: Ns = 1_000_000;
/// One microsecond in nanoseconds.
pub const MICROSECOND: Ns = 1_000;

/// Longest time that a file or flag may name: 30 days. It keeps every sum of instants far from
/// overflow.
pub const LONGEST: Ns = 30 * 24 * 3600 * SECOND;

const SIZE_UNITS: [(&str, u64); 8] = [
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
];

const TIME_UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", MICROSECOND),
    ("µs", MICROSECOND),
    ("ms", MILLISECOND),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3_600 * SECOND),
];

/// Reasons why a text is not a size, a time or a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The unit of the size is unknown.
    #[error(
        "`{0}` is not a size: write a number and one of B, KB, MB, GB (powers of 1000) or KiB, MiB, GiB (powers of 1024)"
    )]
    Size(String),
    /// The size is not a whole number of bytes.
    #[error("`{0}` is not a whole number of bytes, such as `1024`, `1KB` or `32KiB`")]
    Bytes(String),
    /// The unit of the time is unknown.
    #[error("`{0}` is not a time: write a number and one of ns, us, ms, s, m, h, such as `250ms`")]
    Time(String),
    /// The time is not a whole number of nanoseconds.
    #[error("`{0}` is not a whole number of nanoseconds, such as `250ms` or `1.5s`")]
    Nanoseconds(String),
    /// The time exceeds [`LONGEST`].
    #[error("`{0}` is longer than the 30 days that a run may take")]
    TooLong(String),
    /// The text is not a rate.
    #[error(
        "`{0}` is not a rate: write messages per second and publisher (0.001 to 1,000,000,000), `max`, \
         `ramp 100 to 5000 in 60s`, `steps 100 500 1000 each 10s` or `sine 100 to 500 each 60s`"
    )]
    Rate(String),
    /// The JSON value is neither a text nor a number.
    #[error("{0} is not a rate")]
    RateValue(serde_json::Value),
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// Multiplies a decimal number by a unit, exactly: `1.5` × 1024 is 1536. Returns `None` if the
/// product is not a whole number.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.len() > 12 {
        return None;
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let product = digits.checked_mul(unit as u128)?;
    if product % scale != 0 {
        return None;
    }
    u64::try_from(product / scale).ok()
}

/// Parses a size in bytes: `1024`, `"32KiB"` (32,768), `"1KB"` (1,000), `"1.5MiB"`.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split_unit(text.trim());
    let unit = if unit.is_empty() { "B" } else { unit };
    let factor = SIZE_UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor)
        .ok_or_else(|| UnitError::Size(text.to_owned()))?;
    scaled(number, factor).ok_or_else(|| UnitError::Bytes(text.to_owned()))
}

/// Parses a time in nanoseconds: `"250ms"`, `"1.5s"`, `"10us"`, `"2m"`, `"0s"`.
pub fn parse_time(text: &str) -> Result<Ns, UnitError> {
    let (number, unit) = split_unit(text.trim());
    if unit.is_empty() && number.trim_matches('0').is_empty() && !number.is_empty() {
        return Ok(0);
    }
    let factor = TIME_UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor)
        .ok_or_else(|| UnitError::Time(text.to_owned()))?;
    let ns = scaled(number, factor).ok_or_else(|| UnitError::Nanoseconds(text.to_owned()))?;
    if ns > LONGEST {
        return Err(UnitError::TooLong(text.to_owned()));
    }
    Ok(ns)
}

/// Formats a time with the largest unit that keeps it a whole or short number.
pub fn format_time(ns: Ns) -> String {
    for (name, factor) in [("s", SECOND), ("ms", MILLISECOND), ("us", MICROSECOND)] {
        if ns >= factor && ns.is_multiple_of(factor) {
            return format!("{}{name}", ns / factor);
        }
    }
    if ns == 0 { "0s".into() } else { format!("{ns}ns") }
}

/// Formats a size as it would be typed: with the largest power of 1000 that divides it; if none
/// does, with the largest power of 1024.
pub fn format_size(bytes: u64) -> String {
    let decimal = [("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];
    let binary = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let mut units = decimal.into_iter().chain(binary);
    match units.find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor)) {
        Some((name, factor)) => format!("{}{name}", bytes / factor),
        None => format!("{bytes}B"),
    }
}

/// Parses a number of at most three decimals: `2.5` is 2,500 thousandths.
pub(crate) fn parse_thousandths(text: &str) -> Option<u64> {
    let (number, rest) = split_unit(text.trim());
    scaled(number, 1_000).filter(|_| rest.is_empty())
}

/// Parses a percentage to millionths of the whole.
pub(crate) fn parse_per_million(text: &str) -> Option<u64> {
    let (number, rest) = split_unit(text.trim());
    scaled(number, 10_000).filter(|_| rest == "%")
}

/// Formats millionths as a percentage.
pub(crate) fn format_per_million(millionths: u64) -> String {
    format!("{}%", millionths as f64 / 1e4)
}

/// Converts thousandths to a number, an integer if it is whole.
pub(crate) fn thousandths(thousandths: u64) -> serde_json::Value {
    match thousandths % 1_000 {
        0 => (thousandths / 1_000).into(),
        _ => (thousandths as f64 / 1e3).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_exact_units() {
        assert_eq!(parse_size("32KiB"), Ok(32_768));
        assert_eq!(parse_size("1KB"), Ok(1_000));
        assert_eq!(parse_size("1.5KiB"), Ok(1_536));
        assert_eq!(parse_size("64"), Ok(64));
        assert!(parse_size("1kb").is_err());
        assert!(parse_size("0.3B").is_err());
        assert!(parse_size("99999999999GB").is_err());
        assert!(parse_size("").is_err());
    }

    #[test]
    fn times_need_a_unit_unless_zero() {
        assert_eq!(parse_time("250ms"), Ok(250_000_000));
        assert_eq!(parse_time("1.5s"), Ok(1_500_000_000));
        assert_eq!(parse_time("0"), Ok(0));
        assert!(parse_time("5").is_err());
        assert!(parse_time("5 parsecs").is_err());
        assert!(parse_time("99999999m").is_err());
    }

    #[test]
    fn what_is_written_reads_back() {
        for ns in [0, 1, 1_000, 1_500_000, 250_000_000, 60_000_000_000, 1_234_567] {
            assert_eq!(parse_time(&format_time(ns)), Ok(ns));
        }
        assert_eq!((format_size(512_000).as_str(), format_size(32_768).as_str()), ("512KB", "32KiB"));
        for bytes in [0, 16, 1_000, 1_024, 32_768, 1_048_576, 1_000_000, 1_234_567] {
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }
    }
}
