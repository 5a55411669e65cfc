//! One client of the sink: forty-odd bytes while it is idle.

use pubmark_wire::Malformed;
use pubmark_wire::mqtt::server::{self, ServerPacket};
use pubmark_wire::mqtt::{Ack, Connack, Qos, Version, encode, packet_bytes};
use std::os::fd::OwnedFd;

/// True for a PUBLISH at QoS 0, retained or not.
fn is_message(first: u8) -> bool {
    first & 0xFE == 0x30
}

/// One client.
pub struct SinkClient {
    socket: OwnedFd,
    /// `None` before its CONNECT.
    version: Option<Version>,
    over: bool,
    /// Remaining bytes of a message, which are discarded.
    skip: u32,
    /// The beginning of a packet that has to be read as a whole.
    rest: Vec<u8>,
}

impl SinkClient {
    /// Makes a client that has just connected.
    pub fn new(socket: OwnedFd) -> SinkClient {
        SinkClient { socket, version: None, over: false, skip: 0, rest: Vec::new() }
    }

    /// Returns its connection.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// True if it has disconnected.
    pub fn over(&self) -> bool {
        self.over
    }

    /// Takes bytes, appends answers, and returns how many messages ended in the bytes.
    pub fn take(&mut self, bytes: &[u8], answers: &mut Vec<u8>) -> Result<u64, Malformed> {
        let skipped = bytes.len().min(self.skip as usize);
        let mut messages = u64::from(skipped > 0 && skipped == self.skip as usize);
        self.skip -= skipped as u32;
        let joined;
        let mut left = &bytes[skipped..];
        if !self.rest.is_empty() {
            self.rest.extend_from_slice(left);
            joined = std::mem::take(&mut self.rest);
            left = &joined;
        }
        while let Some(first) = left.first() {
            if self.version.is_some() && is_message(*first) {
                let Some(total) = packet_bytes(left)? else { break };
                match left.get(total..) {
                    Some(rest) => (left, messages) = (rest, messages + 1),
                    None => {
                        self.skip = (total - left.len()) as u32;
                        return Ok(messages);
                    }
                }
                continue;
            }
            match self.packet(left, answers, &mut messages)? {
                Some(used) => left = &left[used..],
                None => break,
            }
        }
        self.rest = left.to_vec();
        Ok(messages)
    }

    /// Answers the packet at the start of `bytes`; returns its length, if it is complete.
    fn packet(&mut self, bytes: &[u8], answers: &mut Vec<u8>, messages: &mut u64) -> Result<Option<usize>, Malformed> {
        let Some(version) = self.version else {
            let Some((version, _, used)) = server::connect(bytes)? else { return Ok(None) };
            self.version = Some(version);
            // An answer without a text is never too long.
            let _ = encode::connack(answers, version, &Connack::new(0));
            return Ok(Some(used));
        };
        let Some((packet, used)) = server::decode(bytes, version)? else { return Ok(None) };
        let ack = |id| Ack { id, reason: 0 };
        match packet {
            ServerPacket::Publish(publish) => {
                *messages += 1;
                match publish.qos {
                    Qos::AtMostOnce => {}
                    Qos::AtLeastOnce => encode::puback(answers, version, ack(publish.id)),
                    Qos::ExactlyOnce => encode::pubrec(answers, version, ack(publish.id)),
                }
            }
            ServerPacket::Pubrel(Ack { id, .. }) => encode::pubcomp(answers, version, ack(id)),
            ServerPacket::Subscribe { id, filters } => {
                let granted: Vec<u8> = filters.map(|(_, qos)| qos as u8).collect();
                let _ = encode::suback(answers, version, id, &granted, None);
            }
            ServerPacket::Unsubscribe { id, filters } => {
                let codes = vec![0; filters.count()];
                let _ = encode::unsuback(answers, version, id, &codes);
            }
            ServerPacket::Pingreq => encode::pingresp(answers),
            ServerPacket::Disconnect { .. } => self.over = true,
            ServerPacket::Puback(_)
            | ServerPacket::Pubrec(_)
            | ServerPacket::Pubcomp(_)
            | ServerPacket::Auth { .. } => {}
        }
        Ok(Some(used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_wire::mqtt::server::ConnectPacket;
    use pubmark_wire::mqtt::{self, Publish};

    fn guest() -> SinkClient {
        SinkClient::new(std::fs::File::open("/dev/null").unwrap().into())
    }

    /// Returns the bytes of a client's conversation, and how many messages they contain.
    fn conversation() -> (Vec<u8>, u64) {
        let version = Version::V3_1_1;
        let mut said = Vec::new();
        let connect = ConnectPacket { keep_alive_s: 60, ..ConnectPacket::clean("c") };
        encode::connect(&mut said, version, &connect).unwrap();
        encode::subscribe(&mut said, version, 7, &[("a/b", Qos::AtLeastOnce), ("c", Qos::AtMostOnce)]).unwrap();
        let payload = [0x5a; 300];
        let levels = [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce, Qos::AtMostOnce, Qos::AtMostOnce];
        for (qos, id) in levels.into_iter().zip([0, 8, 9, 0, 0]) {
            let publish = Publish::plain(qos, id, "a/b", &payload);
            encode::publish(&mut said, version, &publish).unwrap();
        }
        encode::pubrel(&mut said, version, Ack { id: 9, reason: 0 });
        encode::pingreq(&mut said);
        encode::disconnect(&mut said, version, 0, None);
        (said, levels.len() as u64)
    }

    #[test]
    fn every_packet_is_answered_and_every_message_counted_however_the_bytes_are_cut() {
        let (said, wanted) = conversation();
        for step in [1, 2, 3, 7, 100, 301, 1_000, said.len()] {
            let mut guest = guest();
            let (mut answers, mut messages) = (Vec::new(), 0);
            for piece in said.chunks(step) {
                messages += guest.take(piece, &mut answers).unwrap();
            }
            assert_eq!(messages, wanted, "in pieces of {step}");
            assert!(guest.over() && guest.rest.is_empty() && guest.skip == 0);
            let mut heard = Vec::new();
            let mut left = answers.as_slice();
            while let Some((packet, used)) = mqtt::decode(left, Version::V3_1_1).unwrap() {
                heard.push(packet);
                left = &left[used..];
            }
            let ack = |id| Ack { id, reason: 0 };
            let all = [
                mqtt::Packet::Connack(Connack::new(0)),
                mqtt::Packet::Suback { id: 7, codes: &[1, 0], text: None },
                mqtt::Packet::Puback(ack(8)),
                mqtt::Packet::Pubrec(ack(9)),
                mqtt::Packet::Pubcomp(ack(9)),
                mqtt::Packet::Pingresp,
            ];
            assert_eq!(heard, all, "in pieces of {step}");
        }
    }

    #[test]
    fn what_is_no_mqtt_is_refused() {
        assert!(guest().take(b"GET / HTTP/1.1\r\n\r\n", &mut Vec::new()).is_err());
        assert!(guest().take(&[0x30, 2, 0, 0], &mut Vec::new()).is_err(), "a message before CONNECT");
    }

    #[test]
    fn an_idle_client_is_small() {
        assert!(size_of::<Option<SinkClient>>() <= 48, "{}", size_of::<Option<SinkClient>>());
    }
}
