//! The cost of recording one message in histograms and ledger, with the functions that
//! the event loop calls, without socket or clock.
//!
//! `cargo bench -p pubmark-load --bench recording`

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use pubmark_load::publisher::Publisher;
use pubmark_load::subscriber::{IncomingStreams, ReceiveRecorder};
use pubmark_load::window::Window;
use pubmark_model::header::{Header, pattern};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::Workload;
use pubmark_stats::Histogram;

fn main() {
    divan::main();
}

/// Messages between two messages of one publisher. 1,000 streams take turns, so that no
/// stream's state is in the nearest cache only because it was used just before.
const STREAMS: u32 = 1_000;
const MESSAGES: u32 = 100_000;

fn workload(verify: &str) -> Workload {
    let usual = [("pairs", "1000"), ("rate", "50"), ("duration", "60s"), ("warmup", "0s"), ("payload", "64B")];
    Workload::of(usual.into_iter().chain([("verify", verify)])).expect("a legal workload")
}

/// Returns a latency from 20 µs to 4 ms, as scattered as real ones.
fn latency(number: u32) -> Ns {
    let mixed = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    20_000 + (mixed * mixed) % (4 * MILLISECOND)
}

/// Measures the arrival of a message: parse, check, and record in the ledger, three
/// histograms and the series. `verify` selects whether its body is checked.
#[divan::bench(args = ["header", "full"])]
fn receive(bencher: Bencher, verify: &str) {
    let workload = workload(verify);
    let window = Window::new(&workload, SECOND);
    bencher
        .counter(ItemsCount::new(MESSAGES))
        .with_inputs(|| {
            let mut recorder = ReceiveRecorder::new(&workload, 1);
            recorder.start(window);
            let clients: Vec<IncomingStreams> =
                (0..STREAMS).map(|id| IncomingStreams::new(&workload, id..id + 1)).collect();
            (recorder, clients, pattern(64))
        })
        .bench_local_refs(|(recorder, clients, message)| {
            for number in 0..MESSAGES {
                let (publisher, sequence) = (number % STREAMS, number / STREAMS);
                let intended_ns = SECOND + u64::from(number) * 20_000;
                let (sent_ns, free_ns) = (Some(intended_ns + 9_000), Some(intended_ns));
                let header = Header { intended_ns, publisher, sequence, sent_ns, free_ns };
                let _ = header.write(message);
                clients[publisher as usize].arrived(recorder, black_box(message), intended_ns + latency(number));
            }
        });
}

/// Measures the sending of a message: due time, stamp, and record in two histograms and
/// the series.
#[divan::bench]
fn send(bencher: Bencher) {
    send_of(bencher, &workload("header"));
}

/// Measures the sending of a message whose size varies.
#[divan::bench(args = ["uniform 36B to 92B", "lognormal p50 60B p99 200B max 1KiB"])]
fn send_varied(bencher: Bencher, payload: &str) {
    let usual = [("pairs", "1000"), ("rate", "50"), ("duration", "60s"), ("warmup", "0s"), ("payload", payload)];
    let workload = Workload::of(usual.into_iter().chain([("verify", "header")])).expect("a legal workload");
    send_of(bencher, &workload);
}

fn send_of(bencher: Bencher, workload: &Workload) {
    let window = Window::new(workload, SECOND);
    bencher
        .counter(ItemsCount::new(MESSAGES))
        .with_inputs(|| -> Vec<Publisher> { (0..8).map(|id| Publisher::new(workload, id, window, 1 << 20)).collect() })
        .bench_local_refs(|publishers| {
            for number in 0..MESSAGES {
                let publisher = &mut publishers[number as usize % 8];
                let now = SECOND + u64::from(number / 8 + 1) * 20 * MILLISECOND + latency(number);
                black_box(publisher.next(now));
                black_box(publisher.message(now));
                publisher.accepted(now, now + 5_000);
            }
        });
}

/// Measures the reference: one value recorded in one histogram.
#[divan::bench]
fn one_histogram(bencher: Bencher) {
    bencher.counter(ItemsCount::new(MESSAGES)).with_inputs(Histogram::latency).bench_local_refs(|histogram| {
        for number in 0..MESSAGES {
            histogram.record(black_box(latency(number)));
        }
    });
}
