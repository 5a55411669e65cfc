//! Servers that announce more than any packet of the run has: the connection ends at the
//! announcement, and nothing is kept for what would follow.

use super::super::*;
use crate::control::Control;
use crate::drivers::conversation::options;
use crate::drivers::mqtt::Mqtt;
use crate::drivers::nats::Nats;
use crate::drivers::redis::Redis;
use crate::drivers::zenoh::Zenoh;
use pubmark_model::workload::Workload;
use pubmark_wire::zenoh::{
    DEFAULT_RESOLUTION, FrameChannel, InitTerms, KeyExpr, NodeKind, PATCH, TransportItem, VERSION,
};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

/// Maximum length for a run with payloads of 64 bytes.
const LONGEST: u64 = 64 + (384 << 10);
const CONNACK: &[u8] = b"\x20\x02\x00\x00";
const INFO: &[u8] = b"INFO {\"version\":\"2\"}\r\n";

/// Returns why a subscriber gives up on a server that sends `first` unasked, and one of
/// `answers` after each input.
fn refusal<S: Session>(scheme: &str, first: &'static [u8], answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(first).unwrap();
        for answer in answers {
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            stream.write_all(&answer).unwrap();
        }
        // Until the client has disconnected: it does not wait for what was announced.
        while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {}
    });
    let workload = Workload::of([("pairs", "1"), ("payload", "64B"), ("rate", "10"), ("duration", "1s")]).unwrap();
    let context = ThreadContext { workload, control: Control::default(), ahead_ns: 0 };
    let dial = Dial::tcp(vec![address]);
    let endpoint = Endpoint::parse(&format!("{scheme}://{address}")).unwrap();
    let assignment = Assignment {
        clients: vec![Client {
            role: Role::Subscriber,
            id: 0,
            flow: 0,
            bind: None,
            connect: Vec::new(),
            answers: None,
            hears_first: 0,
            hears_count: 1,
        }],
        options: options(endpoint.protocol, &[]),
        endpoint,
        dial,
        run: "t".into(),
        connect_per_s: 1_000.0,
        cpus: Vec::new(),
        spin_cores: 0.0,
        counter: Arc::default(),
    };
    let (reports, _kept) = channel();
    let error = run::<S>(assignment, &context, &reports, Notifier::new().unwrap()).err().unwrap().to_string();
    server.join().unwrap();
    error
}

fn assert_refused(error: &str, announced: u64) {
    let said =
        format!("the server announces a packet of {announced} bytes; packets of this run have at most {LONGEST}");
    assert!(error.contains(&said), "{error}");
}

#[test]
fn a_packet_that_is_longer_than_any_of_the_run_is_refused_at_its_header() {
    const MOST: &[u8] = b"\xff\xff\xff\x7f";
    let huge = |kind: u8| [&[kind], MOST].concat();
    assert_refused(&refusal::<Mqtt>("mqtt", b"", vec![huge(0x20)]), 268_435_460);
    for kind in [0x30, 0x90, 0xb0, 0x40] {
        assert_refused(&refusal::<Mqtt>("mqtt", b"", vec![CONNACK.to_vec(), huge(kind)]), 268_435_460);
    }
    let message = b"MSG a 1 60000000\r\n".to_vec();
    let beside = message.len() as u64 + 2;
    assert_refused(&refusal::<Nats>("nats", INFO, vec![b"PONG\r\n".to_vec(), message]), 60_000_000 + beside);
    let headed = b"HMSG a 1 12 50000000\r\n".to_vec();
    let beside = headed.len() as u64 + 2;
    assert_refused(&refusal::<Nats>("nats", INFO, vec![b"PONG\r\n".to_vec(), headed]), 50_000_000 + beside);
    let push = b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$400000000\r\n".to_vec();
    let beside = push.len() as u64 - "$400000000\r\n".len() as u64 + 2;
    assert_refused(&refusal::<Redis>("redis", b"", vec![b"%0\r\n".to_vec(), push]), 400_000_000 + beside);
}

/// None of its values is long, but there are endlessly many.
#[test]
fn an_item_of_many_values_is_refused_when_they_are_too_many_bytes() {
    let value = [b"$4000\r\n".as_slice(), &[b'x'; 4000], b"\r\n"].concat();
    let many = [b"*4096\r\n".as_slice(), &value.repeat(200)].concat();
    let error = refusal::<Redis>("redis", b"", vec![b"%0\r\n".to_vec(), many]);
    assert!(error.contains("the server announces a packet of "), "{error}");
}

/// None of its fragments is long, but together they are.
#[test]
fn a_message_in_too_many_fragments_is_refused() {
    let put = |item: TransportItem<'_>| {
        let mut out = Vec::new();
        item.put(&mut out);
        out
    };
    let terms = InitTerms {
        version: VERSION,
        kind: NodeKind::Router,
        id: b"r",
        resolution: DEFAULT_RESOLUTION,
        batch_bytes: u16::MAX,
        patch: PATCH,
    };
    let mut message = Vec::new();
    FrameChannel::new(true, 2).put_push(&mut message, KeyExpr::text(b"k"), 5, &[0; 900_000], u16::MAX);
    let answers =
        vec![put(TransportItem::InitAck(terms, b"c")), put(TransportItem::OpenAck { lease_ms: 1, first: 0 }), message];
    let error = refusal::<Zenoh>("zenoh", b"", answers);
    assert!(error.contains("the server announces a packet of "), "{error}");
}

#[test]
fn the_longest_packet_of_the_run_is_taken_however_it_arrives() {
    let bytes = LONGEST as usize - 5;
    let length = [(bytes % 128) | 128, (bytes / 128 % 128) | 128, bytes / (128 * 128)].map(|digit| digit as u8);
    let front = [&[0x30], &length[..]].concat();
    let mqtt = |announced: usize| {
        let mut partial = front.clone();
        partial.resize(announced, 0);
        let endpoint = Endpoint::parse("mqtt://h").unwrap();
        let options = options(endpoint.protocol, &[]);
        let terms = ClientSettings {
            endpoint: &endpoint,
            qos: 0,
            durable: false,
            reconnect: false,
            answer_ns: None,
            run: "t",
            seed: 0,
            payload_bytes: 64,
            headers: None,
            options: &options,
            clients: 1,
        };
        let workload = Workload::of([("pairs", "1"), ("payload", "64B")]).unwrap();
        let spec = topics::spec::<Mqtt>(&workload, "", "t", Role::Subscriber, 0);
        Mqtt::new(&Mqtt::settings(&terms).unwrap(), &spec).announced(&partial)
    };
    for arrived in [4, 5, 1_000, 100_000] {
        assert_eq!(mqtt(arrived), bytes as u64 + 4, "{arrived}");
    }
    assert_eq!((mqtt(1), mqtt(2), mqtt(3)), (1, 2, 3), "its length has not come");
}
