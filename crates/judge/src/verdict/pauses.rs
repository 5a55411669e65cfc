//! Parts that stood still: agents by their own report or by the script, the server by the script.

use super::bounds::{PAUSED, PAUSED_AT_MAX, PAUSED_RATES, WITHIN_SILENCE, touched};
use super::finding::{FigureFinding, words};
use super::loops::{receives, sends};
use pubmark_model::fault::{Act, Target};
use pubmark_model::protocol::{RuntimePauses, Stalls};
use pubmark_model::record::{AgentShare, FaultEvent, FigureGroup, RunRecord};
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::workload::Rate;

/// Finds agents that did not run for a while.
pub fn paused(record: &RunRecord) -> Vec<FigureFinding> {
    record.agents.iter().filter_map(|agent| stood_still(agent, record)).collect()
}

/// Returns whether a fault of `who` concerns this agent.
fn concerns(agent: &AgentShare, who: Target) -> bool {
    match who {
        Target::Publishers => sends(agent),
        Target::Subscribers => receives(agent),
        Target::Server | Target::Clients | Target::Link | Target::Host | Target::Members | Target::Later(_) => false,
    }
}

/// Number of pauses, length of the longest, and its start, ns.
#[derive(Clone, Copy)]
struct Standstill {
    times: u64,
    longest_ns: Ns,
    at_ns: Ns,
}

fn stood_still(agent: &AgentShare, record: &RunRecord) -> Option<FigureFinding> {
    let side = record.fault_log.iter().filter(|event| concerns(agent, event.who));
    let scripted: Vec<(Ns, Ns)> = side.filter_map(|event| Some((event.at_ns?, event.until_ns?))).collect();
    let pauses = agent.pauses.unwrap_or_default();
    // The agent's report begins with its last action before the pause.
    let within = |(at, until): &(Ns, Ns)| {
        *at <= pauses.longest_at_ns.saturating_add(pauses.longest_ns) && pauses.longest_at_ns <= *until
    };
    if pauses.count > 0 {
        let of_runtime =
            runtime_pauses(agent).map(|own| (own.longest_at_ns, own.longest_at_ns.saturating_add(own.longest_ns)));
        let why = match of_runtime {
            _ if scripted.iter().any(within) => "the script stopped it",
            // Shorter pauses beside it do not explain it.
            Some(own) if within(&own) && own.1 - own.0 >= pauses.longest_ns / 2 => "the runtime of its language did so",
            _ => "it was stopped, or the machine was",
        };
        let own = Standstill { times: pauses.count, longest_ns: pauses.longest_ns, at_ns: pauses.longest_at_ns };
        let mut finding = told(agent, own, record, why);
        if all_is_settled(pauses, record) {
            finding.figures.retain(|group| *group != FigureGroup::Counts);
        }
        return Some(finding);
    }
    let (at_ns, until) = *scripted.iter().max_by_key(|(at, until)| until.saturating_sub(*at))?;
    let own = Standstill { times: scripted.len() as u64, longest_ns: until.saturating_sub(at_ns), at_ns };
    Some(told(agent, own, record, "the script stopped it"))
}

fn told(agent: &AgentShare, still: Standstill, record: &RunRecord, why: &str) -> FigureFinding {
    let more = if still.times > 1 { format!(" ({} times; this was the longest)", still.times) } else { String::new() };
    let (name, length, from) = (&agent.name, words(still.longest_ns), words(still.at_ns));
    let evidence = format!("the agent `{name}` did not run for {length}, from {from} into the window{more}: {why}");
    // Each of them may have been as long as the longest.
    let share = still.longest_ns as f64 * still.times as f64 / record.window_ns.max(1) as f64;
    let mut figures = figures(share, record);
    if !figures.contains(&FigureGroup::Rates) && lengthens_silence(still.longest_ns, record) {
        figures.push(FigureGroup::Rates);
    }
    FigureFinding::of(&figures, evidence)
}

/// Returns whether the first pause came when the publishers had been killed, with a server that keeps messages until a
/// subscriber takes them: the pauses can then make none of them lost.
fn all_is_settled(pauses: Stalls, record: &RunRecord) -> bool {
    let killed = record.killed_at_ns(Target::Publishers);
    let keeps = record.workload.qos > 0 && record.workload.durable;
    let first_ns = pauses.first_at_ns.or((pauses.count == 1).then_some(pauses.longest_at_ns));
    keeps && killed.zip(first_ns).is_some_and(|(killed_ns, first_ns)| killed_ns < first_ns)
}

/// Returns whether a delay of this length may be much of the silence that a fault caused.
pub fn lengthens_silence(delay_ns: Ns, record: &RunRecord) -> bool {
    let silence = record.recovery.and_then(|cost| cost.silence_ns);
    silence.is_some_and(|silence| delay_ns as f64 > WITHIN_SILENCE * silence as f64)
}

/// Returns the figures affected if an agent did not run for this share of the window. Messages sent meanwhile wait, and
/// are counted, unless some were thrown away.
pub fn figures(share: f64, record: &RunRecord) -> Vec<FigureGroup> {
    let unlimited = record.workload.rate == Rate::Max;
    let mut figures = touched(if unlimited { PAUSED_AT_MAX } else { PAUSED }, share);
    let counts = &record.counts;
    if [counts.lost, counts.not_sent, counts.duplicated, counts.reordered].iter().any(|count| *count > 0) {
        figures.push(FigureGroup::Counts);
    }
    let due = counts.expected as f64 * SECOND as f64 / record.window_ns.max(1) as f64;
    if !unlimited && (record.rates.delivered_per_s - due).abs() > PAUSED_RATES * due {
        figures.push(FigureGroup::Rates);
    }
    figures
}

fn runtime_pauses(agent: &AgentShare) -> Option<RuntimePauses> {
    agent.runtime?.pauses.filter(|pauses| pauses.count > 0)
}

/// Describes agents whose runtime stopped them, by their own report: a figure of the language, and no fault of the
/// library.
pub fn of_runtimes(record: &RunRecord) -> Vec<String> {
    let told = |agent: &AgentShare| {
        let RuntimePauses { count, total_ns, longest_ns, longest_at_ns } = runtime_pauses(agent)?;
        let (name, total, longest, from) = (&agent.name, words(total_ns), words(longest_ns), words(longest_at_ns));
        Some(format!(
            "the runtime of the agent `{name}` stopped it {count} times for {total} in all, at most for {longest}, \
             from {from} into the window on: that is the language's, not the library's"
        ))
    };
    record.agents.iter().filter_map(told).collect()
}

/// Describes what the script did to the server, and when.
pub fn noted(record: &RunRecord) -> Vec<String> {
    let events = record.fault_log.iter().filter(|event| matches!(event.who, Target::Server | Target::Members));
    events.filter_map(in_words).collect()
}

fn in_words(event: &FaultEvent) -> Option<String> {
    let what = match event.what {
        Act::Stop => "stopped",
        Act::Kill => "killed",
        Act::Cut => "cut",
        Act::CutPower => "cut off from its power",
        Act::FillDisk => "left without room on its disk",
        Act::Restart => "ended",
        // Only a later pubmark can do it, and judges it.
        Act::Later(_) => return None,
    };
    let at = words(event.at_ns?);
    let until = match (event.until_ns, event.what) {
        (None, _) => "and nothing after".into(),
        (Some(until), Act::Cut) => format!("and repaired at {}", words(until)),
        (Some(until), Act::Stop | Act::FillDisk | Act::Later(_)) => format!("and let go on at {}", words(until)),
        (Some(until), Act::Kill | Act::CutPower | Act::Restart) => format!("and started again at {}", words(until)),
    };
    let note = event.note.as_ref().map_or(String::new(), |note| format!("; {note}"));
    let whom = match (event.member, event.peer) {
        (None, _) => "the server".to_owned(),
        (Some(number), None) if event.what == Act::Cut => {
            format!("the link between the server's member {number} and the others")
        }
        (Some(number), None) => format!("the server's member {number}"),
        (Some(number), Some(other)) => format!("the link between the server's members {number} and {other}"),
    };
    Some(format!("{whom} was {what} by the script at {at} {until}{note}"))
}

/// Splits why the server ended: the description of a server that did not start again after its power was cut, or ended
/// after its disk was filled, which is a result, and any other end. One that listens while it loads its data, and
/// delivers nothing, has not started.
pub fn not_back(record: &RunRecord, exit_reason: Option<String>) -> (Option<String>, Option<String>) {
    let mut cuts = record.fault_log.iter().filter(|event| event.what == Act::CutPower);
    let mut filled = record.fault_log.iter().filter(|event| event.what == Act::FillDisk);
    let stays_away = |until_ns: Ns, listens_ns: Option<Ns>| listens_ns.is_none() || !delivered_since(record, until_ns);
    match exit_reason {
        Some(why) if cuts.any(|event| event.until_ns.is_some_and(|until| stays_away(until, event.listens_ns))) => {
            (Some(format!("the server did not start again after its power was cut: {why}")), None)
        }
        Some(why) if filled.any(|event| event.at_ns.is_some()) => {
            (Some(format!("the server ended after its disk was filled: {why}")), None)
        }
        other => (None, other),
    }
}

/// Returns whether a message arrived after this instant of the window, or in the drain.
fn delivered_since(record: &RunRecord, instant_ns: Ns) -> bool {
    let before = instant_ns.div_ceil(record.series.slice_ns.max(1)) as usize;
    record.counts.delivered > record.series.delivered.iter().take(before).sum()
}

#[cfg(test)]
mod tests {
    use super::super::tests::judged;
    use super::*;
    use pubmark_model::protocol::RuntimeFigures;
    use pubmark_model::record::FigureGroup::{LatencyP99, Rates};
    use pubmark_model::record::{Reason, Recovery};
    use pubmark_model::units::MILLISECOND;

    /// A power cut of which nothing is known.
    fn event() -> FaultEvent {
        let (what, who, host, member, peer, note) = (Act::CutPower, Target::Server, None, None, None, None);
        FaultEvent { what, who, host, member, peer, at_ns: None, until_ns: None, listens_ns: None, note }
    }

    #[test]
    fn a_silence_counts_unless_a_pause_may_be_much_of_it() {
        let of_silence = |silence_ns| {
            let verdict = judged("none", |record| {
                record.recovery = Some(Recovery { silence_ns: Some(silence_ns), ..Recovery::default() });
                record.agents[1].pauses = Some(Stalls::one(100 * MILLISECOND, 0));
            });
            verdict.reasons[0].figures.clone()
        };
        assert_eq!(of_silence(4 * SECOND), [LatencyP99]);
        assert_eq!(of_silence(SECOND), [Rates, LatencyP99]);
    }

    #[test]
    fn a_pause_after_the_last_message_counts_against_no_count_of_what_the_server_keeps() {
        let counted = |durable: bool, pauses: Stalls| {
            let verdict = judged("cut power of server at 5s for 1s", |record| {
                record.workload.qos = 1;
                record.workload.durable = durable;
                record.counts.lost = 7;
                let (what, who) = (Act::Kill, Target::Publishers);
                let kill = FaultEvent { what, who, at_ns: Some(5 * SECOND), ..event() };
                record.fault_log = vec![kill];
                record.agents[0].pauses = Some(pauses);
            });
            let found = verdict.reasons.iter().find(|found| found.reason == Reason::GeneratorSaturated).unwrap();
            !found.figures.contains(&FigureGroup::Counts)
        };
        let pauses = |first_s: Ns| {
            let mut both = Stalls::one(100 * MILLISECOND, first_s * SECOND);
            both.add(&Stalls::one(200 * MILLISECOND, 7 * SECOND));
            both
        };
        assert!(counted(true, Stalls { first_at_ns: None, ..Stalls::one(SECOND, 6 * SECOND) }));
        assert!(counted(true, pauses(6)), "both came later");
        assert!(!counted(true, pauses(4)), "a pause while messages were sent");
        assert!(!counted(true, Stalls { first_at_ns: None, ..pauses(6) }), "nobody knows when the shorter one was");
        assert!(!counted(false, pauses(6)), "a server may forget what a subscriber that is away has not taken");
    }

    #[test]
    fn what_a_runtime_did_is_told_of_the_runtime() {
        let stop = Stalls::one(SECOND, 2 * SECOND);
        let of_runtime = |longest_ns, longest_at_ns| RuntimeFigures {
            pauses: Some(RuntimePauses { count: 3, total_ns: longest_ns + MILLISECOND, longest_ns, longest_at_ns }),
            ..RuntimeFigures::default()
        };
        let says = |runtime: RuntimeFigures| {
            let verdict = judged("none", |record| {
                record.agents[1].pauses = Some(stop);
                record.agents[1].runtime = Some(runtime);
            });
            let of_language = verdict.notes.iter().any(|note| note.evidence.contains("is the language's"));
            (verdict.reasons[0].evidence.clone(), of_language)
        };
        let (why, told) = says(of_runtime(SECOND, 2 * SECOND));
        assert!(why.ends_with("the runtime of its language did so") && told, "{why}");
        for other in [of_runtime(SECOND, 8 * SECOND), of_runtime(MILLISECOND, 2 * SECOND)] {
            let (why, told) = says(other);
            assert!(why.ends_with("it was stopped, or the machine was") && told, "{why}");
        }
        assert!(!says(RuntimeFigures::default()).1, "who was never stopped says nothing");
    }

    #[test]
    fn a_server_that_does_not_serve_after_a_power_cut_has_not_started() {
        let mut found = Vec::new();
        // Whether it listened for a moment, and what was delivered after it did.
        for (listens_ns, after) in [(None, 0), (Some(7 * SECOND), 0), (Some(7 * SECOND), 1)] {
            judged("cut power of server at 5s for 1s", |record| {
                let (at_ns, until_ns) = (Some(5 * SECOND), Some(6 * SECOND));
                record.fault_log = vec![FaultEvent { at_ns, until_ns, listens_ns, ..event() }];
                record.series.slice_ns = SECOND;
                record.series.delivered = vec![100, 100, 100, 100, 100, 0, 0, after, 0, 0];
                record.counts.delivered = 500 + after;
                found.push(not_back(record, Some("it ended".into())));
            });
        }
        let away = (Some("the server did not start again after its power was cut: it ended".to_owned()), None);
        assert_eq!(found, [away.clone(), away, (None, Some("it ended".to_owned()))]);
    }
}
