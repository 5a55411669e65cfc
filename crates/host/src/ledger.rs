//! Leftovers of runs at servers that stay: a file for each run in the user's state
//! folder, written before anything is made and removed when all of it is gone. It is
//! locked while its run goes on. The kernel unlocks it when the run's coordinator dies;
//! then others may list and remove what is left.

use crate::cache::state_folder;
use nix::fcntl::{Flock, FlockArg};
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use pubmark_model::leftovers::Leftovers;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Maximum size of a file that is read, bytes.
const LONGEST_BYTES: u64 = 1 << 20;
/// Maximum number of files that are read.
const FILES_MAX: usize = 10_000;

/// A run's file while the run goes on.
pub struct LedgerEntry {
    path: PathBuf,
    _file: Flock<File>,
}

impl LedgerEntry {
    /// Writes what a run may leave, without secrets. Returns `None` for a user without a
    /// home, who has no folder for it.
    ///
    /// # Errors
    /// If the folder or the file cannot be made.
    pub fn write(leftovers: &Leftovers) -> std::io::Result<Option<LedgerEntry>> {
        state_folder().map(|folder| LedgerEntry::write_to(&folder.join(FOLDER), leftovers)).transpose()
    }

    fn write_to(folder: &Path, leftovers: &Leftovers) -> std::io::Result<LedgerEntry> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join(format!("{}.json", leftovers.run));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(O_NOFOLLOW).open(&path)?;
        let mut file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error)?;
        file.write_all(&serde_json::to_vec_pretty(&leftovers.without_secrets())?)?;
        file.sync_all()?;
        Ok(LedgerEntry { path, _file: file })
    }

    /// Removes the file, because nothing is left.
    pub fn close(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Name of the folder below the state folder.
const FOLDER: &str = "leftovers";

/// A run that is over and may have left something.
pub struct EndedRun {
    /// Path of its file.
    pub path: PathBuf,
    /// Things that it may have left at a server.
    pub leftovers: Leftovers,
}

impl EndedRun {
    /// Removes the file, because nothing is left.
    pub fn close(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns the runs whose coordinators are dead and whose files exist, the oldest first.
pub fn abandoned() -> Vec<EndedRun> {
    state_folder().map_or_else(Vec::new, |folder| abandoned_in(&folder.join(FOLDER)))
}

fn abandoned_in(folder: &Path) -> Vec<EndedRun> {
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = files.take(FILES_MAX).filter_map(|file| Some(file.ok()?.path()));
    let mut found: Vec<EndedRun> = paths.filter_map(|path| Some(EndedRun { leftovers: read(&path)?, path })).collect();
    found.sort_by(|one, other| one.leftovers.begun.cmp(&other.leftovers.begun));
    found
}

/// Reads a file; `None` if its run goes on or the file is not pubmark's.
fn read(path: &Path) -> Option<Leftovers> {
    let file = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    // Shared: two readers do not take each other for the run.
    let file = Flock::lock(file, FlockArg::LockSharedNonblock).ok()?;
    let mut text = String::new();
    (&*file).take(LONGEST_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::workload::Workload;
    use serde_json::json;

    fn leftovers(run: &str, begun: &str) -> Leftovers {
        let options = [("endpoint".to_owned(), json!("mqtt://u:S3cret@h"))].into();
        let workload = Workload { durable: true, ..Workload::of([("pairs", "2")]).unwrap() };
        Leftovers::of(run, begun.into(), "mqtt", &options, &workload).unwrap()
    }

    #[test]
    fn a_run_is_abandoned_when_its_coordinator_has_gone() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b");
        let found = || abandoned_in(&folder).into_iter().map(|one| one.leftovers.run).collect::<Vec<_>>();
        assert_eq!(found(), [""; 0]);
        let later = LedgerEntry::write_to(&folder, &leftovers("r2", "2026-01-02T00:00:00Z")).unwrap();
        let earlier = LedgerEntry::write_to(&folder, &leftovers("r1", "2026-01-01T00:00:00Z")).unwrap();
        assert_eq!(found(), [""; 0], "both go on");
        let text = std::fs::read_to_string(folder.join("r1.json")).unwrap();
        assert!(!text.contains("S3cret"), "{text}");
        // Like the kernel, which unlocks it when its process dies.
        drop((earlier, later));
        assert_eq!(found(), ["r1", "r2"]);
        abandoned_in(&folder)[0].close();
        assert_eq!(found(), ["r2"]);
        LedgerEntry::write_to(&folder, &leftovers("r3", "2026-01-03T00:00:00Z")).unwrap().close();
        assert_eq!(found(), ["r2"], "nothing is left of it");
    }

    #[test]
    fn what_is_no_file_of_a_run_is_passed_over() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        std::fs::write(folder.join("torn.json"), "{\"run\":\"r1\"").unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.join("link.json")).unwrap();
        nix::unistd::mkfifo(&folder.join("fifo.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::create_dir(folder.join("folder.json")).unwrap();
        assert!(abandoned_in(folder).is_empty());
    }
}
