//! Studies that are measured until their questions are decided: what is asked, what
//! is decided, and that nothing is taken back.

use crate::lab::{Lab, latency};
use pubmark_model::record::FigureGroup;
use pubmark_report::{ClaimOutcome, Placing, QuestionState, Report};

const CLAIM: &str = "[[claims]]\nid = \"c\"\nsays = \"gamma is better than beta\"\nfigure = \"latency_p50_ns\"\n\
                     best = [\"gamma\"]\namong = [\"beta\", \"gamma\"]\n";

fn lab(systems: &str, until: &str, claim: &str) -> Lab {
    Lab::new(&format!(
        "[axes]\nsystem = [{systems}]\npayload = [\"64B\", \"128B\"]\n[run]\nuntil = \"{until}\"\n{claim}"
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
    assert!(questions[0].is_claim && questions[0].text.contains("gamma is better than beta"));
    assert_eq!(questions[1].text, "best by median latency at 64B");
    let QuestionState::Open { cells, groups, .. } = &questions[1].state else { panic!("{questions:?}") };
    let names: Vec<&str> = cells.iter().map(|cell| report.cells()[*cell].cell.system.as_str()).collect();
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
    let names: Vec<&str> = cells.iter().map(|cell| report.cells()[*cell].cell.system.as_str()).collect();
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
    assert_eq!(of(4), of(5), "5 is no look");
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
    assert!(matches!(of("repeats"), Placing::Undecided { .. }), "a fixed number of repeats is looked at once");
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
    assert!(matches!(&states[0], QuestionState::Closed(why) if why.contains("tie")), "{states:?}");
    assert!(matches!(&states[1], QuestionState::Decided(text) if text.starts_with("tie: ")), "{states:?}");
}

#[test]
fn rates_of_different_work_are_no_question_of_time() {
    let of = |runs: u32| {
        let mut lab = Lab::new(
            "[workload]\nrate = \"max\"\n[axes]\nsystem = [\"alpha\", \"beta\"]\n[run]\nuntil = \"decided\"\n",
        );
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
