use crate::lab::{Lab, cell, fail, histogram, latency, spoil, spoil_for, usage};
use pubmark_model::figure::Figure;
use pubmark_model::protocol::ClientProcessors;
use pubmark_model::record::{AgentShare, Deployment, FigureGroup, Reason};
use pubmark_report::{Placing, RunCounts, Sign, Standing, Status, Why};

const TWO: &str = "[axes]\nsystem = [\"alpha\", \"beta\"]\n";

/// Runs of a figure that is never twice the same: 1 % apart, in another order
/// for each system.
fn around(value: f64, shift: usize) -> Vec<f64> {
    let noise = [-0.004, 0.006, 0.0, -0.001, 0.005, -0.006];
    (0..noise.len()).map(|run| value * (1.0 + noise[(run + shift) % noise.len()])).collect()
}

fn around_ns(ns: u64, shift: usize) -> Vec<u64> {
    around(ns as f64, shift).into_iter().map(|ns| ns as u64).collect()
}

/// By hand: logarithms of 900, 1,000 and 1,300, t of two degrees 4.3027.
#[test]
fn a_figure_is_the_median_over_the_runs_with_students_interval_on_logarithms() {
    let mut lab = Lab::new(TWO);
    lab.rates("alpha", &[900.0, 1_000.0, 1_300.0]);
    let report = lab.report();
    let found = cell(&report, "alpha").figures.get(Figure::DELIVERED).unwrap();
    let interval = found.interval.unwrap();
    assert_eq!(found.value, 1_000.0);
    assert!((interval.lo - 658.31).abs() < 0.01 && (interval.hi - 1_686.65).abs() < 0.01, "{interval:?}");
}

#[test]
fn a_single_run_has_no_interval() {
    let mut lab = Lab::new(TWO);
    lab.latencies("alpha", &[1_000]);
    let report = lab.report();
    let found = cell(&report, "alpha").figures.get(Figure::LATENCY_P50).unwrap();
    assert_eq!((found.value, found.interval), (1_000.0, None));
}

#[test]
fn percentiles_are_each_runs_own_and_never_of_all_runs_merged() {
    let mut lab = Lab::new(TWO);
    // Merged, 60 % of the messages would be at 2,000.
    for (repeat, times) in [(1, (100, 2_000)), (2, (100, 2_000)), (3, (2_000, 6_000))] {
        lab.run("alpha", repeat, |run| latency(run, &[times]));
    }
    let report = lab.report();
    let figure = |column| cell(&report, "alpha").figures.get(column).unwrap().value;
    let columns =
        [Figure::LATENCY_MIN, Figure::LATENCY_MEAN, Figure::LATENCY_P50, Figure::LATENCY_P99, Figure::LATENCY_MAX];
    for column in columns {
        assert_eq!(figure(column), 100.0, "{column:?}");
    }
}

#[test]
fn a_percentile_of_a_run_with_too_few_samples_is_blank() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\", \"gamma\"]\n");
    for (label, each) in [("alpha", 999), ("beta", 1_000), ("gamma", 10_000)] {
        for repeat in [1, 2] {
            lab.run(label, repeat, |run| {
                latency(run, &[(50, each)]);
                run.times.send_lag = run.times.latency.clone();
            });
        }
    }
    let report = lab.report();
    let has = |label, column| cell(&report, label).figures.get(column).is_some();
    for p99 in [Figure::LATENCY_P99, Figure::SEND_LAG_P99] {
        let seen = [has("alpha", p99), has("beta", p99), has("gamma", p99)];
        assert_eq!(seen, [false, true, true]);
    }
    assert!(has("alpha", Figure::LATENCY_P95));
    assert!(!has("beta", Figure::LATENCY_P999));
    assert!(has("gamma", Figure::LATENCY_P999));
}

#[test]
fn each_kind_of_latency_and_lag_has_columns_of_its_own() {
    let mut lab = Lab::new(TWO);
    lab.run("alpha", 1, |run| {
        let summary = |ns| histogram(&[(ns, 1_000)]).summary();
        run.times.intended_latency = summary(90);
        run.times.service_latency = summary(70);
        run.times.send_lag = summary(30);
        run.times.own_lag = summary(20);
        run.times.receive_lag = summary(10);
    });
    let report = lab.report();
    let figure = |column| cell(&report, "alpha").figures.get(column).map(|e| e.value);
    for (p50, p99, ns) in [
        (Figure::INTENDED_P50, Figure::INTENDED_P99, 90.0),
        (Figure::SERVICE_P50, Figure::SERVICE_P99, 70.0),
        (Figure::SEND_LAG_P50, Figure::SEND_LAG_P99, 30.0),
        (Figure::OWN_LAG_P50, Figure::OWN_LAG_P99, 20.0),
        (Figure::RECEIVE_LAG_P50, Figure::RECEIVE_LAG_P99, 10.0),
    ] {
        assert_eq!((figure(p50), figure(p99)), (Some(ns), Some(ns)));
    }
    assert_eq!(figure(Figure::LATENCY_P50), None);
}

#[test]
fn costs_are_those_of_generator_and_server_together() {
    let mut lab = Lab::new(TWO);
    lab.run("alpha", 1, |run| {
        run.counts.delivered = 1_000;
        run.counts.expected = 4_000;
        run.generator = Some(usage(1.5));
        run.server = Some(usage(0.5));
        run.server.as_mut().unwrap().rss_bytes_max = 300;
        run.generator.as_mut().unwrap().rss_bytes_max = 200;
        run.generator.as_mut().unwrap().voluntary_switches = 500;
        run.server.as_mut().unwrap().involuntary_switches = 1_000;
    });
    lab.run("beta", 1, |run| {
        run.generator = Some(usage(1.0));
        run.counts.delivered = 0;
    });
    let report = lab.report();
    let figure = |label, column| cell(&report, label).figures.get(column).map(|e| e.value);
    assert_eq!(figure("alpha", Figure::CPU_CORES), Some(2.0));
    assert_eq!(figure("alpha", Figure::CPU_PER_MESSAGE), Some(2_000_000.0));
    assert_eq!(figure("alpha", Figure::MEMORY_MAX), Some(500.0));
    assert_eq!(figure("alpha", Figure::SWITCHES), Some(1.5));
    assert_eq!(figure("alpha", Figure::DELIVERED_RATIO), Some(0.25));
    assert_eq!(figure("beta", Figure::CPU_CORES), Some(1.0));
    assert_eq!(figure("beta", Figure::CPU_PER_MESSAGE), None);
    assert_eq!(figure("beta", Figure::DELIVERED_RATIO), Some(0.0));
}

#[test]
fn a_server_that_was_not_seen_does_not_count_nothing() {
    let mut lab = Lab::new(TWO);
    lab.run("alpha", 1, |run| {
        run.generator = Some(usage(1.0));
        run.deployment = Some(Deployment { kind: "external".into(), ..Deployment::default() });
    });
    lab.run("beta", 1, |run| run.generator = Some(usage(1.0)));
    let report = lab.report();
    for column in [Figure::CPU_CORES, Figure::CPU_PER_MESSAGE, Figure::MEMORY_MAX, Figure::SWITCHES] {
        let has = |label| cell(&report, label).figures.get(column).is_some();
        assert_eq!((has("alpha"), has("beta")), (false, true), "{column:?}");
    }
}

#[test]
fn invalid_runs_are_never_mixed_with_valid_ones() {
    let mut lab = Lab::new(TWO);
    lab.rates("alpha", &[1_000.0, 1_000.0, 9_000.0]);
    spoil(&mut lab.records.runs[2], Reason::NotSteady, "falls");
    lab.rates("beta", &[5_000.0, 7_000.0]);
    for run in &mut lab.records.runs[3..] {
        spoil(run, Reason::NotSteady, "first");
        spoil(run, Reason::NotSteady, "second");
    }
    lab.run("beta", 3, |run| {
        run.rates.delivered_per_s = 1.0;
        fail(run, "no server");
    });
    let report = lab.report();
    let alpha = cell(&report, "alpha");
    assert_eq!((alpha.status, alpha.runs, alpha.valid_runs), (Status::Valid, 3, 2));
    assert_eq!(alpha.figures.get(Figure::DELIVERED).unwrap().value, 1_000.0);
    assert_eq!(alpha.figures.each(Figure::DELIVERED).len(), 2);
    let beta = cell(&report, "beta");
    assert_eq!((beta.status, beta.invalid_runs, beta.failed_runs), (Status::Invalid, 2, 1));
    assert_eq!(beta.figures.get(Figure::DELIVERED).unwrap().value, 6_000.0);
    assert_eq!(beta.quotable(Figure::DELIVERED), None);
    let reasons = beta.all_reasons();
    assert_eq!((reasons.len(), reasons[0].runs), (1, 2));
    assert_eq!(reasons[0].evidence, "first");
    assert_eq!(beta.error.as_deref(), Some("no server"));
}

#[test]
fn a_reason_takes_away_the_figures_that_it_touches_and_no_others() {
    let mut lab = Lab::new(TWO);
    lab.latencies("alpha", &[100, 110, 900]);
    spoil_for(&mut lab.records.runs[1], Reason::GeneratorSaturated, &[FigureGroup::LatencyP99]);
    spoil(&mut lab.records.runs[2], Reason::NoisyMachine, "busy");
    lab.latencies("beta", &[100, 110]);
    for run in &mut lab.records.runs[3..] {
        spoil_for(run, Reason::GeneratorSaturated, FigureGroup::LATENCY);
    }
    let report = lab.report();
    let alpha = cell(&report, "alpha");
    assert_eq!((alpha.status, alpha.valid_runs, alpha.partly_runs, alpha.invalid_runs), (Status::Valid, 1, 1, 1));
    assert_eq!(alpha.quotable(Figure::LATENCY_P50).unwrap().value, 105.0);
    assert_eq!(alpha.quotable(Figure::LATENCY_P99).unwrap().value, 100.0);
    assert_eq!([FigureGroup::LatencyP50, FigureGroup::LatencyP99].map(|group| alpha.runs_for(group)), [2, 1]);
    let beta = cell(&report, "beta");
    assert_eq!((beta.status, beta.partly_runs), (Status::Partly, 2));
    assert!(beta.quotable(Figure::DELIVERED).is_some());
    assert_eq!(beta.quotable(Figure::LATENCY_P50), None);
    assert_eq!(beta.figures.get(Figure::LATENCY_P50).unwrap().value, 105.0, "it is shown, marked");
    assert!(beta.figures.each(Figure::LATENCY_P50).is_empty());
    assert_eq!(report.counts(), RunCounts { valid: 1, partly: 3, invalid: 1, failed: 0, missing: 1, made_again: 0 });
}

#[test]
fn every_cell_of_the_study_is_there_in_its_order() {
    let mut lab = Lab::new(
        "[axes]\nsystem = [\"beta\", \"alpha\"]\nqos = [0, 1]\n[run]\nrepeats = 3\n\
         [[skip]]\nsystem = \"alpha\"\nqos = 1\nwhy = \"cannot\"\n",
    );
    lab.run("alpha qos=0", 2, |_| {});
    let report = lab.report();
    let found: Vec<(String, Status)> =
        report.cells().iter().map(|result| (result.cell.label(), result.status)).collect();
    let expected = [
        ("beta qos=0", Status::Missing),
        ("beta qos=1", Status::Missing),
        ("alpha qos=0", Status::Valid),
        ("alpha qos=1", Status::Skipped),
    ];
    assert_eq!(found, expected.map(|(label, status)| (label.to_owned(), status)));
    let expected = RunCounts { valid: 1, missing: 8, ..RunCounts::default() };
    assert_eq!(report.counts(), expected);
}

#[test]
fn figures_are_multiples_of_the_floor_in_the_same_block() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"kernel\"]\nqos = [0, 1]\n");
    // The machine is twice as slow in the second block; it cancels.
    lab.latencies("alpha qos=0", &[30_000, 60_000, 33_000]);
    lab.latencies("kernel qos=0", &[10_000, 20_000, 10_000]);
    lab.latencies("alpha qos=1", &[8_000]);
    lab.latencies("kernel qos=1", &[2_000]);
    let report = lab.report();
    let floor = |label| cell(&report, label).figures.get(Figure::FLOOR_LATENCY).unwrap();
    let near = |one: f64, other: f64| (one / other - 1.0).abs() < 0.003;
    assert!(near(floor("alpha qos=0").value, 3.0), "{:?}", floor("alpha qos=0"));
    let interval = floor("alpha qos=0").interval.unwrap();
    assert!(interval.lo > 2.6 && interval.hi < 3.6, "the slow block is not a noise: {interval:?}");
    assert!(near(floor("alpha qos=1").value, 4.0));
    assert_eq!(floor("alpha qos=1").interval, None);
    assert_eq!(floor("kernel qos=0").value, 1.0);
    assert_eq!(cell(&report, "alpha qos=0").figures.get(Figure::FLOOR_DELIVERED).unwrap().value, 1.0);
}

#[test]
fn runs_of_different_blocks_have_no_multiple() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"kernel\"]\n");
    lab.run("alpha", 1, |run| latency(run, &[(300, 2_000)]));
    lab.run("kernel", 2, |run| latency(run, &[(100, 2_000)]));
    assert_eq!(cell(&lab.report(), "alpha").figures.get(Figure::FLOOR_LATENCY), None);
}

#[test]
fn an_invalid_floor_is_no_floor() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"kernel\"]\n");
    lab.latencies("alpha", &[300, 360]);
    lab.latencies("kernel", &[100, 120]);
    for run in &mut lab.records.runs[2..] {
        spoil(run, Reason::NoisyMachine, "steal");
    }
    let report = lab.report();
    assert_eq!(cell(&report, "alpha").figures.get(Figure::FLOOR_LATENCY), None);
}

/// What matters is for the study to say.
#[test]
fn a_tie_is_as_wide_as_the_study_says() {
    let placed = |run: &str| {
        let mut lab = Lab::new(&format!("[run]\n{run}\n[axes]\nsystem = [\"alpha\", \"beta\"]\nqos = [0, 1]\n"));
        lab.latencies("alpha qos=0", &around_ns(100_000, 0));
        lab.latencies("beta qos=0", &around_ns(100_200, 1));
        lab.report().points()[0].best().unwrap().placing.clone()
    };
    assert!(matches!(placed("tie = \"0.1%\""), Placing::Open { .. }), "that close nobody can say");
    assert!(matches!(placed("tie = \"5%\""), Placing::Tie(names) if names.len() == 2));
}

#[test]
fn the_best_is_told_where_a_test_within_blocks_shows_it() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\", \"kernel\"]\nqos = [0, 1, 2]\n");
    lab.latencies("alpha qos=0", &around_ns(100_000, 0));
    lab.latencies("beta qos=0", &around_ns(130_000, 1));
    lab.latencies("kernel qos=0", &around_ns(10_000, 2));
    lab.latencies("alpha qos=1", &around_ns(100_000, 0));
    lab.latencies("beta qos=1", &around_ns(100_200, 1));
    lab.latencies("alpha qos=2", &around_ns(100_000, 0));
    let valid = lab.records.runs.len();
    lab.latencies("beta qos=2", &around_ns(50_000, 0));
    for run in &mut lab.records.runs[valid..] {
        spoil(run, Reason::MessagesLost, "7 lost");
    }
    let report = lab.report();
    let best: Vec<&Placing> = report.points().iter().map(|point| &point.best().unwrap().placing).collect();
    assert_eq!(best[0], &Placing::Winner("alpha".into()));
    assert!(matches!(best[1], Placing::Tie(names) if names.len() == 2), "{:?}", best[1]);
    assert_eq!(best[2], &Placing::Open { why: Why::TooFew, repeats_more: None });
    let standing = |point: usize, system| report.points()[point].best().unwrap().standing(system);
    assert_eq!(standing(0, "beta"), Some(Standing::Behind));
    assert_eq!(standing(2, "alpha"), Some(Standing::Alone));
    assert_eq!(standing(2, "beta"), None);
    assert_eq!(standing(0, "kernel"), None, "the floor is never ranked");
}

#[test]
fn what_noise_hides_is_undecided_and_says_how_many_more_repeats_would_tell() {
    let mut lab = Lab::new(TWO);
    lab.latencies("alpha", &[100_000, 112_000, 104_000]);
    lab.latencies("beta", &[111_000, 105_000, 121_000]);
    let report = lab.report();
    let best = report.points()[0].best().unwrap();
    assert!(matches!(&best.placing, Placing::Open { why: Why::Noise(_), .. }), "{best:?}");
    assert!(best.repeats_more().is_some_and(|more| (1..200).contains(&more)), "{best:?}");
    assert_eq!(best.standing("alpha"), Some(Standing::Candidate));
}

#[test]
fn two_runs_of_equal_systems_are_no_ranking() {
    let mut lab = Lab::new(TWO);
    // The ranges lie apart, which once made alpha the winner.
    lab.latencies("alpha", &[100_000, 103_000]);
    lab.latencies("beta", &[104_000, 108_000]);
    let report = lab.report();
    assert!(matches!(report.points()[0].best().unwrap().placing, Placing::Open { .. }));
}

const MAX: &str = "[workload]\nrate = \"max\"\n[axes]\nsystem = [\"alpha\", \"beta\", \"gamma\"]\n";

/// Runs at `max`: the rate and the share that was delivered.
fn unthrottled(lab: &mut Lab, label: &str, per_s: f64, share: f64, shift: usize) {
    for (repeat, rate) in (1..).zip(around(per_s, shift)) {
        lab.run(label, repeat, |run| {
            run.rates.delivered_per_s = rate;
            run.counts.delivered = (share * run.counts.expected as f64) as u64;
        });
    }
}

#[test]
fn unthrottled_systems_are_ranked_by_what_they_deliver() {
    let mut lab = Lab::new(MAX);
    unthrottled(&mut lab, "alpha", 1_000.0, 1.0, 0);
    unthrottled(&mut lab, "beta", 2_000.0, 0.99, 1);
    for run in &mut lab.records.runs {
        run.generator = Some(usage(if run.system == "alpha" { 1.0 } else { 2.0 }));
    }
    let report = lab.report();
    let point = &report.points()[0];
    assert!(point.unthrottled);
    assert_eq!(point.best().unwrap().placing, Placing::Winner("beta".into()));
    assert_eq!(point.thriftiest().unwrap().placing, Placing::Winner("alpha".into()));
}

#[test]
fn nobody_wins_by_throughput_where_the_shares_delivered_differ() {
    let mut lab = Lab::new(MAX);
    unthrottled(&mut lab, "alpha", 9_000.0, 0.088, 0);
    unthrottled(&mut lab, "beta", 2_000.0, 1.0, 1);
    unthrottled(&mut lab, "gamma", 1_000.0, 1.0, 2);
    let report = lab.report();
    let best = report.points()[0].best().unwrap();
    assert_eq!(best.placing, Placing::Unranked { least: 0.088, most: 1.0 });
    let standings = ["alpha", "beta", "gamma"].map(|system| best.standing(system).unwrap());
    assert_eq!(
        standings,
        [Standing::Unranked, Standing::Unranked, Standing::Behind],
        "beta did the same work as gamma"
    );
}

#[test]
fn who_delivers_more_messages_and_a_larger_share_of_them_is_better() {
    let mut lab = Lab::new(MAX);
    unthrottled(&mut lab, "alpha", 9_000.0, 0.97, 0);
    unthrottled(&mut lab, "beta", 2_000.0, 0.3, 1);
    unthrottled(&mut lab, "gamma", 1_000.0, 1.0, 2);
    let placing = |lab: &Lab| lab.report().points()[0].best().unwrap().placing.clone();
    assert_eq!(placing(&lab), Placing::Winner("alpha".into()), "its share is within 5 % of gamma's");
    let mut lossy = Lab::new(MAX);
    unthrottled(&mut lossy, "alpha", 9_000.0, 0.9, 0);
    unthrottled(&mut lossy, "beta", 2_000.0, 0.3, 1);
    unthrottled(&mut lossy, "gamma", 1_000.0, 1.0, 2);
    assert_eq!(placing(&lossy), Placing::Unranked { least: 0.9, most: 1.0 }, "alpha or gamma, by what a loss is worth");
    let report = lossy.report();
    let best = report.points()[0].best().unwrap();
    let standings = ["alpha", "beta", "gamma"].map(|system| best.standing(system).unwrap());
    assert_eq!(standings, [Standing::Unranked, Standing::Behind, Standing::Unranked]);
}

#[test]
fn a_lower_bound_may_win_and_is_never_behind() {
    let lab = |bounded: &str| {
        let mut lab = Lab::new(MAX);
        unthrottled(&mut lab, "alpha", 2_000.0, 1.0, 0);
        unthrottled(&mut lab, "beta", 1_000.0, 1.0, 1);
        for run in lab.records.runs.iter_mut().filter(|run| run.system == bounded) {
            run.rates.lower_bound = true;
        }
        lab.report()
    };
    let wins = lab("alpha");
    assert_eq!(wins.points()[0].best().unwrap().placing, Placing::Winner("alpha".into()));
    assert_eq!(cell(&wins, "alpha").figures.sign(Figure::DELIVERED), Sign::AtLeast);
    assert_eq!(cell(&wins, "beta").figures.sign(Figure::DELIVERED), Sign::Equal);
    let open = lab("beta");
    let best = open.points()[0].best().unwrap();
    assert_eq!(best.placing, Placing::Open { why: Why::LowerBound(vec!["beta".into()]), repeats_more: None });
    assert_eq!(best.standing("beta"), Some(Standing::Candidate));
}

#[test]
fn a_multiple_of_a_floor_that_is_a_lower_bound_is_at_most_so_much() {
    let floor = |alpha: bool, kernel: bool| {
        let mut lab = Lab::new("[workload]\nrate = \"max\"\n[axes]\nsystem = [\"alpha\", \"kernel\"]\n");
        unthrottled(&mut lab, "alpha", 1_000.0, 1.0, 0);
        unthrottled(&mut lab, "kernel", 4_000.0, 1.0, 1);
        for run in &mut lab.records.runs {
            run.rates.lower_bound = if run.system == "alpha" { alpha } else { kernel };
        }
        let report = lab.report();
        let figures = &cell(&report, "alpha").figures;
        (figures.get(Figure::FLOOR_DELIVERED).is_some(), figures.sign(Figure::FLOOR_DELIVERED))
    };
    assert_eq!(floor(false, false), (true, Sign::Equal));
    assert_eq!(floor(true, false), (true, Sign::AtLeast));
    assert_eq!(floor(false, true), (true, Sign::AtMost));
    assert_eq!(floor(true, true), (false, Sign::Equal));
}

#[test]
fn runs_of_two_modes_are_said_with_what_else_differs() {
    let mut lab = Lab::new("[workload]\nrate = \"max\"\n[axes]\nsystem = [\"alpha\", \"beta\"]\n");
    let rates = [3.5e6, 8.1e6, 3.45e6, 8.0e6, 3.52e6, 8.15e6, 3.4e6];
    lab.rates("alpha", &rates);
    lab.rates("beta", &rates.map(|rate| 1e6 + rate / 1e3));
    for run in &mut lab.records.runs {
        let is_fast = run.rates.delivered_per_s > 5e6;
        run.generator = Some(usage(if is_fast { 1.0 } else { 2.0 }));
        let subscribers = if is_fast { vec![8] } else { vec![0, 8] };
        let ran_on = ClientProcessors { publishers: vec![8], subscribers };
        run.agents = vec![AgentShare { ran_on, ..AgentShare::default() }];
    }
    let text = lab.report().terminal(400, false);
    let modes = "alpha: its runs have two modes by delivered_per_s, 3.48M/s in 4 runs and 8.10M/s in 3 runs, and the median \
                 describes neither; the groups also differ in how often publisher and subscriber ran on one \
                 processor (0 and 1.00), processors used (2.00 and 1.00)";
    assert!(text.contains(modes), "{text}");
    assert!(!text.contains("beta: its runs have two modes"), "{text}");
}
