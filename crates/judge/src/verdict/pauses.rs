//! Parts that stood still: agents by their own account or by the script, the
//! server by the script.

use super::bounds::{PAUSED, PAUSED_AT_MAX, PAUSED_RATES, touched};
use super::found::{Found, words};
use super::loops::{receives, sends};
use pubmark_model::fault::{Act, Target};
use pubmark_model::record::{AgentShare, FaultEvent, FigureGroup, RunRecord};
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::workload::Rate;

/// Agents that did not run for a while, each in words.
pub fn paused(record: &RunRecord) -> Vec<Found> {
    record.agents.iter().filter_map(|agent| stood_still(agent, record)).collect()
}

/// Whether what happened to `who` happened to this agent.
fn concerns(agent: &AgentShare, who: Target) -> bool {
    match who {
        Target::Publishers => sends(agent),
        Target::Subscribers => receives(agent),
        Target::Server | Target::Link => false,
    }
}

/// How often something stood still, how long at most, and from when on, ns.
#[derive(Clone, Copy)]
struct Standstill {
    times: u64,
    longest_ns: Ns,
    at_ns: Ns,
}

fn stood_still(agent: &AgentShare, record: &RunRecord) -> Option<Found> {
    let side = record.fault_log.iter().filter(|event| concerns(agent, event.who));
    let scripted: Vec<(Ns, Ns)> = side.filter_map(|event| Some((event.at_ns?, event.until_ns?))).collect();
    let pauses = agent.pauses.unwrap_or_default();
    // Its own account begins with the last thing that it did before.
    let within =
        |(at, until): &(Ns, Ns)| *at <= pauses.longest_at_ns + pauses.longest_ns && pauses.longest_at_ns <= *until;
    if pauses.count > 0 {
        let why =
            if scripted.iter().any(within) { "the script stopped it" } else { "it was stopped, or the machine was" };
        let own = Standstill { times: pauses.count, longest_ns: pauses.longest_ns, at_ns: pauses.longest_at_ns };
        return Some(told(agent, own, record, why));
    }
    let (at_ns, until) = *scripted.iter().max_by_key(|(at, until)| until.saturating_sub(*at))?;
    let own = Standstill { times: scripted.len() as u64, longest_ns: until.saturating_sub(at_ns), at_ns };
    Some(told(agent, own, record, "the script stopped it"))
}

fn told(agent: &AgentShare, still: Standstill, record: &RunRecord, why: &str) -> Found {
    let more = if still.times > 1 { format!(" ({} times; this was the longest)", still.times) } else { String::new() };
    let (name, length, from) = (&agent.name, words(still.longest_ns), words(still.at_ns));
    let evidence = format!("the agent `{name}` did not run for {length}, from {from} into the window{more}: {why}");
    // Each of them may have been as long as the longest.
    let share = still.longest_ns as f64 * still.times as f64 / record.window_ns.max(1) as f64;
    Found::of(&figures(share, record), evidence)
}

/// What is touched where an agent did not run for this share of the window.
/// What was sent meanwhile waits, and is counted all the same, unless some of
/// it was thrown away.
pub fn figures(share: f64, record: &RunRecord) -> Vec<FigureGroup> {
    let unlimited = record.workload.rate == Rate::Max;
    let mut figures = touched(if unlimited { PAUSED_AT_MAX } else { PAUSED }, share);
    let counts = &record.counts;
    if counts.lost + counts.not_sent + counts.duplicated + counts.reordered > 0 {
        figures.push(FigureGroup::Counts);
    }
    let due = counts.expected as f64 * SECOND as f64 / record.window_ns.max(1) as f64;
    if !unlimited && (record.rates.delivered_per_s - due).abs() > PAUSED_RATES * due {
        figures.push(FigureGroup::Rates);
    }
    figures
}

/// What the script did to the server, and when.
pub fn noted(record: &RunRecord) -> Vec<String> {
    let events = record.fault_log.iter().filter(|event| event.who == Target::Server);
    events.filter_map(in_words).collect()
}

fn in_words(event: &FaultEvent) -> Option<String> {
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
}
