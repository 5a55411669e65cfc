//! Figures that agents do not support: no part is blamed because of them, and none is cleared.

use pubmark_model::record::{AgentShare, RunRecord, UnsupportedFigure};

/// Name of the unknown figure, and the consequence.
struct Words {
    of_one: &'static str,
    of_several: &'static str,
    so: &'static str,
}

fn words(what: UnsupportedFigure) -> Words {
    let (of_one, of_several, so) = match what {
        UnsupportedFigure::Pauses => {
            ("whether it stood still", "whether they stood still", "latencies may have such pauses in them")
        }
        UnsupportedFigure::OwnLag => (
            "the delay of its publishers",
            "the delay of their publishers",
            "that is in the latencies, and is not judged",
        ),
        UnsupportedFigure::ReceiveLag => (
            "how long messages waited for its loop",
            "how long messages waited for their loops",
            "that is in the latencies, and is not judged",
        ),
        UnsupportedFigure::Stalls => (
            "whether its subscribers heard nothing for a while",
            "whether their subscribers heard nothing for a while",
            "silences are not seen",
        ),
    };
    Words { of_one, of_several, so }
}

fn cannot(record: &RunRecord, what: UnsupportedFigure) -> Vec<&AgentShare> {
    record.agents.iter().filter(|agent| agent.cannot_tell.contains(&what)).collect()
}

/// Describes the first of these that an agent does not support; `None` if all support all.
pub fn of(record: &RunRecord, any: &[UnsupportedFigure]) -> Option<String> {
    any.iter().find_map(|what| {
        let names: Vec<String> = cannot(record, *what).iter().map(|agent| format!("`{}`", agent.name)).collect();
        match names.as_slice() {
            [] => None,
            [one] => Some(format!("the agent {one} cannot tell {}", words(*what).of_one)),
            several => Some(format!("the agents {} cannot tell {}", several.join(", "), words(*what).of_several)),
        }
    })
}

/// Describes all that agents do not support, and the consequences.
pub fn noted(record: &RunRecord) -> Vec<String> {
    let all = [
        UnsupportedFigure::Pauses,
        UnsupportedFigure::OwnLag,
        UnsupportedFigure::ReceiveLag,
        UnsupportedFigure::Stalls,
    ];
    let says = |what: UnsupportedFigure| Some(format!("{}: {}", of(record, &[what])?, words(what).so));
    all.into_iter().filter_map(says).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SILENCE, judged, reasons};
    use super::*;
    use pubmark_model::protocol::Stalls;
    use pubmark_model::record::{Component, Reason};

    #[test]
    fn where_an_agent_cannot_tell_nobody_is_blamed_and_nobody_called_clean() {
        let silent = |cannot_tell: &[UnsupportedFigure]| {
            let verdict = judged("none", |record| {
                record.stalls = Some(SILENCE);
                record.agents[0].cannot_tell = cannot_tell.to_vec();
            });
            assert!(verdict.valid, "{:?}", verdict.reasons);
            verdict.notes.into_iter().map(|note| (note.part, note.evidence)).collect::<Vec<_>>()
        };
        for (what, whether) in [
            (UnsupportedFigure::Pauses, "whether it stood still"),
            (UnsupportedFigure::OwnLag, "the delay of its publishers"),
        ] {
            let notes = silent(&[what]);
            assert!(notes.iter().all(|(part, _)| *part == Component::Generator), "{notes:?}");
            assert!(notes[0].1.contains("whose doing it was is not known"), "{notes:?}");
            let cannot = format!("the agent `hears` cannot tell {whether}");
            assert!(notes.iter().all(|(_, evidence)| evidence.contains(&cannot)), "{notes:?}");
        }
        let notes = silent(&[UnsupportedFigure::ReceiveLag]);
        assert!(notes[0].1.starts_with("the server delivered nothing"), "that says nothing of a silence: {notes:?}");
        let verdict = judged("none", |record| {
            record.stalls = None;
            record.agents.iter_mut().for_each(|agent| agent.cannot_tell = vec![UnsupportedFigure::Stalls]);
        });
        let says = "the agents `hears`, `sends-2` cannot tell whether their subscribers heard nothing for a while: silences are not seen";
        assert_eq!(verdict.notes.iter().map(|note| note.evidence.as_str()).collect::<Vec<_>>(), [says]);
        // Figures of other agents, and the script's, are known nevertheless.
        let verdict = judged("none", |record| {
            record.stalls = Some(SILENCE);
            record.agents[0].cannot_tell = vec![UnsupportedFigure::Pauses];
            record.agents[1].pauses = Some(Stalls { count: 1, ..SILENCE });
        });
        assert_eq!(reasons(&verdict), [Reason::GeneratorSaturated]);
    }
}
