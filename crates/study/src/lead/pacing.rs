//! Processor time that a run's publishers may spend on busy waiting.

use pubmark_model::workload::Workload;

/// Longest busy wait of a publisher for a message, s.
const LONGEST_S: f64 = 200e-6;
/// Minimum for publishers, processors.
const LEAST: f64 = 0.25;

/// Returns the number of processors that `senders` of a workload's publishers may keep busy, of `cpus` that the run may
/// use. Subscribers and the server come first: publishers get half of the processors beyond two, a quarter of one if
/// there are two, and no more than they can use by busy waiting before each of their messages.
pub fn spin_cores(workload: &Workload, cpus: usize, senders: usize) -> f64 {
    let Some(profile) = workload.rate.profile() else { return 0.0 };
    let publishers = f64::from(workload.publishers.max(1));
    let spare = (cpus.saturating_sub(2) as f64 / 2.0).max(LEAST);
    let useful = publishers * profile.fastest_per_s() * LONGEST_S;
    spare.min(useful) * senders as f64 / publishers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_by_rate_and_free_processors() {
        let budget = |pairs: &str, rate: &str, cpus, senders| {
            spin_cores(&Workload::of([("pairs", pairs), ("rate", rate)]).unwrap(), cpus, senders)
        };
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        near(budget("1", "1000", 2, 1), 0.2);
        near(budget("10", "1000", 2, 10), 0.25);
        near(budget("10", "1000", 2, 5), 0.125);
        near(budget("10", "1000", 8, 10), 2.0);
        near(budget("100", "1000", 8, 100), 3.0);
        near(budget("1", "max", 8, 1), 0.0);
    }
}
