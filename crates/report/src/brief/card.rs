//! Card of one cell: its figures, and its latencies as a histogram.

use super::block::{grouped, rate};
use super::line::{Line, Tone};
use crate::analysis::{CellResult, Status};
use crate::curves::{BINS_PER_DECADE, Curve, Distribution};
use crate::figures::{Sign, shown};
use crate::report::Report;
use crate::text::{self, NO_SPREAD, percent, time};
use pubmark_model::figure::{Figure, Unit};
use pubmark_model::record::FigureGroup;

/// Rows of the histogram, at most.
const ROWS_MAX: usize = 10;
/// Rows without which it says little.
const ROWS_MIN: usize = 3;
/// Characters of the longest bar, at most.
const BAR_CHARS_MAX: usize = 50;
/// Width of the names of figures.
const NAME_WIDTH: usize = 11;

/// Returns the only cell of a report that was to be run, and its place.
pub(crate) fn only_cell(report: &Report) -> Option<(usize, &CellResult)> {
    let mut run = report.cells().iter().enumerate().filter(|(_, result)| result.status != Status::Skipped);
    let only = run.next()?;
    run.next().is_none().then_some(only)
}

/// Returns the card of a cell, and whether a figure on it is unreliable. The histogram gets what is left
/// of `room` lines.
pub(crate) fn lines(
    report: &Report,
    (index, result): (usize, &CellResult),
    width: usize,
    room: usize,
) -> (Vec<Line>, bool) {
    let without_figure = match result.status {
        Status::Failed => Some("failed"),
        Status::Missing => Some("missing"),
        _ => None,
    };
    if let Some(word) = without_figure {
        return (vec![Line::of(format!("No figures: {word}"), Tone::Warning)], false);
    }
    let latency = match result.cell.workload.pattern.round_trip() {
        true => "round trip",
        false => "latency",
    };
    let rows = [
        (latency, times(result, [Figure::LATENCY_P50, Figure::LATENCY_P95, Figure::LATENCY_P99, Figure::LATENCY_MAX])),
        ("ack time", times(result, [Figure::ACK_P50, Figure::ACK_P95, Figure::ACK_P99, Figure::ACK_MAX])),
        ("delivered", delivered(result)),
        ("CPU", with_server(result, Figure::CPU_CORES, Figure::SERVER_CPU)),
        ("memory", with_server(result, Figure::MEMORY_MAX, Figure::SERVER_MEMORY_MAX)),
        ("written", written(result)),
    ];
    let is_unreliable = rows.iter().flat_map(|(_, figures)| figures).any(|(_, is_unreliable)| *is_unreliable);
    let mut lines: Vec<Line> = rows.into_iter().filter_map(|(name, figures)| row(name, figures)).collect();
    // A blank line and a heading precede it.
    let bars_max = room.saturating_sub(lines.len() + 2).min(ROWS_MAX);
    let curve = report.curves(index).get("latency").filter(|_| bars_max >= ROWS_MIN);
    if let Some(Curve { distribution, .. }) = curve {
        let of = if result.runs_for(FigureGroup::LatencyP99) > 0 { "ok" } else { "unreliable" };
        let load = rate(&result.cell.workload);
        lines.push(Line::default());
        lines.push(Line::of(format!("{} at {load}, all {of} runs", latency.to_uppercase()), Tone::Heading));
        lines.extend(histogram(distribution, width, bars_max));
    }
    (lines, is_unreliable)
}

/// Returns a row of a name and figures; none if there is no figure.
fn row(name: &str, figures: Vec<(String, bool)>) -> Option<Line> {
    if figures.is_empty() {
        return None;
    }
    let mut line = Line::of(name, Tone::Plain);
    line.pad_to(NAME_WIDTH);
    for (index, (figure, is_unreliable)) in figures.iter().enumerate() {
        line.push(if index == 0 { "" } else { "   " }, Tone::Plain);
        line.push(figure, if *is_unreliable { Tone::Warning } else { Tone::Plain });
    }
    Some(line)
}

/// Returns a figure with its name and its unit, and whether it is unreliable.
fn figure(result: &CellResult, name: &str, figure: Figure) -> Option<(String, bool)> {
    let estimate = result.figures.get(figure)?;
    let is_unreliable = !result.figures.may_be_quoted(figure);
    let mark = if is_unreliable { "!" } else { "" };
    let sign = if result.figures.sign(figure) == Sign::AtLeast { "≥" } else { "" };
    let unit = if figure.unit() == Unit::Cores { " cores" } else { "" };
    let value = format!("{mark}{sign}{}{unit}", shown(figure, estimate.value));
    let spread = Some(text::spread(estimate)).filter(|spread| spread != NO_SPREAD).unwrap_or_default();
    let words: Vec<&str> = [name, &value, &spread].into_iter().filter(|word| !word.is_empty()).collect();
    Some((words.join(" "), is_unreliable))
}

/// Returns the percentiles of a time that there are.
fn times(result: &CellResult, percentiles: [Figure; 4]) -> Vec<(String, bool)> {
    ["p50", "p95", "p99", "max"]
        .into_iter()
        .zip(percentiles)
        .filter_map(|(name, of)| figure(result, name, of))
        .collect()
}

/// Returns the rate of delivery, its share, and how many messages were lost.
fn delivered(result: &CellResult) -> Vec<(String, bool)> {
    let rate = figure(result, "", Figure::DELIVERED);
    let share = result.figures.get(Figure::DELIVERED_RATIO).map(|share| (percent(share.value), false));
    let count = |name: &str, of: Figure| {
        let estimate = result.figures.get(of)?;
        Some((format!("{} {name}", grouped(&text::whole(estimate.value))), false))
    };
    let acked_lost = count("acknowledged and lost", Figure::ACKED_LOST);
    [rate, share, count("lost", Figure::LOST), acked_lost].into_iter().flatten().collect()
}

/// Returns a cost of everything together, and that of the server if it has one.
fn with_server(result: &CellResult, all: Figure, server: Figure) -> Vec<(String, bool)> {
    let own = figure(result, "server", server);
    let all = figure(result, if own.is_some() { "all" } else { "" }, all);
    [own, all].into_iter().flatten().collect()
}

/// Returns what the server wrote to storage for a message, and its syncs; nothing if it wrote nothing.
fn written(result: &CellResult) -> Vec<(String, bool)> {
    let column = Figure::SERVER_WRITTEN_PER_MESSAGE;
    if result.figures.get(column).is_none_or(|estimate| estimate.value <= 0.0) {
        return Vec::new();
    }
    let with = |(text, mark): (String, bool), after: &str| (format!("{text} {after}"), mark);
    let bytes = figure(result, "server", column).map(|found| with(found, "per message"));
    let syncs = figure(result, "", Figure::SERVER_SYNCS).map(|found| with(found, "syncs"));
    bytes.into_iter().chain(syncs).collect()
}

/// Returns a distribution in rows of equal factors: from, to, the share of messages, and
/// a bar.
fn histogram(distribution: &Distribution, width: usize, rows_max: usize) -> Vec<Line> {
    let Distribution { first, shares } = distribution;
    let bins = shares.len().div_ceil(rows_max).max(1);
    let edge = |bin: usize| 10f64.powf((f64::from(*first) + bin as f64) / f64::from(BINS_PER_DECADE));
    let rows: Vec<(String, f64)> = shares
        .chunks(bins)
        .enumerate()
        .map(|(row, shares)| {
            let (from, to) = (edge(row * bins), edge((row + 1) * bins));
            let share = shares.iter().map(|share| f64::from(*share)).sum();
            (format!("{:>8} to {:>7}", time(from), time(to)), share)
        })
        .collect();
    let most = rows.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let label = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or_default();
    let bar_max = width.saturating_sub(label + 12).clamp(5, BAR_CHARS_MAX);
    let line = |(label, share): &(String, f64)| {
        let shown = match *share {
            0.0 => String::new(),
            share if share < 0.001 => "<0.1 %".into(),
            share => format!("{:.1} %", share * 100.0),
        };
        let length = if most > 0.0 { (share / most * bar_max as f64).round() as usize } else { 0 };
        let bar = if length == 0 && *share > 0.0 { "▏".into() } else { "█".repeat(length) };
        Line::of(format!("{label}  {shown:>7}  {bar}"), Tone::Plain)
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(first: u32, shares: &[f32], width: usize) -> Vec<String> {
        let distribution = Distribution { first, shares: shares.to_vec() };
        histogram(&distribution, width, ROWS_MAX).iter().map(|line| line.render(false)).collect()
    }

    #[test]
    fn a_histogram_has_ten_rows_at_most_and_all_messages() {
        // 25 bins from 10 µs on: three bins a row.
        let mut shares = [0.0; 25];
        (shares[0], shares[1], shares[5], shares[24]) = (0.25, 0.25, 0.499, 0.0005);
        let rows = lines(80, &shares, 100);
        assert_eq!(rows.len(), 9);
        assert_eq!(rows[0], format!(" 10.0 µs to 14.1 µs   50.0 %  {}", "█".repeat(50)));
        assert_eq!(rows[1], format!(" 14.1 µs to 20.0 µs   49.9 %  {}", "█".repeat(50)));
        assert_eq!(rows[2], " 20.0 µs to 28.2 µs");
        assert!(rows[8].ends_with("<0.1 %  ▏"), "{rows:?}");
        assert_eq!(lines(60, &[1.0], 20), [" 1.00 µs to 1.12 µs  100.0 %  █████"]);
    }
}
