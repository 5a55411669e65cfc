//! What a broker, or whoever answers in its place, says in MQTT: any bytes,
//! cut anywhere. Nothing panics, nothing claims more than it was given, and
//! where the bytes are cut makes no difference.
//!
//! The input is a byte for the settings, one for the size of the pieces, and
//! then what is said.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_load::drivers::mqtt::Mqtt;
use pubmark_load::session::{ClientSpec, SubTopics, Session, SessionError, ClientSettings};
use pubmark_model::endpoint::Endpoint;
use pubmark_model::options::Options;
use pubmark_model::protocol::Role;
use pubmark_model::wire_protocol::Protocol;
use pubmark_wire::mqtt::{Version, decode, server};

/// What a conversation came to.
type Outcome = (Option<SessionError>, Vec<String>, Vec<u8>);

fn settings(flags: u8) -> <Mqtt as Session>::Settings {
    let defaults = Protocol::Mqtt.options().into_iter().filter_map(|spec| Some((spec.name, spec.default?)));
    let mut options: Options = defaults.collect();
    options.insert("mqtt_version".into(), (if flags & 1 == 0 { "3.1.1" } else { "5" }).into());
    let endpoint = Endpoint::parse("mqtt://user:password@localhost").unwrap();
    let (qos, durable, reconnect) = ((flags >> 1 & 3).min(2), flags & 8 != 0, flags & 32 != 0);
    let terms = ClientSettings { endpoint: &endpoint, qos, durable, reconnect, answer_ns: None, run: "r", seed: 0, payload_bytes: 64, headers: None, options: &options, clients: 1 };
    Mqtt::settings(&terms).unwrap()
}

/// Plays one client to its end or its first fault; what is not used of a
/// piece comes again with the next.
fn play(flags: u8, bytes: &[u8], piece_bytes: usize) -> Outcome {
    let settings = settings(flags);
    let role = if flags & 16 == 0 { Role::Publisher } else { Role::Subscriber };
    let spec = ClientSpec { role, id: 0, name: "c".into(), topic: "t".into(), wild: false, leaves: SubTopics::Turns(3), group: None, replays: false, members: 0, reply: None, row: 0, last_will: (flags & 80 == 64).then_some(1) };
    let (mut session, mut out, mut all) = (Mqtt::new(&settings, &spec), Vec::new(), Vec::new());
    session.open(&settings, &spec, &mut out);
    match role {
        Role::Subscriber => session.subscribe(&settings, &spec, &mut out),
        _ => assert!((0..5).all(|sequence| session.publish(&settings, b"message", sequence, &mut out))),
    }
    let (mut from, mut to) = (0, 0);
    while to < bytes.len() {
        to = (to + piece_bytes).min(bytes.len());
        match session.input(&settings, &bytes[from..to], &mut out, &mut |heard| all.push(format!("{heard:?}"))) {
            Ok(used) => from += used,
            Err(fault) => return (Some(fault), all, out),
        }
        assert!(from <= to && session.unacknowledged() <= 5);
    }
    let acknowledged = all.iter().filter(|heard| heard.starts_with("Acknowledged")).count();
    assert!(acknowledged + session.unacknowledged() <= 5, "no message counts twice");
    session.close(&settings, &spec, &mut out);
    (None, all, out)
}

fuzz_target!(|input: &[u8]| {
    for version in [Version::V3_1_1, Version::V5] {
        for used in [
            decode(input, version).ok().flatten().map(|(_, used)| used),
            server::decode(input, version).ok().flatten().map(|(_, used)| used),
            server::connect(input).ok().flatten().map(|(.., used)| used),
        ] {
            assert!(used.is_none_or(|used| used <= input.len()));
        }
    }
    let [flags, piece_bytes, said @ ..] = input else { return };
    // Most of what is tried should get past the greeting.
    let greeting: &[u8] = match flags & 0x41 {
        0x40 => b"\x20\x02\0\0",
        0x41 => b"\x20\x03\0\0\0",
        _ => b"",
    };
    let bytes = [greeting, said].concat();
    let (fault, heard, out) = play(*flags, &bytes, usize::from(*piece_bytes).max(1));
    let (fault_at_once, heard_at_once, out_at_once) = play(*flags, &bytes, usize::MAX >> 1);
    // The text of a fault shows what had arrived.
    assert_eq!(fault.is_some(), fault_at_once.is_some());
    assert_eq!((heard, out), (heard_at_once, out_at_once));
});
