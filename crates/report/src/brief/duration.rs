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

/// Reads a time of a record (RFC 3339) as seconds since 1970-01-01, without the fraction.
fn seconds(text: &str) -> Option<u64> {
    text.parse::<jiff::Timestamp>().ok()?.as_second().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_date_prints_them() {
        // date -u -d TIME +%s
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2026-11-26T17:20:35.015367882Z", Some(1_795_713_635)),
            ("1969-12-31T23:59:59Z", None),
            ("2026-11-26", None),
            ("", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
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
