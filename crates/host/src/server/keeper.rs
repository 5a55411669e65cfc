//! The keeper: the process between coordinator and server that outlives the former to end
//! the latter. The end of its standard input tells it that the coordinator has done with
//! the server, or is dead.
//!
//! It is the reaper of its descendants, so that processes that a server leaves in the
//! background remain below it; and as long as any process of a server runs, the keeper
//! has a child.
//!
//! Until then it stops, continues, kills and restarts the server by orders: lines of its
//! input.

use super::accounts::processes_in;
use super::disk::DiskError;
use super::limits;
use super::orders::{EngineOrders, KeepPlan, KeeperAnswer, KeeperOrder};
use super::process_end::ProcessEnd;
use super::processes::{self, MARKER};
use super::server_disk::ServerDisk;
use crate::clock;
use crate::log::Log;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use pubmark_model::units::Ns;
use std::collections::VecDeque;
use std::io::{self, BufRead, PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Maximum length of a plan, bytes.
const MAX_PLAN: u64 = 16 << 20;
/// Maximum length of an order, bytes.
const MAX_ORDER: u64 = 64;
/// Time limit for killing, before what cannot be killed is given up.
pub const KILLING: Duration = Duration::from_secs(10);
/// Attempts to remove a folder.
const REMOVALS: u32 = 50;
/// Time that a server has to end itself before it is started again.
const TERMINATION: Duration = Duration::from_secs(30);
/// Time limit of each clean-up command.
pub const CLEAN_UP: Duration = Duration::from_secs(20);

impl From<CommandError> for KeeperAnswer {
    fn from(error: CommandError) -> KeeperAnswer {
        KeeperAnswer::Failed(error.to_string())
    }
}

enum Event {
    /// A process below the keeper has ended.
    Reaped(i32, ProcessEnd),
    /// No child was left.
    Childless,
    /// An order of the coordinator.
    KeeperOrder(KeeperOrder),
    /// The coordinator is done, or dead.
    Closed,
}

struct Keeper<W> {
    plan: KeepPlan,
    /// File system below the server's folder, if its power can be cut.
    disk: Option<ServerDisk>,
    log: Result<Log, Arc<io::Error>>,
    output: W,
    events: Receiver<Event>,
    sender: Sender<Event>,
    /// Events that arrived while the server was being killed.
    pending: VecDeque<Event>,
    /// True while a thread waits for children to end; it ends with the last of them.
    reaping: bool,
    /// The process beside the server, while it is not being killed.
    beside: Option<i32>,
}

/// The reason why a command of a server failed.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    /// The log cannot be opened.
    #[error("{}: {source}", path.display())]
    Log { path: PathBuf, source: Arc<io::Error> },
    /// The command was not started.
    #[error("`{command}`: {source}")]
    Start { command: String, source: io::Error },
    /// The command ended by itself, with a failure.
    #[error("`{command}` ended: {end}")]
    Ended { command: String, end: ProcessEnd },
    /// The command did not end in time.
    #[error("`{command}` did not end within {} s", CLEAN_UP.as_secs())]
    Late { command: String },
}

/// The reason why nothing is kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// Processes that a server leaves in the background would be out of reach.
    #[error("descendants cannot be kept: {0}")]
    Reaper(#[source] Errno),
    /// No plan arrived.
    #[error("no plan: {0}")]
    NoPlan(#[source] io::Error),
    /// The line is not a plan.
    #[error("the plan: {0}")]
    Plan(#[from] serde_json::Error),
    /// There is no network of its own.
    #[error("no network of its own: {0}")]
    Network(#[source] Errno),
    /// The thread that reads orders cannot be started.
    #[error("no thread: {0}")]
    Thread(#[source] io::Error),
}

/// Keeps a server until `input` ends, and then ends it. The caller ensures that signals
/// do not end this process.
pub fn keep(mut input: impl BufRead + Send + 'static, output: impl Write) -> Result<(), KeepError> {
    prctl::set_child_subreaper(true).map_err(KeepError::Reaper)?;
    // So that a stopped keeper wakes up when its coordinator dies.
    let _ = prctl::set_pdeathsig(Signal::SIGCONT);
    let mut plan = KeepPlan::default();
    let mut is_apart = false;
    while plan.command.is_empty() {
        let mut line = String::new();
        if (&mut input).take(MAX_PLAN).read_line(&mut line).map_err(KeepError::NoPlan)? == 0 {
            limits::remove(&plan.groups);
            plan.remove.iter().for_each(|folder| drop(std::fs::remove_dir_all(folder)));
            return Ok(());
        }
        plan = serde_json::from_str(&line)?;
        if plan.own_network && !is_apart {
            // Of this thread, which starts the server, and before there are others.
            unshare(CloneFlags::CLONE_NEWNET).map_err(KeepError::Network)?;
            is_apart = true;
        }
    }
    let (sender, events) = channel();
    let closed = sender.clone();
    let listen = move || {
        let mut line = String::new();
        while (&mut input).take(MAX_ORDER).read_line(&mut line).is_ok_and(|length| length > 0) {
            let order = serde_json::from_str(&line).map(Event::KeeperOrder);
            if order.is_ok_and(|order| closed.send(order).is_ok()) {
                line.clear();
            } else {
                break;
            }
        }
        let _ = closed.send(Event::Closed);
    };
    thread::Builder::new().spawn(listen).map_err(KeepError::Thread)?;
    let log = Log::append(&plan.log, &plan.secrets).map_err(Arc::new);
    let (disk, beside, pending) = (None, None, VecDeque::new());
    let mut keeper = Keeper { plan, disk, log, output, events, sender, pending, reaping: false, beside };
    keeper.serve();
    keeper.end();
    Ok(())
}

impl<W: Write> Keeper<W> {
    /// Starts what is planned, and waits until the coordinator is done.
    fn serve(&mut self) {
        if let Some(power) = self.plan.disk {
            match ServerDisk::make(power, &self.plan.folder) {
                Ok(disk) => {
                    disk.process().into_iter().for_each(|pid| self.say(&KeeperAnswer::Mounted(pid)));
                    self.disk = Some(disk);
                }
                Err(error) => {
                    self.say(&error.into());
                    return self.closed();
                }
            }
        }
        for command in self.plan.prepare.clone() {
            let failure = match self.spawn(&command, false) {
                Err(error) => error,
                Ok(pid) => match self.ended(pid, None) {
                    None => return,
                    Some(ProcessEnd::Exit(0)) => continue,
                    Some(end) => CommandError::Ended { command: command.join(" "), end },
                },
            };
            self.say(&failure.into());
            return self.closed();
        }
        match self.launch() {
            Err(error) => self.say(&error.into()),
            Ok(pid) => {
                self.say(&KeeperAnswer::Pid(pid));
                match self.watch(pid) {
                    None => return,
                    Some(end) => self.say(&end),
                }
            }
        }
        self.closed();
    }

    /// Performs orders until the server ends by itself, or cannot be started again, and
    /// returns how; `None` if the coordinator is done first.
    fn watch(&mut self, server: i32) -> Option<KeeperAnswer> {
        let mut server = Some(server);
        loop {
            let said = match self.event(None)? {
                Event::Closed => return None,
                Event::Reaped(pid, end) if server == Some(pid) => {
                    return Some(KeeperAnswer::Exited(end.to_string()));
                }
                Event::Reaped(pid, end) if self.beside == Some(pid) => {
                    return Some(KeeperAnswer::Exited(format!("what ran beside it ended: {end}")));
                }
                Event::Reaped(pid, end) if self.ledger() == Some(pid) => {
                    return Some(KeeperAnswer::Failed(format!("what served its ledger ended: {end}")));
                }
                Event::Reaped(..) | Event::Childless => continue,
                Event::KeeperOrder(KeeperOrder::Start) if server.is_some() => continue,
                Event::KeeperOrder(order) if self.plan.engine.is_some() => match self.by_engine(order, &mut server) {
                    Ok(said) => said,
                    Err(error) => return Some(error.into()),
                },
                Event::KeeperOrder(KeeperOrder::Stop) => KeeperAnswer::Stopped(self.signal(Signal::SIGSTOP).1),
                Event::KeeperOrder(KeeperOrder::Continue) => KeeperAnswer::Continued(self.signal(Signal::SIGCONT).0),
                Event::KeeperOrder(KeeperOrder::Kill) => {
                    server = None;
                    KeeperAnswer::Killed(self.kill())
                }
                Event::KeeperOrder(KeeperOrder::Settle) => match self.disk.as_mut().map(ServerDisk::settle) {
                    Some(Ok(at_ns)) => KeeperAnswer::Settled(at_ns),
                    Some(Err(error)) => return Some(error.into()),
                    None => continue,
                },
                Event::KeeperOrder(KeeperOrder::FillDisk) => match self.disk.as_mut().map(ServerDisk::fill) {
                    Some(Ok(at_ns)) => KeeperAnswer::Filled(at_ns),
                    Some(Err(error)) => return Some(error.into()),
                    None => return Some(no_disk()),
                },
                Event::KeeperOrder(KeeperOrder::FreeDisk) => match self.disk.as_mut().map(ServerDisk::free) {
                    Some(Ok(at_ns)) => KeeperAnswer::Freed(at_ns),
                    Some(Err(error)) => return Some(error.into()),
                    None => return Some(no_disk()),
                },
                Event::KeeperOrder(KeeperOrder::CutPower) => {
                    server = None;
                    match self.cut_power() {
                        Ok(said) => said,
                        Err(error) => return Some(error.into()),
                    }
                }
                Event::KeeperOrder(KeeperOrder::Terminate) => {
                    (server, self.beside) = (None, None);
                    let (at_ns, _) = self.signal(Signal::SIGTERM);
                    self.wait_empty(Instant::now() + TERMINATION, None);
                    self.wait_empty(Instant::now() + KILLING, Some(Signal::SIGKILL));
                    KeeperAnswer::Killed(at_ns)
                }
                Event::KeeperOrder(KeeperOrder::Start) => {
                    let at_ns = clock::now();
                    match self.launch() {
                        Err(error) => return Some(error.into()),
                        Ok(pid) => {
                            server = Some(pid);
                            KeeperAnswer::Restarted(at_ns, pid)
                        }
                    }
                }
            };
            self.say(&said);
        }
    }

    /// Kills the server. Returns when the last process had been sent the signal.
    fn kill(&mut self) -> Ns {
        self.beside = None;
        let (_, at_ns) = self.signal(Signal::SIGKILL);
        // Its port and its files are free only when all processes are gone.
        self.wait_empty(Instant::now() + KILLING, Some(Signal::SIGKILL));
        at_ns
    }

    /// Cuts the power of the server's disk first, so that nothing that the server writes is kept any more.
    fn cut_power(&mut self) -> Result<KeeperAnswer, DiskError> {
        let Some(at_ns) = self.disk.as_mut().map(ServerDisk::fail).transpose()? else {
            return Ok(no_disk());
        };
        let killed_ns = self.kill();
        let back_ns = self.disk.as_mut().map(ServerDisk::replay).transpose()?;
        Ok(KeeperAnswer::PowerCut(at_ns, killed_ns, back_ns.unwrap_or(killed_ns)))
    }

    /// Has the engine perform an order. `server` is the process in the container's place.
    fn by_engine(&mut self, order: KeeperOrder, server: &mut Option<i32>) -> Result<KeeperAnswer, CommandError> {
        let engine = self.plan.engine.clone().unwrap_or_default();
        let at_ns = clock::now();
        Ok(match order {
            KeeperOrder::Stop => {
                self.run(&engine.stop)?;
                KeeperAnswer::Stopped(clock::now())
            }
            KeeperOrder::Continue => {
                self.run(&engine.go_on)?;
                KeeperAnswer::Continued(at_ns)
            }
            // Planning refuses `restart` for containers.
            KeeperOrder::Kill | KeeperOrder::Terminate => {
                *server = None;
                self.run(&engine.kill)?;
                let killed_ns = clock::now();
                // It cannot be started while the engine considers it running.
                self.run(&engine.wait)?;
                KeeperAnswer::Killed(killed_ns)
            }
            KeeperOrder::Start => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let now = format!("{}.{:09}", now.as_secs(), now.subsec_nanos());
                self.run(&engine.start)?;
                let follow = engine.follow.iter().map(|word| word.replace(EngineOrders::NOW, &now)).collect::<Vec<_>>();
                let pid = self.spawn(&follow, true)?;
                *server = Some(pid);
                KeeperAnswer::Restarted(at_ns, pid)
            }
            // Planning refuses them for containers.
            KeeperOrder::Settle | KeeperOrder::CutPower | KeeperOrder::FillDisk | KeeperOrder::FreeDisk => no_disk(),
        })
    }

    /// Runs a command to its end. Events meanwhile are handled afterwards. The server's
    /// folder may be gone by now, and the log contains only the server's own output.
    fn run(&mut self, command: &[String]) -> Result<(), CommandError> {
        let mut launch = launcher();
        launch.arg("--").args(command).current_dir("/").stdout(Stdio::null());
        launch.stderr(self.log_output().map_or_else(|_| Stdio::null(), Stdio::from)).env(MARKER, &self.plan.marker);
        let pid = self.start(&mut launch, command)?;
        let deadline = Instant::now() + CLEAN_UP;
        loop {
            match self.receive(Some(deadline)) {
                Some(Event::Reaped(ended, ProcessEnd::Exit(0))) if ended == pid => return Ok(()),
                Some(Event::Reaped(ended, end)) if ended == pid => {
                    return Err(CommandError::Ended { command: command.join(" "), end });
                }
                Some(event) => self.pending.push_back(event),
                None if Instant::now() < deadline => {}
                None => {
                    processes::signal(pid, Signal::SIGKILL);
                    return Err(CommandError::Late { command: command.join(" ") });
                }
            }
        }
    }

    /// Sends a signal to all remaining processes, including those started meanwhile.
    /// Returns when the first was sent, and when the last had been.
    fn signal(&self, signal: Signal) -> (Ns, Ns) {
        let mut reached: Vec<i32> = Vec::new();
        let mut fresh = self.left();
        let began_ns = clock::now();
        let mut done_ns = began_ns;
        while !fresh.is_empty() {
            fresh.iter().for_each(|pid| processes::signal(*pid, signal));
            done_ns = clock::now();
            reached.append(&mut fresh);
            fresh = self.left();
            fresh.retain(|pid| !reached.contains(pid));
        }
        (began_ns, done_ns)
    }

    /// If the coordinator cannot read it, the coordinator is dead, and the input ends.
    fn say(&mut self, word: &KeeperAnswer) {
        // The coordinator reads the reason of an end in the log.
        if let (KeeperAnswer::Exited(_) | KeeperAnswer::Failed(_), Ok(log)) = (word, &mut self.log) {
            log.settle();
        }
        if let Ok(mut line) = serde_json::to_vec(word) {
            line.push(b'\n');
            let _ = self.output.write_all(&line).and_then(|()| self.output.flush());
        }
    }

    fn log_output(&self) -> Result<PipeWriter, CommandError> {
        let output = self.log.as_ref().map_err(Arc::clone).and_then(|log| log.output().map_err(Arc::new));
        output.map_err(|source| CommandError::Log { path: self.plan.log.clone(), source })
    }

    /// Starts the server, and what runs beside it. Returns the server's process.
    fn launch(&mut self) -> Result<i32, CommandError> {
        let (command, beside) = (self.plan.command.clone(), self.plan.beside.clone());
        let pid = self.spawn(&command, true)?;
        self.beside = if beside.is_empty() { None } else { Some(self.spawn(&beside, true)?) };
        Ok(pid)
    }

    /// Starts a command of the server, in its folder and with its log.
    fn spawn(&mut self, command: &[String], limited: bool) -> Result<i32, CommandError> {
        let (out, err) = (self.log_output()?, self.log_output()?);
        let mut launch = launcher();
        if limited {
            for group in &self.plan.groups {
                launch.arg("--group").arg(group);
            }
            for cpu in &self.plan.cpus {
                launch.arg("--cpu").arg(cpu.to_string());
            }
        }
        launch.arg("--").args(command).current_dir(&self.plan.folder);
        launch.envs(self.plan.environment.iter().map(|(name, value)| (name, value))).env(MARKER, &self.plan.marker);
        self.start(launch.stdout(out).stderr(err), command)
    }

    fn start(&mut self, launch: &mut Command, command: &[String]) -> Result<i32, CommandError> {
        // From the first thread, which lives as long as the keeper: a server dies with the thread that starts
        // it.
        let failed = |source| CommandError::Start { command: command.join(" "), source };
        let child = launch.spawn().map_err(failed)?;
        self.reap();
        Ok(child.id() as i32)
    }

    fn reap(&mut self) {
        if self.reaping {
            return;
        }
        let sender = self.sender.clone();
        let reap = move || {
            loop {
                let event = match waitpid(None, None) {
                    Ok(status) => reaped(status),
                    Err(Errno::EINTR) => None,
                    Err(_) => break,
                };
                if event.is_some_and(|event| sender.send(event).is_err()) {
                    return;
                }
            }
            let _ = sender.send(Event::Childless);
        };
        self.reaping = thread::Builder::new().spawn(reap).is_ok();
    }

    /// Returns the next event; `None` when the time is up.
    fn event(&mut self, deadline: Option<Instant>) -> Option<Event> {
        self.pending.pop_front().or_else(|| self.receive(deadline))
    }

    fn receive(&mut self, deadline: Option<Instant>) -> Option<Event> {
        let event = match deadline {
            None => self.events.recv().ok(),
            Some(deadline) => self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok(),
        };
        if matches!(event, Some(Event::Childless)) {
            self.reaping = false;
            // A child may have been started after the thread checked.
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Err(_) => {}
                Ok(status) => {
                    self.reap();
                    return reaped(status).or(Some(Event::Childless));
                }
            }
        }
        event
    }

    /// Returns how a process ended; `None` if the coordinator is done first, or the time
    /// is up.
    fn ended(&mut self, pid: i32, deadline: Option<Instant>) -> Option<ProcessEnd> {
        loop {
            match self.event(deadline) {
                Some(Event::Reaped(reaped, end)) if reaped == pid => return Some(end),
                Some(Event::Closed) | None => return None,
                Some(_) => {}
            }
        }
    }

    fn closed(&mut self) {
        while !matches!(self.event(None), Some(Event::Closed) | None) {}
    }

    /// Returns the process that serves the ledger, which is not the server's.
    fn ledger(&self) -> Option<i32> {
        self.disk.as_ref().and_then(ServerDisk::process)
    }

    /// Returns the remaining processes of the server.
    fn left(&self) -> Vec<i32> {
        let mut left = processes::descendants(std::process::id() as i32);
        left.extend(self.plan.groups.iter().flat_map(|group| processes_in(group)));
        left.sort_unstable();
        left.dedup();
        left.retain(|pid| Some(*pid) != self.ledger());
        left
    }

    /// Ends all of it, first with SIGTERM.
    fn end(&mut self) {
        // An engine's helpers are below the keeper too: they are needed until it is done.
        if self.plan.engine.is_some() {
            self.clean_up();
        }
        for pid in self.left() {
            processes::signal(pid, Signal::SIGTERM);
            // A stopped process does not handle SIGTERM.
            processes::signal(pid, Signal::SIGCONT);
        }
        self.wait_empty(Instant::now() + Duration::from_millis(self.plan.grace_ms), None);
        self.wait_empty(Instant::now() + KILLING, Some(Signal::SIGKILL));
        if self.plan.engine.is_none() {
            self.clean_up();
        }
        self.wait_empty(Instant::now() + KILLING, Some(Signal::SIGKILL));
        limits::remove(&self.plan.groups);
        self.disk.take().into_iter().for_each(ServerDisk::remove);
        self.plan.remove.iter().for_each(|folder| remove_with_others(folder));
    }

    fn clean_up(&mut self) {
        for command in self.plan.clean_up.clone() {
            // What cannot be done now is done by the next coordinator's sweep.
            let _ = self.run(&command);
        }
    }

    /// Waits until no process is left, and sends a signal to those left at each check.
    fn wait_empty(&mut self, deadline: Instant, signal: Option<Signal>) {
        loop {
            let left = self.left();
            // While there is a ledger, there is a child.
            if left.is_empty() && (!self.reaping || self.ledger().is_some()) || Instant::now() >= deadline {
                return;
            }
            if let Some(signal) = signal {
                left.iter().for_each(|pid| processes::signal(*pid, signal));
            }
            let event = self.receive(Some(deadline.min(Instant::now() + Duration::from_millis(20))));
            self.pending.extend(event.filter(|event| matches!(event, Event::Closed | Event::KeeperOrder(_))));
        }
    }
}

fn no_disk() -> KeeperAnswer {
    KeeperAnswer::Failed("the server has no disk of its own".into())
}

/// Removes a folder. Keepers of other members may remove it at the same time, and each may find gone what it has just
/// listed.
fn remove_with_others(folder: &Path) {
    for _ in 0..REMOVALS {
        if std::fs::remove_dir_all(folder).is_ok() || !folder.exists() {
            return;
        }
        thread::park_timeout(Duration::from_millis(10));
    }
}

/// Returns the command of the process that becomes a server's command.
fn launcher() -> Command {
    // This very program, even if its file has been replaced meanwhile.
    let mut launch = Command::new("/proc/self/exe");
    launch.arg("launch").arg("--parent").arg(std::process::id().to_string());
    launch.stdin(Stdio::null()).process_group(0);
    launch
}

/// Returns the event of an ended process.
fn reaped(status: WaitStatus) -> Option<Event> {
    match status {
        WaitStatus::Exited(pid, code) => Some(Event::Reaped(pid.as_raw(), ProcessEnd::Exit(code))),
        WaitStatus::Signaled(pid, signal, _) => Some(Event::Reaped(pid.as_raw(), ProcessEnd::Signal(signal))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_plans_are_lines_of_json() {
        let line = |word: &KeeperAnswer| serde_json::to_string(word).unwrap();
        assert_eq!(line(&KeeperAnswer::Pid(7)), r#"{"pid":7}"#);
        assert_eq!(line(&KeeperAnswer::Restarted(5, 7)), r#"{"restarted":[5,7]}"#);
        assert_eq!(serde_json::to_string(&KeeperOrder::Stop).unwrap(), r#""stop""#);
        assert_eq!(line(&KeeperAnswer::Exited("exit status: 1".into())), r#"{"exited":"exit status: 1"}"#);
        let plan = KeepPlan { marker: "pubmark-1-0".into(), grace_ms: 5_000, ..KeepPlan::default() };
        assert_eq!(serde_json::from_str::<KeepPlan>(&serde_json::to_string(&plan).unwrap()).unwrap(), plan);
    }

    #[test]
    fn a_coordinator_that_goes_before_there_is_a_command_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let made = |name: &str| {
            let path = place.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (group, folder, other) = (made("group"), made("folder"), made("other"));
        let absent = place.path().join("never made");
        let plan = KeepPlan { groups: vec![absent, group], remove: vec![folder], ..KeepPlan::default() };
        let line = serde_json::to_string(&plan).unwrap() + "\n";
        keep(std::io::Cursor::new(line), Vec::new()).unwrap();
        let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, [other]);
    }
}
