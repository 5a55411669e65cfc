//! What a server prints: its end, for errors, and a text in it that is waited for.

use pubmark_model::printable::printable;
use pubmark_model::secret::Secrets;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// So much of a log's end goes into an error, bytes.
const TAIL_BYTES: u64 = 500;

/// The end of a log, in words that can follow others.
pub fn tail(log: &Path, secrets: &Secrets) -> String {
    let read = || {
        let mut file = File::open(log).ok()?;
        let length = file.metadata().ok()?.len();
        // A secret at the cut is read whole, or else its rest would be shown.
        let most = TAIL_BYTES + secrets.longest() as u64;
        file.seek(SeekFrom::Start(length.saturating_sub(most))).ok()?;
        let mut text = Vec::new();
        file.take(most).read_to_end(&mut text).ok()?;
        let tail = secrets.hide_end(&String::from_utf8_lossy(&text), TAIL_BYTES as usize);
        Some(printable(&tail).into_owned())
    };
    match read() {
        Some(text) if !text.is_empty() => format!("; the end of its log: {text}"),
        _ => "; its log is empty".into(),
    }
}

/// Looks for a text in a log that grows, without reading any of it twice.
pub struct LogWatch {
    path: PathBuf,
    wanted: Vec<u8>,
    read_bytes: u64,
    /// What was read last, as far as the text may have begun there.
    rest: Vec<u8>,
    said: bool,
}

impl LogWatch {
    /// For a text that is wanted; none is wanted if it is empty.
    pub fn new(path: &Path, wanted: &str) -> LogWatch {
        let said = wanted.is_empty();
        LogWatch { path: path.to_owned(), wanted: wanted.into(), read_bytes: 0, rest: Vec::new(), said }
    }

    /// Whether it has been said by now.
    pub fn has_said(&mut self) -> bool {
        if self.said {
            return true;
        }
        let Ok(mut file) = File::open(&self.path) else { return false };
        let read = file.seek(SeekFrom::Start(self.read_bytes)).and_then(|_| file.read_to_end(&mut self.rest));
        self.read_bytes += read.unwrap_or(0) as u64;
        self.said = self.rest.windows(self.wanted.len()).any(|window| window == self.wanted);
        let kept = self.rest.len().min(self.wanted.len() - 1);
        self.rest.drain(..self.rest.len() - kept);
        self.said
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
    }

    #[test]
    fn a_logs_end_is_short() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        assert_eq!(tail(&path, &Secrets::default()), "; its log is empty");
        std::fs::write(&path, format!("{}the end\n", "x".repeat(5_000))).unwrap();
        let shown = tail(&path, &Secrets::default());
        assert!(shown.ends_with("xthe end") && shown.len() < 600, "{shown}");
        // However a secret lies to the cut, no part of it is shown.
        let secrets = Secrets::of(&[("password".to_owned(), "hidden-word".into())].into_iter().collect());
        for after in TAIL_BYTES as usize - 11..TAIL_BYTES as usize + 11 {
            std::fs::write(&path, format!("{}hidden-word{}", "x".repeat(900), "y".repeat(after))).unwrap();
            let shown = tail(&path, &secrets);
            assert!(!shown.contains("word") && !shown.contains("wor y") && !shown.contains("dy"), "{after}: {shown}");
        }
    }
}
