//! Assignment of publishers to subscribers.

use crate::pattern::Topics;
use crate::workload::{Transport, Workload};
use std::ops::Range;
use std::path::Path;

/// Returns the number of publishers of a partition of a tree, 1 or more.
pub fn partition(workload: &Workload) -> u32 {
    (workload.publishers / workload.subscribers.max(1)).max(1)
}

/// Returns the publishers that a subscriber receives from (the requester, for a replier).
pub fn heard_by(workload: &Workload, subscriber: u32) -> Range<u32> {
    match workload.pattern.topics() {
        Topics::Own => subscriber..subscriber + 1,
        Topics::Shared => 0..workload.publishers,
        Topics::Tree => {
            let partition = partition(workload);
            subscriber * partition..(subscriber + 1) * partition
        }
    }
}

/// Returns the endpoint that a client of a library binds, by its number among those that bind. A
/// file is in the folder of the run, an address is its host's. The port is any free one.
pub fn bind_at(transport: Option<Transport>, scratch: &Path, address: &str, number: u32) -> String {
    let address = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    match transport {
        Some(Transport::Tcp) => format!("tcp://{address}:0"),
        Some(Transport::Udp) => format!("udp://{address}:0"),
        Some(Transport::Ipc) => format!("ipc://{}/{number}", scratch.display()),
        Some(Transport::Inproc) | None => format!("inproc://{number}"),
    }
}

/// Returns the endpoint that a publisher binds for answers, if its messages take another way and
/// its subscribers echo.
pub fn bind_answers_at(workload: &Workload, scratch: &Path, address: &str) -> Option<String> {
    let at = |transport| match transport {
        Some(Transport::Ipc) => format!("ipc://{}/answers", scratch.display()),
        Some(Transport::Inproc) | None => "inproc://answers".into(),
        over_the_network => bind_at(over_the_network, scratch, address, 0),
    };
    workload.pattern.echoed().then(|| at(workload.transport))
}

/// Returns the number of subscribers that each message is for.
pub fn copies(workload: &Workload) -> u32 {
    match workload.pattern.topics() {
        Topics::Shared if !workload.is_divided() => workload.subscribers,
        Topics::Own | Topics::Shared | Topics::Tree => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;
    use crate::setting::key;

    fn workload(pattern: Pattern) -> Workload {
        let publishers = match (pattern.paired(), pattern.echoed()) {
            (true, _) => "3",
            (false, true) => "1",
            (false, false) => "6",
        };
        Workload::of([("pattern", pattern.word()), ("publishers", publishers), ("subscribers", "3")]).unwrap()
    }

    #[test]
    fn every_pattern_can_be_written_and_each_message_is_heard_by_those_that_it_is_for() {
        for pattern in Pattern::ALL.iter().copied() {
            assert_eq!(Pattern::parse(pattern.word()), Ok(pattern));
            assert!(key("pattern").unwrap().doc.contains(pattern.word()), "{pattern}");
            let workload = workload(pattern);
            for publisher in 0..workload.publishers {
                let hears = |subscriber: &u32| heard_by(&workload, *subscriber).contains(&publisher);
                let listeners = (0..workload.subscribers).filter(hears).count() as u32;
                let expected = if pattern.competing() { listeners } else { copies(&workload) };
                assert_eq!(listeners, expected, "{pattern}: publisher {publisher}");
                assert!(listeners >= 1 && (1..=listeners).contains(&copies(&workload)), "{pattern}");
            }
            assert!(pattern.paired() || !pattern.requests(), "{pattern}: a request has one replier");
            assert_eq!(pattern.round_trip(), pattern.requests() || pattern.echoed(), "{pattern}");
        }
    }

    #[test]
    fn what_is_heard_is_what_the_pattern_says() {
        let said = |pattern| {
            let workload = workload(pattern);
            (copies(&workload), (0..3).map(|subscriber| heard_by(&workload, subscriber)).collect::<Vec<_>>())
        };
        assert_eq!(said(Pattern::Pairs), (1, vec![0..1, 1..2, 2..3]));
        assert_eq!(said(Pattern::RequestReply), (1, vec![0..1, 1..2, 2..3]));
        assert_eq!(said(Pattern::FanOut), (3, vec![0..6; 3]));
        assert_eq!(said(Pattern::FanOutEcho), (3, vec![0..1; 3]));
        assert_eq!(said(Pattern::FanIn), (3, vec![0..6; 3]));
        assert_eq!(said(Pattern::Pipeline), (1, vec![0..6; 3]));
        assert_eq!(said(Pattern::Tree), (1, vec![0..2, 2..4, 4..6]));
    }
}
