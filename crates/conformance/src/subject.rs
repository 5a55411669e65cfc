//! The agent that is tried, and what is known of its driver.

use crate::case::Wrong;
use crate::receiving::{Received, Script};
use crate::sending::{Sending, SentOut};
use crate::server::Server;
use pubmark_host::agent::AgentCommand;
use pubmark_model::options::Options;
use pubmark_model::protocol::{Features, ServerAddress};
use pubmark_model::workload::Transport;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// What the caller knows of a driver, by the system that uses it.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Its options, defaults filled in.
    pub options: Options,
    /// The transports of the system; none for a broker.
    pub transports: Vec<Transport>,
    /// Whether its clients meet at a server.
    pub server: bool,
}

/// What is to be tried.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The driver; else the first of the agent's that needs no server.
    pub driver: Option<String>,
    /// One transport; else all of the driver's.
    pub transport: Option<Transport>,
    /// The command of pubmark's own agent, the other side of some cases.
    pub built_in: AgentCommand,
    /// Cases by name, or by the beginning of their names; all where there are none.
    pub only: Vec<String>,
}

/// The agent on one transport, with what it has played there so far: several
/// cases look at one conversation.
pub struct Bench<'a> {
    /// The command that starts it as the side that sends …
    pub sending: &'a AgentCommand,
    /// … and as the side that receives.
    pub receiving: &'a AgentCommand,
    /// The driver.
    pub driver: &'a str,
    /// Its options.
    pub options: &'a Options,
    /// The transport; none where there is no choice.
    pub transport: Option<Transport>,
    /// Whether clients meet at a server.
    pub server: bool,
    /// The command of pubmark's own agent.
    pub built_in: &'a AgentCommand,
    /// What the agent says that it can play.
    pub features: Features,
    relay: OnceCell<Server>,
    sent: RefCell<BTreeMap<&'static str, Result<Rc<SentOut>, Wrong>>>,
    received: RefCell<BTreeMap<&'static str, Result<Rc<Received>, Wrong>>>,
}

impl<'a> Bench<'a> {
    /// An agent that has played nothing yet, and needs no server.
    pub fn new(
        command: &'a AgentCommand,
        driver: &'a str,
        options: &'a Options,
        transport: Option<Transport>,
    ) -> Bench<'a> {
        let (sent, received) = (RefCell::default(), RefCell::default());
        let (server, features) = (false, Features::default());
        Bench {
            sending: command,
            receiving: command,
            driver,
            options,
            transport,
            server,
            built_in: command,
            features,
            relay: OnceCell::new(),
            sent,
            received,
        }
    }

    /// A server for it that does nothing but hand on; none where it needs none.
    pub fn relay(&self) -> Result<Option<ServerAddress>, Wrong> {
        if !self.server {
            return Ok(None);
        }
        if self.relay.get().is_none() {
            let _ = self.relay.set(Server::start(self.driver, "")?);
        }
        Ok(self.relay.get().map(Server::address))
    }

    /// What the agent sent when it was told this; it is told once.
    pub fn sends(&self, sending: &'static Sending) -> Result<Rc<SentOut>, Wrong> {
        once(&self.sent, sending.name, || sending.play(self))
    }

    /// What the agent made of this script; it hears it once.
    pub fn receives(&self, script: &'static Script) -> Result<Rc<Received>, Wrong> {
        once(&self.received, script.name, || script.play(self))
    }
}

type Once<T> = RefCell<BTreeMap<&'static str, Result<Rc<T>, Wrong>>>;

/// The first who asks is told what went wrong; the others that it did.
fn once<T>(kept: &Once<T>, name: &'static str, play: impl FnOnce() -> Result<T, Wrong>) -> Result<Rc<T>, Wrong> {
    if let Some(known) = kept.borrow().get(name) {
        return known.clone().map_err(|wrong| match wrong {
            Wrong::Did(_) => Wrong::NotTried(format!("the conversation `{name}` did not come to its end, see above")),
            other => other,
        });
    }
    let played = play().map(Rc::new);
    kept.borrow_mut().insert(name, played.clone());
    played
}
