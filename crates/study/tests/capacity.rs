//! What records say of a load, and of a capacity.
#![allow(clippy::unwrap_used)]

use pubmark_judge::blank::blank;
use pubmark_model::capacity::{CapacityClimb, CapacityGoal, CapacityLimit, CapacityStep, LoadAxis, StepOutcome};
use pubmark_model::link::{Link, Side};
use pubmark_model::objective::Objective;
use pubmark_model::plan::{Place, cells};
use pubmark_model::record::{
    FigureGroup, Finding, HostShare, InterfaceShare, LinkFigures, Reason, RunRecord, Usage, WireFigures,
};
use pubmark_model::study::{ReadOptions, Study};
use pubmark_stats::Histogram;
use pubmark_study::registry;

/// A run of 4 s at this rate, with every latency at `latency_ms`.
fn record(rate: f64, latency_ms: u64) -> RunRecord {
    let text = format!("title = \"t\"\n[workload]\nrate = {rate:.3}\n[axes]\nsystem = [\"mock\"]\n");
    let study = Study::parse("t", &text, &registry::find, &ReadOptions::default()).unwrap();
    let cell = cells(&study, &registry::find).unwrap().remove(0);
    let mut record = blank(&cell, None, Place { repeat: 1, position: 0 }, String::new());
    let all = (rate * 4.0) as u64;
    record.window_ns = 4_000_000_000;
    (record.counts.offered, record.counts.sent) = (all, all);
    (record.counts.expected, record.counts.delivered) = (all, all);
    (record.series.sent, record.series.delivered) = (vec![all], vec![all]);
    let mut histogram = Histogram::latency();
    (0..100).for_each(|_| histogram.record(latency_ms * 1_000_000));
    record.times.latency = histogram.summary();
    record.machine.cores = 4;
    record.server = Some(Usage { cpu_cores: 0.4, ..Usage::default() });
    record
}

fn against(mut record: RunRecord, reason: Reason, figures: &[FigureGroup]) -> RunRecord {
    record.verdict.reasons.push(Finding { reason, evidence: format!("{reason}"), figures: figures.to_vec() });
    record
}

fn goal(until: &str) -> CapacityGoal {
    CapacityGoal {
        until: Objective::parse(until).unwrap(),
        over: LoadAxis::Rate,
        within: 0.05,
        start: 400.0,
        asked: None,
    }
}

fn step(record: &RunRecord, until: &str) -> CapacityStep {
    CapacityClimb::new(goal(until)).note(record).unwrap().clone()
}

#[test]
fn an_objective_is_held_against_a_record() {
    let mut run = record(1_000.0, 4);
    (run.counts.lost, run.counts.delivered) = (4, 3_996);
    for (until, held) in [
        ("p99 < 5ms", true),
        ("p99 < 4ms", false),
        ("p50 <= 4.01ms and max < 5ms", true),
        ("lost = 0", false),
        ("lost <= 4", true),
        ("lost < 0.1%", false),
        ("lost <= 0.1%", true),
        ("delivered >= 99.9%", true),
        ("delivered > 99.9%", false),
        ("cpu < 0.5 and p99 < 5ms", true),
        ("cpu < 0.3", false),
        // Not measured: of that nothing holds.
        ("service p99 < 1s", false),
        ("jitter < 1s", false),
    ] {
        let step = step(&run, until);
        assert_eq!(step.outcome == StepOutcome::Held, held, "{until}: {:?}", step.unmet);
        assert_eq!(Objective::parse(until).unwrap().to_string(), until, "it is written as it was read");
    }
    let text = step(&run, "lost = 0 and p99 < 1ms").unmet;
    assert!(text[0] == "lost = 0: it was 4" && text[1].starts_with("p99 < 1ms: it was 4.0"), "{text:?}");
}

#[test]
fn what_gave_out_first_is_told() {
    let slow = || record(1_000.0, 50);
    let with = |change: &dyn Fn(&mut RunRecord)| {
        let mut run = slow();
        change(&mut run);
        step(&run, "p99 < 5ms and lost = 0").limit.unwrap()
    };
    assert_eq!(with(&|_| {}), CapacityLimit::Latency);
    assert_eq!(with(&|run| run.series.delivered = vec![2_000]), CapacityLimit::Queue);
    assert_eq!(with(&|run| run.counts.lost = 3), CapacityLimit::Losses);
    let cores = |cores| move |run: &mut RunRecord| run.server.as_mut().unwrap().cpu_cores = cores;
    assert_eq!(with(&cores(0.97)), CapacityLimit::Thread);
    assert_eq!(with(&cores(3.8)), CapacityLimit::Processors);
    // Of which the busiest thread was looked at: one that is full among others, and several that are not.
    let threads = |all, busiest| {
        move |run: &mut RunRecord| {
            let server = run.server.as_mut().unwrap();
            (server.cpu_cores, server.busiest_thread_cores) = (all, Some(busiest));
        }
    };
    assert_eq!(with(&threads(1.8, 0.96)), CapacityLimit::Thread);
    assert_eq!(with(&threads(0.97, 0.4)), CapacityLimit::Latency, "0.97 of two threads or more");
    // A link of 1 MB/s for each of two subscribers, and a host's network of 2 MB/s.
    let linked = |bytes_per_s: f64| {
        move |run: &mut RunRecord| {
            (run.workload.subscribers, run.rates.delivered_bytes_per_s) = (2, bytes_per_s);
            let asked = Link {
                side: Side::Subscribers,
                delay_ns: 0,
                jitter_ns: 0,
                bandwidth_bytes_per_s: Some(1_000_000),
                mttf_ns: None,
                mttr_ns: None,
            };
            run.link = Some(LinkFigures { asked, usage: None });
            run.series.delivered = vec![2_000];
        }
    };
    assert_eq!(with(&linked(1_900_000.0)), CapacityLimit::Network, "before the queue that it leads to");
    assert_eq!(with(&linked(1_000_000.0)), CapacityLimit::Queue, "half of it for each connection");
    let hosted = |sent_bytes: u64| {
        move |run: &mut RunRecord| {
            let host = HostShare { name: "far".into(), bandwidth_bytes_per_s: Some(2_000_000), ..HostShare::default() };
            run.hosts = vec![host];
            run.window_ns = 2_000_000_000;
            let interface = InterfaceShare { host: "far".into(), sent_bytes, ..InterfaceShare::default() };
            run.wire = Some(WireFigures { sent_bytes, interfaces: vec![interface] });
        }
    };
    assert_eq!(with(&hosted(3_800_000)), CapacityLimit::Network);
    assert_eq!(with(&hosted(2_000_000)), CapacityLimit::Latency);
    let shared = |run: &mut RunRecord| {
        cores(1.9)(run);
        run.generator = Some(Usage { cpu_cores: 1.9, ..Usage::default() });
    };
    assert_eq!(with(&shared), CapacityLimit::Processors, "server and generator have the whole machine");
    for (reason, limit) in [
        (Reason::ConnectionsMissed, CapacityLimit::Connections),
        (Reason::ResourceLimitHit, CapacityLimit::Memory),
        (Reason::ServerDied, CapacityLimit::Server),
        (Reason::OfferedRateMissed, CapacityLimit::Queue),
    ] {
        // Whatever its latencies are.
        let run = against(record(1_000.0, 1), reason, FigureGroup::ALL);
        let step = step(&run, "p99 < 5ms");
        assert_eq!((step.outcome, step.limit), (StepOutcome::Failed, Some(limit)), "{reason}");
    }
}

#[test]
fn a_disturbed_step_is_made_again_and_counts_then() {
    let noisy = |latency_ms| against(record(800.0, latency_ms), Reason::NoisyMachine, &[FigureGroup::LatencyP99]);
    assert_eq!(step(&noisy(1), "p99 < 5ms").outcome, StepOutcome::Held, "others only make it worse");
    let cost = against(record(800.0, 1), Reason::NoisyMachine, &[FigureGroup::Cost]);
    assert_eq!(step(&cost, "cpu < 1").outcome, StepOutcome::Disturbed, "but who used the processors is not known");
    assert_eq!(step(&noisy(50), "lost = 0").outcome, StepOutcome::Held, "they do not touch what is asked");
    let mut climb = CapacityClimb::new(goal("p99 < 5ms"));
    climb.note(&record(400.0, 1));
    assert!(!climb.note(&noisy(50)).unwrap().counts);
    assert_eq!((climb.next(), climb.settled()), (800.0, false), "the same load again");
    assert!(climb.note(&noisy(50)).unwrap().counts);
    assert_eq!(climb.answer().disturbed, 1);
}

#[test]
fn where_the_generator_gives_out_the_answer_is_a_lower_bound() {
    let mut climb = CapacityClimb::new(goal("p99 < 5ms"));
    let mut asked = 0;
    while !climb.settled() {
        let load = climb.next();
        let fast = record(load, 1);
        let late = |run| against(run, Reason::GeneratorSaturated, &[FigureGroup::LatencyP99]);
        climb.note(&if load < 3_000.0 { fast } else { late(fast) });
        asked += 1;
        assert!(asked < 60);
    }
    let answer = climb.answer();
    assert_eq!((answer.limited_by, answer.lower_bound), (Some(CapacityLimit::Generator), true));
    assert_eq!((answer.hi, answer.estimate), (None, answer.lo), "never the system's own figure");
    assert!((2_800.0..3_000.0).contains(&answer.lo.unwrap()), "{answer:?}");
}

#[test]
fn a_run_of_full_length_that_says_nothing_takes_nothing_back() {
    let mut climb = CapacityClimb::new(goal("p99 < 5ms"));
    while !climb.settled() {
        let load = climb.next();
        climb.note(&record(load, if load < 9_000.0 { 1 } else { 50 }));
    }
    assert!(climb.unconfirmed().unwrap().contains("no time"));
    let answer = climb.answer();
    let full = |latency_ms| {
        let mut run = record(answer.lo.unwrap(), latency_ms);
        run.cell.insert("part".into(), "confirm".into());
        run
    };
    let p99 = &[FigureGroup::LatencyP99];
    let mut unmade = full(1);
    unmade.error = Some("no port is free".into());
    for (run, why) in [
        (against(full(50), Reason::NoisyMachine, p99), "others used the machine"),
        (against(full(50), Reason::NoisyMachine, p99), "p99 < 5ms: it was 50"),
        (against(full(1), Reason::GeneratorSaturated, p99), "is not valid: generator-saturated"),
        (unmade, "could not be made: no port is free"),
    ] {
        let step = climb.note(&run).unwrap();
        assert!(step.confirms && !step.counts, "{step:?}");
        assert!(climb.settled() && climb.answer() == answer, "{:?}", climb.answer());
        let said = climb.unconfirmed().unwrap();
        assert!(said.contains(why), "{said}");
    }
    let mut held = climb.clone();
    held.note(&full(1));
    assert_eq!((held.answer().confirmed, held.unconfirmed()), (true, None));
    assert!(climb.note(&full(50)).unwrap().counts, "one that fails in its own right is an answer");
    assert!(climb.unconfirmed().unwrap().contains("it did not hold: p99 < 5ms"));
}

#[test]
fn a_search_played_again_from_its_records_knows_the_same() {
    let goal = goal("p99 < 5ms");
    let mut climb = CapacityClimb::new(goal.clone());
    let mut records = Vec::new();
    while !climb.settled() {
        let run = record(climb.next(), if climb.next() < 9_000.0 { 1 } else { 50 });
        climb.note(&run);
        records.push(run);
    }
    let again = CapacityClimb::of(&goal, &records);
    assert_eq!((again.answer(), again.steps()), (climb.answer(), climb.steps()));
    let estimate = climb.answer().estimate.unwrap();
    assert!((estimate / 9_000.0 - 1.0).abs() < 0.03, "{estimate}");
}

#[test]
fn an_objective_stands_in_a_study_and_reads_back() {
    let text = "title = \"t\"\n[axes]\nsystem = [\"mock\"]\nrate = [100, 200]\n[capacity]\nuntil = \"p99 < 5ms\"\n\
                over = \"rate\"\nwithin = \"7%\"\nstart = 100\n";
    let read = |text: &str| Study::parse("t", text, &registry::find, &ReadOptions::default());
    let study = read(text).unwrap();
    assert_eq!(study.capacity.as_ref().map(|goal| (goal.within, goal.start)), Some((0.07, 100.0)));
    assert_eq!(read(&study.to_toml()).unwrap(), study);
    let wrong = read(&text.replace("7%", "70%").replace("p99 <", "p98 <").replace("start = 100", "start = 0"));
    assert_eq!(wrong.unwrap_err().errors.len(), 3, "all at once");
}

#[test]
fn a_search_is_known_by_its_question_whichever_loads_it_came_to() {
    let asked = |parts: &str, until: &str| {
        let text = format!(
            "title = \"t\\n[parts.x]\\n\"\n[axes]\nsystem = [\"mock\"]\n{parts}[[skip]]\nwhy = \"w\"\nsystem = \"mock\"\n\
             [capacity]\nuntil = \"{until}\"\n"
        );
        let study = Study::parse("t", &text, &registry::find, &ReadOptions::default()).unwrap();
        Study::without_part_tables(&study.to_toml())
    };
    let none = asked("", "p99 < 5ms");
    assert!(none.contains("[parts.x]") && none.contains("[[skip]]"), "a title is no table: {none}");
    let search = "[parts.search]\nrate = [400, 800]\nduration = \"4s\"\n";
    assert_eq!(asked(search, "p99 < 5ms"), none);
    assert_eq!(asked(&format!("{search}[parts.confirm]\nrate = 600\n"), "p99 < 5ms"), none);
    assert_ne!(asked(search, "p99 < 6ms"), none);
}
