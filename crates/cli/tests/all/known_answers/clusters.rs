//! Clusters whose members are scripted: a leader goes away for a while, and the figures say what came of it.

use super::alone;
use crate::left_out::is_long;
use crate::support::{Benched, Place};

/// A system of three members. One peer, a process of the first, has the ports of all for clients; each has one more that
/// only listens.
const SYSTEM: &str = r#"
title = "Scripted cluster"
about = "three members of one peer"
licence = "MIT"
homepage = "http://127.0.0.1"
driver = "kafka"
patterns = ["pairs", "fan-in", "pipeline"]
qos = [0, 1, 2]
durable = true

[server]
endpoint = "kafka://{address}:{port.clients}"
command = [
  "sh", "-c",
  """sleep 1000000 | '{pubmark}' peer --protocol kafka --port {port} & [ {member} = 1 ] || exec sleep 1000000
     sleep 1000000 | exec '{pubmark}' peer --protocol kafka --script '{dir}/script.toml'""",
]

[server.files."script.toml"]
text = """
keep = true
ports = [{each:<port.clients>|, }]
SCRIPT
"""

[cluster]
name = "{member}"

[[cluster.joined]]
command = ["echo", "{member}"]
count = "1"
"#;

/// Plays three publishers of 100 messages/s, each with a partition at another member, for four seconds. The second member
/// is away from the first second of the window on; meanwhile the script of the run kills the listener of another, so that
/// there is a fault to report on.
fn away(for_ms: u64, set: &[&str]) -> Benched {
    let place = Place::new();
    let script = format!("[[away]]\nmember = 1\nfrom = \"1200ms\"\nfor = \"{for_ms}ms\"");
    place.system("scripted", &SYSTEM.replace("SCRIPT", &script));
    const LOAD: [&str; 7] = [
        "options.members=3",
        "options.partitions=3",
        "options.batch=1B",
        "warmup=200ms",
        "rate=100",
        "drain=10s",
        "qos=1",
    ];
    let fault = format!("kill server 3 at 1s for {for_ms}ms");
    let mut all = vec!["scripted", "--duration", "4s", "--fault", &fault];
    LOAD.iter().chain(set).for_each(|set| all.extend(["--set", set]));
    let bench = place.bench(&all);
    assert_eq!(bench.error(), "");
    bench
}

const NAMES: [&str; 6] = ["expected", "acked", "delivered", "lost", "duplicated", "reordered"];

/// Its partition has no leader for so long, and then another one. The message that it had not acknowledged comes twice.
#[test]
fn a_leader_of_kafka_that_is_away_costs_what_its_script_says() {
    let _alone = alone();
    let mut silences = [400, 1_500].map(|for_ms| {
        let bench = away(for_ms, &["pattern=pairs", "pairs=3"]);
        assert_eq!(NAMES.map(|name| bench.count(name)), [1_200, 1_200, 1_200, 0, 1, 0], "{for_ms} ms");
        let silence = bench.record["stalls"]["longest_ns"].as_u64().unwrap();
        assert!(silence >= (for_ms - 200) * 1_000_000, "{for_ms} ms: {silence}");
        silence
    });
    silences.reverse();
    assert!(silences.is_sorted_by(|long, short| long > short), "{silences:?}");
}

/// Batches go to the partitions in turn: the others are used meanwhile, and order is kept within each.
#[test]
fn producers_that_use_partitions_in_turn_pass_over_a_leader_of_kafka_that_is_away() {
    if !is_long("producers_that_use_partitions_in_turn_pass_over_a_leader_of_kafka_that_is_away") {
        return;
    }
    let _alone = alone();
    let set = ["pattern=fan-in", "publishers=3", "options.partition_by=round-robin"];
    let bench = away(1_000, &set);
    assert_eq!(NAMES.map(|name| bench.count(name)), [1_200, 1_200, 1_200, 0, 1, 0]);
}

/// The members of a group follow the leaders, and their coordinator.
#[test]
fn members_of_groups_follow_the_leaders_of_kafka() {
    if !is_long("members_of_groups_follow_the_leaders_of_kafka") {
        return;
    }
    let _alone = alone();
    let set = ["pattern=pipeline", "publishers=3", "subscribers=2", "options.partition_by=round-robin"];
    for group in ["options.group=static", "options.group=coordinator"] {
        let bench = away(1_000, &[&set[..], &[group]].concat());
        assert_eq!(NAMES.map(|name| bench.count(name)), [1_200, 1_200, 1_200, 0, 1, 0], "{group}");
    }
}
