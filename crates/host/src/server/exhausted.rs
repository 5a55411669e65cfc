//! A server that has run out of memory and lives on: what it said of it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// The longest part of a line that is kept, bytes.
const LINE: u64 = 500;

/// The first line of a server's log that holds this text, if any does.
pub fn said(log: &Path, text: &str) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let mut log = BufReader::new(File::open(log).ok()?);
    let mut line = Vec::new();
    loop {
        line.clear();
        // What follows of a longer line is read as the next one.
        if (&mut log).take(LINE).read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        let told = String::from_utf8_lossy(&line);
        if told.contains(text) {
            return Some(told.trim().to_owned());
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
}
