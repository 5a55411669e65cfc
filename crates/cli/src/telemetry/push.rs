//! `--otlp`: pushes the metrics of a study to a collector by OTLP/HTTP.
//!
//! A thread of its own pushes, so that a collector that is slow or away delays nothing.

use super::Metrics;
use super::otlp::{FinishedRun, Now, OtlpSource};
use crate::progress::board::SharedBoard;
use pubmark_host::clock;
use pubmark_host::http::JsonRequest;
use pubmark_model::record::RunRecord;
use pubmark_model::units::Ns;
use serde_json::Value;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Interval at which the state of the study is pushed.
const INTERVAL: Duration = Duration::from_secs(10);
/// Time limit of a request.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time for which the end of the command waits for the last requests.
const END: Duration = Duration::from_secs(5);
/// Finished runs that wait for their turn. Further ones are dropped.
const WAITING_MAX: usize = 100;
/// Maximum length of a collector's reply in a warning, characters.
const REPLY_CHARS: usize = 200;
/// Port of OTLP/HTTP, for a URL without one.
const PORT: u16 = 4318;

/// Address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// Host and port.
    authority: String,
    /// Path before `/v1/metrics`, without a `/` at its end.
    path: String,
}

impl Collector {
    /// Parses `http://HOST[:PORT][/PATH]`. The error does not repeat the text, which may have a password.
    pub fn parse(text: &str) -> Result<Collector, String> {
        let shape = || "write http://HOST:PORT, such as http://localhost:4318".to_owned();
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(("https", _)) => {
                return Err("https is not supported: use http to a collector on this machine, and let it \
                            forward over TLS"
                    .into());
            }
            _ => return Err(shape()),
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if authority.contains('@') {
            return Err("a login in the URL is not supported: use a collector that needs none".into());
        }
        let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_graphic() && !"?#\"<>\\".contains(c));
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let authority = if has_port { authority.to_owned() } else { format!("{authority}:{PORT}") };
        let (host, port) = authority.rsplit_once(':').unwrap_or_default();
        if host.is_empty() || !is_plain(host) || !is_plain(path) || !port.parse::<u16>().is_ok_and(|port| port > 0) {
            return Err(shape());
        }
        Ok(Collector { authority, path: path.trim_end_matches('/').to_owned() })
    }

    /// Sends a document. The error says why the collector does not have it.
    fn post(&self, signal: &str, document: &Value) -> Result<(), String> {
        let Collector { authority, path } = self;
        let address = authority.to_socket_addrs().ok().and_then(|mut all| all.next());
        let address = address.ok_or_else(|| format!("{authority} has no address"))?;
        let path = format!("{path}/v1/{signal}");
        let request = JsonRequest { method: "POST", host: authority, path: &path, body: &document.to_string() };
        let reply = request.send(address, PATIENCE).map_err(|error| format!("{authority}: {error}"))?;
        let said = || reply.line().chars().take(REPLY_CHARS).collect::<String>();
        match reply.status {
            Some(200..=299) if rejects(&reply.text) => Err(format!("{authority} rejects a part: {}", said())),
            Some(200..=299) => Ok(()),
            _ => Err(format!("{authority} answers `{}`", said())),
        }
    }
}

/// Returns whether a reply says that a part of the document was rejected. Numbers in it are texts or numbers.
fn rejects(reply: &str) -> bool {
    let body = reply.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let json = body.find('{').zip(body.rfind('}')).and_then(|(from, to)| body.get(from..=to));
    let parsed = json.and_then(|json| serde_json::from_str::<Value>(json).ok()).unwrap_or_default();
    ["rejectedDataPoints", "rejectedLogRecords"].iter().any(|name| match &parsed["partialSuccess"][name] {
        Value::String(count) => count != "0",
        Value::Number(count) => count.as_u64() != Some(0),
        _ => false,
    })
}

/// Pushes the metrics of a study until it is dropped.
pub struct OtlpPush {
    shared: Arc<SharedBoard>,
    /// `None` once it ends.
    runs: Option<SyncSender<FinishedRun>>,
    done: Receiver<()>,
}

impl OtlpPush {
    /// Begins to push to a collector; `instance` identifies this process there.
    pub fn start(shared: Arc<SharedBoard>, collector: Collector, instance: String) -> std::io::Result<OtlpPush> {
        let (runs, finished) = sync_channel(WAITING_MAX);
        let (ended, done) = sync_channel(0);
        let pusher = Pusher {
            metrics: Metrics::new(shared.clone()),
            source: OtlpSource { instance },
            shared: shared.clone(),
            collector,
            warned: false,
        };
        thread::Builder::new().name("otlp".into()).spawn(move || {
            pusher.keep_pushing(&finished);
            drop(ended);
        })?;
        Ok(OtlpPush { shared, runs: Some(runs), done })
    }

    /// Returns the result of the current run, which ends with this record.
    pub fn finished(&self, record: &RunRecord) -> Option<FinishedRun> {
        let board = self.shared.lock();
        let current = board.current.as_ref()?;
        let window_unix_ns = current.window_ns.map(|window_ns| now().unix_ns_of(window_ns));
        Some(FinishedRun::of(record, (current.cell, &board.cells[current.cell]), window_unix_ns))
    }

    /// Pushes the result of a run.
    pub fn push(&self, run: FinishedRun) {
        let is_full = self.runs.as_ref().is_some_and(|runs| runs.try_send(run).is_err());
        let warning = "--otlp: the collector is too slow: figures of a run were not pushed";
        let mut board = self.shared.lock();
        if is_full && !board.warnings.iter().any(|line| line == warning) {
            board.warnings.push(warning.to_owned());
        }
    }
}

impl Drop for OtlpPush {
    fn drop(&mut self) {
        self.runs = None;
        // Both results mean that nothing is left to wait for.
        let _ = self.done.recv_timeout(END);
    }
}

struct Pusher {
    metrics: Metrics,
    source: OtlpSource,
    shared: Arc<SharedBoard>,
    collector: Collector,
    warned: bool,
}

impl Pusher {
    fn keep_pushing(mut self, runs: &Receiver<FinishedRun>) {
        loop {
            match runs.recv_timeout(INTERVAL) {
                Ok(run) => self.push_run(&run),
                Err(RecvTimeoutError::Timeout) => self.push_progress(),
                Err(RecvTimeoutError::Disconnected) => return self.push_progress(),
            }
        }
    }

    fn push_progress(&mut self) {
        let families = self.metrics.snapshot().progress();
        self.post("metrics", &self.source.metrics(&families, now()));
    }

    fn push_run(&mut self, run: &FinishedRun) {
        let mut families = self.metrics.snapshot().progress();
        families.extend(run.figures());
        self.post("metrics", &self.source.metrics(&families, now()));
        if let Some(faults) = self.source.faults(run) {
            self.post("logs", &faults);
        }
    }

    /// Sends a document. The first failure is a warning; later ones have the same reasons.
    fn post(&mut self, signal: &str, document: &Value) {
        let Err(why) = self.collector.post(signal, document) else { return };
        if !std::mem::replace(&mut self.warned, true) {
            self.shared.lock().warnings.push(format!("--otlp: metrics are not pushed: {why}"));
        }
    }
}

fn now() -> Now {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Now { ns: clock::now(), unix_ns: since.map_or(0, |since| since.as_nanos() as Ns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_a_plain_http_url() {
        for (text, authority, path) in [
            ("http://localhost:4318", "localhost:4318", ""),
            ("http://collector", "collector:4318", ""),
            ("http://[::1]", "[::1]:4318", ""),
            ("http://[::1]:80/otlp/", "[::1]:80", "/otlp"),
            ("http://h:1/a/b", "h:1", "/a/b"),
        ] {
            let collector = Collector { authority: authority.into(), path: path.into() };
            assert_eq!(Collector::parse(text), Ok(collector), "{text}");
        }
        for (text, said) in [
            ("https://h:4318", "https is not supported"),
            ("http://me:hidden-word@h", "a login"),
            ("localhost:4318", "write http://"),
            ("grpc://h", "write http://"),
            ("http://", "write http://"),
            ("http://:4318", "write http://"),
            ("http://h:0", "write http://"),
            ("http://h:70000", "write http://"),
            ("http://h/a b", "write http://"),
            ("http://h/a\r\nX: y", "write http://"),
            ("http://h/a?b", "write http://"),
        ] {
            let error = Collector::parse(text).unwrap_err();
            assert!(error.contains(said) && !error.contains("hidden"), "{text}: {error}");
        }
    }

    #[test]
    fn a_reply_that_rejects_a_part_is_understood() {
        let reply = |body: &str| rejects(&format!("HTTP/1.1 200 OK\r\n\r\n{body}"));
        assert!(reply(r#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"x"}}"#));
        assert!(reply("1f\r\n{\"partialSuccess\":{\"rejectedLogRecords\":1}}\r\n0\r\n\r\n"));
        for fine in ["", "{}", r#"{"partialSuccess":{}}"#, r#"{"partialSuccess":{"rejectedDataPoints":"0"}}"#, "}{"] {
            assert!(!reply(fine), "{fine}");
        }
    }
}
