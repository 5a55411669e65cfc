//! Copied frames are equal to frames made one by one, and are recorded equally.

use super::*;
use crate::drivers::conversation::{settings, spec};
use crate::drivers::mqtt::Mqtt;
use crate::drivers::nats::Nats;
use crate::drivers::redis::Redis;
use crate::session::SubTopics;
use proptest::prelude::*;
use pubmark_model::header::{Header, MIN_LEN, pattern};
use pubmark_model::protocol::{PublisherTotal, Role};
use pubmark_model::workload::Workload;
use pubmark_wire::mqtt::server::{ServerPacket, decode};
use pubmark_wire::mqtt::{Qos, Version};

const START_NS: Ns = 1_000_000;

/// A run: messages, limits of gathering, and how time passes.
#[derive(Clone, Debug)]
struct Case {
    payload_bytes: usize,
    /// Messages of the window, if it is not limited by time.
    count: Option<u64>,
    warmup_us: u64,
    window_us: u64,
    most: u64,
    measure: Measure,
    /// Time between two readings of the clock, ns, used in turn.
    steps: Vec<Ns>,
    /// Writes, and whether the publisher waited before each.
    waits: Vec<bool>,
}

fn cases() -> impl Strategy<Value = Case> {
    let measure = (1usize..30_000, 1u32..=64);
    let steps = proptest::collection::vec(0u64..60_000, 1..8);
    let waits = proptest::collection::vec(any::<bool>(), 1..20);
    let edges = (proptest::option::of(1u64..900), 0u64..300, 1u64..600, 1u64..5_000);
    (MIN_LEN..700, edges, measure, steps, waits).prop_map(|(payload_bytes, edges, measure, steps, waits)| Case {
        payload_bytes,
        count: edges.0,
        warmup_us: edges.1,
        window_us: edges.2,
        most: edges.3,
        measure: Measure { bytes: measure.0, stride: measure.1, give_up_ns: None },
        steps,
        waits,
    })
}

impl Case {
    fn workload(&self) -> Workload {
        let (name, extent) = match self.count {
            Some(count) => ("count", count.to_string()),
            None => ("duration", format!("{}us", self.window_us)),
        };
        let workload = Workload::of([
            ("rate", "max".to_owned()),
            ("payload", format!("{}B", self.payload_bytes)),
            ("warmup", format!("{}us", self.warmup_us)),
            (name, extent),
        ]);
        workload.unwrap()
    }
}

/// Everything that a run leaves.
#[derive(Debug, PartialEq)]
struct Left {
    writes: Vec<(Vec<u8>, GatherEnd, Ns)>,
    total: PublisherTotal,
    sent: u64,
    slices: Vec<u64>,
    span: (Option<Ns>, Ns),
    looks: usize,
    exhausted: Option<String>,
}

fn talk<S: Session>(case: &Case, settings: &S::Settings, alike: bool) -> Left {
    let workload = case.workload();
    let window = Window::new(&workload, START_NS);
    let mut session = S::new(settings, &spec(Role::Publisher, "pubmark.r.7"));
    let mut client = Outgoing::new(&workload, 7, case.most);
    let mut recorder = SendRecorder::new(&workload, window);
    let (mut message, mut frames) = (pattern(case.payload_bytes), Frames::default());
    let (mut at, mut looks, mut writes) = (START_NS, 0, Vec::new());
    let tail_bytes = session.tail_bytes(settings).filter(|_| alike);
    assert_eq!(tail_bytes.is_some(), alike);
    for waits in &case.waits {
        if *waits {
            client.refused(at);
            at += 1;
        }
        let mut now = at;
        let clock = || {
            at += case.steps[looks % case.steps.len()];
            looks += 1;
            at
        };
        let gathering = Gathering {
            client: &mut client,
            recorder: &mut recorder,
            flight: None,
            window: &window,
            message: &mut message,
            frames: &mut frames,
        };
        let gathered = gathering.run((&mut session, settings), tail_bytes, case.measure, &mut now, clock);
        writes.push((frames.ready().to_vec(), gathered, now));
    }
    Left {
        writes,
        total: client.total(),
        sent: recorder.sent(),
        slices: recorder.sent_slices().to_vec(),
        span: recorder.send_span(),
        looks,
        exhausted: client.exhausted(),
    }
}

/// Runs both ways, checks that the results are equal, and returns them.
fn both<S: Session>(case: &Case, settings: &S::Settings) -> Result<Left, TestCaseError> {
    let (one_by_one, copied) = (talk::<S>(case, settings, false), talk::<S>(case, settings, true));
    prop_assert_eq!(&one_by_one, &copied);
    Ok(copied)
}

proptest! {
    #[test]
    fn copies_are_what_each_frame_would_have_been(case in cases()) {
        let mqtt = settings::<Mqtt>("mqtt://h", 0, false, &[]).unwrap();
        let left = both::<Mqtt>(&case, &mqtt)?;
        let mut headers = Vec::new();
        let body = pattern(case.payload_bytes);
        for (bytes, ..) in &left.writes {
            let mut rest = bytes.as_slice();
            while let Some((ServerPacket::Publish(publish), used)) = decode(rest, Version::V3_1_1).unwrap() {
                prop_assert_eq!((publish.topic, publish.qos), ("pubmark.r.7", Qos::AtMostOnce));
                let behind = header::body_at(case.payload_bytes);
                prop_assert_eq!(&publish.payload[behind..], &body[behind..]);
                headers.push(Header::read(publish.payload).unwrap());
                rest = &rest[used..];
            }
            prop_assert!(rest.is_empty());
        }
        let numbers: Vec<u64> = headers.iter().map(|header| header.sequence.into()).collect();
        prop_assert_eq!(numbers, (0..left.sent).collect::<Vec<_>>());
        prop_assert!(headers.iter().all(|header| header.publisher == 7));
        prop_assert!(headers.windows(2).all(|pair| pair[0].intended_ns <= pair[1].intended_ns));
        let window = Window::new(&case.workload(), START_NS);
        let within = headers.iter().filter(|header| window.holds(header.intended_ns)).count() as u64;
        prop_assert_eq!(left.total.offered, within);
        prop_assert_eq!(left.total.window_end - left.total.window_first, within);
        prop_assert_eq!(left.slices.iter().sum::<u64>(), within);
        if let Some(count) = case.count {
            prop_assert!(within <= count);
        }

        both::<Mqtt>(&case, &settings::<Mqtt>("mqtt://h", 0, false, &[("mqtt_version", "5")]).unwrap())?;
        both::<Nats>(&case, &settings::<Nats>("nats://h", 0, false, &[]).unwrap())?;
        both::<Redis>(&case, &settings::<Redis>("redis://h", 0, false, &[]).unwrap())?;
    }
}

#[test]
fn frames_that_differ_in_more_are_no_copies() {
    let settings_of = |qos| settings::<Mqtt>("mqtt://h", qos, false, &[]).unwrap();
    let mut leaves = spec(Role::Publisher, "a");
    let acknowledged = Mqtt::new(&settings_of(1), &leaves);
    assert_eq!(acknowledged.tail_bytes(&settings_of(1)), None);
    leaves.leaves = SubTopics::Turns(10);
    assert_eq!(Mqtt::new(&settings_of(0), &leaves).tail_bytes(&settings_of(0)), None);
    let nats = settings::<Nats>("nats://h", 0, false, &[]).unwrap();
    assert_eq!(Nats::new(&nats, &leaves).tail_bytes(&nats), None);
    let redis = settings::<Redis>("redis://h", 0, false, &[]).unwrap();
    assert_eq!(Redis::new(&redis, &leaves).tail_bytes(&redis), None);
}
