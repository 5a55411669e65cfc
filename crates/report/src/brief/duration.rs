//! The duration of a study, from the times in its records.

use pubmark_model::record::RunRecord;
use pubmark_model::units::SECOND;

/// Returns the time from the start of the first run to the end of the window of the
/// last one, in words; none where records have no times.
pub(crate) fn elapsed(runs: &[RunRecord]) -> Option<String> {
    let started = |run: &RunRecord| Some((seconds(&run.started)?, run.workload.warmup_ns.checked_add(run.window_ns)?));
    let times: Vec<(u64, u64)> = runs.iter().filter_map(started).collect();
    let first = times.iter().map(|(start, _)| *start).min()?;
    let last = times.iter().map(|(start, ns)| start.saturating_add(ns.div_ceil(SECOND))).max()?;
    Some(words(last.saturating_sub(first))).filter(|_| last > first)
}

/// Returns a number of seconds as `45 s`, `2 min` or `1 h 20 min`.
fn words(seconds: u64) -> String {
    match (seconds, seconds.div_ceil(60)) {
        (..90, _) => format!("{seconds} s"),
        (_, minutes @ ..100) => format!("{minutes} min"),
        (_, minutes) => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// Reads `2026-01-31T23:59:59.9Z` (RFC 3339, UTC) as seconds since 1970-01-01. The
/// fraction is dropped.
fn seconds(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let numbers = |text: &str, by: char| -> Option<[u64; 3]> {
        let all: Option<Vec<u64>> = text.split(by).map(|part| part.parse().ok()).collect();
        all?.try_into().ok()
    };
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time.split('.').next()?, ':')?;
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_time = hour < 24 && minute < 60 && second <= 60;
    (is_date && is_time).then(|| days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Returns the days since 1970-01-01 of the Gregorian calendar. Years begin in March, so
/// that the leap day is the last one (Hinnant, chrono-compatible date algorithms).
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_date_prints_them() {
        // date -u -d TIME +%s
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2024-02-29T12:00:00Z", 1_709_208_000),
            ("2026-11-26T17:20:35.015367882Z", 1_795_713_635),
            ("2000-03-01T00:00:00Z", 951_868_800),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["", "2026-11-26", "2026-11-26T17:20Z", "2026-13-26T17:20:35Z", "99999-01-01T00:00:00Z"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_is_written_in_two_units_at_most() {
        assert_eq!(
            [0, 89, 90, 121, 5_940, 6_000, 86_400].map(words),
            ["0 s", "89 s", "2 min", "3 min", "99 min", "1 h 40 min", "24 h 0 min"]
        );
    }
}
