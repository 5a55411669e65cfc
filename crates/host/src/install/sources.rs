//! Unpacks the agent sources that pubmark carries, so that they can be built and started.

use crate::error::HostError;
use pubmark_model::system::System;
use std::io::Error;
use std::path::{Path, PathBuf};

/// True if the sources of the system's agent are unpacked, or it has none.
pub fn is_there(system: &System) -> bool {
    system.carried.is_empty() || Path::new(&system.here).is_dir()
}

/// Unpacks the sources, all at once: an interrupted attempt leaves nothing behind.
pub fn put(system: &System) -> Result<(), HostError> {
    let Some(target) = Path::new(&system.here).parent().filter(|_| !is_there(system)) else { return Ok(()) };
    let part = PathBuf::from(format!("{}.{}", target.display(), std::process::id()));
    let put = write(&part, system.carried).and_then(|()| match std::fs::rename(&part, target) {
        // Another process has unpacked the same sources meanwhile.
        Err(_) if is_there(system) => std::fs::remove_dir_all(&part),
        renamed => renamed,
    });
    put.map_err(|error| {
        let _ = std::fs::remove_dir_all(&part);
        HostError::io(format!("the agents that come with pubmark cannot be put at {}", target.display()))(error)
    })
}

fn write(folder: &Path, files: &[(&str, &str)]) -> Result<(), Error> {
    for (path, text) in files {
        let path = folder.join(path);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_put_where_they_are_looked_for_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let here = |name: &str| folder.path().join(name).display().to_string();
        let system = |name: &str, carried| System { here: here(name), carried, ..System::default() };
        let mine = system("agents-1/mine", &[("mine/agent.py", "print()"), ("shared/a/b.h", "")]);
        assert!(!is_there(&mine));
        put(&mine).and_then(|()| put(&mine)).unwrap();
        assert!(is_there(&mine));
        assert_eq!(std::fs::read_to_string(folder.path().join("agents-1/mine/agent.py")).unwrap(), "print()");
        assert!(folder.path().join("agents-1/shared/a/b.h").exists());
        let broken = system("agents-2/mine", &[("mine/agent.py", ""), ("mine/agent.py/below-a-file", "")]);
        assert!(put(&broken).unwrap_err().to_string().contains("agents-2"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        assert!(is_there(&System::default()), "who carries nothing lacks nothing");
    }
}
