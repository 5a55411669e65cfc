//! What arrives at a subscriber: any bytes, and any messages at any times. It
//! never panics, and its counts add up.
//!
//! The input is a script: a byte for the workload, then a byte for each
//! arrival, some with bytes of their own after it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_load::subscriber::{Subscriber, Totals};
use pubmark_load::window::Window;
use pubmark_model::header::{END, Header, PROBE, pattern};
use pubmark_model::protocol::PublisherTotal;
use pubmark_model::workload::Workload;

const START: u64 = 1_000_000_000;
const PUBLISHERS: usize = 3;
const PAYLOAD: usize = 40;
/// From one message of a publisher to the next, and from sending to arrival.
const GAP: u64 = 100_000;
const DELAY: u64 = 30_000;

fn workload(flags: u8) -> Workload {
    let word = |bit: u8, no, yes| if flags >> bit & 1 == 0 { no } else { yes };
    let workload = Workload::of([
        ("pattern", word(0, "fan-in", "pipeline")),
        ("rate", word(1, "1000", "max")),
        ("verify", word(2, "header", "full")),
        ("publishers", "3"),
        ("payload", "40"),
        ("warmup", "1ms"),
        ("duration", "40ms"),
    ]);
    workload.unwrap()
}

fn message(publisher: u32, sequence: u32, intended_ns: u64) -> Vec<u8> {
    let mut message = pattern(PAYLOAD);
    let (sent_ns, free_ns) = (Some(intended_ns.saturating_add(5_000)), Some(intended_ns));
    let header = Header { intended_ns, publisher, sequence, sent_ns, free_ns };
    assert!(header.write(&mut message));
    assert_eq!(Header::read(&message), Some(header));
    message
}

/// The rest of the input.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number<const N: usize>(&mut self) -> u64 {
        (0..N).fold(0, |number, _| number << 8 | u64::from(self.byte().unwrap_or_default()))
    }

    /// Plays one arrival; false at the end.
    fn play(&mut self, subscriber: &mut Subscriber, next: &mut [u32; PUBLISHERS]) -> bool {
        let Some(op) = self.byte() else { return false };
        let slot = usize::from(op >> 4) % PUBLISHERS;
        let due = |sequence: u32| START + u64::from(sequence) * GAP;
        let mut arrive = |bytes: &[u8], now: u64| {
            if let Some(header) = Header::read(bytes) {
                let mut copy = bytes.to_vec();
                assert!(header.write(&mut copy) && copy == bytes, "what is read is what is there");
            }
            subscriber.arrived(bytes, now);
        };
        match op & 15 {
            0..=5 => {
                let sequence = next[slot];
                next[slot] += 1;
                arrive(&message(slot as u32, sequence, due(sequence)), due(sequence) + DELAY * u64::from(op & 15));
            }
            6 => next[slot] += 1 + self.number::<1>() as u32,
            7 => {
                let sequence = next[slot].saturating_sub(self.number::<1>() as u32);
                arrive(&message(slot as u32, sequence, due(sequence)), due(next[slot]));
            }
            8 => {
                let sequence = next[slot];
                let age = self.number::<2>() as i16;
                arrive(
                    &message(slot as u32, sequence, due(sequence)),
                    due(sequence).saturating_add_signed(i64::from(age) * 10_000),
                );
            }
            9 => arrive(&message(slot as u32, PROBE, START), START),
            10 => arrive(&message(slot as u32, END, START), due(next[slot])),
            11 => {
                let sequence = next[slot];
                let mut bytes = message(slot as u32, sequence, due(sequence));
                bytes[self.number::<1>() as usize % PAYLOAD] ^= 1 << (op >> 5);
                arrive(&bytes, due(sequence) + DELAY);
            }
            12 => arrive(&message(slot as u32, 0, START)[..self.number::<1>() as usize % PAYLOAD], START),
            // A clock of 146 years: far from where sums of instants overflow.
            13 => {
                let (publisher, sequence) = (self.number::<4>() as u32, self.number::<4>() as u32);
                arrive(&message(publisher, sequence, self.number::<8>()), self.number::<8>() >> 2);
            }
            14 => {
                let (sequence, intended_ns) = (self.number::<3>() as u32, START + self.number::<4>());
                arrive(&message(slot as u32, sequence, intended_ns), intended_ns + DELAY);
            }
            _ => {
                let length = (self.number::<1>() as usize).min(self.0.len());
                let (bytes, rest) = self.0.split_at(length);
                self.0 = rest;
                arrive(bytes, due(next[slot]));
            }
        }
        true
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = Script(input);
    let flags = script.byte().unwrap_or_default();
    let workload = workload(flags);
    let mut subscriber = Subscriber::new(&workload, 0..PUBLISHERS as u32);
    let mut next = [0; PUBLISHERS];
    for _ in 0..flags >> 4 {
        script.play(&mut subscriber, &mut next);
    }
    assert_eq!(subscriber.recorder().received(), 0, "nothing counts before the start");
    subscriber.start(Window::new(&workload, START));
    let (first, end) = (script.number::<1>(), script.number::<2>());
    while script.play(&mut subscriber, &mut next) {}
    let totals: Vec<PublisherTotal> = (0..)
        .zip(next)
        .map(|(publisher, next)| PublisherTotal {
            publisher,
            sent: u64::from(next),
            window_first: first,
            window_end: end,
            offered: end,
        })
        .collect();
    let totals = Totals::new(&totals);
    let _ = (subscriber.complete(&totals, true), subscriber.complete(&totals, false));
    subscriber.close(&totals);
    assert_eq!(subscriber.incoming().unheard().is_empty(), subscriber.heard_all());

    let (incoming, mut recorder) = subscriber.into_parts();
    let (counts, received) = (recorder.counts(), recorder.received());
    let distinct = incoming.distinct();
    let counted = recorder.times().as_ref().map(|times| times.as_ref().map_or(0, |times| times.count()));
    let (latency, intended, service) = (counted.latency, counted.intended_latency, counted.service_latency);
    let known_damage = counts.corrupted - counts.unidentified;
    assert!(workload.competing() || counts.delivered <= counts.expected, "{counts:?}");
    assert!(counts.delivered <= distinct && distinct + counts.duplicated <= received, "{counts:?}");
    assert!(counts.reordered <= distinct, "{counts:?}");
    assert!(latency + counts.negative + known_damage <= distinct, "{counts:?}");
    assert!(intended == latency && service <= latency && recorder.jitter().1 <= latency);
    let (arrived, last) = recorder.arrivals();
    let (slices, histograms) = recorder.slices();
    assert_eq!(slices.iter().sum::<u64>(), arrived);
    assert!(histograms.iter().map(|slice| slice.count()).sum::<u64>() <= latency);
    assert!(arrived <= distinct && (last.is_none() || distinct > 0));
    assert_eq!(recorder.stalls().longest_ns > 0, recorder.stalls().count > 0);
    let missing: u64 = incoming.missing(&totals).map(|range| range.end - range.first).sum();
    assert!(workload.competing() || missing == counts.expected - counts.delivered, "{counts:?}");
    let marks: u64 = incoming.into_seen().map(|(_, seen)| seen.count(0, seen.highest())).sum();
    assert_eq!(marks, distinct);
});
