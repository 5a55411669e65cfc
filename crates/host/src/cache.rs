//! Where on this host pubmark keeps what outlives a run.

use nix::unistd::{User, geteuid};
use pubmark_model::system::System;
use std::fs::{DirBuilder, Metadata};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where what is pinned is installed to: `$XDG_CACHE_HOME/pubmark/systems/NAME`,
/// by default below `~/.cache`.
pub fn cache_folder(system: &System) -> PathBuf {
    base().join("systems").join(&system.name)
}

/// Where programs are put that are built from this repository, such as the
/// agent of a library that is not built in: `$XDG_CACHE_HOME/pubmark/bin`.
pub fn bin_folder() -> PathBuf {
    base().join("bin")
}

/// Where the agents are put that a pubmark carries, those of this digest.
pub fn agents_folder(digest: &str) -> PathBuf {
    base().join(format!("agents-{digest}"))
}

/// The folder below which everything is kept. What is found there is run, so it is never one that
/// another user could have made.
pub fn base() -> PathBuf {
    let base = absolute("XDG_CACHE_HOME").or_else(|| home().map(|home| home.join(".cache")));
    base.unwrap_or_else(homeless).join("pubmark")
}

/// The user's home: as the environment says or, where a service or a job has none of it, as the
/// user database says.
fn home() -> Option<PathBuf> {
    let known = || User::from_uid(geteuid()).ok().flatten().map(|user| user.dir).filter(|dir| dir.is_absolute());
    absolute("HOME").or_else(known)
}

/// A folder of this user's own below the temporary folder, for one without a home. Where its name
/// is taken by somebody else it is another one, which lasts as long as this process.
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

/// Where the user keeps files for pubmark: `$XDG_CONFIG_HOME/pubmark`, by default
/// `~/.config/pubmark`.
pub fn config_folder() -> PathBuf {
    let base = absolute("XDG_CONFIG_HOME").or_else(|| home().map(|home| home.join(".config")));
    base.unwrap_or_else(|| "/etc".into()).join("pubmark")
}

/// Where pubmark keeps what it must not forget: `$XDG_STATE_HOME/pubmark`, by default
/// `~/.local/state/pubmark`; none for a user without a home.
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
        // One that others may write to, and a link to a folder of our own.
        std::fs::set_permissions(&guessable, PermissionsExt::from_mode(0o777)).unwrap();
        assert_ne!(homeless_in(place.path()), guessable);
        std::fs::remove_dir(&guessable).unwrap();
        symlink(place.path(), &guessable).unwrap();
        let other = homeless_in(place.path());
        assert!(other != guessable && !other.exists(), "{}", other.display());
        // That of another user, where this one may give folders away.
        std::fs::remove_file(&guessable).unwrap();
        std::fs::create_dir(&guessable).unwrap();
        if geteuid().is_root() {
            std::os::unix::fs::chown(&guessable, Some(65_534), None).unwrap();
            assert_ne!(homeless_in(place.path()), guessable);
        }
    }
}
