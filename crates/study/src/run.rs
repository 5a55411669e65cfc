//! One run: the agents are started, the server is deployed, and what the leader
//! orders is carried out.

mod faults;
mod load;
mod made;
mod play;
mod sources;

use crate::deploy::Deployed;
use crate::lead::deal::{deal, layout};
use crate::lead::{Brief, Leader};
use crate::live::News;
use crate::stage::{RunError, Stage, failed};
pub use made::{Made, Standing};
use play::Play;
use pubmark_host::agent::Agent;
use pubmark_host::scratch::Scratch;
use pubmark_host::{clock, machine};
use pubmark_judge::assemble::assemble;
use pubmark_model::cell::Cell;
use pubmark_model::plan::Place;
use pubmark_model::secret::Secrets;
use pubmark_model::system::System;

/// Makes one run. What it returns still stands, so that its record can be kept
/// first.
pub fn make(cell: &Cell, system: &System, place: Place, stage: &mut Stage<'_>) -> Result<Made, RunError> {
    let started = jiff::Timestamp::now().to_string();
    let scratch = Scratch::planned();
    let layout = layout(cell, system, machine::files_for_connections());
    let plans = deal(&cell.workload, scratch.path(), layout);
    // Before the folder is made and a server started: from now on there is
    // somebody to remove it, whenever this process is killed.
    let mut play = Play::open(cell, system, place, &plans, stage, &scratch)?;
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
    let met = play.meet(&mut leader, stage);
    let deployed = match met.and_then(|()| Deployed::begin(cell, system, place, stage, &scratch)) {
        Ok(deployed) => deployed,
        Err(error) => {
            play.end(&scratch, false);
            return Err(error);
        }
    };
    if let Some(watch) = deployed.look() {
        (stage.news)(News::Server(watch));
    }
    let mut standing = Standing { play, deployed, scratch, failed: false };
    let Standing { play, deployed, scratch, failed: has_failed } = &mut standing;
    let linked = play.link_up(cell, place, stage, scratch, deployed);
    let played = linked.and_then(|()| play.run(&mut leader, cell, system, place, stage, deployed));
    if let Err(RunError::Failed(_)) = played {
        *has_failed = true;
        Agent::finish_all(&mut play.agents);
    }
    let played = match (played, play.link.as_mut().and_then(|link| link.obituary())) {
        (Err(RunError::Failed(error)), Some(obituary)) => Err(failed(format!("{obituary}; meanwhile: {error}"))),
        // Without its proxy it was another link than the record says.
        (Ok(_), Some(obituary)) => Err(failed(obituary)),
        (played, _) => played,
    };
    match played {
        Ok(mut measured) => {
            measured.server = deployed.report();
            Ok(Made { record: assemble(cell, system, place, started, measured), standing })
        }
        // Why the server went says more than what its clients made of it.
        Err(RunError::Failed(error)) => Err(failed(match deployed.obituary() {
            Some(obituary) => format!("{obituary}; meanwhile: {error}"),
            None => error,
        })),
        Err(interrupted) => Err(interrupted),
    }
}
