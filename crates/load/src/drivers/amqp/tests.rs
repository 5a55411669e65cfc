use super::super::conversation::{Conversation, HeardEvent, message, settings, settings_with, spec};
use super::*;
use crate::session::{SubTopics, TopicShare};
use pubmark_model::header::MIN_LEN;
use pubmark_wire::amqp::{PERSISTENT, TRANSIENT, put_integer, put_text};

fn plain(qos: u8, durable: bool, set: &[(&str, &str)]) -> AmqpSettings {
    settings::<Amqp>("amqp://h", qos, durable, set).unwrap()
}

fn word(channel: u16, method: Method<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Frame::Method(channel, method).put(&mut bytes);
    bytes
}

fn start() -> Vec<u8> {
    let mut table = Vec::new();
    put_text(&mut table, "product", "RabbitMQ");
    put_text(&mut table, "version", "3.10.8");
    let (mechanisms, locales) = (&b"AMQPLAIN PLAIN"[..], &b"en_US"[..]);
    word(0, Method::Start { major: 0, minor: 9, properties: FieldTable(&table), mechanisms, locales })
}

fn tune() -> Vec<u8> {
    word(0, Method::Tune { channel_max: 2047, frame_bytes: 4096, heartbeat_s: 60 })
}

fn delivery(number: u64, body: &[u8]) -> Vec<u8> {
    delivery_with(number, body, false)
}

fn delivery_with(number: u64, body: &[u8], redelivered: bool) -> Vec<u8> {
    let (consumer, exchange, routing_key) = ("c0".into(), DIRECT.into(), "t".into());
    let mut bytes = word(1, Method::Deliver { consumer, delivery: number, redelivered, exchange, routing_key });
    put_content(&mut bytes, 1, TRANSIENT, body, 4096);
    bytes
}

/// Returns the names of the methods in `bytes`.
fn names(mut bytes: &[u8]) -> Vec<&'static str> {
    let mut names = Vec::new();
    while let Some((frame, taken)) = Frame::decode(bytes).unwrap() {
        if let Frame::Method(_, method) = frame {
            names.push(method.name());
        }
        bytes = &bytes[taken..];
    }
    names
}

/// Returns a connected session.
fn connected<'a>(settings: &'a AmqpSettings, spec: ClientSpec, cut: usize) -> Conversation<'a, Amqp> {
    let mut talk = Conversation::<Amqp>::new(settings, spec);
    assert_eq!(talk.said(), PROTOCOL_HEADER);
    talk.say_cut(&start(), cut).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Server("RabbitMQ 3.10.8".into())]);
    assert_eq!(names(&talk.said()), ["StartOk"]);
    talk.say_cut(&tune(), cut).unwrap();
    assert_eq!(names(&talk.said()), ["TuneOk", "Open"]);
    talk.say_cut(&word(0, Method::OpenOk { reserved: "".into() }), cut).unwrap();
    talk.say_cut(&word(1, Method::ChannelOpenOk { reserved: b"" }), cut).unwrap();
    if settings.qos > 0 {
        assert_eq!(names(&talk.said()), ["ChannelOpen", "ConfirmSelect"]);
        assert_eq!(talk.heard(), []);
        talk.say_cut(&word(1, Method::ConfirmSelectOk {}), cut).unwrap();
    } else {
        assert_eq!(names(&talk.said()), ["ChannelOpen"]);
    }
    assert_eq!(talk.heard(), [HeardEvent::Connected]);
    talk
}

#[test]
fn a_subscriber_hears_its_messages_wherever_the_bytes_are_cut() {
    let settings = plain(1, false, &[]);
    let large = vec![7; 9000];
    let mut heartbeat = Vec::new();
    Frame::Heartbeat.put(&mut heartbeat);
    let words = [delivery(1, b"hello"), heartbeat, delivery(2, b""), delivery(3, &large), delivery(4, b"x")].concat();
    for cut in 0..words.len() {
        let mut talk = connected(&settings, spec(Role::Subscriber, "t"), cut);
        talk.subscribe();
        assert_eq!(names(&talk.said()), ["QueueDeclare", "QueueBind", "Qos", "Consume"]);
        let declared = Method::QueueDeclareOk { queue: "c0".into(), messages: 0, consumers: 0 };
        let answers = [word(1, declared), word(1, Method::QueueBindOk {}), word(1, Method::QosOk {})].concat();
        talk.say_cut(&answers, cut).unwrap();
        assert_eq!(talk.heard(), []);
        talk.say_cut(&word(1, Method::ConsumeOk { consumer: "c0".into() }), cut).unwrap();
        assert_eq!(talk.heard(), [HeardEvent::Subscribed]);
        talk.say_cut(&words, cut).unwrap();
        assert_eq!(talk.heard(), [message(b"hello"), message(b""), message(&large), message(b"x")]);
        assert_eq!(talk.session.body.capacity(), 0, "a large body is freed");
        let said = talk.said();
        assert!(said.ends_with(&word(1, Method::Ack { delivery: 4, multiple: true })));
        assert!(names(&said).len() <= 2, "one acknowledgement for each time that bytes came");
        assert!(talk.all_taken());
    }
}

#[test]
fn a_redelivery_that_cannot_be_one_is_told() {
    let settings = plain(1, false, &[]);
    let told = |spec: ClientSpec, resumes: bool| {
        let mut talk = connected(&settings, spec, 0);
        if resumes {
            talk.session.resume(&settings, &talk.spec);
        }
        talk.say_cut(&delivery_with(1, b"x", true), 0).unwrap();
        let heard = talk.heard();
        assert_eq!(heard.last(), Some(&message(b"x")));
        heard.len() > 1
    };
    let own = || spec(Role::Subscriber, "t");
    assert!(told(own(), false));
    assert!(!told(own(), true), "an earlier delivery may have been lost");
    assert!(!told(ClientSpec { group: Some("g".into()), ..own() }, false), "another of the group may have had it");
}

#[test]
fn queues_and_exchanges_fit_the_part() {
    let declared = |settings: &AmqpSettings, spec: ClientSpec| {
        let mut talk = connected(settings, spec, 0);
        talk.subscribe();
        let said = talk.said();
        let (mut at, mut seen) = (0, String::new());
        while let Some((Frame::Method(1, method), taken)) = Frame::decode(&said[at..]).unwrap() {
            let text = |short: Short<'_>| String::from_utf8_lossy(short.0).into_owned();
            match method {
                Method::QueueDeclare { queue, flags, .. } => seen = format!("{} {flags}", text(queue)),
                Method::QueueBind { exchange, routing_key, .. } => {
                    seen += &format!(" {} {}", text(exchange), text(routing_key));
                }
                Method::Qos { prefetch_messages, .. } => seen += &format!(" prefetch {prefetch_messages}"),
                Method::Consume { flags, .. } => seen += &format!(" {flags}"),
                _ => panic!("{method:?}"),
            }
            at += taken;
        }
        talk.session.close(settings, &talk.spec, &mut talk.out);
        (seen, names(&talk.said()))
    };
    let (own, group) = (spec(Role::Subscriber, "t"), Some("g".to_owned()));
    let (once, kept) = (plain(0, false, &[]), plain(1, true, &[("prefetch", "7")]));
    assert_eq!(declared(&once, own.clone()), ("c0 12 amq.direct t 2".into(), vec!["Close"]));
    let wild = ClientSpec { wild: true, topic: "t.#".into(), ..own.clone() };
    assert_eq!(declared(&once, wild).0, "c0 12 amq.topic t.# 2");
    assert_eq!(declared(&once, ClientSpec { group: group.clone(), ..own.clone() }).0, "g.t 8 amq.direct t 2");
    let share = ClientSpec { leaves: SubTopics::Share(TopicShare { first: 1, step: 2, count: 5 }), ..own.clone() };
    let bound = ["markers", "1", "3"].map(|leaf| format!("amq.direct t.{leaf}")).join(" ");
    assert_eq!(declared(&once, share).0, format!("c0 12 {bound} 2"));
    let durable = declared(&kept, own);
    assert_eq!(durable, ("c0 2 amq.direct t prefetch 7 0".into(), vec!["Cancel", "QueueDelete", "Close"]));
}

#[test]
fn queues_that_stay_are_named_and_removed_one_by_one() {
    let (own, group) = (spec(Role::Subscriber, "t"), Some("g".to_owned()));
    let competing = ClientSpec { group, ..own.clone() };
    let (kept, once) = (plain(1, true, &[]), plain(0, false, &[]));
    assert_eq!(Amqp::leaves(&kept, &own), [Leftover::Queue("c0".into())]);
    assert_eq!(Amqp::leaves(&once, &own), []);
    assert_eq!(Amqp::leaves(&kept, &spec(Role::Publisher, "t")), []);
    // The queue may never have had a consumer with which it would be removed.
    assert_eq!(Amqp::leaves(&once, &competing), [Leftover::Queue("g.t".into())]);
    // With a prefix there is the run's own exchange, whichever client made it.
    let prefixed = plain(0, false, &[("prefix", "bench.")]);
    let exchange = [Leftover::Exchange("bench.pubmark.r".into())];
    assert_eq!(Amqp::leaves(&prefixed, &spec(Role::Publisher, "t")), exchange);
    let mut talk = connected(&once, spec(Role::Publisher, "x"), 0);
    let mut out = Vec::new();
    let all = [Leftover::Queue("c0".into()), Leftover::Queue("g.t".into()), exchange[0].clone()];
    for (number, thing) in all.iter().enumerate() {
        assert!(talk.session.remove(&once, thing, number as u32, &mut out));
    }
    let delete = |queue: &'static str| word(1, Method::QueueDelete { reserved: 0, queue: queue.into(), flags: 0 });
    let last = word(1, Method::ExchangeDelete { reserved: 0, exchange: "bench.pubmark.r".into(), flags: 0 });
    assert_eq!(out, [delete("c0"), delete("g.t"), last].concat());
    talk.notes.clear();
    let gone = [word(1, Method::QueueDeleteOk { messages: 7 }).repeat(2), word(1, Method::ExchangeDeleteOk {})];
    talk.say(&gone.concat()).unwrap();
    assert_eq!(talk.notes, [const { HeardEvent::Acknowledged(0) }; 3]);
}

#[test]
fn complaints_after_close_do_not_matter() {
    let settings = plain(0, true, &[]);
    let mut talk = connected(&settings, spec(Role::Subscriber, "t"), 0);
    let in_use = word(1, Method::ChannelClose { code: 406, text: "in use".into(), class: 50, method: 40 });
    assert!(matches!(talk.say(&in_use), Err(SessionError::Denied(_))));
    let mut talk = connected(&settings, spec(Role::Subscriber, "t"), 0);
    talk.session.close(&settings, &talk.spec, &mut talk.out);
    let gone = word(1, Method::Cancel { consumer: "c0".into(), no_wait: true });
    talk.say(&[in_use, gone, delivery(1, b"late"), word(0, Method::CloseOk {})].concat()).unwrap();
    assert_eq!(talk.heard(), [message(b"late")]);
}

#[test]
fn a_publisher_waits_for_confirms() {
    let settings = plain(1, true, &[("inflight", "3")]);
    let mut talk =
        connected(&settings, ClientSpec { wild: true, leaves: SubTopics::Turns(2), ..spec(Role::Publisher, "t") }, 0);
    assert!((5..8).all(|n| talk.publish(b"m", n)));
    let mut expected =
        word(1, Method::Publish { reserved: 0, exchange: TOPIC.into(), routing_key: "t.1".into(), flags: 0 });
    put_content(&mut expected, 1, PERSISTENT, b"m", 4096);
    let said = talk.said();
    assert!(said.starts_with(&expected));
    assert!(!talk.publish(b"m", 8));
    assert_eq!((talk.said().len(), talk.session.unacknowledged()), (0, 3), "nothing is appended");
    talk.say(&word(1, Method::Ack { delivery: 2, multiple: true })).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Acknowledged(5), HeardEvent::Acknowledged(6)]);
    assert!(talk.publish(b"m", 8));
    talk.say(&word(1, Method::Nack { delivery: 3, flags: 0 })).unwrap();
    assert_eq!((talk.heard(), talk.session.unacknowledged()), (vec![HeardEvent::Refused(7, NACK.to_string())], 1));
    let fault = talk.say(&word(1, Method::Ack { delivery: 9, multiple: false })).unwrap_err();
    assert!(matches!(fault, SessionError::Foreign(words) if words.contains("never published")));
    // At QoS 0 nothing is counted.
    let settings = plain(0, false, &[("inflight", "1")]);
    let mut talk = connected(&settings, spec(Role::Publisher, "t"), 0);
    assert!((0..9).all(|n| talk.publish(b"m", n)));
    assert_eq!(talk.session.unacknowledged(), 0);
}

#[test]
fn what_comes_back_and_what_is_blocked_is_heard() {
    let settings = plain(1, false, &[]);
    let mut talk = connected(&settings, spec(Role::Publisher, "t"), 0);
    let mut body = vec![0; MIN_LEN];
    let header = Header { intended_ns: 1, publisher: 0, sequence: 7, sent_ns: None, free_ns: None };
    assert!(header.write(&mut body));
    let (exchange, routing_key) = (DIRECT.into(), "t".into());
    let mut bytes = word(1, Method::Return { code: 312, text: Short(b"NO_ROUTE"), exchange, routing_key });
    put_content(&mut bytes, 1, TRANSIENT, &body, 4096);
    talk.say(&bytes).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Refused(7, "basic.return: 312 NO_ROUTE".into())]);
    talk.say(&word(0, Method::Blocked { reason: Short(b"low on memory") })).unwrap();
    talk.say(&word(0, Method::Unblocked {})).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Blocked("low on memory".into()), HeardEvent::Unblocked]);
}

/// Copies of messages that consist of their sequence.
struct Echoes([u8; 1]);

impl Copies for Echoes {
    fn message(&mut self, sequence: u32) -> &[u8] {
        self.0 = [sequence as u8];
        &self.0
    }
}

#[test]
fn what_was_not_confirmed_comes_again_on_a_new_channel() {
    let settings = plain(1, false, &[("inflight", "4")]);
    let mut talk = connected(&settings, spec(Role::Publisher, "t"), 0);
    let greet = |talk: &mut Conversation<'_, Amqp>| {
        talk.session.resume(&settings, &talk.spec);
        talk.said();
        for word in [start(), tune(), word(0, Method::OpenOk { reserved: "".into() })] {
            talk.say(&word).unwrap();
        }
        talk.say(&word(1, Method::ChannelOpenOk { reserved: b"" })).unwrap();
        talk.say(&word(1, Method::ConfirmSelectOk {})).unwrap();
        talk.said();
        talk.heard();
    };
    let again = |talk: &mut Conversation<'_, Amqp>, most: usize| {
        for _ in 0..most {
            talk.session.resend(&settings, &mut Echoes([0]), &mut talk.out);
        }
        let said = talk.said();
        let (mut at, mut bodies) = (0, Vec::new());
        while let Some((frame, taken)) = Frame::decode(&said[at..]).unwrap() {
            if let Frame::Body(_, body) = frame {
                bodies.extend_from_slice(body);
            }
            at += taken;
        }
        bodies
    };
    assert!((0..4).all(|sequence| talk.publish(b"x", sequence)));
    talk.say(&word(1, Method::Ack { delivery: 2, multiple: false })).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Acknowledged(1)]);
    greet(&mut talk);
    assert_eq!(talk.session.unacknowledged(), 3);
    assert_eq!(again(&mut talk, 2), [0, 2]);
    talk.say(&word(1, Method::Ack { delivery: 1, multiple: false })).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Acknowledged(0)]);
    greet(&mut talk);
    assert_eq!(again(&mut talk, 9), [2, 3]);
    talk.say(&word(1, Method::Ack { delivery: 2, multiple: true })).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Acknowledged(2), HeardEvent::Acknowledged(3)]);
    assert!(talk.publish(b"x", 4));
    talk.say(&word(1, Method::Ack { delivery: 3, multiple: false })).unwrap();
    assert_eq!((talk.heard(), talk.session.unacknowledged()), (vec![HeardEvent::Acknowledged(4)], 0));
}

#[test]
fn settings_are_read_and_refused() {
    let read = |url: &str, qos, set: &[(&str, &str)]| settings::<Amqp>(url, qos, false, set);
    assert_eq!(read("amqp://h", 0, &[]).unwrap().vhost, "/");
    assert_eq!(read("amqp://h", 0, &[("vhost", "v")]).unwrap().vhost, "v");
    assert_eq!(read("amqp://h/a%2Fb%20c", 0, &[("vhost", "v")]).unwrap().vhost, "a/b c");
    assert_eq!(Amqp::keep_alive_s(&read("amqp://h?heartbeat=7", 0, &[("heartbeat", "30s")]).unwrap()), 7);
    let login = |url: &str| read(url, 0, &[]).unwrap().login(0).into_owned();
    assert_eq!(login("amqp://h"), b"\0guest\0guest");
    assert_eq!(login("amqp://me:secret@h"), b"\0me\0secret");
    let path = std::env::temp_dir().join(format!("amqp-logins-{}", std::process::id()));
    std::fs::write(&path, "ann,one\nbob,two\n").unwrap();
    let each = read("amqp://h", 0, &[("credentials_file", path.to_str().unwrap())]).unwrap();
    std::fs::remove_file(path).unwrap();
    assert_eq!([0, 1].map(|row| each.login(row).into_owned()), [b"\0ann\0one".to_vec(), b"\0bob\0two".to_vec()]);
    let settings = read("amqp://h", 1, &[("heartbeat", "30s")]).unwrap();
    assert_eq!(Amqp::keep_alive_s(&settings), 30);
    let long = "v".repeat(256);
    for (qos, set, says) in [
        (2, ("inflight", "1"), "qos = 1"),
        (1, ("inflight", "0"), "1 at least"),
        (1, ("prefetch", "65536"), "65535 at most"),
        (1, ("heartbeat", "1500ms"), "whole seconds"),
        (1, ("heartbeat", "65536s"), "65535 s at most"),
        (1, ("vhost", &*long), "255 bytes"),
        (0, ("reply_queue", "own"), "direct or exclusive"),
    ] {
        let error = read("amqp://h", qos, &[set]).err().unwrap().to_string();
        assert!(error.contains(says), "{set:?}: {error}");
    }
}

#[test]
fn refusals_are_told_apart() {
    let settings = plain(0, false, &[]);
    let close = |code, text: &'static str| word(0, Method::Close { code, text: text.into(), class: 0, method: 0 });
    let say = |bytes: &[u8]| Conversation::<Amqp>::new(&settings, spec(Role::Publisher, "t")).say(bytes).unwrap_err();
    let fault = say(&[start(), close(403, "ACCESS_REFUSED - Login was refused.")].concat());
    let wanted = "403 ACCESS_REFUSED - Login was refused: check user and password";
    assert!(matches!(&fault, SessionError::Denied(words) if words.contains(wanted)), "{fault:?}");
    let fault = say(&close(530, "NOT_ALLOWED - vhost x not found"));
    assert!(matches!(&fault, SessionError::Denied(words) if words.contains("vhost x not found")), "{fault:?}");
    let text = "NOT_FOUND - no queue";
    let fault = say(&word(1, Method::ChannelClose { code: 404, text: text.into(), class: 50, method: 10 }));
    assert!(matches!(&fault, SessionError::Denied(words) if words.contains("closes the channel: 404 NOT_FOUND")));
    assert!(matches!(say(&close(530, "NOT_ALLOWED - connection limit (1) is reached")), SessionError::Limit(_)));
    assert!(matches!(say(&close(320, "CONNECTION_FORCED - shutdown")), SessionError::Busy(_)));
    assert!(matches!(say(&close(501, "FRAME_ERROR")), SessionError::Foreign(_)));
    let fault = say(b"AMQP\0\x01\0\0");
    assert!(matches!(&fault, SessionError::Foreign(words) if words.contains("refuses AMQP 0-9-1 and offers")));
    let fault = say(b"HTTP/1.1 400 Bad Request\r\n");
    assert!(
        matches!(&fault, SessionError::Foreign(words) if words.contains("does not speak AMQP 0-9-1: it sent \"HTTP/1.1 400"))
    );
    for bytes in [tune(), [start(), start()].concat(), word(1, Method::ConfirmSelectOk {})] {
        assert!(matches!(say(&bytes), SessionError::Foreign(words) if words.contains("out of turn")));
    }
    let mechanisms = &b"EXTERNAL"[..];
    let external = word(0, Method::Start { major: 0, minor: 9, properties: FieldTable(b""), mechanisms, locales: b"" });
    assert!(matches!(say(&external), SessionError::Denied(words) if words.contains("only EXTERNAL")));
}

#[test]
fn contents_out_of_turn_are_refused() {
    let settings = plain(0, false, &[]);
    let whole = delivery(1, b"hello");
    let deliver_bytes = Frame::decode(&whole).unwrap().unwrap().1;
    let header_bytes = Frame::decode(&whole[deliver_bytes..]).unwrap().unwrap().1;
    let (deliver, rest) = whole.split_at(deliver_bytes);
    let (header, _) = rest.split_at(header_bytes);
    let mut long = Vec::new();
    Frame::Body(1, b"longer").put(&mut long);
    for bytes in [
        rest.to_vec(),
        long.clone(),
        deliver.repeat(2),
        [deliver, header, header].concat(),
        [deliver, header, &long].concat(),
    ] {
        let mut talk = connected(&settings, spec(Role::Subscriber, "t"), 0);
        let fault = talk.say(&bytes).unwrap_err();
        assert!(matches!(&fault, SessionError::Foreign(words) if words.contains("out of turn")), "{fault:?}");
    }
}

/// A frame is short; the length that a server announces is that of a body in several
/// frames.
#[test]
fn the_length_of_a_body_is_known_from_its_header() {
    let settings = plain(0, false, &[]);
    let body_bytes = 100_000_000;
    let mut pieces = delivery(1, b"");
    // In place of the header with a length of 0 bytes.
    let deliver_bytes = Frame::decode(&pieces).unwrap().unwrap().1;
    pieces.truncate(deliver_bytes);
    Frame::Header { channel: 1, body_bytes, properties: TRANSIENT }.put(&mut pieces);
    let mut talk = connected(&settings, spec(Role::Subscriber, "t"), 0);
    assert_eq!(talk.session.announced(&[]), 0);
    talk.say(&pieces).unwrap();
    assert_eq!(talk.session.announced(&[]), body_bytes);
    let mut first = Vec::new();
    Frame::Body(1, &[0; 4000]).put(&mut first);
    talk.say(&first).unwrap();
    assert_eq!(talk.session.announced(&[]), body_bytes, "what has come and what is missing");
}

#[test]
fn an_idle_session_is_small() {
    assert!(size_of::<Amqp>() <= 208, "{} bytes", size_of::<Amqp>());
}

#[test]
fn a_prefix_gives_the_run_names_of_its_own() {
    for (qos, asks, last) in [
        (0, vec!["ChannelOpen", "ExchangeDeclare"], Method::ExchangeDeclareOk {}),
        (1, vec!["ChannelOpen", "ExchangeDeclare", "ConfirmSelect"], Method::ConfirmSelectOk {}),
    ] {
        let settings = plain(qos, qos > 0, &[("prefix", "bench.")]);
        let mut talk = Conversation::<Amqp>::new(&settings, spec(Role::Subscriber, "bench.t"));
        talk.say(&start()).unwrap();
        talk.say(&tune()).unwrap();
        talk.said();
        talk.say(&word(0, Method::OpenOk { reserved: "".into() })).unwrap();
        let said = talk.said();
        assert_eq!(names(&said), asks);
        let (exchange, flags) = ("bench.pubmark.r".into(), if qos > 0 { Method::DURABLE } else { 0 });
        let arguments = FieldTable(&[]);
        let declare = Method::ExchangeDeclare { reserved: 0, exchange, kind: "direct".into(), flags, arguments };
        assert!(said.windows(word(1, declare).len()).any(|window| window == word(1, declare)));
        talk.heard();
        talk.say(&word(1, Method::ChannelOpenOk { reserved: b"" })).unwrap();
        if qos > 0 {
            talk.say(&word(1, Method::ExchangeDeclareOk {})).unwrap();
        }
        assert_eq!(talk.heard(), [], "not before the last answer");
        talk.say(&word(1, last)).unwrap();
        assert_eq!(talk.heard(), [HeardEvent::Connected]);
        talk.subscribe();
        let said = talk.said();
        let (queue, no_wait) = ("bench.c0".into(), false);
        let bind =
            Method::QueueBind { reserved: 0, queue, exchange, routing_key: "bench.t".into(), no_wait, arguments };
        assert!(said.windows(word(1, bind).len()).any(|window| window == word(1, bind)));
    }
    let grouped = ClientSpec { group: Some("g".into()), ..spec(Role::Subscriber, "bench.t") };
    assert_eq!(queue(&plain(0, false, &[("prefix", "bench.")]), &grouped), "bench.g.t");
    for bad in ["a*", "a#", "a\n", "amq.", &"x".repeat(129)] {
        let error = settings::<Amqp>("amqp://h", 0, false, &[("prefix", bad)]).err().unwrap().to_string();
        assert!(error.starts_with("prefix: "), "{bad}: {error}");
    }
}

#[test]
fn a_queue_has_the_type_that_was_asked_for_and_a_stream_is_read_from_its_beginning() {
    for (kind, is_named, is_stream) in [("classic", false, false), ("quorum", true, false), ("stream", true, true)] {
        let settings = plain(1, true, &[("queue_type", kind)]);
        let mut talk = connected(&settings, spec(Role::Subscriber, "t"), 0);
        talk.subscribe();
        let (said, mut at, mut tables) = (talk.said(), 0, Vec::new());
        while let Some((Frame::Method(_, method), taken)) = Frame::decode(&said[at..]).unwrap() {
            at += taken;
            match method {
                Method::QueueDeclare { arguments, flags, .. } => {
                    assert_eq!(flags, Method::DURABLE);
                    tables.push(arguments.0.to_vec());
                }
                Method::Consume { arguments, .. } => tables.push(arguments.0.to_vec()),
                _ => {}
            }
        }
        let table = |name: &str, value: &str, is_set: bool| {
            let mut table = Vec::new();
            if is_set {
                put_text(&mut table, name, value);
            }
            table
        };
        let wanted = [table("x-queue-type", kind, is_named), table("x-stream-offset", "first", is_stream)];
        assert_eq!(tables, wanted, "{kind}");
    }
    let bounds = [("max_length", "50"), ("overflow", "reject-publish"), ("max_age", "1500ms")];
    let bounded = plain(1, true, &bounds);
    let mut wanted = Vec::new();
    put_integer(&mut wanted, "x-max-length", 50);
    put_text(&mut wanted, "x-overflow", "reject-publish");
    put_integer(&mut wanted, "x-message-ttl", 1_500);
    assert_eq!(bounded.queue_arguments, wanted);
    for (options, says) in [
        (&[("max_length", "50"), ("overflow", "block")][..], "drop-head or reject-publish"),
        (&[("max_length", "50"), ("queue_type", "stream")], "max_length: a stream has no such bound"),
        (&[("max_age", "1s"), ("queue_type", "stream")], "max_age: a stream has no such bound"),
    ] {
        let wrong = settings::<Amqp>("amqp://h", 1, true, options).err().unwrap().to_string();
        assert!(wrong.contains(says), "{wrong}");
    }
    let wrong = settings::<Amqp>("amqp://h", 1, true, &[("queue_type", "lazy")]).err().unwrap().to_string();
    assert!(wrong.contains("classic, quorum or stream"), "{wrong}");
}

#[test]
fn headers_are_a_table_in_the_properties_of_each_message() {
    let of = |durable| settings_with::<Amqp>("amqp://h", 1, durable, &[], Some("a: b, long-name: x y")).unwrap();
    for (durable, mode) in [(false, 1), (true, 2)] {
        let settings = of(durable);
        let mut talk = connected(&settings, spec(Role::Publisher, "t"), 0);
        assert!(talk.publish(b"m", 5));
        let said = talk.said();
        let (_, used) = Frame::decode(&said).unwrap().unwrap();
        let Frame::Header { properties, body_bytes: 1, .. } = Frame::decode(&said[used..]).unwrap().unwrap().0 else {
            panic!("{said:?}")
        };
        let (flags, table) = (&properties[..6], FieldTable(&properties[6..properties.len() - 1]));
        assert_eq!(flags, [0x30, 0, 0, 0, 0, table.0.len() as u8]);
        assert_eq!((table.text("a"), table.text("long-name")), (Some(&b"b"[..]), Some(&b"x y"[..])));
        assert_eq!((properties.last().copied(), reply_to(properties).unwrap()), (Some(mode), None));
    }
    let settings = of(false);
    let asked = requests_properties(&settings, b"12345678", Some(DIRECT_REPLY));
    assert_eq!(reply_to(&asked).unwrap(), Some(DIRECT_REPLY.as_bytes()));
    let long = settings_with::<Amqp>("amqp://h", 0, false, &[], Some("4 x 1KiB")).unwrap();
    let mut talk = Conversation::<Amqp>::new(&long, spec(Role::Publisher, "t"));
    talk.say(&start()).unwrap();
    assert!(talk.say(&tune()).unwrap_err().to_string().contains("do not fit into one"));
}
