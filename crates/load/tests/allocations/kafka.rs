//! The memory of a Kafka client does not grow with what waits for its broker, or with what its broker sends at once.

use super::{PATIENCE, Played, workload};
use allocation_counter::AllocationInfo;
use pubmark_load::clock;
use pubmark_load::drivers::kafka::Kafka;
use pubmark_load::subscriber::Totals;
use pubmark_model::header::{END, Header, PROBE};
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::protocol::{PublisherTotal, Role};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::wire_protocol::Protocol;
use pubmark_wire::kafka::{
    FetchHead, FetchPartition, KafkaRequest, KafkaResponse, MetadataAnswer, NO_ERROR, NO_PRODUCER, PartitionAnswer,
    RequestFrame, begin_batch, begin_fetched, end_batch, end_fetched, put_fetched, put_record,
};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// Number of clients: what they share hardly counts.
const CLIENTS: u32 = 200;
/// Payload of a message, bytes.
const PAYLOAD: usize = 1 << 10;
/// Most memory of a client, bytes, beyond what it takes while it is at ease.
const MOST_BYTES: u64 = 4 << 10;

/// A state that threads wait for.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn set(&self, is_open: bool) {
        *self.0.lock().unwrap() = is_open;
        self.1.notify_all();
    }

    fn pass(&self) {
        let closed = self.1.wait_timeout_while(self.0.lock().unwrap(), PATIENCE, |is_open| !*is_open);
        assert!(!closed.unwrap().1.timed_out(), "the gate stays closed");
    }
}

/// A broker of empty topics, which answers a producer while the gate is open, and a consumer with `records` for each
/// fetch until there are none.
fn broker(gate: &Arc<Gate>, records: impl Fn(u32) -> Option<Vec<u8>> + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let gate = gate.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (gate, records) = (gate.clone(), records.clone());
            std::thread::spawn(move || serve(stream, &gate, records));
        }
    });
    to
}

fn serve(stream: TcpStream, gate: &Gate, records: impl Fn(u32) -> Option<Vec<u8>>) {
    let mut fetches = 0;
    // Pieces that end anywhere.
    super::serve(stream, 77_777, |bytes, out| {
        let mut done = 0;
        while let Some((frame, used)) = RequestFrame::decode(&bytes[done..]).unwrap() {
            let at = |topic| PartitionAnswer { topic, partition: 0, error: NO_ERROR, offset: 0, words: None };
            match frame.request {
                KafkaRequest::ApiVersions => KafkaResponse::ApiVersions(NO_ERROR, None).put(frame.correlation, out),
                KafkaRequest::Metadata { topic } => {
                    let answer = MetadataAnswer { topic, error: NO_ERROR, partitions: 1, brokers: 1 };
                    KafkaResponse::Metadata(answer).put(frame.correlation, out);
                }
                KafkaRequest::ListOffsets { topic, .. } => {
                    KafkaResponse::ListOffsets(at(topic)).put(frame.correlation, out);
                }
                KafkaRequest::Produce { topic, .. } => {
                    gate.pass();
                    KafkaResponse::Produce(at(topic)).put(frame.correlation, out);
                }
                KafkaRequest::Fetch { topic, .. } => {
                    if let Some(records) = records(fetches) {
                        fetched(frame.correlation, topic, &records, out);
                    }
                    fetches += 1;
                }
                _ => return None,
            }
            done += used;
        }
        Some(done)
    });
}

fn fetched(correlation: i32, topic: &[u8], records: &[u8], out: &mut Vec<u8>) {
    let at = begin_fetched(&FetchHead { correlation, error: NO_ERROR, topic, partitions: 1 }, out);
    let records_bytes = records.len() as u32;
    put_fetched(&FetchPartition { partition: 0, error: NO_ERROR, high_watermark: 0, records_bytes }, out);
    out.extend_from_slice(records);
    end_fetched(out, at);
}

/// Returns a batch of messages of one publisher with these sequences.
fn batch(offset: i64, sequences: impl IntoIterator<Item = u32>, due_ns: Ns) -> Vec<u8> {
    let (mut out, mut count) = (Vec::new(), 0);
    let at = begin_batch(&mut out, offset);
    for sequence in sequences {
        let mut payload = vec![0; PAYLOAD];
        let (sent_ns, free_ns) = (Some(due_ns), Some(due_ns));
        assert!(Header { intended_ns: due_ns, publisher: 0, sequence, sent_ns, free_ns }.write(&mut payload));
        put_record(&mut out, count, &payload);
        count += 1;
    }
    end_batch(&mut out, at, count, NO_PRODUCER);
    out
}

fn options() -> Options {
    let all = Protocol::Kafka.options();
    let mut options: Options =
        all.iter().filter_map(|spec| Some((spec.name.to_owned(), spec.default.clone()?))).collect();
    options.extend([("batch".to_owned(), (256u64 << 10).into())]);
    options
}

/// Lets producers publish to a broker that answers them at once, or only when each has `waiting` messages beside those
/// in flight. Returns the allocations of their event loop, and how many messages of each were not acknowledged then.
fn produce(waiting: Option<u64>) -> (AllocationInfo, u64) {
    let gate = Arc::new(Gate::default());
    gate.set(true);
    let to = broker(&gate, |_| None);
    let pairs = CLIENTS.to_string();
    let rate = if waiting.is_some() { "500" } else { "10" };
    let workload = workload(&[
        ("pairs", &pairs),
        ("rate", rate),
        ("qos", "1"),
        ("payload", "1KiB"),
        ("warmup", "0s"),
        ("duration", "400ms"),
        ("drain", "60s"),
    ]);
    let played = Played::start::<Kafka>(&workload, Role::Publisher, to, options());
    played.await_report("ready", |report| matches!(report, super::ThreadReport::Ready));
    gate.set(waiting.is_none());
    played.begin(clock::now() + 20 * MILLISECOND);
    if let Some(waiting) = waiting {
        let wanted = u64::from(CLIENTS) * (waiting + options().number("inflight"));
        let end_ns = clock::now() + PATIENCE.as_nanos() as Ns;
        while played.counter.get() < wanted {
            assert!(clock::now() < end_ns, "{} of {wanted} messages", played.counter.get());
            std::thread::yield_now();
        }
        gate.set(true);
    }
    let made = played.counter.get() / u64::from(CLIENTS);
    let sent = played.sent();
    let (allocated, outcome) = played.drained(Totals::default(), 60 * SECOND);
    assert_eq!(outcome.sends.map(|sends| sends.acked()), Some(sent), "not everything was acknowledged");
    (allocated, made)
}

#[test]
fn messages_that_wait_for_their_broker_take_little_memory() {
    let waiting = 40;
    let ((at_ease, _), (behind, made)) = (produce(None), produce(Some(waiting)));
    let grown = behind.bytes_max.saturating_sub(at_ease.bytes_max) / u64::from(CLIENTS);
    // On a busy machine more wait before the broker answers.
    let most = MOST_BYTES * made.max(waiting) / waiting;
    assert!(MOST_BYTES < waiting * PAYLOAD as u64 / 8, "it would be no test");
    assert!(grown < most, "{grown} bytes a producer for {made} messages of {PAYLOAD} bytes that wait");
}

/// Lets consumers read answers of `count` messages each. Returns the allocations of their event loop.
fn consume(count: u32) -> AllocationInfo {
    let gate = Arc::new(Gate::default());
    let go = gate.clone();
    let to = broker(&gate, move |fetch| match fetch {
        0 => Some(batch(0, [PROBE], 1)),
        1 => {
            go.pass();
            Some(batch(1, 0..count, clock::now()))
        }
        2 => Some(batch(1 + i64::from(count), [END], 1)),
        _ => None,
    });
    let subscribers = CLIENTS.to_string();
    let workload = workload(&[
        ("pattern", "fan-out"),
        ("publishers", "1"),
        ("subscribers", &subscribers),
        ("rate", "10000"),
        ("qos", "1"),
        ("payload", "1KiB"),
        ("verify", "header"),
        ("warmup", "0s"),
        ("duration", "1s"),
    ]);
    let played = Played::start::<Kafka>(&workload, Role::Subscriber, to, options());
    played.await_report("ready", |report| matches!(report, super::ThreadReport::Ready));
    played.begin(clock::now());
    gate.set(true);
    let count = count.into();
    let total = PublisherTotal { publisher: 0, sent: count, window_first: 0, window_end: count, offered: count };
    let (made, outcome) = played.drained(Totals::new(&[total]), 60 * SECOND);
    let receipts = outcome.receipts.unwrap();
    assert_eq!(receipts.received(), count * u64::from(CLIENTS), "not everything arrived");
    made
}

#[test]
fn an_answer_that_is_read_in_pieces_takes_little_memory() {
    let (few, many) = (consume(1), consume(1_000));
    let grown = many.bytes_max.saturating_sub(few.bytes_max) / u64::from(CLIENTS);
    assert!(grown < MOST_BYTES, "{grown} bytes a consumer for answers of 1,000 messages of {PAYLOAD} bytes");
}
