//! Whether a system can be used here, found out by trying.

use crate::ask::{self, Greeting};
use crate::lead::hello::identity;
use pubmark_host::agent::{Agent, Incoming, into_inbox};
use pubmark_host::install::{self, Presence};
use pubmark_host::scratch::Scratch;
use pubmark_model::printable::printable;
use pubmark_model::protocol::{Client, Command, Event, Flow, Prepare, Role};
use pubmark_model::secret::Secrets;
use pubmark_model::system::System;
use pubmark_model::topology::bind_at;
use pubmark_model::workload::{Pattern, Workload};
use serde_json::{Map, Value};
use std::sync::mpsc::channel;
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
/// so early, its versions, its features and the options that it knows.
fn hello(system: &System, sends: bool) -> Result<Map<String, Value>, String> {
    let Greeting { hello, raw } = ask::hello(system, sends)?;
    let who = identity(&hello);
    let mut found = Map::new();
    found.insert("agent".into(), format!("{} {}", who.name, who.version).into());
    found.extend(hello.versions.iter().map(|(name, version)| (printable(name).into_owned(), shown_text(version))));
    if let Some(features) = raw.get("features").filter(|features| !features.is_null()) {
        found.insert("features".into(), shown_text(&features.to_string()));
    }
    if let Some(known) = hello.options.get(&system.driver) {
        found.insert("knows".into(), shown_text(&known.join(", ")));
    }
    found.insert("drivers".into(), hello.drivers.into());
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
