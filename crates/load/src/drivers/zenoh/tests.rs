use super::super::conversation::{Conversation, HeardEvent, message, settings, spec};
use super::*;
use crate::session::SubTopics;
use pubmark_model::protocol::Role;

const COOKIE: &[u8] = b"cookie";

fn plain() -> ZenohSettings {
    settings::<Zenoh>("zenoh://h", 0, false, &[]).unwrap()
}

fn ack(version: u8, batch_bytes: u16) -> Vec<u8> {
    let terms = InitTerms {
        version,
        kind: NodeKind::Router,
        id: b"router",
        resolution: DEFAULT_RESOLUTION,
        batch_bytes,
        patch: PATCH,
    };
    let mut out = Vec::new();
    TransportItem::InitAck(terms, COOKIE).put(&mut out);
    out
}

fn batch(items: &[TransportItem<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    items.iter().for_each(|item| item.put(&mut out));
    out
}

/// Returns the messages of what was sent, without frames.
fn said<'a>(bytes: &'a [u8]) -> Vec<TransportItem<'a>> {
    let (mut rest, mut items) = (bytes, Vec::new());
    while let Some((mut batch, taken)) = BatchReader::decode(rest).unwrap() {
        while let Some(item) = batch.next_item().unwrap() {
            if !matches!(item, TransportItem::Frame { .. }) {
                items.push(item);
            }
        }
        rest = &rest[taken..];
    }
    items
}

fn connected<'a>(settings: &'a ZenohSettings, client: ClientSpec, cut: usize) -> Conversation<'a, Zenoh> {
    let mut talk = Conversation::<Zenoh>::new(settings, client);
    assert!(matches!(said(&talk.said())[..], [TransportItem::InitSyn(terms)] if terms.id.len() == 16));
    talk.say_cut(&ack(VERSION, 4_096), cut).unwrap();
    let opened = TransportItem::OpenSyn { lease_ms: 60_000, first: 0, cookie: COOKIE };
    assert_eq!(said(&talk.said()), [opened]);
    talk.say_cut(&batch(&[TransportItem::OpenAck { lease_ms: 10_000, first: 5 }]), cut).unwrap();
    assert!(talk.heard().is_empty(), "the router may give up yet");
    talk.say_cut(&answer(1), cut).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Connected]);
    talk
}

/// Returns the end of the answer to a question.
fn answer(number: u32) -> Vec<u8> {
    batch(&[TransportItem::Network(NetworkItem::Declare(Some(number), Declaration::Final))])
}

fn question(number: u32) -> TransportItem<'static> {
    let key = KeyExpr::text(b"pubmark/ready");
    TransportItem::Network(NetworkItem::Interest { number, mode: InterestMode::Current, key: Some(key) })
}

#[test]
fn a_subscriber_hears_its_messages_wherever_the_bytes_are_cut() {
    let settings = plain();
    let put = |payload| NetworkItem::Put { key: KeyExpr { scope: 1, by_sender: false, suffix: b"" }, payload };
    let long = vec![7; 9_000];
    let mut words = batch(&[TransportItem::KeepAlive, TransportItem::Network(put(b"hello"))]);
    for (reliable, number) in [(true, 6), (false, 0)] {
        // A channel's messages joined to one frame, then in fragments.
        let mut channel = FrameChannel::new(reliable, DEFAULT_RESOLUTION);
        (0..number).for_each(|_| channel.put_frame(&NetworkItem::Administration, &mut words));
        channel.put_push(&mut words, KeyExpr::text(b"a/b"), DATA_PRIORITY, b"", 4_096);
        channel.put_push(&mut words, KeyExpr::text(b"a/b"), DATA_PRIORITY, b"two", 4_096);
        channel.put_push(&mut words, KeyExpr::text(b"a/b"), DATA_PRIORITY, &long, 4_096);
    }
    for cut in (0..300).chain([1_000, 5_000, 9_000, words.len() - 1]) {
        let mut talk = connected(&settings, spec(Role::Subscriber, "a/b"), cut);
        assert_eq!(said(&talk.said()), [question(1)]);
        talk.subscribe();
        let key = KeyExpr { scope: 0, by_sender: true, suffix: b"a/b" };
        let (declared, one) = (|what| TransportItem::Network(NetworkItem::Declare(None, what)), KeyExpr::declared(1));
        let wanted = [declared(Declaration::Key(1, key)), declared(Declaration::Subscriber(1, one)), question(2)];
        assert_eq!(said(&talk.said()), wanted);
        talk.say_cut(&answer(2), cut).unwrap();
        assert_eq!(talk.heard(), [HeardEvent::Subscribed]);
        talk.say_cut(&words, cut).unwrap();
        let of_channel = [message(b""), message(b"two"), message(&long)];
        assert_eq!(talk.heard(), [&[message(b"hello")][..], &of_channel, &of_channel].concat());
        assert!(talk.all_taken() && talk.said().is_empty());
        assert_eq!(talk.session.announced(b""), 0);
    }
}

#[test]
fn a_message_whose_fragments_are_dropped_is_lost_alone() {
    let settings = plain();
    let mut words = Vec::new();
    let mut channel = FrameChannel::new(true, DEFAULT_RESOLUTION);
    channel.put_push(&mut words, KeyExpr::text(b"k"), DATA_PRIORITY, &[1; 9_000], 4_096);
    let (_, first) = BatchReader::decode(&words).unwrap().unwrap();
    let (_, second) = BatchReader::decode(&words[first..]).unwrap().unwrap();
    let next = batch(&[TransportItem::Network(NetworkItem::Put { key: KeyExpr::text(b"k"), payload: b"next" })]);
    let fragment = |number, first, more, dropped| TransportItem::Fragment {
        reliable: true,
        number,
        first,
        more,
        dropped,
        part: b"",
    };
    for (broken, why) in [
        ([&words[..first], &words[first + second..]].concat(), "the middle is missing"),
        (words[first..].to_vec(), "the beginning is missing"),
        ([&words[..first], &batch(&[fragment(1, false, true, true)])].concat(), "the router gave up"),
        ([&words[..first], &batch(&[fragment(1, false, false, true)])].concat(), "the router gave up at the end"),
    ] {
        let mut talk = connected(&settings, spec(Role::Subscriber, "k"), 0);
        talk.say(&broken).unwrap();
        talk.say(&next).unwrap();
        talk.say(&words).unwrap();
        assert_eq!(talk.heard(), [message(b"next"), message(&[1; 9_000])], "{why}");
    }
}

#[test]
fn a_publisher_names_its_key_once_or_its_topics_each_time() {
    let settings = plain();
    let mut talk = Conversation::<Zenoh>::new(&settings, spec(Role::Publisher, "t"));
    talk.said();
    talk.say(&ack(VERSION, 4_096)).unwrap();
    talk.said();
    talk.say(&batch(&[TransportItem::OpenAck { lease_ms: 10_000, first: 5 }])).unwrap();
    let key = KeyExpr { scope: 0, by_sender: true, suffix: b"t" };
    let declared = TransportItem::Network(NetworkItem::Declare(None, Declaration::Key(1, key)));
    assert_eq!(said(&talk.said()), [declared, question(1)]);
    talk.say(&answer(1)).unwrap();
    assert!(talk.publish(b"one", 7) && talk.publish(b"two", 8));
    let put = |key, payload| TransportItem::Network(NetworkItem::Put { key, payload });
    assert_eq!(said(&talk.said()), [put(KeyExpr::declared(1), b"one"), put(KeyExpr::declared(1), b"two")]);

    let mut talk = connected(&settings, ClientSpec { leaves: SubTopics::Turns(3), ..spec(Role::Publisher, "t") }, 0);
    assert!(said(&talk.said()) == [question(1)] && talk.publish(b"", 7));
    assert_eq!(said(&talk.said()), [put(KeyExpr::text(b"t/1"), b"")]);
    assert!(talk.publish(&[1; 10_000], 8));
    assert!(matches!(said(&talk.said())[..], [TransportItem::Fragment { first: true, .. }, ..]));
}

#[test]
fn topics_are_put_together_from_numbers_for_those_who_read_them() {
    let mut talk = KeyTable::new("a/**");
    let key = |scope, by_sender, suffix| KeyExpr { scope, by_sender, suffix };
    talk.declared(&Declaration::Key(4, key(0, true, b"a/b"))).unwrap();
    talk.declared(&Declaration::Key(5, key(4, true, b"/c"))).unwrap();
    assert_eq!(talk.topic(&key(5, true, b"/d")), b"a/b/c/d");
    assert_eq!(talk.topic(&key(0, false, b"x")), b"x");
    assert_eq!(talk.topic(&key(1, false, b"")), b"a/**");
    assert_eq!(talk.topic(&key(9, true, b"")), b"");
    talk.declared(&Declaration::KeyGone(5)).unwrap();
    assert_eq!(talk.topic(&key(5, true, b"z")), b"z");
    let long = vec![b'k'; 60_000];
    let too_many = (0..30).try_for_each(|number| talk.declared(&Declaration::Key(number, key(0, true, &long))));
    assert!(too_many.unwrap_err().contains("more than 1048576 bytes"));
    let mut talk = KeyTable::new("");
    assert!((0..30).all(|_| talk.declared(&Declaration::Key(1, key(0, true, &long))).is_ok()), "it replaces itself");
}

#[test]
fn what_zenoh_lacks_is_refused_by_name() {
    let fault = |url: &str, qos, durable, set: &[(&str, &str)]| {
        settings::<Zenoh>(url, qos, durable, set).err().unwrap().to_string()
    };
    assert!(fault("zenoh://h", 1, false, &[]).contains("qos = 0"));
    assert!(fault("zenoh://h", 0, true, &[]).contains("durable"));
    assert!(fault("zenoh://h", 0, false, &[("username", "me")]).contains("user and password"));
    for (name, value) in
        [("prefix", "a/*"), ("prefix", "a//b"), ("prefix", "/a"), ("congestion", "perhaps"), ("reliability", "yes")]
    {
        assert!(fault("zenoh://h", 0, false, &[(name, value)]).contains(name), "{name} {value}");
    }
    let of = |set: &[(&str, &str)]| settings::<Zenoh>("zenoh://h", 0, false, set).unwrap();
    assert_eq!((of(&[]).qos, of(&[]).reliable), (13, true));
    assert_eq!(of(&[("congestion", "drop"), ("express", "true")]).qos, 21);
    assert!(!of(&[("reliability", "best-effort")]).reliable);
}

#[test]
fn refusals_are_told_apart() {
    let settings = plain();
    let fault =
        |bytes: &[u8]| Conversation::<Zenoh>::new(&settings, spec(Role::Publisher, "t")).say(bytes).unwrap_err();
    let close = |reason| fault(&batch(&[TransportItem::Close(reason)]));
    assert!(matches!(close(0), SessionError::Busy(words) if words.contains("generic")));
    assert!(matches!(close(2), SessionError::Denied(words) if words.contains("version")));
    assert!(matches!(close(3), SessionError::Limit(words) if words.contains("max_sessions")));
    let mut up = connected(&settings, spec(Role::Subscriber, "t"), 0);
    let ended = up.say(&batch(&[TransportItem::Close(6)])).unwrap_err();
    assert!(matches!(&ended, SessionError::Busy(words) if words.contains("unresponsive")), "{ended:?}");
    assert!(matches!(fault(&ack(8, u16::MAX)), SessionError::Foreign(words) if words.contains("version 8")));
    assert!(matches!(fault(&ack(VERSION, 100)), SessionError::Denied(words) if words.contains("batch_size")));
    let http = fault(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(matches!(&http, SessionError::Foreign(words) if words.contains("does not speak Zenoh 1: it sent \"HTTP")));
    // An answer to a question that was not asked, and a message before the handshake.
    let early = TransportItem::Network(NetworkItem::Administration);
    for item in [TransportItem::OpenAck { lease_ms: 1, first: 0 }, early] {
        assert!(matches!(fault(&batch(&[item])), SessionError::Foreign(_)), "{item:?}");
    }
}

#[test]
fn an_idle_session_is_small() {
    assert!(size_of::<Zenoh>() <= 112, "{} bytes", size_of::<Zenoh>());
}

#[test]
fn each_connection_has_an_identifier_of_its_own() {
    let ids: std::collections::HashSet<_> = (0..1_000).map(|_| unique_id()).collect();
    assert_eq!(ids.len(), 1_000);
    assert!(ids.iter().all(|id| id[MAX_ID_BYTES - 1] != 0));
}
