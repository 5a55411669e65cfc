use super::read::{self, Reader};
use super::*;
use crate::Malformed;
use proptest::prelude::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// Returns the messages of the batches, which must be complete.
fn items(mut bytes: &[u8]) -> Result<Vec<TransportItem<'_>>, Malformed> {
    let mut items = Vec::new();
    while let Some((mut batch, taken)) = BatchReader::decode(bytes)? {
        while let Some(item) = batch.next_item()? {
            items.push(item);
        }
        bytes = &bytes[taken..];
    }
    assert!(bytes.is_empty(), "a batch is cut off");
    Ok(items)
}

/// Bytes between zenoh 1.10.2 as a client (crate zenoh, Python API) and as a router, as a proxy between them showed
/// them.
const INIT_SYN: &str = "2000 c109f2a2ba4045fbdb022fc77b2d1317916d7e 0ac8ff 81 c205a5febb860a 2701";
const INIT_ACK: &str = "4b00 e109f007ecfdc094c7425417e62a665ab5caf4 0a00c0 31
    30b176935d001b7031fce5f610884cd85e79d67f03b365224fc12a243d03e75bd44afe04fd0bd7dbaf9bac3d9268ef5aa3 812701";
const OPEN_SYN: &str = "3800 420a96c8a030 31
    30b176935d001b7031fce5f610884cd85e79d67f03b365224fc12a243d03e75bd44afe04fd0bd7dbaf9bac3d9268ef5aa3";
const OPEN_ACK: &str = "0600 620aad99e131";
const DECLARE_KEY: &str = "1900 a596c8a0303100 9e2108 2001000b7075626d61726b2f722f30";
const DECLARE_SUBSCRIBER: &str = "0d00 a597c8a0303100 9e2108 420101";
const DECLARE_KEY_AND_INTEREST: &str = "1f00 a598fdcb633100 9e2108 2001000b7075626d61726b2f722f30 f90153012108";
const FINAL: &str = "0c00 a589a98a3f3100 be01 2108 1a";
const PUT: &str = "1000 2598fdcb63 dd01210d 01 05 68656c6c6f";
const PUT_FROM_ROUTER: &str =
    "2a00 25ad99e131 9d01210d 21e089e1d4fee4e7846b1007ecfdc094c7425417e62a665ab5caf4 05 68656c6c6f";
const CLOSE: &str = "0200 2300";

#[test]
fn a_session_of_the_library_is_understood() {
    let bytes = [INIT_SYN, OPEN_SYN, OPEN_ACK, DECLARE_KEY, DECLARE_SUBSCRIBER].map(hex).concat();
    let found = items(&bytes).unwrap();
    let TransportItem::InitSyn(terms) = found[0] else { panic!("{:?}", found[0]) };
    assert_eq!((terms.version, terms.kind, terms.id.len(), terms.id[0]), (VERSION, NodeKind::Client, 16, 0xA2));
    assert_eq!((terms.resolution, terms.batch_bytes, terms.patch), (DEFAULT_RESOLUTION, 0xFFC8, 1));
    let TransportItem::OpenSyn { lease_ms: 10_000, first: 0x0608_2416, cookie } = found[1] else {
        panic!("{:?}", found[1])
    };
    assert_eq!(cookie.len(), 49);
    assert_eq!(found[2], TransportItem::OpenAck { lease_ms: 10_000, first: 0x0638_4CAD });
    assert_eq!(found[3], TransportItem::Frame { reliable: true, number: 0x0608_2416 });
    let key = KeyExpr { scope: 0, by_sender: true, suffix: b"pubmark/r/0" };
    let declared = |declaration| TransportItem::Network(NetworkItem::Declare(None, declaration));
    assert_eq!(found[4], declared(Declaration::Key(1, key)));
    assert_eq!(found[6], declared(Declaration::Subscriber(1, KeyExpr::declared(1))));

    let bytes = [DECLARE_KEY_AND_INTEREST, FINAL, PUT, PUT_FROM_ROUTER, CLOSE].map(hex).concat();
    let found = items(&bytes).unwrap();
    let network = |index: usize| match found[index] {
        TransportItem::Network(item) => item,
        other => panic!("{other:?}"),
    };
    let interest =
        NetworkItem::Interest { number: 1, mode: InterestMode::CurrentFuture, key: Some(KeyExpr::declared(1)) };
    assert_eq!((network(1), network(2)), (NetworkItem::Declare(None, Declaration::Key(1, key)), interest));
    assert_eq!(network(4), NetworkItem::Declare(Some(1), Declaration::Final));
    assert_eq!(network(6), NetworkItem::Put { key: KeyExpr::declared(1), payload: b"hello" });
    let ours = KeyExpr { scope: 1, by_sender: false, suffix: b"" };
    assert_eq!(network(8), NetworkItem::Put { key: ours, payload: b"hello" });
    assert_eq!(found[9], TransportItem::Close(0));
}

#[test]
fn an_acknowledged_init_has_a_cookie() {
    let bytes = hex(INIT_ACK);
    let found = items(&bytes).unwrap();
    let TransportItem::InitAck(terms, cookie) = found[0] else { panic!("{:?}", found[0]) };
    assert_eq!((terms.kind, terms.batch_bytes, cookie.len(), terms.patch), (NodeKind::Router, 0xC000, 49, 1));
}

#[test]
fn a_put_is_written_as_the_library_writes_it() {
    let mut out = Vec::new();
    let mut channel = FrameChannel::new(true, DEFAULT_RESOLUTION);
    channel.next = 0x0C72_FE98;
    channel.put_push(&mut out, KeyExpr::declared(1), DATA_PRIORITY | DO_NOT_DROP, b"hello", u16::MAX);
    assert_eq!(out, hex(PUT));
    out.clear();
    TransportItem::Close(0).put(&mut out);
    assert_eq!(out, hex(CLOSE));
}

#[test]
fn a_long_put_travels_in_fragments_that_fit() {
    for (bytes, batch_bytes) in [(100_000, 0xC000), (400, 300), (70_000, u16::MAX), (65_510, u16::MAX)] {
        let payload: Vec<u8> = (0..bytes).map(|place: u32| place as u8).collect();
        let (mut out, mut channel) = (Vec::new(), FrameChannel::new(false, DEFAULT_RESOLUTION));
        let key = KeyExpr::text(b"a/b");
        channel.put_push(&mut out, key, DATA_PRIORITY, &payload, batch_bytes);
        let (mut message, mut marks, mut rest) = (Vec::new(), Vec::new(), &out[..]);
        while let Some((mut batch, taken)) = BatchReader::decode(rest).unwrap() {
            assert!(taken <= usize::from(batch_bytes), "{taken}");
            let Some(TransportItem::Fragment { reliable: false, number, first, more, dropped: false, part }) =
                batch.next_item().unwrap()
            else {
                panic!("no fragment")
            };
            assert_eq!(number as usize, marks.len());
            marks.push((first, more));
            message.extend_from_slice(part);
            rest = &rest[taken..];
        }
        assert!(rest.is_empty() && !marks.is_empty(), "{bytes}");
        let last = marks.len() - 1;
        assert!(marks.iter().enumerate().all(|(place, mark)| *mark == (place == 0, place < last)), "{marks:?}");
        assert_eq!(NetworkItem::decode(&message), Ok(NetworkItem::Put { key, payload: &payload }));
    }
}

fn number(item: &TransportItem<'_>) -> Option<u32> {
    if let TransportItem::Frame { number, .. } = item { Some(*number) } else { None }
}

#[test]
fn messages_join_the_frame_before_them_until_the_batch_is_full() {
    let key = KeyExpr::declared(1);
    let mut channel = FrameChannel::new(true, DEFAULT_RESOLUTION);
    let mut out = Vec::new();
    let mut put = |out: &mut Vec<u8>, qos: u8| channel.put_push(out, key, qos, &[7; 100], 400);
    (0..5).for_each(|_| put(&mut out, DATA_PRIORITY));
    put(&mut out, DATA_PRIORITY | EXPRESS);
    let found = items(&out).unwrap();
    let numbers: Vec<u32> = found.iter().filter_map(number).collect();
    let puts = found.iter().filter(|item| matches!(item, TransportItem::Network(NetworkItem::Put { .. })));
    assert_eq!((numbers, puts.count()), (vec![0, 1, 2], 6));
    // Another buffer, and one that ends with something else, get a frame of their own.
    let mut other = Vec::new();
    put(&mut other, DATA_PRIORITY);
    TransportItem::KeepAlive.put(&mut other);
    put(&mut other, DATA_PRIORITY);
    assert_eq!(items(&other).unwrap().iter().filter_map(number).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn numbers_of_frames_wrap_at_their_resolution() {
    for (resolution, last) in [(0, 0x7F), (1, 0x3FFF), (DEFAULT_RESOLUTION, 0x0FFF_FFFF)] {
        let mut channel = FrameChannel::new(true, resolution);
        channel.next = last;
        let (mut out, keep) = (Vec::new(), NetworkItem::Administration);
        channel.put_frame(&keep, &mut out);
        channel.put_frame(&keep, &mut out);
        let numbers: Vec<u32> = items(&out).unwrap().iter().filter_map(number).collect();
        assert_eq!(numbers, [last, 0]);
    }
}

#[test]
fn what_is_not_understood_is_an_error() {
    let batch = |text: &str| {
        let bytes = hex(text);
        [&(bytes.len() as u16).to_le_bytes()[..], &bytes].concat()
    };
    let fault = |text: &str| items(&batch(text)).unwrap_err().0;
    // A mandatory extension of a frame, of a Push, and of a Put (shared memory); a query; a network message outside of
    // a frame; a reserved encoding.
    for (text, expected) in [
        ("a50014", "extension 4"),
        ("2500 9d0014 0100", "extension 4"),
        ("2500 1d00 8112 00", "extension 2"),
        ("2500 1c01", "0x1C"),
        ("1d00", "begins with 0x1D"),
        ("041d00", "outside of a frame"),
        ("a50060", "encoding"),
        ("", "empty"),
        ("2500 1d00", "ends before its end"),
    ] {
        assert!(fault(text).contains(expected), "{text}: {}", fault(text));
    }
    // An optional one is skipped.
    assert_eq!(items(&batch("2500 9d0004 010141")).unwrap().len(), 2);
    let foreign = BatchReader::decode(b"HTTP/1.1 400").unwrap_err();
    assert!(foreign.0.contains("0x54"), "{foreign}");
}

#[test]
fn batches_are_cut_anywhere() {
    let bytes = [INIT_SYN, PUT, FINAL].map(hex).concat();
    for cut in 0..hex(INIT_SYN).len() {
        assert!(BatchReader::decode(&bytes[..cut]).unwrap().is_none());
    }
    assert_eq!((BatchReader::announced(&bytes[..1]), BatchReader::announced(&bytes[..2])), (1, 34));
}

fn key_expr() -> impl Strategy<Value = (u16, bool, Vec<u8>)> {
    (any::<u16>(), any::<bool>(), prop::collection::vec(any::<u8>(), 0..300))
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut framed = (bytes.len() as u16).to_le_bytes().to_vec();
        framed.extend_from_slice(&bytes);
        if let Ok(Some((mut batch, _))) = BatchReader::decode(&framed) {
            while let Ok(Some(_)) = batch.next_item() {}
        }
        let _ = NetworkItem::decode(&bytes);
    }

    #[test]
    fn numbers_read_back(number in any::<u64>()) {
        let mut out = Vec::new();
        read::put_number(&mut out, number);
        prop_assert_eq!(Reader::new(&out).number(), Ok(number));
    }

    #[test]
    fn messages_read_back((scope, by_sender, suffix) in key_expr(), number in any::<u32>(), id in any::<u16>()) {
        let key = KeyExpr { scope, by_sender, suffix: &suffix };
        let declared = KeyExpr { by_sender: true, ..key };
        for item in [
            NetworkItem::Put { key, payload: &suffix },
            NetworkItem::Delete(key),
            NetworkItem::Declare(Some(number), Declaration::Key(id, declared)),
            NetworkItem::Declare(None, Declaration::KeyGone(id)),
            NetworkItem::Declare(None, Declaration::Subscriber(number, key)),
            NetworkItem::Declare(None, Declaration::SubscriberGone(number)),
            NetworkItem::Declare(Some(number), Declaration::Other),
            NetworkItem::Interest { number, mode: InterestMode::Current, key: Some(key) },
            NetworkItem::Interest { number, mode: InterestMode::Future, key: None },
            NetworkItem::Interest { number, mode: InterestMode::Final, key: None },
            NetworkItem::Administration,
        ] {
            let mut out = Vec::new();
            FrameChannel::new(true, DEFAULT_RESOLUTION).put_frame(&item, &mut out);
            let frame = TransportItem::Frame { reliable: true, number: 0 };
            prop_assert_eq!(items(&out), Ok(vec![frame, TransportItem::Network(item)]));
        }
    }
}
