//! A bare loop instead of the instrument, over NATS: its error is the kernel's and the machine's part of the
//! instrument's error.

use super::agents::processors;
use super::compare::{PERCENTILES, Reported};
use super::taken::{Taken, Watch, Whose};
use crate::support::PATIENCE;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use pubmark_host::clock::now;
use pubmark_model::header::{Header, pattern};
use pubmark_model::units::Ns;
use pubmark_stats::Histogram;
use pubmark_wire::nats::{FromClient, FromServer};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const MS: Ns = 1_000_000;
/// Time before a message is due at which a publisher stops sleeping.
const MARGIN: Ns = 100_000;

/// Binds the calling thread to these processors.
fn pin(cpus: &[usize]) {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu).unwrap());
    sched_setaffinity(Pid::from_raw(0), &set).unwrap();
}

fn connect(endpoint: &str, words: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(endpoint.split_once("://").unwrap().1).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(words).unwrap();
    stream
}

/// Plays ten publishers of 100 messages per second each on one connection, from `start_ns` on, each message at its due
/// time.
fn publish(endpoint: &str, start_ns: Ns, messages: u32) {
    let mut stream = connect(endpoint, b"CONNECT {}\r\n");
    let (mut payload, mut bytes) = (pattern(256), Vec::new());
    for number in 0..messages {
        let intended_ns = start_ns + Ns::from(number) * MS;
        while now() + MARGIN < intended_ns {
            std::thread::sleep(Duration::from_nanos(intended_ns - MARGIN - now().min(intended_ns - MARGIN)));
        }
        while now() < intended_ns {
            std::thread::yield_now();
        }
        let (sent_ns, free_ns) = (Some(now()), Some(intended_ns));
        let header = Header { intended_ns, publisher: number % 10, sequence: number / 10, sent_ns, free_ns };
        assert!(header.write(&mut payload));
        bytes.clear();
        FromClient::Publish { subject: b"t", reply: None, headers: &[], payload: &payload }.put(&mut bytes);
        stream.write_all(&bytes).unwrap();
    }
}

/// Returns the latencies of the messages that are due in the window, from a reader that spins.
pub fn play(endpoint: &str, warmup_ms: Ns, window_ms: Ns) -> (Reported, Taken) {
    std::thread::scope(|scope| scope.spawn(|| read(endpoint, warmup_ms, window_ms)).join().unwrap())
}

fn read(endpoint: &str, warmup_ms: Ns, window_ms: Ns) -> (Reported, Taken) {
    let (own, others) = processors();
    pin(if own.is_empty() { &others } else { &own });
    let mut stream = connect(endpoint, b"CONNECT {}\r\nSUB t 1\r\n");
    stream.set_nonblocking(true).unwrap();
    let start_ns = now() + 200 * MS;
    let (from_ns, to) = (start_ns + warmup_ms * MS, endpoint.to_owned());
    let publisher = std::thread::spawn(move || {
        pin(&others);
        publish(&to, start_ns, (warmup_ms + window_ms) as u32);
    });
    let watch = Watch::start(Whose::Mine, own);
    let (mut bytes, mut buffer, mut latency) = (Vec::new(), vec![0; 64 << 10], Histogram::latency());
    let deadline = Instant::now() + PATIENCE;
    while latency.count() < window_ms {
        match stream.read(&mut buffer) {
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                assert!(Instant::now() < deadline, "only {} of {window_ms} messages came", latency.count());
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        let (arrived_ns, mut at) = (now(), 0);
        while let Some((item, used)) = FromServer::decode(&bytes[at..]).unwrap() {
            if let FromServer::Message { payload, .. } = item
                && let Some(header) = Header::read(payload)
                && header.intended_ns >= from_ns
            {
                latency.record(arrived_ns - header.intended_ns - header.own_lag_ns().unwrap());
            }
            at += used;
        }
        bytes.drain(..at);
    }
    publisher.join().unwrap();
    (PERCENTILES.map(|(_, share)| latency.value_at(share)), watch.end())
}
