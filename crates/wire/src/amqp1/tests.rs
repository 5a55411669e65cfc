use super::*;
use proptest::prelude::*;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    // Some are too long for the short forms.
    prop_oneof![proptest::collection::vec(any::<u8>(), 0..20), proptest::collection::vec(any::<u8>(), 250..300)]
}

/// Checks that a frame reads back, and that no strict prefix reads as one.
fn reads_back(frame: Amqp1Frame<'_>) -> Result<(), TestCaseError> {
    let mut bytes = Vec::new();
    frame.put(&mut bytes);
    for end in 0..bytes.len() {
        prop_assert_eq!(Amqp1Frame::decode(&bytes[..end]), Ok(None));
    }
    bytes.push(1);
    prop_assert_eq!(Amqp1Frame::decode(&bytes), Ok(Some((frame, bytes.len() - 1))));
    Ok(())
}

proptest! {
    #[test]
    fn frames_read_back(
        (wide, short, octet, flag) in (any::<u32>(), any::<u16>(), any::<u8>(), any::<bool>()),
        (a, b, message) in (bytes(), bytes(), bytes()),
        (is_there, is_target) in (any::<bool>(), any::<bool>()),
    ) {
        let (name, symbol) = (Text(&a), Symbol(&b));
        let words = b.escape_ascii().to_string();
        let capabilities = Some(Symbols::one(&words));
        let failure = Amqp1Failure { condition: symbol, text: is_there.then_some(name) };
        let error = is_there.then_some(failure);
        let narrow = is_there.then_some(u32::from(octet));
        let terminus = Terminus { is_target, address: Some(name), durable: narrow, expiry: Some(symbol), capabilities };
        let ends = (is_there.then_some(terminus), Some(Terminus { address: None, capabilities: None, ..terminus }));
        let window = wide;
        for performative in [
            Performative::Open { container: name, hostname: None, frame_bytes: narrow, channel_max: Some(short), idle_ms: Some(wide) },
            Performative::Begin { remote_channel: Some(short), next_outgoing: wide, incoming_window: window, outgoing_window: 0 },
            Performative::Attach {
                name, handle: wide, is_receiver: flag, sends: Some(octet), receives: None, source: ends.0, target: ends.1,
                unsettled: Skipped, incomplete: Skipped, delivery_count: narrow,
            },
            Performative::Flow {
                next_incoming: narrow, incoming_window: window, next_outgoing: wide, outgoing_window: 0, handle: Some(wide),
                delivery_count: None, credit: Some(wide), available: None, drain: Some(flag), echo: None,
            },
            Performative::Transfer {
                handle: 0, delivery: Some(wide), tag: Some(Binary(&a)), format: Some(0), is_settled: Some(flag), more: None,
                receives: Skipped, state: Skipped, resume: Skipped, is_aborted: Some(flag),
            },
            Performative::Detach { handle: wide, is_closed: Some(flag), error },
            Performative::End { error },
            Performative::Close { error },
        ] {
            reads_back(Amqp1Frame::Performative(performative, &message))?;
        }
        for outcome in [DeliveryOutcome::Accepted, DeliveryOutcome::Rejected(error), DeliveryOutcome::Released, DeliveryOutcome::Modified, DeliveryOutcome::Other] {
            let (is_receiver, first, last) = (flag, wide, narrow);
            let outcome = Some(outcome);
            reads_back(Amqp1Frame::Performative(Performative::Disposition { is_receiver, first, last, is_settled: None, outcome }, &[]))?;
        }
        for login in [
            Performative::Mechanisms { mechanisms: Symbols::one(&words) },
            Performative::Login { mechanism: symbol, response: Some(Binary(&a)), hostname: None },
            Performative::LoginOutcome { code: octet },
        ] {
            reads_back(Amqp1Frame::Performative(login, &[]))?;
        }
        reads_back(Amqp1Frame::Empty)?;
        reads_back(Amqp1Frame::Header([3, 1, 0, octet]))?;
    }

    #[test]
    fn the_body_of_a_message_reads_back(durable in any::<bool>(), body_bytes in bytes()) {
        let mut message = Vec::new();
        put_message_front(&mut message, durable, body_bytes.len());
        message.extend_from_slice(&body_bytes);
        prop_assert_eq!(body(&message), Ok(&body_bytes[..]));
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = body(&bytes);
        let mut framed = vec![0, 0, 0, bytes.len() as u8 + 8, 2, 0, 0, 0];
        framed.extend_from_slice(&bytes);
        if let Ok(Some((_, taken))) = Amqp1Frame::decode(&framed) {
            prop_assert_eq!(taken, framed.len());
        }
    }
}

/// Bytes as in the standard's encodings.
#[test]
fn known_frames() {
    // Open: container `a`, a null, and 256 as the longest frame.
    let open = b"\0\0\0\x17\x02\0\0\0\0\x53\x10\xc0\x0a\x03\xa1\x01a\x40\x70\0\0\x01\0";
    let container = Text(b"a");
    let expected =
        Performative::Open { container, hostname: None, frame_bytes: Some(256), channel_max: None, idle_ms: None };
    assert_eq!(Amqp1Frame::decode(open), Ok(Some((Amqp1Frame::Performative(expected, &[]), open.len()))));
    // Mechanisms: an array of two symbols.
    let offer = b"\0\0\0\x24\x02\x01\0\0\0\x53\x40\xc0\x15\x01\xe0\x12\x02\xa3\x05PLAIN\x09ANONYMOUS";
    let offer = [&offer[..3], &[offer.len() as u8], &offer[4..]].concat();
    let Ok(Some((Amqp1Frame::Performative(Performative::Mechanisms { mechanisms }, &[]), _))) =
        Amqp1Frame::decode(&offer)
    else {
        panic!("{:?}", Amqp1Frame::decode(&offer))
    };
    assert_eq!(mechanisms.names().collect::<Vec<_>>(), [&b"PLAIN"[..], b"ANONYMOUS"]);
    // A message with a header, annotations and properties before its body.
    let message = b"\0\x53\x70\xc0\x02\x01\x41\0\x53\x72\xc1\x01\0\0\x53\x73\x45\0\x53\x75\xa0\x03xyz";
    assert_eq!(body(message), Ok(&b"xyz"[..]));
    assert_eq!(body(b"\0\x53\x77\xa1\x03xyz"), Ok(&b""[..]), "a text is no body of ours");
    let short = b"\0\0\0\x0e\x02\0\0\0\0\x53\x17\x45\0\0";
    let trailing = Amqp1Frame::decode(short);
    assert_eq!(trailing, Ok(Some((Amqp1Frame::Performative(Performative::End { error: None }, &[0, 0]), 14))));
}

#[test]
fn what_is_no_frame_is_refused() {
    for (bytes, says) in [
        (&b"HTTP/1.1"[..], "longer than 131072"),
        (b"\0\0\0\x07\x02\0\0\0", "has a front of 8"),
        (b"\0\0\0\x08\x01\0\0\0", "has a front of 4"),
        (b"\0\0\0\x08\x02\x07\0\0", "kind 7"),
        (b"\0\0\0\x0a\x02\0\0\0\x43\x00", "where a list is wanted"),
        (b"\0\0\0\x0c\x02\0\0\0\0\x53\x63\x45", "no performative is 0x63"),
        (b"\0\0\0\x09\x02\0\0\0\x45", "without a performative"),
        (b"\0\0\0\x09\x02\0\0\0\x10", "no type has the code 0x10"),
        (b"\0\0\0\x0c\x02\0\0\0\0\x53\x17\xc0", "longer than its frame"),
        (b"\0\0\0\x0c\x02\x01\0\0\0\x53\x17\x45", "End in a frame of kind 1"),
        (b"\0\0\0\x0c\x02\0\0\0\0\x53\x10\x45", "where Text is wanted"),
    ] {
        let error = Amqp1Frame::decode(bytes).unwrap_err();
        assert!(error.0.contains(says), "{}: {error}", bytes.escape_ascii());
    }
}
