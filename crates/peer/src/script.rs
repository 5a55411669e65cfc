//! Script of the peer: a small TOML file with strict keys.
//!
//! ```toml
//! delay = { uniform = ["1ms", "21ms"] }   # or fixed, exponential, quantiles
//! ordered = true
//! service = 2000                          # messages per second, one after the other
//! lose = { every = 7 }                    # or { at = [[PUBLISHER, SEQUENCE], …] }
//! corrupt = { every = 17, offset = 100 }
//! store = { file = "store", sync = "before" }  # or "never", { every = 10 }
//! [[stall]]
//! from = "1s"
//! for = "500ms"
//! ```

use crate::delay::{Delay, Span};
use crate::store::{StorePlan, StoreSync};
use pubmark_model::units::Ns;
use serde::Deserialize;

/// Messages that a fault affects. Both keys may be given; without any, no message is affected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AffectedMessages {
    /// Every n-th message of each publisher, counted from 1: 7 affects sequences 6, 13 and so on. At least 1.
    pub every: Option<u32>,
    /// These messages: publisher and sequence.
    pub at: Vec<(u32, u32)>,
}

impl AffectedMessages {
    /// Returns whether this message is affected.
    pub fn meet(&self, publisher: u32, sequence: u32) -> bool {
        let number = u64::from(sequence) + 1;
        self.every.is_some_and(|every| number.is_multiple_of(u64::from(every)))
            || self.at.contains(&(publisher, sequence))
    }
}

/// Messages that are refused: neither passed on nor acknowledged, and their publisher gets an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RefusedMessages {
    /// See [`AffectedMessages`].
    pub every: Option<u32>,
    /// See [`AffectedMessages`].
    pub at: Vec<(u32, u32)>,
    /// True if all probes are refused as well.
    pub probes: bool,
    /// JetStream: the peer answers this many first messages of each connection, probes included, as if there were no
    /// stream.
    pub early: u64,
    /// Reason code of MQTT 5; 0x97, quota exceeded, by default. MQTT 3.1.1 has no such code: there such a message is
    /// acknowledged.
    pub code: Option<u8>,
    /// Text of an error of RESP or NATS.
    pub words: Option<String>,
}

impl RefusedMessages {
    /// Returns whether this message is refused.
    pub fn meet(&self, publisher: u32, sequence: u32) -> bool {
        AffectedMessages { every: self.every, at: Vec::new() }.meet(publisher, sequence)
            || self.at.contains(&(publisher, sequence))
    }
}

/// Limits that the server announces to each client that connects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NamedLimits {
    /// MQTT 5: largest packet, bytes. Not enforced.
    pub packet_bytes: Option<u32>,
    /// MQTT 5: highest QoS. Not enforced.
    pub qos: Option<u8>,
    /// MQTT 5: unacknowledged messages that a client may have. Not enforced.
    pub inflight: Option<u16>,
    /// MQTT 5: aliases of topics that a client may use.
    pub topic_aliases: Option<u16>,
    /// NATS: largest payload, bytes. Not enforced.
    pub payload_bytes: Option<u32>,
}

/// Violations of MQTT.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MqttViolations {
    /// Messages that are delivered with DUP, for the first time.
    pub dup: AffectedMessages,
    /// Messages that are delivered twice at once, at QoS 1 and 2: with one identifier, and without DUP.
    pub redeliver: AffectedMessages,
}

/// Last wills of publishers (MQTT), which are passed on when their connections end without a DISCONNECT.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WillPlan {
    /// Time from the end of a connection until its will is passed on.
    pub delay: Span,
    /// Publishers whose wills are not passed on.
    pub withhold: Vec<u32>,
    /// Publishers whose wills are passed on although they send a DISCONNECT.
    pub undue: Vec<u32>,
    /// Publishers whose connections are closed at their end markers, which follow their last messages.
    pub close: Vec<u32>,
}

/// End of a publisher's connection, with an error of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndedPublisher {
    /// Number of its message that ends it, from 1; probes count.
    pub after: u64,
    /// Reason code of MQTT 5, or reply code of AMQP, which closes the channel.
    pub code: u16,
    /// Text of the error. MQTT 3.1.1 has none.
    pub words: String,
}

/// A publisher that is told that it is blocked, and whose messages are taken nevertheless (AMQP).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockedPublisher {
    /// Number of the message at which it is blocked, from 1; probes count.
    pub from: u64,
    /// Number of the message at which it is unblocked.
    pub to: u64,
    /// Reason that it is given.
    pub words: String,
}

/// Damage to payloads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Corruption {
    /// See [`AffectedMessages`].
    pub every: Option<u32>,
    /// See [`AffectedMessages`].
    pub at: Vec<(u32, u32)>,
    /// Position of the payload's byte, from 0, whose bit 6 is flipped; beyond the end, and by default, the last one.
    pub offset: Option<usize>,
}

impl Corruption {
    /// Returns whether this message is damaged.
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

/// A stall. Times count from the origin: the intended time of message 0 of publisher 0, which is the first of a
/// schedule. Nothing stalls before it has arrived.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Start of the stall.
    pub from: Span,
    /// Length of the stall.
    #[serde(rename = "for")]
    pub length: Span,
    /// Subscriber that gets no messages, by the order of subscriptions from 0. By default the whole server stalls: no
    /// message, acknowledgement or answer leaves it.
    #[serde(default)]
    pub subscriber: Option<u32>,
}

/// Faults of connections, which are numbered from 1 in the order in which they are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConnectFaults {
    /// Age of a connection before which the server sends nothing on it.
    pub answer_after: Span,
    /// Connections that are closed at once.
    pub close: Vec<u64>,
    /// Connections that are refused with an error of the protocol for a temporary reason.
    pub deny: Vec<u64>,
}

/// A rebalance of each consumer group of Kafka, which begins with the first heartbeat after an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedRebalance {
    /// The instant, from the origin (see [`Stall`]).
    pub at: Span,
    /// Time from the first member's joining again for which none gets an answer.
    #[serde(rename = "for", default)]
    pub length: Span,
    /// True if no offsets are stored until it ends: what was not stored before comes again.
    #[serde(default)]
    pub forgets: bool,
}

/// A member of a cluster that goes away with the first message that it takes after an instant: it passes that one on and
/// does not acknowledge it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AwayMember {
    /// Place of the member, from 0.
    pub member: usize,
    /// The instant, from the origin (see [`Stall`]).
    pub from: Span,
    /// Time for which nobody leads its partitions. Then the next member does, and this one takes connections again.
    #[serde(rename = "for")]
    pub length: Span,
}

/// Messages that the peer's own counts cover, by intended time from the origin (see [`Stall`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    /// Start of the interval …
    pub from: Span,
    /// … and its length, the end not included.
    #[serde(rename = "for")]
    pub length: Span,
}

/// A script. The default is a plain relay.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeerScript {
    /// Time from the sending of a message until it is passed on, or from its intended time if it has no other. At once
    /// by default.
    pub delay: Option<Delay>,
    /// Time from the arrival of an answer until it is passed on: the second message of the same publisher and sequence
    /// is the answer to the first. At once by default.
    pub answer_delay: Option<Span>,
    /// True if no message passes an earlier one of the same publisher.
    pub ordered: bool,
    /// Rate, messages per second, of a server that takes all messages one after the other, each for the same time.
    /// Others wait for their turn once `delay` is over. 0.001 to 1,000,000,000.
    pub service: Option<f64>,
    /// Messages neither passed on nor acknowledged. At QoS 1 and 2 such a message stays in its publisher's window
    /// forever.
    pub lose: AffectedMessages,
    /// Messages neither passed on nor acknowledged, with an error to their publishers.
    pub refuse: RefusedMessages,
    /// Limits that clients are told.
    pub limits: NamedLimits,
    /// End of each publisher's connection.
    pub end: Option<EndedPublisher>,
    /// Time in which publishers are told that they are blocked.
    pub block: Option<BlockedPublisher>,
    /// Messages acknowledged and not passed on.
    pub swallow: AffectedMessages,
    /// Messages passed on twice.
    pub duplicate: AffectedMessages,
    /// Messages passed on right after their publisher's next message.
    pub reorder: AffectedMessages,
    /// Messages passed on damaged.
    pub corrupt: Corruption,
    /// Stalls.
    pub stall: Vec<Stall>,
    /// Faults of connections.
    pub connect: ConnectFaults,
    /// File that keeps data messages until the server is started again.
    pub store: Option<StorePlan>,
    /// True if all that is passed on is kept for consumers that come later and read from the beginning (Kafka,
    /// JetStream, streams of Redis).
    pub keep: bool,
    /// Rebalances of Kafka's consumer groups, one after the other; with `keep` only.
    pub rebalance: Vec<ScriptedRebalance>,
    /// Ports of the members of a cluster, at least two, in place of the one port; 0 for any that is free (Kafka). The
    /// member at place `i` leads the partitions whose numbers have the remainder `i`.
    pub ports: Vec<u16>,
    /// Members that go away, one after the other; with `keep` only.
    pub away: Vec<AwayMember>,
    /// Violations of MQTT.
    pub mqtt: MqttViolations,
    /// Last wills.
    pub will: WillPlan,
    /// Messages that are counted; all data messages by default.
    pub count: Option<Counted>,
    /// True if they are also counted by topic.
    pub topics: bool,
}

impl PeerScript {
    /// Reads a script. The error gives line and column, or the invalid value.
    pub fn parse(text: &str) -> Result<PeerScript, String> {
        let script: PeerScript = toml::from_str(text).map_err(|error| error.to_string())?;
        let affected = [&script.lose, &script.swallow, &script.duplicate, &script.reorder];
        let mqtt = [&script.mqtt.dup, &script.mqtt.redeliver];
        let everies: Vec<Option<u32>> = affected.into_iter().chain(mqtt).map(|places| places.every).collect();
        let never_due = script.store.as_ref().is_some_and(|store| store.sync == StoreSync::Every(0));
        if never_due || everies.contains(&Some(0)) || [script.corrupt.every, script.refuse.every].contains(&Some(0)) {
            return Err("every = 0: messages are counted from 1".into());
        }
        if script.reorder.every == Some(1) {
            return Err("reorder: every = 1: there would be nobody to overtake".into());
        }
        if !script.rebalance.is_empty() && !script.keep {
            return Err("rebalance: write keep = true as well: members read on from stored offsets".into());
        }
        if (!script.away.is_empty() || !script.ports.is_empty()) && !script.keep {
            return Err("ports, away: write keep = true as well: consumers read on at the next leader".into());
        }
        if script.ports.len() == 1 || script.away.iter().any(|away| away.member >= script.ports.len()) {
            return Err("ports: write one for each member, at least two".into());
        }
        if script.service.is_some_and(|per_s| !(0.001..=1e9).contains(&per_s)) {
            return Err("service: from 0.001 to 1,000,000,000 messages a second".into());
        }
        match script.delay.as_ref().and_then(Delay::problem) {
            Some(problem) => Err(problem),
            None => Ok(script),
        }
    }

    /// Returns the server's time for a message, ns; 0 without `service`.
    pub fn service_ns(&self) -> Ns {
        self.service.map_or(0, |per_s| (1e9 / per_s).round() as Ns)
    }

    /// Returns whether messages are passed on as they come.
    pub fn is_plain(&self) -> bool {
        *self == PeerScript { connect: self.connect.clone(), ..PeerScript::default() }
    }

    /// Returns the end of the server's stall that contains this instant, both in ns from the origin. Stalls may adjoin
    /// or overlap.
    pub fn stalled_until(&self, at_ns: Ns) -> Option<Ns> {
        self.standstill(at_ns, None)
    }

    /// Returns the end of the stall of one subscriber that contains this instant, in ns from the origin.
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

    /// Returns whether a message due this long after the origin is counted.
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
            store = { file = "s", sync = { every = 3 } }
            keep = true
            rebalance = [{ at = "1s", for = "300ms", forgets = true }, { at = "2s" }]
            mqtt = { dup = { every = 19 }, redeliver = { at = [[0, 1]] } }
            connect = { answer_after = "50ms", close = [1], deny = [2, 3] }
            will = { delay = "20ms", withhold = [1], undue = [0, 2], close = [3] }
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
        assert!(script.rebalance[0].forgets && script.rebalance[1].length.0 == 0);
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
            "store = { file = 's' }",
            "store = { file = 's', sync = 'after' }",
            "store = { file = 's', sync = { every = 0 } }",
            "limits = { packets = 1 }",
            "reorder = { every = 1 }",
            "delay = { fixed = 10 }",
            "delay = { fixed = \"10 parsec\" }",
            "delay = { uniform = [\"2ms\", \"1ms\"] }",
            "[[stall]]\nfrom = \"1s\"",
            "[connect]\nslow = 1",
            "will = { late = '1s' }",
            "service = 0",
            "service = -3",
            "rebalance = [{ at = '1s' }]",
            "ports = [0, 0]",
            "keep = true\nports = [0]",
            "keep = true\nports = [0, 0]\naway = [{ member = 2, from = '1s', for = '1s' }]",
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
