//! Studies that are measured until their questions are decided: what is asked, what
//! is decided, and that nothing is taken back.

use crate::lab::{Lab, latency, spoil, spoil_for};
use pubmark_model::record::{FigureGroup, Reason};
use pubmark_report::{ClaimOutcome, Placing, QuestionKind, QuestionState, Report};

const CLAIM: &str = "[[claims]]\nid = \"c\"\nsays = \"gamma is better than beta\"\nfigure = \"latency_p50_ns\"\n\
                     best = [\"gamma\"]\namong = [\"beta\", \"gamma\"]\n";

fn lab(systems: &str, until: &str, claim: &str) -> Lab {
    Lab::new(&format!(
        "[axes]\nsystem = [{systems}]\npayload = [\"64B\", \"128B\"]\n[run]\nstop = \"{until}\"\n{claim}"
    ))
}

/// Latencies about a typical one, each run off by a little that differs from run to run.
fn about(ns: u64, runs: usize, salt: u64) -> Vec<u64> {
    (0..runs as u64).map(|run| ns + ns / 100 * ((run * 7 + salt * 3) % 5)).collect()
}

fn placing(report: &Report, point: usize) -> Placing {
    report.points()[point].best().unwrap().placing.clone()
}

fn states(report: &Report) -> Vec<QuestionState> {
    report.questions().into_iter().map(|question| question.state).collect()
}

#[test]
fn before_anything_is_measured_all_is_open_and_needs_all() {
    let report = lab("\"alpha\", \"beta\", \"kernel\"", "decided", CLAIM).report();
    let questions = report.questions();
    assert_eq!(questions.len(), 3, "the claim, and who is best at each of two points: {questions:?}");
    assert!(questions[0].kind == QuestionKind::Claim && questions[0].text.contains("gamma is better than beta"));
    assert_eq!(questions[1].text, "best by median latency at 64B");
    let QuestionState::Open { cells, groups, .. } = &questions[1].state else { panic!("{questions:?}") };
    let names: Vec<&str> = cells.iter().map(|cell| report.cells()[*cell].cell.system.name.as_str()).collect();
    assert_eq!(names, ["alpha", "beta"], "what others are held against is not asked about");
    assert_eq!(groups.len(), 1);
    assert_ne!(groups[0], FigureGroup::Rates);
}

#[test]
fn what_is_decided_needs_no_more_runs_and_what_is_behind_needs_none_elsewhere() {
    let mut lab = lab("\"alpha\", \"beta\", \"gamma\"", "decided", CLAIM);
    for (salt, payload) in [(0, "64B"), (1, "128B")] {
        // At 64B all is clear; at 128B the first two are too close for six blocks.
        let beta = if payload == "64B" { 200_000 } else { 101_000 };
        lab.latencies(&format!("alpha {payload}"), &about(100_000, 6, salt));
        let wild: Vec<u64> = (0..6).map(|run| beta + (run * 37 % 11) * 3_000).collect();
        lab.latencies(&format!("beta {payload}"), &wild);
        lab.latencies(&format!("gamma {payload}"), &about(900_000, 6, salt + 2));
    }
    let report = lab.report();
    let states = states(&report);
    assert_eq!(states[1], QuestionState::Decided("alpha".into()));
    let QuestionState::Open { cells, blocks_more, .. } = &states[2] else { panic!("{states:?}") };
    let names: Vec<&str> = cells.iter().map(|cell| report.cells()[*cell].cell.system.name.as_str()).collect();
    assert_eq!(names, ["alpha", "beta"], "gamma is behind: it is not measured again");
    // Blocks are looked at when they are 8, 12, 16 and so on.
    assert!(blocks_more.is_none_or(|more| [2, 6, 10, 18, 26, 42].contains(&more) || more > 42), "{blocks_more:?}");
    assert_eq!(report.claims()[0].outcome, ClaimOutcome::Fails);
    assert!(matches!(&states[0], QuestionState::Decided(text) if text.starts_with("fails")), "{states:?}");
}

/// Between looks nothing is decided, whatever the runs say.
#[test]
fn pairs_are_looked_at_after_certain_numbers_of_blocks_alone() {
    let of = |blocks: usize| {
        let mut lab = lab("\"alpha\", \"beta\"", "decided", "");
        for payload in ["64B", "128B"] {
            // The last block of five would tell that they differ by nothing.
            let alpha: Vec<u64> = about(100_000, blocks, 0);
            let beta: Vec<u64> = about(130_000, blocks, 1);
            lab.latencies(&format!("alpha {payload}"), &alpha);
            lab.latencies(&format!("beta {payload}"), &beta);
        }
        let report = lab.report();
        (placing(&report, 0), placing(&report, 1))
    };
    assert_eq!(of(4), of(5), "5 is not a look");
    assert_eq!(of(6), of(7), "and neither is 7");
    assert_eq!(of(6).0, Placing::Winner("alpha".into()));
}

/// What was shown at a look was shown: runs that come later, perhaps for another
/// question, do not take it back.
#[test]
fn nothing_that_was_decided_is_taken_back() {
    let of = |until: &str| {
        let mut lab = lab("\"alpha\", \"beta\"", until, "");
        for payload in ["64B", "128B"] {
            let (mut alpha, mut beta) = (about(100_000, 8, 0), about(150_000, 8, 1));
            // Then another world.
            alpha.extend([400_000, 100_000, 300_000, 50_000]);
            beta.extend([100_000, 400_000, 60_000, 290_000]);
            lab.latencies(&format!("alpha {payload}"), &alpha);
            lab.latencies(&format!("beta {payload}"), &beta);
        }
        placing(&lab.report(), 0)
    };
    assert_eq!(of("decided"), Placing::Winner("alpha".into()));
    assert!(matches!(of("repeats"), Placing::Open { .. }), "a fixed number of repeats is looked at once");
}

#[test]
fn a_claim_about_systems_that_tie_is_not_measured_for_ever() {
    let mut lab = lab("\"beta\", \"gamma\"", "decided", CLAIM);
    for payload in ["64B", "128B"] {
        lab.latencies(&format!("beta {payload}"), &about(100_000, 12, 0));
        lab.latencies(&format!("gamma {payload}"), &about(100_100, 12, 1));
    }
    let report = lab.report();
    assert!(matches!(placing(&report, 0), Placing::Tie(_)));
    let states = states(&report);
    assert!(matches!(&states[0], QuestionState::Decided(text) if text.starts_with("fails")), "{states:?}");
    assert!(matches!(&states[1], QuestionState::Decided(text) if text.starts_with("tie: ")), "{states:?}");
}

#[test]
fn a_claim_about_a_system_that_was_not_run_says_which() {
    let skip = "[[skip]]\nsystem = \"gamma\"\nwhy = \"it is not installed\"\n";
    let mut lab = lab("\"beta\", \"gamma\"", "decided", &format!("{CLAIM}{skip}"));
    let says = |state: &QuestionState| {
        assert!(matches!(state, QuestionState::Closed(why) if why.ends_with("not run here: gamma")), "{state:?}");
    };
    says(&states(&lab.report())[0]);
    for payload in ["64B", "128B"] {
        lab.latencies(&format!("beta {payload}"), &about(100_000, 6, 0));
    }
    says(&states(&lab.report())[0]);
}

#[test]
fn rates_of_different_work_are_no_question_of_time() {
    let of = |runs: u32| {
        let mut lab =
            Lab::new("[workload]\nrate = \"max\"\n[axes]\nsystem = [\"alpha\", \"beta\"]\n[run]\nstop = \"decided\"\n");
        for repeat in 1..=runs {
            lab.run("alpha", repeat, |run| run.rates.delivered_per_s = 1e6);
            lab.run("beta", repeat, |run| {
                run.rates.delivered_per_s = 2e6;
                (run.counts.delivered, run.counts.lost) = (run.counts.expected / 2, run.counts.expected / 2);
            });
        }
        states(&lab.report()).remove(0)
    };
    assert!(matches!(of(2), QuestionState::Open { .. }), "{:?}", of(2));
    assert!(matches!(of(3), QuestionState::Closed(why) if why.contains("not rates of the same work")));
}

/// A longer run would have more messages, a further one has as few.
#[test]
fn runs_that_are_too_short_are_no_question_of_time() {
    let mut lab = lab("\"alpha\", \"beta\"", "decided", "");
    let of = |lab: &Lab| states(&lab.report()).remove(0);
    for system in ["alpha", "beta"] {
        lab.run(&format!("{system} 64B"), 1, |run| {
            latency(run, &[(100_000, 5)]);
            spoil_for(run, Reason::TooFewSamples, FigureGroup::LATENCY);
        });
    }
    assert!(matches!(of(&lab), QuestionState::Closed(why) if why.ends_with("measure longer")), "{:?}", of(&lab));
    let why = lab.report().why_not_counted(0, &[FigureGroup::Cost]);
    assert_eq!(why, None, "nothing is wrong with what it used");
}

/// The family is that of the whole study: what is measured later does not make what
/// was decided before doubtful.
#[test]
fn points_that_are_not_measured_yet_are_corrected_for_already() {
    let of = |with_other: bool| {
        let mut lab = lab("\"alpha\", \"beta\", \"gamma\"", "decided", "");
        for payload in ["64B", "128B"].into_iter().take(if with_other { 2 } else { 1 }) {
            for (system, ns) in [("alpha", 100_000), ("beta", 100_300), ("gamma", 107_000)] {
                let ns = if payload == "128B" { 100_000 } else { ns };
                for (repeat, each) in (1..).zip(about(ns, 4, ns / 100)) {
                    lab.run(&format!("{system} {payload}"), repeat, |run| latency(run, &[(each, 20_000)]));
                }
            }
        }
        let report = lab.report();
        let ranked = report.points()[0].best().unwrap();
        [("alpha", "gamma"), ("beta", "gamma"), ("alpha", "beta")].map(|(one, other)| ranked.beats(one, other))
    };
    let (alone, both) = (of(false), of(true));
    assert!(alone.iter().zip(both).all(|(alone, both)| !alone || both), "{alone:?}, {both:?}");
}

const ONE: &str =
    "[axes]\nsystem = [\"alpha\", \"beta\", \"gamma\", \"kernel\"]\n[run]\nstop = \"decided\"\n[questions]\n";

fn asked(questions: &str) -> Lab {
    Lab::new(&format!("{ONE}{questions}"))
}

#[test]
fn a_study_asks_what_it_names_and_nothing_else() {
    let texts = |questions: &str| -> Vec<String> {
        asked(questions).report().questions().into_iter().map(|question| question.text).collect()
    };
    assert_eq!(texts(""), Vec::<String>::new());
    assert_eq!(
        texts("best = [\"auto\", \"latency_p99_ns\"]"),
        ["best by median latency", "best by the 99th percentile of latency"]
    );
    assert_eq!(texts("differ = [\"gamma, alpha\"]"), ["gamma or alpha by median latency"]);
    assert_eq!(
        texts("within = [\"p99 ±5%\"]"),
        ["alpha", "beta", "gamma", "kernel"].map(|system| format!("p99 to within ±5% of {system}"))
    );
}

#[test]
fn two_systems_are_told_apart_though_a_third_is_open() {
    let mut lab = asked("differ = [\"gamma, alpha\", \"kernel, alpha\", \"beta, alpha\"]");
    lab.latencies("alpha", &about(100_000, 8, 0));
    lab.latencies("gamma", &about(300_000, 8, 2));
    let wild: Vec<u64> = (0..8).map(|run| 80_000 + (run * 37 % 11) * 6_000).collect();
    lab.latencies("beta", &wild);
    let report = lab.report();
    let states = states(&report);
    assert_eq!(states[0], QuestionState::Decided("alpha".into()));
    assert!(matches!(&states[1], QuestionState::Closed(why) if why.contains("reference")), "{states:?}");
    let QuestionState::Open { cells, compares, .. } = &states[2] else { panic!("{states:?}") };
    let names: Vec<&str> = cells.iter().map(|cell| report.cells()[*cell].cell.system.name.as_str()).collect();
    assert_eq!((names, *compares), (vec!["alpha", "beta"], true));
}

#[test]
fn a_figure_is_known_when_its_interval_is_as_narrow_as_was_asked() {
    let state = |runs: usize, within: &str| {
        let mut lab = asked(&format!("within = [\"{within}\"]"));
        lab.latencies("alpha", &about(100_000, runs, 0));
        states(&lab.report()).remove(0)
    };
    assert!(matches!(state(0, "±10%"), QuestionState::Open { why, .. } if why == "not measured yet"));
    assert!(matches!(state(1, "±10%"), QuestionState::Open { why, .. } if why.contains("noise is not known")));
    let QuestionState::Open { cells, compares, blocks_more, groups, .. } = state(3, "±10%") else { panic!() };
    assert_eq!((cells, compares, groups), (vec![0], false, vec![FigureGroup::LatencyP50]));
    assert!(blocks_more.is_some_and(|more| [1, 3, 5].contains(&more)), "{blocks_more:?}");
    let QuestionState::Decided(answer) = state(12, "±10%") else { panic!("{:?}", state(12, "±10%")) };
    assert!(answer.starts_with("102 µs (") && answer.contains(" to "), "{answer}");
    // Runs in which it is not measured never tell it.
    let closed = |runs| {
        let mut lab = asked("within = [\"service p50 ±10%\"]");
        lab.latencies("alpha", &about(100_000, runs, 0));
        states(&lab.report()).remove(0)
    };
    assert!(matches!(closed(2), QuestionState::Open { .. }));
    assert!(matches!(closed(3), QuestionState::Closed(_)));
}

#[test]
fn a_bound_that_is_claimed_needs_only_the_cells_that_are_open() {
    let claim =
        "claims = true\n[[claims]]\nid = \"fast\"\nsays = \"below 150 µs\"\nrequire = \"p50 < 150us and lost = 0\"\n";
    let mut lab = asked(claim);
    let before = lab.report();
    assert_eq!(before.claims()[0].outcome, ClaimOutcome::Open);
    let QuestionState::Open { cells, compares, .. } = &states(&before)[0] else { panic!("{:?}", states(&before)) };
    assert_eq!((cells.as_slice(), *compares), (&[0, 1, 2][..], false), "the reference is none of those");
    lab.latencies("alpha", &about(100_000, 6, 0));
    lab.latencies("beta", &about(149_000, 2, 1));
    lab.latencies("gamma", &about(110_000, 6, 2));
    let report = lab.report();
    let claim = &report.claims()[0];
    assert_eq!((claim.won(), claim.lost(), claim.open()), (2, 0, 1));
    let QuestionState::Open { cells, .. } = &states(&report)[0] else { panic!("{:?}", states(&report)) };
    assert_eq!(cells.as_slice(), [1]);
    // One cell that breaks it is enough, and a count is a fact of each run.
    lab.run("beta", 3, |run| {
        latency(run, &[(100_000, 20_000)]);
        run.counts.lost = 1;
    });
    let report = lab.report();
    assert_eq!(report.claims()[0].outcome, ClaimOutcome::Fails);
    assert!(matches!(&states(&report)[0], QuestionState::Decided(text) if text.starts_with("fails")));
}

#[test]
fn a_ratio_to_a_single_run_needs_more_runs_of_it() {
    let claim =
        "claims = true\n[[claims]]\nid = \"as-fast\"\nsays = \"s\"\nexpr = \"p50(alpha) / p50(beta) in 0.8..1.25\"\n";
    let mut lab = asked(claim);
    lab.latencies("alpha", &about(100_000, 6, 0));
    lab.latencies("beta", &about(100_000, 1, 1));
    let report = lab.report();
    let QuestionState::Open { cells, .. } = &states(&report)[0] else { panic!("{:?}", states(&report)) };
    assert_eq!(cells.as_slice(), [1]);
    lab.latencies("beta", &about(100_000, 6, 1));
    assert_eq!(lab.report().claims()[0].outcome, ClaimOutcome::Holds);
}

#[test]
fn a_bound_is_claimed_of_the_cells_that_are_named_and_of_a_share_of_them() {
    let outcome = |rest: &str| {
        let claim = format!("[[claims]]\nid = \"c\"\nsays = \"s\"\nrequire = \"p50 < 150us\"\n{rest}");
        let mut lab = Lab::new(&format!("[axes]\nsystem = [\"alpha\", \"beta\", \"kernel\"]\n{claim}"));
        lab.latencies("alpha", &about(100_000, 5, 0));
        lab.latencies("beta", &about(300_000, 5, 1));
        lab.latencies("kernel", &about(10_000, 5, 1));
        lab.report().claims()[0].outcome
    };
    assert_eq!(outcome(""), ClaimOutcome::Fails);
    assert_eq!(outcome("share = 0.5\n"), ClaimOutcome::Holds);
    assert_eq!(outcome("[claims.where]\nsystem = \"alpha\"\n"), ClaimOutcome::Holds);
    assert_eq!(outcome("[claims.where]\nsystem = [\"kernel\"]\n"), ClaimOutcome::Holds);
    assert_eq!(outcome("share = 0.6\n[claims.where]\nsystem = [\"kernel\", \"beta\"]\n"), ClaimOutcome::Fails);
}

/// That it was the machine is said where a noisy machine is among the reasons that stand
/// against most of the runs, for the figures that are asked for.
#[test]
fn why_runs_do_not_count_is_told_and_whether_it_was_the_machine() {
    let mut lab = lab("\"alpha\", \"beta\", \"gamma\"", "decided", "");
    for repeat in 1..=4 {
        lab.run("alpha 64B", repeat, |run| {
            spoil(run, Reason::NoisyMachine, "others took a core");
            if repeat < 3 {
                spoil(run, Reason::GeneratorSaturated, "late");
            }
        });
        lab.run("beta 64B", repeat, |run| {
            spoil(run, Reason::MessagesLost, "seven");
            if repeat == 1 {
                spoil(run, Reason::NoisyMachine, "others took a core");
            }
        });
        lab.run("gamma 64B", repeat, |run| spoil_for(run, Reason::NoisyMachine, &[FigureGroup::LatencyP99]));
    }
    let report = lab.report();
    let why = |label: &str, group: FigureGroup| {
        let cell = report.cells().iter().position(|result| result.cell.label() == label).unwrap();
        report.why_not_counted(cell, &[group])
    };
    let (p50, p99) = (FigureGroup::LatencyP50, FigureGroup::LatencyP99);
    assert_eq!(why("alpha 64B", p50), Some(("noisy-machine, generator-saturated".into(), true)));
    assert_eq!(why("beta 64B", p50), Some(("messages-lost, noisy-machine".into(), false)), "it was in one of four");
    assert_eq!(why("gamma 64B", p99), Some(("noisy-machine".into(), true)));
    assert_eq!(why("gamma 64B", p50), None, "what touches another figure is not a reason here");
}

/// A bound needs no second system, and a ratio of two parts has one cell in each: such claims are
/// measured although no cell has a rival.
#[test]
fn an_expression_about_one_system_asks_for_its_cells_before_anything_is_measured() {
    let claim = "[[claims]]\nid = \"1\"\nsays = \"s\"\nexpr = \"p99(alpha, qos=1) / p99(alpha, qos=0) in 1..2 and lost(alpha) = 0\"\n";
    let lab = Lab::new(&format!("[axes]\nsystem = [\"alpha\"]\nqos = [0, 1]\n[run]\nstop = \"decided\"\n{claim}"));
    let questions = lab.report().questions();
    let asked = questions.iter().find(|question| question.kind == QuestionKind::Claim).unwrap();
    let QuestionState::Open { cells, compares, .. } = &asked.state else { panic!("{asked:?}") };
    assert!(!cells.is_empty() && !compares, "{asked:?}");
}
