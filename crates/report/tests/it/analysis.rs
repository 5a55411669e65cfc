use crate::lab::{Lab, cell, fail, histogram, latency, spoil, usage};
use pubmark_model::record::Reason;
use pubmark_report::{Column, Counts, Status};
use pubmark_stats::{Estimate, Interval, Ranking};

const TWO: &str = "[axes]\nsystem = [\"alpha\", \"beta\"]\n";

fn estimate(value: f64, lo: f64, hi: f64) -> Option<Estimate> {
    let interval = Some(Interval { lo, hi });
    Some(Estimate { value, interval })
}

#[test]
fn a_scalar_is_the_median_over_the_runs() {
    let mut lab = Lab::new(TWO);
    lab.rates("alpha", &[900.0, 1_000.0, 1_300.0]);
    let report = lab.report();
    let found = cell(&report, "alpha").figures.get(Column::Delivered);
    assert_eq!(found, estimate(1_000.0, 900.0, 1_300.0));
}

#[test]
fn a_single_run_has_no_interval() {
    let mut lab = Lab::new(TWO);
    lab.latencies("alpha", &[1_000]);
    let report = lab.report();
    let found = cell(&report, "alpha").figures.get(Column::LatencyP50).unwrap();
    assert_eq!((found.value, found.interval), (1_000.0, None));
}

#[test]
fn percentiles_come_from_the_merged_histogram() {
    let mut lab = Lab::new(TWO);
    // Medians of the runs: 100, 100 and 2,000. Merged, 6,000 of 10,000 are at 2,000.
    for (repeat, times) in [(1, (100, 2_000)), (2, (100, 2_000)), (3, (2_000, 6_000))] {
        lab.run("alpha", repeat, |run| latency(run, &[times]));
    }
    let report = lab.report();
    let figure = |column| cell(&report, "alpha").figures.get(column).unwrap().value;
    assert_eq!(figure(Column::LatencyP50), 2_000.0);
    assert_eq!(figure(Column::LatencyMin), 100.0);
    assert_eq!(figure(Column::LatencyP90), 2_000.0);
    assert_eq!(figure(Column::LatencyP999), 2_000.0);
    assert_eq!(figure(Column::LatencyMax), 2_000.0);
    assert_eq!(figure(Column::LatencyMean), 100.0);
}

#[test]
fn a_percentile_of_too_few_samples_is_blank() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\", \"gamma\"]\n");
    for (label, each) in [("alpha", 499), ("beta", 500), ("gamma", 5_000)] {
        for repeat in [1, 2] {
            lab.run(label, repeat, |run| {
                latency(run, &[(50, each)]);
                run.histograms.send_lag = run.histograms.latency.clone();
            });
        }
    }
    let report = lab.report();
    let has = |label, column| cell(&report, label).figures.get(column).is_some();
    for p99 in [Column::LatencyP99, Column::SendLagP99] {
        let seen = [has("alpha", p99), has("beta", p99), has("gamma", p99)];
        assert_eq!(seen, [false, true, true]);
    }
    assert!(has("alpha", Column::LatencyP95));
    assert!(!has("beta", Column::LatencyP999));
    assert!(has("gamma", Column::LatencyP999));
}

#[test]
fn the_other_histograms_have_columns_of_their_own() {
    let mut lab = Lab::new(TWO);
    lab.run("alpha", 1, |run| {
        let encoded = |ns| Some(histogram(&[(ns, 1_000)]).encode());
        run.histograms.service_latency = encoded(70);
        run.histograms.send_lag = encoded(30);
    });
    let report = lab.report();
    let figure = |column| cell(&report, "alpha").figures.get(column).map(|e| e.value);
    assert_eq!(figure(Column::ServiceP50), Some(70.0));
    assert_eq!(figure(Column::ServiceP99), Some(70.0));
    assert_eq!(figure(Column::SendLagP50), Some(30.0));
    assert_eq!(figure(Column::LatencyP50), None);
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
    assert_eq!(figure("alpha", Column::CpuCores), Some(2.0));
    assert_eq!(figure("alpha", Column::CpuPerMessage), Some(2_000_000.0));
    assert_eq!(figure("alpha", Column::RssMax), Some(500.0));
    assert_eq!(figure("alpha", Column::SwitchesPerMessage), Some(1.5));
    assert_eq!(figure("alpha", Column::DeliveredRatio), Some(0.25));
    assert_eq!(figure("beta", Column::CpuCores), Some(1.0));
    assert_eq!(figure("beta", Column::CpuPerMessage), None);
    assert_eq!(figure("beta", Column::DeliveredRatio), Some(0.0));
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
    assert_eq!(alpha.figures.get(Column::Delivered), estimate(1_000.0, 1_000.0, 1_000.0));
    let beta = cell(&report, "beta");
    assert_eq!((beta.status, beta.invalid_runs, beta.failed_runs), (Status::Invalid, 2, 1));
    assert_eq!(beta.figures.get(Column::Delivered), estimate(6_000.0, 5_000.0, 7_000.0));
    assert_eq!(beta.quotable(Column::Delivered), None);
    assert_eq!((beta.reasons.len(), beta.reasons[0].runs), (1, 2));
    assert_eq!(beta.reasons[0].evidence, "first");
    assert_eq!(beta.error.as_deref(), Some("no server"));
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
    let expected = Counts { valid: 1, missing: 8, ..Counts::default() };
    assert_eq!(report.counts(), expected);
}

#[test]
fn figures_are_multiples_of_the_floor_at_the_same_point() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"kernel\"]\nqos = [0, 1]\n");
    lab.latencies("alpha qos=0", &[300, 360]);
    lab.latencies("alpha qos=1", &[800]);
    lab.latencies("kernel qos=0", &[100, 120]);
    lab.latencies("kernel qos=1", &[200]);
    let report = lab.report();
    let floor = |label| cell(&report, label).figures.get(Column::FloorLatency).unwrap();
    assert_eq!(floor("alpha qos=0").value, 3.0);
    assert_eq!(floor("alpha qos=0").interval, Some(Interval { lo: 2.5, hi: 3.6 }));
    assert_eq!(floor("alpha qos=1").value, 4.0);
    assert_eq!(floor("alpha qos=1").interval, None);
    assert_eq!(floor("kernel qos=0").value, 1.0);
    let delivered = cell(&report, "alpha qos=0").figures.get(Column::FloorDelivered);
    assert_eq!(delivered, estimate(1.0, 1.0, 1.0));
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
    assert_eq!(cell(&report, "alpha").figures.get(Column::FloorLatency), None);
}

#[test]
fn the_best_is_told_only_where_intervals_are_apart() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\", \"kernel\"]\nqos = [0, 1, 2]\n");
    for (label, times) in [
        ("alpha qos=0", [100, 110]),
        ("beta qos=0", [111, 120]),
        ("kernel qos=0", [10, 11]),
        ("alpha qos=1", [100, 111]),
        ("beta qos=1", [111, 120]),
    ] {
        lab.latencies(label, &times);
    }
    lab.latencies("alpha qos=2", &[100, 110]);
    lab.latencies("beta qos=2", &[50, 51]);
    let count = lab.records.runs.len();
    for run in &mut lab.records.runs[count - 2..] {
        spoil(run, Reason::MessagesLost, "7 lost");
    }
    let report = lab.report();
    let best: Vec<&Ranking> = report.points().iter().map(|point| &point.best).collect();
    assert_eq!(best[0], &Ranking::Winner("alpha".into()));
    assert_eq!(best[1], &Ranking::Tie(vec!["alpha".into(), "beta".into()]));
    assert!(matches!(best[2], Ranking::Undecided(_)), "{:?}", best[2]);
}

#[test]
fn unthrottled_systems_are_ranked_by_what_they_deliver() {
    let mut lab = Lab::new(&format!("[workload]\nrate = \"max\"\n{TWO}"));
    lab.rates("alpha", &[1_000.0, 1_100.0]);
    lab.rates("beta", &[2_000.0, 2_100.0]);
    for run in &mut lab.records.runs {
        run.generator = Some(usage(if run.system == "alpha" { 1.0 } else { 2.0 }));
    }
    let report = lab.report();
    let point = &report.points()[0];
    assert!(point.unthrottled);
    assert_eq!(point.best, Ranking::Winner("beta".into()));
    assert_eq!(point.thriftiest, Ranking::Winner("alpha".into()));
}
