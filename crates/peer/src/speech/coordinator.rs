//! The coordinator of Kafka's consumer groups, and the topics that exist: what all connections of a server share.
//!
//! It has no clock. A member that is dead is removed when its connection ends.

use super::members::PeerMembers;
use pubmark_model::units::Ns;
use pubmark_wire::kafka::{
    ILLEGAL_GENERATION, MEMBER_ID_REQUIRED, Membership, NO_ERROR, NO_OFFSET, NON_EMPTY_GROUP, REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
};
use std::collections::{BTreeMap, HashMap};

/// Phase of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Members have to join.
    #[default]
    Joining,
    /// All have joined, and the leader has to assign.
    Syncing,
    /// Each has its share.
    Stable,
}

/// A member of a group.
struct GroupMember {
    id: Box<[u8]>,
    subscription: Box<[u8]>,
    share: Box<[u8]>,
    has_joined: bool,
}

/// A group.
#[derive(Default)]
struct Group {
    phase: Phase,
    generation: i32,
    members: Vec<GroupMember>,
    offsets: BTreeMap<i32, i64>,
    /// Number of scripted rebalances that have begun.
    struck: usize,
    /// True while the script keeps members waiting, and while it lets no offsets be stored.
    is_held: bool,
    hold_ns: Option<Ns>,
    forgets: bool,
}

/// Identifier and subscription of a member.
pub type IdentifiedSubscription = (Box<[u8]>, Box<[u8]>);

/// The answer to a member that has joined.
#[derive(Debug, PartialEq, Eq)]
pub struct JoinedMember {
    /// Number of the new assignment.
    pub generation: i32,
    /// Identifier of the leader.
    pub leader: Box<[u8]>,
    /// Identifiers and subscriptions of all members, for the leader only.
    pub members: Vec<IdentifiedSubscription>,
}

impl Group {
    fn member(&mut self, id: &[u8]) -> Option<&mut GroupMember> {
        self.members.iter_mut().find(|member| *member.id == *id)
    }

    fn check(&mut self, who: &Membership<'_>) -> i16 {
        match self.member(who.member).is_some() {
            false => UNKNOWN_MEMBER_ID,
            true if who.generation != self.generation => ILLEGAL_GENERATION,
            true => NO_ERROR,
        }
    }

    /// Begins a rebalance.
    fn rebalance(&mut self) {
        if self.phase != Phase::Joining {
            self.phase = Phase::Joining;
            self.members.iter_mut().for_each(|member| member.has_joined = false);
        }
    }

    /// Ends the phase in which members join, once all have.
    fn complete(&mut self) {
        let all = !self.members.is_empty() && self.members.iter().all(|member| member.has_joined);
        if self.phase == Phase::Joining && all && !self.is_held {
            (self.phase, self.forgets) = (Phase::Syncing, false);
            self.generation += 1;
        }
    }

    fn remove(&mut self, id: &[u8]) -> bool {
        let before = self.members.len();
        self.members.retain(|member| *member.id != *id);
        let has_left = self.members.len() < before;
        if has_left {
            self.rebalance();
            self.complete();
        }
        has_left
    }
}

/// Groups and topics.
#[derive(Default)]
pub struct Coordinator {
    topics: HashMap<Box<[u8]>, u32>,
    groups: HashMap<Box<[u8]>, Group>,
    named: u32,
    /// The members of the server.
    pub cluster: PeerMembers,
}

impl Coordinator {
    /// Returns the number of partitions of a topic; 0 if there is no such topic.
    pub fn partitions(&self, topic: &[u8]) -> u32 {
        self.topics.get(topic).copied().unwrap_or(0)
    }

    /// Makes a topic, unless there is one.
    pub fn create(&mut self, topic: &[u8], partitions: u32) {
        self.topics.entry(topic.into()).or_insert(partitions);
    }

    /// Removes a topic.
    pub fn delete(&mut self, topic: &[u8]) {
        self.topics.remove(topic);
    }

    fn group(&mut self, name: &[u8]) -> &mut Group {
        self.groups.entry(name.into()).or_default()
    }

    /// Lets a member join, or gives a new one its identifier first.
    ///
    /// # Errors
    /// The error of the answer, and the identifier in it.
    pub fn join(&mut self, name: &[u8], client: &[u8], id: &[u8], subscription: &[u8]) -> Result<(), (i16, Box<[u8]>)> {
        if id.is_empty() {
            self.named += 1;
            let id: Box<[u8]> = [client, b"-", self.named.to_string().as_bytes()].concat().into();
            let member = GroupMember {
                id: id.clone(),
                subscription: subscription.into(),
                share: Box::default(),
                has_joined: false,
            };
            let group = self.group(name);
            group.rebalance();
            group.members.push(member);
            return Err((MEMBER_ID_REQUIRED, id));
        }
        let group = self.group(name);
        if group.member(id).is_none() {
            return Err((UNKNOWN_MEMBER_ID, id.into()));
        }
        group.rebalance();
        if let Some(member) = group.member(id) {
            (member.has_joined, member.subscription) = (true, subscription.into());
        }
        group.complete();
        Ok(())
    }

    /// Returns the answer to a member that has joined; `None` if others have to join first.
    pub fn joined(&mut self, name: &[u8], id: &[u8]) -> Option<JoinedMember> {
        let group = self.group(name);
        if group.phase != Phase::Syncing {
            return None;
        }
        let leader = group.members.first()?.id.clone();
        let all = group.members.iter().map(|member| (member.id.clone(), member.subscription.clone()));
        let members = if *leader == *id { all.collect() } else { Vec::new() };
        Some(JoinedMember { generation: group.generation, leader, members })
    }

    /// Takes the shares that a leader assigns; those of other members are empty.
    ///
    /// # Errors
    /// The error of the answer.
    pub fn assign<'a>(
        &mut self,
        who: &Membership<'_>,
        shares: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<(), i16> {
        let group = self.group(who.group);
        match group.check(who) {
            NO_ERROR if group.phase == Phase::Joining => return Err(REBALANCE_IN_PROGRESS),
            NO_ERROR => {}
            error => return Err(error),
        }
        if group.members.first().is_some_and(|leader| *leader.id == *who.member) {
            for (id, share) in shares {
                group.member(id).into_iter().for_each(|member| member.share = share.into());
            }
            group.phase = Phase::Stable;
        }
        Ok(())
    }

    /// Returns the answer to a member that asks for its share; `None` if the leader has to assign first.
    pub fn share(&mut self, name: &[u8], id: &[u8]) -> Option<Result<Box<[u8]>, i16>> {
        let group = self.group(name);
        match group.phase {
            Phase::Joining => Some(Err(REBALANCE_IN_PROGRESS)),
            Phase::Syncing => None,
            Phase::Stable => Some(group.member(id).map(|member| member.share.clone()).ok_or(UNKNOWN_MEMBER_ID)),
        }
    }

    /// Returns the answer to a heartbeat.
    pub fn heartbeat(&mut self, who: &Membership<'_>) -> i16 {
        let group = self.group(who.group);
        match group.check(who) {
            NO_ERROR if group.phase == Phase::Joining => REBALANCE_IN_PROGRESS,
            error => error,
        }
    }

    /// Stores offsets. Returns the error of the answer.
    pub fn commit(&mut self, who: &Membership<'_>, offsets: impl Iterator<Item = (i32, i64)>) -> i16 {
        let group = self.group(who.group);
        match group.check(who) {
            NO_ERROR if group.forgets => REBALANCE_IN_PROGRESS,
            NO_ERROR => {
                group.offsets.extend(offsets);
                NO_ERROR
            }
            error => error,
        }
    }

    /// Returns the stored offset of a partition.
    pub fn stored(&mut self, name: &[u8], partition: i32) -> i64 {
        self.group(name).offsets.get(&partition).copied().unwrap_or(NO_OFFSET)
    }

    /// Returns the number of scripted rebalances that have begun.
    pub fn struck(&mut self, name: &[u8]) -> usize {
        self.group(name).struck
    }

    /// Begins a scripted rebalance, which waits for [`Coordinator::release`] if it has a time, ns. If it `forgets`, no
    /// offsets are stored until it ends.
    pub fn strike(&mut self, name: &[u8], hold_ns: Ns, forgets: bool) {
        let group = self.group(name);
        group.struck += 1;
        (group.is_held, group.hold_ns) = (hold_ns > 0, Some(hold_ns).filter(|hold_ns| *hold_ns > 0));
        group.forgets = forgets;
        group.rebalance();
    }

    /// Returns the time of the scripted rebalance, ns, to the first member that joins again.
    pub fn take_hold_ns(&mut self, name: &[u8]) -> Option<Ns> {
        self.group(name).hold_ns.take()
    }

    /// Lets a rebalance end.
    pub fn release(&mut self, name: &[u8]) {
        let group = self.group(name);
        group.is_held = false;
        group.complete();
    }

    /// Removes a member that has left or is dead. Returns the error of the answer.
    pub fn leave(&mut self, name: &[u8], id: &[u8]) -> i16 {
        let is_known = self.groups.get_mut(name).is_some_and(|group| group.remove(id));
        if is_known { NO_ERROR } else { UNKNOWN_MEMBER_ID }
    }

    /// Returns the identifiers of a group's members.
    pub fn members(&self, name: &[u8]) -> Vec<Box<[u8]>> {
        let members = self.groups.get(name).into_iter().flat_map(|group| &group.members);
        members.map(|member| member.id.clone()).collect()
    }

    /// Removes a group that has no members. Returns the error of the answer.
    pub fn delete_group(&mut self, name: &[u8]) -> i16 {
        match self.groups.get(name) {
            Some(group) if !group.members.is_empty() => NON_EMPTY_GROUP,
            _ => {
                self.groups.remove(name);
                NO_ERROR
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: &[u8] = b"g";

    fn who(generation: i32, member: &[u8]) -> Membership<'_> {
        Membership { group: G, generation, member }
    }

    fn enter(all: &mut Coordinator, client: &[u8]) -> Box<[u8]> {
        let (error, id) = all.join(G, client, b"", b"s").unwrap_err();
        assert_eq!(error, MEMBER_ID_REQUIRED);
        all.join(G, client, &id, b"s").unwrap();
        id
    }

    #[test]
    fn a_group_waits_for_all_its_members_and_for_its_leader() {
        let mut all = Coordinator::default();
        let a = enter(&mut all, b"a");
        let alone = all.joined(G, &a).unwrap();
        assert_eq!((alone.generation, alone.members.len(), &alone.leader), (1, 1, &a));
        assert_eq!(all.share(G, &a), None);
        all.assign(&who(1, &a), [(&*a, &b"all"[..])].into_iter()).unwrap();
        assert_eq!(all.share(G, &a), Some(Ok(b"all"[..].into())));
        assert_eq!(all.commit(&who(1, &a), [(3, 41)].into_iter()), NO_ERROR);
        let b = enter(&mut all, b"b");
        assert_eq!((all.joined(G, &b), all.heartbeat(&who(1, &a))), (None, REBALANCE_IN_PROGRESS));
        assert_eq!(all.commit(&who(1, &a), [(3, 42)].into_iter()), NO_ERROR, "before it joins again");
        all.join(G, b"a", &a, b"s").unwrap();
        assert_eq!(all.joined(G, &b).unwrap(), JoinedMember { generation: 2, leader: a.clone(), members: vec![] });
        assert_eq!(all.commit(&who(1, &b), [(3, 9)].into_iter()), ILLEGAL_GENERATION);
        assert_eq!((all.stored(G, 3), all.stored(G, 4)), (42, NO_OFFSET));
        assert_eq!(all.assign(&who(2, &b), std::iter::empty()), Ok(()));
        all.assign(&who(2, &a), [(&*a, &b"0"[..]), (&*b, b"1")].into_iter()).unwrap();
        assert_eq!(all.share(G, &b), Some(Ok(b"1"[..].into())));
        assert_eq!(
            (all.delete_group(G), all.leave(G, &a), all.heartbeat(&who(2, &b))),
            (NON_EMPTY_GROUP, NO_ERROR, 27)
        );
        assert_eq!((all.heartbeat(&who(2, &a)), all.members(G)), (UNKNOWN_MEMBER_ID, vec![b.clone()]));
        assert_eq!((all.leave(G, &b), all.delete_group(G), all.stored(G, 3)), (NO_ERROR, NO_ERROR, NO_OFFSET));
    }

    #[test]
    fn a_scripted_rebalance_keeps_members_waiting_and_stores_nothing() {
        let mut all = Coordinator::default();
        let a = enter(&mut all, b"a");
        all.assign(&who(1, &a), std::iter::empty()).unwrap();
        all.strike(G, 5, true);
        assert_eq!((all.struck(G), all.heartbeat(&who(1, &a))), (1, REBALANCE_IN_PROGRESS));
        assert_eq!(all.commit(&who(1, &a), [(0, 7)].into_iter()), REBALANCE_IN_PROGRESS);
        all.join(G, b"a", &a, b"s").unwrap();
        assert_eq!((all.joined(G, &a), all.take_hold_ns(G), all.take_hold_ns(G)), (None, Some(5), None));
        all.release(G);
        assert_eq!(all.joined(G, &a).unwrap().generation, 2);
        all.assign(&who(2, &a), std::iter::empty()).unwrap();
        assert_eq!((all.commit(&who(2, &a), [(0, 7)].into_iter()), all.stored(G, 0)), (NO_ERROR, 7));
    }
}
