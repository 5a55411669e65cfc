//! Systems that broke a promise are left out of rankings, by name and with their counts.

use crate::lab::{Lab, latency, spoil_for};
use pubmark_model::promise::Promise;
use pubmark_model::record::{FigureGroup, Reason, RunRecord};
use pubmark_report::Report;

const PARTS: &str = "[axes]\nsystem = [\"alpha\", \"beta\", \"gamma\"]\nqos = [1]\n\
    [parts.load]\nfault = [\"none\"]\n[parts.cut]\nfault = [\"stop server at 1s for 1s\"]\n";

/// A study whose systems take 100, 200 and 300 µs; each with a run with a fault, changed by `change`.
fn lab(change: impl Fn(&str, &mut RunRecord)) -> Lab {
    let mut lab = Lab::new(PARTS);
    for (name, ns) in [("alpha", 100_000), ("beta", 200_000), ("gamma", 300_000)] {
        for repeat in 1..=4 {
            lab.run(&label(&lab, name, "load"), repeat, |run| latency(run, &[(ns + u64::from(repeat) * 100, 20_000)]));
        }
        let cut = label(&lab, name, "cut");
        lab.run(&cut, 1, |run| {
            run.counts.acked = 1_000;
            run.counts.acked_lost = Some(0);
            change(name, run);
        });
    }
    lab
}

fn label(lab: &Lab, system: &str, part: &str) -> String {
    let cells = pubmark_model::plan::cells(&lab.study).unwrap();
    let is_it = |cell: &&pubmark_model::cell::Cell| cell.axes["system"] == system && cell.axes["part"] == part;
    cells.iter().find(is_it).unwrap().label()
}

/// Returns the word of a system in the part without a fault.
fn word(report: &Report, system: &str) -> String {
    let rows = report.summary_json();
    let is_it = |row: &&serde_json::Value| row["system"] == system && row["part"] == "load";
    rows.as_array().unwrap().iter().find(is_it).unwrap()["verdict"].as_str().unwrap().to_owned()
}

#[test]
fn who_lost_acknowledged_messages_is_not_ranked_at_that_promise() {
    let lab = lab(|name, run| {
        if name == "alpha" {
            run.counts.acked_lost = Some(37);
        }
    });
    let mut report = lab.report();
    assert_eq!(word(&report, "alpha"), "winner");
    assert_eq!(report.promise(), None);
    report.hold_to(Promise::Freeze, &[]).unwrap();
    assert_eq!(word(&report, "alpha"), "left out");
    assert_eq!(word(&report, "beta"), "winner");
    let outcome = report.promise().unwrap();
    let broken = &outcome.broken[0];
    assert_eq!((broken.system.as_str(), broken.acked_lost, broken.acked), ("alpha", 37, 1_000));
    assert_eq!((outcome.kept.as_slice(), outcome.untested.len()), (&["beta".to_owned(), "gamma".to_owned()][..], 0));
    let said = report.terminal_whole(200, false);
    assert!(said.contains("alpha (37 of 1000 acknowledged messages lost)"), "{said}");
    assert_eq!(report.json()["promise"]["broken"][0]["acked_lost"], 37);
}

#[test]
fn the_study_names_its_promise_and_a_card_counts_as_well() {
    let plain = lab(|_, _| ());
    let mut named = lab(|name, run| run.counts.acked_lost = Some(u64::from(name == "beta")));
    named.study.set_promise(Promise::Freeze);
    let report = named.report();
    assert_eq!(word(&report, "beta"), "left out");
    let mut with_card = plain.report();
    with_card.hold_to(Promise::Freeze, &[report]).unwrap();
    assert_eq!(with_card.promise().unwrap().broken[0].system, "beta");
    assert_eq!(with_card.promise().unwrap().broken[0].acked, 2_000, "of the run here and that of the card");
}

#[test]
fn runs_that_say_nothing_of_the_promise_test_nothing() {
    let error = lab(|_, _| ()).report().hold_to(Promise::PowerCut, &[]).unwrap_err().to_string();
    assert!(error.contains("survives power cut") && error.contains("pubmark card SYSTEM"), "{error}");
    let lab = lab(|name, run| match name {
        "alpha" => run.counts.acked = 0,
        "beta" => spoil_for(run, Reason::ServerDied, &[FigureGroup::Counts]),
        _ => spoil_for(run, Reason::MessagesLost, &[FigureGroup::Counts]),
    });
    let mut report = lab.report();
    report.hold_to(Promise::Freeze, &[]).unwrap();
    let outcome = report.promise().unwrap();
    assert_eq!(
        (outcome.untested.as_slice(), outcome.kept.as_slice()),
        (&["alpha".to_owned(), "beta".to_owned()][..], &["gamma".to_owned()][..])
    );
    assert_eq!(word(&report, "alpha"), "winner", "who was not tested is ranked, and named");
    assert!(report.terminal_whole(200, false).contains("Not tested for `survives freeze`: alpha, beta."));
}

#[test]
fn capacities_are_ranked_without_who_broke_the_promise_on_its_card() {
    let card = lab(|name, run| run.counts.acked_lost = Some(u64::from(name == "alpha") * 5)).report();
    let mut searched = crate::capacity::lab().report();
    let standings = |report: &Report| -> Vec<String> {
        report.capacities().iter().map(|found| found.json()["standing"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(standings(&searched), ["winner", "behind"]);
    assert!(card.tests(Promise::Freeze) && !searched.tests(Promise::Freeze));
    searched.hold_to(Promise::Freeze, &[card]).unwrap();
    assert_eq!(standings(&searched), ["left out", "alone"]);
    let said = searched.terminal_whole(200, false);
    assert!(said.contains("alpha (5 of 1000 acknowledged messages lost)"), "{said}");
}

#[test]
fn slow_consumers_and_full_disks_test_promises_of_their_own() {
    let mut lab = Lab::new(
        "[axes]\nsystem = [\"delta\", \"stream\"]\nqos = [1]\nrate = [100]\n[parts.slow]\nconsume = [50]\n\
         [parts.disk]\nfault = [\"fill disk of server at 1s for 1s\"]\n",
    );
    let cells = pubmark_model::plan::cells(&lab.study).unwrap();
    for cell in &cells {
        lab.run(&cell.label(), 1, |run| {
            let is_slow = cell.axes["part"] == "slow";
            run.counts.acked = 100;
            run.counts.acked_lost = Some(u64::from(is_slow == (cell.system.name == "stream")));
        });
    }
    for (promise, broke, kept) in [(Promise::SlowConsumer, "stream", "delta"), (Promise::FullDisk, "delta", "stream")] {
        let mut report = lab.report();
        report.hold_to(promise, &[]).unwrap();
        let outcome = report.promise().unwrap();
        assert_eq!((outcome.broken[0].system.as_str(), outcome.kept[0].as_str()), (broke, kept), "{promise}");
        assert_eq!((outcome.broken[0].acked, outcome.broken.len(), outcome.kept.len()), (100, 1, 1));
    }
}
