//! What the end of a server cost: a row a cell, on every surface.

use crate::lab::{Lab, latency, systems};
use pubmark_model::fault::Script;
use pubmark_model::protocol::Stalls;
use pubmark_model::record::{FaultEvent, Recovery, RunRecord, Series};
use pubmark_report::Report;
use pubmark_report::page;
use serde_json::{Value, json};
use tempfile::tempdir;

const MS: u64 = 1_000_000;
const FAULT: &str = "kill server at 2s for 2s";

fn lab(fault: &str) -> Lab {
    Lab::new(&format!(
        "[workload]\nrate = 1000\nduration = \"10s\"\nqos = 1\n[faults]\nfault = \"{fault}\"\n\
         [axes]\nsystem = [\"delta\"]\npayload = [64, 128]\n"
    ))
}

fn counted(run: &mut RunRecord) {
    latency(run, &[(200_000, 7_000), (1_500 * MS, 3_000)]);
    run.window_ns = 10_000 * MS;
    let counts = &mut run.counts;
    (counts.sent, counts.acked, counts.expected) = (10_000, 10_000, 10_000);
    (counts.delivered, counts.lost, counts.acked_lost) = (9_993, 7, Some(7));
    (counts.duplicated, counts.late) = (11, 3_000);
}

const COST: Recovery = Recovery {
    silence_ns: Some(2_735 * MS),
    beyond_ns: Some(735 * MS),
    caught_up_after_ns: Some(993 * MS),
    watched_ns: Some(5_000 * MS),
    prospect: None,
    listens_after_ns: Some(167 * MS),
    clients_back_after_ns: Some(772 * MS),
    clients_not_back: Some(0),
};

/// One cell that was caught up, and one that was not and did not get all clients back.
fn told() -> Lab {
    let mut lab = lab(FAULT);
    lab.run("delta 64B", 1, |run| {
        counted(run);
        run.recovery = Some(COST);
    });
    lab.run("delta 128B", 1, |run| {
        counted(run);
        let (caught_up_after_ns, clients_back_after_ns) = (None, None);
        run.recovery = Some(Recovery { caught_up_after_ns, clients_back_after_ns, clients_not_back: Some(3), ..COST });
    });
    lab
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_row_a_cell_fits_a_narrow_screen_with_what_was_put_together_by_hand() {
    let text = told().report().terminal(80, false);
    let table = text.split("What the restart cost\n").nth(1).unwrap_or_else(|| panic!("{text}"));
    let lines: Vec<String> = table.lines().take(4).map(words).collect();
    assert_eq!(lines[0], "system payload beyond caught up all back late acked lost lost", "{text}");
    assert_eq!(lines[2], "delta 64B 735 ms 993 ms 772 ms 3.00k 7 7", "{text}");
    assert_eq!(lines[3], "delta 128B 735 ms ≥ 5.00 s 3 not 3.00k 7 7", "{text}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{text}");
    let table = words(table);
    assert!(table.contains("exact to 500 ms") && table.contains("it was not, when the window ended"), "{text}");
    assert!(table.contains("hidden at 80 columns: duplicated, silence, listens"), "{text}");
    let markdown = told().report().markdown();
    let row = "| delta | 64B | 735 ms | 993 ms | 772 ms | 3.00k | 7 | 7 | 11 | 2.73 s | 167 ms |";
    assert!(markdown.contains("## What the restart cost") && markdown.contains(row), "{markdown}");
}

#[test]
fn what_was_never_taken_stands_beside_what_was_lost() {
    let mut lab = told();
    lab.run("delta 64B", 2, |run| {
        counted(run);
        (run.counts.not_sent, run.recovery) = (4_441, Some(COST));
    });
    let text = lab.report().terminal(80, false);
    let table = text.split("What the restart cost\n").nth(1).unwrap();
    assert!(words(table.lines().next().unwrap()).contains("all back not sent late acked lost"), "{text}");
    assert!(words(table).contains("not sent: due and never taken by the server"), "{text}");
    assert!(!told().report().terminal(80, false).contains("not sent"), "where all was sent it is not said");
}

#[test]
fn what_was_no_restart_is_not_called_one_and_what_had_no_fault_has_no_row() {
    let with = |fault: &str| {
        let mut lab = lab(fault);
        lab.run("delta 64B", 1, |run| {
            counted(run);
            run.recovery = (fault != "none").then_some(COST);
        });
        lab.report().terminal(100, false)
    };
    let (cut, none) = (with("cut link at 2s for 2s"), with("none"));
    assert!(cut.contains("What the outage cost\n") && !cut.contains("restart"), "{cut}");
    assert!(!none.contains(" cost\n") && !none.contains("caught up"), "{none}");
}

#[test]
fn files_and_the_page_have_the_same_figures() {
    let report = told().report();
    let rows = report.summary_json();
    let of = |row: usize, key: &str| rows[row][key].clone();
    let keys =
        ["outage_beyond_ns", "caught_up_after_ns", "clients_back_after_ns", "fault_silence_ns", "listens_after_ns"];
    let ns = [735, 993, 772, 2_735, 167].map(|ms| json!(ms * MS));
    assert_eq!(keys.map(|key| of(0, key)), ns);
    assert_eq!((of(0, "caught_up_is_lower_bound"), of(0, "clients_not_back")), (json!(false), json!(0)));
    assert_eq!((of(1, "caught_up_is_lower_bound"), of(1, "caught_up_after_ns")), (json!(true), json!(5_000 * MS)));
    assert_eq!((of(1, "clients_back_after_ns"), of(1, "clients_not_back")), (Value::Null, json!(3)));
    let csv = report.csv().unwrap();
    let place = csv.lines().next().unwrap().split(',').position(|name| name == "outage_beyond_ns").unwrap();
    assert_eq!(csv.lines().nth(1).unwrap().split(',').nth(place), Some("735000000"));
    let page: Value = serde_json::from_str(&page::data_json(&[&report])).unwrap();
    assert!(page.to_string().contains("caught_up_after_ns"));
}

/// A record of a version that did not tell what a fault cost has all that it is
/// computed from.
#[test]
fn older_records_have_it_from_their_own_figures() {
    let mut lab = lab(FAULT);
    lab.run("delta 64B", 1, |run| {
        counted(run);
        run.faults = Script::parse(FAULT).unwrap();
        let fault = &run.faults.0[0];
        run.fault_log = vec![FaultEvent {
            what: fault.what,
            who: fault.who,
            host: None,
            member: None,
            at_ns: Some(2_001 * MS),
            until_ns: Some(4_004 * MS),
            peer: None,
            listens_ns: None,
            note: None,
        }];
        run.stalls = Some(Stalls::one(2_600 * MS, 2_000 * MS));
        // Half a second each: 500 messages, none for four of them, and then all at once.
        let mut delivered = vec![500; 20];
        delivered[4..9].copy_from_slice(&[1, 0, 0, 0, 0]);
        delivered[9] = 2_992;
        let mut latency_max_ns = vec![2 * MS; 20];
        latency_max_ns[9] = 2_600 * MS;
        run.series = Series { slice_ns: 500 * MS, delivered, latency_max_ns, ..Series::default() };
    });
    let folder = tempdir().unwrap();
    lab.write(folder.path(), "");
    assert!(!std::fs::read_to_string(folder.path().join("runs.jsonl")).unwrap().contains("recovery"));
    let report = Report::load(folder.path(), &systems).unwrap();
    let row = &report.summary_json()[0];
    assert_eq!(row["outage_beyond_ns"], json!(600 * MS));
    // The slice with the backlog begins 4.5 s into the window, and ends at 5 s.
    assert_eq!(row["caught_up_after_ns"], json!(996 * MS));
    assert_eq!((&row["listens_after_ns"], &row["clients_back_after_ns"]), (&Value::Null, &Value::Null));
}
