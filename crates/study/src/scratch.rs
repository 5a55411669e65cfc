//! A folder for the socket files of one run, gone when the run is.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "pubmark-";
/// Unix socket paths end at 107 bytes; this much is left for the file's name.
const LONGEST: usize = 80;

/// A run's folder, removed when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a folder.
    pub fn create() -> std::io::Result<Scratch> {
        let scratch = Scratch::planned();
        scratch.make()?;
        Ok(scratch)
    }

    /// A folder that is not there yet, named after this process: whoever is to
    /// remove it after this process's death can know of it beforehand.
    pub fn planned() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let base =
            Some(std::env::temp_dir()).filter(|base| base.as_os_str().len() <= LONGEST - 24 && base.is_absolute());
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Scratch(base.unwrap_or_else(|| "/tmp".into()).join(format!("{PREFIX}{}-{number}", std::process::id())))
    }

    /// Makes it; only this user can enter.
    pub fn make(&self) -> std::io::Result<()> {
        std::fs::DirBuilder::new().mode(0o700).create(&self.0)
    }

    /// Removes it, with all that is in it.
    pub fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes the folders of coordinators that are no more: of one that was
/// killed together with its agents, nobody else could.
pub fn sweep() {
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|rest| rest.split_once('-'));
        let Some(pid) = owner.and_then(|(pid, number)| number.parse::<u32>().ok().and(pid.parse::<i32>().ok())) else {
            continue;
        };
        let gone = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None) == Err(nix::errno::Errno::ESRCH);
        if gone && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_as_long_as_its_owner() {
        let scratch = Scratch::create().unwrap();
        let path = scratch.path().to_owned();
        std::fs::write(path.join("socket"), "").unwrap();
        sweep();
        assert!(path.join("socket").exists(), "a living process keeps its folder");
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn folders_of_the_dead_are_swept() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let left = std::env::temp_dir().join(format!("{PREFIX}{}-0", child.id()));
        std::fs::create_dir(&left).unwrap();
        sweep();
        assert!(!left.exists());
    }
}
