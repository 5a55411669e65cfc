//! Another machine as a host: `pubmark host` runs there, and does what it is
//! told by lines on its standard input.

use crate::agent::write_out;
use crate::clock;
use crate::error::HostError;
use crate::lines::{FromHost, HostReply, HostRequest};
use crate::local::Local;
use crate::scratch::Scratch;
use pubmark_model::host::{ClockOffset, HostSpec};
use pubmark_model::protocol::MAX_LINE;
use pubmark_model::secret::Secrets;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a host may take to answer what takes no time.
const ANSWER: Duration = Duration::from_secs(10);
/// How long it may take to start a server, or to end one.
const LONG: Duration = Duration::from_secs(900);
/// How often the wait for an answer looks for an interrupt.
const LOOK: Duration = Duration::from_millis(50);
/// How long a host may take to exit before it is killed.
const EXIT: Duration = Duration::from_secs(30);
/// So many exchanges of clocks; the one with the least round trip counts.
const EXCHANGES: usize = 8;
/// The longest log that is brought back, bytes.
const LOG_BYTES: u64 = 4 << 20;

/// A host that runs. What stands there ends when this is dropped.
pub struct Remote {
    name: String,
    child: Child,
    /// Lines on their way to its standard input, which a thread writes: a host
    /// that does not read holds up nobody beyond the deadline of an answer.
    lines: Option<Sender<Vec<u8>>>,
    replies: Receiver<FromHost>,
    /// Its clock beside ours.
    pub clock: ClockOffset,
}

impl Remote {
    /// Starts `pubmark host` there. Its agents' lines go to `said`.
    pub fn start(
        spec: &HostSpec,
        program: &str,
        said: impl Fn(usize, Option<&[u8]>) + Send + 'static,
    ) -> Result<Remote, HostError> {
        let words: Vec<&str> = spec.prefix.iter().map(String::as_str).chain([program, "host"]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let cannot = HostError::io(format!("host {}: `{}` could not be started", spec.name, words.join(" ")));
        let mut child = command.spawn().map_err(cannot)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (answered, replies) = channel();
        if let Some(output) = output {
            let cannot = HostError::io("no thread for a host");
            thread::Builder::new()
                .name(spec.name.clone())
                .spawn(move || listen(output, &answered, said))
                .map_err(cannot)?;
        }
        let (lines, to_write) = channel();
        if let Some(input) = input {
            let cannot = HostError::io("no thread for a host");
            let write = move || write_out(input, &to_write);
            thread::Builder::new().name(format!("to {}", spec.name)).spawn(write).map_err(cannot)?;
        }
        let lines = Some(lines);
        let mut remote = Remote { name: spec.name.clone(), child, lines, replies, clock: ClockOffset::default() };
        remote.clock = remote.compare_clocks()?;
        Ok(remote)
    }

    fn compare_clocks(&mut self) -> Result<ClockOffset, HostError> {
        let never = AtomicBool::new(false);
        let mut best: Option<ClockOffset> = None;
        for _ in 0..EXCHANGES {
            let asked = clock::now();
            let HostReply::Facts(facts) = self.ask(&HostRequest::Facts, &never)? else { continue };
            let offset = ClockOffset::of_exchange(asked, facts.clock_ns, clock::now());
            best = Some(best.filter(|best| best.bound_ns <= offset.bound_ns).unwrap_or(offset));
        }
        best.ok_or_else(|| HostError::Failed(format!("host {} does not tell its clock", self.name)))
    }

    /// Asks for something, and waits for the answer.
    pub fn ask(&mut self, request: &HostRequest, interrupt: &AtomicBool) -> Result<HostReply, HostError> {
        let patience = match request {
            HostRequest::Deploy(_) | HostRequest::TearDown | HostRequest::EndAgents { .. } => LONG,
            _ => ANSWER,
        };
        self.say(request)?;
        let deadline = Instant::now() + patience;
        loop {
            match self.replies.recv_timeout(LOOK) {
                Ok(FromHost::Reply(reply)) => return Ok(reply),
                Ok(FromHost::Failed { why }) => return Err(HostError::Failed(format!("host {}: {why}", self.name))),
                Ok(FromHost::Agent { .. }) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) if interrupt.load(Ordering::Relaxed) => {
                    return Err(HostError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("host {} did not answer within {} s", self.name, patience.as_secs()).into());
                }
            }
        }
    }

    fn say(&mut self, request: &HostRequest) -> Result<(), HostError> {
        let mut line = serde_json::to_vec(request).map_err(|error| HostError::Failed(error.to_string()))?;
        line.push(b'\n');
        let sent = self.lines.as_ref().is_some_and(|lines| lines.send(line).is_ok());
        if sent { Ok(()) } else { Err(self.gone()) }
    }

    fn gone(&mut self) -> HostError {
        let status = self.child.try_wait().ok().flatten().map_or(String::new(), |status| format!(" ({status})"));
        HostError::Failed(format!("host {} is lost{status}", self.name))
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // By the end of its input it knows that nobody wants it any more.
        self.lines = None;
        let deadline = Instant::now() + EXIT;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::park_timeout(Duration::from_millis(2));
        }
    }
}

/// Passes on what comes from a host, until there is no more.
fn listen(output: impl Read, answered: &Sender<FromHost>, said: impl Fn(usize, Option<&[u8]>)) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut output).take(2 * MAX_LINE as u64).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        match serde_json::from_slice(&line) {
            Ok(FromHost::Agent { agent, line }) => said(agent, line.as_deref().map(str::as_bytes)),
            Ok(reply) => drop(answered.send(reply)),
            Err(error) => {
                let _ = answered.send(FromHost::Failed { why: format!("it said what nobody understands: {error}") });
                return;
            }
        }
    }
}

/// Serves a coordinator until its input ends, and leaves nothing behind.
/// `built_in` is the command of the agent that is built in.
pub fn serve(
    mut input: impl BufRead,
    output: impl Write + Send + 'static,
    built_in: &[String],
) -> Result<(), HostError> {
    let logs = Scratch::create().map_err(HostError::io("no folder for logs"))?;
    let output = Arc::new(Mutex::new(output));
    let say = move |line: &FromHost| {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(mut text) = serde_json::to_vec(line) {
            text.push(b'\n');
            // A coordinator that has gone shows by the end of the input.
            let _ = output.write_all(&text).and_then(|()| output.flush());
        }
    };
    let say = Arc::new(say);
    let listener = {
        let say = say.clone();
        Arc::new(move |agent: usize, line: Option<&[u8]>| {
            let line = line.map(|line| String::from_utf8_lossy(line).into_owned());
            say(&FromHost::Agent { agent, line });
        })
    };
    let mut local = Local::new(built_in, logs.path().to_owned(), Secrets::default(), listener);
    // Nobody interrupts a server that starts but by going away.
    let never = AtomicBool::new(false);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut input).take(2 * MAX_LINE as u64).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
        let request: HostRequest = match serde_json::from_slice(&line) {
            Ok(request) => request,
            Err(error) => return Err(HostError::Failed(format!("a line that is no request: {error}"))),
        };
        let over = request == HostRequest::TearDown;
        let answer =
            local.answer(request, &never).map(|reply| if over { HostReply::Logs(texts(&logs)) } else { reply });
        say(&answer.into());
    }
}

/// The logs of a folder, by name; of a long one its end.
fn texts(folder: &Scratch) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder.path()).into_iter().flatten().flatten();
    let read = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok().filter(|name| name.ends_with(".log"))?;
        let text = std::fs::read(entry.path()).ok()?;
        let from = text.len().saturating_sub(LOG_BYTES as usize);
        Some((name, String::from_utf8_lossy(&text[from..]).into_owned()))
    };
    entries.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::protocol::Command as Word;

    fn host(script: &str) -> HostSpec {
        let prefix = ["sh", "-c", script].map(str::to_owned).to_vec();
        HostSpec { name: "b".into(), prefix, ..HostSpec::default() }
    }

    fn refused(script: &str) -> String {
        Remote::start(&host(script), "pubmark", |_, _| {}).err().expect("it is no host").to_string()
    }

    #[test]
    fn what_is_no_host_is_refused_by_name() {
        assert!(refused("exit 3").starts_with("host b is lost"), "{}", refused("exit 3"));
        let said = refused("echo hello; cat >/dev/null");
        assert!(said.starts_with("host b: it said what nobody understands"), "{said}");
        let said = refused("read line; echo '{\"failed\":{\"why\":\"no folder\"}}'; cat >/dev/null");
        assert_eq!(said, "host b: no folder");
    }

    /// More than a pipe holds, to a host that answers once and never reads again.
    #[test]
    fn a_host_that_does_not_read_holds_up_nobody() {
        let facts = r#"{"reply":{"facts":{"clock_ns":1,"scratch":"/x","cpus":[0],"connections":1}}}"#;
        let answers = format!("for i in 1 2 3 4 5 6 7 8; do read line; echo '{facts}'; done; exec sleep 3600");
        let mut remote = Remote::start(&host(&answers), "pubmark", |_, _| {}).unwrap();
        let word = serde_json::to_string(&Word::Stop {}).unwrap();
        let tell = HostRequest::Tell { agent: 0, line: word.repeat(100_000) };
        let interrupt = AtomicBool::new(true);
        assert!(matches!(remote.ask(&tell, &interrupt), Err(HostError::Interrupted)));
        remote.child.kill().unwrap();
    }

    #[test]
    fn what_is_asked_comes_back_as_it_went() {
        let orders = [
            HostRequest::Facts,
            HostRequest::Tell { agent: 2, line: "{\"type\":\"stop\"}".into() },
            HostRequest::ServerUsed { window: Some((1, 2)) },
        ];
        for order in orders {
            let line = serde_json::to_string(&order).unwrap();
            assert_eq!(serde_json::from_str::<HostRequest>(&line).unwrap(), order, "{line}");
        }
    }

    /// A host that is served within this process, and its coordinator's end.
    #[test]
    fn a_host_serves_until_its_input_ends_and_leaves_nothing() {
        let asked = "\"facts\"\n\"make_folder\"\n{\"exit_reason\":{\"agent\":0}}\n";
        let (mut read, written) = std::io::pipe().unwrap();
        let agent = ["true".to_owned()];
        serve(asked.as_bytes(), written, &agent).unwrap();
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        let lines: Vec<FromHost> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [FromHost::Reply(HostReply::Facts(facts)), folder, reason] = &lines[..] else { panic!("{text}") };
        assert_eq!(*folder, FromHost::Reply(HostReply::Done));
        assert_eq!(*reason, FromHost::Reply(HostReply::Reason(None)), "there is no such agent");
        assert!(!std::path::Path::new(&facts.scratch).exists(), "{}", facts.scratch);
    }
}
