//! Checks that the window shows a steady state: no trend, and no backlog that grew, was left from before, or rose and
//! fell.

use super::bounds::{BACKLOG_GREW, BACKLOG_LEFT, BACKLOG_P50, BACKLOG_ROSE, TREND_CHANGE, TREND_P};
use super::finding::{FigureFinding, words};
use pubmark_model::record::{FigureGroup, RunRecord};
use pubmark_model::units::{Ns, total};
use pubmark_model::workload::Rate;
use pubmark_stats::{median, trend};

/// Number of messages below which there is no flow.
const MESSAGES_MIN: u64 = 100;
/// Ratio up to which the median latencies of the first and the last slices count as equal.
const SAME: f64 = 1.2;

/// Backlog over the window, in copies.
struct Flow {
    /// Messages due in the window.
    due: u64,
    arrived: u64,
    /// Copies of these that should have arrived.
    copies: f64,
    /// Growth of the backlog (due and not arrived) from the window's start to its end, without lost copies.
    owed: f64,
    /// Highest rise of what was sent and had not arrived above the lowest level before it, within the window.
    rose: f64,
    /// Slice in which the backlog was highest.
    peak: usize,
}

impl Flow {
    fn of(record: &RunRecord) -> Option<Flow> {
        let (counts, series) = (&record.counts, &record.series);
        let (sent, arrived) = (total(series.sent.iter().copied()), total(series.delivered.iter().copied()));
        if sent <= MESSAGES_MIN || counts.sent == 0 {
            return None;
        }
        let each = counts.expected as f64 / counts.sent as f64;
        // The times of losses are unknown: they are spread like the sent messages.
        let kept = each * (1.0 - counts.lost as f64 / (sent as f64 * each)).max(0.0);
        let (mut owed, mut lowest, mut rose, mut peak) = (0.0_f64, 0.0_f64, 0.0, 0);
        for slice in 0..series.sent.len().max(series.delivered.len()) {
            let of = |values: &[u64]| values.get(slice).copied().unwrap_or_default() as f64;
            owed += of(&series.sent) * kept - of(&series.delivered);
            lowest = lowest.min(owed);
            if owed - lowest > rose {
                (rose, peak) = (owed - lowest, slice);
            }
        }
        let (due, copies, owed) = (counts.offered, counts.due_copies(), record.backlog_copies());
        Some(Flow { due, arrived, copies, owed, rose, peak })
    }
}

/// Returns why a backlog makes the state unsteady. `unlimited`: messages go out as fast as they are taken, so that a
/// backlog is normal.
pub fn backlog(record: &RunRecord, unlimited: bool) -> Option<FigureFinding> {
    if unlimited {
        return None;
    }
    let flow = Flow::of(record)?;
    filling(record, &flow)
        .or_else(|| grew(record, &flow))
        .or_else(|| left(record, &flow))
        .or_else(|| rose(record, &flow))
}

/// Finds a latency longer than the warm-up, so that the system was still filling: arrivals take as long at the window's
/// end as at its start.
fn filling(record: &RunRecord, flow: &Flow) -> Option<FigureFinding> {
    let latency_ns = record.times.latency.as_ref()?.p50;
    let warmup_ns = record.workload.warmup_ns;
    let slices: Vec<f64> = slices(record);
    let (first, last) = ends(&slices)?;
    let fills = flow.owed > BACKLOG_GREW * flow.copies && latency_ns > warmup_ns && last <= SAME * first;
    fills.then(|| {
        let evidence = format!(
            "the warm-up of {} is shorter than the latency, {} at the median: {} messages were due in the window, and \
             {} had come by its end",
            words(warmup_ns),
            words(latency_ns),
            flow.due,
            flow.arrived
        );
        FigureFinding::of(&[FigureGroup::Rates, FigureGroup::Cost], evidence)
    })
}

/// Finds a backlog that grew: more was due than arrived. If latencies rose to the window's end, the system did not
/// carry its load.
fn grew(record: &RunRecord, flow: &Flow) -> Option<FigureFinding> {
    (flow.owed > BACKLOG_GREW * flow.copies).then(|| {
        let evidence =
            format!("a backlog grew: {} arrivals in the window for {} messages due in it", flow.arrived, flow.due);
        let figures = [FigureGroup::Rates, FigureGroup::LatencyP50, FigureGroup::LatencyP99, FigureGroup::Cost];
        FigureFinding { overload: rises(&slices(record)), ..FigureFinding::of(&figures, evidence) }
    })
}

/// Returns whether the medians of the three thirds rise.
fn rises(values: &[f64]) -> bool {
    let third = values.len() / 3;
    let mut medians = values.chunks_exact(third.max(1)).take(3).filter_map(median);
    let (Some(first), Some(middle), Some(last)) = (medians.next(), medians.next(), medians.next()) else {
        return false;
    };
    first < middle && middle < last
}

/// Finds a backlog from before the window: more arrived than was due.
fn left(record: &RunRecord, flow: &Flow) -> Option<FigureFinding> {
    let left = -flow.owed;
    (left > BACKLOG_LEFT * flow.copies && left > MESSAGES_MIN as f64).then(|| {
        let evidence = format!(
            "a backlog from before the window was worked off in it: {} arrivals for {} messages due",
            flow.arrived, flow.due
        );
        let mut figures = vec![FigureGroup::Rates, FigureGroup::LatencyP99];
        figures.extend(moved_median(record).then_some(FigureGroup::LatencyP50));
        FigureFinding::of(&figures, evidence)
    })
}

/// Finds a backlog that rose and fell within the window. If a subscriber received nothing for that time, it is reported
/// as a stall instead.
fn rose(record: &RunRecord, flow: &Flow) -> Option<FigureFinding> {
    let window_ns = record.window_ns.max(1) as f64;
    let silent = record.stalls.unwrap_or_default().longest_ns as f64 / window_ns * flow.copies;
    (flow.rose > BACKLOG_ROSE * flow.copies && flow.rose > 1.5 * silent).then(|| {
        let at_ns = record.series.slice_ns.saturating_mul((flow.peak as Ns).saturating_add(1));
        let behind_ns = (flow.rose / flow.copies * window_ns) as Ns;
        let evidence = format!(
            "a backlog rose and fell: {} into the window subscribers were behind by {:.0} messages, {} of traffic",
            words(at_ns),
            flow.rose,
            words(behind_ns)
        );
        let mut figures = vec![FigureGroup::LatencyP99];
        figures.extend(moved_median(record).then_some(FigureGroup::LatencyP50));
        FigureFinding::of(&figures, evidence)
    })
}

/// Returns the slices' median latencies, of those in which something arrived, ns.
fn slices(record: &RunRecord) -> Vec<f64> {
    record.series.latency_p50_ns.iter().filter(|ns| **ns > 0).map(|ns| *ns as f64).collect()
}

/// Returns whether the median of all is far above that of the better slices.
fn moved_median(record: &RunRecord) -> bool {
    let mut sorted = slices(record);
    sorted.sort_by(f64::total_cmp);
    let better = sorted.get(sorted.len() / 4).copied().unwrap_or_default();
    record.times.latency.as_ref().is_some_and(|latency| better > 0.0 && latency.p50 as f64 > BACKLOG_P50 * better)
}

/// Returns the medians of the first and of the last third.
fn ends(values: &[f64]) -> Option<(f64, f64)> {
    let third = values.len().div_ceil(3);
    Some((median(values.get(..third)?)?, median(values.get(values.len() - third..)?)?))
}

/// Formats a p-value, never as 0.
fn probability(p: f64) -> String {
    if p < 1e-4 { "p < 0.0001".into() } else { format!("p = {p:.4}") }
}

/// Finds a figure that rose or fell over the window, by more than chance, and by so much that the position of the
/// window decides its value.
pub fn trending(record: &RunRecord) -> Option<FigureFinding> {
    let (what, values, figures): (&str, Vec<f64>, &[FigureGroup]) = if record.times.latency.is_none() {
        let delivered = record.series.delivered.iter().map(|count| *count as f64).collect();
        ("messages delivered a second", delivered, &[FigureGroup::Rates, FigureGroup::Cost])
    } else if record.workload.rate == Rate::Max {
        // One request after the other: its latency is its rate.
        ("the median latency", slices(record), &[FigureGroup::Rates, FigureGroup::LatencyP50, FigureGroup::LatencyP99])
    } else {
        ("the median latency", slices(record), FigureGroup::LATENCY)
    };
    let found = trend(&values)?;
    let change = found.relative_change?;
    (found.p < TREND_P && change.abs() > TREND_CHANGE).then(|| {
        let direction = if change > 0.0 { "rose" } else { "fell" };
        let by = match change.abs() {
            share if share < 1.0 => format!("by {:.0} %", share * 100.0),
            // A share above the median itself is hard to imagine.
            times => match ends(&values).filter(|(first, last)| (last > first) == (change > 0.0)) {
                Some((first, last)) if record.times.latency.is_some() => {
                    format!("from {} to {}", words(first as Ns), words(last as Ns))
                }
                Some((first, last)) => format!("from {first:.0} to {last:.0} in a slice"),
                None => format!("by {:.0} %", times * 100.0),
            },
        };
        FigureFinding::of(
            figures,
            format!("{what} {direction} {by} over the window (Mann-Kendall {})", probability(found.p)),
        )
    })
}

/// Returns the time after which a run whose window begins at its start was steady, ns, in whole slices: from then on no
/// slice is further from the level at which the run settles than a trend may move it, and no trend is left. `None` if
/// that is not so within this time, or if too few slices follow it.
pub fn steady_after_ns(record: &RunRecord, within_ns: Ns) -> Option<Ns> {
    let values: Vec<f64> = match record.times.latency {
        Some(_) => record.series.latency_p50_ns.iter().map(|ns| *ns as f64).collect(),
        None => record.series.delivered.iter().map(|count| *count as f64).collect(),
    };
    let slice_ns = record.series.slice_ns;
    let last = usize::try_from(within_ns.checked_div(slice_ns)?).ok()?;
    // The last slice may be incomplete.
    let values = values.get(..values.len().checked_sub(1)?)?;
    let rest = values.get(last..)?;
    let settled = median(rest.iter().copied().filter(|value| *value > 0.0).collect::<Vec<_>>().as_slice())?;
    let moves = |values: &[f64]| {
        let found = trend(values);
        found.is_none_or(|found| {
            found.p < TREND_P && found.relative_change.is_none_or(|change| change.abs() > TREND_CHANGE)
        })
    };
    let near = |slice: usize| values.get(slice).is_some_and(|value| (value - settled).abs() <= TREND_CHANGE * settled);
    // A single slice off the level is a pause, and no warm-up.
    let belongs = |slice: usize| near(slice) || (slice > 0 && near(slice - 1) && near(slice + 1));
    if moves(rest) {
        return None;
    }
    let steady = |slice: &usize| belongs(*slice) && !moves(&values[*slice..]);
    let first = (0..last).rev().take_while(steady).last().unwrap_or(last);
    Some((first as Ns).saturating_mul(slice_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::judged;
    use pubmark_model::record::Series;

    /// Returns the steady time within 10 slices of 100 ns of a run with these.
    fn found(series: Series, has_latency: bool) -> Option<Ns> {
        let mut found = None;
        judged("none", |record| {
            record.times.latency.take_if(|_| !has_latency);
            record.series = Series { slice_ns: 100, ..series };
            found = steady_after_ns(record, 1_000);
        });
        found
    }

    fn steady(p50_ns: Vec<u64>) -> Option<Ns> {
        found(Series { latency_p50_ns: p50_ns, ..Series::default() }, true)
    }

    fn series(first: &[u64], rest: u64) -> Vec<u64> {
        (0..21).map(|at| first.get(at).copied().unwrap_or(rest + (at as u64 * 7) % 5)).collect()
    }

    #[test]
    fn a_run_is_steady_from_the_first_slice_that_is_as_those_at_its_end() {
        assert_eq!(steady(series(&[], 1_000)), Some(0));
        assert_eq!(steady(series(&[9_000], 1_000)), Some(100), "one slice that is cold is one too many");
        assert_eq!(steady(series(&[9_000, 4_000, 2_000, 1_300], 1_000)), Some(400));
        assert_eq!(steady(series(&[9_000, 4_000, 1_200], 1_000)), Some(200), "20 % above is as steady as a window");
        assert_eq!(steady(series(&[9_000, 1_000, 1_000, 8_000], 1_000)), Some(100), "a pause is not a warm-up");
        assert_eq!(steady(series(&[0, 0, 0, 500], 1_000)), Some(400), "nothing arrived, and then it was too fast");
        assert_eq!(steady(series(&[9_000; 9], 1_000)), Some(900));
    }

    #[test]
    fn what_is_not_steady_within_the_time_is_not_said_to_be() {
        assert_eq!(steady((0..21).map(|at| 9_000 - 400 * at).collect()), None, "it still falls");
        assert_eq!(steady(series(&[], 0)[..12].to_vec()), None, "too little was seen");
        assert_eq!(steady(vec![0; 21]), None, "nothing arrived");
        assert_eq!(steady(Vec::new()), None);
        let rates = Series { delivered: series(&[100, 600], 1_000), ..Series::default() };
        assert_eq!(found(rates, false), Some(200), "where there is no latency, by what was delivered");
    }

    #[test]
    fn a_small_probability_is_not_said_to_be_0() {
        assert_eq!(probability(0.00004), "p < 0.0001");
        assert_eq!(probability(0.0028), "p = 0.0028");
    }

    #[test]
    fn the_ends_are_the_medians_of_the_outer_thirds() {
        assert_eq!(ends(&[1.0, 2.0, 9.0, 5.0, 5.0, 5.0, 7.0, 8.0, 100.0]), Some((2.0, 8.0)));
        assert_eq!(ends(&[]), None);
    }
}
