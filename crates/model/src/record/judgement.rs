//! The verdict on a run: which of its figures are reliable, and why the others are not.

use crate::figure_group::FigureGroup;
use crate::later::{LaterWord, known};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A reason that makes figures of a run unreliable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The generator delay was too large.
    GeneratorSaturated,
    /// A trend, a growing backlog or a silence in the window.
    NotSteady,
    /// Fewer messages sent than were due.
    OfferedRateMissed,
    /// Fewer clients opened a connection than requested one.
    ConnectionsMissed,
    /// Messages were lost although the guarantee forbids it.
    MessagesLost,
    /// The system refused messages explicitly.
    MessagesRefused,
    /// Messages were delivered more than once although the guarantee forbids it.
    Duplicates,
    /// Messages arrived out of order although the guarantee forbids it.
    Reordered,
    /// Messages arrived damaged.
    Corrupted,
    /// Too few messages for a reported percentile.
    TooFewSamples,
    /// A clock is wrong.
    Clock,
    /// Other programs used the machine.
    NoisyMachine,
    /// The server ended.
    ServerDied,
    /// A limit was reached.
    ResourceLimitHit,
    /// The server's folder lay on a ledger, which writes no disk.
    LedgerDisk,
    /// The run could not be made.
    Failed,
    /// A reason that only a later pubmark knows.
    #[serde(untagged)]
    Later(LaterWord),
}

impl Reason {
    /// True if a run with this reason has all the messages that its plan gives it.
    pub fn leaves_all_messages(&self) -> bool {
        matches!(self, Reason::TooFewSamples | Reason::GeneratorSaturated | Reason::NoisyMachine | Reason::Clock)
    }
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
            Reason::LedgerDisk => "ledger-disk",
            Reason::Failed => "failed",
            Reason::Later(word) => word.word(),
        })
    }
}

/// A reason with its evidence in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The reason.
    pub reason: Reason,
    /// The evidence.
    pub evidence: String,
    /// The groups of figures that it makes unreliable; the others stay reliable.
    #[serde(default = "FigureGroup::all", deserialize_with = "known")]
    pub figures: Vec<FigureGroup>,
    /// True if the system did not carry its load, so that the figures are at least as bad as
    /// measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overload: bool,
}

/// The part of a run that a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Component {
    /// The broker.
    Server,
    /// The library under test.
    Library,
    /// The agents that played its clients.
    Generator,
    /// The link between clients and the server.
    Link,
    /// A part that only a later pubmark knows.
    #[serde(untagged)]
    Later(LaterWord),
}

impl Component {
    /// Returns its word.
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

/// A finding about a part of a run that makes no figure unreliable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The part.
    pub part: Component,
    /// The evidence.
    pub evidence: String,
}

/// The verdict on a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// True if there are no reasons.
    pub valid: bool,
    /// The reasons.
    pub reasons: Vec<Finding>,
    /// Findings about parts that make no figure unreliable.
    #[serde(default)]
    pub notes: Vec<Note>,
}

impl Verdict {
    /// True if no reason affects these figures.
    pub fn allows(&self, figures: FigureGroup) -> bool {
        !self.reasons.iter().any(|finding| finding.figures.contains(&figures))
    }

    /// True if the plan gives the run too few messages, so that a further one has as few.
    pub fn is_too_short(&self) -> bool {
        let mut reasons = self.reasons.iter().map(|finding| &finding.reason);
        reasons.clone().all(Reason::leaves_all_messages) && reasons.any(|reason| *reason == Reason::TooFewSamples)
    }

    /// Returns whether these figures may be compared with those of runs of the same
    /// repeat. Runs of a repeat are made in random order, so other users of the machine
    /// disturb all of them alike: that hides small differences and makes no large ones.
    /// A generator that is late and a load that is not steady count as disturbed if others
    /// used the machine in that run and all that was due was sent. A load that the system did
    /// not carry counts too ([`Verdict::is_overloaded`]). Every other reason means that the run
    /// did different work.
    pub fn compares(&self, figures: FigureGroup) -> bool {
        let is_noisy = self.reasons.iter().any(|finding| finding.reason == Reason::NoisyMachine);
        let work = [FigureGroup::Counts, FigureGroup::Rates];
        self.reasons.iter().filter(|finding| finding.figures.contains(&figures)).all(|finding| match finding.reason {
            Reason::NoisyMachine => true,
            Reason::NotSteady if finding.overload => figures != FigureGroup::Cost,
            Reason::GeneratorSaturated | Reason::NotSteady => {
                is_noisy && !work.iter().any(|group| finding.figures.contains(group))
            }
            _ => false,
        })
    }

    /// True if these figures are at least as bad as measured, because the system did not carry
    /// its load: they can show that it is worse than another, and nothing else.
    pub fn is_overloaded(&self, figures: FigureGroup) -> bool {
        self.reasons.iter().any(|finding| finding.overload && finding.figures.contains(&figures))
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
            overload: false,
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
