//! The run record: the only truth. A line of `runs.jsonl` each.

mod agent;
mod delivery;
mod faults;
mod judgement;
mod machines;
mod recovery;

pub use crate::counts::{Counts, RefusalCount};
pub use crate::later::LaterWord;
pub use agent::{AgentIdentity, Untold};
pub use faults::{FaultEvent, Recovery};
pub use judgement::{Component, Finding, Note, Reason, Verdict};
pub use machines::{CLOCK_SHARE, ClockPair, CpuThrottle, HostShare, MachineLoad};

use crate::cell::Limits;
use crate::fault::Script;
pub use crate::figure_group::FigureGroup;
use crate::link::Link;
use crate::options::Options;
use crate::protocol::{PacingFigures, Role, RuntimeFigures, Stalls};
use crate::times::{self, TimeFigures};
use crate::tuning::Tuning;
use crate::units::Ns;
use crate::workload::Workload;
use pubmark_stats::Summary;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The version of the record's layout.
pub const SCHEMA: u32 = 2;

/// The oldest layout that is still read.
pub const OLDEST_SCHEMA: u32 = 1;

/// The longest line of `runs.jsonl` that is read, bytes: 64 MiB.
pub const RECORD_BYTES_MAX: usize = 64 << 20;

fn first_session() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first_session(session: &u32) -> bool {
    *session == 1
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of this layout.
    pub schema: u32,
    /// Place on the study's axes, by name.
    pub cell: Map<String, Value>,
    /// Repetition, from 1.
    pub repeat: u32,
    /// Session in which it was made, from 1. Runs that are added on another day are another session
    /// of the folder.
    #[serde(default = "first_session", skip_serializing_if = "is_first_session")]
    pub session: u32,
    /// Place in the order of runs, from 0.
    pub position: u64,
    /// The system.
    pub system: String,
    /// Versions of pubmark, library and server.
    pub versions: Map<String, Value>,
    /// When the run began, UTC (RFC 3339).
    pub started: String,
    /// The whole workload.
    pub workload: Workload,
    /// Options asked for, defaults filled in.
    pub options: Options,
    /// Whose defaults the system had, and what differed from its makers'; none
    /// for servers that were attached to, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Tuning>,
    /// Options as they took effect.
    pub applied: Map<String, Value>,
    /// The measured window's length, ns.
    pub window_ns: Ns,
    /// Counts over the window.
    pub counts: Counts,
    /// Messages that the system refused, by reason: together `counts.refused`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<RefusalCount>,
    /// Limits of its own that the server named while clients were connected, in its words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_reached: Vec<String>,
    /// Rates over the window.
    pub rates: Rates,
    /// Times of messages: the headline and the others, each none where it was
    /// not measured, as at `max`.
    #[serde(flatten, with = "times::in_ns")]
    pub times: TimeFigures<Option<Summary>>,
    /// How publishers waited for their due times; none where an agent cannot
    /// tell, and where time is virtual.
    #[serde(default)]
    pub pacing: Option<PacingFigures>,
    /// Mean |l_i − l_(i−1)| within one stream, ns (RFC 3393).
    pub jitter_ns: Option<f64>,
    /// What the server used; none for libraries, and for servers elsewhere.
    pub server: Option<Usage>,
    /// How the server came to run; none for libraries.
    #[serde(default)]
    pub deployment: Option<Deployment>,
    /// How clients got their connections; none for libraries.
    #[serde(default)]
    pub connections: Option<ConnectionFigures>,
    /// From the first client's opening until all had heard whom they should
    /// hear, ns; none for brokers, for the mock system, and in records of
    /// versions that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery_ns: Option<Ns>,
    /// What a pilot run said of the warm-up; none where the study sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pilot: Option<PilotFigures>,
    /// What network interfaces carried; none where nothing of the run goes over
    /// one, and in records of versions that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireFigures>,
    /// What all agents together used, the libraries in them included.
    pub generator: Option<Usage>,
    /// What was to happen to the run's parts.
    #[serde(default)]
    pub faults: Script,
    /// What did, and when.
    #[serde(default)]
    pub fault_log: Vec<FaultEvent>,
    /// What the end, the standstill or the cut-off of the server cost beyond the
    /// time that was asked for; none where nothing of the kind happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// What stood between clients and the server; none where nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkFigures>,
    /// What each agent used, by role.
    pub agents: Vec<AgentShare>,
    /// Silences of subscribers; none where no agent can tell.
    #[serde(default)]
    pub stalls: Option<Stalls>,
    /// The file of the system; none in records of versions that did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_file: Option<SystemOrigin>,
    /// The distributions of the times: HdrHistograms, V2 compressed, base64;
    /// none where empty.
    pub histograms: TimeFigures<Option<String>>,
    /// Figures by time slice.
    pub series: Series,
    /// Its flows; empty in records of versions that had none, and of runs that
    /// could not be made. Of a single one, what stands beside it here is its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowRecord>,
    /// What server and generator used, by time slice; none in records of
    /// versions that did not look, and for the mock system, which uses nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_series: Option<UsageSeries>,
    /// How long each phase took; none as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// The machine during the window; of several hosts the worst of each figure.
    pub machine: MachineLoad,
    /// The hosts that took part; absent where there was only `local`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostShare>,
    /// The clocks of those that share a stream, where these are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockPair>,
    /// Remarks of the agents.
    pub remarks: Vec<String>,
    /// Why the run could not be made, if it could not.
    pub error: Option<String>,
    /// Whether it may be quoted.
    pub verdict: Verdict,
}

impl RunRecord {
    /// The two hosts that share a stream and of whose clocks least is known; none
    /// where each latency begins and ends on one clock.
    pub fn widest_clocks(&self) -> Option<&ClockPair> {
        // There and back is measured on one clock.
        let one_way = !self.workload.pattern.round_trip();
        self.clocks.iter().filter(|_| one_way).max_by_key(|pair| pair.bound_ns)
    }
}

/// Which file a system was read from: its text stands in the results folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemOrigin {
    /// SHA-256 of the file as it was read, hexadecimal.
    pub sha256: String,
    /// Whether it came with pubmark.
    pub built_in: bool,
    /// Whether it stood in for one of this name that comes with pubmark.
    #[serde(default)]
    pub replaces: bool,
}

/// Rates over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Due, messages per second over all publishers.
    pub offered_per_s: f64,
    /// Sent.
    pub sent_per_s: f64,
    /// Arrived within the window's time, over all subscribers.
    pub delivered_per_s: f64,
    /// The same in bytes of payload.
    pub delivered_bytes_per_s: f64,
    /// Whether a loop of the generator was at its limit at `rate = "max"`: the
    /// system carries at least so much.
    #[serde(default)]
    pub lower_bound: bool,
}

/// CPU time, memory and context switches over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time, s.
    pub cpu_s: f64,
    /// CPU time over wall time.
    pub cpu_cores: f64,
    /// The part of `cpu_s` in user mode.
    pub user_s: f64,
    /// Median resident set size, bytes.
    pub rss_bytes_median: u64,
    /// Largest resident set size, bytes.
    pub rss_bytes_max: u64,
    /// Median unique set size, bytes.
    pub uss_bytes_median: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Processors that the busiest of its threads used, 0 to 1; none where no single
    /// thread was looked at, as in records of versions that did not, and of agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_thread_cores: Option<f64>,
}

/// What a pilot run, which is not measured, said of how long the figures of a
/// cell take to be steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PilotFigures {
    /// The repeat before which it was made: other runs of the cell go by it.
    pub repeat: u32,
    /// From its start until the figures were steady, ns, in steps of a slice;
    /// none where they were not within `bound_ns`.
    pub steady_after_ns: Option<Ns>,
    /// The most that a warm-up might be, ns.
    pub bound_ns: Ns,
    /// Length of its slices, ns.
    pub slice_ns: Ns,
}

/// What the network interfaces between the parts of a run sent in the window,
/// by the kernel's count: of every program, with headers, acknowledgements and
/// what was sent again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WireFigures {
    /// All of them, bytes.
    pub sent_bytes: u64,
    /// Each: the loopback's of one machine, or of each host that with its address.
    pub interfaces: Vec<InterfaceShare>,
}

/// What one network interface sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InterfaceShare {
    /// Its host; absent for `local`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Its name.
    pub name: String,
    /// In the window, bytes.
    pub sent_bytes: u64,
    /// How long it was looked at before the run's clients were opened, ns.
    pub at_rest_ns: Ns,
    /// What it sent then, of other programs, bytes a second.
    pub at_rest_bytes_per_s: f64,
}

/// The figures of one flow over the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// Its name.
    pub name: String,
    /// Its counts.
    pub counts: Counts,
    /// Its rates.
    pub rates: Rates,
    /// Its times.
    #[serde(flatten, with = "times::in_ns")]
    pub times: TimeFigures<Option<Summary>>,
    /// Mean |l_i − l_(i−1)| within one stream, ns (RFC 3393).
    pub jitter_ns: Option<f64>,
}

/// How a server came to run, and under which limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Deployment {
    /// `native`, `container` (`docker` in older records) or `external`.
    pub kind: String,
    /// Where clients connected to, without user and password.
    pub endpoint: String,
    /// Where a server was that was there already; none for those that were
    /// started for the run, and in schema 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<Attached>,
    /// What was started.
    pub command: Vec<String>,
    /// The container that it ran in, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerFacts>,
    /// Its process.
    pub pid: Option<u32>,
    /// From its start until it listened, s.
    pub started_s: Option<f64>,
    /// `cell` where it may serve several runs; none where it was started for this alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<String>,
    /// How many runs it had served before this one, pilot runs among them; none likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<u32>,
    /// The limits that were asked for.
    pub limits: Limits,
    /// The limits that were in force, read back from the kernel.
    pub applied: AppliedLimits,
    /// Processes of it that the kernel killed for want of memory.
    pub oom_kills: u64,
    /// The line of its log by which it said that it had run out of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_memory: Option<String>,
    /// The line of its log by which it said that it had reached a limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_reached: Option<String>,
    /// Time that its threads were held back by the processor limit, s.
    pub throttled_s: f64,
    /// The most memory that the kernel counted for it, page cache included, bytes.
    pub cgroup_memory_bytes_max: Option<u64>,
    /// Its processes.
    pub processes: Vec<ServerProcess>,
}

/// A container, as its engine tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContainerFacts {
    /// The engine and its version: `podman 4.3.1`.
    pub engine: String,
    /// The image, as it was asked for.
    pub image: String,
    /// The hash of the image's configuration, which names its layers: hexadecimal.
    pub image_id: String,
    /// The digest of its manifest, `sha256:…`; none where the engine knows none, as
    /// docker does not for an image that was never in a registry.
    pub digest: Option<String>,
}

/// Where a server was that was there before the run, and whether it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attached {
    /// On this machine; what its processes used was measured.
    Seen,
    /// On this machine, and its processes cannot be told from others: nothing is
    /// known of what it used, nor of what others did.
    Hidden,
    /// On another machine.
    Elsewhere,
}

/// Limits as they were in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppliedLimits {
    /// Processors.
    pub cpus: Option<f64>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// By what: `cgroup v1`, `cgroup v2`, `affinity`; an engine's name where its word is all there is; empty where there were none.
    pub by: String,
    /// Why the kernel's limit could not be had.
    pub note: Option<String>,
}

/// A process of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerProcess {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Median resident set size, bytes.
    pub rss_bytes_median: u64,
    /// Median unique set size, bytes.
    pub uss_bytes_median: u64,
}

/// How clients got their connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionFigures {
    /// Clients that wanted one.
    pub wanted: u64,
    /// Clients that got one. The window was measured with these: from when all
    /// were connected, or their number had stopped growing.
    pub opened: u64,
    /// Attempts that failed: refused, reset, or not answered in time.
    pub refused: u64,
    /// Attempts after a failed one.
    pub retried: u64,
    /// Connections that ended while they were needed.
    pub lost: u64,
    /// Connections that clients got again after such an end.
    #[serde(default)]
    pub reconnected: u64,
    /// What the first attempt that failed met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
    /// How the first connection was lost that had been up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_loss: Option<String>,
    /// From the first attempt until the last client was accepted, s.
    pub ramp_s: f64,
    /// From a client's connecting until the server accepted it, ns.
    pub time_ns: Option<Summary>,
    /// From the loss of a connection until the server accepted the client again, ns.
    #[serde(default)]
    pub reconnect_ns: Option<Summary>,
}

/// The link of a run: what was asked of it, and what it cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkFigures {
    /// What was asked for.
    #[serde(flatten)]
    pub asked: Link,
    /// What the proxy used that plays it; none before it has been measured.
    pub usage: Option<Usage>,
}

/// One agent's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentShare {
    /// `publishers`, `subscribers` or `all`; with a number where there are several.
    pub name: String,
    /// The host that it ran on; absent for `local`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The program that played them; none in schema 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentIdentity>,
    /// What its clients do; empty in schema 1.
    #[serde(default)]
    pub roles: Vec<Role>,
    /// Event loops, or threads of clients; 0 where it does not say.
    #[serde(default)]
    pub loops: u32,
    /// Options as they took effect in it; empty in schema 1.
    #[serde(default)]
    pub applied: Map<String, Value>,
    /// What it used.
    pub usage: Usage,
    /// Times in which it did not run; none where it cannot tell.
    #[serde(default)]
    pub pauses: Option<Stalls>,
    /// What the runtime of its language says of itself; none where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeFigures>,
    /// How it is made, in its own words: language, call, copies, flags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made: BTreeMap<String, String>,
    /// What it cannot tell of itself, so that nobody is blamed by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::later::known")]
    pub cannot_tell: Vec<Untold>,
}

/// Figures by time slice of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of a slice, ns.
    pub slice_ns: Ns,
    /// Messages sent.
    pub sent: Vec<u64>,
    /// Messages that arrived.
    pub delivered: Vec<u64>,
    /// Median latency of the arrivals, ns; 0 where there was none.
    pub latency_p50_ns: Vec<u64>,
    /// Their 99th percentile.
    pub latency_p99_ns: Vec<u64>,
    /// Their maximum.
    pub latency_max_ns: Vec<u64>,
}

/// Processors and memory by time slice, from the start of the schedule to the
/// end of the drain. A slice of the warm-up's beginning and of the drain's end
/// may have been seen in part: its figures are of that part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageSeries {
    /// Beginning of the first slice, ns from the window's beginning: negative,
    /// because the warm-up comes before it. The window begins with a slice.
    pub start_ns: i64,
    /// Length of a slice, ns. It is not that of [`Series`].
    pub slice_ns: Ns,
    /// The server, all its processes; none for libraries, and where the
    /// processes are elsewhere or a container's.
    pub server: Option<UsageOverTime>,
    /// All agents, the libraries in them included.
    pub generator: Option<UsageOverTime>,
}

/// A part's use, slice by slice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageOverTime {
    /// Processors that were busy, mean over the slice. CPU time of a process
    /// that lives between two looks only is missing where no control group
    /// counts it.
    pub cpu_cores: Vec<f64>,
    /// Resident set size at the slice's end, bytes, as the kernel keeps count
    /// of it: it may be some hundred kilobytes beside the figures of [`Usage`],
    /// for which the pages are walked.
    pub rss_bytes: Vec<u64>,
    /// Threads at the slice's end; empty in records of versions that did not look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<u64>,
}

/// How long the phases of a run took, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// From the start of the schedule to the window, ns.
    pub warmup_ns: Ns,
    /// The window, ns.
    pub window_ns: Ns,
    /// From the window's end until all that was to come had come, or nobody
    /// waited any more, ns.
    pub drain_ns: Ns,
}
