use super::super::conversation::{Conversation, HeardEvent, message, settings, spec};
use super::refusal::RESOURCE_LIMIT;
use super::*;
use pubmark_wire::amqp1::{Amqp1Failure, put_message_front};

const NO_ERROR: Option<Amqp1Failure<'static>> = None;

fn plain(qos: u8, durable: bool, set: &[(&str, &str)]) -> Amqp1Settings {
    settings::<Amqp1>("amqp1://h", qos, durable, set).unwrap()
}

fn frame(performative: Performative<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, performative);
    bytes
}

fn header(version: [u8; 4]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Amqp1Frame::Header(version).put(&mut bytes);
    bytes
}

/// Returns what is in `bytes`: names of performatives, headers and empty frames.
fn names(mut bytes: &[u8]) -> Vec<&'static str> {
    let mut names = Vec::new();
    while let Some((frame, taken)) = Amqp1Frame::decode(bytes).unwrap() {
        names.push(match frame {
            Amqp1Frame::Header(_) => "header",
            Amqp1Frame::Empty => "empty",
            Amqp1Frame::Performative(performative, _) => performative.name(),
        });
        bytes = &bytes[taken..];
    }
    assert!(bytes.is_empty());
    names
}

/// Returns the one performative in `bytes`.
fn only(bytes: &[u8]) -> Performative<'_> {
    match Amqp1Frame::decode(bytes).unwrap() {
        Some((Amqp1Frame::Performative(performative, _), taken)) if taken == bytes.len() => performative,
        other => panic!("{other:?}"),
    }
}

fn open(frame_bytes: u32, idle_ms: Option<u32>) -> Vec<u8> {
    let (container, hostname, channel_max) = (Text(b"server"), None, None);
    frame(Performative::Open { container, hostname, frame_bytes: Some(frame_bytes), channel_max, idle_ms })
}

fn begin(incoming_window: u32) -> Vec<u8> {
    let (remote_channel, outgoing_window) = (Some(0), 100);
    frame(Performative::Begin { remote_channel, next_outgoing: 7, incoming_window, outgoing_window })
}

fn terminus(is_target: bool) -> Terminus<'static> {
    Terminus { is_target, address: Some(Text(b"t")), durable: None, expiry: None, capabilities: None }
}

fn attached(source: Option<Terminus<'_>>, target: Option<Terminus<'_>>, is_receiver: bool) -> Vec<u8> {
    let delivery_count = (!is_receiver).then_some(40);
    let (name, handle, sends, receives) = (Text(b"c0"), LINK, None, None);
    let (unsettled, incomplete) = (Skipped, Skipped);
    frame(Performative::Attach {
        name,
        handle,
        is_receiver,
        sends,
        receives,
        source,
        target,
        unsettled,
        incomplete,
        delivery_count,
    })
}

fn credit(count: u32, credit: u32, window: u32) -> Vec<u8> {
    frame(Performative::Flow {
        next_incoming: Some(0),
        incoming_window: window,
        next_outgoing: 7,
        outgoing_window: 100,
        handle: Some(LINK),
        delivery_count: Some(count),
        credit: Some(credit),
        available: None,
        drain: None,
        echo: None,
    })
}

fn transfer(delivery: Option<u32>, is_settled: bool, more: bool, part: &[u8]) -> Vec<u8> {
    let performative = Performative::Transfer {
        handle: LINK,
        delivery,
        tag: delivery.map(|_| Binary(b"x")),
        format: Some(0),
        is_settled: Some(is_settled),
        more: Some(more),
        receives: Skipped,
        state: Skipped,
        resume: Skipped,
        is_aborted: None,
    };
    let mut bytes = Vec::new();
    put_performative(&mut bytes, &performative, |out| out.extend_from_slice(part));
    bytes
}

fn delivery(number: u32, is_settled: bool, payload: &[u8]) -> Vec<u8> {
    let mut sections = Vec::new();
    put_message_front(&mut sections, false, payload.len());
    sections.extend_from_slice(payload);
    transfer(Some(number), is_settled, false, &sections)
}

fn outcome(first: u32, last: Option<u32>, outcome: DeliveryOutcome<'_>) -> Vec<u8> {
    let (is_receiver, is_settled, outcome) = (true, Some(true), Some(outcome));
    frame(Performative::Disposition { is_receiver, first, last, is_settled, outcome })
}

/// Returns a session that is logged in.
fn logged_in<'a>(settings: &'a Amqp1Settings, spec: ClientSpec, cut: usize) -> Conversation<'a, Amqp1> {
    let mut talk = Conversation::<Amqp1>::new(settings, spec);
    assert_eq!(talk.said(), LOGIN_HEADER);
    let mechanisms = Symbols::one("ANONYMOUS");
    talk.say_cut(&[header(LOGIN_VERSION), frame(Performative::Mechanisms { mechanisms })].concat(), cut).unwrap();
    assert_eq!(names(&talk.said()), ["Login"]);
    talk.say_cut(&frame(Performative::LoginOutcome { code: 0 }), cut).unwrap();
    talk
}

/// Returns a publisher that may send this many messages, in frames of this length.
fn publisher(settings: &Amqp1Settings, may: u32, frame_bytes: u32, cut: usize) -> Conversation<'_, Amqp1> {
    let mut talk = logged_in(settings, spec(Role::Publisher, "t"), cut);
    assert_eq!(names(&talk.said()), ["header", "Open", "Begin", "Attach"]);
    let answers =
        [header(VERSION), open(frame_bytes, Some(30_000)), begin(1_000), attached(None, Some(terminus(true)), true)];
    talk.say_cut(&answers.concat(), cut).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Connected]);
    assert!(!talk.publish(b"early", 0), "there is no credit");
    talk.say_cut(&credit(0, may, 1_000), cut).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Room]);
    talk
}

/// Returns a subscriber whose link is attached.
fn subscriber(settings: &Amqp1Settings, cut: usize) -> Conversation<'_, Amqp1> {
    let mut talk = logged_in(settings, spec(Role::Subscriber, "t"), cut);
    assert_eq!(names(&talk.said()), ["header", "Open", "Begin"]);
    talk.say_cut(&[header(VERSION), open(4_096, None), begin(1_000)].concat(), cut).unwrap();
    assert_eq!((talk.heard(), talk.said()), (vec![HeardEvent::Connected], Vec::new()));
    talk.subscribe();
    assert_eq!(names(&talk.said()), ["Attach"]);
    talk.say_cut(&attached(Some(terminus(false)), None, false), cut).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Subscribed]);
    let said = talk.said();
    let Performative::Flow { next_incoming, handle, delivery_count, credit, .. } = only(&said) else { panic!() };
    assert_eq!((next_incoming, handle, delivery_count, credit), (Some(7), Some(LINK), Some(40), Some(settings.credit)));
    talk
}

#[test]
fn messages_are_sent_within_credit_and_acknowledged() {
    let settings = plain(1, true, &[]);
    for cut in [0, 1, 9, 30] {
        let mut talk = publisher(&settings, 3, 4_096, cut);
        for sequence in 0..3 {
            assert!(talk.publish(b"xyz", sequence));
        }
        assert!(!talk.publish(b"xyz", 3), "the credit is used up");
        let sent = talk.said();
        assert_eq!(names(&sent), ["Transfer"; 3]);
        let (first, _) = Amqp1Frame::decode(&sent).unwrap().unwrap();
        let Amqp1Frame::Performative(Performative::Transfer { delivery, is_settled, more, .. }, content) = first else {
            panic!("{first:?}")
        };
        assert_eq!((delivery, is_settled, more), (Some(0), Some(false), Some(false)));
        assert!(content.starts_with(b"\0\x53\x70"), "a durable message says so in its header");
        assert_eq!(body(content), Ok(&b"xyz"[..]));
        assert_eq!(talk.session.unacknowledged(), 3);
        talk.say_cut(
            &[outcome(0, Some(1), DeliveryOutcome::Accepted), outcome(2, None, DeliveryOutcome::Accepted)].concat(),
            cut,
        )
        .unwrap();
        assert_eq!(talk.heard(), [0, 1, 2].map(HeardEvent::Acknowledged));
        assert_eq!(talk.session.unacknowledged(), 0);
        talk.say_cut(&credit(3, 1, 1_000), cut).unwrap();
        assert!(talk.publish(b"xyz", 3) && !talk.publish(b"xyz", 4));
    }
}

#[test]
fn a_long_message_takes_several_frames_and_the_window_counts_them() {
    let settings = plain(0, false, &[]);
    let mut talk = publisher(&settings, 100, 512, 0);
    let long: Vec<u8> = (0..1_000u32).map(|number| number as u8).collect();
    assert!(talk.publish(&long, 0));
    let sent = talk.said();
    assert_eq!(names(&sent), ["Transfer"; 3]);
    let (mut rest, mut whole) = (&sent[..], Vec::new());
    while let Some((Amqp1Frame::Performative(Performative::Transfer { delivery, is_settled, more, .. }, part), taken)) =
        Amqp1Frame::decode(rest).unwrap()
    {
        assert!(taken <= 512, "{taken}");
        let (is_first, is_last) = (whole.is_empty(), taken == rest.len());
        assert_eq!((delivery, is_settled, more), (is_first.then_some(0), Some(true), Some(!is_last)));
        whole.extend_from_slice(part);
        rest = &rest[taken..];
    }
    assert_eq!(body(&whole), Ok(&long[..]));
    // Three of five transfers are used.
    talk.say(&credit(0, 100, 5)).unwrap();
    assert!(!talk.publish(&long, 1), "it takes three frames");
    assert!(talk.publish(b"short", 1) && talk.publish(b"short", 2) && !talk.publish(b"short", 3));
}

#[test]
fn refusals_have_their_reasons() {
    let settings = plain(1, false, &[]);
    let mut talk = publisher(&settings, 9, 4_096, 0);
    for sequence in 0..5 {
        assert!(talk.publish(b"x", sequence));
    }
    talk.said();
    let full = Amqp1Failure { condition: RESOURCE_LIMIT, text: Some(Text(b"queue is full")) };
    let odd = Amqp1Failure { condition: Symbol(b"x:odd"), text: None };
    for (number, said) in [
        DeliveryOutcome::Rejected(Some(full)),
        DeliveryOutcome::Rejected(Some(odd)),
        DeliveryOutcome::Released,
        DeliveryOutcome::Modified,
    ]
    .into_iter()
    .enumerate()
    {
        talk.say(&outcome(number as u32, None, said)).unwrap();
    }
    assert_eq!(
        talk.heard(),
        [
            HeardEvent::Refused(0, "rejected: amqp:resource-limit-exceeded: queue is full".into()),
            HeardEvent::Refused(1, "rejected: x:odd".into()),
            HeardEvent::Refused(2, "released: the server did not take it".into()),
            HeardEvent::Refused(3, "modified: the server did not take it".into()),
        ]
    );
    for (first, last) in [(5, None), (4, Some(5)), (4, Some(3)), (u32::MAX, None)] {
        let error = talk.say(&outcome(first, last, DeliveryOutcome::Accepted)).unwrap_err().to_string();
        assert!(error.contains("an outcome of what was never sent"), "{first} {last:?}: {error}");
        talk = publisher(&settings, 9, 4_096, 0);
        (0..5).for_each(|sequence| assert!(talk.publish(b"x", sequence)));
    }
}

#[test]
fn what_is_not_settled_is_settled_by_the_sender() {
    let settings = plain(1, false, &[]);
    let mut talk = publisher(&settings, 9, 4_096, 0);
    assert!(talk.publish(b"x", 8));
    talk.said();
    let (is_receiver, is_settled, outcome) = (true, Some(false), Some(DeliveryOutcome::Accepted));
    talk.say(&frame(Performative::Disposition { is_receiver, first: 0, last: None, is_settled, outcome })).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Acknowledged(8)]);
    let expected =
        Performative::Disposition { is_receiver: false, first: 0, last: Some(0), is_settled: Some(true), outcome };
    assert_eq!(only(&talk.said()), expected);
}

#[test]
fn messages_arrive_whole_and_are_accepted_together() {
    let settings = plain(1, false, &[("credit", "4")]);
    for cut in [0, 1, 9, 40, 60] {
        let mut talk = subscriber(&settings, cut);
        let long = delivery(2, false, b"abcdefgh");
        let sections = match Amqp1Frame::decode(&long).unwrap() {
            Some((Amqp1Frame::Performative(_, sections), _)) => sections,
            other => panic!("{other:?}"),
        };
        let (one, two) = sections.split_at(7);
        let parts = [transfer(Some(2), false, true, one), transfer(None, false, false, two)].concat();
        talk.say_cut(&[delivery(0, false, b"a"), delivery(1, false, b"b"), parts].concat(), cut).unwrap();
        assert_eq!(talk.heard(), [message(b"a"), message(b"b"), message(b"abcdefgh")]);
        assert!(talk.all_taken());
        let said = talk.said();
        assert_eq!(names(&said).into_iter().filter(|name| *name == "Flow").count(), 1, "half of the credit is used up");
        let mut accepted = 0;
        let mut rest = &said[..];
        while let Some((Amqp1Frame::Performative(performative, _), taken)) = Amqp1Frame::decode(rest).unwrap() {
            match performative {
                Performative::Disposition { is_receiver: true, first, last, is_settled: Some(true), outcome } => {
                    assert_eq!((first, outcome), (accepted, Some(DeliveryOutcome::Accepted)));
                    accepted = last.unwrap() + 1;
                }
                Performative::Flow { next_incoming, delivery_count, credit, .. } => {
                    let (next, count) = (next_incoming.unwrap(), delivery_count.unwrap());
                    assert!((9..=11).contains(&next) && (42..=43).contains(&count) && credit == Some(4));
                }
                other => panic!("{other:?}"),
            }
            rest = &rest[taken..];
        }
        assert_eq!(accepted, 3);
        talk.say_cut(&[delivery(3, true, b"c"), delivery(7, false, b"d"), delivery(9, false, b"e")].concat(), 0)
            .unwrap();
        let said = talk.said();
        assert_eq!(names(&said)[..2], ["Disposition"; 2], "what is settled is not, and gaps are respected");
    }
}

#[test]
fn a_client_that_is_back_sends_again_as_far_as_there_is_credit() {
    struct Sent;
    impl Copies for Sent {
        fn message(&mut self, sequence: u32) -> &[u8] {
            [&b"m0"[..], b"m1", b"m2"][sequence as usize]
        }
    }
    let settings = plain(1, false, &[]);
    let mut talk = publisher(&settings, 9, 4_096, 0);
    (0..3).for_each(|sequence| assert!(talk.publish(b"x", sequence)));
    talk.say(&outcome(1, None, DeliveryOutcome::Accepted)).unwrap();
    let spec = spec(Role::Publisher, "t");
    talk.session.resume(&settings, &spec);
    let mut back = publisher(&settings, 1, 4_096, 0);
    back.session.confirms = std::mem::replace(&mut talk.session.confirms, Confirms::new());
    let mut again = Vec::new();
    assert!(back.session.owes());
    assert!(!back.publish(b"new", 3), "what is old comes first");
    assert!(back.session.resend(&settings, &mut Sent, &mut again));
    assert!(!back.session.resend(&settings, &mut Sent, &mut again), "the credit is used up");
    assert!(!back.session.owes(), "it waits for credit");
    back.say(&credit(1, 5, 1_000)).unwrap();
    assert!(back.session.owes());
    assert!(back.session.resend(&settings, &mut Sent, &mut again));
    assert!(!back.session.resend(&settings, &mut Sent, &mut again) && !back.session.owes());
    let mut bodies = Vec::new();
    let mut rest = &again[..];
    while let Some((Amqp1Frame::Performative(_, content), taken)) = Amqp1Frame::decode(rest).unwrap() {
        bodies.push(body(content).unwrap());
        rest = &rest[taken..];
    }
    assert_eq!(bodies, [b"m0", b"m2"]);
    assert!(back.publish(b"new", 3));
}

#[test]
fn a_durable_subscription_is_kept_closed_and_removed() {
    let settings = plain(1, true, &[]);
    let mut talk = logged_in(&settings, spec(Role::Subscriber, "t"), 0);
    talk.say(&[header(VERSION), open(4_096, None), begin(9)].concat()).unwrap();
    talk.said();
    talk.subscribe();
    let said = talk.said();
    let Performative::Attach { name, source: Some(source), is_receiver: true, .. } = only(&said) else { panic!() };
    assert_eq!((name, source.address, source.durable), (Text(b"c0"), Some(Text(b"t")), Some(KEPT)));
    assert_eq!((source.expiry, source.capabilities), (Some(Symbol(b"never")), Some(Symbols::one("topic"))));
    talk.say(&attached(Some(source), None, false)).unwrap();
    talk.said();
    assert_eq!(Amqp1::leaves(&settings, &talk.spec), [Leftover::Session("c0".into())]);
    let mut farewell = Vec::new();
    talk.session.close(&settings, &talk.spec.clone(), &mut farewell);
    assert_eq!(names(&farewell), ["Detach", "Close"]);
    talk.say(&frame(Performative::Close { error: NO_ERROR })).unwrap();

    // A client without a topic removes it.
    let plain = plain(1, false, &[]);
    let mut talk = logged_in(&plain, spec(Role::Publisher, ""), 0);
    talk.say(&[header(VERSION), open(4_096, None), begin(9)].concat()).unwrap();
    let said = talk.said();
    assert_eq!(names(&said), ["header", "Open", "Begin", "Attach"]);
    assert_eq!(talk.heard(), [], "nothing is removed yet");
    talk.say(&attached(Some(terminus(false)), None, false)).unwrap();
    let closed = Performative::Detach { handle: LINK, is_closed: Some(true), error: None };
    assert_eq!(only(&talk.said()), closed);
    talk.say(&frame(closed)).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Connected]);
    let ends = |condition: &'static str| {
        let mut talk = logged_in(&plain, spec(Role::Publisher, ""), 0);
        let error = Some(Amqp1Failure { condition: condition.into(), text: None });
        let detach = frame(Performative::Detach { handle: LINK, is_closed: Some(true), error });
        let said = talk.say(&[header(VERSION), open(4_096, None), begin(9), detach].concat());
        (said.is_ok(), talk.heard())
    };
    assert_eq!(ends("amqp:not-found"), (true, vec![HeardEvent::Connected]));
    assert_eq!(ends("amqp:resource-locked"), (false, Vec::new()), "it is still there");
}

#[test]
fn a_login_is_that_of_the_user_and_of_what_the_server_offers() {
    let settings = settings::<Amqp1>("amqp1://u:p@h", 1, false, &[]).unwrap();
    let mut talk = Conversation::<Amqp1>::new(&settings, spec(Role::Publisher, "t"));
    talk.said();
    let offers = |names| frame(Performative::Mechanisms { mechanisms: Symbols::one(names) });
    talk.say(&[header(LOGIN_VERSION), offers("PLAIN")].concat()).unwrap();
    let (mechanism, response, hostname) = (Symbol(b"PLAIN"), Some(Binary(b"\0u\0p")), Some(Text(b"h")));
    assert_eq!(only(&talk.said()), Performative::Login { mechanism, response, hostname });
    let error = talk.say(&frame(Performative::LoginOutcome { code: 1 })).unwrap_err();
    assert!(matches!(&error, SessionError::Denied(text) if text.contains("check user and password")), "{error}");
    let plain = plain(1, false, &[]);
    let mut talk = Conversation::<Amqp1>::new(&plain, spec(Role::Publisher, "t"));
    let error = talk.say(&[header(LOGIN_VERSION), offers("PLAIN")].concat()).unwrap_err().to_string();
    assert_eq!(error, "the server takes no ANONYMOUS login, only PLAIN: name a user and a password");
}

#[test]
fn errors_are_told_apart() {
    let settings = plain(1, false, &[]);
    let hello = |answers: &[Vec<u8>]| {
        let mut talk = logged_in(&settings, spec(Role::Publisher, "t"), 0);
        talk.say(&answers.concat()).unwrap_err()
    };
    let close = |name: &'static str| {
        let error = Some(Amqp1Failure { condition: name.into(), text: Some(Text(b"why")) });
        frame(Performative::Close { error })
    };
    let denied = hello(&[header(VERSION), open(4_096, None), close("amqp:not-allowed")]);
    assert_eq!(denied, SessionError::Denied("the server ended the connection: amqp:not-allowed: why".into()));
    assert!(hello(&[close("amqp:resource-limit-exceeded")]).is_limit());
    assert!(matches!(hello(&[close("amqp:connection:forced")]), SessionError::Busy(_)));
    assert!(matches!(hello(&[close("amqp:decode-error")]), SessionError::Foreign(_)));
    let impatient = hello(&[header(VERSION), open(4_096, Some(9_000))]).to_string();
    assert!(impatient.contains("after 9000 ms of silence: set options.heartbeat"), "{impatient}");
    // Qpid opens a connection that it refuses with frames of no bytes.
    let refused = hello(&[header(VERSION), open(0, None), close("amqp:not-found")]);
    assert_eq!(refused, SessionError::Denied("the server ended the connection: amqp:not-found: why".into()));
    assert!(hello(&[header(VERSION), open(0, None), begin(9)]).to_string().contains("frames of 0 bytes"));
    // A link that is refused has no target, and ends.
    let error = Some(Amqp1Failure { condition: "amqp:not-found".into(), text: None });
    let refused = frame(Performative::Detach { handle: LINK, is_closed: Some(true), error });
    let refused = hello(&[header(VERSION), open(4_096, None), begin(9), attached(None, None, true), refused]);
    assert_eq!(refused, SessionError::Denied("the server ended the link: amqp:not-found".into()));
    assert!(hello(&[header([0, 0, 9, 1])]).to_string().contains("offers version 0 0.9.1"));
    assert!(hello(&[b"HTTP/1.1 400".to_vec()]).to_string().contains("does not speak AMQP 1.0"));
    assert!(hello(&[outcome(0, None, DeliveryOutcome::Accepted)]).to_string().contains("never sent"));
    assert!(
        hello(&[
            frame(Performative::Begin {
                remote_channel: None,
                next_outgoing: 0,
                incoming_window: 0,
                outgoing_window: 0
            }),
            begin(1),
            attached(None, Some(terminus(true)), true),
            begin(1)
        ])
        .to_string()
        .contains("Begin, out of turn")
    );
}

#[test]
fn settings_that_cannot_be_are_refused() {
    for (qos, set, says) in [
        (2, ("inflight", "1"), "no exactly-once"),
        (1, ("inflight", "0"), "nothing could be published"),
        (1, ("credit", "0"), "credit: write 1 to"),
        (1, ("heartbeat", "1500ms"), "whole seconds"),
        (1, ("heartbeat", "0s"), "1 at least"),
        (1, ("prefix", "a*"), "cannot hold '*'"),
    ] {
        let error = settings::<Amqp1>("amqp1://h", qos, false, &[set]).err().unwrap().to_string();
        assert!(error.contains(says), "{error}");
    }
}
