//! Who sends what to whom, and when: a workload with nothing left open.

pub mod resolve;

use crate::header::{SEALED_LEN, body_at};
pub use crate::pattern::Pattern;
pub use crate::pin::Pin;
pub use crate::profile::Rate;
use crate::units::{MILLISECOND, Ns, SECOND};
use crate::words::words;
use pubmark_stats::Random;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most slices of a record's series.
pub const MAX_SLICES: u64 = 3_600;

words! {
    /// How bytes cross from client to client, for libraries.
    Transport {
        /// Threads of one process.
        Inproc = "inproc",
        /// Processes of one machine, over Unix sockets.
        Ipc = "ipc",
        /// Processes, over TCP on loopback.
        Tcp = "tcp",
        /// Processes, over UDP datagrams on loopback; may lose.
        Udp = "udp",
    }
}

words! {
    /// How a publisher waits for the next due time.
    Pacing {
        /// Sleeps to the due time (timer slack 1 ns).
        Sleep = "sleep",
        /// Sleeps until shortly before the due time and watches the clock for
        /// the rest, within a budget of processor time.
        Hybrid = "hybrid",
        /// Watches the clock; costs a core, buys precision.
        Spin = "spin",
    }
}

words! {
    /// How a subscriber waits for messages.
    Receive {
        /// Sleeps until something arrives.
        Block = "block",
        /// Asks again and again; costs a core, and no wake-up is in the figures.
        Spin = "spin",
    }
}

words! {
    /// How much of an arriving message is checked.
    Verify {
        /// Length, and that the header names a possible message.
        Header = "header",
        /// Also a CRC-32C of the whole body.
        Full = "full",
    }
}

/// When messages are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Arrival {
    /// Evenly spaced: message i at offset + i / rate.
    Uniform,
    /// Exponential gaps with mean 1 / rate.
    Poisson,
    /// Bursts of K each K / rate.
    Burst(u32),
}

/// A text that is no arrival.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no arrival: write `uniform`, `poisson` or `burst:K` with K from 1 to 1,000,000")]
pub struct UnknownArrival(String);

impl Arrival {
    /// Reads `uniform`, `poisson` or `burst:K`.
    pub fn parse(text: &str) -> Result<Self, UnknownArrival> {
        match text {
            "uniform" => Ok(Arrival::Uniform),
            "poisson" => Ok(Arrival::Poisson),
            _ => text
                .strip_prefix("burst:")
                .and_then(|k| k.parse().ok())
                .filter(|k| (1..=1_000_000).contains(k))
                .map(Arrival::Burst)
                .ok_or_else(|| UnknownArrival(text.to_owned())),
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arrival::Uniform => f.write_str("uniform"),
            Arrival::Poisson => f.write_str("poisson"),
            Arrival::Burst(k) => write!(f, "burst:{k}"),
        }
    }
}

impl TryFrom<String> for Arrival {
    type Error = UnknownArrival;
    fn try_from(text: String) -> Result<Self, UnknownArrival> {
        Arrival::parse(&text)
    }
}

impl From<Arrival> for String {
    fn from(arrival: Arrival) -> String {
        arrival.to_string()
    }
}

/// What a workload has that was written before there was the key: the key's default.
pub(crate) const fn default_connect_rate() -> u32 {
    1_000
}

pub(crate) const fn default_receive() -> Receive {
    Receive::Block
}

pub(crate) const fn default_pin() -> Pin {
    Pin::None
}

pub(crate) const fn default_max_send_lag_ns() -> Ns {
    MILLISECOND
}

pub(crate) const fn default_late_after_ns() -> Ns {
    10 * MILLISECOND
}

/// Devices of a subsystem of a tree, where nothing else is said.
pub const TREE_DEVICES: u32 = 100;
/// Parameters of a device of a tree, where nothing else is said.
pub const TREE_PARAMETERS: u32 = 10;

const fn usual_devices() -> u32 {
    TREE_DEVICES
}

const fn usual_parameters() -> u32 {
    TREE_PARAMETERS
}

fn is_usual_devices(devices: &u32) -> bool {
    *devices == TREE_DEVICES
}

fn is_usual_parameters(parameters: &u32) -> bool {
    *parameters == TREE_PARAMETERS
}

const fn one_agent() -> u32 {
    1
}

fn is_one_agent(agents: &u32) -> bool {
    *agents == one_agent()
}

fn is_usual_late_after_ns(ns: &Ns) -> bool {
    *ns == default_late_after_ns()
}

/// How long the measured window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Nanoseconds.
    TimeNs(Ns),
    /// Messages of each publisher.
    Count(u64),
}

/// A workload with nothing left open; what an agent is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Who sends to whom.
    pub pattern: Pattern,
    /// How bytes cross; none where the system's endpoint decides.
    pub transport: Option<Transport>,
    /// Publishers (or requesters): 1 to 1,000,000.
    pub publishers: u32,
    /// Subscribers (or repliers): 1 to 1,000,000.
    pub subscribers: u32,
    /// Devices of a subsystem in the pattern `tree`; an agent is told where it is not 100.
    #[serde(default = "usual_devices", skip_serializing_if = "is_usual_devices")]
    pub tree_devices: u32,
    /// Parameters of a device in the pattern `tree`; an agent is told where it is not 10.
    #[serde(default = "usual_parameters", skip_serializing_if = "is_usual_parameters")]
    pub tree_parameters: u32,
    /// Messages per second and publisher.
    pub rate: Rate,
    /// When messages are due.
    pub arrival: Arrival,
    /// Bytes of a message, its header included: 16 B to 1 GiB.
    pub payload_bytes: u64,
    /// Quality of service, 0 to 2.
    pub qos: u8,
    /// Whether subscriptions and what waits for them outlive connection and server.
    #[serde(default)]
    pub durable: bool,
    /// Whether clients of a broker whose connection ends come back, with their
    /// session, as often as it takes. Absent where not: a connection that is
    /// lost then stays lost. What falls due meanwhile is sent late, at every
    /// quality of service. No key of a study: runs with faults have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconnect: bool,
    /// Connections that all clients together open in a second.
    #[serde(default = "default_connect_rate")]
    pub connect_rate: u32,
    /// From the start to the window, ns: sent and received, not measured.
    pub warmup_ns: Ns,
    /// The most that it may be, ns, where a pilot run says how long it is: after
    /// `warmup_ns` at the earliest. No agent is told, and no record has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_max_ns: Option<Ns>,
    /// The measured window.
    pub extent: Extent,
    /// How long after the last send a message may still arrive, ns.
    pub drain_ns: Ns,
    /// How long clients may take to connect, subscribe and hear each other, ns.
    pub connect_timeout_ns: Ns,
    /// How a publisher waits.
    pub pacing: Pacing,
    /// After a wake-up, sends become due together for this long, ns.
    pub pacing_quantum_ns: Ns,
    /// How a subscriber waits.
    #[serde(default = "default_receive")]
    pub receive: Receive,
    /// How much of a message is checked.
    pub verify: Verify,
    /// Whether each message carries the checksum of its header. No key of a study: agents
    /// are told so where bodies are checked, messages are long enough, and all agents of
    /// the run can.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub header_checksum: bool,
    /// Processes a side, over which its clients are spread; no more than it has
    /// clients. Absent where it is one.
    #[serde(default = "one_agent", skip_serializing_if = "is_one_agent")]
    pub agents: u32,
    /// Processor pinning: the coordinator's to translate into processors.
    #[serde(default = "default_pin")]
    pub pin: Pin,
    /// The generator's own p99 lag above which a run is `generator-saturated`, ns.
    #[serde(default = "default_max_send_lag_ns")]
    pub max_send_lag_ns: Ns,
    /// Headline latency above which a delivered message is late, ns.
    /// Agents have no use for it, and those of before need not know it.
    #[serde(default = "default_late_after_ns", skip_serializing_if = "is_usual_late_after_ns")]
    pub late_after_ns: Ns,
    /// Seed of Poisson gaps.
    pub seed: u64,
}

impl Workload {
    /// Whether every byte of a message is looked at: a short one has no body.
    pub fn checks_bodies(&self) -> bool {
        let payload = self.payload_bytes as usize;
        self.verify == Verify::Full || payload <= body_at(payload)
    }

    /// Where the body of a message begins that its receivers check.
    pub fn body_at(&self) -> usize {
        if self.header_checksum { SEALED_LEN } else { body_at(self.payload_bytes as usize) }
    }

    /// Whether latency is measured: not where messages go out as fast as possible, for
    /// there it is the length of a queue.
    pub fn measures_latency(&self) -> bool {
        self.rate != Rate::Max || self.pattern.round_trip()
    }

    /// Whether messages are to carry the checksum of their header, if all agents can: where
    /// bodies are checked, there is room for it, and the header's times are measured.
    pub fn wants_header_checksum(&self) -> bool {
        self.verify == Verify::Full && self.payload_bytes >= SEALED_LEN as u64 && self.measures_latency()
    }

    /// Length of a slice of the record's series, ns: a twentieth of the window
    /// from 10 ms to a second, longer where there would be too many; a second
    /// where the window's end is not known beforehand.
    pub fn slice_ns(&self) -> Ns {
        let of = |window: Ns| (window / 20).clamp(10 * MILLISECOND, SECOND).max(window.div_ceil(MAX_SLICES));
        self.window_ns().map_or(SECOND, of)
    }

    /// The same for what server and generator use, which costs a look each time:
    /// a second or more, and in windows below five seconds 100 ms or more, ns.
    pub fn usage_slice_ns(&self) -> Ns {
        let shortest = match self.window_ns() {
            Some(window_ns) if window_ns < 5 * SECOND => 100 * MILLISECOND,
            _ => SECOND,
        };
        self.slice_ns().max(shortest)
    }

    /// The window's length, ns, where the schedule decides it; none for a
    /// count of messages at `max`.
    pub fn window_ns(&self) -> Option<Ns> {
        match (self.extent, self.rate) {
            (Extent::TimeNs(ns), _) => Some(ns),
            (Extent::Count(count), Rate::Due(profile)) => Some(profile.due(count)),
            (Extent::Count(_), Rate::Max) => None,
        }
    }

    /// How long a pilot run goes on, ns, where there is one: as long again as the
    /// warm-up may be, so that what is steady at its end can be seen.
    pub fn pilot_ns(&self) -> Option<Ns> {
        self.warmup_max_ns.map(|most_ns| most_ns.saturating_mul(2))
    }

    /// The workload of one repeat: its Poisson gaps are its own, the same for
    /// all systems, so that intervals over repeats hold the arrivals' chance too.
    pub fn of_repeat(&self, repeat: u32) -> Workload {
        let seed = Random(self.seed ^ (u64::from(repeat) << 40)).bits();
        Workload { seed, ..self.clone() }
    }

    /// Whether its tree has other sizes than [`TREE_DEVICES`] and [`TREE_PARAMETERS`].
    pub fn sizes_tree(&self) -> bool {
        !is_usual_devices(&self.tree_devices) || !is_usual_parameters(&self.tree_parameters)
    }

    /// Whether a subscriber's messages are its own, or shared out among all.
    pub fn competing(&self) -> bool {
        self.pattern.competing()
    }
}
