//! The machines of a run: hosts, their clocks, and their load in its window.

use crate::host::{ClockOffset, HostSpec};
use crate::units::Ns;
use serde::{Deserialize, Serialize};

/// A host of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostShare {
    /// Its name.
    pub name: String,
    /// Its clock's offset from the coordinator's.
    pub clock: ClockOffset,
    /// The machine's load during the window.
    pub machine: MachineLoad,
    /// Limit of its network's bandwidth, bytes a second; `None` if there was no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<u64>,
    /// Incoming packets that its network was made to lose, per million; `None` if it was left
    /// unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_per_million: Option<u64>,
}

impl HostShare {
    /// Creates the share of a host from its clock and load.
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

/// Largest clock error with which a latency from one host to another is reliable, as a share of
/// that latency.
pub const CLOCK_SHARE: f64 = 1.0 / 3.0;

/// The clocks of two hosts that share a stream, compared over the measured network before the
/// window, about once a second during it, and after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockPair {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// Clock of `to` less that of `from`, before the window, ns.
    pub offset_ns: i64,
    /// Change of the offset after the window, ns.
    pub drift_ns: i64,
    /// Largest error of a latency between them, ns: half of the shortest round trips, plus the
    /// drift, plus the whole offset if it was not subtracted, and more if a clock left the line
    /// within the window.
    pub bound_ns: Ns,
    /// Number of comparisons within the window: the smaller one if the offset combines two series
    /// of them. `null` in records of versions without it.
    #[serde(default)]
    pub seen_within: Option<u32>,
    /// Largest proven distance of a clock from the line between its offsets before and after the
    /// window, ns; 0 for a clock that drifts evenly.
    #[serde(default)]
    pub off_line_ns: Ns,
    /// True if the offset was subtracted from the latencies.
    pub taken_out: bool,
    /// True if the two clocks were not compared with each other, but each with a third one; the
    /// bound then includes both comparisons.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub derived: bool,
}

/// Load of the machine during the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineLoad {
    /// Share of all processor time that the hypervisor took away, 0 to 1.
    pub steal: f64,
    /// Processors kept busy by processes that do not belong to the run.
    pub foreign_cores: f64,
    /// Processors that the kernel used outside of any process: interrupts, and wake-ups from
    /// idleness. 0 if they cannot be distinguished from other processes and are counted as
    /// `foreign_cores`.
    #[serde(default)]
    pub kernel_cores: f64,
    /// Processors of the machine.
    pub cores: u32,
    /// Delay of the coordinator's sample at one of the window's edges, ns: the figures of machine
    /// and server may be shifted from the window by this much.
    #[serde(default)]
    pub late_ns: Ns,
    /// True if an idle-class spinner kept each processor awake.
    #[serde(default)]
    pub awake: bool,
    /// Effect of a CPU quota on pubmark itself; `None` if there is no quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<CpuThrottle>,
}

/// A CPU quota (of a control group, as containers have it) on coordinator and agents, and its
/// effect in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuThrottle {
    /// Usable processors.
    pub cpus: f64,
    /// Periods of the quota, usually of 100 ms.
    pub periods: u64,
    /// Periods in which it stopped the processes.
    pub throttled: u64,
    /// Time for which it stopped them, summed over processors, ns.
    pub waited_ns: Ns,
}
