//! Waits for a text in a server's log.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes read at once.
const PIECE_BYTES: usize = 64 << 10;

/// Searches a growing log for a text, without reading any of it twice.
pub struct LogWatch {
    path: PathBuf,
    wanted: Vec<u8>,
    read_bytes: u64,
    /// The end of the last piece, in which the text may have begun.
    rest: Vec<u8>,
    said: bool,
}

impl LogWatch {
    /// Makes a search for a text; an empty text is found at once.
    pub fn new(path: &Path, wanted: &str) -> LogWatch {
        let said = wanted.is_empty();
        LogWatch { path: path.to_owned(), wanted: wanted.into(), read_bytes: 0, rest: Vec::new(), said }
    }

    /// True if the text is in the log by now.
    pub fn has_said(&mut self) -> bool {
        if self.said {
            return true;
        }
        let Ok(file) = File::open(&self.path) else { return false };
        // A long log loses its middle.
        if file.metadata().is_ok_and(|file| file.len() < self.read_bytes) {
            self.read_bytes = 0;
            self.rest.clear();
        }
        let mut piece = vec![0; PIECE_BYTES];
        while let Ok(read @ 1..) = file.read_at(&mut piece, self.read_bytes) {
            self.read_bytes += read as u64;
            self.rest.extend_from_slice(&piece[..read]);
            if self.rest.windows(self.wanted.len()).any(|window| window == self.wanted) {
                self.said = true;
                return true;
            }
            let kept = self.rest.len().min(self.wanted.len() - 1);
            self.rest.drain(..self.rest.len() - kept);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_text_is_found_across_two_looks() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let mut file = File::create(&path).unwrap();
        let mut watch = LogWatch::new(&path, "server up");
        assert!(!watch.has_said());
        file.write_all(b"not yet\nserv").unwrap();
        assert!(!watch.has_said());
        file.write_all(b"er up\n").unwrap();
        assert!(watch.has_said() && watch.has_said());
        assert!(LogWatch::new(&path, "").has_said());
        // What was cut off counts as not read.
        let mut watch = LogWatch::new(&path, "listens");
        assert!(!watch.has_said());
        std::fs::write(&path, "listens\n").unwrap();
        assert!(watch.has_said());
    }
}
