//! Compares an agent's usage with its host's measurement of its process.

use super::part::{Contradiction, RelationSource, RunSpan, hold};
use crate::protocol::AgentUsage;
use crate::units::{MILLISECOND, Ns};

/// Tolerance of processor time, ns.
const LITTLE: Ns = 50 * MILLISECOND;

/// Tolerance of memory, bytes.
const LITTLE_BYTES: u64 = 16 << 20;

/// A host's measurement of an agent's process, from the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenUsage {
    /// Instants of its two samples: at the beginning of the window and at its end, or later, ns.
    pub at_ns: (Ns, Ns),
    /// Processor time of all threads between the two, ns.
    pub cpu_ns: Ns,
    /// Resident set size at either instant, bytes.
    pub rss_bytes: (u64, u64),
    /// Processors of the host.
    pub processors: u64,
}

impl SeenUsage {
    /// Compares an agent's figures with the measurement. Neither side reads exactly at the edges of
    /// the window, so an agent may differ by half, and by all that it can have used while a reading
    /// was late.
    ///
    /// # Errors
    /// Returns the figure that differs by more.
    pub fn check(&self, usage: &AgentUsage, span: &RunSpan) -> Result<(), Contradiction> {
        let broken = |relation| move |what| Contradiction { relation, against: RelationSource::Host, what };
        self.check_cpu(usage, span).map_err(broken("cpu-time"))?;
        self.check_memory(usage).map_err(broken("memory"))
    }

    fn check_cpu(&self, usage: &AgentUsage, span: &RunSpan) -> Result<(), String> {
        let (begin_ns, end_ns) = self.at_ns;
        // The agent's usage until the stop does not apply to a window that ended before.
        if span.to_ns.is_none() && usage.course.is_empty() {
            return Ok(());
        }
        let usage = usage.within(begin_ns, end_ns);
        let window_ns = span.to_ns.map(|to_ns| to_ns.saturating_sub(span.from_ns));
        // If the window's end is unknown, the agent's readings are cut at the instants of the
        // host's samples.
        let late_ns = window_ns.map_or(0, |window_ns| {
            let begin_late = begin_ns.abs_diff(span.from_ns);
            let end_late = span.to_ns.map_or(0, |to_ns| end_ns.abs_diff(to_ns));
            begin_late.saturating_add(end_late).saturating_add(usage.wall_ns.abs_diff(window_ns))
        });
        let slack = late_ns.saturating_mul(self.processors.max(1)).saturating_add(LITTLE);
        let (said, seen) = (usage.cpu_ns, self.cpu_ns);
        let is_near = said.saturating_add(slack) >= seen / 2 && said / 2 <= seen.saturating_add(slack);
        hold(is_near, || {
            let s = |ns: Ns| ns as f64 / 1e9;
            format!("`usage.cpu_ns` is {:.3} s, but its process used {:.3} s of processor time", s(said), s(seen))
        })
    }

    fn check_memory(&self, usage: &AgentUsage) -> Result<(), String> {
        let (Some(least), Some(most)) = (usage.rss_bytes.iter().min(), usage.rss_bytes.iter().max()) else {
            return Ok(());
        };
        let (low, high) = (self.rss_bytes.0.min(self.rss_bytes.1), self.rss_bytes.0.max(self.rss_bytes.1));
        let is_near =
            most.saturating_add(LITTLE_BYTES / 4) >= low / 2 && least / 2 <= high.saturating_add(LITTLE_BYTES);
        hold(is_near, || format!("`usage.rss_bytes` is {least} to {most}, but its process held {low} to {high} bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::SECOND;
    use crate::window_usage::{UsageReading, WindowUsage};

    const SPAN: RunSpan = RunSpan { start_ns: 0, from_ns: SECOND, to_ns: Some(5 * SECOND), handed_in_ns: None };

    fn seen(cpu_ms: u64, late_ms: (u64, u64)) -> SeenUsage {
        let late = |at_s: u64, ms: u64| at_s * SECOND + ms * MILLISECOND;
        SeenUsage {
            at_ns: (late(1, late_ms.0), late(5, late_ms.1)),
            cpu_ns: cpu_ms * MILLISECOND,
            rss_bytes: (40 << 20, 60 << 20),
            processors: 2,
        }
    }

    fn said(cpu_ms: u64, wall_ms: u64, rss_bytes: &[u64]) -> AgentUsage {
        let (cpu_ns, wall_ns) = (cpu_ms * MILLISECOND, wall_ms * MILLISECOND);
        AgentUsage { cpu_ns, wall_ns, rss_bytes: rss_bytes.to_vec(), ..AgentUsage::default() }
    }

    #[test]
    fn processor_time_of_one_thread_is_not_that_of_the_process() {
        let check = |seen: SeenUsage, said: AgentUsage| seen.check(&said, &SPAN).map_err(|broken| broken.to_string());
        let says = "contradicts what its host saw: `usage.cpu_ns` is 0.020 s, but its process used 0.414 s of \
                    processor time (relation cpu-time)";
        assert_eq!(check(seen(414, (0, 1)), said(20, 4_000, &[])), Err(says.into()));
        assert!(check(seen(20, (0, 1)), said(414, 4_000, &[])).is_err(), "nor more than it used");
        assert_eq!(check(seen(414, (0, 1)), said(400, 4_000, &[])), Ok(()));
        assert_eq!(check(seen(60, (0, 1)), said(0, 4_000, &[])), Ok(()), "too little to tell");
        // A coordinator that was stopped across the window's edge measured another period.
        assert_eq!(check(seen(10, (1_000, 0)), said(900, 4_000, &[])), Ok(()));
        assert_eq!(check(seen(2_000, (0, 1_000)), said(20, 4_000, &[])), Ok(()));
        assert_eq!(check(seen(2_000, (0, 0)), said(20, 3_000, &[])), Ok(()), "so did an agent that was late");
    }

    #[test]
    fn memory_in_another_unit_is_found() {
        let check = |rss: &[u64]| seen(0, (0, 0)).check(&said(0, 4_000, rss), &SPAN).map_err(|broken| broken.relation);
        assert_eq!((check(&[]), check(&[50 << 20, 45 << 20]), check(&[17 << 20, 90 << 20])), (Ok(()), Ok(()), Ok(())));
        assert_eq!((check(&[50 << 10]), check(&[50 << 30])), (Err("memory"), Err("memory")));
    }

    #[test]
    fn of_a_count_at_max_the_part_that_the_host_saw_is_compared() {
        let span = RunSpan { to_ns: None, ..SPAN };
        let reading = |at_s: u64, cpu_ms: u64| UsageReading {
            at_ns: at_s * SECOND,
            used: WindowUsage { cpu_ns: cpu_ms * MILLISECOND, ..WindowUsage::default() },
            samples: 0,
        };
        let course = vec![reading(1, 0), reading(5, 800), reading(9, 5_000)];
        let usage = AgentUsage { course, ..said(5_000, 8_000, &[]) };
        assert_eq!(seen(800, (0, 0)).check(&usage, &span), Ok(()));
        assert!(seen(5_000, (0, 0)).check(&usage, &span).is_err());
        assert_eq!(seen(800, (0, 0)).check(&said(5_000, 8_000, &[]), &span), Ok(()), "without readings there is none");
    }
}
