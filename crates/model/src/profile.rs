//! A publisher's rate over time: the number of messages due until an instant, and the due time of
//! each message. Both are pure functions and inverse to each other. Arrivals scatter messages
//! around it.
//!
//! A new profile is a variant of [`Profile`] and its spelling in [`Rate`]; all other code asks for
//! messages, instants, or the bounds of the rate.

mod course;
pub mod trace;

use crate::units::{Ns, UnitError, parse_thousandths, thousandths};
pub use course::Course;
use course::{KILOSECOND, clamped};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use trace::TraceRate;

/// Highest rate of a publisher: one message each nanosecond.
const FASTEST_PER_KS: u64 = KILOSECOND;

/// The rate of one publisher over time, from its first message on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Profile {
    /// A constant rate.
    Constant {
        /// Messages per 1,000 s.
        per_ks: NonZeroU64,
    },
    /// A rate that changes.
    Varying(Course),
    /// The rate of a trace.
    Trace(TraceRate),
}

impl Profile {
    /// Returns the profile of a constant rate in messages per 1,000 s, clamped to 1 to 10^12.
    pub const fn constant(per_ks: u64) -> Profile {
        let per_ks = if per_ks > FASTEST_PER_KS { FASTEST_PER_KS } else { per_ks };
        Profile::Constant { per_ks: NonZeroU64::MIN.saturating_add(per_ks.saturating_sub(1)) }
    }

    /// Returns the instant at which message `index` is due, ns from the first.
    #[inline]
    pub fn due(&self, index: u64) -> Ns {
        match self {
            // A 128-bit division takes several times as long, and this runs for each message.
            Profile::Constant { per_ks } => match index.checked_mul(KILOSECOND) {
                Some(product) => product / *per_ks,
                None => clamped(u128::from(index) * u128::from(KILOSECOND) / u128::from(per_ks.get())),
            },
            Profile::Varying(course) => course.due(index),
            Profile::Trace(trace) => trace.due(index),
        }
    }

    /// Returns the number of messages due before an instant, ns from the first.
    pub fn due_before(&self, at_ns: Ns) -> u64 {
        match self {
            Profile::Constant { per_ks } => {
                clamped((u128::from(at_ns) * u128::from(per_ks.get())).div_ceil(u128::from(KILOSECOND)))
            }
            Profile::Varying(course) => course.due_before(at_ns),
            Profile::Trace(trace) => trace.due_before(at_ns),
        }
    }

    /// Returns the mean number of messages due by `at_ns`, ns from the first, over all phases at
    /// which a publisher can begin.
    pub fn expected(&self, at_ns: Ns) -> f64 {
        match self {
            Profile::Constant { per_ks } => at_ns as f64 * (per_ks.get() as f64 / KILOSECOND as f64),
            Profile::Varying(course) => course.expected(at_ns),
            Profile::Trace(trace) => trace.due_before(at_ns) as f64,
        }
    }

    /// Returns the instant by which `messages` more are due than by `at_ns`, both in ns from the
    /// first. It stretches independent gaps of mean 1 to this rate.
    #[inline]
    pub fn after(&self, at_ns: f64, messages: f64) -> f64 {
        match self {
            Profile::Constant { per_ks } => at_ns + messages * (KILOSECOND as f64 / per_ks.get() as f64),
            Profile::Varying(course) => course.after(at_ns, messages),
            Profile::Trace(trace) => trace.after(at_ns, messages),
        }
    }

    /// Returns its lowest and its highest rate, messages per 1,000 s.
    pub fn per_ks(&self) -> RangeInclusive<u64> {
        match self {
            Profile::Constant { per_ks } => per_ks.get()..=per_ks.get(),
            Profile::Varying(course) => course.per_ks(),
            Profile::Trace(trace) => trace.per_ks(),
        }
    }

    /// True if the rate does not change.
    pub fn is_constant(&self) -> bool {
        matches!(self, Profile::Constant { .. })
    }

    /// Returns its highest rate, messages per second.
    pub fn fastest_per_s(&self) -> f64 {
        *self.per_ks().end() as f64 / 1e3
    }
}

/// A publisher's rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "serde_json::Value", into = "serde_json::Value")]
pub enum Rate {
    /// As many messages as are due.
    Due(Profile),
    /// As fast as the system's own back-pressure permits.
    Max,
}

impl Rate {
    /// Returns a constant rate in messages per 1,000 s: see [`Profile::constant`].
    pub const fn per_kilosecond(messages: u64) -> Rate {
        Rate::Due(Profile::constant(messages))
    }

    /// Parses messages per second (`10`, `0.5`, `50_000`), `max`, or a rate that changes (see
    /// [`Course::parse`]).
    pub fn parse(text: &str) -> Result<Rate, UnitError> {
        let text = text.trim();
        if text == "max" {
            return Ok(Rate::Max);
        }
        if let Some(course) = Course::parse(text) {
            return Ok(Rate::Due(Profile::Varying(course)));
        }
        let rate = parse_thousandths(text).filter(|rate| (1..=FASTEST_PER_KS).contains(rate));
        rate.map(Rate::per_kilosecond).ok_or_else(|| UnitError::Rate(text.to_owned()))
    }

    /// Returns the profile; `None` if the rate is `max`.
    pub fn profile(&self) -> Option<Profile> {
        match self {
            Rate::Due(profile) => Some(profile.clone()),
            Rate::Max => None,
        }
    }

    /// Returns the trace that it replays, if it does.
    pub fn trace(&self) -> Option<&TraceRate> {
        match self {
            Rate::Due(Profile::Trace(trace)) => Some(trace),
            _ => None,
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::Due(Profile::Constant { per_ks }) => write!(f, "{}", per_ks.get() as f64 / 1e3),
            Rate::Due(Profile::Varying(course)) => course.fmt(f),
            Rate::Due(Profile::Trace(trace)) => trace.fmt(f),
            Rate::Max => f.write_str("max"),
        }
    }
}

impl From<Rate> for serde_json::Value {
    fn from(rate: Rate) -> Self {
        match rate {
            Rate::Due(Profile::Constant { per_ks }) => thousandths(per_ks.get()),
            Rate::Due(Profile::Varying(course)) => course.to_string().into(),
            Rate::Due(Profile::Trace(trace)) => (&trace).into(),
            Rate::Max => "max".into(),
        }
    }
}

impl TryFrom<serde_json::Value> for Rate {
    type Error = UnitError;
    fn try_from(value: serde_json::Value) -> Result<Self, UnitError> {
        match value {
            serde_json::Value::String(text) => Rate::parse(&text),
            serde_json::Value::Number(number) => Rate::parse(&number.to_string()),
            other => match TraceRate::told(other.clone()) {
                Some(trace) => Ok(Rate::Due(Profile::Trace(trace))),
                None => Err(UnitError::RateValue(other)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_are_exact() {
        assert_eq!(Rate::parse("0.001"), Ok(Rate::per_kilosecond(1)));
        assert_eq!(Rate::parse("50_000"), Ok(Rate::per_kilosecond(50_000_000)));
        assert_eq!(Rate::parse("max"), Ok(Rate::Max));
        for bad in ["0", "-1", "fast", "1/s", "1e3", "2000000000"] {
            assert!(Rate::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(
            (Profile::constant(0), Profile::constant(u64::MAX)),
            (Profile::constant(1), Profile::constant(KILOSECOND))
        );
    }

    #[test]
    fn what_is_due_is_exact_however_long() {
        let thousand = Profile::constant(1_000_000);
        assert_eq!([0, 1, 3_000].map(|index| thousand.due(index)), [0, 1_000_000, 3_000_000_000]);
        assert_eq!([0, 1, 1_000_000, 1_000_001].map(|at_ns| thousand.due_before(at_ns)), [0, 1, 1, 2]);
        assert_eq!(Profile::constant(50_000_000).due(4_000_000_000), 80_000_000_000_000);
        assert_eq!(Profile::constant(1).due(u64::MAX), Ns::MAX);
        assert_eq!(Profile::constant(KILOSECOND).due_before(Ns::MAX), u64::MAX);
    }

    /// Generates every possible profile.
    fn profiles() -> impl Strategy<Value = Profile> {
        let constant = (0u32..40, 1u64..=1 << 40).prop_map(|(shift, per_ks)| Profile::constant(per_ks >> shift));
        // Rates at most 10,000 apart: a float holds the messages of one to well within a ns of another.
        let rates = proptest::collection::vec(100_000u64..=1_000_000_000, 2..=6);
        let sine = (1u64..=1_000, 1u64..=1_000, 1u64..=80_000_000).prop_map(|(low, more, ms)| {
            Rate::parse(&format!("sine {low} to {} each {ms}ms", low + more)).unwrap().profile().unwrap()
        });
        let varying =
            (rates, 1u64..=14_000_000, any::<bool>(), any::<bool>()).prop_map(|(rates, ms, is_ramp, repeats)| {
                let again = if repeats { " repeat" } else { "" };
                let rates: Vec<String> = rates.iter().map(|per_ks| (*per_ks as f64 / 1e3).to_string()).collect();
                let text = match is_ramp {
                    true => format!("ramp {} to {} in {ms}ms{again}", rates[0], rates[1]),
                    false => format!("steps {} each {ms}ms{again}", rates.join(" ")),
                };
                Rate::parse(&text).unwrap().profile().unwrap()
            });
        prop_oneof![constant, varying, sine]
    }

    proptest! {
        #[test]
        fn what_is_due_and_when_are_each_others_inverse(profile in profiles(), at_ns in 0..crate::units::LONGEST) {
            let count = profile.due_before(at_ns);
            prop_assert!(profile.due(count) >= at_ns, "the next one is not due yet");
            prop_assert!(count == 0 || profile.due(count - 1) < at_ns, "the last one was");
            prop_assert_eq!(profile.due_before(profile.due(count)), count);
        }

        #[test]
        fn nothing_runs_backwards(
            profile in profiles(),
            indices in [0..=u64::from(u32::MAX), 0..=u64::from(u32::MAX)],
            instants in [0..crate::units::LONGEST, 0..crate::units::LONGEST],
        ) {
            let ([a, b], [early, late]) = (indices, instants);
            // No two are due at once, except when no instants are left.
            let [due_a, due_b] = [a, b].map(|index| profile.due(index));
            prop_assert!(a.cmp(&b) == due_a.cmp(&due_b) || due_a.min(due_b) == Ns::MAX);
            prop_assert!(early > late || profile.due_before(early) <= profile.due_before(late));
            prop_assert_eq!((profile.due(0), profile.due_before(0)), (0, 0));
        }

        /// Compares with the exact instants, and with those of gaps that add up to whole messages.
        #[test]
        fn gaps_are_stretched_to_the_rate(profile in profiles(), gaps in proptest::collection::vec(0.0..10.0f64, 1..100)) {
            let stretched = gaps.iter().fold(0.0, |at_ns, gap| profile.after(at_ns, *gap));
            let (messages, ideal_ns) = (gaps.iter().sum::<f64>(), |index: f64| profile.due(index as u64) as f64);
            let slack = 1.0 + stretched * 1e-9;
            prop_assert!(stretched >= ideal_ns(messages.floor()) - slack && stretched <= ideal_ns(messages.ceil()) + slack);
        }

        #[test]
        fn what_is_expected_is_what_is_due(profile in profiles(), at_ns in 0..crate::units::LONGEST) {
            let (expected, due) = (profile.expected(at_ns), profile.due_before(at_ns) as f64);
            prop_assert!((expected - due).abs() <= 1.0 + due * 1e-9, "{expected} {due}");
            let back = profile.after(0.0, expected);
            prop_assert!((back - at_ns as f64).abs() <= 1.0 + back * 1e-9, "{back}");
        }

        #[test]
        fn the_rate_stays_within_its_bounds(profile in profiles(), from_ns in 0..crate::units::LONGEST, for_ns in 1..crate::units::LONGEST) {
            let (slowest, fastest) = profile.per_ks().into_inner();
            let due = (profile.due_before(from_ns + for_ns) - profile.due_before(from_ns)) as f64;
            let of = |per_ks: u64| per_ks as f64 * for_ns as f64 / KILOSECOND as f64;
            let slack = 1.0 + due * 1e-9;
            prop_assert!((of(slowest) - slack..=of(fastest) + slack).contains(&due), "{} {due} {}", of(slowest), of(fastest));
        }
    }
}
