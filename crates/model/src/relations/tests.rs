use super::*;
use crate::catch_up::CatchUp;
use crate::churn::{Churn, ChurnCounts, ConnectTimes};
use crate::counts::{ByteCounts, LedgerCounts, PublisherTotal};
use crate::payload::{Payload, SizeFiles};
use crate::protocol::{
    AgentResult, ChurnResult, Client, ConnectionEnd, Connections, PackedHistogram, Ranges, Role, Sequences,
    SliceSeries, Stalls, WillResult,
};
use crate::rebalances::Rebalances;
use crate::units::{MILLISECOND, Ns, SECOND};
use crate::workload::Workload;
use std::collections::BTreeSet;

const START: Ns = 1_000 * SECOND;

/// The part of an agent in a run, with its result.
struct Case {
    workload: Workload,
    clients: Vec<Client>,
    totals: Vec<PublisherTotal>,
    result: AgentResult,
    killed_ns: Option<(Ns, Ns)>,
    is_spread: bool,
}

fn client(role: Role, id: u32, hears: (u32, u32)) -> Client {
    let text = serde_json::json!({"role": role, "id": id, "hears_first": hears.0, "hears_count": hears.1});
    serde_json::from_value(text).unwrap()
}

fn times(pairs: &[(u64, u64)]) -> Option<PackedHistogram> {
    Some(PackedHistogram::Pairs(pairs.to_vec()))
}

/// Makes a result of clients that came and went: due, connected and failed ones, and this many times.
fn churned([due, connected, failed]: [u64; 3], count: u64) -> Option<Box<ChurnResult>> {
    let counts = ChurnCounts { due, connected, failed };
    let times = || times(&[(5, count)]).filter(|_| count > 0);
    let times = ConnectTimes { connect: times(), tls_handshake: None, subscribe: times() };
    Some(Box::new(ChurnResult { counts, times, ..ChurnResult::default() }))
}

/// Creates a case with a publisher and a subscriber in one agent, 100 messages a second, a second
/// of warm-up, two of window. Of 200 messages 190 arrived: 3 with a wrong body, 2 before they were
/// due.
fn case(settings: &[(&str, &str)]) -> Case {
    let base = [("pattern", "fan-out"), ("rate", "100"), ("warmup", "1s"), ("duration", "2s"), ("payload", "64")];
    let kept = base.into_iter().filter(|(key, _)| !settings.iter().any(|(other, _)| other == key));
    let workload = Workload::of(kept.chain(settings.iter().copied()).filter(|(_, value)| !value.is_empty())).unwrap();
    let total = PublisherTotal { publisher: 0, sent: 300, window_first: 100, window_end: 300, offered: 200 };
    let mut flow = FlowResult {
        publishers: vec![total],
        ledger: LedgerCounts {
            expected: 200,
            delivered: 190,
            duplicated: 4,
            reordered: 5,
            corrupted: 3,
            negative: 2,
            ..LedgerCounts::default()
        },
        arrived: 191,
        first_sent_ns: Some(START + SECOND),
        last_arrival_ns: Some(START + 3 * SECOND),
        jitter_sum_ns: 1e6,
        jitter_pairs: 180,
        series: SliceSeries {
            slice_ns: 100 * MILLISECOND,
            sent: vec![100, 100],
            delivered: vec![91, 100],
            latency: vec![times(&[(50_000, 85)]), times(&[(50_000, 99)])],
        },
        stalls: Some(Stalls::one(300 * MILLISECOND, SECOND)),
        ..FlowResult::default()
    };
    let histograms = &mut flow.histograms;
    histograms.latency = times(&[(50_000, 100), (90_000, 85)]);
    histograms.intended_latency = times(&[(60_000, 100), (90_000, 84), (200_000, 1)]);
    histograms.service_latency = times(&[(40_000, 185)]);
    histograms.receive_lag = times(&[(1_000, 185)]);
    histograms.send_lag = times(&[(20_000, 100), (30_000, 100)]);
    histograms.own_lag = times(&[(10_000, 150), (30_000, 50)]);
    let mut result = AgentResult { flows: vec![flow], ..AgentResult::default() };
    (result.usage.wall_ns, result.usage.cpu_ns, result.usage.user_ns) = (2 * SECOND, SECOND, SECOND / 2);
    result.pauses = Some(Stalls::default());
    Case {
        workload,
        clients: vec![client(Role::Publisher, 0, (0, 0)), client(Role::Subscriber, 0, (0, 1))],
        totals: vec![total],
        result,
        killed_ns: None,
        is_spread: false,
    }
}

impl Case {
    /// Lets its subscriber start, subscribe after a second, and catch up at an instant with this many messages.
    fn start_late(&mut self, start_ns: Option<Ns>, (caught_up_ns, messages): (Ns, u64)) {
        self.workload.subscribers_start_ns = start_ns;
        let caught_up_ns = Some(caught_up_ns);
        self.flow().catch_up = Some(CatchUp { subscribed_ns: SECOND, caught_up_ns, messages });
    }

    fn check(&self) -> Result<(), Contradiction> {
        let (start_ns, from_ns) = (START, START + self.workload.warmup_ns);
        let histograms = self.result.histograms().unwrap();
        let to_ns = self.workload.window_ns().map(|window_ns| from_ns + window_ns);
        Part {
            workload: &self.workload,
            clients: &self.clients,
            totals: &self.totals,
            result: &self.result,
            histograms: &histograms,
            span: RunSpan { start_ns, from_ns, to_ns, handed_in_ns: Some(START + 5 * SECOND) },
            killed_ns: self.killed_ns,
            is_spread: self.is_spread,
        }
        .check()
    }

    /// Lets the sizes of messages vary, with these bytes sent and arrived.
    fn vary(&mut self, bytes: Option<(u64, u64)>) {
        self.workload.payload_bytes = 128;
        self.workload.payload_sizes = Payload::parse("uniform 64B to 128B").unwrap().sizes(&SizeFiles::new());
        let counts = |(sent, arrived)| ByteCounts { sent, delivered: sent, arrived };
        self.flow().bytes = bytes.map(counts);
    }

    fn comes_and_goes(&mut self, counts: [u64; 3], times: u64) {
        self.workload.churn = Churn::parse("10/s").unwrap();
        self.flow().churn = churned(counts, times);
    }

    /// Gives its result last wills: due and received ones, and this many times.
    fn inherits(&mut self, [due, received]: [u64; 2], count: u64, is_asked: bool) {
        self.workload.last_will = is_asked;
        let latency = times(&[(5, count)]);
        self.flow().wills = Some(Box::new(WillResult { due, received, latency, ..WillResult::default() }));
    }

    /// Lets a connection of a publisher end after all was sent.
    fn loses(&mut self, publisher: u32, is_asked: bool) {
        self.workload.last_will = is_asked;
        self.flow().ends = vec![ConnectionEnd { publisher, connection: 0, at_ns: None }];
    }

    fn flow(&mut self) -> &mut FlowResult {
        &mut self.result.flows[0]
    }

    fn total(&mut self, change: impl Fn(&mut PublisherTotal)) {
        change(&mut self.totals[0]);
        self.result.flows[0].publishers[0] = self.totals[0];
    }
}

/// An error of an agent.
type Wrong = fn(&mut Case);

/// For each relation, a figure that breaks it, and the error text.
const WRONG: &[(&str, Wrong, &str)] = &[
    ("offered", |case| case.total(|total| total.offered = 199), "publisher 0 offered 199 messages, but 200 were due"),
    ("offered", |case| case.total(|total| total.offered = 201), "publisher 0 offered 201 messages, but 200 were due"),
    (
        "window",
        |case| case.total(|total| total.window_end = 299),
        "sent 300 messages, but its window ends at sequence 299",
    ),
    ("window", |case| case.total(|total| total.window_first = 99), "begins at sequence 99, but 100 messages were due"),
    (
        "window",
        |case| case.total(|total| total.window_first = 101),
        "begins at sequence 101, but 100 messages were due",
    ),
    ("totals", |case| case.totals[0].offered = 190, "offered: 200 }, and its `sent` had"),
    ("expected", |case| case.flow().ledger.expected = 190, "`expected` is 190, but 200 messages were sent"),
    ("delivered", |case| case.flow().ledger.delivered = 201, "`delivered` is 201, but 200 messages were sent"),
    ("delivered", |case| case.flow().ledger.unanswered = 1, "`unanswered` is 1, but it asked for 0 echoes"),
    ("delivered", |case| case.flow().ledger.reordered = 191, "`reordered` is 191, but only 190 messages came"),
    ("corrupted", |case| case.flow().ledger.unidentified = 4, "`unidentified` is 4, but `corrupted` is 3"),
    ("missing", |case| case.flow().missing = ranges(9), "`missing` names 9 messages, but 10 of those"),
    (
        "acknowledged",
        |case| (case.flow().acked, case.flow().unacked) = (192, ranges(9)),
        "192 messages were acknowledged and 9 were not, but 200 were sent",
    ),
    (
        "arrived",
        |case| {
            case.flow().arrived = 291;
            case.flow().series.delivered = vec![91, 200];
        },
        "`arrived` is 291, but 190 messages were delivered, and the warm-up had 100",
    ),
    ("series", |case| case.flow().series.delivered[0] = 92, "`series.delivered` adds up to 192, but `arrived` is 191"),
    (
        "series",
        |case| case.flow().series.delivered.truncate(0),
        "`series.delivered` adds up to 0, but `arrived` is 191",
    ),
    ("series", |case| case.flow().series.sent[0] = 201, "`series.sent` adds up to 301, but its publishers sent 300"),
    ("series", |case| case.flow().series.sent = vec![0; 21], "its series have 21 slices, but the window has 20"),
    (
        "series",
        |case| case.flow().series.latency[0] = times(&[(50_000, 87)]),
        "`series.latency` has 186 times, but the histogram `latency` has 185",
    ),
    (
        "series",
        |case| case.flow().series.latency = vec![times(&[(50_000, 92)])],
        "slice 0 has 92 latencies, but 91 messages arrived in it",
    ),
    ("connections", |case| case.result.connections = opened(3, 2, 0, 0), "3 connections were opened, but only 2"),
    ("connections", |case| case.result.connections = opened(3, 3, 0, 0), "3 connections were wanted, but it plays 2"),
    ("connections", |case| case.result.connections = opened(2, 2, 1, 2), "2 connections came back, but 1 were lost"),
    (
        "connections",
        |case| {
            case.result.connections = opened(2, 2, 2, 1);
            case.result.reconnect_time = times(&[(5, 2)]);
        },
        "`reconnect_time` has 2 times, but 1 connections came back",
    ),
    ("churn", |case| case.flow().churn = churned([0, 0, 0], 0), "its result has `churn`, which is not its part"),
    (
        "churn",
        |case| case.workload.churn = Churn::parse("10/s").unwrap(),
        "`churn` is requested, and its result has none",
    ),
    ("churn", |case| case.comes_and_goes([21, 21, 0], 21), "21 clients were due to come, but the plan has 20"),
    ("churn", |case| case.comes_and_goes([20, 18, 1], 18), "of 20 clients that were due 18 connected"),
    ("last-wills", |case| case.inherits([1, 1], 1, false), "no publisher was to have one"),
    ("last-wills", |case| case.inherits([1, 2], 2, true), "2 last wills arrived, but 1 were due"),
    ("last-wills", |case| case.inherits([2, 2], 1, true), "`wills` has 1 times, but 2 arrived"),
    ("last-wills", |case| case.loses(0, false), "its result has `ends`, but no publisher was to have a last will"),
    ("last-wills", |case| case.loses(7, true), "a connection of publisher 7 ended, which it does not play"),
    ("churn", |case| case.comes_and_goes([20, 18, 2], 17), "`churn` has 17 times to connect and 17 to subscribe"),
    (
        "latency-count",
        |case| case.flow().histograms.latency = times(&[(50_000, 184)]),
        "`latency` has 184 times, but 190 messages came, 3 with a wrong body and 2 before they were due",
    ),
    ("latency-count", |case| case.flow().ledger.negative = 0, "`latency` has 185 times, but 190 messages came, 3 with"),
    (
        "latency-count",
        |case| case.flow().ledger.corrupted = 0,
        "`latency` has 185 times, but 190 messages came, 0 with",
    ),
    (
        "latency-count",
        |case| (case.flow().ledger.corrupted, case.flow().ledger.duplicated) = (4, 0),
        "`latency` has 185 times, but 190 messages came, 4 with a wrong body",
    ),
    (
        "arrival-times",
        |case| case.flow().histograms.intended_latency = times(&[(60_000, 184)]),
        "`intended_latency` has 184 times, but `latency` has 185",
    ),
    (
        "arrival-times",
        |case| case.flow().histograms.service_latency = times(&[(40_000, 186)]),
        "`service_latency` has 186 times, but `latency` has 185",
    ),
    (
        "arrival-times",
        |case| case.flow().histograms.receive_lag = times(&[(1_000, 186)]),
        "`receive_lag` has 186 times, but `latency` has 185",
    ),
    (
        "send-lag-count",
        |case| case.flow().histograms.send_lag = times(&[(20_000, 199)]),
        "`send_lag` has 199 times, but 200 messages were sent",
    ),
    ("send-lag-count", |case| case.flow().histograms.send_lag = None, "`send_lag` is null, but 200 messages were sent"),
    (
        "send-lag-count",
        |case| case.flow().histograms.own_lag = times(&[(10_000, 201)]),
        "`own_lag` has 201 times, but 200 messages were sent",
    ),
    (
        "latency-order",
        |case| case.flow().histograms.latency = times(&[(50_000, 100), (90_000, 83), (210_000, 2)]),
        "`latency` is 210047 ns at the 98.9th percentile, but `intended_latency` is 90047 ns",
    ),
    (
        "latency-order",
        |case| case.flow().histograms.service_latency = times(&[(40_000, 1), (50_200, 184)]),
        "`service_latency` is 50207 ns at the 0.5th percentile, but `latency` is 50015 ns",
    ),
    (
        "lag-order",
        |case| case.flow().histograms.own_lag = times(&[(10_000, 99), (30_000, 101)]),
        "`own_lag` is 30015 ns at the 49.5th percentile, but `send_lag` is 20015 ns",
    ),
    (
        "ack-count",
        |case| case.flow().histograms.ack_latency = times(&[(30_000, 201)]),
        "`ack_latency` has 201 times, but 0 messages were acknowledged",
    ),
    ("jitter", |case| case.flow().jitter_pairs = 186, "`jitter_pairs` is 186, but `latency` has 185 times"),
    ("jitter", |case| case.flow().jitter_sum_ns = -1.0, "`jitter_sum_ns` is -1"),
    ("jitter", |case| case.flow().jitter_sum_ns = 2e10, "180 differences of latencies up to 90047 ns"),
    (
        "instants",
        |case| case.flow().first_sent_ns = Some(START + SECOND - 1),
        "`first_sent_ns` is 999999999 ns from the start, but the window began at 1000000000 ns",
    ),
    (
        "instants",
        |case| case.flow().last_arrival_ns = Some(START + 5 * SECOND + 1),
        "`last_arrival_ns` is 5000000001 ns from the start",
    ),
    (
        "durations",
        |case| {
            let histograms = &mut case.flow().histograms;
            histograms.intended_latency = times(&[(60_000, 100), (90_000, 84), (6 * SECOND, 1)]);
        },
        "but only 5000000000 ns have gone by since the start",
    ),
    (
        "silences",
        |case| case.result.pauses = Some(Stalls::one(SECOND, 2 * SECOND)),
        "the longest of its `pauses` ends 3000000000 ns after the window's beginning",
    ),
    (
        "silences",
        |case| case.flow().stalls = Some(Stalls { count: 0, longest_ns: SECOND, ..Stalls::default() }),
        "it has 0 `stalls`, the longest of them 1000000000 ns long",
    ),
    (
        "silences",
        |case| case.result.pauses = Some(Stalls { first_at_ns: Some(2), ..Stalls::one(MILLISECOND, 1) }),
        "the first of its 1 `pauses` begins 2 ns after the window's beginning, and the longest 1",
    ),
    (
        "arrived",
        |case| case.flow().arrived_before = Some(100),
        "`arrived` is 291, 100 of them before the window, but 190 messages were delivered",
    ),
    (
        "series",
        |case| case.flow().sent_before = Some(101),
        "`series.sent` with `sent_before` adds up to 301, but its publishers sent 300",
    ),
    (
        "catch-up",
        |case| case.start_late(None, (SECOND, 100)),
        "its result has `catch_up`, but no subscriber was to start late",
    ),
    ("catch-up", |case| case.start_late(Some(SECOND + 1), (2 * SECOND, 100)), "but subscribers start at 1000000001 ns"),
    ("catch-up", |case| case.start_late(Some(SECOND), (SECOND - 1, 100)), "from 1000000000 to Some(999999999) ns"),
    ("catch-up", |case| case.start_late(Some(SECOND), (SECOND, 301)), "301 messages, but 300 were sent to its clients"),
    (
        "rebalances",
        |case| case.flow().rebalances = Some(Rebalances::default()),
        "its result has `rebalances`, but its subscribers are no group",
    ),
    ("bytes", |case| case.vary(None), "`bytes` is missing"),
    ("bytes", |case| case.vary(Some((12_799, 12_224))), "`bytes.sent` is 12799, but 200 messages have 12800..=25600"),
    (
        "bytes",
        |case| case.vary(Some((12_800, 24_449))),
        "`bytes.arrived` is 24449, but 191 messages have 12224..=24448",
    ),
    ("usage", |case| case.result.usage.user_ns = 2 * SECOND, "`usage.user_ns` is 2000000000, but `usage.cpu_ns` is"),
    ("usage", |case| case.result.usage.wall_ns = 5 * SECOND, "`usage.wall_ns` is 5000000000, but only 4000000000 ns"),
];

fn ranges(count: u64) -> Ranges {
    Ranges(Some(vec![Sequences { publisher: 0, first: 100, end: 100 + count }]))
}

fn opened(opened: u64, wanted: u64, lost: u64, reconnected: u64) -> Option<Connections> {
    Some(Connections { opened, wanted, lost, reconnected, ..Connections::default() })
}

#[test]
fn each_relation_is_broken_by_the_figures_that_it_names() {
    assert_eq!(case(&[]).check(), Ok(()));
    for (relation, change, says) in WRONG {
        let mut case = case(&[]);
        change(&mut case);
        let broken = case.check().expect_err(says);
        assert!(broken.relation == *relation && broken.to_string().contains(says), "{relation}, {says}: {broken}");
    }
    let tried: BTreeSet<&str> = WRONG.iter().map(|(relation, ..)| *relation).collect();
    assert_eq!(tried, RELATIONS.iter().map(|relation| relation.name).collect::<BTreeSet<&str>>());
}

/// Correct results that look odd.
#[test]
fn a_right_result_breaks_none() {
    let right = |name: &str, settings: &[(&str, &str)], change: Wrong| {
        let mut case = case(settings);
        change(&mut case);
        assert_eq!(case.check(), Ok(()), "{name}");
    };
    right("an agent that cannot tell its own lag", &[], |case| case.flow().histograms.own_lag = None);
    right("clients came and went", &[], |case| case.comes_and_goes([20, 18, 2], 18));
    right("a second copy was damaged", &[], |case| case.flow().ledger.corrupted = 4);
    right("the warm-up is in no slice", &[], |case| case.flow().series.delivered = vec![91, 99]);
    right("nothing of the window was sent", &[], |case| {
        case.total(|total| (total.sent, total.window_first, total.window_end) = (70, 70, 70));
        *case.flow() = FlowResult { publishers: vec![case.totals[0]], ..FlowResult::default() };
    });
    right("sequences that were never sent may have been measured", &[], |case| {
        let ledger = &mut case.flow().ledger;
        (ledger.corrupted, ledger.unidentified) = (5, 2);
        case.flow().histograms.service_latency = None;
        for count in [183, 187] {
            case.flow().histograms.latency = times(&[(50_000, count)]);
            case.flow().histograms.intended_latency = times(&[(50_000, count)]);
            case.flow().series.latency.clear();
            case.flow().histograms.receive_lag = None;
            assert_eq!(case.check(), Ok(()), "{count}");
        }
    });
    right("clocks of several hosts differ at the window's edges", &[], |case| {
        case.is_spread = true;
        case.flow().histograms.latency = times(&[(50_000, 184)]);
        case.flow().histograms.intended_latency = times(&[(60_000, 184)]);
        case.flow().histograms.service_latency = None;
        case.flow().histograms.receive_lag = None;
        case.flow().last_arrival_ns = Some(START + 5 * SECOND + MILLISECOND);
    });
    right("the publisher was killed, and had not handed all over", &[], |case| {
        case.killed_ns = Some((2 * SECOND, 2 * SECOND + MILLISECOND));
        case.total(|total| (total.sent, total.window_end, total.offered) = (200, 200, 101));
        let series = SliceSeries { sent: vec![102], ..SliceSeries::default() };
        *case.flow() = FlowResult { publishers: vec![case.totals[0]], series, ..FlowResult::default() };
        (case.flow().ledger.expected, case.flow().histograms.send_lag) = (100, times(&[(5, 102)]));
    });
    right("a count at `max`", &[("rate", "max"), ("duration", ""), ("count", "200")], |case| {
        let histograms = &mut case.result.flows[0].histograms;
        *histograms = crate::times::TimeFigures::none();
        (case.flow().series.latency, case.flow().jitter_pairs) = (Vec::new(), 0);
        (case.flow().arrived, case.flow().series.delivered) = (190, vec![189]);
    });
}

#[test]
fn a_count_at_max_offers_what_it_sent() {
    let said = |change: Wrong| {
        let mut case = case(&[("rate", "max"), ("duration", ""), ("count", "200")]);
        change(&mut case);
        case.check().unwrap_err().to_string()
    };
    let says = said(|case| case.total(|total| total.offered = 150));
    assert!(says.contains("offered 150 messages at `max`, but sent 200 in the window"), "{says}");
    let says = said(|case| case.total(|total| (total.window_first, total.offered) = (50, 250)));
    assert!(says.contains("publisher 0 offered 250 of 200 messages"), "{says}");
    let says = said(|case| (case.flow().arrived, case.flow().series.delivered) = (190, vec![190]));
    assert!(says.contains("`latency` has 185 times, but none is measured at this rate"), "{says}");
}

#[test]
fn a_publisher_that_was_killed_owes_what_was_due_by_then() {
    let offered = |offered: u64| {
        let mut case = case(&[]);
        case.killed_ns = Some((1_500 * MILLISECOND, 1_600 * MILLISECOND));
        case.total(|total| (total.sent, total.window_end, total.offered) = (140, 140, offered));
        *case.flow() = FlowResult { publishers: vec![case.totals[0]], ..FlowResult::default() };
        (case.flow().ledger.expected, case.flow().histograms.send_lag) = (40, times(&[(5, 40)]));
        case.check().map_err(|broken| broken.what)
    };
    assert_eq!(offered(50), Err("publisher 0 offered 50 messages, but 51 to 61 were due before it was killed".into()));
    assert_eq!((offered(51), offered(61)), (Ok(()), Ok(())));
    assert!(offered(62).is_err());
}

#[test]
fn echoes_are_measured_where_they_come_back() {
    let echoed = |latencies: u64, damaged: u64, alone: bool| {
        let mut case = case(&[("pattern", "fan-out-echo"), ("publishers", "1")]);
        if alone {
            case.clients.truncate(1);
        }
        let publishers = vec![case.totals[0]];
        *case.flow() = FlowResult { publishers, ..FlowResult::default() };
        let ledger = &mut case.flow().ledger;
        (ledger.unanswered, ledger.corrupted) = (10, damaged);
        if !alone {
            (ledger.expected, ledger.delivered) = (200, 200);
        }
        let histograms = &mut case.flow().histograms;
        (histograms.latency, histograms.intended_latency) = (times(&[(5, latencies)]), times(&[(5, latencies)]));
        histograms.send_lag = times(&[(5, 200)]);
        case.check().map_err(|broken| broken.relation)
    };
    assert_eq!((echoed(190, 0, true), echoed(187, 3, true)), (Ok(()), Ok(())));
    assert_eq!((echoed(189, 0, true), echoed(190, 3, true)), (Err("latency-count"), Err("latency-count")));
    // Subscribers count damage too, in the same ledger.
    assert_eq!((echoed(190, 3, false), echoed(187, 3, false)), (Ok(()), Ok(())));
    assert_eq!((echoed(191, 3, false), echoed(186, 3, false)), (Err("latency-count"), Err("latency-count")));
}

#[test]
fn each_client_expects_what_those_that_it_hears_sent() {
    let mut case = case(&[("pattern", "fan-in"), ("publishers", "3"), ("subscribers", "2")]);
    let total = |publisher, sent| PublisherTotal { publisher, sent, window_first: 100, window_end: sent, offered: 200 };
    case.totals = vec![total(0, 300), total(1, 250), total(2, 120)];
    case.clients = vec![client(Role::Subscriber, 0, (0, 3)), client(Role::Subscriber, 1, (1, 2))];
    *case.flow() = FlowResult::default();
    case.flow().ledger.expected = 200 + 150 + 20 + 150 + 20;
    assert_eq!(case.check(), Ok(()));
    case.clients = vec![client(Role::Requester, 1, (0, 0)), client(Role::Replier, 1, (0, 3))];
    assert_eq!(case.check().unwrap_err().relation, "expected");
    case.flow().ledger.expected = 150;
    assert_eq!(case.check(), Ok(()), "a requester expects its own replies, a replier nothing");
}
