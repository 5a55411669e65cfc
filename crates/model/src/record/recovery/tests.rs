//! Tests with hand-made records of a run: ten messages a second of each of ten publishers, in
//! slices of 100 ms, with an outage from 1 s to 2 s.

use super::*;
use crate::fault::Script;
use crate::protocol::Stalls;
use crate::record::{ConnectionFigures, Counts, MachineLoad, Rates, SCHEMA, Verdict};
use crate::setting::Settings;
use crate::units::{MILLISECOND, SECOND};
use crate::workload::Workload;
use pubmark_stats::{Histogram, Summary};
use serde_json::json;

const SLICE: Ns = 100 * MILLISECOND;
const WINDOW: Ns = 5 * SECOND;
/// Time between due messages, over all publishers.
const GAP: Ns = 10 * MILLISECOND;

fn summary(values: &[Ns]) -> Option<Summary> {
    let mut histogram = Histogram::latency();
    values.iter().for_each(|value| histogram.record_n(*value, 1));
    histogram.summary()
}

fn record(faults: &str, events: &[(Ns, Ns)]) -> RunRecord {
    let workload = Workload::resolve(&Settings::default()).unwrap();
    let mut record: RunRecord = serde_json::from_value(json!({
        "schema": SCHEMA, "cell": {}, "repeat": 1, "position": 0, "system": "s", "versions": {}, "started": "",
        "workload": workload, "options": {}, "applied": {}, "window_ns": WINDOW, "counts": Counts::default(),
        "rates": Rates::default(), "agents": [], "histograms": {}, "series": Series::default(),
        "machine": MachineLoad::default(), "remarks": [], "verdict": Verdict::default(),
    }))
    .unwrap();
    record.faults = Script::parse(faults).unwrap();
    let event = |(fault, (at_ns, until_ns)): (&crate::fault::Fault, &(Ns, Ns))| FaultEvent {
        what: fault.what,
        who: fault.who,
        host: None,
        member: None,
        at_ns: Some(*at_ns),
        until_ns: Some(*until_ns),
        peer: None,
        listens_ns: None,
        note: None,
    };
    record.fault_log = record.faults.0.iter().zip(events).map(event).collect();
    record
}

/// Sends messages one after the other through a server that takes a millisecond for each, and that
/// is away between these instants; messages due then wait, or are lost.
fn served(record: &mut RunRecord, outages: &[(Ns, Ns)], waits: bool) {
    let slices = (WINDOW / SLICE) as usize;
    let series = &mut record.series;
    (series.slice_ns, series.delivered, series.latency_max_ns) = (SLICE, vec![0; slices], vec![0; slices]);
    let (mut free_ns, mut last_ns, mut latencies, mut lost) = (0, 0, Vec::new(), 0);
    let mut stalls = Stalls::default();
    for due_ns in (0..WINDOW).step_by(GAP as usize) {
        let away = |at: Ns| outages.iter().find(|(from, until)| (*from..*until).contains(&at));
        if away(due_ns).is_some() && !waits {
            lost += 1;
            continue;
        }
        let ready_ns = free_ns.max(due_ns);
        let arrives_ns = away(ready_ns).map_or(ready_ns, |(_, until)| *until) + MILLISECOND;
        free_ns = arrives_ns;
        latencies.push(arrives_ns - due_ns);
        if arrives_ns - last_ns > SLICE {
            stalls.add(&Stalls::one(arrives_ns - last_ns, last_ns));
        }
        last_ns = arrives_ns;
        if let Some(slice) = Some((arrives_ns / SLICE) as usize).filter(|slice| *slice < slices) {
            series.delivered[slice] += 1;
            series.latency_max_ns[slice] = series.latency_max_ns[slice].max(arrives_ns - due_ns);
        }
    }
    // A slice has few arrivals: its 99th percentile is its maximum.
    series.latency_p99_ns.clone_from(&series.latency_max_ns);
    record.stalls = Some(stalls);
    record.times.latency = summary(&latencies);
    let counts = &mut record.counts;
    (counts.sent, counts.expected) = (WINDOW / GAP, WINDOW / GAP);
    (counts.delivered, counts.lost) = (WINDOW / GAP - lost, lost);
}

#[test]
fn an_outage_that_lasted_longer_than_asked_is_told_to_the_slice() {
    // The script asks for a second, and the server returns half a second later.
    let mut record = record("kill server at 1s for 1s", &[(SECOND, 2 * SECOND)]);
    served(&mut record, &[(SECOND, 2_500 * MILLISECOND)], true);
    record.fault_log[0].listens_ns = Some(2_400 * MILLISECOND);
    record.connections = Some(ConnectionFigures {
        lost: 11,
        reconnected: 11,
        reconnect_ns: summary(&[1_100 * MILLISECOND, 1_700 * MILLISECOND]),
        ..ConnectionFigures::default()
    });
    let found = Recovery::of(&record).unwrap();
    // The last message before it arrived 991 ms into the window, the next at 2,501 ms.
    assert_eq!(found.silence_ns, Some(1_510 * MILLISECOND));
    assert_eq!(found.beyond_ns, Some(510 * MILLISECOND));
    // 150 messages wait at 2.5 s, and nine of each ten ms are left for them: the queue is empty
    // 166.7 ms later, in the slice from 2.6 s. There and in the slice before, latency falls along a
    // line, which meets that of before the outage when the queue is empty.
    let caught_up_ns = found.caught_up_after_ns.unwrap();
    // A message takes a millisecond, so that a slice's first arrival is that much within it.
    assert!(caught_up_ns.abs_diff(666_700_000) < 2 * MILLISECOND, "{caught_up_ns}");
    assert_eq!(found.prospect, None);
    assert_eq!(found.watched_ns, Some(3 * SECOND));
    assert_eq!(found.listens_after_ns, Some(400 * MILLISECOND));
    let back = found.clients_back_after_ns.unwrap();
    assert!(back.abs_diff(700 * MILLISECOND) < 2 * MILLISECOND, "the longest time away, less a second: {back}");
    assert_eq!(found.clients_not_back, Some(0));
}

#[test]
fn what_is_lost_is_not_waited_for() {
    let mut record = record("cut link at 1s for 1s", &[(SECOND, 2 * SECOND)]);
    served(&mut record, &[(SECOND, 2 * SECOND)], false);
    let found = Recovery::of(&record).unwrap();
    assert_eq!((record.counts.lost, found.silence_ns), (100, Some(1_010 * MILLISECOND)));
    // The first whole slice after the fault is like those before it.
    assert_eq!(found.caught_up_after_ns, Some(SLICE));
    assert_eq!((found.clients_back_after_ns, found.clients_not_back), (None, None), "a library has no connections");
}

#[test]
fn a_backlog_that_outlasts_the_window_is_not_caught_up() {
    let at = 4_500 * MILLISECOND;
    let mut record = record("stop server at 3500ms for 1s", &[(3_500 * MILLISECOND, at)]);
    served(&mut record, &[(3_500 * MILLISECOND, 4_950 * MILLISECOND)], true);
    let found = Recovery::of(&record).unwrap();
    assert_eq!((found.caught_up_after_ns, found.watched_ns), (None, Some(500 * MILLISECOND)));
    // Arrivals of one slice do not show where it leads: the time watched is doubled.
    assert_eq!(found.prospect, Some(BacklogOutlook::Shrinks { window_ns: 5_500 * MILLISECOND }));
    // Recovery is unknown for a fault that ends with the window.
    record.fault_log[0].until_ns = Some(WINDOW);
    let unwatched = Recovery::of(&record).unwrap();
    assert_eq!((unwatched.caught_up_after_ns, unwatched.watched_ns), (None, None));
    record.fault_log[0].until_ns = Some(at);
    // Arrivals in the drain alone do not count, however quiet the window ends.
    served(&mut record, &[(3_500 * MILLISECOND, at)], true);
    assert_eq!(Recovery::of(&record).unwrap().caught_up_after_ns, Some(2 * SLICE));
    record.counts.delivered += 100;
    assert_eq!(Recovery::of(&record).unwrap().caught_up_after_ns, None);
}

#[test]
fn a_backlog_that_shrinks_needs_a_longer_window_and_one_that_does_not_lasts() {
    let of = |latency_ms: &dyn Fn(u64) -> u64| {
        let mut record = record("stop server at 1s for 1s", &[(SECOND, 2 * SECOND)]);
        served(&mut record, &[(SECOND, 2 * SECOND)], true);
        for (slice, p99_ns) in (0..).zip(&mut record.series.latency_p99_ns).skip(21) {
            *p99_ns = latency_ms(slice) * MILLISECOND;
            if *p99_ns == 0 {
                record.series.delivered[slice as usize] = 0;
            }
        }
        record.series.latency_max_ns.clone_from(&record.series.latency_p99_ns);
        let found = Recovery::of(&record).unwrap();
        assert_eq!(found.caught_up_after_ns, None);
        found.prospect.unwrap()
    };
    // From 990 ms in slice 21 to 430 ms in slice 49, the last: by 20 ms a slice, so that 2,150 ms
    // and two slices are missing.
    assert_eq!(of(&|slice| 990 - 20 * (slice - 21)), BacklogOutlook::Shrinks { window_ns: 8_085 * MILLISECOND });
    assert_eq!(of(&|_| 990), BacklogOutlook::Lasts);
    assert_eq!(of(&|slice| 900 + slice), BacklogOutlook::Lasts);
    assert_eq!(of(&|slice| if slice < 40 { 900 } else { 0 }), BacklogOutlook::Lasts, "nothing arrives any more");
}

#[test]
fn a_client_that_never_came_back_is_counted_and_has_no_time() {
    let mut record = record("kill server at 1s for 1s", &[(SECOND, 2 * SECOND)]);
    served(&mut record, &[(SECOND, 2 * SECOND)], true);
    let times = summary(&[1_100 * MILLISECOND]);
    record.connections =
        Some(ConnectionFigures { lost: 11, reconnected: 8, reconnect_ns: times, ..ConnectionFigures::default() });
    let found = Recovery::of(&record).unwrap();
    assert_eq!((found.clients_back_after_ns, found.clients_not_back), (None, Some(3)));
}

#[test]
fn faults_that_come_before_one_is_caught_up_are_one() {
    let script = "cut link at 1s for 500ms, cut link at 1600ms for 400ms";
    let events = [(SECOND, 1_500 * MILLISECOND), (1_600 * MILLISECOND, 2 * SECOND)];
    let mut record = record(script, &events);
    served(&mut record, &[(SECOND, 2 * SECOND)], true);
    let found = Recovery::of(&record).unwrap();
    assert_eq!((found.silence_ns, found.beyond_ns), (Some(1_010 * MILLISECOND), Some(110 * MILLISECOND)));
    // 100 messages wait at 2 s; the last of them and of those due meanwhile arrives at 2,112 ms.
    assert_eq!(found.caught_up_after_ns, Some(2 * SLICE));
}

#[test]
fn a_silence_of_another_time_and_faults_of_clients_are_none() {
    let mut record = record("stop publishers at 1s for 1s", &[(SECOND, 2 * SECOND)]);
    served(&mut record, &[(SECOND, 2 * SECOND)], true);
    assert_eq!(Recovery::of(&record), None);
    let mut record = self::record("stop server at 1s for 1s", &[(SECOND, 2 * SECOND)]);
    served(&mut record, &[(3 * SECOND, 4 * SECOND)], true);
    assert_eq!(Recovery::of(&record).unwrap().silence_ns, None);
    record.error = Some("it could not be made".into());
    assert_eq!(Recovery::of(&record), None);
}

#[test]
fn the_share_of_faults_counts_each_instant_of_the_window_once() {
    let span = |from_ms: Ns, to_ms: Ns| (from_ms * MILLISECOND, to_ms * MILLISECOND);
    let of = |script: &str, events: &[(Ns, Ns)]| record(script, events).fault_ratio();
    assert_eq!(of("cut link at 1s for 500ms", &[span(1_000, 1_500)]), Some(0.1));
    let two = "cut link at 1s for 1s, stop server at 1500ms for 1s";
    assert_eq!(of(two, &[span(1_000, 2_000), span(1_500, 2_500)]), Some(0.3), "they overlap");
    assert_eq!(of(two, &[span(1_000, 3_000), span(1_500, 2_500)]), Some(0.4), "one lies within the other");
    assert_eq!(of("cut link at 4s for 2s", &[span(4_000, 6_000)]), Some(0.2), "it outlasts the window");
    assert_eq!(of("kill publishers at 1s", &[span(1_000, 2_000)]), None, "the server is there");
}
