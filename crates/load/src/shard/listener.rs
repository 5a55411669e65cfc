//! A subscriber outside a run: it hears what clients publish, and notes topic and length.

use super::carrier::{ByteStream, Dial};
use super::connection::{Changes, Connection, ConnectionLoss, State};
use crate::clock;
use crate::session::{ClientSettings, ClientSpec, Session, SessionEvent, SettingsError, SubTopics};
use pubmark_model::endpoint::Endpoint;
use pubmark_model::options::Options;
use pubmark_model::protocol::Role;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use rustix::event::epoll;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest time from the first attempt to the subscription, ns.
const PATIENCE: Ns = 10 * SECOND;
/// Time that a server may take to close a connection after its end, ns.
const FAREWELL: Ns = SECOND / 2;
/// Longest wait: the flag to stop is looked at this often, ns.
const LOOK: Ns = 100 * MILLISECOND;
/// Bytes read at once.
const READ_BYTES: usize = 256 << 10;
/// Longest packet, bytes: the longest message that any of the protocols carries by default, and its topic.
const LONGEST_BYTES: u64 = (512 << 20) + (1 << 16);

/// What a listener hears, and for how long.
pub struct ListenTerms<'a> {
    /// The server.
    pub endpoint: &'a Endpoint,
    /// Options of the driver.
    pub options: &'a Options,
    /// Name of the client at the server.
    pub name: &'a str,
    /// Topic or filter, in the protocol's spelling; `None` for everything.
    pub topic: Option<&'a str>,
    /// Time from the subscription to the end, ns; `None` for no end.
    pub duration_ns: Option<Ns>,
    /// Ends the listener when it is set.
    pub stop: &'a AtomicBool,
}

/// An event of a listener.
#[derive(Debug, PartialEq, Eq)]
pub enum ListenerEvent<'a> {
    /// The subscription is active from this instant on, ns.
    Subscribed(Ns),
    /// A message.
    Message {
        /// Instant at which it was read, ns.
        at_ns: Ns,
        /// Its topic.
        topic: &'a [u8],
        /// Length of its payload, bytes.
        bytes: u64,
    },
    /// All that had arrived is passed on.
    Idle,
}

/// The reason why a listener cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The options are not valid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The server cannot be reached, refuses, or ends the connection.
    #[error("{endpoint}: {why}")]
    Lost {
        /// The server, without its login.
        endpoint: String,
        /// The reason.
        why: String,
    },
    /// The server did not answer.
    #[error("{0} did not answer within 10 s. Check that it speaks this protocol and that a firewall lets it through")]
    Silent(String),
}

/// Takes the events; a break ends the listener.
pub type ListenerHandler<'a> = dyn FnMut(ListenerEvent<'_>) -> ControlFlow<()> + 'a;

/// Runs a listener of a protocol.
pub type Listen = fn(&ListenTerms<'_>, Dial, &mut ListenerHandler<'_>) -> Result<(), ListenError>;

/// Subscribes and passes on what arrives, until the time is over or the flag is set. Leaves nothing at the server.
///
/// # Errors
/// See [`ListenError`].
pub fn listen<S: Session>(
    listening: &ListenTerms<'_>,
    dial: Dial,
    hear: &mut ListenerHandler<'_>,
) -> Result<(), ListenError> {
    let lost = |why: String| ListenError::Lost { endpoint: listening.endpoint.to_string(), why };
    let mut listener = Listener::<S>::new(listening, dial)?;
    let done = (0..listener.dial.to.len().max(1)).find_map(|place| match listener.connect(place) {
        // Another address of the server may answer.
        Err(ConnectionLoss::Closed(_)) if place + 1 < listener.dial.to.len() => None,
        done => Some(done),
    });
    done.unwrap_or(Ok(())).map_err(|loss| lost(loss.text()))?;
    let until_ns = clock::now() + PATIENCE;
    let mut end = None;
    while !listening.stop.load(Ordering::Relaxed) {
        let now = clock::now();
        if listener.connection.state != State::Up && now >= until_ns {
            return Err(ListenError::Silent(listening.endpoint.to_string()));
        }
        if end.is_some_and(|end_ns| now >= end_ns) {
            break;
        }
        let wait_ns = end.map_or(LOOK, |end_ns: Ns| LOOK.min(end_ns - now));
        let flow = listener.hear(wait_ns, end, hear).map_err(|loss| lost(loss.text()))?;
        if listener.connection.state == State::Up && end.is_none() {
            end = Some(listening.duration_ns.map_or(Ns::MAX, |duration_ns| clock::now().saturating_add(duration_ns)));
        }
        if flow.is_break() || hear(ListenerEvent::Idle).is_break() {
            break;
        }
    }
    listener.part();
    Ok(())
}

struct Listener<S: Session> {
    settings: S::Settings,
    spec: ClientSpec,
    dial: Dial,
    epoll: OwnedFd,
    connection: Connection<S>,
    buffer: Vec<u8>,
    /// Time between two keep-alive packets, ns, and the instant of the next one.
    keep_alive_ns: Ns,
    next_ns: Ns,
}

impl<S: Session> Listener<S> {
    fn new(listening: &ListenTerms<'_>, dial: Dial) -> Result<Listener<S>, ListenError> {
        let ListenTerms { endpoint, options, .. } = listening;
        let terms = ClientSettings {
            endpoint,
            qos: 0,
            durable: false,
            reconnect: false,
            answer_ns: None,
            run: listening.name,
            seed: 0,
            payload_bytes: 0,
            headers: None,
            options,
            clients: 1,
        };
        let settings = S::settings(&terms)?;
        let dial = dial.of::<S>(options);
        let spec = ClientSpec {
            role: Role::Subscriber,
            id: 0,
            name: listening.name.to_owned(),
            topic: listening.topic.unwrap_or(S::REST).to_owned(),
            wild: true,
            leaves: SubTopics::None,
            group: None,
            members: 0,
            replays: false,
            reply: None,
            row: 0,
            last_will: None,
        };
        let failed = |error: rustix::io::Errno| ListenError::Lost {
            endpoint: endpoint.to_string(),
            why: format!("this machine has no more room for events: {error}"),
        };
        let keep_alive_ns = Ns::from(S::keep_alive_s(&settings)) * SECOND / 2;
        Ok(Listener {
            connection: Connection::new(S::new(&settings, &spec)),
            settings,
            spec,
            dial,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?,
            buffer: vec![0; READ_BYTES],
            keep_alive_ns,
            next_ns: Ns::MAX,
        })
    }

    /// Begins to connect to an address, and waits until the connection is made or refused.
    fn connect(&mut self, place: usize) -> Result<(), ConnectionLoss> {
        use epoll::EventFlags as Flags;
        let carrier = ByteStream::dial(&self.dial, place, 0, 0)?;
        let data = epoll::EventData::new_u64(0);
        epoll::add(&self.epoll, &carrier, data, Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET)
            .map_err(std::io::Error::from)?;
        (self.connection.carrier, self.connection.state) = (Some(carrier), State::Opening);
        let until_ns = clock::now() + PATIENCE;
        while self.connection.state == State::Opening {
            let left_ns = until_ns.saturating_sub(clock::now());
            if left_ns == 0 {
                return Err(ConnectionLoss::Closed("no connection within 10 s. Check host and port".into()));
            }
            if self.wait(left_ns)?.intersects(Flags::OUT | Flags::ERR | Flags::HUP) {
                self.connection.carrier.as_mut().map_or(Ok(()), ByteStream::connected)?;
                self.connection.state = State::Greeting;
                let mut out = Vec::new();
                self.connection.session.open(&self.settings, &self.spec, &mut out);
                self.connection.write(&out)?;
            }
        }
        Ok(())
    }

    /// Waits for an event of the connection.
    fn wait(&self, wait_ns: Ns) -> Result<epoll::EventFlags, ConnectionLoss> {
        let mut events = Vec::with_capacity(1);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&clock::timespec(wait_ns))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
        Ok(events.first().map_or(epoll::EventFlags::empty(), |event: &epoll::Event| event.flags))
    }

    /// Waits, and passes on all that has arrived before `end`.
    fn hear(
        &mut self,
        wait_ns: Ns,
        end: Option<Ns>,
        hear: &mut ListenerHandler<'_>,
    ) -> Result<ControlFlow<()>, ConnectionLoss> {
        self.wait(wait_ns)?;
        self.connection.flush()?;
        let mut flow = ControlFlow::Continue(());
        // Before its subscription and after its end, an endless stream of messages would hold the loop.
        while flow.is_continue()
            && end.is_none_or(|end_ns| clock::now() < end_ns)
            && let Some((count, _, now)) = self.connection.read(&mut self.buffer)?
        {
            flow = self.take(count, now, hear)?;
        }
        let now = clock::now();
        if now >= self.next_ns {
            let mut out = Vec::new();
            self.connection.session.keep_alive(&self.settings, &mut out);
            self.connection.write(&out)?;
            self.next_ns = now + self.keep_alive_ns;
        }
        Ok(flow)
    }

    /// Passes what was read to the session.
    fn take(
        &mut self,
        count: usize,
        now: Ns,
        hear: &mut ListenerHandler<'_>,
    ) -> Result<ControlFlow<()>, ConnectionLoss> {
        let (mut out, mut flow) = (Vec::new(), ControlFlow::Continue(()));
        let mut is_up = self.connection.state == State::Up;
        let mut heard = |event: SessionEvent<'_>, changes: &mut Changes| match event {
            SessionEvent::Connected => changes.connected = true,
            SessionEvent::Subscribed if !is_up => {
                (is_up, changes.subscribed) = (true, true);
                flow = hear(ListenerEvent::Subscribed(now));
            }
            // Retained messages were published earlier.
            SessionEvent::Message { topic, payload, is_retained: false } if is_up && flow.is_continue() => {
                flow = hear(ListenerEvent::Message { at_ns: now, topic, bytes: payload.len() as u64 });
            }
            _ => {}
        };
        let bytes = &self.buffer[..count];
        let changes = self.connection.feed(&self.settings, bytes, LONGEST_BYTES, &mut out, &mut heard)?;
        if changes.connected {
            self.connection.state = State::Subscribing;
            self.connection.session.subscribe(&self.settings, &self.spec, &mut out);
        }
        if changes.subscribed && self.connection.state == State::Subscribing {
            self.connection.state = State::Up;
            self.next_ns = if self.keep_alive_ns > 0 { now + self.keep_alive_ns } else { Ns::MAX };
        }
        self.connection.write(&out)?;
        Ok(flow)
    }

    /// Disconnects in order, so that the server removes what the client had at once.
    fn part(&mut self) {
        let mut out = Vec::new();
        self.connection.session.close(&self.settings, &self.spec, &mut out);
        let until_ns = clock::now() + FAREWELL;
        let mut left = self.connection.write(&out);
        while left.is_ok() && clock::now() < until_ns {
            match self.connection.flush() {
                Ok(true) => break,
                done => left = done.map(|_| ()),
            }
            let _ = self.wait(until_ns.saturating_sub(clock::now()));
        }
        if let Some(carrier) = &mut self.connection.carrier {
            carrier.finish();
        }
        // The server closes: until then, what it still sends is discarded.
        while clock::now() < until_ns {
            match self.connection.read(&mut self.buffer) {
                Ok(Some(_)) => {}
                Ok(None) => drop(self.wait(until_ns.saturating_sub(clock::now()))),
                Err(_) => break,
            }
        }
    }
}
