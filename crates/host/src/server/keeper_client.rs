//! The coordinator's end of a keeper.

use super::keeper::{CLEAN_UP, KILLING};
use super::ledger_disk;
use super::orders::{KeepPlan, KeeperAnswer, KeeperOrder};
use super::{limits, processes};
use crate::error::HostError;
use nix::sys::signal::Signal;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time that the keeper needs for anything other than killing and waiting.
const MARGIN: Duration = Duration::from_secs(5);

/// The result of waiting for a keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromKeeper {
    /// An answer.
    Answer(KeeperAnswer),
    /// Nothing in this time.
    Nothing,
    /// The keeper has ended, or was killed.
    Gone,
}

/// A running keeper. It and everything that it keeps end on drop.
pub struct Kept {
    child: Child,
    input: Option<ChildStdin>,
    words: Receiver<KeeperAnswer>,
    plan: KeepPlan,
}

fn wrong(source: std::io::Error) -> HostError {
    HostError::Io { what: "no keeper for the server".into(), source }
}

impl Kept {
    /// Starts a keeper, which is a subcommand of `program`, with a plan of what it has to
    /// remove, without a command yet: what is made from now on is removed, whichever
    /// process dies.
    pub fn start(program: &Path, plan: KeepPlan) -> Result<Kept, HostError> {
        let log = OpenOptions::new().append(true).create(true).open(&plan.log).map_err(wrong)?;
        let mut child = Command::new(program)
            .arg("keep")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            // Its own process group, so that Ctrl-C reaches only the coordinator.
            .process_group(0)
            .spawn()
            .map_err(wrong)?;
        let (sender, words) = channel();
        let output = child.stdout.take();
        let mut kept = Kept { input: child.stdin.take(), child, words, plan };
        let listen = move || {
            for line in output.map(BufReader::new).into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
                let word = serde_json::from_str(&line);
                let word = word.unwrap_or_else(|_| KeeperAnswer::Failed(format!("the keeper says `{line}`")));
                if sender.send(word).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("keeper".into()).spawn(listen).map_err(wrong)?;
        kept.tell()?;
        Ok(kept)
    }

    /// Sends the full plan to the keeper.
    pub fn keep(&mut self, plan: KeepPlan) -> Result<(), HostError> {
        self.plan = plan;
        self.tell()
    }

    fn tell(&mut self) -> Result<(), HostError> {
        let mut line = serde_json::to_vec(&self.plan).map_err(|error| wrong(error.into()))?;
        line.push(b'\n');
        let told = self.input.as_mut().map(|input| input.write_all(&line).and_then(|()| input.flush()));
        told.transpose().map(drop).map_err(wrong)
    }

    /// Returns the keeper's process; what it keeps is below it.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Sends an order to the keeper. If the keeper has ended, [`Kept::hear`] reports it.
    pub fn order(&mut self, order: KeeperOrder) {
        let Ok(mut line) = serde_json::to_vec(&order) else { return };
        line.push(b'\n');
        if let Some(input) = &mut self.input {
            let _ = input.write_all(&line).and_then(|()| input.flush());
        }
    }

    /// Returns the next answer, if one arrives within this time.
    pub fn hear(&self, wait: Duration) -> FromKeeper {
        match self.words.recv_timeout(wait) {
            Ok(word) => FromKeeper::Answer(word),
            Err(RecvTimeoutError::Timeout) => FromKeeper::Nothing,
            Err(RecvTimeoutError::Disconnected) => FromKeeper::Gone,
        }
    }

    /// Ends what is kept, and then the keeper. The time is limited; a second call does
    /// nothing.
    pub fn end(&mut self) {
        if self.input.take().is_none() {
            return;
        }
        // A stopped keeper would not notice it.
        processes::signal(self.pid(), Signal::SIGCONT);
        let clean_up = CLEAN_UP * self.plan.clean_up.len() as u32;
        let most = Duration::from_millis(self.plan.grace_ms) + 2 * KILLING + clean_up + MARGIN;
        let deadline = Instant::now() + most;
        let mut ended = None;
        while Instant::now() < deadline {
            ended = self.child.try_wait().transpose();
            if ended.is_some() {
                break;
            }
            // Its further answers do not matter; the end of its output shortens the wait.
            if self.hear(Duration::from_millis(5)) == FromKeeper::Gone {
                thread::park_timeout(Duration::from_millis(1));
            }
        }
        if !matches!(ended, Some(Ok(status)) if status.success()) {
            let _ = self.child.kill();
            let _ = self.child.wait();
            self.clear();
        }
    }

    /// Does the work of a keeper that was killed itself.
    fn clear(&self) {
        // An engine's helpers bear the marker too: they are needed until it is done.
        if self.plan.engine.is_some() {
            self.clean_up();
        }
        let deadline = Instant::now() + KILLING;
        // While it becomes another program, a process shows no environment: one check is not
        // enough.
        let mut empty_looks = 0;
        while empty_looks < 2 && Instant::now() < deadline {
            let left = processes::marked(|marker| marker == self.plan.marker);
            empty_looks = if left.is_empty() { empty_looks + 1 } else { 0 };
            for pid in left {
                processes::signal(pid, Signal::SIGKILL);
            }
            thread::park_timeout(Duration::from_millis(5));
        }
        if self.plan.engine.is_none() {
            self.clean_up();
        }
        limits::remove(&self.plan.groups);
        for folder in &self.plan.remove {
            let _ = ledger_disk::remove_all(folder);
        }
    }

    fn clean_up(&self) {
        for command in &self.plan.clean_up {
            let _ = super::command::output(command, &[], CLEAN_UP);
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.end();
    }
}
