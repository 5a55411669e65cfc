//! Runs a command until it ends or reaches its deadline.

use crate::error::HostError;
use crate::programs::find_program_from;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// Runs a command. Its output goes to standard error for the user to see, because
/// standard output may have to be JSON.
pub fn run(command: &[String], folder: Option<&Path>, limit: Duration) -> Result<(), HostError> {
    let line = command.join(" ");
    let out = std::io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
    let mut child = start(command, folder, out, Stdio::inherit())?;
    let pid = child.id();
    let (outbox, inbox) = channel();
    std::thread::spawn(move || outbox.send(child.wait()));
    match end(pid, &inbox, limit) {
        Some(Ok(status)) if status.success() => Ok(()),
        Some(Ok(status)) => Err(format!("`{line}` failed ({status})").into()),
        Some(Err(error)) => Err(HostError::io(format!("`{line}`"))(error)),
        None => Err(late(command, limit)),
    }
}

/// Returns a command's standard output and error, if it ends in time.
pub fn output(command: &[String], limit: Duration) -> Result<String, HostError> {
    let (mut reader, writer) = std::io::pipe().map_err(HostError::io("no pipe for a command"))?;
    let twin = writer.try_clone().map_err(HostError::io("no pipe for a command"))?;
    let mut child = start(command, None, Stdio::from(writer), Stdio::from(twin))?;
    let pid = child.id();
    let (outbox, inbox) = channel();
    std::thread::spawn(move || {
        let mut seen = Vec::new();
        // Much more than a version needs.
        let read = reader.by_ref().take(1 << 20).read_to_end(&mut seen);
        drop(reader);
        let _ = child.wait();
        outbox.send(read.map(|_| String::from_utf8_lossy(&seen).into_owned()))
    });
    match end(pid, &inbox, limit) {
        Some(read) => read.map_err(HostError::io(format!("`{}`", command.join(" ")))),
        None => Err(late(command, limit)),
    }
}

fn late(command: &[String], limit: Duration) -> HostError {
    format!("`{}` did not end within {} s", command.join(" "), limit.as_secs()).into()
}

fn start(command: &[String], folder: Option<&Path>, out: Stdio, err: Stdio) -> Result<Child, HostError> {
    let variables: Vec<(&str, &str)> = command.iter().map_while(|word| word.split_once('=')).collect();
    let (program, arguments) = command[variables.len()..].split_first().ok_or("an empty command")?;
    let path = find_program_from(folder, program).ok_or_else(|| format!("`{program}` is not found"))?;
    // In this program's process group: Ctrl-C reaches it, and sudo may ask for a password.
    let mut starting = Command::new(path);
    starting.args(arguments).envs(variables).stdin(Stdio::null()).stdout(out).stderr(err);
    folder.map(|folder| starting.current_dir(folder));
    starting.spawn().map_err(HostError::io(format!("`{program}` cannot be run")))
}

/// Returns the result of the waiting thread; after the limit it ends the command and returns
/// `None`.
fn end<T>(pid: u32, inbox: &Receiver<T>, limit: Duration) -> Option<T> {
    if let Ok(result) = inbox.recv_timeout(limit) {
        return Some(result);
    }
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        // The thread has not reaped the process, so the number is still its own.
        let _ = kill(Pid::from_raw(pid as i32), signal);
        if inbox.recv_timeout(GRACE).is_ok() {
            break;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn ends_are_told_apart() {
        let ample = Duration::from_secs(60);
        let wrong = |line: &str, limit| run(&words(line), None, limit).unwrap_err().to_string();
        run(&words("true"), None, ample).unwrap();
        assert!(wrong("false", ample).contains("`false` failed"));
        assert!(wrong("no-such-program x", ample).contains("is not found"));
        assert!(wrong("sleep 600", Duration::from_millis(20)).contains("did not end"));
    }

    #[test]
    fn what_is_printed_is_read_from_both_streams() {
        let script = ["sh".to_owned(), "-c".to_owned(), "echo out; echo err >&2".to_owned()];
        let seen = output(&script, Duration::from_secs(60)).unwrap();
        assert!(seen.contains("out") && seen.contains("err"), "{seen}");
        assert_eq!(output(&words("A=b printenv A"), Duration::from_secs(60)).unwrap(), "b\n");
        let late = output(&words("sleep 600"), Duration::from_millis(20)).unwrap_err();
        assert!(late.to_string().contains("did not end"));
    }
}
