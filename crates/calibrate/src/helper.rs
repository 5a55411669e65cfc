//! A separate pubmark process that helps to measure: the sink, a bare loop, the relay. It
//! prints a line of JSON when it is ready and another when it is done, and ends when its
//! input does.

use pubmark_study::context::{RunError, failed};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Interval at which a wait checks for an interrupt.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of a helper's standard error that are quoted.
const COMPLAINT: u64 = 1_000;

/// A running helper. It is killed on drop, if it has not ended by then.
pub struct Helper {
    what: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Helper {
    /// Starts a helper.
    pub fn start(command: &[String]) -> Result<Helper, RunError> {
        let what = command.iter().skip(1).take(2).cloned().collect::<Vec<_>>().join(" ");
        let cannot = |error| RunError::io(format!("`{}` could not be started", command.join(" ")))(error);
        let (program, arguments) = command.split_first().ok_or_else(|| failed("a helper without a command"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        let (outbox, lines) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::Builder::new()
                .name(format!("helper {what}"))
                .spawn(move || {
                    let mut lines = BufReader::new(output).lines();
                    while lines.next().and_then(Result::ok).is_some_and(|line| outbox.send(line).is_ok()) {}
                })
                .map_err(cannot)?;
        }
        Ok(Helper { what, input: child.stdin.take(), child, lines })
    }

    /// Returns its next message.
    pub fn hear<T: DeserializeOwned>(&mut self, within: Duration, interrupt: &AtomicBool) -> Result<T, RunError> {
        let deadline = Instant::now() + within;
        loop {
            if interrupt.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(LOOK)) {
                Ok(line) => {
                    return serde_json::from_str(&line)
                        .map_err(|error| failed(format!("`{}` said {line:?}: {error}", self.what)));
                }
                Err(RecvTimeoutError::Timeout) if left > Duration::ZERO => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(failed(format!("`{}` said nothing for {} s", self.what, within.as_secs())));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.how_it_ended()),
            }
        }
    }

    /// Sends it a message. If it has ended, [`Helper::hear`] reports that.
    pub fn tell(&mut self, words: &impl Serialize) {
        if let (Some(input), Ok(text)) = (&mut self.input, serde_json::to_string(words)) {
            let _ = writeln!(input, "{text}").and_then(|()| input.flush());
        }
    }

    /// Ends it, and returns its last message.
    pub fn end<T: DeserializeOwned>(mut self, within: Duration) -> Result<T, RunError> {
        self.input = None;
        // Interrupts are ignored here, because the helper has all but finished.
        self.hear(within, &AtomicBool::new(false))
    }

    /// Returns why it sends nothing more: how it ended, and the end of its standard
    /// error.
    fn how_it_ended(&mut self) -> RunError {
        // Its output is closed: it ends now, or is killed.
        let _ = self.child.kill();
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let mut said = String::new();
        if let Some(stream) = self.child.stderr.take() {
            let _ = stream.take(COMPLAINT).read_to_string(&mut said);
        }
        let said = said.trim().trim_start_matches("error: ");
        failed(format!("`{}` ended ({status}): {said}", self.what))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
