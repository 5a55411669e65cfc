//! Effects of link failures and of cuts of clients, so that the server is not blamed for them.

use super::finding::words;
use pubmark_model::fault::{Act, Target};
use pubmark_model::record::{FaultEvent, RunRecord};
use pubmark_model::units::{MILLISECOND, Ns};

/// Time that clients may take to come back after a repair: silences of this length are due to the failure.
const RETURN: Ns = 500 * MILLISECOND;

/// Targets whose fault cuts a link of clients: a proxy's link, and a host's.
const LINKS: [Target; 2] = [Target::Link, Target::Host];

fn cuts(record: &RunRecord) -> impl Iterator<Item = (&FaultEvent, Ns, Ns)> {
    let cut = record.fault_log.iter().filter(|event| event.what == Act::Cut);
    cut.filter_map(|event| Some((event, event.at_ns?, event.until_ns.unwrap_or(record.window_ns))))
}

/// Returns whether the requested faults were cuts only.
pub fn only(record: &RunRecord) -> bool {
    !record.faults.is_empty() && record.faults.0.iter().all(|fault| fault.what == Act::Cut)
}

/// Returns whether the requested faults were the link's only.
pub fn of_link_only(record: &RunRecord) -> bool {
    !record.faults.is_empty() && record.faults.0.iter().all(|fault| LINKS.contains(&fault.who))
}

/// Returns whether connections were cut, or just possible again, within a time.
pub fn overlaps(record: &RunRecord, (from, to): (Ns, Ns)) -> bool {
    cuts(record).any(|(_, at, until)| at < to && from < until.saturating_add(RETURN))
}

/// Describes which clients the script disconnected, and when.
pub fn of_clients(record: &RunRecord) -> Vec<String> {
    let told = record.faults.0.iter().zip(&record.fault_log).filter_map(|(fault, event)| {
        let (percent, at_ns) = (fault.cut_percent()?, event.at_ns?);
        let share =
            if percent < 100 { format!("{percent} % of the {}", fault.who.word()) } else { fault.who.word().into() };
        let how = if fault.what == Act::Kill { "killed" } else { "disconnected" };
        Some(format!("{share} were {how} by the script at {}", words(at_ns)))
    });
    told.collect()
}

/// Describes how often the link failed, and for how long.
pub fn noted(record: &RunRecord) -> Option<String> {
    let (mut count, mut down_ns) = (0, Ns::MIN);
    for (_, at, until) in cuts(record).filter(|(event, ..)| LINKS.contains(&event.who)) {
        count += 1;
        down_ns = down_ns.saturating_add(until.saturating_sub(at));
    }
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    (count > 0).then(|| {
        format!("the link was cut {times}, for {} of the window of {}", words(down_ns), words(record.window_ns))
    })
}
