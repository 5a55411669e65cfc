use super::*;
use crate::empty_record::blank;
use pubmark_model::cell::Cell;
use pubmark_model::fault::{Act, Script, Target};
use pubmark_model::plan::Place;
use pubmark_model::protocol::{PacingFigures, Role, Stalls};
use pubmark_model::record::{AgentShare, Attached, ConnectionFigures, Deployment, FaultEvent, MachineLoad, Phases};
use pubmark_model::record::{ClockPair, OwnFigures, WillFigures};
use pubmark_model::setting::Settings;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_model::units::{MILLISECOND, SECOND};
use pubmark_model::workload::{Pattern, Workload};
use pubmark_stats::Histogram;
use std::sync::{Arc, LazyLock};

mod backlog;
mod refused;

use FigureGroup::{Cost, Counts, LatencyP50, LatencyP99, Rates};

fn mosquitto() -> &'static System {
    static READ: LazyLock<System> = LazyLock::new(|| {
        let text = include_str!("../../../../systems/mosquitto.toml");
        System::parse("mosquitto", "mosquitto.toml", text).unwrap_or_else(|errors| panic!("{errors}"))
    });
    &READ
}

fn find(name: &str) -> Option<Arc<System>> {
    Some(mosquitto()).filter(|system| system.name == name).cloned().map(Arc::new)
}

/// Judges a faultless record of a broker at QoS 1, changed by `change`.
pub(super) fn judged(fault: &str, change: impl FnOnce(&mut RunRecord)) -> Verdict {
    let text = "title = \"t\"\n[workload]\nqos = 1\nduration = \"10s\"\n[axes]\nsystem = \"mosquitto\"\n";
    let study = Study::parse("t", text, &find, &ReadOptions::default()).unwrap();
    let mut cells: Vec<Cell> = pubmark_model::plan::cells(&study).unwrap();
    cells[0].faults = Script::parse(fault).unwrap();
    let place = Place { repeat: 1, position: 0 };
    let mut record = blank(&cells[0], None, place, String::new());
    let mut histogram = Histogram::latency();
    histogram.record_n(100_000, 10_000);
    (record.times.latency, record.times.own_lag) = (histogram.summary(), histogram.summary());
    record.connections = Some(ConnectionFigures { opened: 2, ..ConnectionFigures::default() });
    let counts = &mut record.counts;
    (counts.offered, counts.sent, counts.expected, counts.delivered) = (10_000, 10_000, 10_000, 10_000);
    counts.acked_lost = Some(0);
    (record.window_ns, record.rates.delivered_per_s) = (10 * SECOND, 1_000.0);
    // The roles decide, not the names.
    let agent =
        |name: &str, role| AgentShare { name: name.into(), roles: vec![role], loops: 1, ..AgentShare::default() };
    record.agents = vec![agent("hears", Role::Subscriber), agent("sends-2", Role::Publisher)];
    change(&mut record);
    judge(&record, mosquitto(), 0, None, None)
}

pub(super) fn reasons(verdict: &Verdict) -> Vec<Reason> {
    verdict.reasons.iter().map(|finding| finding.reason).collect()
}

/// Returns the reasons with the figures that they affect.
fn found(verdict: &Verdict) -> Vec<(Reason, Vec<FigureGroup>)> {
    verdict.reasons.iter().map(|finding| (finding.reason, finding.figures.clone())).collect()
}

pub(super) const SILENCE: Stalls =
    Stalls { count: 3, longest_ns: SECOND, longest_at_ns: 5 * SECOND, first_at_ns: None };

#[test]
fn a_silence_is_the_servers_while_all_agents_ran() {
    let verdict = judged("none", |record| record.stalls = Some(SILENCE));
    assert!(verdict.valid && reasons(&verdict).is_empty());
    assert_eq!(verdict.notes.len(), 1);
    assert_eq!(verdict.notes[0].part, Component::Server);
    let says = "the server delivered nothing to a subscriber for 1.000 s, from 5.000 s into the window, while all agents ran (3";
    assert!(verdict.notes[0].evidence.starts_with(says), "{:?}", verdict.notes);
    let part = |served: bool| {
        let verdict = judged("none", |record| {
            (record.stalls, record.connections) = (Some(SILENCE), None);
            record.deployment = served.then(Default::default);
        });
        verdict.notes[0].part
    };
    assert_eq!((part(true), part(false)), (Component::Server, Component::Library));
    // Others may have kept a server from a processor for a while, and not for a second.
    let busy = |longest_ns| {
        let verdict = judged("none", |record| {
            record.stalls = Some(Stalls { longest_ns, ..SILENCE });
            (record.machine.cores, record.machine.foreign_cores) = (2, 1.5);
        });
        verdict.notes[0].part
    };
    assert_eq!((busy(SECOND / 5), busy(SECOND)), (Component::Generator, Component::Server));
}

#[test]
fn a_silence_is_the_generators_where_an_agent_did_not_run() {
    let verdict = judged("none", |record| {
        record.stalls = Some(SILENCE);
        record.agents[0].pauses = Some(Stalls { count: 1, ..SILENCE });
    });
    assert_eq!(reasons(&verdict), [Reason::GeneratorSaturated]);
    assert_eq!(
        verdict.reasons[0].evidence,
        "the agent `hears` did not run for 1.000 s, from 5.000 s into the window: it was stopped, or the machine was"
    );
    assert_eq!(verdict.notes.iter().map(|note| note.part).collect::<Vec<_>>(), [Component::Generator]);
    // A publisher with a generator delay for most of the silence.
    let verdict = judged("none", |record| {
        record.stalls = Some(SILENCE);
        record.times.own_lag.as_mut().unwrap().max = 9 * SECOND / 10;
    });
    assert_eq!(reasons(&verdict), [Reason::GeneratorSaturated]);
    assert!(verdict.notes.is_empty());
}

#[test]
fn an_agent_that_the_script_stopped_is_named_with_what_it_says_or_without() {
    let stop = |record: &mut RunRecord| {
        let (at_ns, until_ns) = (Some(2 * SECOND), Some(3 * SECOND));
        record.fault_log = vec![FaultEvent {
            what: Act::Stop,
            who: Target::Publishers,
            host: None,
            member: None,
            at_ns,
            until_ns,
            peer: None,
            listens_ns: None,
            note: None,
        }];
    };
    let fault = "stop publishers at 2s for 1s";
    let says = "the agent `sends-2` did not run for 1.000 s, from 2.000 s into the window: the script stopped it";
    let verdict = judged(fault, stop);
    assert_eq!((reasons(&verdict), verdict.reasons[0].evidence.as_str()), (vec![Reason::GeneratorSaturated], says));
    let own = Stalls::one(SECOND + MILLISECOND, 2 * SECOND - MILLISECOND);
    let verdict = judged(fault, |record| {
        stop(record);
        record.agents[1].pauses = Some(own);
    });
    assert!(verdict.reasons[0].evidence.ends_with("the script stopped it"), "{:?}", verdict.reasons);
    // A pause at another time explains nothing.
    let verdict = judged(fault, |record| {
        stop(record);
        record.agents[1].pauses = Some(Stalls { longest_at_ns: 8 * SECOND, ..own });
    });
    assert!(verdict.reasons[0].evidence.ends_with("or the machine was"), "{:?}", verdict.reasons);
}

#[test]
fn what_the_coordinator_looked_at_too_late_is_not_known() {
    let late = |late_ns: Ns| judged("none", |record| record.machine.late_ns = late_ns);
    assert!(late(SECOND).valid);
    let verdict = late(SECOND + 1);
    assert_eq!(found(&verdict), [(Reason::NoisyMachine, vec![Cost])]);
    let says = "1.000 s late at an edge of the window of 10.000 s";
    assert!(verdict.reasons[0].evidence.contains(says), "{:?}", verdict.reasons);
}

#[test]
fn a_count_that_could_not_be_made_is_told_and_blames_nobody() {
    let verdict = judged("none", |record| record.counts.acked_lost = None);
    assert!(verdict.valid);
    assert_eq!(verdict.notes.iter().map(|note| note.part).collect::<Vec<_>>(), [Component::Generator]);
    assert!(verdict.notes[0].evidence.contains("had been acknowledged cannot be told"), "{:?}", verdict.notes);
}

#[test]
fn a_run_with_fewer_connections_than_wanted_is_another_than_was_asked_for() {
    let missed = |opened: u64| {
        judged("kill server at 5s for 1s", |record| {
            let first_error = Some("Connection refused (os error 111)".to_owned());
            record.connections =
                Some(ConnectionFigures { wanted: 100_000, opened, first_error, ..ConnectionFigures::default() });
        })
    };
    assert!(missed(100_000).valid);
    let verdict = missed(99_999);
    assert_eq!(found(&verdict), [(Reason::ConnectionsMissed, FigureGroup::all())]);
    let says =
        "99999 of 100000 clients got a connection; the first attempt that failed: Connection refused (os error 111)";
    assert_eq!(verdict.reasons[0].evidence, says);
}

#[test]
fn acknowledged_and_lost_comes_first_and_lost_is_not_never() {
    let lossy = |record: &mut RunRecord| {
        havoc(record);
        record.fault_log = vec![FaultEvent {
            what: Act::Kill,
            who: Target::Server,
            host: None,
            member: None,
            at_ns: Some(5 * SECOND),
            until_ns: Some(6 * SECOND),
            peer: None,
            listens_ns: None,
            note: None,
        }];
        (record.counts.sent, record.counts.acked, record.counts.acked_lost) = (10_000, 8_700, Some(1_000));
        record.phases = Some(Phases { drain_ns: 10 * SECOND + 4 * MILLISECOND, ..Phases::default() });
    };
    for fault in ["none", "kill server at 5s for 1s"] {
        let verdict = judged(fault, lossy);
        let first = &verdict.notes[0];
        let says = "1000 of 8700 acknowledged messages were lost: they had not arrived 10.0 s after the window";
        assert_eq!((first.part, first.evidence.as_str()), (Component::Server, says), "{fault}");
        let others = verdict.notes.iter().map(|note| &note.evidence);
        let reasons = verdict.reasons.iter().map(|finding| &finding.evidence);
        let lost = "1000 of 10000 expected messages had not arrived 10.0 s after the window";
        assert!(others.chain(reasons).any(|evidence| evidence == lost), "{fault}: {verdict:?}");
    }
    // Virtual time has no length to report, and a message that was never acknowledged no promise to break.
    let verdict = judged("none", |record| (record.counts.delivered, record.counts.lost) = (9_990, 10));
    assert!(verdict.notes.is_empty(), "{:?}", verdict.notes);
    assert!(verdict.reasons[0].evidence.ends_with("had not arrived when the drain ended"), "{:?}", verdict.reasons);
}

/// A tenth of the latencies wait for the remainder of 40 ms, or all lie at multiples of a period.
fn stepped(step: impl Fn(u64) -> Ns) -> impl Fn(&mut RunRecord) {
    move |record| {
        let mut histogram = Histogram::latency();
        (0..10_000).for_each(|message| histogram.record(step(message)));
        (record.times.latency, record.histograms.latency) = (histogram.summary(), Some(histogram.encode()));
    }
}

#[test]
fn what_a_setting_or_a_timer_leaves_in_the_latencies_is_noted_with_its_share() {
    let held = stepped(|message| if message % 10 == 0 { message * 4_200 } else { 200_000 + message });
    let verdict = judged("none", &held);
    assert!(verdict.valid, "{:?}", verdict.reasons);
    let [note] = &verdict.notes[..] else { panic!("{:?}", verdict.notes) };
    let says = "7.6 % of the latencies lie in a step that ends at 40 ms, as where Nagle's algorithm waits";
    assert!(note.part == Component::Server && note.evidence.starts_with(says), "{note:?}");
    assert!(note.evidence.ends_with("see whether TCP_NODELAY is set on both sides"), "{note:?}");
    let verdict = judged("none", |record| {
        held(record);
        record.options.insert("set_tcp_nodelay".into(), false.into());
        record.options.insert("tcp_nodelay".into(), true.into());
    });
    assert!(verdict.notes[0].evidence.ends_with(": options.set_tcp_nodelay = false leaves it on"), "{verdict:?}");

    let ticking = stepped(|message| message % 4 * 4 * MILLISECOND + 300_000 + message);
    let verdict = judged("none", &ticking);
    let says = "75.0 % of the latencies lie at multiples of 4.000 ms, as where a timer";
    assert!(verdict.notes[0].evidence.starts_with(says), "{:?}", verdict.notes);
    // At 250 messages per second it is the interval at which they are due.
    let verdict = judged("none", |record| {
        ticking(record);
        record.workload.rate = Rate::per_kilosecond(250_000);
    });
    assert!(verdict.notes.is_empty(), "{:?}", verdict.notes);
}

/// At QoS 2 several waits follow each other: no step is left, and p50 is 5 ms.
#[test]
fn where_nagle_is_left_on_latencies_that_could_be_its_doing_are_noted() {
    let smeared = stepped(|message| message * 4_900);
    let with = |value: bool, change: &dyn Fn(&mut RunRecord)| {
        judged("none", |record| {
            change(record);
            record.options.insert("set_tcp_nodelay".into(), value.into());
        })
    };
    let verdict = with(false, &smeared);
    let [note] = &verdict.notes[..] else { panic!("{:?}", verdict.notes) };
    let says = "87.7 % of the latencies lie between 5 and 48 ms, and options.set_tcp_nodelay = false leaves Nagle's";
    assert!(verdict.valid && note.evidence.starts_with(says), "{note:?}");
    assert!(with(true, &smeared).notes.is_empty(), "nothing leaves it on");
    assert!(with(false, &|_| ()).notes.is_empty());
    assert!(with(false, &stepped(|message| message * 400)).notes.is_empty(), "none of them has waited");
}

#[test]
fn a_server_that_ran_out_of_memory_and_lives_on_is_no_valid_run() {
    let line = "WARN java.lang.OutOfMemoryError: Java heap space";
    let verdict = judged("none", |record| {
        record.deployment = Some(Deployment { out_of_memory: Some(line.into()), ..Deployment::default() });
    });
    assert_eq!(found(&verdict), [(Reason::ResourceLimitHit, FigureGroup::all())]);
    assert!(verdict.reasons[0].evidence.ends_with(line), "{:?}", verdict.reasons);
}

/// Effects of a dying server on a run.
fn havoc(record: &mut RunRecord) {
    let counts = &mut record.counts;
    (counts.sent, counts.delivered, counts.lost) = (9_000, 8_000, 1_000);
    counts.reordered = 5;
    record.connections.as_mut().unwrap().lost = 2;
    (record.series.sent, record.series.delivered) = (vec![900; 10], vec![500; 10]);
    record.series.latency_p50_ns = (1..=10).map(|step| step * MILLISECOND).collect();
}

#[test]
fn what_a_fault_brings_about_is_a_result_where_it_was_asked_for_and_else_a_reason() {
    let verdict = judged("none", havoc);
    assert_eq!(
        reasons(&verdict),
        [Reason::ServerDied, Reason::OfferedRateMissed, Reason::NotSteady, Reason::MessagesLost, Reason::Reordered]
    );
    let verdict = judged("kill server at 5s for 1s", havoc);
    assert!(verdict.valid, "{:?}", verdict.reasons);
    let notes = verdict.notes.iter().map(|note| note.evidence.as_str()).collect::<Vec<_>>().join("; ");
    for text in ["2 of 2 connections", "9000 of 10000", "a backlog", "1000 of 10000", "5 messages arrived behind"] {
        assert!(notes.contains(text), "should say {text:?}: {notes}");
    }
    assert!(!notes.contains("Mann-Kendall"), "{notes}");
}

#[test]
fn no_script_excuses_a_server_that_dies_by_itself_or_damage() {
    let verdict = judged("kill server at 5s for 1s", |record| record.counts.corrupted = Some(1));
    assert_eq!(reasons(&verdict), [Reason::Corrupted]);
}

#[test]
fn what_a_cut_link_brings_about_is_the_links() {
    let cut = |record: &mut RunRecord, at_ns: Ns| {
        let event = FaultEvent {
            what: Act::Cut,
            who: Target::Link,
            host: None,
            member: None,
            at_ns: Some(at_ns),
            until_ns: Some(at_ns + SECOND),
            peer: None,
            listens_ns: None,
            note: None,
        };
        record.fault_log = vec![event];
        record.window_ns = 10 * SECOND;
        record.stalls = Some(SILENCE);
        (record.counts.delivered, record.counts.lost, record.counts.duplicated) = (9_990, 10, 3);
        let connections = ConnectionFigures { opened: 2, lost: 2, reconnected: 2, ..ConnectionFigures::default() };
        record.connections = Some(connections);
    };
    let verdict = judged("cut link at 5s for 1s", |record| cut(record, 5 * SECOND));
    assert!(verdict.valid, "{verdict:?}");
    assert!(verdict.notes.iter().all(|note| note.part == Component::Link), "{verdict:?}");
    let told: Vec<&str> = verdict.notes.iter().map(|note| note.evidence.as_str()).collect();
    for says in
        ["2 connections were lost", "was cut once, for 1.000 s of", "when the link was cut", "10 of 10000 expected"]
    {
        assert!(told.iter().any(|told| told.contains(says)), "should say {says:?}: {told:?}");
    }
    // A silence at another time is the server's, whatever happened to the link.
    let verdict = judged("cut link at 1s for 1s", |record| cut(record, SECOND));
    let silence = verdict.notes.iter().find(|note| note.evidence.contains("delivered nothing")).unwrap();
    assert_eq!(silence.part, Component::Server);
    // If the server was killed as well, the cause of the losses is unknown.
    let verdict = judged("cut link at 1s for 1s, kill server at 3s for 1s", |record| cut(record, SECOND));
    let lost = verdict.notes.iter().find(|note| note.evidence.contains("expected messages")).unwrap();
    assert_eq!(lost.part, Component::Server);
}

/// Returns a histogram in which one value in a hundred is `one_in_a_hundred`.
fn lag(usual: Ns, one_in_a_hundred: Ns) -> Option<Summary> {
    let mut histogram = Histogram::latency();
    histogram.record_n(usual, 9_850);
    histogram.record_n(one_in_a_hundred, 150);
    histogram.summary()
}

/// Delaying messages by a time delays their arrival by that time at most.
#[test]
fn a_delay_below_a_hundredth_of_a_latency_is_no_reason_against_it() {
    let judged = |worst: Ns| {
        judged("none", |record| {
            record.times.own_lag = lag(10, worst);
            let all = record.times.latency.as_mut().unwrap();
            (all.p99, all.max) = (SECOND, SECOND);
        })
    };
    assert_eq!(found(&judged(9 * MILLISECOND)), []);
    assert_eq!(found(&judged(11 * MILLISECOND)), [(Reason::GeneratorSaturated, vec![FigureGroup::LatencyP99])]);
}

#[test]
fn what_all_flows_have_is_said_once_and_the_rest_with_the_name_of_its_flow() {
    let own = |name: &str, reasons: &[&str]| {
        let workload = Workload::resolve(&Settings::default()).unwrap();
        let finding = |evidence: &&str| Finding {
            reason: Reason::NoisyMachine,
            evidence: (*evidence).to_owned(),
            figures: FigureGroup::all(),
            overload: false,
        };
        let verdict = Verdict { reasons: reasons.iter().map(finding).collect(), ..Verdict::default() };
        let own = Some(Box::new(OwnFigures { verdict, ..OwnFigures::blank(workload) }));
        FlowRecord { name: name.into(), own, ..FlowRecord::default() }
    };
    let verdict = together(&[own("a", &["busy", "late"]), own("b", &["busy"])]);
    let said: Vec<&str> = verdict.reasons.iter().map(|finding| finding.evidence.as_str()).collect();
    assert_eq!((said, verdict.valid), (vec!["busy", "a: late"], false));
    assert!(together(&[own("a", &[]), own("b", &[])]).valid);
}

#[test]
fn a_reason_names_the_figures_that_it_touches_and_no_others() {
    type Change = fn(&mut RunRecord);
    let cases: [(&str, Change, Reason, &[FigureGroup]); 13] = [
        ("damage", |record| record.counts.corrupted = Some(1), Reason::Corrupted, &[Counts]),
        ("a loss", |record| record.counts.lost = 1, Reason::MessagesLost, &[Counts]),
        ("losses", |record| record.counts.lost = 100, Reason::MessagesLost, &[Counts, LatencyP99]),
        ("many losses", |record| record.counts.lost = 1_000, Reason::MessagesLost, &[Counts, LatencyP50, LatencyP99]),
        ("order", |record| record.counts.reordered = 9_000, Reason::Reordered, &[Counts]),
        ("late edges", |record| record.machine.late_ns = 2 * SECOND, Reason::NoisyMachine, &[Cost]),
        (
            "unsent",
            |record| (record.counts.sent, record.counts.not_sent) = (9_900, 100),
            Reason::OfferedRateMissed,
            &[Counts, Rates, LatencyP99],
        ),
        (
            "900 samples",
            |record| record.times.latency.as_mut().unwrap().count = 900,
            Reason::TooFewSamples,
            &[LatencyP99],
        ),
        (
            "90 samples",
            |record| record.times.latency.as_mut().unwrap().count = 90,
            Reason::TooFewSamples,
            &[LatencyP50, LatencyP99],
        ),
        (
            "a late hundredth",
            |record| record.times.own_lag = lag(10, 2 * MILLISECOND),
            Reason::GeneratorSaturated,
            &[LatencyP99],
        ),
        (
            "a slow receiver",
            |record| record.times.receive_lag = lag(60_000, 60_000),
            Reason::GeneratorSaturated,
            FigureGroup::LATENCY,
        ),
        (
            "a receiver that is slow at times",
            |record| record.times.receive_lag = lag(100, 60_000),
            Reason::GeneratorSaturated,
            &[LatencyP99],
        ),
        (
            "a little pause",
            |record| record.agents[0].pauses = Some(Stalls::one(200 * MILLISECOND, 0)),
            Reason::GeneratorSaturated,
            &[LatencyP99],
        ),
    ];
    for (what, change, reason, figures) in cases {
        let verdict = judged("none", change);
        assert_eq!(found(&verdict), [(reason, figures.to_vec())], "{what}: {:?}", verdict.reasons);
        assert!(!verdict.valid, "{what}");
        let left: Vec<FigureGroup> = FigureGroup::ALL.iter().copied().filter(|group| verdict.allows(*group)).collect();
        assert_eq!(left.len() + figures.len(), FigureGroup::ALL.len(), "{what}");
    }
}

#[test]
fn what_others_took_begins_with_the_tail_and_ends_with_all_but_the_counts() {
    let taken = |rate: Rate, steal: f64, foreign_cores: f64| {
        let verdict = judged("none", |record| {
            record.workload.rate = rate;
            record.machine = MachineLoad { steal, foreign_cores, cores: 2, ..MachineLoad::default() };
        });
        verdict.reasons.into_iter().flat_map(|finding| finding.figures).collect::<Vec<_>>()
    };
    let usual = || Rate::per_kilosecond(1_000_000);
    for (rate, all) in [(usual(), vec![LatencyP50, LatencyP99, Cost]), (Rate::Max, vec![Rates, Cost])] {
        let mut before = Vec::new();
        for (steal, foreign) in [(0.005, 0.05), (0.015, 0.0), (0.03, 0.0), (0.2, 0.0)] {
            let figures = taken(rate.clone(), steal, foreign);
            assert!(before.iter().all(|figure| figures.contains(figure)), "{steal}: {figures:?} after {before:?}");
            before = figures;
        }
        assert_eq!(before, all);
    }
    assert_eq!(taken(usual(), 0.008, 0.08), []);
    assert_eq!(taken(usual(), 0.015, 0.0), [LatencyP99], "a little steal is in the tail alone");
    assert_eq!(taken(usual(), 0.0, 0.4), [LatencyP99], "a part of one of two processors: the other one is free");
    assert_eq!(taken(usual(), 0.0, 1.0), [LatencyP50, LatencyP99, Cost]);
    assert_eq!(taken(usual(), 0.0, 1.6), [Counts, Rates, LatencyP50, LatencyP99, Cost], "not enough is left");
    assert_eq!(taken(Rate::Max, 0.015, 0.0), [], "there is no tail");
    assert_eq!(taken(Rate::Max, 0.0, 0.22), [], "the kernel's own work between processes");
}

#[test]
fn a_loop_at_its_limit_is_a_reason_at_a_rate_and_a_lower_bound_at_max() {
    let busy = |record: &mut RunRecord| record.agents[0].usage.cpu_cores = 0.99;
    let verdict = judged("none", busy);
    assert_eq!(found(&verdict), [(Reason::GeneratorSaturated, FigureGroup::LATENCY.to_vec())]);
    let unlimited = |record: &mut RunRecord| {
        busy(record);
        (record.workload.rate, record.times.latency) = (Rate::Max, None);
        assert!(lower_bound(record));
    };
    let verdict = judged("none", unlimited);
    assert!(verdict.valid, "{:?}", verdict.reasons);
    let says = "the agent `hears` computed for 99 % of the window in its event loop: the throughput is a lower bound";
    assert!(
        verdict.notes[0].part == Component::Generator && verdict.notes[0].evidence.starts_with(says),
        "{:?}",
        verdict.notes
    );
    judged("none", |record| {
        unlimited(record);
        record.agents[0].loops = 2;
        assert!(!lower_bound(record), "another loop has time left");
    });
}

#[test]
fn a_server_that_cannot_be_told_from_others_is_no_noise() {
    let attached = |attached| {
        judged("none", |record| {
            record.deployment = Some(Deployment { attached: Some(attached), ..Deployment::default() });
            record.machine = MachineLoad { foreign_cores: 1.5, cores: 2, ..MachineLoad::default() };
        })
    };
    let verdict = attached(Attached::Hidden);
    assert!(verdict.valid && verdict.notes[0].part == Component::Server, "{verdict:?}");
    assert!(verdict.notes[0].evidence.contains("both together kept 1.50 of 2 processors"), "{:?}", verdict.notes);
    for known in [Attached::Seen, Attached::Elsewhere] {
        assert_eq!(reasons(&attached(known)), [Reason::NoisyMachine], "{known:?}: then others were others");
    }
}

#[test]
fn publishers_that_spin_are_others_to_the_system() {
    let spinning = |pacing, cores| {
        let verdict = judged("none", |record| {
            record.workload.pacing = pacing;
            record.machine.cores = cores;
            record.pacing = Some(PacingFigures { spent_cores: 0.9, ..PacingFigures::default() });
        });
        found(&verdict)
    };
    assert_eq!(spinning(Pacing::Spin, 2), [(Reason::GeneratorSaturated, vec![LatencyP50, LatencyP99, Cost])]);
    assert_eq!(spinning(Pacing::Spin, 8), [], "there are enough for all");
    assert_eq!(spinning(Pacing::Hybrid, 2), [], "it has a budget");
}

#[test]
fn a_pause_at_max_is_a_note_where_it_moves_nothing() {
    let paused = |longest_ns| {
        judged("none", |record| {
            (record.workload.rate, record.times.latency) = (Rate::Max, None);
            record.agents[1].pauses = Some(Stalls::one(longest_ns, 0));
        })
    };
    let verdict = paused(200 * MILLISECOND);
    assert!(verdict.valid && verdict.notes[0].evidence.contains("`sends-2` did not run"), "{verdict:?}");
    assert_eq!(found(&paused(SECOND)), [(Reason::GeneratorSaturated, vec![Rates, Cost])]);
}

#[test]
fn a_short_message_has_the_own_lag_in_its_latency() {
    let late = |payload_bytes| {
        let verdict = judged("none", |record| {
            record.workload.payload_bytes = payload_bytes;
            record.times.own_lag = lag(5_000, 50_000);
        });
        found(&verdict)
    };
    assert_eq!(late(31), [(Reason::GeneratorSaturated, vec![LatencyP99])], "5 and 50 of 100 µs are its own");
    assert_eq!(late(32), []);
}

#[test]
fn what_moves_a_throughput_at_max_moves_the_share_that_arrives() {
    let at_max = |lost: u64| {
        let verdict = judged("none", |record| {
            record.workload.rate = Rate::Max;
            record.counts.lost = lost;
            record.workload.qos = 0;
            record.machine = MachineLoad { foreign_cores: 1.0, cores: 2, ..MachineLoad::default() };
        });
        verdict.reasons.iter().find(|finding| finding.reason == Reason::NoisyMachine).unwrap().figures.clone()
    };
    assert_eq!(at_max(0), [Rates, Cost]);
    assert_eq!(at_max(5_000), [Counts, Rates, Cost], "a system that drops under load drops more of it");
}

/// The headline's p50 is 100 µs here.
#[test]
fn a_latency_between_hosts_is_as_good_as_what_is_known_of_their_clocks() {
    let between = |pattern: Pattern, bounds_ns: &[Ns]| {
        judged("none", |record| {
            record.workload.pattern = pattern;
            record.times.latency.as_mut().unwrap().p99 = 300_000;
            let to = |(index, bound_ns): (usize, &Ns)| ClockPair {
                to: format!("b{index}"),
                bound_ns: *bound_ns,
                offset_ns: SECOND as i64,
                ..ClockPair::default()
            };
            record.clocks = bounds_ns.iter().enumerate().map(to).collect();
        })
    };
    assert!(between(Pattern::Pairs, &[]).valid, "one clock measured both ends");
    assert!(
        between(Pattern::Pairs, &[33_333]).valid,
        "a third of it is small enough, and what was taken out is in none"
    );
    let far = between(Pattern::Pairs, &[5, 33_400, 7]);
    assert_eq!(found(&far), [(Reason::Clock, vec![LatencyP50])], "counts, rates and slow messages stand");
    let says = &far.reasons[0].evidence;
    assert!(says.starts_with("messages go from host local to host b1, whose clocks may be 33.400 µs apart"), "{says}");
    assert_eq!(found(&between(Pattern::Pairs, &[100_001])), [(Reason::Clock, vec![LatencyP50, LatencyP99])]);
    assert!(between(Pattern::RequestReply, &[SECOND]).valid, "there and back is measured on one clock");
    let wills = judged("none", |record| {
        record.times.latency.as_mut().unwrap().p99 = 300_000;
        record.clocks = vec![ClockPair { bound_ns: 33_333, ..ClockPair::default() }];
        let latency_ns = Some(Summary { p50: 90_000, p99: 400_000, ..record.times.latency.clone().unwrap() });
        record.wills = Some(Box::new(WillFigures { latency_ns, ..WillFigures::default() }));
    });
    assert_eq!(found(&wills), [(Reason::Clock, vec![LatencyP50])], "a will was faster than the messages");
}

/// Whatever an agent, a host or a file contains, there is a verdict.
#[test]
fn numbers_at_their_bounds_are_judged() {
    for most in [0, u64::MAX] {
        let verdict = judged("none", |record| {
            let stalls = Stalls { count: most, longest_ns: most, longest_at_ns: most, first_at_ns: Some(most) };
            record.stalls = Some(stalls);
            record.agents[0].pauses = Some(stalls);
            let counts = &mut record.counts;
            (counts.lost, counts.not_sent, counts.duplicated, counts.reordered) = (most, most, most, most);
            (counts.offered, counts.sent, counts.expected, counts.delivered) = (most, most, most, most);
            (counts.unanswered, record.window_ns) = (most, most);
            (record.series.sent, record.series.delivered) = (vec![most; 3], vec![most; 3]);
            record.series.slice_ns = most;
            record.machine.late_ns = most;
        });
        assert!(most == 0 || !verdict.valid);
    }
}
