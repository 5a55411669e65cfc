//! Where delivery is guaranteed or a fault happens to a part, what became of each
//! message comes first, on every surface and at every width.

use crate::lab::{Lab, latency, spoil_for};
use pubmark_model::record::{Component, FigureGroup, Note, Reason};
use pubmark_report::page;
use serde_json::Value;

const FORGOTTEN: &str = "4303 of 30000 acknowledged messages were lost: they had not arrived 10.0 s after the window";

/// One system that loses what it acknowledged and one that does not, under QoS 1.
fn lossy() -> Lab {
    let mut lab =
        Lab::new("[workload]\nrate = 1000\nduration = \"30s\"\nqos = 1\n[axes]\nsystem = [\"alpha\", \"beta\"]\n");
    for (system, lost) in [("alpha", 4_303), ("beta", 0)] {
        lab.run(system, 1, |run| {
            latency(run, &[(12_345_678, 20_000), (5_200_000_000, 5_000)]);
            let counts = &mut run.counts;
            (counts.sent, counts.acked, counts.expected) = (30_000, 30_000, 30_000);
            (counts.delivered, counts.lost, counts.acked_lost) = (30_000 - lost, lost, Some(lost));
            counts.duplicated = 17;
            if lost > 0 {
                spoil_for(run, Reason::GeneratorSaturated, &[FigureGroup::LatencyP99]);
                run.verdict.notes.push(Note { part: Component::Server, evidence: FORGOTTEN.into() });
            }
        });
    }
    lab
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn the_messages_come_first_at_every_width() {
    let report = lossy().report();
    for width in [60, 80, 120, 200, 300] {
        let text = report.terminal(width, false);
        let table = &text[text.find("\nLatency (at given rates)\n").unwrap()..];
        let row = |start: &str| words(table.lines().find(|line| line.starts_with(start)).unwrap());
        assert_eq!(row("system ")[..6], ["system", "acked", "acked", "lost", "lost", "duplicated"], "{text}");
        assert_eq!(row("alpha ")[..5], ["alpha", "30000", "4303", "4303", "17"], "{text}");
        assert_eq!(row("beta ")[..5], ["beta", "30000", "0", "0", "17"], "{text}");
        let whole = words(&text).join(" ");
        assert!(whole.contains("alpha 4303 of 30000."), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        // A throughput goes before the share that it may not stand without.
        assert!(!row("system ").contains(&"msg/s") || row("system ").contains(&"delivered"), "{text}");
    }
    let eighty = report.terminal(80, false);
    let head = eighty.lines().find(|line| line.starts_with("system ")).unwrap();
    assert!(head.contains("p50") && head.contains("p99") && head.ends_with("verdict"), "{head}");
}

#[test]
fn the_loss_is_told_before_the_reasons_against_the_run() {
    let report = lossy().report();
    let text = report.terminal(10_000, false);
    let (told, against) = (text.find(FORGOTTEN).unwrap(), text.find("generator-saturated").unwrap());
    assert!(told < against, "{text}");
    let markdown = report.markdown();
    assert!(markdown.contains("| system | acked | acked lost | lost | duplicated |"), "{markdown}");
    assert!(markdown.contains("| alpha | 30000 | 4303 | 4303 | 17 |"), "{markdown}");
    let first = markdown.find("lost in 1 of 2 cells").unwrap();
    assert!(first < markdown.find("| system |").unwrap(), "it stands among the answers: {markdown}");
}

#[test]
fn the_page_is_told_the_same() {
    let data: Value = serde_json::from_str(&page::data_json(&[&lossy().report()])).unwrap();
    let result = &data["page"]["results"][0];
    let first = &result["findings"][0];
    assert_eq!((&first["about"], &first["outcome"]), (&"delivery".into(), &"lost".into()));
    let says = "Acknowledged messages were lost in 1 of 2 cells: alpha 4303 of 30000.";
    assert_eq!(first["text"], says);
    assert_eq!(result["cells"][0]["delivery_first"], true);
    let run = &result["records"][0];
    assert_eq!([&run["acked"], &run["acked_lost"], &run["lost"], &run["duplicated"]], [30_000, 4_303, 4_303, 17]);
}

#[test]
fn nothing_lost_is_said_too_and_a_single_cell_by_its_system() {
    let mut lab = lossy();
    lab.records.runs.remove(0);
    let text = words(&lab.report().terminal(80, false)).join(" ");
    assert!(text.contains("None of 30000 acknowledged messages was lost."), "{text}");
    let mut lab = Lab::new("[workload]\nqos = 2\n[axes]\nsystem = [\"alpha\"]\n[run]\nrepeats = 2\n");
    for repeat in [1, 2] {
        lab.run("alpha", repeat, |run| {
            (run.counts.sent, run.counts.acked, run.counts.acked_lost) = (20_000, 500, Some(7))
        });
    }
    let text = words(&lab.report().terminal(80, false)).join(" ");
    assert!(text.contains("alpha lost 14 of 1000 acknowledged messages in 2 runs."), "{text}");
}

#[test]
fn without_a_guarantee_or_a_fault_nothing_is_said() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\"]\n");
    lab.latencies("alpha", &[100_000, 100_000]);
    let text = lab.report().terminal(300, false);
    for word in ["acked", "duplicated", "acknowledged"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    // A fault at QoS 0: nothing is acknowledged, and what was lost is the result.
    let mut lab = Lab::new(
        "[workload]\nduration = \"30s\"\n[faults]\nfault = \"kill server at 5s for 5s\"\n[axes]\nsystem = [\"delta\"]\n",
    );
    lab.run("delta", 1, |run| (run.counts.delivered, run.counts.lost) = (19_533, 467));
    let text = lab.report().terminal(80, false);
    let head = words(text.lines().find(|line| line.starts_with("system ")).unwrap());
    assert_eq!(head[..3], ["system", "lost", "duplicated"], "{text}");
    assert!(text.lines().any(|line| words(line).starts_with(&["delta", "467", "0"])), "{text}");
}
