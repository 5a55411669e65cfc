//! Names of a client, and those of its requests.

use pubmark_wire::kafka::{KafkaRequest, RequestFrame};

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
    /// True if it has connections to several brokers: the place of one precedes each request.
    pub is_spread: bool,
    /// Place of the broker that the next request is for.
    pub to: u8,
}

impl ClientNames {
    /// Appends a request.
    pub fn put(&self, correlation: i32, request: KafkaRequest<'_>, out: &mut Vec<u8>) {
        self.put_to(self.to, correlation, request, out);
    }

    /// Appends a request for the broker at this place.
    pub fn put_to(&self, place: u8, correlation: i32, request: KafkaRequest<'_>, out: &mut Vec<u8>) {
        self.front(place, out);
        RequestFrame { correlation, client: self.client.as_bytes(), request }.put(out);
    }

    /// Appends what precedes a request for the broker at this place.
    #[inline]
    pub fn front(&self, place: u8, out: &mut Vec<u8>) {
        if self.is_spread {
            out.push(place);
        }
    }
}
