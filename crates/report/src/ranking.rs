//! Which systems are best at each point by a figure: a test within blocks,
//! corrected for all comparisons of a table ([`pubmark_stats::rank_table`]).
//!
//! Three things that a test cannot know are added. A throughput is no rank where
//! the shares that were delivered differ: what loses most may well be fastest.
//! And where the generator was at its limit, what a system reached is a lower
//! bound: it may win by it, and is never behind by it. And what the clocks of two
//! hosts may be wrong by is no noise: who differ by less are not told apart.

pub(crate) mod decide;

use crate::figures::ClockBlur;
use crate::text::clean;
use pubmark_model::study::Study;
use pubmark_stats::{Interval, RankedPoint, SAME_WITHIN};

/// Longest list of systems in a sentence, characters.
const NAMES_CHARS: usize = 80;

/// By what systems are ranked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankingRules {
    /// Systems tie that are shown to differ by less than this fraction.
    pub tie: f64,
    /// Whether blocks were made until questions were decided, and so records were
    /// looked at while they came.
    pub until_decided: bool,
}

impl RankingRules {
    /// Those of a study.
    pub(crate) fn of(study: &Study) -> RankingRules {
        RankingRules { tie: study.tie(), until_decided: study.until_decided() }
    }
}

/// What is said of the systems of a point by a figure.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// Who is best.
    pub placing: Placing,
    /// Those that have a figure that may be quoted.
    systems: Vec<Contender>,
    tested: RankedPoint,
}

/// A system that is ranked.
#[derive(Clone, Debug)]
struct Contender {
    name: String,
    /// Whether it reached at least what its figure says.
    is_lower_bound: bool,
    /// The share that it delivered, where the figure is no figure without it.
    share: Option<f64>,
    /// What clocks leave open of its figure.
    blur: ClockBlur,
}

/// Who is best at a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Placing {
    /// This one is shown to be better than each other.
    Winner(String),
    /// These are shown to differ by less than the bound, and all others to be
    /// worse; what looks best first.
    Tie(Vec<String>),
    /// Neither is shown.
    Undecided {
        /// What stands in the way.
        why: Why,
        /// About how many more repeats would tell; none where that cannot be said.
        repeats_more: Option<u32>,
    },
    /// The shares that were delivered differ, from the least to the greatest:
    /// the figures are not of the same work.
    Unranked {
        /// The least share.
        least: f64,
        /// The greatest.
        most: f64,
    },
}

/// Why nothing is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Fewer than two systems have a figure that may be quoted.
    TooFew,
    /// These have a value that is no number.
    Unusable(Vec<String>),
    /// These share fewer than two blocks with a rival.
    TooFewBlocks(Vec<String>),
    /// The differences to these are within the noise, which is too large to call
    /// them the same.
    Noise(Vec<String>),
    /// These reached at least what their figure says, and may reach more.
    LowerBound(Vec<String>),
    /// The differences to these are within what the clocks of two hosts may be
    /// wrong by, which no repeat makes less.
    Clock(Vec<String>),
}

/// Where a system stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is the winner.
    Winner,
    /// It is one of those that tie for the best.
    Tie,
    /// Another is shown to be better.
    Behind,
    /// Neither is shown.
    Undecided,
    /// It delivered another share than others.
    Unranked,
    /// No other has a figure that may be quoted.
    Alone,
}

impl Ranked {
    /// Where a system stands; none where it has no figure that may be quoted.
    pub fn standing(&self, system: &str) -> Option<Standing> {
        let place = self.place(system)?;
        let is_behind = || (0..self.systems.len()).any(|other| self.at_beats(other, place));
        Some(match &self.placing {
            Placing::Winner(winner) if winner == system => Standing::Winner,
            Placing::Tie(names) if names.iter().any(|name| name == system) => Standing::Tie,
            Placing::Winner(_) | Placing::Tie(_) => Standing::Behind,
            Placing::Undecided { why: Why::TooFew, .. } => Standing::Alone,
            _ if is_behind() => Standing::Behind,
            Placing::Undecided { .. } => Standing::Undecided,
            Placing::Unranked { .. } => Standing::Unranked,
        })
    }

    /// Whether one is shown to be better than another.
    pub fn beats(&self, one: &str, other: &str) -> bool {
        self.place(one).zip(self.place(other)).is_some_and(|(one, other)| self.at_beats(one, other))
    }

    /// Whether more runs can tell of these two which is better: neither is shown to
    /// be, nor that they are the same, and no bound stands in the way.
    pub(crate) fn is_open(&self, one: &str, other: &str) -> bool {
        let Some((one, other)) = self.place(one).zip(self.place(other)) else { return true };
        let tested = &self.tested;
        !(tested.same(one, other) || tested.beats(one, other) || tested.beats(other, one))
    }

    /// Whether two are shown to differ by less than the bound.
    pub(crate) fn same(&self, one: &str, other: &str) -> bool {
        self.place(one).zip(self.place(other)).is_some_and(|(one, other)| self.tested.same(one, other))
    }

    /// Whether a system has a figure that may be quoted.
    pub fn has(&self, system: &str) -> bool {
        self.place(system).is_some()
    }

    /// About how many more repeats would tell who is best.
    pub fn repeats_more(&self) -> Option<u32> {
        match self.placing {
            Placing::Undecided { repeats_more, .. } => repeats_more,
            _ => None,
        }
    }

    fn place(&self, system: &str) -> Option<usize> {
        self.systems.iter().position(|contender| contender.name == system)
    }

    fn at_beats(&self, one: usize, other: usize) -> bool {
        let (better, worse) = (&self.systems[one], &self.systems[other]);
        self.tested.beats(one, other)
            && !worse.is_lower_bound
            && alike(better.share, worse.share)
            && is_beyond_clocks(&self.systems, &self.tested, (one, other))
    }
}

impl Why {
    /// In words.
    pub(crate) fn text(&self) -> String {
        let names = |names: &[String]| clean(&names.join(", "), NAMES_CHARS);
        match self {
            Why::TooFew => "fewer than two systems have a figure that may be quoted".into(),
            Why::Unusable(unusable) => format!("no usable figure ({})", names(unusable)),
            Why::TooFewBlocks(few) => {
                format!("fewer than two repeats in which both systems may be quoted ({}); more decide it", names(few))
            }
            Why::Noise(near) => format!("the differences are within the noise ({})", names(near)),
            Why::Clock(near) => format!(
                "the differences are within what the clocks of the hosts may be wrong by ({}): more repeats do not help, a \
                 pattern that measures there and back on one clock does",
                names(near)
            ),
            Why::LowerBound(bounded) => {
                format!("the load generator was at its limit, and these may reach more ({})", names(bounded))
            }
        }
    }
}

/// The interval of one over the other, or less the other, with what clocks may
/// add; none where one clock measured both.
fn widened(systems: &[Contender], tested: &RankedPoint, (one, other): (usize, usize)) -> Option<(Interval, f64)> {
    let (blur, of_other) = (systems[one].blur, systems[other].blur);
    if blur.is_none() && of_other.is_none() {
        return None;
    }
    let unknown = Interval { lo: f64::NEG_INFINITY, hi: f64::INFINITY };
    let Some(difference) = tested.difference(one, other) else { return Some((unknown, 0.0)) };
    let interval = difference.estimate.interval.unwrap_or(unknown);
    let equal = if difference.scale == pubmark_stats::Scale::Ratio { 1.0 } else { 0.0 };
    Some((blur.widen(of_other, difference.scale, interval), equal))
}

/// Whether two systems differ by more than clocks may have made of it.
fn is_beyond_clocks(systems: &[Contender], tested: &RankedPoint, pair: (usize, usize)) -> bool {
    widened(systems, tested, pair).is_none_or(|(interval, equal)| interval.hi < equal || interval.lo > equal)
}

/// Whether two shares are so near that throughputs can be compared.
fn alike(one: Option<f64>, other: Option<f64>) -> bool {
    one.zip(other).is_none_or(|(one, other)| one.max(other) <= one.min(other) * (1.0 + SAME_WITHIN))
}
