//! Published figures: their source in a study, and their file.

use crate::support::*;
use pubmark_model::diagnostic::Diagnostics;
use pubmark_model::reference::{ROWS_MAX, Row, parse};
use pubmark_model::study::{Source, Study};
use serde_json::json;

const STUDY: &str = r#"
title = "t"
[axes]
system = ["alpha", "beta"]
payload = ["1KB", "64KiB"]
rate = [1000, "max"]
options.depth = [1, 2]
[reference]
source = "Author and Other, 2020, \"A title\""
machine = "two\nlines"
"#;

const FIGURES: [&str; 2] = ["latency_p50_ns", "delivered_per_s"];

fn study() -> Study {
    good(STUDY)
}

fn read_as(text: &str, study: Option<&Study>) -> Result<Vec<Row>, Diagnostics> {
    parse("reference.csv", text, &find, &FIGURES, study)
}

#[track_caller]
fn refused_rows(text: &str, wanted: &[&str]) {
    match read_as(text, Some(&study())) {
        Ok(rows) => panic!("accepted: {rows:?}"),
        Err(errors) => assert_eq!(shown(&errors), wanted),
    }
}

#[test]
fn a_study_names_its_source_and_keeps_it_when_it_is_written() {
    let study = study();
    let source =
        Source { source: "Author and Other, 2020, \"A title\"".into(), machine: "two\nlines".into(), note: None };
    assert_eq!(study.reference, Some(source));
    let written = study.to_toml();
    assert_eq!(good(&written).reference, study.reference);
    let alone = Study { reference: None, ..study };
    assert!(Study::measures_the_same(&written, &alone.to_toml(), false), "what is measured does not change with it");
}

#[test]
fn a_source_is_whole() {
    refused(
        &with("[reference]\nsource = \"s\"\nnotes = \"n\""),
        &[
            "2:2 [reference] needs `source` and `machine`",
            "4:1 unknown key `notes` in [reference] | did you mean `note`?",
        ],
    );
}

#[test]
fn rows_are_read_with_values_as_the_study_writes_them() {
    let text = "system,payload,rate,options.depth,figure,value,note\r\n\
                alpha,1KB,1000,2,latency_p50_ns,1e3,\"a, b\"\r\n\
                \r\n\
                beta,,max,,delivered_per_s,2.5,\r\n";
    let rows = read_as(text, Some(&study())).unwrap();
    let axes = json!({"system": "alpha", "payload": 1000, "rate": 1000, "options.depth": 2});
    assert_eq!(rows[0].axes, *axes.as_object().unwrap());
    assert_eq!(
        (rows[0].figure.as_str(), rows[0].value, rows[0].note.as_deref()),
        ("latency_p50_ns", 1e3, Some("a, b"))
    );
    assert_eq!(rows[1].axes, *json!({"system": "beta", "rate": "max"}).as_object().unwrap(), "empty is any");
    assert_eq!((rows[1].value, rows[1].note.as_deref()), (2.5, None));
    let in_cells = study().axes.iter().find(|axis| axis.name == "rate").unwrap().values.clone();
    assert_eq!(rows.iter().map(|row| row.axes["rate"].clone()).collect::<Vec<_>>(), in_cells);
}

#[test]
fn every_mistake_is_told_at_once_with_its_line() {
    refused_rows(
        "sistem,payload,figure,figure,note\nalpha,1KB,latency_p50_ns,latency_p50_ns,\n",
        &[
            "1:1 the column `sistem` is not an axis of this study | did you mean `system`?",
            "1:1 the column `figure` is there twice",
            "1:1 there is no column `value`",
        ],
    );
    refused_rows(
        "system,payload,figure,value\n\
         gamma,1KB,latency_p50_ns,1\n\
         alpha,1XB,latency_p50_ns,1\n\
         alpha,1KB,latency_p50,1\n\
         alpha,1KB,latency_p50_ns,fast\n\
         alpha,1KB,latency_p50_ns,NaN\n\
         alpha,1KB,latency_p50_ns,-1\n\
         alpha,1KB,latency_p50_ns\n\
         alpha,1KB,latency_p50_ns,2\n\
         alpha,1000,latency_p50_ns,3\n",
        &[
            "2:1 unknown system `gamma` | `pubmark systems` lists them",
            "3:1 payload: `1XB` is not a size: write a number and one of B, KB, MB, GB (powers of 1000) or KiB, MiB, GiB (powers of 1024)",
            "4:1 `latency_p50` is not a figure | did you mean `latency_p50_ns`?",
            "5:1 `fast` is not a number from 0 on",
            "6:1 `NaN` is not a number from 0 on",
            "7:1 `-1` is not a number from 0 on",
            "8:1 3 fields, where the first line has 4",
            "10:1 `latency_p50_ns` of this place is in line 9 already",
        ],
    );
    let help = "separate them by commas, and write decimals with a point: spreadsheets call this CSV (comma delimited)";
    for (mark, name) in [(";", "semicolons"), ("\t", "tabs")] {
        let text = "system;payload;figure;value\nalpha;1KB;latency_p50_ns;2,5\n".replace(';', mark);
        refused_rows(&text, &[&format!("1:1 the columns are separated by {name} | {help}")]);
    }
    refused_rows("", &["the file is empty | its first line names axes, `figure` and `value`"]);
}

#[test]
fn a_study_that_was_cut_down_may_have_lost_an_axis() {
    let text = "subscribers,figure,value\n8,delivered_per_s,1\n";
    refused_rows(
        text,
        &[
            "1:1 the column `subscribers` is not an axis of this study | known: system, payload, rate, options.depth, figure, value, note",
        ],
    );
    assert_eq!(read_as(text, None).unwrap()[0].axes["subscribers"], 8);
    let wrong = read_as("subscriber,figure,value\n8,delivered_per_s,1\n", None).unwrap_err();
    assert_eq!(shown(&wrong), ["1:1 `subscriber` cannot be an axis | did you mean `subscribers`?"]);
}

#[test]
fn a_hostile_file_gives_few_and_plain_errors() {
    let long = format!("system,figure,value\nalpha,{}\u{1b}[2J,1\n", "x".repeat(1 << 20));
    let errors = read_as(&long, None).unwrap_err();
    assert!(errors.errors[0].message.len() < 900, "{:?}", errors.errors[0].message.len());
    for column in ["system", "payload", "figure"] {
        let text = format!("{column},value\n{}\u{1b}[2J,1\n", "x".repeat(100));
        let errors = read_as(&text, None).unwrap_err();
        assert!(errors.errors.iter().all(|error| !error.message.contains('\u{1b}')), "{column}");
    }
    let many = "a,figure,value\n".to_owned() + &"1,2,3\n".repeat(10_000);
    assert_eq!(read_as(&many, None).unwrap_err().errors.len(), 51);
    let rows = (0..=ROWS_MAX).map(|row| format!("{},delivered_per_s,1\n", row + 16)).collect::<String>();
    let errors = read_as(&("payload,figure,value\n".to_owned() + &rows), None).unwrap_err();
    assert!(shown(&errors)[0].contains("more than 100000 rows"), "{:?}", shown(&errors));
}
