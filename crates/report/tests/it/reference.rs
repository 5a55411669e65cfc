//! Published figures, held against the cells of a results folder.

use crate::lab::{Lab, systems};
use pubmark_model::figure::Figure;
use pubmark_report::{Reference, Report, ReportError};
use std::path::Path;

const STUDY: &str = "[workload]\nduration = \"1s\"\n[run]\nrepeats = 1\n\
    [axes]\nsystem = [\"alpha\", \"beta\"]\npayload = [\"1KB\", \"2KB\"]\n\
    [reference]\nsource = \"A, 2020\"\nmachine = \"M\"\nnote = \"N\"\n";

fn load(dir: &Path, csv: Option<&str>) -> Result<Report, ReportError> {
    Lab::new(STUDY).write(dir, "");
    let path = dir.join("reference.csv");
    match csv {
        Some(csv) => std::fs::write(path, csv).unwrap(),
        None => drop(std::fs::remove_file(path)),
    }
    Report::load(dir, &systems)
}

#[test]
fn published_figures_stand_beside_the_cells_that_they_are_about() {
    let dir = tempfile::tempdir().unwrap();
    let csv = "system,payload,subscribers,figure,value,note\n\
               beta,2KB,,latency_p50_ns,5,one\n\
               ,1KB,,delivered_per_s,7,any system\n\
               alpha,3KB,,delivered_per_s,8,no such cell\n\
               alpha,1KB,4,delivered_per_s,9,an axis that was left out\n";
    let report = load(dir.path(), Some(csv)).unwrap();
    let reference = report.reference().unwrap();
    assert_eq!((reference.source.source.as_str(), reference.source.machine.as_str()), ("A, 2020", "M"));
    let labels: Vec<(String, Figure, f64)> =
        reference.matches().map(|(cell, row)| (report.cells()[cell].cell.label(), row.figure, row.value)).collect();
    let wanted = [
        ("alpha 1KB", Figure::DELIVERED, 7.0),
        ("beta 1KB", Figure::DELIVERED, 7.0),
        ("beta 2KB", Figure::LATENCY_P50, 5.0),
    ];
    assert_eq!(labels, wanted.map(|(label, column, value)| (label.to_owned(), column, value)));
    assert_eq!(reference.unmatched, [2, 3]);
    assert_eq!(reference.matches().last().unwrap().1.note.as_deref(), Some("one"));
}

#[test]
fn a_folder_without_them_has_none_and_a_bad_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert!(load(dir.path(), None).unwrap().reference().is_none());
    let error = load(dir.path(), Some("system,figure,value\nalpha,speed,x\n")).unwrap_err().to_string();
    assert!(error.contains("reference.csv:2:1: `speed` is not a figure"), "{error}");
    assert!(error.contains("`x` is not a number"), "{error}");
}

#[test]
fn an_author_is_told_of_columns_that_the_study_does_not_have() {
    let csv = "subscribers,figure,value\n4,delivered_per_s,9\n";
    let error = Reference::check("reference.csv", csv, &systems, &Lab::new(STUDY).study).unwrap_err();
    assert!(error.to_string().contains("`subscribers` is not an axis of this study"), "{error}");
}
