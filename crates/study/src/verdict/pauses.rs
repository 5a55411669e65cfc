//! Parts that stood still: agents by their own account or by the script, the
//! server by the script.

use super::words;
use pubmark_model::fault::{Act, Target};
use pubmark_model::record::{AgentShare, FaultEvent, RunRecord};
use pubmark_model::units::Ns;

/// Agents that did not run for a while, each in words.
pub fn paused(record: &RunRecord) -> Vec<String> {
    record.agents.iter().filter_map(|agent| stood_still(agent, &record.fault_log)).collect()
}

fn stood_still(agent: &AgentShare, log: &[FaultEvent]) -> Option<String> {
    let side = |event: &&FaultEvent| event.who != Target::Server && agent.name.starts_with(event.who.word());
    let scripted = log.iter().filter(side).filter_map(|event| Some((event.at_ns?, event.until_ns?)));
    let scripted: Vec<(Ns, Ns)> = scripted.collect();
    let pauses = &agent.pauses;
    let tell = |length: Ns, from: Ns, times: u64, why: &str| {
        let more = if times > 1 { format!(" ({times} times; this was the longest)") } else { String::new() };
        let (name, length, from) = (&agent.name, words(length), words(from));
        Some(format!("the agent `{name}` did not run for {length}, from {from} into the window{more}: {why}"))
    };
    // Its own account begins with the last thing that it did before.
    let within =
        |(at, until): &(Ns, Ns)| *at <= pauses.longest_at_ns + pauses.longest_ns && pauses.longest_at_ns <= *until;
    if pauses.count > 0 {
        let why =
            if scripted.iter().any(within) { "the script stopped it" } else { "it was stopped, or the machine was" };
        return tell(pauses.longest_ns, pauses.longest_at_ns, pauses.count, why);
    }
    let (at, until) = scripted.iter().max_by_key(|(at, until)| until.saturating_sub(*at))?;
    tell(until.saturating_sub(*at), *at, scripted.len() as u64, "the script stopped it")
}

/// What the script did to the server, and when.
pub fn befallen(record: &RunRecord) -> Vec<String> {
    let events = record.fault_log.iter().filter(|event| event.who == Target::Server);
    events
        .filter_map(|event| {
            let what = match event.what {
                Act::Stop => "stopped",
                Act::Kill => "killed",
                Act::Cut => "cut",
            };
            let at = words(event.at_ns?);
            let until = match (event.until_ns, event.what) {
                (None, _) => "and nothing after".into(),
                (Some(until), Act::Stop | Act::Cut) => format!("and let go on at {}", words(until)),
                (Some(until), Act::Kill) => format!("and started again at {}", words(until)),
            };
            let note = event.note.as_ref().map_or(String::new(), |note| format!("; {note}"));
            Some(format!("the server was {what} by the script at {at} {until}{note}"))
        })
        .collect()
}
