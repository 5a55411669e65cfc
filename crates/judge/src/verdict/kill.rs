//! Clients that the script killed: the consequences count against nobody, and are noted.

use super::finding::words;
use pubmark_model::fault::Target;
use pubmark_model::record::RunRecord;
use pubmark_model::units::Ns;

/// Both sides, senders first.
pub const SIDES: [Target; 2] = [Target::Publishers, Target::Subscribers];

/// Returns whether the requested faults were kills of clients only.
pub fn only(record: &RunRecord) -> bool {
    !record.faults.is_empty() && record.faults.0.iter().all(|fault| fault.killed_side().is_some())
}

/// Returns whether the subscribers were killed, so that nothing received later messages.
pub fn deaf(record: &RunRecord) -> bool {
    record.killed_at_ns(Target::Subscribers).is_some()
}

/// Describes which side was killed, and when.
fn said(record: &RunRecord, side: Target) -> Option<String> {
    Some(format!("{} were killed at {}", side.word(), words(record.killed_at_ns(side)?)))
}

/// Describes who was killed and when, and the effect on the figures.
pub fn noted(record: &RunRecord) -> Vec<String> {
    let what = |side| match side {
        Target::Subscribers => "no subscriber could take what came after that",
        _ => "nothing was sent after that",
    };
    let note = |side: Target| {
        let window = words(record.window_ns);
        let said = said(record, side)?;
        Some(format!("{said} by the script: {}; rates and costs are over the whole window of {window}", what(side)))
    };
    SIDES.into_iter().filter_map(note).collect()
}

/// Describes which sides had been killed before a silence ended.
pub fn during(record: &RunRecord, (_, to_ns): (Ns, Ns)) -> Option<String> {
    let before = SIDES.into_iter().filter(|side| record.killed_at_ns(*side).is_some_and(|at_ns| at_ns < to_ns));
    let all: Vec<String> = before.filter_map(|side| said(record, side)).collect();
    (!all.is_empty()).then(|| all.join(", and "))
}

/// Returns an addition to a sentence about missing messages: that one of these sides was killed.
pub fn why(record: &RunRecord, sides: &[Target]) -> String {
    let why = |side: &Target| match side {
        Target::Subscribers => "no subscriber could take what came after that",
        _ => "what they still held went with them",
    };
    let all = sides.iter().filter_map(|side| Some(format!("{}, and {}", said(record, *side)?, why(side))));
    let all: Vec<String> = all.collect();
    if all.is_empty() { String::new() } else { format!(": {}", all.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SILENCE, judged, reasons};
    use super::*;
    use pubmark_model::fault::Act;
    use pubmark_model::protocol::Stalls;
    use pubmark_model::record::{Component, FaultEvent, Phases, Reason, Verdict};
    use pubmark_model::units::{MILLISECOND, SECOND};

    const KILLED_NS: Ns = 5 * SECOND + 2 * MILLISECOND;

    /// Judges a run in which one side was killed, half way through its window.
    fn killed(side: Target, change: impl FnOnce(&mut RunRecord)) -> Verdict {
        judged(&format!("kill {} at 5s", side.word()), |record| {
            let (what, at_ns) = (Act::Kill, Some(KILLED_NS));
            record.fault_log = vec![FaultEvent {
                what,
                who: side,
                host: None,
                member: None,
                at_ns,
                until_ns: None,
                peer: None,
                listens_ns: None,
                note: None,
            }];
            record.phases = Some(Phases { drain_ns: 2 * SECOND, ..Phases::default() });
            change(record);
        })
    }

    fn told(verdict: &Verdict) -> Vec<(Component, &str)> {
        verdict.notes.iter().map(|note| (note.part, note.evidence.as_str())).collect()
    }

    #[test]
    fn that_publishers_were_killed_is_said_and_speaks_against_nobody() {
        let verdict = killed(Target::Publishers, |record| {
            let counts = &mut record.counts;
            (counts.offered, counts.sent, counts.expected, counts.delivered, counts.lost) =
                (5_003, 5_002, 5_002, 5_000, 2);
            (record.series.sent, record.series.delivered) = (vec![1_000, 1_000, 0, 0], vec![1_000, 1_000, 0, 0]);
            record.stalls = Some(Stalls::one(5 * SECOND, 5 * SECOND));
        });
        assert!(verdict.valid, "{:?}", verdict.reasons);
        let notes = told(&verdict);
        assert!(notes.iter().all(|(part, _)| *part == Component::Generator), "{notes:?}");
        for says in [
            "publishers were killed at 5.002 s by the script: nothing was sent after that; rates and costs are over the \
             whole window of 10.000 s",
            "a subscriber heard nothing for 5.000 s, from 5.000 s into the window: publishers were killed at 5.002 s",
            "2 of 5002 expected messages had not arrived 2.0 s after the window: publishers were killed at 5.002 s, and \
             what they still held went with them",
        ] {
            assert!(notes.iter().any(|(_, evidence)| *evidence == says), "should say {says:?}: {notes:?}");
        }
    }

    #[test]
    fn what_a_server_had_acknowledged_to_publishers_that_were_killed_it_still_owes() {
        let verdict = killed(Target::Publishers, |record| {
            (record.counts.acked, record.counts.acked_lost, record.counts.lost) = (9_000, Some(3), 3);
        });
        let says = "3 of 9000 acknowledged messages were lost: they had not arrived 2.0 s after the window";
        assert_eq!(told(&verdict)[0], (Component::Server, says));
    }

    #[test]
    fn what_came_for_subscribers_that_were_killed_nobody_lost() {
        let verdict = killed(Target::Subscribers, |record| {
            (record.counts.delivered, record.counts.lost) = (5_000, 5_000);
            (record.counts.acked, record.counts.acked_lost) = (10_000, Some(5_000));
            (record.series.sent, record.series.delivered) = (vec![2_500; 4], vec![2_500, 2_500, 0, 0]);
            record.stalls = Some(Stalls::one(5 * SECOND, 5 * SECOND));
        });
        assert!(verdict.valid, "{:?}", verdict.reasons);
        let notes = told(&verdict);
        assert!(notes.iter().all(|(part, _)| *part == Component::Generator), "no server is to blame: {notes:?}");
        let why = "subscribers were killed at 5.002 s, and no subscriber could take what came after that";
        let lost = format!(
            "5000 of 10000 acknowledged messages were lost: they had not arrived 2.0 s after the window: {why}"
        );
        assert_eq!(notes[0].1, lost, "it is shown, and comes first");
        assert!(notes.iter().any(|(_, evidence)| evidence.contains("expected messages") && evidence.ends_with(why)));
        assert!(!notes.iter().any(|(_, evidence)| evidence.contains("backlog")), "{notes:?}");
    }

    #[test]
    fn what_falls_due_as_its_publisher_dies_is_no_message_that_could_not_be_sent() {
        let unsent = |offered: u64| {
            let verdict = killed(Target::Publishers, |record| {
                (record.counts.offered, record.counts.sent) = (offered, 100);
            });
            assert!(verdict.valid, "{:?}", verdict.reasons);
            verdict.notes.into_iter().map(|note| note.evidence).find(|evidence| evidence.contains("could be sent"))
        };
        assert_eq!(unsent(101), None);
        let says = "100 of 102 messages that were due could be sent: publishers were killed at 5.002 s";
        assert_eq!(unsent(102).as_deref(), Some(says));
    }

    #[test]
    fn what_happened_before_or_beside_it_is_blamed_as_ever() {
        let silence = |longest_at_ns| {
            let verdict = killed(Target::Publishers, |record| {
                record.stalls = Some(Stalls { longest_at_ns, ..SILENCE });
            });
            verdict.notes.iter().find(|note| note.evidence.contains("for 1.000 s")).unwrap().part
        };
        assert_eq!((silence(SECOND), silence(5 * SECOND)), (Component::Server, Component::Generator));
        let verdict = killed(Target::Publishers, |record| record.connections.as_mut().unwrap().lost = 1);
        assert_eq!(reasons(&verdict), [Reason::ServerDied], "whoever is killed loses no connection");
    }
}
