//! Result of a comparison: by cell, by figure, and in total.

use super::difference::EnvironmentDifference;
use super::figure::{sign, signed_percent};
use super::gate::{GateOutcome, GateResult};
use crate::figures::shown;
use crate::words::OPEN;
use pubmark_model::figure::Figure;
use pubmark_stats::{Estimate, Interval, RunOrder, Scale};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;

/// Two results, compared.
#[derive(Serialize, Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Number of comparisons by outcome.
    pub tally: ChangeCounts,
    /// The cells that both have, in A's order.
    pub same: Vec<CellChange>,
    /// Labels of the cells that only A has.
    pub only_a: Vec<String>,
    /// Labels of the cells that only B has.
    pub only_b: Vec<String>,
    /// Other differences: machine, versions, settings. They may be the cause of a change.
    pub environment: Vec<EnvironmentDifference>,
    /// Order in which the runs of both were made.
    pub order: RunOrder,
    /// Results of the gates.
    pub gates: Vec<GateResult>,
}

/// A cell and what has changed in it.
#[derive(Serialize, Clone, Debug, PartialEq)]
pub struct CellChange {
    /// Its place on each axis, by name.
    pub axes: Map<String, Value>,
    /// The place in words, cleaned and of limited length.
    pub label: String,
    /// True if messages are sent as fast as possible (`rate = "max"`).
    pub unthrottled: bool,
    /// Its figures.
    pub changes: Vec<FigureChange>,
}

/// Change of a figure of a cell.
#[derive(Serialize, Clone, Debug, PartialEq)]
pub struct FigureChange {
    /// The figure; in JSON its column of `summary.csv`.
    pub column: Figure,
    /// A typical run of A, in the figure's unit: the median over the runs that
    /// count for it. `None` where there is none.
    pub a: Option<Estimate>,
    /// The same for B.
    pub b: Option<Estimate>,
    /// Valid runs of A that have the figure.
    pub runs_a: usize,
    /// The same for B.
    pub runs_b: usize,
    /// B / A, where all values are above 0; its 95 % interval is of this
    /// comparison alone.
    pub ratio: Option<Estimate>,
    /// B − A, where a value is not above 0.
    pub difference: Option<Estimate>,
    /// The probability of such a change where there is none, adjusted for all
    /// the comparisons of its family.
    pub p: Option<f64>,
    /// The smallest rise that would have been found in 80 of 100 cases among
    /// all the comparisons of its family: as `ratio`, or as `difference`.
    pub smallest: Option<f64>,
    /// True if a gate covers it.
    pub gated: bool,
    /// Outcome of the comparison.
    pub outcome: ChangeOutcome,
    /// Why nothing may be said; empty where something may.
    pub why: String,
    /// The comparison itself.
    #[serde(skip)]
    pub(super) found: Option<pubmark_stats::Change>,
    /// True if its latencies begin and end on two clocks. The interval of the change contains their
    /// possible error.
    #[serde(skip)]
    pub(super) may_be_clocks: bool,
}

/// Outcome of a comparison of A and B.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ChangeOutcome {
    /// Beyond the noise, and to the good.
    Better,
    /// Beyond the noise, and to the bad.
    Worse,
    /// Beyond the noise, of a figure of which neither way is better.
    Differs,
    /// Within the noise.
    NoDifference,
    /// Nothing.
    Undecided,
}

/// Number of comparisons by outcome.
#[derive(Serialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCounts {
    /// Changes for the worse.
    pub worse: usize,
    /// Changes for the better.
    pub better: usize,
    /// Changed, and neither way is better.
    pub differ: usize,
    /// Within the noise.
    pub no_difference: usize,
    /// Open comparisons.
    pub undecided: usize,
}

impl fmt::Display for ChangeOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ChangeOutcome::Better => "better",
            ChangeOutcome::Worse => "worse",
            ChangeOutcome::Differs => "differs",
            ChangeOutcome::NoDifference => "no difference",
            ChangeOutcome::Undecided => OPEN,
        })
    }
}

impl fmt::Display for ChangeCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} worse, {} better, ", self.worse, self.better)?;
        if self.differ > 0 {
            write!(f, "{} otherwise different, ", self.differ)?;
        }
        write!(f, "{} no difference, {} {OPEN}", self.no_difference, self.undecided)
    }
}

impl FigureChange {
    /// The change in per cent of A; infinite where A is 0 and B is not.
    pub fn percent(&self) -> Option<f64> {
        let (a, b) = (self.a?.value, self.b?.value);
        Some(match (self.ratio, b - a) {
            (Some(ratio), _) => (ratio.value - 1.0) * 100.0,
            (None, 0.0) => 0.0,
            (None, difference) => difference / a.abs() * 100.0,
        })
    }

    /// The 95 % interval of the change, on its scale.
    pub fn interval_of_change(&self) -> Option<Interval> {
        self.ratio.or(self.difference)?.interval
    }

    /// On which scale it was compared; `None` where it was not.
    pub fn scale(&self) -> Option<Scale> {
        match (self.ratio, self.difference) {
            (Some(_), _) => Some(Scale::Ratio),
            (None, Some(_)) => Some(Scale::Difference),
            (None, None) => None,
        }
    }
}

impl Comparison {
    /// The worst that became of any gate; passed where there is none.
    pub fn gates_say(&self) -> GateOutcome {
        let outcomes = self.gates.iter().map(|gate| gate.outcome);
        outcomes.max_by_key(|outcome| *outcome as u8).unwrap_or(GateOutcome::Passed)
    }
}

/// The ends of a change's interval; where it is a difference, in per cent of A
/// if that is above 0.
pub(super) fn range(change: &FigureChange, interval: Interval) -> String {
    let percent = |value: f64| match (change.scale(), change.a) {
        (Some(Scale::Ratio), _) => Some((value - 1.0) * 100.0),
        (_, Some(a)) if a.value > 0.0 => Some(value / a.value * 100.0),
        _ => None,
    };
    match percent(interval.lo).zip(percent(interval.hi)) {
        Some((lo, hi)) => format!("{} … {}", signed_percent(lo), signed_percent(hi)),
        None => {
            let amount = |value: f64| match shown(change.column, value.abs()) {
                nothing if value == 0.0 => nothing,
                size => format!("{}{size}", sign(value)),
            };
            format!("{} … {}", amount(interval.lo), amount(interval.hi))
        }
    }
}
