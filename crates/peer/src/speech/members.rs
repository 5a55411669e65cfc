//! Members of a server that is a cluster: who leads what, and who is away.

use crate::script::AwayMember;
use pubmark_model::units::Ns;

/// Presence of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Presence {
    /// It leads its share.
    #[default]
    Here,
    /// It is away, and nobody leads its share.
    Away,
    /// It is back, and the next member leads its share.
    Back,
}

/// The members of a server, by their places.
#[derive(Default)]
pub struct PeerMembers {
    /// Port of each member; empty for a server that is no cluster.
    pub ports: Vec<u16>,
    presence: Vec<Presence>,
    /// Number of scripted absences that have begun.
    left: usize,
    numbered: u32,
}

impl PeerMembers {
    /// Makes the members with these ports.
    pub fn new(ports: Vec<u16>) -> PeerMembers {
        let presence = vec![Presence::Here; ports.len()];
        PeerMembers { ports, presence, left: 0, numbered: 0 }
    }

    /// Returns another number at each call.
    pub fn number(&mut self) -> u32 {
        self.numbered += 1;
        self.numbered
    }

    /// True if there are several.
    pub fn are_several(&self) -> bool {
        self.ports.len() > 1
    }

    /// Returns the place of the member that leads the part of this number; `None` if nobody does.
    pub fn leader(&self, part: u32) -> Option<usize> {
        let first = part as usize % self.ports.len().max(1);
        match self.presence.get(first)? {
            Presence::Here => Some(first),
            Presence::Away => None,
            Presence::Back => Some((first + 1) % self.ports.len()),
        }
    }

    /// Returns the next scripted absence, if it is of the member at this place.
    pub fn next_absence<'a>(&self, place: usize, script: &'a [AwayMember]) -> Option<&'a AwayMember> {
        script.get(self.left).filter(|away| away.member == place)
    }

    /// Notes that a member is away.
    pub fn leaves(&mut self, place: usize) {
        self.left += 1;
        self.presence[place] = Presence::Away;
    }

    /// Notes that a member is back.
    pub fn returns(&mut self, place: usize) {
        self.presence[place] = Presence::Back;
    }

    /// True if the member at this place takes connections.
    pub fn is_here(&self, place: usize) -> bool {
        self.presence.get(place) != Some(&Presence::Away)
    }
}

/// A member that leaves: its place, and for how long, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// Its place.
    pub place: usize,
    /// Length of its absence, ns.
    pub for_ns: Ns,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_a_member_that_was_away_is_led_by_the_next() {
        let mut members = PeerMembers::new(vec![1, 2, 3]);
        assert_eq!((0..4).map(|part| members.leader(part)).collect::<Vec<_>>(), [Some(0), Some(1), Some(2), Some(0)]);
        members.leaves(2);
        assert_eq!((members.leader(2), members.leader(5), members.is_here(2)), (None, None, false));
        members.returns(2);
        assert_eq!((members.leader(2), members.is_here(2)), (Some(0), true));
    }
}
