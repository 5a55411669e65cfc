//! The sink and the bare loops on real sockets, and a whole calibration.

use crate::support::{Place, alive, children, free_port, pubmark, stderr, stdout, wait_for};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A hidden command, with its input and output.
struct Helper {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Helper {
    fn start(arguments: &[&str]) -> Helper {
        let mut child = pubmark().args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Helper { child, input, output }
    }

    /// Reads a line; the helper's own time limit is that of the test, because it ends by itself.
    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    fn tell(&mut self, words: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{words}").unwrap();
    }

    fn end(mut self) -> Value {
        self.input = None;
        let last = self.hear();
        assert!(self.child.wait().unwrap().success());
        last
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a sink of this many processes. Returns its address.
fn sink(processes: &str) -> (Helper, String) {
    let mut sink = Helper::start(&["sink", "--processes", processes]);
    let endpoint = sink.hear()["endpoint"].as_str().unwrap().to_owned();
    let address = endpoint.strip_prefix("mqtt://").unwrap().to_owned();
    (sink, address)
}

fn bare<'a>(what: &'a str, to: &'a str, more: &[&'a str]) -> Helper {
    let mut arguments = vec!["bare", what, "--to", to, "--warmup-ns", "100000000", "--window-ns", "400000000"];
    arguments.extend(more);
    Helper::start(&arguments)
}

/// Starts the loop now, and returns its report.
fn go(mut helper: Helper) -> Value {
    helper.hear();
    helper.tell(&json!({"start_ns": pubmark_host::clock::now()}));
    helper.hear()
}

#[test]
fn the_sink_takes_every_byte_and_message_of_a_paced_sender() {
    for processes in ["1", "3"] {
        let (sink, to) = sink(processes);
        let sender = bare("send", &to, &["--connections", "40", "--rate", "4000", "--payload", "100"]);
        let sent = go(sender);
        // From the start to the window's end, a message each 250 µs: none missing, none extra.
        assert_eq!((&sent["total_messages"], &sent["messages"]), (&json!(2_000), &json!(1_600)), "{sent}");
        let taken = sink.end();
        assert_eq!(taken["bytes"], sent["total_bytes"], "{processes} processes: {taken} {sent}");
        assert_eq!(taken["messages"], 2_000, "{taken}");
        assert_eq!((&taken["connections"], &taken["broken"]), (&json!(40), &json!(0)), "{taken}");
    }
}

#[test]
fn the_sink_takes_every_byte_of_a_flood() {
    let (sink, to) = sink("1");
    let sent = go(bare("flood", &to, &["--connections", "3", "--payload", "64"]));
    let taken = sink.end();
    assert_eq!(taken["bytes"], sent["total_bytes"]);
    // The last message of each connection may have been cut by the end.
    let (took, whole) = (taken["messages"].as_u64().unwrap(), sent["total_messages"].as_u64().unwrap());
    assert!(took <= whole && whole <= took + 3, "{took} taken, {whole} sent");
    assert!(sent["messages"].as_u64().unwrap() <= whole && whole > 1_000, "{sent}");
    assert!(sent["cpu_ns"].as_u64().unwrap() > 0 && sent["wall_ns"].as_u64().unwrap() > 0, "{sent}");
}

#[test]
fn what_the_bare_sender_sends_the_bare_receiver_gets() {
    let place = Place::new();
    let broker = place.serve_system("mosquitto", port());
    let to = broker.endpoint().strip_prefix("mqtt://").unwrap().to_owned();
    let load = ["--connections", "20", "--rate", "2000", "--payload", "300", "--run", "r1"];
    let mut receiver = bare("receive", &to, &load);
    assert_eq!(receiver.hear(), json!({"connections": 20}));
    let mut sender = bare("send", &to, &load);
    sender.hear();
    let start = json!({"start_ns": pubmark_host::clock::now()});
    receiver.tell(&start);
    sender.tell(&start);
    let sent = sender.hear();
    receiver.tell(&json!({"messages": sent["total_messages"]}));
    let received = receiver.hear();
    assert_eq!(sent["total_messages"], 1_000);
    assert_eq!(received["total_messages"], 1_000, "{received}");
    let bytes = received["total_bytes"].as_u64().unwrap();
    assert_eq!(bytes % 1_000, 0, "all messages are of one length: {received}");
    assert!(received["messages"].as_u64().unwrap() <= 1_000 && received["cpu_ns"].as_u64().unwrap() > 0, "{received}");
}

/// Returns the one port of a broker.
fn port() -> Vec<(String, u16)> {
    vec![(String::new(), free_port())]
}

#[test]
fn the_sink_answers_what_agents_ask_for_and_delivers_nothing() {
    let (sink, to) = sink("1");
    let place = Place::new();
    let bench =
        place.bench(&[&format!("mqtt://{to}"), "--qos", "1", "--publishers", "3", "--set", "connect_timeout=1s"]);
    bench.assert_failed(&["does not deliver"]);
    let taken = sink.end();
    assert_eq!(taken["broken"], 0, "subscriptions, acknowledgements and signs of life are answered: {taken}");
    assert!(taken["connections"].as_u64().unwrap() >= 6, "{taken}");
}

#[test]
fn the_sink_ends_with_whoever_wanted_it() {
    let (mut sink, _) = sink("2");
    let pid = sink.child.id();
    let parts = children(pid);
    assert_eq!(parts.len(), 2, "{parts:?}");
    sink.child.kill().unwrap();
    sink.child.wait().unwrap();
    wait_for("its processes to end", || parts.iter().all(|(pid, _)| !alive(*pid)).then_some(()));
}

fn positive(value: &Value, what: &str) -> f64 {
    let figure = value.as_f64().unwrap_or_else(|| panic!("{what} is not a number: {value}"));
    assert!(figure > 0.0, "{what}: {figure}");
    figure
}

fn assert_compared(compared: &Value, runs: usize, what: &str) {
    for side in ["ours", "bare"] {
        assert_eq!(compared[side].as_array().unwrap().len(), runs, "{what}: {compared}");
        positive(&compared[format!("{side}_median")], what);
    }
    let ratio = positive(&compared["ratio"], what);
    let figures = |side: &str| -> Vec<f64> {
        compared[side].as_array().unwrap().iter().map(|figure| figure.as_f64().unwrap()).collect()
    };
    let ratios: Vec<f64> = figures("ours").iter().zip(figures("bare")).map(|(ours, bare)| ours / bare).collect();
    let wanted = pubmark_stats::median(&ratios).unwrap();
    assert!((ratio / wanted - 1.0).abs() < 1e-9, "{what}: {compared}");
}

/// Checks that every figure exists and that none contradicts another.
fn assert_whole(calibration: &Value) {
    assert_eq!(calibration["quick"], true);
    for (at, rate) in [(0, 10_000.0), (1, 50_000.0)] {
        let cost = &calibration["cost"][at];
        assert_eq!(cost["rate_per_s"], rate);
        assert_compared(&cost["send_cpu_s_per_million"], 1, "send");
        assert_compared(&cost["receive_cpu_s_per_million"], 1, "receive");
        let window = rate * 0.25;
        assert_eq!(cost["bare_lag_ns"]["count"].as_f64(), Some(window), "a lag for each message of the window");
        assert_eq!(cost["ours_lag_ns"]["count"].as_f64(), Some(window));
    }
    for (at, bytes) in [(0, 64.0), (1, 1_000.0)] {
        let one = &calibration["unthrottled"][at];
        assert_compared(&one["messages_per_s"], 3, "unthrottled");
        let per_message = one["bytes_per_s"]["ours_median"].as_f64().unwrap()
            / one["messages_per_s"]["ours_median"].as_f64().unwrap();
        assert!((per_message - bytes).abs() < 1e-6, "{one}");
    }
    for what in ["nanosleep_ns", "ppoll_ns", "reader_ns"] {
        let late = &calibration["wake"][what];
        assert_eq!(late["count"], 500, "{what}");
        assert!(late["p50"].as_u64() <= late["p99"].as_u64() && late["p99"].as_u64() <= late["max"].as_u64(), "{late}");
    }
    let connections = calibration["connections"].as_array().unwrap();
    assert_eq!(connections.iter().map(|one| one["wanted"].as_u64().unwrap()).collect::<Vec<_>>(), [60, 600]);
    assert!(connections.iter().all(|one| one["opened"] == one["wanted"]), "{connections:?}");
    for one in connections {
        positive(&one["user_bytes"], "memory");
        positive(&one["per_s"], "connections a second");
    }
    assert!(calibration["load"]["cores"].as_u64().unwrap() > 0, "{}", calibration["load"]);
    let most = &calibration["most"];
    let attempts = most["attempts"].as_array().unwrap();
    assert!(!attempts.is_empty());
    let kept = |attempt: &&Value| attempt["kept"] == true;
    let best = attempts.iter().filter(kept).map(|attempt| attempt["asked_per_s"].as_f64().unwrap()).fold(0.0, f64::max);
    assert_eq!(most["per_s"].as_f64(), Some(best), "{most}");
    assert!(most["missed_per_s"].is_null() || most["missed_per_s"].as_f64() > Some(best), "{most}");
}

#[test]
fn a_calibration_has_every_figure_and_later_runs_know_it_if_it_is_of_this_machine() {
    let place = Place::new();
    let broker = place.serve_system("mosquitto", port());
    // An invalid file of the user disturbs no command that does not need it.
    place.system("mqtt", "title = nonsense");
    let cache = place.path("cache");
    let run = |arguments: &[&str]| place.command(arguments).env("XDG_CACHE_HOME", &cache).output().unwrap();
    let output = run(&["calibrate", "--quick", "--json", "-q", "--connections", "600", "--relay", broker.endpoint()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let calibration: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_whole(&calibration);
    place.assert_swept();

    let saved = cache.join("pubmark/calibration.json");
    let kept: Value = serde_json::from_slice(&std::fs::read(&saved).unwrap()).unwrap();
    assert_eq!(kept, calibration, "what is printed is what is saved");

    let bench = |folder: &str| {
        let flags = ["--rate", "200", "--duration", "100ms", "--warmup", "10ms", "--repeats", "1", "-q", "--json"];
        let output = run(&[["bench", "mock", "--out", folder].as_slice(), &flags].concat());
        let environment = std::fs::read(place.path(folder).join("environment.json")).unwrap();
        let record: Value = serde_json::from_str(&stdout(&output)).unwrap();
        (serde_json::from_slice::<Value>(&environment).unwrap(), record["runs"][0].clone())
    };
    assert_eq!(bench("mine").0["calibration"], calibration);
    let mut other = calibration.clone();
    other["machine"]["cores"] = json!(calibration["machine"]["cores"].as_u64().unwrap() + 1);
    std::fs::write(&saved, other.to_string()).unwrap();
    let (environment, record) = bench("foreign");
    assert!(environment["calibration"].is_null(), "of another machine: {environment}");
    assert_eq!(record["remarks"], json!([]));
    std::fs::write(&saved, "{").unwrap();
    let (environment, record) = bench("broken");
    assert!(environment["calibration"].is_null());
    assert!(record["remarks"].to_string().contains("calibration.json"), "{}", record["remarks"]);
}

#[test]
fn a_relay_that_cannot_be_one_is_refused() {
    let place = Place::new();
    for (relay, code, words) in [
        ("nats://127.0.0.1:4222", 2, "mqtt://HOST:PORT"),
        ("mqtts://127.0.0.1:8883", 2, "mqtt://HOST:PORT"),
        ("nonsense", 2, "nonsense"),
    ] {
        let output = place.run(&["calibrate", "--quick", "-q", "--relay", relay]);
        assert_eq!(output.status.code(), Some(code), "{relay}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{relay}: {}", stderr(&output));
    }
}
