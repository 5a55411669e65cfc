//! Consumer groups of Kafka whose coordinator is scripted: rebalances, pauses, and what comes twice.

use super::{Run, WARMUP_MS, alone};
use crate::left_out::is_long;
use crate::support::{Place, count, stderr};
use serde_json::Value;

/// Two members that share four partitions, to which two publishers send 200 messages a second each.
const GROUP: [&str; 12] = [
    "pattern=pipeline",
    "publishers=2",
    "subscribers=2",
    "rate=200",
    "options.partitions=4",
    "options.partition_by=round-robin",
    "options.batch=1B",
    "options.group=coordinator",
    "options.group_session=6s",
    "options.group_heartbeat=500ms",
    "drain=3s",
    "qos=1",
];

fn play(script: &str, window_ms: u64, set: &[&str], more: &[&str]) -> Value {
    let set: Vec<&str> = GROUP.iter().chain(set).flat_map(|set| ["--set", *set]).collect();
    Run::new("kafka", &format!("keep = true\n{script}"), window_ms, &[&set[..], more].concat()).bench.record
}

fn counts(record: &Value) -> [u64; 4] {
    ["expected", "delivered", "lost", "duplicated"].map(|name| count(record, name))
}

/// Returns the number of rebalances and the longest pause, ms.
fn rebalances(record: &Value) -> (u64, u64) {
    let seen = |name: &str| record["rebalances"][name].as_u64().unwrap_or_else(|| panic!("{}", record["remarks"]));
    (seen("last_generation") - seen("first_generation"), seen("longest_pause_ns") / 1_000_000)
}

#[test]
fn a_group_that_is_left_alone_is_not_rebalanced() {
    let _alone = alone();
    for assignor in ["range", "round-robin"] {
        let record = play("", 1_000, &[&format!("options.group_assignor={assignor}")], &[]);
        assert_eq!((counts(&record), rebalances(&record)), ([400, 400, 0, 0], (0, 0)), "{assignor}");
    }
}

/// Members store their offsets before they join again: each message comes once.
#[test]
fn scripted_rebalances_are_counted_and_nothing_is_lost() {
    let _alone = alone();
    let script = "rebalance = [{ at = \"600ms\", for = \"400ms\" }, { at = \"2s\", for = \"300ms\" }]";
    let record = play(script, 4_000, &[], &[]);
    let (count, pause_ms) = rebalances(&record);
    assert_eq!((counts(&record), count), ([1_600, 1_600, 0, 0], 2));
    assert!(pause_ms >= 400, "{pause_ms} ms");
    assert_eq!(record["connections"]["lost"], 0);
}

/// The last message is due 400 ms into the window, and the rebalance begins later: all of them have been delivered, and
/// none of their offsets is stored.
#[test]
fn what_was_not_stored_comes_twice() {
    if !is_long("known_answers::groups::what_was_not_stored_comes_twice") {
        return;
    }
    let _alone = alone();
    let at_ms = WARMUP_MS + 900;
    let script = format!("rebalance = [{{ at = \"{at_ms}ms\", for = \"200ms\", forgets = true }}]");
    let record = play(&script, 3_000, &["end=400ms", "options.group_commit=1h"], &[]);
    let (count, pause_ms) = rebalances(&record);
    assert_eq!((counts(&record), count), ([160, 160, 0, 160], 1));
    assert!(pause_ms >= 200, "{pause_ms} ms");
}

/// One of two members is killed: the other has all partitions after one rebalance, and reads on from what is stored.
#[test]
fn the_share_of_a_killed_member_is_read_by_the_other() {
    let _alone = alone();
    let killed = ["--set", "fault=kill 50% of subscribers at 700ms"];
    let record = play("", 3_000, &["options.group_commit=500ms"], &killed);
    let [expected, delivered, lost, _] = counts(&record);
    assert_eq!(([expected, delivered, lost], rebalances(&record).0), ([1_200, 1_200, 0], 1));
    assert_eq!(record["connections"]["lost"], 1);
}

#[test]
fn what_a_group_cannot_have_is_refused_before_anything_starts() {
    let place = Place::new();
    let coordinator = ["options.group=coordinator", "options.partitions=2"];
    for (set, says) in [
        (&["options.group=coordinator"][..], "options.group = \"coordinator\": subscribers of `pairs` are no group"),
        (&["options.group=kafka"], "options.group = \"kafka\""),
        (&["options.group_commit=1s"], "options.group_commit: only members of a group with a coordinator have it"),
        (&["pattern=pipeline", "subscribers=3"], "the 3 subscribers of `pipeline` share out the partitions"),
        (&["pattern=pipeline", "subscribers=2", "subscribers_start=500ms"], "late subscribers would wait"),
        (&["pattern=pipeline", "subscribers=2", "options.group_heartbeat=700ms"], "a multiple of 500ms"),
        (&["pattern=pipeline", "subscribers=2", "options.group_session=2s"], "at least twice `group_heartbeat`"),
        (
            &["pattern=pipeline", "subscribers=2", "options.group_assignor=sticky"],
            "options.group_assignor = \"sticky\"",
        ),
        (
            &["fault=kill 50% of subscribers at 500ms"],
            "nobody takes over what the killed subscribers of `pairs` receive",
        ),
        (&["fault=kill 50% of publishers at 500ms"], "kill N% of subscribers at …"),
        (&["fault=kill 50% of subscribers at 500ms, restart server at 700ms"], "those of the first are to stay away"),
    ] {
        let common: &[&str] = if set[0].starts_with("pattern") { &coordinator } else { &[] };
        let set: Vec<&str> = common.iter().chain(set).flat_map(|set| ["--set", *set]).collect();
        let output = place.run(&[&["bench", "kafka://127.0.0.1:1", "--qos", "1"], &set[..], &["--out", "r"]].concat());
        assert_eq!(output.status.code(), Some(2), "{set:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{set:?}: {}", stderr(&output));
    }
}
