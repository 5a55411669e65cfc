//! The room that a ledger needs.

use pubmark_model::header::MAX_SEQUENCE;
use pubmark_model::profile::Profile;
use pubmark_model::workload::{Arrival, Extent, Workload};

/// Rate that a ledger makes room for if the schedule sets none: 50 million messages per
/// second, more than any system has reached here.
const FASTEST: Profile = Profile::constant(50_000_000_000);

/// Returns the number of messages of one publisher that a ledger must have room for.
pub fn ledger_capacity(workload: &Workload) -> u64 {
    let measured = workload.window_ns().unwrap_or(0);
    let profile = workload.rate.profile().unwrap_or(FASTEST);
    let by_time = profile.due_before(workload.warmup_ns.saturating_add(measured));
    // Poisson arrivals can exceed their mean: 12 standard deviations, and a minimum.
    let spread = if workload.arrival == Arrival::Poisson { 12 * by_time.isqrt() + 64 } else { 64 };
    let burst = if let Arrival::Burst(size) = workload.arrival { u64::from(size) } else { 0 };
    let count = if let Extent::Count(count) = workload.extent { count } else { 0 };
    by_time.saturating_add(spread + burst + count).min(u64::from(MAX_SEQUENCE))
}
