//! The results folder: records are appended and synced as soon as a run ends.

use pubmark_files::{self as files, Links, TEXT_BYTES_MAX};
use pubmark_host::lock::{LOCK, Lock, LockError};
use pubmark_model::line::JsonLine;
use pubmark_model::record::{RECORD_BYTES_MAX, RunRecord};
use pubmark_model::reference;
use pubmark_model::study::Study;
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// Error of a results folder.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// Reading or writing failed.
    #[error("{path}: {source}{hint}", path = .path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
        /// Advice.
        hint: &'static str,
    },
    /// The folder holds results already.
    #[error("{path} holds results already: name another folder with --out", path = .0.display())]
    Occupied(PathBuf),
    /// The folder holds files that are not pubmark's.
    #[error("{path} is not empty, and nothing in it is overwritten: name a new or an empty folder with --out", path = .0.display())]
    Foreign(PathBuf),
    /// Another process writes into the folder.
    #[error("{path} is being written by {holder}: wait for its end, or name another folder with --out", path = .path.display())]
    Held {
        /// Path of the folder.
        path: PathBuf,
        /// Description of that process.
        holder: String,
    },
    /// The folder has no results to resume.
    #[error("{path} holds no results to go on with: leave --resume out", path = .0.display())]
    Nothing(PathBuf),
    /// The folder belongs to another study.
    #[error("{path} was made by another study, or with other settings: name another folder with --out, or repeat the flags of the first run", path = .0.display())]
    OtherStudy(PathBuf),
    /// A system was measured by another file before.
    #[error(
        "{} is not the file by which `{name}` would be measured now: name another folder with --out, or give the folder \
         of that file with --systems",
        .path.display()
    )]
    OtherSystem {
        /// Name of the system.
        name: String,
        /// Path of the file in the folder.
        path: PathBuf,
    },
    /// A line is no valid record.
    #[error("{path}:{line}: not a run record ({reason}): move the file away, or mend the line", path = .path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Reason.
        reason: String,
    },
}

pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> ResultsError + '_ {
    move |source| {
        let hint = match source.kind() {
            std::io::ErrorKind::StorageFull => ". Free some space: every finished run is kept",
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                ". Name a folder that can be written with --out"
            }
            _ => "",
        };
        ResultsError::Io { path: path.to_owned(), source, hint }
    }
}

/// Name of the folder for the system files, as they were used.
const SYSTEMS: &str = "systems";

/// An open results folder, locked for this process.
pub struct Results {
    folder: PathBuf,
    runs: File,
    runs_path: PathBuf,
    lock: Lock,
}

/// Makes a new folder `BASE/STUDY-TIME`, in UTC. Appends a number if one of the same second exists.
pub fn new_folder(base: &Path, study: &str) -> Result<PathBuf, ResultsError> {
    make_folder(base, &mut sync).map_err(io(base))?;
    let name = format!("{study}-{}", jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S"));
    for number in 1.. {
        let folder = base.join(if number == 1 { name.clone() } else { format!("{name}-{number}") });
        match std::fs::create_dir(&folder) {
            Ok(()) => {
                sync(base).map_err(io(base))?;
                return Ok(folder);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io(&folder)(error)),
        }
    }
    Err(ResultsError::Occupied(base.join(name)))
}

/// Returns the newest folder that [`new_folder`] made for a study, by the start time that it records: earlier versions
/// named folders by local time.
pub fn newest_folder(base: &Path, study: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    let mine = entries.filter_map(|entry| {
        let name = entry.file_name();
        let (named, number) = time_of(name.to_str()?.strip_prefix(study)?.strip_prefix('-')?)?;
        let path = entry.path();
        let begun = began(&path).map_or(named, |time| time.strftime("%Y%m%d%H%M%S").to_string());
        Some((begun, number, path))
    });
    mine.max().map(|(_, _, path)| path)
}

/// Returns the instant at which the study of a results folder began, if its files say it.
fn began(folder: &Path) -> Option<jiff::Timestamp> {
    let text = files::read(&folder.join("environment.json"), TEXT_BYTES_MAX, Links::Refuse).ok()?;
    let environment: Value = serde_json::from_slice(&text).ok()?;
    environment.get("time")?.as_str()?.parse().ok()
}

/// Returns the time at the end of a folder's name, and its number within the second.
fn time_of(text: &str) -> Option<(String, u32)> {
    let mut parts = text.split('-');
    let (day, second, number) = (parts.next()?, parts.next()?, parts.next());
    let digits = |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.map_or(Some(1), |number| number.parse().ok())?;
    (digits(day, 8) && digits(second, 6) && parts.next().is_none()).then(|| (format!("{day}{second}"), number))
}

/// Makes a folder and its parents. Calls `sync` with the folder of each new entry, so that the entry is on the disk.
fn make_folder(folder: &Path, sync: &mut dyn FnMut(&Path) -> std::io::Result<()>) -> std::io::Result<()> {
    let missing: Vec<&Path> =
        folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
    std::fs::create_dir_all(folder)?;
    for path in missing.into_iter().rev() {
        sync(path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

/// Waits until the entries of a folder are on the disk.
fn sync(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Refuses a folder that has anything in it but the lock file of an earlier process.
fn refuse_foreign(folder: &Path) -> Result<(), ResultsError> {
    if folder.join("runs.jsonl").exists() {
        return Err(ResultsError::Occupied(folder.to_owned()));
    }
    for entry in std::fs::read_dir(folder).map_err(io(folder))? {
        if entry.map_err(io(folder))?.file_name() != LOCK {
            return Err(ResultsError::Foreign(folder.to_owned()));
        }
    }
    Ok(())
}

/// Writes a file of the folder atomically: half a system file would be another system.
fn replace(path: &Path, text: &str) -> Result<(), ResultsError> {
    files::replace(path, |out| out.write_all(text.as_bytes())).map_err(io(path))
}

/// Opens `runs.jsonl` to append to it, and cuts off an incomplete last line. Returns its records.
fn whole_records(path: &Path) -> Result<(File, Vec<RunRecord>), ResultsError> {
    let wrong = |line: usize, reason: String| ResultsError::Line { path: path.to_owned(), line, reason };
    let opened = files::open_with(OpenOptions::new().read(true).append(true), path, Links::Refuse);
    let runs = opened.map_err(io(path))?;
    let (mut input, mut line, mut whole, mut records) = (BufReader::new(&runs), Vec::new(), 0, Vec::new());
    for number in 1.. {
        line.clear();
        let read = (&mut input).take(RECORD_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        let bytes = read.map_err(io(path))?;
        if bytes > RECORD_BYTES_MAX {
            return Err(wrong(number, format!("it is longer than {RECORD_BYTES_MAX} bytes")));
        }
        if line.last() != Some(&b'\n') {
            break;
        }
        whole += bytes as u64;
        if bytes > 1 {
            records.push(RunRecord::from_json(&line).map_err(|error| wrong(number, error.to_string()))?);
        }
    }
    runs.set_len(whole).map_err(io(path))?;
    Ok((runs, records))
}

fn lock(folder: &Path) -> Result<Lock, ResultsError> {
    Lock::take(folder).map_err(|error| match error {
        LockError::Held(holder) => ResultsError::Held { path: folder.to_owned(), holder },
        LockError::Io(error) => io(folder)(error),
    })
}

impl Results {
    /// Makes a folder for a study's results. An empty folder may exist.
    pub fn create(folder: &Path, study: &str, environment: &Value) -> Result<Results, ResultsError> {
        make_folder(folder, &mut sync).map_err(io(folder))?;
        refuse_foreign(folder)?;
        let lock = lock(folder)?;
        // Another process may have filled it before it was locked.
        refuse_foreign(folder)?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            let made = File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
            made.map_err(io(&path))
        };
        write("study.toml", study)?;
        let text = serde_json::to_string_pretty(environment).unwrap_or_default();
        write("environment.json", &(text + "\n"))?;
        std::fs::create_dir(folder.join("logs")).map_err(io(folder))?;
        let runs_path = folder.join("runs.jsonl");
        let runs = OpenOptions::new().append(true).create_new(true).open(&runs_path).map_err(io(&runs_path))?;
        sync(folder).map_err(io(folder))?;
        Ok(Results { folder: folder.to_owned(), runs, runs_path, lock })
    }

    /// Opens the results of the same study to resume it. If `parts_may_grow`, the study in the folder may have other
    /// parts. Cuts off a line torn by a kill. Returns the existing records.
    pub fn resume(folder: &Path, study: &str, parts_may_grow: bool) -> Result<(Results, Vec<RunRecord>), ResultsError> {
        let runs_path = folder.join("runs.jsonl");
        if !runs_path.exists() {
            return Err(ResultsError::Nothing(folder.to_owned()));
        }
        let lock = lock(folder)?;
        let study_path = folder.join("study.toml");
        let before = files::read_text(&study_path, Links::Refuse).map_err(io(&study_path))?;
        if !Study::measures_the_same(&before, study, parts_may_grow) {
            return Err(ResultsError::OtherStudy(folder.to_owned()));
        }
        let logs = folder.join("logs");
        std::fs::create_dir_all(&logs).map_err(io(&logs))?;
        if logs.is_symlink() {
            return Err(ResultsError::Foreign(logs));
        }
        let (runs, records) = whole_records(&runs_path)?;
        Ok((Results { folder: folder.to_owned(), runs, runs_path, lock }, records))
    }

    /// Writes the files of the systems into the folder, as they are used; existing files must be equal.
    pub fn note_systems(&self, systems: &[(String, String)]) -> Result<(), ResultsError> {
        let folder = self.folder.join(SYSTEMS);
        std::fs::create_dir_all(&folder).map_err(io(&folder))?;
        for (name, text) in systems {
            let path = folder.join(format!("{name}.toml"));
            match files::read(&path, TEXT_BYTES_MAX, Links::Refuse) {
                Ok(there) if there == text.as_bytes() => {}
                Ok(_) => return Err(ResultsError::OtherSystem { name: name.clone(), path }),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => replace(&path, text)?,
                Err(error) => return Err(io(&path)(error)),
            }
        }
        sync(&folder).map_err(io(&folder))
    }

    /// Replaces the study file: the study has new cells.
    pub fn renew_study(&self, study: &str) -> Result<(), ResultsError> {
        replace(&self.folder.join("study.toml"), study)
    }

    /// Writes the published figures into the folder.
    pub fn note_reference(&self, text: &str) -> Result<(), ResultsError> {
        replace(&self.folder.join(reference::FILE), text)
    }

    /// Appends a record and waits until it is on the disk.
    pub fn append(&mut self, record: &RunRecord) -> Result<(), ResultsError> {
        self.append_all(std::slice::from_ref(record))
    }

    /// Appends records, all or none, and waits until they are on the disk.
    pub fn append_all(&mut self, records: &[RunRecord]) -> Result<(), ResultsError> {
        let mut lines = Vec::new();
        for record in records {
            lines.extend(record.to_json().map_err(|error| io(&self.runs_path)(error.into()))?);
            lines.push(b'\n');
        }
        let before = self.runs.metadata().map_err(io(&self.runs_path))?.len();
        let written = self.runs.write_all(&lines).and_then(|()| self.runs.sync_data());
        if written.is_err() {
            // Half a line would damage the records that follow.
            let _ = self.runs.set_len(before);
        }
        written.map_err(io(&self.runs_path))
    }

    /// Adds the versions that runs reported to `environment.json`, by system.
    pub fn note_versions(&self, records: &[(String, Map<String, Value>)]) -> Result<(), ResultsError> {
        let path = self.folder.join("environment.json");
        let text = files::read(&path, TEXT_BYTES_MAX, Links::Refuse).map_err(io(&path))?;
        let Ok(Value::Object(mut environment)) = serde_json::from_slice(&text) else { return Ok(()) };
        let mut versions = Map::new();
        for (system, met) in records {
            versions.entry(system.clone()).or_insert_with(|| met.clone().into());
        }
        environment.insert("versions".into(), versions.into());
        let text = serde_json::to_string_pretty(&environment).unwrap_or_default();
        replace(&path, &(text + "\n"))
    }

    /// Closes the files. Returns the lock that reserves the folder for this process.
    pub fn close(self) -> Lock {
        self.lock
    }

    /// Returns the folder of the logs.
    pub fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_folder_is_the_studys_own() {
        let base = tempfile::tempdir().unwrap();
        for name in [
            "a-20260101-120000",
            "a-20260101-120000-2",
            "a-20260101-120000-10",
            "a-20250101-120000",
            "a-edge-20270101-120000",
            "a-20270101",
            "a-20270101-12000x",
            "a-20270101-120000-old",
        ] {
            std::fs::create_dir(base.path().join(name)).unwrap();
        }
        assert_eq!(newest_folder(base.path(), "a"), Some(base.path().join("a-20260101-120000-10")));
        assert_eq!(newest_folder(base.path(), "a-edge"), Some(base.path().join("a-edge-20270101-120000")));
        assert_eq!(newest_folder(base.path(), "edge"), None);
        // East of UTC, a folder named by local time has a later name than a newer one named by UTC.
        for (name, time) in [("20260301-200000", "2026-03-01T11:00:00Z"), ("20260301-120000", "2026-03-01T12:00:00Z")] {
            let folder = base.path().join(format!("b-{name}"));
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("environment.json"), format!("{{\"time\": \"{time}\"}}")).unwrap();
        }
        assert_eq!(newest_folder(base.path(), "b"), Some(base.path().join("b-20260301-120000")));
    }

    /// Both are made within a second, and so with one name.
    #[test]
    fn folders_made_at_once_are_different_ones() {
        let base = tempfile::tempdir().unwrap();
        let results = base.path().join("results");
        let made: Vec<PathBuf> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..20).map(|_| scope.spawn(|| new_folder(&results, "a").unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let different: std::collections::HashSet<&PathBuf> = made.iter().collect();
        assert_eq!(different.len(), 20);
        assert!(made.iter().all(|folder| std::fs::read_dir(folder).unwrap().count() == 0));
        assert!(newest_folder(&results, "a").is_some_and(|newest| made.contains(&newest)));
    }

    #[test]
    fn the_entry_of_every_new_folder_is_synced() {
        let base = tempfile::tempdir().unwrap();
        let mut synced = Vec::new();
        let mut note = |folder: &Path| {
            synced.push(folder.to_owned());
            Ok(())
        };
        make_folder(&base.path().join("a/b"), &mut note).unwrap();
        make_folder(&base.path().join("a/c"), &mut note).unwrap();
        make_folder(&base.path().join("a/c"), &mut note).unwrap();
        assert_eq!(synced, [base.path().to_owned(), base.path().join("a"), base.path().join("a")]);
    }

    #[test]
    fn a_study_goes_on_with_the_system_files_that_it_began_with() {
        let base = tempfile::tempdir().unwrap();
        let results = Results::create(&base.path().join("r"), "", &Value::Null).unwrap();
        let file = |name: &str, text: &str| [(name.to_owned(), text.to_owned())];
        results.note_systems(&file("mine", "one")).unwrap();
        results.note_systems(&file("mine", "one")).unwrap();
        results.note_systems(&file("other", "two")).unwrap();
        let error = results.note_systems(&file("mine", "another")).unwrap_err().to_string();
        assert!(error.contains("systems/mine.toml is not the file") && error.contains("--systems"), "{error}");
        assert_eq!(std::fs::read_to_string(base.path().join("r/systems/mine.toml")).unwrap(), "one");
    }

    #[test]
    fn what_is_not_ours_is_not_written_into() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("mine");
        std::fs::create_dir(&folder).unwrap();
        for file in ["study.toml", "report.html", "notes"] {
            std::fs::write(folder.join(file), "mine").unwrap();
            assert!(matches!(Results::create(&folder, "", &Value::Null), Err(ResultsError::Foreign(_))));
            let left: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.file_name()).collect();
            assert_eq!(left, [file]);
            assert_eq!(std::fs::read_to_string(folder.join(file)).unwrap(), "mine");
            std::fs::remove_file(folder.join(file)).unwrap();
        }
        let results = Results::create(&folder, "", &Value::Null).unwrap();
        assert!(matches!(Results::create(&folder, "", &Value::Null), Err(ResultsError::Occupied(_))));
        assert!(matches!(Results::resume(&folder, "", false), Err(ResultsError::Held { .. })), "one writes");
        drop(results);
        assert!(Results::resume(&folder, "", false).is_ok());
    }
}
