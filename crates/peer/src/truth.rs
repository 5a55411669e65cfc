//! Correct figures of a run: a pure function of script and schedule, written independently of the peer's
//! implementation.

use crate::script::PeerScript;
use pubmark_model::units::Ns;
use std::collections::BTreeMap;

/// A message of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Number of its publisher.
    pub publisher: u32,
    /// Its sequence number.
    pub sequence: u32,
    /// Due time, ns from the origin: the time of message 0 of publisher 0.
    pub at_ns: Ns,
    /// Generator delay, ns.
    pub lag_ns: Ns,
}

impl Due {
    /// Returns the time of sending, ns from the origin.
    fn sent_ns(&self) -> Ns {
        self.at_ns + self.lag_ns
    }
}

/// Correct figures of a subscriber that receives all messages, copies counted once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Messages of the window.
    pub offered: u64,
    /// Latencies of those that arrive, without generator delay, ascending, ns.
    pub latencies_ns: Vec<Ns>,
    /// Refused, and so neither acknowledged nor lost.
    pub refused: u64,
    /// Never passed on, acknowledged or not.
    pub lost: u64,
    /// Acknowledged ones among the lost.
    pub acked_lost: u64,
    /// Passed on twice.
    pub duplicated: u64,
    /// Passed on damaged.
    pub corrupted: u64,
}

impl Truth {
    /// Returns the smallest latency at or below which this share of them lies, ns.
    pub fn quantile(&self, share: f64) -> Ns {
        let count = self.latencies_ns.len();
        let rank = (share * count as f64 - 1e-9).ceil().clamp(1.0, count.max(1) as f64) as usize;
        self.latencies_ns.get(rank - 1).copied().unwrap_or_default()
    }
}

/// Returns the correct figures of the messages that are due in the window `from_ns` to `to_ns` (not included).
/// `schedule` must also hold all earlier messages, in the order of each publisher. Stalls of single subscribers are
/// ignored, and `delay` or `service` must be set: without them the script sets no lower bound of latency.
pub fn truth(script: &PeerScript, schedule: impl IntoIterator<Item = Due>, from_ns: Ns, to_ns: Ns) -> Truth {
    let mut truth = Truth::default();
    let mut last: BTreeMap<u32, Ns> = BTreeMap::new();
    // The message held back, and its own release.
    let mut held: BTreeMap<u32, (Due, Ns)> = BTreeMap::new();
    let inside = |at_ns: Ns| (from_ns..to_ns).contains(&at_ns);
    let mut arrivals: Vec<(Due, Ns)> = Vec::new();
    let mut schedule: Vec<Due> = schedule.into_iter().collect();
    if script.service.is_some() {
        // The first to come is served first.
        schedule.sort_by_key(|due| (due.sent_ns(), due.publisher));
    }
    let mut served_ns = 0;
    for due in schedule {
        let Due { publisher, sequence, at_ns, .. } = due;
        let one = u64::from(inside(at_ns));
        truth.offered += one;
        if script.refuse.meet(publisher, sequence) {
            truth.refused += one;
            continue;
        }
        let swallowed = script.swallow.meet(publisher, sequence);
        if script.lose.meet(publisher, sequence) || swallowed {
            truth.lost += one;
            truth.acked_lost += if script.lose.meet(publisher, sequence) { 0 } else { one };
            continue;
        }
        truth.duplicated += if script.duplicate.meet(publisher, sequence) { one } else { 0 };
        truth.corrupted += if script.corrupt.meets(publisher, sequence) { one } else { 0 };
        let mut release = due.sent_ns() + script.delay.as_ref().map_or(0, |delay| delay.of(publisher, sequence));
        if script.ordered {
            release = release.max(last.get(&publisher).copied().unwrap_or_default());
        }
        if script.service.is_some() {
            release = release.max(served_ns) + script.service_ns();
            served_ns = release;
        }
        release = script.stalled_until(release).unwrap_or(release);
        let latest = last.entry(publisher).or_default();
        *latest = (*latest).max(release);
        if script.reorder.meet(publisher, sequence) && !held.contains_key(&publisher) {
            held.insert(publisher, (due, release));
            continue;
        }
        arrivals.push((due, release));
        if let Some((earlier, own)) = held.remove(&publisher) {
            arrivals.push((earlier, own.max(release)));
        }
    }
    arrivals.extend(held.into_values());
    let measured = arrivals.into_iter().filter(|(due, _)| inside(due.at_ns));
    truth.latencies_ns = measured.map(|(due, release)| release - due.sent_ns()).collect();
    truth.latencies_ns.sort_unstable();
    truth
}

/// Returns evenly spaced messages, as pubmark sends them by default, each in time: `publishers` share one interval,
/// with `per_s` messages per second each.
pub fn uniform(publishers: u32, per_s: u32, length_ns: Ns) -> impl Iterator<Item = Due> {
    let per_s = u64::from(per_s.max(1));
    let count = (length_ns * per_s).div_ceil(1_000_000_000) as u32;
    (0..publishers).flat_map(move |publisher| {
        let offset = 1_000_000_000 / per_s * u64::from(publisher) / u64::from(publishers);
        let due = move |sequence| offset + u64::from(sequence) * 1_000_000_000 / per_s;
        (0..count).map(move |sequence| Due { publisher, sequence, at_ns: due(sequence), lag_ns: 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;
    const SECOND: Ns = 1_000 * MS;

    fn script(text: &str) -> PeerScript {
        PeerScript::parse(text).unwrap()
    }

    #[test]
    fn a_stall_delays_what_falls_into_it_evenly() {
        let script = script("delay = { fixed = \"1ms\" }\n[[stall]]\nfrom = \"1s\"\nfor = \"1s\"");
        let truth = truth(&script, uniform(10, 100, 3 * SECOND), 0, 3 * SECOND);
        assert_eq!(truth.latencies_ns.len(), 3_000);
        let late: Vec<Ns> = truth.latencies_ns.iter().copied().filter(|latency| *latency > MS).collect();
        // Due 999 ms to 1999 ms, a millisecond apart; the last of them has no delay.
        assert_eq!(late.len(), 1_000);
        assert_eq!((late[0], late[999]), (2 * MS, 1_001 * MS));
        // 2000 of 3000 are on time; rank 2970 is the 970th of the late ones.
        assert_eq!(truth.quantile(0.99), 971 * MS);
        assert_eq!(truth.quantile(0.5), MS);
        assert_eq!(truth.quantile(1.0), 1_001 * MS);
    }

    #[test]
    fn faults_are_counted_within_the_window_only() {
        let script = script(
            "delay = { fixed = \"1ms\" }\nlose = { every = 7 }\nswallow = { every = 5 }\nduplicate = { every = 11 }",
        );
        let truth = truth(&script, uniform(1, 1_000, 2 * SECOND), SECOND, 2 * SECOND);
        let count = |keep: &dyn Fn(u64) -> bool| (1_001..=2_000u64).filter(|number| keep(*number)).count() as u64;
        assert_eq!(truth.offered, 1_000);
        assert_eq!(truth.lost, count(&|n| n.is_multiple_of(7) || n.is_multiple_of(5)));
        assert_eq!(truth.acked_lost, count(&|n| !n.is_multiple_of(7) && n.is_multiple_of(5)));
        let reached = |n: u64| !n.is_multiple_of(7) && !n.is_multiple_of(5);
        assert_eq!(truth.duplicated, count(&|n| n.is_multiple_of(11) && reached(n)));
        assert_eq!(truth.latencies_ns.len() as u64, 1_000 - truth.lost);
    }

    #[test]
    fn what_is_refused_is_not_lost() {
        let script = script("delay = { fixed = \"1ms\" }\nrefuse = { every = 2 }\nlose = { every = 5 }");
        let truth = truth(&script, uniform(1, 1_000, 2 * SECOND), SECOND, 2 * SECOND);
        assert_eq!((truth.offered, truth.refused, truth.lost, truth.acked_lost), (1_000, 500, 100, 0));
        assert_eq!(truth.latencies_ns.len(), 400);
    }

    #[test]
    fn a_server_is_behind_by_all_that_it_cannot_serve() {
        let served = |publishers, per_s| {
            let script = script("service = 1000");
            truth(&script, uniform(publishers, per_s, 2 * SECOND), 0, 2 * SECOND)
        };
        let within = served(5, 200);
        assert!(within.latencies_ns.iter().all(|latency| *latency == MS), "one after the other, none waits");
        let beyond = served(5, 220);
        // 1,100 per second come and 1,000 go: the last of 2,200 waits for 200 others, minus the rest of its second.
        assert_eq!(beyond.latencies_ns.len(), 2_200);
        assert!((199 * MS..=202 * MS).contains(&beyond.quantile(1.0)), "{}", beyond.quantile(1.0));
    }

    #[test]
    fn what_is_reordered_comes_with_the_next_one() {
        let script = script("delay = { fixed = \"1ms\" }\nreorder = { at = [[0, 3]] }");
        let truth = truth(&script, uniform(1, 100, SECOND / 10), 0, SECOND);
        assert_eq!(truth.latencies_ns, [vec![MS; 9], vec![11 * MS]].concat());
    }
}
