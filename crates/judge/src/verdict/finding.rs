//! Building blocks of a verdict.

use pubmark_model::record::{Component, FigureGroup, Finding, Note, Reason, Verdict};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};

/// Formats a time with three digits and a suitable unit.
pub fn words(ns: Ns) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..MILLISECOND => format!("{:.3} µs", ns as f64 / 1e3),
        MILLISECOND..SECOND => format!("{:.3} ms", ns as f64 / 1e6),
        _ => format!("{:.3} s", ns as f64 / 1e9),
    }
}

/// A finding with the figures that it affects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureFinding {
    /// Description of the finding.
    pub evidence: String,
    /// Figures that it affects.
    pub figures: Vec<FigureGroup>,
    /// True if the system did not carry its load.
    pub overload: bool,
}

impl FigureFinding {
    /// Returns a finding that affects these figures.
    pub fn of(figures: &[FigureGroup], evidence: String) -> FigureFinding {
        let mut figures = figures.to_vec();
        figures.sort_unstable();
        figures.dedup();
        FigureFinding { evidence, figures, overload: false }
    }

    /// Returns a finding, or `None` if it affects no figure.
    pub fn if_any(figures: Vec<FigureGroup>, evidence: String) -> Option<FigureFinding> {
        (!figures.is_empty()).then(|| FigureFinding::of(&figures, evidence))
    }

    /// Returns a finding that affects all figures.
    pub fn all(evidence: String) -> FigureFinding {
        FigureFinding::of(FigureGroup::ALL, evidence)
    }

    /// Returns whether it affects this figure group.
    pub fn touches(&self, figures: FigureGroup) -> bool {
        self.figures.contains(&figures)
    }
}

/// Collects findings, as reasons against the run or as notes.
pub struct Judge {
    /// Verdict so far.
    pub verdict: Verdict,
    /// The part under test.
    pub part: Component,
    /// True if faults were requested: their effects are the run's result.
    pub asked: bool,
    /// The part that the faults affected.
    pub affected: Component,
    /// True if there are latencies that can be affected: at `max` only with one request after the other.
    pub latencies: bool,
    /// True if messages were lost at `max`, where the number of arrivals depends on the pace as the throughput does.
    pub outpaced: bool,
}

impl Judge {
    /// Adds a reason against the run, with or without requested faults, if it affects a figure that the run has.
    pub fn against(&mut self, reason: Reason, found: impl IntoIterator<Item = FigureFinding>) {
        for FigureFinding { evidence, mut figures, overload } in found {
            figures.retain(|figure| self.latencies || !FigureGroup::LATENCY.contains(figure));
            if self.outpaced && figures.contains(&FigureGroup::Rates) && !figures.contains(&FigureGroup::Counts) {
                figures.insert(0, FigureGroup::Counts);
            }
            if !figures.is_empty() {
                self.verdict.reasons.push(Finding { reason, evidence, figures, overload });
            }
        }
    }

    /// Adds a reason against the run, or a note if faults were requested.
    pub fn result(&mut self, reason: Reason, found: Option<FigureFinding>) {
        match self.asked {
            true => self.note(self.affected, found.map(|found| found.evidence)),
            false => self.against(reason, found),
        }
    }

    /// Adds a note, which does not count against the run.
    pub fn note(&mut self, part: Component, evidence: impl IntoIterator<Item = String>) {
        self.verdict.notes.extend(evidence.into_iter().map(|evidence| Note { part, evidence }));
    }
}
