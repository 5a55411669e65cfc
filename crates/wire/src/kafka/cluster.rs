//! Brokers and leaders in an answer about topics.

use super::error::{LEADER_NOT_AVAILABLE, NO_ERROR};
use super::read::{Fields, close_length, put_i16, put_i32, put_some_text, put_text};
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
    /// Each partition, over all topics, and the number of the broker that leads it, negative if none does.
    pub leaders: Vec<(i32, i32)>,
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
                let (_error, partition, leader) = (fields.i16()?, fields.i32()?, fields.i32()?);
                map.leaders.push((partition, leader));
                for _ in 0..2 {
                    let replicas = fields.count(4)?;
                    fields.take(4 * replicas)?;
                }
            }
        }
        Ok(map)
    }

    /// Appends the answer to a request with this correlation for a topic, whose leaders these are: a partition without one
    /// has the error LEADER_NOT_AVAILABLE.
    pub fn put(&self, correlation: i32, topic: &[u8], out: &mut Vec<u8>) {
        put_i32(out, 0);
        let at = out.len();
        for number in [correlation, 0, self.brokers.len() as i32] {
            put_i32(out, number);
        }
        for (id, host, port) in &self.brokers {
            put_i32(out, *id);
            put_text(out, host);
            put_i32(out, (*port).into());
            put_some_text(out, None);
        }
        put_some_text(out, None);
        put_i32(out, 0);
        put_i32(out, 1);
        put_i16(out, NO_ERROR);
        put_text(out, topic);
        out.push(0);
        put_i32(out, self.leaders.len() as i32);
        for (partition, leader) in &self.leaders {
            put_i16(out, if *leader < 0 { LEADER_NOT_AVAILABLE } else { NO_ERROR });
            for number in [*partition, *leader, 0, 0] {
                put_i32(out, number);
            }
        }
        close_length(out, at);
    }

    /// Returns the address (`host:port`) of the broker that leads this partition; `None` if nobody does.
    pub fn leader_of(&self, partition: i32) -> Option<String> {
        let (_, leader) = *self.leaders.iter().find(|(number, _)| *number == partition)?;
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
        assert_eq!(map.leaders, [(0, 2), (1, -1)]);
        assert_eq!((map.leader_of(0).as_deref(), map.leader_of(1)), (Some("h:9093"), None));
        for length in 0..body.len() {
            assert!(BrokerMap::decode(&body[..length]).is_err(), "{length}");
        }
    }
}
