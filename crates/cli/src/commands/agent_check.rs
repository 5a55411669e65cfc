//! `pubmark agent-check`: whether an agent may measure.

use super::shared::agent_command;
use crate::args::AgentCheckArgs;
use crate::failure::{Code, Failure};
use crate::output::print;
use pubmark_conformance::{Asked, Came, Known, Outcome, check, names};
use pubmark_model::protocol::VERSION;
use pubmark_model::system::System;
use pubmark_model::workload::Transport;
use pubmark_study::registry;
use serde_json::json;

/// Tries an agent, case by case.
pub fn agent_check(args: &AgentCheckArgs) -> Result<Code, Failure> {
    if args.list {
        names().for_each(|(name, sent, due)| print(&format!("{name}\n    {sent} -> {due}")));
        return Ok(Code::Done);
    }
    let transport = args.transport.as_deref().map(Transport::parse).transpose();
    let transport = transport.map_err(|error| Failure::usage(error.to_string()))?;
    let (driver, only) = (args.driver.clone(), args.only.clone());
    let asked = Asked { driver, transport, only, built_in: agent_command()? };
    let mut tell = |outcome: &Outcome| {
        if !args.json {
            print(&told(outcome));
        }
    };
    let outcomes =
        check(&args.command, &asked, &known, &mut tell).map_err(|error| Failure::usage(error.to_string()))?;
    let count = |which: fn(&Came) -> bool| outcomes.iter().filter(|outcome| which(&outcome.came)).count();
    let (good, tried) = (count(|came| *came == Came::AsDue), count(|came| !matches!(came, Came::NotTried(_))));
    if args.json {
        let cases: Vec<_> = outcomes.iter().map(as_json).collect();
        print(&json!({"protocol": VERSION, "cases": cases, "as_due": good, "tried": tried}).to_string());
    } else if good == tried && tried > 0 {
        let untried = outcomes.len() - tried;
        let rest = if untried > 0 { format!("; {untried} could not be tried") } else { String::new() };
        print(&format!("The agent speaks version {VERSION} of the agent protocol: {good} cases as due{rest}."));
    } else {
        print(&format!("{} of {tried} cases are not as they should be.", tried - good));
    }
    Ok(if good == tried && tried > 0 { Code::Done } else { Code::Gate })
}

/// What is known of a driver by the first system that uses it.
fn known(driver: &str) -> Option<Known> {
    let system = registry::systems().iter().find(|system| system.driver == driver)?;
    Some(Known { options: System::defaults(system), transports: system.transports.clone(), server: system.broker() })
}

fn told(outcome: &Outcome) -> String {
    let Outcome { case, sent, due, came } = outcome;
    match came {
        Came::AsDue => format!("ok    {case}"),
        Came::NotTried(why) => format!("-     {case}: not tried: {why}"),
        Came::Otherwise(what) => format!("FAIL  {case}\n      sent: {sent}\n      due:  {due}\n      came: {what}"),
    }
}

fn as_json(outcome: &Outcome) -> serde_json::Value {
    let Outcome { case, sent, due, came } = outcome;
    let (state, text) = match came {
        Came::AsDue => ("as_due", None),
        Came::Otherwise(what) => ("otherwise", Some(what)),
        Came::NotTried(why) => ("not_tried", Some(why)),
    };
    json!({"case": case, "sent": sent, "due": due, "outcome": state, "came": text})
}
