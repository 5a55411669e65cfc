//! One coordinator with many real processes: 64 hosts on this machine, an agent on each.

use super::{Network, WHY, is_in_window, only_run};
use crate::left_out::leave_out;
use crate::support::{Place, children};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{File, read_dir, read_to_string};
use std::path::Path;
use std::time::{Duration, Instant};

const HOSTS: usize = 64;
/// Maximum time from the start of the command until all are ready, s.
const READY_S: f64 = 30.0;

/// Returns the number in a line of `/proc/PID/status`.
fn status(pid: u32, name: &str) -> u64 {
    let text = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Returns whether all have been told to start, and so were ready.
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
    // A program that might have to be copied is in memory.
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

/// Traffic of a host connection in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Crossed {
    /// Requests, by their names.
    asked: BTreeMap<String, u64>,
    asked_bytes: u64,
    /// Answers to requests.
    replies: u64,
    /// Events of agents.
    words: u64,
    answered_bytes: u64,
}

impl Crossed {
    fn asked(&self) -> u64 {
        self.asked.values().sum()
    }
}

/// Returns the types and lengths of the lines that are JSON. Heartbeats are empty lines, whose number depends on time;
/// the shell's input that starts the program is no JSON.
fn named_lines(path: &Path) -> Vec<(String, usize)> {
    let bytes = std::fs::read(path).unwrap();
    let named = |line: &[u8]| {
        let name = match serde_json::from_slice(line).ok()? {
            Value::String(name) => name,
            Value::Object(object) => match object.get("request") {
                Some(request) => request.as_str()?.to_owned(),
                None => object.keys().next()?.clone(),
            },
            _ => return None,
        };
        Some((name, line.len() + 1))
    };
    bytes.split(|byte| *byte == b'\n').filter_map(named).collect()
}

impl Crossed {
    fn of(to: &Path, from: &Path) -> Crossed {
        let mut crossed = Crossed::default();
        for (name, bytes) in named_lines(to) {
            *crossed.asked.entry(name).or_default() += 1;
            crossed.asked_bytes += bytes as u64;
        }
        for (name, bytes) in named_lines(from) {
            *if name == "agent" { &mut crossed.words } else { &mut crossed.replies } += 1;
            crossed.answered_bytes += bytes as u64;
        }
        crossed
    }
}

/// Makes a run of this many agents on each of this many hosts. Returns, by host, the traffic of its connection.
fn crossed(hosts: usize, agents: usize) -> Option<Vec<Crossed>> {
    const BOTH: &str = "publishers\", \"subscribers";
    let names: Vec<String> = (0..hosts).map(|number| format!("h{number}")).collect();
    let network = Network::of('z', names.iter().map(|name| (name.clone(), BOTH)).collect())?;
    let place = Place::new();
    let file = network.hosts(&place);
    let mut text = read_to_string(&file).unwrap();
    let copy = |name: &str, way: &str| place.path(&format!("{name}.{way}"));
    for name in &names {
        let space = network.namespace(name);
        let [to, from] = ["to", "from"].map(|way| copy(name, way).display().to_string());
        // Each start makes the copies anew: the last one belongs to the run.
        let copied = format!("[\"sh\", \"-c\", \"tee {to} | ip netns exec {space} $0 | tee {from}\"]");
        text = text.replace(&format!("[\"ip\", \"netns\", \"exec\", \"{space}\"]"), &copied);
    }
    std::fs::write(&file, text).unwrap();
    let (pairs, a_side) = ((hosts * agents / 2).to_string(), format!("agents={}", agents / 2));
    let mut command = place.command(&["bench", "kernel", "--transport", "tcp", "--pairs", &pairs, "--rate", "20"]);
    command.args(["--warmup", "100ms", "--duration", "500ms", "--repeats", "1", "--json", "--set", &a_side]);
    let run = only_run(command.args(["--set", "placement=together", "--hosts", &file, "--out", "r"]));
    assert_eq!(run["agents"].as_array().unwrap().len(), hosts * agents);
    Some(names.iter().map(|name| Crossed::of(&copy(name, "to"), &copy(name, "from"))).collect())
}

#[test]
fn what_a_host_is_asked_grows_by_the_start_of_each_of_its_agents_and_with_nothing_else() {
    let mut all = Vec::new();
    println!("hosts  agents a host  asked of a host    answered");
    for (hosts, agents) in [(2, 2), (4, 2), (2, 8)] {
        let Some(found) = crossed(hosts, agents) else { return leave_out("hosts::many::what_a_host_is_asked", WHY) };
        for host in &found {
            assert_eq!(
                (host.asked.get("Tell"), host.asked.get("StartAgent")),
                (Some(&6), Some(&(agents as u64))),
                "{host:?}"
            );
            assert_eq!(host.replies, host.asked(), "an answer each: {host:?}");
        }
        let last = &found[hosts - 1];
        println!(
            "{hosts:5}  {agents:13}  {:3} lines {:4.1} kB  {:3} lines {:4.1} kB",
            last.asked(),
            last.asked_bytes as f64 / 1e3,
            last.replies + last.words,
            last.answered_bytes as f64 / 1e3
        );
        // Requests other than the starts of agents.
        let besides = |mut host: Crossed| {
            host.asked.remove("StartAgent");
            host.asked
        };
        all.push(found.into_iter().map(besides).collect::<Vec<_>>());
    }
    let [few, more_hosts, more_agents] = &all[..] else { unreachable!() };
    assert_eq!(more_agents, few);
    assert!(more_hosts[1..].iter().all(|host| *host == few[1]) && more_hosts[0] == few[0], "{more_hosts:#?}");
}
