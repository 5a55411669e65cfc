//! Checks agents' messages against the plan, and for contradictions.

use super::Leader;
use super::refusal::Refusal;
use pubmark_model::protocol::{AgentResult, AgentUsage, PublisherTotal};
use pubmark_model::relations::{Part, RunSpan, SeenUsage};
use pubmark_model::units::{MILLISECOND, Ns};

/// Tolerance for an instant of another host's clock.
const CLOCKS: Ns = 100 * MILLISECOND;

impl Leader<'_> {
    /// Checks that an agent's publishers can have sent what it reports.
    pub(super) fn check(&self, from: usize, publishers: &[PublisherTotal]) -> Result<(), Refusal> {
        let agent = &self.agents[from];
        agent.check(publishers).map_err(|what| Refusal::Wrong { agent: agent.name.clone(), what })
    }

    /// Checks that a result has the requested figures, keeps its agent's promises, is readable, and contradicts neither
    /// the plan nor itself.
    pub(super) fn check_result(&self, from: usize, result: &AgentResult, now: Ns) -> Result<(), Refusal> {
        let agent = || self.agents[from].name.clone();
        let wrong = |what: String| Err(Refusal::Wrong { agent: agent(), what });
        if result.flows.len() != 1 {
            return wrong(format!("its result has {} flows, and there is 1", result.flows.len()));
        }
        let tells_pauses = self.hellos[from].as_ref().is_some_and(|hello| hello.features.pauses);
        if tells_pauses && result.pauses.is_none() {
            return wrong("its hello says that it tells `pauses`, and its result has none".into());
        }
        let publishers: Vec<PublisherTotal> = result.publishers().copied().collect();
        self.check(from, &publishers)?;
        let histograms = result.histograms().map_err(|bad| Refusal::BadHistogram { agent: agent(), bad })?;
        let is_spread = self.brief.seats.iter().any(|seat| !seat.host.is_empty());
        let flow = self.agents[from].flow;
        let workload = self.flows[flow].workload.of_repeat(self.brief.place.repeat);
        let totals = self.agents[from].concerns(&self.totals[flow], |total| total.publisher);
        let part = Part {
            workload: &workload,
            clients: &self.agents[from].clients,
            totals: &totals,
            result,
            histograms: &histograms,
            span: self.span(now),
            killed_ns: self.killed_within(from, if is_spread { CLOCKS } else { 0 }),
            is_spread,
        };
        part.check().map_err(|contradiction| Refusal::Contradiction { agent: agent(), contradiction })
    }

    /// Returns the instants of the run, at whose end a result is handed in.
    fn span(&self, now: Ns) -> RunSpan {
        let (workload, start_ns) = (&self.brief.cell.workload, self.times.start_ns);
        let from_ns = start_ns.saturating_add(workload.warmup_ns);
        let to_ns = workload.window_ns().map(|window_ns| from_ns.saturating_add(window_ns));
        RunSpan { start_ns, from_ns, to_ns, handed_in_ns: (!self.brief.timeless()).then_some(now) }
    }

    /// Compares the usage that an agent reports with what its host measured of this process. Accepts a process that
    /// only started the agent's own, because the report is about the latter.
    ///
    /// # Errors
    /// If they differ by more than their readings explain.
    pub fn check_usage(&self, agent: usize, usage: &AgentUsage, pid: i32, seen: &SeenUsage) -> Result<(), Refusal> {
        let is_its_own = self.hellos[agent].as_ref().is_some_and(|hello| i64::from(hello.pid) == i64::from(pid));
        if !is_its_own || self.brief.timeless() {
            return Ok(());
        }
        let name = || self.agents[agent].name.clone();
        let checked = seen.check(usage, &self.span(seen.at_ns.1));
        checked.map_err(|contradiction| Refusal::Contradiction { agent: name(), contradiction })
    }

    /// Returns the interval in which an agent's clients were killed, if they were, ns from the start: not before that
    /// was due, and not after the agent reported what they had sent.
    fn killed_within(&self, agent: usize, slack_ns: Ns) -> Option<(Ns, Ns)> {
        let due_ns = self.killed_ns[agent]?;
        let said_ns = self.totalled_ns[agent].unwrap_or(due_ns).saturating_add(slack_ns);
        let relative = |at_ns: Ns| at_ns.saturating_sub(self.times.start_ns);
        Some((relative(due_ns.saturating_sub(slack_ns)), relative(said_ns)))
    }
}
