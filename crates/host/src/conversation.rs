//! A conversation with one agent on this machine, message by message: every wait has a
//! deadline, and a message out of turn is an error.

use crate::agent::{Agent, AgentCommand, Incoming};
use crate::clock;
use crate::inbox::{Inbox, inbox, into_inbox};
use crate::scratch::Scratch;
use crate::server::processes;
use nix::sys::signal::Signal;
use pubmark_model::line::JsonLine;
use pubmark_model::protocol::{
    AgentHello, AgentResult, Command, Event, Prepare, Progress, PublisherTotal, UPDATE_AGENT, VERSION,
};
use pubmark_model::secret::Secrets;
use pubmark_model::units::Ns;
use serde_json::{Value, json};
use std::io;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Time limit of an answer that needs no load.
pub const ANSWER: Duration = Duration::from_secs(10);

/// Time that an agent has to end.
const END: Duration = Duration::from_secs(2);

/// The reason why a conversation failed.
#[derive(Debug, thiserror::Error)]
pub enum TalkError {
    /// The agent, or a folder for it, does not exist.
    #[error("`{command}` cannot be started: {source}{}", hint(source))]
    NotStarted {
        /// The agent's command.
        command: String,
        /// The system's error.
        source: io::Error,
    },
    /// The agent sent nothing.
    #[error("`{due}` was due; within {} s nothing came", within.as_secs_f64())]
    Silent {
        /// The expected event.
        due: String,
        /// Time limit.
        within: Duration,
    },
    /// The agent reported an error.
    #[error("`{due}` was due; it answered with an error: {message}")]
    Refused {
        /// The expected event.
        due: String,
        /// The error's text.
        message: String,
        /// True if the agent reports that it cannot go on.
        fatal: bool,
    },
    /// The agent ended instead of answering.
    #[error("`{due}` was due; its output ended: {how}")]
    Ended {
        /// The expected event.
        due: String,
        /// Description of its end, with the end of its log.
        how: String,
        /// The last line of its log, if there is one.
        last: Option<String>,
    },
    /// The agent did something else, described here.
    #[error("{0}")]
    Otherwise(String),
}

/// Returns advice for an agent that cannot be started.
fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            " (a script that may not be run as a program is run by its language: `python3 agent.py`)"
        }
        _ => "",
    }
}

/// One agent, from its start to its end.
pub struct AgentConversation {
    agent: Agent,
    inbox: Inbox,
    /// Its `hello`; empty before it is greeted.
    pub hello: AgentHello,
    /// Its progress each second, with the time of arrival.
    pub progress: Vec<(Ns, Progress)>,
    /// Endpoint at which its publisher takes answers, if `bound` contained one.
    pub answers: Option<String>,
    /// The folder of its run.
    pub scratch: Scratch,
}

impl AgentConversation {
    /// Starts the agent.
    pub fn start(command: &AgentCommand) -> Result<AgentConversation, TalkError> {
        let started = || {
            let scratch = Scratch::create()?;
            let (outbox, inbox) = inbox();
            let (log, secrets) =
                (scratch.path().join("agent.log"), Secrets::default().and_variables(&command.environment));
            let listen = into_inbox(0, outbox, &secrets);
            let agent = Agent::start_command(command, "asked", &log, scratch.path(), &secrets, listen)?;
            Ok(AgentConversation {
                agent,
                inbox,
                hello: AgentHello::default(),
                progress: Vec::new(),
                answers: None,
                scratch,
            })
        };
        started().map_err(|source| TalkError::NotStarted { command: command.words.join(" "), source })
    }

    /// Starts the agent and greets it.
    pub fn greeted(command: &AgentCommand) -> Result<AgentConversation, TalkError> {
        let mut talk = AgentConversation::start(command)?;
        talk.hello(ANSWER)?;
        Ok(talk)
    }

    /// Returns its process id.
    pub fn pid(&self) -> i32 {
        self.agent.pid()
    }

    /// Returns the process that plays its clients: the one in its `hello` if the agent
    /// started it, otherwise the agent itself.
    pub fn player(&self) -> i32 {
        let named = i32::try_from(self.hello.pid).unwrap_or_default();
        if processes::descendants(self.pid()).contains(&named) { named } else { self.pid() }
    }

    /// Sends a signal to it and the processes that it has started.
    pub fn signal(&self, signal: Signal) {
        self.agent.signal(signal);
    }

    /// Sends a command.
    pub fn tell(&mut self, command: &Command) {
        self.agent.tell(command);
    }

    /// Sends a line that need not be of the protocol.
    pub fn tell_json(&mut self, line: &Value) {
        self.agent.tell_line(line.to_string().into_bytes());
    }

    /// Waits for a message; `None` if none arrived in time.
    pub fn hear(&mut self, within: Duration) -> Option<Incoming> {
        let deadline = Instant::now() + within;
        loop {
            match self.inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((_, _, Incoming::Event(event))) => match *event {
                    Event::Progress(progress) => self.progress.push((clock::now(), progress)),
                    event => return Some(Incoming::Event(Box::new(event))),
                },
                Ok((_, _, other)) => return Some(other),
                Err(RecvTimeoutError::Disconnected) => return Some(Incoming::Closed),
                Err(RecvTimeoutError::Timeout) => return None,
            }
        }
    }

    /// Waits for the expected answer.
    fn wait<T>(
        &mut self,
        due: &str,
        within: Duration,
        want: impl Fn(Event) -> Result<T, Event>,
    ) -> Result<T, TalkError> {
        let what = match self.hear(within) {
            None => return Err(TalkError::Silent { due: due.into(), within }),
            Some(Incoming::Closed | Incoming::Lost) => {
                let (how, last) = (self.agent.exit_reason(), self.agent.last_words());
                return Err(TalkError::Ended { due: due.into(), how, last });
            }
            Some(Incoming::Garbage(line)) => format!("it said what is not an event of the protocol: {line}"),
            Some(Incoming::Event(event)) => match want(*event) {
                Ok(found) => return Ok(found),
                Err(Event::Error { message, fatal, .. }) => {
                    return Err(TalkError::Refused { due: due.into(), message, fatal });
                }
                Err(other) => {
                    let said = other.to_json().unwrap_or_default();
                    format!(
                        "it said out of turn: {}",
                        String::from_utf8_lossy(&said).chars().take(120).collect::<String>()
                    )
                }
            },
        };
        Err(TalkError::Otherwise(format!("`{due}` was due; {what}")))
    }

    /// Greets it. If it reports that it cannot answer, it may be of another version: the
    /// error then contains advice.
    pub fn hello(&mut self, within: Duration) -> Result<AgentHello, TalkError> {
        self.hello = self.greet(VERSION, within).map_err(|error| match error {
            TalkError::Refused { due, message, fatal } => {
                let message = format!("{message}; this pubmark speaks version {VERSION}: {UPDATE_AGENT}");
                TalkError::Refused { due, message, fatal }
            }
            other => other,
        })?;
        Ok(self.hello.clone())
    }

    /// Greets it in this version of the protocol.
    pub fn greet(&mut self, protocol: u32, within: Duration) -> Result<AgentHello, TalkError> {
        self.tell_json(&json!({"type": "hello", "protocol": protocol}));
        self.wait("hello", within, |event| if let Event::Hello(hello) = event { Ok(*hello) } else { Err(event) })
    }

    /// Returns an order without options that the agent does not know.
    pub fn fitted(&self, order: Prepare) -> Prepare {
        Prepare { options: self.hello.options_for(&order.driver, &order.options), ..order }
    }

    /// Sends its order; returns the endpoints that it bound, by client's number.
    pub fn prepare(&mut self, order: Prepare) -> Result<Vec<String>, TalkError> {
        let order = self.fitted(order);
        self.tell(&Command::Prepare(Box::new(order)));
        self.bound()
    }

    /// Waits for `bound`.
    pub fn bound(&mut self) -> Result<Vec<String>, TalkError> {
        let mut bound = self.wait("bound", ANSWER, |event| match event {
            Event::Bound { endpoints } => Ok(endpoints),
            other => Err(other),
        })?;
        bound.sort_by_key(|bound| bound.id);
        self.answers = bound.iter().find_map(|bound| bound.answers.clone());
        Ok(bound.into_iter().map(|bound| bound.endpoint).collect())
    }

    /// Waits for `ready`.
    pub fn ready(&mut self) -> Result<(), TalkError> {
        self.wait("ready", ANSWER, |event| if let Event::Ready {} = event { Ok(()) } else { Err(event) })
    }

    /// Checks that it sends nothing for this long.
    pub fn silent(&mut self, for_: Duration) -> Result<(), TalkError> {
        match self.hear(for_) {
            None => Ok(()),
            Some(said) => Err(TalkError::Otherwise(format!("nothing was due; it said {said:?}"))),
        }
    }

    /// Starts its load at `at_ns`.
    pub fn begin(&mut self, at_ns: Ns) {
        self.tell(&Command::Start { at_ns });
    }

    /// Waits until its publishers have sent everything.
    pub fn sent(&mut self, within_ns: Ns) -> Result<Vec<PublisherTotal>, TalkError> {
        let within = Duration::from_nanos(within_ns) + ANSWER;
        let mut publishers = self.wait("sent", within, |event| match event {
            Event::Sent { publishers, .. } => Ok(publishers),
            other => Err(other),
        })?;
        publishers.sort_by_key(|total| total.publisher);
        Ok(publishers)
    }

    /// Sends the totals, and waits until it has drained.
    pub fn drain(&mut self, publishers: Vec<PublisherTotal>, within_ns: Ns) -> Result<(), TalkError> {
        self.tell(&Command::Drain { publishers, ends: Vec::new(), deadline_ns: clock::now() + within_ns });
        let within = Duration::from_nanos(within_ns) + ANSWER;
        self.wait("drained", within, |event| if let Event::Drained {} = event { Ok(()) } else { Err(event) })
    }

    /// Ends the load.
    pub fn stop(&mut self) -> Result<AgentResult, TalkError> {
        self.tell(&Command::Stop {});
        loop {
            let result = self.wait("result", ANSWER, |event| match event {
                Event::Result(result) => Ok(Some(result)),
                // After an early stop, its publishers end as well.
                Event::Sent { .. } => Ok(None),
                other => Err(other),
            })?;
            if let Some(result) = result {
                return Ok(*result);
            }
        }
    }

    /// Sends `exit`, and waits for its end, which must be with status 0.
    pub fn exit(mut self) -> Result<(), TalkError> {
        self.tell(&Command::Exit {});
        self.closed("`exit`")?;
        let reason = self.agent.exit_reason();
        match reason.starts_with("exit status: 0") {
            true => Ok(()),
            false => Err(TalkError::Otherwise(format!("told to exit, it ended with {reason}"))),
        }
    }

    /// Ends it, whatever its exit status is.
    pub fn finish(mut self) {
        self.tell(&Command::Exit {});
        self.agent.finish();
    }

    /// Waits for the end of its output.
    pub fn closed(&mut self, after: &str) -> Result<(), TalkError> {
        let deadline = Instant::now() + END;
        loop {
            match self.hear(deadline.saturating_duration_since(Instant::now())) {
                Some(Incoming::Closed) => return Ok(()),
                Some(Incoming::Event(event)) if matches!(*event, Event::Error { .. }) => {}
                Some(said) => return Err(TalkError::Otherwise(format!("after {after} it still said {said:?}"))),
                None => return Err(TalkError::Otherwise(format!("{} s after {after} it still ran", END.as_secs()))),
            }
        }
    }

    /// Closes its input, after which it has to end.
    pub fn leave(mut self, phase: &str) -> Result<(), TalkError> {
        self.agent.close_input();
        let deadline = Instant::now() + END;
        while Instant::now() < deadline {
            if let Some(Incoming::Closed) = self.hear(deadline.saturating_duration_since(Instant::now())) {
                return Ok(());
            }
        }
        Err(TalkError::Otherwise(format!("its input ended {phase}, and {} s later it still ran", END.as_secs())))
    }

    /// Waits for an error; returns whether it is fatal.
    pub fn refused(&mut self, what: &str) -> Result<bool, TalkError> {
        self.wait(&format!("error for {what}"), ANSWER, |event| match event {
            Event::Error { fatal, .. } => Ok(fatal),
            other => Err(other),
        })
    }
}
