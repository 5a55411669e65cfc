use super::*;
use pubmark_wire::mqtt::encode::{connect, publish};
use pubmark_wire::mqtt::server::ConnectPacket;
use pubmark_wire::mqtt::{Publish, Qos, Version};
use pubmark_wire::{nats, resp};

/// A capture that a test writes, packet by packet.
struct Capture {
    bytes: Vec<u8>,
    link: u32,
}

/// One side of a connection.
struct Client {
    port: u16,
    to: u16,
    sequence: u32,
    is_v6: bool,
}

const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 17;
const RST: u8 = 4;

impl Client {
    fn new(port: u16, to: u16) -> Client {
        Client { port, to, sequence: u32::MAX - 5, is_v6: port.is_multiple_of(2) }
    }

    /// Returns a packet of TCP, and counts its bytes.
    fn packet(&mut self, flags: u8, payload: &[u8]) -> Vec<u8> {
        let packet = tcp((self.port, self.to), self.sequence, flags, payload, self.is_v6);
        self.sequence = self.sequence.wrapping_add(payload.len() as u32 + u32::from(flags & SYN > 0));
        packet
    }
}

/// Returns a packet of IP with a segment.
fn tcp((from, to): (u16, u16), sequence: u32, flags: u8, payload: &[u8], is_v6: bool) -> Vec<u8> {
    let mut segment = Vec::new();
    segment.extend(from.to_be_bytes());
    segment.extend(to.to_be_bytes());
    segment.extend(sequence.to_be_bytes());
    segment.extend([0, 0, 0, 0, 5 << 4, flags, 255, 255, 0, 0, 0, 0]);
    segment.extend(payload);
    let length = segment.len() as u16;
    let mut packet = if is_v6 {
        let mut head = vec![0x60, 0, 0, 0];
        head.extend(length.to_be_bytes());
        head.extend([6, 64]);
        head.extend([[0_u8; 15].as_slice(), &[1]].concat());
        head.extend([[0_u8; 15].as_slice(), &[1]].concat());
        head
    } else {
        let mut head = vec![0x45, 0];
        head.extend((length + 20).to_be_bytes());
        head.extend([0, 0, 0, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        head
    };
    packet.extend(segment);
    packet
}

impl Capture {
    fn new(link: u32) -> Capture {
        let mut bytes = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
        bytes.extend(link.to_le_bytes());
        Capture { bytes, link }
    }

    /// Adds a packet at this time.
    fn add(&mut self, at_ns: u64, packet: &[u8]) {
        let is_v6 = packet[0] >> 4 == 6;
        let kind: [u8; 2] = if is_v6 { [0x86, 0xdd] } else { [8, 0] };
        let mut frame = match self.link {
            0 => vec![if is_v6 { 30 } else { 2 }, 0, 0, 0],
            1 => [&[1_u8; 12][..], &kind].concat(),
            113 => [&[0_u8; 14][..], &kind].concat(),
            276 => [&kind[..], &[0; 18]].concat(),
            _ => Vec::new(),
        };
        frame.extend(packet);
        if self.link == 1 && frame.len() < 60 {
            frame.resize(60, 0);
        }
        for number in [at_ns / 1_000_000_000, at_ns % 1_000_000_000, frame.len() as u64, frame.len() as u64] {
            self.bytes.extend((number as u32).to_le_bytes());
        }
        self.bytes.extend(frame);
    }
}

type Found = (u64, String, u64);

fn read(bytes: &[u8]) -> Result<(Vec<Found>, Vec<String>), String> {
    let mut reader = PcapReader::new("c.pcap");
    let mut rows = Vec::new();
    let read = reader.read_all(bytes, |row| {
        rows.push((row.time_ns, row.flow.to_string(), row.bytes));
        Ok::<(), TraceError>(())
    });
    read.map_err(|error| error.to_string())?;
    Ok((rows, reader.remarks()))
}

fn mqtt_connect(version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    connect(&mut out, version, &ConnectPacket::clean("c")).unwrap();
    out
}

fn mqtt_publish(version: Version, topic: &str, bytes: usize, alias: Option<u16>) -> Vec<u8> {
    let payload = vec![7; bytes];
    let mut out = Vec::new();
    publish(&mut out, version, &Publish { alias, ..Publish::plain(Qos::AtLeastOnce, 9, topic, &payload) }).unwrap();
    out
}

fn nats_publish(subject: &str, bytes: usize) -> Vec<u8> {
    let (payload, mut out) = (vec![b'x'; bytes], Vec::new());
    nats::FromClient::Publish { subject: subject.as_bytes(), reply: None, headers: b"", payload: &payload }
        .put(&mut out);
    out
}

const NATS_CONNECT: &[u8] = b"CONNECT {}\r\nPING\r\n";
const S: u64 = 1_000_000_000;

#[test]
fn what_clients_publish_is_found_on_every_link() {
    for link in [0, 1, 101, 113, 276] {
        let mut capture = Capture::new(link);
        let [mut three, mut five, mut nats, mut redis] =
            [1_001, 1_002, 1_003, 1_004].map(|port| Client::new(port, 1_883));
        capture.add(S, &three.packet(SYN, b""));
        capture.add(S, &tcp((1_883, 1_001), 7, SYN | ACK, b"", false));
        capture.add(S, &five.packet(SYN, b""));
        capture.add(S, &nats.packet(SYN, b""));
        capture.add(S, &redis.packet(SYN, b""));
        capture.add(S, &three.packet(ACK, &mqtt_connect(Version::V3_1_1)));
        capture.add(S, &five.packet(ACK, &mqtt_connect(Version::V5)));
        // Two messages in one packet, and one in two.
        let both =
            [mqtt_publish(Version::V3_1_1, "a/b", 10, None), mqtt_publish(Version::V3_1_1, "c", 0, None)].concat();
        capture.add(2 * S, &three.packet(ACK, &both));
        let long = mqtt_publish(Version::V3_1_1, "long", 3_000, None);
        capture.add(3 * S, &three.packet(ACK, &long[..1_000]));
        capture.add(4 * S, &three.packet(ACK, &long[1_000..]));
        capture.add(5 * S, &five.packet(ACK, &mqtt_publish(Version::V5, "d", 20, Some(1))));
        capture.add(6 * S, &five.packet(ACK, &mqtt_publish(Version::V5, "", 21, Some(1))));
        // A server's message to a subscriber is not published by a client.
        capture.add(6 * S, &tcp((1_883, 1_001), 8, ACK, &mqtt_publish(Version::V3_1_1, "a/b", 10, None), false));
        capture.add(7 * S, &nats.packet(ACK, NATS_CONNECT));
        capture.add(8 * S, &nats.packet(ACK, &nats_publish("n.s", 30)));
        let mut command = Vec::new();
        resp::put_command(&mut command, &[b"SET", b"k", b"v"]);
        resp::put_command(&mut command, &[b"publish", b"ch", b"12345"]);
        capture.add(9 * S + 5, &redis.packet(ACK, &command));
        capture.add(9 * S + 5, &redis.packet(FIN, b""));
        let wanted = [
            (2 * S, "a/b", 10),
            (2 * S, "c", 0),
            (4 * S, "long", 3_000),
            (5 * S, "d", 20),
            (6 * S, "d", 21),
            (8 * S, "n.s", 30),
            (9 * S + 5, "ch", 5),
        ];
        let wanted = wanted.map(|(at_ns, topic, bytes)| (at_ns, topic.to_owned(), bytes)).to_vec();
        assert_eq!(read(&capture.bytes), Ok((wanted, Vec::new())), "{link}");
    }
}

/// The reader puts repeated and reordered packets in order, and reads a connection up to its first lost packet.
#[test]
fn gaps_are_counted_and_never_guessed() {
    let mut capture = Capture::new(101);
    let [mut reordered, mut incomplete, mut open, mut tls, mut web, mut wrong] =
        [2_001, 2_002, 2_003, 2_004, 2_005, 2_006].map(|port| Client::new(port, 4_222));
    for client in [&mut reordered, &mut incomplete, &mut tls, &mut web, &mut wrong] {
        capture.add(S, &client.packet(SYN, b""));
    }
    capture.add(S, &reordered.packet(ACK, NATS_CONNECT));
    let first = reordered.packet(ACK, &nats_publish("one", 8));
    let second = reordered.packet(ACK, &nats_publish("two", 9));
    capture.add(2 * S, &second);
    capture.add(3 * S, &reordered.packet(FIN, b""));
    capture.add(4 * S, &first);
    capture.add(4 * S, &first);
    capture.add(5 * S, &incomplete.packet(ACK, NATS_CONNECT));
    capture.add(5 * S, &incomplete.packet(ACK, &nats_publish("three", 10)));
    let _ = incomplete.packet(ACK, &nats_publish("lost", 10));
    let after = nats_publish("four", 10);
    capture.add(6 * S, &incomplete.packet(ACK, &after));
    capture.add(6 * S, &open.packet(ACK, &nats_publish("five", 10)));
    capture.add(6 * S, &open.packet(ACK, &nats_publish("five", 10)));
    capture.add(6 * S, &tls.packet(ACK, &[0x16, 3, 1, 2, 0]));
    capture.add(6 * S, &web.packet(ACK, b"GET / HTTP/1.1\r\n\r\n"));
    capture.add(6 * S, &wrong.packet(ACK, NATS_CONNECT));
    capture.add(6 * S, &wrong.packet(ACK, b"HOW DO YOU DO\r\n"));
    capture.add(5 * S, &web.packet(RST, b""));
    let wanted = [(4 * S, "one", 8), (4 * S, "two", 9), (5 * S, "three", 10)];
    let wanted = wanted.map(|(at_ns, topic, bytes)| (at_ns, topic.to_owned(), bytes)).to_vec();
    let (rows, remarks) = read(&capture.bytes).unwrap();
    assert_eq!(rows, wanted);
    let lost = format!("left out ({} bytes)", after.len());
    let wanted = [
        "1 connections began before the capture",
        &lost,
        "1 connections are encrypted",
        "1 connections ended in bytes that are no message",
        "1 connections carry other protocols",
        "1 packets are earlier",
    ];
    assert_eq!(remarks.len(), wanted.len(), "{remarks:?}");
    assert!(remarks.iter().zip(wanted).all(|(remark, wanted)| remark.contains(wanted)), "{remarks:?}");
}

#[test]
fn what_is_no_capture_is_refused() {
    let mut capture = Capture::new(1);
    capture.add(S, &Client::new(1, 2).packet(SYN, b""));
    let mut large = Capture::new(1);
    large.bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
    for (bytes, wanted) in [
        (&b""[..], "c.pcap: the file is empty"),
        (&capture.bytes[..20], "c.pcap: the file ends within packet 1"),
        (&capture.bytes[..capture.bytes.len() - 3], "c.pcap: the file ends within packet 2"),
        (&[0x0a, 0x0d, 0x0d, 0x0a].repeat(6), "a capture in pcapng. Convert it with editcap"),
        (&[b'x'; 24], "not a capture of tcpdump"),
        (&Capture::new(105).bytes, "the link type 105 is not supported"),
        (&large.bytes, "packet 1 has 16777216 bytes"),
        (&Capture::new(1).bytes, "has no messages of MQTT, NATS or Redis. It has 0 packets"),
    ] {
        let error = read(bytes).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
}

proptest::proptest! {
    /// Whatever the bytes are, reading ends.
    #[test]
    fn no_bytes_break_it(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400), link in 0_u32..2) {
        let mut capture = Capture::new(link);
        let mut client = Client::new(1_001, 1_883);
        capture.add(S, &client.packet(SYN, b""));
        for chunk in bytes.chunks(50) {
            capture.add(S, &client.packet(ACK, chunk));
        }
        capture.bytes.extend(&bytes);
        let _ = read(&capture.bytes);
        let _ = read(&bytes);
    }
}
