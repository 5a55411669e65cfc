//! `agent-check`: a conformance conversation with any agent.

use crate::lead::hello::fits;
use crate::registry;
use pubmark_host::agent::{Agent, Incoming, into_inbox};
use pubmark_host::clock;
use pubmark_host::scratch::Scratch;
use pubmark_host::server::ports;
use pubmark_model::options::Options;
use pubmark_model::protocol::{AgentHello, Client, Command, Event, Flow, PackedHistogram, Prepare, Role, VERSION};
use pubmark_model::secret::Secrets;
use pubmark_model::setting::{Settings, with_defaults};
use pubmark_model::system::System;
use pubmark_model::units::{MILLISECOND, SECOND};
use pubmark_model::workload::{Transport, Workload};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long each answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// One thing that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckStep {
    /// What should happen.
    pub what: &'static str,
    /// What is wrong, if anything.
    pub problem: Option<String>,
}

struct Talk {
    agent: Agent,
    inbox: Receiver<(usize, Incoming)>,
    steps: Vec<CheckStep>,
}

impl Talk {
    /// Waits for an event; other events that may come at any time are passed over.
    fn wait<T>(&mut self, want: impl Fn(&Event) -> Option<T>) -> Result<T, String> {
        let deadline = Instant::now() + ANSWER;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.inbox.recv_timeout(left) {
                Err(_) => return Err(format!("no answer within {} s", ANSWER.as_secs())),
                Ok((_, Incoming::Closed)) => return Err(format!("its output ended: {}", self.agent.exit_reason())),
                Ok((_, Incoming::Garbage(line))) => {
                    return Err(format!("it said what is no event of the protocol: {line}"));
                }
                Ok((_, Incoming::Event(event))) => match (want(&event), *event) {
                    (Some(found), _) => return Ok(found),
                    (None, Event::Progress(_)) => {}
                    (None, Event::Error { message, .. }) => {
                        return Err(format!("it answered with an error: {message}"));
                    }
                    (None, other) => {
                        let said = serde_json::to_string(&other).unwrap_or_default();
                        return Err(format!("it said out of turn: {}", said.chars().take(120).collect::<String>()));
                    }
                },
            }
        }
    }

    fn step(&mut self, what: &'static str, outcome: Result<(), String>) -> bool {
        let good = outcome.is_ok();
        self.steps.push(CheckStep { what, problem: outcome.err() });
        good
    }
}

/// A short load: one publisher, one subscriber, threads of the agent itself.
fn prepare(driver: &str, transport: Option<&str>, scratch: &Scratch) -> Result<Prepare, String> {
    let mut settings: Settings = with_defaults(Settings::new());
    for (name, value) in [
        ("pattern", "fan-out"),
        ("rate", "1000"),
        ("payload", "64B"),
        ("warmup", "100ms"),
        ("duration", "500ms"),
        ("drain", "2s"),
    ] {
        let key = pubmark_model::setting::key(name).ok_or("a key is missing")?;
        settings.insert(name.into(), key.read(value).map_err(|error| error.to_string())?);
    }
    let system = registry::systems().iter().find(|system| system.driver == driver);
    let usual = || system.map_or(Some("tcp"), |system| system.transports.first().map(|transport| transport.word()));
    let transport = transport.or_else(usual).map(Transport::parse).transpose().map_err(|error| error.to_string())?;
    if let Some(transport) = transport {
        settings.insert("transport".into(), transport.word().into());
    }
    let endpoint = endpoint(transport, scratch)?;
    let workload = Workload::resolve(&settings).map_err(|errors| errors.join("; "))?;
    let options = system.map_or_else(Options::new, System::defaults);
    let client = |role, bind: Option<&str>, connect: Vec<String>| Client {
        role,
        id: 0,
        flow: 0,
        bind: bind.map(str::to_owned),
        connect,
        hears_first: 0,
        hears_count: 1,
    };
    Ok(Prepare {
        driver: driver.to_owned(),
        options,
        flows: vec![Flow::alone(workload)],
        clients: vec![
            client(Role::Publisher, Some(&endpoint), Vec::new()),
            client(Role::Subscriber, None, vec![endpoint.clone()]),
        ],
        scratch: scratch.path().display().to_string(),
        server: None,
        spin_cores: 0.0,
        publisher_cpus: Vec::new(),
        subscriber_cpus: Vec::new(),
    })
}

/// Where publisher and subscriber of one agent meet: known beforehand, because
/// both are prepared at once.
fn endpoint(transport: Option<Transport>, scratch: &Scratch) -> Result<String, String> {
    let free = || ports::free(1).map(|ports| ports[0]).map_err(|error| error.to_string());
    Ok(match transport {
        Some(Transport::Tcp) => format!("tcp://127.0.0.1:{}", free()?),
        Some(Transport::Udp) => format!("udp://127.0.0.1:{}", free()?),
        Some(Transport::Ipc) => format!("ipc://{}/0", scratch.path().display()),
        Some(Transport::Inproc) | None => "inproc://0".into(),
    })
}

/// Whether the systems that are known by a driver are servers.
fn needs_server(driver: &str) -> bool {
    registry::systems().iter().any(|system| system.driver == driver && system.broker())
}

/// What is to be tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// The driver; without it, the first that the agent says it has, that needs
    /// no server, and that is not the mock.
    pub driver: Option<&'a str>,
    /// The transport; without it, the first of the system that is known by the
    /// driver, and tcp where none is.
    pub transport: Option<&'a str>,
}

/// The driver that plays in virtual time: it opens no socket and reads no clock,
/// so that an agent that passes by it alone has shown nothing of either.
const MOCK: &str = "mock";

/// The driver to try. There is no server in this conversation, and nobody passes
/// by what was not asked for.
fn choose(hello: &AgentHello, asked: Option<&str>) -> Result<String, String> {
    if let Some(driver) = asked {
        return Ok(driver.to_owned());
    }
    let mut real = hello.drivers.iter().filter(|name| *name != MOCK);
    if let Some(alone) = real.clone().find(|name| !needs_server(name)) {
        return Ok(alone.clone());
    }
    Err(match real.next() {
        None => format!("not checked: it has no driver but {MOCK}, which opens no socket and reads no clock"),
        Some(first) => {
            let names: Vec<&str> = hello.drivers.iter().map(String::as_str).filter(|name| *name != MOCK).collect();
            format!(
                "not checked: its drivers ({}) speak to a server, and there is none in this conversation. Whole runs \
                 check them (`pubmark bench`); an agent that brings a server of its own is tried with --driver {first}",
                names.join(", ")
            )
        }
    })
}

/// Leads an agent through a whole conversation.
pub fn check(command: &[String], asked: Asked<'_>) -> std::io::Result<Vec<CheckStep>> {
    let scratch = Scratch::create()?;
    let (outbox, inbox) = channel();
    let agent = Agent::start(
        command,
        "checked",
        &scratch.path().join("agent.log"),
        scratch.path(),
        &Secrets::default(),
        into_inbox(0, outbox, &Secrets::default()),
    )?;
    let mut talk = Talk { agent, inbox, steps: Vec::new() };
    converse(&mut talk, asked, &scratch);
    talk.agent.finish();
    Ok(talk.steps)
}

fn converse(talk: &mut Talk, asked: Asked<'_>, scratch: &Scratch) -> Option<()> {
    talk.agent.tell(&Command::Hello { protocol: VERSION });
    let hello = talk.wait(|event| if let Event::Hello(hello) = event { Some(hello.clone()) } else { None });
    let checked = hello.as_ref().map_err(Clone::clone);
    let checked =
        checked.and_then(|hello| fits(hello, asked.driver, &[], clock::now()).map_err(|misfit| misfit.to_string()));
    let good = talk.step("answers hello with its version, drivers and clock", checked);
    let hello = hello.ok().filter(|_| good)?;
    let prepared = choose(&hello, asked.driver).and_then(|driver| prepare(&driver, asked.transport, scratch));
    match prepared {
        Ok(prepare) => talk.agent.tell(&Command::Prepare(Box::new(prepare))),
        Err(error) => {
            talk.step("plays one publisher and one subscriber", Err(error));
            return None;
        }
    }
    let bound = talk.wait(|event| matches!(event, Event::Bound { .. }).then_some(()));
    talk.step("binds and says so", bound).then_some(())?;
    let ready = talk.wait(|event| matches!(event, Event::Ready {}).then_some(()));
    talk.step("is ready when its subscriber has heard its publisher", ready).then_some(())?;
    talk.agent.tell(&Command::Start { at_ns: clock::now() + 100 * MILLISECOND });
    let sent = talk.wait(|event| if let Event::Sent { publishers } = event { Some(publishers.clone()) } else { None });
    let checked = sent.as_ref().map_err(Clone::clone).and_then(|publishers| match publishers.as_slice() {
        [total] if total.offered == 500 && total.sent == 600 && total.window_end - total.window_first == 500 => Ok(()),
        other => Err(format!("of 100 + 500 messages that were due it reports: {other:?}")),
    });
    talk.step("sends exactly what the schedule asks for", checked).then_some(())?;
    let publishers = sent.ok()?;
    talk.agent.tell(&Command::Drain { publishers, deadline_ns: clock::now() + 2 * SECOND });
    let drained = talk.wait(|event| matches!(event, Event::Drained {}).then_some(()));
    talk.step("drains", drained).then_some(())?;
    talk.agent.tell(&Command::Stop {});
    let result = talk.wait(|event| if let Event::Result(result) = event { Some(result.clone()) } else { None });
    let checked = result.and_then(|result| {
        let [flow] = result.flows.as_slice() else {
            return Err(format!("its result has {} flows, and there is 1", result.flows.len()));
        };
        result.check_histograms().map_err(|bad| bad.to_string())?;
        let ledger = flow.ledger;
        if (ledger.expected, ledger.delivered) != (500, 500) {
            return Err(format!(
                "500 messages were expected and delivered; its ledger says {} and {}",
                ledger.expected, ledger.delivered
            ));
        }
        let latency = flow.histograms.latency.as_ref().ok_or("the result has no latency histogram")?;
        let latency =
            latency.read(PackedHistogram::DIGITS).map_err(|error| format!("its latency histogram: {error}"))?;
        if latency.count() != 500 {
            return Err(format!("its latency histogram holds {} values, not 500", latency.count()));
        }
        Ok(())
    });
    talk.step("hands in a result that adds up", checked).then_some(())?;
    talk.agent.tell(&Command::Exit {});
    let closed = match talk.inbox.recv_timeout(ANSWER) {
        Ok((_, Incoming::Closed)) => Ok(()),
        Ok(other) => Err(format!("it still had something to say: {other:?}")),
        Err(_) => Err(format!("it did not exit within {} s", ANSWER.as_secs())),
    };
    talk.step("exits when told to", closed).then_some(())
}
