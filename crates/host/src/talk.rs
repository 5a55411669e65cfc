//! A conversation with one agent of this machine, word by word: every wait has a
//! deadline, and what is said out of turn is an error.

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

/// How long an answer may take that needs no load.
pub const ANSWER: Duration = Duration::from_secs(10);

/// How long an agent may take to end.
const END: Duration = Duration::from_secs(2);

/// Why a conversation came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum TalkError {
    /// There is no such agent, or no folder for it.
    #[error("`{command}` cannot be started: {source}{}", hint(source))]
    NotStarted {
        /// The agent's command.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// It said nothing.
    #[error("`{due}` was due; within {} s nothing came", within.as_secs_f64())]
    Silent {
        /// The word that was waited for.
        due: String,
        /// For how long.
        within: Duration,
    },
    /// It said that it cannot.
    #[error("`{due}` was due; it answered with an error: {message}")]
    Refused {
        /// The word that was waited for.
        due: String,
        /// Why not.
        message: String,
        /// Whether it says that it cannot go on.
        fatal: bool,
    },
    /// It ended in place of the answer.
    #[error("`{due}` was due; its output ended: {how}")]
    Ended {
        /// The word that was waited for.
        due: String,
        /// How, with the end of its log.
        how: String,
        /// The last line of its log, if there is one.
        last: Option<String>,
    },
    /// It did something else; what it did.
    #[error("{0}")]
    Otherwise(String),
}

/// What may help one that cannot be started.
fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            " (a script that may not be run as a program is run by its language: `python3 agent.py`)"
        }
        _ => "",
    }
}

/// One agent, from its start to its end.
pub struct Talk {
    agent: Agent,
    inbox: Inbox,
    /// What it said of itself; nothing before it is greeted.
    pub hello: AgentHello,
    /// What it said each second, and when.
    pub progress: Vec<(Ns, Progress)>,
    /// Where its publisher takes answers, if it said so in `bound`.
    pub answers: Option<String>,
    /// The folder of its run.
    pub scratch: Scratch,
}

impl Talk {
    /// Starts the agent.
    pub fn start(command: &AgentCommand) -> Result<Talk, TalkError> {
        let started = || {
            let scratch = Scratch::create()?;
            let (outbox, inbox) = inbox();
            let (log, secrets) =
                (scratch.path().join("agent.log"), Secrets::default().and_variables(&command.environment));
            let listen = into_inbox(0, outbox, &secrets);
            let agent = Agent::start_command(command, "asked", &log, scratch.path(), &secrets, listen)?;
            Ok(Talk { agent, inbox, hello: AgentHello::default(), progress: Vec::new(), answers: None, scratch })
        };
        started().map_err(|source| TalkError::NotStarted { command: command.words.join(" "), source })
    }

    /// Starts the agent and greets it.
    pub fn greeted(command: &AgentCommand) -> Result<Talk, TalkError> {
        let mut talk = Talk::start(command)?;
        talk.hello(ANSWER)?;
        Ok(talk)
    }

    /// Its process.
    pub fn pid(&self) -> i32 {
        self.agent.pid()
    }

    /// The process that plays its clients: the one that its `hello` names, where that was
    /// started by it, and itself otherwise.
    pub fn player(&self) -> i32 {
        let named = i32::try_from(self.hello.pid).unwrap_or_default();
        if processes::descendants(self.pid()).contains(&named) { named } else { self.pid() }
    }

    /// Sends it, and what it has started, a signal.
    pub fn signal(&self, signal: Signal) {
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

    /// Waits for the answer that is due.
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
            Some(Incoming::Garbage(line)) => format!("it said what is no event of the protocol: {line}"),
            Some(Incoming::Event(event)) => match want(*event) {
                Ok(found) => return Ok(found),
                Err(Event::Error { message, fatal }) => {
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

    /// Greets it. Why it cannot answer, where it says so, may be that it is of
    /// another version: what helps then is said beside it.
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

    /// An order with those of its options that the agent knows.
    pub fn fitted(&self, order: Prepare) -> Prepare {
        Prepare { options: self.hello.options_for(&order.driver, &order.options), ..order }
    }

    /// Gives it its order; the endpoints that it bound, by client's number.
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

    /// Whether it has said nothing that long.
    pub fn silent(&mut self, for_: Duration) -> Result<(), TalkError> {
        match self.hear(for_) {
            None => Ok(()),
            Some(said) => Err(TalkError::Otherwise(format!("nothing was due; it said {said:?}"))),
        }
    }

    /// Lets it begin.
    pub fn begin(&mut self, at_ns: Ns) {
        self.tell(&Command::Start { at_ns });
    }

    /// Waits until its publishers have sent all.
    pub fn sent(&mut self, within_ns: Ns) -> Result<Vec<PublisherTotal>, TalkError> {
        let within = Duration::from_nanos(within_ns) + ANSWER;
        let mut publishers = self.wait("sent", within, |event| match event {
            Event::Sent { publishers } => Ok(publishers),
            other => Err(other),
        })?;
        publishers.sort_by_key(|total| total.publisher);
        Ok(publishers)
    }

    /// Says what was sent, and waits until it is drained.
    pub fn drain(&mut self, publishers: Vec<PublisherTotal>, within_ns: Ns) -> Result<(), TalkError> {
        self.tell(&Command::Drain { publishers, deadline_ns: clock::now() + within_ns });
        let within = Duration::from_nanos(within_ns) + ANSWER;
        self.wait("drained", within, |event| if let Event::Drained {} = event { Ok(()) } else { Err(event) })
    }

    /// Ends the load.
    pub fn stop(&mut self) -> Result<AgentResult, TalkError> {
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
    pub fn exit(mut self) -> Result<(), TalkError> {
        self.tell(&Command::Exit {});
        self.closed("`exit`")?;
        let reason = self.agent.exit_reason();
        match reason.starts_with("exit status: 0") {
            true => Ok(()),
            false => Err(TalkError::Otherwise(format!("told to exit, it ended with {reason}"))),
        }
    }

    /// Lets it go, however it ends.
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

    /// Ends its input; it has to end as well.
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

    /// Waits for an error; whether it is fatal.
    pub fn refused(&mut self, what: &str) -> Result<bool, TalkError> {
        self.wait(&format!("error for {what}"), ANSWER, |event| match event {
            Event::Error { fatal, .. } => Ok(fatal),
            other => Err(other),
        })
    }
}
