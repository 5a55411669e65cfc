//! Strings and numbers made fit for a screen.

use pubmark_stats::Estimate;

/// Placeholder for a missing figure.
pub(crate) const NONE: &str = "–";

/// The spread of a figure that is the same in all runs.
pub(crate) const NO_SPREAD: &str = "±0%";

const TIMES: &[(f64, &str)] = &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];
const COUNTS: &[(f64, &str)] = &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")];
const BYTES: &[(f64, &str)] = &[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")];

/// A foreign string made harmless: at most `limit` characters, white space and
/// control characters replaced, and those that turn or hide text as well. Of a
/// longer string no more than that is looked at.
pub fn clean(text: &str, limit: usize) -> String {
    let mut out = String::new();
    for (index, c) in text.chars().enumerate() {
        if index >= limit {
            out.pop();
            out.push('…');
            break;
        }
        out.push(match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
            c if c.is_control() || is_invisible(c) => '\u{fffd}',
            c => c,
        });
    }
    out
}

/// Cleans a text whose end matters, such as an error with the last lines of a log: of a longer text
/// the beginning and the end remain.
pub fn clean_ends(text: &str, limit: usize) -> String {
    let (head, tail) = (limit / 3, limit - limit / 3 - 3);
    let from = text.char_indices().rev().nth(tail.saturating_sub(1)).map(|(at, _)| at);
    match from.filter(|_| text.chars().nth(limit).is_some()) {
        None => clean(text, limit),
        Some(from) => {
            let begins: String = text.chars().take(head).collect();
            format!("{} … {}", clean(begins.trim_end(), head), clean(text[from..].trim_start(), tail))
        }
    }
}

/// Characters that change the direction of text or have no width.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Three significant digits, no exponent down to a millionth.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let short = format!("{value:.2e}");
    let rounded: f64 = short.parse().unwrap_or(value);
    let exponent = short.split_once('e').and_then(|(_, e)| e.parse::<i32>().ok());
    match exponent {
        Some(exponent) if exponent < -6 => short,
        Some(exponent) => format!("{rounded:.*}", usize::try_from(2 - exponent).unwrap_or(0)),
        None => short,
    }
}

/// Returns a bound from below with two significant digits, never above the value.
pub(crate) fn factor_down(value: f64) -> String {
    two_digits(value, f64::floor)
}

/// Returns a bound from above with two significant digits, never below the value.
pub(crate) fn factor_up(value: f64) -> String {
    two_digits(value, f64::ceil)
}

fn two_digits(value: f64, round: fn(f64) -> f64) -> String {
    let digits = 1 - value.log10().floor().clamp(-6.0, 15.0) as i32;
    let unit = 10f64.powi(-digits);
    // 1.2 is not a little above 1.2.
    let rounded = round(value / unit - if round(0.5) > 0.0 { 1e-9 } else { -1e-9 }) * unit;
    format!("{rounded:.*}", usize::try_from(digits).unwrap_or(0))
}

/// With the largest unit that leaves at least 1, after rounding.
fn scaled(value: f64, units: &[(f64, &str)], space: &str) -> String {
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let fits = |(factor, _): &&(f64, &str)| rounded.abs() >= *factor;
    let (factor, unit) = units.iter().rfind(fits).unwrap_or(&units[0]);
    let text = if *factor == 1.0 && value.fract() == 0.0 { format!("{value}") } else { number(value / factor) };
    match *unit {
        "" => text,
        unit => format!("{text}{space}{unit}"),
    }
}

/// Nanoseconds as `12.3 µs`.
pub fn time(ns: f64) -> String {
    scaled(ns, TIMES, " ")
}

/// Returns a count with its noun: `1 cell`, `2 cells`.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A count to the last one; the middle between two of them has a half.
pub(crate) fn whole(value: f64) -> String {
    format!("{value}")
}

/// A count or rate as `12.3k`.
pub fn count(value: f64) -> String {
    scaled(value, COUNTS, "")
}

/// Bytes as `12.3 MB`, powers of 1,000.
pub fn bytes(value: f64) -> String {
    scaled(value, BYTES, " ")
}

/// A share as per cent, never rounded up: what is not all is below 100 %.
pub fn percent(share: f64) -> String {
    let decimals = match share {
        share if share >= 1.0 => 0,
        share if share >= 0.999 => 3,
        share if share >= 0.99 => 2,
        _ => 1,
    };
    let scale = 10f64.powi(decimals);
    // The product of a decimal fraction may lie just below the whole number.
    let floored = (share * 100.0 * scale + 1e-9).floor() / scale;
    if share < 1.0 && floored >= 100.0 {
        return "<100 %".into();
    }
    format!("{floored:.*} %", decimals as usize)
}

/// The wider side of the interval in per cent of the value, as `±3%`; empty
/// where there is no interval.
pub(crate) fn spread(estimate: Estimate) -> String {
    let Some(interval) = estimate.interval else {
        return String::new();
    };
    let side = (estimate.value - interval.lo).max(interval.hi - estimate.value);
    if side == 0.0 {
        return NO_SPREAD.into();
    }
    let share = side / estimate.value.abs() * 100.0;
    match share {
        share if !share.is_finite() => String::new(),
        share if share < 0.05 => "±0.1%".into(),
        share if share < 9.95 => format!("±{share:.1}%"),
        share if share < 1e4 => format!("±{share:.0}%"),
        _ => "±>100×".into(),
    }
}

/// Breaks text at spaces into lines of at most `width` characters; a longer
/// word is cut.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut rest: Vec<char> = word.chars().collect();
        while !rest.is_empty() {
            let gap = usize::from(used > 0);
            if used + gap + rest.len() <= width {
                let line = lines.last_mut().map(|line| {
                    line.extend(std::iter::repeat_n(' ', gap));
                    line.extend(rest.drain(..));
                    line.chars().count()
                });
                used = line.unwrap_or(0);
            } else if used > 0 {
                lines.push(String::new());
                used = 0;
            } else if let Some(line) = lines.last_mut() {
                line.extend(rest.drain(..width.min(rest.len())));
                used = width;
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use pubmark_stats::Interval;

    #[test]
    fn numbers_have_three_significant_digits() {
        let shown: Vec<String> =
            [0.0, 0.012_34, 0.5, 1.0, 9.994, 9.996, 99.96, 123.4, 1_234.5, 3e-9].map(number).into();
        let expected = ["0", "0.0123", "0.500", "1.00", "9.99", "10.0", "100", "123", "1230", "3.00e-9"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn units_change_after_rounding() {
        assert_eq!(time(7.0), "7 ns");
        assert_eq!(time(999.0), "999 ns");
        assert_eq!(time(999.6), "1.00 µs");
        assert_eq!(time(12_345.0), "12.3 µs");
        assert_eq!(time(999_600.0), "1.00 ms");
        assert_eq!(time(90e9), "90.0 s");
        assert_eq!(count(850.0), "850");
        assert_eq!(count(999_999.0), "1.00M");
        assert_eq!(count(12_340.0), "12.3k");
        assert_eq!(bytes(2_500_000.0), "2.50 MB");
    }

    #[test]
    fn what_is_not_all_is_below_100_per_cent() {
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.999_999_9), "99.999 %");
        assert_eq!(percent(0.999_5), "99.950 %");
        assert_eq!(percent(0.995), "99.50 %");
        assert_eq!(percent(0.989_99), "98.9 %");
        assert_eq!(percent(0.07), "7.0 %");
        assert_eq!(percent(0.0), "0.0 %");
    }

    #[test]
    fn the_spread_is_the_wider_side() {
        let of = |value, lo, hi| spread(Estimate { value, interval: Some(Interval { lo, hi }) });
        assert_eq!(of(100.0, 98.0, 105.0), "±5.0%");
        assert_eq!(of(100.0, 80.0, 105.0), "±20%");
        assert_eq!(of(100.0, 99.99, 100.0), "±0.1%");
        assert_eq!(of(100.0, 100.0, 100.0), "±0%");
        assert_eq!(of(1.0, 0.0, 95.0), "±9400%");
        assert_eq!(of(1.0, 0.0, 500.0), "±>100×");
        assert_eq!(of(0.0, 0.0, 3.0), "");
        let single = Estimate { value: 1.0, interval: None };
        assert_eq!(spread(single), "");
    }

    #[test]
    fn words_wrap_and_long_ones_are_cut() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn hostile_text_becomes_harmless() {
        assert_eq!(clean("a\u{1b}[31m\nb\u{202e}c\0", 99), "a\u{fffd}[31m b\u{fffd}c\u{fffd}");
        assert_eq!(clean("abcdef", 4), "abc…");
        assert_eq!(clean("abcd", 4), "abcd");
        assert_eq!(clean(&"x".repeat(1 << 20), 10).chars().count(), 10);
        assert_eq!(clean_ends("abcdefghijklmno", 15), "abcdefghijklmno");
        assert_eq!(clean_ends("abcdefghijklmnop", 15), "abcde … jklmnop");
        assert_eq!(clean_ends("äbc failed: ü\nusage\nno such option ö\n", 24), "äbc fail … uch option ö ");
    }

    proptest! {
        #[test]
        fn clean_text_has_no_control_characters(text in any::<String>(), limit in 1usize..40) {
            let clean = clean(&text, limit);
            prop_assert!(clean.chars().count() <= limit);
            prop_assert!(!clean.chars().any(char::is_control));
        }

        #[test]
        fn no_wrapped_line_is_too_long(text in "[a-z ]{0,200}", width in 1usize..40) {
            let lines = wrap(&text, width);
            prop_assert!(lines.iter().all(|line| line.chars().count() <= width));
            let squeezed = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(squeezed(&lines.concat()), squeezed(&text));
        }
    }
}
