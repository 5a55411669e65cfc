//! Membership of a consumer in a group: who it is there, and the request that is under way.

use super::names::{ClientNames, GREETING};
use pubmark_model::kafka_group::GroupSettings;
use pubmark_wire::kafka::{
    self as wire, FetchLimits, JoinRequest, KafkaApi, KafkaRequest, Membership, NO_ERROR, ShareList, put_assigned,
    put_fetch, put_share, put_subscription,
};

/// Correlations of the requests that are sent while a fetch is under way.
pub(super) const HEARTBEAT: i32 = -2;
pub(super) const COMMIT: i32 = -3;
pub(super) const FAREWELL: i32 = -4;
/// Pauses before the coordinator is known; then the client connects again.
const RESTS: u8 = 100;
/// Length of such a pause, ms: the broker waits for more bytes than there are.
const REST_LIMITS: FetchLimits = FetchLimits { max_wait_ms: 100, min_bytes: i32::MAX, max_bytes: 1 };
/// Time that the coordinator waits for members that are alive, ms: `max.poll.interval.ms` of Kafka.
const REBALANCE_MS: i32 = 300_000;

/// The request of a member that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// FindCoordinator.
    Coordinator,
    /// A fetch that is answered after a pause, before the coordinator is asked for again.
    Rest,
    /// JoinGroup.
    Join,
    /// SyncGroup.
    Sync,
    /// OffsetFetch.
    Stored,
    /// OffsetCommit of the offsets at which partitions begin.
    Begin,
    /// None: it has its share.
    Up,
}

impl Step {
    /// Returns the request; `None` of a pause, and of a member that has its share.
    pub(super) fn api(self) -> Option<KafkaApi> {
        match self {
            Step::Coordinator => Some(KafkaApi::FindCoordinator),
            Step::Join => Some(KafkaApi::JoinGroup),
            Step::Sync => Some(KafkaApi::SyncGroup),
            Step::Stored => Some(KafkaApi::OffsetFetch),
            Step::Begin => Some(KafkaApi::OffsetCommit),
            Step::Rest | Step::Up => None,
        }
    }
}

/// Consequence of a coordinator's error for a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// No error.
    Good,
    /// It has to join again.
    Rebalance,
    /// Its assignment is over, and so may its membership be: what it read since its last commit is not stored.
    Over,
    /// The coordinator is not ready.
    NotReady,
    /// Any other error.
    Refused,
}

/// A member of a group.
pub(super) struct Member {
    pub(super) group: Box<[u8]>,
    /// Identifier that the coordinator gave; empty before.
    id: Box<[u8]>,
    pub(super) generation: i32,
    pub(super) step: Step,
    rests: u8,
    /// Number of partitions of the topic.
    pub(super) partitions: u32,
    /// Calls for signs of life since the last heartbeat, and since the last commit.
    pub(super) silent_ticks: u32,
    pub(super) uncommitted_ticks: u32,
    /// True if it has to join again as soon as the fetch that is under way has been answered, and whether it may store
    /// its offsets before.
    pub(super) must_join: bool,
    pub(super) may_commit: bool,
    /// True if it has left.
    pub(super) has_left: bool,
}

impl Member {
    pub(super) fn new(group: &str) -> Member {
        Member {
            group: group.as_bytes().into(),
            id: Box::default(),
            generation: -1,
            step: Step::Coordinator,
            rests: 0,
            partitions: 0,
            silent_ticks: 0,
            uncommitted_ticks: 0,
            must_join: false,
            may_commit: false,
            has_left: false,
        }
    }

    /// Appends a request.
    pub(super) fn put(names: &ClientNames, correlation: i32, request: KafkaRequest<'_>, out: &mut Vec<u8>) {
        names.put(correlation, request, out);
    }

    pub(super) fn membership(&self) -> Membership<'_> {
        Membership { group: &self.group, generation: self.generation, member: &self.id }
    }

    /// Asks for the coordinator.
    pub(super) fn find(&mut self, names: &ClientNames, out: &mut Vec<u8>) {
        self.step = Step::Coordinator;
        Member::put(names, GREETING, KafkaRequest::FindCoordinator(&self.group), out);
    }

    /// Lets the broker wait before the coordinator is asked for again. Returns false after too many such pauses.
    pub(super) fn rest(&mut self, names: &ClientNames, out: &mut Vec<u8>) -> bool {
        self.rests += 1;
        if self.rests >= RESTS {
            self.rests = 0;
            return false;
        }
        self.step = Step::Rest;
        let (client, topic) = (names.client.as_bytes(), names.topic.as_bytes());
        put_fetch(out, GREETING, client, REST_LIMITS, topic, std::iter::once((0, 0)));
        true
    }

    /// Joins the group, or joins it again.
    pub(super) fn join(&mut self, settings: &GroupSettings, names: &ClientNames, out: &mut Vec<u8>) {
        (self.step, self.must_join, self.rests) = (Step::Join, false, 0);
        let mut subscription = Vec::new();
        put_subscription(&mut subscription, names.topic.as_bytes());
        let join = JoinRequest {
            group: &self.group,
            member: &self.id,
            session_ms: settings.session_ms,
            rebalance_ms: REBALANCE_MS,
            assignor: settings.assignor.name(),
            subscription: &subscription,
        };
        Member::put(names, GREETING, KafkaRequest::JoinGroup(join), out);
    }

    /// Notes the identifier that the coordinator gave.
    pub(super) fn named(&mut self, id: &[u8]) {
        self.id = id.into();
    }

    /// Forgets the identifier, which the coordinator does not know any more.
    pub(super) fn forgotten(&mut self) {
        self.id = Box::default();
    }

    /// Notes the generation that it has joined, and asks for its share. The leader sends those of all members.
    pub(super) fn joined(
        &mut self,
        settings: &GroupSettings,
        names: &ClientNames,
        answer: &wire::JoinAnswer<'_>,
        out: &mut Vec<u8>,
    ) {
        self.named(answer.member);
        (self.generation, self.step) = (answer.generation, Step::Sync);
        let mut shares = Vec::new();
        if answer.leader == answer.member {
            let mut members: Vec<&[u8]> = answer.members.iter().map(|(member, _)| member).collect();
            members.sort_unstable();
            let mut share = Vec::new();
            for (place, member) in members.iter().enumerate() {
                share.clear();
                let partitions = settings.assignor.share(self.partitions, members.len(), place);
                put_assigned(&mut share, names.topic.as_bytes(), partitions.into_iter());
                put_share(&mut shares, member, &share);
            }
        }
        let request = KafkaRequest::SyncGroup(self.membership(), ShareList::written(&shares));
        Member::put(names, GREETING, request, out);
    }

    /// Returns what an error means for it.
    pub(super) fn standing(error: i16) -> Standing {
        match error {
            NO_ERROR => Standing::Good,
            wire::REBALANCE_IN_PROGRESS => Standing::Rebalance,
            wire::UNKNOWN_MEMBER_ID | wire::ILLEGAL_GENERATION => Standing::Over,
            wire::COORDINATOR_LOAD_IN_PROGRESS | wire::COORDINATOR_NOT_AVAILABLE | wire::NOT_COORDINATOR => {
                Standing::NotReady
            }
            _ => Standing::Refused,
        }
    }
}
