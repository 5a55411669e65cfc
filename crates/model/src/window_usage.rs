//! Usage of a process during a window whose end is not known in advance: a count of messages, sent
//! as fast as possible.

use crate::units::Ns;
use serde::{Deserialize, Serialize};

/// Usage since the first reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowUsage {
    /// CPU time of all threads, ns.
    pub cpu_ns: Ns,
    /// The part in user mode, ns.
    pub user_ns: Ns,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Bytes that it wrote to storage; `None` for agents, and where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
}

impl WindowUsage {
    /// Combines each of its figures with the other's.
    fn with(&self, other: &WindowUsage, make: impl Fn(u64, u64) -> u64) -> WindowUsage {
        WindowUsage {
            cpu_ns: make(self.cpu_ns, other.cpu_ns),
            user_ns: make(self.user_ns, other.user_ns),
            voluntary_switches: make(self.voluntary_switches, other.voluntary_switches),
            involuntary_switches: make(self.involuntary_switches, other.involuntary_switches),
            written_bytes: self.written_bytes.zip(other.written_bytes).map(|(own, its)| make(own, its)),
        }
    }
}

/// A reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageReading {
    /// Its instant, ns.
    pub at_ns: Ns,
    /// Usage up to it.
    #[serde(flatten)]
    pub used: WindowUsage,
    /// Number of memory samples up to it.
    pub samples: usize,
}

/// Consecutive readings, at most [`UsageReadings::MOST`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageReadings {
    readings: Vec<UsageReading>,
    step_ns: Ns,
}

impl UsageReadings {
    /// Maximum number of readings: a step is then a 500th of the window or less.
    pub const MOST: usize = 1_000;

    /// Creates an empty list whose readings are `step_ns` apart at first.
    pub fn new(step_ns: Ns) -> UsageReadings {
        UsageReadings { readings: Vec::new(), step_ns }
    }

    /// Adds a reading. If there are too many, every second one is removed, and the interval
    /// doubles.
    pub fn add(&mut self, reading: UsageReading) {
        if self.readings.len() == UsageReadings::MOST {
            let mut number = 0;
            self.readings.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.step_ns *= 2;
        }
        self.readings.push(reading);
    }

    /// Returns the instant of the next reading, ns.
    pub fn next_ns(&self) -> Ns {
        self.readings.last().map_or(0, |last| last.at_ns + self.step_ns)
    }

    /// Returns all readings.
    pub fn into_readings(self) -> Vec<UsageReading> {
        self.readings
    }
}

/// Returns the usage between two instants, interpolated linearly between readings.
pub fn between(readings: &[UsageReading], from_ns: Ns, to_ns: Ns) -> WindowUsage {
    by(readings, to_ns).with(&by(readings, from_ns), u64::saturating_sub)
}

/// Returns the number of memory samples that were taken by an instant.
pub fn samples_by(readings: &[UsageReading], at_ns: Ns) -> usize {
    let after = readings.partition_point(|reading| reading.at_ns <= at_ns);
    readings[..after].last().map_or(0, |reading| reading.samples)
}

fn by(readings: &[UsageReading], at_ns: Ns) -> WindowUsage {
    let after = readings.partition_point(|reading| reading.at_ns < at_ns);
    let (Some(next), Some(last)) = (readings.get(after), after.checked_sub(1).map(|at| &readings[at])) else {
        let nearest = readings.get(after).or(readings.last());
        return nearest.map_or(WindowUsage::default(), |reading| reading.used);
    };
    // An agent may send them in any order.
    let step = u128::from(next.at_ns.saturating_sub(last.at_ns).max(1));
    let gone = u128::from(at_ns.saturating_sub(last.at_ns)).min(step);
    let part = |then: u64, later: u64| (u128::from(later.saturating_sub(then)) * gone / step) as u64;
    last.used.with(&next.used, |then, later| then.saturating_add(part(then, later)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at_ns: Ns, cpu_ns: Ns) -> UsageReading {
        let used = WindowUsage {
            cpu_ns,
            user_ns: cpu_ns / 2,
            voluntary_switches: cpu_ns / 10,
            involuntary_switches: 0,
            written_bytes: Some(cpu_ns / 5),
        };
        UsageReading { at_ns, used, samples: (at_ns / 100) as usize }
    }

    #[test]
    fn what_is_used_between_two_instants_is_neither_the_warm_ups_nor_the_drains() {
        let readings = [reading(100, 0), reading(200, 100), reading(400, 500), reading(1_400, 510)];
        assert_eq!(between(&readings, 100, 400).cpu_ns, 500);
        let used = between(&readings, 150, 300);
        assert_eq!((used.cpu_ns, used.user_ns, used.voluntary_switches), (50 + 200, 125, 25));
        assert_eq!(used.written_bytes, Some(50));
        assert_eq!(between(&readings, 0, 5_000).cpu_ns, 510, "beyond the readings nothing is known to be used");
        assert_eq!((samples_by(&readings, 399), samples_by(&readings, 400), samples_by(&readings, 50)), (2, 4, 0));
        assert_eq!(between(&[], 1, 2), WindowUsage::default());
    }

    /// Any values from an agent are accepted.
    #[test]
    fn readings_in_any_order_and_at_their_bounds_are_read() {
        let most = u64::MAX;
        let readings = [reading(most, most), reading(0, 0), reading(most, 0), reading(5, most), reading(5, 3)];
        for (from_ns, to_ns) in [(0, most), (most, 0), (0, 0), (most, most), (3, 7)] {
            for begins in 0..readings.len() {
                between(&readings[begins..], from_ns, to_ns);
                samples_by(&readings[begins..], to_ns);
            }
        }
        assert_eq!(between(&[reading(0, 0), reading(most, most)], 0, most).cpu_ns, most);
    }

    #[test]
    fn a_long_window_has_fewer_readings_and_the_same_sum() {
        let mut course = UsageReadings::new(1);
        let mut at_ns = 0;
        while at_ns < 5_000 {
            course.add(reading(at_ns, 3 * at_ns));
            at_ns = course.next_ns();
        }
        let readings = course.into_readings();
        assert!((UsageReadings::MOST / 2..=UsageReadings::MOST).contains(&readings.len()), "{}", readings.len());
        assert!(readings.windows(2).all(|pair| pair[1].at_ns - pair[0].at_ns <= 8));
        assert_eq!(between(&readings, 1_000, 4_000).cpu_ns, 9_000);
    }
}
