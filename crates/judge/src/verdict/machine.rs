//! Load of the machine by other programs, and what could not be measured of it.

use super::bounds::{Bounds, FOREIGN, FOREIGN_AT_MAX, LATE, LATE_NS, STEAL, STEAL_AT_MAX, touched};
use super::finding::{FigureFinding, words};
use pubmark_model::record::{Attached, FigureGroup, MachineLoad, RunRecord};
use pubmark_model::units::Ns;
use pubmark_model::workload::Rate;

/// Returns whether a server runs on this machine and cannot be separated from other programs.
fn hidden(record: &RunRecord) -> bool {
    record.deployment.as_ref().is_some_and(|deployment| deployment.attached == Some(Attached::Hidden))
}

/// Describes what is not judged because the server cannot be separated from other programs.
pub fn unknown(record: &RunRecord) -> Option<String> {
    let cores = record.machine.foreign_cores;
    hidden(record).then(|| {
        format!(
            "the server runs on this machine, and its processes cannot be told from others: what it used is not known, \
             nor whether others disturbed the run (both together kept {cores:.2} of {} processors busy)",
            record.machine.cores
        )
    })
}

/// Finds each way in which other programs used the machine.
pub fn noisy(record: &RunRecord) -> Vec<FigureFinding> {
    let mut machine = record.machine;
    if hidden(record) {
        machine.foreign_cores = 0.0;
    }
    late(record).into_iter().chain(disturbed(&machine, record.workload.rate == Rate::Max)).collect()
}

fn late(record: &RunRecord) -> Option<FigureFinding> {
    let late_ns = record.machine.late_ns;
    let evidence = || {
        format!(
            "the coordinator looked at machine and server {} late at an edge of the window of {}: what they did in it \
             is not known",
            words(late_ns),
            words(record.window_ns)
        )
    };
    let too_late = late_ns > LATE_NS.max((LATE * record.window_ns as f64) as Ns);
    too_late.then(|| FigureFinding::of(&[FigureGroup::Cost], evidence()))
}

/// Finds load by others that disturbs a measurement: of messages that are sent by a schedule, or (`unlimited`) as fast
/// as they are taken.
fn disturbed(machine: &MachineLoad, unlimited: bool) -> Vec<FigureFinding> {
    let (steal, foreign) = if unlimited { (STEAL_AT_MAX, FOREIGN_AT_MAX) } else { (STEAL, FOREIGN) };
    let cores = f64::from(machine.cores.max(1));
    let found = |bounds: Bounds, share: f64, evidence: String| FigureFinding::if_any(touched(bounds, share), evidence);
    let steal = found(
        steal,
        machine.steal,
        format!("the hypervisor took {:.1} % of the processor time", machine.steal * 100.0),
    );
    let foreign = found(
        foreign,
        machine.foreign_cores / cores,
        format!("other processes kept {:.2} of {} processors busy", machine.foreign_cores, machine.cores),
    );
    steal.into_iter().chain(foreign).collect()
}

/// Returns whether others left the machine alone, by the bounds of a run's verdict.
pub fn quiet(machine: &MachineLoad) -> bool {
    !disturbed(machine, true).iter().any(|found| found.touches(FigureGroup::LatencyP50))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_others_use_is_not_quiet() {
        let with = |steal, foreign_cores| MachineLoad { steal, foreign_cores, cores: 2, ..MachineLoad::default() };
        assert!(quiet(&with(0.01, 0.23)));
        assert!(!quiet(&with(0.03, 0.0)));
        assert!(!quiet(&with(0.0, 0.25)));
    }
}
