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

/// So many runs of one results folder are all in the page one by one.
const RUNS_WHOLE: usize = 2_500;
/// Of more runs so many are. A page of tens of thousands has thousands of cells,
/// whose figures and curves take the room.
const RUNS_MAX: usize = 1_000;

/// The runs that are in the page one by one, as indices: all, or where they are
/// many the first of each cell, as many of each as there is room for. Figures and
/// curves are of all runs nevertheless.
pub fn chosen(report: &Report) -> Vec<usize> {
    let all = report.runs().len();
    if all <= RUNS_WHOLE {
        return (0..all).collect();
    }
    let mut seen = vec![0; report.cells().len()];
    let mut places: Vec<(usize, usize)> = Vec::with_capacity(all);
    for (index, cell) in report.cells_of_runs().iter().enumerate() {
        places.push((seen[*cell], index));
        seen[*cell] += 1;
    }
    // The first runs of all cells, then the second ones, as long as there is room.
    places.sort_unstable();
    let mut chosen: Vec<usize> = places.into_iter().take(RUNS_MAX).map(|(_, index)| index).collect();
    chosen.sort_unstable();
    chosen
}

/// What is not in the page, and where it is.
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
    chosen(report).into_iter().map(|index| pack(&report.runs()[index])).collect()
}

fn pack(run: &RunRecord) -> String {
    let bare = RunRecord { histograms: TimeFigures::none(), ..run.clone() };
    let json = bare.to_json().unwrap_or_default();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let bytes = encoder.write_all(&json).and_then(|()| encoder.finish()).unwrap_or_default();
    STANDARD.encode(bytes)
}
