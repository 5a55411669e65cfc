//! The run record, the single source of all results. Each is one line of `runs.jsonl`.

mod agent;
mod by_flow;
mod churn;
mod delivery;
mod faults;
mod flow;
mod judgement;
mod last_will;
mod machines;
mod rates;
mod recovery;

pub use crate::catch_up::CatchUp;
pub use crate::counts::{Counts, RefusalCount};
pub use crate::later::LaterWord;
pub use crate::rebalances::Rebalances;
pub use agent::{AgentIdentity, UnsupportedFigure};
pub use churn::ChurnFigures;
pub use faults::{BacklogOutlook, FaultEvent, Recovery};
pub use flow::{FlowRecord, OwnFigures};
pub use judgement::{Component, Finding, Note, Reason, Verdict};
pub use last_will::WillFigures;
pub use machines::{CLOCK_SHARE, ClockPair, CpuThrottle, HostShare, MachineLoad};
pub use rates::{Rates, Series};

use crate::cell::Limits;
use crate::fault::Script;
pub use crate::figure_group::FigureGroup;
use crate::link::Link;
use crate::options::Options;
use crate::power::Power;
use crate::protocol::{ClientProcessors, PacingFigures, Role, RuntimeFigures, Stalls, SubscriberFigures};
use crate::times::{self, TimeFigures};
use crate::tuning::Tuning;
use crate::units::{Ns, total};
use crate::workload::Workload;
use pubmark_stats::Summary;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The version of the record's layout.
pub const SCHEMA: u32 = 2;

/// The oldest layout that is still read.
pub const OLDEST_SCHEMA: u32 = 1;

/// Longest line of `runs.jsonl` that is read, bytes: 64 MiB.
pub const RECORD_BYTES_MAX: usize = 64 << 20;

fn first_session() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first_session(session: &u32) -> bool {
    *session == 1
}

/// The record of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of this layout.
    pub schema: u32,
    /// Values on the study's axes, by name.
    pub cell: Map<String, Value>,
    /// Repeat, from 1.
    pub repeat: u32,
    /// Session of the folder in which the run was made, from 1. Runs that are added on another day
    /// are another session.
    #[serde(default = "first_session", skip_serializing_if = "is_first_session")]
    pub session: u32,
    /// Place in the order of runs, from 0.
    pub position: u64,
    /// The system.
    pub system: String,
    /// Versions of pubmark, library and server.
    pub versions: Map<String, Value>,
    /// Start of the run, UTC (RFC 3339).
    pub started: String,
    /// The whole workload.
    pub workload: Workload,
    /// Requested options, with defaults.
    pub options: Options,
    /// Server configuration, and its differences from the vendor defaults; `None` for attached
    /// servers, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Tuning>,
    /// Effective options.
    pub applied: Map<String, Value>,
    /// Length of the window, ns.
    pub window_ns: Ns,
    /// Counts over the window.
    pub counts: Counts,
    /// Messages that the system refused, by reason; their sum is `counts.refused`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<RefusalCount>,
    /// Limits of its own that the server reported while clients were connected, in its words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_reached: Vec<String>,
    /// Violations of the protocol by the server, as clients saw them: their number by statement of the specification.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub violations: BTreeMap<String, u64>,
    /// Rates over the window.
    pub rates: Rates,
    /// Times of messages: the headline and the others, each `None` if it was not measured, as at
    /// `max`.
    #[serde(flatten, with = "times::in_ns")]
    pub times: TimeFigures<Option<Summary>>,
    /// Waiting figures of the publishers; `None` if not supported by an agent, or if time is
    /// virtual.
    #[serde(default)]
    pub pacing: Option<PacingFigures>,
    /// Mean |l_i − l_(i−1)| within one stream, ns (RFC 3393).
    pub jitter_ns: Option<f64>,
    /// Usage of the server; `None` for libraries, and for remote servers.
    pub server: Option<Usage>,
    /// Deployment of the server; `None` for libraries.
    #[serde(default)]
    pub deployment: Option<Deployment>,
    /// Connection figures of the clients; `None` for libraries.
    #[serde(default)]
    pub connections: Option<ConnectionFigures>,
    /// Figures of clients that came and went; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub churn: Option<Box<ChurnFigures>>,
    /// Figures of the last wills of publishers; `None` if they had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wills: Option<Box<WillFigures>>,
    /// From the first client's opening until all had received from everyone they should receive
    /// from, ns; `None` for brokers, for the mock system, and in records of versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery_ns: Option<Ns>,
    /// Result of a pilot run for the warm-up; `None` if the study sets the warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pilot: Option<PilotFigures>,
    /// Traffic of the network interfaces; `None` if no part of the run uses one, and in records of
    /// versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireFigures>,
    /// Usage of all agents together, including the libraries in them.
    pub generator: Option<Usage>,
    /// The scripted faults.
    #[serde(default)]
    pub faults: Script,
    /// The actual faults, with their instants.
    #[serde(default)]
    pub fault_log: Vec<FaultEvent>,
    /// Cost of the server's end, pause or disconnection beyond the scripted time; `None` if there
    /// was no such fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// The link between clients and the server; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkFigures>,
    /// Usage of each agent, by role.
    pub agents: Vec<AgentShare>,
    /// From the last send of the window until the last of its messages arrived, ns; 0 if none arrived after that send.
    /// `None` if nothing arrived, if not supported by an agent, and in records of versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_time_ns: Option<Ns>,
    /// The time in which late subscribers caught up; `None` if none is late, or none of them subscribed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUp>,
    /// Rebalances of the subscribers' consumer group; `None` if no coordinator assigns their shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebalances: Option<Rebalances>,
    /// Silences of subscribers; `None` if not supported by any agent.
    #[serde(default)]
    pub stalls: Option<Stalls>,
    /// The file of the system; `None` in records of versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_file: Option<SystemOrigin>,
    /// The distributions of the times: HdrHistograms, V2 compressed, base64; `None` if empty.
    pub histograms: TimeFigures<Option<String>>,
    /// Figures by time slice.
    pub series: Series,
    /// Its flows; empty in records of versions without flows, and of runs that could not be made.
    /// If there is only one, the figures of the record itself are its figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowRecord>,
    /// Counts and latencies of each subscriber, if the run has 2 to 64 of them and one flow; empty if
    /// the agents do not support it, as with brokers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscribers: Vec<SubscriberFigures>,
    /// Usage of server and generator, by time slice; `None` in records of versions without it, and
    /// for the mock system, which uses nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_series: Option<UsageSeries>,
    /// Length of each phase; `None` in the same cases as `usage_series`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// The machine during the window; with several hosts, the worst value of each figure.
    pub machine: MachineLoad,
    /// The hosts of the run; empty if there was only `local`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostShare>,
    /// Clocks of the pairs of hosts that share a stream, if there are several hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockPair>,
    /// Remarks of the agents.
    pub remarks: Vec<String>,
    /// Reason why the run could not be made, if it could not.
    pub error: Option<String>,
    /// The verdict: which figures are reliable.
    pub verdict: Verdict,
}

impl RunRecord {
    /// Returns the pair of hosts that share a stream and have the largest clock error; `None` if
    /// each latency begins and ends on one clock.
    pub fn widest_clocks(&self) -> Option<&ClockPair> {
        // A round trip is measured on one clock.
        let one_way = !self.workload.pattern.round_trip();
        self.clocks.iter().filter(|_| one_way).max_by_key(|pair| pair.bound_ns)
    }

    /// Returns by how many copies the backlog (due and not arrived) grew from the window's start to its end, without
    /// lost ones; negative if it shrank.
    pub fn backlog_copies(&self) -> f64 {
        let arrived = total(self.series.delivered.iter().copied());
        self.counts.due_copies() - self.counts.lost as f64 - arrived as f64
    }
}

/// The file from which a system was read; its text is in the results folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemOrigin {
    /// SHA-256 of the file as it was read, hexadecimal.
    pub sha256: String,
    /// True if it came with pubmark.
    pub built_in: bool,
    /// True if it replaced a system of this name that comes with pubmark.
    #[serde(default)]
    pub replaces: bool,
}

/// CPU time, memory and context switches over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time, s.
    pub cpu_s: f64,
    /// CPU time over wall time.
    pub cpu_cores: f64,
    /// Part of `cpu_s` in user mode, s.
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
    /// Bytes of storage that its processes changed, by `write_bytes` of `/proc/PID/io`; `None` for agents, where the
    /// kernel does not show it to this user, and in records of versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Processors that the busiest of its threads used, 0 to 1; `None` if threads were not sampled,
    /// as for agents, and in records of versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_thread_cores: Option<f64>,
    /// Standard deviation of `cpu_cores` over the slices of the window; `None` for agents, with fewer
    /// than two slices, and in records of versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_cores_stddev: Option<f64>,
}

/// Result of a pilot run, which is not measured: the time until the figures of a cell are steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PilotFigures {
    /// The repeat before which it was made; other runs of the cell use its result.
    pub repeat: u32,
    /// From its start until the figures were steady, ns, in steps of a slice; `None` if they were
    /// not steady within `bound_ns`.
    pub steady_after_ns: Option<Ns>,
    /// Longest possible warm-up, ns.
    pub bound_ns: Ns,
    /// Length of its slices, ns.
    pub slice_ns: Ns,
}

/// Bytes that the network interfaces between the parts of a run sent in the window, by the kernel's
/// count: of every program, including headers, acknowledgements and retransmissions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WireFigures {
    /// Total of all interfaces, bytes.
    pub sent_bytes: u64,
    /// Share of each: the loopback of one machine, or the interface of each host that has its
    /// address.
    pub interfaces: Vec<InterfaceShare>,
}

/// Bytes that one network interface sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InterfaceShare {
    /// Its host; empty for `local`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Its name.
    pub name: String,
    /// Bytes sent in the window.
    pub sent_bytes: u64,
    /// Time for which it was observed before the run's clients were opened, ns.
    pub at_rest_ns: Ns,
    /// Bytes a second that other programs sent in that time.
    pub at_rest_bytes_per_s: f64,
}

/// A server's deployment and limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Deployment {
    /// `native`, `container` (`docker` in older records) or `external`.
    pub kind: String,
    /// Endpoint that clients connected to, without user and password.
    pub endpoint: String,
    /// Location of a server that was already running; `None` for those that were started for the
    /// run, and in schema 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<Attached>,
    /// The command that started it.
    pub command: Vec<String>,
    /// Its container, if it ran in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerFacts>,
    /// Its process ID.
    pub pid: Option<u32>,
    /// Time from its start until it listened, s.
    pub started_s: Option<f64>,
    /// `cell` if it may serve several runs; `None` if it was started for this run alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<String>,
    /// Number of runs that it served before this one, including pilot runs; `None` if it was
    /// started for this run alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<u32>,
    /// The requested limits.
    pub limits: Limits,
    /// The effective limits, read back from the kernel.
    pub applied: AppliedLimits,
    /// Number of its processes that the kernel killed because memory ran out.
    pub oom_kills: u64,
    /// The log line by which it reported that it had run out of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_memory: Option<String>,
    /// The log line by which it reported that it had reached a limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_reached: Option<String>,
    /// Time for which the processor limit throttled its threads, s.
    pub throttled_s: f64,
    /// Peak memory that the kernel counted for it, including page cache, bytes.
    pub cgroup_memory_bytes_max: Option<u64>,
    /// Its processes.
    pub processes: Vec<ServerProcess>,
    /// CPU time and memory of each of its members; empty with one member, and in records of versions without it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberFigures>,
    /// Writes of the disk whose power is cut, from the window's beginning until then, at most to the window's end;
    /// `None` without such a disk, and in records of versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskFigures>,
    /// Its syncs in the window; `None` where they were not traced, and in records of versions without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syncs: Option<SyncFigures>,
    /// What its folder lay on, if its power was cut or its disk filled; `None` in records of versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
}

/// What a server's disk was asked to write, with several members, all together: by the kernel's count of a block device,
/// or by a ledger, which counts syncs only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskFigures {
    /// Write requests, after the kernel merged adjacent ones.
    pub writes: Option<u64>,
    /// Flushes of its cache. Syncs at the same time share one, and a commit of the journal may need two. Of a ledger,
    /// syncs that had something to make durable.
    pub flushes: u64,
    /// Time that these took, ns, to a millisecond.
    pub flush_ns: Option<Ns>,
}

/// The syncs of files that a server waited for, with several members, all together: fsync, fdatasync, msync and writes
/// to files that sync each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncFigures {
    /// Their number.
    pub count: u64,
    /// Time that threads spent in them, ns; `None` if the file system does not tell when one ends.
    pub time_ns: Option<Ns>,
}

/// A container, as its engine describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContainerFacts {
    /// The engine and its version: `podman 4.3.1`.
    pub engine: String,
    /// The image as requested.
    pub image: String,
    /// Hash of the image's configuration, which names its layers: hexadecimal.
    pub image_id: String,
    /// Digest of its manifest, `sha256:…`; `None` if the engine knows none, like docker for an
    /// image that was never in a registry.
    pub digest: Option<String>,
}

/// Location of a server that was running before the run, and whether its processes were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attached {
    /// On this machine, with the usage of its processes measured.
    Seen,
    /// On this machine, but its processes cannot be distinguished from others: neither its usage
    /// nor that of others is known.
    Hidden,
    /// On another machine.
    Elsewhere,
}

/// The effective limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppliedLimits {
    /// Processors.
    pub cpus: Option<f64>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Mechanism: `cgroup v1`, `cgroup v2`, `affinity`; an engine's name if only the engine reports
    /// it; empty if there were no limits.
    pub by: String,
    /// Reason why the kernel's limit was not available.
    pub note: Option<String>,
}

/// A process of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerProcess {
    /// Its process ID.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Median resident set size, bytes.
    pub rss_bytes_median: u64,
    /// Median unique set size, bytes.
    pub uss_bytes_median: u64,
}

/// Usage of a server's member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberFigures {
    /// Its number, from 1.
    pub number: u32,
    /// CPU time over wall time.
    pub cpu_cores: f64,
    /// Median resident set size, bytes, while it ran.
    pub rss_bytes_median: u64,
}

/// Connection figures of the clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionFigures {
    /// Clients that requested one.
    pub wanted: u64,
    /// Clients that opened one. The window was measured with these: it began when all were
    /// connected, or their number had stopped growing.
    pub opened: u64,
    /// Attempts that failed: refused, reset, or not answered in time.
    pub refused: u64,
    /// Attempts after a failed one.
    pub retried: u64,
    /// Connections that ended while they were needed.
    pub lost: u64,
    /// Lost connections that clients restored.
    #[serde(default)]
    pub reconnected: u64,
    /// Error of the first failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
    /// Reason of the first loss of an established connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_loss: Option<String>,
    /// Time from the first attempt until the last client was accepted, s.
    pub ramp_s: f64,
    /// Time from a client's connection attempt until the server accepted it, ns.
    pub time_ns: Option<Summary>,
    /// The part of it that the handshake of TLS took, ns; `None` without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_handshake_ns: Option<Summary>,
    /// Time from then until the server confirmed the subscription, ns; `None` if no client subscribed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribe_ns: Option<Summary>,
    /// Time from the loss of a connection until the server accepted the client again, ns.
    #[serde(default)]
    pub reconnect_ns: Option<Summary>,
}

/// The link of a run: its settings and its cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkFigures {
    /// The requested settings.
    #[serde(flatten)]
    pub asked: Link,
    /// Usage of the proxy that implements it; `None` before it has been measured.
    pub usage: Option<Usage>,
}

/// One agent's share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentShare {
    /// `publishers`, `subscribers` or `all`; with a number if there are several.
    pub name: String,
    /// The host that it ran on; empty for `local`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The flow of its clients, if the run has several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub flow: String,
    /// The program that played the clients; `None` in schema 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentIdentity>,
    /// The roles of its clients; empty in schema 1.
    #[serde(default)]
    pub roles: Vec<Role>,
    /// Number of event loops, or of client threads; 0 if not supported by this agent.
    #[serde(default)]
    pub loops: u32,
    /// Effective options of this agent; empty in schema 1.
    #[serde(default)]
    pub applied: Map<String, Value>,
    /// Its usage.
    pub usage: Usage,
    /// The processors on which its client threads ran.
    #[serde(default, skip_serializing_if = "ClientProcessors::is_empty")]
    pub ran_on: ClientProcessors,
    /// Its pauses; `None` if not supported by this agent.
    #[serde(default)]
    pub pauses: Option<Stalls>,
    /// Figures of its language's runtime; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeFigures>,
    /// Its build info, in its own words: language, call, copies, flags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made: BTreeMap<String, String>,
    /// Figures not supported by this agent, so that their absence is not taken as a finding.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "crate::later::known")]
    pub cannot_tell: Vec<UnsupportedFigure>,
}

/// Processors and memory by time slice, from the start of the schedule to the end of the drain. The
/// first slice of the warm-up and the last of the drain may have been observed in part: their
/// figures are of that part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageSeries {
    /// Beginning of the first slice, ns from the window's beginning: negative,
    /// because the warm-up comes before it. The window begins with a slice.
    pub start_ns: i64,
    /// Length of a slice, ns. It differs from that of [`Series`].
    pub slice_ns: Ns,
    /// The server with all its processes; `None` for libraries, and if the processes are remote or
    /// in a container.
    pub server: Option<UsageOverTime>,
    /// All agents, including the libraries in them.
    pub generator: Option<UsageOverTime>,
}

impl UsageSeries {
    /// Returns the standard deviation of the server's busy processors over the whole slices of a
    /// window of this length; `None` with fewer than two.
    pub fn server_cpu_stddev(&self, window_ns: Ns) -> Option<f64> {
        let slice_ns = self.slice_ns.max(1);
        let warmup = self.start_ns.min(0).unsigned_abs().div_ceil(slice_ns) as usize;
        let window = (window_ns / slice_ns) as usize;
        let cores: Vec<f64> = self.server.as_ref()?.cpu_cores.iter().skip(warmup).take(window).copied().collect();
        let mean = cores.iter().sum::<f64>() / cores.len() as f64;
        let squares: f64 = cores.iter().map(|used| (used - mean).powi(2)).sum();
        (cores.len() >= 2).then(|| (squares / (cores.len() - 1) as f64).sqrt())
    }
}

/// Usage of a part, by slice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageOverTime {
    /// Busy processors, mean over the slice. CPU time of a process that lives only between two
    /// samples is missing, unless a control group counts it.
    pub cpu_cores: Vec<f64>,
    /// Resident set size at the slice's end, bytes, by the kernel's running count. It may differ by
    /// some hundred kilobytes from the figures of [`Usage`], for which the pages are walked.
    pub rss_bytes: Vec<u64>,
    /// Threads at the slice's end; empty in records of versions without it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<u64>,
}

/// Lengths of the consecutive phases of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// From the start of the schedule to the window, ns.
    pub warmup_ns: Ns,
    /// The window, ns.
    pub window_ns: Ns,
    /// From the window's end until all expected messages had arrived, or the wait ended, ns.
    pub drain_ns: Ns,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_of_a_servers_processors_is_that_of_the_window() {
        let server = UsageOverTime { cpu_cores: vec![9.0, 9.0, 1.0, 2.0, 3.0, 9.0], ..UsageOverTime::default() };
        let series = UsageSeries { start_ns: -200, slice_ns: 100, server: Some(server), generator: None };
        assert_eq!(series.server_cpu_stddev(350), Some(1.0), "the half slice at the end does not count");
        assert_eq!(series.server_cpu_stddev(199), None);
        let before = UsageSeries { start_ns: -250, ..series.clone() };
        assert_eq!(before.server_cpu_stddev(200), Some(0.5f64.sqrt()), "a slice half before the window does not count");
        assert_eq!(UsageSeries { server: None, ..series }.server_cpu_stddev(350), None);
    }
}
