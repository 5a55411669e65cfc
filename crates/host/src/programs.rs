//! Finds programs by name.

use crate::cache;
use std::path::{Path, PathBuf};

/// Finds a program relative to a folder: a name with a slash is a path below it.
pub fn find_program_from(folder: Option<&Path>, name: &str) -> Option<PathBuf> {
    match folder.filter(|_| name.contains('/')) {
        // An absolute path stays as it is.
        Some(folder) => find_program(&folder.join(name).display().to_string()),
        None => find_program(name),
    }
}

/// Describes where programs without a slash in their name are searched.
pub const LOOKED_FOR: &str =
    "on the PATH, in /usr/local/sbin, /usr/sbin, /sbin and /usr/local/go/bin, beside pubmark, and in";

/// Finds a program: on the path, in the folders of system programs (which are only on
/// root's path) and of Go's own archive, beside pubmark itself, or in the cache's `bin`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mine = std::env::current_exe().ok().and_then(|program| program.parent().map(Path::to_owned));
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/go/bin"].map(PathBuf::from);
    find_in(name, std::env::split_paths(&path).chain(system).chain(mine).chain([cache::bin_folder()]))
}

fn find_in(name: &str, folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let runs = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(runs);
    }
    folders.map(|folder| folder.join(name)).find(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn programs_are_found_by_name_in_the_order_of_the_folders() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        for folder in &folders {
            std::fs::write(folder.path().join("b"), "").unwrap();
        }
        std::fs::set_permissions(folders[1].path().join("b"), PermissionsExt::from_mode(0o755)).unwrap();
        let paths = || folders.iter().map(|folder| folder.path().to_owned());
        assert_eq!(find_in("b", paths()), Some(folders[1].path().join("b")));
        assert_eq!(find_in("c", paths()), None);
    }
}
