//! Two results side by side: what is called a change, and what is not.

use crate::lab::{Lab, fail, latency, spoil, systems, usage};
use pubmark_model::figure::Figure;
use pubmark_model::record::Reason;
use pubmark_report::Report;
use pubmark_report::compare::{
    AxisFilter, ChangeOutcome, Comparison, FigureChange, Gate, GateError, GateOutcome, Gates, Selection, compare,
    compare_with,
};
use serde_json::Value;

const ONE: &str = "[workload]\nrate = 1000\nduration = \"20s\"\n[run]\nrepeats = 3\n[axes]\nsystem = [\"alpha\"]\n";

/// One cell with three runs of these median latencies.
fn medians(each_ns: [u64; 3]) -> Lab {
    let mut lab = Lab::new(ONE);
    lab.latencies("alpha", &each_ns);
    lab
}

fn change(comparison: &Comparison, label: &str, column: Figure) -> FigureChange {
    let cell = comparison.same.iter().find(|cell| cell.label == label).unwrap();
    let found = cell.changes.iter().find(|change| change.column == column);
    found.unwrap_or_else(|| panic!("{label} has no {column:?}")).clone()
}

/// Reads gates with commas between them.
fn parse_all(gates: &str) -> Result<Vec<Gate>, GateError> {
    gates.split(',').map(Gate::parse).collect()
}

fn changes(changes: Vec<Gate>) -> Gates {
    Gates { changes, bounds: Vec::new() }
}

fn gated(a: &Report, b: &Report, gates: &str) -> Comparison {
    let gates = parse_all(gates).unwrap();
    compare_with(a, b, &Selection { gates: changes(gates), ..Selection::default() }).unwrap()
}

/// By hand: logarithms with means ln 100 µs and ln 200 µs, and a standard
/// deviation of ln 1.05 in both; t = ln 2 / (ln 1.05 · √(2/3)) = 17.4 with 4
/// degrees of freedom.
#[test]
fn a_change_beyond_the_noise_is_one_and_within_it_is_none() {
    let a = medians([95_238, 100_000, 105_000]).report();
    let slower = compare(&a, &medians([190_476, 200_000, 210_000]).report());
    let found = change(&slower, "alpha", Figure::LATENCY_P50);
    assert_eq!((found.outcome, found.runs_a, found.runs_b), (ChangeOutcome::Worse, 3, 3));
    let (ratio, interval) = (found.ratio.unwrap().value, found.ratio.unwrap().interval.unwrap());
    assert!((ratio / 2.0 - 1.0).abs() < 0.001, "{ratio}");
    // t of 4 degrees at 95 % is 2.776.
    let half = (2.776 * 1.05f64.ln() * (2.0f64 / 3.0).sqrt()).exp();
    assert!((interval.hi / (2.0 * half) - 1.0).abs() < 0.002, "{interval:?}");
    assert!((found.percent().unwrap() - 100.0).abs() < 0.1);
    assert!((found.b.unwrap().value / found.a.unwrap().value - ratio).abs() < 1e-9, "the columns agree");

    let faster = compare(&medians([190_476, 200_000, 210_000]).report(), &a);
    assert_eq!(change(&faster, "alpha", Figure::LATENCY_P50).outcome, ChangeOutcome::Better);
    let other = compare(&a, &medians([97_000, 104_000, 106_000]).report());
    assert_eq!(change(&other, "alpha", Figure::LATENCY_P50).outcome, ChangeOutcome::NoDifference);
    assert_eq!((other.tally.worse, other.tally.better, other.tally.undecided), (0, 0, 0));
}

#[test]
fn a_thing_compared_with_itself_has_not_changed() {
    let report = medians([95_238, 100_000, 105_000]).report();
    let found = compare(&report, &report);
    let changes = &found.same[0].changes;
    assert!(changes.len() >= 5, "{changes:?}");
    assert!(changes.iter().all(|change| change.outcome == ChangeOutcome::NoDifference && change.p == Some(1.0)));
    assert!(found.environment.is_empty() && found.only_a.is_empty() && found.only_b.is_empty());
}

#[test]
fn each_figure_knows_which_way_is_better() {
    let with = |rate: f64, cpu_s: f64, lost: u64| {
        let mut lab = Lab::new(&ONE.replace("rate = 1000", "rate = \"max\""));
        for repeat in 1..=3 {
            lab.run("alpha", repeat, |run| {
                run.rates.delivered_per_s = rate + f64::from(repeat);
                run.generator = Some(usage(cpu_s + f64::from(repeat) / 1e3));
                run.counts.lost = lost * u64::from(repeat);
                run.counts.expected = run.counts.delivered + run.counts.lost;
            });
        }
        lab.report()
    };
    let found = compare(&with(1_000.0, 1.0, 0), &with(2_000.0, 2.0, 1_000));
    let outcome = |column| change(&found, "alpha", column).outcome;
    assert_eq!(outcome(Figure::DELIVERED), ChangeOutcome::Better);
    assert_eq!(outcome(Figure::CPU_PER_MESSAGE), ChangeOutcome::Worse);
    assert_eq!(outcome(Figure::CPU_CORES), ChangeOutcome::Differs, "unthrottled, processors may be well spent");
    let lost = change(&found, "alpha", Figure::LOST);
    assert!(lost.ratio.is_none() && lost.difference.is_some(), "nothing can be said in proportion to 0");
    assert_eq!(lost.percent(), Some(f64::INFINITY));
    assert!(found.same[0].changes.iter().all(|change| change.column != Figure::LATENCY_P50), "there is no latency");
}

#[test]
fn runs_that_do_not_count_are_never_used() {
    let mut b = medians([100_000, 100_000, 100_000]);
    b.study.settings.set("repeats", "4").unwrap();
    b.run("alpha", 4, |run| {
        latency(run, &[(900_000_000, 20_000)]);
        spoil(run, Reason::NoisyMachine, "busy");
    });
    let a = medians([100_000, 100_000, 100_000]).report();
    let found = change(&compare(&a, &b.report()), "alpha", Figure::LATENCY_P50);
    assert_eq!((found.runs_b, found.outcome, found.percent()), (3, ChangeOutcome::NoDifference, Some(0.0)));

    for run in &mut b.records.runs {
        spoil(run, Reason::NoisyMachine, "busy");
    }
    let found = change(&compare(&a, &b.report()), "alpha", Figure::LATENCY_P50);
    assert_eq!((found.b, found.runs_b, found.outcome), (None, 0, ChangeOutcome::Undecided));
    assert_eq!(found.why, "B: unreliable in all runs (noisy-machine)");
    assert!(found.a.is_some());
}

#[test]
fn what_cannot_be_decided_says_why() {
    let a = medians([100_000, 101_000, 102_000]).report();
    let why = |b: &Lab| {
        let found = change(&compare(&a, &b.report()), "alpha", Figure::LATENCY_P50);
        assert_eq!((found.outcome, found.p), (ChangeOutcome::Undecided, None));
        found.why
    };
    let mut single = Lab::new(ONE);
    single.latencies("alpha", &[500_000]);
    assert_eq!(why(&single), "B: one reliable run, so its noise is not known");
    let mut failed = Lab::new(ONE);
    failed.run("alpha", 1, |run| fail(run, "the port was taken"));
    assert_eq!(why(&failed), "B: all runs failed (the port was taken)");
    assert_eq!(why(&Lab::new(ONE)), "B: no run yet");
    let two = ONE.replace("[\"alpha\"]", "[\"alpha\", \"beta\"]");
    let skipped = Lab::new(&format!("{two}[[skip]]\nsystem = \"alpha\"\nwhy = \"too slow\"\n"));
    assert_eq!(why(&skipped), "B: skipped (too slow)");
    let mut without = Lab::new(ONE);
    without.rates("alpha", &[1.0, 2.0, 3.0]);
    assert_eq!(why(&without), "B: no run has it");
}

#[test]
fn cells_meet_by_their_place_and_the_others_are_named() {
    let lab = |systems: &str, payloads: &str| {
        Lab::new(&format!("[workload]\nrate = 10\n[axes]\nsystem = [{systems}]\npayload = [{payloads}]\n"))
    };
    let a = lab("\"alpha\", \"beta\"", "\"64B\", \"1KiB\"").report();
    let b = lab("\"beta\", \"gamma\"", "\"1KiB\", \"2KiB\", \"64B\"").report();
    let found = compare(&a, &b);
    let labels: Vec<&str> = found.same.iter().map(|cell| cell.label.as_str()).collect();
    assert_eq!(labels, ["beta 64B", "beta 1KiB"]);
    assert_eq!(found.only_a, ["alpha 64B", "alpha 1KiB"]);
    assert_eq!(found.only_b.len(), 4, "{:?}", found.only_b);

    for typed in ["64", "64B", "0.0625KiB"] {
        let only = vec![AxisFilter::new("payload", typed), AxisFilter::new("system", "beta,gamma")];
        let found = compare_with(&a, &b, &Selection { only, ..Selection::default() });
        let found = found.unwrap_or_else(|error| panic!("{typed}: {error}"));
        assert_eq!((found.same.len(), found.only_a.len(), found.only_b.len()), (1, 0, 1), "{typed}");
    }
    for (axis, value, said) in [("paylod", "64B", "`payload`"), ("system", "betta", "`beta`")] {
        let only = vec![AxisFilter::new(axis, value)];
        let error = compare_with(&a, &b, &Selection { only, ..Selection::default() }).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

/// Twenty cells. A change that is clear by itself is not clear as the largest
/// of a hundred comparisons, but is where it alone is under a gate.
#[test]
fn the_more_is_looked_at_the_clearer_a_change_must_be() {
    let payloads: Vec<String> = (64..84).map(|bytes| format!("\"{bytes}B\"")).collect();
    let text = ONE.replace("[\"alpha\"]", &format!("[\"alpha\"]\npayload = [{}]", payloads.join(", ")));
    let lab = |first: [u64; 3]| {
        let mut lab = Lab::new(&text);
        for bytes in 64..84 {
            let each = if bytes == 64 { first } else { [95_238, 100_000, 105_000] };
            lab.latencies(&format!("alpha {bytes}B"), &each);
        }
        lab.report()
    };
    let (a, b) = (lab([95_238, 100_000, 105_000]), lab([119_000, 125_000, 131_250]));
    assert_eq!(change(&compare(&a, &b), "alpha 64B", Figure::LATENCY_P50).outcome, ChangeOutcome::NoDifference);
    let selection =
        |gates| Selection { gates: changes(gates), only: vec![AxisFilter::new("payload", "64B")], across: None };
    let alone = compare_with(&a, &b, &selection(parse_all("p50 > +5%").unwrap())).unwrap();
    let found = change(&alone, "alpha 64B", Figure::LATENCY_P50);
    assert_eq!((found.outcome, found.gated), (ChangeOutcome::Worse, true));
    assert_eq!(alone.gates[0].failed, ["alpha 64B: +25 %"]);
    assert_eq!(gated(&a, &b, "p50 > +5%").gates[0].comparisons, 20);
}

#[test]
fn a_gate_fails_only_beyond_its_threshold_and_beyond_the_noise() {
    let a = medians([95_238, 100_000, 105_000]).report();
    let half_more = medians([142_857, 150_000, 157_500]).report();
    let noisy = medians([60_000, 150_000, 300_000]).report();
    let says = |b: &Report, gates: &str| gated(&a, b, gates).gates_say();
    assert_eq!(says(&half_more, "p50 > +40%"), GateOutcome::Failed);
    assert_eq!(says(&half_more, "latency_p50_ns>40%"), GateOutcome::Failed);
    assert_eq!(says(&half_more, "p50 > +60%"), GateOutcome::TooNoisy, "up to 68 % more");
    assert_eq!(says(&half_more, "p50 > +70%"), GateOutcome::Passed);
    assert_eq!(says(&half_more, "p50 > +40us"), GateOutcome::Failed, "50 µs more");
    assert_eq!(says(&half_more, "p50 > +60us"), GateOutcome::TooNoisy);
    assert_eq!(says(&half_more, "p50 > +70us"), GateOutcome::Passed);
    assert_eq!(says(&half_more, "p50 < -1%"), GateOutcome::Passed);
    assert_eq!(says(&half_more, "delivered_per_s < -1%, p50 > +40%"), GateOutcome::Failed);
    assert_eq!(says(&noisy, "p50 > +5%"), GateOutcome::TooNoisy, "30 % more, within the noise");
    let unseen = &gated(&a, &noisy, "p50 > +5%").gates[0].too_noisy;
    assert!(unseen.len() == 1 && unseen[0].contains("the smallest rise it would have found: +"), "{unseen:?}");

    let mut single = Lab::new(ONE);
    single.latencies("alpha", &[500_000]);
    let found = gated(&a, &single.report(), "p50 > +5%");
    assert_eq!(found.gates_say(), GateOutcome::Undecided);
    assert!(found.gates[0].undecided[0].starts_with("alpha (B: one reliable run"), "{:?}", found.gates);
    assert_eq!(says(&half_more, "reconnected > 0"), GateOutcome::Undecided, "no run has it");
}

/// A percentile of too few samples is no figure; where a gate asks for it,
/// nothing can be said.
#[test]
fn a_gate_on_what_was_not_measured_is_undecided() {
    let lab = || {
        let mut lab = Lab::new(ONE);
        for repeat in 1..=3 {
            lab.run("alpha", repeat, |run| latency(run, &[(100_000, 400)]));
        }
        lab.report()
    };
    assert!(compare(&lab(), &lab()).same[0].changes.iter().all(|change| change.column != Figure::LATENCY_P99));
    let found = gated(&lab(), &lab(), "p99 > +5%");
    assert_eq!(found.gates_say(), GateOutcome::Undecided);
    assert!(found.gates[0].undecided[0].contains("enough samples"), "{:?}", found.gates);
}

#[test]
fn a_gate_that_cannot_be_understood_says_what_would_be() {
    for (text, said) in [
        ("p98 > 5%", "did you mean `p9"),
        ("latency_p98 > 5%", "there is no figure"),
        ("floor_latency > 5%", "no runs to compare"),
        ("p99 5%", "neither > nor <"),
        ("p99 > five", "neither a percentage nor a time"),
        ("p99 > 1e3%", "not a number"),
        ("p99 > inf", "neither a percentage nor a time"),
        ("p99 > NaN%", "not a number"),
        ("p99 > -5%", "+0 or more"),
        ("p99 < +5%", "-0 or less"),
        ("p99 > 5%,", "neither > nor <"),
        ("", "neither > nor <"),
        ("\u{1b}[31m > 5%", "\\u{1b}"),
    ] {
        let error = parse_all(text).unwrap_err().to_string();
        assert!(error.contains(said), "{text:?}: {error}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
    assert!(parse_all(&"x".repeat(1 << 20)).unwrap_err().to_string().len() < 1_000);
    assert!(parse_all(&format!("{} > 5%", "x".repeat(1 << 20))).unwrap_err().to_string().len() < 1_000);
}

/// Another machine, another version and another setting; the time of day is none.
#[test]
fn what_else_differs_is_listed() {
    let folder = |text: &str, environment: &str| {
        let place = tempfile::tempdir().unwrap();
        let mut lab = Lab::new(text);
        lab.latencies("alpha", &[100_000, 101_000, 102_000]);
        lab.write(place.path(), "");
        std::fs::write(place.path().join("environment.json"), environment).unwrap();
        Report::load(place.path(), &systems).unwrap()
    };
    let a = folder(
        ONE,
        r#"{"time":"1","load_average":"3","kernel":"6.1","cores":8,"governor":null,"versions":{"alpha":{"server":"2.0"},"beta":{"server":"7"}}}"#,
    );
    let b = folder(
        &ONE.replace("20s", "30s"),
        r#"{"time":"2","load_average":"4","kernel":"6.8","cores":8,"governor":"powersave","versions":{"alpha":{"server":"2.1"}}}"#,
    );
    let found: Vec<(String, Option<String>, Option<String>)> =
        compare(&a, &b).environment.into_iter().map(|found| (found.what, found.a, found.b)).collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        found[..3],
        [
            ("governor".into(), None, some("powersave")),
            ("kernel".into(), some("6.1"), some("6.8")),
            ("versions.alpha.server".into(), some("2.0"), some("2.1")),
        ]
    );
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found[3].0.starts_with("workload."), "{found:?}");
}

/// Of every outcome something.
fn pair() -> [Report; 2] {
    let text = "[workload]\nrate = 1000\nduration = \"20s\"\n[run]\nrepeats = 3\n\
                [axes]\nsystem = [\"alpha\", \"beta\"]\npayload = [\"64B\", \"1KiB\"]\n";
    let lab = |factor: f64, other: u64| {
        let mut lab = Lab::new(text);
        let times = |factor: f64| [95_238.0, 100_000.0, 105_000.0].map(|ns| (ns * factor) as u64);
        lab.latencies("alpha 64B", &times(factor));
        lab.latencies("alpha 1KiB", &times(1.0 / factor));
        lab.latencies("beta 64B", &times(1.0));
        lab.latencies("beta 1KiB", &[other]);
        lab.report()
    };
    [lab(1.0, 100_000), lab(2.0, 100_000)]
}

#[test]
fn markdown_tells_how_it_came_out_first_and_folds_the_rest_away() {
    let [a, b] = pair();
    let found = gated(&a, &b, "p50 > +5%").markdown(["before", "after"]);
    assert_eq!(found, include_str!("expected/compare.md"));
}

#[test]
fn a_terminal_shows_every_comparison_within_its_width() {
    let [a, b] = pair();
    let found = gated(&a, &b, "p50 > +5%");
    assert_eq!(found.terminal(["before", "after"], 100, false), include_str!("expected/compare-100.txt"));
    for width in [80, 100, 160] {
        let wide = found.terminal(["before", "after"], width, false);
        assert!(wide.lines().all(|line| line.chars().count() <= width), "{width}:\n{wide}");
    }
    let coloured = found.terminal(["before", "after"], 100, true);
    assert!(coloured.contains("\u{1b}[33malpha 64B"), "{coloured}");
}

#[test]
fn the_short_result_fits_on_a_screen_and_shows_the_worst_first() {
    let sizes: Vec<String> = (1..=30).map(|size| format!("{size}KiB")).collect();
    let text = format!(
        "[workload]\nrate = 1000\nduration = \"20s\"\n[run]\nrepeats = 3\n\
         [axes]\nsystem = [\"alpha\", \"beta\"]\npayload = {sizes:?}\n"
    );
    let lab = |factor: f64| {
        let mut lab = Lab::new(&text);
        for size in &sizes {
            let times = |factor: f64| [95_238.0, 100_000.0, 105_000.0].map(|ns| (ns * factor) as u64);
            lab.latencies(&format!("alpha {size}"), &times(1.0 / factor));
            lab.latencies(&format!("beta {size}"), &times(factor));
        }
        lab.report()
    };
    let found = gated(&lab(1.0), &lab(2.0), "p50 > +5%, p99 > +5%");
    let brief = found.brief(["before", "after"], 100, false);
    assert!(brief.lines().count() <= 40, "{brief}");
    assert!(brief.lines().all(|line| line.chars().count() <= 100), "{brief}");
    assert!(brief.contains("90 worse, 90 better"), "{brief}");
    assert!(brief.contains("… and 170 more: --all"), "{brief}");
    let rows: Vec<&str> = brief.lines().filter(|line| line.ends_with("worse") || line.ends_with("better")).collect();
    assert!(rows.len() == 10 && rows.iter().all(|row| row.starts_with("beta ") && row.ends_with("worse")), "{brief}");
    assert!(brief.contains("p50 > +5%  broken"), "{brief}");
    let [a, b] = pair();
    assert!(!gated(&a, &b, "p50 > +5%").brief(["a", "b"], 100, false).contains("more: --all"), "nothing is left out");
}

#[test]
fn json_is_plain() {
    let [a, b] = pair();
    let json: Value = serde_json::to_value(gated(&a, &b, "p50 > +5%")).unwrap();
    let first = &json["same"][0];
    assert_eq!(first["axes"]["payload"], 64);
    assert_eq!(first["changes"][0]["column"], "latency_p50_ns");
    assert_eq!(first["changes"][0]["outcome"], "worse");
    assert_eq!(json["gates"][0]["outcome"], "failed");
    assert_eq!(json["tally"]["worse"], 3);
}

#[test]
fn hostile_text_does_nothing() {
    let hostile = "</script><img src=x onerror=alert(1)>\\u001b[31m|`x`\\n# head";
    let text = format!(
        "[workload]\nrate = 1000\n[run]\nrepeats = 2\n[axes]\nsystem = [\"alpha\", \"beta\"]\n[[skip]]\nsystem = \"alpha\"\nwhy = \"{hostile}\"\n"
    );
    let (skipped, plain) = (Lab::new(&text), Lab::new(&text[..text.find("[[skip]]").unwrap()]));
    let mut plain = plain;
    plain.run("alpha", 1, |run| fail(run, &format!("\u{1b}[2J{}", "x".repeat(1 << 20))));
    let found = compare(&skipped.report(), &plain.report());
    let names = ["\u{1b}[31m</details><b>", "b\n# c"];
    for shown in [found.markdown(names), found.terminal(names, 100, false)] {
        assert!(shown.len() < 10_000, "{}", shown.len());
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
    let markdown = found.markdown(names);
    assert!(!markdown.contains("<img") && !markdown.contains("</script>") && !markdown.contains("<b>"), "{markdown}");
    assert_eq!(markdown.matches("</details>").count(), 1, "{markdown}");
    assert!(!markdown.lines().any(|line| line.starts_with("# ")), "{markdown}");
}
