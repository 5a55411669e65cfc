//! What a verdict is made of.

use pubmark_model::record::{Component, FigureGroup, Finding, Note, Reason, Verdict};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};

/// A time with three digits and a fitting unit.
pub fn words(ns: Ns) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..MILLISECOND => format!("{:.3} µs", ns as f64 / 1e3),
        MILLISECOND..SECOND => format!("{:.3} ms", ns as f64 / 1e6),
        _ => format!("{:.3} s", ns as f64 / 1e9),
    }
}

/// What was found, in words, and the figures that it touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What was found.
    pub evidence: String,
    /// What it touches.
    pub figures: Vec<FigureGroup>,
}

impl Found {
    /// Something that touches these figures.
    pub fn of(figures: &[FigureGroup], evidence: String) -> Found {
        let mut figures = figures.to_vec();
        figures.sort_unstable();
        figures.dedup();
        Found { evidence, figures }
    }

    /// The same, where it touches any.
    pub fn if_any(figures: Vec<FigureGroup>, evidence: String) -> Option<Found> {
        (!figures.is_empty()).then(|| Found::of(&figures, evidence))
    }

    /// Something that touches all of them.
    pub fn all(evidence: String) -> Found {
        Found::of(FigureGroup::ALL, evidence)
    }

    /// Whether it touches these.
    pub fn touches(&self, figures: FigureGroup) -> bool {
        self.figures.contains(&figures)
    }
}

/// What is found, sorted into what speaks against the run and what does not.
pub struct Judge {
    /// What has been found so far.
    pub verdict: Verdict,
    /// The part that is under test.
    pub part: Component,
    /// Whether faults were asked for: what they bring about is the run's result.
    pub asked: bool,
    /// The part to which they happened.
    pub affected: Component,
    /// Whether there are latencies that could be touched: none at `max`, but for
    /// one request after the other.
    pub latencies: bool,
    /// Whether messages were lost at `max`, where how many arrive hangs on the
    /// pace as the throughput does.
    pub outpaced: bool,
}

impl Judge {
    /// Whatever was asked for, this speaks against the run, if it touches a
    /// figure that the run has.
    pub fn against(&mut self, reason: Reason, found: impl IntoIterator<Item = Found>) {
        for Found { evidence, mut figures } in found {
            figures.retain(|figure| self.latencies || !FigureGroup::LATENCY.contains(figure));
            if self.outpaced && figures.contains(&FigureGroup::Rates) && !figures.contains(&FigureGroup::Counts) {
                figures.insert(0, FigureGroup::Counts);
            }
            if !figures.is_empty() {
                self.verdict.reasons.push(Finding { reason, evidence, figures });
            }
        }
    }

    /// This too, unless faults were asked for.
    pub fn result(&mut self, reason: Reason, found: Option<Found>) {
        match self.asked {
            true => self.note(self.affected, found.map(|found| found.evidence)),
            false => self.against(reason, found),
        }
    }

    /// This is noted, and speaks not against the run.
    pub fn note(&mut self, part: Component, evidence: impl IntoIterator<Item = String>) {
        self.verdict.notes.extend(evidence.into_iter().map(|evidence| Note { part, evidence }));
    }
}
