//! Runs all measurements one after the other.

use crate::helper::Helper;
use crate::sink::{Listening, SinkCounts};
use pubmark_host::machine::Ticks;
use pubmark_host::scratch::Scratch;
use pubmark_host::{clock, machine};
use pubmark_judge::calibration::{Calibration, SCHEMA};
use pubmark_judge::verdict::quiet;
use pubmark_model::units::{Ns, SECOND};
use pubmark_study::calibration_file;
use pubmark_study::context::RunError;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time that a helper has to be ready, or to send its last message.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Planned share of a sink process's file limit: the kernel's hash decides which process
/// gets a connection.
const FILL: f64 = 0.9;

/// Runs the measurements.
pub struct Calibrator<'a> {
    /// The `pubmark` program.
    pub(crate) program: String,
    /// A running relay that replaces pubmark's own.
    pub(crate) relay: Option<String>,
    /// Number of idle connections to try.
    pub(crate) connections: u32,
    /// True for about a quarter of the time.
    pub(crate) quick: bool,
    /// Set when the user wants to stop.
    pub(crate) interrupt: &'a AtomicBool,
    /// Gets the name of each measurement as it begins.
    pub(crate) say: &'a mut dyn FnMut(&str),
    pub(crate) scratch: Scratch,
    pub(crate) position: u64,
    pub(crate) remarks: Vec<String>,
}

impl<'a> Calibrator<'a> {
    /// Makes a calibrator: `program` is pubmark itself, `connections` the number of idle
    /// connections to try (at least 10).
    pub fn new(
        program: String,
        relay: Option<String>,
        connections: u32,
        quick: bool,
        interrupt: &'a AtomicBool,
        say: &'a mut dyn FnMut(&str),
    ) -> Result<Calibrator<'a>, RunError> {
        let scratch = Scratch::create().map_err(RunError::io("no folder for logs"))?;
        let connections = connections.max(10);
        Ok(Calibrator { program, relay, connections, quick, interrupt, say, scratch, position: 0, remarks: Vec::new() })
    }

    /// Returns a time of a full calibration, or a quarter of it.
    pub(crate) fn time(&self, full_ns: Ns) -> Ns {
        if self.quick { full_ns / 4 } else { full_ns }
    }

    /// Starts a hidden command of pubmark.
    pub(crate) fn helper(&self, arguments: &[String]) -> Result<Helper, RunError> {
        let mut command = vec![self.program.clone()];
        command.extend_from_slice(arguments);
        Helper::start(&command)
    }

    /// Starts a sink for this many connections. Returns it with its endpoint.
    pub(crate) fn sink(&self, connections: u64) -> Result<(Helper, String), RunError> {
        let each = (machine::files_for_connections() as f64 * FILL).max(1.0);
        let processes = (connections as f64 / each).ceil().max(1.0);
        let mut sink = self.helper(&["sink".into(), "--processes".into(), processes.to_string()])?;
        let listening: Listening = sink.hear(PATIENCE, self.interrupt)?;
        Ok((sink, listening.endpoint))
    }

    /// Ends a sink, and adds remarks on what it could not take.
    pub(crate) fn drained(&mut self, sink: Helper) -> Result<SinkCounts, RunError> {
        let taken: SinkCounts = sink.end(PATIENCE)?;
        if taken.refused + taken.broken > 0 {
            self.remarks
                .push(format!("the sink could not take {} connections and ended {}", taken.refused, taken.broken));
        }
        Ok(taken)
    }
}

/// Measures everything. This takes about a minute and a half, or a quarter of that if it
/// is quick.
pub fn calibrate(mut how: Calibrator<'_>) -> Result<Calibration, RunError> {
    let time = jiff::Timestamp::now().to_string();
    let (ticks, at, own_cpu) = (Ticks::now(), clock::now(), clock::process_cpu());
    let wake = how.wake()?;
    let load = Ticks::now().load_since(ticks, clock::now() - at, clock::process_cpu() - own_cpu);
    let (relay, cost) = how.cost()?;
    let unthrottled = how.unthrottled()?;
    let most = how.most()?;
    let (connections, bytes_per_connection) = how.connections()?;
    let mut calibration = Calibration {
        schema: SCHEMA,
        machine: calibration_file::here(),
        time,
        quick: how.quick,
        relay,
        cost,
        unthrottled,
        wake,
        connections,
        bytes_per_connection,
        most,
        load,
        remarks: how.remarks,
    };
    if !quiet(&calibration.load) {
        calibration.remarks.push(format!(
            "others kept {:.2} of {} processors busy and the hypervisor took {:.1} %: these figures are of a disturbed machine",
            load.foreign_cores,
            load.cores,
            load.steal * 100.0
        ));
    }
    Ok(calibration)
}

/// Returns the rate of `count` events over a time, a second.
pub(crate) fn per_s(count: u64, ns: Ns) -> f64 {
    if ns == 0 { 0.0 } else { count as f64 * SECOND as f64 / ns as f64 }
}
