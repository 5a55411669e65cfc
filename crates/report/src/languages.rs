//! Cost of a binding beyond the floor of its language, and compared with a baseline.

use crate::analysis::{CellResult, Status, in_blocks, point_key, within_blocks};
use crate::figures::{Observation, typical};
use crate::floor::FLOOR;
use pubmark_model::cell::Cell;
use pubmark_model::figure::Figure;
use pubmark_model::workload::Rate;
use std::collections::HashMap;

/// Adds the time of a message to each cell and, of the same block, what of it is
/// the floor of the language, what the binding, and how it compares with the
/// baseline. A study that has neither floors nor a baseline is left as it is.
pub(crate) fn relate(cells: &mut [CellResult], baseline: Option<&str>) {
    if baseline.is_none() && cells.iter().all(|result| result.floor.is_none()) {
        return;
    }
    for result in cells.iter_mut() {
        let (readings, is_quotable) = message_time(result);
        result.figures.derive(Figure::MESSAGE_TIME, readings, is_quotable);
    }
    let times = |result: &CellResult| result.figures.each(Figure::MESSAGE_TIME).to_vec();
    let quotable = || cells.iter().filter(|result| result.quotable(Figure::MESSAGE_TIME).is_some());
    let floors: HashMap<(String, String), Vec<Observation>> =
        quotable().map(|result| ((result.cell.system.name.clone(), work(&result.cell)), times(result))).collect();
    let baselines: HashMap<String, Vec<Observation>> = quotable()
        .filter(|result| baseline == Some(result.cell.system.name.as_str()))
        .map(|result| (point_key(&result.cell), times(result)))
        .collect();
    for result in cells.iter_mut() {
        let is_quotable = result.figures.may_be_quoted(Figure::MESSAGE_TIME);
        let own = result.figures.shown(Figure::MESSAGE_TIME).to_vec();
        let floor = result.floor.as_ref().and_then(|floor| floors.get(&(floor.clone(), work(&result.cell))));
        if let Some(floor) = floor {
            result.figures.derive(Figure::BINDING, beyond(&own, floor), is_quotable);
            result.figures.derive(Figure::LANGUAGE_FLOOR, floor.clone(), true);
        }
        if let Some(baseline) = baselines.get(&point_key(&result.cell)) {
            result.figures.derive(Figure::OVER_BASELINE, within_blocks(&own, baseline), is_quotable);
        }
    }
}

/// Returns the difference from the floor in each repeat; empty if the floor scatters by more, or
/// lies above.
fn beyond(own: &[Observation], floor: &[Observation]) -> Vec<Observation> {
    let beyond: Vec<Observation> = in_blocks(own, floor).map(|(own, floor)| own.less(floor)).collect();
    let scatter = typical(Figure::LANGUAGE_FLOOR, floor).and_then(|floor| floor.interval);
    let scatter = scatter.map_or(0.0, |interval| (interval.hi - interval.lo) / 2.0);
    let shown = typical(Figure::BINDING, &beyond).is_some_and(|beyond| beyond.value > scatter);
    if shown { beyond } else { Vec::new() }
}

/// Returns the time per message by run, ns, and whether it is reliable.
fn message_time(result: &CellResult) -> (Vec<Observation>, bool) {
    let workload = &result.cell.workload;
    let read = |column, change: &dyn Fn(f64) -> f64| {
        let readings = result.figures.shown(column).iter().filter(|reading| reading.value > 0.0);
        (readings.map(|reading| reading.scaled(change)).collect(), result.figures.may_be_quoted(column))
    };
    match (workload.pattern.round_trip(), workload.rate == Rate::Max) {
        (true, _) => read(Figure::LATENCY_P50, &|ns| ns / 2.0),
        (false, false) => read(Figure::LATENCY_P50, &|ns| ns),
        (false, true) => read(Figure::DELIVERED, &|per_s| 1e9 / per_s),
    }
}

/// By cell: those beside which its figures are shown, within each block, and which nobody
/// asks about: the floor of its point, and that of its language.
pub(crate) fn beside(cells: &[CellResult]) -> Vec<Vec<usize>> {
    let measured = || cells.iter().enumerate().filter(|(_, result)| result.status != Status::Skipped);
    let floors: HashMap<String, usize> = measured()
        .filter(|(_, result)| result.cell.system.name == FLOOR)
        .map(|(index, result)| (point_key(&result.cell), index))
        .collect();
    let of_languages: HashMap<(&str, String), usize> = measured()
        .filter(|(_, result)| result.is_reference)
        .map(|(index, result)| ((result.cell.system.name.as_str(), work(&result.cell)), index))
        .collect();
    let of = |result: &CellResult| -> Vec<usize> {
        let floor = floors.get(&point_key(&result.cell)).filter(|_| !result.is_reference);
        let of_language = result.floor.as_deref().and_then(|floor| of_languages.get(&(floor, work(&result.cell))));
        floor.into_iter().chain(of_language).copied().collect()
    };
    cells.iter().map(of).collect()
}

/// Returns the properties that a cell shares with its floor: all but the way in which messages
/// travel.
fn work(cell: &Cell) -> String {
    let work = &cell.workload;
    format!(
        "{} {} {} {:?} {:?} {} {:?} {:?}",
        work.pattern,
        work.publishers,
        work.subscribers,
        work.rate,
        work.arrival,
        work.payload_bytes,
        work.extent,
        work.sizes_text()
    )
}
