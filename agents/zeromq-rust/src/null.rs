//! No library: what the agent itself costs, and handing a message from thread
//! to thread. Each socket that receives has one bounded channel, which all that
//! send to it share. A message is copied into memory of its own, which goes to
//! the receiver and is freed there.

use crate::made;
use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, TrySendError, bounded};
use pubmark_load::drivers::check_spec;
use pubmark_load::drivers::socket::{Driver, DriverError, Sent, Socket, SocketSpec, WAIT_MS};
use pubmark_model::options::{Options, queue_messages};
use pubmark_model::protocol::Role;
use pubmark_model::workload::Transport;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The options that this driver knows.
pub const OPTIONS: &[&str] = &["queue_messages", "queue_bytes"];

const WAIT: Duration = Duration::from_millis(WAIT_MS as u64);

type Message = Vec<u8>;

/// What is bound, by its endpoint.
#[derive(Default)]
struct Null {
    bound: HashMap<String, Arc<Bound>>,
}

/// A socket that others connect to.
struct Bound {
    /// Where it receives, if it does.
    inbox: Option<Sender<Message>>,
    /// The channels of those that have connected. It takes them over when it first
    /// sends: no client is on its way before all sockets of a run are open.
    peers: Mutex<Vec<Sender<Message>>>,
}

/// Makes the driver.
pub fn load(_: &Options) -> Result<Box<dyn Driver>, DriverError> {
    Ok(Box::<Null>::default())
}

impl Driver for Null {
    fn versions(&self) -> Map<String, Value> {
        let mut versions = Map::new();
        versions.insert("library".into(), "crossbeam-channel".into());
        versions.insert("version".into(), env!("CROSSBEAM_CHANNEL_VERSION").into());
        versions.insert("rust".into(), env!("RUST_VERSION").into());
        versions
    }

    fn made(&self) -> BTreeMap<String, String> {
        made(&[
            ("binding", "none"),
            ("library", concat!("crossbeam-channel ", env!("CROSSBEAM_CHANNEL_VERSION"))),
            ("call", "blocking"),
            ("copies", "send: into memory of its own, one for each subscriber; receive: none"),
        ])
    }

    fn open(&mut self, spec: &SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError> {
        check_spec("null", spec)?;
        if spec.transport != Transport::Inproc {
            return Err(DriverError::new(format!("null has no transport {}: use inproc", spec.transport)));
        }
        let capacity = queue_messages(spec.options, spec.payload_bytes) as usize;
        let (sender, receiver) = bounded(capacity);
        let inbox = (spec.role != Role::Publisher).then_some(sender);
        let mut peers = Vec::new();
        for endpoint in spec.connect {
            let bound = self.bound.get(endpoint);
            let bound = bound.ok_or_else(|| DriverError::new(format!("null: nobody has bound {endpoint}")))?;
            peers.extend(bound.inbox.clone());
            bound.peers.lock().unwrap_or_else(PoisonError::into_inner).extend(inbox.clone());
        }
        let bound = spec.bind.map(|endpoint| {
            let bound = Arc::new(Bound { inbox, peers: Mutex::default() });
            self.bound.insert(endpoint.to_owned(), bound.clone());
            bound
        });
        Ok(Box::new(NullSocket {
            receiver,
            bound,
            peers,
            next: 0,
            to_one: spec.pattern.competing(),
            publishes: spec.role == Role::Publisher,
            patience: Duration::from_millis(spec.receive_ms() as u64),
            message: Message::new(),
            endpoint: spec.bind.map(str::to_owned),
            queue_messages: capacity,
        }))
    }
}

struct NullSocket {
    receiver: Receiver<Message>,
    /// If it was bound, and has not sent yet.
    bound: Option<Arc<Bound>>,
    /// Whom it sends to.
    peers: Vec<Sender<Message>>,
    /// The peer that is next to get a message.
    next: usize,
    /// Whether each message goes to one peer.
    to_one: bool,
    publishes: bool,
    /// How long `recv` waits.
    patience: Duration,
    /// The last message received.
    message: Message,
    endpoint: Option<String>,
    queue_messages: usize,
}

impl NullSocket {
    /// All peers get the message, or one of them keeps the others waiting.
    fn send_to_all(&mut self, message: &[u8]) -> Sent {
        while let Some(peer) = self.peers.get(self.next) {
            match peer.send_timeout(message.to_vec(), WAIT) {
                Ok(()) => self.next += 1,
                Err(SendTimeoutError::Timeout(_)) => return Sent::Full,
                Err(SendTimeoutError::Disconnected(_)) => drop(self.peers.remove(self.next)),
            }
        }
        self.next = 0;
        Sent::Accepted
    }

    /// The next peer that has room gets the message.
    fn send_to_one(&mut self, message: &[u8]) -> Sent {
        let mut message = message.to_vec();
        for _ in 0..self.peers.len() {
            self.next = (self.next + 1) % self.peers.len();
            match self.peers[self.next].try_send(message) {
                Ok(()) => return Sent::Accepted,
                Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) => message = back,
            }
        }
        let sent = self.peers.get(self.next).map(|peer| peer.send_timeout(message, WAIT));
        match sent {
            Some(Ok(())) => Sent::Accepted,
            Some(Err(SendTimeoutError::Timeout(_))) => Sent::Full,
            Some(Err(SendTimeoutError::Disconnected(_))) | None => {
                thread::sleep(WAIT);
                Sent::Full
            }
        }
    }
}

impl Socket for NullSocket {
    fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError> {
        if let Some(bound) = self.bound.take() {
            self.peers.append(&mut bound.peers.lock().unwrap_or_else(PoisonError::into_inner));
        }
        Ok(if self.to_one { self.send_to_one(message) } else { self.send_to_all(message) })
    }

    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        match self.receiver.recv_timeout(self.patience) {
            Ok(message) => {
                self.message = message;
                Ok(Some(&self.message))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(WAIT);
                Ok(None)
            }
        }
    }

    fn applied(&self) -> Map<String, Value> {
        let side = if self.publishes { "send_queue_messages" } else { "receive_queue_messages" };
        [(side.to_owned(), self.queue_messages.into())].into_iter().collect()
    }
}
