//! What the peer is to do: a small TOML file, strict.
//!
//! ```toml
//! delay = { uniform = ["1ms", "21ms"] }   # or fixed, exponential, quantiles
//! ordered = true
//! service = 2000                          # messages a second, one after the other
//! lose = { every = 7 }                    # or { at = [[PUBLISHER, SEQUENCE], …] }
//! corrupt = { every = 17, offset = 100 }
//! [[stall]]
//! from = "1s"
//! for = "500ms"
//! ```

use crate::delay::{Delay, Span};
use pubmark_model::units::Ns;
use serde::Deserialize;

/// Which messages a fault meets. Both may be given; nothing is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AffectedMessages {
    /// Each publisher's every so-manieth message, counted from 1: 7 meets
    /// sequences 6, 13 and so on. From 1.
    pub every: Option<u32>,
    /// These messages: publisher and sequence.
    pub at: Vec<(u32, u32)>,
}

impl AffectedMessages {
    /// Whether this message is met.
    pub fn meet(&self, publisher: u32, sequence: u32) -> bool {
        let number = u64::from(sequence) + 1;
        self.every.is_some_and(|every| number.is_multiple_of(u64::from(every)))
            || self.at.contains(&(publisher, sequence))
    }
}

/// Messages that are refused: neither handed on nor acknowledged, and their publisher is told so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RefusedMessages {
    /// As in [`AffectedMessages`].
    pub every: Option<u32>,
    /// As in [`AffectedMessages`].
    pub at: Vec<(u32, u32)>,
    /// Whether probes are refused as well, all of them.
    pub probes: bool,
    /// The reason code of MQTT 5; 0x97, quota exceeded, by default. MQTT 3.1.1 has no word for it:
    /// there such a message is acknowledged.
    pub code: Option<u8>,
    /// The words of an error of RESP or NATS.
    pub words: Option<String>,
}

impl RefusedMessages {
    /// Whether this message is met.
    pub fn meet(&self, publisher: u32, sequence: u32) -> bool {
        AffectedMessages { every: self.every, at: Vec::new() }.meet(publisher, sequence)
            || self.at.contains(&(publisher, sequence))
    }
}

/// Limits that the server names to each client that connects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NamedLimits {
    /// MQTT 5: the largest packet, bytes. It is not enforced.
    pub packet_bytes: Option<u32>,
    /// MQTT 5: the highest QoS. It is not enforced.
    pub qos: Option<u8>,
    /// MQTT 5: messages that a client may have unacknowledged. It is not enforced.
    pub inflight: Option<u16>,
    /// NATS: the largest payload, bytes. It is not enforced.
    pub payload_bytes: Option<u32>,
}

/// The end of a publisher's connection, in the protocol's words.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndedPublisher {
    /// With its message of this number, from 1; probes count.
    pub after: u64,
    /// The reason code of MQTT 5, or the reply code of AMQP, which closes the channel.
    pub code: u16,
    /// The words beside it. MQTT 3.1.1 has none.
    pub words: String,
}

/// A publisher that is told that nothing more is taken, and is heard all the same (AMQP).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockedPublisher {
    /// With its message of this number, from 1; probes count.
    pub from: u64,
    /// With this one it is told that it is over.
    pub to: u64,
    /// Why.
    pub words: String,
}

/// Damage to payloads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Corruption {
    /// As in [`AffectedMessages`].
    pub every: Option<u32>,
    /// As in [`AffectedMessages`].
    pub at: Vec<(u32, u32)>,
    /// The byte of the payload, from 0, whose bit 6 is turned; beyond the end,
    /// and by default, the last one.
    pub offset: Option<usize>,
}

impl Corruption {
    /// Whether this message is met.
    pub fn meets(&self, publisher: u32, sequence: u32) -> bool {
        AffectedMessages { every: self.every, at: Vec::new() }.meet(publisher, sequence)
            || self.at.contains(&(publisher, sequence))
    }

    /// Damages a payload.
    pub fn strike(&self, payload: &mut [u8]) {
        let last = payload.len().saturating_sub(1);
        if let Some(byte) = payload.get_mut(self.offset.unwrap_or(last).min(last)) {
            *byte ^= 0x40;
        }
    }
}

/// A standstill. Times count from the origin: the intended time of message 0
/// of publisher 0, which is the first of a schedule. Until it has come nothing
/// stands still.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// When it begins.
    pub from: Span,
    /// How long it lasts.
    #[serde(rename = "for")]
    pub length: Span,
    /// Only this subscriber, by the order of subscriptions from 0, gets no
    /// messages. By default the whole server stands still: no message, no
    /// acknowledgement and no answer leaves it.
    #[serde(default)]
    pub subscriber: Option<u32>,
}

/// What happens to connections, which are numbered from 1 in the order in
/// which they are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConnectFaults {
    /// Nothing is said on a connection before it is so old.
    pub answer_after: Span,
    /// These are closed at once.
    pub close: Vec<u64>,
    /// These are refused in the protocol's own words, for a passing reason.
    pub deny: Vec<u64>,
}

/// Which messages the peer's own account covers, by intended time from the
/// origin (see [`Stall`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    /// From here …
    pub from: Span,
    /// … for so long, the end not included.
    #[serde(rename = "for")]
    pub length: Span,
}

/// A script. The default is a plain relay.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeerScript {
    /// From when its publisher sent a message until it is handed on; from its
    /// intended time where it carries no other. At once if none.
    pub delay: Option<Delay>,
    /// No message before the one that its publisher sent before it.
    pub ordered: bool,
    /// One server for all messages, which takes as long for each: so many are
    /// handed on in a second at most, and the others wait for their turn, from
    /// when `delay` is over. 0.001 to 1,000,000,000.
    pub service: Option<f64>,
    /// Neither handed on nor acknowledged. At QoS 1 and 2 such a message stays
    /// in its publisher's window for ever.
    pub lose: AffectedMessages,
    /// Neither handed on nor acknowledged: publishers are told so.
    pub refuse: RefusedMessages,
    /// Limits that clients are told.
    pub limits: NamedLimits,
    /// The end of each publisher's connection.
    pub end: Option<EndedPublisher>,
    /// A time in which publishers are told that nothing is taken.
    pub block: Option<BlockedPublisher>,
    /// Acknowledged and not handed on.
    pub swallow: AffectedMessages,
    /// Handed on twice.
    pub duplicate: AffectedMessages,
    /// Handed on right after its publisher's next message.
    pub reorder: AffectedMessages,
    /// Handed on damaged.
    pub corrupt: Corruption,
    /// Standstills.
    pub stall: Vec<Stall>,
    /// Connections.
    pub connect: ConnectFaults,
    /// What is counted; all data messages by default.
    pub count: Option<Counted>,
}

impl PeerScript {
    /// Reads a script. The error names line and column, or what cannot be.
    pub fn parse(text: &str) -> Result<PeerScript, String> {
        let script: PeerScript = toml::from_str(text).map_err(|error| error.to_string())?;
        let everies = [&script.lose, &script.swallow, &script.duplicate, &script.reorder].map(|places| places.every);
        if everies.contains(&Some(0)) || [script.corrupt.every, script.refuse.every].contains(&Some(0)) {
            return Err("every = 0: messages are counted from 1".into());
        }
        if script.reorder.every == Some(1) {
            return Err("reorder: every = 1: there would be nobody to overtake".into());
        }
        if script.service.is_some_and(|per_s| !(0.001..=1e9).contains(&per_s)) {
            return Err("service: from 0.001 to 1,000,000,000 messages a second".into());
        }
        match script.delay.as_ref().and_then(Delay::problem) {
            Some(problem) => Err(problem),
            None => Ok(script),
        }
    }

    /// How long the server takes for a message, ns; 0 where there is none.
    pub fn service_ns(&self) -> Ns {
        self.service.map_or(0, |per_s| (1e9 / per_s).round() as Ns)
    }

    /// Whether messages are handed on as they come.
    pub fn is_plain(&self) -> bool {
        *self == PeerScript { connect: self.connect.clone(), ..PeerScript::default() }
    }

    /// The end of the standstill of the whole server that this instant lies in,
    /// both in ns from the origin. Standstills may adjoin or overlap.
    pub fn stalled_until(&self, at_ns: Ns) -> Option<Ns> {
        self.standstill(at_ns, None)
    }

    /// The same of one subscriber alone.
    pub fn subscriber_stalled_until(&self, subscriber: u32, at_ns: Ns) -> Option<Ns> {
        self.standstill(at_ns, Some(subscriber))
    }

    fn standstill(&self, at_ns: Ns, subscriber: Option<u32>) -> Option<Ns> {
        let mut until = at_ns;
        while let Some(stall) = self.stall.iter().find(|stall| {
            stall.subscriber == subscriber && (stall.from.0..stall.from.0 + stall.length.0).contains(&until)
        }) {
            until = stall.from.0 + stall.length.0;
        }
        (until > at_ns).then_some(until)
    }

    /// Whether a message that is due so long after the origin is counted.
    pub fn counts(&self, since_origin_ns: Option<Ns>) -> bool {
        self.count.is_none_or(|count| {
            since_origin_ns.is_some_and(|since| (count.from.0..count.from.0 + count.length.0).contains(&since))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_is_read() {
        let text = r#"
            delay = { quantiles = [[0.0, "1ms"], [1.0, "2ms"]] }
            ordered = true
            service = 2000
            lose = { every = 7 }
            swallow = { at = [[0, 12], [3, 4]] }
            duplicate = { every = 11 }
            reorder = { every = 13 }
            corrupt = { every = 17, offset = 100 }
            refuse = { every = 2, at = [[1, 1]], probes = true, code = 0x80, words = "no" }
            limits = { packet_bytes = 600, qos = 1, inflight = 9, payload_bytes = 512 }
            end = { after = 3, code = 403, words = "no" }
            block = { from = 1, to = 2, words = "low on memory" }
            connect = { answer_after = "50ms", close = [1], deny = [2, 3] }
            count = { from = "500ms", for = "2s" }
            [[stall]]
            from = "1s"
            for = "1s"
            [[stall]]
            from = "1s"
            for = "2s"
            subscriber = 4
        "#;
        let script = PeerScript::parse(text).unwrap();
        assert!(!script.is_plain());
        assert_eq!(script.service_ns(), 500_000);
        assert!(script.lose.meet(9, 6) && !script.lose.meet(9, 7));
        assert!(script.swallow.meet(3, 4) && !script.swallow.meet(4, 3));
        assert!(script.refuse.meet(0, 1) && script.refuse.meet(1, 1) && !script.refuse.meet(0, 2));
        assert_eq!(script.connect.deny, [2, 3]);
        assert_eq!(script.subscriber_stalled_until(4, 1_500_000_000), Some(3_000_000_000));
        assert_eq!(script.subscriber_stalled_until(5, 1_500_000_000), None);
        assert!(script.counts(Some(500_000_000)) && !script.counts(Some(2_500_000_000)) && !script.counts(None));
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        for text in [
            "loose = { every = 7 }",
            "lose = { each = 7 }",
            "lose = { every = 0 }",
            "refuse = { every = 0 }",
            "end = { after = 1 }",
            "limits = { packets = 1 }",
            "reorder = { every = 1 }",
            "delay = { fixed = 10 }",
            "delay = { fixed = \"10 parsec\" }",
            "delay = { uniform = [\"2ms\", \"1ms\"] }",
            "[[stall]]\nfrom = \"1s\"",
            "[connect]\nslow = 1",
            "service = 0",
            "service = -3",
        ] {
            assert!(PeerScript::parse(text).is_err(), "{text}");
        }
        assert!(PeerScript::parse("").unwrap().is_plain());
        assert!(PeerScript::parse("[connect]\nclose = [1]").unwrap().is_plain());
    }

    #[test]
    fn standstills_that_adjoin_are_one() {
        let script =
            PeerScript::parse("[[stall]]\nfrom = \"1s\"\nfor = \"1s\"\n[[stall]]\nfrom = \"2s\"\nfor = \"1s\"")
                .unwrap();
        let second = 1_000_000_000;
        assert_eq!(script.stalled_until(second - 1), None);
        assert_eq!(script.stalled_until(second), Some(3 * second));
        assert_eq!(script.stalled_until(3 * second), None);
    }

    #[test]
    fn damage_is_one_bit_at_its_place() {
        let mut payload = [0; 8];
        Corruption { offset: Some(2), ..Corruption::default() }.strike(&mut payload);
        Corruption { offset: Some(99), ..Corruption::default() }.strike(&mut payload);
        assert_eq!(payload, [0, 0, 0x40, 0, 0, 0, 0, 0x40]);
        Corruption::default().strike(&mut []);
    }
}
