//! Rows of traces, in a file of the run's folder from which its agents read them.

use crate::context::RunError;
use crate::lead::AgentResources;
use pubmark_model::profile::trace::trace_file;
use pubmark_model::protocol::Flow;
use pubmark_model::workload::Workload;
use std::fs::File;
use std::io::{BufWriter, Write};

/// Writes the rows that the flows of a run replay, as far as they are due before the end of its window, for agents in
/// these locations.
///
/// # Errors
/// If a file cannot be written.
pub fn write(flows: &[Flow], seats: &[AgentResources]) -> Result<(), RunError> {
    let mut folders: Vec<&str> = seats.iter().map(|seat| seat.scratch.as_str()).collect();
    folders.sort_unstable();
    folders.dedup();
    let files = folders.iter().flat_map(|folder| flows.iter().enumerate().map(move |flow| (*folder, flow)));
    for (folder, (index, Flow { workload, .. })) in files {
        let path = trace_file(folder, index);
        write_rows(workload, &path).map_err(RunError::io(path))?;
    }
    Ok(())
}

fn write_rows(workload: &Workload, path: &str) -> std::io::Result<()> {
    let Some(trace) = workload.rate.trace() else { return Ok(()) };
    let to_ns = workload.window_ns().unwrap_or(0).saturating_add(workload.warmup_ns);
    let mut file = BufWriter::new(File::create(path)?);
    for row in trace.rows().encoded().take(trace.rows_before(to_ns) as usize) {
        file.write_all(&row)?;
    }
    file.flush()
}
