//! Memory of idle connections, and the rate at which they are opened.

use crate::calibrate::Calibrator;
use crate::ours::AgentLoad;
use pubmark_host::machine;
use pubmark_judge::calibration::Connected;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::Rate;
use pubmark_study::calibration_file;
use pubmark_study::context::RunError;

/// Maximum number of connections of one agent for the slope.
const SLOPE: u32 = 10_000;
/// Maximum number of connections of one agent for the slope in a quick calibration.
const SLOPE_QUICK: u32 = 2_000;
const WINDOW: Ns = SECOND;
const WARMUP: Ns = 100 * MILLISECOND;
/// Drain, in which publishers without messages wait in case they still have to send.
const DRAIN: Ns = 200 * MILLISECOND;
/// Idle rate: each publisher has one message in 1,000 s.
const IDLE: Rate = Rate::per_kilosecond(1);

impl Calibrator<'_> {
    /// Measures few to many connections, and the memory that one more takes.
    pub(crate) fn connections(&mut self) -> Result<(Vec<Connected>, f64), RunError> {
        let files = u32::try_from(machine::files_for_connections()).unwrap_or(u32::MAX);
        let most = if self.quick { SLOPE_QUICK } else { SLOPE };
        // One agent only: two agents differ from one by more than their connections.
        let many = self.connections.min(most).min(files);
        let mut sizes = vec![(many / 10).max(1), many];
        if self.connections > many {
            sizes.push(self.connections);
        }
        let mut all: Vec<Connected> = Vec::new();
        for (place, wanted) in sizes.into_iter().enumerate() {
            (self.say)(&format!("{wanted} idle connections"));
            match self.connect(wanted) {
                Ok(connected) => all.push(connected),
                // A limit of this machine is a finding, and no reason to lose the other
                // results.
                Err(RunError::Interrupted) => return Err(RunError::Interrupted),
                Err(error) if place > 1 => {
                    self.remarks.push(format!("{wanted} idle connections: {error}"));
                }
                Err(error) => return Err(error),
            }
        }
        let (few, many) = (&all[0], &all[1]);
        let more = many.opened.saturating_sub(few.opened);
        let slope = if more > 0 { (many.user_bytes as f64 - few.user_bytes as f64) / more as f64 } else { 0.0 };
        Ok((all, slope))
    }

    fn connect(&mut self, wanted: u32) -> Result<Connected, RunError> {
        let (sink, endpoint) = self.sink(u64::from(wanted))?;
        let load = AgentLoad {
            publishers: wanted,
            subscribers: 0,
            rate: IDLE,
            payload_bytes: 64,
            warmup_ns: self.time(WARMUP),
            window_ns: self.time(WINDOW),
            drain_ns: DRAIN,
        };
        let record = self.run_agents(&endpoint, &load)?;
        self.drained(sink)?;
        let connections = record.connections.unwrap_or_default();
        // An unreadable earlier calibration does not matter any more.
        let stale = calibration_file::remark();
        self.remarks.extend(record.remarks.into_iter().filter(|remark| Some(remark) != stale.as_ref()));
        let per_s = if connections.ramp_s > 0.0 { connections.opened as f64 / connections.ramp_s } else { 0.0 };
        Ok(Connected {
            wanted: connections.wanted,
            opened: connections.opened,
            agents: record.agents.len() as u32,
            ramp_s: connections.ramp_s,
            per_s,
            user_bytes: record.generator.unwrap_or_default().uss_bytes_median,
        })
    }
}
