//! Another machine as a host: `pubmark host` runs there, and gets requests as lines on
//! its standard input.

use crate::bootstrap::{self, Greeted, Program};
use crate::clock;
use crate::error::HostError;
use crate::heartbeat;
use crate::lines::{FromHost, GetFacts, Request, RequestLine, TRANSFER};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pubmark_model::host::{ClockOffset, HostSpec};
use pubmark_model::printable::printable;
use pubmark_model::protocol::MAX_LINE;
use pubmark_model::secret::Secrets;
use pubmark_model::units::{Ns, format_time};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time that a host has to greet.
const GREETING: Duration = Duration::from_secs(10);
/// Time that a host has to answer if its last answer was late.
const ANSWER_LATE: Duration = Duration::from_secs(2);
/// Interval at which the wait for an answer checks for an interrupt.
const LOOK: Duration = Duration::from_millis(50);
/// Time that a host has to exit before it is killed.
const EXIT: Duration = Duration::from_secs(30);
/// Number of clock exchanges; the one with the shortest round trip is used.
const EXCHANGES: usize = 8;
/// Interval of heartbeats to a host if nothing else is sent; the host answers each.
const SIGN: Duration = Duration::from_secs(5);
/// Number of parts of the maximum silence that have to pass without a line: time in which
/// this process itself was stopped counts as one part.
const PARTS: u32 = 20;
/// Maximum wait for the last output of a host that has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Bytes kept of a host's standard error.
const COMPLAINT: usize = 1 << 10;

/// A message from a host.
enum Heard {
    /// A line of the shell that starts it.
    Shell(Greeted),
    /// A line of the host itself.
    Host(FromHost),
}

/// A running host. Everything on it ends on drop.
pub struct Remote {
    name: String,
    child: Child,
    /// Lines for its standard input, which a thread writes: a host that does not read
    /// delays its caller at most until the deadline of an answer.
    lines: Option<Sender<Arc<[u8]>>>,
    heard: Receiver<Heard>,
    /// Secret parts of the command that reaches it.
    secrets: Secrets,
    /// The end of its standard error.
    complaint: Arc<Mutex<String>>,
    /// Closed when its standard error has ended.
    complained: Receiver<()>,
    /// True once its program runs: from then on it gets heartbeats.
    greeted: Arc<AtomicBool>,
    /// True if the maximum silence is exceeded.
    silent: Arc<AtomicBool>,
    /// Outstanding answers that nobody waits for.
    owed: usize,
    /// True if its last answer was late.
    late: bool,
    /// Offset of its clock from the coordinator's.
    pub clock: ClockOffset,
}

impl Remote {
    /// Starts `pubmark host` there. Its agents' lines go to `said`; `lost` is called at
    /// their end.
    pub fn start(
        spec: &HostSpec,
        program: &str,
        said: impl Fn(usize, Option<&[u8]>) + Send + 'static,
        lost: impl FnOnce() + Send + 'static,
    ) -> Result<Remote, HostError> {
        let program = Program::own(program)?;
        let silence = heartbeat::allowed(heartbeat::OF_HOST)?;
        let cannot =
            HostError::io(format!("host {}: `{}` could not be started", spec.name, spec.shown_reach().join(" ")));
        let mut command = Command::new(&spec.reach[0]);
        command.args(&spec.reach[1..]).arg("sh").process_group(0);
        // A password prompt is refused: nobody is there to type it.
        command.env("SSH_ASKPASS", "false").env("SSH_ASKPASS_REQUIRE", "force");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(cannot)?;
        let (answered, heard) = channel();
        let (lines, to_write) = channel::<Arc<[u8]>>();
        let complaint = Arc::new(Mutex::new(String::new()));
        let [greeted, silent] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (all, complained) = channel();
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let spawn = |name: String, work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name).spawn(work).map_err(HostError::io("no thread for a host"))
        };
        if let (Some(input), Some(output), Some(errors)) = (input, output, errors) {
            let kept = complaint.clone();
            let errors = move || {
                keep_end(errors, &kept);
                drop(all);
            };
            let heard_of = HeardOf { output, greeted: greeted.clone(), silence };
            let (silent, noted) = (silent.clone(), complaint.clone());
            let hear = move || {
                if !listen(heard_of, &answered, said) {
                    silent.store(true, Ordering::Relaxed);
                    let what = format!("\nnothing was heard of it for {}\n", format_time(silence.as_nanos() as Ns));
                    noted.lock().unwrap_or_else(PoisonError::into_inner).push_str(&what);
                }
                drop(answered);
                lost();
            };
            spawn(format!("from {}", spec.name), Box::new(hear))?;
            let greeted = greeted.clone();
            spawn(
                format!("to {}", spec.name),
                Box::new(move || write_lines(input, &to_write, &greeted, SIGN.min(silence / 3))),
            )?;
            spawn(format!("errors of {}", spec.name), Box::new(errors))?;
        }
        let (name, lines, secrets) = (spec.name.clone(), Some(lines), spec.secrets());
        let clock = ClockOffset::default();
        let (owed, late) = (0, false);
        let mut remote =
            Remote { name, child, lines, heard, secrets, complaint, complained, greeted, silent, owed, late, clock };
        remote.greet(program)?;
        remote.greeted.store(true, Ordering::Relaxed);
        remote.clock = remote.compare_clocks()?;
        Ok(remote)
    }

    /// Starts the program there, and sends it first if it is missing.
    fn greet(&mut self, program: &Program) -> Result<(), HostError> {
        self.write(program.greeting().into_bytes().into())?;
        let mut patience = GREETING;
        loop {
            match self.heard.recv_timeout(patience) {
                Ok(Heard::Shell(Greeted::Here)) => return Ok(()),
                Ok(Heard::Shell(Greeted::Wanted(machine))) if machine == bootstrap::this_machine() => {
                    self.write(program.bytes.clone())?;
                    patience = TRANSFER;
                }
                Ok(Heard::Shell(Greeted::Wanted(machine))) => {
                    return Err(HostError::Failed(format!(
                        "host {} is {machine}, and this pubmark is built for {}: begin on a machine of its kind",
                        self.name,
                        bootstrap::this_machine()
                    )));
                }
                Ok(Heard::Shell(Greeted::Not(why))) => {
                    return Err(HostError::Failed(format!("host {}: {}", self.name, self.secrets.hide(&why))));
                }
                Ok(Heard::Host(_)) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) => {
                    let what = format!("host {} did not answer within {} s", self.name, patience.as_secs());
                    return Err(HostError::Failed(what + &self.complained()));
                }
            }
        }
    }

    fn compare_clocks(&mut self) -> Result<ClockOffset, HostError> {
        let never = AtomicBool::new(false);
        let mut best: Option<ClockOffset> = None;
        for _ in 0..EXCHANGES {
            let asked = clock::now();
            let facts = self.ask(&GetFacts {}, &never)?;
            let offset = ClockOffset::of_exchange(asked, facts.clock_ns, clock::now());
            best = Some(best.filter(|best| best.bound_ns <= offset.bound_ns).unwrap_or(offset));
        }
        best.ok_or_else(|| HostError::Failed(format!("host {} does not tell its clock", self.name)))
    }

    /// Sends a request, and waits for the reply.
    pub fn ask<R: Request>(&mut self, request: &R, interrupt: &AtomicBool) -> Result<R::Reply, HostError> {
        self.say(request)?;
        self.hear::<R>(interrupt)
    }

    /// Sends a request with an empty reply, and does not wait for it: many hosts take no
    /// longer than one. A failure is returned by the next answer.
    pub fn order(&mut self, request: &impl Request<Reply = ()>) -> Result<(), HostError> {
        self.say(request)?;
        self.owed += 1;
        Ok(())
    }

    /// Waits for the reply to the last request.
    pub fn hear<R: Request>(&mut self, interrupt: &AtomicBool) -> Result<R::Reply, HostError> {
        let mut patience = if self.late { ANSWER_LATE } else { R::PATIENCE };
        let mut deadline = Instant::now() + patience;
        loop {
            match self.heard.recv_timeout(LOOK) {
                Ok(Heard::Host(FromHost::Reply(_))) if self.owed > 0 => {
                    self.owed -= 1;
                    if std::mem::take(&mut self.late) {
                        patience = R::PATIENCE;
                        deadline = Instant::now() + patience;
                    }
                }
                Ok(Heard::Host(FromHost::Reply(reply))) => {
                    self.late = false;
                    return serde_json::from_value(reply).map_err(|error| {
                        HostError::Failed(format!("host {}: no answer to {}: {error}", self.name, R::NAME))
                    });
                }
                // If an earlier request failed, the reply to this one is still outstanding: the number
                // stays the same.
                Ok(Heard::Host(FromHost::Failed { why })) => {
                    self.late = false;
                    return Err(HostError::Failed(format!("host {}: {}", self.name, self.secrets.hide(&why))));
                }
                Ok(Heard::Host(FromHost::Agent { .. }) | Heard::Shell(_)) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) if interrupt.load(Ordering::Relaxed) => {
                    self.owed += 1;
                    return Err(HostError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    // The reply may still arrive, and does not belong to the next
                    // request.
                    (self.owed, self.late) = (self.owed + 1, true);
                    return Err(format!("host {} did not answer within {} s", self.name, patience.as_secs()).into());
                }
            }
        }
    }

    /// Sends a request; [`Remote::hear`] waits for the reply.
    pub fn say(&mut self, request: &impl Request) -> Result<(), HostError> {
        let mut line = serde_json::to_vec(&RequestLine::of(request))?;
        line.push(b'\n');
        self.write(line.into())
    }

    fn write(&mut self, bytes: Arc<[u8]>) -> Result<(), HostError> {
        let sent = self.lines.as_ref().is_some_and(|lines| lines.send(bytes).is_ok());
        if sent { Ok(()) } else { Err(self.gone()) }
    }

    /// Returns the error of a host that has gone, with its last output.
    pub fn gone(&mut self) -> HostError {
        // Its last output may still be in transit.
        let _ = self.complained.recv_timeout(LAST_WORDS);
        let status = self.child.try_wait().ok().flatten().map_or(String::new(), |status| format!(" ({status})"));
        HostError::Failed(format!("host {} is lost{status}{}", self.name, self.complained()))
    }

    /// Returns its standard error, worded as the end of a sentence.
    fn complained(&self) -> String {
        let text = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        line.map_or_else(String::new, |line| format!(": {}", printable(&self.secrets.hide(line))))
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // The end of its input tells the host to end.
        self.lines = None;
        let patience = if self.silent.load(Ordering::Relaxed) { ANSWER_LATE } else { EXIT };
        let deadline = Instant::now() + patience;
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

/// The output of a host with its maximum silence once its program runs.
struct HeardOf {
    output: ChildStdout,
    greeted: Arc<AtomicBool>,
    silence: Duration,
}

impl Read for HeardOf {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let part = PollTimeout::try_from(self.silence / PARTS).unwrap_or(PollTimeout::MAX);
        let mut silent = 0;
        while silent < PARTS {
            let mut awaited = [PollFd::new(self.output.as_fd(), PollFlags::POLLIN)];
            match poll(&mut awaited, part) {
                Ok(0) => silent += u32::from(self.greeted.load(Ordering::Relaxed)),
                Ok(_) => return self.output.read(buffer),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// Passes on a host's lines until there are no more. Returns true if its output ended,
/// and false if it was silent for too long. Before its program runs, a shell may print
/// anything.
fn listen(output: impl Read, answered: &Sender<Heard>, said: impl Fn(usize, Option<&[u8]>)) -> bool {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    let mut greeted = false;
    loop {
        line.clear();
        let read = (&mut output).take(2 * MAX_LINE as u64).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return !read.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
        }
        // A heartbeat.
        if line == b"\n" {
            continue;
        }
        if !greeted {
            let word = Greeted::read(&String::from_utf8_lossy(&line));
            greeted = word == Some(Greeted::Here);
            word.into_iter().for_each(|word| drop(answered.send(Heard::Shell(word))));
            continue;
        }
        let failed = |why| drop(answered.send(Heard::Host(FromHost::Failed { why })));
        match serde_json::from_slice(&line) {
            Ok(FromHost::Agent { agent, line }) => said(agent, line.as_deref().map(str::as_bytes)),
            Ok(reply) => drop(answered.send(Heard::Host(reply))),
            Err(error) => {
                failed(format!("it said what nobody understands: {error}"));
                return true;
            }
        }
    }
}

/// Writes lines, and an empty one if there has been none for a while.
fn write_lines(mut input: impl Write, lines: &Receiver<Arc<[u8]>>, greeted: &AtomicBool, sign: Duration) {
    loop {
        let line = match lines.recv_timeout(sign) {
            Ok(line) => line,
            // The shell is still reading the bootstrap program.
            Err(RecvTimeoutError::Timeout) if !greeted.load(Ordering::Relaxed) => continue,
            Err(RecvTimeoutError::Timeout) => Arc::from(&b"\n"[..]),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if input.write_all(&line).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

/// Keeps the end of a host's standard error.
fn keep_end(mut errors: impl Read, kept: &Mutex<String>) {
    let mut buffer = [0; COMPLAINT];
    while let Ok(read @ 1..) = errors.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_str(&String::from_utf8_lossy(&buffer[..read]));
        let from = kept.len().saturating_sub(COMPLAINT);
        let from = (from..kept.len()).find(|at| kept.is_char_boundary(*at)).unwrap_or(kept.len());
        kept.drain(..from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::{Facts, GetServerUsage, MakeFolder, Tell, Told};
    use pubmark_model::protocol::Command as Word;

    /// Reads the bootstrap program to its end, and answers that it is there.
    const GREETED: &str = "while read -r line && [ \"$line\" != '}' ]; do :; done; echo 'pubmark: here';";

    fn host(script: &str) -> HostSpec {
        let reach = ["sh", "-c", script].map(str::to_owned).to_vec();
        HostSpec { name: "b".into(), reach, ..HostSpec::default() }
    }

    fn start(script: &str) -> Result<Remote, HostError> {
        let program = std::env::current_exe().unwrap();
        Remote::start(&host(script), program.to_str().unwrap(), |_, _| {}, || {})
    }

    fn told(line: &str) -> Tell {
        Tell { words: vec![Told { agents: vec![0, 2], line: line.to_owned() }] }
    }

    fn facts(clock_ns: Ns) -> String {
        serde_json::json!({"reply": Facts { clock_ns, ..Facts::default() }}).to_string()
    }

    fn refused(script: &str) -> String {
        start(script).err().expect("it is not a host").to_string()
    }

    #[test]
    fn what_is_no_host_is_refused_by_name() {
        assert!(refused("exit 3").starts_with("host b is lost"), "{}", refused("exit 3"));
        // Its standard error may arrive after the end of its output.
        let said = refused("echo 'Permission denied (publickey).' >&2; exec >&-; cat >/dev/null");
        assert_eq!(said, "host b is lost: Permission denied (publickey).");
        let said = refused("echo 'pubmark: wanted Linux m68k'; cat >/dev/null");
        assert!(said.starts_with("host b is Linux m68k, and this pubmark is built for "), "{said}");
        let said = refused("echo Welcome; echo 'pubmark: no folder /x can be made'; cat >/dev/null");
        assert_eq!(said, "host b: no folder /x can be made");
        let said = refused(&format!("{GREETED} echo hello; cat >/dev/null"));
        assert!(said.starts_with("host b: it said what nobody understands"), "{said}");
        let failed = "read line; echo '{\"failed\":{\"why\":\"no folder\"}}'; cat >/dev/null";
        let said = refused(&format!("{GREETED} {failed}"));
        assert_eq!(said, "host b: no folder");
    }

    /// Sends more than a pipe holds to a host that answers once and never reads again.
    #[test]
    fn a_host_that_does_not_read_holds_up_nobody() {
        let facts = facts(1);
        let answers =
            format!("{GREETED} for i in 1 2 3 4 5 6 7 8; do read line; echo '{facts}'; done; exec sleep 3600");
        let mut remote = start(&answers).unwrap();
        let word = serde_json::to_string(&Word::Stop {}).unwrap();
        let tell = told(&word.repeat(100_000));
        let interrupt = AtomicBool::new(true);
        assert!(matches!(remote.ask(&tell, &interrupt), Err(HostError::Interrupted)));
        remote.child.kill().unwrap();
    }

    /// A reply that was not waited for, or not for long enough, arrives later or is a
    /// failure.
    #[test]
    fn an_answer_is_that_to_its_own_question() {
        let facts = facts(7);
        let (done, failed) = (r#"{"reply":null}"#, r#"{"failed":{"why":"no room"}}"#);
        let clocks = format!("{GREETED} for i in 1 2 3 4 5 6 7 8; do read line; echo '{facts}'; done;");
        let late = format!("read a; read b; echo '{done}'; echo '{facts}';");
        let ordered = format!("read a; read b; echo '{failed}'; echo '{done}'; read c; echo '{facts}';");
        let mut remote = start(&format!("{clocks} {late} {ordered} cat >/dev/null")).unwrap();
        let (never, at_once) = (AtomicBool::new(false), AtomicBool::new(true));
        assert!(matches!(remote.ask(&MakeFolder {}, &at_once), Err(HostError::Interrupted)));
        assert_eq!(remote.ask(&GetFacts {}, &never).unwrap().clock_ns, 7, "and not what was asked before");
        remote.order(&told("{}")).unwrap();
        let error = remote.ask(&MakeFolder {}, &never).unwrap_err().to_string();
        assert_eq!(error, "host b: no room", "what was not waited for has failed");
        assert_eq!(remote.ask(&GetFacts {}, &never).unwrap().clock_ns, 7);
    }

    #[test]
    fn a_reply_of_another_type_is_an_error_that_names_host_and_request() {
        let clocks = format!("{GREETED} for i in 1 2 3 4 5 6 7 8; do read line; echo '{}'; done;", facts(7));
        let mut remote = start(&format!("{clocks} read a; echo '{{\"reply\":5}}'; cat >/dev/null")).unwrap();
        let error = remote.ask(&MakeFolder {}, &AtomicBool::new(false)).unwrap_err().to_string();
        assert!(error.starts_with("host b: no answer to MakeFolder: "), "{error}");
    }

    #[test]
    fn what_is_asked_comes_back_as_it_went() {
        fn travels<R: Request + PartialEq + std::fmt::Debug>(request: &R) {
            let line = serde_json::to_string(&RequestLine::of(request)).unwrap();
            let back: RequestLine<serde_json::Value> = serde_json::from_str(&line).unwrap();
            assert_eq!(back.request, R::NAME);
            assert_eq!(serde_json::from_value::<R>(back.parameters).unwrap(), *request, "{line}");
        }
        travels(&GetFacts {});
        travels(&told("{\"type\":\"stop\"}"));
        travels(&GetServerUsage { window: Some((1, 2)) });
    }
}
