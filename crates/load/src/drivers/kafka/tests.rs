use super::*;
use crate::drivers::conversation::{Conversation, HeardEvent, message, settings, spec};
use pubmark_model::protocol::Role;
use pubmark_wire::kafka::{
    CreatedId, FetchHead, FetchPartition, KafkaRecord, MetadataAnswer, NO_PRODUCER, PartitionAnswer, RecordBatch,
    RequestFrame, begin_batch, begin_fetched, end_batch, end_fetched, put_fetched, put_record,
};

mod batches;
mod group;
mod keys;
mod spread;

const URL: &str = "kafka://127.0.0.1";
const TOPIC: &[u8] = b"pubmark.r.0";

fn given(qos: u8, set: &[(&str, &str)]) -> KafkaSettings {
    settings::<Kafka>(URL, qos, false, set).unwrap()
}

fn refusal(url: &str, qos: u8, set: &[(&str, &str)]) -> String {
    settings::<Kafka>(url, qos, false, set).err().unwrap().to_string()
}

fn client(settings: &KafkaSettings, role: Role) -> Conversation<'_, Kafka> {
    Conversation::new(settings, spec(role, "pubmark.r.0"))
}

/// Describes the requests that were sent since the last call.
fn said(client: &mut Conversation<'_, Kafka>) -> Vec<String> {
    let bytes = client.said();
    let (mut taken, mut all) = (0, Vec::new());
    while let Some((frame, used)) = RequestFrame::decode(&bytes[taken..]).unwrap() {
        assert_eq!(frame.client, b"c0");
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        all.push(match frame.request {
            KafkaRequest::Produce { acks, partition, records, .. } => {
                let head = RecordBatch::decode(records).unwrap().unwrap();
                assert_eq!(head.batch_bytes as usize, records.len());
                let mut at = wire::BATCH_BYTES;
                let mut values = Vec::new();
                while let Some((record, used)) = KafkaRecord::decode(&records[at..]).unwrap() {
                    at += used;
                    assert_eq!(record.offset_delta, values.len() as i64);
                    let key = record.key.map(|key| format!("{}=", text(key))).unwrap_or_default();
                    values.push(key + &text(record.value.unwrap()));
                }
                assert_eq!(head.count as usize, values.len());
                let number = match head.producer {
                    NO_PRODUCER => String::new(),
                    producer => format!(" as {}/{} from {}", producer.id, producer.epoch, producer.sequence),
                };
                let to = if partition > 0 { format!(" to {partition}") } else { String::new() };
                format!("{} produce {acks}{number}{to}: {}", frame.correlation, values.join(" "))
            }
            KafkaRequest::Fetch { partitions, .. } => {
                let offset = |(partition, offset)| match partition {
                    0 => format!(" {offset}"),
                    partition => format!(" {offset} of {partition}"),
                };
                format!("fetch{}", partitions.iter().map(offset).collect::<String>())
            }
            KafkaRequest::OffsetCommit(_, _, offsets) => {
                let offset = |(partition, offset)| match partition {
                    0 => format!(" {offset}"),
                    partition => format!(" {offset} of {partition}"),
                };
                format!("commit{}", offsets.iter().map(offset).collect::<String>())
            }
            KafkaRequest::ListOffsets { partition: 0, time: wire::EARLIEST, .. } => "beginning".into(),
            KafkaRequest::ListOffsets { partition, .. } if partition > 0 => format!("end of {partition}"),
            KafkaRequest::Metadata { topic } => format!("topic {}", text(topic)),
            KafkaRequest::CreateTopics { topic, .. } => format!("create {}", text(topic)),
            KafkaRequest::DeleteTopics { topic, .. } => format!("delete {}", text(topic)),
            other => format!("{:?}", other.api()),
        });
        taken += used;
    }
    assert_eq!(taken, bytes.len());
    all
}

fn answer(response: KafkaResponse<'_>, correlation: i32) -> Vec<u8> {
    let mut out = Vec::new();
    response.put(correlation, &mut out);
    out
}

fn versions() -> Vec<u8> {
    answer(KafkaResponse::ApiVersions(NO_ERROR, None), GREETING)
}

fn metadata(error: i16) -> Vec<u8> {
    metadata_of(error, 1)
}

fn metadata_of(error: i16, partitions: u32) -> Vec<u8> {
    answer(KafkaResponse::Metadata(MetadataAnswer { topic: TOPIC, error, partitions, brokers: 1 }), GREETING)
}

fn at(error: i16, offset: i64) -> PartitionAnswer<'static> {
    PartitionAnswer { topic: TOPIC, partition: 0, error, offset, words: None }
}

fn produced(correlation: i32, error: i16) -> Vec<u8> {
    answer(KafkaResponse::Produce(at(error, 0)), correlation)
}

/// An answer to a fetch with one batch.
fn fetched(offset: i64, values: &[&[u8]]) -> Vec<u8> {
    let mut records = Vec::new();
    let batch = begin_batch(&mut records, offset);
    (0..).zip(values).for_each(|(index, value)| put_record(&mut records, index, value));
    end_batch(&mut records, batch, values.len() as u32, NO_PRODUCER);
    fetched_from(&[(0, NO_ERROR, &records)])
}

/// An answer to a fetch with these partitions, their errors and their batches.
fn fetched_from(partitions: &[(i32, i16, &[u8])]) -> Vec<u8> {
    let head = FetchHead { correlation: 0, error: NO_ERROR, topic: TOPIC, partitions: partitions.len() as u32 };
    let mut out = Vec::new();
    let at = begin_fetched(&head, &mut out);
    for (partition, error, records) in partitions.iter().copied() {
        let records_bytes = records.len() as u32;
        put_fetched(&FetchPartition { partition, error, high_watermark: 0, records_bytes }, &mut out);
        out.extend_from_slice(records);
    }
    end_fetched(&mut out, at);
    out
}

/// Returns a producer whose topic is there.
fn producer(settings: &KafkaSettings) -> Conversation<'_, Kafka> {
    let mut client = client(settings, Role::Publisher);
    client.say(&versions()).unwrap();
    client.say(&metadata(NO_ERROR)).unwrap();
    if settings.is_idempotent() {
        assert_eq!(said(&mut client).pop().unwrap(), "InitProducerId");
        client.say(&answer(KafkaResponse::InitProducerId(CreatedId { error: 0, id: 7, epoch: 1 }), 0)).unwrap();
    }
    assert_eq!(client.heard(), [HeardEvent::Connected]);
    client.said();
    client
}

/// The answer says that the broker at 127.0.0.1:9092 leads the topic.
#[test]
fn a_client_of_several_brokers_goes_to_the_one_that_leads() {
    let settings = given(1, &[]);
    let mut away = client(&settings, Role::Publisher);
    away.session.at("127.0.0.1:9093");
    away.say(&versions()).unwrap();
    assert_eq!(away.say(&metadata(NO_ERROR)), Err(SessionError::Elsewhere("127.0.0.1:9092".into())));
    let mut there = client(&settings, Role::Publisher);
    there.session.at("127.0.0.1:9092");
    there.say(&versions()).unwrap();
    there.say(&metadata(NO_ERROR)).unwrap();
    assert_eq!(there.heard(), [HeardEvent::Connected]);
    // It has lost the topic to another: nothing is refused, and the batch is sent again there.
    assert!(there.publish(b"m", 0));
    let error = there.say(&produced(1, wire::NOT_LEADER_OR_FOLLOWER)).unwrap_err();
    assert!(matches!(error, SessionError::Busy(_)), "{error}");
    assert_eq!((there.heard().len(), there.session.unacknowledged()), (0, 1));
}

fn consumer(settings: &KafkaSettings, offset: i64) -> Conversation<'_, Kafka> {
    let mut client = client(settings, Role::Subscriber);
    client.say(&versions()).unwrap();
    client.say(&metadata(NO_ERROR)).unwrap();
    client.subscribe();
    client.say(&answer(KafkaResponse::ListOffsets(at(NO_ERROR, offset)), GREETING)).unwrap();
    assert_eq!(client.heard(), [HeardEvent::Connected, HeardEvent::Subscribed]);
    assert_eq!(said(&mut client).pop().unwrap(), format!("fetch {offset}"));
    client
}

/// Gives copies of messages by sequence.
struct Numbers(String);

impl Copies for Numbers {
    fn message(&mut self, sequence: u32) -> &[u8] {
        self.0 = format!("m{sequence}");
        self.0.as_bytes()
    }
}

#[test]
fn a_topic_that_is_missing_is_created_and_waited_for() {
    let settings = given(1, &[]);
    let mut client = client(&settings, Role::Publisher);
    assert_eq!(said(&mut client), ["ApiVersions"]);
    client.say(&versions()).unwrap();
    assert_eq!(said(&mut client), ["topic pubmark.r.0"]);
    client.say(&metadata(wire::UNKNOWN_TOPIC_OR_PARTITION)).unwrap();
    assert_eq!(said(&mut client), ["create pubmark.r.0"]);
    let exists = TopicAnswer { topic: TOPIC, error: wire::TOPIC_ALREADY_EXISTS, words: None };
    client.say(&answer(KafkaResponse::CreateTopics(exists), GREETING)).unwrap();
    for error in [wire::UNKNOWN_TOPIC_OR_PARTITION, wire::LEADER_NOT_AVAILABLE] {
        assert_eq!(said(&mut client), ["topic pubmark.r.0"]);
        client.say(&metadata(error)).unwrap();
    }
    assert_eq!(client.heard(), []);
    client.say(&metadata(NO_ERROR)).unwrap();
    assert_eq!(client.heard(), [HeardEvent::Connected]);
    client.publish(b"hi", 0);
    assert_eq!(said(&mut client), ["topic pubmark.r.0", "1 produce -1: hi"]);
}

#[test]
fn a_topic_that_never_gets_a_leader_ends_the_attempt() {
    let settings = given(1, &[]);
    let mut client = client(&settings, Role::Publisher);
    client.say(&versions()).unwrap();
    let again = (0..TRIES).map(|_| client.say(&metadata(wire::LEADER_NOT_AVAILABLE)));
    let why = again.last().unwrap().unwrap_err();
    assert!(!why.is_final() && why.to_string().contains("LEADER_NOT_AVAILABLE (5)"), "{why}");
}

#[test]
fn messages_go_at_once_and_are_collected_while_the_window_is_full() {
    let settings = given(1, &[("inflight", "2"), ("batch", "80B")]);
    let mut client = producer(&settings);
    let publish = |client: &mut Conversation<'_, Kafka>, n: u32| client.publish(format!("m{n}").as_bytes(), n);
    assert!((0..4).all(|n| publish(&mut client, n)));
    assert_eq!(said(&mut client), ["1 produce -1: m0", "2 produce -1: m1"]);
    assert_eq!((client.session.held(), client.session.unacknowledged()), (2, 4));
    assert!(!publish(&mut client, 4), "the batch is full");
    client.say(&produced(1, NO_ERROR)).unwrap();
    assert_eq!(client.heard(), [HeardEvent::Acknowledged(0)]);
    assert_eq!(said(&mut client), ["3 produce -1: m2 m3"]);
    assert!(publish(&mut client, 4));
    assert!(!client.publish(b"end", u32::MAX), "it does not follow on the collected one");
    // The second is never answered.
    client.say(&produced(3, NO_ERROR)).unwrap();
    assert_eq!(client.heard(), [HeardEvent::Acknowledged(2), HeardEvent::Acknowledged(3)]);
    assert_eq!(said(&mut client), ["4 produce -1: m4"]);
    client.say(&produced(4, wire::KAFKA_STORAGE_ERROR)).unwrap();
    assert_eq!(client.heard(), [HeardEvent::Refused(4, "KAFKA_STORAGE_ERROR (56)".into())]);
    assert_eq!((client.session.held(), client.session.unacknowledged()), (0, 0));
    assert!(client.say(&produced(4, NO_ERROR)).unwrap_err().to_string().contains("not in flight"));
}

#[test]
fn messages_are_collected_for_a_while_or_until_the_batch_is_full() {
    for (qos, acks) in [(0, "1 produce 0"), (1, "1 produce -1")] {
        let settings = given(qos, &[("linger", "5ms"), ("inflight", "1"), ("batch", "80B")]);
        assert_eq!(Kafka::linger_ns(&settings), 5_000_000);
        let mut client = producer(&settings);
        assert!(client.publish(b"m0", 0) && client.publish(b"m1", 1));
        assert_eq!((client.session.begun(), client.session.begun()), (Some(1), None));
        assert_eq!((said(&mut client), client.session.held()), (vec![], 2));
        assert!(client.publish(b"m2", 2), "the batch is full: it goes, and another one begins");
        assert_eq!(said(&mut client), [format!("{acks}: m0 m1")]);
        let flush = |client: &mut Conversation<'_, Kafka>, batch| {
            client.session.flush(&settings, batch, &mut client.out);
            said(client).len()
        };
        assert_eq!((client.session.begun(), flush(&mut client, 1), client.session.held()), (Some(2), 0, 1));
        if qos == 0 {
            assert_eq!((flush(&mut client, 2), client.session.held()), (1, 0));
            continue;
        }
        assert_eq!(flush(&mut client, 2), 0, "there is no room for it");
        client.say(&produced(1, NO_ERROR)).unwrap();
        assert_eq!(said(&mut client), ["2 produce -1: m2"]);
        assert!(client.publish(b"m3", 3));
        client.say(&produced(2, NO_ERROR)).unwrap();
        assert_eq!((said(&mut client), client.session.begun()), (vec![], Some(3)), "an answer is no reason to send");
        assert!(client.publish(b"end", u32::MAX), "it does not follow on the collected one");
        assert_eq!(said(&mut client), ["3 produce -1: m3"]);
    }
}

#[test]
fn what_a_producer_has_collected_is_sent_when_it_comes_back() {
    for qos in [0, 1] {
        let settings = given(qos, &[("linger", "5ms")]);
        let mut client = producer(&settings);
        assert!(client.publish(b"m0", 0));
        let spec = client.spec.clone();
        client.session.resume(&settings, &spec);
        let resent = client.session.resend(&settings, &mut Numbers(String::new()), &mut client.out);
        assert_eq!((resent, client.session.held()), (qos > 0, u64::from(qos == 0)));
        client.session.flush(&settings, 1, &mut client.out);
        assert!(said(&mut client).pop().unwrap().ends_with(": m0"));
    }
}

#[test]
fn compressed_batches_are_sent_and_read() {
    let settings = given(1, &[("compression", "gzip"), ("linger", "5ms")]);
    let mut client = producer(&settings);
    let body = [b'x'; 100];
    assert!((0..9).all(|n| client.publish(&body, n)));
    client.session.flush(&settings, 1, &mut client.out);
    let bytes = client.said();
    let (frame, _) = RequestFrame::decode(&bytes).unwrap().unwrap();
    let KafkaRequest::Produce { records, .. } = frame.request else { panic!("{frame:?}") };
    let head = RecordBatch::decode(records).unwrap().unwrap();
    assert!(head.is_gzip() && head.count == 9 && records.len() < 200, "{head:?}");
    // The broker gives it to a consumer as it is, with the offset of its own.
    let mut records = records.to_vec();
    records[..8].copy_from_slice(&5i64.to_be_bytes());
    let answer = fetched_from(&[(0, NO_ERROR, &records)]);
    for cut in 0..answer.len() {
        let mut client = consumer(&settings, 7);
        client.say_cut(&answer, cut).unwrap();
        assert_eq!(client.heard(), vec![message(&body); 7], "a batch may begin before the position");
        assert_eq!(said(&mut client), ["fetch 14"]);
    }
}

#[test]
fn nothing_is_expected_for_messages_without_acknowledgements() {
    let settings = given(0, &[("inflight", "1")]);
    let mut client = producer(&settings);
    let each = (0..3).flat_map(|n| (client.publish(b"hi", n), said(&mut client)).1);
    assert_eq!(each.collect::<Vec<_>>(), ["1 produce 0: hi"; 3]);
    client.session.keep_alive(&settings, &mut client.out);
    assert_eq!(said(&mut client), ["ApiVersions"]);
    client.say(&answer(KafkaResponse::ApiVersions(NO_ERROR, None), KEEP_ALIVE)).unwrap();
    assert_eq!((client.heard(), client.session.unacknowledged()), (vec![], 0));
}

#[test]
fn a_producer_that_comes_back_sends_the_same_batches_again() {
    for (qos, first, second, third) in [
        (1, "produce -1: m0", "produce -1: m1 m2", "produce -1: m3"),
        (2, "produce -1 as 7/1 from 0: m0", "produce -1 as 7/1 from 1: m1 m2", "produce -1 as 7/1 from 3: m3"),
    ] {
        let settings = given(qos, &[("inflight", "1")]);
        let mut client = producer(&settings);
        assert!((0..3).all(|n| client.publish(format!("m{n}").as_bytes(), n)));
        for lost in 1..4 {
            client.said();
            let spec = client.spec.clone();
            client.session.resume(&settings, &spec);
            client.session.open(&settings, &spec, &mut client.out);
            client.say(&versions()).unwrap();
            client.say(&metadata(NO_ERROR)).unwrap();
            assert_eq!(said(&mut client), ["ApiVersions", "topic pubmark.r.0"], "qos {qos}: it keeps its identity");
            assert_eq!(client.session.unacknowledged(), 3);
            // The connection is lost again before all of them are sent.
            let copies = &mut Numbers(String::new());
            let resent = (0..lost).take_while(|_| client.session.resend(&settings, copies, &mut client.out)).count();
            assert_eq!(resent, lost.min(2), "lost {lost} times");
        }
        let all = said(&mut client);
        let bare: Vec<&str> = all.iter().map(|request| request.split_once(' ').unwrap().1).collect();
        assert_eq!(bare, [first, second]);
        assert!(client.publish(b"m3", 3), "it is collected");
        let correlation = |request: &str| request.split_once(' ').unwrap().0.parse().unwrap();
        client.heard();
        client.say(&produced(correlation(&all[0]), NO_ERROR)).unwrap();
        client.say(&produced(correlation(&all[1]), wire::DUPLICATE_SEQUENCE_NUMBER)).unwrap();
        assert_eq!(client.heard(), [0, 1, 2].map(HeardEvent::Acknowledged));
        assert!(said(&mut client).pop().unwrap().ends_with(third));
    }
}

#[test]
fn a_consumer_reads_on_from_its_position_wherever_bytes_are_cut() {
    let settings = given(1, &[]);
    let bytes = [fetched(5, &[b"old", b"a", b"b"]), fetched(8, &[b"c"])].concat();
    for cut in 0..=bytes.len() {
        let mut client = consumer(&settings, 6);
        client.say_cut(&bytes, cut).unwrap();
        assert_eq!(client.heard(), [message(b"a"), message(b"b"), message(b"c")]);
        assert_eq!(said(&mut client), ["fetch 8", "fetch 9"]);
        assert!(client.all_taken());
    }
}

#[test]
fn a_consumer_that_comes_back_keeps_its_position() {
    let settings = given(1, &[]);
    let mut client = consumer(&settings, 6);
    let bytes = fetched(6, &[b"a", b"b"]);
    client.say(&bytes[..bytes.len() - 5]).unwrap();
    assert_eq!(client.heard(), [message(b"a")]);
    let spec = client.spec.clone();
    let mut back = consumer(&settings, 99);
    std::mem::swap(&mut back.session, &mut client.session);
    back.session.resume(&settings, &spec);
    back.said();
    back.session.open(&settings, &spec, &mut back.out);
    back.say(&versions()).unwrap();
    back.say(&metadata(NO_ERROR)).unwrap();
    back.subscribe();
    back.say(&answer(KafkaResponse::ListOffsets(at(NO_ERROR, 99)), GREETING)).unwrap();
    assert_eq!(said(&mut back).pop().unwrap(), "fetch 7");
    assert_eq!(back.heard(), [HeardEvent::Connected, HeardEvent::Subscribed]);
}

#[test]
fn members_of_a_group_share_out_the_partitions() {
    let settings = given(1, &[("partitions", "5"), ("partition_by", "round-robin")]);
    for (id, members, share) in [(0, 0, &[0, 1, 2, 3, 4][..]), (0, 2, &[0, 2, 4]), (1, 2, &[1, 3]), (4, 5, &[4])] {
        let group = (members > 0).then(|| "g".to_owned());
        let member = ClientSpec { id, group, members, ..spec(Role::Subscriber, "pubmark.r.0") };
        let mut client = Conversation::<Kafka>::new(&settings, member);
        client.say(&versions()).unwrap();
        client.say(&metadata_of(NO_ERROR, 5)).unwrap();
        client.subscribe();
        client.said();
        for partition in share.iter().copied() {
            let end = PartitionAnswer { partition, ..at(NO_ERROR, i64::from(partition) * 10) };
            client.heard();
            client.say(&answer(KafkaResponse::ListOffsets(end), GREETING)).unwrap();
        }
        assert_eq!(client.heard(), [HeardEvent::Subscribed]);
        let offset = |partition: &i32| match *partition {
            0 => " 0".to_owned(),
            partition => format!(" {}0 of {partition}", partition),
        };
        let fetch = said(&mut client).pop().unwrap();
        assert_eq!(fetch, format!("fetch{}", share.iter().map(offset).collect::<String>()));
        let why = client.say(&fetched_from(&[(share[0], 0, b""), (5, 0, b"")])).unwrap_err();
        assert!(why.to_string().contains("was not asked for"), "{why}");
    }
}

#[test]
fn records_are_told_with_their_partition_wherever_bytes_are_cut() {
    let batch = |offset, value: &[u8]| {
        let mut records = Vec::new();
        let at = begin_batch(&mut records, offset);
        put_record(&mut records, 0, value);
        end_batch(&mut records, at, 1, NO_PRODUCER);
        records
    };
    let (a, b, c) = (batch(4, b"a"), batch(7, b"b"), batch(5, b"c"));
    let bytes = [fetched_from(&[(0, 0, &a), (1, 0, &b)]), fetched_from(&[(1, 0, b""), (0, 0, &c)])].concat();
    for (by, parts) in [("round-robin", true), ("publisher", false)] {
        let settings = given(1, &[("partitions", "2"), ("partition_by", by)]);
        for cut in 0..=bytes.len() {
            let mut client = client(&settings, Role::Subscriber);
            client.say(&versions()).unwrap();
            client.say(&metadata_of(NO_ERROR, 2)).unwrap();
            client.subscribe();
            for (partition, offset) in [(0, 4), (1, 7)] {
                let end = PartitionAnswer { partition, ..at(NO_ERROR, offset) };
                client.say(&answer(KafkaResponse::ListOffsets(end), GREETING)).unwrap();
            }
            client.said();
            client.heard();
            client.say_cut(&bytes, cut).unwrap();
            let (mut part, mut heard) = (0, Vec::new());
            for event in client.heard() {
                match event {
                    HeardEvent::Part(of) => part = of,
                    HeardEvent::Message(value) => heard.push((value, part)),
                    other => panic!("{other:?}"),
                }
            }
            let of = |part| if parts { part } else { 0 };
            assert_eq!(heard, [(b"a".to_vec(), of(0)), (b"b".to_vec(), of(1)), (b"c".to_vec(), of(0))], "cut at {cut}");
            assert_eq!(said(&mut client), ["fetch 8 of 1 5", "fetch 6 8 of 1"]);
        }
    }
}

#[test]
fn batches_go_to_one_partition_or_each_to_the_next_one() {
    let publish = |by: &str, id| {
        let settings = given(2, &[("partitions", "3"), ("partition_by", by), ("inflight", "2")]);
        let mut client =
            Conversation::<Kafka>::new(&settings, ClientSpec { id, ..spec(Role::Publisher, "pubmark.r.0") });
        client.say(&versions()).unwrap();
        client.say(&metadata_of(NO_ERROR, 3)).unwrap();
        client.say(&answer(KafkaResponse::InitProducerId(CreatedId { error: 0, id: 7, epoch: 1 }), 0)).unwrap();
        client.said();
        assert!((0..4).all(|n| client.publish(format!("m{n}").as_bytes(), n)));
        (1..3).for_each(|correlation| client.say(&produced(correlation, NO_ERROR)).unwrap());
        assert!(client.publish(b"m4", 4));
        let first = said(&mut client);
        let spec = client.spec.clone();
        client.session.resume(&settings, &spec);
        let copies = &mut Numbers(String::new());
        while client.session.resend(&settings, copies, &mut client.out) {}
        let bare = |all: Vec<String>| -> Vec<String> {
            all.iter().map(|request| request.split_once(" as 7/1 ").unwrap().1.to_owned()).collect()
        };
        (bare(first), bare(said(&mut client)))
    };
    let one = ["from 0 to 1: m0", "from 1 to 1: m1", "from 2 to 1: m2 m3", "from 4 to 1: m4"];
    let (first, again) = publish("publisher", 4);
    assert_eq!(first, one);
    assert_eq!(again, one[2..]);
    let next = ["from 0 to 2: m0", "from 0: m1", "from 0 to 1: m2 m3", "from 1 to 2: m4"];
    let (first, again) = publish("round-robin", 5);
    assert_eq!(first, next);
    assert_eq!(again, next[2..], "they go to the same partitions, with the same numbers");
}

#[test]
fn a_login_comes_before_everything_else() {
    let settings = settings::<Kafka>("kafka://u:S3cret@127.0.0.1", 1, false, &[]).unwrap();
    let mut client = client(&settings, Role::Publisher);
    client.say(&versions()).unwrap();
    client.say(&answer(KafkaResponse::SaslHandshake(NO_ERROR), GREETING)).unwrap();
    let bytes = client.out.clone();
    assert!(bytes.ends_with(b"\0u\0S3cret"));
    assert_eq!(said(&mut client), ["ApiVersions", "SaslHandshake", "SaslAuthenticate"]);
    let wrong = KafkaResponse::SaslAuthenticate(wire::SASL_AUTHENTICATION_FAILED, Some(b"Invalid credentials"));
    let why = client.say(&answer(wrong, GREETING)).unwrap_err();
    assert!(why.is_final() && why.to_string().contains("Invalid credentials: check user and password"), "{why}");
}

#[test]
fn a_client_that_only_removes_topics_makes_none() {
    let settings = given(1, &[]);
    let mut client = Conversation::<Kafka>::new(&settings, spec(Role::Publisher, ""));
    client.say(&versions()).unwrap();
    assert_eq!(client.heard(), [HeardEvent::Connected]);
    let thing = Kafka::leaves(&settings, &spec(Role::Subscriber, "pubmark.r.0")).pop().unwrap();
    assert!(client.session.remove(&settings, &thing, 0, &mut client.out));
    assert_eq!(said(&mut client), ["ApiVersions", "delete pubmark.r.0"]);
    for (error, event) in [
        (NO_ERROR, HeardEvent::Acknowledged(0)),
        (wire::UNKNOWN_TOPIC_OR_PARTITION, HeardEvent::Acknowledged(0)),
        (wire::TOPIC_DELETION_DISABLED, HeardEvent::Refused(0, "TOPIC_DELETION_DISABLED (73)".into())),
    ] {
        let gone = TopicAnswer { topic: TOPIC, error, words: None };
        client.say(&answer(KafkaResponse::DeleteTopics(gone), GREETING)).unwrap();
        assert_eq!(client.heard(), [event]);
    }
}

#[test]
fn a_listener_makes_no_topic_and_is_told_the_name() {
    let settings = given(0, &[]);
    let wild = ClientSpec { wild: true, ..spec(Role::Subscriber, "orders") };
    let mut client = Conversation::<Kafka>::new(&settings, wild);
    client.say(&versions()).unwrap();
    let why = client.say(&metadata(wire::UNKNOWN_TOPIC_OR_PARTITION)).unwrap_err();
    assert!(why.is_final() && why.to_string().contains("there is no topic `orders`"), "{why}");
}

/// The broker has removed what a slow consumer has not read: it reads on from the first record that is left.
#[test]
fn a_consumer_that_retention_has_overtaken_reads_on() {
    let settings = given(1, &[]);
    let mut client = consumer(&settings, 5);
    client.say(&fetched_from(&[(0, wire::OFFSET_OUT_OF_RANGE, b"")])).unwrap();
    assert_eq!(said(&mut client), ["beginning"]);
    client.say(&answer(KafkaResponse::ListOffsets(at(NO_ERROR, 900)), GREETING)).unwrap();
    assert_eq!(said(&mut client), ["fetch 900"]);
}

#[test]
fn what_a_broker_refuses_is_named() {
    let settings = given(1, &[]);
    let mut client = client(&settings, Role::Subscriber);
    let lacks = answer(KafkaResponse::ApiVersions(NO_ERROR, Some(KafkaApi::Fetch)), GREETING);
    let why = client.say(&lacks).unwrap_err();
    assert!(why.is_final() && why.to_string().contains("Fetch in version 10"), "{why}");
    // A listener does not pass over what is gone.
    let wild = ClientSpec { wild: true, ..spec(Role::Subscriber, "pubmark.r.0") };
    let mut client = Conversation::<Kafka>::new(&settings, wild);
    client.say(&versions()).unwrap();
    client.say(&metadata(NO_ERROR)).unwrap();
    client.subscribe();
    client.say(&answer(KafkaResponse::ListOffsets(at(NO_ERROR, 0)), GREETING)).unwrap();
    let why = client.say(&fetched_from(&[(0, wire::OFFSET_OUT_OF_RANGE, b"")])).unwrap_err();
    assert!(why.to_string().contains("deleted records"), "{why}");
    let mut client = producer(&settings);
    assert!(client.say(b"HTTP/1.1 400 Bad Request\r\n").unwrap_err().to_string().contains("HTTP/1.1"));
}

#[test]
fn settings_that_mean_nothing_are_refused() {
    for (url, qos, set, wanted) in [
        (URL, 1, &[("acks", "2")][..], "acks = \"2\""),
        (URL, 2, &[("acks", "1")], "QoS 2"),
        (URL, 1, &[("inflight", "0")], "inflight = 0"),
        (URL, 2, &[("inflight", "6")], "5 at most"),
        (URL, 1, &[("partitions", "0")], "partitions = 0: write 1 to 64"),
        (URL, 1, &[("partition_by", "hash")], "partition_by = \"hash\""),
        (URL, 1, &[("keyspace", "9")], "set options.partition_by = \"key\""),
        (URL, 1, &[("linger", "2s")], "linger: write 1s at most"),
        (URL, 1, &[("compression", "lz4")], "compression = \"lz4\""),
        (URL, 1, &[("compression", "gzip"), ("batch", "1MiB")], "256KiB"),
        (URL, 1, &[("fetch_min", "0B")], "fetch_min"),
        (URL, 1, &[("fetch_max", "3GiB")], "fetch_max"),
        (URL, 1, &[("prefix", "a/b")], "prefix"),
        ("kafka://u@h", 1, &[], "set `password`"),
        (URL, 1, &[("password", "p")], "set `username`"),
    ] {
        let why = refusal(url, qos, set);
        assert!(why.contains(wanted), "{why}");
    }
    assert_eq!((given(1, &[]).acks, given(1, &[("acks", "1")]).acks, given(0, &[]).acks), (-1, 1, 0));
}

#[test]
fn an_idle_session_is_small() {
    assert!(size_of::<Kafka>() <= 72, "{} bytes", size_of::<Kafka>());
    assert!(size_of::<Producer>() <= 200, "{} bytes", size_of::<Producer>());
    assert!(size_of::<Consumer>() <= 104, "{} bytes", size_of::<Consumer>());
}
