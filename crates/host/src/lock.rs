//! A lock on a folder: a file in it that names the holder. The kernel releases the lock
//! when the holder dies, in any process namespace.

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub use pubmark_model::protocol::LOCK;

/// Maximum length of a holder's name that is read, bytes.
const HOLDER_BYTES: u64 = 200;

/// The reason why a lock cannot be taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds it.
    Held(String),
    /// The lock file cannot be made or locked.
    Io(std::io::Error),
}

impl From<std::io::Error> for LockError {
    fn from(error: std::io::Error) -> LockError {
        LockError::Io(error)
    }
}

/// A folder's lock. Its file is removed on drop.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: Flock<File>,
}

impl Lock {
    /// Locks a folder for this process.
    pub fn take(folder: &Path) -> Result<Lock, LockError> {
        let path = folder.join(LOCK);
        loop {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .custom_flags(nix::libc::O_NOFOLLOW)
                .open(&path)?;
            let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => file,
                Err((file, Errno::EWOULDBLOCK)) => return Err(LockError::Held(holder(file))),
                Err((_, error)) => return Err(LockError::Io(error.into())),
            };
            // The previous holder has removed the file, so a lock on it is useless.
            if !is_at(&file, &path) {
                continue;
            }
            // If the name cannot be written, the file is removed as well.
            let mut lock = Lock { path, file };
            lock.file.set_len(0)?;
            lock.file.write_all(name().as_bytes())?;
            return Ok(lock);
        }
    }

    /// True if a folder has a lock file that no process holds.
    pub fn is_abandoned(folder: &Path) -> bool {
        let path = folder.join(LOCK);
        let file =
            OpenOptions::new().read(true).custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK).open(&path);
        let held = file.ok().map(|file| Flock::lock(file, FlockArg::LockExclusiveNonblock));
        matches!(held, Some(Ok(file)) if is_at(&file, &path))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is held: no other process can take the file that is removed here.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let place = |meta: std::io::Result<std::fs::Metadata>| meta.ok().map(|meta| (meta.dev(), meta.ino()));
    let mine = place(file.metadata());
    mine.is_some() && mine == place(std::fs::symlink_metadata(path))
}

/// Returns a name of this process for other processes.
fn name() -> String {
    let host = nix::sys::utsname::uname().ok().map(|names| names.nodename().to_string_lossy().into_owned());
    format!("process {} on {}\n", std::process::id(), host.as_deref().unwrap_or("this machine"))
}

fn holder(file: File) -> String {
    let mut text = String::new();
    let read = file.take(HOLDER_BYTES).read_to_string(&mut text);
    let text = text.trim();
    if read.is_err() || text.is_empty() { "another process".into() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_and_is_named_until_it_lets_go() {
        let place = tempfile::tempdir().unwrap();
        let lock = Lock::take(place.path()).unwrap();
        let Err(LockError::Held(holder)) = Lock::take(place.path()) else { panic!("taken twice") };
        assert!(holder.starts_with(&format!("process {} on ", std::process::id())), "{holder}");
        assert!(!Lock::is_abandoned(place.path()));
        drop(lock);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "its file goes with it");
        drop(Lock::take(place.path()).unwrap());
    }

    #[test]
    fn the_file_of_one_that_was_killed_holds_nothing() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join(LOCK), "process 1 on elsewhere, which is a longer name than this one's")
            .unwrap();
        assert!(Lock::is_abandoned(place.path()));
        let lock = Lock::take(place.path()).unwrap();
        assert_eq!(std::fs::read_to_string(place.path().join(LOCK)).unwrap(), name());
        drop(lock);
    }
}
