//! The figures of a cell: what is measured, computed over its runs.

use crate::text;
use pubmark_model::figure::{Figure, Unit};
use pubmark_model::record::{CLOCK_SHARE, FigureGroup, Finding, Reason, RunRecord};
use pubmark_stats::{Estimate, Interval, Runs, typical_run};

mod clock;
mod reading;

pub(crate) use clock::ClockBlur;
pub use reading::Observation;
pub(crate) use reading::RESOLUTION;

/// A difference in proportion that is one of computing.
const ROUNDING: f64 = 1e-12;

/// The figures of one cell; those that could not be measured are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellFigures {
    /// By figure.
    values: Vec<Value>,
    /// True if a loop of the generator was at its limit in a run of the delivered rate.
    is_lower_bound: bool,
    /// True if a run had not caught up with a fault when its window ended.
    is_behind: bool,
    /// Sign of the multiple of the floor's delivered rate.
    over_floor: Sign,
}

/// Values of one figure over the runs of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
struct Value {
    estimate: Option<Estimate>,
    readings: Vec<Observation>,
    is_quotable: bool,
    /// Values of the runs that can be compared, if they differ from `readings`.
    compared: Option<Vec<Observation>>,
    /// True if the system did not carry its load in one of these.
    is_overloaded: bool,
    /// Multiple of the floor's value.
    over_floor: Option<Estimate>,
}

/// Meaning of a figure's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sign {
    /// The exact value.
    #[default]
    Equal,
    /// The system reaches at least so much: a loop of the generator was at its
    /// limit; or it takes at least so long: the window ended before.
    AtLeast,
    /// At most so much, as what it is a multiple of is at least what it is.
    AtMost,
}

impl CellFigures {
    /// The figure with its interval, if it was measured: over the runs that may
    /// be quoted for it or, where there are none, over those that may not.
    pub fn get(&self, column: Figure) -> Option<Estimate> {
        self.value(column).and_then(|value| value.estimate)
    }

    /// The same, where it may be quoted.
    pub fn quotable(&self, column: Figure) -> Option<Estimate> {
        self.get(column).filter(|_| self.may_be_quoted(column))
    }

    /// True if a run's verdict allows the figure.
    pub fn may_be_quoted(&self, column: Figure) -> bool {
        self.value(column).is_some_and(|value| value.is_quotable)
    }

    /// Returns the values of the runs in which the figure is reliable, without runs that lack it.
    /// Empty for figures that no single run has.
    pub fn each(&self, column: Figure) -> &[Observation] {
        match self.value(column) {
            Some(value) if value.is_quotable => &value.readings,
            _ => &[],
        }
    }

    /// Returns what each run says of the figure that may be compared with others of its
    /// repeat ([`pubmark_model::record::Verdict::compares`]): those that may be quoted
    /// and those that other users of the machine disturbed.
    pub fn comparable(&self, column: Figure) -> &[Observation] {
        match self.value(column) {
            Some(Value { compared: Some(compared), .. }) => compared,
            _ => self.each(column),
        }
    }

    /// Returns whether disturbed runs are among [`CellFigures::comparable`].
    pub fn is_disturbed(&self, column: Figure) -> bool {
        self.value(column).is_some_and(|value| value.compared.is_some())
    }

    /// Returns whether the system did not carry its load in one of [`CellFigures::comparable`].
    pub fn is_overloaded(&self, column: Figure) -> bool {
        self.value(column).is_some_and(|value| value.is_overloaded)
    }

    /// Returns the largest error that clocks may cause in the figure, in its unit; `None` if one
    /// clock measured each run.
    pub fn clock_bound(&self, column: Figure) -> Option<f64> {
        Some(ClockBlur::of(self.shown(column)).amount).filter(|bound| *bound > 0.0)
    }

    /// Returns the sign of a figure: at `max`, a rate may be a lower bound, and so may the time to
    /// catch up with a fault.
    pub fn sign(&self, column: Figure) -> Sign {
        match column {
            Figure::DELIVERED | Figure::DELIVERED_BYTES if self.is_lower_bound => Sign::AtLeast,
            Figure::CAUGHT_UP if self.is_behind => Sign::AtLeast,
            Figure::FLOOR_DELIVERED => self.over_floor,
            _ => Sign::Equal,
        }
    }

    fn value(&self, column: Figure) -> Option<&Value> {
        self.values.get(column.index())
    }

    /// Returns the values of all runs, reliable or not.
    pub(crate) fn shown(&self, column: Figure) -> &[Observation] {
        self.value(column).map_or(&[], |value| &value.readings)
    }

    /// The figure as a multiple of the floor's in the same block.
    pub fn over_floor(&self, column: Figure) -> Option<Estimate> {
        self.value(column).and_then(|value| value.over_floor)
    }

    pub(crate) fn set_over_floor(&mut self, column: Figure, multiple: Option<Estimate>, sign: Sign) {
        let place = match column {
            Figure::LATENCY_P50 => Some(Figure::FLOOR_LATENCY),
            Figure::DELIVERED => Some(Figure::FLOOR_DELIVERED),
            _ => None,
        };
        let is_quotable = self.may_be_quoted(column);
        if let Some(value) = self.values.get_mut(column.index()) {
            value.over_floor = multiple;
        }
        if let Some(value) = place.and_then(|place| self.values.get_mut(place.index())) {
            (value.estimate, value.is_quotable) = (multiple, is_quotable);
        }
        if column == Figure::DELIVERED {
            self.over_floor = sign;
        }
    }

    /// Sets a figure that is made of others.
    pub(crate) fn derive(&mut self, column: Figure, readings: Vec<Observation>, is_quotable: bool) {
        if let Some(value) = self.values.get_mut(column.index()) {
            let estimate = typical(column, &readings);
            *value = Value { estimate, readings, is_quotable, ..Value::default() };
        }
    }

    /// The figures over these runs, all of one cell and all made: each over
    /// those whose verdict allows it or, where there are none, over all.
    pub(crate) fn of(made: &[&RunRecord]) -> CellFigures {
        let values = Figure::all().map(|figure| Value::of(figure, made));
        let of_rates = counted(made, FigureGroup::Rates).0.into_iter();
        let of_rates = of_rates.chain(made.iter().copied().filter(|run| compares(run, FigureGroup::Rates)));
        let is_lower_bound = of_rates.into_iter().any(|run| run.rates.lower_bound);
        let behind = |run: &&RunRecord| {
            run.recovery.is_some_and(|cost| cost.watched_ns.is_some() && cost.caught_up_after_ns.is_none())
        };
        let is_behind = counted(made, Figure::CAUGHT_UP.group()).0.iter().any(behind);
        CellFigures { values: values.collect(), is_lower_bound, is_behind, over_floor: Sign::Equal }
    }
}

impl Value {
    fn of(column: Figure, made: &[&RunRecord]) -> Value {
        let (runs, mut is_quotable) = counted(made, column.group());
        let mut readings: Vec<Observation> = runs.iter().filter_map(|run| Observation::of(column, run)).collect();
        // A verdict speaks for the median and the 99th percentile: what lies below
        // them falls sooner.
        let is_sure = |reading: &Observation| reading.clock <= CLOCK_SHARE * reading.value;
        if is_quotable && readings.iter().any(|reading| !is_sure(reading)) {
            is_quotable = readings.iter().any(is_sure);
            readings.retain(|reading| !is_quotable || is_sure(reading));
        }
        // There are fifty a cell, and cells by the thousand.
        readings.shrink_to_fit();
        let group = column.group();
        let compared = made.iter().any(|run| compares(run, group) && !allows(run, group)).then(|| {
            let compared = made.iter().filter(|run| compares(run, group));
            let compared = compared.filter_map(|run| Observation::of(column, run)).filter(is_sure);
            compared.collect()
        });
        let overloads = |run: &&RunRecord| compares(run, group) && run.verdict.is_overloaded(group);
        let is_overloaded = compared.is_some() && made.iter().any(overloads);
        let estimate = typical(column, &readings);
        Value { estimate, readings, is_quotable, compared, is_overloaded, over_floor: None }
    }
}

/// True if these figures of a run are reliable.
pub(crate) fn allows(run: &RunRecord, group: FigureGroup) -> bool {
    let verdict = &run.verdict;
    run.error.is_none() && (verdict.valid || (!verdict.reasons.is_empty() && verdict.allows(group)))
}

/// Returns what makes the counts of a run unreliable. Losses, duplicates and the like do not: they are what is counted.
pub(crate) fn against_counts(run: &RunRecord) -> impl Iterator<Item = &Finding> {
    const COUNTED: [Reason; 4] = [Reason::MessagesLost, Reason::Duplicates, Reason::Reordered, Reason::Corrupted];
    let reasons = run.verdict.reasons.iter();
    reasons.filter(|found| found.figures.contains(&FigureGroup::Counts) && !COUNTED.contains(&found.reason))
}

/// Returns whether a run may be compared with others of its repeat by these figures.
pub(crate) fn compares(run: &RunRecord, group: FigureGroup) -> bool {
    let verdict = &run.verdict;
    run.error.is_none() && (verdict.valid || (!verdict.reasons.is_empty() && verdict.compares(group)))
}

/// Returns what a run says of a figure, where it may be compared.
pub(crate) fn comparable(column: Figure, run: &RunRecord) -> Option<Observation> {
    Observation::of(column, run).filter(|_| compares(run, column.group()))
}

/// Returns the value of a figure in a run, whatever its verdict.
pub(crate) fn observed(column: Figure, run: &RunRecord) -> Option<Observation> {
    Observation::of(column, run)
}

/// Returns the value of a figure in a run if its verdict allows it.
pub(crate) fn quoted(column: Figure, run: &RunRecord) -> Option<Observation> {
    Observation::of(column, run).filter(|_| allows(run, column.group()))
}

/// The runs that figures of this group are of, and whether they may be quoted.
pub(crate) fn counted<'a>(made: &[&'a RunRecord], group: FigureGroup) -> (Vec<&'a RunRecord>, bool) {
    let allowed: Vec<&RunRecord> = made.iter().copied().filter(|run| allows(run, group)).collect();
    match allowed.is_empty() {
        true => (made.to_vec(), false),
        false => (allowed, true),
    }
}

/// A value of a figure with its unit, as tables show it.
pub(crate) fn shown(figure: Figure, value: f64) -> String {
    match figure.unit() {
        Unit::Ns => text::time(value),
        Unit::PerS => format!("{}/s", text::count(value)),
        Unit::BytesPerS => format!("{}/s", text::bytes(value)),
        Unit::Bytes => text::bytes(value),
        Unit::Share => text::percent(value),
        Unit::Count => text::count(value),
        Unit::PerMessage | Unit::Cores | Unit::Multiple => text::number(value),
    }
}

/// True for counts of messages, which have no error of a clock or sample: all their noise is
/// between runs.
pub(crate) fn is_counted(figure: Figure) -> bool {
    matches!(figure.group(), FigureGroup::Counts | FigureGroup::Rates) || figure == Figure::LATE
}

/// The median over the runs with its 95 % interval, no further than the figure
/// can reach.
pub(crate) fn typical(column: Figure, readings: &[Observation]) -> Option<Estimate> {
    let values: Vec<f64> = readings.iter().map(|reading| reading.value).collect();
    let step = match is_counted(column) {
        true => 0.0,
        false => readings.iter().map(|reading| reading.step).fold(0.0, f64::max),
    };
    if column == Figure::CLOCK_BOUND {
        let largest = values.into_iter().reduce(f64::max)?;
        return Some(Estimate { value: largest, interval: None });
    }
    let Estimate { value, interval } = typical_run(Runs { values: &values, step })?;
    let most = if column == Figure::DELIVERED_RATIO { 1.0 } else { f64::INFINITY };
    // For equal values, the logarithm and its inverse leave a rounding error.
    let end = |end: f64| if (end - value).abs() <= value.abs() * ROUNDING { value } else { end };
    let within = |Interval { lo, hi }| Interval { lo: end(lo.max(0.0).min(value)), hi: end(hi.min(most).max(value)) };
    Some(Estimate { value, interval: interval.map(within) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_ends_where_the_figure_does() {
        let readings = |values: &[f64]| -> Vec<Observation> {
            let each = values.iter().zip(1..);
            each.map(|(value, repeat)| Observation { value: *value, step: 0.0, clock: 0.0, repeat, session: 1 })
                .collect()
        };
        let interval = |column, values: &[f64]| typical(column, &readings(values)).and_then(|found| found.interval);
        assert_eq!(interval(Figure::DELIVERED_RATIO, &[0.8, 1.0]).map(|found| found.hi), Some(1.0));
        assert_eq!(interval(Figure::LOST, &[0.0, 7.0]).map(|found| found.lo), Some(0.0));
        assert_eq!(interval(Figure::LOST, &[0.0, 0.0]), Some(Interval { lo: 0.0, hi: 0.0 }));
    }
}
