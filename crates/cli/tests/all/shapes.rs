//! Shapes of load by protocol: exact counts with losses, a duplicate and a stall, in each cell that no other test has.
//!
//! | shape | where the other protocols are |
//! |---|---|
//! | flows, ramp | `flows` |
//! | slow, backlog | `consume` |
//! | churn | `churn` (streams have none) |
//! | trace | `replays` |
//! | sizes | `payload_sizes` |
//! | shared | `known_answers::streams` (of the others the peer shares out MQTT and AMQP) |
//! | topics; headers; requests | `topics`; `messages`; `requests` (the other protocols have none) |

use crate::known_answers::Peer;
use crate::support::{Place, count, stderr, stdout};
use pubmark_model::schedule::Schedule;
use pubmark_model::units::MILLISECOND;
use pubmark_model::workload::Workload;
use serde_json::Value;
use std::ops::Range;
use std::sync::Mutex;
use std::thread;

/// Every seventh message is lost, one comes twice, and the server stalls for 50 ms.
const FAULTS: &str = "duplicate = { at = [[1, 40]] }\n[[stall]]\nfrom = \"500ms\"\nfor = \"50ms\"\n";

/// A protocol: its name, the scheme of the peer, and the quality of service.
type Column = (&'static str, &'static str, &'static str);
const MQTT: Column = ("mqtt", "mqtt", "1");
const NATS: Column = ("nats", "nats", "0");
const REDIS: Column = ("redis", "redis", "0");
const AMQP: Column = ("amqp", "amqp", "1");
const KAFKA: Column = ("kafka", "kafka", "0");
const ZENOH: Column = ("zenoh", "zenoh", "0");
const JETSTREAM: Column = ("jetstream", "nats", "1");
const STREAMS: Column = ("redis streams", "redis", "1");

const PAIRS: [&str; 2] = ["--pairs", "2"];
const LINES: &str = "payload_file=lines.txt";

/// A row of the table: a shape, its arguments, and the protocols in which no other test has it.
type Row = (&'static str, &'static [&'static str], &'static [Column]);
const TABLE: [Row; 10] = [
    ("slow", &["--set", "consume=60"], &[JETSTREAM, STREAMS]),
    ("backlog", &["--set", "consume=steps 1000000 0.001 1000000 each 400ms"], &[JETSTREAM, STREAMS]),
    ("churn", &["--set", "churn=20/s"], &[ZENOH]),
    ("trace", &["--trace", "trace.csv"], &[KAFKA, ZENOH, JETSTREAM, STREAMS]),
    ("ramp", &["--rate", "ramp 50 to 150 in 1s"], &[JETSTREAM, STREAMS]),
    ("sizes", &["--payload", "uniform 64B to 4KiB"], &[JETSTREAM, STREAMS]),
    ("shared", &["--pattern", "pipeline", "--set", "options.partitions=2"], &[KAFKA]),
    ("group", &["--pattern", "pipeline"], &[MQTT, AMQP]),
    ("lines", &["--set", LINES], &[MQTT, NATS, REDIS, AMQP, KAFKA, ZENOH, JETSTREAM, STREAMS]),
    ("flows", &["--flow", "a: pairs=2", "--flow", "b: pairs=2, payload=64B"], &[JETSTREAM, STREAMS]),
];

/// Returns the numbers of a publisher's messages of the window, from 0.
fn numbers(rate: &str, publisher: u32) -> Range<u64> {
    let workload = Workload::of([("rate", rate), ("pairs", "2")]).unwrap();
    let mut schedule = Schedule::of(&workload, workload.rate.profile().unwrap(), publisher);
    let mut due_before = 0;
    let [from, to] = [200, 1_200].map(|ms| {
        while schedule.due() < ms * MILLISECOND {
            schedule.advance();
            due_before += 1;
        }
        due_before
    });
    from..to
}

/// Makes a run of a cell. Returns the counts that differ from the right ones, in words.
fn play((shape, arguments, _): &Row, (name, scheme, qos): Column) -> Option<String> {
    let place = Place::new();
    let rows = (0..400).map(|row| format!("{:.3},a,256\n", f64::from(row) / 200.0));
    std::fs::write(place.path("trace.csv"), format!("time,flow,size\n{}", rows.collect::<String>())).unwrap();
    std::fs::write(place.path("lines.txt"), "one\n{\"two\": 2}\nthr\u{e9}e\n").unwrap();
    // Some servers answer each message at QoS 1, so that none is lost without an answer.
    let lose = if qos == "1" { "swallow" } else { "lose" };
    let peer = Peer::start(&place, scheme, &format!("{lose} = {{ every = 7 }}\n{FAULTS}"));
    let clients =
        if ["shared", "group"].contains(shape) { &["--publishers", "2", "--subscribers", "2"][..] } else { &PAIRS };
    let rate = arguments.iter().position(|name| *name == "--rate").map_or("100", |at| arguments[at + 1]);
    let rated = if ["trace", "ramp"].contains(shape) { &[][..] } else { &["--rate", "100"] };
    let common = ["--qos", qos, "--set", "drain=2s", "--set", "verify=full"];
    let all = [&[peer.endpoint.as_str()], rated, &common, arguments].concat();
    let flows = if *shape == "flows" { 2 } else { 1 };
    let record = match flows {
        1 => place.measure(&[&all[..], clients].concat()),
        _ => together(&place, &all),
    };
    let all = || (0..2).flat_map(|publisher| numbers(rate, publisher));
    let (offered, lost) = (all().count() as u64, all().filter(|number| (number + 1).is_multiple_of(7)).count() as u64);
    let wanted = [offered, offered - lost, lost, 1, 0].map(|count| count * flows);
    let found = ["expected", "delivered", "lost", "duplicated", "corrupted"].map(|name| count(&record, name));
    drop(peer);
    place.assert_swept();
    (found != wanted).then(|| format!("{shape} over {name}: {found:?}, not {wanted:?}"))
}

/// Returns the record of all flows of a run.
fn together(place: &Place, arguments: &[&str]) -> Value {
    let fixed = ["--json", "--repeats", "1", "--warmup", "200ms", "--duration", "1s", "--out", "r"];
    let output = place.run(&[&["bench"], arguments, &fixed].concat());
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let cells = told["cells"].as_array().unwrap();
    let all = cells.iter().find(|cell| cell["cell"]["flow"] == "all");
    all.unwrap_or_else(|| panic!("{told}"))["runs"][0].clone()
}

#[test]
fn counts_are_exact_for_each_shape_in_each_protocol() {
    const TOGETHER: usize = 4;
    let cells: Vec<(&Row, Column)> =
        TABLE.iter().flat_map(|row| row.2.iter().map(move |column| (row, *column))).collect();
    let (next, wrong) = (Mutex::new(cells.into_iter()), Mutex::new(Vec::new()));
    let take = || next.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..TOGETHER {
            scope.spawn(|| {
                while let Some((row, column)) = take() {
                    let said = play(row, column);
                    wrong.lock().unwrap().extend(said);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
