//! A conversation with an agent: every wait has a deadline, and what is said out
//! of turn is an error.

use crate::wrong::{Wrong, due};
use nix::sys::signal::Signal;
use pubmark_host::agent::{Agent, AgentCommand, Incoming, into_inbox};
use pubmark_host::clock;
use pubmark_host::scratch::Scratch;
use pubmark_model::protocol::{
    AgentHello, AgentResult, Command, Event, FlowResult, Prepare, Progress, PublisherTotal, VERSION,
};
use pubmark_model::secret::Secrets;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use serde_json::{Value, json};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long an answer may take that needs no load.
pub const ANSWER: Duration = Duration::from_secs(10);

/// From the word `start` to its instant.
pub const LEAD: Ns = 150 * MILLISECOND;

/// How long an agent may take to end.
const END: Duration = Duration::from_secs(2);

/// One agent, from its start to its end.
pub struct Talk {
    agent: Agent,
    inbox: Receiver<(usize, Incoming)>,
    /// What it said of itself; nothing before it is greeted.
    pub hello: AgentHello,
    /// What it said each second, and when.
    pub progress: Vec<(Ns, Progress)>,
    /// The folder of its run.
    pub scratch: Scratch,
}

impl Talk {
    /// Starts the agent.
    pub fn start(command: &AgentCommand) -> Result<Talk, Wrong> {
        let started = || {
            let scratch = Scratch::create()?;
            let (outbox, inbox) = channel();
            let (log, secrets) = (scratch.path().join("agent.log"), Secrets::default());
            let listen = into_inbox(0, outbox, &secrets);
            let agent = Agent::start_command(command, "checked", &log, scratch.path(), &secrets, listen)?;
            Ok::<_, std::io::Error>(Talk { agent, inbox, hello: AgentHello::default(), progress: Vec::new(), scratch })
        };
        started().map_err(|error| Wrong::did(format!("`{}` cannot be started: {error}", command.words.join(" "))))
    }

    /// Starts the agent and greets it.
    pub fn greeted(command: &AgentCommand) -> Result<Talk, Wrong> {
        let mut talk = Talk::start(command)?;
        talk.hello = talk.hello()?;
        Ok(talk)
    }

    /// Its process.
    pub fn pid(&self) -> i32 {
        self.agent.pid()
    }

    fn signal(&self, signal: Signal) {
        self.agent.signal(signal);
    }

    /// Says something.
    pub fn tell(&mut self, command: &Command) {
        self.agent.tell(command);
    }

    /// Says a line that need not be of the protocol.
    pub fn tell_json(&mut self, line: &Value) {
        self.agent.tell_line(line.to_string().into_bytes());
    }

    /// Waits for an answer; none where nothing was said by then.
    pub fn hear(&mut self, within: Duration) -> Option<Incoming> {
        let deadline = Instant::now() + within;
        loop {
            match self.inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((_, Incoming::Event(event))) => match *event {
                    Event::Progress(progress) => self.progress.push((clock::now(), progress)),
                    event => return Some(Incoming::Event(Box::new(event))),
                },
                Ok((_, other)) => return Some(other),
                Err(RecvTimeoutError::Disconnected) => return Some(Incoming::Closed),
                Err(RecvTimeoutError::Timeout) => return None,
            }
        }
    }

    /// Waits for the answer that is due.
    fn wait<T>(&mut self, what: &str, within: Duration, want: impl Fn(Event) -> Result<T, Event>) -> Result<T, Wrong> {
        let text = match self.hear(within) {
            None => format!("within {} s nothing came", within.as_secs()),
            Some(Incoming::Closed) => format!("its output ended: {}", self.agent.exit_reason()),
            Some(Incoming::Garbage(line)) => format!("it said what is no event of the protocol: {line}"),
            Some(Incoming::Event(event)) => match want(*event) {
                Ok(found) => return Ok(found),
                Err(Event::Error { message, .. }) => format!("it answered with an error: {message}"),
                Err(other) => {
                    let said = serde_json::to_string(&other).unwrap_or_default();
                    format!("it said out of turn: {}", said.chars().take(120).collect::<String>())
                }
            },
        };
        Err(Wrong::did(format!("`{what}` was due; {text}")))
    }

    /// Greets it.
    pub fn hello(&mut self) -> Result<AgentHello, Wrong> {
        self.tell_json(&json!({"type": "hello", "protocol": VERSION}));
        self.wait("hello", ANSWER, |event| if let Event::Hello(hello) = event { Ok(*hello) } else { Err(event) })
    }

    /// An order with those of its options that the agent knows.
    pub fn fitted(&self, order: Prepare) -> Prepare {
        Prepare { options: self.hello.options_for(&order.driver, &order.options), ..order }
    }

    /// Gives it its order; the endpoints that it bound, by client's number.
    pub fn prepare(&mut self, order: Prepare) -> Result<Vec<String>, Wrong> {
        let order = self.fitted(order);
        self.tell(&Command::Prepare(Box::new(order)));
        self.bound()
    }

    /// Waits for `bound`.
    pub fn bound(&mut self) -> Result<Vec<String>, Wrong> {
        let mut bound = self.wait("bound", ANSWER, |event| match event {
            Event::Bound { endpoints } => Ok(endpoints),
            other => Err(other),
        })?;
        bound.sort_by_key(|bound| bound.id);
        Ok(bound.into_iter().map(|bound| bound.endpoint).collect())
    }

    /// Waits for `ready`.
    pub fn ready(&mut self) -> Result<(), Wrong> {
        self.wait("ready", ANSWER, |event| if let Event::Ready {} = event { Ok(()) } else { Err(event) })
    }

    /// Whether it has said nothing that long.
    pub fn silent(&mut self, for_: Duration) -> Result<(), Wrong> {
        match self.hear(for_) {
            None => Ok(()),
            Some(said) => Err(Wrong::did(format!("nothing was due; it said {said:?}"))),
        }
    }

    /// Stops its process at an instant, for so long.
    pub fn pause(&self, at_ns: Ns, length: Duration) {
        if !length.is_zero() {
            thread::sleep(until(at_ns));
            self.signal(Signal::SIGSTOP);
            thread::sleep(length);
            self.signal(Signal::SIGCONT);
        }
    }

    /// Lets it begin.
    pub fn begin(&mut self, at_ns: Ns) {
        self.tell(&Command::Start { at_ns });
    }

    /// Waits until its publishers have sent all.
    pub fn sent(&mut self, within_ns: Ns) -> Result<Vec<PublisherTotal>, Wrong> {
        let within = Duration::from_nanos(within_ns) + ANSWER;
        let mut publishers = self.wait("sent", within, |event| match event {
            Event::Sent { publishers } => Ok(publishers),
            other => Err(other),
        })?;
        publishers.sort_by_key(|total| total.publisher);
        Ok(publishers)
    }

    /// Says what was sent, and waits until it is drained.
    pub fn drain(&mut self, publishers: Vec<PublisherTotal>, within_ns: Ns) -> Result<(), Wrong> {
        self.tell(&Command::Drain { publishers, deadline_ns: clock::now() + within_ns });
        let within = Duration::from_nanos(within_ns) + ANSWER;
        self.wait("drained", within, |event| if let Event::Drained {} = event { Ok(()) } else { Err(event) })
    }

    /// Ends the load.
    pub fn stop(&mut self) -> Result<AgentResult, Wrong> {
        self.tell(&Command::Stop {});
        loop {
            let result = self.wait("result", ANSWER, |event| match event {
                Event::Result(result) => Ok(Some(result)),
                // Told to stop early, its publishers end as well.
                Event::Sent { .. } => Ok(None),
                other => Err(other),
            })?;
            if let Some(result) = result {
                return Ok(*result);
            }
        }
    }

    /// Lets it go, and waits for its end: with status 0.
    pub fn exit(mut self) -> Result<(), Wrong> {
        self.tell(&Command::Exit {});
        self.closed("`exit`")?;
        let reason = self.agent.exit_reason();
        due(reason.starts_with("exit status: 0"), || format!("told to exit, it ended with {reason}"))
    }

    /// Waits for the end of its output.
    pub fn closed(&mut self, after: &str) -> Result<(), Wrong> {
        let deadline = Instant::now() + END;
        loop {
            match self.hear(deadline.saturating_duration_since(Instant::now())) {
                Some(Incoming::Closed) => return Ok(()),
                Some(Incoming::Event(event)) if matches!(*event, Event::Error { .. }) => {}
                Some(said) => return Err(Wrong::did(format!("after {after} it still said {said:?}"))),
                None => return Err(Wrong::did(format!("{} s after {after} it still ran", END.as_secs()))),
            }
        }
    }

    /// Ends its input; it has to end as well.
    pub fn leave(mut self, phase: &str) -> Result<(), Wrong> {
        self.agent.close_input();
        let deadline = Instant::now() + END;
        while Instant::now() < deadline {
            if let Some(Incoming::Closed) = self.hear(deadline.saturating_duration_since(Instant::now())) {
                return Ok(());
            }
        }
        Err(Wrong::did(format!("its input ended {phase}, and {} s later it still ran", END.as_secs())))
    }

    /// Waits for an error.
    pub fn refused(&mut self, what: &str) -> Result<String, Wrong> {
        self.wait(&format!("error for {what}"), ANSWER, |event| match event {
            Event::Error { message, .. } => Ok(message),
            other => Err(other),
        })
    }
}

/// What a result says of its flow.
pub fn only(result: &AgentResult) -> Result<FlowResult, Wrong> {
    match result.flows.as_slice() {
        [flow] => Ok(flow.clone()),
        flows => Err(Wrong::did(format!("it was told to play one flow, and its result has {}", flows.len()))),
    }
}

/// Until an instant, ns from now.
pub fn until(at_ns: Ns) -> Duration {
    Duration::from_nanos(at_ns.saturating_sub(clock::now()).min(60 * SECOND))
}
