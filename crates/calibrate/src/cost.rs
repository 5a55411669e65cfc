//! Cost of a message: agents and bare loops, in turn, through one relay.

use crate::bare::{All, LoopResult, LoopStart, Ready};
use crate::calibrate::{Calibrator, PATIENCE};
use crate::helper::Helper;
use crate::ours::{AgentLoad, DRAIN, cpu_s, default_quantum_ns};
use crate::sink::Listening;
use pubmark_host::error::HostError;
use pubmark_judge::calibration::{Compared, Cost};
use pubmark_load::clock;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::protocol::Role;
use pubmark_model::record::RunRecord;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::Rate;
use pubmark_stats::{Histogram, Summary};
use pubmark_study::context::{RunError, failed};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Time that an address has to answer, if a server has several.
const CONNECT: Duration = Duration::from_secs(3);
/// Number of publishers, and of subscribers.
const CONNECTIONS: u32 = 1_000;
/// Messages a second of each publisher.
const RATES: [u64; 2] = [10, 50];
/// Length of a message, bytes.
const PAYLOAD_BYTES: u64 = 1_000;
const WINDOW: Ns = SECOND;
const WARMUP: Ns = 300 * MILLISECOND;
/// Time from the start command to the instant of the start.
const LEAD: Ns = 100 * MILLISECOND;
/// Pairs of runs at each rate, agents and bare loops one after the other.
const REPEATS: usize = 3;

/// Returns the CPU seconds for a million messages.
fn per_million(cpu_s: f64, messages: f64) -> f64 {
    if messages > 0.0 { cpu_s / messages * 1e6 } else { 0.0 }
}

/// The measurements at one rate so far.
#[derive(Default)]
struct Side {
    send: Vec<f64>,
    receive: Vec<f64>,
    lags: Vec<String>,
}

impl Side {
    fn lag(&self) -> Option<Summary> {
        let mut all = Histogram::latency();
        for text in &self.lags {
            all.merge(&Histogram::decode(text).ok()?).ok()?;
        }
        all.summary()
    }
}

impl Calibrator<'_> {
    /// Measures the cost at each rate. Returns it with the relay's name.
    pub(crate) fn cost(&mut self) -> Result<(String, Vec<Cost>), RunError> {
        let (relay, endpoint) = match &self.relay {
            Some(endpoint) => (None, endpoint.clone()),
            None => {
                let mut relay = self.helper(&["peer".into(), "--protocol".into(), "mqtt".into()])?;
                let listening: Listening = relay.hear(PATIENCE, self.interrupt)?;
                (Some(relay), listening.endpoint)
            }
        };
        let name = relay.as_ref().map_or_else(|| endpoint.clone(), |_| "pubmark peer".to_owned());
        let repeats = if self.quick { 1 } else { REPEATS };
        let mut costs = Vec::new();
        for rate in RATES {
            let (mut ours, mut bare) = (Side::default(), Side::default());
            for repeat in 1..=repeats {
                let what = format!("cost at {CONNECTIONS} x {rate} msg/s, {repeat} of {repeats}");
                // The order alternates, so that neither always comes second.
                let agents_first = repeat % 2 == 1;
                for agents in [agents_first, !agents_first] {
                    (self.say)(&format!("{what}: {}", if agents { "agents" } else { "bare loops" }));
                    if agents {
                        self.cost_of_ours(&endpoint, rate, &mut ours)?;
                    } else {
                        self.cost_of_bare(&endpoint, rate, repeat, &mut bare)?;
                    }
                }
            }
            costs.push(Cost {
                connections: CONNECTIONS,
                rate_per_s: (u64::from(CONNECTIONS) * rate) as f64,
                payload_bytes: PAYLOAD_BYTES,
                quantum_ns: default_quantum_ns(),
                ours_lag_ns: ours.lag(),
                bare_lag_ns: bare.lag(),
                send_cpu_s_per_million: Compared::of(ours.send, bare.send),
                receive_cpu_s_per_million: Compared::of(ours.receive, bare.receive),
            });
        }
        Ok((name, costs))
    }

    fn cost_of_ours(&mut self, endpoint: &str, rate: u64, side: &mut Side) -> Result<(), RunError> {
        let load = AgentLoad {
            publishers: CONNECTIONS,
            subscribers: CONNECTIONS,
            rate: Rate::per_kilosecond(rate * 1_000),
            payload_bytes: PAYLOAD_BYTES,
            warmup_ns: self.time(WARMUP),
            window_ns: self.time(WINDOW),
            drain_ns: DRAIN,
        };
        let record: RunRecord = self.run_agents(endpoint, &load)?;
        let counts = &record.counts;
        if counts.sent < counts.offered || counts.delivered < counts.expected {
            self.remarks.push(format!(
                "agents at {rate} msg/s each: {} of {} sent, {} of {} delivered",
                counts.sent, counts.offered, counts.delivered, counts.expected
            ));
        }
        let arrived = record.rates.delivered_per_s * record.window_ns as f64 / SECOND as f64;
        side.send.push(per_million(cpu_s(&record, Role::Publisher), counts.sent as f64));
        side.receive.push(per_million(cpu_s(&record, Role::Subscriber), arrived));
        side.lags.extend(record.histograms.send_lag);
        Ok(())
    }

    fn cost_of_bare(&mut self, endpoint: &str, rate: u64, repeat: usize, side: &mut Side) -> Result<(), RunError> {
        // As long as the names of the agents' runs.
        let run = format!("bare{rate:02}{repeat:04}");
        let total = u64::from(CONNECTIONS) * rate;
        let mut receiver = self.bare("receive", endpoint, &run, total)?;
        let _: Ready = receiver.hear(PATIENCE, self.interrupt)?;
        let mut sender = self.bare("send", endpoint, &run, total)?;
        let _: Ready = sender.hear(PATIENCE, self.interrupt)?;
        let go = LoopStart { start_ns: clock::now() + LEAD };
        receiver.tell(&go);
        sender.tell(&go);
        let within = PATIENCE + Duration::from_nanos(WARMUP + WINDOW);
        let sent: LoopResult = sender.hear(within, self.interrupt)?;
        receiver.tell(&All { messages: sent.total_messages });
        let received: LoopResult = receiver.hear(within, self.interrupt)?;
        if received.total_messages != sent.total_messages {
            self.remarks.push(format!(
                "bare loops at {rate} msg/s each: {} of {} messages arrived",
                received.total_messages, sent.total_messages
            ));
        }
        let cost = |done: &LoopResult| per_million(done.cpu_ns as f64 / SECOND as f64, done.messages as f64);
        side.send.push(cost(&sent));
        side.receive.push(cost(&received));
        side.lags.extend(sent.lag);
        Ok(())
    }

    fn bare(&self, what: &str, endpoint: &str, run: &str, per_s: u64) -> Result<Helper, RunError> {
        let mut arguments = vec!["bare".into(), what.into(), "--to".into(), address(endpoint)?];
        arguments.extend(["--run".into(), run.into()]);
        for (flag, value) in [
            ("--connections", u64::from(CONNECTIONS)),
            ("--rate", per_s),
            ("--payload", PAYLOAD_BYTES),
            ("--quantum-ns", default_quantum_ns()),
            ("--warmup-ns", self.time(WARMUP)),
            ("--window-ns", self.time(WINDOW)),
        ] {
            arguments.extend([flag.into(), value.to_string()]);
        }
        self.helper(&arguments)
    }
}

/// Returns address and port of an endpoint.
pub fn address(endpoint: &str) -> Result<String, RunError> {
    let parsed = Endpoint::parse(endpoint).map_err(HostError::from)?;
    let found = (parsed.host.as_str(), parsed.port).to_socket_addrs();
    let found: Vec<SocketAddr> = found.map_err(RunError::io(format!("cannot find the host of {parsed}")))?.collect();
    if let [only] = found[..] {
        return Ok(only.to_string());
    }
    // Of several addresses, the first that answers, IPv4 before others.
    let mut met = Vec::new();
    for to in found.iter().filter(|to| to.is_ipv4()).chain(found.iter().filter(|to| !to.is_ipv4())) {
        match TcpStream::connect_timeout(to, CONNECT) {
            Ok(_) => return Ok(to.to_string()),
            Err(error) => met.push(format!("{to}: {error}")),
        }
    }
    match met.is_empty() {
        true => Err(failed(format!("the host of {parsed} has no address"))),
        false => Err(failed(format!("cannot connect to {parsed}: {}", met.join("; ")))),
    }
}
