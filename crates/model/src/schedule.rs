//! Due times of messages: a pure function of the count (and, for Poisson arrivals, of the seed). A
//! schedule never slips and never forgets a message.

mod on_off;

use crate::pattern::Topics;
use crate::profile::Profile;
use crate::topology::partition;
use crate::units::Ns;
use crate::workload::{Arrival, Extent, Workload};
use on_off::OnOff;
use pubmark_stats::Random;
use std::ops::RangeInclusive;

/// Maximum number of Poisson gaps that [`DueCount::of`] draws for one publisher: about half a
/// second of computing.
const MOST_DRAWS: f64 = 3e7;

/// Due times of Poisson arrivals may differ by 1 ns between agents, because
/// natural logarithms differ in their last bit.
const LOGARITHM_NS: Ns = 1;

/// Due time of a message that does not exist, ns from the start of a run: after every run, and small enough to be added
/// to a time.
const NEVER: Ns = Ns::MAX / 4;

/// Number of messages of one publisher that are due by the plan. It is a range if rounding decides
/// on which side of an instant a message lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueCount {
    /// Messages due in the warm-up.
    pub warm_up: RangeInclusive<u64>,
    /// Messages due in the window, up to the requested instant.
    pub window: RangeInclusive<u64>,
    /// Number of the window's messages that are due after its length is over: the last of a count
    /// whose arrivals are not even.
    pub beyond: u64,
}

impl DueCount {
    /// Returns the messages of publisher `publisher` of a workload whose rate is `profile`.
    /// `until_ns` are the earliest and the latest instant, in ns from the start, up to which
    /// messages count as due: `(Ns::MAX, Ns::MAX)` unless the publisher was killed.
    ///
    /// `None` if there are too many Poisson arrivals, or too many with pauses, to draw them all.
    pub fn of(workload: &Workload, profile: Profile, publisher: u32, until_ns: (Ns, Ns)) -> Option<DueCount> {
        let from = workload.warmup_ns;
        let to = from.saturating_add(workload.window_ns()?);
        let is_poisson = workload.arrival == Arrival::Poisson;
        if (is_poisson || workload.arrival.pauses()) && profile.expected(to) > MOST_DRAWS {
            return None;
        }
        let slack = if is_poisson { LOGARITHM_NS } else { 0 };
        let mut schedule = Schedule::of(workload, profile.clone(), publisher);
        let mut due_before = |at_ns: Ns| {
            let least = schedule.skip_to(at_ns.saturating_sub(slack));
            (least, schedule.skip_to(at_ns.saturating_add(slack)))
        };
        let before = due_before(from);
        let by_end = due_before(to);
        let (count, beyond) = match workload.extent {
            Extent::TimeNs(_) => ((by_end.0 - before.1, by_end.1 - before.0), 0),
            Extent::Count(count) => ((count, count), count.saturating_sub(by_end.0 - before.1)),
        };
        // A killed publisher must have sent the messages due by then, including that instant.
        let mut schedule = Schedule::of(workload, profile, publisher);
        let mut by = |at_ns: Ns| match at_ns {
            Ns::MAX => u64::MAX,
            at_ns => schedule.skip_to(at_ns.min(to.saturating_mul(2)).saturating_add(1 + slack)),
        };
        let (least, most) = (by(until_ns.0.saturating_sub(2 * slack)), by(until_ns.1));
        let window = count.0.min(least.saturating_sub(before.1))..=count.1.min(most.saturating_sub(before.0));
        Some(DueCount { warm_up: before.0..=before.1, window, beyond })
    }
}

/// The due times of one publisher, ns from the start, one after another.
pub struct Schedule {
    arrival: Arrival,
    profile: Profile,
    offset_ns: Ns,
    /// No message is due from this instant on, ns.
    end_ns: Ns,
    index: u64,
    due_ns: Ns,
    poisson: Poisson,
    on_off: Option<Box<OnOff>>,
}

struct Poisson {
    random: Random,
    at_ns: f64,
}

impl Poisson {
    fn draw(&mut self, profile: &Profile) {
        let gap = -(1.0 - self.random.unit()).ln();
        self.at_ns = profile.after(self.at_ns, gap);
    }
}

/// Returns the phase of an instance within its period, ns, independent of other instances.
fn phase(seed: u64, instance: u32, period_ns: Ns) -> Ns {
    // The seed of a publisher's own draws has its number in the upper half.
    let drawn = Random(seed ^ !u64::from(instance)).bits();
    ((u128::from(drawn) * u128::from(period_ns)) >> 64) as Ns
}

impl Schedule {
    /// Creates the schedule of publisher `publisher` of `publishers`, each with this profile.
    /// Publishers are spread evenly over the first interval, so that they do not all send at once;
    /// those of a trace share its rows.
    pub fn new(arrival: Arrival, profile: Profile, publisher: u32, publishers: u32, seed: u64) -> Schedule {
        if let Profile::Trace(trace) = &profile {
            let own = Profile::Trace(trace.of_publisher(publisher));
            return Schedule::begin(arrival, own, 0, 0);
        }
        let period = match arrival {
            Arrival::Burst(size) => profile.due(u64::from(size)),
            Arrival::Uniform => profile.due(1),
            Arrival::Poisson | Arrival::OnOff { .. } => 0,
        };
        let offset_ns = (u128::from(period) * u128::from(publisher) / u128::from(publishers.max(1))) as Ns;
        let mixed = Random(seed ^ (u64::from(publisher) << 32)).bits();
        Schedule::begin(arrival, profile, offset_ns, mixed)
    }

    /// Creates a schedule whose first message is due at `offset_ns`, with the seed of its gaps.
    fn begin(arrival: Arrival, profile: Profile, offset_ns: Ns, seed: u64) -> Schedule {
        let mut schedule = Schedule {
            arrival,
            profile,
            offset_ns,
            end_ns: Ns::MAX,
            index: 0,
            due_ns: 0,
            poisson: Poisson { random: Random(seed), at_ns: 0.0 },
            on_off: match arrival {
                Arrival::OnOff { on_ns, off_ns } => Some(Box::new(OnOff::new(on_ns, off_ns, Random(seed)))),
                _ => None,
            },
        };
        schedule.due_ns = schedule.compute();
        schedule
    }

    /// Creates the schedule of publisher `publisher` of a workload with this profile.
    ///
    /// In the pattern `tree` a burst of K is one message each of K publishers of a partition, one
    /// group after another: the partition as a whole sends K messages at once, from changing
    /// publishers. Partitions are independent: each has a phase of its own, drawn from the seed, so
    /// that they do not all send at once.
    ///
    /// The due times of a workload with a span begin with it, and end before its end.
    pub fn of(workload: &Workload, profile: Profile, publisher: u32) -> Schedule {
        let mut schedule = Schedule::of_whole(workload, profile, publisher);
        let (from_ns, to_ns) = workload.due_from_to();
        schedule.delay(from_ns);
        schedule.end_at(to_ns);
        schedule
    }

    fn of_whole(workload: &Workload, profile: Profile, publisher: u32) -> Schedule {
        let (arrival, seed) = (workload.arrival, workload.seed);
        let size = match (workload.pattern.topics(), arrival) {
            _ if matches!(profile, Profile::Trace(_)) => {
                return Schedule::new(arrival, profile, publisher, workload.publishers, seed);
            }
            (Topics::Tree, Arrival::Burst(size)) => size,
            (Topics::Tree, Arrival::Uniform) => 1,
            _ => return Schedule::new(arrival, profile, publisher, workload.publishers, seed),
        };
        let partition = partition(workload);
        let (instance, group) = (publisher / partition, publisher % partition / size);
        let groups = partition.div_ceil(size);
        let shift = phase(seed, instance, profile.due(1) / Ns::from(groups));
        let mut schedule = Schedule::new(Arrival::Uniform, profile, group, groups, seed);
        schedule.delay(shift);
        schedule
    }

    /// Delays all due times by `by_ns`.
    fn delay(&mut self, by_ns: Ns) {
        self.offset_ns += by_ns;
        self.due_ns += by_ns;
    }

    /// Lets no message be due from this instant on, ns from the start.
    fn end_at(&mut self, end_ns: Ns) {
        self.end_ns = end_ns;
        if self.due_ns >= end_ns {
            self.due_ns = NEVER;
        }
    }

    /// Returns the due time of a message by its number, if nothing is drawn.
    #[inline]
    fn evenly(&self, index: u64) -> Ns {
        let first = match self.arrival {
            Arrival::Burst(size) => index / u64::from(size.max(1)) * u64::from(size.max(1)),
            _ => index,
        };
        self.offset_ns + self.profile.due(first)
    }

    #[inline]
    fn compute(&mut self) -> Ns {
        let due_ns = match self.arrival {
            Arrival::Uniform | Arrival::Burst(_) => self.evenly(self.index),
            Arrival::OnOff { .. } => {
                let sending_ns = self.profile.due(self.index);
                self.on_off.as_mut().map_or(sending_ns, |on_off| on_off.at(sending_ns))
            }
            Arrival::Poisson => {
                self.poisson.draw(&self.profile);
                self.offset_ns + self.poisson.at_ns as Ns
            }
        };
        if due_ns < self.end_ns { due_ns } else { NEVER }
    }

    /// True if no message is due any more.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.due_ns == NEVER
    }

    /// Returns the due time of the next message, ns from the start; an instant after every run if none is due.
    #[inline]
    pub fn due(&self) -> Ns {
        self.due_ns
    }

    /// Returns the due time of the message that comes `more` messages after the next one, ns from the start; an instant
    /// after every run if there is none. `None` if pauses would have to be drawn to know it.
    pub fn due_later(&self, more: u32) -> Option<Ns> {
        let due_ns = match self.arrival {
            Arrival::Uniform | Arrival::Burst(_) => self.evenly(self.index + u64::from(more)),
            Arrival::Poisson => {
                let mut poisson = Poisson { random: Random(self.poisson.random.0), at_ns: self.poisson.at_ns };
                (0..more).for_each(|_| poisson.draw(&self.profile));
                self.offset_ns + poisson.at_ns as Ns
            }
            Arrival::OnOff { .. } => return None,
        };
        Some(if due_ns < self.end_ns && !self.is_over() { due_ns } else { NEVER })
    }

    /// Advances to the first message that is due at `at_ns` or later, ns from the start, and
    /// returns its number, which is the number of messages due before. Never goes back. Takes time
    /// proportional to the messages for Poisson arrivals and those with pauses, and constant time otherwise.
    pub fn skip_to(&mut self, at_ns: Ns) -> u64 {
        let at_ns = at_ns.min(self.end_ns);
        let since = at_ns.saturating_sub(self.offset_ns);
        let before = if at_ns > self.offset_ns { self.profile.due_before(since) } else { 0 };
        let number = match self.arrival {
            Arrival::Poisson | Arrival::OnOff { .. } => {
                while self.due_ns < at_ns {
                    self.advance();
                }
                return self.index;
            }
            Arrival::Uniform => before,
            Arrival::Burst(size) => before.div_ceil(u64::from(size.max(1))).saturating_mul(u64::from(size.max(1))),
        };
        if number > self.index {
            self.index = number;
            self.due_ns = self.compute();
        }
        self.index
    }

    /// Advances to the next message.
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

    /// Creates a tree whose publishers send a message a second, with the seed 1.
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
    fn a_later_message_is_due_when_it_will_be() {
        for (arrival, is_known) in [("uniform", true), ("poisson", true), ("burst:10", true), ("on-off:1s/1s", false)] {
            let set = [("pairs", "3"), ("rate", "100"), ("arrival", arrival), ("warmup", "1s"), ("end", "2s")];
            let workload = Workload::of(set).unwrap();
            let profile = workload.rate.profile().unwrap();
            let all = dues(Schedule::of(&workload, profile.clone(), 1), 400);
            let mut schedule = Schedule::of(&workload, profile, 1);
            for at in 0..350 {
                for more in [0, 1, 17, 49] {
                    let wanted = is_known.then(|| all[at + more as usize]);
                    assert_eq!(schedule.due_later(more), wanted, "{arrival}: {more} after {at}");
                }
                schedule.advance();
            }
        }
    }

    #[test]
    fn messages_of_a_span_are_due_within_it_and_no_other_is() {
        for arrival in ["uniform", "poisson", "burst:10"] {
            let of = |more: &[(&str, &str)]| {
                let plain = [("pairs", "3"), ("rate", "100"), ("arrival", arrival), ("warmup", "1s")];
                Workload::of(plain.iter().chain(more).copied()).unwrap()
            };
            let (whole, part) = (of(&[]), of(&[("start", "500ms"), ("end", "2s")]));
            let profile = part.rate.profile().unwrap();
            for publisher in 0..3 {
                let wanted = dues(Schedule::of(&whole, profile.clone(), publisher), 400).into_iter();
                let wanted: Vec<Ns> =
                    wanted.map(|due| due + 1_500_000_000).filter(|due| *due < 3_000_000_000).collect();
                let mut schedule = Schedule::of(&part, profile.clone(), publisher);
                for due in &wanted {
                    assert_eq!((schedule.due(), schedule.is_over()), (*due, false), "{arrival}");
                    schedule.advance();
                }
                assert!(schedule.is_over() && schedule.due() == NEVER, "{arrival}");
                let planned = DueCount::of(&part, profile.clone(), publisher, (Ns::MAX, Ns::MAX)).unwrap();
                assert!(planned.window.contains(&(wanted.len() as u64)), "{arrival}: {planned:?}");
                assert_eq!(*planned.warm_up.end(), 0, "{arrival}");
                let killed = DueCount::of(&part, profile.clone(), publisher, (2_000_000_000, 2_000_000_000)).unwrap();
                let by_then = wanted.iter().filter(|due| **due <= 2_000_000_000).count() as u64;
                assert!(killed.window.contains(&by_then), "{arrival}: {killed:?}");
            }
        }
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

    /// With a hundred instances of 1,000 publishers, no instant has more messages than one instance
    /// sends at once, and they are spread over the whole period.
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
        // Within an instance uniform arrivals are evenly spaced; each instance has its own phase.
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

    /// Messages come at the rate in periods of 2 s on average, with pauses of 8 s, and each publisher has its own.
    #[test]
    fn periods_and_pauses_have_their_means_and_are_repeated_from_the_seed() {
        let arrival = Arrival::parse("on-off:2s/8s").unwrap();
        let schedule = |publisher, seed| Schedule::new(arrival, Profile::constant(100_000), publisher, 20, seed);
        let all: Vec<Vec<Ns>> = (0..20).map(|publisher| dues(schedule(publisher, 7), 20_000)).collect();
        assert_eq!(all[3], dues(schedule(3, 7), 20_000));
        assert_ne!(all[3], dues(schedule(3, 8), 20_000));
        let gap = 10_000_000;
        let (mut pauses, mut paused_ns, mut first) = (0_u64, 0, 0);
        for own in &all {
            for pair in own.windows(2) {
                let between = pair[1] - pair[0];
                assert!(between >= gap, "never faster than the rate");
                if between > gap {
                    (pauses, paused_ns) = (pauses + 1, paused_ns + between - gap);
                }
            }
            first += u32::from(own[0] == 0);
        }
        let sent_ns = 20 * 19_999 * gap;
        // 2,000 periods: a standard deviation of 2.2 %. A period without a message is a part of a pause.
        let (on_s, off_s) = (sent_ns as f64 / pauses as f64 / 1e9, paused_ns as f64 / pauses as f64 / 1e9);
        assert!((on_s / 2.0 - 1.0).abs() < 0.1 && (off_s / 8.0 - 1.0).abs() < 0.1, "{on_s} {off_s}");
        assert!((1..=9).contains(&first), "a fifth of them begins in a period: {first}");
    }

    #[test]
    fn what_is_planned_is_what_a_publisher_counts_one_by_one() {
        let settings = |more: &[(&str, &str)]| {
            let base = [("publishers", "3"), ("pattern", "fan-in"), ("warmup", "1s"), ("duration", "6s")];
            let kept = base.into_iter().filter(|(key, _)| !more.iter().any(|(other, _)| other == key));
            Workload::of(kept.chain(more.iter().copied()).filter(|(_, value)| !value.is_empty())).unwrap()
        };
        let counted = |workload: &Workload, publisher: u32, until_ns: Ns| {
            let profile = workload.rate.profile().unwrap();
            let (from, to) = (workload.warmup_ns, workload.warmup_ns + workload.window_ns().unwrap());
            let dues = dues(Schedule::of(workload, profile, publisher), 20_000);
            assert!(dues[19_999] > to);
            let warm_up = dues.iter().filter(|due| **due < from).count() as u64;
            let window = dues.iter().filter(|due| (from..to).contains(*due) && **due <= until_ns).count() as u64;
            (warm_up, window)
        };
        for (arrival, rate, publisher) in [
            ("uniform", "2.5", 0),
            ("uniform", "0.3", 2),
            ("uniform", "333.333", 1),
            ("burst:7", "100", 2),
            ("burst:100", "12.5", 1),
            ("poisson", "2.5", 0),
            ("poisson", "1000", 2),
            ("on-off:500ms/200ms", "500", 1),
            ("on-off:100ms/1s", "3000", 0),
        ] {
            let workload = settings(&[("arrival", arrival), ("rate", rate)]);
            let profile = workload.rate.profile().unwrap();
            for until_ns in [Ns::MAX, 3_500_000_000, 1_000_000_000] {
                let planned = DueCount::of(&workload, profile.clone(), publisher, (until_ns, until_ns)).unwrap();
                let (warm_up, window) = counted(&workload, publisher, until_ns);
                let name = format!("{arrival} {rate} {until_ns}: {planned:?}");
                assert!(planned.warm_up.contains(&warm_up) && planned.window.contains(&window), "{name}, {window}");
                assert_eq!((planned.warm_up.clone().count(), planned.beyond), (1, 0), "{name}");
                assert_eq!(planned.window.clone().count(), 1, "{name}");
            }
        }
        let killed = settings(&[("rate", "100")]);
        let planned = DueCount::of(&killed, killed.rate.profile().unwrap(), 0, (2_000_000_000, 2_500_000_000)).unwrap();
        assert_eq!(planned.window, 101..=151, "between 2 s and 2.5 s, of 100/s since 1 s, that instant included");
    }

    #[test]
    fn a_count_is_planned_whenever_it_is_over() {
        let planned = |arrival: &str, seed: &str| {
            let settings = [("arrival", arrival), ("seed", seed), ("rate", "100"), ("count", "500"), ("warmup", "1s")];
            let workload = Workload::of(settings).unwrap();
            DueCount::of(&workload, workload.rate.profile().unwrap(), 0, (Ns::MAX, Ns::MAX)).unwrap()
        };
        assert_eq!(planned("uniform", "1"), DueCount { warm_up: 100..=100, window: 500..=500, beyond: 0 });
        let seeds = ["1", "2", "3", "4", "5", "6"].map(|seed| planned("poisson", seed));
        assert!(seeds.iter().all(|planned| planned.window == (500..=500)));
        assert!(seeds.iter().any(|planned| planned.beyond > 0) && seeds.iter().any(|planned| planned.beyond == 0));
        let many = Workload::of([("arrival", "poisson"), ("rate", "1000000"), ("duration", "3600s")]).unwrap();
        assert_eq!(DueCount::of(&many, many.rate.profile().unwrap(), 0, (Ns::MAX, Ns::MAX)), None);
    }

    proptest! {
        #[test]
        fn skipping_finds_what_advancing_finds(
            rate in 1u64..10_000_000, burst in 1u32..50, publisher in 0u32..4,
            instants in proptest::collection::vec(0u64..3_000_000_000, 1..6),
        ) {
            let mut instants = instants;
            instants.sort_unstable();
            let on_off = Arrival::OnOff { on_ns: 20_000_000, off_ns: 300_000_000 };
            for arrival in [Arrival::Uniform, Arrival::Burst(burst), Arrival::Poisson, on_off] {
                let schedule = || Schedule::new(arrival, Profile::constant(rate), publisher, 4, 3);
                let (mut slow, mut fast) = (schedule(), schedule());
                for at in &instants {
                    let mut number = slow.index;
                    while slow.due() < *at {
                        slow.advance();
                        number += 1;
                    }
                    prop_assert_eq!((fast.skip_to(*at), fast.due()), (number, slow.due()));
                }
            }
        }

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
