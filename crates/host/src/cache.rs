//! Where on this host pubmark keeps what outlives a run.

use pubmark_model::system::System;
use std::path::PathBuf;

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

/// The folder below which everything is kept.
pub fn base() -> PathBuf {
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("pubmark")
}

/// Where the user keeps files for pubmark: `$XDG_CONFIG_HOME/pubmark`, by default
/// `~/.config/pubmark`.
pub fn config_folder() -> PathBuf {
    let base = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
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
