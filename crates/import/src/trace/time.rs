//! Times of a trace.

use jiff::Timestamp;

const SECOND: u64 = 1_000_000_000;

/// Unit of the times of a file. The first time other than 0 decides it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TimeUnit {
    /// No time has decided it yet.
    #[default]
    Open,
    /// Seconds with a decimal point.
    Seconds,
    /// Nanoseconds, as whole numbers.
    Nanoseconds,
    /// RFC 3339.
    Dates,
}

/// Returns the number that digits stand for, or the largest that fits.
fn number(digits: &str) -> u64 {
    digits.parse().unwrap_or(u64::MAX)
}

/// Parses a time, and decides the unit of the file if it is open. Returns ns; a time that is too far in the future has
/// the largest number.
pub(super) fn parse(text: &str, unit: &mut TimeUnit) -> Result<u64, String> {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(number) = text.strip_prefix('-')
        && number.starts_with(|first: char| first.is_ascii_digit() || first == '.')
    {
        return Err(format!("the time `{text}` is negative. Count from the first message, or from 1970"));
    }
    let (own, ns) = if let Some((whole, fraction)) = text.split_once('.').filter(|_| !text.contains(':')) {
        let is_number = is_digits(whole) && is_digits(fraction);
        let nine: String = fraction.chars().chain("000000000".chars()).take(9).collect();
        let ns = || number(whole).saturating_mul(SECOND).saturating_add(number(&nine));
        (TimeUnit::Seconds, is_number.then(ns))
    } else if is_digits(text) {
        match *unit {
            TimeUnit::Seconds => (TimeUnit::Seconds, Some(number(text).saturating_mul(SECOND))),
            _ if number(text) == 0 => return Ok(0),
            _ => (TimeUnit::Nanoseconds, Some(number(text))),
        }
    } else {
        let date = text.parse::<Timestamp>().ok();
        (TimeUnit::Dates, date.and_then(|date| u64::try_from(date.as_nanosecond()).ok()))
    };
    let Some(ns) = ns else {
        return Err(format!(
            "`{text}` is not a time. Write seconds with a decimal point (12.5), whole nanoseconds or RFC 3339 \
             (2026-01-31T12:00:00Z)"
        ));
    };
    if *unit == TimeUnit::Open {
        *unit = own;
    }
    if *unit != own {
        return Err(format!(
            "the time `{text}` has another form than those before it. Write all times in one form: seconds with a \
             decimal point, whole nanoseconds or RFC 3339"
        ));
    }
    Ok(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(texts: &[&str]) -> Result<Vec<u64>, String> {
        let mut unit = TimeUnit::Open;
        texts.iter().map(|text| parse(text, &mut unit)).collect()
    }

    #[test]
    fn the_first_time_decides_the_unit() {
        assert_eq!(times(&["0.000", "1", "1.5", "2.0000000019"]), Ok(vec![0, SECOND, 1_500_000_000, 2_000_000_001]));
        assert_eq!(times(&["0", "1500", "1700000000000000001"]), Ok(vec![0, 1_500, 1_700_000_000_000_000_001]));
        assert_eq!(times(&["1970-01-01T00:00:01Z", "1970-01-01T01:00:01.5+01:00"]), Ok(vec![SECOND, 1_500_000_000]));
    }

    #[test]
    fn a_time_that_is_too_large_is_the_largest() {
        assert_eq!(times(&["1.0", "99999999999999999999.5"]), Ok(vec![SECOND, u64::MAX]));
        assert_eq!(times(&["99999999999999999999"]), Ok(vec![u64::MAX]));
    }

    #[test]
    fn other_texts_are_refused() {
        for (texts, wanted) in [
            (&["-1.5"][..], "is negative"),
            (&["-1"], "is negative"),
            (&["NaN"], "is not a time"),
            (&["inf"], "is not a time"),
            (&["1e9"], "is not a time"),
            (&["1.5s"], "is not a time"),
            (&[""], "is not a time"),
            (&["."], "is not a time"),
            (&["1960-01-01T00:00:00Z"], "is not a time"),
            (&["15", "1.5"], "another form"),
            (&["1.5", "2026-01-01T00:00:00Z"], "another form"),
        ] {
            let error = times(texts).unwrap_err();
            assert!(error.contains(wanted), "{texts:?}: {error}");
        }
    }
}
