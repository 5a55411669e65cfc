//! What the program reports, against a peer whose delays and faults are
//! scripted: the answers are known beforehand. Counts are compared exactly.
//! Latencies may not be below what was scripted, and above it by no more than
//! the tolerance and what this machine, in the same seconds, was seen to add.

use crate::support::{Benched, PATIENCE, Place, count, stderr, stdout, wait_for};
use pubmark_model::units::Ns;
use pubmark_peer::Script;
use pubmark_peer::truth::{Truth, truth, uniform};
use pubmark_stats::Histogram;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const MS: Ns = 1_000_000;
/// From the start to the window, in all tests.
const WARMUP_MS: Ns = 200;
/// Where a run cannot tell the instrument from the machine, it is repeated.
const ATTEMPTS: u32 = 3;
/// Percentiles that are compared: the name in a record, and the share.
const PERCENTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];

/// These tests measure: one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running peer. It ends with the value.
pub struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    pub endpoint: String,
}

impl Peer {
    fn start(place: &Place, protocol: &str, script: &str) -> Peer {
        let path = place.path("script.toml");
        std::fs::write(&path, script).unwrap();
        let mut command = place.command(&["peer", "--protocol", protocol, "--script", path.to_str().unwrap()]);
        Peer::spawn(&mut command)
    }

    pub fn spawn(command: &mut Command) -> Peer {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (say, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).all(|line| say.send(line).is_ok()));
        let input = child.stdin.take();
        let mut peer = Peer { child, input, lines, endpoint: String::new() };
        peer.endpoint = peer.line()["endpoint"].as_str().unwrap().to_owned();
        peer
    }

    fn line(&self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(PATIENCE).unwrap()).unwrap()
    }

    /// Closes its input; what it says that it did.
    fn end(mut self) -> Value {
        drop(self.input.take());
        let account = self.line();
        let status = wait_for("the peer's end", || self.child.try_wait().unwrap());
        assert!(status.success(), "{status}");
        account
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How late a sleeping reader of a loopback socket wakes up on this machine
/// while a run is on.
struct Probe {
    stop: Sender<()>,
    writer: JoinHandle<()>,
    reader: JoinHandle<Histogram>,
}

impl Probe {
    fn start() -> Probe {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.set_nodelay(true).unwrap();
        let base = Instant::now();
        let ns = move || base.elapsed().as_nanos() as u64;
        let (stop, stopped) = channel::<()>();
        let writer = std::thread::spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(2)).is_err() {
                near.write_all(&ns().to_le_bytes()).unwrap();
            }
        });
        let reader = std::thread::spawn(move || {
            let (mut histogram, mut stamp) = (Histogram::latency(), [0; 8]);
            while far.read_exact(&mut stamp).is_ok() {
                histogram.record(ns().saturating_sub(u64::from_le_bytes(stamp)));
            }
            histogram
        });
        Probe { stop, writer, reader }
    }

    fn end(self) -> Histogram {
        self.stop.send(()).unwrap();
        self.writer.join().unwrap();
        self.reader.join().unwrap()
    }
}

/// A run against a scripted peer, and what was seen beside it.
struct Run {
    bench: Benched,
    account: Value,
    wake: Histogram,
}

impl Run {
    /// `window_ms` is the window's length; the peer counts just its messages.
    fn new(protocol: &str, script: &str, window_ms: Ns, arguments: &[&str]) -> Run {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, &counted(script, window_ms));
        let duration = format!("{window_ms}ms");
        let mut all = vec![peer.endpoint.as_str(), "--duration", &duration, "--set", "verify=full"];
        all.extend(arguments);
        let probe = Probe::start();
        let bench = place.bench(&all);
        let wake = probe.end();
        assert!(bench.record["error"].is_null(), "{}", bench.error());
        Run { bench, account: peer.end(), wake }
    }

    fn account(&self, name: &str) -> u64 {
        self.account["counts"][name].as_u64().unwrap()
    }

    /// The most that machine and peer together were seen to add, ns.
    fn noise_ns(&self) -> Ns {
        self.account["release_error_ns"]["max"].as_u64().unwrap() + self.wake.max()
    }

    /// Latencies above a bound, by the record's own histogram.
    fn slower_than(&self, bound_ns: Ns) -> u64 {
        let text = self.bench.record["histograms"]["latency"].as_str().unwrap();
        let histogram = Histogram::decode(text).unwrap();
        histogram.nonzero().filter(|(ns, _)| *ns > bound_ns).map(|(_, count)| count).sum()
    }
}

/// A script that counts the window's messages only.
fn counted(script: &str, window_ms: Ns) -> String {
    format!("count = {{ from = \"{WARMUP_MS}ms\", for = \"{window_ms}ms\" }}\n{script}")
}

fn known(script: &str, window_ms: Ns, publishers: u32, rate: u32) -> Truth {
    let script = Script::parse(&counted(script, window_ms)).unwrap();
    let end = (WARMUP_MS + window_ms) * MS;
    truth(&script, uniform(publishers, rate, end), WARMUP_MS * MS, end)
}

/// What one percentile says of the instrument.
#[derive(Debug, PartialEq)]
enum Found {
    Right,
    /// Above what is allowed: the instrument's doing, or the machine's.
    Late,
    /// Below what was scripted: no machine does that.
    Early,
}

/// Compares all percentiles: what was found, and the numbers in words.
///
/// A percentile is right where it is what was scripted, the peer's release
/// error and a reader's wake-up at the same percentile added. Percentiles of a
/// sum may lie above the sum of percentiles, though, and the peer may have been
/// late; so it is also right where it is what the peer did, and a wake-up
/// added: for any s, (D + W) at p is at most D at p + s, and W at 1 - s.
fn compare(run: &Run, truth: &Truth) -> Vec<(Found, String)> {
    let histogram = Histogram::decode(run.account["latency_histogram"].as_str().unwrap()).unwrap();
    let one = |(name, share): (&str, f64)| {
        let of = |value: &Value| value[name].as_u64().unwrap();
        let (reported, release) = (of(&run.bench.record["latency_ns"]), of(&run.account["release_error_ns"]));
        let (scripted, wake) = (truth.quantile(share), run.wake.value_at(share));
        // Every s gives a bound. Delays that lie apart are bounded by a small one, wake-ups by a large one.
        let bound = |apart: f64| (histogram.value_at(share + apart), run.wake.value_at(1.0 - apart));
        let bounds = [0.1, 0.01].map(|part| bound((1.0 - share) * part));
        let (done, late_wake) = bounds.into_iter().min_by_key(|(done, wake)| done + wake).unwrap();
        let tolerance = (scripted / 100).max(20_000);
        let allowed = (scripted + release + wake).max(done + late_wake) + tolerance;
        let found = match reported {
            _ if reported + tolerance < scripted => Found::Early,
            _ if reported <= allowed => Found::Right,
            _ => Found::Late,
        };
        let words = format!(
            "{name}: {found:?}: reported {reported} ns, scripted {scripted} ns, tolerance {tolerance} ns; beside it \
             the peer's release error {release} ns, a reader's wake-up {wake} ns (at most {late_wake} ns); at the \
             peer's write {done} ns"
        );
        (found, words)
    };
    PERCENTILES.map(one).into()
}

/// Ten pairs at 100 messages a second each, one delay after another.
fn latencies(protocol: &str, script: &str, window_ms: Ns, arguments: &[&str]) -> Run {
    let truth = known(script, window_ms, 10, 100);
    let mut late: Vec<&str> = PERCENTILES.iter().map(|(name, _)| *name).collect();
    let mut said = Vec::new();
    for _ in 0..ATTEMPTS {
        let run = Run::new(protocol, script, window_ms, &[&["--pairs", "10", "--rate", "100"], arguments].concat());
        assert_eq!(count(&run.bench.record, "delivered"), truth.offered, "{}", run.bench.record["counts"]);
        assert_eq!(run.bench.record["latency_ns"]["count"], truth.latencies_ns.len());
        let compared = compare(&run, &truth);
        said.extend(compared.iter().map(|(_, words)| words.clone()));
        let said = said.join("\n");
        assert!(compared.iter().all(|(found, _)| *found != Found::Early), "{protocol} {script}\n{said}");
        // A wrong instrument is wrong each time, a machine is late now and then.
        late.retain(|name| {
            let at = PERCENTILES.iter().position(|(other, _)| other == name).unwrap();
            compared[at].0 == Found::Late
        });
        if late.is_empty() {
            return run;
        }
    }
    panic!("{protocol} {script}: late in each of {ATTEMPTS} runs: {late:?}\n{}", said.join("\n"));
}

/// The comparison itself: an instrument that reports too much or too little is found out.
#[test]
fn a_wrong_instrument_is_told_from_a_busy_machine() {
    let _alone = alone();
    let mut run = latencies("mqtt", FIXED, 1_500, &[]);
    let truth = known(FIXED, 1_500, 10, 100);
    let right = run.bench.record["latency_ns"].clone();
    for (name, _) in PERCENTILES {
        let reported = right[name].as_u64().unwrap();
        for (wrong, wanted) in [(9_800_000, Found::Early), (reported + 200_000 + 2 * run.noise_ns(), Found::Late)] {
            run.bench.record["latency_ns"][name] = wrong.into();
            let compared = compare(&run, &truth);
            let (found, words) = compared.iter().find(|(found, _)| *found != Found::Right).unwrap();
            assert!(*found == wanted && words.starts_with(name), "{words}");
        }
        run.bench.record["latency_ns"] = right.clone();
    }
}

const FIXED: &str = "delay = { fixed = \"10ms\" }";
const UNIFORM: &str = "delay = { uniform = [\"1ms\", \"21ms\"] }";
const BIMODAL: &str =
    "delay = { quantiles = [[0.0, \"2ms\"], [0.995, \"2ms\"], [0.995, \"200ms\"], [1.0, \"200ms\"]] }";
const MQTT_5: &[&str] = &["--set", "options.mqtt_version=5"];

#[test]
fn a_fixed_delay_is_found_over_mqtt() {
    let _alone = alone();
    latencies("mqtt", FIXED, 1_500, &[]);
}

#[test]
fn a_fixed_delay_is_found_over_nats() {
    let _alone = alone();
    latencies("nats", FIXED, 1_500, &[]);
}

#[test]
fn a_fixed_delay_is_found_over_resp() {
    let _alone = alone();
    latencies("redis", FIXED, 1_500, &[]);
}

#[test]
fn uniform_delays_are_found_over_mqtt_at_qos_1() {
    let _alone = alone();
    let run = latencies("mqtt", UNIFORM, 1_500, &["--qos", "1"]);
    assert_eq!((run.bench.count("acked"), run.bench.count("acked_lost")), (1_500, 0));
}

#[test]
fn uniform_delays_are_found_over_nats() {
    let _alone = alone();
    latencies("nats", UNIFORM, 1_500, &[]);
}

#[test]
fn uniform_delays_are_found_over_resp() {
    let _alone = alone();
    latencies("redis", UNIFORM, 1_500, &[]);
}

#[test]
fn a_rare_long_delay_is_found_over_mqtt_5_at_qos_2() {
    let _alone = alone();
    latencies("mqtt", BIMODAL, 1_500, &[&["--qos", "2"], MQTT_5].concat());
}

#[test]
fn a_rare_long_delay_is_found_over_nats() {
    let _alone = alone();
    latencies("nats", BIMODAL, 1_500, &[]);
}

#[test]
fn a_rare_long_delay_is_found_over_resp() {
    let _alone = alone();
    latencies("redis", BIMODAL, 1_500, &["--set", "options.resp=2"]);
}

/// Five publishers of 200 messages a second; in the window they send those
/// numbered 41 to 240, counted from 1.
fn faults(protocol: &str, qos: u64, arguments: &[&str]) {
    const SCRIPT: &str = r#"
        delay = { uniform = ["1ms", "9ms"] }
        ordered = true
        lose = { every = 50 }
        swallow = { every = 7, at = [[2, 100]] }
        duplicate = { every = 11 }
        reorder = { every = 13 }
        corrupt = { every = 17, offset = 100 }
        connect = { close = [1, 5], deny = [3], answer_after = "20ms" }
    "#;
    let _alone = alone();
    let run = Run::new(protocol, SCRIPT, 1_000, &[&["--pairs", "5", "--set", "drain=1s"], arguments].concat());
    let each = |keep: &dyn Fn(u64, u64) -> bool| {
        let all = (0..5).flat_map(|publisher| (41..=240).map(move |number| (publisher, number)));
        all.filter(|(publisher, number)| keep(*publisher, *number)).count() as u64
    };
    let swallowed = |publisher: u64, number: u64| number.is_multiple_of(7) || (publisher, number) == (2, 101);
    let reaches = |publisher, number: u64| !number.is_multiple_of(50) && !swallowed(publisher, number);
    let reaching = |every: u64| each(&|publisher, number| number.is_multiple_of(every) && reaches(publisher, number));
    let lost = each(&|_, number| number.is_multiple_of(50));
    let acked_lost = each(&|publisher, number| !number.is_multiple_of(50) && swallowed(publisher, number));
    let wanted = [
        ("offered", 1_000),
        ("sent", 1_000),
        ("expected", 1_000),
        ("delivered", 1_000 - lost - acked_lost),
        ("lost", lost + acked_lost),
        ("duplicated", reaching(11)),
        ("reordered", reaching(13)),
        ("corrupted", reaching(17)),
        ("unidentified", 0),
        ("acked", if qos > 0 { 1_000 - lost } else { 0 }),
        ("acked_lost", if qos > 0 { acked_lost } else { 0 }),
    ];
    let found = wanted.map(|(name, _)| (name, run.bench.count(name)));
    assert_eq!(found, wanted, "{protocol} {arguments:?}: {}", run.account);
    // The peer's own account agrees.
    let account = ["lost", "swallowed", "duplicated", "reordered", "corrupted"].map(|name| run.account(name));
    assert_eq!(account, [lost, acked_lost, reaching(11), reaching(13), reaching(17)]);

    let connections = &run.bench.record["connections"];
    let figures = ["wanted", "opened", "refused", "retried", "lost"].map(|name| connections[name].as_u64().unwrap());
    assert_eq!(figures, [10, 10, 3, 3, 0], "{connections}");
    let made = &run.account["connections"];
    let made = ["accepted", "closed", "denied", "malformed"].map(|name| made[name].as_u64().unwrap());
    assert_eq!(made, [13, 2, 1, 0]);
    let quickest = connections["time_ns"]["min"].as_u64().unwrap();
    // A histogram's bucket may begin 0.1 % before what is in it.
    assert!(quickest >= 20 * MS - MS / 50, "accepted after {quickest} ns, and nothing was said for 20 ms");
}

#[test]
fn faults_are_counted_exactly_over_mqtt_at_qos_0() {
    faults("mqtt", 0, MQTT_5);
}

#[test]
fn faults_are_counted_exactly_over_mqtt_at_qos_1() {
    faults("mqtt", 1, &["--qos", "1"]);
}

#[test]
fn faults_are_counted_exactly_over_mqtt_at_qos_2() {
    faults("mqtt", 2, &[&["--qos", "2"], MQTT_5].concat());
}

#[test]
fn faults_are_counted_exactly_over_nats() {
    faults("nats", 0, &[]);
}

#[test]
fn faults_are_counted_exactly_over_resp() {
    faults("redis", 0, &[]);
}

/// Damage to the header leaves nobody whom a message could be told to be of.
#[test]
fn a_message_whose_header_is_damaged_is_not_identified() {
    let _alone = alone();
    // Byte 11 is the highest of the publisher's number.
    let script = "delay = { fixed = \"1ms\" }\ncorrupt = { at = [[0, 60], [0, 61], [0, 99]], offset = 11 }";
    let run = Run::new("mqtt", script, 1_000, &[]);
    let found = ["lost", "corrupted", "unidentified", "delivered"].map(|name| run.bench.count(name));
    assert_eq!(found, [3, 3, 3, 197], "{}", run.bench.record["counts"]);
}

/// The whole server stands still for a second: what is due in it waits, evenly
/// up to a second, and shows in the latency from intended time.
fn stall(protocol: &str, arguments: &[&str]) {
    const SCRIPT: &str = "delay = { fixed = \"1ms\" }\n[[stall]]\nfrom = \"1s\"\nfor = \"1s\"";
    let _alone = alone();
    let truth = known(SCRIPT, 2_500, 10, 100);
    let run = latencies(protocol, SCRIPT, 2_500, arguments);
    assert_eq!(run.account("stalled"), 1_000, "due from 999 ms on, for a second");
    // Latencies of the late ones are whole milliseconds: 2 to 1001.
    let bound = 50 * MS + MS / 2;
    let slower = |bound: Ns| truth.latencies_ns.iter().filter(|latency| **latency > bound).count() as u64;
    assert_eq!(slower(bound), 951);
    let (found, most) = (run.slower_than(bound), slower(bound.saturating_sub(run.noise_ns())));
    assert!(
        (951..=most).contains(&found),
        "{found} latencies above 50.5 ms; 951 were scripted, {most} at most explained"
    );

    let stalls = &run.bench.record["stalls"];
    let longest = stalls["longest_ns"].as_u64().unwrap();
    assert!(stalls["count"].as_u64().unwrap() >= 10, "each of ten subscribers heard nothing: {stalls}");
    // From a message of the last 10 ms before it.
    let (least, most) = (1_000 * MS - run.noise_ns(), 1_010 * MS + run.noise_ns());
    assert!((least..=most).contains(&longest), "{longest} ns, between {least} and {most}");
    let verdict = &run.bench.record["verdict"];
    assert!(run.bench.evidence("not-steady").is_none(), "{verdict}");
    let noted = |note: &Value| {
        note["part"] == "server"
            && note["evidence"].as_str().is_some_and(|words| words.contains("while all agents ran"))
    };
    assert!(verdict["notes"].as_array().unwrap().iter().any(noted), "{verdict}");
}

#[test]
fn a_stall_is_found_over_mqtt() {
    stall("mqtt", &["--qos", "1"]);
}

#[test]
fn a_stall_is_found_over_nats() {
    stall("nats", &[]);
}

#[test]
fn a_stall_is_found_over_resp() {
    stall("redis", &[]);
}

#[test]
fn a_stalled_subscriber_is_told_from_the_others() {
    let _alone = alone();
    let script = "delay = { fixed = \"1ms\" }\n[[stall]]\nfrom = \"500ms\"\nfor = \"500ms\"\nsubscriber = 1";
    let run = Run::new("mqtt", script, 1_300, &["--pattern", "fan-out", "--subscribers", "3", "--rate", "500"]);
    let counts = ["delivered", "lost", "reordered"].map(|name| run.bench.count(name));
    assert_eq!(counts, [3 * 650, 0, 0]);
    assert_eq!(run.account("stalled_copies"), 250, "a message every 2 ms");
    // Due every 2 ms from 500 ms to 998 ms; they wait until 1 s.
    let bound = 51 * MS;
    let slower = |bound: Ns| (0..250).filter(|number| 500 * MS - number * 2 * MS > bound).count() as u64;
    let (found, most) = (run.slower_than(bound), slower(bound.saturating_sub(run.noise_ns())));
    assert!((slower(bound)..=most).contains(&found), "{found} latencies above 51 ms, {} to {most}", slower(bound));
    let stalls = &run.bench.record["stalls"];
    assert!(stalls["longest_ns"].as_u64().unwrap() >= 500 * MS - run.noise_ns(), "{stalls}");
}

#[test]
fn a_plain_relay_loses_nothing_in_any_protocol() {
    let _alone = alone();
    for protocol in ["mqtt", "nats", "redis"] {
        let place = Place::new();
        let peer = Peer::spawn(&mut place.command(&["peer", "--protocol", protocol]));
        let arguments = ["--pattern", "tree", "--publishers", "8", "--subscribers", "2", "--duration", "500ms"];
        let bench = place.bench(&[&[peer.endpoint.as_str()], &arguments[..]].concat());
        let counts = ["expected", "delivered", "duplicated", "reordered"].map(|name| bench.count(name));
        assert_eq!(counts, [800, 800, 0, 0], "{protocol}");
        let account = peer.end();
        // Warm-up and markers go round as well.
        assert!(account["relayed"].as_u64().unwrap() >= 8 * 140, "{account}");
        assert!(account["release_error_ns"].is_null(), "{account}");
    }
}

#[test]
fn a_peer_refuses_a_script_that_it_does_not_understand_and_ends_with_its_input() {
    let place = Place::new();
    std::fs::write(place.path("s.toml"), "lose = { evry = 3 }").unwrap();
    let output = place.run(&["peer", "--script", "s.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("evry") && stderr(&output).contains("s.toml"), "{}", stderr(&output));
    // Its input is at its end from the beginning.
    let output = place.run(&["peer", "--protocol", "nats"]);
    let lines: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{}", stderr(&output));
    assert!(lines[0]["endpoint"].as_str().unwrap().starts_with("nats://127.0.0.1:"));
    assert_eq!(lines[1]["connections"]["accepted"], 0);
}
