//! Quantities along an axis: growth, peaks, slopes, fixed costs and crossings.

use super::leaf::Leaf;
use super::{Evaluation, Found, Gap};
use crate::claims::amount::{Amount, Ends};
use crate::claims::words::{amount, label_of};
use crate::figures::Observation;
use pubmark_model::claim::{AxisSummary, Dimension, NamedPlaces, Operator};
use pubmark_model::figure::Figure;
use pubmark_model::setting::as_typed;
use pubmark_model::units::parse_time;
use serde_json::{Map, Value};

impl Evaluation<'_> {
    /// Returns the cells with their values on an axis in base units, ascending.
    pub(super) fn places(&self, axis: &str, at: &NamedPlaces, point: &Map<String, Value>) -> Found<Vec<(f64, usize)>> {
        let cells = self.cells_at(Leaf { at, over: Some(axis), all_systems: false }, point)?;
        let place = |cell| Some((self.cell(cell).cell.axes.get(axis).and_then(on_axis)?, cell));
        let mut places: Vec<(f64, usize)> = cells.into_iter().filter_map(place).collect();
        places.sort_by(|one, other| one.0.total_cmp(&other.0));
        Ok(places)
    }

    /// Returns the same where there is one cell for each value, and two values or more.
    pub(super) fn along_axis(
        &self,
        axis: &str,
        at: &NamedPlaces,
        point: &Map<String, Value>,
    ) -> Found<Vec<(f64, usize)>> {
        let places = self.places(axis, at, point)?;
        if places.windows(2).any(|two| two[0].0 == two[1].0) {
            let why = format!("{} is several cells along {axis}: name a place on each other axis", label_of(at));
            return Err(Gap::untested(why));
        }
        if places.len() < 2 {
            return Err(Gap::untested(format!("{} was run at fewer than two values of {axis}", label_of(at))));
        }
        Ok(places)
    }

    pub(super) fn along(
        &self,
        along: AxisSummary,
        figure: Figure,
        axis: &str,
        at: &NamedPlaces,
        point: &Map<String, Value>,
    ) -> Found<Amount> {
        let places = self.along_axis(axis, at, point)?;
        let read = |(place, cell): &(f64, usize)| Ok((*place, self.reading(figure, *cell)?));
        let nothing = || Gap { is_open: true, why: "its values are not numbers".into(), cells: Vec::new() };
        if along == AxisSummary::Growth {
            let ((_, least), (_, most)) = (read(&places[0])?, read(&places[places.len() - 1])?);
            return most.with(Operator::Divide, least).ok_or_else(nothing);
        }
        let read: Vec<(f64, Amount)> = places.iter().map(read).collect::<Found<_>>()?;
        let mut by_repeat: Vec<(f64, &[Observation])> = Vec::new();
        let mut bounded = Ends::default();
        for (place, amount) in &read {
            let Amount::Runs { values, ends } = amount else { return Err(nothing()) };
            bounded = bounded.and(*ends);
            by_repeat.push((*place, values));
        }
        let repeats = by_repeat[0].1.iter().map(|one| one.repeat);
        let of = |values: &[Observation], repeat| values.iter().find(|one| one.repeat == repeat).copied();
        let values = repeats.filter_map(|repeat| {
            let each: Option<Vec<(f64, Observation)>> =
                by_repeat.iter().map(|(place, values)| Some((*place, of(values, repeat)?))).collect();
            folded(along, &each?)
        });
        let values: Vec<Observation> = values.collect();
        if values.is_empty() {
            let why = format!("{} has no repeat that is reliable at each value of {axis}", label_of(at));
            return Err(Gap { is_open: true, why, cells: places.iter().map(|(_, cell)| *cell).collect() });
        }
        // A bound on one value bounds a line on neither side.
        let ends = match along {
            AxisSummary::Slope | AxisSummary::Fixed if bounded != Ends::default() => {
                Ends { may_be_more: true, may_be_less: true }
            }
            _ => bounded,
        };
        Ok(Amount::Runs { values, ends })
    }

    pub(super) fn crossing(
        &self,
        figure: Figure,
        [first, second]: &[String; 2],
        axis: &str,
        at: &NamedPlaces,
        point: &Map<String, Value>,
    ) -> Found<Amount> {
        let places = self.along_axis(axis, &at.of_system(first), point)?;
        self.along_axis(axis, &at.of_system(second), point)?;
        // 1 where the first is better, -1 where the second is, 0 where neither is shown.
        let mut better: Vec<(f64, i8)> = Vec::new();
        let mut unknown = Vec::new();
        for (place, cell) in &places {
            let here = self.evidence.points.iter().find(|point| point.members.contains(cell));
            let Some((here, ranks)) = here.and_then(|here| Some((here, here.by(figure)?))) else { continue };
            let members = here.members.iter().map(|index| (self.cell(*index), *index));
            let Some((_, other)) = members.clone().find(|(result, _)| result.cell.system.name == *second) else {
                continue;
            };
            let shown = i8::from(ranks.beats(first, second)) - i8::from(ranks.beats(second, first));
            if shown == 0 && ranks.is_open(first, second) {
                unknown.extend([*cell, other]);
            }
            better.push((*place, shown));
        }
        let shown = |place: f64| amount(&Amount::Exact(place), Dimension::of_axis(axis));
        let of = |wanted: i8| better.iter().filter(move |(_, shown)| *shown == wanted).map(|(place, _)| *place);
        let (last, next) = (of(1).next_back(), of(-1).next());
        let ends = format!("{} to {}", shown(places[0].0), shown(places[places.len() - 1].0));
        match (last, next) {
            (Some(last), Some(next)) if last < next => Ok(Amount::Between { value: next, lo: last, hi: next }),
            (Some(last), Some(next)) => Ok(Amount::Never(format!(
                "{second} is better at {} and {first} at {}: no crossing from {first} to {second}",
                shown(next),
                shown(last)
            ))),
            (Some(_), None) if unknown.is_empty() => {
                Ok(Amount::Never(format!("{second} is better at no value of {axis} ({ends}): no crossing")))
            }
            (None, Some(_)) if unknown.is_empty() => {
                Ok(Amount::Never(format!("{first} is better at no value of {axis} ({ends}): no crossing")))
            }
            _ => Err(Gap {
                is_open: true,
                why: format!("where {first} and {second} cross along {axis} is not shown ({ends})"),
                cells: unknown,
            }),
        }
    }
}

/// A place on an axis as a number in base units.
fn on_axis(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| parse_time(&as_typed(value)).ok().map(|ns| ns as f64 * 1e-9))
}

/// The values along an axis of one repeat, made one.
fn folded(along: AxisSummary, each: &[(f64, Observation)]) -> Option<Observation> {
    let (_, first) = each.first()?;
    let most = |of: fn(&Observation) -> f64| each.iter().map(|(_, one)| of(one)).fold(0.0, f64::max);
    let of = |value: f64, share: f64| Observation {
        value,
        step: most(|one| one.step) * share,
        clock: most(|one| one.clock) * share,
        ..*first
    };
    if along == AxisSummary::Peak {
        return Some(of(each.iter().map(|(_, one)| one.value).fold(f64::NEG_INFINITY, f64::max), 1.0));
    }
    let n = each.len() as f64;
    let middle = each.iter().map(|(place, _)| place).sum::<f64>() / n;
    let mean = each.iter().map(|(_, one)| one.value).sum::<f64>() / n;
    let squares: f64 = each.iter().map(|(place, _)| (place - middle).powi(2)).sum();
    let slope = each.iter().map(|(place, one)| (place - middle) * (one.value - mean)).sum::<f64>() / squares;
    let found = match along {
        // A step at the far end moves the line by so much.
        AxisSummary::Slope => of(slope, 1.0 / squares.sqrt()),
        _ => of(mean - slope * middle, 1.0),
    };
    found.value.is_finite().then_some(found)
}
