//! Results of correct agents, and the outcome of a run with a wrong one.

use super::*;
use pubmark_model::protocol::{Client, FlowResult, PackedHistogram, Stalls};
use pubmark_model::schedule::DueCount;
use pubmark_model::topology::heard_by;
use pubmark_model::workload::Rate;

/// Change of an agent's result.
pub(super) type Change = fn(&mut AgentResult);

/// Returns a histogram of this many times of this length, ns.
fn times(ns: u64, count: u64) -> Option<PackedHistogram> {
    (count > 0).then(|| PackedHistogram::Pairs(vec![(ns, count)]))
}

fn in_window(total: &PublisherTotal) -> u64 {
    total.window_end - total.window_first
}

impl Stage<'_> {
    /// Returns what a publisher sent: all that was due, until it was killed.
    pub(super) fn total(&self, publisher: u32) -> PublisherTotal {
        let workload = self.workload.of_repeat(1);
        let Rate::Due(profile) = workload.rate.clone() else {
            return PublisherTotal { publisher, sent: 9, window_first: 2, window_end: 9, offered: 7 };
        };
        let killed = self.crashed.iter().find(|(agent, _)| self.leader.agents()[*agent].role().sends());
        let until_ns = killed.map_or(Ns::MAX, |(_, at_ns)| at_ns - self.start_ns);
        let planned = DueCount::of(&workload, profile, publisher, (until_ns, until_ns)).unwrap();
        let (window_first, offered) = (*planned.warm_up.end(), *planned.window.end());
        let window_end = window_first + offered;
        PublisherTotal { publisher, sent: window_end, window_first, window_end, offered }
    }

    /// Returns the result of an agent if every message sent has arrived.
    pub(super) fn right_result(&self, agent: usize) -> AgentResult {
        let publishers = self.totals(agent);
        let mut flow = FlowResult::default();
        let sent = publishers.iter().map(in_window).sum();
        let heard = |client: &Client| match client.role {
            Role::Subscriber if !self.workload.competing() => heard_by(&self.workload, client.id),
            Role::Requester => client.id..client.id + 1,
            _ => 0..0,
        };
        let clients = self.leader.agents()[agent].clients.iter();
        let came = clients.flat_map(heard).map(|id| in_window(&self.total(id))).sum();
        (flow.ledger.expected, flow.ledger.delivered) = (came, came);
        (flow.histograms.latency, flow.histograms.intended_latency) = (times(50_000, came), times(60_000, came));
        (flow.histograms.send_lag, flow.histograms.own_lag) = (times(10_000, sent), times(10_000, sent));
        flow.publishers = publishers;
        AgentResult { flows: vec![flow], ..AgentResult::default() }
    }
}

/// Returns the error of a run of this cell in which an agent changes its result.
fn changed(cell: &Cell, agent: usize, change: Change, tells_pauses: bool) -> Option<Refusal> {
    let mut stage = Stage::new(cell, None);
    stage.result = Some((agent, change, tells_pauses));
    stage.play().outcome.err()
}

/// Returns the error of a run whose fan-out subscribers change their result, with `tells_pauses` in their hello.
fn handed_in(change: Change, tells_pauses: bool) -> Option<Refusal> {
    changed(&cell("pattern = \"fan-out\""), 1, change, tells_pauses)
}

#[test]
fn a_result_is_checked_and_the_agent_and_the_field_are_named() {
    assert_eq!(handed_in(|_| (), false), None);
    let says = |change, tells_pauses| handed_in(change, tells_pauses).unwrap().to_string();
    assert_eq!(
        says(|result| result.flows.clear(), false),
        "agent subscribers does not answer for what it was told to play: its result has 0 flows, and there is 1"
    );
    let said = says(|result| result.flows[0].histograms.latency = Some(PackedHistogram::V2("abc".into())), false);
    assert!(said.starts_with("agent subscribers: `flows[0].histograms.latency` of its result is not a hist"), "{said}");
    assert!(says(|_| (), true).contains("its hello says that it tells `pauses`, and its result has none"));
    assert_eq!(handed_in(|result| result.pauses = Some(Stalls::default()), true), None);
}

/// By change of a result: the agent, the figure, and the error.
#[test]
fn an_agent_that_contradicts_the_plan_or_itself_ends_the_run_by_name() {
    let wrong: [(&str, usize, Change, &str); 9] = [
        (
            "late messages are passed over",
            0,
            |result| result.flows[0].publishers[0].offered = 150,
            "agent publishers contradicts the plan: publisher 0 offered 150 messages, but 200 were due in the window",
        ),
        (
            "one more is offered",
            0,
            |result| result.flows[0].publishers[0].offered = 201,
            "publisher 0 offered 201 messages, but 200 were due in the window",
        ),
        (
            "the window begins with the warm-up",
            0,
            |result| result.flows[0].publishers[0].window_first = 0,
            "the window of publisher 0 begins at sequence 0, but 100 messages were due before it",
        ),
        (
            "send lags are of the first messages",
            0,
            |result| result.flows[0].histograms.send_lag = times(10_000, 60),
            "agent publishers contradicts itself: `send_lag` has 60 times, but 200 messages were sent in the window",
        ),
        (
            "own lag above send lag",
            0,
            |result| result.flows[0].histograms.own_lag = times(10_500, 200),
            "agent publishers contradicts itself: `own_lag` is 10503 ns at the 0.0th percentile",
        ),
        (
            "latencies are of the first messages",
            1,
            |result| {
                let histograms = &mut result.flows[0].histograms;
                (histograms.latency, histograms.intended_latency) = (times(50_000, 100), times(60_000, 100));
            },
            "agent subscribers contradicts itself: `latency` has 100 times, but 200 messages came",
        ),
        (
            "latency 10 ms too high",
            1,
            |result| result.flows[0].histograms.latency = times(10_050_000, 200),
            "agent subscribers contradicts itself: `latency` is 10051583 ns at the 0.0th percentile, but `intended_latency` is 60031 ns",
        ),
        (
            "nothing is expected",
            1,
            |result| result.flows[0].ledger.expected = 0,
            "agent subscribers contradicts the plan: `expected` is 0, but 200 messages were sent to its clients",
        ),
        (
            "the last arrival is still to come",
            1,
            |result| result.flows[0].last_arrival_ns = Some(3_600 * SECOND),
            "agent subscribers contradicts the times of the run: `last_arrival_ns` is ",
        ),
    ];
    let cell = cell("pattern = \"fan-out\"\nrate = 100");
    for (name, agent, change, says) in wrong {
        let said = changed(&cell, agent, change, false).map(|refusal| refusal.to_string()).unwrap_or_default();
        assert!(said.contains(says), "{name}: {said}");
    }
}

/// Correct results are accepted for every arrival and rate.
#[test]
fn what_is_offered_is_known_for_every_arrival_and_rate() {
    let refused = |settings: &str, change: Change| {
        let cell = cell(&format!("pattern = \"fan-in\"\npublishers = 3\n{settings}"));
        changed(&cell, 0, change, false).map(|refusal| refusal.to_string())
    };
    for settings in [
        "rate = 2.5",
        "rate = 333.333",
        "rate = 100\narrival = \"poisson\"",
        "rate = 0.5\narrival = \"poisson\"",
        "rate = 100\narrival = \"burst:7\"",
        "rate = 100\n[faults]\nfault = \"kill publishers at 500ms\"",
    ] {
        assert_eq!(refused(settings, |_| ()), None, "{settings}");
        for change in [(|result| result.flows[0].publishers[2].offered += 1) as Change, |result| {
            let offered = &mut result.flows[0].publishers[1].offered;
            *offered = offered.checked_sub(1).unwrap_or(1);
        }] {
            let said = refused(settings, change).unwrap_or_default();
            assert!(said.starts_with("agent publishers contradicts the plan: publisher "), "{settings}: {said}");
        }
    }
}
