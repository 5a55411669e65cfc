//! Folders on this host for data that outlives a run.

use nix::unistd::{User, geteuid};
use pubmark_model::system::System;
use std::fs::{DirBuilder, Metadata};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns the folder for a system's pinned packages:
/// `$XDG_CACHE_HOME/pubmark/systems/NAME`, by default below `~/.cache`.
pub fn cache_folder(system: &System) -> PathBuf {
    base().join("systems").join(&system.name)
}

/// Returns the folder for programs that are built from this repository, such as the agent
/// of a library that is not built in: `$XDG_CACHE_HOME/pubmark/bin`.
pub fn bin_folder() -> PathBuf {
    base().join("bin")
}

/// Returns the folder for the agent sources that a pubmark carries, by their digest.
pub fn agents_folder(digest: &str) -> PathBuf {
    base().join(format!("agents-{digest}"))
}

/// Returns the base folder of the cache. Programs in it are run, so it is never a folder that
/// another user could have made.
pub fn base() -> PathBuf {
    let base = absolute("XDG_CACHE_HOME").or_else(|| home().map(|home| home.join(".cache")));
    base.unwrap_or_else(homeless).join("pubmark")
}

/// Returns the user's home from the environment or, for services and jobs without it, from the
/// user database.
fn home() -> Option<PathBuf> {
    let known = || User::from_uid(geteuid()).ok().flatten().map(|user| user.dir).filter(|dir| dir.is_absolute());
    absolute("HOME").or_else(known)
}

/// Returns a folder of this user below the temporary folder, for a user without a home. If
/// another user has taken its name, it is a different folder, which lasts as long as this
/// process.
fn homeless() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| homeless_in(&std::env::temp_dir())).clone()
}

fn homeless_in(base: &Path) -> PathBuf {
    let user = geteuid();
    let folder = base.join(format!("pubmark-cache-{user}"));
    let _ = DirBuilder::new().mode(0o700).create(&folder);
    let own = |meta: Metadata| meta.is_dir() && meta.uid() == user.as_raw() && meta.mode() & 0o022 == 0;
    match std::fs::symlink_metadata(&folder).is_ok_and(own) {
        true => folder,
        false => base.join(format!("pubmark-cache-{:016x}", RandomState::new().build_hasher().finish())),
    }
}

/// Returns the folder for the user's pubmark files: `$XDG_CONFIG_HOME/pubmark`, by
/// default `~/.config/pubmark`.
pub fn config_folder() -> PathBuf {
    let base = absolute("XDG_CONFIG_HOME").or_else(|| home().map(|home| home.join(".config")));
    base.unwrap_or_else(|| "/etc".into()).join("pubmark")
}

/// Returns the folder for persistent state: `$XDG_STATE_HOME/pubmark`, by default
/// `~/.local/state/pubmark`; `None` for a user without a home.
pub fn state_folder() -> Option<PathBuf> {
    let base = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    base.map(|base| base.join("pubmark"))
}

fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn one_without_a_home_is_given_a_folder_that_nobody_else_could_have_filled() {
        let place = tempfile::tempdir().unwrap();
        let guessable = place.path().join(format!("pubmark-cache-{}", geteuid()));
        assert_eq!(homeless_in(place.path()), guessable);
        assert_eq!(std::fs::metadata(&guessable).unwrap().mode() & 0o777, 0o700);
        assert_eq!(homeless_in(place.path()), guessable, "the next time it is the same");
        // A folder that others may write to, and a link to a folder of this user.
        std::fs::set_permissions(&guessable, PermissionsExt::from_mode(0o777)).unwrap();
        assert_ne!(homeless_in(place.path()), guessable);
        std::fs::remove_dir(&guessable).unwrap();
        symlink(place.path(), &guessable).unwrap();
        let other = homeless_in(place.path());
        assert!(other != guessable && !other.exists(), "{}", other.display());
        // A folder of another user, if this user may give folders away.
        std::fs::remove_file(&guessable).unwrap();
        std::fs::create_dir(&guessable).unwrap();
        if geteuid().is_root() {
            std::os::unix::fs::chown(&guessable, Some(65_534), None).unwrap();
            assert_ne!(homeless_in(place.path()), guessable);
        }
    }
}
