//! Hellos of a system's own agents, asked for before the first run.

use crate::lead::hello::{Misfit, can_strike, fits};
use crate::plan::StudyPlan;
use pubmark_host::clock;
use pubmark_host::conversation::{AgentConversation, TalkError};
use pubmark_host::install;
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::fault::{Fault, Target};
use pubmark_model::printable::printable;
use pubmark_model::protocol::{AgentHello, UnknownOption};
use pubmark_model::system::System;
use pubmark_model::workload::Workload;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Starts the agent of a side, greets it and ends it.
///
/// # Errors
/// If the agent cannot be started, does not answer, or cannot play at all.
pub fn hello(system: &System, sends: bool) -> Result<AgentHello, String> {
    let hello = greet(system, sends).map_err(|none| none.to_string())?;
    fits(&hello, Some(&system.driver), &[], clock::now()).map_err(|misfit| misfit.to_string())?;
    Ok(hello)
}

/// Reason why an agent sent no hello.
#[derive(Debug, thiserror::Error)]
enum NoHello {
    /// The agent ended instead, for example because its runtime is too old.
    #[error("{why}")]
    Ended {
        /// Description of its end.
        why: String,
        /// Last line of its log, if any.
        last: Option<String>,
    },
    #[error("{0}")]
    Otherwise(String),
}

/// Greets the agent of a side and returns its hello unchecked.
fn greet(system: &System, sends: bool) -> Result<AgentHello, NoHello> {
    let otherwise = |error: TalkError| NoHello::Otherwise(error.to_string());
    let command = install::own_agent(system, sends).map_err(|error| NoHello::Otherwise(error.to_string()))?;
    let patience = Duration::from_nanos(system.agent.start_timeout_ns);
    let mut talk = AgentConversation::start(&command).map_err(otherwise)?;
    let hello = talk.hello(patience).map_err(|error| {
        let key = if let TalkError::Silent { .. } = error { " (start_timeout)" } else { "" };
        let why = format!("`{}`: {error}{key}", command.words.join(" "));
        match error {
            TalkError::Ended { last, .. } => NoHello::Ended { why, last },
            _ => NoHello::Otherwise(why),
        }
    })?;
    talk.finish();
    Ok(hello)
}

type Greeting = Result<AgentHello, NoHello>;

/// Hellos of agents: each side of a system is asked once.
#[derive(Debug, Default)]
pub struct AgentHellos(RefCell<BTreeMap<(String, bool), Rc<Greeting>>>);

impl AgentHellos {
    fn of(&self, system: &System, sends: bool) -> Rc<Greeting> {
        let mut said = self.0.borrow_mut();
        said.entry((system.name.clone(), sends)).or_insert_with(|| Rc::new(greet(system, sends))).clone()
    }

    /// Returns why a system's own agent cannot play here although it starts: it ends before its hello. The text has its
    /// last output and advice.
    pub fn ended(&self, system: &System) -> Option<String> {
        sides(system).iter().find_map(|sends| match &*self.of(system, *sends) {
            Err(NoHello::Ended { why, last }) => {
                let (name, why, way) = (&system.name, last.as_ref().unwrap_or(why), install::way(system));
                Some(format!("the agent of {name} ends before it says hello: {why} ({way})"))
            }
            _ => None,
        })
    }
}

/// Returns the sides whose own agents are greeted: publishers (true), and subscribers (false) if they have another
/// agent.
fn sides(system: &System) -> &'static [bool] {
    match (system.agent.built_in(), system.agent.differs()) {
        (true, _) => &[],
        (false, true) => &[true, false],
        (false, false) => &[true],
    }
}

/// Requirements of a study for the agents of one system.
struct Asked<'a> {
    system: &'a System,
    options: Vec<&'a str>,
    workloads: Vec<Workload>,
    struck: Vec<Fault>,
}

/// Checks that the systems' own agents can play the study and know the options that it gives them. An agent that sends
/// no hello is left to its run.
///
/// # Errors
/// Returns each missing ability once.
pub fn check_agents(plan: &StudyPlan, greetings: &AgentHellos) -> Result<(), Vec<Diagnostic>> {
    let mut asked: BTreeMap<&str, Asked<'_>> = BTreeMap::new();
    // Agents on other hosts are those installed there.
    for cell in plan.cells().iter().filter(|cell| cell.skipped.is_none() && cell.placement.local()) {
        let system = &cell.system;
        if system.agent.built_in() {
            continue;
        }
        let none = || Asked { system, options: Vec::new(), workloads: Vec::new(), struck: Vec::new() };
        let asked = asked.entry(&cell.system.name).or_insert_with(none);
        for name in system.asks_of_clients(&cell.options, &cell.set_options) {
            if !asked.options.contains(&name) {
                asked.options.push(name);
            }
        }
        asked.workloads.extend(cell.flows().into_iter().map(|flow| flow.workload));
        asked.struck.extend(cell.faults.0.iter().filter(|fault| fault.is_of_agents()).cloned());
    }
    let mut refused: Vec<Diagnostic> = Vec::new();
    for (name, asked) in asked {
        for sends in sides(asked.system) {
            // If an agent sends no hello, its run reports that.
            let said = greetings.of(asked.system, *sends);
            let Ok(hello) = &*said else { continue };
            for found in asked.misfits(name, hello, *sends) {
                if !refused.contains(&found) {
                    refused.push(found);
                }
            }
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(refused) }
}

impl Asked<'_> {
    /// Returns the requirements that the agent of a side does not meet.
    fn misfits(&self, name: &str, hello: &AgentHello, sends: bool) -> Vec<Diagnostic> {
        let (driver, now) = (Some(self.system.driver.as_str()), clock::now());
        let cannot =
            |misfit: Misfit| Diagnostic::whole(printable(&format!("{name} cannot be played: the agent {misfit}")));
        if let Err(misfit) = fits(hello, driver, &[], now) {
            return vec![cannot(misfit)];
        }
        let plays = self.workloads.iter().filter_map(|workload| fits(hello, driver, &[workload], now).err());
        let mut found: Vec<Diagnostic> = Vec::new();
        for misfit in plays.map(cannot) {
            if !found.contains(&misfit) {
                found.push(misfit);
            }
        }
        let side = if sends { Target::Publishers } else { Target::Subscribers };
        let both = !self.system.agent.differs();
        let own = self.struck.iter().filter(|fault| both || fault.who == side || fault.who == Target::Clients);
        for misfit in own.filter_map(|fault| can_strike(hello, fault).err()).map(cannot) {
            if !found.contains(&misfit) {
                found.push(misfit);
            }
        }
        let each = self.options.iter().map(|option| hello.knows_options(&self.system.driver, [*option]));
        found.extend(each.filter_map(Result::err).map(|error| unknown(name, error)));
        found
    }
}

fn unknown(system: &str, error: UnknownOption) -> Diagnostic {
    let UnknownOption { agent, option, meant, .. } = error;
    let agent = printable(&agent);
    Diagnostic::whole(format!("options.{option} cannot be given to {system}: its agent {agent} does not know it"))
        .help(printable(&meant))
}
