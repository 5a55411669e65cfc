use super::*;
use proptest::prelude::*;

fn word() -> impl Strategy<Value = Vec<u8>> {
    "[!-~]{1,20}".prop_map(String::into_bytes)
}

fn headers() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(Vec::new()), "[A-Z]: [a-z]{0,9}".prop_map(|field| format!("NATS/1.0\r\n{field}\r\n\r\n").into())]
}

/// Checks that an item reads back, and that no strict prefix reads as one.
macro_rules! reads_back {
    ($item:expr, $type:ident) => {{
        let item = $item;
        let mut bytes = Vec::new();
        item.put(&mut bytes);
        for end in 0..bytes.len() {
            prop_assert_eq!($type::decode(&bytes[..end]), Ok(None), "{} of {} bytes", end, bytes.len());
        }
        bytes.extend_from_slice(b"PI");
        prop_assert_eq!($type::decode(&bytes), Ok(Some((item, bytes.len() - 2))));
    }};
}

proptest! {
    #[test]
    fn messages_read_back(
        (subject, name, reply) in (word(), word(), proptest::option::of(word())),
        headers in headers(),
        payload in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let (subject, name, reply) = (&subject[..], &name[..], reply.as_deref());
        let (headers, payload) = (&headers[..], &payload[..]);
        reads_back!(FromServer::Message { subject, subscription: name, reply, headers, payload }, FromServer);
        reads_back!(FromClient::Publish { subject, reply, headers, payload }, FromClient);
    }

    #[test]
    fn lines_read_back(
        (subject, name, group) in (word(), word(), proptest::option::of(word())),
        after in proptest::option::of(0..u64::from(u32::MAX)),
        text in "[a-z]([ -~]{0,20}[a-z])?",
    ) {
        let (subject, name, group, text) = (&subject[..], &name[..], group.as_deref(), text.as_bytes());
        reads_back!(FromServer::Info(text), FromServer);
        reads_back!(FromServer::Error(text), FromServer);
        reads_back!(FromServer::Ping, FromServer);
        reads_back!(FromServer::Pong, FromServer);
        reads_back!(FromServer::Ok, FromServer);
        reads_back!(FromClient::Connect(text), FromClient);
        reads_back!(FromClient::Subscribe { subject, group, subscription: name }, FromClient);
        reads_back!(FromClient::Unsubscribe { subscription: name, after }, FromClient);
        reads_back!(FromClient::Ping, FromClient);
        reads_back!(FromClient::Pong, FromClient);
    }

    /// Half of the bytes come from the protocol's alphabet, so that more of them get past the first
    /// checks.
    #[test]
    fn any_bytes_are_survived(
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), proptest::sample::select(b"MSGHPUB 0123\r\n".to_vec())], 0..60),
        word in proptest::sample::select(vec!["", "MSG ", "HMSG ", "INFO ", "-ERR ", "PUB ", "HPUB ", "SUB ", "UNSUB "]),
    ) {
        let bytes = [word.as_bytes(), &bytes].concat();
        if let Ok(Some((_, taken))) = FromServer::decode(&bytes) {
            prop_assert!((1..=bytes.len()).contains(&taken));
        }
        if let Ok(Some((_, taken))) = FromClient::decode(&bytes) {
            prop_assert!((1..=bytes.len()).contains(&taken));
        }
    }
}

/// The lines in the documentation of the protocol.
#[test]
fn known_lines() {
    let message = |bytes: &'static [u8]| match FromServer::decode(bytes).unwrap().unwrap() {
        (FromServer::Message { subject, subscription, reply, headers, payload }, taken) if taken == bytes.len() => {
            (subject, subscription, reply, headers, payload)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(
        message(b"MSG FOO.BAR 9 11\r\nHello World\r\n"),
        (&b"FOO.BAR"[..], &b"9"[..], None, &b""[..], &b"Hello World"[..])
    );
    assert_eq!(
        message(b"msg\tFOO.BAR  9 GREETING.34 0 \r\n\r\n"),
        (&b"FOO.BAR"[..], &b"9"[..], Some(&b"GREETING.34"[..]), &b""[..], &b""[..])
    );
    assert_eq!(
        message(b"HMSG FOO.BAR 9 34 45\r\nNATS/1.0\r\nFoodGroup: vegetable\r\n\r\nHello World\r\n"),
        (&b"FOO.BAR"[..], &b"9"[..], None, &b"NATS/1.0\r\nFoodGroup: vegetable\r\n\r\n"[..], &b"Hello World"[..])
    );
    assert_eq!(
        FromServer::decode(b"-ERR 'Unknown Protocol Operation'\r\n"),
        Ok(Some((FromServer::Error(b"Unknown Protocol Operation"), 35)))
    );
}

#[test]
fn what_is_no_word_is_refused() {
    for (bytes, says) in [
        (&b"HTTP/1.1 400 Bad Request"[..], "none of MSG"),
        (b"\x16\x03\x01", "none of MSG"),
        (b"MSGX", "none of MSG"),
        (b"PINGS", "none of MSG"),
        (b"PING x\r\n", "does not fit"),
        (b"PING\n", "none of MSG"),
        (b"PING \n", "no CR LF"),
        (b"MSG 1\r\n", "does not fit"),
        (b"MSG a 1\r\n\n\r\n", "does not fit"),
        (b"MSG a 1 2 3 4 5 6\r\n", "does not fit"),
        (b"MSG a b c d 1\r\n1\r\n", "does not fit"),
        (b"MSG a 1 -1\r\n", "does not fit"),
        (b"MSG a 1 67108865\r\n", "longer than"),
        (b"MSG a 1 99999999999999999999\r\n", "does not fit"),
        (b"MSG a 1 2\r\nabc\r\n", "no CR LF follows"),
        (b"HMSG a 1 12\r\n", "does not fit"),
        (b"HMSG a 1 3 2\r\n", "does not fit"),
        (b"HMSG a 1 3 3\r\nabc\r\n", "NATS/1.0"),
    ] {
        let error = FromServer::decode(bytes).unwrap_err();
        assert!(error.0.contains(says), "{}: {error}", bytes.escape_ascii());
    }
    for bytes in [&b"SUB a\r\n"[..], b"SUB a b c d\r\n", b"UNSUB\r\n", b"UNSUB 1 x\r\n", b"PUB 5\r\n", b"MSG a 1 0\r\n"]
    {
        assert!(FromClient::decode(bytes).is_err(), "{}", bytes.escape_ascii());
    }
}

#[test]
fn lines_have_an_end() {
    let long = |word: &str, bytes: usize| format!("{word} {}", "x".repeat(bytes - word.len() - 1)).into_bytes();
    assert_eq!(FromServer::decode(&long("MSG", MAX_LINE_BYTES - 1)), Ok(None));
    assert!(FromServer::decode(&long("MSG", MAX_LINE_BYTES)).is_err());
    assert_eq!(FromServer::decode(&long("INFO", MAX_INFO_BYTES - 1)), Ok(None));
    assert!(FromServer::decode(&long("INFO", MAX_INFO_BYTES)).is_err());
}
