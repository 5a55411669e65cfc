//! The results folder: records are appended and synced as soon as a run ends.

use pubmark_model::record::RunRecord;
use pubmark_model::reference;
use pubmark_model::study::without_reference;
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What went wrong with a results folder.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// Reading or writing failed.
    #[error("{path}: {source}{hint}", path = .path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
        /// The way out.
        hint: &'static str,
    },
    /// The folder holds results already.
    #[error("{path} holds results already: name another folder with --out, or go on with --resume", path = .0.display())]
    Occupied(PathBuf),
    /// There is nothing to go on with.
    #[error("{path} holds no results to go on with: leave --resume out", path = .0.display())]
    Nothing(PathBuf),
    /// The folder belongs to another study.
    #[error("{path} was made by another study, or with other settings: name another folder with --out, or repeat the flags of the first run", path = .0.display())]
    OtherStudy(PathBuf),
    /// A line is no record.
    #[error("{path}:{line}: not a run record ({reason}): move the file away, or mend the line", path = .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why not.
        reason: String,
    },
}

pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> ResultsError + '_ {
    move |source| {
        let hint = match source.kind() {
            std::io::ErrorKind::StorageFull => {
                ". Free some space, then go on with --resume: every finished run is kept"
            }
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                ". Name a folder that can be written with --out"
            }
            _ => "",
        };
        ResultsError::Io { path: path.to_owned(), source, hint }
    }
}

/// An open results folder.
pub struct Results {
    folder: PathBuf,
    runs: File,
    runs_path: PathBuf,
}

impl Results {
    /// Makes a folder for a study's results. An empty folder may exist.
    pub fn create(folder: &Path, study: &str, environment: &Value) -> Result<Results, ResultsError> {
        std::fs::create_dir_all(folder.join("logs")).map_err(io(folder))?;
        let runs_path = folder.join("runs.jsonl");
        if runs_path.exists() {
            return Err(ResultsError::Occupied(folder.to_owned()));
        }
        let study_path = folder.join("study.toml");
        std::fs::write(&study_path, study).map_err(io(&study_path))?;
        let environment_path = folder.join("environment.json");
        let text = serde_json::to_string_pretty(environment).unwrap_or_default();
        std::fs::write(&environment_path, text + "\n").map_err(io(&environment_path))?;
        let runs = OpenOptions::new().append(true).create_new(true).open(&runs_path).map_err(io(&runs_path))?;
        Ok(Results { folder: folder.to_owned(), runs, runs_path })
    }

    /// Opens the results of the same study, to go on. A line that was torn by
    /// a kill is cut off. Returns the records that are there.
    pub fn resume(folder: &Path, study: &str) -> Result<(Results, Vec<RunRecord>), ResultsError> {
        let runs_path = folder.join("runs.jsonl");
        if !runs_path.exists() {
            return Err(ResultsError::Nothing(folder.to_owned()));
        }
        let study_path = folder.join("study.toml");
        let before = std::fs::read_to_string(&study_path).map_err(io(&study_path))?;
        // What it is compared with changes nothing that is measured.
        if without_reference(&before) != without_reference(study) {
            return Err(ResultsError::OtherStudy(folder.to_owned()));
        }
        let logs = folder.join("logs");
        std::fs::create_dir_all(&logs).map_err(io(&logs))?;
        let mut runs = OpenOptions::new().read(true).append(true).open(&runs_path).map_err(io(&runs_path))?;
        let mut text = Vec::new();
        runs.read_to_end(&mut text).map_err(io(&runs_path))?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        runs.set_len(whole as u64).map_err(io(&runs_path))?;
        runs.seek(SeekFrom::End(0)).map_err(io(&runs_path))?;
        let mut records = Vec::new();
        for (index, line) in text[..whole].split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty())
        {
            let record = serde_json::from_slice(line).map_err(|error| ResultsError::Line {
                path: runs_path.clone(),
                line: index + 1,
                reason: error.to_string(),
            })?;
            records.push(record);
        }
        Ok((Results { folder: folder.to_owned(), runs, runs_path }, records))
    }

    /// Puts the published figures into the folder.
    pub fn note_reference(&self, text: &str) -> Result<(), ResultsError> {
        let path = self.folder.join(reference::FILE);
        std::fs::write(&path, text).map_err(io(&path))
    }

    /// Appends a record and waits until it is on the disk.
    pub fn append(&mut self, record: &RunRecord) -> Result<(), ResultsError> {
        let mut line = serde_json::to_vec(record).map_err(|error| io(&self.runs_path)(error.into()))?;
        line.push(b'\n');
        let before = self.runs.metadata().map_err(io(&self.runs_path))?.len();
        let written = self.runs.write_all(&line).and_then(|()| self.runs.sync_data());
        if written.is_err() {
            // Half a line would only be in the way of those that follow.
            let _ = self.runs.set_len(before);
        }
        written.map_err(io(&self.runs_path))
    }

    /// Adds the versions that were met to `environment.json`, by system.
    pub fn note_versions(&self, records: &[(String, Map<String, Value>)]) -> Result<(), ResultsError> {
        let path = self.folder.join("environment.json");
        let text = std::fs::read(&path).map_err(io(&path))?;
        let Ok(Value::Object(mut environment)) = serde_json::from_slice(&text) else { return Ok(()) };
        let mut versions = Map::new();
        for (system, met) in records {
            versions.entry(system.clone()).or_insert_with(|| met.clone().into());
        }
        environment.insert("versions".into(), versions.into());
        let text = serde_json::to_string_pretty(&environment).unwrap_or_default();
        let fresh = self.folder.join("environment.json.new");
        std::fs::write(&fresh, text + "\n").map_err(io(&fresh))?;
        std::fs::rename(&fresh, &path).map_err(io(&path))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where logs go.
    pub fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }
}
