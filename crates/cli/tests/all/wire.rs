//! Bytes of a network interface per message agree with the protocols below it: each run has its own network namespace,
//! and so its own loopback interface.

use crate::left_out::leave_out;
use crate::support::{Place, stderr};
use serde_json::Value;
use std::process::{Command, Stdio};

const ATTEMPTS: usize = 6;
const WHY: &str = "network namespaces cannot be made here";
/// Arguments without the options that make a run what it is.
const BENCH: [&str; 12] =
    ["bench", "kernel", "--warmup", "300ms", "--duration", "2s", "--repeats", "1", "--json", "-q", "--out", "r"];

/// Returns the record of a run in its own namespace; `None` if there can be none.
fn alone(options: &[&str]) -> Option<Value> {
    let own = || {
        let mut command = Command::new("unshare");
        command.args(["-n", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""]).stdin(Stdio::null());
        command
    };
    let possible = own().args(["true"]).stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        return None;
    }
    let place = Place::new();
    let inner = place.command(&BENCH);
    let mut command = own();
    command.arg(inner.get_program()).args(inner.get_args()).args(options).current_dir(place.0.path());
    let output = command.env("TMPDIR", place.tmp()).output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!(told["runs"][0]["error"], Value::Null);
    Some(told["runs"][0].clone())
}

/// Returns the bytes on the wire for each message sent in the window's time: on a busy machine some of those that were
/// due in it are sent after it.
fn each(record: &Value) -> f64 {
    let interfaces = record["wire"]["interfaces"].as_array().unwrap();
    assert_eq!((interfaces.len(), &interfaces[0]["name"]), (1, &Value::from("lo")));
    assert_eq!(interfaces[0]["at_rest_bytes_per_s"], 0.0, "nobody else is here");
    assert_eq!(interfaces[0]["sent_bytes"], record["wire"]["sent_bytes"]);
    let sent: u64 = record["series"]["sent"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum();
    record["wire"]["sent_bytes"].as_f64().unwrap() / sent as f64
}

/// Plays until the result is this close to the truth: if the machine delays a snapshot, a window's edge is misplaced. A
/// wrong instrument is wrong each time.
fn settle(what: &str, options: &[&str], due: f64, share: f64) {
    let mut found = Vec::new();
    while found.len() < ATTEMPTS {
        let Some(record) = alone(options) else { return leave_out(what, WHY) };
        found.push(each(&record));
        if (found[found.len() - 1] / due - 1.0).abs() <= share {
            return;
        }
    }
    panic!("{what}: {found:?} bytes for a message, and it is {due}");
}

#[test]
fn a_datagram_is_its_payload_with_the_headers_of_ip_and_udp() {
    for payload in [64.0, 1_000.0] {
        let size = format!("{payload}B");
        let options = ["--rate", "1000", "--payload", &size, "--transport", "udp"];
        // With an Ethernet header it would be 15 and 1.4 % more.
        settle("a_datagram_is_its_payload", &options, payload + 20.0 + 8.0, 0.005);
    }
}

#[test]
fn a_round_trip_over_tcp_has_two_lengths_and_headers_and_an_acknowledgement() {
    let options = ["--pattern", "request-reply", "--rate", "20", "--payload", "64B", "--transport", "tcp"];
    // IPv4 and TCP with time stamps. The reply acknowledges the request; the next request comes too late to acknowledge
    // the reply.
    let due = 2.0 * (64.0 + 4.0 + 52.0) + 52.0;
    // Without the lengths it would be 2.7 % less.
    settle("a_round_trip_over_tcp", &options, due, 0.013);
}

#[test]
fn what_goes_over_no_interface_has_no_bytes_there() {
    for transport in ["ipc", "inproc"] {
        let record = Place::new().bench(&["kernel", "--rate", "1000", "--transport", transport]).record;
        assert_eq!(record["wire"], Value::Null, "{transport}");
        let discovery_ns = record["discovery_ns"].as_u64().unwrap();
        assert!(discovery_ns > 0, "{transport}");
    }
}
