//! Commands that answer in time, or are killed.

use crate::programs::find_program;
use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum length of an answer, bytes.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// Interval at which a command is checked.
const LOOK: Duration = Duration::from_millis(2);

/// The reason why a command has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command is empty.
    #[error("an empty command")]
    Empty,
    /// Its program cannot be run.
    #[error("`{program}` cannot be run: {source}")]
    NotRun {
        /// The program.
        program: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// It took too long, and was killed.
    #[error("`{command}` did not end within {} s", most.as_secs())]
    TooLong {
        /// The command.
        command: String,
        /// Its time limit.
        most: Duration,
    },
    /// It failed.
    #[error("`{command}` ended: {status}: {said}")]
    Ended {
        /// The command.
        command: String,
        /// Its exit status.
        status: ExitStatus,
        /// Its output.
        said: String,
    },
}

/// Returns a command's output. It gets these variables besides its own environment, and is killed if it takes longer
/// than `most`.
pub fn output(command: &[String], environment: &[(String, String)], most: Duration) -> Result<String, CommandError> {
    let shown = || command.join(" ");
    let (program, arguments) = command.split_first().ok_or(CommandError::Empty)?;
    let mut child = Command::new(find_program(program).unwrap_or_else(|| program.into()))
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| CommandError::NotRun { program: program.clone(), source })?;
    let text = |pipe: &mut dyn Read| {
        let mut bytes = Vec::new();
        let _ = pipe.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    // A long answer does not fit into the pipe, and a process that the command leaves behind may hold it open.
    let (outbox, inbox) = channel();
    let out = child.stdout.take();
    thread::spawn(move || out.map(|mut pipe| outbox.send(text(&mut pipe))));
    let deadline = Instant::now() + most;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => thread::park_timeout(LOOK),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(CommandError::TooLong { command: shown(), most });
            }
        }
    };
    if !status.success() {
        let said = child.stderr.take().map_or_else(String::new, |mut pipe| text(&mut pipe));
        return Err(CommandError::Ended { command: shown(), status, said: said.trim().to_owned() });
    }
    let left = deadline.saturating_duration_since(Instant::now());
    inbox.recv_timeout(left).map_err(|_| CommandError::TooLong { command: shown(), most })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended() {
        let command = |line: &str| words(&["sh", "-c", line]);
        assert_eq!(output(&command("echo yes"), &[], LONG).unwrap(), "yes\n");
        let error = output(&command("echo no >&2; exit 3"), &[], LONG).unwrap_err();
        assert!(error.to_string().contains("exit status: 3: no"), "{error}");
        let error = output(&words(&["sleep", "60"]), &[], Duration::from_millis(20)).unwrap_err();
        assert!(matches!(error, CommandError::TooLong { .. }), "{error}");
        let error = output(&words(&["/nonexistent"]), &[], LONG).unwrap_err();
        assert!(matches!(error, CommandError::NotRun { .. }), "{error}");
    }
}
