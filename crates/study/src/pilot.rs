//! Pilot runs: they find how long the warm-up of a cell must be, by a run that is not measured. Each run starts its
//! programs anew, so later runs take as long to warm up as the pilot.

use crate::context::{RunContext, RunError, failed};
use crate::live::News;
use crate::run::{FinishedRecord, make};
use pubmark_judge::verdict::steady_after_ns;
use pubmark_model::cell::Cell;
use pubmark_model::fault::Script;
use pubmark_model::plan::Place;
use pubmark_model::record::{Component, Note, PilotFigures, RunRecord};
use pubmark_model::units::{Ns, format_time};
use pubmark_model::workload::Extent;
use serde_json::{Map, Value};

/// Results of pilot runs, by cell.
pub struct Pilots(Vec<(Map<String, Value>, PilotFigures)>);

impl Pilots {
    /// Returns the pilot results found in these records.
    pub fn of(records: &[RunRecord]) -> Pilots {
        Pilots(records.iter().filter_map(|record| Some((record.cell.clone(), record.pilot?))).collect())
    }

    /// Makes one run. Makes a pilot before the first run of a cell whose warm-up is not set.
    pub fn make<'a>(
        &mut self,
        cell: &Cell,
        place: Place,
        context: &mut RunContext<'a>,
    ) -> Result<FinishedRecord<'a>, RunError> {
        let Some(bound_ns) = cell.workload.warmup_max_ns else { return make(cell, place, context) };
        let known = self.0.iter().find(|(axes, _)| *axes == cell.axes);
        let pilot = match known {
            Some((_, pilot)) => *pilot,
            None => {
                let made = make(&of_pilot(cell), place, context)?;
                let found = read(&made.record, bound_ns)?;
                let (stays, left) = made.tear_down.settle(&made.record);
                stays.into_iter().for_each(|line| (context.news)(News::Left(line)));
                context.servers.put(left);
                self.0.push((cell.axes.clone(), found));
                found
            }
        };
        let mut made = make(&warmed(cell, &pilot), place, context)?;
        made.record.pilot = Some(pilot);
        if pilot.steady_after_ns.is_none() {
            let part = if cell.system.broker() { Component::Server } else { Component::Library };
            let bound = format_time(bound_ns);
            let evidence = format!(
                "the figures of a pilot run were not steady within {bound} (`warmup_max`): the window began then"
            );
            made.record.verdict.notes.push(Note { part, evidence });
        }
        Ok(made)
    }
}

/// Returns the cell with its window at the start of the load, without its faults.
fn of_pilot(cell: &Cell) -> Cell {
    let mut pilot = cell.clone();
    let workload = &mut pilot.workload;
    workload.extent = Extent::TimeNs(workload.pilot_ns().unwrap_or_default());
    (workload.warmup_ns, workload.warmup_max_ns) = (0, None);
    pilot.faults = Script::default();
    if let Some(link) = &mut pilot.link {
        (link.mttf_ns, link.mttr_ns) = (None, None);
    }
    pilot
}

/// Returns the cell with the warm-up that its pilot found, within the study's limits.
fn warmed(cell: &Cell, pilot: &PilotFigures) -> Cell {
    let mut warmed = cell.clone();
    let workload = &mut warmed.workload;
    workload.warmup_ns = pilot.steady_after_ns.unwrap_or(pilot.bound_ns).max(workload.warmup_ns);
    workload.warmup_max_ns = None;
    warmed
}

/// Reads the warm-up from the record of a pilot run.
fn read(record: &RunRecord, bound_ns: Ns) -> Result<PilotFigures, RunError> {
    let series = &record.series;
    if record.counts.delivered == 0 {
        return Err(failed("nothing arrived in the pilot run that `warmup_max` asks for"));
    }
    if series.slice_ns == 0 || series.delivered.is_empty() {
        return Err(failed(
            "the agent gives no figures by time slice, so that nobody can see when they are steady: write `warmup` in \
             place of `warmup_max`",
        ));
    }
    let steady_after_ns = steady_after_ns(record, bound_ns);
    Ok(PilotFigures { repeat: record.repeat, steady_after_ns, bound_ns, slice_ns: series.slice_ns })
}
