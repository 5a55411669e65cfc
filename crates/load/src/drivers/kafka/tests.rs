use super::*;
use crate::drivers::conversation::{Conversation, HeardEvent, message, settings, spec};
use pubmark_model::protocol::Role;
use pubmark_wire::kafka::{
    CreatedId, FetchHead, KafkaRecord, MetadataAnswer, NO_PRODUCER, PartitionAnswer, RecordBatch, begin_batch,
    end_batch, put_fetch_head, put_record,
};

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
            KafkaRequest::Produce { acks, records, .. } => {
                let head = RecordBatch::decode(records).unwrap().unwrap();
                assert_eq!(head.batch_bytes as usize, records.len());
                let mut at = wire::BATCH_BYTES;
                let mut values = Vec::new();
                while let Some((record, used)) = KafkaRecord::decode(&records[at..]).unwrap() {
                    at += used;
                    assert_eq!(record.offset_delta, values.len() as i64);
                    values.push(text(record.value.unwrap()));
                }
                assert_eq!(head.count as usize, values.len());
                let number = match head.producer {
                    NO_PRODUCER => String::new(),
                    producer => format!(" as {}/{} from {}", producer.id, producer.epoch, producer.sequence),
                };
                format!("{} produce {acks}{number}: {}", frame.correlation, values.join(" "))
            }
            KafkaRequest::Fetch { offset, .. } => format!("fetch {offset}"),
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
    answer(KafkaResponse::Metadata(MetadataAnswer { topic: TOPIC, error, partitions: 1, brokers: 1 }), GREETING)
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
    let records_bytes = records.len() as u32;
    let head =
        FetchHead { correlation: 0, error: NO_ERROR, topic: TOPIC, partition: 0, high_watermark: 0, records_bytes };
    let mut out = Vec::new();
    put_fetch_head(&head, &mut out);
    [out, records].concat()
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
fn nothing_is_expected_for_messages_without_acknowledgements() {
    let settings = given(0, &[("inflight", "1")]);
    let mut client = producer(&settings);
    assert!((0..3).all(|n| client.publish(b"hi", n)));
    assert_eq!(said(&mut client), ["1 produce 0: hi", "1 produce 0: hi", "1 produce 0: hi"]);
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

#[test]
fn what_a_broker_refuses_is_named() {
    let settings = given(1, &[]);
    let mut client = client(&settings, Role::Subscriber);
    let lacks = answer(KafkaResponse::ApiVersions(NO_ERROR, Some(KafkaApi::Fetch)), GREETING);
    let why = client.say(&lacks).unwrap_err();
    assert!(why.is_final() && why.to_string().contains("Fetch in version 10"), "{why}");
    let mut client = consumer(&settings, 0);
    let gone = FetchHead {
        correlation: 0,
        error: wire::OFFSET_OUT_OF_RANGE,
        topic: TOPIC,
        partition: 0,
        high_watermark: 0,
        records_bytes: 0,
    };
    let mut bytes = Vec::new();
    put_fetch_head(&gone, &mut bytes);
    assert!(client.say(&bytes).unwrap_err().to_string().contains("deleted records"));
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
    assert!(size_of::<Producer>() <= 160, "{} bytes", size_of::<Producer>());
}
