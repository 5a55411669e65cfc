//! A cell of a study's matrix, fully resolved.

use crate::fault::Script;
use crate::host::{HostSpec, Placement};
use crate::link::{self, Link};
use crate::options::Options;
use crate::power::Power;
use crate::protocol::Flow;
use crate::system::System;
use crate::tuning::Use;
use crate::watch::Watch;
use crate::workload::Workload;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Limits of the server. Default: no limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Processors, 0.01 or more.
    pub cpus: Option<f64>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
}

impl Limits {
    /// Returns the limits of the server on this host: a limit that is not set is the host's.
    #[must_use]
    pub fn on(self, host: &HostSpec) -> Limits {
        Limits {
            cpus: self.cpus.or(host.cpu_thousandths.map(|thousandths| thousandths as f64 / 1e3)),
            memory_bytes: self.memory_bytes.or(host.memory_bytes),
        }
    }
}

/// A cell of a study's matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Its value on each axis, by name, in the study's order.
    pub axes: Map<String, Value>,
    /// The system.
    pub system: Arc<System>,
    /// The workload; of several flows, what they are together.
    pub workload: Workload,
    /// Its flows, if there are several: see [`Cell::flows`].
    pub flows: Vec<Flow>,
    /// Limits of the server.
    pub limits: Limits,
    /// The scripted faults of its window.
    pub faults: Script,
    /// File system below the server's folder, if its power is cut.
    pub power: Power,
    /// The link between clients and the server, if there is one.
    pub link: Option<Link>,
    /// The host of each part.
    pub placement: Placement,
    /// The processes of a server that was already running, to be measured.
    pub watch: Option<Watch>,
    /// The server configuration whose defaults the options have.
    pub settings: Use,
    /// Options of the system, with defaults.
    pub options: Options,
    /// Names of the options that the study sets.
    pub set_options: Vec<String>,
    /// Reason why the study skips the cell, if it does.
    pub skipped: Option<String>,
}

impl Cell {
    /// Returns the faults of one run of this cell: those of the study, and the link's random
    /// failures of this repeat.
    pub fn script(&self, repeat: u32) -> Script {
        let seed = link::seed(self.workload.seed, repeat, &self.axes);
        let drawn = self.link.zip(self.workload.window_ns()).map(|(link, window_ns)| link.failures(window_ns, seed));
        let mut faults = self.faults.0.clone();
        faults.extend(drawn.unwrap_or_default());
        faults.sort_by_key(|fault| (fault.at_ns, fault.who));
        Script(faults)
    }

    /// True if the fate of each message is reported before latency: delivery is guaranteed, or a
    /// part has a fault.
    pub fn delivery_first(&self) -> bool {
        let fails = self.link.is_some_and(|link| link.mttf_ns.is_some());
        self.workload.qos > 0 || !self.faults.is_empty() || fails
    }

    /// Returns a short name for logs and progress: `zeromq tcp 1KiB …`.
    pub fn label(&self) -> String {
        label(&self.axes)
    }
}

/// Formats axes: `zeromq tcp payload=1024`.
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
