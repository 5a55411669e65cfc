//! What is known of the part that an agent played, and what is made of it.

use crate::counts::PublisherTotal;
use crate::protocol::{AgentResult, Client, FlowResult, ResultHistograms, Role};
use crate::schedule::DueCount;
use crate::units::Ns;
use crate::workload::{Rate, Workload};

/// What the coordinator knows of the part that an agent played, and what the agent
/// handed in.
pub struct Part<'a> {
    /// The workload of the run.
    pub workload: &'a Workload,
    /// The clients that the agent played.
    pub clients: &'a [Client],
    /// What the publishers sent that the agent plays or hears, one entry each, in the
    /// order of their numbers.
    pub totals: &'a [PublisherTotal],
    /// The result.
    pub result: &'a AgentResult,
    /// Its histograms.
    pub histograms: &'a ResultHistograms,
    /// The instants of the run.
    pub span: RunSpan,
    /// Where the agent's clients were killed: the earliest and the latest instant at
    /// which that can have been, ns from the start.
    pub killed_ns: Option<(Ns, Ns)>,
    /// Whether clients play on several hosts, whose clocks differ by a little.
    pub is_spread: bool,
}

/// The instants of a run, ns on one clock.
#[derive(Clone, Copy, Debug)]
pub struct RunSpan {
    /// The start of the schedule.
    pub start_ns: Ns,
    /// The beginning of the window.
    pub from_ns: Ns,
    /// Its end; none where a count at `max` ends it.
    pub to_ns: Option<Ns>,
    /// When the result was handed in; none in virtual time, which passes at once.
    pub handed_in_ns: Option<Ns>,
}

/// What a relation is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// What the plan says.
    Plan,
    /// Other figures of the same agent.
    Itself,
    /// The instants of the run.
    Run,
    /// What the agent's host saw of its process.
    Host,
}

impl Against {
    fn words(self) -> &'static str {
        match self {
            Against::Plan => "the plan",
            Against::Itself => "itself",
            Against::Run => "the times of the run",
            Against::Host => "what its host saw",
        }
    }
}

/// A relation that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("contradicts {}: {what} (relation {relation})", .against.words())]
pub struct Contradiction {
    /// The relation's name.
    pub relation: &'static str,
    /// What it was held against.
    pub against: Against,
    /// The figures, both of them.
    pub what: String,
}

impl Part<'_> {
    /// The numbers of the publishers whose messages the agent's subscribers hear, and
    /// of the requesters that hear their own replies: a range for each client.
    pub(super) fn heard(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.clients.iter().filter_map(|client| match client.role {
            Role::Subscriber => Some((client.hears_first, client.hears_first.saturating_add(client.hears_count))),
            Role::Requester => Some((client.id, client.id.saturating_add(1))),
            Role::Publisher | Role::Replier => None,
        })
    }

    /// The sum of something of each publisher, over all that each client hears.
    pub(super) fn over_heard(&self, of: impl Fn(&PublisherTotal) -> u64) -> u64 {
        let mut sums = vec![0_u64];
        sums.extend(self.totals.iter().scan(0_u64, |sum, total| {
            *sum = sum.saturating_add(of(total));
            Some(*sum)
        }));
        let until = |id: u32| sums[self.totals.partition_point(|total| total.publisher < id)];
        self.heard().fold(0, |sum, (first, end)| sum.saturating_add(until(end).saturating_sub(until(first))))
    }

    /// Messages of the window that the agent's own publishers sent.
    pub(super) fn sent_in_window(flow: &FlowResult) -> u64 {
        flow.publishers.iter().map(of_window).fold(0, u64::saturating_add)
    }

    /// What the plan has due of a publisher; none at `max`, and where it is too much to
    /// be drawn.
    pub(super) fn planned(&self, publisher: u32) -> Option<DueCount> {
        let profile = match self.workload.rate {
            Rate::Due(profile) => profile,
            Rate::Max => return None,
        };
        DueCount::of(self.workload, profile, publisher, self.killed_ns.unwrap_or((Ns::MAX, Ns::MAX)))
    }

    /// Whether the agent plays clients that receive what others send.
    pub(super) fn hears(&self) -> bool {
        self.heard().next().is_some()
    }
}

/// Messages of the window that a publisher sent.
pub(super) fn of_window(total: &PublisherTotal) -> u64 {
    total.window_end.saturating_sub(total.window_first)
}

/// Fails unless a condition holds, with the figures in words.
pub(super) fn hold(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
