//! A script of the reference peer: what is read has a truth, and that adds up.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_peer::PeerScript;
use pubmark_peer::truth::{truth, uniform};

const SECOND: u64 = 1_000_000_000;

fuzz_target!(|text: &str| {
    let script = match PeerScript::parse(text) {
        Ok(script) => script,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let truth = truth(&script, uniform(2, 20, 2 * SECOND), SECOND, 2 * SECOND);
    assert_eq!(truth.offered, 40);
    assert_eq!(truth.latencies_ns.len() as u64 + truth.lost, truth.offered);
    assert!(truth.acked_lost <= truth.lost);
    assert!(truth.latencies_ns.is_sorted());
    let mut payload = [7; 64];
    script.corrupt.strike(&mut payload);
});
