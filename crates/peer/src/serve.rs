//! The event loop: one thread, epoll, loopback. A plain relay takes the short path: it copies messages into
//! subscribers' buffers at once, and writes each buffer once for a batch of reads. With a script, messages wait in the
//! dispatcher's agenda: the loop sleeps until 100 µs before the next due time, then polls the clock.

mod client;
mod error;
mod members;
mod ports;

use crate::dispatcher::{Dispatcher, Message, PlannedMessage};
use crate::routes::{Address, KeptAddress, Routes, Subscription};
use crate::script::PeerScript;
use crate::speech::{
    Amqp1Server, AmqpServer, Ask, Coordinator, Handled, KafkaServer, KeptWill, Leaving, MqttServer, NatsServer,
    PublisherAnswer, RespServer, Speech, ZenohServer, ZmtpServer,
};
use crate::store::Store;
use crate::tally::PeerTally;
use crate::watch::{ClientEvent, ClientWatch};
use client::PeerConnection;
pub use error::ServeError;
use error::failed;
use ports::Ports;
use pubmark_clock::now;
use pubmark_model::units::{Ns, SECOND};
use rustix::event::epoll::EventFlags as Flags;
use rustix::event::{PollFd, PollFlags, epoll};
use rustix::fs::Timespec;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::mpsc::Sender;

/// Time before a due time in which the loop polls the clock instead of sleeping.
const WATCH: Ns = 100_000;
/// Bytes per read.
const READ_BYTES: usize = 256 << 10;
/// Reads from one connection before others have their turn.
const READS: usize = 4;
/// Events per call of epoll.
const EVENTS: usize = 512;
/// Messages passed on between two writes.
const RELEASES: usize = 64;
/// Bytes in flight beyond which nothing more is read.
const HELD_BYTES_MAX: usize = 64 << 20;
/// Event key of the end, beside those of ports and the connections' numbers.
const STOP: u64 = u64::MAX;

/// Starts a server and runs it to its end.
type Run =
    fn(ClientWatch, SocketAddr, PeerScript, BorrowedFd<'_>, &mut dyn FnMut(&str)) -> Result<PeerTally, ServeError>;

/// A protocol of the peer.
#[derive(Clone, Copy, Debug)]
pub struct PeerProtocol {
    /// Name of the driver whose clients it serves.
    pub driver: &'static str,
    run: Run,
}

impl PeerProtocol {
    /// All protocols of the peer.
    pub const ALL: &[PeerProtocol] = &[
        PeerProtocol::of::<MqttServer>(),
        PeerProtocol::of::<NatsServer>(),
        PeerProtocol::of::<RespServer>(),
        PeerProtocol::of::<AmqpServer>(),
        PeerProtocol::of::<Amqp1Server>(),
        PeerProtocol::of::<KafkaServer>(),
        PeerProtocol::of::<ZenohServer>(),
        PeerProtocol::of::<ZmtpServer>(),
    ];

    const fn of<S: Speech>() -> PeerProtocol {
        PeerProtocol { driver: S::DRIVER, run: run::<S> }
    }

    /// Finds the protocol of a driver's clients.
    pub fn of_driver(driver: &str) -> Option<PeerProtocol> {
        PeerProtocol::ALL.iter().copied().find(|protocol| protocol.driver == driver)
    }

    /// Serves at an address (port 0: any that is free) until `stop` reaches its end. Passes the endpoint to
    /// `listening`, and client events to `watch`. Returns the counts of its actions.
    ///
    /// # Errors
    /// If it cannot listen, or if epoll fails. A connection that fails is only closed.
    pub fn serve(
        self,
        watch: Option<Sender<ClientEvent>>,
        at: SocketAddr,
        script: PeerScript,
        stop: BorrowedFd<'_>,
        mut listening: impl FnMut(&str),
    ) -> Result<PeerTally, ServeError> {
        (self.run)(ClientWatch(watch), at, script, stop, &mut listening)
    }
}

fn run<S: Speech>(
    watch: ClientWatch,
    at: SocketAddr,
    script: PeerScript,
    stop: BorrowedFd<'_>,
    listening: &mut dyn FnMut(&str),
) -> Result<PeerTally, ServeError> {
    Server::<S>::new(watch, at, script, stop)?.run(listening)
}

struct Server<'a, S> {
    plain: bool,
    watch: ClientWatch,
    dispatcher: Dispatcher,
    store: Option<Store>,
    /// What was passed on, if the script keeps it.
    kept: Vec<Rc<Message>>,
    world: World<S>,
    coordinator: Rc<RefCell<Coordinator>>,
    ports: Ports,
    stop: BorrowedFd<'a>,
    stopped: bool,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    buffer: Vec<u8>,
    /// Connections that may have more to read.
    again: Vec<usize>,
    /// Publishers that are not read until there is room for their messages.
    held: Vec<usize>,
    /// Messages just passed on, each with its number of copies.
    released: Vec<(PlannedMessage, usize)>,
    /// The member that leaves because of what has just been read.
    leaving: Option<Leaving>,
    /// Connections that may send again at an instant.
    muted: BinaryHeap<Reverse<(Ns, usize)>>,
}

/// A message for the same client that publishes it.
struct Own {
    listener: Subscription,
    to: KeptAddress,
    payload: Box<[u8]>,
    qos: u8,
}

/// Receivers of messages: separate, because they change while one client's input is handled.
struct World<S> {
    /// Connections by number. Numbers are never reused.
    clients: Vec<Option<Box<PeerConnection<S>>>>,
    routes: Routes,
    subscribers: u32,
    dirty: Vec<usize>,
    /// Bytes that wait to be written, or for acknowledgements.
    pending: usize,
    /// Messages for the client whose input is being handled.
    own: Vec<Own>,
    relayed: u64,
}

impl<S: Speech> World<S> {
    /// Appends a message to its receiver's output buffer.
    #[inline]
    fn deliver(&mut self, listener: Subscription, to: Address<'_>, payload: &[u8], qos: u8) {
        match self.clients.get_mut(listener.client) {
            Some(Some(client)) => {
                let before = client.pending();
                client.speech.deliver(listener.token, to, payload, qos, &mut client.out);
                self.pending = (self.pending + client.pending()).saturating_sub(before);
                if !std::mem::replace(&mut client.dirty, true) {
                    self.dirty.push(listener.client);
                }
            }
            _ => self.own.push(Own { listener, to: to.kept(), payload: payload.into(), qos }),
        }
    }

    /// Delivers a message to all its subscribers. Returns their number.
    #[inline]
    fn relay(&mut self, to: Address<'_>, payload: &[u8], qos: u8) -> usize {
        self.routes.take_turns();
        // The routes do not change meanwhile.
        let routes = std::mem::take(&mut self.routes);
        let mut listeners = 0;
        for listener in routes.of(to.topic) {
            self.deliver(listener, to, payload, qos);
            listeners += 1;
        }
        self.routes = routes;
        self.relayed += listeners as u64;
        listeners
    }
}

impl<'a, S: Speech> Server<'a, S> {
    fn new(watch: ClientWatch, at: SocketAddr, script: PeerScript, stop: BorrowedFd<'a>) -> Result<Self, ServeError> {
        // The kernel's default timer slack is 50 µs. If it cannot be reduced, the counts show the delay.
        pubmark_clock::exact_timers();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed("epoll"))?;
        let ports = Ports::open(at, &script, &epoll)?;
        // A file has no events: its end counts as reached.
        let waits = epoll::add(&epoll, stop, epoll::EventData::new_u64(STOP), epoll::EventFlags::IN);
        let stopped = match waits {
            Ok(()) => false,
            Err(rustix::io::Errno::PERM) => true,
            Err(error) => return Err(failed("standard input")(error)),
        };
        Ok(Server {
            plain: script.is_plain(),
            store: script.store.as_ref().map(Store::open).transpose().map_err(failed("store"))?,
            watch,
            dispatcher: Dispatcher::new(script),
            kept: Vec::new(),
            world: World {
                clients: Vec::new(),
                routes: Routes::default(),
                subscribers: 0,
                dirty: Vec::new(),
                pending: 0,
                own: Vec::new(),
                relayed: 0,
            },
            coordinator: Rc::default(),
            ports,
            stop,
            stopped,
            epoll,
            events: Vec::with_capacity(EVENTS),
            buffer: vec![0; READ_BYTES],
            again: Vec::new(),
            held: Vec::new(),
            released: Vec::new(),
            leaving: None,
            muted: BinaryHeap::new(),
        })
    }

    fn run(mut self, listening: &mut dyn FnMut(&str)) -> Result<PeerTally, ServeError> {
        listening(&self.endpoints()?);
        while !self.stopped {
            self.release();
            self.unmute();
            self.end_absence();
            self.flush_all();
            self.wait()?;
        }
        let mut tally = self.dispatcher.tally;
        tally.relayed = self.world.relayed;
        Ok(tally)
    }

    /// Passes on messages that are due by the script, then writes once for each subscriber. It is a limited number, so
    /// that subscribers who ask for each batch are heard between two.
    fn release(&mut self) {
        if self.plain {
            return;
        }
        let mut released = std::mem::take(&mut self.released);
        while released.len() < RELEASES
            && let Some(planned) = self.dispatcher.next(now())
        {
            let copies = self.release_one(&planned);
            released.push((planned, copies));
        }
        if !released.is_empty() {
            let begun = now();
            self.flush_all();
            let ended = now();
            for (planned, copies) in released.drain(..) {
                (0..copies).for_each(|_| self.dispatcher.written(&planned, begun, ended));
            }
        }
        self.released = released;
    }

    /// Passes on one message. Returns the number of copies.
    fn release_one(&mut self, planned: &PlannedMessage) -> usize {
        let only = planned.only;
        self.world.routes.take_turns();
        let routes = std::mem::take(&mut self.world.routes);
        let message = &planned.message;
        if self.dispatcher.script().keep && only.is_none() {
            self.kept.push(message.clone());
        }
        let mut copies = 0;
        let topic = message.to.get().topic;
        let all = only.is_none().then(|| routes.of(topic));
        let own = only.map(|only| routes.of_client(topic, only));
        for listener in all.into_iter().flatten().chain(own.into_iter().flatten()) {
            let subscriber = self.world.clients[listener.client].as_ref().and_then(|client| client.subscriber);
            if only.is_some()
                || subscriber.is_none_or(|number| self.dispatcher.may_go(planned, listener.client, number))
            {
                self.world.deliver(listener, message.to.get(), &message.payload, message.qos);
                copies += 1;
            }
        }
        self.world.routes = routes;
        copies
    }

    /// Resumes connections whose muted time is over.
    fn unmute(&mut self) {
        let now = now();
        while let Some(Reverse((_, index))) = self.muted.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.muted.pop();
            self.mark_dirty(index);
        }
    }

    fn mark_dirty(&mut self, index: usize) {
        if let Some(Some(client)) = self.world.clients.get_mut(index)
            && !std::mem::replace(&mut client.dirty, true)
        {
            self.world.dirty.push(index);
        }
    }

    /// Writes all output that the kernel takes.
    fn flush_all(&mut self) {
        if self.world.dirty.is_empty() {
            return;
        }
        let mut dirty = std::mem::take(&mut self.world.dirty);
        let scripted = !self.plain || self.dispatcher.script().connect.answer_after.0 > 0;
        let now = if scripted { now() } else { 0 };
        let stalled_until = if scripted { self.dispatcher.stalled_until(now).unwrap_or(0) } else { 0 };
        for index in dirty.drain(..) {
            let Some(Some(client)) = self.world.clients.get_mut(index) else { continue };
            client.dirty = false;
            let silent_until = client.mute_until.max(stalled_until);
            if silent_until > now {
                self.muted.push(Reverse((silent_until, index)));
                continue;
            }
            let before = client.pending();
            let flushed = client.flush();
            self.world.pending -= before - client.pending();
            let over = client.closing && client.unwritten() == 0;
            match flushed {
                Err(_) => self.end(index),
                // The client closes when it has read the output.
                Ok(()) if over => drop(client.stream.shutdown(std::net::Shutdown::Write)),
                Ok(()) => {}
            }
        }
        // Flushing makes no connection dirty: the list's memory can be kept.
        self.world.dirty = dirty;
    }

    fn end(&mut self, index: usize) {
        if let Some(mut client) = self.world.clients[index].take() {
            self.watch.ended(index);
            self.world.pending -= client.pending();
            if client.subscriber.is_some() {
                self.world.routes.forget(index);
            }
            match client.speech.will() {
                Some(KeptWill { to, payload, qos }) if self.plain => drop(self.world.relay(to.get(), &payload, qos)),
                Some(will) => self.dispatcher.bequeathed(will, now()),
                None => {}
            }
        }
    }

    fn choked(&self) -> bool {
        self.world.pending + self.dispatcher.waiting_bytes() > HELD_BYTES_MAX
    }

    /// Waits until an event or a due time, and handles it.
    fn wait(&mut self) -> Result<(), ServeError> {
        let muted = self.muted.peek().map(|Reverse((at, _))| *at);
        let returns = self.ports.returns.map(|(_, at_ns)| at_ns);
        let due = [self.dispatcher.due_ns(), muted, returns].into_iter().flatten().min();
        let left = due.map(|due| due.saturating_sub(now()));
        if !self.choked() {
            self.again.append(&mut self.held);
        }
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let timeout = if !self.again.is_empty() { Some(0) } else { left.map(|left| left.saturating_sub(WATCH)) };
        match await_events(&self.epoll, timeout, &mut events) {
            Ok(()) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed("epoll")(error)),
        }
        for index in std::mem::take(&mut self.again) {
            self.read(index, true);
            self.release();
        }
        for event in &events {
            match event.data.u64() {
                STOP => self.stopped = !matches!(rustix::io::read(self.stop, &mut [0u8; 512]), Ok(1..)),
                key => match self.ports.place(key) {
                    Some(place) => self.accept(place)?,
                    None => self.happened(key as usize, event.flags),
                },
            }
            self.release();
        }
        let idle = events.is_empty() && self.again.is_empty();
        self.events = events;
        if let Some(due) = due.filter(|_| idle) {
            self.watch(due);
        }
        Ok(())
    }

    /// Polls the clock if something is due shortly, until it is.
    fn watch(&mut self, due: Ns) {
        let mut look = now();
        if look >= due || look.saturating_add(WATCH) <= due {
            return;
        }
        while look < due {
            std::hint::spin_loop();
            look = now();
        }
        self.dispatcher.tally.watch_error.record(look - due);
    }

    fn happened(&mut self, index: usize, flags: epoll::EventFlags) {
        if flags.contains(Flags::OUT) && self.world.clients[index].as_ref().is_some_and(|client| client.unwritten() > 0)
        {
            self.mark_dirty(index);
        }
        let over = flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR);
        if over || flags.contains(Flags::IN) {
            self.read(index, over);
        }
    }

    /// Reads a limited part of the available input. If the connection is `over`, its end is available too, and no
    /// further event will report it.
    fn read(&mut self, index: usize, over: bool) {
        for _ in 0..READS {
            let Some(mut client) = self.world.clients[index].take() else { return };
            // Subscribers are always read: their acknowledgements make room.
            if client.subscriber.is_none() && self.choked() {
                self.world.clients[index] = Some(client);
                return self.held.push(index);
            }
            let got = client.read(&mut self.buffer);
            let keep = match got {
                Ok(None) => {
                    self.world.clients[index] = Some(client);
                    return;
                }
                Ok(Some(0)) | Err(_) => false,
                Ok(Some(_)) if client.closing && !client.speech.hears_to_the_end() => true,
                Ok(Some(count)) => self.hear(&mut client, index, count),
            };
            self.world.clients[index] = Some(client);
            if let Some(leaving) = self.leaving.take() {
                self.leave(leaving);
            }
            if !keep {
                self.world.own.clear();
                return self.end(index);
            }
            for Own { listener, to, payload, qos } in std::mem::take(&mut self.world.own) {
                self.world.deliver(listener, to.get(), &payload, qos);
            }
            // Less than the buffer holds: there is no more, or an event will follow.
            if !over && matches!(got, Ok(Some(count)) if count < READ_BYTES) {
                return;
            }
        }
        self.again.push(index);
    }

    /// Handles a client's input, with the client taken out of the world. Returns false if it breaks the protocol.
    fn hear(&mut self, client: &mut PeerConnection<S>, index: usize, count: usize) -> bool {
        let Server { plain, watch, dispatcher, store, kept, world, buffer, leaving, .. } = self;
        let (mut closing, mut subscriber) = (client.closing, client.subscriber);
        let before = client.pending();
        let mut hub = |ask: Ask<'_>| {
            let mut done = Handled { answer: PublisherAnswer::Acknowledged, listeners: 0 };
            watch.asked(index, &ask);
            match ask {
                Ask::Publish { to, payload, qos } if store.as_ref().is_some_and(|it| it.takes(payload)) => {
                    // Whoever cannot store it does not say that it has it.
                    if store.as_mut().is_none_or(|store| store.put(to.topic, payload, qos).is_err()) {
                        done.answer = PublisherAnswer::Nothing;
                    }
                }
                Ask::Publish { to, payload, qos } if *plain => done.listeners = world.relay(to, payload, qos),
                Ask::Publish { to, payload, qos } => {
                    done.listeners = world.routes.of(to.topic).count();
                    done.answer = dispatcher.arrived(to, payload, qos, now());
                }
                Ask::Subscribe(filter, token) => {
                    let listener = Subscription { client: index, token };
                    world.routes.add(filter, listener);
                    for message in store.iter().flat_map(|store| store.found(filter)) {
                        let to = message.to.get().kept();
                        world.own.push(Own { listener, to, payload: message.payload.clone(), qos: message.qos });
                    }
                    subscriber.get_or_insert_with(|| {
                        world.subscribers += 1;
                        world.subscribers - 1
                    });
                }
                Ask::Share(filter, group, token) => {
                    world.routes.share(filter, group, Subscription { client: index, token });
                    subscriber.get_or_insert_with(|| {
                        world.subscribers += 1;
                        world.subscribers - 1
                    });
                }
                Ask::Replay(filter, token) => {
                    let listener = Subscription { client: index, token };
                    for message in kept.iter().filter(|message| filter.holds(message.to.get().topic)) {
                        let (to, payload) = (message.to.get().kept(), message.payload.clone());
                        world.own.push(Own { listener, to, payload, qos: message.qos });
                    }
                }
                Ask::Unsubscribe(filter, token) => world.routes.remove(filter, Subscription { client: index, token }),
                Ask::Close => closing = true,
                Ask::Wake(topic, _) if *plain => {
                    world.relay(Address::of(topic), b"", 0);
                }
                Ask::Wake(topic, after_ns) => dispatcher.wake(topic, now().saturating_add(after_ns)),
                Ask::Leave(member) => (closing, *leaving) = (true, Some(member)),
                Ask::Reached(since_ns) if dispatcher.has_reached(since_ns, now()) => {}
                Ask::Reached(_) => done.answer = PublisherAnswer::Nothing,
            }
            done
        };
        let heard = client.hear(&buffer[..count], &mut hub);
        (client.closing, client.subscriber) = (closing, subscriber);
        world.pending = (world.pending + client.pending()).saturating_sub(before);
        dispatcher.tally.connections.malformed += u64::from(heard.is_err());
        if (client.unwritten() > 0 || client.closing) && !std::mem::replace(&mut client.dirty, true) {
            world.dirty.push(index);
        }
        heard.is_ok()
    }
}

/// Waits for events with a timeout in ns: epoll itself counts milliseconds.
fn await_events(epoll: &OwnedFd, timeout: Option<Ns>, events: &mut Vec<epoll::Event>) -> rustix::io::Result<()> {
    let timespec = |ns: Ns| Timespec { tv_sec: (ns / SECOND) as i64, tv_nsec: (ns % SECOND) as i64 };
    let mut take =
        |timeout: Option<&Timespec>| epoll::wait(epoll, rustix::buffer::spare_capacity(events), timeout).map(|_| ());
    match timeout {
        None => take(None),
        Some(0) => take(Some(&timespec(0))),
        Some(left) => {
            let mut all = [PollFd::new(epoll, PollFlags::IN)];
            match rustix::event::poll(&mut all, Some(&timespec(left)))? {
                0 => Ok(()),
                _ => take(Some(&timespec(0))),
            }
        }
    }
}
