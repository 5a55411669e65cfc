//! Brokers and leaders in an answer about topics.

use super::read::Fields;
use crate::Malformed;

/// Fewest bytes of a broker in the answer.
const BROKER_BYTES: usize = 4 + 2 + 4 + 2;
/// Fewest bytes of a topic in the answer.
const TOPIC_BYTES: usize = 2 + 2 + 1 + 4;
/// Fewest bytes of a partition in the answer.
const PARTITION_BYTES: usize = 2 + 4 + 4 + 4 + 4;

/// The brokers of a cluster, and those that lead partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerMap<'a> {
    /// Number, host and port of each broker.
    pub brokers: Vec<(i32, &'a [u8], u16)>,
    /// By partition, over all topics: the number of the broker that leads it, negative if none does.
    pub leaders: Vec<i32>,
}

impl<'a> BrokerMap<'a> {
    /// Reads the body of an answer to a request for metadata.
    ///
    /// # Errors
    /// The body is shorter than its fields, or a port is out of range.
    pub fn decode(body: &'a [u8]) -> Result<BrokerMap<'a>, Malformed> {
        let mut fields = Fields(body);
        let mut map = BrokerMap::default();
        let _throttle = fields.i32()?;
        for _ in 0..fields.count(BROKER_BYTES)? {
            let (id, host, port, _rack) = (fields.i32()?, fields.some_text()?, fields.i32()?, fields.text()?);
            let port = u16::try_from(port).map_err(|_| Malformed::new("a broker's port is out of range"))?;
            map.brokers.push((id, host, port));
        }
        let (_cluster, _controller) = (fields.text()?, fields.i32()?);
        for _ in 0..fields.count(TOPIC_BYTES)? {
            let (_error, _topic, _internal) = (fields.i16()?, fields.some_text()?, fields.i8()?);
            for _ in 0..fields.count(PARTITION_BYTES)? {
                let (_error, _partition) = (fields.i16()?, fields.i32()?);
                map.leaders.push(fields.i32()?);
                for _ in 0..2 {
                    let replicas = fields.count(4)?;
                    fields.take(4 * replicas)?;
                }
            }
        }
        Ok(map)
    }

    /// Returns the address (`host:port`) of the broker that leads the first partition; `None` if nobody does.
    pub fn first_leader(&self) -> Option<String> {
        let leader = *self.leaders.first()?;
        let (_, host, port) = self.brokers.iter().find(|(id, _, _)| *id == leader)?;
        Some(format!("{}:{port}", String::from_utf8_lossy(host)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Vec<u8> {
        let mut body = vec![0, 0, 0, 0, 0, 0, 0, 2];
        for (id, port) in [(1, 9_092_i32), (2, 9_093)] {
            body.extend([0, 0, 0, id, 0, 1, b'h']);
            body.extend(port.to_be_bytes());
            body.extend([0xFF, 0xFF]);
        }
        // No cluster, controller 1, one topic `t` with two partitions: 2 leads one, nobody the other.
        body.extend([0xFF, 0xFF, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, b't', 0, 0, 0, 0, 2]);
        for (partition, leader) in [(0, 2_i32), (1, -1)] {
            body.extend([0, 0, 0, 0, 0, partition]);
            body.extend(leader.to_be_bytes());
            body.extend([0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
        }
        body
    }

    #[test]
    fn brokers_and_leaders_are_read() {
        let body = answer();
        let map = BrokerMap::decode(&body).unwrap();
        assert_eq!(map.brokers, [(1, &b"h"[..], 9_092), (2, &b"h"[..], 9_093)]);
        assert_eq!(map.leaders, [2, -1]);
        assert_eq!(map.first_leader().as_deref(), Some("h:9093"));
        for length in 0..body.len() {
            assert!(BrokerMap::decode(&body[..length]).is_err(), "{length}");
        }
    }
}
