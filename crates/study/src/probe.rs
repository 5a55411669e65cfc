//! Whether a system can be used here, found out by trying.

use pubmark_host::agent::{Agent, Incoming, into_inbox};
use pubmark_host::install::{self, Presence};
use pubmark_host::scratch::Scratch;
use pubmark_model::protocol::{Client, Command, Event, Flow, Prepare, Role};
use pubmark_model::secret::Secrets;
use pubmark_model::system::System;
use pubmark_model::workload::{Pattern, Workload};
use serde_json::{Map, Value};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How long an agent may take to load a library.
const ANSWER: Duration = Duration::from_secs(10);

/// Finds out by trying: an agent loads the library and says which it is; a
/// broker's program says its version.
pub fn probe(system: &System, agent: &[String]) -> Presence {
    if system.broker() {
        return install::probe(system);
    }
    let tried = try_out(system, agent);
    match tried {
        Ok(versions) => Presence::Here(versions),
        Err(error) => Presence::Missing(error),
    }
}

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
        flows: vec![Flow::alone(workload)],
        clients: vec![Client {
            role: Role::Publisher,
            id: 0,
            flow: 0,
            bind: Some("inproc://0".into()),
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
