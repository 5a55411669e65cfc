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
        /// One publisher; every subscriber hears it, and the first of them echoes.
        FanOutEcho = "fan-out-echo",
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

/// Who answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// Nobody.
    Nobody,
    /// Whoever gets the message, which is a request.
    Replier,
    /// Of all that hear the message, the first.
    First,
}

/// What sets a pattern apart.
struct Shape {
    topics: Topics,
    /// Whether a message goes to one of those that listen, instead of to all.
    competing: bool,
    answers: Answers,
}

impl Pattern {
    /// The table.
    fn shape(self) -> Shape {
        let (topics, competing, answers) = match self {
            Pattern::Pairs => (Topics::Own, false, Answers::Nobody),
            Pattern::FanOut => (Topics::Shared, false, Answers::Nobody),
            Pattern::FanIn => (Topics::Shared, false, Answers::Nobody),
            Pattern::RequestReply => (Topics::Own, false, Answers::Replier),
            Pattern::FanOutEcho => (Topics::Shared, false, Answers::First),
            Pattern::Pipeline => (Topics::Shared, true, Answers::Nobody),
            Pattern::Tree => (Topics::Tree, false, Answers::Nobody),
        };
        Shape { topics, competing, answers }
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

    /// Whether each message is answered before the next is sent, and latency is
    /// that of the round trip.
    pub fn round_trip(self) -> bool {
        self.shape().answers != Answers::Nobody
    }

    /// Whether messages are requests: each for one replier, which answers it.
    pub fn requests(self) -> bool {
        self.shape().answers == Answers::Replier
    }

    /// Whether the first of several subscribers echoes what all of them hear.
    /// There is one publisher.
    pub fn echoed(self) -> bool {
        self.shape().answers == Answers::First
    }
}
