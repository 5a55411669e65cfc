//! Reading `runs.jsonl`: a run record a line.

use pubmark_files::{self as files, Links};
use pubmark_model::line::JsonLine;
use pubmark_model::record::{OLDEST_SCHEMA, RECORD_BYTES_MAX, Recovery, RunRecord, SCHEMA};
use pubmark_model::times::TimeFigures;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The records of a results folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// The runs in the order in which they ended, one for each cell and repeat.
    pub runs: Vec<RunRecord>,
    /// True if the last line is incomplete because the program was killed while writing it. That
    /// run is not among the records.
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
        /// Description of the problem.
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
    /// A line is longer than [`RECORD_BYTES_MAX`].
    #[error(
        "{path}:{line}: longer than {RECORD_BYTES_MAX} bytes, which no run record is; \
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
    match RecordFile::open(dir)? {
        Some(file) => collected(|each| file.each(each)),
        None => Ok(Records::default()),
    }
}

/// Reads records from anywhere; `path` is what errors name.
///
/// # Errors
/// As [`read_records`].
pub fn read_records_from(input: impl BufRead, path: PathBuf) -> Result<Records, ReadError> {
    collected(|each| each_record(input, &path, each))
}

fn collected(
    read: impl FnOnce(&mut dyn FnMut(RunRecord, Line)) -> Result<bool, ReadError>,
) -> Result<Records, ReadError> {
    let mut runs = Vec::new();
    let torn = read(&mut |run, _| runs.push(run))?;
    let read = runs.len();
    let keep = latest(&runs);
    only(&mut runs, &keep);
    Ok(Records { superseded: read - runs.len(), runs, torn })
}

/// Place of a record in its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    /// Its number, from 1.
    number: usize,
    /// Its first byte.
    at: u64,
    /// Its length with its end, bytes.
    bytes: usize,
}

/// The records of a results folder, one at a time, and any of them once more.
#[derive(Debug)]
pub(crate) struct RecordFile {
    file: File,
    path: PathBuf,
}

impl RecordFile {
    /// Opens the records of a folder; `None` if the folder has no run yet.
    pub fn open(dir: &Path) -> Result<Option<RecordFile>, ReadError> {
        let path = dir.join("runs.jsonl");
        match files::open(&path, Links::Refuse) {
            Ok(file) => Ok(Some(RecordFile { file, path })),
            Err(error) if error.kind() == io::ErrorKind::NotFound && dir.is_dir() => Ok(None),
            Err(source) => Err(ReadError::Io { path, source }),
        }
    }

    /// Each record in the order of the lines, those that a later one supersedes
    /// among them. Whether the last line breaks off.
    pub fn each(&self, each: &mut dyn FnMut(RunRecord, Line)) -> Result<bool, ReadError> {
        each_record(BufReader::new(&self.file), &self.path, each)
    }

    /// A record once more.
    pub fn again(&self, line: Line) -> Result<RunRecord, ReadError> {
        record(&self.text(line)?, &self.path, line.number)
    }

    /// The histograms of a record, without the rest of it.
    pub fn histograms(&self, line: Line) -> Result<TimeFigures<Option<String>>, ReadError> {
        /// Fields of a record that name its histograms.
        #[derive(Deserialize)]
        struct Distributions {
            schema: u32,
            #[serde(default)]
            intended_latency_ns: Option<IgnoredAny>,
            histograms: TimeFigures<Option<String>>,
        }
        let read: Distributions = serde_json::from_slice(&self.text(line)?).map_err(|source| ReadError::Line {
            path: self.path.clone(),
            line: line.number,
            source,
        })?;
        let mut histograms = read.histograms;
        if counts_from_due_time(read.schema, read.intended_latency_ns.is_some()) {
            histograms.intended_latency.clone_from(&histograms.latency);
        }
        Ok(histograms)
    }

    fn text(&self, line: Line) -> Result<Vec<u8>, ReadError> {
        let mut text = vec![0; line.bytes];
        let read = self.file.read_exact_at(&mut text, line.at);
        read.map_err(|source| ReadError::Io { path: self.path.clone(), source })?;
        Ok(text)
    }
}

fn each_record(mut input: impl BufRead, path: &Path, each: &mut dyn FnMut(RunRecord, Line)) -> Result<bool, ReadError> {
    let (mut line, mut at, mut torn) = (Vec::new(), 0, false);
    for number in 1.. {
        line.clear();
        let limit = RECORD_BYTES_MAX as u64 + 1;
        let bytes = match (&mut input).take(limit).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(bytes) => bytes,
            Err(source) => return Err(ReadError::Io { path: path.to_owned(), source }),
        };
        let here = Line { number, at, bytes };
        at += bytes as u64;
        let ended = line.last() == Some(&b'\n');
        if !ended && line.len() > RECORD_BYTES_MAX {
            return Err(ReadError::TooLong { path: path.to_owned(), line: number });
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match record(&line, path, number) {
            Ok(run) => each(run, here),
            Err(ReadError::Line { .. }) if !ended => torn = true,
            Err(error) => return Err(error),
        }
    }
    Ok(torn)
}

fn record(line: &[u8], path: &Path, number: usize) -> Result<RunRecord, ReadError> {
    /// Fields that every schema has.
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

/// A record of an older version with what it has under today's names: in layout
/// 1 the headline latency counted from the due time. What a fault cost is told by
/// figures that older records have too.
fn understood(mut run: RunRecord) -> RunRecord {
    if counts_from_due_time(run.schema, run.times.intended_latency.is_some()) {
        run.times.intended_latency.clone_from(&run.times.latency);
        run.histograms.intended_latency.clone_from(&run.histograms.latency);
    }
    run.recovery = run.recovery.or_else(|| Recovery::of(&run));
    run
}

/// True if the headline latency of a record counts from the due time: in schema 1, unless it also
/// has one that does.
fn counts_from_due_time(schema: u32, has_intended: bool) -> bool {
    schema < SCHEMA && !has_intended
}

/// Returns which records count: of several of one cell and repeat, the last.
pub(crate) fn latest(runs: &[RunRecord]) -> Vec<bool> {
    let mut last = HashMap::new();
    for (index, run) in runs.iter().enumerate() {
        last.insert((place(&run.cell), run.repeat), index);
    }
    let mut keep = vec![false; runs.len()];
    last.into_values().for_each(|index| keep[index] = true);
    keep
}

/// Leaves those that are to be kept.
pub(crate) fn only<T>(all: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    all.retain(|_| keep.next() == Some(&true));
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
