//! A row of the table of figures is enough: each figure is in claims, questions,
//! objectives, gates, CSV, JSON and on the page.

use crate::lab::{Lab, latency, systems};
use pubmark_model::figure::{Figure, Unit};
use pubmark_model::objective::Objective;
use pubmark_model::question::Precision;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_report::compare::Gates;
use pubmark_report::page::Content;
use serde_json::Value;
use std::path::Path;

/// A bound with the unit of a figure.
fn bound(figure: Figure) -> &'static str {
    match figure.unit() {
        Unit::Ns => "5ms",
        Unit::Bytes => "5MB",
        Unit::BytesPerS => "5MB/s",
        Unit::Share => "5%",
        Unit::PerS | Unit::Count | Unit::PerMessage | Unit::Cores | Unit::Multiple => "5",
    }
}

#[test]
fn each_figure_is_in_all_places_by_its_row_alone() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\"]\n");
    lab.run("alpha", 1, |run| latency(run, &[(300, 20_000)]));
    let report = lab.report();
    let csv = report.csv().unwrap();
    let columns: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let json = report.json();
    let page: Value = serde_json::from_str(&Content::of(&[&report], false).data_json()).unwrap();
    let on_page: Vec<&Value> = page["page"]["figures"].as_array().unwrap().iter().map(|row| &row["key"]).collect();
    for figure in Figure::columns() {
        let key = figure.key();
        assert!(columns.contains(&key) && columns.contains(&&*format!("{key}_lo")), "{key} in summary.csv");
        assert!(json[0].get(key).is_some(), "{key} in JSON");
        assert!(on_page.contains(&&Value::from(key)), "{key} on the page");
        for name in figure.names() {
            let study = |table: &str| {
                let text = format!("title = \"T\"\nquestion = \"Q\"\n[axes]\nsystem = [\"alpha\", \"beta\"]\n{table}");
                Study::parse("s", &text, &systems, &ReadOptions::default()).map_err(|error| error.to_string())
            };
            let ranks = figure.description().better.is_some() && figure.is_comparable();
            let claim = format!("[[claims]]\nid = \"1\"\nsays = \"s\"\nfigure = \"{name}\"\nbest = [\"alpha\"]\n");
            let asked = format!("[questions]\nbest = [\"{name}\"]\n");
            for table in [claim, asked] {
                match study(&table) {
                    Ok(study) => assert!(ranks && study.ranked_figures().contains(&figure), "{table}"),
                    Err(error) => assert!(!ranks, "{error}"),
                }
            }
            let objective = format!("{name} < {}", bound(figure));
            assert_eq!(Objective::parse(&objective).is_ok(), figure.is_of_run(), "{objective}");
            assert_eq!(Precision::parse(&format!("{name} ±5%")).is_ok(), !figure.is_fact(), "{name}");
            let change = Gates::parse(&[format!("{name} > +5%")], &[], true);
            assert_eq!(change.is_ok(), figure.is_comparable(), "{name}: {change:?}");
        }
    }
}

/// What a figure costs: `backlog` is read from a record by its row, and nothing else
/// that makes files, tables or the page names it.
#[test]
fn a_figure_is_named_in_the_table_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut naming = Vec::new();
    for folder in ["crates/model/src", "crates/report/src", "crates/study/src", "crates/cli/src"] {
        walk(&root.join(folder), &mut |path, text| {
            if text.contains("Figure::BACKLOG") || text.contains("BACKLOG = \"backlog\"") {
                naming.push(path.strip_prefix(&root).unwrap().display().to_string());
            }
        });
    }
    assert_eq!(naming, ["crates/model/src/figure/table.rs"]);
}

fn walk(folder: &Path, look: &mut dyn FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => walk(&path, look),
            false => look(&path, &std::fs::read_to_string(&path).unwrap()),
        }
    }
}
