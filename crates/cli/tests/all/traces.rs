//! Traces: recorded at real servers, converted from other tools, and fitted to studies that can be run.

use crate::refusals::mosquitto;
use crate::support::{Place, bench_arguments, count, free_port, interrupt, stderr, stdout, wait_for};
use crate::tls::{Authority, serve};
use pubmark_model::payload::Payload;
use pubmark_model::server::Places;
use pubmark_model::workload::Workload;
use pubmark_stats::Random;
use serde_json::Value;
use std::fmt::Write;
use std::process::{Child, Output, Stdio};

/// Fits a trace, plans the study, and returns its text.
fn fitted(place: &Place, arguments: &[&str]) -> String {
    let output = place.run(&[&["trace"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    place.study(&text);
    let plan = place.run(&["run", "study.toml", "--dry-run"]);
    assert_eq!(plan.status.code(), Some(0), "{}\n{text}", stderr(&plan));
    text
}

/// Returns the value of a key in the table of a flow.
fn value<'a>(study: &'a str, flow: &str, key: &str) -> &'a str {
    let table = study.split_once(&format!("[flows.{flow}]\n")).unwrap_or_else(|| panic!("no {flow}: {study}")).1;
    let line = table.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = ")).unwrap();
    line.split(" # ").next().unwrap().trim_matches('"')
}

fn assert_near(text: &str, wanted: f64, within: f64) {
    let found: f64 = text.parse().unwrap();
    assert!((found / wanted - 1.0).abs() <= within, "{found} should be {wanted} ± {within}");
}

/// Returns a trace of Poisson arrivals with log-normal sizes, even ones of one size, and bursts that begin late.
fn known_trace(seconds: u64) -> String {
    let mut random = Random(3);
    let mut rows: Vec<(u64, &str, u64)> = Vec::new();
    let mut at = 0.0;
    while at < seconds as f64 {
        at -= (1.0 - random.unit()).ln() / 200.0;
        let normal = (-2.0 * (1.0 - random.unit()).ln()).sqrt() * (std::f64::consts::TAU * random.unit()).cos();
        rows.push(((at * 1e9) as u64, "plant/random", (512.0 * (1.2 * normal).exp()).round() as u64));
    }
    rows.extend((0..50 * seconds).map(|number| (number * 20_000_003, "plant/even", 64)));
    let bursts = 20 * seconds / 2..20 * seconds;
    rows.extend(bursts.map(|number| (number / 10 * 500_000_000 + number % 10, "alarms", 16 + number % 2 * 84)));
    rows.sort();
    let mut text = "time,topic,size\n".to_owned();
    for (at_ns, topic, bytes) in rows {
        let _ = writeln!(text, "{}.{:09},{topic},{bytes}", at_ns / 1_000_000_000, at_ns % 1_000_000_000);
    }
    text
}

#[test]
fn known_traffic_comes_back() {
    let place = Place::new();
    std::fs::write(place.path("t.csv"), known_trace(60)).unwrap();
    let study = fitted(&place, &["t.csv", "--fit"]);
    assert!(study.len() < 1_500, "{}: {study}", study.len());
    assert_near(value(&study, "plant-random", "rate"), 200.0, 0.03);
    assert_eq!(value(&study, "plant-random", "arrival"), "poisson");
    let sizes = Payload::parse(value(&study, "plant-random", "payload")).unwrap();
    let Payload::LogNormal { p50, p99, .. } = sizes else { panic!("{study}") };
    assert!((p50 as f64 / 512.0 - 1.0).abs() < 0.05, "{study}");
    assert!((p99 as f64 / (512.0 * (1.2 * 2.326_f64).exp()) - 1.0).abs() < 0.1, "{study}");
    assert_near(value(&study, "plant-even", "rate"), 50.0, 0.01);
    assert_eq!((value(&study, "plant-even", "arrival"), value(&study, "plant-even", "payload")), ("uniform", "64B"));
    assert_eq!(value(&study, "alarms", "arrival"), "burst:10");
    assert_eq!(value(&study, "alarms", "payload"), "mix 16B 50% 100B 50%");
    let rate = value(&study, "alarms", "rate");
    let words: Vec<&str> = rate.split(' ').collect();
    assert!(matches!(words[..], ["steps", "0.001", _, "each", "30s"]), "{rate}");
    assert_near(words[2], 20.0, 0.01);
    assert!(study.contains("warmup = \"0s\"") && study.contains("Kolmogorov-Smirnov distance 0.0"), "{study}");
    let twice = fitted(&place, &["t.csv", "--fit", "--scale", "2x"]);
    assert_near(value(&twice, "plant-even", "rate"), 100.0, 0.01);
    let wrong = place.run(&["trace", "t.csv", "--fit", "--scale", "no"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("--scale `no` is not a factor"), "{}", stderr(&wrong));
}

#[test]
fn damaged_traces_are_refused_by_line() {
    let place = Place::new();
    for (text, wanted) in [
        ("", "t.csv: the file is empty"),
        ("time,flow,size\n", "t.csv: the file has only a header"),
        ("time,flow,size,user\n1.0,a,1,b\n", "t.csv:1: unknown column `user`"),
        ("time,flow,size\n2.0,a,1\n1.0,a,1\n", "t.csv:3: the time is 1 s earlier"),
        ("time,flow,size\n99999999999.0,a,1\n", "t.csv:2: the time `99999999999.0` is in the future"),
        ("time,flow,size\n-1.0,a,1\n", "t.csv:2: the time `-1.0` is negative"),
        ("time,flow,size\n1.0,a,NaN\n", "t.csv:2: `NaN` is not a size"),
        ("time,flow,size\n1.0,a\n", "t.csv:2: the line has 2 fields"),
        ("time,flow,size\n1.0,a,1\n", "t.csv: all messages have the same time"),
    ] {
        std::fs::write(place.path("t.csv"), text).unwrap();
        let output = place.run(&["trace", "t.csv", "--fit"]);
        assert_eq!(output.status.code(), Some(2), "{text:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{text:?}: {}", stderr(&output));
    }
    for (arguments, wanted) in [
        (&["none.csv"][..], "none.csv: "),
        (&["."], "it is a folder"),
        (&["t.csv", "--topic", "a"], "--topic, --duration and --set are for an endpoint"),
        (&["mqtt://127.0.0.1", "--from", "mosquitto_sub"], "--from reads a file"),
        (&["mqtt://127.0.0.1", "--duration", "5"], "--duration: `5` is not a time"),
        (&["http://127.0.0.1"], "is not a scheme"),
        (&["mqtt://127.0.0.1", "--out", "none/t.csv"], "--out none/t.csv"),
    ] {
        let output = place.run(&[&["trace"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{arguments:?}: {}", stderr(&output));
    }
    let output = place.run(&["trace", &format!("mqtt://127.0.0.1:{}", free_port())]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("refused"), "{}", stderr(&output));
}

/// A line that never ends is refused before it takes the memory of its file.
#[test]
fn a_line_without_end_is_refused() {
    let place = Place::new();
    let file = std::fs::File::create(place.path("t.csv")).unwrap();
    file.set_len(10 << 30).unwrap();
    let output = place.run(&["trace", "t.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("t.csv:1: the line is longer than 64 MiB"), "{}", stderr(&output));
}

#[test]
fn lines_of_other_tools_become_the_same_trace() {
    let place = Place::new();
    let wanted = "time,flow,size\n1700000000.250000000,a/b c,12\n1700000001.500000000,\"a,\"\"d\",0\n";
    for (format, text, remark) in [
        ("mosquitto_sub", "1700000000.25 a/b c 12\n1700000001.5 a,\"d 0\n", ""),
        (
            "redis-monitor",
            "OK\n1700000000.25 [0 127.0.0.1:6] \"PUBLISH\" \"a/b c\" \"twelve bytes\"\n\
             1700000001.0 [0 127.0.0.1:6] \"get\" \"key\"\n\
             1700000001.5 [0 127.0.0.1:6] \"publish\" \"a,\\\"d\" \"\"\n",
            "1 other commands of Redis are left out",
        ),
    ] {
        std::fs::write(place.path("lines"), text).unwrap();
        let output = place.run(&["trace", "lines", "--from", format, "--out", "t.csv"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains(remark) && stdout(&output).is_empty());
        assert_eq!(std::fs::read_to_string(place.path("t.csv")).unwrap(), wanted, "{format}");
        let study = fitted(&place, &["lines", "--from", format, "--fit"]);
        assert_eq!(value(&study, "a-b-c", "payload"), "16B", "{study}");
        std::fs::write(place.path("lines"), "damaged\n").unwrap();
        let output = place.run(&["trace", "lines", "--from", format]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("lines:1: not a line of "), "{}", stderr(&output));
    }
}

/// Starts a recording, and returns it once it is subscribed.
fn recording(place: &Place, url: &str, more: &[&str]) -> Child {
    let said = place.path("said");
    let mut command = place.command(&[&["trace", url, "--out", "t.csv"], more].concat());
    let child = command.stderr(std::fs::File::create(&said).unwrap()).stdout(Stdio::null()).spawn().unwrap();
    wait_for("the subscription", || std::fs::read_to_string(&said).unwrap().contains("recording at").then_some(()));
    child
}

/// Two pairs, each with a topic.
const PAIRS: (&[&str], usize) = (&["--pairs", "2"], 2);

/// Records a run with messages of two sizes. Those of the larger size are the schedule's alone: probes and end markers
/// have the smaller one.
fn assert_recorded(place: &Place, url: &str, topic: &[&str], (clients, topics): (&[&str], usize)) {
    let mut child = recording(place, url, topic);
    let load = ["--rate", "200", "--payload", "mix 64B 50% 512B 50%", "--warmup", "0s"];
    let output = place.run(&bench_arguments(&[&[url, "--duration", "3s"], &load[..], clients].concat()));
    let json: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let record = &json["runs"][0];
    assert_eq!(count(record, "lost"), 0, "{record}");
    let workload: Workload = serde_json::from_value(record["workload"].clone()).unwrap();
    let sizes = workload.of_repeat(1).message_sizes().unwrap();
    let each = (0..2).flat_map(|publisher| (0..600).map(move |number| (publisher, number)));
    let wanted = each.filter(|(publisher, number)| sizes.bytes(*publisher, *number) == 512).count();
    assert_eq!(count(record, "sent"), 1_200);
    let large = || {
        let text = std::fs::read_to_string(place.path("t.csv")).unwrap();
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        whole.lines().filter(|line| line.ends_with(",512")).map(str::to_owned).collect::<Vec<_>>()
    };
    wait_for("the last line", || (large().len() >= wanted).then_some(()));
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let rows = large();
    assert_eq!(rows.len(), wanted, "{url}");
    let said = std::fs::read_to_string(place.path("said")).unwrap();
    assert!(said.contains(&format!(" messages, {topics} topics, ")), "{said}");
    std::fs::write(place.path("l.csv"), format!("time,flow,size\n{}\n", rows.join("\n"))).unwrap();
    let study = fitted(place, &["l.csv", "--fit"]);
    let names: Vec<&str> = study.lines().filter_map(|line| line.strip_prefix("[flows.")?.strip_suffix(']')).collect();
    assert_eq!(names.len(), topics, "{study}");
    assert!(names.iter().all(|name| value(&study, name, "payload") == "512B"), "{study}");
    // A server that stood still delivered at no constant rate.
    let rate: Option<f64> = names.iter().map(|name| value(&study, name, "rate").parse::<f64>().ok()).sum();
    let wanted = wanted as f64 / 3.0;
    assert!(rate.is_none_or(|rate| (rate / wanted - 1.0).abs() < 0.05), "{rate:?} should be {wanted}: {study}");
}

#[test]
fn a_recording_at_mosquitto_has_each_message() {
    let (home, place) = (Place::new(), Place::new());
    let server = home.serve(&mosquitto("allow_anonymous true"), Places::default());
    assert_recorded(&place, server.endpoint(), &[], PAIRS);
}

#[test]
fn a_recording_at_nats_has_each_message() {
    let (home, place, port) = (Place::new(), Place::new(), free_port());
    let _server = home.serve_system("nats", vec![(String::new(), port)]);
    assert_recorded(&place, &format!("nats://127.0.0.1:{port}"), &["--topic", "pubmark.>"], PAIRS);
}

#[test]
fn a_recording_at_redis_has_each_message() {
    let (home, place, port) = (Place::new(), Place::new(), free_port());
    let _server = home.serve_system("redis", vec![(String::new(), port)]);
    assert_recorded(&place, &format!("redis://127.0.0.1:{port}"), &[], PAIRS);
}

/// Publishers to several topics use the exchange `amq.topic`.
#[test]
fn a_recording_at_rabbitmq_has_each_message() {
    let (home, place, port) = (Place::new(), Place::new(), free_port());
    let _server = home.serve_system("rabbitmq-amqp", vec![(String::new(), port)]);
    let tree = ["--pattern", "tree", "--publishers", "2", "--set", "tree_parameters=2"];
    assert_recorded(&place, &format!("amqp://127.0.0.1:{port}"), &[], (&tree, 4));
}

/// A server with certificates of its own is trusted by an option of its connection.
#[test]
fn a_recording_trusts_a_private_authority() {
    let (authority, place) = (Authority::new(), Place::new());
    let server = serve(&authority.mosquitto("good"));
    let ca = format!("tls_ca={}", authority.path("ca.pem"));
    let url = &format!("mqtts://localhost:{}", server.port());
    let ended = place.run(&["trace", url, "--duration", "200ms"]);
    assert_eq!(ended.status.code(), Some(3), "{}", stderr(&ended));
    let ended = place.run(&["trace", url, "--duration", "200ms", "--set", &ca]);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    for (set, wanted) in [
        ("tls_cb=x", "has no such option: did you mean `tls_ca`?"),
        ("endpoint=x", "has no such option"),
        ("tcp_nodelay=x", "--set tcp_nodelay: `x` is neither true nor false"),
        ("tls_ca", "write --set KEY=VALUE"),
    ] {
        let refused = place.run(&["trace", url, "--set", set]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(wanted), "{set}: {}", stderr(&refused));
    }
}

#[test]
fn a_recording_ends_after_its_duration() {
    let (home, place) = (Place::new(), Place::new());
    let server = home.serve(&mosquitto("allow_anonymous true"), Places::default());
    let ended: Output = place.run(&["trace", server.endpoint(), "--duration", "200ms"]);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    assert_eq!(stdout(&ended), "time,flow,size\n");
    assert!(stderr(&ended).contains("0 messages, 0 topics, 0 bytes"), "{}", stderr(&ended));
    let ended = place.run(&["trace", server.endpoint(), "--duration", "200ms", "--fit"]);
    assert_eq!(ended.status.code(), Some(2));
    assert!(stderr(&ended).contains("there is nothing to fit"), "{}", stderr(&ended));
}

/// The file keeps all messages that were recorded before the server ended.
#[test]
fn a_server_that_goes_ends_the_recording_with_what_it_has() {
    let (home, place) = (Place::new(), Place::new());
    let server = home.serve(&mosquitto("allow_anonymous true"), Places::default());
    let url = server.endpoint().to_owned();
    let mut child = recording(&place, &url, &[]);
    let output = place.run(&bench_arguments(&[&url]));
    assert!([Some(0), Some(3)].contains(&output.status.code()), "{}", stderr(&output));
    drop(server);
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let text = std::fs::read_to_string(place.path("t.csv")).unwrap();
    assert!(text.ends_with('\n') && text.lines().count() > 100, "{}", text.lines().count());
    let said = std::fs::read_to_string(place.path("said")).unwrap();
    assert!(said.contains("closed the connection"), "{said}");
}
