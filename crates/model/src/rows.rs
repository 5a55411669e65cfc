//! Memory that the rows of an agent need if it leaves its figures to pubmark.

use crate::schedule::Schedule;
use crate::topology::heard_by;
use crate::units::{Ns, SECOND};
use crate::workload::{Extent, Workload};

/// Largest size of the rows and due times of one agent, bytes. A run that needs more is refused
/// when it is planned.
pub const MOST_BYTES: u64 = 512 << 20;

/// Width of a due time, bytes.
pub const DUE_WIDTH: u64 = 8;
/// Width of a row of a send, bytes.
pub const SENT_WIDTH: u64 = 32;
/// Width of a row of an arrival if latency is measured, bytes.
pub const ARRIVAL_WIDTH: u64 = 56;
/// Width of a row of arrivals if no latency is measured, bytes.
pub const RUN_WIDTH: u64 = 32;

/// Rows per second that a client at `max` has room for. If no latency is measured, a row holds up
/// to 64 messages, so this is far above what any system here has reached.
const ROWS_PER_S_AT_MAX: u64 = 200_000;

/// Returns the number of a publisher's messages due from the start to the end of the window; `None`
/// at `max`.
pub fn due_count(workload: &Workload, publisher: u32) -> Option<u64> {
    let profile = workload.rate.profile()?;
    let mut schedule = Schedule::of(workload, profile, publisher);
    let warm_up = schedule.skip_to(workload.warmup_ns);
    Some(match workload.extent {
        Extent::Count(count) => warm_up.saturating_add(count),
        Extent::TimeNs(ns) => schedule.skip_to(workload.warmup_ns.saturating_add(ns)),
    })
}

/// Returns the number of rows that a publisher at `max` has room for.
pub fn rows_at_max(workload: &Workload) -> u64 {
    let (window_ns, count): (Ns, u64) = match workload.extent {
        Extent::TimeNs(ns) => (ns, 0),
        Extent::Count(count) => (0, count.min(u64::from(u32::MAX))),
    };
    let by_time = u128::from(workload.warmup_ns.saturating_add(window_ns)) * u128::from(ROWS_PER_S_AT_MAX);
    // If a count ends the run, the clock may be read for each message.
    (by_time / u128::from(SECOND)) as u64 + count + 64
}

/// Returns the number of arrivals that a client has room for if it should receive `messages`: some
/// may arrive twice.
pub fn arrivals(messages: u64) -> u64 {
    if messages > 0 { messages.saturating_add(messages / 4 + 4_096) } else { 0 }
}

/// Returns the approximate size of the rows of the busier side of a run, bytes per agent.
pub fn bytes(workload: &Workload) -> u64 {
    let (due, sent) = match due_count(workload, 0) {
        Some(count) => (count, count),
        None => (0, rows_at_max(workload)),
    };
    let width = if workload.measures_latency() { ARRIVAL_WIDTH } else { RUN_WIDTH };
    let hears = |messages: u64| arrivals(messages).saturating_mul(width);
    let (publishers, subscribers) = (u64::from(workload.publishers), u64::from(workload.subscribers));
    let sends = (due * DUE_WIDTH).saturating_add(sent.saturating_mul(SENT_WIDTH)).saturating_mul(publishers);
    let answers = if workload.pattern.requests() || workload.pattern.echoed() { hears(sent) } else { 0 };
    let publishing = sends.saturating_add(answers.saturating_mul(publishers));
    let heard = heard_by(workload, 0).len() as u64;
    let subscribing = if workload.pattern.requests() { 0 } else { hears(sent.saturating_mul(heard)) };
    publishing.max(subscribing.saturating_mul(subscribers)) / u64::from(workload.agents.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(more: &[(&str, &str)]) -> Workload {
        let all = [("pattern", "pairs"), ("warmup", "1s"), ("duration", "9s"), ("rate", "20000")];
        Workload::of(all.iter().chain(more).copied()).unwrap()
    }

    #[test]
    fn the_busier_side_counts_and_agents_share_it() {
        let sends = 200_000 * (DUE_WIDTH + SENT_WIDTH);
        let hears = (200_000 + 50_000 + 4_096) * ARRIVAL_WIDTH;
        assert_eq!(bytes(&workload(&[])), hears.max(sends));
        assert_eq!(bytes(&workload(&[("pairs", "4"), ("agents", "2")])), 2 * hears);
        assert_eq!(bytes(&workload(&[("pattern", "request-reply")])), sends + hears);
        let fan_in = workload(&[("pattern", "fan-in"), ("publishers", "4")]);
        assert_eq!(bytes(&fan_in), (800_000 + 200_000 + 4_096) * ARRIVAL_WIDTH);
        let as_fast = bytes(&workload(&[("rate", "max"), ("pattern", "pipeline")]));
        assert_eq!(as_fast, arrivals(10 * ROWS_PER_S_AT_MAX + 64) * RUN_WIDTH);
        assert!(bytes(&workload(&[("rate", "1000000")])) > MOST_BYTES);
    }
}
