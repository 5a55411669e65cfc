//! A study file of any bytes: what parses is written and reads back to the
//! same study, and its plan is bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_model::plan::{MAX_CELLS, cells, order};
use pubmark_model::study::{ReadOptions, Study};
use pubmark_study::registry::built_in as find;

fuzz_target!(|text: &str| {
    for quick in [false, true] {
        let reading = ReadOptions { quick, ..ReadOptions::default() };
        let study = match Study::parse("study.toml", text, &find, &reading) {
            Ok(study) => study,
            Err(errors) => {
                assert!(!errors.errors.is_empty() && !errors.to_string().is_empty());
                continue;
            }
        };
        let written = study.to_toml();
        let again = Study::parse("resolved", &written, &find, &ReadOptions::default());
        let again = again.unwrap_or_else(|errors| panic!("{errors}\n{written}"));
        assert_eq!(Study { quick, ..again }, study, "{written}");
        if let Ok(cells) = cells(&study) {
            assert!((1..=MAX_CELLS).contains(&cells.len()));
            let kept = cells.iter().filter(|cell| cell.skipped.is_none()).count();
            if kept < 1_000 {
                assert_eq!(order(&study, &cells).len(), kept * study.repeats() as usize);
            }
        }
    }
});
