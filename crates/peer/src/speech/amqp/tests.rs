use super::*;
use crate::speech::Handled;
use proptest::prelude::*;
use pubmark_wire::amqp::{TRANSIENT, put_content};

const CHANNEL: u16 = 7;
const NO_ARGUMENTS: FieldTable<'static> = FieldTable(&[]);

fn word(channel: u16, method: Method<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Frame::Method(channel, method).put(&mut bytes);
    bytes
}

/// A conversation: the answers and the requests, as text.
struct Talk {
    amqp: AmqpServer,
    acknowledge: bool,
    asked: Vec<String>,
}

impl Talk {
    fn new(denied: bool) -> Talk {
        Talk { amqp: AmqpServer::new(denied), acknowledge: true, asked: Vec::new() }
    }

    fn try_say(&mut self, bytes: &[u8]) -> Result<(usize, Vec<u8>), Malformed> {
        let (mut out, asked, acknowledge) = (Vec::new(), &mut self.asked, self.acknowledge);
        let hub = &mut |ask: Ask<'_>| {
            asked.push(match ask {
                Ask::Publish { to: Address { topic, .. }, payload, qos } => {
                    format!("{} {} {qos}", topic.escape_ascii(), payload.escape_ascii())
                }
                Ask::Subscribe(Filter::Below(prefix), 0) => format!("below {}", prefix.escape_ascii()),
                Ask::Subscribe(Filter::Exact(topic), 0) => format!("exact {}", topic.escape_ascii()),
                Ask::Unsubscribe(Filter::Below(prefix), 0) => format!("not below {}", prefix.escape_ascii()),
                Ask::Unsubscribe(Filter::Exact(topic), 0) => format!("not {}", topic.escape_ascii()),
                other => format!("{other:?}"),
            });
            Handled {
                answer: if acknowledge { PublisherAnswer::Acknowledged } else { PublisherAnswer::Nothing },
                listeners: 0,
            }
        };
        self.amqp.input(bytes, &mut out, hub).map(|used| (used, out))
    }

    /// Sends all bytes. Returns the answer.
    fn say(&mut self, bytes: &[u8]) -> Vec<u8> {
        let (used, out) = self.try_say(bytes).unwrap();
        assert_eq!(used, bytes.len());
        out
    }

    fn say_method(&mut self, method: Method<'_>) -> Vec<u8> {
        self.say(&word(CHANNEL, method))
    }

    fn asked(&mut self) -> Vec<String> {
        std::mem::take(&mut self.asked)
    }

    /// Returns a conversation with an open channel.
    fn open() -> Talk {
        let mut talk = Talk::new(false);
        assert_eq!(names(&talk.say(PROTOCOL_HEADER)), ["Start"]);
        let login = Method::StartOk {
            properties: NO_ARGUMENTS,
            mechanism: "PLAIN".into(),
            response: b"\0guest\0guest",
            locale: "en_US".into(),
        };
        assert_eq!(names(&talk.say(&word(0, login))), ["Tune"]);
        talk.say(&word(0, Method::TuneOk { channel_max: 1, frame_bytes: MIN_FRAME_BYTES, heartbeat_s: 60 }));
        let enter = Method::Open { vhost: "/".into(), reserved_1: "".into(), reserved_2: false };
        assert_eq!(names(&talk.say(&word(0, enter))), ["OpenOk"]);
        assert_eq!(names(&talk.say_method(Method::ChannelOpen { reserved: "".into() })), ["ChannelOpenOk"]);
        talk
    }

    /// Returns a conversation that consumes `a` of `amq.direct`.
    fn consuming(prefetch: Option<u16>) -> Talk {
        let mut talk = Talk::open();
        talk.say_method(declare("q"));
        talk.say_method(bind("amq.direct", "a"));
        if let Some(prefetch_messages) = prefetch {
            let qos = Method::Qos { prefetch_bytes: 0, prefetch_messages, global: false };
            assert_eq!(names(&talk.say_method(qos)), ["QosOk"]);
        }
        assert!(talk.asked().is_empty(), "nobody listens before there is a consumer");
        let flags = if prefetch.is_some() { 0 } else { Method::NO_ACK };
        assert_eq!(names(&talk.say_method(consume(flags))), ["ConsumeOk"]);
        assert_eq!(talk.asked(), ["exact amq.direct\\x00a"]);
        talk
    }
}

fn declare(queue: &str) -> Method<'_> {
    let flags = Method::EXCLUSIVE | Method::AUTO_DELETE;
    Method::QueueDeclare { reserved: 0, queue: queue.into(), flags, arguments: NO_ARGUMENTS }
}

fn bind<'a>(exchange: &'a str, key: &'a str) -> Method<'a> {
    let (exchange, routing_key) = (exchange.into(), key.into());
    let arguments = NO_ARGUMENTS;
    Method::QueueBind { reserved: 0, queue: "q".into(), exchange, routing_key, no_wait: false, arguments }
}

fn consume(flags: u8) -> Method<'static> {
    Method::Consume { reserved: 0, queue: "q".into(), consumer: "c".into(), flags, arguments: NO_ARGUMENTS }
}

fn publish(key: &str, body: &[u8]) -> Vec<u8> {
    let (exchange, routing_key) = ("amq.topic".into(), key.into());
    let mut bytes = word(CHANNEL, Method::Publish { reserved: 0, exchange, routing_key, flags: 0 });
    put_content(&mut bytes, CHANNEL, TRANSIENT, body, MIN_FRAME_BYTES);
    bytes
}

fn frames(bytes: &[u8]) -> Vec<Frame<'_>> {
    let (mut frames, mut at) = (Vec::new(), 0);
    while let Some((frame, used)) = Frame::decode(&bytes[at..]).unwrap() {
        frames.push(frame);
        at += used;
    }
    assert_eq!(at, bytes.len());
    frames
}

fn names(bytes: &[u8]) -> Vec<&'static str> {
    let name = |frame: &Frame<'_>| if let Frame::Method(_, method) = frame { Some(method.name()) } else { None };
    frames(bytes).iter().filter_map(name).collect()
}

/// Returns the numbers of deliveries.
fn deliveries(bytes: &[u8]) -> Vec<u64> {
    let number = |frame: &Frame<'_>| match frame {
        Frame::Method(CHANNEL, Method::Deliver { delivery, .. }) => Some(*delivery),
        _ => None,
    };
    frames(bytes).iter().filter_map(number).collect()
}

/// Returns the code with which the connection is ended.
fn refused(bytes: &[u8]) -> Option<u16> {
    match *frames(bytes).last()? {
        Frame::Method(0, Method::Close { code, .. }) => Some(code),
        _ => None,
    }
}

#[test]
fn messages_are_understood_wherever_their_bytes_are_cut() {
    let large = vec![b'x'; 9_000];
    let words = [publish("a", b"hi"), publish("b.c", b""), publish("d", &large)].concat();
    for cut in (0..words.len()).step_by(7) {
        let mut talk = Talk::open();
        let (used, _) = talk.try_say(&words[..cut]).unwrap();
        talk.say(&words[used..]);
        let asked = talk.asked();
        assert_eq!(asked[..2], ["amq.topic\\x00a hi 0", "amq.topic\\x00b.c  0"]);
        assert_eq!(asked[2].len(), "amq.topic\\x00d  0".len() + large.len());
        assert_eq!(asked.len(), 3);
    }
}

#[test]
fn messages_are_confirmed_as_the_script_allows() {
    let mut talk = Talk::open();
    assert_eq!(names(&talk.say_method(Method::ConfirmSelect { no_wait: false })), ["ConfirmSelectOk"]);
    let mut confirmed = Vec::new();
    for acknowledge in [true, false, true] {
        talk.acknowledge = acknowledge;
        let answer = talk.say(&publish("a", b"hi"));
        confirmed.extend(frames(&answer).iter().map(|frame| match frame {
            Frame::Method(CHANNEL, Method::Ack { delivery, multiple: false }) => *delivery,
            other => panic!("{other:?}"),
        }));
    }
    assert_eq!(confirmed, [1, 3]);
    assert_eq!(talk.asked(), ["amq.topic\\x00a hi 1"; 3]);
}

#[test]
fn bindings_become_routes_for_as_long_as_there_is_a_consumer() {
    let mut talk = Talk::consuming(None);
    talk.say_method(bind("amq.topic", "b.#"));
    assert_eq!(talk.asked(), ["exact amq.topic\\x00b", "below amq.topic\\x00b."]);
    talk.say_method(bind("amq.topic", "#"));
    assert_eq!(talk.asked(), ["exact amq.topic\\x00", "below amq.topic\\x00"]);
    let cancel = Method::Cancel { consumer: "c".into(), no_wait: false };
    assert_eq!(names(&talk.say_method(cancel)), ["CancelOk"]);
    let ended = talk.asked();
    assert_eq!((ended.len(), ended[0].as_str()), (5, "not amq.direct\\x00a"));
    let mut out = Vec::new();
    talk.amqp.deliver(TOKEN, Address::of(b"amq.direct\0a"), b"late", 0, &mut out);
    assert!(out.is_empty());
}

#[test]
fn a_delivery_names_exchange_and_key_and_keeps_to_the_clients_frames() {
    let mut talk = Talk::consuming(None);
    let (body, mut out) = (vec![3; 5_000], Vec::new());
    talk.amqp.deliver(TOKEN, Address::of(b"amq.direct\0a"), &body, 1, &mut out);
    let said = frames(&out);
    let (consumer, exchange, routing_key) = ("c".into(), "amq.direct".into(), "a".into());
    let wanted = Method::Deliver { consumer, delivery: 1, redelivered: false, exchange, routing_key };
    assert_eq!(said[0], Frame::Method(CHANNEL, wanted));
    assert_eq!(said.len(), 4, "a header and two pieces of at most 4096 bytes");
}

#[test]
fn a_full_window_is_respected_and_nothing_is_forgotten() {
    let mut talk = Talk::consuming(Some(2));
    let mut out = Vec::new();
    for payload in [b"1", b"2", b"3", b"4", b"5"] {
        talk.amqp.deliver(TOKEN, Address::of(b"amq.direct\0a"), payload, 1, &mut out);
    }
    assert_eq!((deliveries(&out), talk.amqp.kept_bytes()), (vec![1, 2], 3));
    let mut ack = |delivery, multiple| deliveries(&talk.say_method(Method::Ack { delivery, multiple }));
    assert_eq!(ack(2, false), [3]);
    assert_eq!(ack(1, true), [4]);
    assert_eq!(ack(0, true), [5]);
    assert!(ack(5, true).is_empty());
    assert_eq!(talk.amqp.kept_bytes(), 0);
    assert_eq!(refused(&talk.say_method(Method::Ack { delivery: 5, multiple: false })), Some(406));
}

#[test]
fn a_denied_connection_is_told_so() {
    let mut talk = Talk::new(true);
    talk.amqp.state = State::Tuned;
    let enter = Method::Open { vhost: "/".into(), reserved_1: "".into(), reserved_2: false };
    let answer = talk.say(&word(0, enter));
    let Some(Frame::Method(0, Method::Close { code: 530, text, .. })) = frames(&answer).pop() else { panic!() };
    assert!(text.0.ends_with(b"limit is reached"));
    assert_eq!(talk.asked(), ["Close"]);
}

#[test]
fn who_says_close_is_let_go() {
    let mut talk = Talk::consuming(None);
    let close = word(0, Method::Close { code: 200, text: "done".into(), class: 0, method: 0 });
    assert_eq!(names(&talk.say(&close)), ["CloseOk"]);
    assert_eq!(talk.asked(), ["Close"]);
}

#[test]
fn what_it_does_not_know_it_refuses() {
    for (method, code) in [
        (Method::QueueDeclare { reserved: 0, queue: "g".into(), flags: Method::DURABLE, arguments: NO_ARGUMENTS }, 540),
        (declare("other"), 540),
        (bind("amq.fanout", "a"), 404),
        (bind("amq.topic", "*.a"), 540),
        (bind("amq.topic", "a#"), 540),
        (consume(0), 540),
        (Method::Qos { prefetch_bytes: 0, prefetch_messages: 1, global: true }, 540),
        (Method::ChannelFlow { active: false }, 540),
    ] {
        let mut talk = Talk::consuming(None);
        assert_eq!(refused(&talk.say_method(method)), Some(code), "{method:?}");
        assert_eq!(talk.asked(), ["Close"]);
    }
    let mut talk = Talk::new(false);
    assert_eq!(talk.say(b"AMQP\0\x01\0\0"), PROTOCOL_HEADER);
    assert_eq!(talk.asked(), ["Close"]);
}

#[test]
fn what_comes_out_of_turn_breaks_the_protocol() {
    let whole = publish("a", b"hi");
    let begins = frames(&whole).len();
    assert_eq!(begins, 3);
    let publish_bytes = Frame::decode(&whole).unwrap().unwrap().1;
    let (front, content) = whole.split_at(publish_bytes);
    let mut long = whole[..whole.len() - 10].to_vec();
    Frame::Body(CHANNEL, b"longer").put(&mut long);
    for bytes in [
        content.to_vec(),
        front.repeat(2),
        long,
        word(CHANNEL + 1, Method::ConfirmSelect { no_wait: false }),
        b"GET / HTTP/1.1\r\n".to_vec(),
    ] {
        assert!(Talk::open().try_say(&bytes).is_err(), "{}", bytes.escape_ascii());
    }
    assert!(Talk::new(false).try_say(&[&PROTOCOL_HEADER[..], &whole].concat()).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..60), class in 0usize..6, open: bool) {
        let mut talk = if open { Talk::consuming(Some(1)) } else { Talk::new(false) };
        // After a valid beginning, more of them are parsed further.
        let mut framed = vec![1, 0, CHANNEL as u8, 0, 0, 0, bytes.len() as u8 + 2, 0, [10, 20, 50, 60, 85, 90][class]];
        framed.extend_from_slice(&bytes);
        framed.push(0xce);
        for words in [&framed, &bytes] {
            match talk.try_say(words) {
                Ok((used, _)) => prop_assert!(used <= words.len()),
                Err(_) => break,
            }
        }
    }
}
