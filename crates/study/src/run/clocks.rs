//! The clocks of the hosts of a run: compared over the network that is measured,
//! before the window and after it.

use crate::context::{RunError, failed};
use pubmark_host::reach::Host;
use pubmark_model::host::ClockOffset;
use pubmark_model::record::ClockPair;
use pubmark_model::units::{MILLISECOND, Ns, format_time};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Clocks that differ by no more may be taken for one, ns: a start is told 100 ms ahead.
const FOR_ONE: Ns = 10 * MILLISECOND;

/// One host's clock is everybody's: the others are compared with it, directly.
pub struct Clocks {
    reference: usize,
    at: SocketAddr,
    /// By host: what the reference's clock is ahead of its own, before and after.
    found: BTreeMap<usize, (ClockOffset, Option<ClockOffset>)>,
}

impl Clocks {
    /// Compares the clocks of these hosts with that of `reference`.
    pub fn compare(hosts: &mut [Host<'_>], reference: usize, played: &[usize]) -> Result<Clocks, RunError> {
        let at = hosts[reference].tell_time()?;
        let mut found = BTreeMap::new();
        for host in played.iter().filter(|host| **host != reference) {
            found.insert(*host, (hosts[*host].compare_clock(at)?, None));
        }
        Ok(Clocks { reference, at, found })
    }

    /// Has the coordinator mean by an instant what messages mean by it: a window
    /// begins and ends for all hosts where it does for their messages. Where agents do
    /// not take out what clocks differ by, all are taken for one.
    ///
    /// # Errors
    /// Where they are too far apart for that.
    pub fn align(&self, hosts: &mut [Host<'_>], taken_out: bool) -> Result<(), RunError> {
        let reference = hosts[self.reference].clock();
        for host in self.found.keys().copied() {
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
            let offset_ns = reference.offset_ns - taken_out_ns;
            hosts[host].set_clock(ClockOffset { offset_ns, bound_ns: reference.bound_ns + self.bound_ns(host) });
        }
        Ok(())
    }

    /// Compares them once more.
    pub fn compare_again(&mut self, hosts: &mut [Host<'_>]) -> Result<(), RunError> {
        for (host, (_, after)) in &mut self.found {
            *after = Some(hosts[*host].compare_clock(self.at)?);
        }
        Ok(())
    }

    /// What everybody's clock is ahead of a host's own, ns.
    pub fn ahead_ns(&self, host: usize) -> i64 {
        self.found.get(&host).map_or(0, |(before, _)| before.offset_ns)
    }

    /// Offset of two clocks, drift, and what latencies between them may be wrong by.
    pub fn pair(&self, from: usize, to: usize, taken_out: bool) -> ClockPair {
        let offset_ns = self.ahead_ns(from) - self.ahead_ns(to);
        let drift_ns = self.drift_ns(from) - self.drift_ns(to);
        let left = if taken_out { 0 } else { offset_ns.unsigned_abs() };
        let bound_ns = left + self.bound_ns(from) + self.bound_ns(to);
        ClockPair { offset_ns, drift_ns, bound_ns, taken_out, ..ClockPair::default() }
    }

    fn drift_ns(&self, host: usize) -> i64 {
        let found = self.found.get(&host);
        found.map_or(0, |(before, after)| after.map_or(0, |after| after.offset_ns - before.offset_ns))
    }

    /// How far a host's clock may have been from what was found before the window, at
    /// its beginning or its end: between them clocks drift evenly.
    fn bound_ns(&self, host: usize) -> Ns {
        let Some((before, after)) = self.found.get(&host).filter(|_| host != self.reference) else { return 0 };
        let end = after.map_or(0, |after| self.drift_ns(host).unsigned_abs() + after.bound_ns);
        before.bound_ns.max(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::units::SECOND;
    use pubmark_stats::Random;

    fn clocks() -> Clocks {
        let offset = |offset_ns, bound_ns| ClockOffset { offset_ns, bound_ns };
        let found = [
            // The reference is an hour ahead of host 1, and 50 ns more in the end.
            (1, (offset(3_600_000_000_000, 20), Some(offset(3_600_000_000_050, 30)))),
            (2, (offset(-1_000, 25), Some(offset(-1_010, 5)))),
        ];
        Clocks { reference: 0, at: "127.0.0.1:1".parse().unwrap(), found: found.into() }
    }

    #[test]
    fn a_latency_is_as_good_as_what_was_known_at_both_ends_of_the_window() {
        let clocks = clocks();
        let pair = clocks.pair(0, 1, true);
        // The receiver's clock is behind the sender's.
        assert_eq!((pair.offset_ns, pair.drift_ns, pair.bound_ns), (-3_600_000_000_000, -50, 80));
        assert_eq!(clocks.pair(2, 0, true).bound_ns, 25, "what is known at the beginning is the worse");
        assert_eq!(clocks.pair(1, 2, true).bound_ns, 80 + 25, "both are known by the reference alone");
        assert_eq!(clocks.pair(2, 0, false).bound_ns, 25 + 1_000, "what is not taken out is in the latency");
        assert_eq!([0, 1, 2].map(|host| clocks.ahead_ns(host)), [0, 3_600_000_000_000, -1_000]);
    }

    fn below(random: &mut Random, end: u64) -> u64 {
        random.bits() % end
    }

    /// Of many exchanges, on a clock of our own from this instant on, with one that
    /// `theirs` tells: the best. Either way takes its time and, by chance, longer.
    fn compared(random: &mut Random, from_ns: Ns, ways_ns: [u64; 2], theirs: impl Fn(Ns) -> Ns) -> ClockOffset {
        let mut asked = from_ns;
        let mut exchange = || {
            let [there, back] = ways_ns.map(|least| {
                let most = 1 + below(random, 20 * least);
                least + below(random, most)
            });
            let offset = ClockOffset::of_exchange(asked, theirs(asked + there), asked + there + back);
            asked += there + back;
            offset
        };
        (0..200).map(|_| exchange()).min_by_key(|offset| offset.bound_ns).unwrap()
    }

    /// Clocks that drift by up to 100 parts in a million, over ways of which one takes
    /// up to fifty times as long as the other: what is taken out of a message of the
    /// window is never further from the truth than the bound.
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
            let before = compared(&mut random, base, ways_ns, theirs);
            let from_ns = base + SECOND;
            let after = compared(&mut random, from_ns + window_ns + SECOND, ways_ns, theirs);
            let at = "127.0.0.1:1".parse().unwrap();
            let clocks = Clocks { reference: 0, at, found: [(1, (before, Some(after)))].into() };
            let pair = clocks.pair(1, 0, true);
            for part in 0..=10 {
                let ours = from_ns + window_ns * part / 10;
                let error = (theirs(ours) as i64 - ours as i64 - before.offset_ns).unsigned_abs();
                assert!(error <= pair.bound_ns, "{play}: {error} ns beyond {pair:?}");
                nearest = nearest.min((pair.bound_ns - error) as f64 / pair.bound_ns as f64);
            }
        }
        assert!(nearest < 0.2, "the bound is no wider than it has to be: {nearest}");
    }

    /// Two clocks that are one, and a way there that takes 90 µs longer than the way
    /// back: that looks like clocks that are 45 µs apart, and cannot look otherwise.
    #[test]
    fn a_way_that_always_takes_longer_is_not_seen_and_the_bound_holds_it() {
        let found = ClockOffset::of_exchange(0, 100_000, 110_000);
        assert_eq!(found, ClockOffset { offset_ns: 45_000, bound_ns: 55_000 });
        assert!(found.offset_ns.unsigned_abs() <= found.bound_ns);
    }
}
