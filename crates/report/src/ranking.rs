//! Ranking of the systems of each point by a figure: a test within repeats, corrected for all
//! comparisons of a table ([`pubmark_stats::rank_table`]).
//!
//! Five rules are added. A system beats another by throughput only if it also delivers as large a
//! share, because losing messages is fast. If the generator was at its limit, a system's figure is
//! a lower bound: it may win by it, and is never behind by it. The possible error of two hosts'
//! clocks is not noise: systems that differ by less are not distinguished. And runs that other
//! users of the machine disturbed can show large differences, because a disturbance makes systems
//! more alike; they show no tie and no upper bound. The same is true of a system with a backlog that
//! grew to the end of the window; it is never better than another.

pub(crate) mod decide;

use crate::figures::ClockBlur;
use crate::text::{clean, percent};
use pubmark_model::study::Study;
use pubmark_stats::{Better, Interval, PointOutcome, RankedPoint, SAME_WITHIN, Scale, UndecidedReason};

/// Longest list of systems in a sentence, characters.
const NAMES_CHARS: usize = 80;

/// By what systems are ranked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankingRules {
    /// Systems tie that are shown to differ by less than this fraction.
    pub tie: f64,
    /// True if runs were made until questions were decided, so that the records were looked at
    /// repeatedly.
    pub until_decided: bool,
}

impl RankingRules {
    /// Returns the rules of a study.
    pub(crate) fn of(study: &Study) -> RankingRules {
        RankingRules { tie: study.tie(), until_decided: study.until_decided() }
    }
}

/// Ranking of the systems of a point by a figure.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// The best systems.
    pub placing: Placing,
    /// Systems with a figure that can be compared.
    systems: Vec<Contender>,
    /// By all runs that may be compared.
    tested: RankedPoint,
    /// By the runs that may be quoted, where these are not all: for what disturbed runs
    /// cannot show.
    quoted: Option<RankedPoint>,
    better: Better,
    /// The systems that none is shown to be better than, best looking first.
    unbeaten: Vec<usize>,
}

/// A system that is ranked.
#[derive(Clone, Debug)]
struct Contender {
    name: String,
    /// True if its figure is a lower bound.
    is_lower_bound: bool,
    /// True if it did not carry its load, so that it is at least as bad as its figure.
    is_overloaded: bool,
    /// The share that it delivered, where the figure is no figure without it.
    share: Option<f64>,
    /// Error of its figure due to clocks.
    blur: ClockBlur,
}

/// The best systems of a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Placing {
    /// This one is shown to be better than each other.
    Winner(String),
    /// These are shown to differ by less than the bound, and all others to be
    /// worse; what looks best first.
    Tie(Vec<String>),
    /// Several may be the best ([`Ranked::candidates`]).
    Open {
        /// Why they are not told apart.
        why: Why,
        /// About how many more repeats would tell; none where that cannot be said.
        repeats_more: Option<u32>,
    },
    /// The unbeaten systems delivered different shares of their messages, from the least to the
    /// greatest: their figures are not of the same work.
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
    /// Fewer than two systems have a figure that may be compared.
    TooFew,
    /// These have a value that is not a number.
    Unusable(Vec<String>),
    /// These share fewer than two blocks with a rival.
    TooFewBlocks(Vec<String>),
    /// The differences to these are within the noise, which is too large to call
    /// them the same.
    Noise(Vec<String>),
    /// Runs of these are unreliable: others used the machine, or they did not carry the load. That shows no tie.
    Disturbed(Vec<String>),
    /// These reached at least what their figure says, and may reach more.
    LowerBound(Vec<String>),
    /// The differences to these are within what the clocks of two hosts may be
    /// wrong by, which no repeat makes less.
    Clock(Vec<String>),
}

/// Standing of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is the winner.
    Winner,
    /// It is one of those that tie for the best.
    Tie,
    /// Another is shown to be better.
    Behind,
    /// It may be the best, and so may another.
    Candidate,
    /// It delivered another share than others.
    Unranked,
    /// No other has a figure that may be quoted.
    Alone,
}

/// Distance of a system from the best one of its point: the factor by which it takes longer, or
/// reaches less. Both ends hold for the whole table at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// At least this factor; 1 for a system that may be the best.
    pub at_least: f64,
    /// At most this factor; none where nothing bounds it.
    pub at_most: Option<f64>,
}

impl Ranked {
    /// Returns the standing of a system; `None` if it has no figure that can be compared.
    pub fn standing(&self, system: &str) -> Option<Standing> {
        let place = self.place(system)?;
        Some(match &self.placing {
            Placing::Winner(winner) if winner == system => Standing::Winner,
            Placing::Tie(names) if names.iter().any(|name| name == system) => Standing::Tie,
            Placing::Winner(_) | Placing::Tie(_) => Standing::Behind,
            Placing::Open { why: Why::TooFew, .. } => Standing::Alone,
            _ if !self.unbeaten.contains(&place) => Standing::Behind,
            Placing::Open { .. } => Standing::Candidate,
            Placing::Unranked { .. } => Standing::Unranked,
        })
    }

    /// Returns the systems that may be the best, best looking first: the true best one is
    /// among them. Empty where systems cannot be ranked.
    pub fn candidates(&self) -> Vec<&str> {
        match &self.placing {
            Placing::Open { why: Why::TooFew, .. } | Placing::Unranked { .. } => Vec::new(),
            _ => self.unbeaten.iter().map(|place| self.systems[*place].name.as_str()).collect(),
        }
    }

    /// Returns how far a system is from the best one; none where figures are compared by
    /// differences, or systems cannot be ranked.
    pub fn distance(&self, system: &str) -> Option<Distance> {
        let place = self.place(system)?;
        if self.candidates().is_empty() || self.tested.scale() != Scale::Ratio {
            return None;
        }
        let others = || self.unbeaten.iter().copied().filter(|other| *other != place);
        // No bound is below 1: the best one is at least as good.
        let at_most = others().map(|other| self.factor(self.quoted(), place, other).1).fold(1.0, f64::max);
        let least = || others().map(|other| self.factor(&self.tested, place, other).0).fold(f64::INFINITY, f64::min);
        let at_least = if self.unbeaten.contains(&place) { 1.0 } else { least().max(1.0) };
        Some(Distance { at_least, at_most: Some(at_most).filter(|most| most.is_finite()) })
    }

    /// Returns at least how many times as good the winner is as the next; none where there is
    /// no winner, or figures are compared by differences.
    pub(crate) fn lead(&self) -> Option<f64> {
        let Placing::Winner(winner) = &self.placing else { return None };
        let others = self.systems.iter().filter(|system| system.name != *winner);
        let least = others.map(|other| Some(self.distance(&other.name)?.at_least));
        let least = least.collect::<Option<Vec<f64>>>()?;
        least.into_iter().reduce(f64::min).filter(|least| *least > 1.0)
    }

    /// Returns between which factors a system is worse than another, by these runs.
    fn factor(&self, by: &RankedPoint, one: usize, other: usize) -> (f64, f64) {
        let (mine, theirs) = (&self.systems[one], &self.systems[other]);
        let Interval { lo, hi } = mine.blur.widen(theirs.blur, Scale::Ratio, by.bounds(one, other));
        let (least, most) = if self.better == Better::Higher { (1.0 / hi, 1.0 / lo) } else { (lo, hi) };
        (if mine.is_lower_bound { 0.0 } else { least }, if theirs.is_lower_bound { f64::INFINITY } else { most })
    }

    /// True if one system is shown to be better than another.
    pub fn beats(&self, one: &str, other: &str) -> bool {
        self.place(one).zip(self.place(other)).is_some_and(|(one, other)| self.at_beats(one, other))
    }

    /// True if more runs can decide between two systems: neither is shown to be better, they are
    /// not shown to be equal, and no bound prevents it.
    pub(crate) fn is_open(&self, one: &str, other: &str) -> bool {
        let Some((one, other)) = self.place(one).zip(self.place(other)) else { return true };
        !(self.quoted().same(one, other) || self.tested.beats(one, other) || self.tested.beats(other, one))
    }

    /// True if two systems are shown to differ by less than the bound of a tie, in figures of the
    /// same work.
    pub(crate) fn same(&self, one: &str, other: &str) -> bool {
        let places = self.place(one).zip(self.place(other));
        places.is_some_and(|(one, other)| self.quoted().same(one, other) && self.same_share(one, other))
    }

    /// Returns why more runs tell no more of two systems than their figures do; `None` if one is
    /// shown to be better, or if they are equal.
    pub(crate) fn hindrance(&self, one: &str, other: &str) -> Option<String> {
        let (one, other) = self.place(one).zip(self.place(other))?;
        let (ahead, behind) = if self.tested.beats(one, other) { (one, other) } else { (other, one) };
        let (better, worse) = (&self.systems[ahead], &self.systems[behind]);
        if self.at_beats(ahead, behind) {
            return None;
        }
        if let Some((one, other)) = better.share.zip(worse.share)
            && !self.same_share(ahead, behind)
        {
            return Some(unequal_work(one.min(other), one.max(other)));
        }
        if !self.tested.beats(ahead, behind) {
            return None;
        }
        let why = if worse.is_lower_bound {
            Why::LowerBound(vec![worse.name.clone()])
        } else if better.is_overloaded {
            Why::Disturbed(vec![better.name.clone()])
        } else {
            Why::Clock(vec![better.name.clone()])
        };
        Some(why.text())
    }

    fn same_share(&self, one: usize, other: usize) -> bool {
        let (one, other) = (self.systems[one].share, self.systems[other].share);
        is_not_less(one, other) && is_not_less(other, one)
    }

    /// True if a system has a figure that can be compared.
    pub fn has(&self, system: &str) -> bool {
        self.place(system).is_some()
    }

    /// About how many more repeats would tell who is best.
    pub fn repeats_more(&self) -> Option<u32> {
        match self.placing {
            Placing::Open { repeats_more, .. } => repeats_more,
            _ => None,
        }
    }

    fn quoted(&self) -> &RankedPoint {
        self.quoted.as_ref().unwrap_or(&self.tested)
    }

    fn place(&self, system: &str) -> Option<usize> {
        self.systems.iter().position(|contender| contender.name == system)
    }

    fn at_beats(&self, one: usize, other: usize) -> bool {
        let (better, worse) = (&self.systems[one], &self.systems[other]);
        self.tested.beats(one, other)
            && !worse.is_lower_bound
            && !better.is_overloaded
            && is_not_less(better.share, worse.share)
            && self.is_beyond_clocks(one, other)
    }

    fn is_beaten(&self, place: usize) -> bool {
        (0..self.systems.len()).any(|other| self.at_beats(other, place))
    }

    fn find_unbeaten(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.systems.len()).filter(|place| !self.is_beaten(*place)).collect();
        let Some(ahead) = self.tested.leading(&places, self.better) else { return places };
        let sign = if self.better == Better::Higher { -1.0 } else { 1.0 };
        let behind = |place: usize| {
            let difference = self.tested.difference(place, ahead).map(|found| sign * found.estimate.value);
            if place == ahead { f64::NEG_INFINITY } else { difference.unwrap_or(f64::INFINITY) }
        };
        places.sort_by(|one, other| behind(*one).total_cmp(&behind(*other)));
        places
    }

    /// True if two systems differ by more than the possible error of clocks.
    fn is_beyond_clocks(&self, one: usize, other: usize) -> bool {
        self.widened(&self.tested, one, other).is_none_or(|Interval { lo, hi }| {
            let equal = if self.tested.scale() == Scale::Ratio { 1.0 } else { 0.0 };
            hi < equal || lo > equal
        })
    }

    /// The interval of one over the other, or less the other, with what clocks may
    /// add; none where one clock measured both.
    fn widened(&self, by: &RankedPoint, one: usize, other: usize) -> Option<Interval> {
        let (blur, of_other) = (self.systems[one].blur, self.systems[other].blur);
        if blur.is_none() && of_other.is_none() {
            return None;
        }
        let unknown = Interval { lo: f64::NEG_INFINITY, hi: f64::INFINITY };
        let interval = by.difference(one, other).and_then(|difference| difference.estimate.interval);
        Some(interval.map_or(unknown, |interval| blur.widen(of_other, by.scale(), interval)))
    }

    /// True if two systems are shown to differ by less than this fraction, including the possible
    /// error of clocks.
    fn ties(&self, one: usize, other: usize, tie: f64) -> bool {
        // On a scale of differences a tie is a share of what is not known here.
        let within = |Interval { lo, hi }: Interval| {
            self.quoted().scale() == Scale::Ratio && lo >= 1.0 / (1.0 + tie) && hi <= 1.0 + tie
        };
        self.quoted().same(one, other) && self.widened(self.quoted(), one, other).is_none_or(within)
    }

    /// Returns who is best of these systems, by all runs that may be compared and by those
    /// that may be quoted: `tie` is the fraction below which systems are the same.
    fn of(
        systems: Vec<Contender>,
        (tested, quoted): (RankedPoint, Option<RankedPoint>),
        better: Better,
        tie: f64,
    ) -> Ranked {
        let placing = Placing::Open { why: Why::TooFew, repeats_more: None };
        let mut ranked = Ranked { placing, systems, tested, quoted, better, unbeaten: Vec::new() };
        ranked.unbeaten = ranked.find_unbeaten();
        ranked.placing = ranked.placing(tie);
        ranked
    }

    fn placing(&self, tie: f64) -> Placing {
        let names = |places: &[usize]| places.iter().map(|place| self.systems[*place].name.clone()).collect();
        let open = |why| Placing::Open { why, repeats_more: None };
        if self.systems.len() < 2 {
            return open(Why::TooFew);
        }
        let unbeaten = &self.unbeaten;
        let shares = || unbeaten.iter().filter_map(|place| self.systems[*place].share);
        let (least, most) = (shares().fold(f64::INFINITY, f64::min), shares().fold(0.0, f64::max));
        if !is_not_less(Some(least), Some(most)) && shares().next().is_some() {
            return Placing::Unranked { least, most };
        }
        let Some((ahead, rivals)) = unbeaten.split_first() else { return open(Why::Noise(Vec::new())) };
        let ahead = *ahead;
        if rivals.is_empty() {
            return Placing::Winner(self.systems[ahead].name.clone());
        }
        let bounded: Vec<usize> = rivals.iter().copied().filter(|place| self.systems[*place].is_lower_bound).collect();
        if !bounded.is_empty() {
            return open(Why::LowerBound(names(&bounded)));
        }
        // Systems that were shown to tie at an earlier look still do, whichever looks best now.
        let ties = |one: usize| unbeaten.iter().all(|other| *other == one || self.ties(one, *other, tie));
        if !self.systems[ahead].is_lower_bound && unbeaten.iter().any(|one| ties(*one)) {
            return Placing::Tie(names(unbeaten));
        }
        if let PointOutcome::Winner(_) | PointOutcome::Tie(_) = self.tested.placing
            && self.systems.iter().any(|system| !system.blur.is_none())
        {
            return open(Why::Clock(names(rivals)));
        }
        match &self.tested.placing {
            PointOutcome::Undecided { why: UndecidedReason::Unusable(places), .. } => {
                open(Why::Unusable(names(places)))
            }
            PointOutcome::Undecided { why: UndecidedReason::TooFewBlocks(places), repeats_more } => {
                Placing::Open { why: Why::TooFewBlocks(names(places)), repeats_more: *repeats_more }
            }
            PointOutcome::Undecided { repeats_more, .. } => {
                Placing::Open { why: Why::Noise(names(rivals)), repeats_more: *repeats_more }
            }
            PointOutcome::Winner(_) | PointOutcome::Tie(_) => open(Why::Disturbed(names(rivals))),
        }
    }
}

impl Why {
    /// In words.
    pub(crate) fn text(&self) -> String {
        let names = |names: &[String]| clean(&names.join(", "), NAMES_CHARS);
        match self {
            Why::TooFew => "fewer than two systems have a figure to compare".into(),
            Why::Unusable(unusable) => format!("no reliable figure ({})", names(unusable)),
            Why::TooFewBlocks(few) => {
                format!("fewer than two repeats have both systems ({})", names(few))
            }
            Why::Noise(near) => format!("the differences are within the noise ({})", names(near)),
            Why::Disturbed(near) => format!(
                "runs are unreliable, which can show a large difference and no tie ({}): measure on a quiet machine, at a \
                 load that the systems carry",
                names(near)
            ),
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

/// Says that figures are not of the same work.
pub(crate) fn unequal_work(least: f64, most: f64) -> String {
    format!("shares delivered differ ({} to {}): these are not rates of the same work", percent(least), percent(most))
}

/// Returns whether a share is as large as another, or nearly: then the one that also delivers more
/// messages per second is better by both.
fn is_not_less(one: Option<f64>, other: Option<f64>) -> bool {
    one.zip(other).is_none_or(|(one, other)| other <= one * (1.0 + SAME_WITHIN))
}
