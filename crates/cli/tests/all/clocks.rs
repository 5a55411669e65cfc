//! Whether what is said of clocks is true: hosts in namespaces of time, whose
//! clocks are apart by what the kernel was told.

use crate::hosts::Network;
use crate::left_out::leave_out;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// `pubmark host` in a namespace of the network, whose clock is ahead by so much.
/// It ends when its input does.
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
        assert!(answer["reply"].is_object(), "{request}: {answer}");
        answer["reply"].clone()
    }
}

/// Processor time of all threads of a process, ns.
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
            let at = answers.ask(&json!({"tell_time": {"address": one.1}}))["at"].clone();
            let so_far = [&answers, &asks].map(|host| cpu_ns(host.process.id()));
            for _ in 0..10 {
                let found = asks.ask(&json!({"compare_clock": {"address": other.1, "with": at}}))["clock"].clone();
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
    println!("{} bounds: half below {} ns, the widest {} ns", bounds.len(), bounds[bounds.len() / 2], bounds[99]);
    // 200 exchanges each.
    let [answering_us, asking_us] = cpu.map(|ns| ns as f64 / (bounds.len() * 200) as f64 / 1e3);
    println!(
        "an exchange takes {asking_us:.1} µs of processor time where it is asked, {answering_us:.1} where answered"
    );
    assert_eq!((bounds.len(), network.processes()), (100, Vec::new()));
}
