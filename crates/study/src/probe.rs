//! Whether a system can be used here, found out by trying.

use crate::lead::hello::{fits, identity};
use pubmark_host::agent::{Agent, AgentCommand, Incoming, into_inbox};
use pubmark_host::clock;
use pubmark_host::install::{self, Presence};
use pubmark_host::scratch::Scratch;
use pubmark_model::printable::printable;
use pubmark_model::protocol::{Client, Command, Event, Flow, Prepare, Role, VERSION};
use pubmark_model::secret::Secrets;
use pubmark_model::system::System;
use pubmark_model::topology::bind_at;
use pubmark_model::workload::{Pattern, Workload};
use serde_json::{Map, Value};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long an agent may take to load a library.
const ANSWER: Duration = Duration::from_secs(10);

/// Finds out by trying: an agent says which drivers and versions it has, or loads
/// the library; a broker's program says its version.
pub fn probe(system: &System, agent: &[String]) -> Presence {
    let server = if system.broker() { install::probe(system) } else { install::look(system) };
    let Presence::Here(mut found) = server else { return server };
    let asked = match (system.agent.built_in(), system.broker()) {
        (false, _) => ask_own(system),
        (true, true) => Ok(Map::new()),
        (true, false) => try_out(system, agent),
    };
    match asked {
        Ok(said) => {
            found.extend(said);
            Presence::Here(found)
        }
        Err(error) => Presence::Missing(error),
    }
}

/// Asks the agents of both sides, or the one that plays both.
fn ask_own(system: &System) -> Result<Map<String, Value>, String> {
    let mut found = hello(system, true)?;
    if system.agent.differs() {
        let subscriber = hello(system, false)?;
        found.insert("subscriber".into(), subscriber.into());
    }
    Ok(found)
}

/// What an agent says of itself: who it is, its drivers, and, where it tells them
/// so early, its versions and features.
fn hello(system: &System, sends: bool) -> Result<Map<String, Value>, String> {
    let scratch = Scratch::create().map_err(|error| error.to_string())?;
    let mut command: AgentCommand = install::agent_command(system, sends);
    let program = install::agent_path(system, sends).ok_or("the agent is not found")?;
    if let Some(word) = command.words.first_mut() {
        *word = program.display().to_string();
    }
    let (outbox, inbox) = channel();
    let log = scratch.path().join("agent.log");
    let say = move |line: Option<&[u8]>| {
        // Whether it said what it can play is no longer seen once that is filled in.
        let raw = line.and_then(|line| serde_json::from_slice::<Value>(line).ok()).unwrap_or_default();
        drop(outbox.send((Incoming::of(line, &Secrets::default()), raw)));
    };
    let started = Agent::start_command(&command, "probe", &log, scratch.path(), &Secrets::default(), say);
    let shown = || command.words.join(" ");
    let mut agent = started.map_err(|error| format!("`{}` could not be started: {error}", shown()))?;
    agent.tell(&Command::Hello { protocol: VERSION });
    let patience = Duration::from_nanos(system.agent.start_timeout_ns);
    let (said, raw) = match inbox.recv_timeout(patience) {
        Ok(heard) => heard,
        Err(RecvTimeoutError::Disconnected) => (Incoming::Closed, Value::Null),
        Err(RecvTimeoutError::Timeout) => {
            return Err(format!("`{}` did not say hello within {} s (start_timeout)", shown(), patience.as_secs_f64()));
        }
    };
    let hello = match said {
        Incoming::Event(event) => match *event {
            Event::Hello(hello) => hello,
            Event::Error { message, .. } => return Err(message),
            _ => return Err(format!("`{}` said something else than hello", shown())),
        },
        Incoming::Garbage(line) => return Err(format!("`{}` said what is no event: {line}", shown())),
        Incoming::Closed => return Err(format!("`{}` ended: {}", shown(), agent.exit_reason())),
    };
    agent.tell(&Command::Exit {});
    agent.finish();
    fits(&hello, Some(&system.driver), &[], clock::now()).map_err(|misfit| misfit.to_string())?;
    let who = identity(&hello);
    let mut found = Map::new();
    found.insert("agent".into(), format!("{} {}", who.name, who.version).into());
    found.insert("drivers".into(), hello.drivers.into());
    found.extend(hello.versions.iter().map(|(name, version)| (printable(name).into_owned(), shown_text(version))));
    if let Some(features) = raw.get("features").filter(|features| !features.is_null()) {
        found.insert("features".into(), shown_text(&features.to_string()));
    }
    Ok(found)
}

/// What an agent says, short and printable.
fn shown_text(text: &str) -> Value {
    printable(text).chars().take(SHOWN_CHARS).collect::<String>().into()
}

/// So much of what an agent says of itself is shown.
const SHOWN_CHARS: usize = 300;

fn try_out(system: &System, command: &[String]) -> Result<Map<String, Value>, String> {
    let scratch = Scratch::create().map_err(|error| error.to_string())?;
    let (outbox, inbox) = channel();
    let log = scratch.path().join("agent.log");
    let mut agent = Agent::start(
        command,
        "probe",
        &log,
        scratch.path(),
        &Secrets::default(),
        into_inbox(0, outbox, &Secrets::default()),
    )
    .map_err(|error| error.to_string())?;
    let workload = Workload::of([("pattern", Pattern::FanOut.word())]).map_err(|errors| errors.to_string())?;
    let workload = Workload { transport: system.transports.first().copied(), ..workload };
    agent.tell(&Command::Prepare(Box::new(Prepare {
        driver: system.driver.clone(),
        options: system.defaults(),
        flows: vec![Flow::alone(workload.clone())],
        clients: vec![Client {
            role: Role::Publisher,
            id: 0,
            flow: 0,
            bind: Some(bind_at(workload.transport, scratch.path(), 0)),
            connect: Vec::new(),
            hears_first: 0,
            hears_count: 0,
        }],
        scratch: String::new(),
        server: None,
        spin_cores: 0.0,
        publisher_cpus: Vec::new(),
        subscriber_cpus: Vec::new(),
    })));
    agent.tell(&Command::Stop {});
    let deadline = Instant::now() + ANSWER;
    loop {
        match inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((_, Incoming::Event(event))) => match *event {
                Event::Result(result) => {
                    agent.tell(&Command::Exit {});
                    agent.finish();
                    return Ok(result.versions);
                }
                Event::Error { message, .. } => return Err(message),
                _ => {}
            },
            Ok((_, Incoming::Garbage(line))) => return Err(line),
            Ok((_, Incoming::Closed)) => return Err(agent.exit_reason()),
            Err(_) => return Err(format!("the agent did not answer within {} s", ANSWER.as_secs())),
        }
    }
}
