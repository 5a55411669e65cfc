//! Agents as the coordinator sees them: processes that speak the protocol.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use pubmark_model::protocol::{Command, Event, MAX_LINE, SCRATCH};
use pubmark_model::secret::Secrets;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long an agent may take to exit before it is killed.
const EXIT: Duration = Duration::from_secs(2);

/// What arrives from an agent.
#[derive(Debug)]
pub enum Incoming {
    /// A word of the protocol.
    Event(Box<Event>),
    /// A line that is none.
    Garbage(String),
    /// Its output has ended.
    Closed,
}

impl Incoming {
    /// A line of an agent's, or its end; a line that is no word is told without
    /// the secrets.
    pub fn of(line: Option<&[u8]>, secrets: &Secrets) -> Incoming {
        let Some(line) = line else { return Incoming::Closed };
        match serde_json::from_slice(line) {
            Ok(event) => Incoming::Event(Box::new(event)),
            Err(error) => {
                let told = secrets.hide(String::from_utf8_lossy(line).trim());
                Incoming::Garbage(format!("{error}: {}", told.chars().take(200).collect::<String>()))
            }
        }
    }
}

/// Puts what an agent says into an inbox, under this number.
pub fn into_inbox(
    number: usize,
    inbox: Sender<(usize, Incoming)>,
    secrets: &Secrets,
) -> impl FnMut(Option<&[u8]>) + Send + 'static {
    let secrets = secrets.clone();
    // Nobody listens any more when its owner has gone.
    move |line| drop(inbox.send((number, Incoming::of(line, &secrets))))
}

/// A running agent. It is killed when dropped, if it has not ended by then.
pub struct Agent {
    /// What it plays: `publishers`, `subscribers-2`, `all`.
    pub name: String,
    child: Child,
    /// Lines on their way to its standard input, which a thread writes: an
    /// agent that does not read holds up nobody but itself.
    lines: Option<Sender<Vec<u8>>>,
    log: PathBuf,
    secrets: Secrets,
}

impl Agent {
    /// Starts an agent. Each line that it says goes to `say`, and at last none;
    /// its standard error to the file `log`, which is quoted without the
    /// secrets. Should the coordinator die, the agent removes the folder
    /// `scratch`.
    pub fn start(
        command: &[String],
        name: &str,
        log: &Path,
        scratch: &Path,
        secrets: &Secrets,
        say: impl FnMut(Option<&[u8]>) + Send + 'static,
    ) -> std::io::Result<Agent> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| std::io::Error::new(std::io::ErrorKind::InvalidInput, "the agent's command is empty"))?;
        let mut child = std::process::Command::new(program)
            .args(arguments)
            .env(SCRATCH, scratch)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(log)?)
            // Of its own, so that Ctrl-C reaches the coordinator alone.
            .process_group(0)
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (lines, said) = channel();
        let agent =
            Agent { name: name.to_owned(), child, lines: Some(lines), log: log.to_owned(), secrets: secrets.clone() };
        if let Some(input) = input {
            thread::Builder::new().name(format!("to {name}")).spawn(move || write_out(input, &said))?;
        }
        if let Some(output) = output {
            thread::Builder::new().name(name.to_owned()).spawn(move || listen(output, say))?;
        }
        Ok(agent)
    }

    /// Its process.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Says something to the agent, without waiting for it to read. One that
    /// has gone shows by its closed output, one that does not listen by its
    /// silence.
    pub fn tell(&mut self, command: &Command) {
        if let Ok(line) = serde_json::to_vec(command) {
            self.tell_line(line);
        }
    }

    /// The same of a line as it is.
    pub fn tell_line(&mut self, mut line: Vec<u8>) {
        if let Some(lines) = &self.lines {
            line.push(b'\n');
            let _ = lines.send(line);
        }
    }

    /// Ends its input, once all that was said is written.
    pub fn close_input(&mut self) {
        self.lines = None;
    }

    /// Sends the agent and what it has started a signal.
    pub fn signal(&self, signal: Signal) {
        // It leads a process group of its own.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), signal);
    }

    /// Waits for the end of an agent that was told to exit; kills it otherwise.
    pub fn finish(&mut self) {
        Agent::finish_all(std::slice::from_mut(self));
    }

    /// The same of several, which have the time for it together.
    pub fn finish_all(agents: &mut [Agent]) {
        for agent in agents.iter_mut() {
            agent.lines = None;
            // One that a fault has stopped could not hear it.
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

    /// Whether its process has ended, once it has or the deadline has come.
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

    /// An empty log is no evidence of anything.
    fn tidy(&self) {
        if std::fs::metadata(&self.log).is_ok_and(|log| log.len() == 0) {
            let _ = std::fs::remove_file(&self.log);
        }
    }

    /// How it ended, in words, with the end of its log.
    pub fn exit_reason(&mut self) -> String {
        self.ended(Instant::now() + EXIT);
        let status = match self.child.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "its output closed, but it runs on".into(),
        };
        let log = std::fs::read(&self.log).unwrap_or_default();
        let tail = self.secrets.hide_end(&String::from_utf8_lossy(&log), 500);
        if tail.is_empty() { status } else { format!("{status}; the end of its log: {tail}") }
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

/// Writes what is to be said, until there is no more or nobody reads it.
pub(crate) fn write_out(mut input: impl Write, lines: &Receiver<Vec<u8>>) {
    for line in lines {
        if input.write_all(&line).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

/// Tells each line, and at last its end.
fn listen(output: impl Read, mut say: impl FnMut(Option<&[u8]>)) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut output).take(MAX_LINE as u64).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return say(None),
            Ok(_) => say(Some(&line)),
        }
    }
}
