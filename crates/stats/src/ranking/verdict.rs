//! Derives the outcome of a point from pairs that are shown to be different or the same.

use super::family::Shown;
use super::more;
use super::noise::Noise;
use super::pairs::Pairs;
use super::results::{PointOutcome, RankedPoint, SystemOutcome, UndecidedReason};
use super::table::{BLOCKS_MIN, Looks, PointInput};
use crate::direction::Better;

/// Combines the results of a point.
pub(super) fn point(
    point: &PointInput,
    pairs: Pairs,
    (shown, upper): (Shown, Vec<f64>),
    (noise, looks): (Noise, Looks),
) -> RankedPoint {
    let systems = pairs.systems;
    let (mut beats, mut same) = (vec![false; systems * systems], vec![false; systems * systems]);
    for (place, pair) in pairs.list.iter().enumerate() {
        let first_is_better = (shown.mean[place] < 0.0) == (point.better == Better::Lower);
        let (better, worse) = if first_is_better { (pair.a, pair.b) } else { (pair.b, pair.a) };
        beats[better * systems + worse] |= shown.different[place];
        same[pair.a * systems + pair.b] |= shown.same[place];
        same[pair.b * systems + pair.a] |= shown.same[place];
    }
    close(&mut beats, systems);
    let mut ranked = RankedPoint {
        placing: PointOutcome::Undecided { why: UndecidedReason::TooFewSystems, repeats_more: None },
        standings: vec![SystemOutcome::Open; systems],
        pairs,
        noise,
        systems,
        beats,
        same,
        upper,
    };
    ranked.place(point.better, &shown, looks);
    ranked
}

/// Adds what follows: if one system is better than a second, and that one than a third, the first
/// is better than the third.
fn close(beats: &mut [bool], systems: usize) {
    for through in 0..systems {
        for better in 0..systems {
            for worse in 0..systems {
                if better != worse && beats[better * systems + through] && beats[through * systems + worse] {
                    beats[better * systems + worse] = true;
                }
            }
        }
    }
}

impl RankedPoint {
    fn place(&mut self, better: Better, shown: &Shown, looks: Looks) {
        if self.systems < 2 {
            return;
        }
        let beaten = |system: usize| (0..self.systems).any(|other| self.beats[other * self.systems + system]);
        let unbeaten: Vec<usize> = (0..self.systems).filter(|system| !beaten(*system)).collect();
        let Some(ahead) = self.leading(&unbeaten, better) else { return };
        // A tie that was shown at an earlier look still holds, whichever system appears best now.
        let ties = |one: &usize| unbeaten.iter().all(|other| other == one || self.same(*one, *other));
        let ahead = if looks == Looks::Once || ties(&ahead) {
            ahead
        } else {
            unbeaten.iter().copied().find(ties).unwrap_or(ahead)
        };
        let rivals: Vec<usize> = unbeaten.iter().copied().filter(|rival| *rival != ahead).collect();
        let standings = (0..self.systems).map(|system| {
            if system == ahead {
                SystemOutcome::Ahead
            } else if !unbeaten.contains(&system) {
                SystemOutcome::Behind
            } else if self.same(ahead, system) {
                SystemOutcome::Same
            } else {
                SystemOutcome::Open
            }
        });
        self.standings = standings.collect();
        let open: Vec<usize> =
            rivals.iter().copied().filter(|rival| self.standings[*rival] == SystemOutcome::Open).collect();
        self.placing = if rivals.is_empty() {
            PointOutcome::Winner(ahead)
        } else if open.is_empty() {
            PointOutcome::Tie(std::iter::once(ahead).chain(self.by_closeness(ahead, rivals)).collect())
        } else {
            let repeats_more = more::repeats(&self.pairs, (&self.noise, looks), shown, ahead, &open);
            PointOutcome::Undecided { why: self.why(ahead, open), repeats_more }
        };
    }

    fn why(&self, ahead: usize, open: Vec<usize>) -> UndecidedReason {
        if !self.pairs.unusable.is_empty() {
            return UndecidedReason::Unusable(self.pairs.unusable.clone());
        }
        let few = |rival: &usize| self.pairs.between(ahead, *rival).is_none_or(|(pair, _)| pair.blocks < BLOCKS_MIN);
        let short: Vec<usize> = open.iter().copied().filter(few).collect();
        if short.is_empty() { UndecidedReason::Noise(open) } else { UndecidedReason::TooFewBlocks(short) }
    }

    /// Returns the system that appears best of these: by the mean of its differences to the others,
    /// over the blocks that it shares with each. `None` if there are none.
    pub fn leading(&self, candidates: &[usize], better: Better) -> Option<usize> {
        let sign = if better == Better::Lower { 1.0 } else { -1.0 };
        let score = |system: usize| {
            let differences = candidates.iter().filter_map(|other| self.pairs.between(system, *other));
            let (sum, count) =
                differences.fold((0.0, 0), |(sum, count), (pair, towards)| (sum + towards * pair.mean, count + 1));
            if count == 0 { f64::INFINITY } else { sign * sum / f64::from(count) }
        };
        candidates.iter().copied().min_by(|one, other| score(*one).total_cmp(&score(*other)))
    }

    fn by_closeness(&self, ahead: usize, mut rivals: Vec<usize>) -> Vec<usize> {
        let distance =
            |rival: &usize| self.pairs.between(ahead, *rival).map_or(f64::INFINITY, |(pair, _)| pair.mean.abs());
        rivals.sort_by(|one, other| distance(one).total_cmp(&distance(other)));
        rivals
    }
}
