//! Checks that clock comparisons are true: hosts in time namespaces, whose clocks differ by a known amount.

use crate::hosts::Network;
use crate::left_out::leave_out;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// `pubmark host` in a namespace of the network, whose clock is ahead by a given time. It ends when its input does.
struct Clocked {
    process: Child,
    asked: Option<ChildStdin>,
    said: BufReader<ChildStdout>,
}

impl Clocked {
    fn new(namespace: &str, ahead_s: i64) -> Clocked {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, "unshare", "--time", "--monotonic", &ahead_s.to_string()]);
        command.args([env!("CARGO_BIN_EXE_pubmark"), "host"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        Clocked { asked: process.stdin.take(), process, said }
    }

    fn ask(&mut self, request: &Value) -> Value {
        let asked = self.asked.as_mut().unwrap();
        writeln!(asked, "{request}").and_then(|()| asked.flush()).unwrap();
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{request}: {line}"));
        assert!(answer.get("reply").is_some(), "{request}: {answer}");
        answer["reply"].clone()
    }
}

/// Maximum bound on a link within this machine, ns.
const WIDEST_NS: u64 = 30_000;

/// Returns the processor time of all threads of a process, ns.
fn cpu_ns(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_task = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    tasks.filter_map(of_task).sum()
}

impl Drop for Clocked {
    fn drop(&mut self) {
        self.asked = None;
        let _ = self.process.wait();
    }
}

/// A clock is set ahead and not behind: a machine may have run for less than an hour.
#[test]
fn the_true_offset_lies_within_the_bound_in_100_of_100_comparisons() {
    let own = Command::new("unshare").args(["--time", "--monotonic", "1", "true"]).stderr(Stdio::null()).status();
    let Some(network) = Network::new('k').filter(|_| own.is_ok_and(|status| status.success())) else {
        return leave_out("the_true_offset_lies_within_the_bound", "namespaces of time cannot be made here");
    };
    let [one, other] = ["publishers", "subscribers"].map(|host| (network.namespace(host), network.address(host)));
    let (mut bounds, mut cpu) = (Vec::new(), [0, 0]);
    for ahead_s in [3_600, 1_801, 600, 61, 1] {
        for (answering, asking) in [(ahead_s, 0), (0, ahead_s)] {
            let (mut answers, mut asks) = (Clocked::new(&one.0, answering), Clocked::new(&other.0, asking));
            let at = answers.ask(&json!({"request": "ServeClock", "parameters": {"address": one.1}}));
            let so_far = [&answers, &asks].map(|host| cpu_ns(host.process.id()));
            for _ in 0..10 {
                let found =
                    asks.ask(&json!({"request": "CompareClock", "parameters": {"address": other.1, "with": at}}));
                let (offset, bound) = (found["offset_ns"].as_i64().unwrap(), found["bound_ns"].as_u64().unwrap());
                let error = (offset - (answering - asking) * 1_000_000_000).unsigned_abs();
                assert!(error <= bound, "{answering} s less {asking} s: off by {error} ns: {found}");
                bounds.push(bound);
            }
            for (sum, (host, so_far)) in cpu.iter_mut().zip([&answers, &asks].into_iter().zip(so_far)) {
                *sum += cpu_ns(host.process.id()) - so_far;
            }
        }
    }
    bounds.sort_unstable();
    let median = bounds[bounds.len() / 2];
    println!("{} bounds: half below {median} ns, the widest {} ns", bounds.len(), bounds[99]);
    // Other load of the machine lengthens single round trips, and a bound is made of the shortest of 200.
    assert!(median <= WIDEST_NS, "half of the bounds are wider than {median} ns");
    // 200 exchanges each.
    let [answering_us, asking_us] = cpu.map(|ns| ns as f64 / (bounds.len() * 200) as f64 / 1e3);
    println!(
        "an exchange takes {asking_us:.1} µs of processor time where it is asked, {answering_us:.1} where answered"
    );
    assert_eq!((bounds.len(), network.processes()), (100, Vec::new()));
}

/// A path that takes longer in one direction: it delays data in one or in the other direction. It ends when this is
/// dropped.
struct Detour {
    at: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Detour {
    /// Starts it within a namespace of the network, at this address, before the real one at `behind`.
    fn new(namespace: &str, address: &str, behind: SocketAddr, held_back: [Duration; 2]) -> Detour {
        let (told, at) = std::sync::mpsc::channel();
        let over = Arc::new(AtomicBool::new(false));
        let (ended, address) = (over.clone(), address.to_owned());
        let space = std::fs::File::open(format!("/run/netns/{namespace}")).unwrap();
        let carry = move || {
            // This thread alone is there.
            nix::sched::setns(space, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            let [asked, answered] = [0, 1].map(|_| UdpSocket::bind((address.as_str(), 0)).unwrap());
            for socket in [&asked, &answered] {
                socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            }
            answered.connect(behind).unwrap();
            told.send(asked.local_addr().unwrap()).unwrap();
            let mut message = [0; 64];
            while !ended.load(Ordering::Relaxed) {
                let Ok((length, from)) = asked.recv_from(&mut message) else { continue };
                hold(held_back[0]);
                answered.send(&message[..length]).unwrap();
                let Ok(length) = answered.recv(&mut message) else { continue };
                hold(held_back[1]);
                asked.send_to(&message[..length], from).unwrap();
            }
        };
        let thread = Some(std::thread::spawn(carry));
        Detour { at: at.recv().unwrap(), over, thread }
    }
}

impl Drop for Detour {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Sleeps at least this time.
fn hold(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// A longer path cannot be distinguished from a clock offset: the result is off by half of the difference, and the
/// bound contains the truth nevertheless.
#[test]
fn a_way_that_takes_longer_moves_what_is_found_by_half_of_it_and_the_bound_holds_the_truth() {
    let own = Command::new("unshare").args(["--time", "--monotonic", "1", "true"]).stderr(Stdio::null()).status();
    let Some(network) = Network::new('q').filter(|_| own.is_ok_and(|status| status.success())) else {
        return leave_out("a_way_that_takes_longer", "namespaces of time cannot be made here");
    };
    const AHEAD_S: i64 = 61;
    const LONGER: Duration = Duration::from_micros(500);
    let [one, other] = ["publishers", "subscribers"].map(|host| (network.namespace(host), network.address(host)));
    let (mut answers, mut asks) = (Clocked::new(&one.0, AHEAD_S), Clocked::new(&other.0, 0));
    let at = answers
        .ask(&json!({"request": "ServeClock", "parameters": {"address": one.1}}))
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let longer_ns = LONGER.as_nanos() as i64;
    for (held_back, sign) in [([LONGER, Duration::ZERO], 1), ([Duration::ZERO, LONGER], -1)] {
        let detour = Detour::new(&one.0, &one.1, at, held_back);
        let found = asks.ask(
            &json!({"request": "CompareClock", "parameters": {"address": other.1, "with": detour.at.to_string()}}),
        );
        let (offset, bound) = (found["offset_ns"].as_i64().unwrap(), found["bound_ns"].as_i64().unwrap());
        let error = sign * (offset - AHEAD_S * 1_000_000_000);
        println!("{held_back:?}: off by {} ns, of which the bound of {bound} ns holds all", sign * error);
        // The rest of the round trip may lie in either direction.
        assert!((longer_ns - bound..=bound).contains(&error), "{held_back:?}: {found}");
        assert!(bound >= longer_ns / 2, "{held_back:?}: {found}");
    }
}
