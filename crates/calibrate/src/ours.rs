//! pubmark's own agents, driven by the coordinator as in any study.

use crate::calibrate::Calibrator;
use pubmark_model::cell::{Cell, Limits};
use pubmark_model::host::Placement;
use pubmark_model::plan::Place;
use pubmark_model::protocol::Role;
use pubmark_model::record::RunRecord;
use pubmark_model::setting::Settings;
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::workload::{Extent, Pacing, Rate, Verify, Workload};
use pubmark_study::context::{RunContext, RunError, failed};
use pubmark_study::registry;
use pubmark_study::run::make;
use pubmark_study::servers::Servers;

/// Connections a second: as fast as possible.
const CONNECT_RATE: u32 = 1_000_000;

/// The agents' load, where it differs from the defaults of every workload.
#[derive(Clone)]
pub struct AgentLoad {
    /// Number of publishers.
    pub publishers: u32,
    /// Number of subscribers: as many, or none.
    pub subscribers: u32,
    /// Messages a second of each publisher.
    pub rate: Rate,
    /// Length of a message, bytes.
    pub payload_bytes: u64,
    /// Time from the start to the window, ns.
    pub warmup_ns: Ns,
    /// Length of the window, ns.
    pub window_ns: Ns,
    /// Drain: time after the window in which the agents go on, if they have something to
    /// wait for, ns.
    pub drain_ns: Ns,
}

/// Enough for everything that is still in a relay or a sink.
pub const DRAIN: Ns = 5 * SECOND;

impl AgentLoad {
    fn workload(&self) -> Result<Workload, RunError> {
        let defaults = Workload::resolve(&Settings::default());
        let defaults = defaults.map_err(|errors| failed(errors.to_string()))?;
        Ok(Workload {
            publishers: self.publishers,
            subscribers: self.subscribers,
            rate: self.rate.clone(),
            payload_bytes: self.payload_bytes,
            connect_rate: CONNECT_RATE,
            // The bare loops sleep until something is due, so the agents must not watch
            // the clock before it: that would be measured as well.
            pacing: Pacing::Sleep,
            // The bare loops do not check bodies either.
            verify: Verify::Header,
            warmup_ns: self.warmup_ns,
            extent: Extent::TimeNs(self.window_ns),
            drain_ns: self.drain_ns,
            ..defaults
        })
    }
}

/// Returns the default quantum of workloads, ns.
pub fn default_quantum_ns() -> Ns {
    Workload::resolve(&Settings::default()).map_or(0, |workload| workload.pacing_quantum_ns)
}

impl Calibrator<'_> {
    /// Makes a run against an MQTT endpoint.
    pub(crate) fn run_agents(&mut self, endpoint: &str, load: &AgentLoad) -> Result<RunRecord, RunError> {
        let system = registry::built_in("mqtt").ok_or_else(|| failed("the system `mqtt` is not registered"))?;
        let mut options = system.defaults();
        options.insert("endpoint".into(), endpoint.into());
        let cell = Cell {
            axes: serde_json::Map::new(),
            system,
            workload: load.workload()?,
            flows: Vec::new(),
            limits: Limits::default(),
            faults: Default::default(),
            power: pubmark_model::power::Power::Disk,
            link: None,
            placement: Placement::default(),
            watch: None,
            settings: Default::default(),
            options,
            set_options: Vec::new(),
            skipped: None,
        };
        let agent = [self.program.clone(), "agent".into()];
        let place = Place { repeat: 1, position: self.position };
        self.position += 1;
        let mut servers = Servers::default();
        let mut stage = RunContext {
            servers: &mut servers,
            agent: &agent,
            logs: self.scratch.path(),
            awake: false,
            interrupt: self.interrupt,
            news: &mut |_| {},
        };
        make(&cell, place, &mut stage).map(|made| made.record)
    }
}

/// Returns the CPU time in the window of all agents with this role, s.
pub fn cpu_s(record: &RunRecord, role: Role) -> f64 {
    record.agents.iter().filter(|agent| agent.roles.contains(&role)).map(|agent| agent.usage.cpu_s).sum()
}
