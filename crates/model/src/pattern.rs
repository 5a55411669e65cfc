//! Messaging patterns and their properties.
//!
//! A new pattern is a line in the enumeration and a line in the table below it. All other code asks
//! for the properties, never for the pattern.

use crate::role::Role;
use crate::words::words;

words! {
    /// Messaging pattern.
    Pattern {
        /// N publishers, each with one subscriber of its own.
        Pairs = "pairs",
        /// Every subscriber receives from every publisher; few publishers.
        FanOut = "fan-out",
        /// Every subscriber receives from every publisher; few subscribers.
        FanIn = "fan-in",
        /// N requesters, each with one replier that echoes.
        RequestReply = "request-reply",
        /// One publisher; every subscriber receives from it, and the first of them echoes.
        FanOutEcho = "fan-out-echo",
        /// Subscribers compete: each message goes to one of them (PUSH/PULL).
        Pipeline = "pipeline",
        /// Partitions of a topic tree system/subsystem/device/parameter: many
        /// publishers, and one subscriber at the root of each partition.
        Tree = "tree",
    }
}

/// Topics of the messages, which determine the publishers that a subscriber receives from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topics {
    /// A topic for each publisher, with one subscriber each.
    Own,
    /// One topic for all, to which every subscriber subscribes.
    Shared,
    /// Several topics for each publisher, below its partition. Each partition has one subscriber,
    /// which subscribes to all topics below it.
    Tree,
}

/// Clients that reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// No client.
    Nobody,
    /// The receiver of the message, which is a request.
    Replier,
    /// The first of all receivers of the message.
    First,
}

/// Properties of a pattern.
struct Shape {
    topics: Topics,
    /// True if a message goes to one of the subscribers, instead of to all.
    competing: bool,
    answers: Answers,
}

impl Pattern {
    /// Returns its properties.
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

    /// Returns the topics of its messages.
    pub fn topics(self) -> Topics {
        self.shape().topics
    }

    /// True if each publisher has one subscriber of its own.
    pub fn paired(self) -> bool {
        self.topics() == Topics::Own
    }

    /// True if subscribers compete: a message goes to one of them.
    pub fn competing(self) -> bool {
        self.shape().competing
    }

    /// True if each message is answered before the next is sent, and latency is that of the round
    /// trip.
    pub fn round_trip(self) -> bool {
        self.shape().answers != Answers::Nobody
    }

    /// True if messages are requests: each goes to one replier, which answers it.
    pub fn requests(self) -> bool {
        self.shape().answers == Answers::Replier
    }

    /// Returns the roles of those that send by the schedule, and of those that receive from them.
    pub fn roles(self) -> (Role, Role) {
        if self.requests() { (Role::Requester, Role::Replier) } else { (Role::Publisher, Role::Subscriber) }
    }

    /// True if the first of several subscribers echoes what all of them receive. There is one
    /// publisher.
    pub fn echoed(self) -> bool {
        self.shape().answers == Answers::First
    }
}
