//! Log messages of a server that has run out of memory, or reached another limit of its own, and
//! still runs.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Maximum length of a line that is kept, bytes.
const LINE: u64 = 500;

/// Returns the first line of a server's log that contains this text.
pub fn said(log: &Path, text: &str) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let mut log = BufReader::new(File::open(log).ok()?);
    let mut line = Vec::new();
    loop {
        line.clear();
        // The rest of a longer line is read as the next one.
        if (&mut log).take(LINE).read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        let told = String::from_utf8_lossy(&line);
        if told.contains(text) {
            return Some(told.trim().to_owned());
        }
    }
}

/// Searches a growing log for a text, and reads each part of it once.
pub struct LogSearch {
    log: PathBuf,
    text: String,
    /// Bytes of the log that have been read.
    read_bytes: u64,
    found: Option<String>,
}

impl LogSearch {
    /// Makes a search for this text; an empty text is never found.
    pub fn new(log: &Path, text: &str) -> LogSearch {
        LogSearch { log: log.to_owned(), text: text.to_owned(), read_bytes: 0, found: None }
    }

    /// Returns the first line with the text so far.
    pub fn look(&mut self) -> Option<&str> {
        if self.found.is_none() && !self.text.is_empty() {
            // A log that cannot be read contains nothing.
            let _ = self.read_on();
        }
        self.found.as_deref()
    }

    /// Ignores everything that has been logged so far.
    pub fn forget(&mut self) {
        self.look();
        self.found = None;
        self.read_bytes = std::fs::metadata(&self.log).map_or(self.read_bytes, |log| log.len());
    }

    fn read_on(&mut self) -> std::io::Result<()> {
        let mut log = BufReader::new(File::open(&self.log)?);
        log.seek(SeekFrom::Start(self.read_bytes))?;
        let mut line = Vec::new();
        loop {
            line.clear();
            let bytes = (&mut log).take(LINE).read_until(b'\n', &mut line)?;
            // The rest of a line that is still being written is read the next time.
            if bytes == 0 || (bytes < LINE as usize && !line.ends_with(b"\n")) {
                return Ok(());
            }
            self.read_bytes += bytes as u64;
            let told = String::from_utf8_lossy(&line);
            if told.contains(&self.text) {
                self.found = Some(told.trim().to_owned());
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_says_so_is_the_evidence() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("log");
        let text = "up\n  WARN java.lang.OutOfMemoryError: Java heap space\nat x\njava.lang.OutOfMemoryError: again\n";
        std::fs::write(&log, text).unwrap();
        let line = said(&log, "java.lang.OutOfMemoryError");
        assert_eq!(line.as_deref(), Some("WARN java.lang.OutOfMemoryError: Java heap space"));
        assert_eq!((said(&log, "OOM"), said(&log, ""), said(&place.path().join("none"), "up")), (None, None, None));
        std::fs::write(&log, "x".repeat(100_000) + "\nit is full").unwrap();
        assert_eq!(said(&log, "full").as_deref(), Some("it is full"));
    }

    #[test]
    fn a_log_that_grows_is_searched_from_where_it_was_left() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("log");
        let mut search = LogSearch::new(&log, "alarm set");
        assert_eq!(search.look(), None, "there is no log yet");
        std::fs::write(&log, "up\nmemory ala").unwrap();
        assert_eq!(search.look(), None);
        std::fs::write(&log, "up\nmemory alarm set on x\ndisk alarm set on x\n").unwrap();
        assert_eq!(search.look(), Some("memory alarm set on x"));
        search.forget();
        assert_eq!(search.look(), None, "what was said before another run began");
        std::fs::write(&log, "up\nmemory alarm set on x\ndisk alarm set on x\nalarm set again\n").unwrap();
        assert_eq!(search.look(), Some("alarm set again"));
        assert_eq!(LogSearch::new(&log, "").look(), None);
    }
}
