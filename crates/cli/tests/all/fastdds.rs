//! Fast DDS, if it is installed: the effects of its options, and its leftovers.

use crate::left_out::has_agents;
use crate::support::{Benched, Place, bench_arguments, children, count, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

/// Returns whether it can be played here. Notes the test as left out if not.
fn here(test: &str) -> bool {
    has_agents(&format!("fastdds::{test}"), &["fastdds"])
}

fn bench(arguments: &[&str]) -> Benched {
    let place = Place::new();
    let benched = place.bench(&[&["fastdds", "--set", "verify=full"], arguments].concat());
    assert_eq!(benched.error(), "", "{arguments:?}: {}", benched.said);
    assert_eq!(benched.record["counts"]["corrupted"].as_u64().unwrap_or_default(), 0, "{arguments:?}");
    place.assert_swept();
    benched
}

/// By its first transport, like any other library without a named transport.
#[test]
fn it_is_measured_like_any_other_system() {
    if !here("it_is_measured_like_any_other_system") {
        return;
    }
    let shape = ["--pattern", "fan-out", "--publishers", "1", "--subscribers", "3"];
    let benched = bench(&[&shape[..], &["--rate", "1000", "--payload", "1KiB"]].concat());
    assert_eq!(["sent", "expected"].map(|name| benched.count(name)), [1_000, 3_000]);
    assert_eq!((benched.count("delivered"), &benched.record["workload"]["transport"]), (3_000, &"udp".into()));
}

#[test]
fn messages_come_by_data_sharing_and_by_best_effort() {
    if !here("messages_come_by_data_sharing_and_by_best_effort") {
        return;
    }
    for (option, applied) in [("data_sharing=true", "data_sharing"), ("reliability=best-effort", "reliability")] {
        let set = format!("options.{option}");
        let benched = bench(&["--transport", "udp", "--set", &set]);
        let delivered = benched.count("delivered");
        // Best effort does not send lost messages again.
        let enough = if applied == "reliability" { 1..=200 } else { 200..=200 };
        assert!(benched.count("sent") == 200 && enough.contains(&delivered), "{option}: {delivered} of 200");
        let said = &benched.record["agents"][0]["applied"][applied];
        assert_eq!(said.as_str().map_or(said.to_string(), str::to_owned), option.split_once('=').unwrap().1);
    }
}

/// Twice as many bytes are requested as may be sent: at most half of them arrive.
#[test]
fn no_more_is_sent_than_the_flow_control_lets_through() {
    if !here("no_more_is_sent_than_the_flow_control_lets_through") {
        return;
    }
    let asked = ["--transport", "udp", "--rate", "2000", "--payload", "1000B", "--set", "drain=1s"];
    let set = ["options.flow_bytes_per_period=50000", "options.flow_period=50ms", "options.queue_messages=100"];
    let options: Vec<&str> = set.iter().flat_map(|option| ["--set", option]).collect();
    let benched = bench(&[&asked[..], &options].concat());
    let applied = &benched.record["agents"][0]["applied"];
    assert_eq!((&applied["flow_bytes_per_period"], &applied["publish_mode"]), (&50_000.into(), &"async".into()));
    // Headers are included, one more period may be held at each end, and a queue is full at the end.
    let arrived =
        benched.record["series"]["delivered"].as_array().map(|slices| slices.iter().filter_map(|it| it.as_u64()).sum());
    let arrived: u64 = arrived.unwrap_or_else(|| panic!("{}", benched.record["series"]));
    assert!(
        (1..=1_100).contains(&arrived),
        "{arrived} messages of 1,000 bytes within a second of 20 times 50,000 bytes"
    );
}

/// Returns the library's files that a process has mapped, as long as it lives.
fn shared_by(pid: i32) -> Vec<PathBuf> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let paths = maps.lines().filter_map(|line| line.split_once("/dev/shm/fast").map(|(_, rest)| rest));
    let mut paths: Vec<PathBuf> = paths.map(|rest| PathBuf::from(format!("/dev/shm/fast{rest}"))).collect();
    paths.sort();
    paths.dedup();
    paths
}

#[test]
fn what_killed_agents_left_in_shared_memory_is_removed_by_the_next() {
    if !here("what_killed_agents_left_in_shared_memory_is_removed_by_the_next") {
        return;
    }
    let place = Place::new();
    let long = bench_arguments(&["fastdds", "--transport", "ipc", "--duration", "60s"]);
    let mut coordinator = place.command(&long).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (agents, files) = wait_for("two agents that share memory", || {
        let agents: Vec<i32> = children(coordinator.id()).into_iter().map(|(pid, _)| pid).collect();
        let files: Vec<Vec<PathBuf>> = agents.iter().map(|pid| shared_by(*pid)).collect();
        (agents.len() == 2 && files.iter().all(|files| files.len() > 1)).then(|| (agents, files.concat()))
    });
    // Neither of them may clean up after the other.
    agents.iter().for_each(|pid| kill(Pid::from_raw(*pid), Signal::SIGSTOP).unwrap());
    agents.iter().for_each(|pid| kill(Pid::from_raw(*pid), Signal::SIGKILL).unwrap());
    let ended = coordinator.wait().unwrap();
    assert_eq!(ended.code(), Some(3), "its only run failed");
    let left: Vec<&PathBuf> = files.iter().filter(|file| file.exists()).collect();
    assert!(!left.is_empty(), "a process that is killed leaves its memory: {files:?}");
    // As if they had been killed a while ago: a file of this second may be of a process that begins.
    for file in &left {
        let opened = std::fs::File::options().write(true).open(file).unwrap();
        opened.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    }
    let benched = bench(&["--transport", "ipc"]);
    assert_eq!(count(&benched.record, "delivered"), 200);
    let remain: Vec<&&PathBuf> = left.iter().filter(|file| file.exists()).collect();
    assert!(remain.is_empty(), "left in shared memory: {remain:?}");
}
