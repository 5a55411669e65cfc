//! Files that a study names, read from its folder: sizes of messages, and traces.

use pubmark_files::{Links, open, read_text};
use pubmark_import::trace::{TraceError, TraceFormat, TraceReader};
use pubmark_model::payload::{BodiesError, PayloadBodies, SizeFileError, read_sizes};
use pubmark_model::printable::hexadecimal;
use pubmark_model::profile::trace::{TraceFile, TraceRows};
use pubmark_model::study::Study;
use pubmark_model::units::{LONGEST, Ns, SECOND};
use ring::digest::{Context, SHA256};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Time by which a recording host's clock may be ahead of this one, s.
const AHEAD_S: i64 = 24 * 3_600;
/// Length of a read from a trace, bytes.
const BUFFER: usize = 1 << 18;

/// Error of a file that a study names.
#[derive(Debug, thiserror::Error)]
pub enum StudyFileError {
    /// The file cannot be read.
    #[error("`{key}{name}\"`: {path}: {source}: name a file by its path from the folder of the study", path = .path.display())]
    Unreadable {
        /// The beginning of the setting that names it.
        key: &'static str,
        /// Its name in the study.
        name: String,
        /// Its path.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The file has no sizes.
    #[error(transparent)]
    Sizes(#[from] SizeFileError),
    /// The file has no messages.
    #[error(transparent)]
    Bodies(#[from] BodiesError),
    /// The file is no trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The study is a resolved one, and names another file.
    #[error("{path} is not the trace of this study, which has the SHA-256 {sha256}: use that file, or remove [traces]", path = .path.display())]
    Other {
        /// Path of the file.
        path: PathBuf,
        /// Hash of the file that the study names.
        sha256: String,
    },
}

/// Reads the files of sizes and the traces that a study names and does not have yet, from `folder`. The study has the
/// sizes from here on, also in its resolved form, and the hashes of its traces.
///
/// # Errors
/// If a file cannot be read, or is damaged.
pub fn load(study: &mut Study, folder: &Path) -> Result<(), StudyFileError> {
    let unreadable = |key, name: &str, source| {
        let path = folder.join(name);
        StudyFileError::Unreadable { key, name: name.to_owned(), path, source }
    };
    for name in study.missing_sizes() {
        let text = read_text(&folder.join(&name), Links::Follow);
        let text = text.map_err(|source| unreadable("payload = \"file ", &name, source))?;
        let sizes = read_sizes(&name, &text)?;
        study.sizes.insert(name, sizes);
    }
    for name in study.missing_payloads() {
        let text = read_text(&folder.join(&name), Links::Follow);
        let text = text.map_err(|source| unreadable("payload_file = \"", &name, source))?;
        let bodies = PayloadBodies::of_lines(&name, &text)?;
        study.payloads.insert(name, bodies);
    }
    let (traces, flows) = study.missing_traces();
    for name in traces {
        let path = folder.join(&name);
        let file = open(&path, Links::Follow).map_err(|source| unreadable("trace = \"", &name, source))?;
        let trace = read_trace(&name, &path, file, &flows)?;
        match study.traces.get(&name) {
            Some(known) if known.sha256 != trace.sha256 => {
                return Err(StudyFileError::Other { path, sha256: known.sha256.clone() });
            }
            _ => drop(study.traces.insert(name, trace)),
        }
    }
    Ok(())
}

/// A file whose hash is made while it is read.
struct Hashed<R> {
    file: R,
    hash: Context,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = self.file.read(into)?;
        self.hash.update(&into[..length]);
        Ok(length)
    }
}

/// Reads a trace: all its rows, and those of each of these flows. A row takes 12 bytes, and the rows of one flow take
/// at most 768 MiB.
fn read_trace(name: &str, path: &Path, file: impl Read, flows: &[String]) -> Result<TraceFile, TraceError> {
    let latest_ns = u64::try_from(jiff::Timestamp::now().as_second() + AHEAD_S).unwrap_or(0).saturating_mul(SECOND);
    let mut reader = TraceReader::new(&path.display().to_string(), TraceFormat::Csv, latest_ns);
    let mut hashed = Hashed { file, hash: Context::new(&SHA256) };
    let mut sets: Vec<TraceRows> = Vec::with_capacity(flows.len() + 1);
    sets.push(TraceRows::new(name, None));
    sets.extend(flows.iter().map(|flow| TraceRows::new(name, Some(flow))));
    let mut times: Option<(Ns, Ns)> = None;
    reader.read_all(BufReader::with_capacity(BUFFER, &mut hashed), |line, row| {
        let (first_ns, last_ns) = *times.get_or_insert((row.time_ns, row.time_ns));
        if row.time_ns - last_ns > LONGEST {
            let days = (row.time_ns - last_ns) / SECOND / 86_400;
            let message = format!(
                "the time is {days} days after the one before it, and a run takes 30 days at most. Correct it, or end the file here"
            );
            return Err(TraceError { file: path.display().to_string(), line: Some(line), message });
        }
        times = Some((first_ns, row.time_ns));
        for rows in &mut sets {
            rows.note_flow(&row.flow);
            if rows.flow().is_none_or(|flow| *flow == *row.flow) {
                rows.push(row.time_ns - first_ns, row.bytes as u32, line);
            }
        }
        Ok(())
    })?;
    let sha256 = hexadecimal(hashed.hash.finish().as_ref());
    let rows = sets.into_iter().map(|mut rows| {
        rows.set_sha256(&sha256);
        rows.set_loaded();
        Arc::new(rows)
    });
    Ok(TraceFile { rows: rows.collect(), sha256 })
}
