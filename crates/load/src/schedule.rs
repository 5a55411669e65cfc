//! When messages are due: a pure function of the count (and, for Poisson
//! arrivals, of the seed). It never slips and never forgets.

use pubmark_model::plan::Random;
use pubmark_model::units::Ns;
use pubmark_model::workload::{Arrival, Pattern, Workload};

/// Nanoseconds in 1,000 s: rates are held in messages per 1,000 s.
const KILOSECOND: u128 = 1_000_000_000_000;

/// The due times of one publisher, ns from the start, one after another.
pub struct Schedule {
    arrival: Arrival,
    rate_per_ks: u64,
    offset_ns: Ns,
    index: u64,
    due_ns: Ns,
    poisson: Poisson,
}

struct Poisson {
    random: Random,
    at_ns: f64,
}

/// The time of message `index` of evenly spaced ones, ns from the first.
pub fn evenly(index: u64, rate_per_ks: u64) -> Ns {
    let rate = rate_per_ks.max(1);
    // Dividing 128 bits takes several times as long, and this is done for each message.
    match index.checked_mul(KILOSECOND as u64) {
        Some(product) => product / rate,
        None => (u128::from(index) * KILOSECOND / u128::from(rate)) as Ns,
    }
}

impl Schedule {
    /// The schedule of publisher `publisher` of `publishers`, each at
    /// `rate_per_ks` messages per 1,000 s. Publishers are spread evenly over
    /// one interval, so that they do not all send at once.
    pub fn new(arrival: Arrival, rate_per_ks: u64, publisher: u32, publishers: u32, seed: u64) -> Schedule {
        let period = match arrival {
            Arrival::Burst(size) => evenly(u64::from(size), rate_per_ks),
            Arrival::Uniform => evenly(1, rate_per_ks),
            Arrival::Poisson => 0,
        };
        let offset_ns = (u128::from(period) * u128::from(publisher) / u128::from(publishers.max(1))) as Ns;
        let mixed = Random(seed ^ (u64::from(publisher) << 32)).bits();
        let mut schedule = Schedule {
            arrival,
            rate_per_ks,
            offset_ns,
            index: 0,
            due_ns: 0,
            poisson: Poisson { random: Random(mixed), at_ns: 0.0 },
        };
        schedule.due_ns = schedule.compute();
        schedule
    }

    /// The schedule of publisher `publisher` of a workload at this rate.
    ///
    /// In the pattern `tree` a burst of K is one message each of K publishers
    /// of a partition, one group after another: the partition as a whole sends
    /// K messages at once, by changing publishers.
    pub fn of(workload: &Workload, rate_per_ks: u64, publisher: u32) -> Schedule {
        let (arrival, seed) = (workload.arrival, workload.seed);
        let (Pattern::Tree, Arrival::Burst(size)) = (workload.pattern, arrival) else {
            return Schedule::new(arrival, rate_per_ks, publisher, workload.publishers, seed);
        };
        let partition = (workload.publishers / workload.subscribers.max(1)).max(1);
        let group = publisher % partition / size;
        let groups = partition.div_ceil(size);
        Schedule::new(Arrival::Uniform, rate_per_ks, group, groups, seed)
    }

    fn compute(&mut self) -> Ns {
        match self.arrival {
            Arrival::Uniform => self.offset_ns + evenly(self.index, self.rate_per_ks),
            Arrival::Burst(size) => {
                let burst = self.index / u64::from(size.max(1)) * u64::from(size.max(1));
                self.offset_ns + evenly(burst, self.rate_per_ks)
            }
            Arrival::Poisson => {
                let mean_ns = KILOSECOND as f64 / self.rate_per_ks as f64;
                self.poisson.at_ns += -(1.0 - self.poisson.random.unit()).ln() * mean_ns;
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

    fn dues(mut schedule: Schedule, count: usize) -> Vec<Ns> {
        (0..count)
            .map(|_| {
                let due = schedule.due();
                schedule.advance();
                due
            })
            .collect()
    }

    #[test]
    fn uniform_is_exact_however_long() {
        let dues = dues(Schedule::new(Arrival::Uniform, 3_000_000, 0, 1, 1), 3_001);
        assert_eq!(dues[1], 333_333);
        assert_eq!(dues[3_000], 1_000_000_000);
        assert_eq!(evenly(4_000_000_000, 50_000_000), 80_000_000_000_000);
    }

    #[test]
    fn publishers_share_out_the_interval() {
        let first: Vec<Ns> = (0..4).map(|k| Schedule::new(Arrival::Uniform, 1_000_000, k, 4, 1).due()).collect();
        assert_eq!(first, [0, 250_000, 500_000, 750_000]);
    }

    #[test]
    fn bursts_keep_the_mean_rate() {
        let dues = dues(Schedule::new(Arrival::Burst(100), 1_000_000, 0, 1, 1), 301);
        assert!(dues[..100].iter().all(|due| *due == 0));
        assert!(dues[100..200].iter().all(|due| *due == 100_000_000));
        assert_eq!(dues[300], 300_000_000);
    }

    #[test]
    fn bursts_of_a_tree_come_from_changing_publishers() {
        use pubmark_model::setting::{Settings, key, with_defaults};
        let mut settings = Settings::new();
        for (name, value) in
            [("pattern", "tree"), ("publishers", "2000"), ("subscribers", "2"), ("rate", "1"), ("arrival", "burst:100")]
        {
            settings.insert(name.into(), key(name).unwrap().read(value).unwrap());
        }
        let workload = Workload::resolve(&with_defaults(settings)).unwrap();
        let first: Vec<Ns> = (0..2_000).map(|k| Schedule::of(&workload, 1_000, k).due()).collect();
        for (publisher, due) in first.iter().enumerate() {
            assert_eq!(*due, (publisher as u64 % 1_000 / 100) * 100_000_000, "{publisher}");
        }
        assert_eq!(dues(Schedule::of(&workload, 1_000, 150), 2), [100_000_000, 1_100_000_000]);
    }

    #[test]
    fn poisson_gaps_have_the_exponential_mean_and_spread() {
        let dues = dues(Schedule::new(Arrival::Poisson, 1_000_000, 0, 1, 7), 100_001);
        let gaps: Vec<f64> = dues.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.015, "{mean}");
        assert!((variance.sqrt() / 1e6 - 1.0).abs() < 0.02, "{variance}");
        let other = Schedule::new(Arrival::Poisson, 1_000_000, 1, 2, 7).due();
        assert_ne!(dues[0], other, "publishers have gaps of their own");
    }

    proptest! {
        #[test]
        fn never_runs_backwards_and_keeps_the_rate(rate in 1u64..10_000_000_000, burst in 1u32..50, count in 1usize..500) {
            for arrival in [Arrival::Uniform, Arrival::Burst(burst), Arrival::Poisson] {
                let dues = dues(Schedule::new(arrival, rate, 0, 1, 3), count);
                prop_assert!(dues.windows(2).all(|pair| pair[0] <= pair[1]));
                if arrival == Arrival::Uniform {
                    let ideal = (count as f64 - 1.0) * 1e12 / rate as f64;
                    prop_assert!((dues[count - 1] as f64 - ideal).abs() <= 1.0 + ideal * 1e-12);
                }
            }
        }
    }
}
