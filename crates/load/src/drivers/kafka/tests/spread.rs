//! Clients with connections to several brokers: leaders that move, brokers that are lost, and a coordinator anywhere.

use super::*;
use crate::session::MEMBER_LOST;
use pubmark_wire::kafka::{BrokerMap, CoordinatorAnswer};
use std::net::SocketAddr;

/// Correlations of the requests of a client that is spread.
const PREPARE: i32 = -5;
const MAP: i32 = -6;
const SEARCH: i32 = -7;

fn spread_settings(more: &[(&str, &str)]) -> KafkaSettings {
    let set = [&[("partitions", "3"), ("partition_by", "round-robin")][..], more].concat();
    let mut settings = given(1, &set);
    settings.reconnects = true;
    settings
}

/// Returns the answer to a request for the topic: the places of the leaders of its partitions.
fn map(correlation: i32, leaders: &[i32]) -> Vec<u8> {
    let brokers = (0..3).map(|place| (place, &b"127.0.0.1"[..], 9_090 + place as u16)).collect();
    let leaders = (0..).zip(leaders.iter().copied()).collect();
    let mut out = Vec::new();
    BrokerMap { brokers, leaders }.put(correlation, TOPIC, &mut out);
    out
}

/// Passes the answer of the broker at this place to a client.
fn from(client: &mut Conversation<'_, Kafka>, place: u8, frame: &[u8]) {
    client.say(&[&[place][..], frame].concat()).unwrap();
}

/// Describes the requests that were sent since the last call, each after the place of its broker.
fn asked(client: &mut Conversation<'_, Kafka>) -> Vec<String> {
    let bytes = client.said();
    let (mut rest, mut all) = (&bytes[..], Vec::new());
    while let Some((place, behind)) = rest.split_first() {
        let (_, used) = RequestFrame::decode(behind).unwrap().unwrap();
        client.out = behind[..used].to_vec();
        all.extend(said(client).into_iter().map(|request| format!("{place}: {request}")));
        rest = &behind[used..];
    }
    all
}

/// Begins a client at the broker 0; the broker at place `i` leads partition `i`.
fn begin(settings: &KafkaSettings, spec: ClientSpec) -> Conversation<'_, Kafka> {
    let mut client = Conversation::<Kafka>::new(settings, spec);
    client.said();
    reopen(&mut client);
    from(&mut client, 0, &versions());
    assert_eq!(asked(&mut client), ["0: ApiVersions", "0: topic pubmark.r.0"]);
    from(&mut client, 0, &map(GREETING, &[0, 1, 2]));
    client
}

fn reopen(client: &mut Conversation<'_, Kafka>) {
    let members: Vec<SocketAddr> = (0..3).map(|place| ([127, 0, 0, 1], 9_090 + place).into()).collect();
    client.session.among(&members, 0);
    let spec = client.spec.clone();
    client.session.open(client.settings, &spec, &mut client.out);
}

fn prepare(client: &mut Conversation<'_, Kafka>, place: u8) {
    from(client, place, &answer(KafkaResponse::ApiVersions(NO_ERROR, None), PREPARE));
}

fn rest(client: &mut Conversation<'_, Kafka>) {
    client.session.rested(client.settings, &mut client.out).unwrap();
}

fn spread_producer(settings: &KafkaSettings) -> Conversation<'_, Kafka> {
    let mut client = begin(settings, spec(Role::Publisher, "pubmark.r.0"));
    assert_eq!((asked(&mut client), client.heard()), (vec!["1: ApiVersions".into(), "2: ApiVersions".into()], vec![]));
    prepare(&mut client, 1);
    prepare(&mut client, 2);
    assert_eq!(client.heard(), [HeardEvent::Connected]);
    client
}

/// A batch of partition `n`, as the broker answers it.
fn taken(partition: i32, correlation: i32, error: i16) -> Vec<u8> {
    answer(KafkaResponse::Produce(PartitionAnswer { partition, ..at(error, 0) }), correlation)
}

#[test]
fn batches_go_to_the_leaders_of_their_partitions() {
    let settings = spread_settings(&[("inflight", "1")]);
    let mut client = spread_producer(&settings);
    assert!((0..5).all(|n| client.publish(format!("m{n}").as_bytes(), n)));
    let wanted = ["0: 1 produce -1: m0", "1: 1 produce -1 to 1: m1", "2: 1 produce -1 to 2: m2"];
    assert_eq!((asked(&mut client), client.session.held()), (wanted.map(str::to_owned).into(), 2));
    // What was collected goes to the first broker with room, whichever it is.
    from(&mut client, 2, &taken(2, 1, NO_ERROR));
    assert_eq!(asked(&mut client), ["2: 2 produce -1 to 2: m3 m4"]);
    assert_eq!(client.heard(), [HeardEvent::Acknowledged(2)]);
}

/// The leader of partition 1 is lost: the others go on, and what it has not answered is sent to the next leader, in order.
#[test]
fn what_a_lost_leader_has_not_answered_goes_to_the_next_one() {
    let settings = spread_settings(&[("inflight", "2")]);
    let mut client = spread_producer(&settings);
    assert!((0..6).all(|n| client.publish(format!("m{n}").as_bytes(), n)));
    asked(&mut client);
    client.say(&[MEMBER_LOST | 1]).unwrap();
    assert_eq!(client.heard(), [HeardEvent::MemberLost("127.0.0.1:9091".into()), HeardEvent::Rest(0)]);
    from(&mut client, 0, &taken(0, 1, NO_ERROR));
    from(&mut client, 2, &taken(2, 1, NO_ERROR));
    client.heard();
    assert!(client.publish(b"m6", 6) && client.publish(b"m7", 7));
    assert_eq!(asked(&mut client), ["0: 3 produce -1: m6", "2: 3 produce -1 to 2: m7"], "partition 1 has no leader");
    assert!(!client.session.owes());
    rest(&mut client);
    assert_eq!(asked(&mut client), ["0: topic pubmark.r.0"]);
    // The other brokers still name it as the leader, and it accepts no connection: the next pause is longer.
    from(&mut client, 0, &map(MAP, &[0, 1, 2]));
    assert_eq!(asked(&mut client), ["1: ApiVersions"]);
    client.say(&[MEMBER_LOST | 1]).unwrap();
    assert_eq!(client.heard(), [HeardEvent::Rest(1)]);
    rest(&mut client);
    from(&mut client, 0, &map(MAP, &[0, 2, 2]));
    asked(&mut client);
    assert!(!client.session.owes(), "it has enough unanswered requests");
    from(&mut client, 2, &taken(2, 2, NO_ERROR));
    assert!(client.session.owes());
    let copies = &mut Numbers(String::new());
    while client.session.resend(&settings, copies, &mut client.out) {}
    assert_eq!(asked(&mut client), ["2: 4 produce -1 to 1: m1"]);
    from(&mut client, 2, &taken(2, 3, NO_ERROR));
    while client.session.resend(&settings, copies, &mut client.out) {}
    assert_eq!(asked(&mut client), ["2: 5 produce -1 to 1: m4"]);
    // A leader that is none any more says so.
    from(&mut client, 2, &taken(1, 4, wire::NOT_LEADER_OR_FOLLOWER));
    assert_eq!(client.heard().pop(), Some(HeardEvent::Rest(0)));
    from(&mut client, 2, &taken(1, 5, wire::NOT_LEADER_OR_FOLLOWER));
    rest(&mut client);
    from(&mut client, 0, &map(MAP, &[0, 0, 2]));
    from(&mut client, 0, &taken(0, 2, NO_ERROR));
    from(&mut client, 0, &taken(0, 3, NO_ERROR));
    while client.session.resend(&settings, copies, &mut client.out) {}
    let again = asked(&mut client);
    assert_eq!(again[1..], ["0: 4 produce -1 to 1: m1", "0: 5 produce -1 to 1: m4"]);
    assert_eq!(client.session.unacknowledged(), 2);
}

/// The others go on.
#[test]
fn messages_with_keys_wait_for_the_leader_of_their_partition() {
    let mut settings =
        given(1, &[("partitions", "3"), ("partition_by", "key"), ("keyspace", "50"), ("inflight", "20")]);
    settings.reconnects = true;
    let mut client = spread_producer(&settings);
    client.say(&[MEMBER_LOST | 1]).unwrap();
    assert!((0..20).all(|n| client.publish(format!("m{n}").as_bytes(), n)));
    let (sent, held) = (asked(&mut client), client.session.held() as usize);
    assert!(held > 1 && sent.len() + held == 20, "{held}: {sent:?}");
    assert!(sent.iter().all(|request| request.starts_with(if request.contains(" to 2: ") { "2: " } else { "0: " })));
    rest(&mut client);
    assert_eq!(asked(&mut client), ["0: topic pubmark.r.0"]);
    from(&mut client, 0, &map(MAP, &[0, 2, 2]));
    let late = asked(&mut client);
    assert!(late.len() == 1 && late[0].starts_with("2: ") && late[0].contains(" to 1: "), "{late:?}");
    assert_eq!(late[0].matches("=m").count(), held, "{late:?}");
}

/// Lets the client read all partitions, from these offsets.
fn spread_consumer(settings: &KafkaSettings) -> Conversation<'_, Kafka> {
    let mut client = begin(settings, spec(Role::Subscriber, "pubmark.r.0"));
    client.subscribe();
    prepare(&mut client, 1);
    prepare(&mut client, 2);
    for partition in 0..3 {
        let end = PartitionAnswer { partition, ..at(NO_ERROR, i64::from(partition) * 10) };
        from(&mut client, partition as u8, &answer(KafkaResponse::ListOffsets(end), GREETING));
    }
    assert_eq!(client.heard(), [HeardEvent::Connected, HeardEvent::Subscribed]);
    let all = asked(&mut client);
    assert_eq!(all[all.len() - 3..], ["0: fetch 0", "1: fetch 10 of 1", "2: fetch 20 of 2"]);
    client
}

fn records(partition: i32, offset: i64, value: &[u8]) -> Vec<u8> {
    let mut records = Vec::new();
    let batch = begin_batch(&mut records, offset);
    put_record(&mut records, 0, value);
    end_batch(&mut records, batch, 1, NO_PRODUCER);
    fetched_from(&[(partition, NO_ERROR, &records)])
}

#[test]
fn a_consumer_reads_each_partition_from_its_leader_wherever_bytes_are_cut() {
    let settings = spread_settings(&[]);
    let bytes = [&[2][..], &records(2, 20, b"a"), &[0], &records(0, 0, b"b")].concat();
    for cut in 0..bytes.len() {
        let mut client = spread_consumer(&settings);
        client.say_cut(&bytes, cut).unwrap();
        assert_eq!(asked(&mut client), ["2: fetch 21 of 2", "0: fetch 1"]);
        let heard: Vec<HeardEvent> =
            client.heard().into_iter().filter(|event| matches!(event, HeardEvent::Message(_))).collect();
        assert_eq!(heard, [message(b"a"), message(b"b")]);
    }
}

#[test]
fn a_consumer_follows_a_partition_to_its_next_leader() {
    let settings = spread_settings(&[]);
    let mut client = spread_consumer(&settings);
    from(&mut client, 1, &fetched_from(&[(1, wire::NOT_LEADER_OR_FOLLOWER, b"")]));
    assert_eq!((asked(&mut client), client.heard().pop()), (vec![], Some(HeardEvent::Rest(0))));
    rest(&mut client);
    assert_eq!(asked(&mut client), ["0: topic pubmark.r.0"]);
    from(&mut client, 0, &map(MAP, &[0, 2, 2]));
    assert_eq!(asked(&mut client), [""; 0], "broker 2 has a fetch to answer");
    from(&mut client, 2, &records(2, 20, b"a"));
    assert_eq!(asked(&mut client), ["2: fetch 10 of 1 21 of 2"]);
    // A fetch that is lost with its broker is made again by the next one.
    client.say(&[MEMBER_LOST | 2]).unwrap();
    rest(&mut client);
    from(&mut client, 0, &map(MAP, &[0, 1, 1]));
    assert_eq!(asked(&mut client).pop().unwrap(), "1: fetch 10 of 1 21 of 2");
}

#[test]
fn a_client_that_loses_all_brokers_or_does_not_come_back_ends() {
    let settings = spread_settings(&[]);
    let mut client = spread_consumer(&settings);
    client.say(&[MEMBER_LOST, MEMBER_LOST | 1]).unwrap();
    assert!(matches!(client.say(&[MEMBER_LOST | 2]), Err(SessionError::Busy(_))));
    let mut settings = spread_settings(&[]);
    settings.reconnects = false;
    let mut client = spread_consumer(&settings);
    assert!(matches!(client.say(&[MEMBER_LOST | 2]), Err(SessionError::Busy(_))));
}

/// The group's coordinator is the broker 1, and then the broker 2, which knows the group.
#[test]
fn a_member_follows_the_coordinator_of_its_group() {
    let group = [("group", "coordinator"), ("group_heartbeat", "500ms")];
    let settings = spread_settings(&group);
    let member = ClientSpec { group: Some("g".into()), members: 1, ..spec(Role::Subscriber, "pubmark.r.0") };
    let mut client = begin(&settings, member);
    client.subscribe();
    assert_eq!(asked(&mut client), ["0: FindCoordinator"]);
    let coordinator =
        |node, error| answer(KafkaResponse::FindCoordinator(CoordinatorAnswer { error, words: None, node }), SEARCH);
    from(&mut client, 0, &coordinator(-1, wire::COORDINATOR_NOT_AVAILABLE));
    assert_eq!(client.heard(), [HeardEvent::Connected, HeardEvent::Rest(0)]);
    rest(&mut client);
    assert_eq!(asked(&mut client), ["0: FindCoordinator"]);
    from(&mut client, 0, &coordinator(1, NO_ERROR));
    assert_eq!(asked(&mut client), ["1: ApiVersions"]);
    prepare(&mut client, 1);
    assert_eq!(asked(&mut client), ["1: JoinGroup"]);
    from(&mut client, 1, &group::joined(NO_ERROR, 4, "other", &[]));
    from(&mut client, 1, &group::share(&[0, 2]));
    from(&mut client, 1, &group::stored(&[(0, 5), (2, 7)]));
    assert_eq!(asked(&mut client), ["1: SyncGroup", "1: OffsetFetch", "2: ApiVersions", "0: fetch 5"]);
    prepare(&mut client, 2);
    assert_eq!(asked(&mut client), ["2: fetch 7 of 2"]);
    client.heard();
    client.session.keep_alive(&settings, &mut client.out);
    assert_eq!(asked(&mut client), ["1: Heartbeat"]);
    from(&mut client, 1, &answer(KafkaResponse::Heartbeat(wire::NOT_COORDINATOR), -2));
    assert_eq!(client.heard(), [HeardEvent::Rest(0)]);
    client.session.keep_alive(&settings, &mut client.out);
    rest(&mut client);
    assert_eq!(asked(&mut client), ["0: FindCoordinator"]);
    from(&mut client, 0, &coordinator(2, NO_ERROR));
    client.session.keep_alive(&settings, &mut client.out);
    assert_eq!(asked(&mut client), ["2: Heartbeat"], "it keeps its share");
    // A rebalance begins when no fetch is unanswered.
    from(&mut client, 2, &answer(KafkaResponse::Heartbeat(wire::REBALANCE_IN_PROGRESS), -2));
    from(&mut client, 0, &fetched_from(&[(0, NO_ERROR, b"")]));
    assert_eq!(asked(&mut client), [""; 0]);
    from(&mut client, 2, &fetched_from(&[(2, NO_ERROR, b"")]));
    assert_eq!(asked(&mut client), ["2: commit 5 7 of 2", "2: JoinGroup"]);
    assert_eq!(client.heard().pop(), Some(HeardEvent::Revoked));
}
