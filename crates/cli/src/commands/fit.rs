//! Decides before the first run which part of a plan can be measured on its hosts and here.

use super::shared::agent_command;
use crate::failure::Failure;
use crate::output::Voice;
use pubmark_host::install;
use pubmark_model::cell::Cell;
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::system::System;
use pubmark_study::fit;
use pubmark_study::plan::StudyPlan;
use pubmark_study::survey::{HostSurvey, tool_of};

/// Surveys the hosts of a plan, if there are others than this machine. With `install`, first installs there what is
/// missing.
///
/// # Errors
/// If a host cannot be reached, differs from its description, or is the same machine as another.
pub fn survey(plan: &StudyPlan, install: bool, voice: Voice) -> Result<HostSurvey, Failure> {
    let say = |text: &str| voice.note(text);
    let install: Option<&dyn Fn(&str)> = if install { Some(&say) } else { None };
    let looked = HostSurvey::of(plan, &agent_command()?, install);
    looked.map_err(|error| {
        Failure::usage(format!(
            "{error}\n  help: `pubmark doctor --hosts FILE` looks at each host and at the way to it; nothing was started"
        ))
    })
}

/// Skips the cells that cannot be measured here. Returns the reasons that are new.
///
/// # Errors
/// If no cell is left; the reasons are returned nevertheless.
pub fn leave_out(plan: &mut StudyPlan, survey: &HostSurvey) -> (Vec<String>, Result<(), Diagnostic>) {
    fit::leave_out(plan, &missing, survey)
}

/// Returns why a system cannot be used here.
fn missing(system: &System, cell: &Cell) -> Option<String> {
    // Another machine's programs are known from its survey only.
    install::missing(system, &cell.options).filter(|_| cell.placement.local())
}

/// Installs the systems of a study that can be installed and are missing here, and the tools that they need. A failure
/// stops no other installation: its cells are skipped with the reason.
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
