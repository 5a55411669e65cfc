//! Files of message sizes that a study names, read from its folder.

use pubmark_files::{Links, read_text};
use pubmark_model::payload::{SizeFileError, read_sizes};
use pubmark_model::study::Study;
use std::path::{Path, PathBuf};

/// Error of a file of sizes.
#[derive(Debug, thiserror::Error)]
pub enum SizeFilesError {
    /// The file cannot be read.
    #[error("`payload = \"file {name}\"`: {path}: {source}: name a file by its path from the folder of the study", path = .path.display())]
    Unreadable {
        /// Its name in the study.
        name: String,
        /// Its path.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The file has no sizes.
    #[error(transparent)]
    Sizes(#[from] SizeFileError),
}

/// Reads the files of sizes that a study names and does not have yet, from `folder`. The study has their contents from
/// here on, also in its resolved form.
///
/// # Errors
/// If a file cannot be read, or a line of it is no size.
pub fn load(study: &mut Study, folder: &Path) -> Result<(), SizeFilesError> {
    for name in study.missing_sizes() {
        let path = folder.join(&name);
        let text = read_text(&path, Links::Follow);
        let text = text.map_err(|source| SizeFilesError::Unreadable { name: name.clone(), path, source })?;
        let sizes = read_sizes(&name, &text)?;
        study.sizes.insert(name, sizes);
    }
    Ok(())
}
