//! The topics of a flow whose messages have a topic each.

use crate::draw::{Choice, Draw, PublisherDraw};
use crate::words::words;
use serde::{Deserialize, Serialize};

/// Most topics.
pub const MOST_TOPICS: u32 = 100_000;

words! {
    /// Subscriptions to many topics.
    Subscriptions {
        /// One to all topics, with a wildcard.
        Wildcard = "wildcard",
        /// One to each topic, by its name.
        Each = "each",
    }
}

/// The topics of a flow, and how its clients use them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Told", into = "Told")]
pub struct TopicSet {
    draw: Draw,
    subscriptions: Subscriptions,
}

/// The form in records and between processes.
#[derive(Serialize, Deserialize)]
struct Told {
    count: u32,
    choice: String,
    subscriptions: Subscriptions,
}

/// Reasons why topics that were recorded cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicSetError {
    /// There are too many topics, or none.
    #[error("there are 1 to {MOST_TOPICS} topics, not {0}")]
    Count(u32),
    /// The choice is unknown.
    #[error(transparent)]
    Choice(#[from] crate::draw::UnknownChoice),
}

impl TryFrom<Told> for TopicSet {
    type Error = TopicSetError;
    fn try_from(told: Told) -> Result<TopicSet, TopicSetError> {
        if !(1..=MOST_TOPICS).contains(&told.count) {
            return Err(TopicSetError::Count(told.count));
        }
        Ok(TopicSet::new(told.count, Choice::parse(&told.choice)?, told.subscriptions))
    }
}

impl From<TopicSet> for Told {
    fn from(set: TopicSet) -> Told {
        Told { count: set.count(), choice: set.draw.choice().to_string(), subscriptions: set.subscriptions }
    }
}

impl TopicSet {
    /// Makes a set of `count` topics, 1 to [`MOST_TOPICS`].
    pub fn new(count: u32, choice: Choice, subscriptions: Subscriptions) -> TopicSet {
        TopicSet { draw: Draw::new(count, choice), subscriptions }
    }

    /// Returns how many topics there are.
    pub fn count(&self) -> u32 {
        self.draw.count()
    }

    /// True if each topic is subscribed to by its name.
    pub fn is_each(&self) -> bool {
        self.subscriptions == Subscriptions::Each
    }

    /// Returns the topics of a publisher's messages in a run with this seed.
    pub fn of_publisher(&self, seed: u64, publisher: u32) -> PublisherDraw {
        PublisherDraw::of_topics(self.draw.clone(), seed, publisher)
    }
}
