//! HTTP pages of a running study, requested by real TCP clients.

use crate::support::{ENDLESS, PATIENCE, Place, count, interrupt, stderr, stdout, wait_for};
use crate::terminal::Terminal;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

/// A running program, and the addresses at which it serves.
struct Serving {
    child: Child,
    said: BufReader<std::process::ChildStderr>,
}

impl Serving {
    fn start(place: &Place, arguments: &[&str]) -> Serving {
        let mut command = place.command(arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        Serving { child, said }
    }

    /// Returns `127.0.0.1:PORT` from the line that begins so.
    fn address(&mut self, start: &str) -> String {
        let mut line = String::new();
        while !line.starts_with(start) {
            line.clear();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it never says {start:?}");
        }
        line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned()
    }

    fn end(mut self) -> i32 {
        // Read to the end, so that it is not blocked.
        std::io::copy(&mut self.said, &mut std::io::sink()).unwrap();
        self.child.wait().unwrap().code().unwrap()
    }
}

/// A failed test leaves no program that runs for an hour.
impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Sends a text to a server, and reads the whole reply. Returns `None` once the server is gone.
fn say(address: &str, text: &str) -> Option<Reply> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(text.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error}"),
    }
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Reply { status, head: head.into(), body: body.into() })
}

fn get(address: &str, path: &str, more: &str) -> Option<Reply> {
    say(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{more}\r\n"))
}

/// Scrapes the metrics, strictly parsed: name with labels to value.
fn scrape(address: &str) -> Option<BTreeMap<String, f64>> {
    let reply = get(address, "/metrics", "")?;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(reply.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert_eq!(reply.header("content-length"), Some(reply.body.len().to_string().as_str()));
    let text = reply.body.strip_suffix("# EOF\n").expect("the end is said");
    let mut samples = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with("# ")) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("pubmark_"), "{line}");
        let twice = samples.insert(name.to_owned(), value.parse::<f64>().unwrap());
        assert_eq!(twice, None, "a series is there once: {line}");
    }
    Some(samples)
}

/// More repeats than a machine makes during a test; the test ends the program.
const MANY: usize = 1_000;

fn study(place: &Place, repeats: usize) {
    place.study(&format!(
        "title = \"Served\"\n[workload]\nrate = 1000\nduration = \"2s\"\n[axes]\nsystem = [\"mock\"]\npayload = [\"64B\", \"1KiB\"]\n[options.mock]\nlose_every = 7\n[run]\nrepeats = {repeats}\n"
    ));
}

#[test]
fn a_scrape_says_what_the_records_say() {
    let place = Place::new();
    study(&place, MANY);
    let mut serving = Serving::start(&place, &["run", "study.toml", "--out", "r", "--metrics", "0"]);
    let address = serving.address("metrics: ");
    let (samples, over) = wait_for("some runs", || {
        let samples = scrape(&address).expect("it serves while it runs");
        let over = samples["pubmark_runs_total{verdict=\"invalid\"}"] as usize;
        (over >= 5).then_some((samples, over))
    });
    // A record is on the disk before it is counted.
    let records = place.records("r");
    let sum = |name: &str| records[..over].iter().map(|record| count(record, name)).sum::<u64>() as f64;
    for name in ["offered", "sent", "delivered", "lost"] {
        assert_eq!(samples[&format!("pubmark_window_messages_total{{count=\"{name}\"}}")], sum(name), "{name}");
    }
    assert_eq!(samples["pubmark_runs_planned"], 2.0 * MANY as f64);
    assert_eq!(samples["pubmark_runs_total{verdict=\"valid\"}"], 0.0, "each run loses messages");
    for (number, payload) in [(1, 64), (2, 1024)] {
        let last = records[..over].iter().rfind(|record| record["cell"]["payload"] == payload).unwrap();
        let (label, expected) = (if payload == 64 { "mock 64B" } else { "mock 1KiB" }, count(last, "expected") as f64);
        let labels = format!("cell=\"{number}\",system=\"mock\",label=\"{label}\"");
        let ratio = samples[&format!("pubmark_cell_delivered_ratio{{{labels}}}")];
        assert!((ratio - count(last, "delivered") as f64 / expected).abs() < 1e-9, "{ratio}");
        let p99 = samples[&format!("pubmark_cell_latency_p99_seconds{{{labels}}}")];
        assert!((p99 * 1e9 - last["latency_ns"]["p99"].as_f64().unwrap()).abs() < 1.0, "{p99}");
    }
    assert_eq!(get(&address, "/", "").unwrap().status, 404);
    let foreign = say(&address, "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n").unwrap();
    assert_eq!((foreign.status, foreign.body.contains("pubmark_")), (403, false), "a name that was made to lead here");
    interrupt(&serving.child);
    assert_eq!(serving.end(), 3);
    assert!(TcpStream::connect(&address).is_err(), "it is gone with the study");
}

#[test]
fn a_run_and_its_server_can_be_scraped_while_it_is_on() {
    let place = Place::new();
    let arguments = [
        "bench",
        "mosquitto",
        "--pairs",
        "2",
        "--rate",
        "200",
        "--warmup",
        "1s",
        "--duration",
        ENDLESS,
        "--repeats",
        "1",
        "--out",
        "r",
        "--metrics",
        "127.0.0.1:0",
    ];
    let mut serving = Serving::start(&place, &arguments);
    let address = serving.address("metrics: ");
    let mut seen = BTreeMap::new();
    wait_for("the window with its figures", || {
        seen = scrape(&address).expect("it serves while it runs");
        let window = seen.keys().any(|name| name.starts_with("pubmark_run_info{") && name.contains("phase=\"window\""));
        (window
            && seen.contains_key("pubmark_run_own_lag_max_seconds")
            && seen["pubmark_run_messages{count=\"received\"}"] > 0.0
            && seen["pubmark_run_messages{count=\"sent\"}"] > 0.0)
            .then_some(())
    });
    let messages = |name: &str| seen[&format!("pubmark_run_messages{{count=\"{name}\"}}")];
    assert!(messages("sent") > 0.0 && messages("offered") >= messages("sent") / 2.0, "{seen:?}");
    assert!(seen["pubmark_server_cpu_seconds_total{system=\"mosquitto\"}"] > 0.0);
    assert!(seen["pubmark_server_resident_memory_bytes{system=\"mosquitto\"}"] > 1e6);
    assert!(seen["pubmark_run_own_lag_max_seconds"] >= 0.0);
    interrupt(&serving.child);
    assert_eq!(serving.end(), 3);
    place.assert_swept();
}

#[test]
fn a_busy_port_and_a_bad_address_end_it_before_it_begins() {
    let place = Place::new();
    study(&place, 1);
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = busy.local_addr().unwrap().port().to_string();
    for flag in [format!("--metrics={port}"), format!("--watch={port}")] {
        let output = place.run(&["run", "study.toml", "--out", "r", &flag]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&port) && said.contains("choose another port"), "{said}");
    }
    for bad in ["--metrics=here", "--metrics=127.0.0.1", "--metrics=70000", "--watch=x"] {
        assert_eq!(place.run(&["run", "study.toml", "--out", "r", bad]).status.code(), Some(2), "{bad}");
    }
    assert!(!place.path("r").exists(), "nothing was begun");
    assert_eq!(place.run(&["run", "study.toml", &format!("--watch={port}")]).status.code(), Some(2));
    assert_eq!(std::fs::read_dir(place.path("results")).unwrap().count(), 0, "no folder of its own is left empty");
}

fn json(reply: &Reply) -> Value {
    serde_json::from_str(&reply.body).unwrap()
}

#[test]
fn the_live_report_grows_with_the_records_and_tells_what_is_new() {
    let place = Place::new();
    study(&place, MANY);
    let mut serving = Serving::start(&place, &["run", "study.toml", "--out", "r", "--watch"]);
    let address = serving.address("live report: ");
    let page = wait_for("the page", || get(&address, "/", "").filter(|reply| reply.status == 200));
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    assert!(page.body.contains("<html") && page.body.contains("Served"), "{}", &page.body[..500]);
    let first = get(&address, "/data.json", "").unwrap();
    let etag = first.header("etag").unwrap().to_owned();
    json(&first);
    let newer = wait_for("more data", || {
        let reply = get(&address, "/data.json", &format!("If-None-Match: {etag}\r\n")).unwrap();
        match reply.status {
            304 => {
                assert!(reply.body.is_empty());
                None
            }
            status => Some((status, reply)),
        }
    });
    assert_eq!(newer.0, 200);
    assert_ne!(newer.1.header("etag"), Some(etag.as_str()));
    assert_ne!(newer.1.body, first.body);
    let status = json(&get(&address, "/status.json", "").unwrap());
    assert_eq!(status["running"], true);
    assert_eq!(status["runs"], 2 * MANY);
    assert!(status["done"].as_u64().unwrap() > 0, "{status}");
    for key in ["label", "phase", "sent", "received", "sent_per_s", "received_per_s", "lag_ns", "eta_s"] {
        assert!(status.get(key).is_some(), "{key} in {status}");
    }
    interrupt(&serving.child);
    assert_eq!(serving.end(), 3, "no terminal: it ends with the study");
}

#[test]
fn hostile_clients_get_nothing_and_hold_up_nobody() {
    let place = Place::new();
    study(&place, MANY);
    let mut serving = Serving::start(&place, &["run", "study.toml", "--out", "r", "--watch=0"]);
    let address = serving.address("live report: ");
    wait_for("the page", || get(&address, "/", "").filter(|reply| reply.status == 200));
    let status = |text: &str| say(&address, text).map(|reply| reply.status);
    assert_eq!(status("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), Some(403), "a name that was made to lead here");
    assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), Some(403));
    for path in ["/../study.toml", "/r/runs.jsonl", "//etc/passwd", "/%2e%2e/study.toml", "/logs"] {
        assert_eq!(get(&address, path, "").unwrap().status, 404, "{path}");
    }
    assert_eq!(status("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"), Some(405));
    assert_eq!(status("\u{1}\u{2}\u{3}\r\n\r\n"), Some(400));
    // A request that is too long is cut off, perhaps before the response is read.
    let huge = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    assert!(matches!(status(&huge), Some(431) | None));
    // More silent clients than there are places, and they stay; half of them began a request.
    let mut silent: Vec<TcpStream> = (0..40).filter_map(|_| TcpStream::connect(&address).ok()).collect();
    assert!(!silent.is_empty());
    silent.iter_mut().step_by(2).for_each(|stream| drop(stream.write_all(b"GET / HT")));
    assert_eq!(get(&address, "/status.json", "").unwrap().status, 200, "they lock nobody out");
    let before = place.records("r").len();
    wait_for("more runs", || (place.records("r").len() > before + 5).then_some(()));
    interrupt(&serving.child);
    assert_eq!(serving.end(), 3);
    drop(silent);
}

#[test]
fn on_a_terminal_the_report_stays_until_ctrl_c() {
    let place = Place::new();
    study(&place, 3);
    let terminal = Terminal::start(&place, 120, 40, &["run", "study.toml", "--out", "r", "--watch"], &[]);
    let line = terminal.wait_for_line("the report stays at http://");
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let status = json(&get(&address, "/status.json", "").unwrap());
    assert_eq!((&status["running"], &status["done"]), (&Value::Bool(false), &Value::from(6)));
    assert!(get(&address, "/", "").unwrap().body.contains("Served"));
    terminal.signal(Signal::SIGINT);
    let (code, last, _) = terminal.end();
    assert_eq!(code, 3, "as the study ended: {last:#?}");
    assert!(TcpStream::connect(&address).is_err());
}

/// Commands without a study file, each with more work than a test waits for.
const OTHERS: [&[&str]; 3] = [
    &["bench", "mock", "--repeats", "1000", "--duration", "2s"],
    &["ab", "mock", "--fail-on", "p50 > +0.001%", "--set", "options.jitter=90us", "--budget", "1h"],
    &["capacity", "kernel", "--transport", "tcp", "--until", "p99 < 10s", "--duration", "1s", "--budget", "1h"],
];

#[test]
fn every_command_that_measures_can_be_watched_and_scraped() {
    for arguments in OTHERS {
        let place = Place::new();
        let served = [arguments, &["--out", "r", "--watch", "--metrics", "0"]].concat();
        let mut serving = Serving::start(&place, &served);
        let metrics = serving.address("metrics: ");
        let live = serving.address("live report: ");
        let samples = wait_for("a run that is over", || {
            let samples = scrape(&metrics).expect("it serves while it runs");
            samples.values().any(|value| value.is_finite()).then_some(())?;
            (samples["pubmark_runs_total{verdict=\"valid\"}"] + samples["pubmark_runs_total{verdict=\"invalid\"}"]
                > 0.0)
                .then_some(samples)
        });
        assert!(samples["pubmark_runs_planned"] > 0.0, "{arguments:?}");
        wait_for("the page", || get(&live, "/", "").filter(|reply| reply.status == 200));
        let status: Value = serde_json::from_str(&get(&live, "/status.json", "").unwrap().body).unwrap();
        assert_eq!(status["running"], true, "{arguments:?}: {status}");
        interrupt(&serving.child);
        assert_eq!(serving.end(), 3, "{arguments:?}");
    }
}

/// Removes the last run, as if it had not been made.
fn forget_the_last(place: &Place, folder: &str) -> usize {
    let path = place.path(folder).join("runs.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let runs: Vec<&str> = text.lines().collect();
    let kept: String = runs[..runs.len() - 1].iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(path, kept).unwrap();
    runs.len()
}

#[test]
fn every_command_that_measures_plans_and_goes_on() {
    for (name, arguments) in [
        ("bench-mock", &["bench", "mock", "--repeats", "3", "--duration", "2s"][..]),
        ("ab-mock", &["ab", "mock", "--fail-on", "p99 > +10%"]),
        ("capacity-mock", &["capacity", "mock", "--set", "options.send_cost=1ms", "--until", "p99 < 5ms"]),
    ] {
        let place = Place::new();
        let run = |more: &[&str]| {
            let output = place.run(&[arguments, more].concat());
            assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
            stdout(&output)
        };
        assert!(run(&["--dry-run"]).contains("mock"), "{name}");
        assert!(!place.path("results").exists(), "{name}: nothing was measured");
        run(&[]);
        let folder = std::fs::read_dir(place.path("results")).unwrap().next().unwrap().unwrap().file_name();
        let folder = format!("results/{}", folder.to_str().unwrap());
        assert!(folder.starts_with(&format!("results/{name}-")), "{folder}");
        let runs = forget_the_last(&place, &folder);
        assert!(run(&["--resume", "--dry-run"]).contains("mock"), "{name}");
        assert_eq!(place.records(&folder).len(), runs - 1, "{name}: nothing was measured");
        assert!(run(&["--resume", "--markdown"]).contains("| "), "{name}");
        assert!(place.records(&folder).len() >= runs, "{name}");
        assert_eq!(std::fs::read_dir(place.path("results")).unwrap().count(), 1, "{name}: in the same folder");
    }
}

/// Returns the expressions in a dashboard.
fn expressions(node: &Value) -> Vec<String> {
    match node {
        Value::Object(fields) => {
            let own = fields.get("expr").and_then(Value::as_str).map(str::to_owned);
            own.into_iter().chain(fields.values().flat_map(expressions)).collect()
        }
        Value::Array(all) => all.iter().flat_map(expressions).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_dashboard_queries_metrics_that_are_served() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grafana-dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let all = expressions(&dashboard);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = all.iter().flat_map(|expression| expression.split(|c| !is_word(c)));
    let mut missing: Vec<&str> = words.filter(|word| word.starts_with("pubmark_")).collect();
    assert!(missing.len() > 10 && missing.contains(&"pubmark_run_fault"), "{missing:?}");
    let place = Place::new();
    let load = ["bench", "mosquitto", "--rate", "200", "--warmup", "200ms", "--duration", "2s", "--repeats", "1000"];
    let more = ["--fault", "stop server at 500ms for 200ms", "--out", "r", "--metrics", "0"];
    let mut serving = Serving::start(&place, &[&load[..], &more].concat());
    let address = serving.address("metrics: ");
    wait_for("each metric of the dashboard", || {
        let samples = scrape(&address).expect("it serves while it runs");
        let is_served = |name: &str| samples.keys().any(|series| series.split('{').next() == Some(name));
        missing.retain(|name| !is_served(name));
        missing.is_empty().then_some(())
    });
    interrupt(&serving.child);
    assert_eq!(serving.end(), 3);
    place.assert_swept();
}
