//! Quantities of a claim: by repeat where runs say them, as intervals elsewhere.

use crate::figures::Observation;
use pubmark_model::claim::Operator;
use pubmark_model::objective::Relation;
use pubmark_stats::{
    APART, Interval, PairedBound, PairedOutcome, PairedReading, PairedTest, Runs, median, student_two_sided_t,
    typical_run,
};

/// Most repeats that a study is told to need.
const REPEATS_MAX: usize = 512;
/// Probability with which an interval may miss.
const LEVEL: f64 = 0.05;

/// A quantity at a point, in base units: seconds, bytes.
#[derive(Clone, Debug)]
pub(super) enum Amount {
    /// A literal.
    Exact(f64),
    /// Values by repeat.
    Runs {
        /// In the order of their repeats.
        values: Vec<Observation>,
        /// Ends that are only bounds, because the generator was at its limit.
        ends: Ends,
    },
    /// Interval that a search or an axis leaves.
    Between { value: f64, lo: f64, hi: f64 },
    /// There is none, and why: a crossing that never happens.
    Never(String),
}

/// On which sides a quantity is only bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Ends {
    pub may_be_more: bool,
    pub may_be_less: bool,
}

impl Ends {
    /// Returns the sides on which a quantity is only bounded that rests on both.
    pub fn and(self, other: Ends) -> Ends {
        Ends { may_be_more: self.may_be_more || other.may_be_more, may_be_less: self.may_be_less || other.may_be_less }
    }

    fn reversed(self) -> Ends {
        Ends { may_be_more: self.may_be_less, may_be_less: self.may_be_more }
    }
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Compared {
    /// `None` if neither is shown.
    pub outcome: Option<bool>,
    /// The left side over the right, or less it, with its 95 % interval.
    pub change: Option<Change>,
    /// About how many more repeats would tell.
    pub more: Option<u32>,
    /// Repeats in which both sides have a value.
    pub repeats: usize,
}

/// Distance of the left side of a comparison from the right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    pub is_ratio: bool,
    pub value: f64,
    pub interval: Option<Interval>,
}

/// Required certainty of a comparison.
#[derive(Clone, Debug)]
pub(super) struct Certainty {
    /// Probabilities with which it may hold wrongly, and fail wrongly.
    levels: [f64; 2],
    /// For repeated looks: the test for these looks, and whether it is used for both outcomes.
    looks: Option<(PairedTest, bool)>,
}

impl Certainty {
    /// Returns the certainty for a claim with this number of comparisons. If all of them have to
    /// hold, each one is tested at the level of a single one: the claim holds wrongly no more often
    /// than its wrong comparison. It fails if any comparison fails, so that level is divided among
    /// all.
    pub fn new(comparisons: usize, all_have_to_hold: bool, until_decided: bool) -> Certainty {
        let family = comparisons.max(1);
        let corrected = LEVEL / family as f64;
        Certainty {
            levels: [if all_have_to_hold { LEVEL } else { corrected }, corrected],
            looks: until_decided.then(|| (PairedTest::new(family), !all_have_to_hold)),
        }
    }
}

impl Amount {
    /// The value that is shown, with its 95 % interval, and of how many runs it is.
    pub fn shown(&self) -> Option<(f64, Option<Interval>, usize)> {
        match self {
            Amount::Exact(value) => Some((*value, None, 0)),
            Amount::Runs { values, .. } => {
                let plain: Vec<f64> = values.iter().map(|one| one.value).collect();
                let found = typical_run(Runs { values: &plain, step: step(values) })?;
                Some((found.value, found.interval, values.len()))
            }
            Amount::Between { value, lo, hi } => Some((*value, Some(Interval { lo: *lo, hi: *hi }), 0)),
            Amount::Never(_) => None,
        }
    }

    /// In other units.
    pub fn scaled(self, factor: f64) -> Amount {
        match self {
            Amount::Exact(value) => Amount::Exact(value * factor),
            Amount::Runs { values, ends } => {
                Amount::Runs { values: values.iter().map(|one| one.scaled(|value| value * factor)).collect(), ends }
            }
            Amount::Between { value, lo, hi } => {
                Amount::Between { value: value * factor, lo: lo * factor, hi: hi * factor }
            }
            never @ Amount::Never(_) => never,
        }
    }

    /// The interval of the typical run at a level; one run has none.
    fn interval(&self, level: f64) -> Option<Interval> {
        match self {
            Amount::Exact(value) => Some(Interval { lo: *value, hi: *value }),
            Amount::Between { lo, hi, .. } => Some(Interval { lo: *lo, hi: *hi }),
            Amount::Runs { values, ends } => {
                let is_positive = values.iter().all(|one| one.value > 0.0);
                let scale = |value: f64| if is_positive { value.ln() } else { value };
                let each: Vec<f64> = values.iter().map(|one| scale(one.value)).collect();
                let middle = median(&values.iter().map(|one| one.value).collect::<Vec<f64>>())?;
                let least = step(values) / if is_positive { middle } else { 1.0 };
                let sessions: Vec<u32> = values.iter().map(|one| one.session).collect();
                let spread = Spread::of(&each, &sessions, least)?;
                let half = spread.half(level);
                let back = |value: f64| if is_positive { value.exp() } else { value };
                let clock = values.iter().map(|one| one.clock).fold(0.0, f64::max);
                Some(Interval {
                    lo: if ends.may_be_less { f64::NEG_INFINITY } else { back(spread.mean - half) - clock },
                    hi: if ends.may_be_more { f64::INFINITY } else { back(spread.mean + half) + clock },
                })
            }
            Amount::Never(_) => None,
        }
    }

    /// Arithmetic: within each repeat where both sides are of runs, by intervals elsewhere.
    pub fn with(self, operator: Operator, other: Amount) -> Option<Amount> {
        Some(match (self, other) {
            (never @ Amount::Never(_), _) | (_, never @ Amount::Never(_)) => never,
            (Amount::Exact(one), Amount::Exact(other)) => Amount::Exact(operator.of(one, other)),
            (Amount::Runs { values, ends }, Amount::Exact(other)) => Amount::Runs {
                values: each(&values, |one| joined(operator, one, &exact(other, one)))?,
                ends: if operator == Operator::Multiply && other < 0.0 { ends.reversed() } else { ends },
            },
            (Amount::Exact(one), Amount::Runs { values, ends }) => Amount::Runs {
                values: each(&values, |other| joined(operator, &exact(one, other), other))?,
                ends: match operator {
                    Operator::Add | Operator::Multiply => ends,
                    Operator::Subtract | Operator::Divide => ends.reversed(),
                },
            },
            (Amount::Runs { values, ends }, Amount::Runs { values: others, ends: other_ends })
                if common(&values, &others).count() >= 2 =>
            {
                let pairs: Vec<_> = common(&values, &others).collect();
                let values = pairs.into_iter().map(|(one, other)| joined(operator, one, other));
                let other_ends = match operator {
                    Operator::Add | Operator::Multiply => other_ends,
                    Operator::Subtract | Operator::Divide => other_ends.reversed(),
                };
                Amount::Runs { values: values.collect::<Option<Vec<Observation>>>()?, ends: ends.and(other_ends) }
            }
            (one, other) => {
                // Half of the error is for each side.
                let (a, b) = (one.interval(LEVEL / 2.0)?, other.interval(LEVEL / 2.0)?);
                let ((value, ..), (of_other, ..)) = (one.shown()?, other.shown()?);
                if operator == Operator::Divide && b.lo <= 0.0 && b.hi >= 0.0 {
                    return None;
                }
                let corners = [(a.lo, b.lo), (a.lo, b.hi), (a.hi, b.lo), (a.hi, b.hi)];
                let corners =
                    corners.map(|(one, other)| operator.of(one, other)).into_iter().filter(|end| !end.is_nan());
                let (lo, hi) =
                    corners.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), end| (lo.min(end), hi.max(end)));
                Amount::Between { value: operator.of(value, of_other), lo, hi }
            }
        })
    }

    /// Compares this amount with another.
    pub fn compare(&self, relation: Relation, other: &Amount, certainty: &Certainty) -> Compared {
        let nothing = Compared { outcome: None, change: None, more: None, repeats: 0 };
        let pairs: Vec<(Observation, Observation)> = match (self, other) {
            (Amount::Never(_), _) | (_, Amount::Never(_)) => return Compared { outcome: Some(false), ..nothing },
            (Amount::Runs { values, .. }, Amount::Exact(bound)) => {
                values.iter().map(|one| (*one, exact(*bound, one))).collect()
            }
            (Amount::Exact(bound), Amount::Runs { values, .. }) => {
                values.iter().map(|one| (exact(*bound, one), *one)).collect()
            }
            (Amount::Runs { values, .. }, Amount::Runs { values: others, .. }) => {
                common(values, others).map(|(one, other)| (*one, *other)).collect()
            }
            _ => Vec::new(),
        };
        let of_runs = !matches!(
            (self, other),
            (Amount::Exact(_) | Amount::Between { .. }, Amount::Exact(_) | Amount::Between { .. })
        );
        if relation == Relation::Equal && of_runs {
            return equal(&pairs);
        }
        if pairs.len() < 2 {
            return self
                .by_intervals(relation, other, certainty)
                .unwrap_or(Compared { repeats: pairs.len(), ..nothing });
        }
        let ends = self.ends().and(other.ends().reversed());
        let mut found = paired(&pairs, relation, certainty);
        // A bound may lie beyond its value.
        let rises = matches!(relation, Relation::Above | Relation::AtLeast);
        let may_turn = |holds: bool| if holds == rises { ends.may_be_less } else { ends.may_be_more };
        if found.outcome.is_some_and(may_turn) {
            (found.outcome, found.more) = (None, None);
        }
        found
    }

    fn ends(&self) -> Ends {
        match self {
            Amount::Runs { ends, .. } => *ends,
            _ => Ends::default(),
        }
    }

    fn by_intervals(&self, relation: Relation, other: &Amount, certainty: &Certainty) -> Option<Compared> {
        // Half of the error is for each side.
        let (to_hold, to_fail) = (certainty.levels[0] / 2.0, certainty.levels[1] / 2.0);
        let shows = |level: f64, relation: Relation| {
            let (one, other) = (self.interval(level)?, other.interval(level)?);
            Some(match relation {
                Relation::Below => one.hi < other.lo,
                Relation::AtMost => one.hi <= other.lo,
                Relation::Above => one.lo > other.hi,
                Relation::AtLeast => one.lo >= other.hi,
                Relation::Equal => one.lo == one.hi && other.lo == other.hi && one.lo == other.lo,
            })
        };
        let holds = shows(to_hold, relation)?;
        let fails = match relation.otherwise() {
            Some(otherwise) => shows(to_fail, otherwise)?,
            None => shows(to_fail, Relation::Below)? || shows(to_fail, Relation::Above)?,
        };
        let outcome = if holds { Some(true) } else { fails.then_some(false) };
        let repeats = self.shown()?.2.min(other.shown()?.2);
        Some(Compared { outcome, change: None, more: None, repeats })
    }
}

/// Compares counts: every run has to have the same value.
fn equal(pairs: &[(Observation, Observation)]) -> Compared {
    let differs = pairs.iter().any(|(one, other)| one.value != other.value);
    let outcome = (!pairs.is_empty()).then_some(!differs);
    Compared { outcome, change: None, more: None, repeats: pairs.len() }
}

/// Returns a literal as the value of the repeat in which it is compared.
fn exact(value: f64, beside: &Observation) -> Observation {
    Observation { value, step: 0.0, clock: 0.0, ..*beside }
}

fn step(values: &[Observation]) -> f64 {
    values.iter().map(|one| one.step).fold(0.0, f64::max)
}

fn each(values: &[Observation], make: impl Fn(&Observation) -> Option<Observation>) -> Option<Vec<Observation>> {
    values.iter().map(make).collect()
}

/// Returns whether two runs were made one after the other: in one repeat, and in one session.
fn is_together(one: &Observation, other: &Observation) -> bool {
    one.repeat == other.repeat && one.session == other.session
}

/// Returns the pairs of values of the same repeat.
fn common<'a>(
    values: &'a [Observation],
    others: &'a [Observation],
) -> impl Iterator<Item = (&'a Observation, &'a Observation)> {
    values.iter().filter_map(|one| Some((one, others.iter().find(|other| is_together(one, other))?)))
}

/// Two values of one repeat; none where the result is no number.
fn joined(operator: Operator, one: &Observation, other: &Observation) -> Option<Observation> {
    let value = operator.of(one.value, other.value);
    let spread = |one_by: f64, other_by: f64| match operator {
        Operator::Add | Operator::Subtract => one_by + other_by,
        Operator::Multiply => (one_by * other.value).abs() + (other_by * one.value).abs(),
        Operator::Divide => (one_by / other.value).abs() + (value * other_by / other.value).abs(),
    };
    let (step, clock) = (spread(one.step, other.step), spread(one.clock, other.clock));
    value.is_finite().then_some(Observation { value, step, clock, ..*one })
}

/// Position of values.
struct Spread {
    mean: f64,
    deviation: f64,
    n: usize,
}

/// Returns by how much the standard error of a mean grows where its values are of several sessions.
fn session_factor(sessions: &[u32]) -> f64 {
    let n = sessions.len() as f64;
    let of = |session: &u32| sessions.iter().filter(|other| *other == session).count() as f64;
    // The sum over sessions of the squared share of each is the mean share over the values.
    let concentration = sessions.iter().map(|session| of(session) / n).sum::<f64>() / n;
    if concentration < 1.0 { (1.0 + APART * n * concentration).sqrt() } else { 1.0 }
}

impl Spread {
    fn of(values: &[f64], sessions: &[u32], least: f64) -> Option<Spread> {
        let n = values.len();
        if n < 2 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (n - 1) as f64).sqrt().max(least) * session_factor(sessions);
        Some(Spread { mean, deviation, n })
    }

    fn half(&self, level: f64) -> f64 {
        self.half_after(self.n, level)
    }

    fn half_after(&self, n: usize, level: f64) -> f64 {
        student_two_sided_t(level, (n - 1) as f64) * self.deviation / (n as f64).sqrt()
    }
}

/// By the repeats of both sides, on logarithms where all values are above 0.
fn paired(pairs: &[(Observation, Observation)], relation: Relation, certainty: &Certainty) -> Compared {
    let nothing = Compared { outcome: None, change: None, more: None, repeats: pairs.len() };
    let is_ratio = pairs.iter().all(|(one, other)| one.value > 0.0 && other.value > 0.0);
    let moved = |(one, other): &(Observation, Observation)| match is_ratio {
        true => (one.value / other.value).ln(),
        false => one.value - other.value,
    };
    let by = |(one, other): &(Observation, Observation), of: fn(&Observation) -> f64| match is_ratio {
        true => of(one) / one.value + of(other) / other.value,
        false => of(one) + of(other),
    };
    let values: Vec<f64> = pairs.iter().map(moved).collect();
    let least = pairs.iter().map(|pair| by(pair, |one| one.step)).fold(0.0, f64::max);
    let clock = pairs.iter().map(|pair| by(pair, |one| one.clock)).fold(0.0, f64::max);
    let sessions: Vec<u32> = pairs.iter().map(|(one, _)| one.session).collect();
    let least = if least.is_finite() { least } else { 0.0 };
    let Some(spread) = Spread::of(&values, &sessions, least) else { return nothing };
    let back = |value: f64| if is_ratio { value.exp() } else { value };
    let half = spread.half(LEVEL) + clock;
    let change = Change {
        is_ratio,
        value: back(spread.mean),
        interval: Some(Interval { lo: back(spread.mean - half), hi: back(spread.mean + half) }),
    };
    let rises = matches!(relation, Relation::Above | Relation::AtLeast);
    let [to_hold, to_fail] = certainty.levels;
    // Above 0 where the comparison holds.
    let towards = if rises { spread.mean } else { -spread.mean };
    let (outcome, more) = match &certainty.looks {
        // The looks are those of one session.
        Some((test, both)) => at_looks(&of_longest_session(pairs), rises, test, *both),
        None => {
            let beyond = |n: usize, level: f64| towards.abs() > spread.half_after(n, level) + clock;
            let level = if towards > 0.0 { to_hold } else { to_fail };
            // Values that are all at the bound keep to one that may be reached.
            let at_bound = spread.mean == 0.0 && spread.deviation == 0.0;
            let keeps = matches!(relation, Relation::AtMost | Relation::AtLeast);
            let outcome = match at_bound {
                true => Some(keeps),
                false => beyond(spread.n, level).then_some(towards > 0.0),
            };
            let ahead = spread.n + 1..=REPEATS_MAX;
            let enough = outcome.is_none().then(|| ahead.into_iter().find(|n| beyond(*n, level))).flatten();
            (outcome, enough.map(|n| (n - spread.n) as u32))
        }
    };
    let is_blurred = clock > 0.0 && towards.abs() <= clock;
    let outcome = outcome.filter(|_| !is_blurred);
    Compared { outcome, change: Some(change), more: more.filter(|_| !is_blurred), repeats: pairs.len() }
}

/// Returns the pairs of the session that has most of them.
fn of_longest_session(pairs: &[(Observation, Observation)]) -> Vec<(Observation, Observation)> {
    let count = |session: u32| pairs.iter().filter(|(one, _)| one.session == session).count();
    let longest = pairs.iter().map(|(one, _)| one.session).max_by_key(|session| count(*session));
    pairs.iter().filter(|(one, _)| Some(one.session) == longest).copied().collect()
}

/// Compares with repeated looks at growing records.
fn at_looks(
    pairs: &[(Observation, Observation)],
    rises: bool,
    test: &PairedTest,
    both: bool,
) -> (Option<bool>, Option<u32>) {
    let readings: Vec<PairedReading> = pairs
        .iter()
        .map(|(one, other)| PairedReading { a: other.value, b: one.value, step_a: other.step, step_b: one.step })
        .collect();
    let bound = |rise: bool| PairedBound { rise, by: 0.0, relative: true };
    let Some(found) = test.decide(&readings, bound(!rises)) else { return (None, None) };
    let more = found.more.and_then(|more| u32::try_from(more).ok());
    match found.outcome {
        PairedOutcome::Beyond => (Some(false), None),
        PairedOutcome::Within if !both => (Some(true), None),
        _ => match both.then(|| test.decide(&readings, bound(rises))).flatten() {
            Some(other) if other.outcome == PairedOutcome::Beyond => (Some(true), None),
            _ => (None, more),
        },
    }
}
