//! Reading `runs.jsonl`: a run record a line.

use pubmark_model::line::JsonLine;
use pubmark_model::record::{OLDEST_SCHEMA, RunRecord, SCHEMA};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest line that is read, bytes: 64 MiB. At most one line is in memory
/// beside the records.
pub const LINE_BYTES_MAX: usize = 64 << 20;

/// The records of a results folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// The runs in the order in which they ended, one for each cell and repeat.
    pub runs: Vec<RunRecord>,
    /// Whether the last line breaks off, as it does where the program was
    /// killed while writing it. That run is not among the records.
    pub torn: bool,
    /// Records left out because a later one is of the same cell and repeat.
    pub superseded: usize,
}

/// Why records could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file or folder cannot be read.
    #[error("cannot read {path}: {source}; is this a results folder?", path = path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is not a run record.
    #[error(
        "{path}:{line}: not a run record: {source}; \
         remove the line, and `pubmark run --resume` makes the run again",
        path = path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A record has a layout that this version does not know.
    #[error(
        "{path}:{line}: record of layout {found}, this version reads layouts {OLDEST_SCHEMA} to {SCHEMA}; \
         use the pubmark that wrote it, or a newer one",
        path = path.display()
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The layout's version.
        found: u64,
    },
    /// A line is longer than [`LINE_BYTES_MAX`].
    #[error(
        "{path}:{line}: longer than {LINE_BYTES_MAX} bytes, which no run record is; \
         remove the line, and `pubmark run --resume` makes the run again",
        path = path.display()
    )]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
}

/// Reads the records of a results folder. A folder without `runs.jsonl` has
/// none yet. Blank lines are passed over.
///
/// # Errors
/// On a folder or file that cannot be read, and on the first line that is no
/// record, unless it is the last one and has no line end.
pub fn read_records(dir: &Path) -> Result<Records, ReadError> {
    let path = dir.join("runs.jsonl");
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound && dir.is_dir() => {
            return Ok(Records::default());
        }
        Err(source) => return Err(ReadError::Io { path, source }),
    };
    read_records_from(BufReader::new(file), path)
}

/// Reads records from anywhere; `path` is what errors name.
///
/// # Errors
/// As [`read_records`].
pub fn read_records_from(mut input: impl BufRead, path: PathBuf) -> Result<Records, ReadError> {
    let mut records = Records::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        match (&mut input).take(limit).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(source) => return Err(ReadError::Io { path, source }),
        }
        let ended = line.last() == Some(&b'\n');
        if !ended && line.len() > LINE_BYTES_MAX {
            return Err(ReadError::TooLong { path, line: number });
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match record(&line, &path, number) {
            Ok(run) => records.runs.push(run),
            Err(ReadError::Line { .. }) if !ended => records.torn = true,
            Err(error) => return Err(error),
        }
    }
    let read = records.runs.len();
    records.runs = latest(std::mem::take(&mut records.runs));
    records.superseded = read - records.runs.len();
    Ok(records)
}

fn record(line: &[u8], path: &Path, number: usize) -> Result<RunRecord, ReadError> {
    /// What every layout has in common.
    #[derive(Deserialize)]
    struct Layout {
        schema: u64,
    }
    if let Ok(Layout { schema }) = serde_json::from_slice(line)
        && !(u64::from(OLDEST_SCHEMA)..=u64::from(SCHEMA)).contains(&schema)
    {
        return Err(ReadError::Schema { path: path.to_owned(), line: number, found: schema });
    }
    let read = RunRecord::from_json(line);
    read.map(understood).map_err(|source| ReadError::Line { path: path.to_owned(), line: number, source })
}

/// A record of an older layout with what it has under today's names: in layout
/// 1 the headline latency counted from the due time.
fn understood(mut run: RunRecord) -> RunRecord {
    if run.schema < SCHEMA && run.times.intended_latency.is_none() {
        run.times.intended_latency.clone_from(&run.times.latency);
        run.histograms.intended_latency.clone_from(&run.histograms.latency);
    }
    run
}

/// Of several records of one cell and repeat the last, where it stands.
fn latest(runs: Vec<RunRecord>) -> Vec<RunRecord> {
    let mut last = HashMap::new();
    for (index, run) in runs.iter().enumerate() {
        last.insert((place(&run.cell), run.repeat), index);
    }
    let mut keep = vec![false; runs.len()];
    last.into_values().for_each(|index| keep[index] = true);
    let mut keep = keep.into_iter();
    runs.into_iter().filter(|_| keep.next() == Some(true)).collect()
}

/// A place on the axes as a key, the same whatever the axes' order.
pub(crate) fn place(axes: &Map<String, Value>) -> String {
    let sorted: BTreeMap<_, _> = axes.iter().collect();
    format!("{sorted:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_does_not_depend_on_the_order_of_axes() {
        let map = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let first = place(&map(r#"{"system":"a","rate":10}"#));
        assert_eq!(first, place(&map(r#"{"rate":10,"system":"a"}"#)));
        assert_ne!(first, place(&map(r#"{"rate":"10","system":"a"}"#)));
    }

    #[test]
    fn an_endless_line_is_refused_before_it_fills_memory() {
        let endless = BufReader::new(io::repeat(b' '));
        let error = read_records_from(endless, PathBuf::from("runs.jsonl")).unwrap_err();
        assert!(matches!(error, ReadError::TooLong { line: 1, .. }), "{error}");
    }
}
