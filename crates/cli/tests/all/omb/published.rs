//! Workload files that others published, by their values: from github.com/openmessaging/benchmark and forks of it.

/// Minutes as a placeholder for a script of a fork.
const SCRIPT: &str = "${ombTestDuration:-15}";

/// Outcome of an import.
pub enum Outcome {
    /// A study with these lines.
    Study(&'static [&'static str]),
    /// An error with these parts.
    Error(&'static [&'static str]),
}
use Outcome::{Error, Study};

/// A published workload.
pub struct PublishedWorkload {
    pub file: &'static str,
    /// Topics, partitions of each, bytes of a message.
    topics: (u64, u64, u64),
    /// Producers and subscriptions of each topic, and consumers of each subscription.
    clients: (u64, u64, Option<u64>),
    rate: u64,
    minutes: &'static str,
    /// Further lines.
    more: &'static [&'static str],
    pub outcome: Outcome,
}

impl PublishedWorkload {
    /// Returns a file with these values.
    pub fn text(&self) -> String {
        let (topics, partitions, bytes) = self.topics;
        let (producers, subscriptions, consumers) = self.clients;
        let mut text = format!(
            "name: {}\n\ntopics: {topics}\npartitionsPerTopic: {partitions}\nmessageSize: {bytes}\n\
             subscriptionsPerTopic: {subscriptions}\nproducersPerTopic: {producers}\nproducerRate: {}\n\
             testDurationMinutes: {}\n",
            self.file, self.rate, self.minutes
        );
        if let Some(consumers) = consumers {
            text += &format!("consumerPerSubscription: {consumers}\n");
        }
        self.more.iter().for_each(|line| text += &format!("{line}\n"));
        text
    }
}

const RANDOM: [&str; 3] = ["useRandomizedPayloads: true", "randomBytesRatio: 0.5", "randomizedPayloadPoolSize: 1000"];
const NO_BACKLOG: &str = "consumerBacklogSizeGB: 0";
const FILE_100B: &str = "payloadFile: \"payload/payload-100b.data\"";
const FILE_1KB: &str = "payloadFile: \"payload/payload-1Kb.data\"";

macro_rules! published {
    ($($file:literal: $topics:tt $clients:tt $rate:literal $minutes:expr, [$($more:expr),*] => $outcome:expr;)+) => {
        /// The workloads.
        pub const PUBLISHED: &[PublishedWorkload] = &[$(PublishedWorkload {
            file: $file, topics: $topics, clients: $clients, rate: $rate, minutes: $minutes, more: &[$($more),*],
            outcome: $outcome,
        }),+];
    };
}

published! {
    "1-topic-1-partition-100b": (1, 1, 100) (1, 1, Some(1)) 50_000 "15", [FILE_100B, NO_BACKLOG]
        => Study(&["pairs = 1", "rate = 50000", "payload = \"100B\"", "warmup = \"1m\"", "duration = \"15m\""]);
    "1-topic-1-partition-1kb": (1, 1, 1_024) (1, 1, Some(1)) 50_000 "15", ["keyDistributor: \"NO_KEY\"", FILE_1KB]
        => Study(&["pairs = 1", "rate = 50000", "payload = \"1024B\""]);
    "1-topic-1-partition-1kb-with-key": (1, 1, 1_024) (1, 1, Some(1)) 50 "15", ["keyDistributor: \"KEY_ROUND_ROBIN\""]
        => Study(&["pairs = 1", "rate = 50\n"]);
    "1-topic-1-partition-64p-2c": (1, 1, 10_000) (64, 1, Some(2)) 50_000 "5",
        ["warmupDurationMinutes: 1", "useRandomizedPayloads: false", NO_BACKLOG]
        => Study(&["pattern = \"pipeline\"", "publishers = 64", "subscribers = 2", "rate = 781.250"]);
    "1-topic-1-partition-1kb-increment": (1, 1, 1_024) (1, 1, Some(1)) 1_000 SCRIPT,
        ["producerStartRate: 100", "producerIncrementRate: 100", "producerIncrementSeconds: 60"]
        => Error(&["producerIncrementRate is 100", "rate = \"steps …\"", "testDurationMinutes must be a whole number"]);
    "1-topic-1-producer-1-consumer-1Kb": (1, 1, 1_024) (1, 1, None) 15_000 "15", [NO_BACKLOG]
        => Error(&["consumerPerSubscription is missing"]);
    "backlog-1-topic-1-partition-1kb": (1, 1, 1_024) (1, 1, None) 100_000 "5", ["consumerBacklogSizeGB: 100", FILE_1KB]
        => Error(&["consumerBacklogSizeGB is 100", "consumerPerSubscription is missing", "pause the subscribers"]);
    "simple-workload": (1, 10, 1_024) (1, 1, Some(1)) 10_000 "5", [FILE_1KB, NO_BACKLOG]
        => Error(&["partitionsPerTopic is 10", "Set partitionsPerTopic: 1"]);
    "1-topic-16-partition-100b": (1, 16, 100) (1, 1, Some(1)) 50_000 SCRIPT, [FILE_100B]
        => Error(&["partitionsPerTopic is 16", "testDurationMinutes must be a whole number, 0 or more, but is a placeholder"]);
    "1-topic-3-partition-100b-3producers": (1, 3, 100) (3, 1, None) 0 "15", [FILE_100B]
        => Error(&["partitionsPerTopic is 3", "consumerPerSubscription is missing"]);
    "1-topic-6-partition-20b": (1, 6, 20) (1, 1, Some(1)) 5_000 "5", ["keyDistributor: \"KEY_ROUND_ROBIN\""]
        => Error(&["partitionsPerTopic is 6"]);
    "1-topic-2-partitions-20b": (1, 2, 20) (1, 1, Some(1)) 5_000 "5", ["ensureTopicsAreReady: false"]
        => Error(&["partitionsPerTopic is 2"]);
    "1-topic-100-partitions-1kb-4p-4c-200k-backlog": (1, 100, 1_024) (4, 1, Some(4)) 200_000 "5",
        [RANDOM[0], RANDOM[1], RANDOM[2], "consumerBacklogSizeGB: 512"]
        => Error(&["partitionsPerTopic is 100", "consumerBacklogSizeGB is 512"]);
    "250k-1-topic-100-partitions-100p-100c-1k": (1, 100, 1_024) (100, 1, Some(100)) 250_000 "10", [RANDOM[0]]
        => Error(&["partitionsPerTopic is 100"]);
    "10k-1-topic-20-partitions-2k": (1, 20, 2_048) (20, 1, Some(20)) 10_000 "30", [RANDOM[0]]
        => Error(&["partitionsPerTopic is 20"]);
    "8k-producers": (1, 60, 1_024) (8_000, 2, Some(1)) 1_000 "5", ["keyDistributor: \"RANDOM_NANO\""]
        => Error(&["partitionsPerTopic is 60"]);
    "max-rate-1-topic-1-partition-1p-1c-1kb": (1, 1, 1_024) (1, 1, Some(1)) 10_000_000 "5", [RANDOM[0], RANDOM[1]]
        => Error(&["producerRate is 10000000 for 1 producer:", "set producerRate: 0"]);
    "max-rate-1-topic-1-partition-1p-1c-64kb": (1, 1, 65_536) (1, 1, Some(1)) 10_000_000 SCRIPT, [RANDOM[0]]
        => Error(&["producerRate is 10000000 for 1 producer:", "testDurationMinutes"]);
    "max-rate-1-topic-1-partition-4p-1c-1kb": (1, 1, 1_024) (4, 1, Some(1)) 10_000_000 "5", [RANDOM[0]]
        => Error(&["producerRate is 10000000 for 4 producers"]);
    "max-rate-10-topics-1-partition-1kb": (10, 1, 1_024) (1, 1, Some(1)) 10_000_000 "15", [RANDOM[0]]
        => Study(&["pairs = 10", "rate = 1000000\n"]);
    "1m-10-topics-1-partition-100b": (10, 1, 100) (1, 1, Some(1)) 1_000_000 "15", [RANDOM[0], NO_BACKLOG]
        => Study(&["pairs = 10", "rate = 100000\n", "payload = \"100B\""]);
    "1m-10-topics-3-partitions-100b-64gb-backlog": (10, 3, 100) (1, 1, Some(1)) 1_000_000 SCRIPT,
        ["acceptableBacklog: 50000", "producerPauseDuringDrain: 1", "consumerBacklogSizeGB: 64"]
        => Error(&["partitionsPerTopic is 3", "consumerBacklogSizeGB is 64", "testDurationMinutes"]);
    "100k-10-topics-3-partitions-1k-1gb-catchup": (10, 3, 1_024) (1, 1, Some(1)) 100_000 "15",
        ["acceptableBacklog: 150000", "producerPauseDuringDrain: 0", "consumerBacklogSizeGB: 1"]
        => Error(&["partitionsPerTopic is 3", "consumerBacklogSizeGB is 1"]);
    "200k-2-selectors-10-topics-3-partitions-1k": (10, 3, 1_024) (1, 2, Some(1)) 200_000 "15",
        ["messageRateReceivedForSubscription: 50"]
        => Error(&["partitionsPerTopic is 3", "messageRateReceivedForSubscription is 50"]);
    "10-topic-3-partitions-100b-1p-2c-1k": (10, 3, 100) (1, 1, Some(2)) 1_000 "10", [RANDOM[0]]
        => Error(&["partitionsPerTopic is 3"]);
    "2500k-10-topics-10-partitions-50b-increment": (10, 10, 50) (1, 1, Some(1)) 4_000_000 "15",
        ["producerStartRate: 2500000", "producerIncrementRate: 100000", "producerIncrementSeconds: 30"]
        => Error(&["partitionsPerTopic is 10", "producerIncrementRate is 100000"]);
    "100-topics-1-partitions-1kb": (100, 1, 1_024) (1, 3, Some(1)) 150_000 "80", [FILE_1KB]
        => Error(&["topics is 100", "at most 16 topics that have several clients of one side"]);
    "100-topics-2-producers-2-subscriptions": (100, 1, 1_024) (2, 2, Some(1)) 500 "25", ["warmupDurationMinutes: 5"]
        => Error(&["topics is 100", "Set topics: 16 or fewer"]);
    "100-topic-1kb-4p-4c-500k": (100, 1, 1_024) (4, 1, Some(4)) 500_000 "5", [RANDOM[0]]
        => Error(&["topics is 100"]);
    "1m-topic-1kb-4p-4c-500k": (1_000_000, 1, 1_024) (4, 1, Some(4)) 500_000 "5", [RANDOM[0]]
        => Error(&["topics is 1000000", "to 1, which is possible with 1000000 topics (pairs)"]);
}
