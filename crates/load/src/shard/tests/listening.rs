//! A listener outside a run, against servers of the test.

use super::*;
use crate::shard::listener::{ListenError, ListenTerms, ListenerEvent, listen};
use pubmark_wire::mqtt::{Connack, Publish, Version, encode};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

const V: Version = Version::V3_1_1;

/// Starts a server of one connection that answers the n-th packet with the n-th bytes, and returns all that it read
/// until the client closed. If `hangs_up`, it closes after its last answer.
fn server(answers: Vec<Vec<u8>>, hangs_up: bool) -> (SocketAddr, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let play = move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut all, mut buffer) = (Vec::new(), [0; 4_096]);
        for answer in answers {
            let count = stream.read(&mut buffer).unwrap();
            all.extend_from_slice(&buffer[..count]);
            stream.write_all(&answer).unwrap();
        }
        if !hangs_up {
            stream.read_to_end(&mut all).unwrap();
        }
        all
    };
    (at, thread::spawn(play))
}

/// Listens until `wanted` messages are heard. Returns topics and lengths.
fn hear(at: SocketAddr, wanted: usize) -> (Vec<(String, u64)>, Result<(), ListenError>) {
    let dial = Dial::tcp(vec![at]);
    let endpoint = Endpoint::parse(&format!("mqtt://user:secret@{at}")).unwrap();
    let options = options(Protocol::Mqtt, &[]);
    let stop = AtomicBool::new(false);
    let listening = ListenTerms {
        endpoint: &endpoint,
        options: &options,
        name: "pbt1",
        topic: None,
        duration_ns: Some(60 * SECOND),
        stop: &stop,
    };
    let (mut found, mut subscribed) = (Vec::new(), 0);
    let done = listen::<Mqtt>(&listening, dial, &mut |event| {
        match event {
            ListenerEvent::Subscribed(_) => subscribed += 1,
            ListenerEvent::Message { topic, bytes, .. } => {
                assert_eq!(subscribed, 1, "the subscription comes first");
                found.push((String::from_utf8_lossy(topic).into_owned(), bytes));
            }
            ListenerEvent::Idle => {}
        }
        if found.len() == wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (found, done)
}

fn publish(out: &mut Vec<u8>, topic: &str, bytes: usize, retain: bool) {
    let payload = vec![b'x'; bytes];
    let publish = Publish { retain, ..Publish::plain(Qos::AtMostOnce, 0, topic, &payload) };
    encode::publish(out, V, &publish).unwrap();
}

fn greeting() -> Vec<u8> {
    let mut out = Vec::new();
    encode::connack(&mut out, V, &Connack::new(0)).unwrap();
    out
}

#[test]
fn a_listener_hears_topics_and_lengths_and_parts_in_order() {
    let mut after = Vec::new();
    encode::suback(&mut after, V, 1, &[0], None).unwrap();
    publish(&mut after, "old", 9, true);
    publish(&mut after, "a/b", 12, false);
    publish(&mut after, "a/c", 0, false);
    publish(&mut after, "long", 300_000, false);
    let (at, server) = server(vec![greeting(), after], false);
    let (found, done) = hear(at, 3);
    assert!(done.is_ok(), "{done:?}");
    assert_eq!(found, [("a/b".to_owned(), 12), ("a/c".to_owned(), 0), ("long".to_owned(), 300_000)]);
    let sent = server.join().unwrap();
    assert!(sent.windows(3).any(|bytes| bytes == [b'#', 0, 0xe0]), "SUBSCRIBE to all, then DISCONNECT: {sent:?}");
}

#[test]
fn a_listener_says_why_it_cannot_go_on() {
    let mut refusal = Vec::new();
    encode::connack(&mut refusal, V, &Connack::new(5)).unwrap();
    let mut unsubscribed = Vec::new();
    encode::suback(&mut unsubscribed, V, 1, &[0x80], None).unwrap();
    for (answers, wanted) in [
        (vec![refusal], "refuses the connection"),
        (vec![greeting(), unsubscribed], "subscri"),
        (vec![greeting(), Vec::new()], "closed the connection"),
    ] {
        let (at, server) = server(answers, true);
        let (found, done) = hear(at, 1);
        let error = done.unwrap_err().to_string();
        assert!(found.is_empty() && error.contains(wanted) && !error.contains("secret"), "{error}");
        server.join().unwrap();
    }
}
