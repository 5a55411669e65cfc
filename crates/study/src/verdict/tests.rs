use super::*;
use crate::registry;
use pubmark_model::cell::Cell;
use pubmark_model::fault::{Act, Script, Target};
use pubmark_model::protocol::Stalls;
use pubmark_model::record::{AgentShare, ConnectionFigures, FaultEvent};
use pubmark_model::study::{Reading, Study};
use pubmark_stats::Histogram;

/// A faultless record of a broker at QoS 1, changed by `change`; what is found.
fn judged(fault: &str, change: impl FnOnce(&mut RunRecord)) -> Verdict {
    registry::load().unwrap();
    let text = "title = \"t\"\n[workload]\nqos = 1\nduration = \"10s\"\n[axes]\nsystem = \"mosquitto\"\n";
    let study = Study::parse("t", text, &registry::find, &Reading::default()).unwrap();
    let mut cells: Vec<Cell> = pubmark_model::plan::cells(&study, &registry::find).unwrap();
    cells[0].faults = Script::parse(fault).unwrap();
    let place = crate::run::Place { repeat: 1, position: 0 };
    let mut record = crate::assemble::blank(&cells[0], place, String::new());
    let mut histogram = Histogram::latency();
    histogram.record_n(100_000, 10_000);
    (record.latency_ns, record.own_lag_ns) = (histogram.summary(), histogram.summary());
    record.connections = Some(ConnectionFigures { opened: 2, ..ConnectionFigures::default() });
    let counts = &mut record.counts;
    (counts.offered, counts.sent, counts.expected, counts.delivered) = (10_000, 10_000, 10_000, 10_000);
    let agent = |name: &str| AgentShare { name: name.into(), ..AgentShare::default() };
    record.agents = vec![agent("subscribers"), agent("publishers-2")];
    change(&mut record);
    judge(&record, registry::find("mosquitto").unwrap(), 0, None)
}

fn reasons(verdict: &Verdict) -> Vec<Reason> {
    verdict.reasons.iter().map(|finding| finding.reason).collect()
}

const SILENCE: Stalls = Stalls { count: 3, longest_ns: SECOND, longest_at_ns: 5 * SECOND };

#[test]
fn a_silence_is_the_servers_while_all_agents_ran() {
    let verdict = judged("none", |record| record.stalls = SILENCE);
    assert!(verdict.valid && reasons(&verdict).is_empty());
    assert_eq!(verdict.notes.len(), 1);
    assert_eq!(verdict.notes[0].part, Part::Server);
    let says = "the server delivered nothing to a subscriber for 1.000 s, from 5.000 s into the window, while all agents ran (3";
    assert!(verdict.notes[0].evidence.starts_with(says), "{:?}", verdict.notes);
    let part = |served: bool| {
        let verdict = judged("none", |record| {
            (record.stalls, record.connections) = (SILENCE, None);
            record.deployment = served.then(Default::default);
        });
        verdict.notes[0].part
    };
    assert_eq!((part(true), part(false)), (Part::Server, Part::Library));
}

#[test]
fn a_silence_is_the_generators_where_an_agent_did_not_run() {
    let verdict = judged("none", |record| {
        record.stalls = SILENCE;
        record.agents[0].pauses = Stalls { count: 1, ..SILENCE };
    });
    assert_eq!(reasons(&verdict), [Reason::GeneratorSaturated]);
    assert_eq!(
        verdict.reasons[0].evidence,
        "the agent `subscribers` did not run for 1.000 s, from 5.000 s into the window: it was stopped, or the machine was"
    );
    assert_eq!(verdict.notes.iter().map(|note| note.part).collect::<Vec<_>>(), [Part::Generator]);
    // A publisher that was late by itself for most of the silence.
    let verdict = judged("none", |record| {
        record.stalls = SILENCE;
        record.own_lag_ns.as_mut().unwrap().max = 9 * SECOND / 10;
    });
    assert_eq!(reasons(&verdict), [Reason::GeneratorSaturated]);
    assert!(verdict.notes.is_empty());
}

#[test]
fn an_agent_that_the_script_stopped_is_named_with_what_it_says_or_without() {
    let stop = |record: &mut RunRecord| {
        let (at_ns, until_ns) = (Some(2 * SECOND), Some(3 * SECOND));
        record.fault_log = vec![FaultEvent { what: Act::Stop, who: Target::Publishers, at_ns, until_ns, note: None }];
    };
    let fault = "stop publishers at 2s for 1s";
    let says = "the agent `publishers-2` did not run for 1.000 s, from 2.000 s into the window: the script stopped it";
    let verdict = judged(fault, stop);
    assert_eq!((reasons(&verdict), verdict.reasons[0].evidence.as_str()), (vec![Reason::GeneratorSaturated], says));
    let own = Stalls { count: 1, longest_ns: SECOND + MILLISECOND, longest_at_ns: 2 * SECOND - MILLISECOND };
    let verdict = judged(fault, |record| {
        stop(record);
        record.agents[1].pauses = own;
    });
    assert!(verdict.reasons[0].evidence.ends_with("the script stopped it"), "{:?}", verdict.reasons);
    // A pause at another time is another matter.
    let verdict = judged(fault, |record| {
        stop(record);
        record.agents[1].pauses = Stalls { longest_at_ns: 8 * SECOND, ..own };
    });
    assert!(verdict.reasons[0].evidence.ends_with("or the machine was"), "{:?}", verdict.reasons);
}

#[test]
fn what_the_coordinator_looked_at_too_late_is_not_known() {
    let late = |late_ns: Ns| {
        judged("none", |record| {
            record.window_ns = 10 * SECOND;
            record.machine.late_ns = late_ns;
        })
    };
    assert!(late(SECOND).valid);
    let verdict = late(SECOND + 1);
    assert_eq!(reasons(&verdict), [Reason::NoisyMachine]);
    let says = "1.000 s late at an edge of the window of 10.000 s";
    assert!(verdict.reasons[0].evidence.contains(says), "{:?}", verdict.reasons);
}

/// What a dying server does to a run.
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
    let verdict = judged("kill server at 5s for 1s", |record| record.counts.corrupted = 1);
    assert_eq!(reasons(&verdict), [Reason::Corrupted]);
}

#[test]
fn what_a_cut_link_brings_about_is_the_links() {
    let cut = |record: &mut RunRecord, at_ns: Ns| {
        let event = FaultEvent {
            what: Act::Cut,
            who: Target::Link,
            at_ns: Some(at_ns),
            until_ns: Some(at_ns + SECOND),
            note: None,
        };
        record.fault_log = vec![event];
        record.window_ns = 10 * SECOND;
        record.stalls = SILENCE;
        (record.counts.delivered, record.counts.lost, record.counts.duplicated) = (9_990, 10, 3);
        let connections = ConnectionFigures { opened: 2, lost: 2, reconnected: 2, ..ConnectionFigures::default() };
        record.connections = Some(connections);
    };
    let verdict = judged("cut link at 5s for 1s", |record| cut(record, 5 * SECOND));
    assert!(verdict.valid, "{verdict:?}");
    assert!(verdict.notes.iter().all(|note| note.part == Part::Link), "{verdict:?}");
    let told: Vec<&str> = verdict.notes.iter().map(|note| note.evidence.as_str()).collect();
    for says in
        ["2 connections were lost", "was cut once, for 1.000 s of", "when the link was cut", "10 of 10000 expected"]
    {
        assert!(told.iter().any(|told| told.contains(says)), "should say {says:?}: {told:?}");
    }
    // A silence at another time is the server's, whatever befell the link.
    let verdict = judged("cut link at 1s for 1s", |record| cut(record, SECOND));
    let silence = verdict.notes.iter().find(|note| note.evidence.contains("delivered nothing")).unwrap();
    assert_eq!(silence.part, Part::Server);
    // Where the server was killed as well, nobody knows whose losses they are.
    let verdict = judged("cut link at 1s for 1s, kill server at 3s for 1s", |record| cut(record, SECOND));
    let lost = verdict.notes.iter().find(|note| note.evidence.contains("never arrived")).unwrap();
    assert_eq!(lost.part, Part::Server);
}
