//! Tests with vectors written by hand from the standards, and properties of any packet.

use super::server::{ConnectPacket, Filters, Will};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

const V3: Version = Version::V3_1_1;
const V5: Version = Version::V5;

fn whole(bytes: &[u8], version: Version) -> Packet<'_> {
    let (packet, used) = decode(bytes, version).unwrap().unwrap();
    assert_eq!(used, bytes.len());
    packet
}

fn message<'a>(qos: Qos, id: u16, topic: &'a str, payload: &'a [u8]) -> Publish<'a> {
    Publish::plain(qos, id, topic, payload)
}

fn hello(client_id: &str) -> ConnectPacket<'_> {
    ConnectPacket { keep_alive_s: 10, ..ConnectPacket::clean(client_id) }
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

#[test]
fn what_a_client_sends_is_what_the_standards_show() {
    let connect = |version, connect| written(|out| encode::connect(out, version, &connect).unwrap());
    // The variable header of the example in 3.1.2.10 of either standard: user,
    // password, will at QoS 1, clean, keep alive 10 s.
    let full = ConnectPacket {
        user: Some("u"),
        password: Some(b"p"),
        will: Some(Will { topic: "w", payload: b"!", qos: Qos::AtLeastOnce, retain: false }),
        ..hello("c")
    };
    let head = b"\x00\x04MQTT\x04\xCE\x00\x0A";
    assert_eq!(connect(V3, full), [b"\x10\x19", &head[..], b"\0\x01c\0\x01w\0\x01!\0\x01u\0\x01p"].concat());
    let asking = ConnectPacket { session_expiry_s: 10, receive_maximum: 7, ..hello("") };
    assert_eq!(connect(V5, asking), b"\x10\x15\x00\x04MQTT\x05\x02\x00\x0A\x08\x11\0\0\0\x0A\x21\0\x07\0\0");
    // 3.3.2.3 with a payload.
    let publish = message(Qos::AtLeastOnce, 10, "a/b", b"x");
    assert_eq!(written(|out| encode::publish(out, V3, &publish).unwrap()), b"\x32\x08\0\x03a/b\0\x0Ax");
    let publish = Publish { dup: true, retain: true, ..publish };
    assert_eq!(written(|out| encode::publish(out, V5, &publish).unwrap()), b"\x3B\x09\0\x03a/b\0\x0A\0x");
    // 3.8.3: a/b at QoS 1 and c/d at QoS 2; 3.10.3: an UNSUBSCRIBE of both.
    let both = [("a/b", Qos::AtLeastOnce), ("c/d", Qos::ExactlyOnce)];
    let subscribe = |version| written(|out| encode::subscribe(out, version, 10, &both).unwrap());
    assert_eq!(subscribe(V3), b"\x82\x0E\0\x0A\0\x03a/b\x01\0\x03c/d\x02");
    assert_eq!(subscribe(V5), b"\x82\x0F\0\x0A\0\0\x03a/b\x01\0\x03c/d\x02");
    let unsubscribe = |version| written(|out| encode::unsubscribe(out, version, 10, &["a/b", "c/d"]).unwrap());
    assert_eq!(unsubscribe(V3), b"\xA2\x0C\0\x0A\0\x03a/b\0\x03c/d");
    assert_eq!(unsubscribe(V5), b"\xA2\x0D\0\x0A\0\0\x03a/b\0\x03c/d");
    assert_eq!(written(encode::pingreq), b"\xC0\0");
    assert_eq!(written(|out| encode::disconnect(out, V3, 0, Some(0))), b"\xE0\0");
    assert_eq!(written(|out| encode::disconnect(out, V5, 0, Some(0))), b"\xE0\x07\0\x05\x11\0\0\0\0");
    let ack = Ack { id: 0x1234, reason: 0x92 };
    assert_eq!(written(|out| encode::pubrel(out, V3, ack)), b"\x62\x02\x12\x34");
    assert_eq!(written(|out| encode::pubrel(out, V5, ack)), b"\x62\x03\x12\x34\x92");
}

#[test]
fn what_a_client_receives_is_read() {
    assert_eq!(whole(b"\x20\x02\0\x05", V3), Packet::Connack(Connack::new(5)));
    let present = Connack { session_present: true, ..Connack::new(0) };
    assert_eq!(whole(b"\x20\x02\x01\0", V3), Packet::Connack(present));
    let limits = Connack {
        receive_maximum: 20,
        maximum_qos: Qos::AtLeastOnce,
        retain_available: false,
        maximum_packet_bytes: Some(65536),
        wildcards_available: false,
        shared_available: false,
        session_expiry_s: Some(7_200),
        keep_alive_s: Some(5),
        text: Some("no"),
        ..Connack::new(0x87)
    };
    let bytes =
        b"\x20\x20\0\x87\x1D\x21\0\x14\x24\x01\x25\0\x27\0\x01\0\0\x13\0\x05\x1F\0\x02no\x28\0\x2A\0\x11\0\0\x1C\x20";
    assert_eq!(whole(bytes, V5), Packet::Connack(limits));
    let properties =
        b"\x01\x01\x02\0\0\0\x09\x03\0\x01t\x08\0\x01r\x09\0\x01\0\x0B\xFF\x01\x0B\x02\x26\0\x01k\0\x01v\x26\0\0\0\0";
    let body = [b"\0\x01t", &[properties.len() as u8][..], properties, b"payload"].concat();
    let publish = [&[0x30, body.len() as u8][..], &body].concat();
    let request =
        Publish { response_topic: Some("r"), correlation: Some(&[0]), ..message(Qos::AtMostOnce, 0, "t", b"payload") };
    assert_eq!(whole(&publish, V5), Packet::Publish(request));
    let aliased = Publish { alias: Some(9), ..message(Qos::ExactlyOnce, 1, "", b"") };
    assert_eq!(whole(b"\x34\x08\0\0\0\x01\x03\x23\0\x09", V5), Packet::Publish(aliased));
    for (bytes, reason) in [(&b"\x40\x02\0\x07"[..], 0), (b"\x40\x03\0\x07\x10", 16), (b"\x40\x04\0\x07\x87\0", 0x87)] {
        assert_eq!(whole(bytes, V5), Packet::Puback(Ack { id: 7, reason }));
    }
    assert_eq!(whole(b"\x90\x03\0\x01\x80", V3), Packet::Suback { id: 1, codes: &[0x80], text: None });
    let said = Packet::Suback { id: 1, codes: &[0x9E], text: Some("x") };
    assert_eq!(whole(b"\x90\x08\0\x01\x04\x1F\0\x01x\x9E", V5), said);
    assert_eq!(whole(b"\xB0\x02\0\x01", V3), Packet::Unsuback { id: 1, codes: &[] });
    assert_eq!(whole(b"\xB0\x04\0\x01\0\x11", V5), Packet::Unsuback { id: 1, codes: &[0x11] });
    assert_eq!(whole(b"\xD0\0", V3), Packet::Pingresp);
    assert_eq!(whole(b"\xE0\0", V5), Packet::Disconnect { reason: 0, text: None });
    assert_eq!(whole(b"\xE0\x06\x8B\x04\x1F\0\x01x", V5), Packet::Disconnect { reason: 0x8B, text: Some("x") });
    assert_eq!(whole(b"\xF0\x01\x18", V5), Packet::Auth { reason: 0x18 });
}

#[test]
fn refusals_in_the_form_of_the_other_version_are_understood() {
    assert_eq!(whole(b"\x20\x02\0\x01", V5), Packet::Connack(Connack::new(1)));
    assert_eq!(whole(b"\x20\x03\0\x84\0", V3), Packet::Connack(Connack::new(0x84)));
    assert_eq!(reason::connack_words(1), reason::connack_words(0x84));
    assert!(decode(b"\x20\x02\0\0", V5).is_err(), "an acceptance is not");
}

#[test]
fn lengths_of_one_to_four_bytes() {
    for (payload_bytes, header_bytes) in [(124, 2), (125, 3), (16_380, 3), (16_381, 4), (2_097_148, 4), (2_097_149, 5)]
    {
        let payload = vec![7; payload_bytes];
        let bytes = written(|out| {
            encode::publish(out, V3, &message(Qos::AtMostOnce, 0, "t", &payload)).unwrap();
        });
        assert_eq!(bytes.len(), header_bytes + 3 + payload_bytes);
        assert_eq!(whole(&bytes, V3), Packet::Publish(message(Qos::AtMostOnce, 0, "t", &payload)));
    }
    let long = "t".repeat(65_536);
    let mut out = Vec::new();
    assert_eq!(encode::publish(&mut out, V3, &message(Qos::AtMostOnce, 0, &long, b"")), Err(encode::TooLong));
    assert_eq!(encode::subscribe(&mut out, V5, 1, &[(&long, Qos::AtMostOnce)]), Err(encode::TooLong));
    assert!(out.is_empty());
}

#[test]
fn what_is_wrong_is_said() {
    for (bytes, version, says) in [
        (&b"\x00"[..], V3, "begins no packet"),
        (b"\xF0", V3, "AUTH is nothing that a client receives"),
        (b"\x36", V3, "PUBLISH with flags"),
        (b"\x38", V3, "PUBLISH with flags"),
        (b"\x41", V3, "PUBACK with flags"),
        (b"\x60", V3, "PUBREL with flags"),
        (b"\x82", V3, "SUBSCRIBE is nothing"),
        (b"\xE0", V3, "DISCONNECT is nothing"),
        (b"\x30\xFF\xFF\xFF\xFF", V3, "more than four bytes"),
        (b"\xD0\x80\0", V5, "more bytes than it needs"),
        (b"\x30\x04\0\x01\0x", V3, "holds '\\0'"),
        (b"\x30\x04\0\x01#x", V3, "holds '#'"),
        (b"\x30\x04\0\x01+x", V3, "holds '+'"),
        (b"\x30\x03\0\x01\xFF", V3, "not UTF-8"),
        (b"\x30\x03\0\x02x", V3, "ends within a topic"),
        (b"\x30\x02\0\0", V3, "empty topic"),
        (b"\x32\x05\0\x01x\0\0", V3, "packet identifier 0"),
        (b"\x40\x02\0\0", V3, "packet identifier 0"),
        (b"\x40\x03\0\x01\0", V3, "goes on for 1 bytes"),
        (b"\xD0\x01\0", V3, "goes on for 1 bytes"),
        (b"\x20\x02\x02\0", V3, "flags 0x02"),
        (b"\x20\x02\0\x06", V3, "return code 6"),
        (b"\x90\x03\0\x01\x03", V3, "code 0x03"),
        (b"\x90\x03\0\x01\x81", V3, "code 0x81"),
        (b"\x90\x02\0\x01", V3, "without a code"),
        (b"\xB0\x03\0\x01\0", V5, "without a code"),
        (b"\x20\x05\0\0\x02\x21\0", V5, "ends within a property"),
        (b"\x20\x06\0\0\x03\x21\0\0", V5, "property 33 is 0"),
        (b"\x20\x05\0\0\x02\x24\x02", V5, "property 36 is 2"),
        (b"\x20\x07\0\0\x04\x24\x01\x24\x01", V5, "property 36 stands twice"),
        (b"\x20\x05\0\0\x02\x01\x01", V5, "property 1 has no place"),
        (b"\x20\x05\0\0\x02\xFF\x01", V5, "property 255 has no place"),
        (b"\x20\x04\0\0\x09\x24", V5, "9 bytes of properties"),
        (b"\x30\x06\0\x01t\x02\x0B\0", V5, "property 11 is 0"),
        (b"\x30\x08\0\x01t\x04\x08\0\x01#", V5, "holds '#'"),
    ] {
        let error = decode(bytes, version).map(|read| format!("{read:?}")).expect_err(&format!("{bytes:02X?}")).0;
        assert!(error.contains(says), "{bytes:02X?}: {error}");
    }
}

#[test]
fn servers_are_strict_too() {
    for (bytes, says) in [
        (&b"\xC0\0"[..], "PINGREQ before CONNECT"),
        (b"\x10\x0C\0\x06MQIsdp\x03\x02\0\x0A", "is not spoken here"),
        (b"\x10\x0C\0\x04MQTT\x04\x03\0\x0A\0\0", "flags 0x03"),
        (b"\x10\x0C\0\x04MQTT\x04\x0A\0\x0A\0\0", "flags 0x0A"),
        (b"\x10\x0C\0\x04MQTT\x04\x42\0\x0A\0\0", "flags 0x42"),
        (b"\x10\x0D\0\x04MQTT\x04\x02\0\x0A\0\0!", "goes on for"),
    ] {
        let error = server::connect(bytes).expect_err(&format!("{bytes:02X?}")).0;
        assert!(error.contains(says), "{bytes:02X?}: {error}");
    }
    for filter in ["", "a#", "#/a", "a+/b", "a/+b"] {
        let bytes = written(|out| encode::subscribe(out, V3, 1, &[(filter, Qos::AtMostOnce)]).unwrap());
        assert!(server::decode(&bytes, V3).is_err(), "{filter}");
    }
    for filter in ["#", "+", "a/#", "+/a/+", "/", "$share/g/a/#"] {
        let bytes = written(|out| encode::subscribe(out, V3, 1, &[(filter, Qos::AtMostOnce)]).unwrap());
        assert!(server::decode(&bytes, V3).is_ok(), "{filter}");
    }
    assert!(server::decode(b"\x82\x06\0\x01\0\x01a\x04", V3).is_err(), "no local is of MQTT 5");
    assert!(server::decode(b"\x82\x07\0\x01\0\0\x01a\x04", V5).is_ok());
    assert!(server::decode(b"\x30\x06\0\x01t\x02\x0B\x01", V5).is_err(), "a client names no subscription");
}

#[test]
fn codes_have_words() {
    assert_eq!(reason::connack_words(4), "bad user name or password");
    assert_eq!(reason::connack_words(0x87), "not authorised");
    assert_eq!(reason::words(0x97), "quota exceeded");
    assert!(reason::connack_is_temporary(3) && reason::connack_is_temporary(0x89) && !reason::connack_is_temporary(5));
    assert!(!reason::is_temporary(3), "a granted QoS, if anything");
}

fn versions() -> impl Strategy<Value = Version> {
    prop_oneof![Just(V3), Just(V5)]
}

fn qualities() -> impl Strategy<Value = Qos> {
    (0u8..3).prop_map(|number| Qos::from_number(number).unwrap())
}

/// Generates any packet of a server, as bytes.
fn packets(version: Version) -> impl Strategy<Value = Vec<u8>> {
    let topic = "[a-zé$/ ]{1,40}";
    let publish = (any::<bool>(), any::<bool>(), qualities(), 1u16.., topic, vec(any::<u8>(), 0..300));
    let publish = publish.prop_map(move |(dup, retain, qos, id, topic, payload)| {
        let reliable = qos > Qos::AtMostOnce;
        let id = if reliable { id } else { 0 };
        let whole = Publish { dup: dup && reliable, retain, ..message(qos, id, &topic, &payload) };
        written(|out| encode::publish(out, version, &whole).unwrap())
    });
    let ack = (0usize..4, 1u16.., any::<u8>()).prop_map(move |(which, id, reason)| {
        let write = [encode::puback, encode::pubrec, encode::pubrel, encode::pubcomp][which];
        written(|out| write(out, version, Ack { id, reason }))
    });
    let connack = (any::<bool>(), 0u8..6, 1u16.., 0u8..3, proptest::option::of(any::<u16>())).prop_map(
        move |(session_present, code, receive_maximum, qos, keep_alive_s)| {
            let maximum_qos = Qos::from_number(qos).unwrap();
            let connack = Connack { session_present, receive_maximum, maximum_qos, keep_alive_s, ..Connack::new(code) };
            written(|out| encode::connack(out, version, &connack).unwrap())
        },
    );
    let suback = (1u16.., vec(0u8..3, 1..5)).prop_map(move |(id, codes)| {
        let text = (version == V5).then_some("why");
        written(|out| encode::suback(out, version, id, &codes, text).unwrap())
    });
    let unsuback = (1u16..).prop_map(move |id| written(|out| encode::unsuback(out, version, id, &[0, 17]).unwrap()));
    prop_oneof![4 => publish, 4 => ack, 2 => connack, 1 => suback, 1 => unsuback, 1 => Just(written(encode::pingresp))]
}

/// Encodes a packet as its sender would.
fn again(packet: &Packet<'_>, version: Version) -> Vec<u8> {
    written(|out| match *packet {
        Packet::Connack(connack) => encode::connack(out, version, &connack).unwrap(),
        Packet::Publish(publish) => encode::publish(out, version, &publish).unwrap(),
        Packet::Puback(ack) => encode::puback(out, version, ack),
        Packet::Pubrec(ack) => encode::pubrec(out, version, ack),
        Packet::Pubrel(ack) => encode::pubrel(out, version, ack),
        Packet::Pubcomp(ack) => encode::pubcomp(out, version, ack),
        Packet::Suback { id, codes, text } => encode::suback(out, version, id, codes, text).unwrap(),
        Packet::Unsuback { id, codes } => encode::unsuback(out, version, id, codes).unwrap(),
        Packet::Pingresp => encode::pingresp(out),
        Packet::Disconnect { reason, .. } => encode::disconnect(out, version, reason, None),
        Packet::Auth { .. } => {}
    })
}

fn versions_and_packets() -> impl Strategy<Value = (Version, Vec<u8>)> {
    versions().prop_flat_map(|version| (Just(version), packets(version)))
}

proptest! {
    #[test]
    fn packets_come_back_as_they_were((version, bytes) in versions_and_packets(), more in vec(any::<u8>(), 0..9)) {
        let followed = [&bytes[..], &more].concat();
        let (packet, used) = decode(&followed, version).unwrap().unwrap();
        prop_assert_eq!(used, bytes.len());
        prop_assert_eq!(again(&packet, version), bytes);
    }

    #[test]
    fn the_beginning_of_a_packet_is_none((version, bytes) in versions_and_packets()) {
        for length in 0..bytes.len() {
            prop_assert_eq!(decode(&bytes[..length], version), Ok(None));
        }
    }

    #[test]
    fn any_bytes_are_survived(
        version in versions(),
        first in any::<u8>(),
        length in 0u8..60,
        mut bytes in vec(prop_oneof![any::<u8>(), 0u8..4, Just(0x26)], 0..60),
    ) {
        bytes.splice(0..0, [first, length]);
        if let Ok(Some((_, used))) = decode(&bytes, version) {
            prop_assert!(used <= bytes.len());
        }
        if let Ok(Some((_, used))) = server::decode(&bytes, version) {
            prop_assert!(used <= bytes.len());
        }
        let _ = server::connect(&bytes);
    }

    #[test]
    fn damage_is_survived(
        (version, mut bytes) in versions_and_packets(),
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok(Some((_, used))) = decode(&bytes, version) {
            prop_assert!(used <= bytes.len());
        }
    }

    #[test]
    fn a_connect_comes_back_as_it_was(
        version in versions(),
        (name, user, password) in ("[a-z0-9]{0,23}", proptest::option::of("[^\\x00]{0,9}"), vec(any::<u8>(), 0..9)),
        (clean_start, retain, has_will) in any::<(bool, bool, bool)>(),
        (keep_alive_s, expiry, receive_maximum) in (any::<u16>(), any::<u32>(), 1u16..),
        qos in qualities(),
    ) {
        let v5 = version == V5;
        let connect = ConnectPacket {
            client_id: &name,
            clean_start,
            keep_alive_s,
            user: user.as_deref(),
            password: (user.is_some() || v5).then_some(&password[..]),
            will: has_will.then_some(Will { topic: "w/t", payload: &password, qos, retain }),
            session_expiry_s: if v5 { expiry } else if clean_start { 0 } else { u32::MAX },
            receive_maximum: if v5 { receive_maximum } else { u16::MAX },
        };
        let bytes = written(|out| encode::connect(out, version, &connect).unwrap());
        prop_assert_eq!(server::connect(&bytes), Ok(Some((version, connect, bytes.len()))));
        for length in 0..bytes.len() {
            prop_assert_eq!(server::connect(&bytes[..length]), Ok(None));
        }
    }

    #[test]
    fn filters_come_back_as_they_were(
        version in versions(),
        id in 1u16..,
        wanted in vec(("[a-z]{1,9}(/\\+)?(/#)?", qualities()), 1..5),
    ) {
        let asked: Vec<(&str, Qos)> = wanted.iter().map(|(filter, qos)| (&filter[..], *qos)).collect();
        let bytes = written(|out| encode::subscribe(out, version, id, &asked).unwrap());
        let Ok(Some((server::ServerPacket::Subscribe { id: read, filters }, _))) = server::decode(&bytes, version) else {
            return Err(TestCaseError::fail("no SUBSCRIBE"));
        };
        prop_assert_eq!((read, filters.collect::<Vec<_>>()), (id, asked.clone()));
        let names: Vec<&str> = asked.iter().map(|(filter, _)| *filter).collect();
        let bytes = written(|out| encode::unsubscribe(out, version, id, &names).unwrap());
        let Ok(Some((server::ServerPacket::Unsubscribe { filters, .. }, _))) = server::decode(&bytes, version) else {
            return Err(TestCaseError::fail("no UNSUBSCRIBE"));
        };
        prop_assert_eq!(Filters::map(filters, |(filter, _)| filter).collect::<Vec<_>>(), names);
    }
}
