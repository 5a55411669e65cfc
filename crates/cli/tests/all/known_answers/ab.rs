//! Two peers as the two arms of a comparison: a delay that is 10 % larger is found, and an equal one is not called
//! slower.

use super::{Peer, alone};
use crate::left_out::is_long;
use crate::support::{Place, stderr, stdout};
use pubmark_model::line::JsonLine;
use pubmark_model::record::{RunRecord, Verdict};

/// Measures two arms, each a peer with its own delay. Returns the report's line about the gate.
///
/// Delays are of 100 ms, a tenth of which no machine adds by itself to half of all messages: so runs that are
/// unreliable because of a busy machine are used nevertheless.
fn gate(protocol: &str, delays: [&str; 2], gate: &str) -> String {
    let _alone = alone();
    let place = Place::new();
    let peers = delays.map(|delay| Peer::start(&place, protocol, &format!("delay = {{ fixed = \"{delay}\" }}")));
    let [a, b] = peers.each_ref().map(|peer| format!("options.endpoint={}", peer.endpoint));
    let workload = ["--pairs", "1", "--payload", "64B", "--rate", "200", "--warmup", "200ms", "--duration", "1s"];
    let arms = ["--a", a.as_str(), "--b", b.as_str(), "--fail-on", gate, "--budget", "40s", "--out", "r"];
    let output = place.run(&[&["ab", peers[0].endpoint.as_str()], &workload[..], &arms[..]].concat());
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{}", stderr(&output));
    peers.into_iter().for_each(|peer| {
        peer.end();
    });
    let path = place.path("r/runs.jsonl");
    let records = std::fs::read_to_string(&path).unwrap();
    let quiet = records.lines().map(|line| {
        let mut run = RunRecord::from_json(line.as_bytes()).unwrap();
        assert_eq!((&run.error, run.counts.lost), (&None, 0), "both peers serve");
        run.verdict = Verdict { valid: true, ..Verdict::default() };
        serde_json::to_string(&run).unwrap() + "\n"
    });
    std::fs::write(&path, quiet.collect::<String>()).unwrap();
    let report = stdout(&place.run(&["report", "r"]));
    let said = report.lines().find(|line| line.contains(&format!("`{gate}`")));
    said.unwrap_or_else(|| panic!("{report}\n{}", stderr(&output))).to_owned()
}

#[test]
fn a_delay_of_a_tenth_is_found_over_mqtt() {
    let said = gate("mqtt", ["100ms", "110ms"], "p50 > +2%");
    assert!(said.contains("broken: p50 "), "{said}");
}

#[test]
fn equal_delays_raise_no_alarm_over_mqtt() {
    if !is_long("equal_delays_raise_no_alarm_over_mqtt") {
        return;
    }
    let said = gate("mqtt", ["100ms", "100ms"], "p50 > +2%");
    // A busy machine may leave it undecided.
    assert!(said.contains(": p50 ") && !said.contains("broken"), "{said}");
}
