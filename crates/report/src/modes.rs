//! Cells whose runs fall into two groups: the median of such runs describes neither.

use crate::analysis::CellResult;
use crate::figures::{Observation, shown};
use crate::points::headline;
use crate::text::number;
use pubmark_model::figure::Figure;
use pubmark_model::workload::Rate;
use pubmark_stats::{Modes, median, modes};

/// Figures that may tell what is different in the other group.
const CLUES: [(Figure, &str); 4] = [
    (Figure::SHARED_PROCESSOR, "how often publisher and subscriber ran on one processor"),
    (Figure::CPU_CORES, "processors used"),
    (Figure::SWITCHES, "context switches a message"),
    (Figure::CPU_PER_MESSAGE, "CPU time a message"),
];

/// A clue is at least this far apart.
const CLUE_FACTOR: f64 = 1.2;

/// Returns that the runs of a cell fall into two groups by the figure that ranks it, and what
/// else differs between these.
pub(crate) fn note(result: &CellResult) -> Option<String> {
    let figure = headline(result.cell.workload.rate == Rate::Max);
    let readings = result.figures.each(figure);
    let values: Vec<f64> = readings.iter().map(|reading| reading.value).collect();
    let step = readings.iter().map(|reading| reading.step).fold(0.0, f64::max);
    let found = modes(&values, step)?;
    let group = |value: f64, runs: &[usize]| format!("{} in {} runs", shown(figure, value), runs.len());
    let clues: Vec<String> =
        CLUES.iter().filter_map(|(clue, name)| differs(result, readings, &found, (*clue, name))).collect();
    let clues = match clues.as_slice() {
        [] => String::new(),
        clues => format!("; the groups also differ in {}", clues.join(", ")),
    };
    Some(format!(
        "its runs have two modes by {}, {} and {}, and the median describes neither{clues}",
        figure.short_name(),
        group(found.lower_median, &found.lower),
        group(found.upper_median, &found.upper)
    ))
}

/// Returns the medians of a clue in both groups, if every run of one lies beyond every run of
/// the other.
fn differs(
    result: &CellResult,
    readings: &[Observation],
    found: &Modes,
    (clue, name): (Figure, &str),
) -> Option<String> {
    let own = result.figures.each(clue);
    let of = |group: &[usize]| -> Option<Vec<f64>> {
        let value = |place: &usize| {
            let repeat = readings.get(*place)?.repeat;
            own.iter().find(|reading| reading.repeat == repeat).map(|reading| reading.value)
        };
        group.iter().map(value).collect()
    };
    let (lower, upper) = (of(&found.lower)?, of(&found.upper)?);
    let ends = |values: &[f64]| {
        (values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(0.0, f64::max))
    };
    let apart = |(_, most): (f64, f64), (least, _): (f64, f64)| least > CLUE_FACTOR * most;
    let (low, high) = (ends(&lower), ends(&upper));
    let value = |value: f64| if clue == Figure::CPU_PER_MESSAGE { shown(clue, value) } else { number(value) };
    (apart(low, high) || apart(high, low))
        .then(|| Some(format!("{name} ({} and {})", value(median(&lower)?), value(median(&upper)?))))?
}
