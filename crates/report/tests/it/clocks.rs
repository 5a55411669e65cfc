//! Latencies from one host to another, whose clocks may be apart.

use crate::lab::{Lab, cell, latency};
use pubmark_model::figure::Figure;
use pubmark_model::host::ClockOffset;
use pubmark_model::record::{ClockPair, HostShare, RunRecord};
use pubmark_report::compare::{ChangeOutcome, Gate, GateOutcome, Gates, Selection, compare_with};
use pubmark_report::{Placing, Report, Standing, Why};

fn study(more: &str) -> String {
    format!(
        "[workload]\nrate = 1000\nduration = \"20s\"\n{more}[run]\nrepeats = 4\n[axes]\nsystem = [\"alpha\", \"beta\"]\n"
    )
}

/// A run whose half is at `p50_ns` and whose rest takes three times as long, over
/// clocks that may be apart by this.
fn run(run: &mut RunRecord, p50_ns: u64, bound_ns: u64) {
    latency(run, &[(p50_ns, 19_000), (3 * p50_ns, 1_000)]);
    let pair = ClockPair { from: "b2".into(), to: "b3".into(), bound_ns, ..ClockPair::default() };
    run.clocks = vec![ClockPair { bound_ns: bound_ns / 2, ..pair.clone() }, pair];
}

/// Four repeats of alpha at 100 µs and beta at another, of the same clocks.
fn two(beta_ns: u64, bound_ns: u64, more: &str) -> Report {
    let mut lab = Lab::new(&study(more));
    for repeat in 1..=4 {
        lab.run("alpha", repeat, |record| run(record, 100_000 + u64::from(repeat), bound_ns));
        lab.run("beta", repeat, |record| run(record, beta_ns + u64::from(repeat), bound_ns));
    }
    lab.report()
}

fn placing(report: &Report) -> Placing {
    report.points()[0].best().unwrap().placing.clone()
}

#[test]
fn systems_that_differ_by_less_than_the_clocks_are_not_ranked_apart() {
    let winner = Placing::Winner("alpha".into());
    assert_eq!(placing(&two(110_000, 0, "")), winner, "one clock measured both");
    assert_eq!(placing(&two(110_000, 4_000, "")), winner, "at most 104 against at least 106 µs");
    let report = two(110_000, 6_000, "");
    let why = Why::Clock(vec!["beta".into()]);
    assert_eq!(placing(&report), Placing::Open { why, repeats_more: None }, "106 against 104 µs");
    let ranked = report.points()[0].best().unwrap();
    assert!(!ranked.beats("alpha", "beta") && ranked.standing("beta") == Some(Standing::Candidate));
    let found = ranked.distance("beta").unwrap();
    assert!(found.at_least == 1.0 && found.at_most.is_some_and(|most| most > 116.0 / 94.0), "{found:?}");
    let text = report.terminal(200, false);
    assert!(
        text.contains("open: the differences are within what the clocks of the hosts may be wrong by (beta)"),
        "{text}"
    );
}

#[test]
fn a_tie_is_shown_only_where_clocks_cannot_hide_a_difference() {
    let tie = |report: &Report| matches!(placing(report), Placing::Tie(_));
    assert!(tie(&two(100_000, 0, "")));
    assert!(tie(&two(100_000, 1_000, "")), "1 % of each: the same within 5 %");
    let wide = two(100_000, 4_000, "");
    assert!(matches!(placing(&wide), Placing::Open { why: Why::Clock(_), .. }), "up to 8 % may be between them");
}

#[test]
fn a_latency_is_quoted_with_its_clocks_and_its_bound_has_a_column() {
    let report = two(110_000, 4_000, "");
    for text in [report.terminal(200, false), report.markdown()] {
        assert!(text.contains("100 µs ± 4.00 µs (clock)"), "{text}");
        assert!(text.contains("no repeat averages it out"), "{text}");
    }
    assert!(report.terminal(200, false).contains("alpha 100 µs ± 4.00 µs (clock)"), "in sentences too");
    let csv = report.csv().unwrap();
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (head, row) = (lines.next().unwrap(), lines.next().unwrap());
    let at = |name: &str| row[head.iter().position(|head| *head == name).unwrap()];
    assert_eq!((at("clock_bound_ns"), at("clock_bound_ns_lo")), ("4000", ""));
    assert_eq!(report.summary_json()[0]["clock_bound_ns"], 4_000);
    // There and back is measured on one clock.
    let there_and_back = two(110_000, 40_000, "pattern = \"request-reply\"\n");
    assert_eq!(placing(&there_and_back), Placing::Winner("alpha".into()));
    assert!(!there_and_back.terminal(200, false).contains("(clock)"));
    assert_eq!(there_and_back.summary_json()[0]["clock_bound_ns"], serde_json::Value::Null);
}

/// The verdict speaks for the median and the 99th percentile; each figure is held
/// against the bound by itself.
#[test]
fn a_figure_is_withheld_where_the_bound_is_over_a_third_of_it() {
    let quotable = |bound_ns, column| cell(&two(110_000, bound_ns, ""), "alpha").quotable(column).is_some();
    for (column, at) in [(Figure::LATENCY_P50, 33_000), (Figure::LATENCY_P99, 99_000), (Figure::LATENCY_MIN, 33_000)] {
        assert!(quotable(at, column) && !quotable(at + 2_000, column), "{column:?}");
    }
    assert!(quotable(10_000_000, Figure::DELIVERED) && quotable(10_000_000, Figure::DELIVERED_RATIO));
}

#[test]
fn a_change_within_the_clocks_is_none_and_a_gate_says_that_it_could_not_see() {
    let gated = |bound_ns| {
        let (a, b) = (two(100_000, bound_ns, ""), two(110_000, bound_ns, ""));
        let gates = Gates { changes: vec![Gate::parse("p50 > +5%").unwrap()], bounds: Vec::new() };
        let found = compare_with(&a, &b, &Selection { gates, ..Selection::default() }).unwrap();
        let cell = found.same.iter().find(|cell| cell.label == "beta").unwrap();
        let change = cell.changes.iter().find(|change| change.column == Figure::LATENCY_P50).unwrap().clone();
        (change, found.gates[0].outcome)
    };
    let (change, gate) = gated(0);
    assert_eq!((change.outcome, gate), (ChangeOutcome::Worse, GateOutcome::Failed));
    let (change, gate) = gated(6_000);
    assert_eq!((change.outcome, gate), (ChangeOutcome::NoDifference, GateOutcome::TooNoisy));
    assert!(change.why.contains("clocks of the hosts"), "{}", change.why);
    let interval = change.interval_of_change().unwrap();
    // 104 / 106 and 116 / 94, and what noise there is.
    assert!((0.95..0.982).contains(&interval.lo) && (1.234..1.27).contains(&interval.hi), "{interval:?}");
}

/// What is drawn over time is of several hosts, whose instants are made one axis of.
#[test]
fn the_page_says_how_far_the_axis_of_all_hosts_may_be_off() {
    let mut lab = Lab::new(&study(""));
    let host = |bound_ns| {
        let clock = ClockOffset { bound_ns, ..ClockOffset::default() };
        HostShare { clock, ..HostShare::default() }
    };
    for repeat in 1..=4 {
        lab.run("alpha", repeat, |record| {
            run(record, 100_000, 4_000);
            record.hosts = vec![host(7_000), host(12_300), host(0)];
        });
        lab.run("beta", repeat, |record| run(record, 100_000, 0));
    }
    let data: serde_json::Value = serde_json::from_str(&pubmark_report::page::data_json(&[&lab.report()])).unwrap();
    let cells = &data["page"]["results"][0]["cells"];
    let said = "starts, windows, faults and series of all hosts are on one axis of time to within 12.3 µs (clock)";
    assert_eq!((&cells[0]["notes"], &cells[1]["notes"]), (&serde_json::json!([said]), &serde_json::json!([])));
}
