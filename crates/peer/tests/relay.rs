//! The peer over real sockets: situations that no schedule of pubmark creates.
#![allow(clippy::unwrap_used)]

use pubmark_peer::{PeerProtocol, PeerScript, PeerTally};
use pubmark_wire::mqtt::server::ConnectPacket;
use pubmark_wire::mqtt::{self, Ack, Publish, Qos, Version, encode};
use pubmark_wire::nats::{FromClient, FromServer};
use std::io::{PipeWriter, Read, Write, pipe};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::AsFd;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

struct Peer {
    address: String,
    stop: PipeWriter,
    thread: JoinHandle<PeerTally>,
}

impl Peer {
    fn start(driver: &str, script: &str) -> Peer {
        let protocol = PeerProtocol::of_driver(driver).unwrap();
        let script = PeerScript::parse(script).unwrap();
        let (reader, stop) = pipe().unwrap();
        let (say, listening) = channel();
        let thread = std::thread::spawn(move || {
            protocol
                .serve(None, (Ipv4Addr::LOCALHOST, 0).into(), script, reader.as_fd(), |endpoint| {
                    say.send(endpoint.to_owned()).unwrap()
                })
                .unwrap()
        });
        let endpoint = listening.recv_timeout(PATIENCE).unwrap();
        Peer { address: endpoint.split_once("://").unwrap().1.into(), stop, thread }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Returns a client whose subscription to `t` is confirmed.
    fn subscribe(&self) -> Reader {
        let mut stream = self.connect();
        stream.write_all(b"CONNECT {}\r\nSUB t 1\r\nPING\r\n").unwrap();
        let mut reader = Reader { stream, bytes: Vec::new() };
        while reader.next(|item| !matches!(item, FromServer::Pong)) {}
        reader
    }

    fn end(self) -> PeerTally {
        drop(self.stop);
        self.thread.join().unwrap()
    }
}

struct Reader {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Reader {
    /// Reads until there is an item, and passes it to `look`.
    fn next<T>(&mut self, look: impl FnOnce(&FromServer<'_>) -> T) -> T {
        let mut buffer = vec![0; 256 << 10];
        loop {
            if let Some((item, used)) = FromServer::decode(&self.bytes).unwrap() {
                let found = look(&item);
                self.bytes.drain(..used);
                return found;
            }
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the peer closed the connection");
            self.bytes.extend_from_slice(&buffer[..count]);
        }
    }
}

fn publish(stream: &mut TcpStream, payload: &[u8]) {
    let mut bytes = Vec::new();
    FromClient::Publish { subject: b"t", reply: None, headers: &[], payload }.put(&mut bytes);
    stream.write_all(&bytes).unwrap();
}

/// A subscriber that does not read slows down the publisher, and does not grow the peer's memory; nothing is lost or
/// reordered.
#[test]
fn a_slow_subscriber_holds_back_its_publisher() {
    // Twice what the peer holds, with room for the kernel's buffers.
    const MESSAGES: u32 = 2_500;
    let peer = Peer::start("nats", "");
    let mut subscriber = peer.subscribe();
    let mut stream = peer.connect();
    let (say, done) = channel();
    let publisher = std::thread::spawn(move || {
        let mut payload = vec![7; 64 << 10];
        for number in 0..MESSAGES {
            payload[..4].copy_from_slice(&number.to_le_bytes());
            publish(&mut stream, &payload);
        }
        say.send(()).unwrap();
        stream
    });
    assert_eq!(done.recv_timeout(Duration::from_millis(500)), Err(RecvTimeoutError::Timeout));
    for number in 0..MESSAGES {
        let first = subscriber.next(|item| match item {
            FromServer::Message { payload, .. } => payload[..4].to_vec(),
            other => panic!("{other:?}"),
        });
        assert_eq!(first, number.to_le_bytes());
    }
    done.recv_timeout(PATIENCE).unwrap();
    drop(publisher.join().unwrap());
    assert_eq!(peer.end().relayed, u64::from(MESSAGES));
}

#[test]
fn who_publishes_to_itself_is_heard_and_who_breaks_the_protocol_is_let_go() {
    let peer = Peer::start("nats", "");
    let mut client = peer.subscribe();
    publish(&mut client.stream, b"echo");
    assert!(client.next(|item| matches!(item, FromServer::Message { payload: b"echo", .. })));
    let mut other = peer.connect();
    other.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut rest = Vec::new();
    // It may be reset, because not all of its output was read.
    let _ = other.read_to_end(&mut rest);
    assert!(rest.is_empty() || rest.starts_with(b"INFO"));
    publish(&mut client.stream, b"again");
    assert!(client.next(|item| matches!(item, FromServer::Message { payload: b"again", .. })));
    assert_eq!(peer.end().connections.malformed, 1);
}

#[test]
fn a_subscriber_that_is_gone_gets_no_more() {
    let peer = Peer::start("nats", "delay = { fixed = \"0s\" }");
    let mut stays = peer.subscribe();
    let goes = peer.subscribe();
    goes.stream.shutdown(std::net::Shutdown::Both).unwrap();
    let mut publisher = peer.connect();
    for _ in 0..10 {
        publish(&mut publisher, b"short");
        assert!(stays.next(|item| matches!(item, FromServer::Message { .. })));
    }
    let tally = peer.end();
    assert_eq!((tally.connections.accepted, tally.counts.messages), (3, 0));
}

/// Unacknowledged messages fill the peer as well: acknowledgements must still be read.
#[test]
fn a_narrow_window_holds_back_its_publisher_and_ends_nowhere() {
    const MESSAGES: u16 = 1_500;
    const VERSION: Version = Version::V5;
    let peer = Peer::start("mqtt", "");
    let connect = |receive_maximum| {
        let mut bytes = Vec::new();
        let connect = ConnectPacket { receive_maximum, ..ConnectPacket::clean("c") };
        encode::connect(&mut bytes, VERSION, &connect).unwrap();
        let mut stream = peer.connect();
        stream.write_all(&bytes).unwrap();
        stream
    };
    let mut subscriber = connect(1);
    let mut bytes = Vec::new();
    encode::subscribe(&mut bytes, VERSION, 1, &[("t", Qos::AtLeastOnce)]).unwrap();
    subscriber.write_all(&bytes).unwrap();
    let mut publisher = connect(u16::MAX);
    let (say, go) = channel::<()>();
    let publisher = std::thread::spawn(move || {
        go.recv_timeout(PATIENCE).unwrap();
        let payload = vec![7; 64 << 10];
        for id in 1..=MESSAGES {
            let (qos, payload) = (Qos::AtLeastOnce, payload.as_slice());
            let mut bytes = Vec::new();
            let publish = Publish::plain(qos, id, "t", payload);
            encode::publish(&mut bytes, VERSION, &publish).unwrap();
            publisher.write_all(&bytes).unwrap();
        }
        publisher
    });
    let (mut bytes, mut buffer, mut heard) = (Vec::new(), vec![0; 256 << 10], 0);
    while heard < MESSAGES {
        let count = subscriber.read(&mut buffer).unwrap();
        assert!(count > 0, "the peer closed the connection");
        bytes.extend_from_slice(&buffer[..count]);
        while let Some((packet, used)) = mqtt::decode(&bytes, VERSION).unwrap() {
            let mut ack = Vec::new();
            match packet {
                mqtt::Packet::Suback { .. } => say.send(()).unwrap(),
                mqtt::Packet::Publish(publish) => {
                    heard += 1;
                    encode::puback(&mut ack, VERSION, Ack { id: publish.id, reason: 0 });
                }
                _ => {}
            }
            bytes.drain(..used);
            subscriber.write_all(&ack).unwrap();
        }
    }
    drop(publisher.join().unwrap());
    assert_eq!(peer.end().relayed, u64::from(MESSAGES));
}
