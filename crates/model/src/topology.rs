//! Who hears whom.

use crate::workload::{Pattern, Workload};

/// The publishers that a subscriber hears (a requester, for a replier).
pub fn heard_by(workload: &Workload, subscriber: u32) -> std::ops::Range<u32> {
    match workload.pattern {
        Pattern::Pairs | Pattern::RequestReply => subscriber..subscriber + 1,
        Pattern::FanOut | Pattern::FanIn | Pattern::Pipeline => 0..workload.publishers,
        Pattern::Tree => {
            let partition = workload.publishers / workload.subscribers.max(1);
            subscriber * partition..(subscriber + 1) * partition
        }
    }
}

/// How many subscribers each message is for.
pub fn copies(workload: &Workload) -> u32 {
    match workload.pattern {
        Pattern::Pairs | Pattern::RequestReply | Pattern::Pipeline | Pattern::Tree => 1,
        Pattern::FanOut | Pattern::FanIn => workload.subscribers,
    }
}
