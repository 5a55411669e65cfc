//! The machines of a run: hosts, their clocks, and what they did in its window.

use crate::host::{ClockOffset, HostSpec};
use crate::units::Ns;
use serde::{Deserialize, Serialize};

/// A host that took part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostShare {
    /// Its name.
    pub name: String,
    /// Its clock beside the coordinator's.
    pub clock: ClockOffset,
    /// What the machine did during the window.
    pub machine: MachineLoad,
    /// What its network was held to, bytes a second; none where it was left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<u64>,
    /// What it was made to lose of the packets that came in, in millionths; none where it
    /// was left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_per_million: Option<u64>,
}

impl HostShare {
    /// Of a host, with what was found of its clock and of its machine.
    pub fn new(spec: &HostSpec, clock: ClockOffset, machine: MachineLoad) -> HostShare {
        let HostSpec { name, bandwidth_bytes_per_s, loss_per_million, .. } = spec;
        HostShare {
            name: name.clone(),
            clock,
            machine,
            bandwidth_bytes_per_s: *bandwidth_bytes_per_s,
            loss_per_million: *loss_per_million,
        }
    }
}

/// A latency from one host to another may be quoted where what their clocks may
/// be apart is at most this share of it.
pub const CLOCK_SHARE: f64 = 1.0 / 3.0;

/// The clocks of two hosts that share a stream, compared over the network that is
/// measured, before the window, about once a second of it, and after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockPair {
    /// The host of those that send.
    pub from: String,
    /// The host of those that receive.
    pub to: String,
    /// Its clock less that of `from`, before the window, ns.
    pub offset_ns: i64,
    /// By how much that had changed after it, ns.
    pub drift_ns: i64,
    /// What a latency between them may be wrong by, ns: half of the shortest round
    /// trips, and the drift; the whole offset too where it was not taken out; and more
    /// where a clock was seen off the line within the window.
    pub bound_ns: Ns,
    /// Comparisons within the window: the fewest of those that the offset is made of.
    /// Null in records of before there were any.
    #[serde(default)]
    pub seen_within: Option<u32>,
    /// How far, at most, a clock was certainly seen from the line between what it was
    /// before the window and after it, ns. A clock that drifts evenly is never.
    #[serde(default)]
    pub off_line_ns: Ns,
    /// Whether the offset was taken out of the latencies.
    pub taken_out: bool,
    /// Whether these two were not compared with each other, but each with a third: then
    /// the bound is that of both comparisons.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
}

/// The machine during the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineLoad {
    /// Share of all processor time that the hypervisor took away, 0 to 1.
    pub steal: f64,
    /// Processors kept busy by processes that do not belong to the run.
    pub foreign_cores: f64,
    /// Processors that the kernel kept busy outside of any process: interrupts, and
    /// waking from idleness. 0 where that cannot be told from other processes, and is
    /// counted as theirs.
    #[serde(default)]
    pub kernel_cores: f64,
    /// Processors of the machine.
    pub cores: u32,
    /// How late the coordinator looked at one of the window's edges, ns: so far
    /// the figures of machine and server may lie beside the window.
    #[serde(default)]
    pub late_ns: Ns,
    /// Whether an idle-class spinner kept each processor awake.
    #[serde(default)]
    pub awake: bool,
    /// What a CPU quota on pubmark itself did; none where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<CpuThrottle>,
}

/// A CPU quota (of a control group, as containers have it) on coordinator and agents, and what it
/// did in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuThrottle {
    /// Processors that may be used.
    pub cpus: f64,
    /// Periods of the quota, usually of 100 ms.
    pub periods: u64,
    /// Those in which it stopped the processes.
    pub throttled: u64,
    /// For how long, summed over processors, ns.
    pub waited_ns: Ns,
}
