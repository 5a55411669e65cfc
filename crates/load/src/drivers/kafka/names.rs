//! Names of a client, and those of its requests.

/// Name of the expected peer in the error for a foreign one.
pub const EXPECTED: &str = "Kafka's protocol";
/// Correlation of the requests before a client is connected, of which one is under way at a time.
pub const GREETING: i32 = 0;

/// Names of a client.
pub struct ClientNames {
    pub client: Box<str>,
    /// Empty for a client that only removes topics.
    pub topic: Box<str>,
    /// True if the topic must exist.
    pub is_given: bool,
}
