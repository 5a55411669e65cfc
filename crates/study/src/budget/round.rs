//! Chooses the points of the next round: each gets a repeat.

use pubmark_model::units::Ns;
use pubmark_stats::Random;

/// A point is begun only if there is time for this many repeats of it and of all that is open: with fewer hardly
/// anything is decided.
const BLOCKS_WORTH: u64 = 3;

/// The first round has all points if there is time for this many repeats of all: some statements need one run only.
const BLOCKS_OF_ALL: u64 = 2;

/// Number of repeats from which the number of further repeats can be estimated.
const BLOCKS_KNOWN: u32 = 4;

/// A point with an open question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    /// Number of the point.
    pub point: usize,
    /// Duration of one of its repeats, ns.
    pub cost_ns: Ns,
    /// Number of its repeats so far.
    pub blocks: u32,
    /// Approximate number of further repeats that would decide it; `None` if unknown.
    pub more: Option<u32>,
}

impl Candidate {
    /// Returns the time until it is decided, ns.
    fn distance_ns(&self) -> Ns {
        self.more.map_or(Ns::MAX, |more| u64::from(more).saturating_mul(self.cost_ns))
    }

    fn in_reach(&self, left_ns: Ns) -> bool {
        self.blocks < BLOCKS_KNOWN || self.distance_ns() <= left_ns
    }
}

/// Returns the points that get a repeat in the remaining time, in the order of measurement.
///
/// Takes the points that may be decided in this time, in random order; then further points of the walk, `candidates`
/// without a repeat, if they fit into the time; if there are none, those that are out of reach. The last round, which
/// does not have time for all, begins with those nearest to a decision.
pub(super) fn round(candidates: &[Candidate], left_ns: Ns, random: &mut Random) -> Vec<Candidate> {
    let (started, fresh): (Vec<Candidate>, Vec<Candidate>) =
        candidates.iter().copied().partition(|point| point.blocks > 0);
    let (mut chosen, mut far): (Vec<Candidate>, Vec<Candidate>) =
        started.into_iter().partition(|point| point.in_reach(left_ns));
    random.shuffle(&mut chosen);
    let cost_of = |points: &[Candidate]| -> Ns { points.iter().map(|point| point.cost_ns).sum() };
    let mut cost_ns = cost_of(&chosen);
    let is_first = chosen.is_empty() && far.is_empty();
    let has_room = is_first && BLOCKS_OF_ALL * cost_of(&fresh) <= left_ns;
    for point in fresh {
        let is_only = chosen.is_empty() && far.is_empty();
        if !is_only && !has_room && BLOCKS_WORTH * (cost_ns + point.cost_ns) > left_ns {
            break;
        }
        cost_ns += point.cost_ns;
        chosen.push(point);
    }
    if chosen.is_empty() {
        far.sort_by_key(Candidate::distance_ns);
        return far;
    }
    if cost_ns > left_ns {
        chosen.sort_by_key(Candidate::distance_ns);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(point: usize, blocks: u32, more: Option<u32>) -> Candidate {
        Candidate { point, cost_ns: 10, blocks, more }
    }

    fn chosen(candidates: &[Candidate], left_ns: Ns) -> Vec<usize> {
        let mut points: Vec<usize> =
            round(candidates, left_ns, &mut Random(1)).iter().map(|point| point.point).collect();
        points.sort_unstable();
        points
    }

    #[test]
    fn as_many_points_are_begun_as_leave_time_for_three_blocks() {
        let fresh: Vec<Candidate> = (0..10).map(|number| point(number, 0, None)).collect();
        assert_eq!(chosen(&fresh, 1_000).len(), 10);
        assert_eq!(chosen(&fresh, 125), [0, 1, 2, 3], "the first of the walk");
        assert_eq!(chosen(&fresh, 200).len(), 10, "two repeats of all");
        assert_eq!(chosen(&fresh, 5), [0], "one at least: whether it fits is for the run to say");
    }

    #[test]
    fn open_points_go_before_new_ones_and_new_ones_before_what_is_out_of_reach() {
        let (open, new, far) = (point(0, 2, Some(4)), point(1, 0, None), point(2, 8, Some(400)));
        assert_eq!(chosen(&[open, new, far], 100), [0, 1]);
        assert_eq!(chosen(&[open, new, far], 50), [0]);
        assert_eq!(chosen(&[far, point(3, 8, None)], 50), [2, 3], "there is nothing better to do");
        assert_eq!(chosen(&[point(4, 3, Some(400)), far], 50), [4], "nobody knows yet");
    }

    #[test]
    fn a_last_round_begins_with_what_is_nearest() {
        let open = [point(0, 6, None), point(1, 2, Some(4)), point(2, 2, Some(1)), point(3, 2, Some(2))];
        let order: Vec<usize> = round(&open, 25, &mut Random(1)).iter().map(|point| point.point).collect();
        assert_eq!(order, [2, 3, 1], "and what is out of reach waits");
    }
}
