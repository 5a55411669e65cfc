//! A folder for the socket files of one run, removed with the run.

use crate::lock::{Lock, LockError};
use crate::server::ledger_disk;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const PREFIX: &str = "pubmark-";
/// Digits of the name's random part.
const DIGITS: usize = 16;
/// Unix socket paths end at 107 bytes; this much is left for the file's name.
const LONGEST: usize = 80;
/// Parent folder if the temporary folder's path is too long.
const SHORT: &str = "/tmp";

/// A run's folder, removed on drop if it was made here.
pub struct Scratch {
    path: PathBuf,
    /// Held from the moment at which the folder was made.
    lock: OnceLock<Lock>,
}

impl Scratch {
    /// Makes a folder.
    pub fn create() -> std::io::Result<Scratch> {
        let scratch = Scratch::planned();
        scratch.make()?;
        Ok(scratch)
    }

    /// Plans a folder with a random name without making it: a process that has to remove
    /// it after this one's death can know its name in advance.
    pub fn planned() -> Scratch {
        let base = Some(std::env::temp_dir())
            .filter(|base| base.as_os_str().len() <= LONGEST - PREFIX.len() - DIGITS && base.is_absolute());
        // The keys of each are random.
        let random = RandomState::new().build_hasher().finish();
        let path = base.unwrap_or_else(|| SHORT.into()).join(format!("{PREFIX}{random:0DIGITS$x}"));
        Scratch { path, lock: OnceLock::new() }
    }

    /// Makes the folder, which only this user can enter. An existing folder belongs to
    /// somebody else and is an error.
    pub fn make(&self) -> std::io::Result<()> {
        self.make_held_by(Lock::take)
    }

    fn make_held_by(&self, take: fn(&Path) -> Result<Lock, LockError>) -> std::io::Result<()> {
        std::fs::DirBuilder::new().mode(0o700).create(&self.path).map_err(|error| self.not_made(&error))?;
        let lock = take(&self.path).map_err(|error| {
            // Without a lock the sweep would ignore it: a disk may have room for a folder and for no
            // file.
            let _ = std::fs::remove_dir_all(&self.path);
            match error {
                LockError::Held(holder) => std::io::Error::other(format!("{holder} has locked it")),
                LockError::Io(error) => self.not_made(&error),
            }
        })?;
        let _ = self.lock.set(lock);
        Ok(())
    }

    fn not_made(&self, error: &std::io::Error) -> std::io::Error {
        let why = format!("{} cannot be made: {error}; name another folder with TMPDIR", self.path.display());
        std::io::Error::new(error.kind(), why)
    }

    /// Removes the folder with its content, if it was made here.
    pub fn remove(&self) {
        if self.lock.get().is_some() {
            let _ = ledger_disk::remove_all(&self.path);
        }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes folders that no process holds any more. If a coordinator was killed together
/// with its agents, nothing else removes its folder.
pub fn sweep() {
    let temporary = std::env::temp_dir();
    sweep_in(&temporary);
    if temporary != Path::new(SHORT) {
        sweep_in(Path::new(SHORT));
    }
}

fn sweep_in(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else { return };
    let user = nix::unistd::geteuid().as_raw();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let random = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).unwrap_or_default();
        let named = random.len() == DIGITS && random.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_mine = |meta: std::fs::Metadata| meta.is_dir() && meta.uid() == user;
        if named && entry.metadata().is_ok_and(is_mine) && Lock::is_abandoned(&entry.path()) {
            let _ = ledger_disk::remove_all(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::LOCK;

    #[test]
    fn lives_as_long_as_its_owner() {
        let scratch = Scratch::create().unwrap();
        let path = scratch.path().to_owned();
        std::fs::write(path.join("socket"), "").unwrap();
        sweep();
        assert!(path.join("socket").exists(), "one that is held is kept, whoever sweeps");
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn folders_that_nobody_holds_are_swept_and_those_of_others_are_not() {
        let base = tempfile::tempdir().unwrap();
        let folder = |name: &str, file: &str| {
            let folder = base.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join(file), "").unwrap();
            folder
        };
        let left = folder("pubmark-0123456789abcdef", LOCK);
        let foreign = [
            folder("pubmark-0123456789abcdee", "theirs"),
            folder("pubmark-4711-0", LOCK),
            folder("pubmark-results-of-may", LOCK),
        ];
        sweep_in(base.path());
        assert!(!left.exists());
        assert!(foreign.iter().all(|folder| folder.exists()));
    }

    #[test]
    fn one_that_cannot_be_locked_is_not_left() {
        let scratch = Scratch::planned();
        let full = |folder: &Path| {
            std::fs::write(folder.join(LOCK), "")?;
            Err(LockError::Io(std::io::ErrorKind::StorageFull.into()))
        };
        let error = scratch.make_held_by(full).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        let said = error.to_string();
        assert!(said.starts_with(&scratch.path().display().to_string()) && said.contains("TMPDIR"), "{said}");
        assert!(!scratch.path().exists());
    }

    #[test]
    fn a_folder_of_the_same_name_is_not_taken_over_and_not_removed() {
        let scratch = Scratch::planned();
        std::fs::create_dir(scratch.path()).unwrap();
        std::fs::write(scratch.path().join("theirs"), "").unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(scratch.make().unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
        drop(scratch);
        assert!(path.join("theirs").exists());
        std::fs::remove_dir_all(path).unwrap();
    }
}
