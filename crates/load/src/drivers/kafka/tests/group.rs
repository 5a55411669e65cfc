//! Members of a group that a coordinator leads.

use super::*;
use pubmark_wire::kafka::{
    CoordinatorAnswer, JoinAnswer, MemberList, StoredList, put_assigned, put_member, put_stored,
};

const COORDINATED: [(&str, &str); 3] = [("group", "coordinator"), ("group_heartbeat", "1s"), ("group_commit", "2s")];

fn group_settings(more: &[(&str, &str)]) -> KafkaSettings {
    given(1, &[&COORDINATED[..], &[("partitions", "3")], more].concat())
}

fn member_spec() -> ClientSpec {
    ClientSpec { group: Some("pbr".into()), members: 2, ..spec(Role::Subscriber, "pubmark.r.0") }
}

fn ask(response: KafkaResponse<'_>) -> Vec<u8> {
    answer(response, GREETING)
}

fn coordinator(error: i16) -> Vec<u8> {
    ask(KafkaResponse::FindCoordinator(CoordinatorAnswer { error, words: None, node: 0 }))
}

pub(super) fn joined(error: i16, generation: i32, leader: &str, others: &[&str]) -> Vec<u8> {
    let mut members = Vec::new();
    others.iter().for_each(|id| put_member(&mut members, id.as_bytes(), b""));
    let members = MemberList::written(&members);
    let leader = leader.as_bytes();
    ask(KafkaResponse::JoinGroup(JoinAnswer { error, generation, assignor: b"range", leader, member: b"m", members }))
}

pub(super) fn share(partitions: &[i32]) -> Vec<u8> {
    let mut share = Vec::new();
    put_assigned(&mut share, TOPIC, partitions.iter().copied());
    ask(KafkaResponse::SyncGroup(NO_ERROR, &share))
}

pub(super) fn stored(offsets: &[(i32, i64)]) -> Vec<u8> {
    let mut list = Vec::new();
    offsets.iter().for_each(|(partition, offset)| put_stored(&mut list, *partition, *offset, NO_ERROR));
    ask(KafkaResponse::OffsetFetch(NO_ERROR, StoredList::written(&list)))
}

fn committed(error: i16, correlation: i32) -> Vec<u8> {
    answer(KafkaResponse::OffsetCommit(error), correlation)
}

/// Lets a member join, and read partitions 0 and 1 from offsets 5 and 7.
fn begin(client: &mut Conversation<'_, Kafka>) {
    client.say(&versions()).unwrap();
    client.say(&metadata_of(NO_ERROR, 3)).unwrap();
    client.subscribe();
    client.say(&coordinator(NO_ERROR)).unwrap();
    client.say(&joined(NO_ERROR, 4, "other", &[])).unwrap();
    client.say(&share(&[0, 1])).unwrap();
    client.say(&stored(&[(0, 5), (1, 7)])).unwrap();
    assert_eq!(said(client).pop().unwrap(), "fetch 5 7 of 1");
}

/// Returns a member that reads partitions 0 and 1 from offsets 5 and 7.
fn member(settings: &KafkaSettings) -> Conversation<'_, Kafka> {
    let mut client = Conversation::<Kafka>::new(settings, member_spec());
    begin(&mut client);
    assert_eq!(client.heard(), [HeardEvent::Connected, HeardEvent::Assigned(4), HeardEvent::Subscribed]);
    client
}

fn ticks(client: &mut Conversation<'_, Kafka>, count: u32) -> Vec<String> {
    (0..count).for_each(|_| client.session.keep_alive(client.settings, &mut client.out));
    said(client)
}

#[test]
fn a_leader_assigns_and_stores_where_it_begins() {
    let settings = group_settings(&[]);
    let mut client = Conversation::<Kafka>::new(&settings, member_spec());
    client.say(&versions()).unwrap();
    client.say(&metadata_of(NO_ERROR, 3)).unwrap();
    client.subscribe();
    said(&mut client);
    // A coordinator that is not ready is asked again after a fetch that takes its time.
    client.say(&coordinator(wire::COORDINATOR_NOT_AVAILABLE)).unwrap();
    assert_eq!(said(&mut client), ["fetch 0"]);
    client.say(&fetched_from(&[(0, NO_ERROR, b"")])).unwrap();
    assert_eq!(said(&mut client), ["FindCoordinator"]);
    client.say(&coordinator(NO_ERROR)).unwrap();
    client.say(&joined(wire::MEMBER_ID_REQUIRED, -1, "", &[])).unwrap();
    assert_eq!(said(&mut client), ["JoinGroup", "JoinGroup"]);
    client.say(&joined(NO_ERROR, 1, "m", &["z", "m"])).unwrap();
    let bytes = client.said();
    let (frame, _) = RequestFrame::decode(&bytes).unwrap().unwrap();
    let KafkaRequest::SyncGroup(who, shares) = frame.request else { panic!("{frame:?}") };
    assert_eq!((who.generation, who.member, who.group), (1, &b"m"[..], &b"pbr"[..]));
    let shares: Vec<_> = shares.iter().map(|(id, share)| (id, wire::assigned(share, TOPIC).unwrap())).collect();
    assert_eq!(shares, [(&b"m"[..], vec![0, 1]), (b"z", vec![2])]);
    client.say(&share(&[0, 1])).unwrap();
    client.say(&stored(&[(0, wire::NO_OFFSET), (1, 9)])).unwrap();
    assert_eq!(said(&mut client), ["OffsetFetch", "ListOffsets"]);
    client.say(&answer(KafkaResponse::ListOffsets(at(NO_ERROR, 3)), GREETING)).unwrap();
    assert_eq!(said(&mut client), ["commit 3 9 of 1"]);
    assert_eq!(client.heard(), [HeardEvent::Connected]);
    client.say(&committed(NO_ERROR, GREETING)).unwrap();
    assert_eq!(said(&mut client), ["fetch 3 9 of 1"]);
    assert_eq!(client.heard(), [HeardEvent::Assigned(1), HeardEvent::Subscribed]);
}

#[test]
fn heartbeats_and_commits_have_their_times() {
    let settings = group_settings(&[]);
    let mut client = member(&settings);
    assert_eq!(ticks(&mut client, 1), [""; 0]);
    assert_eq!(ticks(&mut client, 1), ["Heartbeat"]);
    client.say(&fetched(5, &[b"a", b"b"])).unwrap();
    assert_eq!(said(&mut client), ["fetch 7 of 1 7"]);
    assert_eq!(ticks(&mut client, 2), ["Heartbeat", "commit 7 7 of 1"]);
    // Their answers come between those to fetches, wherever bytes are cut.
    let alive = [answer(KafkaResponse::Heartbeat(NO_ERROR), -2), committed(NO_ERROR, -3)].concat();
    let bytes = [&fetched(7, &[b"c"])[..], &alive, &fetched(8, &[b"d"])].concat();
    client.heard();
    for piece in bytes.chunks(7) {
        client.say(piece).unwrap();
    }
    assert_eq!(client.heard(), [message(b"c"), message(b"d")]);
    assert_eq!(said(&mut client), ["fetch 8 7 of 1", "fetch 7 of 1 9"]);
    assert!(client.all_taken());
}

#[test]
fn a_member_stores_its_offsets_before_it_joins_again() {
    let settings = group_settings(&[]);
    for is_late in [false, true] {
        let mut client = member(&settings);
        client.say(&fetched(5, &[b"a"])).unwrap();
        said(&mut client);
        client.heard();
        client.say(&answer(KafkaResponse::Heartbeat(wire::REBALANCE_IN_PROGRESS), -2)).unwrap();
        assert_eq!((said(&mut client), ticks(&mut client, 9)), (vec![], vec![]), "its fetch is under way");
        client.say(&fetched(6, &[b"b"])).unwrap();
        assert_eq!(said(&mut client), ["commit 7 7 of 1", "JoinGroup"]);
        assert_eq!(client.heard(), [message(b"b"), HeardEvent::Revoked]);
        let error = if is_late { wire::ILLEGAL_GENERATION } else { NO_ERROR };
        client.say(&committed(error, -3)).unwrap();
        client.say(&joined(NO_ERROR, 5, "other", &[])).unwrap();
        client.say(&share(&[2])).unwrap();
        client.say(&stored(&[(2, 30)])).unwrap();
        assert_eq!(said(&mut client), ["SyncGroup", "OffsetFetch", "fetch 30 of 2"]);
        assert_eq!(client.heard(), [HeardEvent::Assigned(5), HeardEvent::Subscribed]);
    }
}

#[test]
fn a_member_that_is_not_known_any_more_stores_nothing_and_joins_as_a_new_one() {
    let settings = group_settings(&[]);
    let mut client = member(&settings);
    client.say(&answer(KafkaResponse::Heartbeat(wire::UNKNOWN_MEMBER_ID), -2)).unwrap();
    client.say(&fetched(5, &[b"a"])).unwrap();
    let bytes = client.said();
    let (frame, used) = RequestFrame::decode(&bytes).unwrap().unwrap();
    let KafkaRequest::JoinGroup(join) = frame.request else { panic!("{frame:?}") };
    assert_eq!((join.member, join.session_ms, used), (&b""[..], 45_000, bytes.len()));
    // Another rebalance begins before it is over.
    for error in [wire::REBALANCE_IN_PROGRESS, wire::UNKNOWN_MEMBER_ID] {
        client.say(&joined(error, -1, "", &[])).unwrap();
        assert_eq!(said(&mut client), ["JoinGroup"]);
    }
    client.say(&joined(NO_ERROR, 6, "other", &[])).unwrap();
    client.say(&ask(KafkaResponse::SyncGroup(wire::REBALANCE_IN_PROGRESS, b""))).unwrap();
    assert_eq!(said(&mut client), ["SyncGroup", "JoinGroup"]);
    let why = client.say(&joined(wire::GROUP_MAX_SIZE_REACHED, -1, "", &[])).unwrap_err();
    assert!(why.to_string().contains("GROUP_MAX_SIZE_REACHED"), "{why}");
}

#[test]
fn a_member_without_partitions_waits_for_some() {
    let settings = group_settings(&[]);
    let mut client = member(&settings);
    client.say(&answer(KafkaResponse::Heartbeat(wire::REBALANCE_IN_PROGRESS), -2)).unwrap();
    client.say(&fetched(5, &[])).unwrap();
    client.say(&joined(NO_ERROR, 5, "other", &[])).unwrap();
    client.say(&ask(KafkaResponse::SyncGroup(NO_ERROR, b""))).unwrap();
    said(&mut client);
    assert_eq!(ticks(&mut client, 4), ["Heartbeat", "Heartbeat"]);
    client.say(&answer(KafkaResponse::Heartbeat(wire::REBALANCE_IN_PROGRESS), -2)).unwrap();
    assert_eq!(said(&mut client), ["JoinGroup"]);
}

#[test]
fn a_member_that_comes_back_reads_on_from_what_is_stored() {
    let settings = group_settings(&[]);
    let mut client = member(&settings);
    client.say(&fetched(5, &[b"a", b"b"])).unwrap();
    let spec = client.spec.clone();
    client.session.resume(&settings, &spec);
    said(&mut client);
    client.session.open(&settings, &spec, &mut client.out);
    begin(&mut client);
}

#[test]
fn a_member_leaves_and_its_group_is_removed() {
    let settings = group_settings(&[]);
    let mut client = member(&settings);
    client.say(&fetched(5, &[b"a"])).unwrap();
    said(&mut client);
    let spec = client.spec.clone();
    client.session.close(&settings, &spec, &mut client.out);
    assert_eq!(said(&mut client), ["commit 6 7 of 1", "LeaveGroup"]);
    client.say(&fetched(6, &[b"b"])).unwrap();
    client.say(&[committed(NO_ERROR, -3), answer(KafkaResponse::LeaveGroup(NO_ERROR), -4)].concat()).unwrap();
    assert_eq!((said(&mut client), ticks(&mut client, 9)), (vec![], vec![]));
    let things = Kafka::leaves(&settings, &spec);
    assert_eq!(things, [Leftover::Group("pbr".into()), Leftover::Topic("pubmark.r.0".into())]);
    let mut remover = Conversation::<Kafka>::new(&settings, super::spec(Role::Publisher, ""));
    remover.say(&versions()).unwrap();
    assert!(remover.session.remove(&settings, &things[0], 0, &mut remover.out));
    assert!(!remover.session.remove(&settings, &things[1], 1, &mut remover.out), "one after the other");
    let mut members = Vec::new();
    wire::put_identifier(&mut members, b"dead");
    let list = wire::IdentifierList::written(&members);
    remover.say(&answer(KafkaResponse::DescribeGroups(NO_ERROR, b"pbr", list), 1)).unwrap();
    assert_eq!(said(&mut remover), ["ApiVersions", "DescribeGroups", "LeaveGroup", "DeleteGroups"]);
    remover.say(&answer(KafkaResponse::LeaveGroup(NO_ERROR), 2)).unwrap();
    assert_eq!(remover.heard(), [HeardEvent::Connected]);
    remover.say(&answer(KafkaResponse::DeleteGroups(wire::GROUP_ID_NOT_FOUND), 3)).unwrap();
    assert_eq!(remover.heard(), [HeardEvent::Acknowledged(0)]);
    assert!(remover.session.remove(&settings, &things[1], 1, &mut remover.out));
}

#[test]
fn a_group_needs_one_broker_and_sound_terms() {
    let settings = group_settings(&[]);
    let mut client = Conversation::<Kafka>::new(&settings, member_spec());
    client.say(&versions()).unwrap();
    let two = MetadataAnswer { topic: TOPIC, error: NO_ERROR, partitions: 3, brokers: 2 };
    let why = client.say(&answer(KafkaResponse::Metadata(two), GREETING)).unwrap_err();
    assert!(why.is_final() && why.to_string().contains("the server has 2 brokers"), "{why}");
    for (set, wanted) in [
        (("group", "kafka"), "write \"static\" or \"coordinator\""),
        (("group_assignor", "sticky"), "write \"range\" or \"round-robin\""),
        (("group_heartbeat", "700ms"), "a multiple of 500ms"),
        (("group_commit", "0s"), "a multiple of 500ms"),
        (("group_session", "1s"), "at least twice"),
    ] {
        let group = ("group", "coordinator");
        let set = if set.0 == "group" { vec![set] } else { vec![group, set] };
        let why = refusal(URL, 1, &set);
        assert!(why.contains(wanted), "{why}");
    }
}

#[test]
fn partitions_are_shared_out_as_kafka_does() {
    use pubmark_model::kafka_group::Assignor;
    let all = |assignor: Assignor, partitions, members| -> Vec<Vec<i32>> {
        (0..members).map(|place| assignor.share(partitions, members, place)).collect()
    };
    assert_eq!(all(Assignor::Range, 7, 3), [vec![0, 1, 2], vec![3, 4], vec![5, 6]]);
    assert_eq!(all(Assignor::RoundRobin, 7, 3), [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
    assert_eq!(all(Assignor::Range, 2, 3), [vec![0], vec![1], vec![]]);
}
