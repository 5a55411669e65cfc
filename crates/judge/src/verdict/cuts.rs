//! Effects of link failures, so that the server is not blamed for them.

use super::finding::words;
use pubmark_model::fault::Target;
use pubmark_model::record::{FaultEvent, RunRecord};
use pubmark_model::units::{MILLISECOND, Ns};

/// Time that clients may take to come back after a repair: silences of this length are due to the failure.
const RETURN: Ns = 500 * MILLISECOND;

/// Targets whose fault cuts a link: a proxy's link, and a host's.
const LINKS: [Target; 2] = [Target::Link, Target::Host];

fn cuts(record: &RunRecord) -> impl Iterator<Item = (Ns, Ns)> {
    let on_link = |event: &&FaultEvent| LINKS.contains(&event.who);
    let times = |event: &FaultEvent| Some((event.at_ns?, event.until_ns.unwrap_or(record.window_ns)));
    record.fault_log.iter().filter(on_link).filter_map(times)
}

/// Returns whether the requested faults were the link's only.
pub fn only(record: &RunRecord) -> bool {
    !record.faults.is_empty() && record.faults.0.iter().all(|fault| LINKS.contains(&fault.who))
}

/// Returns whether the link was cut, or just repaired, within a time.
pub fn overlaps(record: &RunRecord, (from, to): (Ns, Ns)) -> bool {
    cuts(record).any(|(at, until)| at < to && from < until.saturating_add(RETURN))
}

/// Describes how often the link failed, and for how long.
pub fn noted(record: &RunRecord) -> Option<String> {
    let (mut count, mut down_ns) = (0, Ns::MIN);
    for (at, until) in cuts(record) {
        count += 1;
        down_ns = down_ns.saturating_add(until.saturating_sub(at));
    }
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    (count > 0).then(|| {
        format!("the link was cut {times}, for {} of the window of {}", words(down_ns), words(record.window_ns))
    })
}
