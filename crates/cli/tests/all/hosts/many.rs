//! What one coordinator leads, with real processes: 64 hosts on this machine, an agent
//! on each.

use super::{Network, WHY, is_in_window};
use crate::left_out::leave_out;
use crate::support::{Place, children};
use serde_json::Value;
use std::fs::{File, read_dir, read_to_string};
use std::time::{Duration, Instant};

const HOSTS: usize = 64;
/// How long they may take from the start of the command until all are ready, s.
const READY_S: f64 = 30.0;

/// A line of `/proc/PID/status`, as the number that it has.
fn status(pid: u32, name: &str) -> u64 {
    let text = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// All of them have been told to start: all were ready.
fn are_ready(hosts: &[(i32, String)]) -> bool {
    hosts.iter().all(|(host, _)| children(*host as u32).iter().any(|(agent, _)| is_in_window(&agent.to_string())))
}

#[test]
fn sixty_four_hosts_are_led_from_start_to_ready_and_leave_nothing() {
    let part = |number: usize| if number.is_multiple_of(2) { "publishers" } else { "subscribers" };
    let hosts = (0..HOSTS).map(|number| (format!("h{number}"), part(number))).collect();
    let Some(network) = Network::of('w', hosts) else { return leave_out("hosts::many::sixty_four_hosts", WHY) };
    let place = Place::new();
    let (file, pairs) = (network.hosts(&place), (HOSTS / 2).to_string());
    let mut command = place.command(&["bench", "kernel", "--transport", "tcp", "--pairs", &pairs, "--rate", "1"]);
    command.args(["--warmup", "1s", "--duration", "2s", "--repeats", "1", "--json", "--hosts", &file, "--out", "r"]);
    let began = Instant::now();
    let into = |name: &str| File::create(place.path(name)).unwrap();
    let mut coordinator = command.stdout(into("told")).stderr(into("said")).spawn().unwrap();
    let pid = coordinator.id();
    let (mut ready_s, mut memory_kb, mut threads, mut a_host_kb) = (None, 0, 0, 0);
    while coordinator.try_wait().unwrap().is_none() {
        if ready_s.is_none() {
            let all = children(pid);
            if all.len() == HOSTS && are_ready(&all) {
                ready_s = Some(began.elapsed().as_secs_f64());
                (memory_kb, threads) = (status(pid, "RssAnon"), status(pid, "Threads"));
                a_host_kb = all.iter().map(|(host, _)| status(*host as u32, "RssAnon")).max().unwrap_or(0);
            }
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
    let whole_s = began.elapsed().as_secs_f64();
    let [told, said] = ["told", "said"].map(|name| read_to_string(place.path(name)).unwrap());
    let told: Value = serde_json::from_str(&told).unwrap_or_else(|_| panic!("{said}"));
    let run = &told["runs"][0];
    assert_eq!(run["error"], Value::Null);
    let length = |name: &str| run[name].as_array().unwrap().len();
    assert_eq!((length("hosts"), length("agents"), length("clocks")), (HOSTS, HOSTS, HOSTS / 2));
    let count = |name: &str| run["counts"][name].as_u64().unwrap();
    let due = 2 * HOSTS as u64 / 2;
    assert_eq!(["sent", "delivered", "lost"].map(count), [due, due, 0]);
    assert!(ready_s.is_some_and(|ready_s| ready_s < READY_S), "from start to ready: {ready_s:?}");
    // A program that might have to be sent is held.
    let program_kb = std::fs::metadata(env!("CARGO_BIN_EXE_pubmark")).unwrap().len() / 1_024;
    println!(
        "{HOSTS} hosts of one agent: ready after {:.1} s, all over after {whole_s:.1} s (3 s of them the load); \
         coordinator {:.1} MB beside the program that it could send, and {threads} threads; a host {:.1} MB of its own at \
         most",
        ready_s.unwrap_or_default(),
        memory_kb.saturating_sub(program_kb) as f64 / 1e3,
        a_host_kb as f64 / 1e3
    );
    assert_eq!(network.processes(), Vec::<String>::new());
    assert_eq!(read_dir(place.tmp()).unwrap().count(), 0, "a folder is left behind");
}
