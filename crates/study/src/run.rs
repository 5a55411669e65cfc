//! One run: starts the agents, deploys the server, and carries out the orders of `Leader`.

mod clocks;
mod faults;
pub mod login;
mod machines;
mod opening;
mod processes;
mod sources;
mod tear_down;
mod trace_rows;
mod traces;
mod usage;
mod watch;
mod wire;

use crate::context::{RunContext, RunError, failed};
use crate::lead::assignment::{deal, layout};
use crate::lead::{Brief, Leader, Refusal, run_of_flow};
use crate::live::News;
pub use machines::twins;
pub use opening::{of_twins, open_all};
use processes::Processes;
use pubmark_host::clock;
use pubmark_judge::assemble::assemble;
use pubmark_model::cell::Cell;
use pubmark_model::plan::Place;
use pubmark_model::protocol::Flow;
use pubmark_model::server_need::ServerNeed;
use pubmark_model::units::Ns;
pub use tear_down::{FinishedRecord, TearDown};
use traces::Traces;

/// Multiples of the usual time until the start: on a busy machine an agent can miss the start, and the run is made
/// again with the next one.
const LEAD_FACTORS: [Ns; 3] = [1, 4, 16];

/// Makes one run. Returns before tear-down, so that its record can be stored first.
pub fn make<'a>(cell: &Cell, place: Place, context: &mut RunContext<'a>) -> Result<FinishedRecord<'a>, RunError> {
    let [usual, longer @ ..] = LEAD_FACTORS;
    let mut made = make_with(cell, place, context, usual);
    for factor in longer {
        let Err(RunError::Refused(Refusal::TooLate { agent, .. })) = &made else { break };
        let remark = format!("agent {agent} missed the start, so the run was made again with more time until it");
        made = make_with(cell, place, context, factor);
        made.iter_mut().for_each(|made| made.record.remarks.push(remark.clone()));
    }
    made
}

fn make_with<'a>(
    cell: &Cell,
    place: Place,
    context: &mut RunContext<'a>,
    lead_factor: Ns,
) -> Result<FinishedRecord<'a>, RunError> {
    let system = &*cell.system;
    let need = ServerNeed::of(cell).filter(|_| context.servers.are_shared());
    context.servers.make_room(need.as_ref());
    let started = jiff::Timestamp::now().to_string();
    let mut tear_down = TearDown::new(Processes::open(cell, need, context)?);
    let processes = &mut tear_down.processes;
    let layout = layout(cell, system, processes.connections());
    let plans = deal(&cell.flows(), &processes.spots(), layout);
    // Before a folder is made and a server started, so that agents can remove them if this process is killed.
    processes.start_agents(system, place, &plans)?;
    // Clocks have been compared, and no client exists yet.
    processes.look_at_network(cell, system)?;
    let brief = Brief {
        cell,
        system,
        place,
        run: sources::run_name(),
        seats: processes.seats(),
        secrets: login::secrets(cell),
        lead_factor,
    };
    trace_rows::write(&cell.flows(), &brief.seats)?;
    // Before there is anything to be removed.
    let (flows, shared) = (cell.flows(), context.servers.are_shared());
    let of_flow = |(index, flow): (usize, &Flow)| {
        Traces::of(cell, &flow.workload, &run_of_flow(&brief.run, index, flows.len()), shared)
    };
    tear_down.traces = flows.iter().enumerate().filter_map(of_flow).collect();
    let mut leader = Leader::new(brief, plans, clock::now());
    let played = processes.play(&mut leader, cell, system, place, context);
    tear_down.traces.iter_mut().for_each(|traces| traces.has_begun = leader.has_begun());
    if !matches!(played, Ok(_) | Err(RunError::Interrupted)) {
        processes.give_up();
    }
    let played = match (played, processes.link_exit()) {
        (Err(RunError::Interrupted), _) => Err(RunError::Interrupted),
        (Err(error), Some(end)) => Err(RunError::Ended { end, source: error.into() }),
        // Without its proxy, the link differed from the one in the record.
        (Ok(_), Some(exit_reason)) => Err(failed(exit_reason)),
        (played, _) => played,
    };
    let error = match played {
        Ok(mut measured) => {
            measured.server = processes.report()?;
            // pubmark ended it; it did not fail by itself.
            match measured.server.as_ref().and_then(|server| server.own_failure.as_ref()) {
                Some(own_failure) => failed(format!("a part of pubmark itself failed: {own_failure}")),
                None => {
                    return Ok(FinishedRecord { record: assemble(cell, system, place, started, measured), tear_down });
                }
            }
        }
        // The reason why the server ended explains more than its clients' errors.
        Err(RunError::Interrupted) => RunError::Interrupted,
        Err(error) => match processes.server_exit_soon() {
            Some(end) => RunError::Ended { end, source: error.into() },
            None => error,
        },
    };
    tear_down.clean().into_iter().for_each(|line| (context.news)(News::Left(line)));
    Err(error)
}
