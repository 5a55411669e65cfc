//! `pubmark host`: this machine serves a coordinator on another one, which sends requests
//! as lines to its standard input.

use crate::error::HostError;
use crate::lines::{FromHost, RequestLine};
use crate::local::{Local, answer};
use crate::scratch::Scratch;
use pubmark_model::printable::printable;
use pubmark_model::protocol::MAX_LINE;
use pubmark_model::secret::Secrets;
use pubmark_model::units::{Ns, format_time};
use serde_json::Value;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Removes folders on drop, and also when this process is killed. Agents and keepers of
/// the host remove the folder of a run as well; the folder of the logs, and that of a
/// host without agents and servers, is removed only here.
struct Remover {
    process: Child,
}

impl Remover {
    fn of(folders: [&Path; 2]) -> Result<Remover, HostError> {
        let mut command = Command::new("sh");
        // If it is stopped when this process is killed, the kernel sends it SIGHUP.
        let script = "trap '' HUP; while read -r line; do :; done; rm -rf \"$@\"";
        command.args(["-c", script, "sh"]).args(folders).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(HostError::io("nobody to remove the folder for logs"))?;
        Ok(Remover { process })
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        // The end of its input tells the process to remove the folders.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Reads lines on its own thread until there are no more, so that a wait for a line also
/// notices the end. That thread answers heartbeats, because a request may take minutes.
fn lines_of(
    mut input: impl BufRead + Send + 'static,
    sign: impl Fn() + Send + 'static,
) -> Result<Receiver<io::Result<Vec<u8>>>, HostError> {
    let (read, lines) = channel();
    let pass_on = move || {
        loop {
            let mut line = Vec::new();
            match (&mut input).take(2 * MAX_LINE as u64).read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(_) => {
                    if line.trim_ascii().is_empty() {
                        sign();
                    }
                    if read.send(Ok(line)).is_err() {
                        return;
                    }
                }
                Err(error) => return drop(read.send(Err(error))),
            }
        }
    };
    let thread = thread::Builder::new().name("requests".into()).spawn(pass_on);
    thread.map_err(HostError::io("no thread for requests"))?;
    Ok(lines)
}

/// Serves a coordinator until its input ends or is silent for too long, and leaves
/// nothing behind. `built_in` is the command of the built-in agent.
///
/// # Errors
/// If the host connection was silent for too long, or a line was not a request.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    built_in: &[String],
    silence: Duration,
) -> Result<(), HostError> {
    let logs = Scratch::create().map_err(HostError::io("no folder for logs"))?;
    let output = Arc::new(Mutex::new(output));
    let write = move |text: &[u8]| {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        // If the coordinator has gone, the input ends.
        let _ = output.write_all(text).and_then(|()| output.flush());
    };
    let sign = write.clone();
    let say = move |line: &FromHost| {
        if let Ok(mut text) = serde_json::to_vec(line) {
            text.push(b'\n');
            write(&text);
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
    let local = Local::new(built_in, logs.path().to_owned(), Secrets::default(), listener);
    let _remover = Remover::of([logs.path(), local.scratch()])?;
    // It ends before anything is removed.
    let mut local = local;
    // The start of a server is interrupted only by the end of the connection.
    let never = AtomicBool::new(false);
    let lines = lines_of(input, move || sign(b"\n"))?;
    loop {
        let line = match lines.recv_timeout(silence) {
            Ok(Ok(line)) => line,
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                let what =
                    format!("nothing was heard of the coordinator for {}", format_time(silence.as_nanos() as Ns));
                return Err(HostError::Failed(what));
            }
        };
        // A heartbeat.
        if line.trim_ascii().is_empty() {
            continue;
        }
        let no_request = || HostError::Failed(format!("a line that is not a request: {}", shown(line.trim_ascii())));
        let request: RequestLine<Value> = serde_json::from_slice(&line).map_err(|_| no_request())?;
        say(&answer(request, &mut local, &never).ok_or_else(no_request)?.into());
    }
}

/// Returns the beginning of a line, safe for a terminal.
fn shown(line: &[u8]) -> String {
    printable(&String::from_utf8_lossy(&line[..line.len().min(120)])).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::{Facts, GetExitReason, GetFacts, MakeFolder, Request};
    use std::io::BufReader;

    fn line(request: &impl Request) -> String {
        serde_json::to_string(&RequestLine::of(request)).unwrap() + "\n"
    }

    fn facts(reply: &FromHost) -> Facts {
        let FromHost::Reply(reply) = reply else { panic!("{reply:?}") };
        serde_json::from_value(reply.clone()).unwrap()
    }

    /// A host that is served within this process, and its coordinator's end.
    #[test]
    fn a_host_serves_until_its_input_ends_and_leaves_nothing() {
        let exit = GetExitReason { agent: 0 };
        let asked = format!("\n{}\n{}{}", line(&GetFacts {}), line(&MakeFolder {}), line(&exit));
        let (mut read, written) = std::io::pipe().unwrap();
        let agent = ["true".to_owned()];
        serve(io::Cursor::new(asked), written, &agent, Duration::from_secs(60)).unwrap();
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        let (signs, words): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.is_empty());
        assert_eq!(signs.len(), 2, "a sign of life is answered with one");
        let lines: Vec<FromHost> = words.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [described, folder, reason] = &lines[..] else { panic!("{text}") };
        assert_eq!(*folder, FromHost::Reply(Value::Null));
        assert_eq!(*reason, FromHost::Reply(Value::Null), "there is no such agent");
        let scratch = facts(described).scratch;
        assert!(!Path::new(&scratch).exists(), "{scratch}");
    }

    /// As if a machine is gone, or a network cut: the connection neither ends nor carries
    /// anything.
    #[test]
    fn a_host_whose_line_falls_silent_ends_by_itself_and_leaves_nothing() {
        let (input, mut asked) = std::io::pipe().unwrap();
        let (mut read, written) = std::io::pipe().unwrap();
        let agent = ["true".to_owned()];
        let served = thread::spawn(move || {
            serve(BufReader::new(input), written, &agent, Duration::from_millis(300)).unwrap_err().to_string()
        });
        asked.write_all((line(&MakeFolder {}) + &line(&GetFacts {})).as_bytes()).unwrap();
        assert_eq!(served.join().unwrap(), "nothing was heard of the coordinator for 300ms");
        // The thread that reads requests answers heartbeats as well, until the input
        // ends.
        drop(asked);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        let described: FromHost = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        let scratch = facts(&described).scratch;
        assert!(!Path::new(&scratch).exists(), "{scratch}");
    }

    #[test]
    fn a_line_that_is_no_request_ends_it() {
        for line in
            ["facts\n", "{\"request\":\"Dance\",\"parameters\":{}}\n", "{\"request\":\"Tell\",\"parameters\":1}\n"]
        {
            let (_read, written) = io::pipe().unwrap();
            let served = serve(line.as_bytes(), written, &["true".to_owned()], Duration::from_secs(60));
            let error = served.unwrap_err().to_string();
            assert_eq!(error, format!("a line that is not a request: {}", line.trim_end()));
        }
    }
}
