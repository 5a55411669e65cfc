//! Conversations with a simulated server.

mod properties;
mod reconnect;
mod topics;

use super::*;
use crate::drivers::conversation;
use crate::session::SubTopics;
use proptest::prelude::*;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::options::Options;
use pubmark_model::wire_protocol::Protocol;
use pubmark_wire::mqtt::Version;
use pubmark_wire::mqtt::server::{self, ConnectPacket};

const V3: Version = Version::V3_1_1;
const V5: Version = Version::V5;

/// An owned event of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    Connected,
    Subscribed,
    Message(Vec<u8>),
    Acknowledged(u32),
    Refused(u32, String),
}

fn options(changes: &[(&str, &str)]) -> Options {
    let read = |name: &str, text: &str| {
        Protocol::Mqtt.options().iter().find(|spec| spec.name == name).unwrap().kind.read(text).unwrap()
    };
    let defaults = Protocol::Mqtt.options().into_iter().filter_map(|spec| Some((spec.name, spec.default?)));
    let mut options: Options = defaults.collect();
    options.extend(changes.iter().map(|(name, text)| ((*name).to_owned(), read(name, text))));
    options
}

fn try_settings(url: &str, qos: u8, durable: bool, changes: &[(&str, &str)]) -> Result<MqttSettings, SettingsError> {
    conversation::settings::<Mqtt>(url, qos, durable, changes)
}

fn settings(version: Version, qos: u8) -> MqttSettings {
    try_settings("mqtt://h", qos, false, &[("mqtt_version", &version.to_string())]).unwrap()
}

fn spec(role: Role) -> ClientSpec {
    ClientSpec {
        role,
        id: 0,
        name: "p0".into(),
        topic: "a/b".into(),
        wild: false,
        leaves: SubTopics::None,
        group: None,
        members: 0,
        replays: false,
        reply: None,
        row: 0,
        last_will: None,
    }
}

/// A session, its settings, and the bytes that it sends.
struct Client {
    settings: MqttSettings,
    spec: ClientSpec,
    session: Mqtt,
    out: Vec<u8>,
}

impl Client {
    fn new(settings: MqttSettings, spec: ClientSpec) -> Client {
        let session = Mqtt::new(&settings, &spec);
        let mut client = Client { settings, spec, session, out: Vec::new() };
        client.session.open(&client.settings, &client.spec, &mut client.out);
        client
    }

    /// Returns a client that the server has accepted and that is subscribed if it is a
    /// subscriber.
    fn ready(settings: MqttSettings, spec: ClientSpec) -> Client {
        let mut client = Client::new(settings, spec);
        let version = client.settings.version;
        assert_eq!(client.hear(|out| encode::connack(out, version, &Connack::new(0)).unwrap()), [Said::Connected]);
        if client.spec.role == Role::Subscriber {
            client.session.subscribe(&client.settings, &client.spec, &mut client.out);
            let granted = client.settings.qos as u8;
            let heard = client.hear(|out| encode::suback(out, version, 1, &[granted], None).unwrap());
            assert_eq!(heard, [Said::Subscribed]);
        }
        client.out.clear();
        client
    }

    fn input(&mut self, bytes: &[u8]) -> (Result<usize, SessionError>, Vec<Said>) {
        let mut said = Vec::new();
        let result = self.session.input(&self.settings, bytes, &mut self.out, &mut |heard| {
            said.push(match heard {
                SessionEvent::Server(name) => panic!("MQTT servers do not say who they are: {name}"),
                SessionEvent::Connected => Said::Connected,
                SessionEvent::Subscribed => Said::Subscribed,
                SessionEvent::Message { payload, .. } => Said::Message(payload.to_vec()),
                SessionEvent::Acknowledged(sequence) => Said::Acknowledged(sequence),
                SessionEvent::Refused(sequence, refusal) => Said::Refused(sequence, refusal.to_string()),
                SessionEvent::Violation(statement) => panic!("{statement}"),
                other => panic!("MQTT has no words for that: {other:?}"),
            });
        });
        (result, said)
    }

    fn hear(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Vec<Said> {
        let mut bytes = Vec::new();
        write(&mut bytes);
        let (result, said) = self.input(&bytes);
        assert_eq!(result, Ok(bytes.len()));
        said
    }

    fn fault(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> SessionError {
        let mut bytes = Vec::new();
        write(&mut bytes);
        self.input(&bytes).0.unwrap_err()
    }

    fn ack(&mut self, write: fn(&mut Vec<u8>, Version, Ack), id: u16) -> Vec<Said> {
        self.refuse(write, id, 0)
    }

    fn refuse(&mut self, write: fn(&mut Vec<u8>, Version, Ack), id: u16, reason: u8) -> Vec<Said> {
        let version = self.settings.version;
        self.hear(|out| write(out, version, Ack { id, reason }))
    }

    fn publish(&mut self, sequence: u32) -> bool {
        self.session.publish(&self.settings, b"message", sequence, &mut self.out)
    }

    /// Returns what the client has sent since the last call, one line a packet.
    fn sent(&mut self) -> Vec<String> {
        let out = std::mem::take(&mut self.out);
        let (mut rest, mut lines) = (&out[..], Vec::new());
        while !rest.is_empty() {
            let (packet, used) = server::decode(rest, self.settings.version).unwrap().unwrap();
            lines.push(match packet {
                server::ServerPacket::Publish(publish) => format!("PUBLISH {} {}", publish.id, publish.topic),
                server::ServerPacket::Puback(ack) => format!("PUBACK {}", ack.id),
                server::ServerPacket::Pubrec(ack) => format!("PUBREC {}", ack.id),
                server::ServerPacket::Pubrel(ack) => format!("PUBREL {} {}", ack.id, ack.reason),
                server::ServerPacket::Pubcomp(ack) => format!("PUBCOMP {} {}", ack.id, ack.reason),
                server::ServerPacket::Subscribe { id, filters } => {
                    format!("SUBSCRIBE {id} {:?}", filters.collect::<Vec<_>>())
                }
                server::ServerPacket::Unsubscribe { id, filters } => {
                    format!("UNSUBSCRIBE {id} {:?}", filters.map(|(filter, _)| filter).collect::<Vec<_>>())
                }
                other => format!("{other:?}"),
            });
            rest = &rest[used..];
        }
        lines
    }
}

fn message(version: Version, qos: Qos, id: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let publish = Publish::plain(qos, id, "a/b", payload);
    encode::publish(&mut out, version, &publish).unwrap();
    out
}

fn connect_of(client: &Client) -> (Version, ConnectPacket<'_>) {
    let (version, connect, used) = server::connect(&client.out).unwrap().unwrap();
    assert_eq!(used, client.out.len());
    (version, connect)
}

#[test]
fn an_idle_session_is_small() {
    assert!(size_of::<Mqtt>() <= 160, "{}", size_of::<Mqtt>());
    let subscriber = Client::ready(settings(V5, 1), spec(Role::Subscriber));
    let session = subscriber.session;
    assert_eq!(session.unreleased.capacity(), 0);
    assert!(session.exchanges.capacity() * size_of::<Exchange>() <= 64, "{}", session.exchanges.capacity());
}

#[test]
fn settings_are_read_and_refused() {
    let good = try_settings("mqtt://u:p@h", 2, true, &[("username", "x"), ("keep_alive", "5s"), ("inflight", "70000")]);
    let good = good.unwrap();
    assert_eq!((good.user.as_deref(), good.password.as_deref()), (Some("u"), Some("p")));
    assert_eq!((good.qos, good.inflight, Mqtt::keep_alive_s(&good)), (Qos::ExactlyOnce, u16::MAX, 5));
    for (url, changes, says) in [
        ("mqtt://h", ("mqtt_version", "3.1"), "write 3.1.1 or 5"),
        ("mqtt://h", ("keep_alive", "1500ms"), "whole seconds"),
        ("mqtt://h", ("keep_alive", "1200m"), "whole seconds"),
        ("mqtt://h", ("inflight", "0"), "inflight is 0"),
        ("mqtt://:p@h", ("inflight", "1"), "user name"),
    ] {
        let error = try_settings(url, 1, false, &[changes]).err().unwrap().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(try_settings("mqtt://h", 3, false, &[]).is_err());
    assert!(try_settings("mqtt://:p@h", 0, false, &[("mqtt_version", "5")]).is_ok());
}

#[test]
fn a_client_says_who_it_is() {
    for version in [V3, V5] {
        let changes = [("mqtt_version", &version.to_string()[..])];
        let durable = |role| Client::new(try_settings("mqtt://u:p@h", 1, true, &changes).unwrap(), spec(role));
        let subscriber = durable(Role::Subscriber);
        let (spoken, connect) = connect_of(&subscriber);
        assert_eq!((spoken, connect.client_id, connect.clean_start), (version, "p0", false));
        assert_eq!((connect.user, connect.password), (Some("u"), Some(&b"p"[..])));
        assert_eq!(connect.session_expiry_s, if version == V5 { 86_400 } else { u32::MAX });
        let publisher = durable(Role::Publisher);
        let (_, connect) = connect_of(&publisher);
        assert_eq!((connect.clean_start, connect.session_expiry_s), (true, 0));
    }
}

#[test]
fn subscriptions_and_their_end() {
    for version in [V3, V5] {
        let changes = [("mqtt_version", &version.to_string()[..])];
        let durable = try_settings("mqtt://h", 1, true, &changes).unwrap();
        let group = ClientSpec { group: Some("g".into()), topic: "a/#".into(), wild: true, ..spec(Role::Subscriber) };
        let mut client = Client::new(durable, group);
        client.out.clear();
        client.session.subscribe(&client.settings, &client.spec, &mut client.out);
        assert_eq!(client.sent(), [r#"SUBSCRIBE 1 [("$share/g/a/#", AtLeastOnce)]"#]);
        client.hear(|out| encode::connack(out, version, &Connack::new(0)).unwrap());
        client.hear(|out| encode::suback(out, version, 1, &[1], None).unwrap());
        client.session.close(&client.settings, &client.spec, &mut client.out);
        let expiry = if version == V5 { "Some(0)" } else { "None" };
        let disconnect = format!("Disconnect {{ reason: 0, session_expiry_s: {expiry} }}");
        assert_eq!(client.sent(), [r#"UNSUBSCRIBE 2 ["$share/g/a/#"]"#, &disconnect]);
        assert_eq!(client.hear(|out| encode::unsuback(out, version, 2, &[0]).unwrap()), []);

        let mut client = Client::ready(settings(version, 0), spec(Role::Subscriber));
        client.session.keep_alive(&client.settings, &mut client.out);
        client.session.close(&client.settings, &client.spec, &mut client.out);
        assert_eq!(client.sent(), ["Pingreq", "Disconnect { reason: 0, session_expiry_s: None }"]);
        assert_eq!(client.hear(encode::pingresp), []);
    }
}

#[test]
fn qos_0_flows_without_an_answer() {
    for version in [V3, V5] {
        let mut publisher =
            Client::ready(settings(version, 0), ClientSpec { leaves: SubTopics::Turns(11), ..spec(Role::Publisher) });
        assert!([0, 10, 11, 4_000_000_010].map(|sequence| publisher.publish(sequence)).iter().all(|taken| *taken));
        assert_eq!(publisher.sent(), ["PUBLISH 0 a/b/0", "PUBLISH 0 a/b/10", "PUBLISH 0 a/b/0", "PUBLISH 0 a/b/6"]);
        assert_eq!(publisher.session.unacknowledged(), 0);
        let mut subscriber = Client::ready(settings(version, 0), spec(Role::Subscriber));
        let bytes = [message(version, Qos::AtMostOnce, 0, b"1"), message(version, Qos::AtMostOnce, 0, b"")].concat();
        assert_eq!(
            subscriber.input(&bytes),
            (Ok(bytes.len()), vec![Said::Message(b"1".into()), Said::Message(vec![])])
        );
        assert!(subscriber.out.is_empty());
    }
}

#[test]
fn qos_1_counts_each_acknowledgement_once() {
    for version in [V3, V5] {
        let mut publisher = Client::ready(settings(version, 1), spec(Role::Publisher));
        publisher.session.window = 3;
        assert!((5..8).all(|sequence| publisher.publish(sequence)));
        assert_eq!(publisher.sent(), ["PUBLISH 1 a/b", "PUBLISH 2 a/b", "PUBLISH 3 a/b"]);
        assert!(!publisher.publish(8) && publisher.out.is_empty(), "the window is full");
        assert_eq!(publisher.ack(encode::puback, 2), [Said::Acknowledged(6)]);
        assert_eq!(publisher.ack(encode::puback, 2), [], "a second time");
        assert_eq!(publisher.ack(encode::puback, 9), [], "never sent");
        assert_eq!(publisher.session.unacknowledged(), 2);
        assert!(publisher.publish(8) && !publisher.publish(9));
        assert_eq!(publisher.ack(encode::puback, 1), [Said::Acknowledged(5)]);
        assert_eq!(publisher.ack(encode::puback, 3), [Said::Acknowledged(7)]);
        assert_eq!(publisher.ack(encode::puback, 4), [Said::Acknowledged(8)]);
        assert_eq!((publisher.session.unacknowledged(), publisher.session.exchanges.len()), (0, 0));
        assert_eq!(publisher.ack(encode::puback, 1), [], "long over");

        let mut subscriber = Client::ready(settings(version, 1), spec(Role::Subscriber));
        let bytes = message(version, Qos::AtLeastOnce, 7, b"x");
        assert_eq!(subscriber.input(&bytes).1, [Said::Message(b"x".into())]);
        assert_eq!(subscriber.sent(), ["PUBACK 7"]);
    }
}

#[test]
fn qos_2_delivers_and_counts_once() {
    for version in [V3, V5] {
        let unknown = if version == V5 { u32::from(UNKNOWN_PACKET_ID) } else { 0 };
        let mut publisher = Client::ready(settings(version, 2), spec(Role::Publisher));
        assert!(publisher.publish(70) && publisher.publish(71));
        assert_eq!(publisher.ack(encode::pubcomp, 1), [], "not before PUBREC");
        assert_eq!(publisher.ack(encode::puback, 1), [], "PUBACK is of QoS 1");
        publisher.sent();
        assert_eq!(publisher.ack(encode::pubrec, 2), []);
        assert_eq!(publisher.ack(encode::pubrec, 2), []);
        assert_eq!(publisher.ack(encode::pubrec, 9), []);
        assert_eq!(publisher.sent(), ["PUBREL 2 0".into(), "PUBREL 2 0".into(), format!("PUBREL 9 {unknown}")]);
        assert_eq!(publisher.ack(encode::pubcomp, 2), [Said::Acknowledged(71)]);
        assert_eq!(publisher.ack(encode::pubcomp, 2), []);
        assert_eq!(publisher.ack(encode::pubrec, 1), []);
        assert_eq!(publisher.ack(encode::pubcomp, 1), [Said::Acknowledged(70)]);
        assert_eq!((publisher.session.unacknowledged(), publisher.session.exchanges.len()), (0, 0));

        let mut subscriber = Client::ready(settings(version, 2), spec(Role::Subscriber));
        let mut arrives = |id, heard: bool| {
            let said = subscriber.input(&message(version, Qos::ExactlyOnce, id, b"x")).1;
            assert_eq!(said.len(), usize::from(heard), "{id}");
        };
        arrives(65_535, true);
        arrives(1, true);
        arrives(65_535, false);
        arrives(1, false);
        assert_eq!(subscriber.sent(), ["PUBREC 65535", "PUBREC 1", "PUBREC 65535", "PUBREC 1"]);
        assert_eq!(subscriber.ack(encode::pubrel, 1), []);
        assert_eq!(subscriber.ack(encode::pubrel, 1), []);
        assert_eq!(subscriber.sent(), ["PUBCOMP 1 0".into(), format!("PUBCOMP 1 {unknown}")]);
        assert_eq!(subscriber.input(&message(version, Qos::ExactlyOnce, 1, b"y")).1, [Said::Message(b"y".into())]);
    }
}

#[test]
fn identifiers_go_round_and_none_is_used_twice() {
    let mut publisher = Client::ready(settings(V5, 1), spec(Role::Publisher));
    for sequence in 0..65_535 {
        assert!(publisher.publish(sequence));
    }
    assert!(!publisher.publish(65_535), "all are in use");
    assert_eq!(publisher.ack(encode::puback, 65_535), [Said::Acknowledged(65_534)]);
    assert!(!publisher.publish(65_535), "the next in turn is in use");
    assert_eq!(publisher.ack(encode::puback, 1), [Said::Acknowledged(0)]);
    publisher.sent();
    assert!(publisher.publish(65_535));
    assert_eq!(publisher.sent(), ["PUBLISH 1 a/b"]);
    assert_eq!(publisher.ack(encode::puback, 1), [Said::Acknowledged(65_535)]);
    for id in 2..65_535 {
        assert_eq!(publisher.ack(encode::puback, id), [Said::Acknowledged(u32::from(id) - 1)]);
    }
    assert_eq!((publisher.session.unacknowledged(), publisher.session.exchanges.len()), (0, 0));
    assert!(publisher.publish(65_536));
    assert_eq!(publisher.sent(), ["PUBLISH 2 a/b"]);
}

#[test]
fn servers_limit_their_clients() {
    let mut client = Client::new(settings(V5, 1), spec(Role::Publisher));
    let limits = Connack { receive_maximum: 2, keep_alive_s: Some(30), ..Connack::new(0) };
    assert_eq!(client.hear(|out| encode::connack(out, V5, &limits).unwrap()), [Said::Connected]);
    assert!(client.publish(0) && client.publish(1) && !client.publish(2));

    let refused = |connack: Connack<'_>, retain| {
        let settings = try_settings("mqtt://h", 1, false, &[("mqtt_version", "5"), ("retain", retain)]).unwrap();
        match Client::new(settings, spec(Role::Publisher)).fault(|out| encode::connack(out, V5, &connack).unwrap()) {
            SessionError::Denied(text) => text,
            other => panic!("{other:?}"),
        }
    };
    let qos = Connack { maximum_qos: Qos::AtMostOnce, ..Connack::new(0) };
    assert!(refused(qos, "false").contains("QoS 0 at most"));
    assert!(refused(Connack { retain_available: false, ..Connack::new(0) }, "true").contains("retain"));
    // PUBLISH at QoS 1: 1 + 2 for the length, 2 + 3 for `a/b`, 2, 1, and the message.
    let packet = |bytes| Connack { maximum_packet_bytes: Some(bytes), ..Connack::new(0) };
    let words = refused(packet(1_034), "false");
    assert!(words.contains("of 1034 bytes at most") && words.contains("one of 1035"), "{words}");
    let accepts = |settings, spec: ClientSpec, connack: Connack<'_>| {
        let heard = Client::new(settings, spec).hear(|out| encode::connack(out, V5, &connack).unwrap());
        assert_eq!(heard, [Said::Connected]);
    };
    accepts(settings(V5, 1), spec(Role::Publisher), packet(1_035));
    accepts(settings(V5, 1), spec(Role::Subscriber), packet(100));
    let of = |spec: ClientSpec, connack: Connack<'_>| {
        let settings = try_settings("mqtt://h", 1, true, &[("mqtt_version", "5")]).unwrap();
        Client::new(settings, spec).fault(|out| encode::connack(out, V5, &connack).unwrap()).to_string()
    };
    let subscriber = || spec(Role::Subscriber);
    let no_wildcards = Connack { wildcards_available: false, ..Connack::new(0) };
    assert!(of(ClientSpec { wild: true, ..subscriber() }, no_wildcards).contains("wildcards"));
    let no_groups = Connack { shared_available: false, ..Connack::new(0) };
    assert!(of(ClientSpec { group: Some("g".into()), ..subscriber() }, no_groups).contains("shared"));
    assert!(of(subscriber(), Connack { session_expiry_s: Some(0), ..Connack::new(0) }).contains("keeps no session"));
    assert!(refused(Connack { keep_alive_s: Some(29), ..Connack::new(0) }, "false").contains("set keep_alive = 29s"));
}

#[test]
fn refusals_are_told_in_words() {
    let connack = |version, code| {
        let mut client = Client::new(settings(version, 1), spec(Role::Subscriber));
        client.fault(|out| encode::connack(out, version, &Connack { text: Some("go"), ..Connack::new(code) }).unwrap())
    };
    let denied = |text: &str| SessionError::Denied(text.into());
    let busy = |text: &str| SessionError::Busy(text.into());
    let limit = |text: &str| SessionError::Limit(text.into());
    assert_eq!(connack(V3, 4), denied("the server refuses the connection: bad user name or password (code 0x04)"));
    assert_eq!(connack(V3, 3), busy("the server refuses the connection: server unavailable (code 0x03)"));
    assert_eq!(connack(V5, 0x87), denied("the server refuses the connection: not authorised (code 0x87, \"go\")"));
    assert_eq!(connack(V5, 0x97), limit("the server refuses the connection: quota exceeded (code 0x97, \"go\")"));

    let suback = |version, code| {
        let mut client = Client::new(settings(version, 1), spec(Role::Subscriber));
        client.hear(|out| encode::connack(out, version, &Connack::new(0)).unwrap());
        client.session.subscribe(&client.settings, &client.spec, &mut client.out);
        client.fault(|out| encode::suback(out, version, 1, &[code], None).unwrap())
    };
    assert_eq!(suback(V3, 0x80), denied("the server refuses the subscription: unspecified error (code 0x80)"));
    assert_eq!(suback(V5, 0x97), limit("the server refuses the subscription: quota exceeded (code 0x97)"));
    assert_eq!(suback(V3, 0), denied("the server grants QoS 0, and QoS 1 is asked for"));

    let mut client = Client::ready(settings(V5, 1), spec(Role::Publisher));
    assert!(client.publish(0) && client.publish(1));
    let refused = |sequence, words: &str| [Said::Refused(sequence, words.into())];
    assert_eq!(client.refuse(encode::puback, 1, 0x97), refused(0, "quota exceeded (code 0x97)"));
    assert_eq!(client.refuse(encode::puback, 1, 0x97), [], "a second time");
    assert_eq!(client.session.unacknowledged(), 1);
    let with_words = b"\x40\x09\0\x02\x87\x05\x1F\0\x02no";
    assert_eq!(client.input(with_words).1, refused(1, "no (code 0x87)"), "the server's own words");
    assert_eq!(client.session.unacknowledged(), 0);

    let mut client = Client::ready(settings(V5, 2), spec(Role::Publisher));
    assert!(client.publish(0));
    assert_eq!(client.refuse(encode::pubrec, 1, 0x97), refused(0, "quota exceeded (code 0x97)"));
    assert_eq!((client.session.unacknowledged(), client.sent()), (0, vec!["PUBLISH 1 a/b".to_owned()]));
    let fault = client.fault(|out| encode::disconnect(out, V5, 0x8B, None));
    assert_eq!(fault, busy("the server ends the connection: server shutting down (code 0x8B)"));
    let fault = client.fault(|out| encode::disconnect(out, V5, 0x8E, None));
    assert!(matches!(fault, SessionError::Denied(_)), "{fault:?}");
}

#[test]
fn who_speaks_something_else_is_shown() {
    for (bytes, says) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            r"`HTTP/1.1 400 Bad Request\r\n`, which is not MQTT; it seems to speak HTTP",
        ),
        (b"INFO {\"server_id\"", "NATS"),
        (b"-ERR unknown command", "Redis"),
        (b"\x15\x03\x01", "mqtts://"),
        (b"\x20\x01\0", r"` \x01\x00`, which"),
        (b"\x30\x03\0\x01t", "which is not MQTT"),
        (&[b'x'; 99], "`xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`"),
    ] {
        let (result, said) = Client::new(settings(V3, 0), spec(Role::Publisher)).input(bytes);
        let Err(SessionError::Foreign(text)) = result else { panic!("{result:?}") };
        assert!(text.contains(says) && said.is_empty(), "{text}");
    }
    for bytes in [&b"\x20\x02\0\0"[..], b"\x00", b"\x90\x03\0\x09\0", b"\x40\x01\0"] {
        let (result, _) = Client::ready(settings(V3, 1), spec(Role::Publisher)).input(bytes);
        assert!(matches!(&result, Err(SessionError::Foreign(text)) if text.contains("MQTT 3.1.1")), "{result:?}");
    }
    let aliased = b"\x30\x08\0\x01t\x03\x23\0\x01x";
    assert!(matches!(
        Client::ready(settings(V5, 0), spec(Role::Subscriber)).input(aliased).0,
        Err(SessionError::Foreign(_))
    ));
}

/// Passes bytes to a client in pieces that end at `ends`, like an event loop: unused
/// bytes are passed again with more after them.
fn in_pieces(client: &mut Client, bytes: &[u8], ends: &[usize]) -> (Option<SessionError>, Vec<Said>) {
    let (mut from, mut all) = (0, Vec::new());
    for to in ends.iter().copied().chain([bytes.len()]) {
        let (result, said) = client.input(&bytes[from..to]);
        all.extend(said);
        match result {
            Ok(used) => from += used,
            Err(fault) => return (Some(fault), all),
        }
    }
    assert_eq!(from, bytes.len(), "all is used");
    (None, all)
}

fn conversation(version: Version, qos: Qos, payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode::connack(&mut bytes, version, &Connack { receive_maximum: 9, ..Connack::new(0) }).unwrap();
    encode::suback(&mut bytes, version, 1, &[qos as u8], None).unwrap();
    for (id, payload) in (1..).zip(payloads) {
        bytes.extend(message(version, qos, if qos == Qos::AtMostOnce { 0 } else { id }, payload));
        encode::pingresp(&mut bytes);
        if qos == Qos::ExactlyOnce {
            encode::pubrel(&mut bytes, version, Ack { id, reason: 0 });
        }
    }
    bytes
}

proptest! {
    #[test]
    fn where_input_is_cut_makes_no_difference(
        (version, qos) in (prop_oneof![Just(V3), Just(V5)], 0u8..3),
        payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..6),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..9),
        each in any::<bool>(),
    ) {
        let bytes = conversation(version, Qos::from_number(qos).unwrap(), &payloads);
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        ends.sort_unstable();
        if each {
            ends = (0..bytes.len()).collect();
        }
        let play = |ends: &[usize]| {
            let mut client = Client::new(settings(version, qos), spec(Role::Subscriber));
            client.session.subscribe(&client.settings, &client.spec, &mut client.out);
            let (fault, said) = in_pieces(&mut client, &bytes, ends);
            (fault, said, client.out)
        };
        let whole = play(&[]);
        prop_assert_eq!(whole.1.len(), payloads.len() + 2);
        prop_assert_eq!(&whole.0, &None);
        prop_assert_eq!(play(&ends), whole);
    }

    #[test]
    fn acknowledgements_in_any_order_count_each_message_once(
        (version, twice) in (prop_oneof![Just(V3), Just(V5)], any::<bool>()),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 1..200),
    ) {
        let qos = if twice { 2 } else { 1 };
        let mut client = Client::ready(settings(version, qos), spec(Role::Publisher));
        client.session.window = 20;
        client.session.first_id = 65_530;
        let (mut sequence, mut under_way, mut counted) = (0, Vec::new(), Vec::new());
        for pick in order {
            while client.publish(sequence) {
                let id = client.session.id_at(client.session.exchanges.len() - 1);
                prop_assert!(!under_way.contains(&(id, sequence)));
                under_way.push((id, sequence));
                sequence += 1;
            }
            let (id, expected) = under_way.swap_remove(pick.index(under_way.len()));
            if twice {
                client.ack(encode::pubrec, id);
                counted.extend(client.ack(encode::pubcomp, id));
            } else {
                counted.extend(client.ack(encode::puback, id));
            }
            prop_assert_eq!(counted.last(), Some(&Said::Acknowledged(expected)));
            prop_assert_eq!(client.session.unacknowledged(), under_way.len());
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..99), qos in 0u8..3, ready: bool) {
        for version in [V3, V5] {
            for role in [Role::Publisher, Role::Subscriber] {
                let make = if ready { Client::ready } else { Client::new };
                let mut client = make(settings(version, qos), spec(role));
                if let Ok(used) = client.input(&bytes).0 {
                    prop_assert!(used <= bytes.len());
                }
            }
        }
    }
}

#[test]
fn a_prefix_makes_topics() {
    assert!(try_settings("mqtt://h", 0, false, &[("prefix", "bench/ä b/")]).is_ok());
    for bad in ["a/#", "+/", "$share/", "a\u{1}", &"x".repeat(65_001)] {
        let error = try_settings("mqtt://h", 0, false, &[("prefix", bad)]).err().unwrap().to_string();
        assert!(error.starts_with("prefix: "), "{error}");
    }
}
