//! Capacity searches in virtual time over queues of known capacity.

use pubmark_stats::{CapacitySearch, Random};

/// Longest allowed 99th percentile of the sojourn times, s.
const P99_S: f64 = 0.010;
/// Length of a step, and of its warm-up, s.
const WINDOW_S: f64 = 4.0;
const WARMUP_S: f64 = 1.0;
const WITHIN: f64 = 0.05;
const STEPS_MAX: usize = 60;

/// A queue with Poisson arrivals and one server.
#[derive(Clone, Copy, Debug)]
enum Queue {
    /// Every message takes the same time.
    Fixed,
    /// The time is drawn exponentially.
    Exponential,
    /// Two consecutive steps, each exponential; the second is the slower one.
    TwoSteps,
    /// Beyond a load, each message takes twice as long.
    Degrading,
    /// The server alternates between two speeds, one twice the other, for 50 ms each on average.
    Flipping,
    /// It has memory for [`MEMORY`] messages, and loses those that find it full.
    Limited,
}

/// Most messages that wait in [`Queue::Limited`].
const MEMORY: f64 = 30.0;

/// Highest service rate of the servers of all these queues, messages a second.
const SERVED_PER_S: f64 = 2_000.0;

/// The load beyond which [`Queue::Degrading`] slows down.
const DEGRADES_PER_S: f64 = 1_200.0;

fn exponential(random: &mut Random) -> f64 {
    -(1.0 - random.unit()).ln()
}

impl Queue {
    /// Returns the sojourn times of the messages that arrive between two instants, s.
    fn sojourns(self, per_s: f64, from_s: f64, to_s: f64, random: &mut Random) -> Vec<f64> {
        let mean_s = 1.0 / SERVED_PER_S;
        let (mut now, mut free, mut second_free) = (0.0_f64, 0.0_f64, 0.0_f64);
        let (mut fast, mut flips_at) = (random.unit() < 0.5, 0.0_f64);
        let mut found = Vec::new();
        loop {
            now += exponential(random) / per_s;
            if now >= to_s {
                return found;
            }
            let begin = free.max(now);
            if matches!(self, Queue::Limited) && (begin - now) / mean_s >= MEMORY {
                if now >= from_s {
                    found.push(f64::INFINITY);
                }
                continue;
            }
            let mut left = match self {
                Queue::Fixed | Queue::Limited => begin + mean_s,
                Queue::Exponential => begin + mean_s * exponential(random),
                Queue::TwoSteps => begin + 0.7 * mean_s * exponential(random),
                Queue::Degrading => begin + mean_s * if per_s > DEGRADES_PER_S { 2.0 } else { 1.0 },
                Queue::Flipping => {
                    while flips_at <= begin {
                        (fast, flips_at) = (!fast, flips_at + 0.05 * exponential(random));
                    }
                    begin + mean_s * if fast { 0.5 } else { 1.0 }
                }
            };
            free = left;
            if matches!(self, Queue::TwoSteps) {
                left = second_free.max(left) + mean_s * exponential(random);
                second_free = left;
            }
            if now >= from_s {
                found.push(left - now);
            }
        }
    }

    fn p99_s(self, per_s: f64, from_s: f64, to_s: f64, random: &mut Random) -> f64 {
        let mut all = self.sojourns(per_s, from_s, to_s, random);
        let at = ((all.len() as f64 * 0.99) as usize).min(all.len().saturating_sub(1));
        all.select_nth_unstable_by(at, f64::total_cmp);
        all[at]
    }

    /// True if a step at this load meets the objective: `p99 < 10ms and lost = 0`.
    fn holds(self, per_s: f64, random: &mut Random) -> bool {
        let all = self.sojourns(per_s, WARMUP_S, WARMUP_S + WINDOW_S, random);
        let late = all.iter().filter(|sojourn| **sojourn >= P99_S).count();
        late * 100 < all.len() && all.iter().all(|sojourn| sojourn.is_finite())
    }

    /// Returns the capacity: by formula, or by bisection with runs of 1,000 s. If a single message
    /// decides, it is that of a step's length: the load at which two of three lose none, of 300
    /// steps.
    fn truth(self) -> f64 {
        if let Queue::Exponential = self {
            // Sojourn times of M/M/1 are exponential, with the remaining rate.
            return SERVED_PER_S - 100.0_f64.ln() / P99_S;
        }
        let (mut low, mut high) = (SERVED_PER_S / 4.0, SERVED_PER_S * 2.0);
        let lossless = |per_s: f64| {
            let held = (0..300).filter(|seed| Queue::Limited.holds(per_s, &mut Random(*seed))).count();
            held >= 200
        };
        while high / low > 1.002 {
            let middle = (low * high).sqrt();
            let holds = match self {
                Queue::Limited => lossless(middle),
                _ => self.p99_s(middle, 1.0, 1_000.0, &mut Random(99)) < P99_S,
            };
            match holds {
                true => low = middle,
                false => high = middle,
            }
        }
        (low * high).sqrt()
    }

    fn search(self, seed: u64, wrong: f64) -> (CapacitySearch, usize) {
        let mut random = Random(seed);
        let mut search = CapacitySearch::new(50.0, WITHIN);
        for step in 0..STEPS_MAX {
            if search.settled() {
                return (search, step);
            }
            let load = search.next();
            let held = match self {
                Queue::Limited => self.holds(load, &mut random),
                _ => self.p99_s(load, WARMUP_S, WARMUP_S + WINDOW_S, &mut random) < P99_S,
            };
            // A disturbance makes a step fail that would have held.
            search.note(load, held && random.unit() >= wrong);
        }
        (search, STEPS_MAX)
    }
}

/// Returns, for 100 searches, how many found the capacity within 5 %, how many intervals contain
/// it, and their total number of steps.
fn found(queue: Queue, wrong: f64) -> (usize, usize, usize) {
    let truth = queue.truth();
    let (mut near, mut covered, mut taken) = (0, 0, 0);
    for seed in 0..100 {
        let (search, steps) = queue.search(seed * 7_919 + 1, wrong);
        let interval = search.interval().unwrap();
        near += usize::from((interval.estimate / truth - 1.0).abs() <= 0.05);
        covered += usize::from((interval.lo..=interval.hi).contains(&truth));
        taken += steps;
    }
    (near, covered, taken)
}

#[test]
fn the_capacity_of_known_queues_is_found() {
    use Queue::{Degrading, Exponential, Fixed, Flipping, Limited, TwoSteps};
    for queue in [Fixed, Exponential, TwoSteps, Degrading, Flipping, Limited] {
        let (near, covered, taken) = found(queue, 0.0);
        assert!(near >= 95 && covered >= 85 && taken <= 2_500, "{queue:?}: {near}, {covered} in {taken} steps");
    }
}

#[test]
fn wrong_answers_are_overruled() {
    for (wrong, most) in [(0.05, 2_500), (0.15, 3_200)] {
        let (near, covered, taken) = found(Queue::Fixed, wrong);
        assert!(near >= 95 && covered >= 85 && taken <= most, "{wrong}: {near}, {covered} in {taken} steps");
    }
}

/// Other programs use the machine half of the time, and then half of the steps fail.
#[test]
fn what_is_doubtful_decides_little() {
    let truth = Queue::Fixed.truth();
    let mut near = 0;
    for seed in 0..100 {
        let mut random = Random(seed * 7_919 + 1);
        let mut search = CapacitySearch::new(50.0, WITHIN);
        for _ in 0..STEPS_MAX {
            if search.settled() {
                break;
            }
            let load = search.next();
            let held = Queue::Fixed.p99_s(load, WARMUP_S, WARMUP_S + WINDOW_S, &mut random) < P99_S;
            let disturbed = random.unit() < 0.5;
            match held && !(disturbed && random.unit() < 0.5) {
                true => search.note(load, true),
                false if disturbed => search.note_doubtful(load),
                false => search.note(load, false),
            }
        }
        near += usize::from(search.interval().is_some_and(|found| (found.estimate / truth - 1.0).abs() <= 0.05));
    }
    assert!(near >= 95, "{near} of 100");
}

/// Runs a search with a threshold without chance, to test the order of the steps.
fn sharp(edge: f64, mut answer: impl FnMut(usize, f64) -> Option<bool>) -> (CapacitySearch, Vec<f64>) {
    let mut search = CapacitySearch::new(100.0, WITHIN);
    let mut asked = Vec::new();
    while !search.settled() && asked.len() < STEPS_MAX {
        let load = search.next();
        search.note(load, answer(asked.len(), load).unwrap_or(load < edge));
        asked.push(load);
    }
    (search, asked)
}

#[test]
fn no_step_is_more_than_twice_what_has_held() {
    for edge in [3.0, 101.0, 5_000.0, 333_333.0] {
        let (search, asked) = sharp(edge, |_, _| None);
        let estimate = search.interval().unwrap().estimate;
        assert!((estimate / edge - 1.0).abs() < 0.03, "{edge}: {estimate} by {asked:?}");
        let mut held: f64 = 50.0;
        for load in asked {
            assert!(load <= 2.02 * held, "{edge}: {load} after {held}");
            held = if load < edge { held.max(load) } else { held };
        }
    }
}

#[test]
fn a_wrong_answer_while_climbing_costs_steps_and_not_the_answer() {
    for wrong in 0..8 {
        let (search, asked) = sharp(10_000.0, |step, _| (step == wrong).then_some(false));
        let found = search.interval().unwrap();
        assert!((found.estimate / 10_000.0 - 1.0).abs() < 0.03, "{wrong}: {found:?} by {asked:?}");
    }
}

#[test]
fn without_both_answers_there_is_no_interval() {
    let mut search = CapacitySearch::new(100.0, WITHIN);
    assert_eq!((search.next(), search.interval()), (100.0, None));
    search.note(100.0, true);
    assert_eq!((search.next(), search.interval(), search.settled()), (200.0, None, false));
    let mut search = CapacitySearch::new(100.0, WITHIN);
    search.note(100.0, false);
    assert_eq!((search.next(), search.interval()), (50.0, None));
}

/// The report replays the records, and must find what the search found.
#[test]
fn what_is_known_does_not_depend_on_the_order() {
    let steps = [(100.0, true), (200.0, true), (400.0, false), (300.0, true), (350.0, false), (320.0, true)];
    let of = |steps: Vec<(f64, bool)>| {
        let mut search = CapacitySearch::new(100.0, WITHIN);
        steps.into_iter().for_each(|(load, held)| search.note(load, held));
        search.interval().unwrap()
    };
    let (one, other) = (of(steps.to_vec()), of(steps.into_iter().rev().collect()));
    assert!((one.estimate / other.estimate - 1.0).abs() < 1e-9 && one.lo < one.estimate && one.estimate < one.hi);
}
