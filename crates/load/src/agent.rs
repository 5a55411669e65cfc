//! The built-in agent. It speaks the agent protocol on the streams that it is given, and
//! runs clients on threads, in event loops, or (for the mock) in virtual time.

mod identity;
pub mod listening;
pub mod removal;
mod tasks;
mod trace_file;

use crate::clock;
use crate::control::{Control, Counter, ThreadContext, ThreadReport};
use crate::drivers::socket::Driver;
use crate::outcome::{self, ThreadOutcome};
use crate::simulation;
use crate::subscriber::Totals;
use crate::usage::{UsageSampler, give_back_memory};
pub use identity::{AgentInfo, BUILT_IN};
use identity::{MOCK, features};
use pubmark_model::line::JsonLine;
use pubmark_model::protocol::{
    AgentHello, Command, ConnectionEnd, Event, Flow, LOCK, MAX_LINE, Prepare, Progress, PublisherTotal, Role, SCRATCH,
    Stalls, VERSION,
};
use pubmark_model::units::Ns;
use pubmark_model::workload::Workload;
use serde_json::{Map, Value};
use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use tasks::{OpenedJobs, Waker, open};

/// Time that client threads have to end after a stop, plus [`JOIN_EACH`] for each client.
const JOIN: Duration = Duration::from_secs(5);
/// Time that each client has to disconnect from its server.
const JOIN_EACH: Duration = Duration::from_micros(500);
/// Time that the agent has to end after its coordinator has exited.
const ORPHAN: Duration = Duration::from_secs(2);
/// Attempts of an orphaned agent to remove its scratch folder.
const REMOVALS: u32 = 1_000;

enum Input {
    Command(Box<Command>),
    Bad(String),
    Closed,
    Client(ThreadReport),
}

/// The reason why the agent ended.
#[derive(Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// The coordinator sent `exit`.
    Exit,
    /// The coordinator has exited.
    Orphaned,
}

/// Serves one coordinator until `exit` or the end of `input`. If the input ends without
/// an `exit`, the coordinator has died: the agent removes the run's scratch folder, and
/// ends its process if the removal hangs.
pub fn serve(
    identity: AgentInfo,
    input: impl BufRead + Send + 'static,
    output: impl Write,
) -> std::io::Result<ExitReason> {
    let (sender, receiver) = channel();
    let reader = sender.clone();
    thread::Builder::new().name("commands".into()).spawn(move || read_commands(input, &reader))?;
    let scratch = std::env::var(SCRATCH).ok();
    let mut agent =
        Agent { identity, output, sender, receiver, current: None, scratch, has_scratch: false, started: false };
    // A write error means that the coordinator has exited, like end of input.
    let reason = agent.run().unwrap_or(ExitReason::Orphaned);
    if reason == ExitReason::Orphaned
        && let Some(scratch) = &agent.scratch
    {
        remove_scratch(Path::new(scratch), agent.has_scratch);
    }
    Ok(reason)
}

/// Removes a run's folder, if it is one: its name and its lock file must show it, or the
/// folder was `known` to be one. All agents of a run do this at once and may remove files
/// that another one is about to remove; the last agent finishes.
pub fn remove_scratch(folder: &Path, known: bool) {
    let named = folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("pubmark-"));
    if !named || !folder.is_absolute() {
        return;
    }
    if !known && !is_scratch(folder) {
        // The coordinator may have died before it locked the folder. Files in other
        // people's folders stay.
        let _ = std::fs::remove_dir(folder);
        return;
    }
    for _ in 0..REMOVALS {
        let _ = std::fs::remove_dir_all(folder);
        if !folder.exists() {
            return;
        }
        thread::yield_now();
    }
}

fn is_scratch(folder: &Path) -> bool {
    folder.join(LOCK).is_file()
}

fn read_commands(mut input: impl BufRead, sender: &Sender<Input>) {
    loop {
        let mut line = Vec::new();
        let read = (&mut input).take(MAX_LINE as u64).read_until(b'\n', &mut line);
        let message = match read {
            Ok(0) | Err(_) => break,
            Ok(_) => match Command::from_json(&line) {
                Ok(command) => Input::Command(Box::new(command)),
                Err(_) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Err(error) => Input::Bad(error.to_string()),
            },
        };
        if sender.send(message).is_err() {
            return;
        }
    }
    let _ = sender.send(Input::Closed);
    // The agent now ends by itself. If a library call hangs, this thread ends the
    // process.
    thread::sleep(ORPHAN);
    std::process::exit(3);
}

/// Workloads that this agent does not play.
#[derive(Debug, thiserror::Error)]
enum CannotPlay {
    #[error("this agent plays one flow, and `prepare` has {0}")]
    Flows(usize),
    #[error("client {id} belongs to flow {flow}, and there is flow 0 only")]
    NoFlow { id: u32, flow: u32 },
}

/// Returns the flow that all clients belong to.
fn only_flow(prepare: &mut Prepare) -> Result<Flow, CannotPlay> {
    if let Some(client) = prepare.clients.iter().find(|client| client.flow > 0 && prepare.flows.len() == 1) {
        return Err(CannotPlay::NoFlow { id: client.id, flow: client.flow });
    }
    let flows = std::mem::take(&mut prepare.flows);
    <[Flow; 1]>::try_from(flows).map(|[flow]| flow).map_err(|flows| CannotPlay::Flows(flows.len()))
}

/// The clients of the current run.
struct Clients {
    driver: Option<Box<dyn Driver>>,
    context: Arc<ThreadContext>,
    wakers: Vec<Waker>,
    /// Number of threads whose clients are not all connected yet; 0 without a server.
    unconnected: usize,
    counters: Vec<(Role, Arc<Counter>)>,
    applied: Map<String, Value>,
    unready: usize,
    sending: usize,
    undrained: usize,
    running: usize,
    client_count: u32,
    totals: Vec<PublisherTotal>,
    ends: Vec<ConnectionEnd>,
    outcomes: Vec<ThreadOutcome>,
    sampler: Option<UsageSampler>,
}

/// The current run.
enum CurrentRun {
    Threads(Box<Clients>),
    Mock { prepare: Box<Prepare>, workload: Box<Workload>, outcomes: Vec<ThreadOutcome> },
}

struct Agent<W> {
    identity: AgentInfo,
    output: W,
    sender: Sender<Input>,
    receiver: Receiver<Input>,
    current: Option<CurrentRun>,
    scratch: Option<String>,
    /// True once the folder was recognised as a run's scratch folder.
    has_scratch: bool,
    started: bool,
}

impl<W: Write> Agent<W> {
    fn say(&mut self, event: &Event) -> std::io::Result<()> {
        let mut line = event.to_json()?;
        line.push(b'\n');
        self.output.write_all(&line)?;
        self.output.flush()
    }

    fn complain(&mut self, message: impl Into<String>, fatal: bool) -> std::io::Result<()> {
        self.say(&Event::Error { message: message.into(), fatal, too_late: false })
    }

    fn run(&mut self) -> std::io::Result<ExitReason> {
        let mut tick = Instant::now() + Duration::from_secs(1);
        loop {
            match self.receiver.recv_timeout(tick.saturating_duration_since(Instant::now())) {
                Ok(Input::Closed) | Err(RecvTimeoutError::Disconnected) => return Ok(ExitReason::Orphaned),
                Ok(Input::Bad(error)) => {
                    self.complain(format!("not a command of protocol version {VERSION}: {error}"), false)?
                }
                Ok(Input::Client(report)) => self.report(report)?,
                Ok(Input::Command(command)) => match *command {
                    Command::Exit {} => return Ok(ExitReason::Exit),
                    command => self.command(command)?,
                },
                Err(RecvTimeoutError::Timeout) => {
                    tick += Duration::from_secs(1);
                    self.progress()?;
                }
            }
        }
    }

    fn command(&mut self, command: Command) -> std::io::Result<()> {
        match command {
            Command::Hello { protocol } if protocol != VERSION => self.complain(
                format!("this agent speaks protocol version {VERSION}, not {protocol}: update the older of the two"),
                true,
            ),
            Command::Hello { .. } => {
                let AgentInfo { name, version, drivers, versions, .. } = self.identity;
                let drivers = drivers.iter().map(|(name, _)| (*name).to_owned()).chain([MOCK.to_owned()]).collect();
                self.say(&Event::Hello(Box::new(AgentHello {
                    protocol: VERSION,
                    name: name.into(),
                    version: version.into(),
                    pid: std::process::id(),
                    drivers,
                    clock_ns: clock::now(),
                    versions: versions.iter().map(|(name, version)| ((*name).into(), (*version).into())).collect(),
                    features: features(&self.identity),
                    options: self.identity.options(),
                })))
            }
            Command::Prepare(_) if self.current.is_some() => {
                self.complain("`prepare` came twice: an agent plays one run", true)
            }
            Command::Prepare(prepare) => self.prepare(*prepare),
            Command::Start { at_ns } => self.start(at_ns),
            Command::Drain { publishers, ends, deadline_ns } => self.drain(&publishers, ends, deadline_ns),
            Command::Crash {} => self.crash(),
            Command::Cut { percent } => self.cut(percent),
            Command::Stop {} => self.stop(),
            Command::Exit {} => Ok(()),
        }
    }

    fn prepare(&mut self, mut prepare: Prepare) -> std::io::Result<()> {
        let workload = match only_flow(&mut prepare) {
            Ok(flow) => trace_file::load(flow.workload),
            Err(error) => return self.complain(error.to_string(), true),
        };
        let workload = match workload {
            Ok(workload) => workload,
            Err(error) => return self.complain(error.to_string(), true),
        };
        self.scratch = Some(prepare.scratch.clone()).filter(|scratch| !scratch.is_empty());
        self.has_scratch = self.scratch.as_ref().is_some_and(|scratch| is_scratch(Path::new(scratch)));
        if let Some(unknown) = self.identity.unknown_option(&prepare) {
            return self.complain(unknown, true);
        }
        if prepare.driver == MOCK {
            let (prepare, workload) = (Box::new(prepare), Box::new(workload));
            self.current = Some(CurrentRun::Mock { prepare, workload, outcomes: Vec::new() });
            self.say(&Event::Bound { endpoints: Vec::new() })?;
            return self.say(&Event::Ready {});
        }
        match open(&self.identity, &prepare, &workload) {
            Err(error) => self.complain(error.to_string(), true),
            Ok(opened) => {
                let bound = opened.bound.clone();
                let connecting = opened.connecting();
                match self.start_threads(workload, prepare.clients.len(), prepare.clock_offset_ns, opened) {
                    Ok(clients) => self.current = Some(CurrentRun::Threads(Box::new(clients))),
                    Err(error) => {
                        return self.complain(format!("a client thread could not be started: {error}"), true);
                    }
                }
                // Clients of a server report themselves when they are connected.
                if connecting { Ok(()) } else { self.say(&Event::Bound { endpoints: bound }) }
            }
        }
    }

    /// Starts a thread for each client or event loop.
    fn start_threads(
        &self,
        workload: Workload,
        client_count: usize,
        ahead_ns: i64,
        opened: OpenedJobs,
    ) -> std::io::Result<Clients> {
        let jobs = opened.jobs;
        let mut clients = Clients {
            driver: opened.driver,
            context: Arc::new(ThreadContext { workload, control: Control::default(), ahead_ns }),
            wakers: Vec::new(),
            unconnected: jobs.iter().filter(|job| job.connects()).count(),
            counters: Vec::new(),
            applied: opened.applied,
            unready: jobs.len(),
            sending: 0,
            undrained: 0,
            running: jobs.len(),
            client_count: client_count as u32,
            totals: Vec::new(),
            ends: Vec::new(),
            outcomes: Vec::new(),
            sampler: None,
        };
        let (reports, inbox) = channel::<ThreadReport>();
        let forward = self.sender.clone();
        thread::Builder::new().name("reports".into()).spawn(move || {
            for report in inbox {
                if forward.send(Input::Client(report)).is_err() {
                    return;
                }
            }
        })?;
        for job in jobs {
            let role = job.role();
            clients.sending += usize::from(role.sends());
            clients.undrained += usize::from(job.drains(clients.context.workload.qos));
            clients.counters.push((role, job.counter()));
            clients.wakers.push(job.start(&clients.context, &reports)?);
        }
        Ok(clients)
    }

    fn start(&mut self, at_ns: Ns) -> std::io::Result<()> {
        if std::mem::replace(&mut self.started, true) {
            return self.complain("`start` came twice", true);
        }
        match &mut self.current {
            None => self.complain("`start` before `prepare`", true),
            Some(CurrentRun::Threads(clients)) => {
                if clock::now() > at_ns {
                    let message = "`start` names an instant that has passed: the agent was not scheduled in time";
                    return self.say(&Event::Error { message: message.into(), fatal: true, too_late: true });
                }
                clients.sampler = Some(UsageSampler::start(clients.context.window(at_ns)));
                clients.context.control.start(at_ns);
                clients.wakers.iter().for_each(Waker::wake);
                Ok(())
            }
            Some(CurrentRun::Mock { prepare, workload, outcomes }) => {
                *outcomes = simulation::run(workload, &prepare.clients, &prepare.options, at_ns);
                let publishers = outcomes.iter().flat_map(|outcome| outcome.totals.iter().copied()).collect();
                self.say(&Event::Sent { publishers, ends: Vec::new() })
            }
        }
    }

    fn drain(
        &mut self,
        publishers: &[PublisherTotal],
        ends: Vec<ConnectionEnd>,
        deadline_ns: Ns,
    ) -> std::io::Result<()> {
        let none_drains = match &mut self.current {
            None => return self.complain("`drain` before `prepare`", true),
            // Publishers with last wills leave now, even if they have nothing to wait for.
            Some(CurrentRun::Threads(clients)) if clients.undrained > 0 || clients.context.workload.last_will => {
                clients.context.control.drain(Totals::new(publishers).with_ends(ends), deadline_ns);
                clients.wakers.iter().for_each(Waker::wake);
                clients.undrained == 0
            }
            Some(_) => true,
        };
        if none_drains { self.say(&Event::Drained {}) } else { Ok(()) }
    }

    /// Kills all clients and keeps what they recorded.
    fn crash(&mut self) -> std::io::Result<()> {
        match &self.current {
            Some(CurrentRun::Threads(clients)) if self.started && self.identity.crash => {
                clients.context.control.crash();
                clients.wakers.iter().for_each(Waker::wake);
                Ok(())
            }
            Some(CurrentRun::Threads(_)) if self.started => {
                self.complain("the clients of this agent cannot be killed: its `hello` does not say `crash`", true)
            }
            Some(CurrentRun::Mock { .. }) => self.complain("in virtual time nobody can be killed", true),
            _ => self.complain("`crash` before `start`, or after `stop`", true),
        }
    }

    /// Cuts the connections of a share of its clients.
    fn cut(&mut self, percent: u8) -> std::io::Result<()> {
        match &self.current {
            Some(CurrentRun::Threads(clients)) if self.started => {
                clients.context.control.cut(percent);
                clients.wakers.iter().for_each(Waker::wake);
                Ok(())
            }
            Some(CurrentRun::Mock { .. }) => self.complain("in virtual time nobody can be cut", true),
            _ => self.complain("`cut` before `start`, or after `stop`", true),
        }
    }

    fn report(&mut self, report: ThreadReport) -> std::io::Result<()> {
        let Some(CurrentRun::Threads(clients)) = &mut self.current else {
            return Ok(());
        };
        match report {
            ThreadReport::Connected => {
                clients.unconnected = clients.unconnected.saturating_sub(1);
                if clients.unconnected == 0 {
                    return self.say(&Event::Bound { endpoints: Vec::new() });
                }
            }
            ThreadReport::Ready => {
                clients.unready = clients.unready.saturating_sub(1);
                if clients.unready == 0 {
                    give_back_memory();
                    return self.say(&Event::Ready {});
                }
            }
            ThreadReport::Ends(ends) => clients.ends.extend(ends),
            ThreadReport::Sent(totals) => {
                clients.totals.extend(totals);
                clients.sending = clients.sending.saturating_sub(1);
                if clients.sending == 0 {
                    let (publishers, ends) = (clients.totals.clone(), std::mem::take(&mut clients.ends));
                    return self.say(&Event::Sent { publishers, ends });
                }
            }
            ThreadReport::Drained => {
                clients.undrained = clients.undrained.saturating_sub(1);
                if clients.undrained == 0 {
                    return self.say(&Event::Drained {});
                }
            }
            ThreadReport::Ended(outcome) => {
                clients.running = clients.running.saturating_sub(1);
                clients.outcomes.push(*outcome);
            }
            ThreadReport::Failed(error) => {
                clients.running = clients.running.saturating_sub(1);
                return self.complain(error, true);
            }
        }
        Ok(())
    }

    fn stop(&mut self) -> std::io::Result<()> {
        match self.current.take() {
            None => self.complain("`stop` before `prepare`", true),
            Some(CurrentRun::Mock { workload, outcomes, .. }) => {
                let mut result = outcome::merge(&workload, outcomes);
                // In virtual time the process has no pauses.
                result.pauses = Some(Stalls::default());
                result.versions.insert("library".into(), MOCK.into());
                result.versions.insert("version".into(), env!("CARGO_PKG_VERSION").into());
                self.say(&Event::Result(Box::new(result)))
            }
            Some(CurrentRun::Threads(clients)) => {
                clients.context.control.stop();
                clients.wakers.iter().for_each(Waker::wake);
                self.current = Some(CurrentRun::Threads(clients));
                self.gather()?;
                let Some(CurrentRun::Threads(clients)) = self.current.take() else {
                    return Ok(());
                };
                let mut result = outcome::merge(&clients.context.workload, clients.outcomes);
                if let Some(driver) = &clients.driver {
                    result.versions = driver.versions();
                    result.made = driver.made();
                }
                result.applied.extend(clients.applied);
                result.loops = clients.wakers.len() as u32;
                let (usage, pauses) = clients.sampler.map(UsageSampler::finish).unwrap_or_default();
                (result.usage, result.pauses) = (usage, Some(pauses));
                // Like the sockets, the library stays loaded until the process ends.
                std::mem::forget(clients.driver);
                self.say(&Event::Result(Box::new(result)))
            }
        }
    }

    /// Waits until every client thread has handed in what it measured.
    fn gather(&mut self) -> std::io::Result<()> {
        let client_count =
            if let Some(CurrentRun::Threads(clients)) = &self.current { clients.client_count } else { 0 };
        let patience = JOIN + JOIN_EACH * client_count;
        let deadline = Instant::now() + patience;
        loop {
            let running = match &self.current {
                Some(CurrentRun::Threads(clients)) => clients.running,
                _ => 0,
            };
            if running == 0 {
                return Ok(());
            }
            match self.receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Input::Client(report)) => self.report(report)?,
                Ok(_) => {}
                Err(_) => {
                    return self.complain(
                        format!(
                            "{running} clients did not end within {} s of the stop: a library call hangs",
                            patience.as_secs()
                        ),
                        true,
                    );
                }
            }
        }
    }

    fn progress(&mut self) -> std::io::Result<()> {
        let Some(CurrentRun::Threads(clients)) = self.current.as_ref().filter(|_| self.started) else {
            return Ok(());
        };
        let mut progress = Progress::default();
        for (role, counter) in &clients.counters {
            match role {
                Role::Publisher | Role::Requester => {
                    progress.sent += counter.get();
                    progress.own_lag_max_ns = progress.own_lag_max_ns.max(counter.take_lag());
                }
                Role::Subscriber | Role::Replier => progress.received += counter.get(),
            }
        }
        self.say(&Event::Progress(progress))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::setting::Settings;

    #[test]
    fn one_flow_is_played_and_more_are_refused() {
        let workload = Workload::resolve(&Settings::default()).unwrap();
        let of_flow = |flow| serde_json::json!({"role": "publisher", "id": 0, "flow": flow});
        let only = |flows: usize, client: serde_json::Value| {
            let flow = serde_json::to_value(Flow::alone(workload.clone())).unwrap();
            let mut prepare = serde_json::from_value::<Prepare>(serde_json::json!({
                "driver": "mock", "options": {}, "flows": vec![flow; flows], "clients": [client], "scratch": "",
                "publisher_cpus": [], "subscriber_cpus": [],
            }))
            .unwrap();
            only_flow(&mut prepare).map(|flow| flow.workload).map_err(|error| error.to_string())
        };
        assert_eq!(only(1, of_flow(0)), Ok(workload.clone()));
        assert_eq!(only(2, of_flow(1)), Err("this agent plays one flow, and `prepare` has 2".into()));
        assert_eq!(only(0, of_flow(0)), Err("this agent plays one flow, and `prepare` has 0".into()));
        assert_eq!(only(1, of_flow(1)), Err("client 0 belongs to flow 1, and there is flow 0 only".into()));
    }

    #[test]
    fn an_orphan_removes_its_runs_folder_and_nobody_elses() {
        let place = std::env::temp_dir().join(format!("orphan-{}", std::process::id()));
        let folder = |name: &str, files: &[&str]| {
            let folder = place.join(name);
            std::fs::create_dir_all(&folder).unwrap();
            files.iter().for_each(|file| std::fs::write(folder.join(file), "").unwrap());
            folder
        };
        let ours = folder("pubmark-0", &[LOCK, "socket"]);
        let known = folder("pubmark-1", &["socket"]);
        let barely_made = folder("pubmark-2", &[]);
        let foreign = [folder("pubmark-3", &["theirs"]), folder("other", &[LOCK])];
        remove_scratch(&ours, false);
        // Another agent has begun to remove it.
        remove_scratch(&known, true);
        remove_scratch(&barely_made, false);
        foreign.iter().for_each(|folder| remove_scratch(folder, false));
        assert!(!ours.exists() && !known.exists() && !barely_made.exists());
        assert!(foreign[0].join("theirs").exists() && foreign[1].join(LOCK).exists());
        std::fs::remove_dir_all(place).unwrap();
    }
}
