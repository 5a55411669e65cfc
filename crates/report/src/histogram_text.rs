//! Latency distributions of a results folder in the text formats of HdrHistogram: `.hlog`, an interval
//! log with a line per run, and `.hgrm`, a table of percentiles per cell.

use crate::records::{ReadError, RecordFile};
use pubmark_model::cell::label;
use pubmark_model::units::{MICROSECOND, MILLISECOND, SECOND};
use pubmark_stats::{Histogram, HistogramError};
use std::fmt::Write;
use std::path::Path;

/// Reported percentiles for each halving of the distance to 100 %, as in HdrHistogram's own tools.
const TICKS_PER_HALF: f64 = 5.0;

/// Reasons why the distributions cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum HistogramTextError {
    /// The records cannot be read.
    #[error(transparent)]
    Records(#[from] ReadError),
    /// A histogram cannot be read.
    #[error("{cell}: {source}")]
    Histogram {
        /// Label of the cell.
        cell: String,
        /// The cause.
        source: HistogramError,
    },
    /// No run has a latency.
    #[error("no run has a latency: at rate = \"max\" none is measured")]
    Empty,
}

/// Returns an HdrHistogram interval log (version 1.3) with one line per run that has a latency. The tag
/// is the cell's label with `_` for blanks. Values are ns, and the column of maxima is ms.
///
/// # Errors
/// The records cannot be read, or none has a latency.
pub fn interval_log(dir: &Path) -> Result<String, HistogramTextError> {
    let mut lines = String::new();
    let mut first_s = None;
    each(dir, &mut |tag, started_s, window_ns, text, max_ns| {
        let first_s = *first_s.get_or_insert(started_s);
        let tag: String = tag.chars().map(|c| if c.is_whitespace() || c == ',' { '_' } else { c }).collect();
        let (from_s, length_s) = (started_s - first_s, window_ns as f64 / SECOND as f64);
        let max_ms = max_ns as f64 / MILLISECOND as f64;
        let _ = writeln!(lines, "Tag={tag},{from_s:.3},{length_s:.3},{max_ms:.3},{text}");
        Ok(())
    })?;
    let Some(first_s) = first_s else { return Err(HistogramTextError::Empty) };
    Ok(format!(
        "#[Histogram log format version 1.3]\n#[StartTime: {first_s:.3} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n{lines}"
    ))
}

/// Returns the percentiles of each cell's latency, over all its runs, as HdrHistogram's tools print them,
/// in µs. If there are several cells, a line with `#` and the label precedes each.
///
/// # Errors
/// The records cannot be read, or none has a latency.
pub fn percentile_tables(dir: &Path) -> Result<String, HistogramTextError> {
    let mut cells: Vec<(String, Histogram)> = Vec::new();
    each(dir, &mut |tag, _, _, text, _| {
        let read = Histogram::decode(text)?;
        match cells.iter_mut().find(|(cell, _)| cell == tag) {
            Some((_, all)) => all.merge(&read)?,
            None => cells.push((tag.to_owned(), read)),
        }
        Ok(())
    })?;
    if cells.is_empty() {
        return Err(HistogramTextError::Empty);
    }
    let mut out = String::new();
    for (cell, histogram) in &cells {
        if cells.len() > 1 {
            let _ = writeln!(out, "# {cell}");
        }
        table(histogram, &mut out);
    }
    Ok(out)
}

/// Receives a run: label of its cell, start in s since 1970, window in ns, encoded histogram, maximum in ns.
type Visit<'a> = dyn FnMut(&str, f64, u64, &str, u64) -> Result<(), HistogramError> + 'a;

/// Visits the runs of a folder that have a latency.
fn each(dir: &Path, visit: &mut Visit<'_>) -> Result<(), HistogramTextError> {
    let Some(file) = RecordFile::open(dir)? else { return Err(HistogramTextError::Empty) };
    let mut failed = None;
    file.each(&mut |run, _| {
        let (Some(text), Some(latency)) = (&run.histograms.latency, &run.times.latency) else { return };
        if failed.is_some() {
            return;
        }
        let cell = label(&run.cell);
        let started_s = run.started.parse().map_or(0.0, |at: jiff::Timestamp| at.as_millisecond() as f64 / 1e3);
        failed = visit(&cell, started_s, run.window_ns, text, latency.max).err().map(|source| (cell, source));
    })?;
    failed.map_or(Ok(()), |(cell, source)| Err(HistogramTextError::Histogram { cell, source }))
}

/// Appends the percentiles of a histogram, µs.
fn table(histogram: &Histogram, out: &mut String) {
    let us = |ns: f64| ns / MICROSECOND as f64;
    let total = histogram.count();
    let _ = writeln!(out, "{:>12} {:>14} {:>10} {:>14}\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut row = |value: u64, level: f64, count: u64| {
        let value = us(value as f64);
        let _ = match level < 1.0 {
            true => writeln!(out, "{value:>12.3} {level:>14.12} {count:>10} {:>14.2}", 1.0 / (1.0 - level)),
            false => writeln!(out, "{value:>12.3} {level:>14.12} {count:>10}"),
        };
    };
    each_percentile(histogram, TICKS_PER_HALF, &mut row);
    let (mean, stddev) = (us(histogram.mean()), us(histogram.stddev()));
    let _ = writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {stddev:>12.3}]");
    let _ = writeln!(out, "#[Max     = {:>12.3}, Total count    = {total:>12}]", us(histogram.max() as f64));
}

/// Visits the percentiles of a histogram with their values and cumulated counts, as HdrHistogram's percentile iterator
/// does: `ticks` for each halving of the distance to 100 %. Percentiles are fractions.
pub(crate) fn each_percentile(histogram: &Histogram, ticks: f64, visit: &mut dyn FnMut(u64, f64, u64)) {
    let total = histogram.count();
    // In percent like that iterator: fractions would round to the other side of a count.
    let (mut percent, mut count) = (0.0, 0);
    for (value, here) in histogram.nonzero() {
        count += here;
        let reached = 100.0 * count as f64 / total as f64;
        while count < total && percent <= reached {
            visit(value, percent / 100.0, count);
            percent = next(percent, ticks);
        }
        if count == total {
            visit(value, percent / 100.0, count);
            visit(value, 1.0, count);
        }
    }
}

/// Returns the percentile that follows, both in percent.
fn next(percent: f64, ticks: f64) -> f64 {
    let halvings = (100.0 / (100.0 - percent)).log2().floor() + 1.0;
    percent + 100.0 / (ticks * halvings.exp2())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_hdrhistograms_tools() {
        let mut histogram = Histogram::latency();
        (1..=1_000u64).for_each(|ms| histogram.record(ms * 1_000_000));
        let mut out = String::new();
        table(&histogram, &mut out);
        let rows: Vec<Vec<f64>> = out
            .lines()
            .filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()))
            .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
            .collect();
        let at = |level: f64| rows.iter().find(|row| (row[1] - level).abs() < 1e-9).unwrap();
        for (level, ms) in [(0.0, 1.0), (0.1, 100.0), (0.5, 500.0), (0.75, 750.0), (0.9, 900.0), (1.0, 1_000.0)] {
            let row = at(level);
            assert!((row[0] / 1e3 / ms - 1.0).abs() < 0.002, "{level}: {row:?}");
            assert!((row[2] - level.max(0.001) * 1e3).abs() <= 1.0, "{level}: {row:?}");
        }
        // A level that a count reaches exactly has the value of that count.
        let counts: Vec<f64> = rows.iter().take(4).map(|row| row[2]).collect();
        assert_eq!(counts, [1.0, 100.0, 200.0, 300.0], "{out}");
        assert!(rows.windows(2).all(|pair| pair[0][0] <= pair[1][0] && pair[0][1] < pair[1][1]), "{out}");
        assert!(out.ends_with("Total count    =         1000]\n"), "{out}");
    }
}
