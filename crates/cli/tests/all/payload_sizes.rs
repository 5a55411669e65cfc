//! Messages whose sizes vary: both ends know each size, and bytes are counted exactly.

use crate::known_answers::Peer;
use crate::left_out::first;
use crate::support::{Place, count, stderr, stdout};
use pubmark_model::workload::Workload;
use serde_json::Value;

/// Runs a bench of one second, with bodies checked, and returns its record.
fn bench(place: &Place, arguments: &[&str]) -> Value {
    place.measure(&[arguments, &["--set", "verify=full"]].concat())
}

fn counts(record: &Value) -> [u64; 5] {
    ["expected", "delivered", "lost", "duplicated", "corrupted"].map(|name| count(record, name))
}

/// Returns the bytes of the messages of a run's first repeat that are wanted, by publisher and sequence.
fn bytes(record: &Value, sequences: std::ops::Range<u32>, wanted: impl Fn(u32) -> bool) -> u64 {
    let workload: Workload = serde_json::from_value(record["workload"].clone()).unwrap();
    let sizes = workload.of_repeat(1).message_sizes().unwrap();
    let each = (0..workload.publishers).flat_map(|publisher| sequences.clone().map(move |number| (publisher, number)));
    each.filter(|(_, number)| wanted(*number)).map(|(publisher, number)| sizes.bytes(publisher, number) as u64).sum()
}

/// Every seventh message of each publisher is lost, every seventeenth is damaged, and one comes twice.
#[test]
fn bytes_are_those_of_the_messages_that_came() {
    const SCRIPT: &str = "lose = { every = 7 }\nduplicate = { at = [[1, 40]] }\ncorrupt = { every = 17, offset = 100 }\n\
                          [[stall]]\nfrom = \"500ms\"\nfor = \"50ms\"";
    let cases =
        [("mqtt", "1"), ("nats", "0"), ("kafka", "1"), ("mqtt", "0"), ("redis", "0"), ("zenoh", "0"), ("amqp", "1")];
    for &(protocol, qos) in first(3, &cases, "payload_sizes::bytes_are_those_of_the_messages_that_came") {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, SCRIPT);
        let load = ["--pairs", "2", "--rate", "100", "--payload", "uniform 64B to 4KiB", "--qos", qos];
        let record = bench(&place, &[&[peer.endpoint.as_str()], &load[..]].concat());
        // Of 100 sequences from 20 on, 15 end a seven.
        let (lost, damaged) =
            (|number: u32| (number + 1).is_multiple_of(7), |number: u32| (number + 1).is_multiple_of(17));
        let damaged = 2 * (20..120).filter(|number| damaged(*number) && !lost(*number)).count() as u64;
        assert_eq!(counts(&record), [200, 170, 30, 1, damaged], "{protocol} {qos}");
        assert_eq!(count(&record, "sent_bytes"), bytes(&record, 20..120, |_| true), "{protocol}");
        assert_eq!(count(&record, "delivered_bytes"), bytes(&record, 20..120, |number| !lost(number)), "{protocol}");
        let notes = record["verdict"]["notes"].to_string();
        assert!(notes.contains("`payload = uniform 64B to 4KiB`"), "{protocol}: {notes}");
        drop(peer);
        place.assert_swept();
    }
}

/// Each flow has the sizes of its own, and `all` the sum.
#[test]
fn each_flow_has_its_own_sizes() {
    let place = Place::new();
    let (small, large) =
        ("small: rate=100, payload=mix 64B 90% 1KiB 10%", "large: rate=50, payload=uniform 1KiB to 64KiB");
    let flows = ["bench", "nats", "--flow", small, "--flow", large, "--set", "verify=full"];
    let fixed = ["--json", "--repeats", "1", "--warmup", "200ms", "--duration", "1s", "--out", "r"];
    let output = place.run(&[&flows[..], &fixed].concat());
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let record = |flow: &str| {
        let cells = told["cells"].as_array().unwrap();
        cells.iter().find(|cell| cell["cell"]["flow"] == flow).unwrap()["runs"][0].clone()
    };
    let of = |flow: &str| count(&record(flow), "delivered_bytes");
    assert_eq!([count(&record("small"), "corrupted"), count(&record("large"), "corrupted")], [0, 0]);
    assert!((64 * 100..=1_024 * 100).contains(&of("small")) && of("large") >= 50 * 1_024);
    assert_eq!(of("all"), of("small") + of("large"));
}

#[test]
fn real_systems_deliver_every_size() {
    let payload = "mix 64B 80% 20B 10% 8KiB 9% 200KiB 1%";
    for (system, more) in [
        ("mosquitto", &["--qos", "1"][..]),
        ("nats", &[]),
        ("redis", &[]),
        ("rabbitmq-amqp", &["--qos", "1"]),
        ("zeromq", &["--transport", "tcp"]),
        ("nng", &["--transport", "ipc"]),
        ("kernel", &["--transport", "tcp"]),
        ("kernel", &["--transport", "inproc"]),
    ] {
        let place = Place::new();
        let load = ["--pairs", "2", "--rate", "200", "--payload", payload];
        let record = bench(&place, &[&[system], &load[..], more].concat());
        assert_eq!(counts(&record), [400, 400, 0, 0, 0], "{system}");
        let sum = bytes(&record, 40..240, |_| true);
        assert_eq!([count(&record, "sent_bytes"), count(&record, "delivered_bytes")], [sum, sum], "{system}");
        // Arrivals in the window: a few may come after its end.
        let per_s = record["rates"]["delivered_bytes_per_s"].as_f64().unwrap();
        assert!(per_s > 0.0 && per_s <= 1.2 * sum as f64 + 600_000.0, "{system}: {per_s} of {sum}");
        place.assert_swept();
    }
}

/// As fast as possible, frames of different lengths are gathered for one write.
#[test]
fn sizes_vary_at_full_speed_and_with_a_reply() {
    for (system, more) in [
        ("mosquitto", &["--qos", "1"][..]),
        ("redis", &[]),
        ("kernel", &["--transport", "ipc"]),
        ("kernel", &["--transport", "tcp", "--pattern", "request-reply"]),
    ] {
        let place = Place::new();
        let load = ["--rate", "max", "--set", "count=2000", "--payload", "uniform 20B to 2KiB"];
        let record = place.run(
            &[
                &["bench", system],
                &load[..],
                more,
                &["--set", "verify=full", "--json", "--repeats", "1", "--warmup", "100ms", "--out", "r"],
            ]
            .concat(),
        );
        assert!(matches!(record.status.code(), Some(0 | 3)), "{system}: {}", stderr(&record));
        let lines = std::fs::read_to_string(place.path("r/runs.jsonl")).unwrap();
        let record: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        assert!(record["error"].is_null(), "{system}: {}", record["error"]);
        let [expected, delivered, lost, _, corrupted] = counts(&record);
        assert_eq!((expected, delivered, lost, corrupted), (2_000, 2_000, 0, 0), "{system}");
        assert_eq!(count(&record, "sent_bytes"), count(&record, "delivered_bytes"), "{system}");
    }
}

/// The mock loses every tenth message; its records can be made again from the results folder alone.
#[test]
fn a_file_of_sizes_is_kept_with_the_results() {
    let place = Place::new();
    std::fs::create_dir(place.path("s")).unwrap();
    std::fs::write(place.path("s/sizes.txt"), "# bytes, count\n64B 90\n4KiB 9\n1MiB\n").unwrap();
    let study = "title = \"t\"\n[workload]\nwarmup = \"0s\"\nduration = \"500ms\"\nverify = \"full\"\n[options]\n\
                 lose_every = 10\n[axes]\nsystem = \"mock\"\npayload = [64, \"file sizes.txt\", \"uniform 64B to 1KiB\"]\n\
                 [run]\nrepeats = 1\n";
    std::fs::write(place.path("s/study.toml"), study).unwrap();
    let arguments = ["run", "s/study.toml", "--out", "r"];
    let output = place.run(&arguments);
    assert!(output.status.success() || output.status.code() == Some(3), "{}", stderr(&output));
    let records = std::fs::read_to_string(place.path("r/runs.jsonl")).unwrap();
    let records: Vec<Value> = records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |payload: &str| records.iter().find(|record| record["cell"]["payload"] == payload).unwrap();
    let record = of("file sizes.txt");
    assert_eq!(counts(record), [500, 450, 50, 0, 0]);
    assert_eq!(count(record, "delivered_bytes"), bytes(record, 0..500, |number| !(number + 1).is_multiple_of(10)));
    assert_eq!(record["workload"]["payload_sizes"]["mean_bytes"], 0.9 * 64.0 + 0.09 * 4_096.0 + 0.01 * 1_048_576.0);
    let constant = records.iter().find(|record| record["cell"]["payload"] == 64).unwrap();
    assert!(constant["workload"].get("payload_sizes").is_none() && constant["counts"].get("sent_bytes").is_none());
    let resolved = std::fs::read_to_string(place.path("r/study.toml")).unwrap();
    assert!(resolved.contains("[sizes]\n\"sizes.txt\" = \"\"\"\n64 90\n4096 9\n1048576 1\"\"\""), "{resolved}");
    // Another file is another study.
    std::fs::write(place.path("s/sizes.txt"), "64B").unwrap();
    let other = stderr(&place.run(&["run", "s/study.toml", "--out", "r", "--resume"]));
    assert!(other.contains("was made by another study"), "{other}");
    std::fs::remove_file(place.path("s/sizes.txt")).unwrap();
    assert!(stdout(&place.run(&["report", "r", "--all"])).contains("file sizes.txt"));
    // The results folder has all that the study needs.
    std::fs::copy(place.path("r/study.toml"), place.path("again.toml")).unwrap();
    let again = place.run(&["run", "again.toml", "--out", "r2"]);
    assert!(matches!(again.status.code(), Some(0 | 3)), "{}", stderr(&again));
    assert!(std::fs::read_to_string(place.path("r2/runs.jsonl")).unwrap().contains("\"file sizes.txt\""));
}

#[test]
fn sizes_that_cannot_be_played_are_refused_before_the_run() {
    let place = Place::new();
    std::fs::write(place.path("bad.txt"), "64B\n8B\n").unwrap();
    std::fs::write(place.path("none.txt"), "\n").unwrap();
    for (arguments, says) in [
        (&["bench", "mock", "--payload", "uniform 8B to 64B"][..], "`8B` is outside the range of 16"),
        (&["bench", "mock", "--payload", "mix 64B 90% 1KiB 9%"], "the shares add up to 99%, not to 100%"),
        (&["bench", "mock", "--payload", "gamma 64B"], "`gamma 64B` is not a message size"),
        (&["bench", "mock", "--payload", "file away.txt"], "`payload = \"file away.txt\"`: away.txt: No such file"),
        (&["bench", "mock", "--payload", "file bad.txt"], "bad.txt:2: `8B` is not a size from 16 bytes"),
        (&["bench", "mock", "--payload", "file none.txt"], "none.txt has no sizes"),
        (&["bench", "kernel", "--transport", "udp", "--payload", "uniform 64B to 128KiB"], "at most 65,507 bytes"),
        (&["capacity", "mock", "--over", "payload", "--payload", "uniform 64B to 1KiB"], "begins at one size"),
        (
            &["bench", "zeromq-python", "--transport", "tcp", "--payload", "uniform 64B to 1KiB"],
            "messages whose sizes vary: `payload_sizes`",
        ),
    ] {
        let output = place.run(&[arguments, &["--out", "r"]].concat());
        let said = stderr(&output) + &stdout(&output);
        assert!(!output.status.success() && said.contains(says), "{arguments:?}: {said}");
    }
}

/// `capacity` and `ab` play them as every other workload.
#[test]
fn searches_and_arms_take_sizes_that_vary() {
    let place = Place::new();
    let mix = "mix 64B 90% 4KiB 10%";
    let search = ["capacity", "mock", "--payload", mix, "--until", "p99 < 10ms and lost = 0", "--json", "--out", "c"];
    let output = place.run(&[&search[..], &["--set", "options.send_cost=100us", "--duration", "1s"]].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let arms = ["ab", "mock", "--a", "payload=64", "--b", &format!("payload={mix}"), "--fail-on", "p50 > +5%"];
    let output = place.run(&[&arms[..], &["--duration", "1s", "--out", "ab"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
}
