//! What of a plan can be made on its hosts and here, found out before the first run.

use super::shared::agent_command;
use crate::failure::Failure;
use crate::output::Voice;
use pubmark_host::install;
use pubmark_model::cell::Cell;
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::system::System;
use pubmark_study::fit;
use pubmark_study::plan::StudyPlan;
use pubmark_study::survey::{Survey, tool_of};

/// Looks at the hosts of a plan, where there are others than this machine. With `install`
/// what is lacking is installed there first.
///
/// # Errors
/// If a host cannot be reached, is not what is said of it, or is another as well.
pub fn survey(plan: &StudyPlan, install: bool, voice: Voice) -> Result<Survey, Failure> {
    let say = |text: &str| voice.note(text);
    let install: Option<&dyn Fn(&str)> = if install { Some(&say) } else { None };
    let looked = Survey::of(plan, &agent_command()?, install);
    looked.map_err(|error| {
        Failure::usage(format!(
            "{error}\n  help: `pubmark doctor --hosts FILE` looks at each host and at the way to it; nothing was started"
        ))
    })
}

/// Leaves out what cannot be made. The reasons that are new, in words.
///
/// # Errors
/// Where nothing is left, the reasons all the same.
pub fn leave_out(plan: &mut StudyPlan, survey: &Survey) -> (Vec<String>, Result<(), Diagnostic>) {
    fit::leave_out(plan, &missing, survey)
}

/// Why a system cannot be used here.
fn missing(system: &System, cell: &Cell) -> Option<String> {
    // What another machine has is for that machine to say.
    install::missing(system, &cell.options).filter(|_| cell.placement.local())
}

/// Installs the systems of a study that can be installed and are not here, and
/// the tools that they need. What cannot be had stops no other: its cells are
/// left out, and say why.
pub fn install_missing(plan: &StudyPlan, voice: Voice) {
    let mut tried: Vec<String> = Vec::new();
    let mut bring = |system: &System| {
        if tried.contains(&system.name) {
            return;
        }
        tried.push(system.name.clone());
        voice.note(&format!("installing {}", system.name));
        if let Err(why) = install::install(system, &|line| voice.note(line)) {
            voice.note(&format!("{} cannot be installed, and the study goes on: {why}", system.name));
        }
    };
    for cell in plan.cells().iter().filter(|cell| cell.skipped.is_none()) {
        let tool = tool_of(cell).filter(|_| cell.placement.server.reach.is_empty());
        if let Some(tool) = tool.filter(|tool| install::missing_tool(tool).is_some()) {
            bring(tool);
        }
        if missing(&cell.system, cell).is_some() && !install::commands(&cell.system).is_empty() {
            bring(&cell.system);
        }
    }
}
