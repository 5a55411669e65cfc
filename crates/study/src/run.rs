//! One run: the agents are started, the server is deployed, and what the leader
//! orders is carried out.

mod faults;
mod look;
mod processes;
mod sources;
mod tear_down;

use crate::context::{RunContext, RunError, failed};
use crate::deploy::Deployed;
use crate::lead::deal::{deal, layout};
use crate::lead::{Brief, Leader};
use crate::live::News;
use processes::Processes;
use pubmark_host::agent::Agent;
use pubmark_host::scratch::Scratch;
use pubmark_host::{clock, machine};
use pubmark_judge::assemble::assemble;
use pubmark_model::cell::Cell;
use pubmark_model::plan::Place;
use pubmark_model::secret::Secrets;
use pubmark_model::system::System;
pub use tear_down::{Made, TearDown};

/// Makes one run. What it returns still stands, so that its record can be kept
/// first.
pub fn make(cell: &Cell, system: &System, place: Place, context: &mut RunContext<'_>) -> Result<Made, RunError> {
    let started = jiff::Timestamp::now().to_string();
    let scratch = Scratch::planned();
    let layout = layout(cell, system, machine::files_for_connections());
    let plans = deal(&cell.workload, scratch.path(), layout);
    // Before the folder is made and a server started: from now on there is
    // somebody to remove it, whenever this process is killed.
    let mut processes = Processes::open(cell, system, place, &plans, context, &scratch)?;
    scratch.make().map_err(|error| failed(format!("no folder for sockets: {error}")))?;
    let brief = Brief {
        cell,
        system,
        place,
        run: sources::run_name(),
        scratch: scratch.path().display().to_string(),
        cpus: machine::usable_cpus(),
        secrets: Secrets::of(&cell.options),
    };
    let mut leader = Leader::new(brief, plans, clock::now());
    // Before a server is started for agents that cannot play.
    let met = processes.meet(&mut leader, context);
    let deployed = match met.and_then(|()| Deployed::begin(cell, system, place, context, &scratch)) {
        Ok(deployed) => deployed,
        Err(error) => {
            processes.end(&scratch, false);
            return Err(error);
        }
    };
    if let Some(watch) = deployed.look() {
        (context.news)(News::Server(watch));
    }
    let mut tear_down = TearDown { processes, deployed, scratch, failed: false };
    let TearDown { processes, deployed, scratch, failed: has_failed } = &mut tear_down;
    let linked = processes.link_up(cell, place, context, scratch, deployed);
    let played = linked.and_then(|()| processes.run(&mut leader, cell, system, place, context, deployed));
    if let Err(RunError::Failed(_)) = played {
        *has_failed = true;
        Agent::finish_all(&mut processes.agents);
    }
    let played = match (played, processes.link.as_mut().and_then(|link| link.exit_reason())) {
        (Err(RunError::Failed(error)), Some(exit_reason)) => Err(failed(format!("{exit_reason}; meanwhile: {error}"))),
        // Without its proxy it was another link than the record says.
        (Ok(_), Some(exit_reason)) => Err(failed(exit_reason)),
        (played, _) => played,
    };
    match played {
        Ok(mut measured) => {
            measured.server = deployed.report();
            Ok(Made { record: assemble(cell, system, place, started, measured), tear_down })
        }
        // Why the server went says more than what its clients made of it.
        Err(RunError::Failed(error)) => Err(failed(match deployed.exit_reason() {
            Some(exit_reason) => format!("{exit_reason}; meanwhile: {error}"),
            None => error,
        })),
        Err(interrupted) => Err(interrupted),
    }
}
