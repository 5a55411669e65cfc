use super::super::super::conversation::{Conversation, HeardEvent, message, settings, spec};
use super::super::{Nats, NatsSettings};
use super::*;
use crate::session::Session;
use pubmark_wire::nats::FromServer;

const INFO: &[u8] = b"INFO {\"version\":\"2.15.1\",\"headers\":true,\"max_payload\":1048576}\r\n";
const STREAM_MADE: &[u8] = b"{\"type\":\"io.nats.jetstream.api.v1.stream_create_response\",\"did_create\":true}";
const CONSUMER_MADE: &[u8] = b"{\"type\":\"io.nats.jetstream.api.v1.consumer_create_response\",\"name\":\"c0\"}";

fn at_qos_1(set: &[(&str, &str)]) -> NatsSettings {
    settings::<Nats>("nats://h", 1, false, set).unwrap()
}

/// Returns a message of the server.
fn comes(subject: &str, reply: Option<&str>, headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let reply = reply.map(str::as_bytes);
    FromServer::Message { subject: subject.as_bytes(), subscription: b"1", reply, headers, payload }.put(&mut out);
    out
}

/// Returns the subject, reply subject and payload of each message that the client has sent.
fn published(talk: &mut Conversation<'_, Nats>) -> Vec<(String, String, String)> {
    let (said, mut at, mut all) = (talk.said(), 0, Vec::new());
    while let Some((item, bytes)) = FromClient::decode(&said[at..]).unwrap() {
        at += bytes;
        if let FromClient::Publish { subject, reply, payload, .. } = item {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            all.push((text(subject), text(reply.unwrap_or_default()), text(payload)));
        }
    }
    all
}

fn connected<'a>(settings: &'a NatsSettings, spec: ClientSpec) -> Conversation<'a, Nats> {
    let mut talk = Conversation::<Nats>::new(settings, spec);
    talk.say(INFO).unwrap();
    let said = String::from_utf8(talk.said()).unwrap();
    assert!(said.contains("\"no_responders\":true") && said.ends_with("SUB _INBOX.c0.0.* 1\r\nPING\r\n"), "{said}");
    talk.say(b"PONG\r\n").unwrap();
    talk.heard();
    talk
}

fn subscribed<'a>(settings: &'a NatsSettings, spec: ClientSpec) -> Conversation<'a, Nats> {
    let mut talk = connected(settings, spec);
    talk.subscribe();
    for answer in [STREAM_MADE, CONSUMER_MADE] {
        assert_eq!(talk.heard(), []);
        talk.say(&comes("_INBOX.c0.0.api", None, b"", answer)).unwrap();
    }
    assert_eq!(talk.heard(), [HeardEvent::Subscribed]);
    talk
}

#[test]
fn a_subscriber_makes_stream_and_consumer_and_then_asks_for_messages() {
    let bounds = [("ack_wait", "7s"), ("max_length", "50"), ("max_age", "1500ms")];
    let settings = at_qos_1(&[&[("pull_batch", "4"), ("storage", "memory")], &bounds[..]].concat());
    let mut talk = connected(&settings, spec(Role::Subscriber, "pubmark.r.0"));
    talk.subscribe();
    let [(subject, reply, body)] = &published(&mut talk)[..] else { panic!() };
    assert_eq!((subject.as_str(), reply.as_str()), ("$JS.API.STREAM.CREATE.pbr", "_INBOX.c0.0.api"));
    let stream: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&stream["max_msgs_per_subject"], &stream["max_age"]), (&json!(50), &json!(1_500_000_000)));
    assert_eq!((&stream["subjects"][0], &stream["storage"]), (&json!("pubmark.r.>"), &json!("memory")));
    talk.say(&comes("_INBOX.c0.0.api", None, b"", STREAM_MADE)).unwrap();
    let [(subject, _, body)] = &published(&mut talk)[..] else { panic!() };
    assert_eq!(subject, "$JS.API.CONSUMER.CREATE.pbr.c0.pubmark.r.0");
    let config = &serde_json::from_str::<Value>(body).unwrap()["config"];
    assert_eq!((&config["ack_policy"], &config["ack_wait"]), (&json!("explicit"), &json!(7_000_000_000_u64)));
    assert_eq!((&config["deliver_policy"], config.get("durable_name")), (&json!("all"), None));
    talk.say(&comes("_INBOX.c0.0.api", None, b"", CONSUMER_MADE)).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Subscribed]);
    let next = ("$JS.API.CONSUMER.MSG.NEXT.pbr.c0".to_owned(), "_INBOX.c0.0.m".to_owned());
    let asked = |talk: &mut Conversation<'_, Nats>| {
        let asks = |(subject, reply, _): &(String, String, String)| (subject.clone(), reply.clone()) == next;
        published(talk).iter().filter(|one| asks(one)).count()
    };
    assert_eq!(asked(&mut talk), 1);
    // Half of what was asked for has arrived after two messages.
    for (number, more) in [(1, 0), (2, 1), (3, 0)] {
        talk.say(&comes("pubmark.r.0", Some(&format!("$JS.ACK.{number}")), b"", b"x")).unwrap();
        let said = published(&mut talk);
        assert_eq!(said[0], (format!("$JS.ACK.{number}"), String::new(), "+ACK".into()));
        assert_eq!(said.len(), 1 + more, "{said:?}");
    }
    // Five are still due; the server says that the older request has expired with one.
    let expired = b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 3\r\nNats-Pending-Bytes: 0\r\n\r\n";
    talk.say(&comes("_INBOX.c0.0.m", None, expired, b"")).unwrap();
    assert_eq!(asked(&mut talk), 1);
    assert_eq!(talk.heard(), [message(b"x"), message(b"x"), message(b"x")]);
}

#[test]
fn a_push_consumer_has_a_subject_of_its_own_and_a_group_shares_it() {
    let settings = at_qos_1(&[("consumer", "push"), ("ack_policy", "none")]);
    let of_group = ClientSpec { group: Some("g".into()), ..spec(Role::Subscriber, "pubmark.r.all") };
    let mut talk = connected(&settings, of_group);
    talk.subscribe();
    let said = String::from_utf8(talk.said()).unwrap();
    assert!(said.starts_with("SUB _INBOX.g.deliver g 2\r\n"), "{said}");
    talk.say(&comes("_INBOX.c0.0.api", None, b"", STREAM_MADE)).unwrap();
    let [(_, _, body)] = &published(&mut talk)[..] else { panic!() };
    let config = &serde_json::from_str::<Value>(body).unwrap()["config"];
    let fields = [&config["name"], &config["deliver_subject"], &config["deliver_group"]];
    assert_eq!(fields, [&json!("g"), &json!("_INBOX.g.deliver"), &json!("g")]);
    talk.say(&comes("_INBOX.c0.0.api", None, b"", CONSUMER_MADE)).unwrap();
    talk.say(&comes("pubmark.r.all", Some("$JS.ACK.1"), b"", b"x")).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Subscribed, message(b"x")]);
    assert_eq!(published(&mut talk), [], "nothing is asked for, and nothing acknowledged");
}

#[test]
fn each_message_is_acknowledged_or_refused_by_its_number() {
    let settings = at_qos_1(&[("inflight", "3")]);
    let mut talk = connected(&settings, spec(Role::Publisher, "t"));
    for sequence in [70, 71, 72] {
        assert!(talk.publish(b"x", sequence));
    }
    assert!(!talk.publish(b"x", 73), "three are unacknowledged");
    let replies: Vec<String> = published(&mut talk).into_iter().map(|(_, reply, _)| reply).collect();
    assert_eq!(replies, ["_INBOX.c0.0.1", "_INBOX.c0.0.2", "_INBOX.c0.0.3"]);
    talk.say(&comes(&replies[1], None, b"", b"{\"stream\":\"pbr\",\"seq\":9}")).unwrap();
    let full = b"{\"error\":{\"code\":400,\"err_code\":10077,\"description\":\"maximum messages exceeded\"},\"stream\":\"pbr\",\"seq\":0}";
    talk.say(&comes(&replies[0], None, b"", full)).unwrap();
    talk.say(&comes(&replies[2], None, b"NATS/1.0 503\r\n\r\n", b"")).unwrap();
    let [HeardEvent::Acknowledged(71), HeardEvent::Refused(70, why), HeardEvent::Refused(72, away)] = &talk.heard()[..]
    else {
        panic!()
    };
    assert!(why == "maximum messages exceeded (10077)" && away.contains("503"), "{why}, {away}");
    assert_eq!(talk.session.unacknowledged(), 0);
    let unknown = talk.say(&comes("_INBOX.c0.0.9", None, b"", b"{\"stream\":\"pbr\",\"seq\":9}"));
    assert!(matches!(unknown, Err(SessionError::Foreign(_))));
}

#[test]
fn what_is_unacknowledged_is_sent_again_and_old_acknowledgements_reach_nobody() {
    struct Copy;
    impl crate::session::Copies for Copy {
        fn message(&mut self, _: u32) -> &[u8] {
            b"again"
        }
    }
    let settings = at_qos_1(&[("message_ids", "true")]);
    let mut talk = connected(&settings, spec(Role::Publisher, "t"));
    assert!(talk.publish(b"x", 5) && talk.publish(b"x", 6));
    let said = String::from_utf8(talk.said()).unwrap();
    assert!(said.contains("Nats-Msg-Id: c0-5\r\n\r\nx"), "{said}");
    talk.say(&comes("_INBOX.c0.0.1", None, b"", b"{\"stream\":\"pbr\",\"seq\":1}")).unwrap();
    let spec = talk.spec.clone();
    talk.session.resume(&settings, &spec);
    assert_eq!(talk.session.unacknowledged(), 1);
    assert!(talk.session.resend(&settings, &mut Copy, &mut talk.out));
    let said = String::from_utf8(talk.said()).unwrap();
    assert!(said.starts_with("HPUB t _INBOX.c0.1.1 ") && said.contains("Nats-Msg-Id: c0-6"), "{said}");
    assert!(!talk.session.resend(&settings, &mut Copy, &mut talk.out));
}

#[test]
fn who_is_back_is_served_before_its_stream_has_a_leader_again() {
    let settings = at_qos_1(&[]);
    let mut talk = subscribed(&settings, spec(Role::Subscriber, "t"));
    let spec = talk.spec.clone();
    talk.session.resume(&settings, &spec);
    talk.out.clear();
    talk.say(INFO).unwrap();
    talk.say(b"PONG\r\n").unwrap();
    talk.heard();
    talk.subscribe();
    let next = "$JS.API.CONSUMER.MSG.NEXT.pbr.c0";
    let subjects = |talk: &mut Conversation<'_, Nats>| {
        published(talk).into_iter().map(|(subject, ..)| subject).collect::<Vec<_>>()
    };
    assert_eq!(subjects(&mut talk), ["$JS.API.STREAM.CREATE.pbr", next]);
    talk.say(b"PONG\r\n").unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Subscribed]);
    // Without a leader nothing is answered, or with a refusal; both requests are made again.
    let away =
        b"{\"error\":{\"code\":503,\"err_code\":10008,\"description\":\"JetStream system temporarily unavailable\"}}";
    talk.say(&comes("_INBOX.c0.1.api", None, b"", away)).unwrap();
    talk.session.keep_alive(&settings, &mut talk.out);
    talk.session.keep_alive(&settings, &mut talk.out);
    assert_eq!(subjects(&mut talk), ["$JS.API.STREAM.CREATE.pbr", "$JS.API.STREAM.CREATE.pbr", next]);
    // The stream is made again, and the consumer, for which the request came too early.
    talk.say(&comes("_INBOX.c0.1.m", None, b"NATS/1.0 503\r\n\r\n", b"")).unwrap();
    talk.say(&comes("_INBOX.c0.1.api", None, b"", b"{}")).unwrap();
    talk.say(&comes("_INBOX.c0.1.api", None, b"", b"{}")).unwrap();
    assert_eq!(subjects(&mut talk), ["$JS.API.CONSUMER.CREATE.pbr.c0.t", next]);
    assert_eq!(talk.heard(), []);
    talk.say(&comes("_INBOX.c0.1.api", None, b"", b"{}")).unwrap();
}

/// A server that drops a request is asked again after a whole period in which it said nothing.
#[test]
fn what_has_no_answer_is_asked_for_again() {
    let settings = at_qos_1(&[]);
    let mut talk = connected(&settings, spec(Role::Subscriber, "t"));
    talk.subscribe();
    let subjects = |talk: &mut Conversation<'_, Nats>| {
        published(talk).into_iter().map(|(subject, ..)| subject).collect::<Vec<_>>()
    };
    let check = |talk: &mut Conversation<'_, Nats>| talk.session.keep_alive(&settings, &mut talk.out);
    let (create, consume) = ("$JS.API.STREAM.CREATE.pbr", "$JS.API.CONSUMER.CREATE.pbr.c0.t");
    assert_eq!(subjects(&mut talk), [create]);
    check(&mut talk);
    assert!(subjects(&mut talk).is_empty());
    check(&mut talk);
    assert_eq!(subjects(&mut talk), [create]);
    talk.say(&comes("_INBOX.c0.0.api", None, b"", b"{}")).unwrap();
    assert_eq!(subjects(&mut talk), [consume]);
    check(&mut talk);
    check(&mut talk);
    assert_eq!(subjects(&mut talk), [consume]);
    // The first request was answered late, and both for the consumer.
    (0..3).for_each(|_| talk.say(&comes("_INBOX.c0.0.api", None, b"", b"{}")).unwrap());
    assert_eq!(talk.heard(), [HeardEvent::Subscribed]);
}

/// A cluster may answer a request twice, when several clients ask for one stream while it is made.
#[test]
fn an_answer_that_comes_twice_is_not_taken_for_the_next_one() {
    let settings = at_qos_1(&[]);
    let mut talk = connected(&settings, spec(Role::Subscriber, "t"));
    talk.subscribe();
    for (answer, heard) in [
        (STREAM_MADE, vec![]),
        (STREAM_MADE, vec![]),
        (CONSUMER_MADE, vec![HeardEvent::Subscribed]),
        (CONSUMER_MADE, vec![]),
        (STREAM_MADE, vec![]),
    ] {
        talk.say(&comes("_INBOX.c0.0.api", None, b"", answer)).unwrap();
        assert_eq!(talk.heard(), heard);
    }
}

/// The members of a cluster learn one after the other that a consumer exists.
#[test]
fn a_consumer_that_is_not_known_yet_is_asked_again_until_it_has_served() {
    let settings = at_qos_1(&[]);
    let mut talk = subscribed(&settings, spec(Role::Subscriber, "t"));
    let next = "$JS.API.CONSUMER.MSG.NEXT.pbr.c0";
    let untaken = comes("_INBOX.c0.0.m", None, b"NATS/1.0 503\r\n\r\n", b"");
    published(&mut talk);
    for failed in [0, 1] {
        talk.say(&untaken).unwrap();
        assert_eq!((talk.heard(), published(&mut talk)), (vec![HeardEvent::Rest(failed)], vec![]));
        talk.session.rested(&settings, &mut talk.out).unwrap();
        assert_eq!(published(&mut talk)[0].0, next);
    }
    talk.say(&comes("t", Some("$JS.ACK.1"), b"", b"x")).unwrap();
    assert!(matches!(talk.say(&untaken), Err(SessionError::Busy(words)) if words.contains("503")));
}

#[test]
fn a_stream_is_left_and_removed() {
    let settings = at_qos_1(&[]);
    let left = Nats::leaves(&settings, &spec(Role::Subscriber, "t"));
    assert_eq!(left, [Leftover::Stream("pbr".into())]);
    let mut talk = connected(&settings, spec(Role::Publisher, "t"));
    for answer in [
        &b"{\"success\":true}"[..],
        b"{\"error\":{\"code\":404,\"err_code\":10059,\"description\":\"stream not found\"}}",
    ] {
        assert!(talk.session.remove(&settings, &left[0], 0, &mut talk.out));
        assert_eq!(published(&mut talk)[0].0, "$JS.API.STREAM.DELETE.pbr");
        talk.say(&comes("_INBOX.c0.0.api", None, b"", answer)).unwrap();
        assert_eq!(talk.heard(), [HeardEvent::Acknowledged(0)]);
    }
}

#[test]
fn errors_are_told_apart() {
    let settings = at_qos_1(&[]);
    let answer = |headers: &[u8], payload: &[u8]| {
        let mut talk = connected(&settings, spec(Role::Subscriber, "t"));
        talk.subscribe();
        talk.say(&comes("_INBOX.c0.0.api", None, headers, payload)).unwrap_err()
    };
    let error = |code: u32, text: &str| {
        format!("{{\"error\":{{\"code\":{code},\"err_code\":1,\"description\":\"{text}\"}}}}").into_bytes()
    };
    assert!(matches!(answer(b"NATS/1.0 503\r\n\r\n", b""), SessionError::Busy(words) if words.contains("-js")));
    assert!(matches!(answer(b"", &error(503, "JetStream not enabled for account")), SessionError::Denied(_)));
    assert!(matches!(answer(b"", &error(503, "JetStream system temporarily unavailable")), SessionError::Busy(_)));
    assert!(matches!(answer(b"", &error(500, "insufficient storage resources available")), SessionError::Limit(_)));
    assert!(matches!(answer(b"", b"no JSON"), SessionError::Foreign(_)));
    let mut talk = subscribed(&settings, spec(Role::Subscriber, "t"));
    let gone = talk.say(&comes("_INBOX.c0.0.m", None, b"NATS/1.0 409 Consumer Deleted\r\n\r\n", b""));
    assert!(matches!(gone, Err(SessionError::Busy(words)) if words.contains("Consumer Deleted")));
}

#[test]
fn options_that_jetstream_does_not_know_are_refused() {
    let refused = |set: &[(&str, &str)]| settings::<Nats>("nats://h", 1, false, set).err().unwrap().to_string();
    for (name, value) in [("storage", "disk"), ("consumer", "both"), ("ack_policy", "all")] {
        let error = refused(&[(name, value)]);
        assert!(error.starts_with(name) && error.contains(value), "{error}");
    }
    for name in ["replicas", "pull_batch", "inflight", "max_ack_pending"] {
        assert_eq!(refused(&[(name, "0")]), format!("{name} = 0: write 1 at least"));
    }
    assert!(settings::<Nats>("nats://h", 2, false, &[]).err().unwrap().to_string().contains("write qos = 1"));
}
