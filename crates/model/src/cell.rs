//! One point of a study's matrix, with nothing left open.

use crate::fault::Script;
use crate::host::{HostSpec, Placement};
use crate::link::{self, Link};
use crate::options::Options;
use crate::system::System;
use crate::tuning::Use;
use crate::watch::Watch;
use crate::workload::Workload;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// What the server may use. Default: no limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Processors, 0.01 or more.
    pub cpus: Option<f64>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
}

impl Limits {
    /// The same where the server is on this host: what is not said is what the host allows.
    #[must_use]
    pub fn on(self, host: &HostSpec) -> Limits {
        Limits {
            cpus: self.cpus.or(host.cpu_thousandths.map(|thousandths| thousandths as f64 / 1e3)),
            memory_bytes: self.memory_bytes.or(host.memory_bytes),
        }
    }
}

/// One point of a study's matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Its place on each axis, by name, in the study's order.
    pub axes: Map<String, Value>,
    /// The system.
    pub system: Arc<System>,
    /// The workload.
    pub workload: Workload,
    /// Limits of the server.
    pub limits: Limits,
    /// What happens to its parts in the window.
    pub faults: Script,
    /// What stands between clients and the server, if anything does.
    pub link: Option<Link>,
    /// Which host plays which part.
    pub placement: Placement,
    /// Which processes are its server, where that was there already.
    pub watch: Option<Watch>,
    /// Whose defaults its options have.
    pub settings: Use,
    /// Options of the system, defaults filled in.
    pub options: Options,
    /// Those that the study sets, by name.
    pub set_options: Vec<String>,
    /// Why the study leaves it out, if it does.
    pub skipped: Option<String>,
}

impl Cell {
    /// What happens to the parts of one of its runs: what the study says, and
    /// where the link fails by chance, the failures of this repeat.
    pub fn script(&self, repeat: u32) -> Script {
        let seed = link::seed(self.workload.seed, repeat, &self.axes);
        let drawn = self.link.zip(self.workload.window_ns()).map(|(link, window_ns)| link.failures(window_ns, seed));
        let mut faults = self.faults.0.clone();
        faults.extend(drawn.unwrap_or_default());
        faults.sort_by_key(|fault| (fault.at_ns, fault.who));
        Script(faults)
    }

    /// Whether what becomes of each message is to be said before any latency:
    /// where delivery is guaranteed, or a fault happens to a part.
    pub fn delivery_first(&self) -> bool {
        let fails = self.link.is_some_and(|link| link.mttf_ns.is_some());
        self.workload.qos > 0 || !self.faults.is_empty() || fails
    }

    /// A short name for logs and progress: `zeromq tcp 1KiB …`.
    pub fn label(&self) -> String {
        label(&self.axes)
    }
}

/// Axes in words: `zeromq tcp payload=1024`.
pub fn label(axes: &Map<String, Value>) -> String {
    let parts: Vec<String> = axes
        .iter()
        .map(|(name, value)| match (name.as_str(), value) {
            ("system" | "transport" | "pattern", Value::String(text)) => text.clone(),
            ("memory", Value::Number(bytes)) => {
                format!("memory={}", crate::units::format_size(bytes.as_u64().unwrap_or_default()))
            }
            ("payload", Value::Number(bytes)) => crate::units::format_size(bytes.as_u64().unwrap_or_default()),
            (name, Value::String(text)) => format!("{name}={text}"),
            (name, value) => format!("{name}={value}"),
        })
        .collect();
    parts.join(" ")
}
