use super::*;
use proptest::prelude::*;

fn text() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..20)
}

/// Checks that a frame reads back, and that no strict prefix reads as one.
fn reads_back(frame: Frame<'_>) -> Result<(), TestCaseError> {
    let mut bytes = Vec::new();
    frame.put(&mut bytes);
    for end in 0..bytes.len() {
        prop_assert_eq!(Frame::decode(&bytes[..end]), Ok(None));
    }
    bytes.push(1);
    prop_assert_eq!(Frame::decode(&bytes), Ok(Some((frame, bytes.len() - 1))));
    Ok(())
}

proptest! {
    #[test]
    fn frames_read_back(
        (channel, number, wide, flag, octet) in (any::<u16>(), any::<u64>(), any::<u32>(), any::<bool>(), any::<u8>()),
        (a, b, c) in (text(), text(), text()),
    ) {
        let (x, y, z, table) = (Short(&a), Short(&b), Short(&c), FieldTable(&c));
        let (short, reserved) = (number as u16, 0);
        for method in [
            Method::Start { major: 0, minor: 9, properties: table, mechanisms: &a, locales: &b },
            Method::StartOk { properties: table, mechanism: x, response: &b, locale: y },
            Method::Tune { channel_max: short, frame_bytes: wide, heartbeat_s: short },
            Method::Open { vhost: x, reserved_1: y, reserved_2: flag },
            Method::Close { code: short, text: x, class: short, method: short },
            Method::CloseOk {},
            Method::ChannelOpenOk { reserved: &a },
            Method::ExchangeDeclare { reserved, exchange: x, kind: y, flags: octet, arguments: table },
            Method::ExchangeDelete { reserved, exchange: x, flags: octet },
            Method::QueueDeclare { reserved, queue: x, flags: octet, arguments: table },
            Method::QueueDeclareOk { queue: x, messages: wide, consumers: wide },
            Method::QueueBind { reserved, queue: x, exchange: y, routing_key: z, no_wait: flag, arguments: table },
            Method::Qos { prefetch_bytes: wide, prefetch_messages: short, global: flag },
            Method::Consume { reserved, queue: x, consumer: y, flags: octet, arguments: table },
            Method::CancelOk { consumer: x },
            Method::Publish { reserved, exchange: x, routing_key: y, flags: octet },
            Method::Deliver { consumer: x, delivery: number, redelivered: flag, exchange: y, routing_key: z },
            Method::Ack { delivery: number, multiple: flag },
            Method::Nack { delivery: number, flags: octet },
        ] {
            reads_back(Frame::Method(channel, method))?;
        }
        reads_back(Frame::Header { channel, body_bytes: number % MAX_BODY_BYTES, properties: TRANSIENT })?;
        reads_back(Frame::Body(channel, &a))?;
        reads_back(Frame::Heartbeat)?;
        reads_back(Frame::Refused([1, 1, 0, 0]))?;
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(Some((_, taken))) = Frame::decode(&bytes) {
            prop_assert!((1..=bytes.len()).contains(&taken));
        }
        let _ = FieldTable(&bytes).find("product");
        // After a valid front, more of the random bytes get past the first checks.
        for class in [10, 20, 50, 60, 85] {
            let mut framed = Vec::new();
            frame(&mut framed, METHOD, 1, |out| {
                out.extend_from_slice(&[0, class]);
                out.extend_from_slice(&bytes);
            });
            if let Ok(read) = Frame::decode(&framed) {
                prop_assert_eq!(read.map(|(_, taken)| taken), Some(framed.len()));
            }
        }
    }

    #[test]
    fn contents_are_cut_into_frames_of_the_peers_size(body_bytes in 0..20_000usize) {
        let body = vec![7; body_bytes];
        let mut bytes = Vec::new();
        put_content(&mut bytes, 1, PERSISTENT, &body, MIN_FRAME_BYTES);
        let (first, mut at) = Frame::decode(&bytes).unwrap().unwrap();
        prop_assert_eq!(first, Frame::Header { channel: 1, body_bytes: body_bytes as u64, properties: PERSISTENT });
        let mut read = Vec::new();
        while let Some((Frame::Body(1, piece), taken)) = Frame::decode(&bytes[at..]).unwrap() {
            prop_assert!(taken <= MIN_FRAME_BYTES as usize);
            read.extend_from_slice(piece);
            at += taken;
        }
        prop_assert_eq!((read, at), (body, bytes.len()));
    }
}

/// Bytes as in the specification.
#[test]
fn known_frames() {
    let tune = b"\x01\0\0\0\0\0\x0c\0\x0a\0\x1e\x07\xff\0\x02\0\0\0\x3c\xce";
    let method = Method::Tune { channel_max: 2047, frame_bytes: 131_072, heartbeat_s: 60 };
    assert_eq!(Frame::decode(tune), Ok(Some((Frame::Method(0, method), tune.len()))));
    let header = b"\x02\0\x01\0\0\0\x0f\0\x3c\0\0\0\0\0\0\0\0\0\x05\x10\0\x02\xce";
    let expected = Frame::Header { channel: 1, body_bytes: 5, properties: PERSISTENT };
    assert_eq!(Frame::decode(header), Ok(Some((expected, header.len()))));
    let ack = b"\x01\0\x01\0\0\0\x0d\0\x3c\0\x50\0\0\0\0\0\0\0\x07\x01\xce";
    let method = Method::Ack { delivery: 7, multiple: true };
    assert_eq!(Frame::decode(ack), Ok(Some((Frame::Method(1, method), ack.len()))));
    assert_eq!(method.name(), "Ack");
    assert_eq!(Frame::decode(b"\x08\0\0\0\0\0\0\xce"), Ok(Some((Frame::Heartbeat, 8))));
    assert_eq!(Frame::decode(b"AMQP\0\x01\0\0"), Ok(Some((Frame::Refused([0, 1, 0, 0]), 8))));
}

#[test]
fn what_is_no_frame_is_refused() {
    for (bytes, says) in [
        (&b"HTTP/1.1"[..], "kind 72"),
        (b"AMQX", "kind 65"),
        (b"\x01\0\0\0\x02\0\0", "longer than 131072"),
        (b"\x08\0\0\0\0\0\0\0", "end octet"),
        (b"\x08\0\x01\0\0\0\0\xce", "carries something"),
        (b"\x01\0\0\0\0\0\x04\0\x0a\0\x63\xce", "method 10.99"),
        (b"\x01\0\0\0\0\0\x05\0\x0a\0\x33\0\xce", "follows the fields"),
        (b"\x01\0\0\0\0\0\x04\0\x0a\0\x1e\xce", "within a field"),
        (b"\x02\0\x01\0\0\0\0\xce", "content header"),
        (b"\x02\0\x01\0\0\0\x0e\0\x3b\0\0\0\0\0\0\0\0\0\x05\0\0\xce", "content header"),
        (b"\x02\0\x01\0\0\0\x0e\0\x3c\0\0\0\0\0\0\x08\0\0\x01\0\0\xce", "longer than 134217728"),
    ] {
        let error = Frame::decode(bytes).unwrap_err();
        assert!(error.0.contains(says), "{}: {error}", bytes.escape_ascii());
    }
}

#[test]
fn tables_are_searched() {
    let (mut inner, mut table) = (Vec::new(), Vec::new());
    put_flag(&mut inner, "basic.nack", true);
    put_table(&mut table, "capabilities", FieldTable(&inner));
    for (kind, bytes) in
        [(b'I', &[0; 4][..]), (b'T', &[0; 8]), (b'V', &[]), (b'D', &[0; 5]), (b'A', &[0, 0, 0, 1, b'V'])]
    {
        table.extend_from_slice(&[1, kind, kind]);
        table.extend_from_slice(bytes);
    }
    put_text(&mut table, "product", "RabbitMQ");
    let table = FieldTable(&table);
    assert_eq!(table.text("product"), Some(&b"RabbitMQ"[..]));
    let Some(FieldValue::Table(inner)) = table.find("capabilities") else { panic!() };
    assert_eq!(inner.find("basic.nack"), Some(FieldValue::Flag(true)));
    assert_eq!((table.find("I"), table.find("none"), table.text("I")), (Some(FieldValue::Other), None, None));
    assert_eq!(FieldTable(b"\x01aZ\x01bV").find("b"), None, "nothing is found behind what is not understood");
    let mut cut = Vec::new();
    Method::ConsumeOk { consumer: Short(&[b'x'; 300]) }.put(&mut cut);
    assert_eq!(Method::decode(&cut), Ok(Method::ConsumeOk { consumer: Short(&[b'x'; 255]) }));
}
