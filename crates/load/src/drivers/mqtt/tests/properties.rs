//! What only MQTT 5 has: aliases of topics, expiries and user properties.

use super::*;
use pubmark_model::draw::Choice;
use pubmark_model::topic_set::{Subscriptions, TopicSet};

/// Returns a publisher of MQTT 5 with these options, whose server allows `allowed` aliases.
fn publisher(set: &[(&str, &str)], headers: Option<&str>, allowed: u16, leaves: SubTopics) -> Client {
    let set = [set, &[("mqtt_version", "5")]].concat();
    let settings = conversation::settings_with::<Mqtt>("mqtt://h", 0, false, &set, headers).unwrap();
    let mut client = Client::new(settings, ClientSpec { leaves, ..spec(Role::Publisher) });
    let connack = Connack { topic_alias_maximum: allowed, ..Connack::new(0) };
    client.hear(|out| encode::connack(out, V5, &connack).unwrap());
    client.out.clear();
    client
}

/// Sends a message, and returns its topic, its alias and the length of its packet.
fn sent(client: &mut Client, sequence: u32) -> (String, Option<u16>, usize) {
    assert!(client.publish(sequence));
    let out = std::mem::take(&mut client.out);
    let Some((server::ServerPacket::Publish(publish), used)) = server::decode(&out, V5).unwrap() else {
        panic!("{out:?}")
    };
    assert_eq!((used, publish.payload), (out.len(), &b"message"[..]));
    (publish.topic.to_owned(), publish.alias, used)
}

#[test]
fn a_topic_is_named_once_and_then_has_its_alias_as_far_as_the_server_allows() {
    let mut client = publisher(&[("topic_alias", "7")], None, 2, SubTopics::Turns(3));
    let all: Vec<_> =
        (0..6).map(|sequence| sent(&mut client, sequence)).map(|(topic, alias, _)| (topic, alias)).collect();
    let pair = |topic: &str, alias| (topic.to_owned(), alias);
    assert_eq!(all[..3], [pair("a/b/0", Some(1)), pair("a/b/1", Some(2)), pair("a/b/2", None)]);
    assert_eq!(all[3..], [pair("", Some(1)), pair("", Some(2)), pair("a/b/2", None)]);
    // Another connection knows none of them.
    client.session.resume(&client.settings, &client.spec);
    client.hear(|out| encode::connack(out, V5, &Connack { topic_alias_maximum: 9, ..Connack::new(0) }).unwrap());
    assert_eq!(sent(&mut client, 3).0, "a/b/0");

    for (set, allowed) in [("0", 9), ("9", 0)] {
        let mut client = publisher(&[("topic_alias", set)], None, allowed, SubTopics::None);
        assert_eq!([sent(&mut client, 0).1, sent(&mut client, 1).1], [None, None], "{set} {allowed}");
        assert_eq!(client.session.tail_bytes(&client.settings), Some(0));
    }
}

#[test]
fn frames_are_alike_once_the_server_knows_the_alias() {
    let mut client = publisher(&[("topic_alias", "1")], None, 9, SubTopics::None);
    assert_eq!(client.session.tail_bytes(&client.settings), None);
    assert_eq!(sent(&mut client, 0).0, "a/b");
    assert_eq!(client.session.tail_bytes(&client.settings), Some(0));
}

#[test]
fn probes_of_drawn_topics_have_no_alias() {
    let draw = TopicSet::new(1, Choice::Uniform, Subscriptions::Wildcard).of_publisher(1, 0);
    let mut client = publisher(&[("topic_alias", "9")], None, 9, SubTopics::Drawn { draw, is_first: true });
    let probe = pubmark_model::header::PROBE;
    assert_eq!([sent(&mut client, probe), sent(&mut client, probe)].map(|one| one.0), ["a/b/markers", "a/b/markers"]);
    assert_eq!([sent(&mut client, 4), sent(&mut client, 5)].map(|one| one.1), [Some(1), Some(1)]);
}

#[test]
fn expiry_and_headers_stand_in_each_message() {
    let plain = sent(&mut publisher(&[], None, 0, SubTopics::None), 0).2;
    let mut client = publisher(&[("message_expiry", "70s")], Some("k: v, name: value"), 0, SubTopics::None);
    client.publish(0);
    let properties =
        [&[2, 0, 0, 0, 70][..], &[38, 0, 1, b'k', 0, 1, b'v', 38, 0, 4], b"name", &[0, 5], b"value"].concat();
    assert!(client.out.windows(properties.len()).any(|window| window == properties));
    client.out.clear();
    assert_eq!(sent(&mut client, 1).2, plain + properties.len());
}

#[test]
fn sessions_expire_when_the_option_says() {
    let set = [("mqtt_version", "5"), ("session_expiry", "90s")];
    let durable = try_settings("mqtt://h", 1, true, &set).unwrap();
    assert_eq!(connect_of(&Client::new(durable, spec(Role::Subscriber))).1.session_expiry_s, 90);
}

#[test]
fn a_packet_with_headers_must_fit_too() {
    let set = [("mqtt_version", "5"), ("topic_alias", "1")];
    let settings = conversation::settings_with::<Mqtt>("mqtt://h", 0, false, &set, Some("9 x 100B")).unwrap();
    let (properties, mut client) = (settings.properties.len(), Client::new(settings, spec(Role::Publisher)));
    // One byte for the type, two for the rest's length, two for that of the properties, five for the topic.
    let bytes = (1 + 2 + 2 + 5 + 3 + properties + 1_024) as u32;
    let connack = |most| Connack { maximum_packet_bytes: Some(most), topic_alias_maximum: 1, ..Connack::new(0) };
    let error = client.fault(|out| encode::connack(out, V5, &connack(bytes - 1)).unwrap());
    assert!(error.to_string().contains(&format!("makes one of {bytes}")), "{error}");
    assert_eq!(client.hear(|out| encode::connack(out, V5, &connack(bytes)).unwrap()), [Said::Connected]);
}
