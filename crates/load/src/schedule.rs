//! When messages are due: a pure function of the count (and, for Poisson
//! arrivals, of the seed). It never slips and never forgets.

use pubmark_model::pattern::Topics;
use pubmark_model::profile::Profile;
use pubmark_model::topology::partition;
use pubmark_model::units::Ns;
use pubmark_model::workload::{Arrival, Workload};
use pubmark_stats::Random;

/// The due times of one publisher, ns from the start, one after another.
pub struct Schedule {
    arrival: Arrival,
    profile: Profile,
    offset_ns: Ns,
    index: u64,
    due_ns: Ns,
    poisson: Poisson,
}

struct Poisson {
    random: Random,
    at_ns: f64,
}

/// When within its period, ns, an instance begins that is independent of others.
fn phase(seed: u64, instance: u32, period_ns: Ns) -> Ns {
    // A publisher's own draws have its number in the upper half of the seed.
    let drawn = Random(seed ^ !u64::from(instance)).bits();
    ((u128::from(drawn) * u128::from(period_ns)) >> 64) as Ns
}

impl Schedule {
    /// The schedule of publisher `publisher` of `publishers`, each of this
    /// profile. Publishers are spread evenly over the first interval, so that
    /// they do not all send at once.
    pub fn new(arrival: Arrival, profile: Profile, publisher: u32, publishers: u32, seed: u64) -> Schedule {
        let period = match arrival {
            Arrival::Burst(size) => profile.due(u64::from(size)),
            Arrival::Uniform => profile.due(1),
            Arrival::Poisson => 0,
        };
        let offset_ns = (u128::from(period) * u128::from(publisher) / u128::from(publishers.max(1))) as Ns;
        let mixed = Random(seed ^ (u64::from(publisher) << 32)).bits();
        let mut schedule = Schedule {
            arrival,
            profile,
            offset_ns,
            index: 0,
            due_ns: 0,
            poisson: Poisson { random: Random(mixed), at_ns: 0.0 },
        };
        schedule.due_ns = schedule.compute();
        schedule
    }

    /// The schedule of publisher `publisher` of a workload of this profile.
    ///
    /// In the pattern `tree` a burst of K is one message each of K publishers
    /// of a partition, one group after another: the partition as a whole sends
    /// K messages at once, by changing publishers. Partitions know nothing of
    /// each other: each has a phase of its own, drawn from the seed, so that
    /// they do not all send at once.
    pub fn of(workload: &Workload, profile: Profile, publisher: u32) -> Schedule {
        let (arrival, seed) = (workload.arrival, workload.seed);
        let size = match (workload.pattern.topics(), arrival) {
            (Topics::Tree, Arrival::Burst(size)) => size,
            (Topics::Tree, Arrival::Uniform) => 1,
            _ => return Schedule::new(arrival, profile, publisher, workload.publishers, seed),
        };
        let partition = partition(workload);
        let (instance, group) = (publisher / partition, publisher % partition / size);
        let groups = partition.div_ceil(size);
        let mut schedule = Schedule::new(Arrival::Uniform, profile, group, groups, seed);
        schedule.delay(phase(seed, instance, profile.due(1) / Ns::from(groups)));
        schedule
    }

    /// Lets all of it be so much later.
    fn delay(&mut self, by_ns: Ns) {
        self.offset_ns += by_ns;
        self.due_ns += by_ns;
    }

    fn compute(&mut self) -> Ns {
        match self.arrival {
            Arrival::Uniform => self.offset_ns + self.profile.due(self.index),
            Arrival::Burst(size) => {
                let burst = self.index / u64::from(size.max(1)) * u64::from(size.max(1));
                self.offset_ns + self.profile.due(burst)
            }
            Arrival::Poisson => {
                let gap = -(1.0 - self.poisson.random.unit()).ln();
                self.poisson.at_ns = self.profile.after(self.poisson.at_ns, gap);
                self.poisson.at_ns as Ns
            }
        }
    }

    /// When the next message is due, ns from the start.
    #[inline]
    pub fn due(&self) -> Ns {
        self.due_ns
    }

    /// Goes on to the message after it.
    #[inline]
    pub fn advance(&mut self) {
        self.index += 1;
        self.due_ns = self.compute();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn dues(mut schedule: Schedule, count: usize) -> Vec<Ns> {
        (0..count)
            .map(|_| {
                let due = schedule.due();
                schedule.advance();
                due
            })
            .collect()
    }

    /// A tree whose publishers send a message a second, with the seed 1.
    fn tree(more: &[(&str, &str)]) -> Workload {
        Workload::of([("pattern", "tree"), ("rate", "1")].iter().chain(more).copied()).unwrap()
    }

    #[test]
    fn uniform_is_exact_however_long() {
        let dues = dues(Schedule::new(Arrival::Uniform, Profile::constant(3_000_000), 0, 1, 1), 3_001);
        assert_eq!(dues[1], 333_333);
        assert_eq!(dues[3_000], 1_000_000_000);
    }

    #[test]
    fn publishers_share_out_the_interval() {
        let first: Vec<Ns> =
            (0..4).map(|k| Schedule::new(Arrival::Uniform, Profile::constant(1_000_000), k, 4, 1).due()).collect();
        assert_eq!(first, [0, 250_000, 500_000, 750_000]);
    }

    #[test]
    fn bursts_keep_the_mean_rate() {
        let dues = dues(Schedule::new(Arrival::Burst(100), Profile::constant(1_000_000), 0, 1, 1), 301);
        assert!(dues[..100].iter().all(|due| *due == 0));
        assert!(dues[100..200].iter().all(|due| *due == 100_000_000));
        assert_eq!(dues[300], 300_000_000);
    }

    #[test]
    fn bursts_of_a_tree_come_from_changing_publishers() {
        let workload = tree(&[("publishers", "2000"), ("subscribers", "2"), ("arrival", "burst:100")]);
        let first: Vec<Ns> = (0..2_000).map(|k| Schedule::of(&workload, Profile::constant(1_000), k).due()).collect();
        // SplitMix64 of the seed 1 and the partition's number, as a part of 100 ms.
        let phases = [94_971_076, 89_394_292];
        for (publisher, due) in first.iter().enumerate() {
            let phase = phases[publisher / 1_000];
            assert_eq!(*due, (publisher as u64 % 1_000 / 100) * 100_000_000 + phase, "{publisher}");
        }
        let again = [100_000_000, 1_100_000_000].map(|due| due + phases[0]);
        assert_eq!(dues(Schedule::of(&workload, Profile::constant(1_000), 150), 2), again);
    }

    /// A hundred instances of 1,000 publishers: no instant has more than what
    /// one of them sends at once, and they are spread over the whole period.
    #[test]
    fn instances_of_a_tree_are_independent_of_each_other() {
        let workload = tree(&[("publishers", "100000"), ("arrival", "burst:100")]);
        let mut at: BTreeMap<Ns, u32> = BTreeMap::new();
        (0..100_000)
            .for_each(|k| *at.entry(Schedule::of(&workload, Profile::constant(1_000), k).due()).or_default() += 1);
        assert_eq!((at.len(), at.values().copied().max()), (1_000, Some(100)));
        let mut tenths = [0; 10];
        (0..100).for_each(|k| {
            tenths[(Schedule::of(&workload, Profile::constant(1_000), k * 1_000).due() / 10_000_000) as usize] += 1
        });
        assert!(tenths.iter().all(|count| (1..=25).contains(count)), "{tenths:?}");
        let other = Workload { seed: 2, ..workload.clone() };
        assert_ne!(
            Schedule::of(&workload, Profile::constant(1_000), 0).due(),
            Schedule::of(&other, Profile::constant(1_000), 0).due()
        );
        // Within an instance uniform arrivals are evenly spaced; its phase is its own.
        let workload = tree(&[("publishers", "2000"), ("subscribers", "2")]);
        let due = |publisher| Schedule::of(&workload, Profile::constant(1_000), publisher).due();
        assert_eq!((due(999) - due(0), due(1_999) - due(1_000)), (999_000_000, 999_000_000));
        assert_ne!(due(0), due(1_000));
    }

    #[test]
    fn poisson_gaps_have_the_exponential_mean_and_spread() {
        let dues = dues(Schedule::new(Arrival::Poisson, Profile::constant(1_000_000), 0, 1, 7), 100_001);
        let gaps: Vec<f64> = dues.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.015, "{mean}");
        assert!((variance.sqrt() / 1e6 - 1.0).abs() < 0.02, "{variance}");
        let other = Schedule::new(Arrival::Poisson, Profile::constant(1_000_000), 1, 2, 7).due();
        assert_ne!(dues[0], other, "publishers have gaps of their own");
    }

    proptest! {
        #[test]
        fn never_runs_backwards_and_keeps_the_rate(rate in 1u64..10_000_000_000, burst in 1u32..50, count in 1usize..500) {
            for arrival in [Arrival::Uniform, Arrival::Burst(burst), Arrival::Poisson] {
                let dues = dues(Schedule::new(arrival, Profile::constant(rate), 0, 1, 3), count);
                prop_assert!(dues.windows(2).all(|pair| pair[0] <= pair[1]));
                if arrival == Arrival::Uniform {
                    let ideal = (count as f64 - 1.0) * 1e12 / rate as f64;
                    prop_assert!((dues[count - 1] as f64 - ideal).abs() <= 1.0 + ideal * 1e-12);
                }
            }
        }
    }
}
