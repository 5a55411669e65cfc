use super::*;
use pubmark_judge::empty_record::blank;
use pubmark_model::plan::{Place, cells};
use pubmark_model::record::{FigureGroup, Finding, Reason};
use pubmark_model::study::ReadOptions;
use pubmark_study::registry;

/// Describes a study in which all runs of one system are spoilt for this reason.
fn told_of(reason: Reason) -> String {
    let text = "title = \"t\"\nquestion = \"q\"\n[workload]\ntransport = \"tcp\"\nrate = 1000\n\
                [axes]\nsystem = [\"nng\", \"zeromq\"]\n[run]\nstop = \"decided\"\n";
    let study = Study::parse("t", text, &registry::built_in, &ReadOptions::default()).unwrap();
    let cells = cells(&study).unwrap();
    let mut runs = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        for repeat in 1..=3 {
            let mut record = blank(cell, None, Place { repeat, position: 0 }, String::new());
            record.verdict.valid = index == 0;
            if index == 1 {
                record.verdict.reasons =
                    vec![Finding { reason, evidence: "seen".into(), figures: FigureGroup::all(), overload: false }];
            }
            runs.push(record);
        }
    }
    // One run replaces another of an earlier call.
    let records = Records { runs, superseded: 1, ..Records::default() };
    let report = Report::of(study, &records).unwrap();
    let over = BudgetOver { end: BudgetEnd::Decided, given_up: vec![1], run_ns: vec![SECOND; cells.len()] };
    told(&report, &over, false, 60 * SECOND)
}

#[test]
fn a_machine_that_never_gets_quiet_ends_in_a_word_that_says_so() {
    let noisy = told_of(Reason::NoisyMachine);
    assert!(noisy.contains("the machine is busy (zeromq: noisy-machine)"), "{noisy}");
    assert!(noisy.contains("what is open cannot be measured further"), "{noisy}");
    let lossy = told_of(Reason::MessagesLost);
    assert!(lossy.contains("unreliable runs (zeromq: messages-lost)"), "{lossy}");
}

#[test]
fn runs_made_again_are_counted_by_the_records() {
    let said = told_of(Reason::NoisyMachine);
    assert!(said.contains("7 runs, 1 of them repeated because the one before was unreliable or failed"), "{said}");
}
