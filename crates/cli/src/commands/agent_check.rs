//! `pubmark agent-check`: tests whether an agent is fit to measure.

use super::shared::{agent_command, system};
use crate::args::AgentCheckArgs;
use crate::failure::{Code, Failure};
use crate::output::{note, print};
use pubmark_conformance::{CaseParameters, Known, ObservedBehaviour, Outcome, SuiteError, check, names, unseen};
use pubmark_host::agent::AgentCommand;
use pubmark_host::install;
use pubmark_model::protocol::VERSION;
use pubmark_model::system::System;
use pubmark_model::workload::Transport;
use pubmark_study::registry::Registry;
use serde_json::json;
use std::sync::Arc;

/// Tests an agent, case by case.
pub fn agent_check(args: &AgentCheckArgs, mut registry: Registry) -> Result<Code, Failure> {
    if args.list {
        names().for_each(|(name, sent, due)| print(&format!("{name}\n    {sent} -> {due}")));
        return Ok(Code::Done);
    }
    let transport = args.transport.as_deref().map(Transport::parse).transpose();
    let transport = transport.map_err(|error| Failure::usage(error.to_string()))?;
    let words = |words: Vec<String>| AgentCommand { words, ..AgentCommand::default() };
    let built_in = words(agent_command()?);
    let system = args.system.as_deref().map(|named| system(&mut registry, named)).transpose()?;
    let commands = match &system {
        None => [words(args.command.clone()), words(args.command.clone())],
        Some(system) if system.agent.built_in() => [built_in.clone(), built_in.clone()],
        Some(system) => [true, false].map(|sends| install::agent_command(system, sends)),
    };
    let of_system = system.as_ref().map(|system| system.driver.clone());
    let asked =
        CaseParameters { driver: args.driver.clone().or(of_system), transport, only: args.only.clone(), built_in };
    let known = |driver: &str| known(driver, system.clone(), &registry);
    let mut tell = |outcome: &Outcome| {
        if !args.json {
            print(&told(outcome));
        }
    };
    let outcomes = match check((&commands[0], &commands[1]), &asked, &known, &mut tell) {
        Ok(outcomes) => outcomes,
        Err(error @ (SuiteError::NoCase(_) | SuiteError::NotStarted(_))) => {
            return Err(Failure::usage(error.to_string()));
        }
        // An agent that cannot be tested has not passed.
        Err(error) => {
            note(&format!("error: {error}"));
            return Ok(Code::Gate);
        }
    };
    let count = |which: fn(&ObservedBehaviour) -> bool| outcomes.iter().filter(|outcome| which(&outcome.came)).count();
    let (good, tried) = (
        count(|came| *came == ObservedBehaviour::AsDue),
        count(|came| !matches!(came, ObservedBehaviour::NotTried(_))),
    );
    if args.json {
        let cases: Vec<_> = outcomes.iter().map(as_json).collect();
        print(&json!({"protocol": VERSION, "cases": cases, "as_due": good, "tried": tried}).to_string());
    } else if good == tried && tried > 0 {
        let untried = outcomes.len() - tried;
        let rest = if untried > 0 { format!("; {untried} could not be tried") } else { String::new() };
        // A selection of the cases does not test the whole agent.
        let speaks = match args.only.is_empty() {
            true => format!("The agent speaks version {VERSION} of the agent protocol: "),
            false => String::new(),
        };
        print(&format!("{speaks}{good} cases as due{rest}."));
        if unseen(&outcomes) {
            print("Its messages were not seen: no time was compared.");
        }
    } else {
        print(&format!("{} of {tried} cases are not as they should be.", tried - good));
    }
    Ok(if good == tried && tried > 0 { Code::Done } else { Code::Gate })
}

/// Returns the facts about a driver: from this system, or else from the first that uses it of those that come with
/// pubmark.
fn known(driver: &str, system: Option<Arc<System>>, registry: &Registry) -> Option<Known> {
    let of_driver = |system: &Arc<System>| system.driver == driver;
    let of_pubmark = || registry.systems().into_iter().find(|system| !system.brought && of_driver(system));
    let system = system.filter(of_driver).or_else(of_pubmark)?;
    let server = system.broker().then(|| system.clone());
    let (transports, patterns) = (system.transports.clone(), system.patterns.clone());
    Some(Known { options: system.defaults(), transports, patterns, server })
}

fn told(outcome: &Outcome) -> String {
    let Outcome { case, sent, due, came } = outcome;
    match came {
        ObservedBehaviour::AsDue => format!("ok    {case}"),
        ObservedBehaviour::NotTried(why) => format!("-     {case}: not tried: {why}"),
        ObservedBehaviour::Otherwise(what) => {
            format!("FAIL  {case}\n      sent: {sent}\n      due:  {due}\n      came: {what}")
        }
    }
}

fn as_json(outcome: &Outcome) -> serde_json::Value {
    let Outcome { case, sent, due, came } = outcome;
    let (state, text) = match came {
        ObservedBehaviour::AsDue => ("as_due", None),
        ObservedBehaviour::Otherwise(what) => ("otherwise", Some(what)),
        ObservedBehaviour::NotTried(why) => ("not_tried", Some(why)),
    };
    json!({"case": case, "sent": sent, "due": due, "outcome": state, "came": text})
}
