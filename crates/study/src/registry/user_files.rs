//! System files of the user, read from their folders. Each is validated by itself, so that an invalid file disturbs
//! nobody until it is asked for.

use pubmark_files::{Links, read_text_of};
use pubmark_model::diagnostic::{Diagnostic, Diagnostics};
use pubmark_model::printable::printable;
use pubmark_model::system::{System, is_system_name};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest size of a system file, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of files of a folder that are read.
const FILES_MAX: usize = 1_000;
/// Extension of a system file's name.
pub const EXTENSION: &str = "toml";

/// Reason why a file of the user is no valid system.
#[derive(Debug, thiserror::Error)]
pub enum RefusedFile {
    /// It cannot be read.
    #[error("{}: {source}", printable(&path.display().to_string()))]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Its name cannot be a system's.
    #[error(
        "{}: a system is called as its file is, and this is not a name: up to 64 letters, digits, `-`, `_` and `.`, \
         and `.{EXTENSION}` behind them",
        printable(&path.display().to_string())
    )]
    Name {
        /// Path of the file.
        path: PathBuf,
    },
    /// Its content is invalid.
    #[error(transparent)]
    Wrong(Box<Diagnostics>),
    /// Another file that was named by its path has this name.
    #[error(
        "{} and {} would both be the system `{name}`: give one of the files another name",
        printable(&path.display().to_string()),
        printable(&other.display().to_string())
    )]
    Twice {
        /// The name.
        name: String,
        /// Path of the file.
        path: PathBuf,
        /// Path of the other file.
        other: PathBuf,
    },
}

/// A file of the user.
#[derive(Debug)]
pub struct UserFile {
    /// The system's name: the file's name without its extension.
    pub name: String,
    /// Absolute path of the file.
    pub path: PathBuf,
    /// The system, or the reason why it is invalid.
    pub system: Result<Arc<System>, Arc<RefusedFile>>,
}

/// Returns the text of the system of this name that comes with pubmark, if any.
pub type BuiltIn<'a> = &'a dyn Fn(&str) -> Option<&'static str>;

/// Returns whether a name is meant as a path, and not as an endpoint, which may hold a login.
pub fn is_path(name: &str) -> bool {
    !name.contains("://") && !name.contains('@') && (name.contains('/') || name.ends_with(".toml"))
}

/// Returns the files of a folder, by name; none if the folder does not exist. Leaves out those that equal a system that
/// comes with pubmark.
pub fn of_folder(folder: &Path, built_in: BuiltIn<'_>) -> Vec<UserFile> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == EXTENSION))
        .take(FILES_MAX)
        .collect();
    paths.sort();
    paths.iter().filter_map(|path| read(path, built_in)).collect()
}

/// Reads a file. Returns `None` if it equals a system that comes with pubmark.
pub fn read(path: &Path, built_in: BuiltIn<'_>) -> Option<UserFile> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let named = path.extension().is_some_and(|end| end == EXTENSION) && is_system_name(stem);
    let name = if named { stem.to_owned() } else { printable(&path.display().to_string()).into_owned() };
    let system = match named {
        false => Err(RefusedFile::Name { path: path.clone() }),
        true => match text_of(&path) {
            Err(source) => Err(RefusedFile::Unreadable { path: path.clone(), source }),
            Ok(text) if built_in(&name) == Some(&text) => return None,
            Ok(text) => parse(&name, &path, &text, built_in),
        },
    };
    Some(UserFile { name, path, system: system.map(Arc::new).map_err(Arc::new) })
}

fn parse(name: &str, path: &Path, text: &str, built_in: BuiltIn<'_>) -> Result<System, RefusedFile> {
    let file = path.display().to_string();
    let system = System::parse(name, &file, text).map_err(|errors| RefusedFile::Wrong(Box::new(errors)))?;
    if built_in(name).is_some() && !system.replaces {
        let taken = Diagnostic::at(0, format!("a system `{name}` comes with pubmark, and this file is another"))
            .help("give the file another name, or write `replaces = true` at its beginning: records then say so");
        return Err(RefusedFile::Wrong(Box::new(Diagnostics { file, text: text.to_owned(), errors: vec![taken] })));
    }
    let here = path.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    Ok(System { brought: true, here, ..system })
}

/// Returns a file's text, or an error if it is no regular file, too large or not text.
fn text_of(path: &Path) -> io::Result<String> {
    read_text_of(path, FILE_BYTES_MAX, Links::Follow).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => io::Error::new(error.kind(), "larger than 1 MiB, which no system file is"),
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "title = \"T\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mqtt\"\npatterns = [\"pairs\"]\n";

    fn said(read: Option<UserFile>) -> String {
        read.unwrap().system.unwrap_err().to_string()
    }

    #[test]
    fn a_file_is_a_system_unless_it_takes_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let built_in = |name: &str| (name == "taken").then_some("title = \"theirs\"");
        let write = |name: &str, text: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            read(&path, &built_in)
        };
        let mine = write("mine.toml", FILE.as_bytes()).unwrap();
        let system = mine.system.unwrap();
        assert_eq!((system.name.as_str(), system.here.as_str()), ("mine", folder.path().to_str().unwrap()));
        assert!(write("taken.toml", b"title = \"theirs\"").is_none(), "the same is no other");
        let taken = said(write("taken.toml", FILE.as_bytes()));
        assert!(taken.contains("taken.toml:1:1: a system `taken` comes with pubmark"), "{taken}");
        assert!(taken.contains("replaces = true"), "{taken}");
        let replaces = write("taken.toml", format!("replaces = true\n{FILE}").as_bytes()).unwrap();
        assert!(replaces.system.unwrap().replaces);
        let wrong = said(write("wrong.toml", FILE.replace("about", "abut").as_bytes()));
        assert!(wrong.contains("wrong.toml:2:1: unknown key `abut`"), "{wrong}");
        assert!(said(write("latin.toml", b"title = \"x\"\nabout = \"\xe9\"")).contains("UTF-8 text from line 2 on"));
        assert!(said(write("a b.toml", FILE.as_bytes())).contains("this is not a name"));
        assert!(said(write("\u{1b}[2J.toml", FILE.as_bytes())).contains("\\u{1b}[2J"));
        assert!(said(write("large.toml", &vec![b'#'; 2 << 20])).contains("larger than 1 MiB"));
        std::fs::create_dir(folder.path().join("folder.toml")).unwrap();
        assert!(said(read(&folder.path().join("folder.toml"), &built_in)).contains("it is a folder, and not a file"));
        assert_eq!(of_folder(folder.path(), &built_in).len(), 8, "each by itself, whatever the others are");
        assert!(of_folder(&folder.path().join("gone"), &built_in).is_empty());
    }
}
