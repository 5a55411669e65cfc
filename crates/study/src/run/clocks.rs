//! The clocks of a run's hosts: compared over the measured network before the window, about once per second of it, and
//! after it.

use crate::context::{RunError, failed};
use pubmark_host::reach::Host;
use pubmark_model::host::{ClockOffset, ClockReading};
use pubmark_model::record::ClockPair;
use pubmark_model::units::{MILLISECOND, Ns, format_time, total};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Clocks that differ by no more may be treated as one, ns: a start is announced 100 ms ahead.
const FOR_ONE: Ns = 10 * MILLISECOND;

/// Maximum number of host pairs compared with each other, beside those with the reference; the offsets of other pairs
/// are derived.
const PAIRS_MAX: usize = 64;

/// A comparison: the host that asks, and the host whose clock it reads.
type Look = (usize, usize);

/// Clock comparisons of a run. All hosts are compared with the reference, which gives the time of instants in messages.
/// Hosts that messages travel between are also compared directly, and that result takes precedence.
pub struct Clocks {
    reference: usize,
    /// By host: address at which it answers with its time.
    at: BTreeMap<usize, SocketAddr>,
    /// By comparison: offset of the second host's clock from the first one's.
    found: BTreeMap<Look, Found>,
    /// By host: offset of the time in messages from its own clock, ns; positive if ahead.
    ahead_ns: BTreeMap<usize, i64>,
    /// Comparisons that a latency depends on: they are repeated during the window and after it.
    needed: BTreeSet<Look>,
}

/// Offsets found between two clocks.
#[derive(Default)]
struct Found {
    before: ClockReading,
    within: Vec<ClockReading>,
    after: Option<ClockReading>,
}

impl Found {
    fn drift_ns(&self) -> i64 {
        self.after.map_or(0, |after| after.offset.offset_ns.saturating_sub(self.before.offset.offset_ns))
    }

    /// Returns the least distance of a sighting from the line between before and after: the distance beyond the bounds
    /// of both.
    fn off_line_ns(&self, seen: &ClockReading) -> Ns {
        let Some(after) = &self.after else { return 0 };
        let span_ns = after.at_ns.saturating_sub(self.before.at_ns).max(1);
        let part = seen.at_ns.saturating_sub(self.before.at_ns).min(span_ns) as f64 / span_ns as f64;
        let line_ns = self.before.offset.offset_ns.saturating_add((part * self.drift_ns() as f64).round() as i64);
        let open_ns = seen.offset.bound_ns.saturating_add(self.before.offset.bound_ns.max(after.offset.bound_ns));
        seen.offset.offset_ns.abs_diff(line_ns).saturating_sub(open_ns)
    }

    fn most_off_line_ns(&self) -> Ns {
        self.within.iter().map(|seen| self.off_line_ns(seen)).max().unwrap_or(0)
    }

    /// Returns the largest possible distance, within the window, of the clock from the offset found before it: at its
    /// start, or at its end with even drift between them; and the distance of each sighting off that line.
    fn bound_ns(&self) -> Ns {
        let before = self.before.offset;
        let end = self.after.map_or(0, |after| self.drift_ns().unsigned_abs().saturating_add(after.offset.bound_ns));
        let off_line = self.within.iter().filter(|seen| self.off_line_ns(seen) > 0);
        let beyond =
            off_line.map(|seen| seen.offset.offset_ns.abs_diff(before.offset_ns).saturating_add(seen.offset.bound_ns));
        before.bound_ns.max(end).max(beyond.max().unwrap_or(0))
    }
}

impl Clocks {
    /// Compares the clocks of these hosts with that of `reference`, and directly those of hosts that messages travel
    /// between.
    pub fn compare(
        hosts: &mut [Host<'_>],
        reference: usize,
        played: &[usize],
        streams: &BTreeSet<(usize, usize)>,
    ) -> Result<Clocks, RunError> {
        let (mut at, mut found) = (BTreeMap::new(), BTreeMap::new());
        for (asking, asked) in comparisons(reference, played, streams) {
            let at = match at.entry(asked) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(hosts[asked].tell_time()?),
            };
            let before = hosts[asking].compare_clock(at)?;
            found.insert((asking, asked), Found { before, ..Found::default() });
        }
        Ok(Clocks::of(reference, at, found, played, streams))
    }

    fn of(
        reference: usize,
        at: BTreeMap<usize, SocketAddr>,
        found: BTreeMap<Look, Found>,
        played: &[usize],
        streams: &BTreeSet<(usize, usize)>,
    ) -> Clocks {
        let mut clocks = Clocks { reference, at, found, ahead_ns: BTreeMap::new(), needed: BTreeSet::new() };
        for (from, to) in streams {
            let direct = clocks.direct(*from, *to).map(|(look, _)| look);
            let looks = direct.map_or_else(|| [*from, *to].map(|host| (host, reference)).to_vec(), |look| vec![look]);
            clocks.needed.extend(looks.into_iter().filter(|(asking, asked)| asking != asked));
        }
        clocks.spread(played, streams);
        clocks
    }

    /// Chooses the offset of each clock: in a group of hosts that are compared directly, the first from the reference,
    /// and the others from each other.
    fn spread(&mut self, played: &[usize], streams: &BTreeSet<(usize, usize)>) {
        let mut beside: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (from, to) in streams.iter().filter(|(from, to)| self.direct(*from, *to).is_some()) {
            beside.entry(*from).or_default().push(*to);
            beside.entry(*to).or_default().push(*from);
        }
        for first in [self.reference].iter().chain(played) {
            if self.ahead_ns.contains_key(first) {
                continue;
            }
            let by_reference = self.found.get(&(*first, self.reference));
            let ahead_ns = by_reference.map_or(0, |found| found.before.offset.offset_ns);
            self.ahead_ns.insert(*first, ahead_ns);
            let mut next = vec![*first];
            while let Some(host) = next.pop() {
                for other in beside.get(&host).into_iter().flatten() {
                    let Some(offset_ns) = self.direct_ns(*other, host) else { continue };
                    if !self.ahead_ns.contains_key(other) {
                        self.ahead_ns.insert(*other, self.ahead_ns(host).saturating_add(offset_ns));
                        next.push(*other);
                    }
                }
            }
        }
    }

    /// Returns the direct comparison of two clocks, if there is one, and whether `one` is the host that asks.
    fn direct(&self, one: usize, other: usize) -> Option<(Look, bool)> {
        let looks = [((one, other), true), ((other, one), false)];
        looks.into_iter().find(|(look, _)| self.found.contains_key(look))
    }

    /// Returns the offset of the other's clock from this one's by their direct comparison, ns.
    fn direct_ns(&self, one: usize, other: usize) -> Option<i64> {
        let (look, is_first) = self.direct(one, other)?;
        let offset_ns = self.found[&look].before.offset.offset_ns;
        Some(if is_first { offset_ns } else { -offset_ns })
    }

    /// Makes the hosts compare their clocks during a window.
    pub fn watch(&self, hosts: &mut [Host<'_>], from_ns: Ns, length_ns: Option<Ns>) -> Result<(), RunError> {
        for (asking, asked) in &self.needed {
            hosts[*asking].watch_clock(self.at[asked], from_ns, length_ns)?;
        }
        Ok(())
    }

    /// Sets each host's clock for the coordinator to the time that messages use: the window begins and ends on all
    /// hosts as it does for their messages. If agents do not subtract clock offsets, all clocks are treated as one.
    ///
    /// # Errors
    /// If they are too far apart for that.
    pub fn align(&self, hosts: &mut [Host<'_>], taken_out: bool) -> Result<(), RunError> {
        let reference = hosts[self.reference].clock();
        for host in self.ahead_ns.keys().copied().filter(|host| *host != self.reference) {
            let ahead_ns = self.ahead_ns(host);
            if !taken_out && ahead_ns.unsigned_abs() > FOR_ONE {
                return Err(failed(format!(
                    "the clocks of hosts {} and {} are {} apart, and not all agents can take that out of latencies",
                    hosts[self.reference].spec.name,
                    hosts[host].spec.name,
                    format_time(ahead_ns.unsigned_abs())
                )));
            }
            let taken_out_ns = if taken_out { ahead_ns } else { 0 };
            let offset_ns = reference.offset_ns.saturating_sub(taken_out_ns);
            let bound_ns = reference.bound_ns.saturating_add(self.bound_ns(host, self.reference));
            hosts[host].set_clock(ClockOffset { offset_ns, bound_ns });
        }
        Ok(())
    }

    /// Compares the clocks once more, and collects the comparisons made in between.
    pub fn compare_again(&mut self, hosts: &mut [Host<'_>]) -> Result<(), RunError> {
        for look in &self.needed {
            let (asking, at) = (look.0, self.at[&look.1]);
            let Some(found) = self.found.get_mut(look) else { continue };
            found.within = hosts[asking].clock_seen(at)?;
            found.after = Some(hosts[asking].compare_clock(at)?);
        }
        Ok(())
    }

    /// Returns the offset of the time in messages from a host's own clock, ns.
    pub fn ahead_ns(&self, host: usize) -> i64 {
        self.ahead_ns.get(&host).copied().unwrap_or(0)
    }

    /// Returns the offset between two clocks that messages assume, ns: the second one's clock minus the first one's.
    fn applied_ns(&self, from: usize, to: usize) -> i64 {
        self.ahead_ns(from).saturating_sub(self.ahead_ns(to))
    }

    /// Returns offset and drift of two clocks, and the error bound of latencies between them.
    pub fn pair(&self, from: usize, to: usize, taken_out: bool) -> ClockPair {
        let applied_ns = self.applied_ns(from, to);
        let direct = self.direct(from, to).map(|(look, is_first)| (&self.found[&look], is_first));
        // The reference has no comparison of its own.
        let [one, other] = [from, to].map(|host| self.found.get(&(host, self.reference)));
        let ends: Vec<&Found> = match direct {
            Some((found, _)) => vec![found],
            None => one.into_iter().chain(other).collect(),
        };
        let drift_ns = match direct {
            Some((found, true)) => found.drift_ns(),
            Some((found, false)) => found.drift_ns().saturating_neg(),
            None => one.map_or(0, Found::drift_ns).saturating_sub(other.map_or(0, Found::drift_ns)),
        };
        let offset_ns = self.direct_ns(from, to).unwrap_or(applied_ns);
        let left = if taken_out { 0 } else { offset_ns.unsigned_abs() };
        ClockPair {
            offset_ns,
            drift_ns,
            bound_ns: left.saturating_add(self.bound_ns(from, to)),
            seen_within: ends.iter().map(|found| found.within.len() as u32).min(),
            off_line_ns: total(ends.iter().map(|found| found.most_off_line_ns())),
            taken_out,
            derived: direct.is_none(),
            ..ClockPair::default()
        }
    }

    /// Returns the bound on the difference between the true offset and the one that messages assume: by their direct
    /// comparison, else by those with the reference.
    fn bound_ns(&self, from: usize, to: usize) -> Ns {
        if let (Some((look, _)), Some(offset_ns)) = (self.direct(from, to), self.direct_ns(from, to)) {
            return self.found[&look].bound_ns().saturating_add(self.applied_ns(from, to).abs_diff(offset_ns));
        }
        let by_reference = |host: usize| {
            let found = self.found.get(&(host, self.reference))?;
            Some(found.bound_ns().saturating_add(self.ahead_ns(host).abs_diff(found.before.offset.offset_ns)))
        };
        total([from, to].into_iter().filter_map(by_reference))
    }
}

/// Returns the comparisons to make: all hosts with the reference, and of hosts that messages travel between the
/// receiver with the sender.
fn comparisons(reference: usize, played: &[usize], streams: &BTreeSet<(usize, usize)>) -> Vec<Look> {
    let mut looks: Vec<Look> =
        played.iter().filter(|host| **host != reference).map(|host| (*host, reference)).collect();
    let known: BTreeSet<Look> = looks.iter().copied().collect();
    let mut between: Vec<Look> = Vec::new();
    for (from, to) in streams {
        let is_there = |look: &Look| known.contains(look) || between.contains(look);
        if between.len() < PAIRS_MAX && !is_there(&(*to, *from)) && !is_there(&(*from, *to)) {
            between.push((*to, *from));
        }
    }
    looks.append(&mut between);
    looks
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::units::SECOND;
    use pubmark_stats::Random;

    fn seen(at_ns: Ns, offset_ns: i64, bound_ns: Ns) -> ClockReading {
        ClockReading { at_ns, offset: ClockOffset { offset_ns, bound_ns } }
    }

    fn found(before: ClockReading, within: Vec<ClockReading>, after: ClockReading) -> Found {
        Found { before, within, after: Some(after) }
    }

    /// Returns clocks with these comparisons, with 0 as the reference and streams between these hosts.
    fn clocks(found: impl IntoIterator<Item = (Look, Found)>, streams: &[(usize, usize)]) -> Clocks {
        let found: BTreeMap<Look, Found> = found.into_iter().collect();
        let played: BTreeSet<usize> = found.keys().flat_map(|(asking, asked)| [*asking, *asked]).collect();
        let played: Vec<usize> = played.into_iter().collect();
        Clocks::of(0, BTreeMap::new(), found, &played, &streams.iter().copied().collect())
    }

    /// Returns the clocks of one host beside the reference.
    fn of(found: Found) -> Clocks {
        clocks([((1, 0), found)], &[(0, 1)])
    }

    fn still(offset_ns: i64, bound_ns: Ns) -> Found {
        found(seen(0, offset_ns, bound_ns), Vec::new(), seen(100, offset_ns, bound_ns))
    }

    #[test]
    fn a_latency_is_as_good_as_what_was_known_at_both_ends_of_the_window() {
        // The reference is an hour ahead of host 1, and 50 ns more at the end.
        let hour = found(seen(0, 3_600_000_000_000, 20), Vec::new(), seen(100, 3_600_000_000_050, 30));
        let near = found(seen(0, -1_000, 25), Vec::new(), seen(100, -1_010, 5));
        let clocks = clocks([((1, 0), hour), ((2, 0), near)], &[(0, 1), (2, 0), (1, 2)]);
        let pair = clocks.pair(0, 1, true);
        // The receiver's clock is behind the sender's.
        assert_eq!((pair.offset_ns, pair.drift_ns, pair.bound_ns), (-3_600_000_000_000, -50, 80));
        assert_eq!(clocks.pair(2, 0, true).bound_ns, 25, "what is known at the beginning is the worse");
        let derived = clocks.pair(1, 2, true);
        assert_eq!((derived.bound_ns, derived.derived), (80 + 25, true), "both are known by the reference alone");
        assert_eq!(clocks.pair(2, 0, false).bound_ns, 25 + 1_000, "what is not taken out is in the latency");
        assert_eq!([0, 1, 2].map(|host| clocks.ahead_ns(host)), [0, 3_600_000_000_000, -1_000]);
    }

    /// The paths to the reference are long and asymmetric, the path between the two is short.
    #[test]
    fn two_hosts_that_were_compared_with_each_other_are_known_by_that_alone() {
        // In truth 1 is 300 ahead of 0 and 2 is 500 ahead of it.
        let found = [((1, 0), still(-250, 90)), ((2, 0), still(-590, 95)), ((2, 1), still(-201, 4))];
        let clocks = clocks(found, &[(1, 2)]);
        let pair = clocks.pair(1, 2, true);
        assert_eq!((pair.offset_ns, pair.bound_ns, pair.derived), (201, 4, false));
        assert_eq!(clocks.pair(2, 1, true).offset_ns, -201);
        assert_eq!(clocks.applied_ns(1, 2), 201, "and so it is taken out of messages");
        assert_eq!(clocks.needed, BTreeSet::from([(2, 1)]), "no latency hangs on the reference");
        // A start there by the coordinator's order is as exact as both.
        assert_eq!((clocks.bound_ns(1, 0), clocks.bound_ns(2, 0)), (90, 95 + 590 - 451));
    }

    /// Three hosts that each receive from the two others: one offset per host cannot be right for all three pairs, and
    /// the bound contains the remainder.
    #[test]
    fn what_one_offset_a_host_cannot_say_of_each_pair_is_in_the_bound() {
        let found = [((1, 0), still(10, 5)), ((2, 0), still(20, 5)), ((2, 1), still(16, 5))];
        let clocks = clocks(found, &[(0, 1), (0, 2), (1, 2)]);
        let bounds = [(0, 1), (0, 2), (1, 2)].map(|(from, to)| clocks.pair(from, to, true).bound_ns);
        assert_eq!(bounds.iter().sum::<Ns>(), 3 * 5 + 6, "the ways around are 6 apart: {bounds:?}");
        assert_eq!([(0, 1), (0, 2), (1, 2)].map(|(from, to)| clocks.pair(from, to, true).offset_ns), [-10, -20, -16]);
    }

    #[test]
    fn each_two_hosts_with_a_stream_are_compared_and_no_more_than_so_many() {
        let both: BTreeSet<(usize, usize)> = [(0, 1), (1, 2), (2, 1), (3, 2)].into();
        assert_eq!(comparisons(0, &[0, 1, 2, 3], &both), [(1, 0), (2, 0), (3, 0), (2, 1), (2, 3)]);
        let all: BTreeSet<(usize, usize)> = (1..20).flat_map(|from| (20..40).map(move |to| (from, to))).collect();
        let played: Vec<usize> = (0..40).collect();
        assert_eq!(comparisons(0, &played, &all).len(), 39 + PAIRS_MAX);
    }

    /// Before the window the clock was 1,000 ns ahead, and after it 1,200.
    #[test]
    fn what_is_seen_within_the_window_supports_the_line_or_widens_the_bound() {
        let at = |within: &[ClockReading]| {
            let clocks = of(found(seen(0, 1_000, 20), within.to_vec(), seen(1_000, 1_200, 30)));
            let pair = clocks.pair(0, 1, true);
            (pair.bound_ns, pair.off_line_ns, pair.seen_within)
        };
        assert_eq!(at(&[]), (230, 0, Some(0)), "the drift and what the end leaves open");
        let on_the_line = [seen(100, 1_020, 5), seen(500, 1_100, 5), seen(900, 1_180, 5)];
        assert_eq!(at(&on_the_line), (230, 0, Some(3)));
        assert_eq!(at(&[seen(500, 5_000, 4_000)]), (230, 0, Some(1)), "a long round trip says next to nothing");
        assert_eq!(at(&[seen(500, 1_135, 5)]), (230, 0, Some(1)), "the line itself is known to 30 ns");
        let jumped = [seen(250, 1_050, 5), seen(500, 1_700, 10), seen(750, 1_150, 5)];
        assert_eq!(at(&jumped), (710, 560, Some(3)), "there and back: 600 off the line, of which 40 are open");
        let back = [seen(500, 300, 10)];
        assert_eq!(at(&back), (710, 760, Some(1)));
    }

    fn below(random: &mut Random, end: u64) -> u64 {
        random.bits() % end
    }

    /// Returns the best of many exchanges of a clock from this instant on with one that shows `theirs`. Either
    /// direction takes its time and, by chance, longer.
    fn compared(
        random: &mut Random,
        times: u64,
        from_ns: Ns,
        ways_ns: [u64; 2],
        theirs: impl Fn(Ns) -> Ns,
    ) -> ClockReading {
        let mut asked = from_ns;
        let mut exchange = || {
            let [there, back] = ways_ns.map(|least| {
                let most = 1 + below(random, 20 * least);
                least + below(random, most)
            });
            let offset = ClockOffset::of_exchange(asked, theirs(asked + there), asked + there + back);
            asked += there + back;
            ClockReading { at_ns: asked, offset }
        };
        (0..times).map(|_| exchange()).min_by_key(|seen| seen.offset.bound_ns).unwrap()
    }

    /// Clocks drift by up to 100 parts per million, over paths of which one direction takes up to fifty times as long
    /// as the other: the offset subtracted from a message of the window is never further from the truth than the bound.
    #[test]
    fn the_truth_lies_within_the_bound_whatever_clocks_and_ways_do() {
        let mut random = Random(7);
        let mut nearest = f64::INFINITY;
        for play in 0..100 {
            let ahead_s = below(&mut random, 7_200) as i64 - 3_600;
            let drift_ppm = below(&mut random, 201) as i64 - 100;
            let base = 10_000 * SECOND;
            let theirs = |ours: Ns| {
                let drifted = (ours - base) as i64 * drift_ppm / 1_000_000;
                ours.saturating_add_signed(ahead_s * SECOND as i64 + drifted)
            };
            let ways_ns = [0, 1].map(|_| 5_000 + below(&mut random, 245_000));
            let window_ns = (1 + below(&mut random, 60)) * SECOND;
            let before = compared(&mut random, 200, base, ways_ns, theirs);
            let from_ns = base + SECOND;
            let middle = |second| from_ns + second * SECOND + SECOND / 2;
            let within = (0..window_ns / SECOND)
                .map(|second| compared(&mut random, 1, middle(second), ways_ns, theirs))
                .collect();
            let after = compared(&mut random, 200, from_ns + window_ns + SECOND, ways_ns, theirs);
            let clocks = of(found(before, within, after));
            let pair = clocks.pair(1, 0, true);
            assert_eq!(pair.off_line_ns, 0, "{play}: clocks that drift evenly are on their line");
            for part in 0..=10 {
                let ours = from_ns + window_ns * part / 10;
                let error = (theirs(ours) as i64 - ours as i64 - before.offset.offset_ns).unsigned_abs();
                assert!(error <= pair.bound_ns, "{play}: {error} ns beyond {pair:?}");
                nearest = nearest.min((pair.bound_ns - error) as f64 / pair.bound_ns as f64);
            }
        }
        assert!(nearest < 0.2, "the bound is no wider than it has to be: {nearest}");
    }

    /// Clocks jump in mid-window by more than the paths' uncertainty: each jump is seen, and at each instant of a
    /// comparison the truth lies within the bound.
    #[test]
    fn a_clock_that_jumps_within_the_window_and_back_is_seen() {
        let mut random = Random(11);
        for play in 0..100 {
            let jump_ns = (50 + below(&mut random, 10_000)) as i64 * MILLISECOND as i64;
            let base = 10_000 * SECOND;
            let from_ns = base + SECOND;
            let window_ns = (5 + below(&mut random, 56)) * SECOND;
            let begins = from_ns + below(&mut random, window_ns / 2);
            let jumped = begins..begins + SECOND + below(&mut random, window_ns / 2 - SECOND);
            let theirs = |ours: Ns| ours.saturating_add_signed(if jumped.contains(&ours) { jump_ns } else { 0 });
            let ways_ns = [0, 1].map(|_| 5_000 + below(&mut random, 245_000));
            let before = compared(&mut random, 200, base, ways_ns, theirs);
            let looks: Vec<Ns> = (0..window_ns / SECOND).map(|second| from_ns + second * SECOND + SECOND / 2).collect();
            let within: Vec<ClockReading> =
                looks.iter().map(|at| compared(&mut random, 1, *at, ways_ns, theirs)).collect();
            let after = compared(&mut random, 200, from_ns + window_ns + SECOND, ways_ns, theirs);
            let pair = of(found(before, within, after)).pair(1, 0, true);
            // One direction takes 5.25 ms at most.
            let least = jump_ns.unsigned_abs() - 12 * MILLISECOND;
            assert!(pair.off_line_ns >= least && pair.off_line_ns <= jump_ns.unsigned_abs(), "{play}: {pair:?}");
            let error = |at: &Ns| (theirs(*at) as i64 - *at as i64 - before.offset.offset_ns).unsigned_abs();
            assert!(looks.iter().all(|at| error(at) <= pair.bound_ns), "{play}: {pair:?}");
        }
    }

    /// Two equal clocks, and a path whose way there takes 90 µs longer than the way back: that is indistinguishable
    /// from clocks that are 45 µs apart.
    #[test]
    fn a_way_that_always_takes_longer_is_not_seen_and_the_bound_holds_it() {
        let found = ClockOffset::of_exchange(0, 100_000, 110_000);
        assert_eq!(found, ClockOffset { offset_ns: 45_000, bound_ns: 55_000 });
        assert!(found.offset_ns.unsigned_abs() <= found.bound_ns);
    }
}
