//! The command that a page gives for repeating a cell.

use pubmark_model::plan;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_report::{Records, Report, page};
use pubmark_study::registry;
use serde_json::Value;

/// Splits a command line of plain and single-quoted words as a shell does.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

#[test]
fn of_every_cell_of_every_study_makes_that_cell_alone() {
    for included in registry::STUDIES {
        let parse = |text: &str, only: &[(String, String)]| {
            let reading = ReadOptions { only, ..ReadOptions::default() };
            Study::parse("study.toml", text, &registry::built_in, &reading).unwrap_or_else(|error| panic!("{error}"))
        };
        let study = parse(included.text, &[]);
        let resolved = study.to_toml();
        let report = Report::of(study, &Records::default()).unwrap();
        let data: Value = serde_json::from_str(&page::data_json(&[&report])).unwrap();
        let cells = data["page"]["results"][0]["cells"].as_array().unwrap();
        let cells: Vec<&Value> = cells.iter().filter(|cell| cell["status"] != "skipped").collect();
        assert!(!cells.is_empty());
        // Every seventh, so that the larger studies do not take minutes.
        for cell in cells.iter().step_by(if cells.len() > 100 { 7 } else { 1 }) {
            let words = words(cell["command"].as_str().unwrap());
            assert_eq!(&words[..3], ["pubmark", "run", "study.toml"]);
            let only: Vec<(String, String)> = words[3..]
                .chunks(2)
                .map(|pair| {
                    assert_eq!(pair[0], "--only");
                    let (axis, value) = pair[1].split_once('=').unwrap();
                    (axis.to_owned(), value.to_owned())
                })
                .collect();
            let narrowed = plan::cells(&parse(&resolved, &only)).unwrap();
            let axes: Vec<Value> = narrowed.iter().map(|cell| Value::Object(cell.axes.clone())).collect();
            // A flow is measured beside the others.
            let mut wanted = cell["axes"].clone();
            wanted.as_object_mut().unwrap().remove("flow");
            assert_eq!(axes, [wanted], "{}: {}", included.name, cell["command"]);
        }
    }
}
