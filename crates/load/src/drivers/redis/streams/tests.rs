use super::super::super::conversation::{Conversation, HeardEvent, message, settings, spec};
use super::super::{Redis, RedisSettings};
use super::*;
use crate::session::Session;
use crate::shard::BESIDE_PAYLOAD_BYTES;

const HELLO: &[u8] = b"%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.1\r\n";

fn at_qos_1(set: &[(&str, &str)]) -> RedisSettings {
    settings::<Redis>("redis://h", 1, false, set).unwrap()
}

fn connected<'a>(settings: &'a RedisSettings, spec: ClientSpec) -> Conversation<'a, Redis> {
    let mut talk = Conversation::<Redis>::new(settings, spec);
    talk.say(if settings.three { HELLO } else { b"$0\r\n\r\n+PONG\r\n" }).unwrap();
    assert_eq!(talk.heard().last(), Some(&HeardEvent::Connected));
    talk.said();
    talk
}

/// Returns the commands that the client has sent, each as a line.
fn commands(talk: &mut Conversation<'_, Redis>) -> Vec<String> {
    let (said, mut at, mut all) = (talk.said(), 0, Vec::new());
    while let Some((item, bytes)) = Item::decode(&said[at..]).unwrap() {
        at += bytes;
        let words = item.values().unwrap().map(|word| String::from_utf8_lossy(word.text().unwrap()).into_owned());
        all.push(words.collect::<Vec<_>>().join(" "));
    }
    all
}

/// Returns an answer to XREADGROUP with these entries.
fn entries(three: bool, entries: &[(&str, &str)]) -> Vec<u8> {
    let mut out = if three { b"%1\r\n".to_vec() } else { b"*1\r\n*2\r\n".to_vec() };
    put_bulk(&mut out, b"t");
    put_front(&mut out, b'*', entries.len());
    for (id, payload) in entries {
        put_front(&mut out, b'*', 2);
        put_bulk(&mut out, id.as_bytes());
        put_front(&mut out, b'*', 2);
        put_bulk(&mut out, FIELD);
        put_bulk(&mut out, payload.as_bytes());
    }
    out
}

#[test]
fn a_subscriber_reads_its_own_entries_first_and_then_new_ones_in_both_versions() {
    for (three, version) in [(true, "3"), (false, "2")] {
        let settings = at_qos_1(&[("resp", version), ("read_count", "7")]);
        let mut talk = connected(&settings, spec(Role::Subscriber, "t"));
        talk.subscribe();
        assert_eq!(commands(&mut talk), ["XGROUP CREATE t c0 0 MKSTREAM"]);
        talk.say(b"-BUSYGROUP Consumer Group name already exists\r\n").unwrap();
        assert_eq!(talk.heard(), [HeardEvent::Subscribed]);
        assert_eq!(commands(&mut talk), ["XREADGROUP GROUP c0 c0 COUNT 7 STREAMS t 0"]);
        talk.say(&entries(three, &[("1-0", "old")])).unwrap();
        assert_eq!(commands(&mut talk), ["XACK t c0 1-0", "XREADGROUP GROUP c0 c0 COUNT 7 STREAMS t 0"]);
        talk.say(&[&b":1\r\n"[..], &entries(three, &[])].concat()).unwrap();
        assert_eq!(commands(&mut talk), ["XREADGROUP GROUP c0 c0 COUNT 7 BLOCK 0 STREAMS t >"]);
        let two = entries(three, &[("2-0", "a"), ("2-1", "")]);
        for cut in 0..two.len() {
            talk.say_cut(&two, cut).unwrap();
            let said = commands(&mut talk);
            assert_eq!(said, ["XACK t c0 2-0 2-1", "XREADGROUP GROUP c0 c0 COUNT 7 BLOCK 0 STREAMS t >"]);
            let heard = talk.heard();
            assert_eq!(&heard[heard.len() - 2..], [message(b"a"), message(b"")]);
            talk.say(b":2\r\n").unwrap();
        }
        let gone = talk.say(b"-NOGROUP No such key 't'\r\n");
        assert!(matches!(gone, Err(SessionError::Busy(words)) if words.contains("NOGROUP")));
    }
}

#[test]
fn members_of_a_group_read_under_their_own_names_and_need_not_acknowledge() {
    let settings = at_qos_1(&[("ack_policy", "none")]);
    let mut talk = connected(&settings, ClientSpec { group: Some("g".into()), ..spec(Role::Subscriber, "t") });
    talk.subscribe();
    talk.say(b"+OK\r\n").unwrap();
    let next = "XREADGROUP GROUP g c0 COUNT 100 BLOCK 0 NOACK STREAMS t >";
    assert_eq!(commands(&mut talk), ["XGROUP CREATE t g 0 MKSTREAM", next]);
    talk.say(&entries(true, &[("1-0", "x")])).unwrap();
    assert_eq!(commands(&mut talk), [next]);
}

/// A client ends its connection to a server that announces a longer packet.
#[test]
fn the_longest_answer_is_no_longer_than_a_packet_may_be() {
    let (id, payload) = (format!("{0}-{0}", u64::MAX), "x".repeat(1_024));
    let settings = at_qos_1(&[("read_count", "500")]);
    for three in [true, false] {
        let answer = entries(three, &[(&*id, &*payload); 500]);
        let most_bytes = Redis::packet_payload_bytes(&settings, 1_024) + BESIDE_PAYLOAD_BYTES;
        assert!(Item::announced(&answer) <= most_bytes, "{} of {most_bytes}", answer.len());
    }
}

#[test]
fn each_entry_is_acknowledged_or_refused_in_order() {
    let settings = at_qos_1(&[("inflight", "3"), ("max_length", "1000")]);
    let mut talk = connected(&settings, spec(Role::Publisher, "t"));
    assert!(talk.publish(b"x", 8) && talk.publish(b"y", 9) && talk.publish(b"z", 10));
    assert!(!talk.publish(b"x", 11), "three are unacknowledged");
    assert_eq!(commands(&mut talk)[0], "XADD t MAXLEN ~ 1000 * m x");
    talk.say(b"$3\r\n1-0\r\n-OOM command not allowed when used memory > 'maxmemory'.\r\n").unwrap();
    let heard = talk.heard();
    assert_eq!(heard[0], HeardEvent::Acknowledged(8));
    assert!(matches!(&heard[1], HeardEvent::Refused(9, words) if words.starts_with("OOM")), "{heard:?}");
    assert_eq!(talk.session.unacknowledged(), 1);
    let spec = talk.spec.clone();
    talk.session.resume(&settings, &spec);
    talk.say(HELLO).unwrap();
    struct Copy;
    impl crate::session::Copies for Copy {
        fn message(&mut self, _: u32) -> &[u8] {
            b"again"
        }
    }
    assert!(talk.session.resend(&settings, &mut Copy, &mut talk.out));
    assert!(!talk.session.resend(&settings, &mut Copy, &mut talk.out));
    talk.heard();
    talk.say(b"$3\r\n2-0\r\n").unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Acknowledged(10)]);
}

#[test]
fn a_stream_is_left_and_removed() {
    let settings = at_qos_1(&[]);
    let left = Redis::leaves(&settings, &spec(Role::Subscriber, "t"));
    assert_eq!(left, [Leftover::Stream("t".into())]);
    let plain = super::super::super::conversation::settings::<Redis>("redis://h", 0, false, &[]).unwrap();
    let mut talk = connected(&plain, spec(Role::Publisher, "t"));
    assert!(talk.session.remove(&plain, &left[0], 0, &mut talk.out));
    assert_eq!(commands(&mut talk), ["DEL t"]);
    talk.say(b":1\r\n").unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Acknowledged(0)]);
}

#[test]
fn an_answer_is_short_where_messages_are_long() {
    let read = |payload_bytes: u64, count: &str| {
        let options = super::super::super::conversation::options(
            pubmark_model::wire_protocol::Protocol::Redis,
            &[("read_count", count)],
        );
        let endpoint = pubmark_model::endpoint::Endpoint::parse("redis://h").unwrap();
        let terms = ClientSettings {
            endpoint: &endpoint,
            qos: 1,
            durable: false,
            reconnect: false,
            answer_ns: None,
            run: "r",
            seed: 0,
            payload_bytes,
            headers: None,
            options: &options,
            clients: 1,
        };
        RedisStreamSettings::read(&terms, true).map(|settings| settings.count).map_err(|error| error.to_string())
    };
    assert_eq!(read(1_024, "100").unwrap(), "100");
    assert_eq!(read(100 << 10, "100").unwrap(), "10");
    assert_eq!(read(64 << 20, "100").unwrap(), "1");
    assert_eq!(read(16, "501").unwrap_err(), "read_count = 501: write 1 to 500");
}

/// Returns HELLO's answer of a server of this mode, in a role if it has one.
fn hello_of(mode: &str, role: Option<&str>) -> Vec<u8> {
    let pairs = [("server", "redis"), ("version", "7.0.1"), ("mode", mode)].into_iter();
    let pairs: Vec<_> = pairs.chain(role.map(|role| ("role", role))).collect();
    let mut out = Vec::new();
    put_front(&mut out, b'%', pairs.len());
    for (name, value) in pairs {
        put_bulk(&mut out, name.as_bytes());
        put_bulk(&mut out, value.as_bytes());
    }
    out
}

#[test]
fn a_sentinel_names_the_primary_and_a_replica_is_left_again() {
    let settings = at_qos_1(&[]);
    let in_cluster = || {
        let mut talk = Conversation::<Redis>::new(&settings, spec(Role::Publisher, "t"));
        talk.session.at("127.0.0.1:1");
        talk.said();
        talk
    };
    let mut talk = in_cluster();
    talk.say(&hello_of("sentinel", None)).unwrap();
    assert_eq!(commands(&mut talk), ["SENTINEL GET-MASTER-ADDR-BY-NAME pubmark"]);
    assert_eq!(talk.heard(), [], "a Sentinel is not the server");
    let named = talk.say(b"*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n");
    assert_eq!(named, Err(SessionError::Elsewhere("127.0.0.1:6379".into())));
    for answer in [&b"_\r\n"[..], b"*-1\r\n", b"-IDONTKNOW ask later\r\n"] {
        let mut talk = in_cluster();
        talk.say(&hello_of("sentinel", None)).unwrap();
        assert!(matches!(talk.say(answer), Err(SessionError::Busy(_))), "{answer:?}");
    }
    let refused = in_cluster().say(&hello_of("standalone", Some("replica")));
    assert!(matches!(refused, Err(SessionError::Busy(words)) if words.contains("replica")));
    let mut talk = in_cluster();
    talk.say(&hello_of("standalone", Some("master"))).unwrap();
    assert!(talk.publish(b"x", 8));
    let moved = talk.say(b"-READONLY You can't write against a read only replica.\r\n");
    assert!(matches!(moved, Err(SessionError::Busy(words)) if words.contains("READONLY")));
    assert_eq!((talk.heard().last(), talk.session.unacknowledged()), (Some(&HeardEvent::Connected), 1));
    // A server alone stays what it is: the message is refused.
    let mut talk = connected(&settings, spec(Role::Publisher, "t"));
    assert!(talk.publish(b"x", 8));
    talk.say(b"-READONLY You can't write against a read only replica.\r\n").unwrap();
    assert!(matches!(&talk.heard()[..], [HeardEvent::Refused(8, _)]));
}

#[test]
fn a_member_of_a_redis_cluster_names_the_one_that_has_the_stream() {
    let settings = at_qos_1(&[]);
    let asked = |role| {
        let mut talk = Conversation::<Redis>::new(&settings, spec(role, "t"));
        talk.session.at("127.0.0.1:1");
        talk.said();
        // Replicas say who has a stream as well.
        talk.say(&hello_of("cluster", Some("replica"))).unwrap();
        assert_eq!(commands(&mut talk), ["EXISTS t"]);
        talk
    };
    for (answer, to) in [("127.0.0.1:6381", "127.0.0.1:6381"), ("fe80::1:6381", "[fe80::1]:6381")] {
        let named = asked(Role::Publisher).say(format!("-MOVED 3999 {answer}\r\n").as_bytes());
        assert_eq!(named, Err(SessionError::Elsewhere(to.into())));
    }
    let down = asked(Role::Publisher).say(b"-CLUSTERDOWN The cluster is down\r\n");
    assert!(matches!(down, Err(SessionError::Busy(_))), "{down:?}");
    let mut talk = asked(Role::Publisher);
    assert_eq!(talk.heard().len(), 1, "the server's version");
    talk.say(b":0\r\n").unwrap();
    assert_eq!(talk.heard().last(), Some(&HeardEvent::Connected));
    assert!(talk.publish(b"x", 8));
    let moved = talk.say(b"-MOVED 3999 127.0.0.1:6381\r\n");
    assert!(matches!(moved, Err(SessionError::Busy(_))), "{moved:?}");
    assert_eq!(talk.session.unacknowledged(), 1, "it is sent again");
    let mut talk = asked(Role::Subscriber);
    talk.say(b":1\r\n").unwrap();
    talk.subscribe();
    let moved = talk.say(b"-MOVED 3999 127.0.0.1:6381\r\n");
    assert!(matches!(moved, Err(SessionError::Busy(_))), "a blocked client of a member that lost its part: {moved:?}");
}

#[test]
fn replicas_acknowledge_what_was_sent_before_they_were_asked() {
    let settings = at_qos_1(&[("wait_replicas", "2")]);
    let mut talk = connected(&settings, spec(Role::Publisher, "t"));
    assert!(talk.publish(b"a", 1) && talk.publish(b"b", 2) && talk.publish(b"c", 3));
    assert_eq!(commands(&mut talk), ["XADD t * m a", "WAIT 2 0", "XADD t * m b", "XADD t * m c"]);
    talk.say(b"$3\r\n1-0\r\n").unwrap();
    assert_eq!(talk.heard(), [], "stored, and not acknowledged");
    talk.say(b":2\r\n").unwrap();
    assert_eq!((talk.heard(), commands(&mut talk)), (vec![HeardEvent::Acknowledged(1)], vec!["WAIT 2 0".to_owned()]));
    talk.say(b"$3\r\n2-0\r\n-OOM no memory\r\n:1\r\n").unwrap();
    let heard = talk.heard();
    assert!(matches!(&heard[..], [HeardEvent::Refused(3, _)]), "too few replicas acknowledge nothing: {heard:?}");
    assert_eq!(commands(&mut talk), ["WAIT 2 0"]);
    talk.say(b":3\r\n").unwrap();
    assert_eq!((talk.heard(), talk.session.unacknowledged()), (vec![HeardEvent::Acknowledged(2)], 0));
    assert_eq!(commands(&mut talk), [""; 0]);
    assert!(talk.publish(b"d", 4));
    assert_eq!(commands(&mut talk), ["XADD t * m d", "WAIT 2 0"]);
    talk.say(b"$3\r\n3-0\r\n").unwrap();
    let ended = talk.say(b"-UNBLOCKED force unblock from blocking operation\r\n");
    assert!(matches!(ended, Err(SessionError::Busy(_))), "{ended:?}");
    assert_eq!(talk.session.unacknowledged(), 1, "it is sent again");
}
