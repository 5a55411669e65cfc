//! The records in the page, each compressed by itself.

use crate::light_records;
use crate::report::Report;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// The runs that are in the page one by one, as indices.
pub fn chosen(report: &Report) -> Vec<usize> {
    light_records::chosen(report.cells_of_runs(), report.cells().len())
}

/// Returns a remark on data that is not in the page, and where to find it.
pub fn left_out(report: &Report) -> Option<String> {
    let (all, shown) = (report.runs().len(), chosen(report).len());
    (shown < all).then(|| {
        format!(
            "{shown} of {all} runs are in this page one by one; figures and curves are of all of them. The rest is in \
             runs.jsonl."
        )
    })
}

/// The chosen records of a report: JSON without the histograms, gzip, base64.
pub fn packed(report: &Report) -> Vec<String> {
    chosen(report).into_iter().map(|index| pack(&report.evidence(index))).collect()
}

fn pack(json: &[u8]) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let bytes = encoder.write_all(json).and_then(|()| encoder.finish()).unwrap_or_default();
    STANDARD.encode(bytes)
}
