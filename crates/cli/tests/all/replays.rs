//! Traces that are replayed: each row is a message, due when the file says and as long as it says.

use crate::known_answers::Peer;
use crate::support::{Place, count, stderr, stdout};
use serde_json::Value;
use std::fmt::Write;
use std::ops::Range;

const MS: u64 = 1_000_000;

/// A row: its time in ns, its flow and its size.
type Row = (u64, &'static str, u64);

/// Returns 2 s of traffic: a row every 10 ms in turn of two flows, and 100 at once after 700 ms.
fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = (0..200)
        .map(|number| (number * 10 * MS, if number % 2 == 0 { "a" } else { "b" }, 64 + number % 7 * 100))
        .collect();
    rows.extend((0..100).map(|number| (700 * MS, "a", 40 + number)));
    rows.sort_by_key(|row| row.0);
    rows
}

/// Writes a trace whose first row is at this time.
fn write(place: &Place, name: &str, rows: &[Row], from_ns: u64) {
    let mut text = "time,flow,size\n".to_owned();
    for (at_ns, flow, bytes) in rows {
        let at_ns = from_ns + at_ns;
        let _ = writeln!(text, "{}.{:09},{flow},{bytes}", at_ns / 1_000_000_000, at_ns % 1_000_000_000);
    }
    std::fs::write(place.path(name), text).unwrap();
}

/// The messages of a window, by hand: number and bytes of all, and of those that are delivered.
#[derive(Debug, Default, PartialEq)]
struct Wanted {
    sent: [u64; 2],
    delivered: [u64; 2],
}

/// Deals rows to publishers: row `i` is message `i / publishers` of publisher `i % publishers`.
fn wanted(rows: &[Row], publishers: usize, window: Range<u64>, delivers: impl Fn(usize) -> bool) -> Wanted {
    let mut wanted = Wanted::default();
    for (index, (_, _, bytes)) in rows.iter().enumerate().filter(|(_, row)| window.contains(&row.0)) {
        wanted.sent = [wanted.sent[0] + 1, wanted.sent[1] + bytes];
        if delivers(index / publishers) {
            wanted.delivered = [wanted.delivered[0] + 1, wanted.delivered[1] + bytes];
        }
    }
    wanted
}

fn found(record: &Value) -> Wanted {
    let of = |messages, bytes| [count(record, messages), count(record, bytes)];
    assert_eq!(count(record, "offered"), count(record, "sent"));
    Wanted { sent: of("sent", "sent_bytes"), delivered: of("delivered", "delivered_bytes") }
}

/// Every seventh message of each publisher is lost, one comes twice, and the peer stands still for a while.
#[test]
fn each_row_of_the_window_is_one_message_in_every_protocol() {
    const SCRIPT: &str =
        "lose = { every = 7 }\nduplicate = { at = [[1, 40]] }\n[[stall]]\nfrom = \"480ms\"\nfor = \"50ms\"";
    let rows = rows();
    let wanted = wanted(&rows, 2, 200 * MS..1_200 * MS, |number| !(number + 1).is_multiple_of(7));
    assert_eq!(wanted.sent[0], 200);
    for (protocol, qos) in [("mqtt", "0"), ("mqtt", "1"), ("nats", "0"), ("redis", "0"), ("amqp", "1")] {
        let place = Place::new();
        write(&place, "t.csv", &rows, 1_700_000_000_123_456_789);
        let peer = Peer::start(&place, protocol, SCRIPT);
        let load = ["--pairs", "2", "--trace", "t.csv", "--qos", qos, "--set", "verify=full"];
        let record = place.measure(&[&[peer.endpoint.as_str()], &load[..]].concat());
        assert_eq!(found(&record), wanted, "{protocol} {qos}");
        assert_eq!(["duplicated", "reordered", "corrupted"].map(|name| count(&record, name)), [1, 0, 0], "{protocol}");
        // The stall holds up messages whose latencies count from the times of the file.
        assert!(record["latency_ns"]["max"].as_u64().unwrap() >= 29 * MS, "{protocol}: {}", record["latency_ns"]);
        let notes = record["verdict"]["notes"].to_string();
        assert!(notes.contains("`trace = t.csv`"), "{protocol}: {notes}");
        drop(peer);
        place.assert_swept();
    }
}

/// In virtual time each message is sent in the slice in which the file has it.
#[test]
fn messages_are_sent_when_the_file_says() {
    let rows = rows();
    let own = |flow: &str| rows.iter().filter(|row| row.1 == flow).copied().collect::<Vec<Row>>();
    for (more, publishers, rows, speed) in [
        (&["--publishers", "1"][..], 1, rows.clone(), 1.0),
        (&["--publishers", "3", "--pattern", "fan-in"], 3, rows.clone(), 1.0),
        (&["--set", "trace_speed=2"], 1, rows.clone(), 2.0),
        (&["--set", "trace_speed=0.5"], 1, rows.clone(), 0.5),
        (&["--set", "trace_flow=b"], 1, own("b"), 1.0),
    ] {
        let place = Place::new();
        write(&place, "t.csv", &self::rows(), 5_000_000_000);
        let faults = ["--set", "options.lose_every=10", "--set", "options.duplicate_every=20"];
        let load = [&["mock", "--trace", "t.csv"], more, &faults, &["--set", "verify=full"]].concat();
        let record = place.measure(&load);
        let rows: Vec<Row> = rows.iter().map(|row| ((row.0 as f64 / speed) as u64, row.1, row.2)).collect();
        let wanted = wanted(&rows, publishers, 200 * MS..1_200 * MS, |number| !(number + 1).is_multiple_of(10));
        assert_eq!(found(&record), wanted, "{more:?}");
        let slice_ns = record["series"]["slice_ns"].as_u64().unwrap();
        let mut slices = vec![0_u64; (1_000 * MS / slice_ns) as usize];
        let window = rows.iter().filter(|row| (200 * MS..1_200 * MS).contains(&row.0));
        window.for_each(|row| slices[((row.0 - 200 * MS) / slice_ns) as usize] += 1);
        let sent = record["series"]["sent"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap());
        let rest = std::iter::repeat(0);
        assert_eq!(sent.chain(rest).take(slices.len()).collect::<Vec<u64>>(), slices, "{more:?}");
    }
}

/// A trace that ends before the window leaves the rest of it silent.
#[test]
fn a_window_may_be_longer_than_its_trace_and_payload_replaces_its_sizes() {
    let place = Place::new();
    write(&place, "t.csv", &rows(), 0);
    let long = place.measure(&["mock", "--trace", "t.csv", "--payload", "128B", "--warmup", "0s", "--duration", "30s"]);
    assert_eq!(["offered", "sent", "delivered"].map(|name| count(&long, name)), [300; 3]);
    assert!(long["counts"].get("sent_bytes").is_none(), "all have one size");
    assert_eq!(long["window_ns"], 30_000 * MS);
}

#[test]
fn flows_and_axes_replay_traces_and_results_have_their_hash() {
    let place = Place::new();
    std::fs::create_dir(place.path("s")).unwrap();
    write(&place, "s/day.csv", &rows(), 0);
    let study = "title = \"t\"\n[workload]\nwarmup = \"0s\"\nduration = \"1s\"\nrate = 100\n[flows.one]\ntrace = \"day.csv\"\n\
                 trace_flow = \"a\"\n[flows.two]\npayload = \"64B\"\n[axes]\nsystem = \"mock\"\n\"flows.one.trace_speed\" = [1, 2]\n\
                 [run]\nrepeats = 1\n";
    std::fs::write(place.path("s/study.toml"), study).unwrap();
    let output = place.run(&["run", "s/study.toml", "--out", "r"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let records = place.records("r");
    let sent = |speed: u64| {
        let record = records.iter().find(|record| record["cell"]["flows.one.trace_speed"] == speed).unwrap();
        let flows = record["flows"].as_array().unwrap();
        ["one", "two"].map(|name| {
            let flow = flows.iter().find(|flow| flow["name"] == name).unwrap();
            flow["counts"]["offered"].as_u64().unwrap()
        })
    };
    assert_eq!((sent(1), sent(2)), ([150, 100], [200, 100]));
    let resolved = std::fs::read_to_string(place.path("r/study.toml")).unwrap();
    assert!(resolved.contains("[traces]\n\"day.csv\" = \""), "{resolved}");
    // A report needs no trace; a run needs the same one.
    std::fs::rename(place.path("s/day.csv"), place.path("day.csv")).unwrap();
    assert!(stdout(&place.run(&["report", "r", "--all"])).contains("trace_speed"));
    let missing = place.run(&["run", "s/study.toml", "--out", "r2"]);
    assert!(stderr(&missing).contains("`trace = \"day.csv\"`: s/day.csv: No such file"), "{}", stderr(&missing));
    std::fs::copy(place.path("r/study.toml"), place.path("again.toml")).unwrap();
    let again = place.run(&["run", "again.toml", "--out", "r2"]);
    assert!(matches!(again.status.code(), Some(0 | 3)), "{}", stderr(&again));
    write(&place, "day.csv", &rows()[1..], 0);
    let other = place.run(&["run", "again.toml", "--out", "r3"]);
    assert!(stderr(&other).contains("day.csv is not the trace of this study"), "{}", stderr(&other));
    write(&place, "s/day.csv", &rows()[1..], 0);
    let resumed = stderr(&place.run(&["run", "s/study.toml", "--out", "r", "--resume"]));
    assert!(resumed.contains("was made by another study"), "{resumed}");
}

#[test]
fn arms_differ_in_the_speed_of_a_trace() {
    let place = Place::new();
    write(&place, "t.csv", &rows(), 0);
    let arms = ["ab", "mock", "--a", "trace_speed=1", "--b", "trace_speed=2", "--trace", "t.csv", "--warmup", "0s"];
    let output = place.run(&[&arms[..], &["--fail-on", "p50 > +5%", "--duration", "1s", "--out", "ab"]].concat());
    assert!(output.status.success(), "{}{}", stderr(&output), stdout(&output));
    let records = place.records("ab");
    assert!(
        records
            .iter()
            .all(|record| count(record, "offered") == if record["cell"]["trace_speed"] == 1 { 200 } else { 300 })
    );
}

#[test]
fn traces_that_cannot_be_replayed_are_refused_before_the_run() {
    let place = Place::new();
    let head = "time,flow,size\n";
    for (name, text) in [
        ("back.csv", format!("{head}2.0,a,64\n1.0,a,64\n")),
        ("empty.csv", String::new()),
        ("head.csv", head.to_owned()),
        ("negative.csv", format!("{head}1.0,a,64\n-1.0,a,64\n")),
        ("nan.csv", format!("{head}NaN,a,64\n")),
        ("future.csv", format!("{head}99999999999.0,a,64\n")),
        ("leap.csv", format!("{head}1.0,a,64\n1600000000.0,a,64\n")),
        ("small.csv", format!("{head}0.5,a,64\n0.6,b,15\n")),
        ("good.csv", format!("{head}0.0,a,64\n0.5,b,64\n")),
    ] {
        std::fs::write(place.path(name), text).unwrap();
    }
    for (arguments, says) in [
        (&["--trace", "back.csv"][..], "back.csv:3: the time is 1 s earlier"),
        (&["--trace", "empty.csv"], "empty.csv: the file is empty"),
        (&["--trace", "head.csv"], "head.csv: the file has only a header"),
        (&["--trace", "negative.csv"], "negative.csv:3: the time `-1.0` is negative"),
        (&["--trace", "nan.csv"], "nan.csv:2: `NaN` is not a time"),
        (&["--trace", "future.csv"], "future.csv:2: the time `99999999999.0` is in the future"),
        (&["--trace", "leap.csv"], "leap.csv:3: the time is 18518 days after the one before it"),
        (
            &["--trace", "small.csv"],
            "small.csv:3: the size is 15, and each message has a header of 16 bytes: set `payload`",
        ),
        (&["--trace", "away.csv"], "`trace = \"away.csv\"`: away.csv: No such file"),
        (&["--trace", "good.csv", "--set", "trace_flow=c"], "good.csv has no row of this flow; it has: a, b"),
        (
            &["--trace", "good.csv", "--warmup", "1s"],
            "no message of `trace good.csv` is due in the window, from 1s to 6s",
        ),
        (&["--trace", "good.csv", "--rate", "100"], "`trace` and `rate` exclude each other"),
        (&["--trace", "good.csv", "--arrival", "poisson"], "`trace` and `arrival` exclude each other"),
        (&["--trace", "good.csv", "--count", "5"], "`trace` and `count` exclude each other"),
        (&["--set", "trace_speed=2"], "`trace_speed` has no meaning without `trace`"),
        (&["--trace", "good.csv", "--set", "trace_speed=0"], "`0` is not a speed"),
        (&["--trace", "good.csv", "--headroom"], "a trace has no rate that a search could raise"),
    ] {
        let warmup = if arguments.contains(&"--warmup") { &[][..] } else { &["--warmup", "0s"] };
        let output = place.run(&[&["bench", "mock", "--out", "r"], warmup, arguments].concat());
        let said = stderr(&output) + &stdout(&output);
        assert!(output.status.code() == Some(2) && said.contains(says), "{arguments:?}: {said}");
    }
    for (arguments, says) in [
        (
            &["capacity", "mock", "--trace", "good.csv", "--warmup", "0s"][..],
            "a trace has no rate that a search could raise",
        ),
        (
            &["bench", "zeromq-python", "--transport", "tcp", "--trace", "good.csv", "--warmup", "0s"],
            "cannot play the rate `trace`",
        ),
    ] {
        let output = place.run(&[arguments, &["--out", "r"]].concat());
        let said = stderr(&output) + &stdout(&output);
        assert!(!output.status.success() && said.contains(says), "{arguments:?}: {said}");
    }
}
