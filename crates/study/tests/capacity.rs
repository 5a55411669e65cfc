//! Tests what records imply for a load and for a capacity.
#![allow(clippy::unwrap_used)]

use pubmark_judge::empty_record::blank;
use pubmark_model::capacity::{
    BoundCause, CapacityAnswer, CapacityCourse, CapacityGoal, CapacityLimit, CapacityStep, LoadAxis, StepOutcome,
};
use pubmark_model::link::{Link, Side};
use pubmark_model::objective::Objective;
use pubmark_model::plan::{Place, cells, why_unbound};
use pubmark_model::profile::{Profile, Rate};
use pubmark_model::record::{
    FigureGroup, Finding, HostShare, InterfaceShare, LinkFigures, Reason, RunRecord, Usage, WireFigures,
};
use pubmark_model::study::{ReadOptions, Study};
use pubmark_model::units::MILLISECOND;
use pubmark_stats::{Histogram, Random};
use pubmark_study::registry;

/// Returns a run of 4 s at this rate, with every latency at `latency_ms`.
fn record(rate: f64, latency_ms: u64) -> RunRecord {
    let text = format!("title = \"t\"\n[workload]\nrate = {rate:.3}\n[axes]\nsystem = [\"mock\"]\n");
    let study = Study::parse("t", &text, &registry::built_in, &ReadOptions::default()).unwrap();
    let cell = cells(&study).unwrap().remove(0);
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
    record.verdict.reasons.push(Finding {
        reason,
        evidence: format!("{reason}"),
        figures: figures.to_vec(),
        overload: false,
    });
    record
}

fn goal(until: &str) -> CapacityGoal {
    CapacityGoal {
        until: Objective::parse(until).unwrap(),
        over: LoadAxis::Rate,
        flow: None,
        within: 0.05,
        start: 400.0,
        asked: None,
    }
}

fn step(record: &RunRecord, until: &str) -> CapacityStep {
    CapacityCourse::new(goal(until)).note(record).unwrap().clone()
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
        ("delivered_ratio >= 99.9%", true),
        ("delivered_ratio > 99.9%", false),
        ("server_cpu < 0.5 and p99 < 5ms", true),
        ("server_cpu < 0.3", false),
        // A figure that was not measured meets no bound.
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
    // Usage of the busiest thread: one that is full among others, and several that are not.
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
    assert_eq!(
        step(&cost, "server_cpu < 1").outcome,
        StepOutcome::Disturbed,
        "but who used the processors is not known"
    );
    assert_eq!(step(&noisy(50), "lost = 0").outcome, StepOutcome::Held, "they do not touch what is asked");
    let mut climb = CapacityCourse::new(goal("p99 < 5ms"));
    climb.note(&record(400.0, 1));
    assert!(!climb.note(&noisy(50)).unwrap().counts);
    assert_eq!((climb.next(), climb.settled()), (800.0, false), "the same load again");
    assert!(climb.note(&noisy(50)).unwrap().counts);
    assert_eq!(climb.answer().disturbed, 1);
}

#[test]
fn where_the_generator_gives_out_the_answer_is_a_lower_bound() {
    let mut climb = CapacityCourse::new(goal("p99 < 5ms"));
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
    assert_eq!(answer.bound_by, Some(BoundCause::Generator));
    assert_eq!((answer.hi, answer.estimate), (None, answer.lo), "never the system's own figure");
    assert!((2_800.0..3_000.0).contains(&answer.lo.unwrap()), "{answer:?}");
}

/// Also if the machine is noisy: noise does not end a server.
#[test]
fn a_search_is_given_up_where_the_server_ends_in_each_step() {
    for noisy in [false, true] {
        let ended = |load: f64| {
            let run = against(record(load, 50), Reason::ServerDied, &FigureGroup::all());
            if noisy { against(run, Reason::NoisyMachine, &[FigureGroup::LatencyP99]) } else { run }
        };
        let mut climb = CapacityCourse::new(goal("p99 < 5ms"));
        let mut loads = Vec::new();
        while climb.hopeless().is_none() {
            loads.push(climb.next());
            let made = climb.note(&ended(climb.next())).unwrap();
            assert_eq!((made.outcome, made.counts, made.server_ended), (StepOutcome::Failed, true, true));
            assert!(loads.len() < 10, "{loads:?}");
        }
        assert_eq!(loads.len(), 4, "each load once: {loads:?}");
        let why = climb.hopeless().unwrap();
        assert!(why.starts_with("the server ended in each of 4 steps, down to 50 messages/s"), "{why}");
        assert!(why.ends_with(": server-died"), "{why}");
        assert_eq!(climb.answer().limited_by, Some(CapacityLimit::Server));
    }
    // If the server survives a lower load, the search goes on.
    let mut climb = CapacityCourse::new(goal("p99 < 5ms"));
    for _ in 0..3 {
        climb.note(&against(record(climb.next(), 50), Reason::ServerDied, &FigureGroup::all()));
    }
    climb.note(&record(climb.next(), 1));
    climb.note(&against(record(climb.next(), 50), Reason::ServerDied, &FigureGroup::all()));
    assert_eq!(climb.hopeless(), None);
}

/// An end of the interval beyond every load that was tried is unknown.
#[test]
fn an_end_beyond_all_loads_is_not_found() {
    let noisy = |load| against(record(load, 50), Reason::NoisyMachine, &[FigureGroup::LatencyP99]);
    let runs = [400.0, 800.0, 1_600.0, 3_200.0].map(|load| record(load, 1));
    let disturbed = [noisy(6_400.0), noisy(6_400.0)];
    let answer = CapacityCourse::of(&goal("p99 < 5ms"), runs.iter().chain(&disturbed)).answer();
    assert_eq!((answer.bound_by, answer.lower_bound, answer.settled), (Some(BoundCause::Machine), true, false));
    assert_eq!((answer.hi, answer.estimate), (None, answer.lo));
    assert!((1_600.0..6_400.0).contains(&answer.lo.unwrap()), "{answer:?}");
    let answer = CapacityCourse::of(&goal("p99 < 5ms"), &runs).answer();
    assert_eq!((answer.bound_by, answer.estimate, answer.lo), (Some(BoundCause::Budget), None, Some(3_200.0)));
    let none = CapacityCourse::of(&goal("p99 < 5ms"), &[record(400.0, 50)]).answer();
    assert_eq!((none.bound_by, none.hi), (None, Some(400.0)), "nothing held");
}

/// A generator that was late by 2 ms at most, its receiver by 1 ms.
#[test]
fn what_the_generator_was_late_by_says_what_it_can_have_changed() {
    let all = |ms: u64| {
        let mut histogram = Histogram::latency();
        histogram.record(ms * 1_000_000);
        histogram.summary()
    };
    let late = |latency_ms, from_due_ms| {
        let mut run = record(800.0, latency_ms);
        run.times.intended_latency = all(from_due_ms);
        (run.times.own_lag, run.times.receive_lag) = (all(2), all(1));
        against(run, Reason::GeneratorSaturated, &[FigureGroup::LatencyP99])
    };
    for (run, until, says) in [
        (late(3, 4), "p99 < 5ms and lost = 0", StepOutcome::Held),
        (late(4, 6), "p99 < 5ms", StepOutcome::Generator),
        (late(6, 8), "p99 < 5ms", StepOutcome::Generator),
        (late(7, 8), "p99 < 5ms", StepOutcome::Generator),
        (late(9, 10), "p99 < 5ms", StepOutcome::Failed),
        (late(9, 10), "service p99 < 5ms and p99 < 5ms", StepOutcome::Generator),
        (against(late(3, 4), Reason::OfferedRateMissed, &[]), "p99 < 5ms", StepOutcome::Generator),
    ] {
        assert_eq!(step(&run, until).outcome, says, "{until}: {:?}", run.times.latency);
    }
    let untold = against(record(800.0, 1), Reason::GeneratorSaturated, &[FigureGroup::LatencyP99]);
    assert_eq!(step(&untold, "p99 < 5ms").outcome, StepOutcome::Generator);
}

/// Returns runs at these loads that held below 9,000/s; a message took the server 20 µs, and more and less by `moved`
/// in turn.
fn moving(loads: &[f64], moved: f64) -> Vec<RunRecord> {
    let moves = [1.0 + moved, 1.0 / (1.0 + moved)];
    let runs = loads.iter().zip(moves.into_iter().cycle()).map(|(load, moves)| {
        let mut run = record(*load, if *load < 9_000.0 { 1 } else { 50 });
        run.rates.delivered_per_s = *load;
        run.server = Some(Usage { cpu_cores: load * 20e-6 * moves, ..Usage::default() });
        run
    });
    runs.collect()
}

#[test]
fn how_far_the_machines_speed_moved_is_in_the_interval() {
    let goal = goal("p99 < 5ms");
    let loads = [400.0, 800.0, 1_600.0, 3_200.0, 6_400.0, 12_800.0, 12_800.0, 8_900.0, 9_100.0, 8_950.0, 9_050.0];
    let answer = |moved| CapacityCourse::of(&goal, &moving(&loads, moved)).answer();
    let (still, moved) = (answer(0.0), answer(0.05));
    assert!(still.drift < 1e-9, "{still:?}");
    // Of the four beside the edge two took 1.05 times as long, and two as much less.
    assert!((moved.drift - 1.05_f64.ln() * (4.0_f64 / 3.0).sqrt()).abs() < 1e-9, "{moved:?}");
    assert_eq!(moved.estimate, still.estimate);
    let apart = |one: Option<f64>, other: Option<f64>| (one.unwrap() / other.unwrap()).ln();
    assert!((apart(still.lo, moved.lo) - moved.drift).abs() < 1e-9, "{still:?} {moved:?}");
    assert!((apart(moved.hi, still.hi) - moved.drift).abs() < 1e-9, "{still:?} {moved:?}");
}

/// Further steps would narrow the interval by less than the machine's speed moves.
#[test]
fn a_search_is_over_where_the_machine_moves_more_than_the_steps_leave_open() {
    let steps = |moved| {
        let mut climb = CapacityCourse::new(goal("p99 < 5ms"));
        while !climb.settled() {
            let moves = if climb.steps().len().is_multiple_of(2) { moved } else { 0.0 };
            climb.note(&moving(&[climb.next()], moves)[0]);
        }
        (climb.steps().len(), climb.drifts())
    };
    let (still, moving, wild) = (steps(0.0), steps(0.1), steps(3.0));
    assert!(!still.1 && moving.1 && wild.1, "{still:?} {moving:?} {wild:?}");
    assert!(moving.0 < still.0 && wild.0 + 4 > moving.0, "{still:?} {moving:?} {wild:?}");
}

/// Returns the speed of a machine that wanders by `sd`: a part of each step's own, and parts that last for two steps,
/// ten and fifty.
fn wanders(sd: f64, lasting: &mut [f64; 3], random: &mut Random) -> f64 {
    let each = sd / 2.0;
    let mut normal = || (-2.0 * (1.0 - random.unit()).ln()).sqrt() * (std::f64::consts::TAU * random.unit()).cos();
    for (part, keeps) in lasting.iter_mut().zip([0.5_f64, 0.9, 0.98]) {
        *part = *part * keeps + (1.0 - keeps * keeps).sqrt() * each * normal();
    }
    (lasting.iter().sum::<f64>() + each * normal()).exp()
}

#[test]
fn two_searches_straight_after_each_other_overlap_though_the_machine_wanders() {
    let blank = moving(&[400.0], 0.0).remove(0);
    let run = |load: f64, speed: f64, held: bool| {
        let mut run = blank.clone();
        run.workload.rate = Rate::Due(Profile::constant((load * 1e3) as u64));
        run.rates.delivered_per_s = load;
        run.server = Some(Usage { cpu_cores: load * 20e-6 / speed, ..Usage::default() });
        run.times.latency.as_mut().unwrap().p99 = if held { MILLISECOND } else { 50 * MILLISECOND };
        run
    };
    for sd in [0.0, 0.02, 0.05, 0.08] {
        let (mut overlap, mut bare, mut settled) = (0, 0, 0);
        for seed in 0..100 {
            let (mut random, mut lasting) = (Random(seed * 7_919 + 1), [0.0; 3]);
            for _ in 0..100 {
                wanders(sd, &mut lasting, &mut random);
            }
            let mut search = || {
                let mut climb = CapacityCourse::new(goal("p99 < 5ms"));
                while climb.steps().len() < 30 && !climb.settled() {
                    let load = climb.next();
                    let speed = wanders(sd, &mut lasting, &mut random);
                    let odds = (load / (45_000.0 * speed)).ln() / 0.01;
                    climb.note(&run(load, speed, random.unit() < 1.0 / (1.0 + odds.exp())));
                }
                settled += usize::from(climb.settled());
                climb.answer()
            };
            let [one, other] = [search(), search()];
            // An end that was not found leaves everything beyond it open.
            let ends = |answer: &CapacityAnswer, drift: f64| {
                let [lo, hi] = [answer.lo.unwrap_or(0.0), answer.hi.unwrap_or(f64::INFINITY)];
                (lo * drift.exp(), hi / drift.exp())
            };
            let meet = |one: (f64, f64), other: (f64, f64)| usize::from(one.0 <= other.1 && other.0 <= one.1);
            overlap += meet(ends(&one, 0.0), ends(&other, 0.0));
            bare += meet(ends(&one, one.drift), ends(&other, other.drift));
        }
        println!("±{sd}: {overlap} of 100 pairs overlap, {bare} without the drift in them");
        assert!(overlap >= 97 && settled >= 190, "±{sd}: {overlap} of 100 overlap, {settled} of 200 are over");
    }
}

#[test]
fn a_run_of_full_length_that_says_nothing_takes_nothing_back() {
    let mut climb = CapacityCourse::new(goal("p99 < 5ms"));
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
        (against(full(1), Reason::GeneratorSaturated, p99), "is unreliable: generator-saturated"),
        (unmade, "failed: no port is free"),
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
    let mut climb = CapacityCourse::new(goal.clone());
    let mut records = Vec::new();
    while !climb.settled() {
        let run = record(climb.next(), if climb.next() < 9_000.0 { 1 } else { 50 });
        climb.note(&run);
        records.push(run);
    }
    let again = CapacityCourse::of(&goal, &records);
    assert_eq!((again.answer(), again.steps()), (climb.answer(), climb.steps()));
    let estimate = climb.answer().estimate.unwrap();
    assert!((estimate / 9_000.0 - 1.0).abs() < 0.03, "{estimate}");
}

#[test]
fn an_objective_stands_in_a_study_and_reads_back() {
    let text = "title = \"t\"\n[axes]\nsystem = [\"mock\"]\nrate = [100, 200]\n[capacity]\nuntil = \"p99 < 5ms\"\n\
                over = \"rate\"\nwithin = \"7%\"\nstart = 100\n";
    let read = |text: &str| Study::parse("t", text, &registry::built_in, &ReadOptions::default());
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
        let study = Study::parse("t", &text, &registry::built_in, &ReadOptions::default()).unwrap();
        study.to_toml()
    };
    let none = asked("", "p99 < 5ms");
    let search = "[parts.search]\nrate = [400, 800]\nduration = \"4s\"\n";
    let same = |parts: &str, until: &str| Study::measures_the_same(&none, &asked(parts, until), true);
    assert!(same(search, "p99 < 5ms"));
    assert!(same(&format!("{search}[parts.confirm]\nrate = 600\n"), "p99 < 5ms"));
    assert!(!same(search, "p99 < 6ms"));
    assert!(!Study::measures_the_same(&none, &asked(search, "p99 < 5ms"), false), "any other study keeps its parts");
}

#[test]
fn a_server_in_a_container_cannot_be_bound_whichever_engine_runs_it() {
    let why = |system: &str, deployment: &str| {
        let options = [("deployment".to_owned(), deployment.into())].into();
        why_unbound(&registry::built_in(system).unwrap(), &options)
    };
    for engine in ["container", "docker", "podman"] {
        assert_eq!(why("mosquitto", engine), Some("its server runs in a container"), "{engine}");
    }
    assert_eq!(why("mosquitto", "native"), None);
    assert_eq!(why("zeromq", "native"), Some("it is a library and has no server"));
}

/// The same search, downwards, finds the lowest limit that suffices; if the starting limit does not suffice, more is
/// not tried.
#[test]
fn the_least_processors_and_memory_that_suffice_are_found() {
    for (over, start, needed) in [(LoadAxis::Cpus, 2.0, 0.3), (LoadAxis::Memory, 4e9, 96e6)] {
        let goal = CapacityGoal { over, start: over.amount(start), ..goal("p99 < 5ms") };
        let made = |load: f64, needed: f64| {
            let amount: f64 = over.value(load, 1).parse().unwrap();
            let mut run = record(100.0, if amount >= needed { 1 } else { 50 });
            run.cell.insert(over.key().into(), amount.into());
            run
        };
        let mut climb = CapacityCourse::new(goal.clone());
        let mut asked = Vec::new();
        while !climb.settled() {
            asked.push(over.amount(climb.next()));
            climb.note(&made(climb.next(), needed)).unwrap();
            assert!(asked.len() < 60, "{asked:?}");
        }
        assert!(
            (asked[0] / start - 1.0).abs() < 1e-3 && asked.iter().all(|amount| *amount <= start * 1.001),
            "{asked:?}"
        );
        let answer = climb.answer();
        let [least, most] = [answer.hi, answer.lo].map(|load| over.amount(load.unwrap()));
        assert!(least <= needed * 1.03 && needed * 0.97 <= most && most / least < 1.1, "{least} to {most}: {answer:?}");
        let mut hopeless = CapacityCourse::new(goal);
        hopeless.note(&made(over.amount(start), 2.0 * start));
        let why = hopeless.hopeless().unwrap();
        assert!(why.starts_with("the objective does not hold at ") && why.ends_with(" either"), "{why}");
    }
}
