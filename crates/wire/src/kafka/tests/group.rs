//! Messages of consumer groups, compared with those of Kafka.

use super::*;

const GROUP: &[u8] = b"pbr";
const MEMBER: &[u8] = b"pbrs0-1f";
const WHO: Membership<'_> = Membership { group: GROUP, generation: 3, member: MEMBER };

/// Returns what an appending function writes.
fn written(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out);
    out
}

#[test]
fn subscriptions_and_shares_are_those_of_kafka() {
    let vectors = vectors();
    assert_eq!(written(|out| put_subscription(out, TOPIC)), vectors["subscription"]);
    let share = written(|out| put_assigned(out, TOPIC, [0, 2].into_iter()));
    assert_eq!(share, vectors["share"]);
    assert_eq!(assigned(&share, TOPIC), Ok(vec![0, 2]));
    assert_eq!(assigned(b"", TOPIC), Ok(vec![]));
    assert!(assigned(&share, b"other").is_err_and(|why| why.0.contains("has not subscribed")));
    for cut in 1..share.len() {
        assert!(assigned(&share[..cut], TOPIC).is_err(), "cut at {cut}");
    }
}

#[test]
fn requests_of_members_are_those_of_kafka_and_are_read_back() {
    let vectors = vectors();
    let subscription = &vectors["subscription"];
    let join = JoinRequest {
        group: GROUP,
        member: MEMBER,
        session_ms: 45_000,
        rebalance_ms: 300_000,
        assignor: b"range",
        subscription,
    };
    let shares = written(|out| put_share(out, MEMBER, &vectors["share"]));
    let offsets = written(|out| put_commit(out, 2, 41));
    let partitions = written(|out| [0, 2].into_iter().for_each(|partition| put_partition(out, partition)));
    let partitions = PartitionList::written(&partitions);
    for (name, request) in [
        ("find-coordinator", KafkaRequest::FindCoordinator(GROUP)),
        ("join-group", KafkaRequest::JoinGroup(join)),
        ("sync-group", KafkaRequest::SyncGroup(WHO, ShareList::written(&shares))),
        ("heartbeat", KafkaRequest::Heartbeat(WHO)),
        ("leave-group", KafkaRequest::LeaveGroup { group: GROUP, member: MEMBER }),
        ("offset-commit", KafkaRequest::OffsetCommit(WHO, TOPIC, CommitList::written(&offsets))),
        ("offset-fetch", KafkaRequest::OffsetFetch { group: GROUP, topic: TOPIC, partitions }),
        ("describe-groups", KafkaRequest::DescribeGroups(GROUP)),
        ("delete-groups", KafkaRequest::DeleteGroups(GROUP)),
    ] {
        let wanted = &vectors[&*format!("{name}-request")];
        let whole = RequestFrame { correlation: 7, client: b"pbrp0", request };
        assert_eq!(&written(|out| whole.put(out)), wanted, "{name}");
        assert_eq!(RequestFrame::decode(wanted), Ok(Some((whole, wanted.len()))), "{name}");
    }
}

#[test]
fn answers_to_members_are_those_of_kafka_and_are_read_back() {
    let vectors = vectors();
    let (subscription, share) = (&vectors["subscription"], &vectors["share"]);
    let members = written(|out| [MEMBER, b"pbrs1-2e"].into_iter().for_each(|id| put_member(out, id, subscription)));
    let joined = JoinAnswer {
        error: NO_ERROR,
        generation: 3,
        assignor: b"range",
        leader: MEMBER,
        member: MEMBER,
        members: MemberList::written(&members),
    };
    let (assignor, leader) = (&b""[..], &b""[..]);
    let refused = JoinAnswer {
        error: MEMBER_ID_REQUIRED,
        generation: -1,
        assignor,
        leader,
        members: MemberList::default(),
        ..joined
    };
    let stored = written(|out| [(0, -1), (2, 41)].into_iter().for_each(|(n, offset)| put_stored(out, n, offset, 0)));
    let coordinator = CoordinatorAnswer { error: COORDINATOR_NOT_AVAILABLE, words: Some(b"not yet"), node: 1 };
    for (name, api, wanted) in [
        ("find-coordinator", KafkaApi::FindCoordinator, KafkaResponse::FindCoordinator(coordinator)),
        ("join-group", KafkaApi::JoinGroup, KafkaResponse::JoinGroup(joined)),
        ("join-group-error", KafkaApi::JoinGroup, KafkaResponse::JoinGroup(refused)),
        ("sync-group", KafkaApi::SyncGroup, KafkaResponse::SyncGroup(NO_ERROR, share)),
        ("heartbeat", KafkaApi::Heartbeat, KafkaResponse::Heartbeat(REBALANCE_IN_PROGRESS)),
        ("leave-group", KafkaApi::LeaveGroup, KafkaResponse::LeaveGroup(UNKNOWN_MEMBER_ID)),
        ("offset-commit", KafkaApi::OffsetCommit, KafkaResponse::OffsetCommit(ILLEGAL_GENERATION)),
        ("offset-fetch", KafkaApi::OffsetFetch, KafkaResponse::OffsetFetch(NO_ERROR, StoredList::written(&stored))),
        ("delete-groups", KafkaApi::DeleteGroups, KafkaResponse::DeleteGroups(NON_EMPTY_GROUP)),
    ] {
        let bytes = &vectors[&*format!("{name}-response")];
        let (frame, _) = ResponseFrame::decode(bytes).unwrap().unwrap();
        assert_eq!(ResponseFrame::correlation(bytes), Some(7));
        assert_eq!(KafkaResponse::decode(api, frame.body), Ok(wanted), "{name}");
        let again = written(|out| wanted.put(7, out));
        assert_eq!(KafkaResponse::decode(api, &again[8..]), Ok(wanted), "{name} is read back");
        for cut in 0..frame.body.len() {
            assert!(KafkaResponse::decode(api, &frame.body[..cut]).is_err(), "{name} cut at {cut}");
        }
        if ["join-group", "join-group-error", "sync-group", "heartbeat"].contains(&name) {
            assert_eq!(&again, bytes, "{name}");
        }
    }
    assert_eq!(joined.members.iter().map(|(id, _)| id).collect::<Vec<_>>(), [MEMBER, b"pbrs1-2e"]);
    let (frame, _) = ResponseFrame::decode(&vectors["describe-groups-response"]).unwrap().unwrap();
    let answer = KafkaResponse::decode(KafkaApi::DescribeGroups, frame.body).unwrap();
    let KafkaResponse::DescribeGroups(NO_ERROR, GROUP, list) = answer else { panic!("{answer:?}") };
    assert_eq!(list.iter().collect::<Vec<_>>(), [MEMBER]);
    let again = written(|out| answer.put(7, out));
    assert_eq!(KafkaResponse::decode(KafkaApi::DescribeGroups, &again[8..]), Ok(answer));
}
