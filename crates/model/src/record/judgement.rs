//! What is said of a run: which of its figures may be believed, and why not.

use crate::figure_group::FigureGroup;
use crate::later::{LaterWord, known};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a run may not be quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The generator was late by its own doing.
    GeneratorSaturated,
    /// A trend, a growing backlog or a silence in the window.
    NotSteady,
    /// Fewer messages sent than were due.
    OfferedRateMissed,
    /// Fewer clients got a connection than wanted one.
    ConnectionsMissed,
    /// Lost although the guarantee forbids it.
    MessagesLost,
    /// Refused by the system, which said so.
    MessagesRefused,
    /// Delivered more than once although the guarantee forbids it.
    Duplicates,
    /// Out of order although the guarantee forbids it.
    Reordered,
    /// Arrived damaged.
    Corrupted,
    /// Too few for the percentile quoted.
    TooFewSamples,
    /// A clock is wrong.
    Clock,
    /// Something else used the machine.
    NoisyMachine,
    /// The server ended.
    ServerDied,
    /// A limit was hit.
    ResourceLimitHit,
    /// The run could not be made at all.
    Failed,
    /// One that a later pubmark knows, and this one does not.
    #[serde(untagged)]
    Later(LaterWord),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::GeneratorSaturated => "generator-saturated",
            Reason::NotSteady => "not-steady",
            Reason::OfferedRateMissed => "offered-rate-missed",
            Reason::ConnectionsMissed => "connections-missed",
            Reason::MessagesLost => "messages-lost",
            Reason::MessagesRefused => "messages-refused",
            Reason::Duplicates => "duplicates",
            Reason::Reordered => "reordered",
            Reason::Corrupted => "corrupted",
            Reason::TooFewSamples => "too-few-samples",
            Reason::Clock => "clock",
            Reason::NoisyMachine => "noisy-machine",
            Reason::ServerDied => "server-died",
            Reason::ResourceLimitHit => "resource-limit-hit",
            Reason::Failed => "failed",
            Reason::Later(word) => word.word(),
        })
    }
}

/// A reason with its evidence in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which.
    pub reason: Reason,
    /// What was seen.
    pub evidence: String,
    /// The figures that it touches: these may not be quoted, the others may.
    #[serde(default = "FigureGroup::all", deserialize_with = "known")]
    pub figures: Vec<FigureGroup>,
}

/// The part of a run that a remark is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Component {
    /// The broker.
    Server,
    /// The library under test.
    Library,
    /// The agents that played its clients.
    Generator,
    /// What stood between clients and the server.
    Link,
    /// One that a later pubmark knows, and this one does not.
    #[serde(untagged)]
    Later(LaterWord),
}

impl Component {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Component::Server => "server",
            Component::Library => "library",
            Component::Generator => "generator",
            Component::Link => "link",
            Component::Later(word) => word.word(),
        }
    }
}

/// What a run has found about a part, and what is no reason against the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Which part.
    pub part: Component,
    /// What was seen.
    pub evidence: String,
}

/// Whether a run may be quoted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// True where there is no reason against it.
    pub valid: bool,
    /// Each reason against it.
    pub reasons: Vec<Finding>,
    /// What it found that speaks of a part and not against the run.
    #[serde(default)]
    pub notes: Vec<Note>,
}

impl Verdict {
    /// Whether no reason touches these figures.
    pub fn allows(&self, figures: FigureGroup) -> bool {
        !self.reasons.iter().any(|finding| finding.figures.contains(&figures))
    }

    /// Returns whether these figures may be compared with those of runs of the same
    /// repeat. Runs of a repeat are made in random order, so other users of the machine
    /// disturb all of them alike: that hides small differences and makes no large ones.
    /// A generator that is late and a load that is not steady count as disturbed if others
    /// used the machine in that run and all that was due was sent. Every other reason means
    /// that the run did different work.
    pub fn compares(&self, figures: FigureGroup) -> bool {
        let is_noisy = self.reasons.iter().any(|finding| finding.reason == Reason::NoisyMachine);
        let work = [FigureGroup::Counts, FigureGroup::Rates];
        self.reasons.iter().filter(|finding| finding.figures.contains(&figures)).all(|finding| match finding.reason {
            Reason::NoisyMachine => true,
            Reason::GeneratorSaturated | Reason::NotSteady => {
                is_noisy && !work.iter().any(|group| finding.figures.contains(group))
            }
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(reasons: &[(Reason, &[FigureGroup])]) -> Verdict {
        let finding = |(reason, figures): &(Reason, &[FigureGroup])| Finding {
            reason: *reason,
            evidence: String::new(),
            figures: figures.to_vec(),
        };
        Verdict { valid: reasons.is_empty(), reasons: reasons.iter().map(finding).collect(), notes: Vec::new() }
    }

    #[test]
    fn a_disturbed_run_may_be_compared_and_one_that_did_other_work_may_not() {
        use FigureGroup::{LatencyP50, LatencyP99, Rates};
        let noisy = (Reason::NoisyMachine, FigureGroup::ALL);
        let late = (Reason::GeneratorSaturated, FigureGroup::LATENCY);
        assert!(verdict(&[]).compares(LatencyP99));
        assert!(verdict(&[noisy]).compares(LatencyP99) && !verdict(&[noisy]).allows(LatencyP99));
        assert!(verdict(&[noisy, late]).compares(LatencyP50), "late because of the machine");
        assert!(!verdict(&[late]).compares(LatencyP50), "late by itself");
        assert!(verdict(&[late]).compares(Rates), "that is not touched");
        let stopped: (Reason, &[FigureGroup]) = (Reason::GeneratorSaturated, &[Rates, LatencyP99]);
        assert!(!verdict(&[noisy, stopped]).compares(LatencyP99), "it did not send what was due");
        for other in [Reason::ServerDied, Reason::ConnectionsMissed, Reason::MessagesLost, Reason::OfferedRateMissed] {
            assert!(!verdict(&[noisy, (other, FigureGroup::ALL)]).compares(LatencyP99), "{other}");
        }
    }
}
