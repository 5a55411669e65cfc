//! Silences of subscribers.

use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::{Arrival, Workload};

/// Silences shorter than this are never counted as stalls.
const SHORTEST_STALL: Ns = 100 * MILLISECOND;

/// Returns the silence that counts as a stall: twenty times the mean gap (or burst period) at
/// the lowest rate, or the mean pause, or half a second if messages are sent as fast as possible.
pub(super) fn stall_ns(workload: &Workload, heard: u64) -> Ns {
    let Some(profile) = workload.rate.profile() else {
        return SECOND / 2;
    };
    let burst = if let Arrival::Burst(size) = workload.arrival { u64::from(size) } else { 1 };
    let sharing = if workload.is_divided() { u64::from(workload.subscribers) } else { 1 };
    let heard = if workload.pattern.round_trip() { 1 } else { heard.max(1) };
    let gap =
        u128::from(burst * sharing) * 1_000_000_000_000 / (u128::from(*profile.per_ks().start()) * u128::from(heard));
    let pause_ns = if let Arrival::OnOff { off_ns, .. } = workload.arrival { off_ns } else { 0 };
    (20 * gap.min(u128::from(SECOND) * 3_600) as Ns).max(SHORTEST_STALL).max(20 * pause_ns)
}
