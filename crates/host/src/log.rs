//! Logs of programs: written to disk without secrets, and for a long log only its beginning and
//! its end.
//!
//! The program writes into a pipe, which a thread reads. So redacted text never reaches the disk,
//! even if this process is killed.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pubmark_model::printable::printable;
use pubmark_model::redactor::Redactor;
use pubmark_model::secret::Secrets;
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A log longer than this, bytes, loses its middle.
pub const LOG_BYTES_MAX: u64 = 16 << 20;
/// Bytes kept of its beginning.
const HEAD_BYTES: u64 = 4 << 20;
/// Bytes kept of its end.
const TAIL_BYTES: u64 = 4 << 20;

/// Maximum length of the end of a log that is sent to a coordinator, bytes.
const END_BYTES_MAX: usize = 4 << 20;
/// Maximum length of all of them together, bytes: they are one line.
const ENDS_BYTES_MAX: usize = 32 << 20;

/// Bytes read at once.
const PIECE_BYTES: usize = 64 << 10;
/// Time without output after which an unfinished line is written, ms.
const REST_MS: u16 = 100;
/// Time that a log may take to be complete after its program has ended.
const SETTLE: Duration = Duration::from_secs(2);

/// Makes an empty log. An existing file is removed, and a link is not followed.
///
/// # Errors
/// If it cannot be made.
pub fn create(path: &Path) -> io::Result<File> {
    let _ = std::fs::remove_file(path);
    File::create_new(path)
}

/// A log that programs write into.
pub struct Log {
    output: Option<PipeWriter>,
    /// A byte requests that everything is written; its end requests the end of the log.
    waker: Option<PipeWriter>,
    written: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    /// Appends to a log, which is made if it is missing.
    ///
    /// # Errors
    /// If it cannot be opened, or no pipe or thread is available.
    pub fn append(path: &Path, secrets: &Secrets) -> io::Result<Log> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).custom_flags(nix::libc::O_NOFOLLOW);
        let file = LogFile { file: options.open(path)?, head: None, left_out: 0 };
        let (pipe, output) = io::pipe()?;
        let (wake, waker) = io::pipe()?;
        let (done, written) = channel();
        let mut pump = Pump { pipe, wake, file, redactor: Redactor::new(secrets.clone()), done };
        let thread = thread::Builder::new().name("log".into()).spawn(move || pump.run())?;
        Ok(Log { output: Some(output), waker: Some(waker), written, thread: Some(thread) })
    }

    /// Returns the pipe that a program writes to.
    ///
    /// # Errors
    /// If no descriptor is left.
    pub fn output(&self) -> io::Result<PipeWriter> {
        self.output.as_ref().map_or_else(|| Err(io::ErrorKind::BrokenPipe.into()), PipeWriter::try_clone)
    }

    /// Closes the log for further programs.
    pub fn seal(&mut self) {
        self.output = None;
    }

    /// Waits until all output so far is on disk, for at most 2 s.
    pub fn settle(&mut self) {
        let asked = self.waker.as_mut().is_some_and(|waker| waker.write_all(b"\n").is_ok());
        if asked {
            let _ = self.written.recv_timeout(SETTLE);
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        (self.output, self.waker) = (None, None);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread that writes output to disk.
struct Pump {
    pipe: PipeReader,
    wake: PipeReader,
    file: LogFile,
    redactor: Redactor,
    done: Sender<()>,
}

impl Pump {
    fn run(&mut self) {
        let (mut piece, mut open) = (vec![0; PIECE_BYTES], true);
        loop {
            let wait = if self.redactor.is_pending() { PollTimeout::from(REST_MS) } else { PollTimeout::NONE };
            let mut awaited =
                [PollFd::new(self.wake.as_fd(), PollFlags::POLLIN), PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
            // A pipe that has ended is not waited for.
            let awaited = if open { &mut awaited[..] } else { &mut awaited[..1] };
            let found = poll(awaited, wait);
            let is_ready = |at: usize| awaited.get(at).and_then(PollFd::any).unwrap_or(false);
            let (woken, ready) = (is_ready(0), is_ready(1));
            match found {
                Ok(0) => {
                    let rest = self.redactor.rest();
                    self.file.write(&rest);
                }
                Ok(_) if woken => {
                    self.drain(&mut piece, &mut open);
                    let ended = !matches!(self.wake.read(&mut [0]), Ok(1));
                    if ended || self.done.send(()).is_err() {
                        return;
                    }
                }
                Ok(_) if ready => open = self.pass_on(&mut piece),
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }

    /// Reads a piece and writes what can be shown; returns whether there may be more.
    fn pass_on(&mut self, piece: &mut [u8]) -> bool {
        match self.pipe.read(piece) {
            Ok(read @ 1..) => {
                let shown = self.redactor.push(&piece[..read]);
                self.file.write(&shown);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            _ => {
                let last = self.redactor.finish();
                self.file.write(&last);
                false
            }
        }
    }

    /// Writes all output so far. It does not wait for a program that never stops
    /// printing.
    fn drain(&mut self, piece: &mut [u8], open: &mut bool) {
        let deadline = Instant::now() + SETTLE;
        while *open && Instant::now() < deadline {
            let mut awaited = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
            if !poll(&mut awaited, PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
                break;
            }
            *open = self.pass_on(piece);
        }
        let last = self.redactor.finish();
        self.file.write(&last);
    }
}

/// A file that loses its middle when it is too long.
struct LogFile {
    file: File,
    /// Offset of the end of its beginning, and length of the line there about omitted bytes.
    head: Option<(u64, u64)>,
    /// Omitted bytes.
    left_out: u64,
}

impl LogFile {
    /// Appends a text. If the disk is full, the text is lost, and the program goes on.
    fn write(&mut self, text: &str) {
        if text.is_empty() || self.file.write_all(text.as_bytes()).is_err() {
            return;
        }
        if self.file.metadata().is_ok_and(|file| file.len() > LOG_BYTES_MAX) {
            let _ = self.shorten();
        }
    }

    fn shorten(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let (head, line) = match self.head {
            Some(known) => known,
            None => (self.line_end(HEAD_BYTES)?, 0),
        };
        let from = self.line_end(length - TAIL_BYTES)?;
        let mut tail = vec![0; (length - from) as usize];
        self.file.read_exact_at(&mut tail, from)?;
        self.left_out += from - head - line;
        let said = format!("[pubmark: {} bytes of this log are left out here]\n", self.left_out);
        self.file.set_len(head)?;
        self.file.write_all(said.as_bytes())?;
        self.file.write_all(&tail)?;
        self.head = Some((head, said.len() as u64));
        Ok(())
    }

    /// Returns the end of the last line before this offset if there is one near it; otherwise
    /// the offset itself.
    fn line_end(&self, place: u64) -> io::Result<u64> {
        let mut near = vec![0; PIECE_BYTES];
        let from = place - PIECE_BYTES as u64;
        self.file.read_exact_at(&mut near, from)?;
        let end = near.iter().rposition(|byte| *byte == b'\n').map(|at| from + at as u64 + 1);
        Ok(end.unwrap_or(place))
    }
}

/// Bytes of a log's end that an error shows.
const SHOWN_BYTES: usize = 1_000;

/// Returns the last lines of a log in 1,000 bytes, worded to follow other text; empty if the log
/// is. Of a line that does not fit, the end is shown.
pub fn last_lines(log: &Path, secrets: &Secrets) -> String {
    let most = SHOWN_BYTES + secrets.longest() + 1;
    let text = end_of(log, most);
    let hidden = secrets.hide(&String::from_utf8_lossy(&text));
    let mut from = hidden.len().saturating_sub(SHOWN_BYTES);
    while !hidden.is_char_boundary(from) {
        from += 1;
    }
    let shown = &hidden[from..];
    // A partial line is dropped if a complete one follows.
    let whole = shown
        .find('\n')
        .filter(|_| text.len() == most || from > 0)
        .map(|at| &shown[at + 1..])
        .filter(|rest| !rest.trim().is_empty());
    printable(whole.unwrap_or(shown).trim()).into_owned()
}

/// Returns the last bytes of a file; empty if there is no such file.
pub fn end_of(path: &Path, bytes: usize) -> Vec<u8> {
    let read = || {
        let file = File::open(path).ok()?;
        let length = file.metadata().ok()?.len();
        let wanted = length.min(bytes as u64);
        let mut text = vec![0; wanted as usize];
        file.read_exact_at(&mut text, length - wanted).ok()?;
        Some(text)
    };
    read().unwrap_or_default()
}

/// Returns the logs of a folder by name; of a long log its end.
pub fn ends_of(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| entry.file_name().into_string().ok().filter(|name| name.ends_with(".log"));
    let names: Vec<String> = entries.filter_map(name).collect();
    let most = END_BYTES_MAX.min(ENDS_BYTES_MAX / names.len().max(1));
    let read = |name: String| {
        let text = end_of(&folder.join(&name), most);
        (name, String::from_utf8_lossy(&text).into_owned())
    };
    names.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::options::Options;

    fn secrets() -> Secrets {
        Secrets::of(&Options::from([("password".to_owned(), "hidden-word".into())]))
    }

    #[test]
    fn what_is_printed_is_on_the_disk_without_secrets() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let read = || std::fs::read_to_string(&path).unwrap();
        let mut log = Log::append(&path, &secrets()).unwrap();
        let mut program = log.output().unwrap();
        program.write_all(b"login hidden-").unwrap();
        log.settle();
        assert_eq!(read(), "login hidden-", "all that was said by then, and it is not a secret yet");
        program.write_all(b"at mqtt://me:hidden-word@h, hidden-word\nended").unwrap();
        drop(program);
        drop(log);
        assert_eq!(read(), "login hidden-at mqtt://***@h, ***\nended");
    }

    /// This process may be killed at any moment: the disk has only what was written so far.
    #[test]
    fn no_secret_is_ever_on_the_disk() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let log = Log::append(&path, &secrets()).unwrap();
        let mut program = log.output().unwrap();
        for at in 0..11 {
            program.write_all(b"a line\nwith hidden-word in it\n".repeat(1_000).as_slice()).unwrap();
            program.write_all(&b"hidden-word"[..at]).unwrap();
            assert!(!std::fs::read_to_string(&path).unwrap().contains("hidden-word"));
            program.write_all(&b"hidden-word"[at..]).unwrap();
        }
    }

    #[test]
    fn a_long_log_keeps_its_beginning_and_its_end_and_says_what_is_left_out() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let log = Log::append(&path, &Secrets::default()).unwrap();
        let mut program = log.output().unwrap();
        let line = |number: usize| format!("{number:0>99}\n");
        let lines = 400_000;
        for number in 0..lines {
            program.write_all(line(number).as_bytes()).unwrap();
        }
        program.write_all(b"the decisive line\n").unwrap();
        drop(program);
        drop(log);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.len() as u64 <= LOG_BYTES_MAX && text.len() as u64 > HEAD_BYTES + TAIL_BYTES / 2,
            "{}",
            text.len()
        );
        assert!(text.starts_with(&line(0)) && text.ends_with(&format!("{}the decisive line\n", line(lines - 1))));
        let said: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
        let [said] = said[..] else { panic!("{said:?}") };
        let left_out: usize = said.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(left_out + text.len() - said.len() - 1, lines * 100 + 18, "{said}");
        assert!(text.lines().all(|line| line.len() == 99 || line == said || line == "the decisive line"));
    }

    #[test]
    fn the_end_of_a_log_is_its_last_lines() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let none = Secrets::default();
        assert_eq!(last_lines(&path, &none), "");
        let usage = "usage: server [-x]\n".repeat(200);
        std::fs::write(&path, format!("{usage}error: no such option: -y\n\n")).unwrap();
        let shown = last_lines(&path, &none);
        assert!(shown.starts_with("usage: ") && shown.ends_with("\nerror: no such option: -y"), "{shown}");
        assert!(shown.len() <= SHOWN_BYTES);
        std::fs::write(&path, format!("{}the end\n", "x".repeat(5_000))).unwrap();
        assert!(last_lines(&path, &none).ends_with("xthe end"));
        // Wherever the cut is, no part of a secret is shown.
        for after in SHOWN_BYTES - 11..SHOWN_BYTES + 11 {
            std::fs::write(&path, format!("{}hidden-word{}", "x".repeat(1_900), "y".repeat(after))).unwrap();
            let shown = last_lines(&path, &secrets());
            assert!(!shown.contains("word") && !shown.contains("dy"), "{after}: {shown}");
        }
        std::fs::write(&path, "\x1b[2Jup\n").unwrap();
        assert_eq!(last_lines(&path, &none), "\\u{1b}[2Jup");
    }

    #[test]
    fn a_log_is_not_written_through_a_link() {
        let place = tempfile::tempdir().unwrap();
        let (precious, path) = (place.path().join("precious"), place.path().join("log"));
        std::fs::write(&precious, "theirs").unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        assert!(Log::append(&path, &Secrets::default()).is_err());
        create(&path).unwrap().write_all(b"mine").unwrap();
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "theirs");
    }
}
