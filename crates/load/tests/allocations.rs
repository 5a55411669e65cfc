//! No message costs an allocation: whole event loops are played on real sockets, with few
//! messages and with many, and allocate equally often.

#[path = "allocations/kafka.rs"]
mod kafka;

use allocation_counter::{AllocationInfo, measure};
use pubmark_load::clock;
use pubmark_load::control::{Control, Counter, ThreadContext, ThreadReport};
use pubmark_load::drivers::mqtt::Mqtt;
use pubmark_load::outcome::ThreadOutcome;
use pubmark_load::session::Session;
use pubmark_load::shard::{Assignment, Dial, Notifier, run};
use pubmark_load::subscriber::Totals;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::header::{END, Header, PROBE, pattern};
use pubmark_model::options::Options;
use pubmark_model::profile::Profile;
use pubmark_model::profile::trace::{TraceRate, TraceRows};
use pubmark_model::protocol::{Client, PublisherTotal, Role};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::{Rate, Workload};
use pubmark_wire::mqtt::server::{self, ServerPacket};
use pubmark_wire::mqtt::{Ack, Connack, Publish, Qos, Version, encode};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Allocations for the growth of what doubles: buffers, rings, ledgers. Their number is
/// the logarithm of the number of messages.
const GROWTH_STEPS: u64 = 40;
const PATIENCE: Duration = Duration::from_secs(60);

fn workload(pairs: &[(&str, &str)]) -> Workload {
    Workload::of(pairs.iter().copied()).unwrap()
}

/// A loop of one role that is being played; `Receiver` gets its reports.
struct Played {
    context: Arc<ThreadContext>,
    notifier: Notifier,
    reports: Receiver<ThreadReport>,
    counter: Arc<Counter>,
    thread: JoinHandle<(AllocationInfo, ThreadOutcome)>,
}

impl Played {
    fn start<S: Session>(workload: &Workload, role: Role, to: SocketAddr, options: Options) -> Played {
        let context = Arc::new(ThreadContext { workload: workload.clone(), control: Control::default(), ahead_ns: 0 });
        let (notifier, (sender, reports)) = (Notifier::new().unwrap(), channel());
        let count = if role == Role::Publisher { workload.publishers } else { workload.subscribers };
        let client = |id| Client {
            role,
            id,
            flow: 0,
            bind: None,
            connect: Vec::new(),
            answers: None,
            hears_first: id % workload.publishers,
            hears_count: 1,
        };
        let counter = Arc::new(Counter::default());
        let assignment = Assignment {
            clients: (0..count).map(client).collect(),
            endpoint: Endpoint::parse(&format!("mqtt://{to}")).unwrap(),
            dial: Dial::tcp(vec![to]),
            run: "r".into(),
            connect_per_s: 1e6,
            options,
            cpus: Vec::new(),
            spin_cores: 0.0,
            counter: counter.clone(),
        };
        let (theirs, ours) = (context.clone(), notifier.clone());
        let thread = std::thread::spawn(move || {
            let mut outcome = None;
            let used = measure(|| outcome = Some(run::<S>(assignment, &theirs, &sender, ours)));
            (used, outcome.unwrap().unwrap())
        });
        Played { context, notifier, reports, counter, thread }
    }

    fn await_report(&self, what: &str, mut wanted: impl FnMut(ThreadReport) -> bool) {
        while !wanted(self.reports.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no report: {what}"))) {}
    }

    /// Lets the window begin at this instant.
    fn begin(&self, start_ns: Ns) {
        self.context.control.start(start_ns);
        self.notifier.notify();
    }

    /// Waits until the publishers have sent everything. Returns how many messages.
    fn sent(&self) -> u64 {
        let mut sent = 0;
        self.await_report("sent", |report| match report {
            ThreadReport::Sent(totals) => {
                sent = totals.iter().map(|total: &PublisherTotal| total.sent).sum();
                true
            }
            _ => false,
        });
        sent
    }

    /// Drains for so long at most, and ends.
    fn drained(self, totals: Totals, within: Ns) -> (AllocationInfo, ThreadOutcome) {
        self.context.control.drain(totals, clock::now() + within);
        self.notifier.notify();
        self.await_report("drained", |report| matches!(report, ThreadReport::Drained));
        self.end()
    }

    /// Returns the allocations of the whole life of the loop.
    fn end(self) -> (AllocationInfo, ThreadOutcome) {
        self.context.control.stop();
        self.notifier.notify();
        self.thread.join().unwrap()
    }
}

/// Reads from a connection until it ends. `answer` takes whole items of what has arrived, and returns their bytes; `None`
/// ends the conversation. Answers are written in pieces of this many bytes.
fn serve(mut stream: TcpStream, piece: usize, mut answer: impl FnMut(&[u8], &mut Vec<u8>) -> Option<usize>) {
    let (mut bytes, mut buffer, mut out) = (Vec::new(), vec![0; 1 << 16], Vec::new());
    loop {
        let count = stream.read(&mut buffer).unwrap_or(0);
        if count == 0 {
            return;
        }
        bytes.extend_from_slice(&buffer[..count]);
        out.clear();
        let done = answer(&bytes, &mut out);
        if out.chunks(piece).any(|piece| stream.write_all(piece).is_err()) {
            return;
        }
        let Some(done) = done else { return };
        bytes.drain(..done);
    }
}

/// Accepts a connection and its CONNECT, and passes on each further packet.
fn converse(stream: TcpStream, mut answer: impl FnMut(ServerPacket<'_>, &mut Vec<u8>) -> bool) {
    let mut greeted = false;
    serve(stream, usize::MAX, |bytes, out| {
        let mut done = 0;
        if !greeted && let Some((version, _, used)) = server::connect(bytes).unwrap() {
            (done, greeted) = (used, true);
            encode::connack(out, version, &Connack::new(0)).unwrap();
        }
        while greeted && let Some((packet, used)) = server::decode(&bytes[done..], Version::V3_1_1).unwrap() {
            if !answer(packet, out) {
                return None;
            }
            done += used;
        }
        Some(done)
    });
}

/// Returns the rate of a trace of half a second, with sizes up to 1 KiB, for two publishers that each send this many messages a
/// second.
fn trace(per_s: u64) -> Rate {
    let mut rows = TraceRows::new("t.csv", None);
    (0..per_s).for_each(|row| rows.push(row * SECOND / 2 / per_s, 64 + row as u32 % 960, row + 2));
    Rate::Due(Profile::Trace(TraceRate::new(Arc::new(rows), 1_000, 2, true)))
}

/// Returns the messages sent and the allocations made by two publishers at this rate.
fn publish(rate: &str, qos: &str, more: (&str, &str)) -> (u64, u64) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                converse(stream, |packet, out| {
                    if let ServerPacket::Publish(Publish { qos: Qos::AtLeastOnce, id, .. }) = packet {
                        encode::puback(out, Version::V3_1_1, Ack { id, reason: 0 });
                    }
                    true
                });
            });
        }
    });
    let per_s = rate.strip_prefix("trace ");
    let rate = ("rate", per_s.unwrap_or(rate));
    let mut workload = workload(&[("pairs", "2"), rate, ("qos", qos), ("warmup", "0s"), ("duration", "500ms"), more]);
    if let Some(per_s) = per_s {
        workload.rate = trace(per_s.parse().unwrap());
    }
    let options: Options = [("inflight".to_owned(), 65_535.into()), ("coalesce".to_owned(), 65_536.into())].into();
    let played = Played::start::<Mqtt>(&workload, Role::Publisher, to, options);
    played.await_report("ready", |report| matches!(report, ThreadReport::Ready));
    played.begin(clock::now() + 20 * MILLISECOND);
    (played.sent(), played.end().0.count_total)
}

#[test]
fn a_message_that_is_sent_costs_no_allocation() {
    let varied = "lognormal p50 100B p99 1KiB max 4KiB";
    let (alike, varied) = (("payload", "1KiB"), ("payload", varied));
    for (few, many, qos, more) in [
        ("20", "20000", "0", alike),
        ("20", "20000", "1", alike),
        ("20", "max", "0", alike),
        ("20", "20000", "1", varied),
        ("20", "max", "0", varied),
        ("20", "20000", "0", ("topics", "100000")),
        ("20", "max", "0", ("topics", "100000")),
        ("trace 20", "trace 20000", "1", alike),
    ] {
        let ((few_sent, few_made), (many_sent, many_made)) = (publish(few, qos, more), publish(many, qos, more));
        // So many that one allocation in 50 messages would be seen, and no more: at `max` a busy machine decides.
        assert!(many_sent > few_sent + 50 * GROWTH_STEPS, "{few_sent} and {many_sent} messages");
        assert!(
            many_made < few_made + GROWTH_STEPS,
            "QoS {qos}, {more:?}: {few_made} allocations for {few_sent} messages, {many_made} for {many_sent}"
        );
    }
}

/// Returns the allocations made by a subscriber that receives `count` messages, some in
/// each write.
fn subscribe(count: u32, qos: Qos, payload: &str) -> u64 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let qos_text = (qos as u8).to_string();
    let workload = workload(&[
        ("pairs", "1"),
        ("rate", "100000"),
        ("qos", &qos_text),
        ("warmup", "0s"),
        ("duration", "1s"),
        ("payload", payload),
        ("verify", "full"),
    ]);
    let (sizes, longest) = (workload.message_sizes(), workload.payload_bytes);
    let shortest = workload.least_payload_bytes() as usize;
    let len = move |sequence| match &sizes {
        Some(sizes) if sequence < END => sizes.bytes(0, sequence),
        _ => shortest,
    };
    let (go, gone) = channel::<u64>();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut to_client = stream.try_clone().unwrap();
        converse(stream, |packet, out| {
            if let ServerPacket::Subscribe { id, .. } = packet {
                encode::suback(out, Version::V3_1_1, id, &[qos as u8], None).unwrap();
                return false;
            }
            true
        });
        let longest = pattern(longest as usize);
        let message = |intended_ns, sequence, out: &mut Vec<u8>| {
            let mut payload = longest[..len(sequence)].to_vec();
            let (sent_ns, free_ns) = (Some(intended_ns), Some(intended_ns));
            let header = Header { intended_ns, publisher: 0, sequence, sent_ns, free_ns };
            assert!(header.write(&mut payload));
            let id = (sequence % 60_000) as u16 + 1;
            let (topic, payload) = ("pubmark/r/0", &payload[..]);
            let publish = Publish::plain(qos, id, topic, payload);
            encode::publish(out, Version::V3_1_1, &publish).unwrap();
        };
        let mut out = Vec::new();
        message(clock::now(), PROBE, &mut out);
        to_client.write_all(&out).unwrap();
        let mut acks = to_client.try_clone().unwrap();
        let acknowledged = std::thread::spawn(move || while acks.read(&mut [0; 1 << 16]).unwrap_or(0) > 0 {});
        let start_ns = gone.recv_timeout(PATIENCE).unwrap();
        for first in (0..count).step_by(100) {
            out.clear();
            (first..(first + 100).min(count)).for_each(|sequence| message(start_ns, sequence, &mut out));
            // Pieces that end anywhere: the beginning of a message is kept until the rest
            // arrives.
            for piece in out.chunks(7_777) {
                to_client.write_all(piece).unwrap();
            }
        }
        out.clear();
        message(clock::now(), END, &mut out);
        to_client.write_all(&out).unwrap();
        acknowledged.join().unwrap();
    });
    let options: Options = [("inflight".to_owned(), 65_535.into())].into();
    let played = Played::start::<Mqtt>(&workload, Role::Subscriber, to, options);
    played.await_report("ready", |report| matches!(report, ThreadReport::Ready));
    let start_ns = clock::now();
    played.begin(start_ns);
    go.send(start_ns).unwrap();
    let total = PublisherTotal {
        publisher: 0,
        sent: count.into(),
        window_first: 0,
        window_end: count.into(),
        offered: count.into(),
    };
    let (made, outcome) = played.drained(Totals::new(&[total]), 30 * SECOND);
    server.join().unwrap();
    let receipts = outcome.receipts.unwrap();
    assert_eq!((receipts.received(), receipts.counts().corrupted), (u64::from(count), 0), "not everything arrived");
    made.count_total
}

#[test]
fn a_message_that_arrives_costs_no_allocation() {
    let varied = "uniform 36B to 400B";
    for (qos, payload) in [(Qos::AtMostOnce, "200B"), (Qos::AtLeastOnce, "200B"), (Qos::AtMostOnce, varied)] {
        let (few, many) = (subscribe(100, qos, payload), subscribe(50_000, qos, payload));
        assert!(many < few + GROWTH_STEPS, "{qos:?}: {few} allocations for 100 messages, {many} for 50,000");
    }
}
