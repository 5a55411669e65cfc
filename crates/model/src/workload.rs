//! A workload: pattern, clients, messages and schedule, fully resolved.

pub mod resolve;

use crate::churn::Churn;
use crate::header::{FREE_LEN, MIN_LEN, REPLY_TIMES_LEN, SEALED_LEN, SENT_LEN, body_at};
use crate::message_headers::MessageHeaders;
pub use crate::pattern::Pattern;
use crate::pattern::Topics;
use crate::payload::{MessageSizes, PayloadBodies, PayloadSizes};
use crate::payload_content::PayloadContent;
pub use crate::pin::Pin;
use crate::profile::Profile;
pub use crate::profile::Rate;
use crate::profile::trace::TraceRate;
use crate::topic_set::TopicSet;
use crate::units::{MILLISECOND, Ns, SECOND, format_time, parse_time};
use crate::words::words;
use pubmark_stats::Random;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum number of slices of a record's series.
pub const MAX_SLICES: u64 = 3_600;

/// Shortest slice of a record's series, ns.
pub const SLICE_LEAST: Ns = 10 * MILLISECOND;
/// Longest slice of a window of up to [`MAX_SLICES`] of them, ns.
pub const SLICE_MOST: Ns = SECOND;

/// Returns the length of a slice of the series of a window of this length, ns.
pub fn slice_of(window_ns: Ns) -> Ns {
    (window_ns / 20).clamp(SLICE_LEAST, SLICE_MOST).max(window_ns.div_ceil(MAX_SLICES))
}

words! {
    /// Transport between clients, for libraries.
    Transport {
        /// Threads of one process.
        Inproc = "inproc",
        /// Processes of one machine, over Unix sockets.
        Ipc = "ipc",
        /// Processes, over TCP on loopback.
        Tcp = "tcp",
        /// Processes, over UDP datagrams on loopback; may lose messages.
        Udp = "udp",
    }
}

words! {
    /// Method by which a publisher waits for the next due time.
    Pacing {
        /// Sleeps to the due time (timer slack 1 ns).
        Sleep = "sleep",
        /// Sleeps until shortly before the due time and polls the clock for the rest, within a
        /// budget of processor time.
        Hybrid = "hybrid",
        /// Polls the clock; uses a core, and is precise.
        Spin = "spin",
    }
}

words! {
    /// Method by which a subscriber waits for messages.
    Receive {
        /// Sleeps until something arrives.
        Block = "block",
        /// Polls; uses a core, and the figures contain no wake-up.
        Spin = "spin",
    }
}

words! {
    /// Parts of an arriving message that are checked.
    Verify {
        /// Length, and that the header names a possible message.
        Header = "header",
        /// Also a CRC-32C of the whole body.
        Full = "full",
    }
}

/// Distribution of due times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Arrival {
    /// Evenly spaced: message i at offset + i / rate.
    Uniform,
    /// Exponential gaps with mean 1 / rate.
    Poisson,
    /// Bursts of K messages every K / rate.
    Burst(u32),
    /// Evenly spaced within periods, with pauses between them: the lengths of both are exponential.
    OnOff {
        /// Mean length of a period, ns.
        on_ns: Ns,
        /// Mean length of a pause, ns.
        off_ns: Ns,
    },
}

/// Shortest and longest mean of a period or a pause.
const PERIODS: std::ops::RangeInclusive<Ns> = MILLISECOND..=3_600 * SECOND;

/// Error for a text that is not an arrival.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an arrival: write `uniform`, `poisson`, `burst:K` with K from 1 to 1,000,000, or `on-off:T/T` with \
     means from 1ms to 1h, such as `on-off:2s/8s`"
)]
pub struct UnknownArrival(String);

impl Arrival {
    /// Parses `uniform`, `poisson`, `burst:K` or `on-off:T/T`.
    pub fn parse(text: &str) -> Result<Self, UnknownArrival> {
        match text {
            "uniform" => Ok(Arrival::Uniform),
            "poisson" => Ok(Arrival::Poisson),
            _ => text
                .strip_prefix("burst:")
                .and_then(|k| k.parse().ok())
                .filter(|k| (1..=1_000_000).contains(k))
                .map(Arrival::Burst)
                .or_else(|| Arrival::parse_pauses(text))
                .ok_or_else(|| UnknownArrival(text.to_owned())),
        }
    }
}

impl Arrival {
    fn parse_pauses(text: &str) -> Option<Arrival> {
        let (on, off) = text.strip_prefix("on-off:")?.split_once('/')?;
        let mean = |text: &str| parse_time(text).ok().filter(|ns| PERIODS.contains(ns));
        Some(Arrival::OnOff { on_ns: mean(on)?, off_ns: mean(off)? })
    }

    /// True if publishers pause.
    pub fn pauses(self) -> bool {
        matches!(self, Arrival::OnOff { .. })
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arrival::Uniform => f.write_str("uniform"),
            Arrival::Poisson => f.write_str("poisson"),
            Arrival::Burst(k) => write!(f, "burst:{k}"),
            Arrival::OnOff { on_ns, off_ns } => write!(f, "on-off:{}/{}", format_time(*on_ns), format_time(*off_ns)),
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

/// Returns the value for a workload that was recorded before the key existed: the key's default.
pub(crate) const fn default_connect_rate() -> u32 {
    1_000
}

pub(crate) const fn default_receive() -> Receive {
    Receive::Block
}

pub(crate) const fn default_consume() -> Rate {
    Rate::Max
}

fn is_unlimited(consume: &Rate) -> bool {
    *consume == Rate::Max
}

/// Default number of requests of a client that wait for an answer: it asks in turn.
pub const ONE_REQUEST: u32 = 1;

const fn one_request() -> u32 {
    ONE_REQUEST
}

fn is_one_request(outstanding: &u32) -> bool {
    *outstanding == ONE_REQUEST
}

const fn no_churn() -> Churn {
    Churn::NONE
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

/// Default number of devices of a subsystem of a tree.
pub const TREE_DEVICES: u32 = 100;
/// Default number of parameters of a device of a tree.
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

/// Length of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Nanoseconds.
    TimeNs(Ns),
    /// Messages of each publisher.
    Count(u64),
}

/// Part of the window in which messages are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueSpan {
    /// Beginning, ns from the window's beginning; `None`: with the warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<Ns>,
    /// End, ns from the window's beginning; `None`: the window's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<Ns>,
}

impl DueSpan {
    /// True if messages are due from the start of the run to the end of the window.
    pub fn is_whole(&self) -> bool {
        *self == DueSpan::default()
    }
}

/// A workload, fully resolved, as agents receive it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// The messaging pattern.
    pub pattern: Pattern,
    /// The transport; `None` if the system's endpoint decides.
    pub transport: Option<Transport>,
    /// Publishers (or requesters): 1 to 1,000,000.
    pub publishers: u32,
    /// Subscribers (or repliers): 1 to 1,000,000.
    pub subscribers: u32,
    /// Devices of a subsystem in the pattern `tree`; sent to agents if it is not 100.
    #[serde(default = "usual_devices", skip_serializing_if = "is_usual_devices")]
    pub tree_devices: u32,
    /// Parameters of a device in the pattern `tree`; sent to agents if it is not 10.
    #[serde(default = "usual_parameters", skip_serializing_if = "is_usual_parameters")]
    pub tree_parameters: u32,
    /// Messages per second and publisher.
    pub rate: Rate,
    /// Distribution of due times.
    pub arrival: Arrival,
    /// Part of the window in which messages are due; sent to agents if it is not the whole.
    #[serde(default, skip_serializing_if = "DueSpan::is_whole")]
    pub span: DueSpan,
    /// Instant at which subscribers connect and read their stream from its beginning, ns from the window's beginning;
    /// `None`: they connect before publishers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribers_start_ns: Option<Ns>,
    /// Messages per second that each subscriber takes at most, from the start to the drain; sent to
    /// agents if it is not `max`.
    #[serde(default = "default_consume", skip_serializing_if = "is_unlimited")]
    pub consume: Rate,
    /// Requests of each requester that wait for an answer at most; sent to agents if it is not 1.
    #[serde(default = "one_request", skip_serializing_if = "is_one_request")]
    pub outstanding: u32,
    /// Longest wait for an answer, ns, 1 ms or more and `drain_ns` at most; `None`: `drain_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ns: Option<Ns>,
    /// Clients per second that connect, subscribe to a topic of their own and disconnect, beside those that are
    /// measured; sent to agents if there are any.
    #[serde(default = "no_churn", skip_serializing_if = "Churn::is_none")]
    pub churn: Churn,
    /// True if the server gets a last will with each publisher's connection; sent to agents if so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last_will: bool,
    /// Length of a message, including its header: 16 B to 1 GiB. If sizes vary, the largest.
    pub payload_bytes: u64,
    /// The sizes of messages, if they vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_sizes: Option<PayloadSizes>,
    /// The content of bodies; sent to agents if it is not `random`.
    #[serde(default, skip_serializing_if = "PayloadContent::is_random")]
    pub payload_content: PayloadContent,
    /// The bodies of messages, if they are lines of a file or a template. Records have no lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_bodies: Option<PayloadBodies>,
    /// The headers of each message, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<MessageHeaders>,
    /// The topics of messages, if each has one of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics: Option<TopicSet>,
    /// Quality of service, 0 to 2.
    pub qos: u8,
    /// True if subscriptions and messages that wait for them outlive connection and server.
    #[serde(default)]
    pub durable: bool,
    /// True if the server that is started for the run uses TLS. Not sent to agents: the endpoint's
    /// scheme says it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
    /// True if clients of a broker reconnect, with their session, whenever their connection ends.
    /// If false, which is omitted in JSON, a lost connection stays lost. Messages due in the
    /// meantime are sent late, at every quality of service. Not a key of a study: runs with faults
    /// and those with `client_timeout` have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconnect: bool,
    /// Time without a word of the server after which its clients reconnect, ns: subscribers, and publishers that await an
    /// acknowledgement. `None`: they wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_timeout_ns: Option<Ns>,
    /// Connections that all clients together open per second.
    #[serde(default = "default_connect_rate")]
    pub connect_rate: u32,
    /// From the start to the window, ns: messages are sent and received, but not measured.
    pub warmup_ns: Ns,
    /// Longest warm-up, ns, if a pilot run determines it; `warmup_ns` is then the shortest. Not
    /// sent to agents, and not in records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_max_ns: Option<Ns>,
    /// The measured window.
    pub extent: Extent,
    /// Time after the last send in which a message may still arrive, ns.
    pub drain_ns: Ns,
    /// Time limit for clients to connect, subscribe and receive from each other, ns.
    pub connect_timeout_ns: Ns,
    /// Waiting method of a publisher.
    pub pacing: Pacing,
    /// After a wake-up, sends become due together for this long, ns.
    pub pacing_quantum_ns: Ns,
    /// Waiting method of a subscriber.
    #[serde(default = "default_receive")]
    pub receive: Receive,
    /// Parts of a message that are checked.
    pub verify: Verify,
    /// True if each message carries the checksum of its header. Not a key of a study: it is set if
    /// bodies are checked, messages are long enough, and all agents of the run support it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub header_checksum: bool,
    /// True if repliers write their times into answers. Not a key of a study: it is set if messages
    /// are long enough, both ends are on one host, and all agents of the run support it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reply_times: bool,
    /// Processes per side, over which its clients are spread; at most its number of clients.
    /// Omitted if it is one.
    #[serde(default = "one_agent", skip_serializing_if = "is_one_agent")]
    pub agents: u32,
    /// Processor pinning, which the coordinator translates into processors.
    #[serde(default = "default_pin")]
    pub pin: Pin,
    /// 99th percentile of generator delay above which a run is `generator-saturated`, ns.
    #[serde(default = "default_max_send_lag_ns")]
    pub max_send_lag_ns: Ns,
    /// Headline latency above which a delivered message is late, ns. Agents use it for late subscribers only, and
    /// older ones need not know it.
    #[serde(default = "default_late_after_ns", skip_serializing_if = "is_usual_late_after_ns")]
    pub late_after_ns: Ns,
    /// Seed of Poisson gaps.
    pub seed: u64,
}

impl Workload {
    /// True if every byte of a message is checked: a short one has no body.
    pub fn checks_bodies(&self) -> bool {
        let payload = self.payload_bytes as usize;
        let has_bodies = if self.sizes_vary() { payload > SENT_LEN } else { payload > body_at(payload) };
        self.verify == Verify::Full || !has_bodies
    }

    /// Returns the offset of the body that the receivers of a message of this length check.
    #[inline]
    pub fn body_at(&self, len: usize) -> usize {
        match self.reply_times_at() {
            Some(at) => at + REPLY_TIMES_LEN,
            None if self.header_checksum => SEALED_LEN,
            None => body_at(len),
        }
    }

    /// Returns the offset of the replier's times in answers, if repliers write them.
    pub fn reply_times_at(&self) -> Option<usize> {
        self.reply_times.then_some(if self.header_checksum { SEALED_LEN } else { FREE_LEN })
    }

    /// True if repliers should write their times into answers, if all agents support it: there are
    /// requests, and there is room.
    pub fn wants_reply_times(&self) -> bool {
        let is_pattern = self.payload_bodies.is_none();
        is_pattern && self.pattern.requests() && self.least_payload_bytes() >= (SEALED_LEN + REPLY_TIMES_LEN) as u64
    }

    /// Returns the longest wait for an answer, ns.
    pub fn answer_ns(&self) -> Ns {
        self.timeout_ns.unwrap_or(self.drain_ns)
    }

    /// Returns the length of the shortest message, bytes. Probes and end markers have it.
    pub fn least_payload_bytes(&self) -> u64 {
        match self.sized_trace() {
            Some(trace) => trace.rows().least_bytes(),
            None => self.payload_sizes.as_ref().map_or(self.payload_bytes, PayloadSizes::least_bytes),
        }
    }

    /// Returns a message of the largest length, without its header.
    pub fn longest_message(&self) -> Vec<u8> {
        self.payload_content.message(self.payload_bytes.max(MIN_LEN as u64) as usize)
    }

    /// Returns the mean length of messages, bytes.
    pub fn mean_payload_bytes(&self) -> f64 {
        match self.sized_trace() {
            Some(trace) => trace.rows().mean_bytes(),
            None => self.payload_sizes.as_ref().map_or(self.payload_bytes as f64, PayloadSizes::mean_bytes),
        }
    }

    /// Returns the length of each message; `None` if all have the same.
    pub fn message_sizes(&self) -> Option<MessageSizes> {
        if let Some(bodies) = &self.payload_bodies {
            return Some(MessageSizes::of_bodies(bodies.clone()));
        }
        let of_trace = self.sized_trace().map(MessageSizes::of_trace);
        let sizes = of_trace.or_else(|| Some(MessageSizes::new(self.payload_sizes.clone()?, self.seed)));
        sizes.map(|sizes| sizes.with_content(self.payload_content))
    }

    /// Returns the trace that it replays, if messages have the sizes of its rows.
    fn sized_trace(&self) -> Option<&TraceRate> {
        self.rate.trace().filter(|trace| trace.is_sized())
    }

    /// True if messages differ in size.
    pub fn sizes_vary(&self) -> bool {
        self.payload_sizes.is_some() || self.sized_trace().is_some()
    }

    /// Returns the source of sizes that vary, as a user knows it.
    pub fn sizes_text(&self) -> Option<String> {
        let of_trace = self.sized_trace().map(ToString::to_string);
        of_trace.or_else(|| self.payload_sizes.as_ref().map(|sizes| sizes.text().to_owned()))
    }

    /// Returns the workload as a record has it.
    #[must_use]
    pub fn recorded(&self) -> Workload {
        let payload_bodies = self.payload_bodies.as_ref().map(PayloadBodies::recorded);
        Workload { payload_bodies, ..self.clone() }
    }

    /// Returns the workload for an agent, which reads the rows of a trace from this file.
    #[must_use]
    pub fn with_trace_file(self, file: &str) -> Workload {
        let Some(trace) = self.rate.trace() else { return self };
        Workload { rate: Rate::Due(Profile::Trace(trace.in_file(file))), ..self }
    }

    /// True if latency is measured. It is not if messages are sent as fast as possible: there it is
    /// the length of a queue.
    pub fn measures_latency(&self) -> bool {
        self.rate != Rate::Max || self.pattern.round_trip()
    }

    /// True if sends and acknowledgements are timed: messages have due times.
    pub fn times_sends(&self) -> bool {
        self.rate != Rate::Max && self.measures_latency()
    }

    /// True if messages should carry the checksum of their header, if all agents support it: bodies
    /// are checked, there is room for it, and the header's times are measured.
    pub fn wants_header_checksum(&self) -> bool {
        self.verify == Verify::Full && self.least_payload_bytes() >= SEALED_LEN as u64 && self.measures_latency()
    }

    /// Returns the length of a slice of the record's series, ns: a twentieth of the window from 10
    /// ms to a second, longer if there would be too many; a second if the window's end is not known
    /// in advance.
    pub fn slice_ns(&self) -> Ns {
        self.window_ns().map_or(SLICE_MOST, slice_of)
    }

    /// Returns the length of a slice of server and generator usage, ns. Each slice costs a sample,
    /// so it is a second or more, and in windows below five seconds 100 ms or more.
    pub fn usage_slice_ns(&self) -> Ns {
        let shortest = match self.window_ns() {
            Some(window_ns) if window_ns < 5 * SECOND => 100 * MILLISECOND,
            _ => SECOND,
        };
        self.slice_ns().max(shortest)
    }

    /// Returns the window's length, ns, if the schedule determines it; `None` for a count of
    /// messages at `max`.
    pub fn window_ns(&self) -> Option<Ns> {
        match (self.extent, &self.rate) {
            (Extent::TimeNs(ns), _) => Some(ns),
            (Extent::Count(count), Rate::Due(profile)) => Some(profile.due(count)),
            (Extent::Count(_), Rate::Max) => None,
        }
    }

    /// Returns the length of a pilot run, ns, if there is one: twice the longest warm-up, so that
    /// its end shows what is steady.
    pub fn pilot_ns(&self) -> Option<Ns> {
        self.warmup_max_ns.map(|most_ns| most_ns.saturating_mul(2))
    }

    /// Returns the workload of one repeat. Its Poisson gaps are its own, the same for all systems,
    /// so that intervals over repeats include the randomness of arrivals.
    pub fn of_repeat(&self, repeat: u32) -> Workload {
        let seed = Random(self.seed ^ (u64::from(repeat) << 40)).bits();
        Workload { seed, ..self.clone() }
    }

    /// True if its tree has other sizes than [`TREE_DEVICES`] and [`TREE_PARAMETERS`].
    pub fn sizes_tree(&self) -> bool {
        !is_usual_devices(&self.tree_devices) || !is_usual_parameters(&self.tree_parameters)
    }

    /// Returns the instants from which on and before which messages are due, ns from the start of the run;
    /// `Ns::MAX` if only the window ends them.
    pub fn due_from_to(&self) -> (Ns, Ns) {
        let since_start = |ns: Ns| self.warmup_ns.saturating_add(ns);
        (self.span.start_ns.map_or(0, since_start), self.span.end_ns.map_or(Ns::MAX, since_start))
    }

    /// True if messages wait for subscribers by request: for slow ones, or for late ones.
    pub fn lets_messages_wait(&self) -> bool {
        self.consumes_slowly() || self.subscribers_start_ns.is_some()
    }

    /// True if subscribers take messages at a rate of their own.
    pub fn consumes_slowly(&self) -> bool {
        !is_unlimited(&self.consume)
    }

    /// True if a requester sends more requests before it has the answer to the first.
    pub fn asks_ahead(&self) -> bool {
        !is_one_request(&self.outstanding)
    }

    /// True if subscribers that hear the same publishers share their topics.
    fn shares_topics(&self) -> bool {
        self.pattern.topics() == Topics::Shared && self.topics.as_ref().is_some_and(TopicSet::is_each)
    }

    /// True if each message is for one of several subscribers: what they received is united.
    pub fn is_divided(&self) -> bool {
        self.competing() || (self.shares_topics() && self.subscribers > 1)
    }

    /// True if messages are shared out among all subscribers.
    pub fn competing(&self) -> bool {
        self.pattern.competing()
    }
}
