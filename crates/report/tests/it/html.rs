//! The page's data: what its sentences say, and that nothing in a record can
//! leave its place.

use crate::lab::{Lab, latency, spoil_for};
use pubmark_model::record::{Component, FigureGroup, Finding, Note, Reason};
use pubmark_report::{Report, page};
use serde_json::Value;

const STUDY: &str = "[workload]\nwarmup = \"0s\"\n[axes]\nsystem = [\"alpha\", \"beta\", \"kernel\"]\n\
                     payload = [\"64B\", \"1KiB\"]\n[run]\nrepeats = 6\n";

const NEAR: [u64; 6] = [990, 995, 1_000, 1_000, 1_005, 1_010];

/// Six runs, in another order for each factor.
fn times(factor: u64) -> Vec<u64> {
    let shift = factor as usize / 10;
    (0..NEAR.len()).map(|run| factor * NEAR[(5 * run + shift) % NEAR.len()]).collect()
}

fn data(report: &Report) -> Value {
    let data: Value = serde_json::from_str(&page::data_json(&[report])).unwrap();
    data["page"]["results"][0].clone()
}

fn sentence(report: &Report, about: &str) -> (String, String) {
    let data = data(report);
    let findings = data["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["about"] == about);
    let found = found.unwrap_or_else(|| panic!("nothing about {about}: {findings:?}"));
    (found["outcome"].as_str().unwrap().into(), found["text"].as_str().unwrap().into())
}

#[test]
fn a_sentence_names_the_winner_where_it_is_clearest_and_by_how_much() {
    let mut lab = Lab::new(STUDY);
    for (label, factor) in [("alpha 64B", 10), ("beta 64B", 20), ("alpha 1KiB", 10), ("beta 1KiB", 30)] {
        lab.latencies(label, &times(factor));
    }
    let (outcome, text) = sentence(&lab.report(), "latency");
    assert_eq!(outcome, "winner");
    assert_eq!(
        text,
        "alpha has the lowest median latency at 2 of 2 points. Clearest at 1KiB: \
         alpha 10.0 µs (9.93 µs to 10.1 µs) against beta 30.0 µs (29.8 µs to 30.2 µs), a factor of 3.00."
    );
}

#[test]
fn what_is_shown_to_be_the_same_is_a_tie_and_single_runs_decide_nothing() {
    let mut lab = Lab::new(STUDY);
    lab.latencies("alpha 64B", &times(10));
    let mut other = times(10);
    other.rotate_left(1);
    lab.latencies("beta 64B", &other);
    let (outcome, text) = sentence(&lab.report(), "latency");
    assert_eq!(
        (outcome.as_str(), text.as_str()),
        ("tie", "No system has the lowest median latency at any of 2 points; 1 is a tie; 1 open.")
    );

    let mut lab = Lab::new(STUDY);
    lab.latencies("alpha 64B", &[10_000]);
    lab.latencies("beta 64B", &[20_000]);
    let (outcome, text) = sentence(&lab.report(), "latency");
    assert_eq!(outcome, "open");
    assert!(text.contains("fewer than two repeats have both systems"), "{text}");
}

#[test]
fn the_floor_is_named_and_never_ranked() {
    let mut lab = Lab::new(STUDY);
    for (label, factor) in [("alpha 64B", 10), ("beta 64B", 20), ("kernel 64B", 1)] {
        lab.latencies(label, &times(factor));
    }
    let data = data(&lab.report());
    let floor = data["points"][0]["floor"].as_u64().unwrap() as usize;
    assert_eq!(data["cells"][floor]["system"], "kernel");
    assert_eq!(data["points"][0]["ranks"]["latency_p50_ns"]["systems"], serde_json::json!(["alpha"]));
    assert_eq!(data["points"][1]["floor"], Value::Null);
}

#[test]
fn a_winner_leads_by_a_bound_below_the_ratio_of_the_medians_and_others_do_not_lead() {
    let mut lab = Lab::new(STUDY);
    let mut same = times(10);
    same.rotate_left(1);
    for (label, times) in
        [("alpha 64B", times(10)), ("beta 64B", times(20)), ("alpha 1KiB", times(10)), ("beta 1KiB", same)]
    {
        lab.latencies(label, &times);
    }
    let data = data(&lab.report());
    let lead = data["points"][0]["leads"]["latency_p50_ns"].as_f64().unwrap();
    assert!((1.9..2.0).contains(&lead), "{lead}");
    let behind = data["cells"].as_array().unwrap().iter().find(|cell| cell["word"] == "behind").unwrap();
    assert_eq!(behind["distance"][0].as_f64(), Some(lead), "the table says the same");
    assert_eq!(data["points"][1]["leads"].get("latency_p50_ns"), None);
}

#[test]
fn what_may_not_be_quoted_is_counted_with_the_reason() {
    let mut lab = Lab::new(STUDY);
    lab.latencies("alpha 64B", &times(10));
    lab.run("beta 64B", 1, |run| {
        run.verdict.valid = false;
        run.verdict.reasons = vec![Finding {
            reason: Reason::NoisyMachine,
            evidence: "steal".into(),
            figures: FigureGroup::all(),
            overload: false,
        }];
    });
    lab.run("beta 64B", 2, |run| run.error = Some("no such library".into()));
    let (_, text) = sentence(&lab.report(), "validity");
    assert_eq!(text, "8 runs: 6 ok, 1 unreliable, 1 failed. Reasons: noisy-machine 1.");
    let data = data(&lab.report());
    let rows: Vec<(bool, bool)> = data["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (run["valid"].as_bool().unwrap(), run["failed"].as_bool().unwrap()))
        .collect();
    assert_eq!(rows[5..], [(true, false), (false, false), (true, true)]);
}

#[test]
fn curves_are_of_the_runs_that_count() {
    let mut lab = Lab::new(STUDY);
    lab.run("alpha 64B", 1, |run| latency(run, &[(1_000, 20_000)]));
    lab.run("alpha 64B", 2, |run| {
        latency(run, &[(9_000_000, 20_000)]);
        run.verdict.valid = false;
    });
    let data = data(&lab.report());
    let curve = data["cells"][0]["curves"]["latency"]["values"].as_array().unwrap();
    assert!(curve.iter().all(|ns| ns.as_u64().unwrap() <= 1_001), "{curve:?}");
    assert_eq!(data["cells"][0]["curves"]["latency"]["distribution"]["shares"].as_array().unwrap().len(), 1);
}

#[test]
fn the_page_is_told_which_figures_may_not_be_quoted_and_what_each_word_means() {
    let mut lab = Lab::new(STUDY);
    lab.latencies("alpha 64B", &times(10));
    lab.latencies("beta 64B", &times(20));
    for run in lab.records.runs.iter_mut().filter(|run| run.system == "alpha") {
        spoil_for(run, Reason::GeneratorSaturated, &[FigureGroup::LatencyP99]);
    }
    let all: Value = serde_json::from_str(&page::data_json(&[&lab.report()])).unwrap();
    let cell = &all["page"]["results"][0]["cells"][0];
    assert_eq!((&cell["status"], &cell["word"]), (&"partly".into(), &"winner".into()));
    let unquoted: Vec<&str> = cell["unquoted"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    assert!(unquoted.contains(&"latency_p99_ns") && !unquoted.contains(&"latency_p50_ns"), "{unquoted:?}");
    assert_eq!(cell["reasons"][0]["touches"], "p99");
    assert_eq!((&cell["group_runs"]["latency_p50"], &cell["group_runs"]["latency_p99"]), (&6.into(), &0.into()));
    let words = all["page"]["words"].as_object().unwrap();
    assert!(words["winner"].as_str().unwrap().contains("every other system"));
    for cell in all["page"]["results"][0]["cells"].as_array().unwrap() {
        assert!(words.contains_key(cell["word"].as_str().unwrap()), "{}", cell["word"]);
    }
}

#[test]
fn nothing_in_a_record_leaves_its_place() {
    const EVIL: &str = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>\u{202e}\0";
    let mut lab = Lab::new(STUDY);
    lab.study.title = EVIL.into();
    lab.study.question = "x".repeat(1 << 20);
    lab.run("alpha 64B", 1, |run| {
        run.versions.insert(EVIL.into(), EVIL.into());
        run.remarks.push(EVIL.repeat(1_000));
        run.verdict.notes.push(Note { part: Component::Server, evidence: EVIL.into() });
        run.error = Some(EVIL.into());
    });
    let html = page::html(&[&lab.report()], false);
    // Three of the page's own: the two blocks of data, and the program.
    assert_eq!(html.matches("<script").count(), 3);
    assert_eq!(html.matches("</script").count(), 3);
    assert!(!html.contains("<img"), "an image got into the page");
    assert!(html.len() < 4 << 20, "{} bytes: a long string was not cut", html.len());
}
