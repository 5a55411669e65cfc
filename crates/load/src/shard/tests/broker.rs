//! A small MQTT broker for one publisher and one subscriber that ends their connections
//! as its script says.

use pubmark_model::header::{END, Header};
use pubmark_wire::mqtt::server::{self, ConnectPacket, ServerPacket};
use pubmark_wire::mqtt::{Ack, Connack, Publish, Qos, Version, encode};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Failures, each once for each sequence.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The publisher's connection ends when this message has arrived, without an
    /// acknowledgement.
    pub at_publish: BTreeSet<u32>,
    /// At QoS 2, it ends when this message is released.
    pub at_release: BTreeSet<u32>,
    /// The subscriber's connection ends when this message has been sent to it.
    pub at_delivery: BTreeSet<u32>,
    /// These are sent to the subscriber once more when it unsubscribes.
    pub at_unsubscribe: BTreeSet<u32>,
    /// The server forgets the session when the connection ends.
    pub forgets: bool,
    /// Connections end with unread input, which resets them.
    pub resets: bool,
    /// Number of connections after a loss that are closed at once.
    pub refuses: u32,
    /// Number of connections after those that are not authorized.
    pub denies: u32,
    /// Number of connections after those that are never answered.
    pub ignores: u32,
    /// Removal of retained messages is refused with this code.
    pub keeps_retained: Option<u8>,
}

/// A client's session at the server.
#[derive(Default)]
struct Kept {
    /// QoS 2 messages of the client that it has not released.
    unreleased: BTreeMap<u16, u32>,
    /// Messages for the client that it has not acknowledged.
    outgoing: VecDeque<(u16, Vec<u8>)>,
    /// QoS 2: messages that the client has taken.
    released: BTreeSet<u16>,
    next_id: u16,
}

/// Everything that the server has received.
pub struct World {
    script: Script,
    /// Sessions by name, until the client ends them.
    sessions: BTreeMap<String, Kept>,
    subscriber: Option<(String, TcpStream)>,
    topic: String,
    qos: Qos,
    /// The message after which the subscriber's connection has ended: later packets about
    /// it on that connection are ignored.
    deaf_to: Option<u16>,
    /// Data messages written to the subscriber.
    pub written: u64,
    /// Every data message as it first arrived.
    pub messages: BTreeMap<u32, Vec<u8>>,
    /// Flags of the messages that arrived again.
    pub again: Vec<bool>,
    /// Sequences in the order of their first arrival.
    pub order: Vec<u32>,
    /// True if a message arrived again with other bytes.
    pub changed: bool,
    /// Accepted connections.
    pub accepted: u64,
    /// Clients that have sent DISCONNECT or UNSUBSCRIBE, and clients whose connection has
    /// ended without.
    pub parted: Vec<String>,
    pub vanished: Vec<String>,
}

/// The broker. Its threads end with their connections.
pub struct Broker {
    pub address: SocketAddr,
    world: Arc<Mutex<World>>,
}

impl Broker {
    pub fn start(qos: Qos, script: Script) -> Broker {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let world = Arc::new(Mutex::new(World {
            script,
            sessions: BTreeMap::new(),
            subscriber: None,
            topic: String::new(),
            qos,
            deaf_to: None,
            written: 0,
            messages: BTreeMap::new(),
            again: Vec::new(),
            order: Vec::new(),
            changed: false,
            accepted: 0,
            parted: Vec::new(),
            vanished: Vec::new(),
        }));
        let shared = world.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (shared, stream) = (shared.clone(), stream.unwrap());
                // Bytes that are held back when a connection ends are discarded with it.
                stream.set_nodelay(true).unwrap();
                thread::spawn(move || {
                    Peer { world: shared, stream, name: String::new(), clean: false, version: Version::V5 }.talk()
                });
            }
        });
        Broker { address, world }
    }

    /// Returns the names of clients with a session.
    pub fn remembered(&self) -> Vec<String> {
        self.world().sessions.keys().cloned().collect()
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection and its client.
struct Peer {
    world: Arc<Mutex<World>>,
    stream: TcpStream,
    name: String,
    clean: bool,
    version: Version,
}

impl Peer {
    fn talk(mut self) {
        let (mut pending, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        while let Ok(count @ 1..) = self.stream.read(&mut buffer) {
            pending.extend_from_slice(&buffer[..count]);
            let mut at = 0;
            if self.name.is_empty() {
                let Some((version, connect, used)) = server::connect(&pending).unwrap() else { continue };
                self.version = version;
                if !self.greet(&connect) {
                    return;
                }
                at = used;
            }
            while let Some((packet, used)) = server::decode(&pending[at..], self.version).unwrap() {
                if !self.packet(&packet) {
                    return self.end(&mut buffer);
                }
                at += used;
            }
            pending.drain(..at);
        }
        self.world.lock().unwrap().vanished.push(self.name);
    }

    /// Ends the connection. A reset can overtake earlier bytes on a busy machine; without
    /// a reset, input is read to its end first.
    fn end(mut self, buffer: &mut [u8]) {
        if !self.world.lock().unwrap().script.resets {
            let _ = self.stream.shutdown(Shutdown::Write);
            while matches!(self.stream.read(buffer), Ok(1..)) {}
        }
    }

    fn say(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        write(&mut out);
        // A client that has disconnected meanwhile gets it on its next connection.
        let _ = self.stream.write_all(&out);
    }

    fn greet(&mut self, connect: &ConnectPacket<'_>) -> bool {
        let (world, version) = (self.world.clone(), self.version);
        let mut world = world.lock().unwrap();
        world.accepted += 1;
        let known = world.sessions.contains_key(connect.client_id);
        if known && world.script.refuses > 0 {
            world.script.refuses -= 1;
            return false;
        }
        if known && world.script.denies > 0 {
            world.script.denies -= 1;
            self.say(|out| encode::connack(out, version, &Connack::new(0x87)).unwrap());
            return false;
        }
        if known && world.script.ignores > 0 {
            world.script.ignores -= 1;
            drop(world);
            while matches!(self.stream.read(&mut [0; 64]), Ok(1..)) {}
            return false;
        }
        self.name = connect.client_id.into();
        self.clean = connect.clean_start;
        if !known || connect.clean_start || world.script.forgets {
            world.sessions.insert(self.name.clone(), Kept::default());
        }
        let session_present = known && !connect.clean_start && !world.script.forgets;
        let connack = Connack { session_present, ..Connack::new(0) };
        self.say(|out| encode::connack(out, version, &connack).unwrap());
        if session_present && world.subscriber.as_ref().is_some_and(|(name, _)| *name == self.name) {
            world.subscriber = Some((self.name.clone(), self.stream.try_clone().unwrap()));
            world.deliver_again(version, &self.name);
        }
        true
    }

    /// Handles a packet. Returns false if the script ends the connection here.
    fn packet(&mut self, packet: &ServerPacket<'_>) -> bool {
        let (shared, version) = (self.world.clone(), self.version);
        let mut world = shared.lock().unwrap();
        match *packet {
            ServerPacket::Publish(Publish { qos, id, dup, payload, topic, .. }) => {
                topic.clone_into(&mut world.topic);
                if let (true, Some(reason)) = (payload.is_empty(), world.script.keeps_retained) {
                    self.say(|out| encode::puback(out, version, Ack { id, reason }));
                    return true;
                }
                let sequence = Header::read(payload).unwrap().sequence;
                let kept = world.sessions.get_mut(&self.name).unwrap();
                let fresh = qos != Qos::ExactlyOnce || kept.unreleased.insert(id, sequence).is_none();
                world.note(sequence, dup, payload);
                if fresh {
                    world.forward(version, payload);
                }
                if world.script.at_publish.remove(&sequence) {
                    return false;
                }
                match qos {
                    Qos::AtMostOnce => {}
                    Qos::AtLeastOnce => self.say(|out| encode::puback(out, version, Ack { id, reason: 0 })),
                    Qos::ExactlyOnce => self.say(|out| encode::pubrec(out, version, Ack { id, reason: 0 })),
                }
            }
            ServerPacket::Pubrel(Ack { id, .. }) => {
                let kept = world.sessions.get_mut(&self.name).unwrap();
                let sequence = kept.unreleased.remove(&id);
                if sequence.is_some_and(|sequence| world.script.at_release.remove(&sequence)) {
                    return false;
                }
                self.say(|out| encode::pubcomp(out, version, Ack { id, reason: 0 }));
            }
            ServerPacket::Puback(ack) | ServerPacket::Pubrec(ack) if world.deaf_to == Some(ack.id) => return false,
            ServerPacket::Puback(Ack { id, .. }) | ServerPacket::Pubcomp(Ack { id, .. }) => {
                let kept = world.sessions.get_mut(&self.name).unwrap();
                kept.outgoing.retain(|(other, _)| *other != id);
                kept.released.remove(&id);
            }
            ServerPacket::Pubrec(Ack { id, .. }) => {
                world.sessions.get_mut(&self.name).unwrap().released.insert(id);
                self.say(|out| encode::pubrel(out, version, Ack { id, reason: 0 }));
            }
            ServerPacket::Subscribe { id, filters } => {
                let codes: Vec<u8> = filters.map(|(_, qos)| qos as u8).collect();
                world.subscriber = Some((self.name.clone(), self.stream.try_clone().unwrap()));
                self.say(|out| encode::suback(out, version, id, &codes, None).unwrap());
            }
            ServerPacket::Unsubscribe { id, .. } => {
                world.parted.push(self.name.clone());
                for sequence in std::mem::take(&mut world.script.at_unsubscribe) {
                    let message = world.messages[&sequence].clone();
                    world.send(version, 60_000 + sequence as u16, &message);
                }
                self.say(|out| encode::unsuback(out, version, id, &[0]).unwrap());
            }
            ServerPacket::Pingreq => self.say(encode::pingresp),
            ServerPacket::Disconnect { session_expiry_s, .. } => {
                world.parted.push(self.name.clone());
                if self.clean || session_expiry_s == Some(0) {
                    world.sessions.remove(&self.name);
                }
                return false;
            }
            ServerPacket::Auth { .. } => panic!("an AUTH"),
        }
        true
    }
}

impl World {
    /// Records a message of the publisher.
    fn note(&mut self, sequence: u32, dup: bool, payload: &[u8]) {
        if sequence >= END {
            return;
        }
        match self.messages.get(&sequence) {
            Some(first) => {
                self.changed |= first != payload;
                self.again.push(dup);
            }
            None => {
                self.messages.insert(sequence, payload.to_vec());
                self.order.push(sequence);
            }
        }
    }

    fn forward(&mut self, version: Version, payload: &[u8]) {
        let name = self.subscriber.as_ref().map_or("", |(name, _)| name);
        let Some(kept) = self.sessions.get_mut(name) else { return };
        kept.next_id = kept.next_id % 60_000 + 1;
        let id = kept.next_id;
        if self.qos > Qos::AtMostOnce {
            kept.outgoing.push_back((id, payload.to_vec()));
        }
        self.send(version, id, payload);
    }

    /// Sends unacknowledged messages to a subscriber that reconnects.
    fn deliver_again(&mut self, version: Version, name: &str) {
        self.deaf_to = None;
        let kept = &self.sessions[name];
        let (released, outgoing) = (kept.released.clone(), kept.outgoing.clone());
        for (id, message) in outgoing {
            if !released.contains(&id) {
                self.send(version, id, &message);
            } else if let Some((_, stream)) = &mut self.subscriber {
                let mut out = Vec::new();
                encode::pubrel(&mut out, version, Ack { id, reason: 0 });
                let _ = stream.write_all(&out);
            }
        }
    }

    fn send(&mut self, version: Version, id: u16, payload: &[u8]) {
        let Some((_, stream)) = &mut self.subscriber else { return };
        let (mut out, sequence) = (Vec::new(), Header::read(payload).unwrap().sequence);
        let publish = Publish::plain(self.qos, id, &self.topic, payload);
        encode::publish(&mut out, version, &publish).unwrap();
        let written = stream.write_all(&out).is_ok();
        self.written += u64::from(written && sequence < END);
        if written && self.script.at_delivery.remove(&sequence) {
            self.deaf_to = Some(id);
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
