//! Who sends to whom: the patterns, and what sets each apart from the others.
//!
//! A new pattern is a line in the enumeration and a line in the table below it.
//! All other code asks the table, and none asks which pattern it is.

use crate::words::words;

words! {
    /// Who sends to whom.
    Pattern {
        /// N publishers, each with one subscriber of its own.
        Pairs = "pairs",
        /// Every subscriber hears every publisher; few publishers.
        FanOut = "fan-out",
        /// Every subscriber hears every publisher; few subscribers.
        FanIn = "fan-in",
        /// N requesters, each with one replier that echoes.
        RequestReply = "request-reply",
        /// Subscribers compete: each message goes to one of them (PUSH/PULL).
        Pipeline = "pipeline",
        /// Partitions of a topic tree system/subsystem/device/parameter: many
        /// publishers, and one subscriber at the root of each partition.
        Tree = "tree",
    }
}

/// Where messages go, and so which publishers a subscriber hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topics {
    /// A topic for each publisher, and one subscriber that listens to it: there
    /// are as many of the ones as of the others.
    Own,
    /// One topic for all, to which every subscriber listens.
    Shared,
    /// Several topics for each publisher, below its partition; each partition
    /// has one subscriber, which listens to all that is below it.
    Tree,
}

/// What sets a pattern apart.
struct Shape {
    topics: Topics,
    /// Whether a message goes to one of those that listen, instead of to all.
    competing: bool,
    /// Whether each message is answered, and latency is that of the round trip.
    round_trip: bool,
}

impl Pattern {
    /// The table.
    fn shape(self) -> Shape {
        let (topics, competing, round_trip) = match self {
            Pattern::Pairs => (Topics::Own, false, false),
            Pattern::FanOut => (Topics::Shared, false, false),
            Pattern::FanIn => (Topics::Shared, false, false),
            Pattern::RequestReply => (Topics::Own, false, true),
            Pattern::Pipeline => (Topics::Shared, true, false),
            Pattern::Tree => (Topics::Tree, false, false),
        };
        Shape { topics, competing, round_trip }
    }

    /// Where its messages go.
    pub fn topics(self) -> Topics {
        self.shape().topics
    }

    /// Whether each publisher has one subscriber of its own.
    pub fn paired(self) -> bool {
        self.topics() == Topics::Own
    }

    /// Whether subscribers compete: a message goes to one of those that listen.
    pub fn competing(self) -> bool {
        self.shape().competing
    }

    /// Whether messages are requests: each is answered before the next is sent,
    /// and latency is that of the round trip.
    pub fn round_trip(self) -> bool {
        self.shape().round_trip
    }
}
