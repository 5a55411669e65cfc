//! Reports from lightened records are equal to reports from complete ones.

use super::*;
use crate::page;
use pubmark_model::figure::backlog;
use pubmark_model::line::JsonLine;
use pubmark_model::record::{
    AgentShare, ClockPair, ConnectionFigures, Deployment, Finding, FlowRecord, InterfaceShare, Reason, UsageSeries,
    WireFigures,
};
use pubmark_model::times::TimeFigures;
use pubmark_model::tuning::{SettingDifference, Use};
use pubmark_stats::Histogram;
use serde_json::json;
use std::collections::BTreeMap;
use tempfile::{TempDir, tempdir};

const STUDY: &str = include_str!("../../tests/it/schema-2/study.toml");
const RECORDS: &str = include_str!("../../tests/it/schema-2/runs.jsonl");
const BROKER: &str = include_str!("../../tests/it/schema-2/systems/gone.toml");

/// A record with something in every field that a sentence or a figure could be of.
fn full(line: &str, repeat: u32) -> RunRecord {
    let mut run = RunRecord::from_json(line.as_bytes()).unwrap();
    let mut latency = Histogram::latency();
    for message in 0..2_000_u64 {
        latency
            .record(100_000 + 37 * ((message * 7_919 + u64::from(repeat) * 31) % 500) + run.system.len() as u64 * 50);
    }
    let text = latency.encode();
    run.repeat = repeat;
    run.started = format!("2026-01-01T00:00:{:02}Z", repeat % 60);
    run.times = TimeFigures { latency: latency.summary(), service_latency: latency.summary(), ..run.times };
    run.histograms = TimeFigures { latency: Some(text.clone()), service_latency: Some(text), ..run.histograms };
    run.verdict = Default::default();
    run.verdict.valid = true;
    run.versions.insert("version".into(), json!(format!("1.{}", repeat / 3)));
    run.options.insert("turbo".into(), json!(repeat));
    run.applied.insert("turbo".into(), json!(true));
    let difference = SettingDifference {
        name: "turbo".into(),
        value: json!(repeat.is_multiple_of(2)),
        stock: None,
        why: "it is fast".into(),
        moves: vec![pubmark_model::record::FigureGroup::LatencyP50],
    };
    let tuning = run.settings.get_or_insert_default();
    (tuning.asked, tuning.differences) = (if repeat % 4 == 3 { Use::Stock } else { Use::Tuned }, vec![difference]);
    run.deployment = Some(Deployment { kind: "native".into(), command: vec!["gone".into()], ..Deployment::default() });
    run.server = Some(Default::default());
    run.connections = Some(ConnectionFigures {
        wanted: 3,
        opened: 3,
        first_loss: Some("reset".into()),
        time_ns: latency.summary(),
        ..ConnectionFigures::default()
    });
    run.wire = Some(WireFigures { sent_bytes: 9_000, interfaces: vec![InterfaceShare::default()] });
    run.clocks = vec![ClockPair { from: "a".into(), to: "b".into(), bound_ns: 40, ..ClockPair::default() }];
    let runtime = pubmark_model::protocol::RuntimeFigures { allocated_bytes: Some(77), ..Default::default() };
    let made = BTreeMap::from([("call".to_owned(), format!("send {}", repeat % 5))]);
    // Agents of the other system report nothing about a runtime.
    let runtime = Some(runtime).filter(|_| run.system == "gone");
    let agent = AgentShare { name: "all".into(), runtime, made, ..AgentShare::default() };
    run.agents = vec![AgentShare { made: BTreeMap::new(), ..agent.clone() }, agent];
    run.flows = vec![FlowRecord { name: "main".into(), ..FlowRecord::default() }];
    run.usage_series = Some(UsageSeries { slice_ns: 5, ..UsageSeries::default() });
    run.remarks = vec!["a remark".into()];
    run.series.delivered[0] = 0;
    run
}

fn against(run: &mut RunRecord, figures: &[pubmark_model::record::FigureGroup]) {
    run.verdict.valid = false;
    let evidence = format!("seen in {}", run.repeat);
    run.verdict.reasons.push(Finding { reason: Reason::NotSteady, evidence, figures: figures.into(), overload: false });
}

/// A folder of runs of two cells, so many of each: some do not count, one failed, one
/// was made again, one is of no cell, the last breaks off.
fn folder(each: u32) -> TempDir {
    let dir = tempdir().unwrap();
    std::fs::write(dir.path().join("study.toml"), STUDY).unwrap();
    std::fs::create_dir(dir.path().join("systems")).unwrap();
    std::fs::write(dir.path().join("systems/gone.toml"), BROKER).unwrap();
    let mut text = String::new();
    let mut write = |run: &RunRecord| text.push_str(&(serde_json::to_string(run).unwrap() + "\n\n"));
    let lines: Vec<&str> = RECORDS.lines().take(2).collect();
    for repeat in 1..=each {
        for line in &lines {
            let mut run = full(line, repeat);
            match (run.system.as_str(), repeat) {
                ("gone", 1) => {
                    run.versions.insert("library".into(), "superseded".into());
                    write(&run);
                    run.error = Some("no server".into());
                    run.versions.clear();
                    against(&mut run, &pubmark_model::record::FigureGroup::all());
                }
                ("gone", 3) => against(&mut run, &[pubmark_model::record::FigureGroup::LatencyP99]),
                ("future", 2) => {
                    run.cell.insert("compression".into(), "off".into());
                    run.versions.insert("library".into(), "of no cell".into());
                }
                _ => {}
            }
            write(&run);
        }
    }
    let half = &lines[0][..lines[0].len() / 2];
    std::fs::write(dir.path().join("runs.jsonl"), text + half).unwrap();
    dir
}

fn whole(dir: &Path) -> Report {
    Report::read(dir, &|_| None, |_| read_records(dir).map(Kept::whole)).unwrap()
}

/// Everything that leaves a report.
fn shown(report: &Report) -> [String; 5] {
    [
        page::html(&[report], false),
        report.terminal_whole(200, true),
        report.markdown(),
        report.csv().unwrap(),
        report.json().to_string(),
    ]
}

#[test]
fn a_report_that_keeps_little_of_each_record_says_what_one_of_whole_records_says() {
    // Six runs are all in the page; of 1,300 only some are.
    for each in [6, 1_300] {
        let dir = folder(each);
        let (light, whole) = (Report::load(dir.path(), &|_| None).unwrap(), whole(dir.path()));
        let texts = shown(&light).into_iter().zip(shown(&whole));
        for (number, (light, whole)) in texts.enumerate() {
            assert!(light == whole, "form {number} of {each} runs of a cell differs");
        }
        assert_eq!((light.runs().len(), light.strays, light.torn), (2 * each as usize - 1, 1, true));
        let said = light.terminal_whole(200, false);
        for text in ["turbo", "call send", "1 failed"] {
            assert!(said.contains(text), "{text} is told: {said}");
        }
        let histograms = |report: &Report| report.runs().iter().filter(|run| run.histograms.latency.is_some()).count();
        assert_eq!((histograms(&light), histograms(&whole)), (0, light.runs().len()));
        for (light, whole) in light.runs().iter().zip(whole.runs()) {
            assert!(backlog(whole) > 0.0);
            assert_eq!(backlog(light), backlog(whole), "a bound may ask for it");
        }
    }
}

#[test]
fn a_page_in_a_file_is_the_page_in_memory() {
    let dir = folder(3);
    let report = Report::load(dir.path(), &|_| None).unwrap();
    let path = dir.path().join("report.html");
    Report::write_html(&[&report, &report], &path).unwrap();
    assert!(std::fs::read_to_string(&path).unwrap() == page::html(&[&report, &report], false));
    let left = std::fs::read_dir(dir.path()).unwrap().flatten();
    assert!(left.map(|entry| entry.file_name()).all(|name| !name.to_string_lossy().ends_with(".new")));
}

#[test]
fn a_damaged_distribution_of_a_folder_is_an_error_that_names_its_cell() {
    let dir = folder(2);
    let path = dir.path().join("runs.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut run = full(RECORDS.lines().next().unwrap(), 2);
    run.histograms.service_latency = Some("not base64!".into());
    let line = serde_json::to_string(&run).unwrap();
    std::fs::write(&path, line + "\n" + &text).unwrap();
    assert!(Report::load(dir.path(), &|_| None).is_ok(), "a later run stands for it");
    run.repeat = 9;
    std::fs::write(&path, serde_json::to_string(&run).unwrap() + "\n" + &text).unwrap();
    let error = Report::load(dir.path(), &|_| None).unwrap_err();
    assert!(matches!(&error, ReportError::Histogram { cell, .. } if cell.contains("gone")), "{error}");
}
