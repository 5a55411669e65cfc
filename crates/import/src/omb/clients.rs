//! Clients of a workload: which pattern sends the same messages to the same clients.

use pubmark_model::flow::MOST_FLOWS;
use pubmark_model::pattern::Pattern;

/// The most clients of one side.
const CLIENTS_MAX: u64 = 1_000_000;

/// Numbers of a workload of OMB. Each subscription receives every message of its topic, and the consumers of one
/// subscription compete for its messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub topics: u64,
    /// Of each topic.
    pub producers: u64,
    /// Of each topic.
    pub subscriptions: u64,
    /// Of each subscription.
    pub consumers: u64,
}

/// Clients of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clients {
    pub pattern: Pattern,
    /// Of each flow.
    pub publishers: u64,
    /// Of each flow.
    pub subscribers: u64,
    /// Number of flows, which are equal.
    pub flows: u64,
}

/// Numbers that no pattern plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// The key to change.
    pub key: &'static str,
    pub message: String,
    pub help: String,
}

impl Numbers {
    /// Returns the clients that exchange the same messages.
    pub fn clients(self) -> Result<Clients, Misfit> {
        let Numbers { topics, producers, subscriptions, consumers } = self;
        let misfit = |key, message: String, help: String| Err(Misfit { key, message, help });
        let by_key = [
            ("topics", topics),
            ("producersPerTopic", producers),
            ("subscriptionsPerTopic", subscriptions),
            ("consumerPerSubscription", consumers),
        ];
        if let Some((key, number)) = by_key.into_iter().find(|(_, number)| !(1..=CLIENTS_MAX).contains(number)) {
            let message = format!("{key} must be 1 to {CLIENTS_MAX}, but is {number}");
            return misfit(key, message, "Use at least one topic, producer, subscription and consumer.".into());
        }
        if subscriptions > 1 && consumers > 1 {
            return misfit(
                "consumerPerSubscription",
                format!(
                    "consumerPerSubscription is {consumers} and subscriptionsPerTopic is {subscriptions}: pubmark has no \
                     topic with several groups of competing subscribers"
                ),
                "Set consumerPerSubscription: 1 (every subscriber receives every message: fan-out), or \
                 subscriptionsPerTopic: 1 (the subscribers compete: pipeline)."
                    .into(),
            );
        }
        let is_pair = producers == 1 && subscriptions == 1 && consumers == 1;
        if is_pair {
            return Ok(Clients { pattern: Pattern::Pairs, publishers: topics, subscribers: topics, flows: 1 });
        }
        if topics > MOST_FLOWS as u64 {
            return misfit(
                "topics",
                format!(
                    "topics is {topics}: pubmark plays at most {MOST_FLOWS} topics that have several clients of one side \
                     (a flow for each)"
                ),
                format!(
                    "Set topics: {MOST_FLOWS} or fewer; or set producersPerTopic, subscriptionsPerTopic and \
                     consumerPerSubscription to 1, which is possible with {CLIENTS_MAX} topics (pairs)."
                ),
            );
        }
        let pattern = match (subscriptions, consumers) {
            (1, 1) => Pattern::FanIn,
            (_, 1) => Pattern::FanOut,
            _ => Pattern::Pipeline,
        };
        Ok(Clients { pattern, publishers: producers, subscribers: subscriptions.max(consumers), flows: topics })
    }
}

impl Clients {
    /// Returns the number of publishers of all flows.
    pub fn all_publishers(self) -> u64 {
        self.publishers.saturating_mul(self.flows)
    }

    /// Returns the lines of a study.
    pub fn keys(self) -> String {
        let Clients { pattern, publishers, subscribers, .. } = self;
        match pattern {
            Pattern::Pairs => format!("pattern = \"pairs\"\npairs = {publishers}\n"),
            _ => format!("pattern = \"{pattern}\"\npublishers = {publishers}\nsubscribers = {subscribers}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mix_is_the_pattern_with_the_same_traffic() {
        let of = |topics, producers, subscriptions, consumers| {
            let found = Numbers { topics, producers, subscriptions, consumers }.clients();
            found.map(|found| (found.pattern, found.publishers, found.subscribers, found.flows)).map_err(|no| no.key)
        };
        use Pattern::{FanIn, FanOut, Pairs, Pipeline};
        assert_eq!(of(1, 1, 1, 1), Ok((Pairs, 1, 1, 1)));
        assert_eq!(of(100_000, 1, 1, 1), Ok((Pairs, 100_000, 100_000, 1)));
        assert_eq!(of(1, 4, 1, 1), Ok((FanIn, 4, 1, 1)));
        assert_eq!(of(1, 1, 3, 1), Ok((FanOut, 1, 3, 1)));
        assert_eq!(of(1, 2, 3, 1), Ok((FanOut, 2, 3, 1)));
        assert_eq!(of(1, 2, 1, 4), Ok((Pipeline, 2, 4, 1)));
        assert_eq!(of(3, 2, 2, 1), Ok((FanOut, 2, 2, 3)));
        assert_eq!(of(16, 1, 1, 2), Ok((Pipeline, 1, 2, 16)));
        assert_eq!(of(17, 1, 1, 2), Err("topics"));
        assert_eq!(of(1, 1, 2, 2), Err("consumerPerSubscription"));
        assert_eq!(of(0, 1, 1, 1), Err("topics"));
        assert_eq!(of(1, 1, 1, 0), Err("consumerPerSubscription"));
        assert_eq!(of(1, 2_000_000, 1, 1), Err("producersPerTopic"));
    }
}
