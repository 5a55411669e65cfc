//! A file of run records with any bytes in it: what is read is written and
//! reads back to the same records.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_report::read_records_from as read;

fuzz_target!(|bytes: &[u8]| {
    let records = match read(bytes, "runs.jsonl".into()) {
        Ok(records) => records,
        Err(error) => return assert!(error.to_string().starts_with("runs.jsonl:")),
    };
    let lines: Vec<String> = records.runs.iter().map(|run| serde_json::to_string(run).unwrap() + "\n").collect();
    let again = read(lines.concat().as_bytes(), "again".into()).unwrap();
    assert_eq!(again.runs, records.runs);
    assert!(!again.torn);
});
