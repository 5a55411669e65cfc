//! Agent processes as the coordinator sees them.

use crate::log::{self, Log};
use crate::programs::find_program_from;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use pubmark_model::line::JsonLine;
use pubmark_model::printable::{printable, unprintable};
use pubmark_model::protocol::{Command, Event, MAX_HELLO, MAX_LINE, SCRATCH};
use pubmark_model::secret::Secrets;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum length of a line of an agent that was sent nothing, bytes: it has room for all ranges of
/// both kinds, histograms and series.
const LINE_BYTES: usize = 144 << 20;
/// Bytes by which an agent's lines may be longer for each byte sent to it, which grows with its clients.
const ANSWERED: usize = 8;
/// Bytes of a line's buffer that are kept for the next line.
const KEPT_BYTES: usize = 64 << 10;

/// Time that an agent has to exit before it is killed.
const EXIT: Duration = Duration::from_secs(2);

/// A message from an agent.
#[derive(Debug)]
pub enum Incoming {
    /// An event of the protocol.
    Event(Box<Event>),
    /// A line that is not an event.
    Garbage(String),
    /// The agent's output has ended.
    Closed,
    /// The host connection has ended, and with it everything on the host.
    Lost,
}

impl Incoming {
    /// Parses a line of an agent, or its end (`None`). A line that is not an event is
    /// quoted without secrets.
    pub fn of(line: Option<&[u8]>, secrets: &Secrets) -> Incoming {
        let Some(line) = line else { return Incoming::Closed };
        if line.len() >= LINE_BYTES && line.last() != Some(&b'\n') {
            return Incoming::Garbage(format!(
                "a line of more than {} MiB, which no event of this run has",
                LINE_BYTES >> 20
            ));
        }
        match read(line) {
            Ok(event) => Incoming::Event(event),
            Err(_) if line.len() == MAX_HELLO && line.last() != Some(&b'\n') => {
                Incoming::Garbage(format!("a first line of more than {} MiB, which no `hello` has", MAX_HELLO >> 20))
            }
            Err(error) => {
                // The rest is not shown, so it is not read.
                let head = &line[..line.len().min(SHOWN_BYTES + secrets.longest())];
                let told = secrets.hide(String::from_utf8_lossy(head).trim());
                let told: String = told.chars().take(SHOWN_CHARS).collect();
                Incoming::Garbage(format!("{error}: {}", printable(&told)))
            }
        }
    }
}

/// Maximum number of characters quoted from a line that is not an event.
const SHOWN_CHARS: usize = 200;
const SHOWN_BYTES: usize = 4 * SHOWN_CHARS;

/// Parses an event. Control characters in its texts are kept as visible numbers: JSON
/// contains them as escapes or, beyond ASCII, unescaped.
fn read(line: &[u8]) -> serde_json::Result<Box<Event>> {
    let beyond_ascii = || line.iter().any(|byte| matches!(byte, 0x7f | 0xc2 | 0xe2));
    let escapes = || line.windows(2).any(|pair| pair == b"\\u");
    match std::str::from_utf8(line) {
        Ok(text) if escapes() || beyond_ascii() => Event::from_json(by_number(text).as_bytes()).map(Box::new),
        _ => Event::from_json(line).map(Box::new),
    }
}

/// Returns JSON text in which control characters for terminals are written as their numbers.
fn by_number(json: &str) -> String {
    let mut shown = String::with_capacity(json.len() + 64);
    let mut rest = json;
    while let Some(at) = rest.find(|c: char| c == '\\' || unprintable(c)) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        let escape = from.strip_prefix("\\u").and_then(|digits| digits.get(..4));
        let meant = match escape {
            Some(digits) => u32::from_str_radix(digits, 16).ok().and_then(char::from_u32),
            None => from.chars().next().filter(|c| *c != '\\'),
        };
        // Any other escape has two characters.
        let length = match (escape, from.as_bytes()[0]) {
            (Some(_), _) => 6,
            (None, b'\\') => 1 + from[1..].chars().next().map_or(0, char::len_utf8),
            (None, _) => meant.map_or(1, char::len_utf8),
        };
        match meant.filter(|c| unprintable(*c) && (escape.is_some() || !c.is_ascii_control() || *c == '\u{7f}')) {
            Some(c) => drop(write!(shown, "\\{}", c.escape_unicode())),
            None => shown.push_str(&from[..length]),
        }
        rest = &from[length..];
    }
    shown + rest
}

/// This program, as seen by the process that becomes another program.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The command of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCommand {
    /// Program and arguments; empty for the built-in agent.
    pub words: Vec<String>,
    /// True if it speaks protocol 3, which `pubmark rows` translates.
    #[serde(default)]
    pub writes_rows: bool,
    /// Working folder; empty for that of pubmark itself.
    #[serde(default)]
    pub folder: String,
    /// Environment variables, in addition to those of pubmark itself.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
}

/// A running agent. It is killed on drop, if it has not ended by then.
pub struct Agent {
    /// Its name, from the clients that it plays: `publishers`, `subscribers-2`, `all`.
    pub name: String,
    child: Child,
    /// Lines for its standard input, which a thread writes: an agent that does not read
    /// blocks only itself.
    lines: Option<Sender<Vec<u8>>>,
    /// Current maximum length of a line from the agent, bytes.
    most: Arc<AtomicUsize>,
    log: PathBuf,
    /// The log of its standard error.
    printed: Log,
    secrets: Secrets,
}

impl Agent {
    /// Starts an agent. Each of its lines is passed to `say`, and `None` at the end; its
    /// standard error goes to the file `log`, which is quoted without secrets. If the
    /// coordinator dies, the agent removes the folder `scratch`.
    pub fn start(
        command: &[String],
        name: &str,
        log: &Path,
        scratch: &Path,
        secrets: &Secrets,
        say: impl FnMut(Option<&[u8]>) + Send + 'static,
    ) -> std::io::Result<Agent> {
        let command = AgentCommand { words: command.to_vec(), ..AgentCommand::default() };
        Agent::start_command(&command, name, log, scratch, secrets, say)
    }

    /// Starts an agent with its own folder and environment, like [`Agent::start`].
    pub fn start_command(
        command: &AgentCommand,
        name: &str,
        log: &Path,
        scratch: &Path,
        secrets: &Secrets,
        say: impl FnMut(Option<&[u8]>) + Send + 'static,
    ) -> std::io::Result<Agent> {
        let (program, arguments) = command
            .words
            .split_first()
            .ok_or_else(|| std::io::Error::new(std::io::ErrorKind::InvalidInput, "the agent's command is empty"))?;
        let folder = Some(Path::new(&command.folder)).filter(|folder| !folder.as_os_str().is_empty());
        let found = find_program_from(folder, program).unwrap_or_else(|| program.into());
        let mut starting = match command.writes_rows {
            false => std::process::Command::new(found),
            true => {
                let mut translator = std::process::Command::new(OWN_PROGRAM);
                translator.arg("rows").arg(found);
                translator
            }
        };
        if !command.folder.is_empty() {
            starting.current_dir(&command.folder);
        }
        log::create(log)?;
        let mut printed = Log::append(log, secrets)?;
        let mut child = starting
            .args(arguments)
            .envs(command.environment.iter().map(|(name, value)| (name, value)))
            .env(SCRATCH, scratch)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(printed.output()?)
            // Its own process group, so that Ctrl-C reaches only the coordinator.
            .process_group(0)
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        printed.seal();
        let (lines, said) = channel();
        let most = Arc::new(AtomicUsize::new(LINE_BYTES));
        let agent = Agent {
            name: name.to_owned(),
            child,
            lines: Some(lines),
            most: most.clone(),
            log: log.to_owned(),
            printed,
            secrets: secrets.clone(),
        };
        if let Some(input) = input {
            thread::Builder::new().name(format!("to {name}")).spawn(move || write_out(input, &said))?;
        }
        if let Some(output) = output {
            thread::Builder::new().name(name.to_owned()).spawn(move || listen(output, &most, say))?;
        }
        Ok(agent)
    }

    /// Returns its process id.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Sends a command to the agent without waiting for it to read. If the agent has
    /// exited, its output ends; if it does not read, its answer is missing.
    pub fn tell(&mut self, command: &Command) {
        if let Ok(line) = command.to_json() {
            self.tell_line(line);
        }
    }

    /// Sends a line to the agent as it is.
    pub fn tell_line(&mut self, mut line: Vec<u8>) {
        if let Some(lines) = &self.lines {
            line.push(b'\n');
            self.most.fetch_add(ANSWERED * line.len(), Ordering::Relaxed);
            let _ = lines.send(line);
        }
    }

    /// Closes its input, once all sent lines are written.
    pub fn close_input(&mut self) {
        self.lines = None;
    }

    /// Sends a signal to the agent and the processes that it has started.
    pub fn signal(&self, signal: Signal) {
        // The agent leads its own process group.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), signal);
    }

    /// Waits for the end of an agent that was sent `exit`; kills it if it does not end.
    pub fn finish(&mut self) {
        Agent::finish_all(std::slice::from_mut(self));
    }

    /// Waits for the end of several agents with one deadline.
    pub fn finish_all(agents: &mut [Agent]) {
        for agent in agents.iter_mut() {
            agent.lines = None;
            // An agent that a fault has stopped would not notice it.
            agent.signal(Signal::SIGCONT);
        }
        let deadline = Instant::now() + EXIT;
        for agent in agents {
            match agent.ended(deadline) {
                true => agent.tidy(),
                false => agent.kill(),
            }
        }
    }

    /// Waits until its process has ended or the deadline has come; returns whether it has
    /// ended.
    fn ended(&mut self, deadline: Instant) -> bool {
        loop {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            thread::park_timeout(Duration::from_millis(1));
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.tidy();
    }

    /// Removes the log if it is empty.
    fn tidy(&mut self) {
        self.printed.settle();
        if std::fs::metadata(&self.log).is_ok_and(|log| log.len() == 0) {
            let _ = std::fs::remove_file(&self.log);
        }
    }

    /// Describes how it ended, with the end of its log.
    pub fn exit_reason(&mut self) -> String {
        self.ended(Instant::now() + EXIT);
        let status = match self.child.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "its output closed, but it runs on".into(),
        };
        self.printed.settle();
        let tail = log::last_lines(&self.log, &self.secrets);
        if tail.is_empty() { status } else { format!("{status}; the end of its log: {tail}") }
    }

    /// Returns the last line of its log, if there is one.
    pub fn last_words(&mut self) -> Option<String> {
        self.printed.settle();
        let tail = log::last_lines(&self.log, &self.secrets);
        tail.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        } else {
            self.tidy();
        }
    }
}

/// Writes lines until there are no more, or nobody reads them.
fn write_out(mut input: impl Write, lines: &Receiver<impl AsRef<[u8]>>) {
    for line in lines {
        if input.write_all(line.as_ref()).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

/// Passes on each line, and finally the end.
fn listen(output: impl Read, longest: &AtomicUsize, mut say: impl FnMut(Option<&[u8]>)) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    let mut most = MAX_HELLO;
    loop {
        line.clear();
        // Frees the memory of a long line.
        line.shrink_to(KEPT_BYTES);
        match (&mut output).take(most as u64).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return say(None),
            Ok(_) => say(Some(&line)),
        }
        if line.last() == Some(&b'\n') {
            most = longest.load(Ordering::Relaxed).min(MAX_LINE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn garbage(line: &[u8]) -> String {
        match Incoming::of(Some(line), &Secrets::default()) {
            Incoming::Garbage(told) => told,
            other => panic!("{other:?}"),
        }
    }

    fn message(line: &str) -> String {
        match Incoming::of(Some(line.as_bytes()), &Secrets::default()) {
            Incoming::Event(event) => match *event {
                Event::Error { message, .. } => message,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_told_by_number() {
        let said = |text: &str| message(&format!("{{\"type\":\"error\",\"message\":\"{text}\",\"fatal\":true}}"));
        assert_eq!(said("\\u001b]0;mine\\u0007"), "\\u{1b}]0;mine\\u{7}");
        assert_eq!(said("\u{9b}2J \u{7f} \u{202e}x"), "\\u{9b}2J \\u{7f} \\u{202e}x");
        assert_eq!(said("µs – 中 \\n second"), "µs – 中 \n second");
        assert_eq!(garbage(b"\x1b[2J"), "expected value at line 1 column 1: \\u{1b}[2J");
    }

    #[test]
    fn bombs_end_in_a_line() {
        let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
        assert!(garbage(&deep).chars().count() < 400);
        let deep = format!("{{\"type\":\"error\",\"message\":\"\\u001b\",\"fatal\":{}", "[".repeat(100_000));
        assert!(garbage(deep.as_bytes()).contains("recursion limit exceeded"));
        assert!(garbage(b"{\"type\":\"error\",\"message\":\"\xff\xfe\"}").contains("invalid unicode"));
        let beyond = "{\"type\":\"progress\",\"sent\":18446744073709551616,\"received\":0}";
        assert!(garbage(beyond.as_bytes()).contains("18446744073709551616"), "{}", garbage(beyond.as_bytes()));
        for count in ["-1", "1e300", "0.5", "\"1\""] {
            garbage(format!("{{\"type\":\"progress\",\"sent\":{count},\"received\":0}}").as_bytes());
        }
        let long = [b"{\"type\":\"".as_slice(), &vec![b'x'; 100 << 20]].concat();
        let told = garbage(&long);
        assert!(told.chars().count() < 400, "{}", told.len());
    }

    #[test]
    fn a_line_without_an_end_is_not_waited_for() {
        let heard = |output: &mut dyn Read| {
            let mut told = Vec::new();
            listen(output, &AtomicUsize::new(LINE_BYTES), |line| told.extend(line.map(garbage)));
            told
        };
        let endless = || std::io::repeat(b'x').take(2 * LINE_BYTES as u64);
        let told = heard(&mut b"hello\n".chain(endless()));
        assert_eq!(told[1..], ["a line of more than 144 MiB, which no event of this run has"; 2], "two pieces");
        // An agent that has not sent hello may send no more than this.
        let told = heard(&mut endless().take(3 * MAX_HELLO as u64));
        assert_eq!(told, ["a first line of more than 1 MiB, which no `hello` has"; 3]);
    }
}
