//! A file of published figures of any bytes: what parses are finite values of
//! figures that there are, each at one place once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_model::reference::parse;
use pubmark_model::figure::Figure;
use pubmark_study::registry::built_in as find;
use std::collections::HashSet;

fuzz_target!(|text: &str| {
    let words: Vec<&str> = Figure::columns().map(Figure::key).collect();
    match parse("reference.csv", text, &find, &words, None) {
        Err(errors) => assert!(!errors.errors.is_empty() && !errors.to_string().is_empty()),
        Ok(rows) => {
            let mut seen = HashSet::new();
            for row in rows {
                assert!(row.value.is_finite() && words.contains(&row.figure.as_str()));
                assert!(seen.insert((format!("{:?}", row.axes), row.figure)), "twice at one place");
            }
        }
    }
});
