//! The test vectors of the agent protocol: an agent written from its page alone
//! gets the same bytes and the same instants as the built-in one.

use pubmark_load::seal::seal;
use pubmark_model::header::{Header, body_at, pattern};
use pubmark_model::payload::{MessageSizes, PayloadSizes, SizeClass};
use pubmark_model::profile::Profile;
use pubmark_model::schedule::Schedule;
use pubmark_model::workload::{Arrival, Workload};
use pubmark_stats::Random;
use std::fmt::Write;

const VECTORS: &str = include_str!("../../../docs/examples/agent-protocol-vectors.txt");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn dues(mut schedule: Schedule, count: usize) -> String {
    let due = |_| {
        let due = schedule.due();
        schedule.advance();
        due.to_string()
    };
    (0..count).map(due).collect::<Vec<_>>().join(", ")
}

/// Returns the schedule of a tree of 20 publishers, with one message a second each.
fn tree(publisher: u32) -> String {
    let tree = [("pattern", "tree"), ("publishers", "20"), ("subscribers", "2"), ("arrival", "burst:5"), ("rate", "1")];
    let workload = Workload { seed: 1, ..Workload::of(tree).unwrap() };
    dues(Schedule::of(&workload, Profile::constant(1_000), publisher), 2)
}

fn vectors() -> String {
    let mut lines = Vec::new();
    let mut random = Random(0x7075_626d_6172_6b31);
    let outputs: Vec<String> = (0..3).map(|_| format!("0x{:016x}", random.bits())).collect();
    lines.push(format!("SplitMix64 from 0x7075626d61726b31: {}", outputs.join(", ")));
    let mut message = pattern(40);
    let header = Header {
        intended_ns: 1_000_000_000,
        publisher: 7,
        sequence: 258,
        sent_ns: Some(1_000_040_000),
        free_ns: Some(1_000_015_000),
    };
    assert!(header.write(&mut message));
    lines.push(format!("message of 40 bytes: {}", hex(&message)));
    seal(&mut message);
    lines.push(format!("the same with header_checksum: {}", hex(&message)));
    lines.push(format!("CRC-32C of its header: 0x{:08x}", crc32c::crc32c(&message[..32])));
    for length in [28, 64, 1_024] {
        let body = &pattern(length)[body_at(length)..];
        lines.push(format!("CRC-32C of the body of {length} bytes: 0x{:08x}", crc32c::crc32c(body)));
    }
    let poisson =
        |seed, publisher, per_ks| Schedule::new(Arrival::Poisson, Profile::constant(per_ks), publisher, 4, seed);
    lines.push(format!("poisson, seed 1, publisher 0, 1000/s: {}", dues(poisson(1, 0, 1_000_000), 4)));
    lines.push(format!("poisson, seed 1, publisher 3, 1000/s: {}", dues(poisson(1, 3, 1_000_000), 4)));
    let seed = 0xfedc_ba98_7654_3210_u64;
    lines.push(format!("poisson, seed {seed}, publisher 1, 2.5/s: {}", dues(poisson(seed, 1, 2_500), 3)));
    let class = SizeClass { weight: 1, least: 64, most: 4_096 };
    let sizes = MessageSizes::new(PayloadSizes::new(String::new(), vec![class]).unwrap(), 1);
    let lengths = (0..4).map(|sequence| sizes.bytes(3, sequence).to_string()).collect::<Vec<_>>().join(", ");
    lines.push(format!("lengths of classes [[1, 64, 4096]], seed 1, publisher 3: {lengths}"));
    lines.push(format!(
        "uniform, publisher 1 of 4, 3000/s: {}",
        dues(Schedule::new(Arrival::Uniform, Profile::constant(3_000_000), 1, 4, 1), 4)
    ));
    lines.push(format!(
        "burst:3, publisher 1 of 4, 1000/s: {}",
        dues(Schedule::new(Arrival::Burst(3), Profile::constant(1_000_000), 1, 4, 1), 4)
    ));
    lines.push(format!("tree, burst:5, seed 1, 20 publishers, 2 subscribers, 1/s, publisher 0: {}", tree(0)));
    lines.push(format!("tree, the same, publisher 16: {}", tree(16)));
    lines.join("\n")
}

#[test]
fn the_file_has_the_vectors_that_the_program_has() {
    let wanted = vectors();
    assert!(VECTORS.trim_end() == wanted, "docs/examples/agent-protocol-vectors.txt should have:\n{wanted}");
}
