//! Messages of a flow over time, in bins whose width doubles as the trace grows, and the rate that fits them.

use pubmark_model::units::{MILLISECOND, Ns, SECOND, format_time};

/// Most bins of a flow.
const BINS_MAX: usize = 960;
/// Width of the first bins, ns.
const NARROWEST: Ns = 1_024;
/// Groups of bins to which rates are fitted: divisible by each number of steps.
const GROUPS: usize = 60;
/// Most steps of a rate.
const STEPS_MAX: usize = 6;
/// Fewest messages of a flow whose rate may change.
const CHANGE_MESSAGES_MIN: u64 = 60;
/// Least ratio of the highest to the lowest rate of a rate that changes.
const CHANGE_MIN: f64 = 1.15;
/// Cost of a parameter, in units of chi-squared: noise alone pays it about once in 600 flows.
const PARAMETER_COST: f64 = 10.0;
/// Least dispersion that a fit assumes: counts are whole numbers.
const DISPERSION_MIN: f64 = 0.2;
/// Median of chi-squared with one degree of freedom.
const CHI_SQUARED_MEDIAN: f64 = 0.4549;
/// Fewest messages in a bin from which dispersion is measured, on average.
const DISPERSION_MESSAGES: u64 = 5;
/// Fewest such bins.
const DISPERSION_BINS: usize = 10;
/// Longest time over which a rate of a study changes.
const COURSE_MAX: Ns = 24 * 3_600 * SECOND;
/// Lowest and highest rates of a study, messages per second.
const RATES: (f64, f64) = (0.001, 1e6);

/// Numbers of messages over time.
pub(super) struct Counts {
    width_ns: Ns,
    bins: Vec<u64>,
}

/// A rate that fits the counts.
pub(super) struct FittedRate {
    /// The text of a study.
    pub text: String,
    /// True if it changes over time.
    pub changes: bool,
    /// Share of the counts' variation that it does not explain, 0 to 1.
    pub unexplained: f64,
}

/// Counts of the groups, with the time of each, s.
struct Groups {
    counts: Vec<f64>,
    seconds: Vec<f64>,
}

impl Counts {
    pub(super) fn new() -> Counts {
        Counts { width_ns: NARROWEST, bins: Vec::new() }
    }

    /// Counts a message at this time since the beginning of the trace.
    pub(super) fn add(&mut self, at_ns: Ns) {
        self.widen(at_ns);
        let index = (at_ns / self.width_ns) as usize;
        if index >= self.bins.len() {
            self.bins.resize(index + 1, 0);
        }
        self.bins[index] += 1;
    }

    /// Doubles the width of the bins until an instant has one.
    fn widen(&mut self, at_ns: Ns) {
        while at_ns / self.width_ns >= BINS_MAX as u64 {
            self.width_ns *= 2;
            self.bins = self.bins.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }

    /// Extends the bins to the end of the trace.
    fn extend(&mut self, last_ns: Ns) {
        self.widen(last_ns);
        self.bins.resize((last_ns / self.width_ns) as usize + 1, 0);
    }

    /// Returns the ratio of variance to mean of the counts, between neighbours, so that a slow change of the rate does
    /// not matter; `None` if there are too few messages.
    pub(super) fn dispersion(&mut self, last_ns: Ns) -> Option<f64> {
        self.extend(last_ns);
        // The last bin is not full.
        let whole = &self.bins[..self.bins.len() - 1];
        let messages: u64 = whole.iter().sum();
        let bins = ((messages / DISPERSION_MESSAGES) as usize).min(whole.len());
        let joined = whole.len().checked_div(bins)?.max(1) + usize::from(bins < whole.len());
        let counts: Vec<f64> = whole.chunks_exact(joined).map(|bins| bins.iter().sum::<u64>() as f64).collect();
        if counts.len() < DISPERSION_BINS {
            return None;
        }
        let squares: f64 = counts.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        Some(squares / 2.0 / (counts.len() - 1) as f64 / mean)
    }

    /// Returns the rate that fits the counts, times `scale`. `length_ns` is the length of the trace with the time
    /// after its last message.
    pub(super) fn rate(&mut self, last_ns: Ns, length_ns: Ns, scale: f64) -> FittedRate {
        self.extend(last_ns);
        let messages: u64 = self.bins.iter().sum();
        let mean = messages as f64 / (length_ns as f64 / 1e9);
        let constant = FittedRate { text: rate_text(mean * scale, 1e9), changes: false, unexplained: 1.0 };
        if self.bins.len() < 2 * GROUPS || messages < CHANGE_MESSAGES_MIN {
            return constant;
        }
        let groups = self.groups(length_ns);
        let noise = groups.noise();
        let score =
            |rates: &[f64], parameters: usize| groups.chi_squared(rates) / noise + PARAMETER_COST * parameters as f64;
        let flat = score(&vec![mean; GROUPS], 1);
        let ramp = groups.ramp();
        let mut best = (flat, None, vec![mean; GROUPS]);
        if let Some(ramp) = ramp {
            best = (score(&ramp, 2), Some(0), ramp);
        }
        for steps in 2..=STEPS_MAX {
            let rates = groups.steps(steps);
            let found = score(&rates, steps);
            if found < best.0 {
                best = (found, Some(steps), rates);
            }
        }
        let (found, shape, rates) = best;
        let (least, most) =
            rates.iter().fold((f64::MAX, 0.0_f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
        let Some(steps) = shape.filter(|_| found < flat && most > least * CHANGE_MIN) else { return constant };
        let scaled: Vec<String> = rates.iter().map(|rate| rate_text(rate * scale, RATES.1)).collect();
        let length_ns = length_ns.min(COURSE_MAX);
        let text = match steps {
            0 => {
                // The rates of the groups are those of their middles.
                let slope = (rates[GROUPS - 1] - rates[0]) / (GROUPS - 1) as f64 / 2.0;
                let ends = [rates[0] - slope, rates[GROUPS - 1] + slope].map(|rate| rate_text(rate * scale, RATES.1));
                format!("\"ramp {} to {} in {}\"", ends[0], ends[1], format_time(rounded(length_ns)))
            }
            _ => {
                let chosen: Vec<&str> = scaled.iter().step_by(GROUPS / steps).map(String::as_str).collect();
                format!("\"steps {} each {}\"", chosen.join(" "), format_time(rounded(length_ns / steps as u64)))
            }
        };
        let unexplained = groups.chi_squared(&rates) / groups.chi_squared(&vec![mean; GROUPS]).max(f64::MIN_POSITIVE);
        FittedRate { text, changes: true, unexplained }
    }

    fn groups(&self, length_ns: Ns) -> Groups {
        let bound = |group: usize| group * self.bins.len() / GROUPS;
        let counts = (0..GROUPS).map(|group| self.bins[bound(group)..bound(group + 1)].iter().sum::<u64>() as f64);
        let at = |index: usize| (index as u64 * self.width_ns).min(length_ns) as f64 / 1e9;
        let end = |group: usize| if group == GROUPS { length_ns as f64 / 1e9 } else { at(bound(group)) };
        let seconds = (0..GROUPS).map(|group| (end(group + 1) - end(group)).max(1e-9));
        Groups { counts: counts.collect(), seconds: seconds.collect() }
    }
}

impl Groups {
    /// Returns the dispersion between neighbours, which few changes of the rate do not move.
    fn noise(&self) -> f64 {
        let pairs = self.counts.windows(2).filter(|pair| pair[0] + pair[1] > 0.0);
        let mut found: Vec<f64> = pairs.map(|pair| (pair[1] - pair[0]).powi(2) / (pair[0] + pair[1])).collect();
        found.sort_by(f64::total_cmp);
        let median = found.get(found.len() / 2).copied().unwrap_or_default();
        (median / CHI_SQUARED_MEDIAN).max(DISPERSION_MIN)
    }

    fn chi_squared(&self, rates: &[f64]) -> f64 {
        let each = self.counts.iter().zip(&self.seconds).zip(rates).map(|((count, seconds), rate)| {
            let expected = rate * seconds;
            (count - expected).powi(2) / expected.max(1.0)
        });
        each.sum()
    }

    /// Returns the rate of each group if all groups of a step have one.
    fn steps(&self, steps: usize) -> Vec<f64> {
        let each = GROUPS / steps;
        let rate = |step: usize| {
            let range = step * each..(step + 1) * each;
            self.counts[range.clone()].iter().sum::<f64>() / self.seconds[range].iter().sum::<f64>()
        };
        (0..GROUPS).map(|group| rate(group / each)).collect()
    }

    /// Returns the rates of the groups on the line that fits them; `None` if it is not positive everywhere.
    fn ramp(&self) -> Option<Vec<f64>> {
        let rates: Vec<f64> = self.counts.iter().zip(&self.seconds).map(|(count, seconds)| count / seconds).collect();
        let (middle, mean) = ((GROUPS - 1) as f64 / 2.0, rates.iter().sum::<f64>() / GROUPS as f64);
        let from_middle = |group: usize| group as f64 - middle;
        let slope = (0..GROUPS).map(|group| from_middle(group) * (rates[group] - mean)).sum::<f64>()
            / (0..GROUPS).map(|group| from_middle(group).powi(2)).sum::<f64>();
        let line: Vec<f64> = (0..GROUPS).map(|group| mean + slope * from_middle(group)).collect();
        line.iter().all(|rate| *rate > 0.0).then_some(line)
    }
}

/// Rounds a time to four digits, and to whole milliseconds.
pub(super) fn rounded(ns: Ns) -> Ns {
    let digits = ns.checked_ilog10().unwrap_or_default();
    let unit = 10_u64.pow(digits.saturating_sub(3)).max(MILLISECOND);
    (ns.saturating_add(unit / 2) / unit * unit).max(MILLISECOND)
}

/// Returns a rate with at most five digits, within what a study takes.
fn rate_text(per_s: f64, most: f64) -> String {
    let rate = per_s.clamp(RATES.0, most);
    let unit = 10_f64.powf((rate.log10().floor() - 4.0).max(-3.0));
    let digits = (-unit.log10().round()).max(0.0) as usize;
    let text = format!("{:.digits$}", (rate / unit).round() * unit);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::profile::Profile;
    use pubmark_model::profile::Rate;

    /// Returns the fit to a rate of a study that plays for a time.
    fn fit(rate: &str, length_ns: Ns) -> FittedRate {
        let Rate::Due(profile) = Rate::parse(rate).unwrap() else { panic!("{rate}") };
        fit_profile(profile, length_ns)
    }

    fn fit_profile(profile: Profile, length_ns: Ns) -> FittedRate {
        let mut counts = Counts::new();
        let messages = profile.due_before(length_ns);
        (0..messages).for_each(|number| counts.add(profile.due(number)));
        counts.rate(profile.due(messages - 1), length_ns, 1.0)
    }

    #[test]
    fn a_constant_rate_stays_constant() {
        for (rate, length_ns) in [("1000", 10 * SECOND), ("0.5", 3_600 * SECOND), ("33.3", 60 * SECOND), ("7", SECOND)]
        {
            let fitted = fit(rate, length_ns);
            assert!(!fitted.changes, "{rate}: {}", fitted.text);
            let found: f64 = fitted.text.parse().unwrap();
            let wanted: f64 = rate.parse().unwrap();
            assert!((found / wanted - 1.0).abs() < 0.01, "{rate}: {found}");
        }
    }

    #[test]
    fn steps_and_ramps_come_back() {
        for (rate, length_ns) in [
            ("steps 100 500 each 5s", 10 * SECOND),
            ("steps 1000 100 1000 each 20s", 60 * SECOND),
            ("steps 50 100 150 400 250 50 each 10s", 60 * SECOND),
            ("ramp 100 to 500 in 30s", 30 * SECOND),
            ("ramp 500 to 100 in 30s", 30 * SECOND),
        ] {
            let fitted = fit(rate, length_ns);
            let (found, wanted): (Vec<&str>, Vec<&str>) =
                (fitted.text.trim_matches('"').split(' ').collect(), rate.split(' ').collect());
            assert_eq!(found.len(), wanted.len(), "{rate}: {}", fitted.text);
            for (found, wanted) in found.iter().zip(&wanted) {
                match (found.parse::<f64>(), wanted.parse::<f64>()) {
                    (Ok(found), Ok(wanted)) => assert!((found / wanted - 1.0).abs() < 0.05, "{rate}: {}", fitted.text),
                    _ => assert_eq!(found, wanted, "{rate}: {}", fitted.text),
                }
            }
            assert!(fitted.unexplained < 0.1, "{rate}: {}", fitted.unexplained);
        }
    }

    #[test]
    fn rates_have_five_digits_at_most() {
        for (rate, text) in [
            (1000.0, "1000"),
            (123_456.7, "123460"),
            (0.000_01, "0.001"),
            (12.345_67, "12.346"),
            (99.999_9, "100"),
            (0.5, "0.5"),
        ] {
            assert_eq!(rate_text(rate, 1e9), text);
        }
        assert_eq!(rate_text(5e6, 1e6), "1000000");
    }
}
