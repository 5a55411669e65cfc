//! Bars beside the figure that a table is about, so that rows can be compared
//! at a glance.

use crate::text;

/// A bar is this wide at least, columns …
pub(crate) const WIDTH_MIN: usize = 12;
/// … and at most.
pub(crate) const WIDTH_MAX: usize = 24;

/// From so much more, in proportion, a linear scale would show the greatest
/// bar and nothing of the others.
const SPAN_LINEAR_MAX: f64 = 50.0;

/// An eighth of a column to a whole one.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// The scale that all bars of a table share.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    /// The figure's name.
    pub name: &'static str,
    /// Start and end of the bars: 0 or a power of ten, and the greatest value or a power of ten.
    from: f64,
    to: f64,
    is_log: bool,
    show: fn(f64) -> String,
}

impl Scale {
    /// A scale for these values; none where there is nothing to compare.
    pub(crate) fn of(name: &'static str, show: fn(f64) -> String, values: impl Iterator<Item = f64>) -> Option<Scale> {
        let values: Vec<f64> = values.filter(|value| value.is_finite() && *value > 0.0).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        if values.len() < 2 {
            return None;
        }
        let is_log = most / least > SPAN_LINEAR_MAX;
        let (from, to) = match is_log {
            true => (10f64.powf(least.log10().floor()), 10f64.powf(most.log10().ceil())),
            false => (0.0, most),
        };
        Some(Scale { name, from, to, is_log, show })
    }

    /// Returns the line above the bars, with their start and end.
    pub(crate) fn head(&self) -> String {
        let to = (self.show)(self.to);
        if self.is_log { format!("log {}…{to}", (self.show)(self.from)) } else { format!("0…{to}") }
    }

    /// A bar, at most so many columns wide. Whatever is above zero can be seen.
    pub(crate) fn bar(&self, value: f64, width: usize) -> String {
        if !value.is_finite() || value <= 0.0 {
            return String::new();
        }
        let share = match self.is_log {
            true => (value / self.from).log10() / (self.to / self.from).log10(),
            false => value / self.to,
        };
        let most = width * EIGHTHS.len();
        let eighths = ((share * most as f64).round() as usize).clamp(1, most.max(1));
        let mut bar = "█".repeat(eighths / EIGHTHS.len());
        if let Some(part) = (eighths % EIGHTHS.len()).checked_sub(1) {
            bar.push(EIGHTHS[part]);
        }
        bar
    }
}

/// The scale of latencies.
pub(crate) fn of_times(name: &'static str, values: impl Iterator<Item = f64>) -> Option<Scale> {
    Scale::of(name, text::time, values)
}

/// The scale of rates.
pub(crate) fn of_counts(name: &'static str, values: impl Iterator<Item = f64>) -> Option<Scale> {
    Scale::of(name, text::count, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_values() {
        let scale = of_counts("msg/s", [100.0, 50.0, 12.5].into_iter()).unwrap();
        assert_eq!(scale.head(), "0…100");
        assert_eq!(scale.bar(100.0, 10), "██████████");
        assert_eq!(scale.bar(50.0, 10), "█████");
        assert_eq!(scale.bar(12.5, 10), "█▎");
        assert_eq!(scale.bar(0.001, 10), "▏", "little is not nothing");
        assert_eq!(scale.bar(0.0, 10), "");
    }

    #[test]
    fn a_wide_span_is_logarithmic_and_says_so() {
        let scale = of_times("p50", [2_000.0, 20_000.0, 9_000_000.0].into_iter()).unwrap();
        assert_eq!(scale.head(), "log 1.00 µs…10.0 ms");
        assert_eq!(scale.bar(1_000.0, 8), "▏");
        assert_eq!(scale.bar(100_000.0, 8), "████");
        assert_eq!(scale.bar(10_000_000.0, 8), "████████");
    }

    #[test]
    fn one_value_or_none_has_nothing_to_be_compared_with() {
        for values in [vec![], vec![5.0], vec![0.0, 5.0], vec![f64::NAN, f64::INFINITY, 1.0]] {
            assert!(of_counts("msg/s", values.clone().into_iter()).is_none(), "{values:?}");
        }
    }
}
