//! Transfers a folder to another machine: that of a system whose agent needs no
//! installation. It is identified by its digest, sent if the machine does not have it
//! yet, and checked there.

use crate::cache;
use crate::error::HostError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pubmark_model::printable::hexadecimal;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Maximum size of a folder that is sent, bytes.
const MOST_BYTES: u64 = 16 << 20;
/// Maximum number of its files.
const MOST_FILES: usize = 1_000;
/// A folder that was not sent for this long is removed when another arrives.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The content of a folder without hidden files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedFolder {
    /// Digest of all files.
    pub digest: String,
    files: Vec<FileOnItsWay>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileOnItsWay {
    /// Path within the folder.
    path: String,
    executable: bool,
    /// Content in base64 with padding (RFC 4648, section 4).
    bytes: String,
}

impl PackedFolder {
    /// Reads a folder.
    ///
    /// # Errors
    /// If it cannot be read, or is too large to be sent.
    pub fn read(folder: &Path) -> Result<PackedFolder, HostError> {
        let (mut files, mut left) = (Vec::new(), MOST_BYTES);
        gather(folder, folder, &mut files, &mut left)?;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(PackedFolder { digest: digest(&files), files })
    }

    /// Stores the folder in its place, all at once.
    ///
    /// # Errors
    /// If its content does not match its digest, or there is no room for it.
    pub fn keep(&self) -> Result<(), HostError> {
        if digest(&self.files) != self.digest {
            return Err("a folder did not arrive as it was sent".into());
        }
        let target = kept_at(&self.digest);
        let part = PathBuf::from(format!("{}.{}", target.display(), std::process::id()));
        let put = self.write(&part).and_then(|()| match fs::rename(&part, &target) {
            // Another process has stored the same folder meanwhile.
            Err(_) if is_kept(&self.digest) => fs::remove_dir_all(&part),
            renamed => renamed,
        });
        remove_old(&target);
        put.map_err(|source| {
            let _ = fs::remove_dir_all(&part);
            HostError::Io { what: format!("a folder cannot be kept at {}", target.display()), source }
        })
    }

    fn write(&self, to: &Path) -> std::io::Result<()> {
        let damaged = || std::io::Error::other("a file that is none");
        fs::create_dir_all(to)?;
        for file in &self.files {
            let within = Path::new(&file.path);
            if !within.components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(damaged());
            }
            let path = to.join(within);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&path, STANDARD.decode(&file.bytes).map_err(|_| damaged())?)?;
            if file.executable {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
            }
        }
        Ok(())
    }
}

/// Returns the path of a folder with this digest, which is the same on each host.
pub fn kept_at(digest: &str) -> PathBuf {
    cache::base().join("folders").join(digest)
}

/// True if the folder is stored here.
pub fn is_kept(digest: &str) -> bool {
    kept_at(digest).is_dir()
}

/// Adds the files below a folder to the list, without hidden ones.
fn gather(root: &Path, folder: &Path, files: &mut Vec<FileOnItsWay>, left: &mut u64) -> Result<(), HostError> {
    let cannot = |path: &Path| HostError::io(format!("{} cannot be read to be sent", path.display()));
    for entry in fs::read_dir(folder).map_err(cannot(folder))? {
        let entry = entry.map_err(cannot(folder))?;
        let path = entry.path();
        let name = entry.file_name();
        if name.to_string_lossy().starts_with('.') || name == "__pycache__" {
            continue;
        }
        if entry.file_type().map_err(cannot(&path))?.is_dir() {
            gather(root, &path, files, left)?;
            continue;
        }
        // The target of a link is sent if it is a file.
        let Ok(found) = fs::metadata(&path) else { continue };
        if !found.is_file() {
            continue;
        }
        if found.len() > *left || files.len() == MOST_FILES {
            return Err(HostError::Failed(format!(
                "{} is more than is sent to another host ({} MiB, {MOST_FILES} files): give the system file a folder of its own, with what its agent needs",
                root.display(),
                MOST_BYTES >> 20
            )));
        }
        *left -= found.len();
        let Some(within) = path.strip_prefix(root).ok().and_then(Path::to_str) else { continue };
        let bytes = STANDARD.encode(fs::read(&path).map_err(cannot(&path))?);
        files.push(FileOnItsWay {
            path: within.to_owned(),
            executable: found.permissions().mode() & 0o111 != 0,
            bytes,
        });
    }
    Ok(())
}

fn digest(files: &[FileOnItsWay]) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for file in files {
        // Texts of different files must not run into each other.
        for part in [file.path.as_bytes(), &[u8::from(file.executable)], file.bytes.as_bytes()] {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
    }
    hexadecimal(context.finish().as_ref())
}

/// Removes the folders beside this one that are too old.
fn remove_old(kept: &Path) {
    let beside = kept.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    for entry in beside.filter(|entry| entry.path() != kept) {
        let age = entry.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > KEPT) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_arrives_as_it_was_or_not_at_all() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| from.path().join(name);
        fs::create_dir_all(at("lib/.git")).unwrap();
        fs::write(at("agent.sh"), [0, 255, b'\n']).unwrap();
        fs::set_permissions(at("agent.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(at("lib/a.py"), "").unwrap();
        fs::write(at("lib/.git/config"), "secret").unwrap();
        let folder = PackedFolder::read(from.path()).unwrap();
        let line = serde_json::to_string(&folder).unwrap();
        let heard: PackedFolder = serde_json::from_str(&line).unwrap();
        assert_eq!(heard, folder);
        heard.write(&to.path().join("x")).unwrap();
        let there = PackedFolder::read(&to.path().join("x")).unwrap();
        assert_eq!((there.digest == folder.digest, there.files.len()), (true, 2), "{line}");
        fs::write(at("lib/a.py"), "x").unwrap();
        assert_ne!(PackedFolder::read(from.path()).unwrap().digest, folder.digest);
    }

    #[test]
    fn what_is_damaged_or_leads_out_of_its_folder_is_not_kept() {
        let to = tempfile::tempdir().unwrap();
        let file = |path: &str| FileOnItsWay { path: path.into(), executable: false, bytes: "AA==".into() };
        let damaged = PackedFolder { digest: "0".into(), files: vec![file("a")] };
        assert!(damaged.keep().unwrap_err().to_string().contains("did not arrive as it was sent"));
        for path in ["../a", "/etc/a", "a/../../b"] {
            let leads_out = PackedFolder { digest: String::new(), files: vec![file(path)] };
            assert!(leads_out.write(&to.path().join("x")).is_err(), "{path}");
        }
        let no_base64 = FileOnItsWay { bytes: "A".into(), ..file("a") };
        let unreadable = PackedFolder { digest: String::new(), files: vec![no_base64] };
        assert!(unreadable.write(&to.path().join("y")).is_err());
        let large = to.path().join("large");
        fs::create_dir(&large).unwrap();
        fs::File::create(large.join("a")).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let said = PackedFolder::read(&large).unwrap_err().to_string();
        assert!(said.contains("a folder of its own"), "{said}");
    }
}
