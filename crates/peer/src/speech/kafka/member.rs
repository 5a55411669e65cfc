//! A member of a consumer group: its answers that wait for other members.

use crate::routes::Filter;
use crate::speech::coordinator::Coordinator;
use crate::speech::protocol::{Ask, Hub};
use pubmark_model::units::Ns;
use pubmark_wire::kafka::{JoinAnswer, JoinRequest, KafkaResponse, MemberList, NO_ERROR, put_member};

/// Tokens of the subscriptions by which members hear of changes in their group, and of the end of a scripted rebalance.
const CHANGE: u32 = u32::MAX;
const RELEASE: u32 = u32::MAX - 1;

/// The membership of a connection.
pub struct PeerMember {
    group: Box<[u8]>,
    /// Its identifier; empty before it has one.
    id: Box<[u8]>,
    assignor: Box<[u8]>,
    /// Correlations of the requests that wait.
    joins: Option<i32>,
    syncs: Option<i32>,
    /// True if it has been told to join again.
    pub is_told: bool,
}

impl PeerMember {
    /// Makes the membership of a connection that wants to join, and subscribes to changes in the group.
    pub fn new(join: &JoinRequest<'_>, hub: &mut Hub<'_>) -> PeerMember {
        let member = PeerMember {
            group: join.group.into(),
            id: Box::default(),
            assignor: join.assignor.into(),
            joins: None,
            syncs: None,
            is_told: false,
        };
        hub(Ask::Subscribe(Filter::Exact(&member.topic(CHANGE)), CHANGE));
        hub(Ask::Subscribe(Filter::Exact(&member.topic(RELEASE)), RELEASE));
        member
    }

    /// Returns the topic of changes, or of ends of rebalances.
    fn topic(&self, token: u32) -> Vec<u8> {
        [if token == CHANGE { &b"group/"[..] } else { b"group-release/" }, &self.group].concat()
    }

    /// True if a message for the subscription with this token is a sign of the group.
    pub fn hears(&self, token: u32) -> bool {
        token >= RELEASE
    }

    /// Wakes all members, and itself; those that a scripted rebalance keeps waiting after its time, ns.
    pub fn wake(&self, hold_ns: Ns, hub: &mut Hub<'_>) {
        let topic = self.topic(if hold_ns == 0 { CHANGE } else { RELEASE });
        hub(Ask::Wake(&topic, hold_ns));
    }

    /// Handles a request to join.
    pub fn join(
        &mut self,
        (client, correlation): (&[u8], i32),
        join: &JoinRequest<'_>,
        all: &mut Coordinator,
        out: &mut Vec<u8>,
    ) {
        self.is_told = false;
        match all.join(join.group, client, join.member, join.subscription) {
            Ok(()) => (self.id, self.joins) = (join.member.into(), Some(correlation)),
            Err((error, id)) => {
                let (assignor, leader, members) = (&b""[..], &b""[..], MemberList::default());
                let answer = JoinAnswer { error, generation: -1, assignor, leader, member: &id, members };
                KafkaResponse::JoinGroup(answer).put(correlation, out);
                self.id = id;
            }
        }
    }

    /// Notes that it asks for its share.
    pub fn sync(&mut self, correlation: i32) {
        self.syncs = Some(correlation);
    }

    /// Handles a sign of the group.
    pub fn woken(&mut self, token: u32, all: &mut Coordinator, out: &mut Vec<u8>) {
        if token == RELEASE {
            all.release(&self.group);
        }
        if let Some(correlation) = self.joins
            && let Some(joined) = all.joined(&self.group, &self.id)
        {
            self.joins = None;
            let mut members = Vec::new();
            joined.members.iter().for_each(|(id, subscription)| put_member(&mut members, id, subscription));
            let answer = JoinAnswer {
                error: NO_ERROR,
                generation: joined.generation,
                assignor: &self.assignor,
                leader: &joined.leader,
                member: &self.id,
                members: MemberList::written(&members),
            };
            KafkaResponse::JoinGroup(answer).put(correlation, out);
        }
        if let Some(correlation) = self.syncs
            && let Some(share) = all.share(&self.group, &self.id)
        {
            self.syncs = None;
            match share {
                Ok(share) => KafkaResponse::SyncGroup(NO_ERROR, &share).put(correlation, out),
                Err(error) => KafkaResponse::SyncGroup(error, b"").put(correlation, out),
            }
        }
    }

    /// Removes it from its group. Returns the topic to which its end is passed on, if it was a member.
    pub fn die(&self, all: &mut Coordinator) -> Option<Vec<u8>> {
        (all.leave(&self.group, &self.id) == NO_ERROR).then(|| self.topic(CHANGE))
    }
}
