//! The agent protocol, version 2: JSON lines between coordinator and agent.
//!
//! `docs/agent-protocol.md` explains it with an example conversation.

mod ranges;

use crate::header::MAX_SEQUENCE;
use crate::options::Options;
use crate::units::Ns;
use crate::used::{self, UsageReading, Used};
use crate::workload::Workload;
pub use ranges::{MOST_RANGES, Ranges, Sequences};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

/// The version that this crate speaks.
pub const VERSION: u32 = 2;

/// The longest line that either side reads, bytes: what a million clients of
/// one agent, and [`MOST_RANGES`] of both kinds, have room in.
pub const MAX_LINE: usize = 256 << 20;

/// What the coordinator says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Opens the conversation.
    Hello {
        /// The version that the coordinator speaks.
        protocol: u32,
    },
    /// The clients to play. The agent binds, answers `bound`, connects, and
    /// answers `ready` when every client is connected and has heard a probe
    /// from each publisher that it hears.
    Prepare(Box<Prepare>),
    /// The instant at which the schedule starts.
    Start {
        /// On the agent's CLOCK_MONOTONIC, ns.
        at_ns: Ns,
    },
    /// All publishers have sent all. The agent answers `drained` when its
    /// subscribers have everything, or know the rest to be lost, or at the deadline.
    Drain {
        /// What each publisher sent.
        publishers: Vec<PublisherTotal>,
        /// On the agent's clock, ns.
        deadline_ns: Ns,
    },
    /// End the load and answer `result`.
    Stop {},
    /// Close everything and exit with status 0.
    Exit {},
}

/// The clients that one agent plays in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// The driver.
    pub driver: String,
    /// Its options, all of them.
    pub options: Options,
    /// The workload, the same for all agents of a run; without what the
    /// coordinator alone needs.
    #[serde(serialize_with = "for_agents")]
    pub workload: Workload,
    /// The clients.
    pub clients: Vec<Client>,
    /// A folder of this run for socket files; the coordinator removes it.
    pub scratch: String,
    /// The server, where clients speak to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerAddress>,
    /// The processors that this agent's publishers may spend on waiting awake
    /// (`pacing = "hybrid"`), 0 or more.
    #[serde(default)]
    pub spin_cores: f64,
    /// Processors for client threads; none leaves it to the kernel.
    pub publisher_cpus: Vec<usize>,
    /// The same for subscribers and repliers.
    pub subscriber_cpus: Vec<usize>,
}

/// Keys of a workload that no agent has a use for.
const NOT_FOR_AGENTS: [&str; 3] = ["pin", "max_send_lag_ns", "late_after_ns"];

fn for_agents<S: Serializer>(workload: &Workload, to: S) -> Result<S::Ok, S::Error> {
    let mut value = serde_json::to_value(workload).map_err(serde::ser::Error::custom)?;
    if let Some(keys) = value.as_object_mut() {
        keys.retain(|key, _| !NOT_FOR_AGENTS.contains(&key.as_str()));
    }
    value.serialize(to)
}

/// Where a broker is, and how this agent's clients get there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerAddress {
    /// Its URL, with user and password if it needs them: never logged.
    pub endpoint: String,
    /// The run's own name, 0-9 and a-z: topics and client names begin with it.
    pub run: String,
    /// Addresses to connect from, in turn; none leaves it to the kernel.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Connections that this agent opens in a second.
    pub connect_per_s: u32,
}

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sends by the schedule.
    Publisher,
    /// Receives.
    Subscriber,
    /// Sends by the schedule and waits for the echo.
    Requester,
    /// Echoes.
    Replier,
}

impl Role {
    /// Whether it sends by the schedule.
    pub fn sends(self) -> bool {
        matches!(self, Role::Publisher | Role::Requester)
    }
}

/// One client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// What it does.
    pub role: Role,
    /// Its number within its role: publishers and requesters share one count,
    /// subscribers and repliers another.
    pub id: u32,
    /// The endpoint that it binds, such as `tcp://127.0.0.1:0` (any free port).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<String>,
    /// The endpoints that it connects to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connect: Vec<String>,
    /// The first publisher that it hears (subscribers and repliers).
    #[serde(default)]
    pub hears_first: u32,
    /// How many publishers it hears from there on.
    #[serde(default)]
    pub hears_count: u32,
}

/// What an agent says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// Answer to `hello`.
    Hello(AgentHello),
    /// Every endpoint is bound; for clients of a broker: every client is
    /// connected, and every subscription stands.
    Bound {
        /// By client, as others can connect to it.
        endpoints: Vec<BoundEndpoint>,
    },
    /// Every client is connected and has heard whom it should hear.
    Ready {},
    /// Once a second while the load runs.
    Progress(Progress),
    /// Every publisher of this agent has sent all that it will send.
    Sent {
        /// What each of them sent.
        publishers: Vec<PublisherTotal>,
    },
    /// Answer to `drain`.
    Drained {},
    /// Answer to `stop`.
    Result(Box<AgentResult>),
    /// Something went wrong.
    Error {
        /// What, where, and what to do.
        message: String,
        /// Whether the run is lost.
        fatal: bool,
    },
}

/// Who the agent is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentHello {
    /// The protocol version that it speaks.
    pub protocol: u32,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// The drivers that it has.
    pub drivers: Vec<String>,
    /// Its CLOCK_MONOTONIC now, ns.
    pub clock_ns: Ns,
}

/// The environment variable that tells an agent from its first moment which
/// folder its coordinator would leave behind: the later `scratch` of `prepare`.
pub const SCRATCH: &str = "PUBMARK_SCRATCH";

/// The file in a folder of pubmark's whose lock says that the folder is in use.
/// A folder `scratch` without it is somebody else's.
pub const LOCK: &str = "lock";

/// An endpoint that a client bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundEndpoint {
    /// The client's role.
    pub role: Role,
    /// The client's number.
    pub id: u32,
    /// Where to connect to.
    pub endpoint: String,
}

/// Counters so far, for the live display only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Messages sent.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// The greatest part of a send's lag that the generator itself caused,
    /// over the messages sent since the last `progress`, ns. None where
    /// nothing was sent, or nothing was due (`max`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_lag_max_ns: Option<Ns>,
}

/// What one publisher sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublisherTotal {
    /// Its number.
    pub publisher: u32,
    /// All messages that it sent, warm-up included; sequences 0 to `sent` − 1.
    pub sent: u64,
    /// The first sequence of the window.
    pub window_first: u64,
    /// The sequence after the window's last. Messages belong to the window by
    /// their intended time.
    pub window_end: u64,
    /// Messages that the schedule had due in the window, sent or not.
    pub offered: u64,
}

impl PublisherTotal {
    /// Whether it can be: the window lies within what was sent and numbered.
    pub fn adds_up(&self) -> bool {
        self.window_first <= self.window_end && self.window_end <= self.sent && self.sent <= u64::from(MAX_SEQUENCE)
    }
}

/// The ledger's counts over the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerCounts {
    /// Messages that should have arrived.
    pub expected: u64,
    /// Messages that did, each counted once.
    pub delivered: u64,
    /// Arrivals beyond the first of a message.
    pub duplicated: u64,
    /// Arrivals behind a later message of the same publisher (RFC 4737).
    pub reordered: u64,
    /// Arrivals with a wrong length, body or header.
    pub corrupted: u64,
    /// Those of them whose header named no message: counted lost as well.
    pub unidentified: u64,
    /// Latencies below zero: a clock is wrong.
    pub negative: u64,
}

impl LedgerCounts {
    /// Adds the counts of another ledger.
    pub fn add(&mut self, other: &LedgerCounts) {
        self.expected += other.expected;
        self.delivered += other.delivered;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.corrupted += other.corrupted;
        self.unidentified += other.unidentified;
        self.negative += other.negative;
    }
}

/// What an agent measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentResult {
    /// What each publisher sent.
    pub publishers: Vec<PublisherTotal>,
    /// The ledger, over all subscribers of the agent.
    pub ledger: LedgerCounts,
    /// Messages that arrived within the window's time, each counted once,
    /// whenever they were due; of a count at `max` those of the window alone.
    pub arrived: u64,
    /// When the first message of the window was sent, ns; count-limited runs at `max`.
    pub first_sent_ns: Option<Ns>,
    /// When the last message of the window arrived, ns.
    pub last_arrival_ns: Option<Ns>,
    /// Latency from the due time less the generator's own lag, HdrHistogram V2
    /// compressed, base64. Of messages under 32 bytes, which cannot carry the
    /// instant at which their publisher was free, the own lag is still in it.
    pub latency: Option<String>,
    /// Latency from the due time.
    #[serde(default)]
    pub intended_latency: Option<String>,
    /// Latency from actual send time.
    pub service_latency: Option<String>,
    /// Actual send time less intended time.
    pub send_lag: Option<String>,
    /// The part of the lag that the generator itself caused: from the later of
    /// the due time and the previous send's end to this send's beginning.
    pub own_lag: Option<String>,
    /// From when the receiving loop last listened with nothing to do until a
    /// message's instant was taken; none where the agent cannot tell.
    #[serde(default)]
    pub receive_lag: Option<String>,
    /// How its publishers waited; none where the agent cannot tell.
    #[serde(default)]
    pub pacing: Option<PacingFigures>,
    /// Sum of |l_i − l_(i−1)| over consecutive messages of a stream, ns.
    pub jitter_sum_ns: f64,
    /// How many such pairs there were.
    pub jitter_pairs: u64,
    /// Counts and latencies by time slice.
    pub series: SliceSeries,
    /// Silences of subscribers.
    pub stalls: Stalls,
    /// CPU time and memory of the agent's process over the window.
    pub usage: AgentUsage,
    /// The library that was loaded: `library`, `version`, `path`.
    pub versions: Map<String, Value>,
    /// Options as they took effect.
    pub applied: Map<String, Value>,
    /// Event loops, or threads that play clients; 0 where the agent does not say.
    #[serde(default)]
    pub loops: u32,
    /// For competing subscribers: which sequences arrived, so that the
    /// coordinator can unite the ledgers of several agents.
    pub seen: Vec<SeenBits>,
    /// Messages of the window that the server acknowledged (QoS 1 and 2).
    #[serde(default)]
    pub acked: u64,
    /// Messages of the window that were sent and never acknowledged; never a
    /// part of them.
    #[serde(default)]
    pub unacked: Ranges,
    /// Messages of the window that a subscriber should have got and did not
    /// (QoS 1 and 2): ranges for each subscriber; never a part of them.
    #[serde(default)]
    pub missing: Ranges,
    /// How connections to a broker came about; none for libraries.
    #[serde(default)]
    pub connections: Option<Connections>,
    /// What the first attempt to connect that failed met.
    #[serde(default)]
    pub connect_error: Option<String>,
    /// How the first connection was lost that had been up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_loss: Option<String>,
    /// Times from a client's connecting until the server accepted it, as a histogram.
    #[serde(default)]
    pub connect_time: Option<String>,
    /// Times that clients were without their connection: from its loss until
    /// they were accepted again, subscribed, and had sent again what the server
    /// had not acknowledged; as a histogram. Losses that lasted to the end are
    /// not among them.
    #[serde(default)]
    pub reconnect_time: Option<String>,
    /// Gaps within the window in which the agent did not run though it should
    /// have: it, or the machine below it, was stopped.
    #[serde(default)]
    pub pauses: Stalls,
    /// What the verdict should know: limits that were hit, sends that failed.
    pub remarks: Vec<String>,
}

/// How publishers waited for their due times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacingFigures {
    /// The processors that waiting awake might cost, over all publishers.
    pub budget_cores: f64,
    /// What it did cost: time awake before due times over the window's length.
    pub spent_cores: f64,
    /// How long before a due time publishers woke up at last, ns; the longest of
    /// all loops.
    pub margin_ns: Ns,
}

impl PacingFigures {
    /// Adds those of other publishers.
    pub fn add(&mut self, other: &PacingFigures) {
        self.budget_cores += other.budget_cores;
        self.spent_cores += other.spent_cores;
        self.margin_ns = self.margin_ns.max(other.margin_ns);
    }
}

/// How connections to a broker came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connections {
    /// Clients that wanted one.
    pub wanted: u64,
    /// Clients that got one.
    pub opened: u64,
    /// Attempts that failed: refused, reset, or not answered in time.
    pub refused: u64,
    /// Attempts after a failed one.
    pub retried: u64,
    /// Connections that ended while they were needed.
    pub lost: u64,
    /// Lost ones that came back, with the client able to do its part again.
    #[serde(default)]
    pub reconnected: u64,
    /// When the first attempt began, ns on the agent's clock.
    pub first_ns: Ns,
    /// When the last client was accepted.
    pub last_ns: Ns,
}

impl Connections {
    /// Adds those of another agent.
    pub fn add(&mut self, other: &Connections) {
        let first = [self.first_ns, other.first_ns].into_iter().filter(|at| *at > 0).min();
        self.first_ns = first.unwrap_or(0);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.wanted += other.wanted;
        self.opened += other.opened;
        self.refused += other.refused;
        self.retried += other.retried;
        self.lost += other.lost;
        self.reconnected += other.reconnected;
    }
}

/// Sequences of one publisher that arrived in one agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeenBits {
    /// The publisher.
    pub publisher: u32,
    /// A bit a sequence from 0, least significant first: base64 of raw DEFLATE.
    pub bits: String,
}

/// Counts and latencies by time slice of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SliceSeries {
    /// Length of a slice, ns.
    pub slice_ns: Ns,
    /// Messages sent in each slice.
    pub sent: Vec<u64>,
    /// Messages that arrived in each slice.
    pub delivered: Vec<u64>,
    /// Latency from intended time of the arrivals in each slice, as histograms.
    pub latency: Vec<String>,
}

/// Silences of subscribers that should have heard something, or of an agent
/// that should have run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// The longest, ns.
    pub longest_ns: Ns,
    /// When that one began, ns from the window's beginning.
    pub longest_at_ns: Ns,
}

impl Stalls {
    /// Adds the silences of others: the longest of all stays the longest.
    pub fn add(&mut self, other: &Stalls) {
        self.count += other.count;
        if other.longest_ns > self.longest_ns {
            (self.longest_ns, self.longest_at_ns) = (other.longest_ns, other.longest_at_ns);
        }
    }
}

/// CPU time and memory of an agent's process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentUsage {
    /// Length of the accounting interval: the measured window, ns.
    pub wall_ns: Ns,
    /// CPU time of all threads in it, ns, by CLOCK_PROCESS_CPUTIME_ID.
    pub cpu_ns: Ns,
    /// The part in user mode, ns.
    pub user_ns: Ns,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Resident set size samples, bytes.
    pub rss_bytes: Vec<u64>,
    /// Unique set size samples, bytes.
    pub uss_bytes: Vec<u64>,
    /// Where nobody knows the window's end beforehand: readings from its
    /// beginning to the stop, so that the coordinator can cut out the window.
    /// Then the figures above are of all that time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<UsageReading>,
}

impl AgentUsage {
    /// What was used between two instants, where there are readings; else all.
    pub fn within(&self, from_ns: Ns, to_ns: Ns) -> AgentUsage {
        if self.course.is_empty() {
            return self.clone();
        }
        let Used { cpu_ns, user_ns, voluntary_switches, involuntary_switches } =
            used::between(&self.course, from_ns, to_ns);
        // The first sample is taken under load, however short the window is.
        let samples = used::samples_by(&self.course, to_ns).max(1);
        let taken = |samples_of: &[u64]| samples_of.iter().copied().take(samples).collect();
        AgentUsage {
            wall_ns: to_ns.saturating_sub(from_ns),
            cpu_ns,
            user_ns,
            voluntary_switches,
            involuntary_switches,
            rss_bytes: taken(&self.rss_bytes),
            uss_bytes: taken(&self.uss_bytes),
            course: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::{MOST_CLIENTS, Settings};

    #[test]
    fn agents_are_told_nothing_that_only_the_coordinator_needs() {
        let workload = Workload::resolve(&Settings::default()).unwrap();
        let told = |workload: &Workload| {
            let prepare = Prepare {
                driver: "mock".into(),
                options: Options::new(),
                workload: workload.clone(),
                clients: Vec::new(),
                scratch: String::new(),
                server: None,
                spin_cores: 0.0,
                publisher_cpus: Vec::new(),
                subscriber_cpus: Vec::new(),
            };
            serde_json::to_string(&prepare).unwrap()
        };
        let text = told(&workload);
        assert!(NOT_FOR_AGENTS.iter().all(|key| !text.contains(&format!("\"{key}\""))), "{text}");
        assert_eq!(serde_json::from_str::<Prepare>(&text).unwrap().workload, workload);
        let pinned = Workload { pin: crate::workload::Pin::Roles, max_send_lag_ns: 5, late_after_ns: 7, ..workload };
        assert_eq!(told(&pinned), text, "whatever it is");
    }

    #[test]
    fn a_million_clients_and_all_ranges_fit_into_a_line() {
        let length = |text: serde_json::Result<String>| text.unwrap().len() + 1;
        let (publisher, most) = (MOST_CLIENTS as u32 - 1, u64::from(MAX_SEQUENCE));
        let client = Client {
            role: Role::Subscriber,
            id: publisher,
            bind: None,
            connect: Vec::new(),
            hears_first: publisher,
            hears_count: publisher,
        };
        let total = PublisherTotal { publisher, sent: most, window_first: most, window_end: most, offered: most };
        let range = Sequences { publisher, first: most, end: most };
        let totals = length(serde_json::to_string(&total)) * MOST_CLIENTS as usize;
        let ranges = length(serde_json::to_string(&range)) * MOST_RANGES;
        let clients = length(serde_json::to_string(&client)) * MOST_CLIENTS as usize;
        // What else a result holds is histograms and series.
        let rest = 16 << 20;
        assert!(clients + rest < MAX_LINE, "prepare: {clients}");
        assert!(totals + 2 * ranges + rest < MAX_LINE, "result: {totals} and twice {ranges}");
    }

    #[test]
    fn unknown_commands_and_fields_are_refused() {
        assert!(serde_json::from_str::<Command>(r#"{"type":"start","at_ns":5}"#).is_ok());
        assert!(serde_json::from_str::<Command>(r#"{"type":"start","at_ns":5,"soon":1}"#).is_err());
        assert!(serde_json::from_str::<Command>(r#"{"type":"begin"}"#).is_err());
        assert_eq!(serde_json::to_string(&Command::Stop {}).unwrap(), r#"{"type":"stop"}"#);
    }
}
