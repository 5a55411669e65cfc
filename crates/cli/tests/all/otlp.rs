//! `--otlp`: a collector receives the figures of each run, and one that is away disturbs nothing.

use crate::known_answers::Peer;
use crate::support::{Place, free_port, stderr};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// The messages of `opentelemetry/proto` 1.x that pubmark sends, by their names in JSON. An unknown field is an error;
/// `make test-formats` parses the same documents with the protocol's own definition.
mod proto {
    use super::{BTreeMap, Deserialize};

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub struct Document {
        #[serde(default)]
        pub resource_metrics: Vec<ResourceMetrics>,
        #[serde(default)]
        pub resource_logs: Vec<ResourceLogs>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub struct ResourceMetrics {
        pub resource: Resource,
        pub scope_metrics: Vec<ScopeMetrics>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub struct ResourceLogs {
        pub resource: Resource,
        pub scope_logs: Vec<ScopeLogs>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Resource {
        pub attributes: Vec<Attribute>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub struct ScopeMetrics {
        #[serde(rename = "scope")]
        pub _scope: BTreeMap<String, String>,
        pub metrics: Vec<Metric>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub struct ScopeLogs {
        #[serde(rename = "scope")]
        pub _scope: BTreeMap<String, String>,
        pub log_records: Vec<LogRecord>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Metric {
        pub name: String,
        pub description: String,
        pub unit: String,
        pub gauge: Option<Data>,
        pub sum: Option<Data>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub struct Data {
        pub data_points: Vec<Point>,
        pub aggregation_temporality: Option<u32>,
        pub is_monotonic: Option<bool>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub struct Point {
        pub attributes: Vec<Attribute>,
        pub time_unix_nano: String,
        pub start_time_unix_nano: Option<String>,
        pub as_double: f64,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub struct LogRecord {
        pub time_unix_nano: String,
        pub severity_number: u32,
        pub severity_text: String,
        pub event_name: String,
        pub body: AnyValue,
        pub attributes: Vec<Attribute>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Attribute {
        pub key: String,
        pub value: AnyValue,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub enum AnyValue {
        StringValue(String),
        IntValue(String),
    }

    impl AnyValue {
        pub fn text(self) -> String {
            match self {
                AnyValue::StringValue(text) | AnyValue::IntValue(text) => text,
            }
        }
    }
}

/// A collector that accepts everything.
struct Collector {
    address: String,
    posted: Receiver<(String, String)>,
}

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, posted) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                if sender.send(accept(stream.unwrap())).is_err() {
                    return;
                }
            }
        });
        Collector { address, posted }
    }

    /// Returns the documents so far, with their paths.
    fn documents(&self) -> Vec<(String, proto::Document)> {
        let parse = |(path, body): (String, String)| (path, serde_json::from_str(&body).expect("a document of OTLP"));
        self.posted.try_iter().map(parse).collect()
    }
}

/// Reads a request. Returns its path and its body.
fn accept(stream: TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let header =
        |name: &str| head.iter().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{head:?}"));
    assert_eq!(header("Content-Type: "), "application/json");
    let mut body = vec![0; header("Content-Length: ").parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
    let path = head[0].strip_prefix("POST ").unwrap().strip_suffix(" HTTP/1.1").unwrap();
    (path.to_owned(), String::from_utf8(body).unwrap())
}

fn texts(attributes: Vec<proto::Attribute>) -> BTreeMap<String, String> {
    attributes.into_iter().map(|one| (one.key, one.value.text())).collect()
}

/// A point of a metric.
struct Point {
    metric: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// Returns all points of the metrics, in the order of their arrival, and checks what each must have.
fn points(documents: Vec<(String, proto::Document)>) -> Vec<Point> {
    let mut points = Vec::new();
    for (path, document) in documents.into_iter().filter(|(path, _)| path.ends_with("/v1/metrics")) {
        assert!(document.resource_logs.is_empty(), "{path}");
        for resource in document.resource_metrics {
            assert_eq!(texts(resource.resource.attributes)["service.name"], "pubmark");
            for metric in resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics) {
                assert!(!metric.description.is_empty() && !metric.unit.is_empty(), "{}", metric.name);
                let is_sum = metric.sum.is_some();
                let data = metric.sum.or(metric.gauge).expect("a gauge or a sum");
                assert_eq!((data.aggregation_temporality, data.is_monotonic).0.is_some(), is_sum, "{}", metric.name);
                assert!(!is_sum || data.is_monotonic == Some(true), "{}", metric.name);
                for point in data.data_points {
                    let time: u64 = point.time_unix_nano.parse().unwrap();
                    let start = point.start_time_unix_nano.map(|start| start.parse::<u64>().unwrap());
                    assert!(start.is_some() == is_sum && start.is_none_or(|start| start <= time), "{}", metric.name);
                    let (labels, value) = (texts(point.attributes), point.as_double);
                    points.push(Point { metric: metric.name.clone(), labels, value });
                }
            }
        }
    }
    points
}

/// Two flows over a peer that loses every seventh message.
#[test]
fn a_collector_receives_the_figures_of_each_run_and_flow() {
    let place = Place::new();
    let peer = Peer::start(&place, "mqtt", "lose = { every = 7 }");
    let collector = Collector::start();
    let url = format!("http://{}/otlp", collector.address);
    let flows = ["--flow", "a: pairs=2, rate=100", "--flow", "b: fan-out, subscribers=3, rate=50"];
    let fixed = ["--repeats", "2", "--warmup", "200ms", "--duration", "1s", "--out", "r", "--otlp", &url];
    let output = place.run(&[&["bench", &peer.endpoint][..], &flows, &fixed].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let documents = collector.documents();
    assert!(documents.iter().all(|(path, _)| path == "/otlp/v1/metrics"), "no fault, no log");
    let points = points(documents);
    let find = |metric: &str, wanted: &[(&str, &str)]| {
        let is_wanted =
            |point: &&Point| wanted.iter().all(|(name, value)| point.labels.get(*name).is_some_and(|own| own == value));
        let mut of_name = points.iter().filter(|point| point.metric == metric);
        of_name.rfind(is_wanted).unwrap_or_else(|| panic!("{metric} {wanted:?}"))
    };
    for (flow, lost) in [("a", 30.0), ("b", 21.0), ("all", 51.0)] {
        for repeat in ["1", "2"] {
            let labels = [("flow", flow), ("repeat", repeat), ("cell", "1")];
            assert_eq!(find("pubmark_cell_lost", &labels).value, lost, "{flow}");
            assert_eq!(find("pubmark_cell_valid", &labels).value, 0.0, "messages are lost");
        }
    }
    let records = place.records("r");
    let p99 = records[1]["latency_ns"]["p99"].as_f64().unwrap() / 1e9;
    let told = find("pubmark_cell_latency_p99_seconds", &[("flow", "all"), ("repeat", "2")]);
    assert!((told.value - p99).abs() < 1e-12, "{} {p99}", told.value);
    assert_eq!(told.labels["system"], records[1]["system"].as_str().unwrap());
    assert_eq!(find("pubmark_runs", &[("verdict", "invalid")]).value, 2.0);
    assert_eq!(find("pubmark_window_messages", &[("count", "lost")]).value, 102.0);
}

#[test]
fn faults_are_log_records_and_a_metric() {
    let place = Place::new();
    let collector = Collector::start();
    let url = format!("http://{}", collector.address);
    let load = ["bench", "mosquitto", "--rate", "200", "--warmup", "200ms", "--duration", "2s", "--repeats", "1"];
    let more = ["--fault", "stop server at 500ms for 300ms", "--out", "r", "--otlp", &url];
    let output = place.run(&[&load[..], &more].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let logs: Vec<proto::LogRecord> = collector
        .documents()
        .into_iter()
        .filter(|(path, _)| path == "/v1/logs")
        .flat_map(|(_, document)| document.resource_logs)
        .inspect(|resource| assert_eq!(resource.resource.attributes.len(), 3))
        .flat_map(|resource| resource.scope_logs)
        .flat_map(|scope| scope.log_records)
        .collect();
    let [fault] = logs.try_into().ok().expect("one fault");
    assert_eq!((fault.severity_number, fault.severity_text.as_str()), (9, "INFO"));
    assert_eq!(fault.event_name, "pubmark.fault");
    assert_eq!(fault.body.text(), "stop server");
    let event = &place.records("r")[0]["fault_log"][0];
    let length = event["until_ns"].as_u64().unwrap() - event["at_ns"].as_u64().unwrap();
    let labels = texts(fault.attributes);
    assert_eq!((labels["duration_ns"].clone(), labels["system"].as_str()), (length.to_string(), "mosquitto"));
    let record: &Value = &place.records("r")[0];
    let started: u64 = fault.time_unix_nano.parse().unwrap();
    let begin = record["started"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_nanosecond() as u64;
    assert!(started > begin + 500_000_000, "it happened in the window");
}

/// Nobody listens at the first; the second accepts connections and is silent.
#[test]
fn a_collector_that_is_away_is_one_warning() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for address in [format!("127.0.0.1:{}", free_port()), silent.local_addr().unwrap().to_string()] {
        let place = Place::new();
        let url = format!("http://{address}");
        let arguments = ["bench", "mock", "--repeats", "3", "--duration", "2s", "--out", "r", "--otlp", &url];
        let output = place.run(&arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(said.matches("--otlp: ").count(), 1, "{said}");
        assert!(said.contains(&address), "{said}");
        assert_eq!(place.records("r").len(), 3);
    }
}

#[test]
fn urls_that_cannot_be_used_are_refused_before_anything_begins() {
    let place = Place::new();
    for (url, said) in [("https://h:4318", "https is not supported"), ("h:4318", "write http://HOST:PORT")] {
        for command in [&["bench", "mock"][..], &["capacity", "mock", "--until", "p99 < 1s"], &["run", "quickstart"]] {
            let output = place.run(&[command, &["--otlp", url, "--out", "r"]].concat());
            assert_eq!(output.status.code(), Some(2), "{command:?}");
            assert!(stderr(&output).contains(said), "{}", stderr(&output));
        }
    }
    assert!(!place.path("r").exists());
}
