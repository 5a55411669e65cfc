//! A consumer as a member of a group: it joins, reads from the stored offsets on, stores its own, and joins again when
//! the coordinator says so.
//!
//! A member has one connection, whose requests the broker answers one after the other. So heartbeats and commits wait
//! behind a fetch, for `fetch_wait` at most. It stores its offsets before it joins again and before it leaves. A consumer
//! that comes back on another connection joins again too: what it read since its last commit comes once more.

use super::consumer::Consumer;
use super::member::{COMMIT, FAREWELL, HEARTBEAT, Member, Standing, Step};
use super::names::{ClientNames, EXPECTED, GREETING};
use super::refusal::{decoded, refused};
use crate::drivers::foreign_peer::foreign;
use crate::session::{SessionError, SessionEvent};
use pubmark_model::kafka_group::GroupSettings;
use pubmark_wire::kafka::{
    self as wire, CommitList, KafkaApi, KafkaRequest, KafkaResponse, NO_ERROR, NO_OFFSET, PartitionList, ResponseFrame,
    assigned, put_commit, put_partition,
};

/// Progress of a member after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// A request is under way.
    Pending,
    /// Some of its partitions have no stored offset.
    Position,
    /// It may read.
    Up,
    /// The broker does not answer for the group any more, and others may.
    Lost,
}

/// Consequence of an answer for a member that has its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alive {
    /// None.
    Stays,
    /// It has to join again, once its fetches are answered.
    Rejoins,
    /// The broker does not answer for the group now.
    Lost,
}

impl Consumer {
    /// Asks for the coordinator of its group.
    pub(super) fn enter(&mut self, names: &ClientNames, out: &mut Vec<u8>) {
        self.assign(Vec::new());
        if let Some(member) = &mut self.member {
            member.find(names, out);
        }
    }

    /// Handles the answer to a request of the member.
    pub(super) fn coordinated(
        &mut self,
        settings: &GroupSettings,
        names: &ClientNames,
        frame: &ResponseFrame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Progress, SessionError> {
        let Some(member) = self.member.as_deref_mut() else { return Ok(Progress::Pending) };
        let Some(api) = member.step.api() else {
            member.find(names, out);
            return Ok(Progress::Pending);
        };
        let (what, error) = match decoded(api, frame)? {
            KafkaResponse::FindCoordinator(answer) if answer.error == NO_ERROR => {
                member.join(settings, names, out);
                return Ok(Progress::Pending);
            }
            KafkaResponse::FindCoordinator(answer) => ("the coordinator of a group", answer.error),
            KafkaResponse::JoinGroup(answer) if answer.error == NO_ERROR => {
                member.joined(settings, names, &answer, out);
                return Ok(Progress::Pending);
            }
            KafkaResponse::JoinGroup(answer) if answer.error == wire::MEMBER_ID_REQUIRED => {
                member.named(answer.member);
                member.join(settings, names, out);
                return Ok(Progress::Pending);
            }
            KafkaResponse::JoinGroup(answer) => ("a member of a group", answer.error),
            KafkaResponse::SyncGroup(NO_ERROR, share) => {
                let share =
                    assigned(share, names.topic.as_bytes()).map_err(|why| foreign(EXPECTED, frame.body, &why.0))?;
                return Ok(self.shared(names, share, out));
            }
            KafkaResponse::SyncGroup(error, _) => ("the share of a member", error),
            KafkaResponse::OffsetFetch(error, offsets) => {
                let first = offsets.iter().map(|(_, _, error)| error).find(|error| *error != NO_ERROR);
                match first.filter(|_| error == NO_ERROR).unwrap_or(error) {
                    NO_ERROR => {
                        offsets.iter().for_each(|(partition, offset, _)| self.stored(partition, offset));
                        let is_known = self.positions.iter().all(|position| position.next != NO_OFFSET);
                        self.place = 0;
                        return Ok(if is_known { Progress::Up } else { Progress::Position });
                    }
                    error => ("the stored offsets of a group", error),
                }
            }
            KafkaResponse::OffsetCommit(NO_ERROR) => return Ok(Progress::Up),
            KafkaResponse::OffsetCommit(error) => ("the offsets of a member", error),
            _ => return Ok(Progress::Pending),
        };
        let busy = || refused(what, error, None);
        match Member::standing(error) {
            Standing::Good | Standing::Rebalance => member.join(settings, names, out),
            Standing::Over => {
                if error == wire::UNKNOWN_MEMBER_ID {
                    member.forgotten();
                }
                member.join(settings, names, out);
            }
            Standing::NotReady if names.is_spread => return Ok(Progress::Lost),
            Standing::NotReady if member.rest(names, out) => {}
            Standing::NotReady | Standing::Refused => return Err(busy()),
        }
        Ok(Progress::Pending)
    }

    /// Takes its share, and asks for the offsets that are stored for it.
    fn shared(&mut self, names: &ClientNames, share: Vec<i32>, out: &mut Vec<u8>) -> Progress {
        let mut partitions = Vec::new();
        share.iter().for_each(|partition| put_partition(&mut partitions, *partition));
        self.assign(share);
        let Some(member) = self.member.as_deref_mut().filter(|_| !partitions.is_empty()) else { return Progress::Up };
        member.step = Step::Stored;
        let request = KafkaRequest::OffsetFetch {
            group: &member.group,
            topic: names.topic.as_bytes(),
            partitions: PartitionList::written(&partitions),
        };
        Member::put(names, GREETING, request, out);
        Progress::Pending
    }

    fn stored(&mut self, partition: i32, offset: i64) {
        let position = self.positions.iter_mut().find(|position| position.partition == partition);
        position.into_iter().for_each(|position| position.next = offset.max(NO_OFFSET));
    }

    /// Stores the offsets at which it begins, so that nothing is missed if another member goes on before it has stored
    /// any. Returns false if it is not a member of a group.
    pub(super) fn store_beginning(&mut self, names: &ClientNames, out: &mut Vec<u8>) -> bool {
        let Some(member) = &mut self.member else { return false };
        member.step = Step::Begin;
        self.commit(names, GREETING, out);
        true
    }

    /// Notes that it may read. Returns the number of the assignment.
    pub(super) fn begin_share(&mut self) -> Option<u32> {
        let member = self.member.as_deref_mut()?;
        (member.step, member.must_join, member.may_commit) = (Step::Up, false, true);
        (member.silent_ticks, member.uncommitted_ticks) = (0, 0);
        u32::try_from(member.generation).ok()
    }

    /// Stores its offsets.
    fn commit(&mut self, names: &ClientNames, correlation: i32, out: &mut Vec<u8>) {
        let Some(member) = &mut self.member else { return };
        let mut offsets = Vec::new();
        let known = self.positions.iter().filter(|position| position.next != NO_OFFSET);
        known.for_each(|position| put_commit(&mut offsets, position.partition, position.next));
        member.uncommitted_ticks = 0;
        if !offsets.is_empty() {
            let list = CommitList::written(&offsets);
            let request = KafkaRequest::OffsetCommit(member.membership(), names.topic.as_bytes(), list);
            Member::put(names, correlation, request, out);
        }
    }

    /// Sends a heartbeat and stores its offsets, if they are due.
    pub(super) fn tick(&mut self, settings: &GroupSettings, names: &ClientNames, out: &mut Vec<u8>) {
        let Some(member) = self.member.as_deref_mut().filter(|member| member.step == Step::Up) else { return };
        member.silent_ticks += 1;
        member.uncommitted_ticks += 1;
        if member.must_join || member.has_left {
            return;
        }
        if member.silent_ticks >= settings.heartbeat_ticks {
            member.silent_ticks = 0;
            Member::put(names, HEARTBEAT, KafkaRequest::Heartbeat(member.membership()), out);
        }
        if member.uncommitted_ticks >= settings.commit_ticks {
            self.commit(names, COMMIT, out);
        }
    }

    /// Handles the answer to a heartbeat, a commit or a farewell. Returns what follows for the member.
    pub(super) fn lives(&mut self, frame: &ResponseFrame<'_>) -> Result<Alive, SessionError> {
        let api = match frame.correlation {
            HEARTBEAT => KafkaApi::Heartbeat,
            COMMIT => KafkaApi::OffsetCommit,
            FAREWELL => KafkaApi::LeaveGroup,
            _ => return Err(foreign(EXPECTED, frame.body, "the answer is to a request that was not made")),
        };
        let (KafkaResponse::Heartbeat(error) | KafkaResponse::OffsetCommit(error)) = decoded(api, frame)? else {
            return Ok(Alive::Stays);
        };
        let Some(member) = self.member.as_deref_mut().filter(|member| member.step == Step::Up) else {
            return Ok(Alive::Stays);
        };
        match Member::standing(error) {
            Standing::Good => return Ok(Alive::Stays),
            Standing::NotReady => return Ok(Alive::Lost),
            Standing::Rebalance => {}
            Standing::Over => {
                member.may_commit = false;
                if error == wire::UNKNOWN_MEMBER_ID {
                    member.forgotten();
                }
            }
            Standing::Refused => return Err(refused("a member of a group", error, None)),
        }
        member.must_join = true;
        Ok(Alive::Rejoins)
    }

    /// True if it asks for no more records until it has a new share.
    pub(super) fn is_held(&self) -> bool {
        self.member.as_ref().is_some_and(|member| member.must_join || member.has_left)
    }

    /// Begins to join again, at a coordinator that is not known yet.
    pub(super) fn step_back(&mut self) {
        if let Some(member) = &mut self.member {
            (member.step, member.must_join, member.may_commit) = (Step::Coordinator, false, false);
        }
    }

    /// Gives up its partitions and joins the group again, or waits for its coordinator. Returns false if it has left.
    pub(super) fn rejoin(
        &mut self,
        settings: &GroupSettings,
        names: &ClientNames,
        has_coordinator: bool,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> bool {
        let Some(member) = self.member.as_deref().filter(|member| !member.has_left) else { return false };
        if member.may_commit && has_coordinator {
            self.commit(names, COMMIT, out);
        }
        heard(SessionEvent::Revoked);
        self.assign(Vec::new());
        match &mut self.member {
            Some(member) if has_coordinator => member.join(settings, names, out),
            _ => self.step_back(),
        }
        true
    }

    /// Stores its offsets and leaves the group.
    pub(super) fn leave(&mut self, names: &ClientNames, out: &mut Vec<u8>) {
        if self.member.as_ref().is_none_or(|member| member.step != Step::Up || member.has_left) {
            return;
        }
        self.commit(names, COMMIT, out);
        let Some(member) = &mut self.member else { return };
        member.has_left = true;
        let membership = member.membership();
        let request = KafkaRequest::LeaveGroup { group: membership.group, member: membership.member };
        Member::put(names, FAREWELL, request, out);
    }
}
