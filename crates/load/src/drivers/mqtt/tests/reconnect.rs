//! Clients that reconnect: what they send again, in which order, and what they do not.

use super::*;

/// Copies of messages that consist of their sequence.
struct Echoes(Vec<u8>);

impl Copies for Echoes {
    fn message(&mut self, sequence: u32) -> &[u8] {
        self.0 = sequence.to_string().into_bytes();
        &self.0
    }
}

fn resuming(version: Version, qos: u8, changes: &[(&str, &str)]) -> MqttSettings {
    let (endpoint, version) = (Endpoint::parse("mqtt://h").unwrap(), version.to_string());
    let changes: Vec<_> = changes.iter().copied().chain([("mqtt_version", &version[..])]).collect();
    let terms = ClientSettings {
        endpoint: &endpoint,
        qos,
        durable: false,
        reconnect: true,
        answer_ns: None,
        run: "r",
        seed: 0,
        payload_bytes: 1_024,
        headers: None,
        options: &options(&changes),
        clients: 1,
    };
    Mqtt::settings(&terms).unwrap()
}

impl Client {
    /// Ends the connection and opens another one that the server accepts.
    fn returned(&mut self, kept: bool) -> Vec<Said> {
        self.session.resume(&self.settings, &self.spec);
        self.out.clear();
        self.session.open(&self.settings, &self.spec, &mut self.out);
        assert!(!connect_of(self).1.clean_start);
        self.out.clear();
        let (version, connack) = (self.settings.version, Connack { session_present: kept, ..Connack::new(0) });
        self.hear(|out| encode::connack(out, version, &connack).unwrap())
    }

    /// Resends the next packet of the unfinished exchanges.
    fn resend(&mut self) -> bool {
        self.session.resend(&self.settings, &mut Echoes(Vec::new()), &mut self.out)
    }

    fn resend_all(&mut self) -> Vec<String> {
        while self.resend() {}
        self.packets()
    }

    /// Returns what the client has sent: publications with their flag and payload.
    fn packets(&mut self) -> Vec<String> {
        let (mut at, mut lines) = (0, Vec::new());
        while let Some((packet, used)) = server::decode(&self.out[at..], self.settings.version).unwrap() {
            lines.push(match packet {
                server::ServerPacket::Publish(Publish { dup, id, payload, .. }) => {
                    format!("{id} {} {}", if dup { "again" } else { "new" }, String::from_utf8_lossy(payload))
                }
                server::ServerPacket::Pubrel(Ack { id, .. }) => format!("{id} released"),
                other => format!("{other:?}"),
            });
            at += used;
        }
        self.out.clear();
        lines
    }
}

#[test]
fn what_is_not_acknowledged_comes_again_in_order_and_nothing_else_does() {
    for (version, kept) in [(V3, true), (V3, false), (V5, true), (V5, false)] {
        let mut client = Client::ready(resuming(version, 1, &[("inflight", "5")]), spec(Role::Publisher));
        assert!((0..5).all(|sequence| client.publish(sequence)));
        assert_eq!(client.ack(encode::puback, 2), [Said::Acknowledged(1)]);
        assert_eq!(client.returned(kept), [Said::Connected]);
        let flag = if kept { "again" } else { "new" };
        let expected: Vec<String> =
            [(1, 0), (3, 2), (4, 3), (5, 4)].map(|(id, sequence)| format!("{id} {flag} {sequence}")).to_vec();
        assert_eq!(client.resend_all(), expected);
        assert_eq!(client.session.unacknowledged(), 4);
        assert_eq!(client.ack(encode::puback, 3), [Said::Acknowledged(2)]);
        assert_eq!(client.ack(encode::puback, 1), [Said::Acknowledged(0)]);
        assert!(client.publish(5) && client.publish(6) && client.publish(7), "there is room again");
        assert_eq!(client.packets(), ["6 new message", "7 new message", "8 new message"]);
        assert_eq!(client.ack(encode::puback, 1), [], "an old identifier is not a new message");
    }
}

#[test]
fn a_connection_may_end_while_messages_come_again() {
    let mut client = Client::ready(resuming(V5, 1, &[]), spec(Role::Publisher));
    assert!((0..3).all(|sequence| client.publish(sequence)));
    client.returned(true);
    assert!(client.resend());
    assert_eq!(client.ack(encode::puback, 1), [Said::Acknowledged(0)]);
    client.out.clear();
    assert_eq!(client.resend_all(), ["2 again 1", "3 again 2"], "acknowledgements meanwhile skip nothing");
    client.returned(false);
    assert!(client.resend());
    client.returned(true);
    assert_eq!(client.resend_all(), ["2 again 1", "3 again 2"]);
}

#[test]
fn what_was_released_is_released_again_and_never_published() {
    for (version, kept, flag) in [(V3, true, "again"), (V3, false, "new"), (V5, true, "again")] {
        let mut client = Client::ready(resuming(version, 2, &[]), spec(Role::Publisher));
        assert!((0..4).all(|sequence| client.publish(sequence)));
        (1..=3).for_each(|id| assert_eq!(client.ack(encode::pubrec, id), []));
        assert_eq!(client.ack(encode::pubcomp, 2), [Said::Acknowledged(1)]);
        client.returned(kept);
        let last = format!("4 {flag} 3");
        assert_eq!(client.resend_all(), ["1 released", "3 released", &last]);
        assert_eq!(client.ack(encode::pubcomp, 3), [Said::Acknowledged(2)]);
        assert_eq!(client.ack(encode::pubcomp, 1), [Said::Acknowledged(0)]);
        assert_eq!(client.ack(encode::pubrec, 4), []);
        assert_eq!(client.packets(), ["4 released"]);
        assert_eq!(client.ack(encode::pubcomp, 4), [Said::Acknowledged(3)]);
        assert_eq!(client.session.unacknowledged(), 0);
    }
}

#[test]
fn a_receiver_knows_what_it_has_as_long_as_the_server_does() {
    for version in [V3, V5] {
        for kept in [true, false] {
            let mut client = Client::ready(resuming(version, 2, &[]), spec(Role::Subscriber));
            let bytes = message(version, Qos::ExactlyOnce, 7, b"x");
            let heard = [Said::Message(b"x".to_vec())];
            assert_eq!(client.hear(|out| out.extend(&bytes)), heard);
            assert_eq!(client.returned(kept), [Said::Connected]);
            client.session.subscribe(&client.settings, &client.spec, &mut client.out);
            assert_eq!(client.sent().len(), 1, "to subscribe again is safe");
            let again = client.hear(|out| out.extend(&bytes));
            assert_eq!(again, if kept { &[][..] } else { &heard[..] });
            client.ack(encode::pubrel, 7);
            assert_eq!(client.hear(|out| out.extend(&bytes)), heard, "the identifier is free");
        }
    }
}

#[test]
fn retained_messages_are_not_asked_for_twice() {
    for kept in [true, false] {
        let mut client = Client::ready(resuming(V3, 1, &[("retain", "true")]), spec(Role::Subscriber));
        let heard = client.returned(kept);
        client.session.subscribe(&client.settings, &client.spec, &mut client.out);
        if kept {
            assert_eq!((heard, client.sent()), (vec![Said::Connected, Said::Subscribed], vec![]));
        } else {
            assert_eq!((heard, client.sent().len()), (vec![Said::Connected], 1));
        }
    }
    // A server with a session of this name from elsewhere does not know the subscription.
    let mut client = Client::new(resuming(V3, 1, &[("retain", "true")]), spec(Role::Subscriber));
    let connack = Connack { session_present: true, ..Connack::new(0) };
    assert_eq!(client.hear(|out| encode::connack(out, V3, &connack).unwrap()), [Said::Connected]);
}

#[test]
fn a_subscription_that_was_under_way_is_asked_for_again() {
    let mut client = Client::new(resuming(V5, 1, &[]), spec(Role::Subscriber));
    client.hear(|out| encode::connack(out, V5, &Connack::new(0)).unwrap());
    client.session.subscribe(&client.settings, &client.spec, &mut client.out);
    assert_eq!(client.returned(false), [Said::Connected]);
    assert!(!client.resend());
    client.session.subscribe(&client.settings, &client.spec, &mut client.out);
    assert_eq!(client.sent(), [r#"SUBSCRIBE 2 [("a/b", AtLeastOnce)]"#]);
    assert_eq!(client.hear(|out| encode::suback(out, V5, 2, &[1], None).unwrap()), [Said::Subscribed]);
}

#[test]
fn sessions_are_ended_where_disconnect_can_say_so_and_there_is_none_at_qos_0() {
    let mut client = Client::ready(resuming(V5, 1, &[]), spec(Role::Publisher));
    client.session.close(&client.settings, &client.spec, &mut client.out);
    assert_eq!(client.sent(), ["Disconnect { reason: 0, session_expiry_s: Some(0) }"]);

    let mut client = Client::ready(resuming(V5, 0, &[]), spec(Role::Publisher));
    assert!(client.publish(0));
    client.session.resume(&client.settings, &client.spec);
    client.out.clear();
    client.session.open(&client.settings, &client.spec, &mut client.out);
    let (_, connect) = connect_of(&client);
    assert_eq!((connect.clean_start, connect.session_expiry_s), (true, 0));
    assert!(!client.resend());
}
