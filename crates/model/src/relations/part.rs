//! The part of a run that an agent played, and values derived from it.

use crate::counts::PublisherTotal;
use crate::protocol::{AgentResult, Client, FlowResult, ResultHistograms, Role};
use crate::schedule::DueCount;
use crate::units::Ns;
use crate::workload::{Rate, Workload};

/// The coordinator's knowledge of the part that an agent played, and the agent's result.
pub struct Part<'a> {
    /// The workload of the run.
    pub workload: &'a Workload,
    /// The clients that the agent played.
    pub clients: &'a [Client],
    /// Totals of the publishers that the agent plays or receives from, one entry each, in the order
    /// of their numbers.
    pub totals: &'a [PublisherTotal],
    /// The result.
    pub result: &'a AgentResult,
    /// Its histograms.
    pub histograms: &'a ResultHistograms,
    /// The instants of the run.
    pub span: RunSpan,
    /// Earliest and latest instant at which the agent's clients can have been killed, ns from the
    /// start; `None` if they were not.
    pub killed_ns: Option<(Ns, Ns)>,
    /// True if clients play on several hosts, whose clocks differ slightly.
    pub is_spread: bool,
}

/// The instants of a run, ns on one clock.
#[derive(Clone, Copy, Debug)]
pub struct RunSpan {
    /// The start of the schedule.
    pub start_ns: Ns,
    /// The beginning of the window.
    pub from_ns: Ns,
    /// The end of the window; `None` if a count at `max` ends it.
    pub to_ns: Option<Ns>,
    /// Instant at which the result arrived; `None` in virtual time, which passes at once.
    pub handed_in_ns: Option<Ns>,
}

/// The source that a relation compares the result with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationSource {
    /// The plan.
    Plan,
    /// Other figures of the same agent.
    Itself,
    /// The instants of the run.
    Run,
    /// The host's own measurement of the agent's process.
    Host,
}

impl RelationSource {
    fn words(self) -> &'static str {
        match self {
            RelationSource::Plan => "the plan",
            RelationSource::Itself => "itself",
            RelationSource::Run => "the times of the run",
            RelationSource::Host => "what its host saw",
        }
    }
}

/// A relation that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("contradicts {}: {what} (relation {relation})", .against.words())]
pub struct Contradiction {
    /// The relation's name.
    pub relation: &'static str,
    /// The source that the result was compared with.
    pub against: RelationSource,
    /// Both figures, in words.
    pub what: String,
}

impl Part<'_> {
    /// Returns the numbers of the publishers from which the agent's subscribers receive, and of the
    /// requesters that receive their own replies: a range for each client.
    pub(super) fn heard(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.clients.iter().filter_map(|client| match client.role {
            Role::Subscriber => Some((client.hears_first, client.hears_first.saturating_add(client.hears_count))),
            Role::Requester => Some((client.id, client.id.saturating_add(1))),
            Role::Publisher | Role::Replier => None,
        })
    }

    /// Returns the sum of a value of each publisher, over all that each client receives from.
    pub(super) fn over_heard(&self, of: impl Fn(&PublisherTotal) -> u64) -> u64 {
        let mut sums = vec![0_u64];
        sums.extend(self.totals.iter().scan(0_u64, |sum, total| {
            *sum = sum.saturating_add(of(total));
            Some(*sum)
        }));
        let until = |id: u32| sums[self.totals.partition_point(|total| total.publisher < id)];
        self.heard().fold(0, |sum, (first, end)| sum.saturating_add(until(end).saturating_sub(until(first))))
    }

    /// Returns the messages of the window that the agent's own publishers sent.
    pub(super) fn sent_in_window(flow: &FlowResult) -> u64 {
        flow.publishers.iter().map(of_window).fold(0, u64::saturating_add)
    }

    /// Returns the messages that the plan has due of a publisher; `None` at `max`, and if they are
    /// too many to draw.
    pub(super) fn planned(&self, publisher: u32) -> Option<DueCount> {
        let profile = match &self.workload.rate {
            Rate::Due(profile) => profile.clone(),
            Rate::Max => return None,
        };
        DueCount::of(self.workload, profile, publisher, self.killed_ns.unwrap_or((Ns::MAX, Ns::MAX)))
    }

    /// True if the agent plays clients that receive messages of publishers.
    pub(super) fn hears(&self) -> bool {
        self.heard().next().is_some()
    }
}

/// Returns the messages of the window that a publisher sent.
pub(super) fn of_window(total: &PublisherTotal) -> u64 {
    total.window_end.saturating_sub(total.window_first)
}

/// Returns an error with the figures in words unless a condition holds.
pub(super) fn hold(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
