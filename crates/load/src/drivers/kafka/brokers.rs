//! The brokers of a cluster as one client knows them: its connection to each, the partitions that they lead, and the
//! coordinator of its group.

use pubmark_wire::kafka::BrokerMap;
use std::net::SocketAddr;

/// Place of no broker.
pub(super) const NOBODY: u8 = u8::MAX;

/// State of the connection to a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// There is none.
    Closed,
    /// ApiVersions is unanswered.
    Versions,
    /// SaslHandshake is.
    Mechanism,
    /// SaslAuthenticate is.
    Login,
    /// It takes any request.
    Up,
}

/// A question that any broker answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Question {
    /// True if the answer is needed.
    pub(super) is_open: bool,
    /// Place of the broker that has been asked.
    pub(super) asked: Option<u8>,
}

/// The brokers, by their places in the list of members.
pub(super) struct Brokers {
    addresses: Box<[String]>,
    pub(super) lanes: Box<[Lane]>,
    /// Broker of the frame that is arriving.
    pub(super) reading: Option<u8>,
    /// By partition: place of its leader.
    pub(super) leaders: Vec<u8>,
    /// Number and place of each broker.
    nodes: Vec<(i32, u8)>,
    /// Who leads.
    pub(super) map: Question,
    /// Who coordinates the group.
    pub(super) search: Question,
    pub(super) coordinator: Option<u8>,
    /// True if the position of a partition is asked for.
    pub(super) asks_position: bool,
    /// True if the client knows its topic: from then on some of its partitions may lack a leader.
    pub(super) knows_topic: bool,
    /// True if the end of a producer's way to the brokers is known to its caller.
    pub(super) has_said_connected: bool,
    pub(super) is_resting: bool,
    /// Answers after which a leader was still missing.
    pub(super) failed: u32,
}

impl Brokers {
    /// Makes the brokers at these addresses, of which one is connected.
    pub(super) fn new(members: &[SocketAddr], place: usize) -> Brokers {
        let mut lanes: Box<[Lane]> = members.iter().map(|_| Lane::Closed).collect();
        if let Some(lane) = lanes.get_mut(place) {
            *lane = Lane::Up;
        }
        Brokers {
            addresses: members.iter().map(SocketAddr::to_string).collect(),
            lanes,
            reading: None,
            leaders: Vec::new(),
            nodes: Vec::new(),
            map: Question::default(),
            search: Question::default(),
            coordinator: None,
            asks_position: false,
            knows_topic: false,
            has_said_connected: false,
            is_resting: false,
            failed: 0,
        }
    }

    pub(super) fn address(&self, place: u8) -> &str {
        self.addresses.get(usize::from(place)).map_or("", String::as_str)
    }

    pub(super) fn lane(&self, place: u8) -> Lane {
        self.lanes.get(usize::from(place)).copied().unwrap_or(Lane::Closed)
    }

    /// Returns the place of the leader of a partition, if it is known.
    pub(super) fn leader(&self, partition: i32) -> Option<u8> {
        self.leaders.get(partition as usize).copied().filter(|place| *place != NOBODY)
    }

    /// Returns the same if its connection takes requests.
    pub(super) fn leader_up(&self, partition: i32) -> Option<u8> {
        self.leader(partition).filter(|place| self.lane(*place) == Lane::Up)
    }

    /// Returns the place of the group's coordinator, if its connection takes requests.
    pub(super) fn coordinator_up(&self) -> Option<u8> {
        self.coordinator.filter(|place| self.lane(*place) == Lane::Up)
    }

    /// Returns the place of any broker that takes requests.
    pub(super) fn any_up(&self) -> Option<u8> {
        self.lanes.iter().position(|lane| *lane == Lane::Up).map(|place| place as u8)
    }

    /// True if a connection may come up.
    pub(super) fn is_opening(&self) -> bool {
        self.lanes.iter().any(|lane| !matches!(lane, Lane::Up | Lane::Closed))
    }

    /// Takes the leaders from an answer. A broker that is not among the members leads nothing.
    pub(super) fn learn(&mut self, map: &BrokerMap<'_>) {
        self.nodes.clear();
        for (node, host, port) in &map.brokers {
            let host = String::from_utf8_lossy(host);
            let host = if host.contains(':') { format!("[{host}]") } else { host.into_owned() };
            let address = format!("{host}:{port}");
            let place = self.addresses.iter().position(|known| *known == address);
            self.nodes.extend(place.map(|place| (*node, place as u8)));
        }
        self.leaders.clear();
        self.leaders.resize(map.leaders.len(), NOBODY);
        for (partition, node) in &map.leaders {
            let place = self.place_of(*node).unwrap_or(NOBODY);
            self.leaders.get_mut(*partition as usize).into_iter().for_each(|leader| *leader = place);
        }
    }

    /// Returns the place of the broker of this number.
    pub(super) fn place_of(&self, node: i32) -> Option<u8> {
        self.nodes.iter().find(|(known, _)| *known == node).map(|(_, place)| *place)
    }

    /// Forgets the leaders of the partitions for which this is true.
    pub(super) fn forget(&mut self, mut is_moved: impl FnMut(i32, u8) -> bool) {
        for (partition, place) in self.leaders.iter_mut().enumerate() {
            if *place != NOBODY && is_moved(partition as i32, *place) {
                *place = NOBODY;
            }
        }
    }
}
