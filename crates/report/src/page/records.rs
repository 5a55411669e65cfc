//! The records in the page, each compressed by itself.

use crate::report::Report;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use pubmark_model::line::JsonLine;
use pubmark_model::record::RunRecord;
use pubmark_model::times::TimeFigures;
use std::io::Write;

/// All records of a report: JSON without the histograms, gzip, base64.
pub fn packed(report: &Report) -> Vec<String> {
    report.runs().iter().map(pack).collect()
}

fn pack(run: &RunRecord) -> String {
    let bare = RunRecord { histograms: TimeFigures::none(), ..run.clone() };
    let json = bare.to_json().unwrap_or_default();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let bytes = encoder.write_all(&json).and_then(|()| encoder.finish()).unwrap_or_default();
    STANDARD.encode(bytes)
}
