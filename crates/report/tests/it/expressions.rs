//! Claims as expressions: each kind comes out right by records with known answers.

use crate::lab::{Lab, fail, latency, overload, spoil_for, usage};
use pubmark_model::record::{FigureGroup, Reason};
use pubmark_report::{ClaimOutcome, ClaimResult};
use pubmark_stats::Random;

/// Studies that are made of one kind of claim.
const SEEDS: u64 = 100;
/// Of these so many have to come out right, and as many at most may come out wrong.
const RIGHT_MIN: usize = 95;
const WRONG_MAX: usize = 5;

const SYSTEMS: &str = "[axes]\nsystem = [\"alpha\", \"beta\", \"gamma\"]\n";
const SIZES: &str = "[axes]\nsystem = [\"alpha\", \"beta\"]\npayload = [\"1KB\", \"2KB\", \"4KB\", \"8KB\"]\n";

fn claim(expr: &str) -> String {
    format!("[[claims]]\nid = \"c\"\nsays = \"s\"\nexpr = \"{expr}\"\n")
}

/// About normal, with a standard deviation of 1.
fn gauss(random: &mut Random) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// A study of a claim, whose cells take about this many ns, give or take a share.
fn played(axes: &str, claim: &str, repeats: u32, noise: f64, seed: u64, ns: &dyn Fn(&str, u64) -> f64) -> Lab {
    let mut random = Random(seed);
    let mut lab = Lab::new(&format!("{axes}{claim}"));
    let cells: Vec<(String, String, u64)> = pubmark_model::plan::cells(&lab.study)
        .unwrap()
        .into_iter()
        .map(|cell| {
            let payload = cell.axes.get("payload").and_then(|payload| payload.as_u64()).unwrap_or(0);
            (cell.label(), cell.system.name.clone(), payload)
        })
        .collect();
    for repeat in 1..=repeats {
        // What disturbs a repeat disturbs all of it.
        let drift = 0.1 * gauss(&mut random);
        for (label, system, payload) in &cells {
            let value = ns(system, *payload) * (drift + noise * gauss(&mut random)).exp();
            lab.run(label, repeat, |run| {
                latency(run, &[(value as u64, 20_000)]);
                run.rates.delivered_per_s = 1e12 / value;
            });
        }
    }
    lab
}

fn only(lab: &Lab) -> ClaimResult {
    lab.report().claims()[0].clone()
}

/// Counts how often a claim comes out so, and how often the other way.
#[track_caller]
fn comes_out(expected: ClaimOutcome, play: impl Fn(u64) -> Lab) {
    let text = play(0).study.to_toml();
    let outcomes: Vec<ClaimOutcome> = (0..SEEDS).map(|seed| only(&play(seed)).outcome).collect();
    let count = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    let other = if expected == ClaimOutcome::Holds { ClaimOutcome::Fails } else { ClaimOutcome::Holds };
    assert!(
        count(expected) >= RIGHT_MIN && count(other) <= WRONG_MAX,
        "{expected}: {} right, {} wrong: {text}",
        count(expected),
        count(other)
    );
}

/// Counts how often a claim whose figures lie exactly at its bound is decided either way.
#[track_caller]
fn stays_open(play: impl Fn(u64) -> Lab) {
    let outcomes: Vec<ClaimOutcome> = (0..SEEDS).map(|seed| only(&play(seed)).outcome).collect();
    for decided in [ClaimOutcome::Holds, ClaimOutcome::Fails] {
        let count = outcomes.iter().filter(|outcome| **outcome == decided).count();
        assert!(count <= WRONG_MAX, "{decided}: {count}");
    }
}

fn fixed(alpha: f64, beta: f64, gamma: f64) -> impl Fn(&str, u64) -> f64 {
    move |system, _| match system {
        "alpha" => alpha,
        "beta" => beta,
        _ => gamma,
    }
}

/// A fixed cost and one of each byte, ns.
fn line(alpha: (f64, f64), beta: (f64, f64)) -> impl Fn(&str, u64) -> f64 {
    move |system, payload| {
        let (base, each) = if system == "alpha" { alpha } else { beta };
        base + each * payload as f64
    }
}

#[test]
fn a_value_that_decides_an_order_is_shown_even_if_it_is_unreliable() {
    let mut lab = played(SYSTEMS, &claim("p50: alpha < gamma"), 6, 0.01, 1, &fixed(100e3, 200e3, 300e3));
    lab.records.runs.iter_mut().filter(|run| run.system == "gamma").for_each(overload);
    let found = only(&lab);
    assert_eq!(found.outcome, ClaimOutcome::Holds, "gamma takes at least that long");
    let evidence = found.evidence();
    assert!(evidence.contains("gamma 3") && evidence.contains("6 runs), unreliable"), "{evidence}");
    assert!(!evidence.contains("unknown"), "{evidence}");
}

#[test]
fn orders_with_ties() {
    let times = fixed(100e3, 200e3, 200e3);
    for (expr, expected) in [
        ("p50: alpha < beta ~ gamma", ClaimOutcome::Holds),
        ("p50: gamma ~ beta > alpha", ClaimOutcome::Holds),
        ("delivered_per_s: beta < alpha", ClaimOutcome::Holds),
        ("p50: beta < alpha", ClaimOutcome::Fails),
        ("p50: alpha ~ beta", ClaimOutcome::Fails),
        ("not (p50: beta < alpha)", ClaimOutcome::Holds),
    ] {
        comes_out(expected, |seed| played(SYSTEMS, &claim(expr), 6, 0.01, seed, &times));
    }
}

#[test]
fn ratios_ranges_and_thresholds() {
    let times = fixed(100e3, 300e3, 100e3);
    for (expr, expected) in [
        ("p50(beta) / p50(alpha) in 2..4", ClaimOutcome::Holds),
        ("p50(beta) / p50(alpha) in 5..9", ClaimOutcome::Fails),
        ("p50(beta) > 2 * p50(alpha)", ClaimOutcome::Holds),
        ("p50(beta) - p50(alpha) < 1ms", ClaimOutcome::Holds),
        ("(p50(alpha) + p50(beta)) / 2 < 150us", ClaimOutcome::Fails),
        ("p50(alpha) < 1ms and p50(beta) < 1ms", ClaimOutcome::Holds),
        ("p50 < 1ms", ClaimOutcome::Holds),
        ("p50 < 10us or delivered_per_s(alpha) > 1000/s", ClaimOutcome::Holds),
        ("best(p50) = alpha or gamma", ClaimOutcome::Holds),
        ("lost = 0", ClaimOutcome::Holds),
        ("lost(alpha) = 1", ClaimOutcome::Fails),
    ] {
        comes_out(expected, |seed| played(SYSTEMS, &claim(expr), 6, 0.03, seed, &times));
    }
}

#[test]
fn what_lies_at_its_bound_is_not_decided() {
    let times = fixed(100e3, 300e3, 100e3);
    for expr in ["p50(beta) > 3 * p50(alpha)", "p50(beta) / p50(alpha) <= 3", "not (p50(beta) / p50(alpha) > 3)"] {
        stays_open(|seed| played(SYSTEMS, &claim(expr), 5, 0.05, seed, &times));
    }
    // At four points at once.
    let times = line((100e3, 0.0), (300e3, 0.0));
    stays_open(|seed| played(SIZES, &claim("p50(beta) > 3 * p50(alpha)"), 5, 0.05, seed, &times));
}

#[test]
fn growth_slope_fixed_cost_and_peak() {
    let times = line((50e3, 10.0), (20e3, 40.0));
    for (expr, expected) in [
        ("growth(p50, payload, alpha) < growth(p50, payload, beta)", ClaimOutcome::Holds),
        ("growth(p50, payload, alpha) in 2..2.5", ClaimOutcome::Holds),
        ("slope(p50, payload, alpha) < slope(p50, payload, beta)", ClaimOutcome::Holds),
        ("slope(p50, payload, beta) > 25ns / 1B and slope(p50, payload, beta) < 60ns / 1B", ClaimOutcome::Holds),
        ("fixed(p50, payload, alpha) > fixed(p50, payload, beta)", ClaimOutcome::Holds),
        ("fixed(p50, payload, alpha) < 10us", ClaimOutcome::Fails),
        ("peak(p50, payload, beta) > 200us", ClaimOutcome::Holds),
    ] {
        comes_out(expected, |seed| played(SIZES, &claim(expr), 6, 0.01, seed, &times));
    }
}

#[test]
fn crossings() {
    // They cross at 3,000 bytes, which is between 2 KB and 4 KB.
    let times = line((10e3, 30.0), (70e3, 10.0));
    for (expr, expected) in [
        ("crossing(p50, alpha, beta, payload) in 2KB..4KB", ClaimOutcome::Holds),
        ("crossing(p50, alpha, beta, payload) > 4KB", ClaimOutcome::Fails),
        ("crossing(p50, beta, alpha, payload) in 2KB..4KB", ClaimOutcome::Fails),
    ] {
        comes_out(expected, |seed| played(SIZES, &claim(expr), 6, 0.02, seed, &times));
    }
    let apart = line((10e3, 10.0), (20e3, 20.0));
    let never = claim("crossing(p50, alpha, beta, payload) in 2KB..4KB");
    comes_out(ClaimOutcome::Fails, |seed| played(SIZES, &never, 6, 0.02, seed, &apart));
    let said = only(&played(SIZES, &never, 6, 0.02, 1, &apart)).evidence();
    assert!(said.contains("beta is better at no value of payload (1.00 kB to 8.00 kB): no crossing"), "{said}");
}

#[test]
fn shares_of_points() {
    // alpha is best at two of four sizes.
    let times = line((10e3, 30.0), (70e3, 10.0));
    for (expr, expected) in [
        ("share(best(p50) = alpha) >= 50%", ClaimOutcome::Holds),
        ("share(best(p50) = alpha) >= 75%", ClaimOutcome::Fails),
        ("share(p50(alpha) < p50(beta)) <= 60%", ClaimOutcome::Holds),
    ] {
        comes_out(expected, |seed| played(SIZES, &claim(expr), 6, 0.01, seed, &times));
    }
    let half = claim("p50(alpha) < p50(beta)\"\nshare = \"0.5").replace("\"0.5\"", "0.5");
    comes_out(ClaimOutcome::Holds, |seed| played(SIZES, &half, 6, 0.01, seed, &times));
}

#[test]
fn what_is_open_says_how_many_more_repeats_would_tell() {
    let times = fixed(100e3, 104e3, 100e3);
    let lab = played(SYSTEMS, &claim("p50(alpha) < p50(beta)"), 3, 0.03, 3, &times);
    let found = only(&lab);
    assert_eq!(found.outcome, ClaimOutcome::Open);
    let said = found.evidence();
    assert!(said.contains("p50(alpha)") && said.contains("3 runs") && said.contains("more repeats"), "{said}");
    assert_eq!(found.parts[0].points[0].runs, Some(3));
}

#[test]
fn what_was_not_measured_is_named() {
    let times = fixed(100e3, 200e3, 300e3);
    let said = |axes: &str, expr: &str| {
        let found = only(&played(axes, &claim(expr), 5, 0.01, 1, &times));
        (found.outcome, found.evidence())
    };
    let without = "[axes]\nsystem = [\"alpha\", \"beta\"]\n";
    assert_eq!(said(without, "p50: alpha < gamma"), (ClaimOutcome::Untested, "gamma was not run here".to_owned()));
    let skipped = format!("{SYSTEMS}[[skip]]\nsystem = \"gamma\"\nwhy = \"too slow\"\n");
    assert_eq!(
        said(&skipped, "p50(alpha) < p50(gamma)"),
        (ClaimOutcome::Untested, "gamma is skipped: too slow".to_owned())
    );
    let single = "[axes]\nsystem = [\"alpha\"]\npayload = [\"1KB\"]\n";
    let (outcome, words) = said(single, "growth(p50, payload, alpha) > 1");
    assert_eq!(
        (outcome, words.as_str()),
        (ClaimOutcome::Untested, "alpha was run at fewer than two values of payload")
    );
}

#[test]
fn runs_of_parts_are_compared_with_each_other() {
    let parts = "[axes]\nsystem = [\"alpha\", \"beta\"]\n[parts.one]\ncpus = 1\nqos = [0, 1]\n[parts.four]\ncpus = 4\nqos = [0, 1]\n";
    let mut lab = Lab::new(&format!("{parts}{}", claim("p50(part=one) > 2 * p50(part=four)")));
    let labels: Vec<String> = pubmark_model::plan::cells(&lab.study).unwrap().iter().map(|cell| cell.label()).collect();
    for label in labels {
        let slow = if label.contains("part=one") { 3 } else { 1 };
        lab.latencies(&label, &[slow * 100_000, slow * 101_000, slow * 99_000, slow * 100_500]);
    }
    let found = only(&lab);
    // Each system at each quality of service.
    assert_eq!((found.outcome, found.won()), (ClaimOutcome::Holds, 4), "{}", found.evidence());
}

#[test]
fn a_share_that_is_lost_counts_runs_that_lost() {
    let text = claim("1 - delivered_ratio(alpha) in 6.3%..6.6%");
    let mut lab = Lab::new(&format!("{SYSTEMS}{text}"));
    for (repeat, delivered) in (1..).zip([18_712, 18_708, 18_710]) {
        lab.run("alpha", repeat, |run| {
            run.counts.delivered = delivered;
            run.counts.lost = 20_000 - delivered;
            spoil_for(run, Reason::MessagesLost, FigureGroup::ALL);
        });
    }
    let found = only(&lab);
    assert_eq!(found.outcome, ClaimOutcome::Holds, "{}", found.evidence());
}

/// A throughput with half of the messages lost does not win against one with all delivered, and does not tie with it.
#[test]
fn rates_of_different_work_are_no_order() {
    for (expr, rate) in [("delivered_per_s: alpha < beta", 2e6), ("delivered_per_s: alpha ~ beta", 1e6)] {
        let mut lab = Lab::new(&format!("{SYSTEMS}[workload]\nrate = \"max\"\n{}", claim(expr)));
        for repeat in 1..=4 {
            lab.run("alpha", repeat, |run| run.rates.delivered_per_s = 1e6);
            lab.run("beta", repeat, |run| {
                run.rates.delivered_per_s = rate;
                (run.counts.delivered, run.counts.lost) = (run.counts.expected / 2, run.counts.expected / 2);
            });
        }
        let found = only(&lab);
        assert_eq!(found.outcome, ClaimOutcome::Open, "{expr}: {}", found.evidence());
        let words = "shares delivered differ (50.0 % to 100 %): these are not rates of the same work";
        assert!(found.evidence().contains(words), "{expr}: {}", found.evidence());
    }
}

/// A generator at its limit: the system may deliver more.
#[test]
fn a_lower_bound_is_no_upper_one() {
    for (expr, expected) in [
        ("delivered_per_s(alpha) > 2 * delivered_per_s(beta)", ClaimOutcome::Holds),
        ("delivered_per_s(alpha) < 4 * delivered_per_s(beta)", ClaimOutcome::Open),
    ] {
        let mut lab = played(SYSTEMS, &claim(expr), 5, 0.01, 1, &fixed(100e3, 300e3, 300e3));
        for run in lab.records.runs.iter_mut().filter(|run| run.system == "alpha") {
            run.rates.lower_bound = true;
        }
        assert_eq!(only(&lab).outcome, expected, "{expr}");
    }
}

#[test]
fn failures_along_an_axis() {
    let axes = "[axes]\nsystem = [\"alpha\"]\npublishers = [100, 200, 400, 800]\n";
    for (within, expected) in [
        ("300..500", ClaimOutcome::Holds),
        ("100..200", ClaimOutcome::Fails),
        ("500..800", ClaimOutcome::Fails),
        ("250..300", ClaimOutcome::Untested),
    ] {
        let mut lab = Lab::new(&format!("{axes}{}", claim(&format!("fails(alpha) at publishers in {within}"))));
        for repeat in 1..=2 {
            for publishers in [100, 200] {
                lab.run(&format!("alpha publishers={publishers}"), repeat, |_| {});
            }
            lab.run("alpha publishers=400", repeat, |run| {
                spoil_for(run, Reason::ServerDied, FigureGroup::ALL);
            });
            lab.run("alpha publishers=800", repeat, |run| fail(run, "no server"));
        }
        let found = only(&lab);
        assert_eq!(found.outcome, expected, "{within}: {}", found.evidence());
    }
    let mut lab = Lab::new(&format!("{axes}{}", claim("fails(alpha) at publishers in 300..900")));
    for publishers in [100, 200, 400, 800] {
        lab.run(&format!("alpha publishers={publishers}"), 1, |_| {});
    }
    let found = only(&lab);
    assert_eq!(found.outcome, ClaimOutcome::Untested);
    assert!(found.evidence().contains("works at publishers 800, the most that was run"), "{}", found.evidence());
}

#[test]
fn capacities_and_what_gave_out() {
    for (expr, expected) in [
        ("capacity(alpha, rate) >= 150", ClaimOutcome::Holds),
        ("capacity(alpha, rate) >= 400/s", ClaimOutcome::Fails),
        ("capacity(alpha, rate) > capacity(beta, rate) / 2", ClaimOutcome::Holds),
        ("limited_by(alpha) = latency", ClaimOutcome::Holds),
        ("limited_by(beta) = thread or cpu", ClaimOutcome::Fails),
        ("capacity(gamma, rate) >= 1", ClaimOutcome::Untested),
    ] {
        let mut lab = Lab::new(&format!(
            "[workload]\nduration = \"4s\"\n[axes]\nsystem = [\"alpha\", \"beta\"]\nrate = [100, 200, 300, 400]\n\
             [run]\nrepeats = 3\n[capacity]\nuntil = \"p99 < 5ms\"\nwithin = \"10%\"\n{}",
            claim(expr)
        ));
        for repeat in 1..=3 {
            for (system, edge) in [("alpha", 250), ("beta", 150)] {
                for load in [100, 200, 300, 400] {
                    lab.run(&format!("{system} rate={load}"), repeat, |run| {
                        latency(run, &[(if load < edge { 1_000_000 } else { 50_000_000 }, 20_000)]);
                        run.rates.offered_per_s = load as f64;
                        run.server = Some(usage(load as f64 / 1_000.0));
                        run.machine.cores = 4;
                    });
                }
            }
        }
        let found = only(&lab);
        assert_eq!(found.outcome, expected, "{expr}: {}", found.evidence());
    }
}

#[test]
fn what_became_of_the_claims_is_text_markdown_and_json() {
    let text = claim("p50(alpha) < p50(beta)").replace("says", "restates = \"10 µs | 20 µs\"\nsays")
        + &claim("p50: beta < alpha").replace("\"c\"", "\"d\"").replace("says", "gate = true\nsays");
    let report = played(SYSTEMS, &text, 5, 0.01, 1, &fixed(100e3, 200e3, 300e3)).report();
    assert!(report.claims()[1].breaks() && !report.claims()[0].breaks());
    let told = report.claims_text(80);
    assert!(told.starts_with("c: holds\n  s\n    restates: 10 µs | 20 µs\n    p50(alpha) < p50(beta)\n"), "{told}");
    assert!(
        told.contains("d: fails (gate)\n") && told.ends_with("2 claims: 1 holds, 1 fails, 0 open, 0 not tested here\n")
    );
    assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
    let summary = "2 claims: 1 holds, 1 fails, 0 open, 0 not tested here\nEvidence: --all\n";
    assert_eq!(report.claims_brief(80), format!("c  holds         s\nd  fails (gate)  s\n\n{summary}"));
    let text = claim("p50(alpha) < p50(beta)") + &claim("p50: beta < alpha");
    let parts = played(SYSTEMS, &text, 5, 0.01, 1, &fixed(100e3, 200e3, 300e3)).report().claims_brief(80);
    assert!(parts.starts_with("c  fails (1 of 2)  s\n\n1 claim: 0 holds, 1 fails"), "{parts}");
    let markdown = report.claims_markdown();
    assert!(
        markdown.contains("| c | holds | s (restates: 10 µs \\| 20 µs) | `p50(alpha) < p50(beta)`: "),
        "{markdown}"
    );
    let json = report.claims_json();
    let (first, second) = (&json["claims"][0], &json["claims"][1]);
    assert_eq!(
        (&first["outcome"], &second["outcome"], &second["gate"]),
        (&"holds".into(), &"fails".into(), &true.into())
    );
    assert_eq!(first["parts"][0]["points"][0]["runs"], 5);
    assert_eq!(first["parts"][0]["restates"], "10 µs | 20 µs");
}
