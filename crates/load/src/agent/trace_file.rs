//! The file from which an agent reads the rows of a trace.

use pubmark_model::profile::trace::{TRACE_ROW_LEN, TraceRows};
use pubmark_model::profile::{Profile, Rate};
use pubmark_model::workload::Workload;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};

/// Error of the file of a trace.
#[derive(Debug, thiserror::Error)]
#[error("the rows of the trace cannot be read from {path}: {source}")]
pub struct TraceFileError {
    path: String,
    source: std::io::Error,
}

/// Returns a workload with the rows of its trace, if it replays one.
///
/// # Errors
/// If the file cannot be read, or its last row is incomplete.
pub fn load(workload: Workload) -> Result<Workload, TraceFileError> {
    let Some((trace, path)) = workload.rate.trace().and_then(|trace| Some((trace, trace.file()?))) else {
        return Ok(workload);
    };
    let mut rows = TraceRows::new(trace.rows().name(), trace.rows().flow());
    rows.set_sha256(trace.rows().sha256());
    read(path, &mut rows).map_err(|source| TraceFileError { path: path.to_owned(), source })?;
    rows.set_loaded();
    let rate = Rate::Due(Profile::Trace(trace.with_rows(rows)));
    Ok(Workload { rate, ..workload })
}

fn read(path: &str, rows: &mut TraceRows) -> std::io::Result<()> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let length = file.get_ref().metadata()?.len();
    if !length.is_multiple_of(TRACE_ROW_LEN as u64) {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let mut row = [0; TRACE_ROW_LEN];
    for _ in 0..length / TRACE_ROW_LEN as u64 {
        file.read_exact(&mut row)?;
        rows.push_encoded(row);
    }
    Ok(())
}
