use crate::lab::{Lab, cell, fail, systems};
use pubmark_model::fault::Script;
use pubmark_model::figure::Figure;
use pubmark_model::record::{AgentShare, Counts, FigureGroup, RunRecord};
use pubmark_report::{ReadError, Report, ReportError, RunCounts, read_records};
use serde_json::{Value, json};
use tempfile::tempdir;

fn lab() -> Lab {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\"]\n");
    lab.latencies("alpha", &[1_000, 1_100]);
    lab
}

#[test]
fn what_was_written_is_read() {
    let (dir, lab) = (tempdir().unwrap(), lab());
    lab.write(dir.path(), "");
    assert_eq!(read_records(dir.path()).unwrap(), lab.records);
}

#[test]
fn a_folder_without_records_has_none_yet_and_no_folder_is_an_error() {
    let dir = tempdir().unwrap();
    assert!(read_records(dir.path()).unwrap().runs.is_empty());
    let error = read_records(&dir.path().join("nowhere")).unwrap_err();
    assert!(matches!(error, ReadError::Io { .. }), "{error}");
}

#[test]
fn a_torn_last_line_is_left_out_and_told() {
    let (dir, lab) = (tempdir().unwrap(), lab());
    let whole = serde_json::to_string(&lab.records.runs[0]).unwrap();
    lab.write(dir.path(), &whole[..whole.len() / 2]);
    let records = read_records(dir.path()).unwrap();
    assert_eq!((records.runs.len(), records.torn), (2, true));
    let report = Report::load(dir.path(), &systems).unwrap();
    assert!(report.terminal(80, false).contains("The last record is incomplete"));
}

#[test]
fn a_torn_character_counts_as_torn_too() {
    let (dir, lab) = (tempdir().unwrap(), lab());
    lab.write(dir.path(), "");
    let path = dir.path().join("runs.jsonl");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend(b"{\"schema\":1,\"cell\":{\"a\":\"\xc3");
    std::fs::write(&path, bytes).unwrap();
    assert!(read_records(dir.path()).unwrap().torn);
}

#[test]
fn a_whole_last_line_without_its_end_is_a_record() {
    let (dir, lab) = (tempdir().unwrap(), lab());
    let mut third = lab.records.runs[0].clone();
    third.repeat = 3;
    lab.write(dir.path(), &serde_json::to_string(&third).unwrap());
    let records = read_records(dir.path()).unwrap();
    assert_eq!((records.runs.len(), records.torn), (3, false));
}

#[test]
fn a_bad_line_is_named() {
    let (dir, lab) = (tempdir().unwrap(), lab());
    lab.write(dir.path(), "{\"schema\":1}\n");
    let error = read_records(dir.path()).unwrap_err();
    assert!(matches!(error, ReadError::Line { line: 3, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("runs.jsonl:3: not a run record"), "{text}");
    assert!(text.contains("remove the line"), "{text}");
}

#[test]
fn a_record_of_another_layout_is_refused() {
    let (dir, lab) = (tempdir().unwrap(), lab());
    for found in [0, 3] {
        lab.write(dir.path(), &format!("{{\"schema\":{found}}}\n"));
        let error = read_records(dir.path()).unwrap_err();
        assert!(matches!(error, ReadError::Schema { line: 3, found: seen, .. } if seen == found), "{error}");
        assert!(error.to_string().contains("this version reads layouts 1 to 2"), "{error}");
    }
}

/// What is not known here, in a record as a later pubmark may write it.
#[test]
fn a_reason_that_a_later_version_knows_is_kept_and_shown() {
    let (dir, mut lab) = (tempdir().unwrap(), lab());
    lab.records.runs.iter_mut().for_each(|run| {
        run.verdict.valid = false;
        run.agents.push(AgentShare::default());
    });
    let mut lines = Vec::new();
    for run in &lab.records.runs {
        let mut line = serde_json::to_value(run).unwrap();
        line["verdict"]["reasons"] = json!([
            {"reason": "clock-of-the-moon", "evidence": "it is full", "figures": ["counts", "latency_p99", "tides"]},
        ]);
        line["verdict"]["notes"] = json!([{"part": "satellite", "evidence": "it fell silent"}]);
        line["agents"][0]["cannot_tell"] = json!(["pauses", "tides"]);
        lines.push(line);
    }
    lab.write(dir.path(), "");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(dir.path().join("runs.jsonl"), text).unwrap();
    let run = &read_records(dir.path()).unwrap().runs[0];
    let again = serde_json::to_value(run).unwrap();
    let words = |line: &Value| [line["verdict"]["reasons"][0]["reason"].clone(), line["verdict"]["notes"].clone()];
    assert_eq!(words(&again), words(&lines[0]), "as it stands");
    assert_eq!(run.verdict.reasons[0].figures, [FigureGroup::Counts, FigureGroup::LatencyP99]);
    assert_eq!(again["agents"][0]["cannot_tell"], json!(["pauses"]));
    let report = Report::load(dir.path(), &systems).unwrap();
    let said = report.terminal(120, false);
    assert!(said.contains("clock-of-the-moon") && said.contains("it is full"), "{said}");
    let page = dir.path().join("report.html");
    Report::write_html(&[&report], &page).unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("clock-of-the-moon") && page.contains("A later pubmark made this record"), "it is explained");
}

/// The same of what happened to a part: of the study, of a record's place in it,
/// of what was asked for, and of what was done.
#[test]
fn a_fault_that_a_later_version_knows_is_kept_and_shown() {
    const KNOWN: &str = "stop server at 500ms for 200ms";
    const LATER: &str = "throttle disk at 500ms for 200ms";
    let dir = tempdir().unwrap();
    let mut lab =
        Lab::new(&format!("[axes]\nsystem = [\"delta\"]\nfault = [\"none\", \"{KNOWN}\"]\n[run]\nrepeats = 1\n"));
    for fault in ["none", KNOWN] {
        lab.run(&format!("delta fault={fault}"), 1, |run| {
            run.counts = Counts { sent: 100, expected: 100, delivered: 100, ..Counts::default() };
            run.faults = Script::parse(fault).unwrap();
        });
    }
    let event = json!({"what": "throttle", "who": "disk", "share": 0.5, "at_ns": 501_000_000, "until_ns": 702_000_000});
    let lines = lab.records.runs.iter().map(|run| {
        let mut line = serde_json::to_value(run).unwrap();
        if !run.faults.is_empty() {
            line["cell"]["fault"] = LATER.into();
            line["faults"] =
                json!([{"what": "throttle", "who": "disk", "at_ns": 500_000_000, "for_ns": 200_000_000, "share": 0.5}]);
            line["fault_log"] = json!([event]);
        }
        format!("{line}\n")
    });
    std::fs::write(dir.path().join("runs.jsonl"), lines.collect::<String>()).unwrap();
    std::fs::write(dir.path().join("study.toml"), lab.study.to_toml().replace(KNOWN, LATER)).unwrap();
    let records = read_records(dir.path()).unwrap();
    assert_eq!(records.runs[1].faults.to_string(), LATER);
    let again = serde_json::to_value(&records.runs[1]).unwrap();
    assert_eq!([&again["fault_log"][0]["what"], &again["fault_log"][0]["who"]], ["throttle", "disk"]);
    let report = Report::load(dir.path(), &systems).unwrap();
    assert_eq!(report.counts(), RunCounts { valid: 2, ..RunCounts::default() }, "both are of their cells");
    let said = report.terminal(120, false);
    assert!(said.contains(LATER), "{said}");
    let page = dir.path().join("report.html");
    Report::write_html(&[&report], &page).unwrap();
    assert!(std::fs::read_to_string(page).unwrap().contains(LATER));
}

#[test]
fn a_run_made_again_takes_the_place_of_the_one_that_failed() {
    let dir = tempdir().unwrap();
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\"]\n[run]\nrepeats = 2\n");
    lab.run("alpha", 1, |run| fail(run, "no server"));
    lab.run("alpha", 2, |_| {});
    lab.run("alpha", 1, |run| run.remarks.push("again".into()));
    lab.write(dir.path(), "");
    let records = read_records(dir.path()).unwrap();
    assert_eq!((records.runs.len(), records.superseded), (2, 1));
    assert_eq!(records.runs[1].remarks, ["again"]);
    let report = Report::load(dir.path(), &systems).unwrap();
    let expected = RunCounts { valid: 2, made_again: 1, ..RunCounts::default() };
    assert_eq!(report.counts(), expected);
    let said = "2 runs: 2 ok, 0 unreliable, 0 failed; 1 repeated, because the one before was unreliable or failed.";
    assert!(report.terminal(120, false).contains(said), "{}", report.terminal(120, false));
    assert!(report.markdown().contains(said));
    // The same of records that are not read from a folder.
    assert_eq!(Report::of(lab.study, &records).unwrap().counts(), expected);
}

#[test]
fn the_page_and_the_json_say_how_many_runs_were_made_again() {
    let dir = tempdir().unwrap();
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\"]\n[run]\nstop = \"decided\"\n");
    for _ in 0..3 {
        lab.run("alpha", 1, |_| {});
    }
    lab.run("beta", 1, |_| {});
    lab.write(dir.path(), "");
    let report = Report::load(dir.path(), &systems).unwrap();
    assert_eq!(report.json()["made_again"], 2, "{}", report.json());
    let page = dir.path().join("report.html");
    Report::write_html(&[&report], &page).unwrap();
    assert!(std::fs::read_to_string(page).unwrap().contains("\"made_again\":2"));
}

#[test]
fn a_damaged_histogram_is_an_error_that_names_the_cell() {
    let mut lab = lab();
    lab.records.runs[1].histograms.latency = Some("not base64!".into());
    let error = Report::of(lab.study, &lab.records).unwrap_err();
    assert!(matches!(error, ReportError::Histogram { .. }));
    assert!(error.to_string().contains("alpha"), "{error}");
}

#[test]
fn a_record_of_no_cell_is_told() {
    let mut lab = lab();
    lab.records.runs[1].cell.insert("system".into(), "beta".into());
    let text = lab.report().terminal(80, false);
    assert!(text.contains("Records of no cell of this study, ignored: 1."), "{text}");
}

#[test]
fn the_environment_says_whether_the_study_was_cut_down() {
    let (dir, lab) = (tempdir().unwrap(), lab());
    lab.write(dir.path(), "");
    let quick = || Report::load(dir.path(), &systems).map(|report| report.terminal(80, false));
    assert!(!quick().unwrap().contains("shortened"));
    let path = dir.path().join("environment.json");
    std::fs::write(&path, "{\"quick\": true}").unwrap();
    assert!(quick().unwrap().contains("a quick, shortened study"));
    std::fs::write(&path, "{").unwrap();
    assert!(matches!(quick(), Err(ReportError::Environment { .. })));
}

#[test]
fn a_folder_without_study_says_what_it_lacks() {
    let dir = tempdir().unwrap();
    let error = Report::load(dir.path(), &systems).unwrap_err().to_string();
    assert!(error.contains("study.toml"), "{error}");
    assert!(error.contains("is this a results folder?"), "{error}");
}

#[test]
fn a_record_from_before_there_were_faults_is_read() {
    let mut lab = lab();
    let run = &mut lab.records.runs[0];
    run.connections = Some(Default::default());
    let share = AgentShare { name: "all".into(), ..AgentShare::default() };
    run.agents.push(share);
    let run = run.clone();
    let mut old = serde_json::to_value(&run).unwrap();
    let forget = |object: &mut Value, fields: &[&str]| {
        for field in fields {
            assert!(object.as_object_mut().unwrap().remove(*field).is_some(), "{field}");
        }
    };
    forget(&mut old, &["faults", "fault_log"]);
    forget(&mut old["counts"], &["late"]);
    forget(&mut old["connections"], &["reconnected", "reconnect_ns"]);
    forget(&mut old["agents"][0], &["pauses"]);
    forget(&mut old["verdict"], &["notes"]);
    assert_eq!(serde_json::from_value::<RunRecord>(old).unwrap(), run);
}

/// A folder as pubmark 0.1 wrote it; its verdicts are edited.
const OLD: [(&str, &str); 2] =
    [("study.toml", include_str!("schema-1/study.toml")), ("runs.jsonl", include_str!("schema-1/runs.jsonl"))];

fn old() -> Report {
    let dir = tempdir().unwrap();
    OLD.iter().for_each(|(name, text)| std::fs::write(dir.path().join(name), text).unwrap());
    Report::load(dir.path(), &systems).unwrap()
}

#[test]
fn a_folder_of_the_first_layout_is_reported_with_dashes_for_what_it_lacks() {
    let report = old();
    let value = |column| cell(&report, "alpha").figures.get(column).map(|estimate| estimate.value);
    assert_eq!(report.counts(), RunCounts { valid: 3, invalid: 1, ..RunCounts::default() });
    assert!(value(Figure::LATENCY_P50).unwrap() > 1_000.0);
    assert_eq!(value(Figure::INTENDED_P50), value(Figure::LATENCY_P50), "it counted from the due time");
    assert_eq!(value(Figure::INTENDED_P99), value(Figure::LATENCY_P99));
    assert!(value(Figure::OWN_LAG_P50).is_some());
    assert_eq!(value(Figure::RECEIVE_LAG_P50), None);
    // A reason that does not say what it touches touches all.
    assert_eq!(cell(&report, "kernel").runs_for(FigureGroup::Counts), 1);
    let text = report.terminal(120, false);
    assert!(text.contains("latencies contain the load generator's own timer"), "{text}");
}

#[test]
fn headline_latencies_of_the_two_layouts_are_not_the_same() {
    let new = lab().report();
    assert!(!new.means_the_same_by_latency(&old()) && !old().means_the_same_by_latency(&new));
    assert!(new.means_the_same_by_latency(&new) && old().means_the_same_by_latency(&old()));
    assert!(!new.terminal(120, false).contains("own timer"));
}

/// A folder as pubmark 0.2 wrote it, with what it does not know put in by hand, as
/// a later one would: a key, a table, an axis, a figure, a claim about it, fields;
/// and what a record may lack. No system of it is known but by its own files.
const NEW: [(&str, &str); 4] = [
    ("study.toml", include_str!("schema-2/study.toml")),
    ("runs.jsonl", include_str!("schema-2/runs.jsonl")),
    ("systems/gone.toml", include_str!("schema-2/systems/gone.toml")),
    ("systems/future.toml", include_str!("schema-2/systems/future.toml")),
];

#[test]
fn a_folder_is_whole_by_itself() {
    let dir = tempdir().unwrap();
    std::fs::create_dir(dir.path().join("systems")).unwrap();
    NEW.iter().for_each(|(name, text)| std::fs::write(dir.path().join(name), text).unwrap());
    let report = Report::load(dir.path(), &|_| None).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.counts(), RunCounts { partly: 4, ..RunCounts::default() });
    assert!(report.claims().is_empty(), "nothing can be said of a figure that is not known");
    let text = report.terminal(120, false);
    assert!(text.contains("gone") && text.contains("future") && text.contains("compression"), "{text}");
    let data: Value = serde_json::from_str(&pubmark_report::page::data_json(&[&report])).unwrap();
    let systems = data["page"]["results"][0]["systems"].as_array().unwrap();
    let kind = |name: &str| systems.iter().find(|system| system["name"] == name).map(|system| system["kind"].clone());
    assert_eq!(kind("gone"), Some("broker".into()), "by the folder's own file");
    assert_eq!(kind("future"), Some("library".into()), "whose file is of another version");
    report.write_csv(&dir.path().join("summary.csv")).unwrap();
    Report::write_html(&[&report], &dir.path().join("report.html")).unwrap();
    // A study's name for a system is no path.
    let study = NEW[0].1.replace("\"gone\"", "\"../../gone\"");
    std::fs::write(dir.path().join("study.toml"), study).unwrap();
    assert_eq!(Report::load(dir.path(), &|_| None).unwrap().counts().missing, 2);
}
