//! Prints which figures moved, what the records contain, and whether the verdict named the figures.

use crate::Turn;
use pubmark_model::record::{FigureGroup, RunRecord};
use pubmark_stats::{Summary, median};

/// Each group with its representative figure, and the relative distance from the undisturbed runs up to which that does
/// not count as moved.
const FIGURES: [(FigureGroup, &str, f64); 5] = [
    (FigureGroup::LatencyP50, "p50", 1.05),
    (FigureGroup::LatencyP99, "p99", 1.25),
    (FigureGroup::Rates, "rate", 1.05),
    (FigureGroup::Counts, "counts", 1.001),
    (FigureGroup::Cost, "cost", 1.10),
];

/// Returns the figure of a group; `None` if the run has none.
fn figure(record: &RunRecord, group: FigureGroup) -> Option<f64> {
    let counts = &record.counts;
    let latency = |pick: fn(&Summary) -> u64| record.times.latency.as_ref().map(|latency| pick(latency) as f64);
    match group {
        FigureGroup::LatencyP50 => latency(|summary| summary.p50),
        FigureGroup::LatencyP99 => latency(|summary| summary.p99),
        FigureGroup::Rates => Some(record.rates.delivered_per_s),
        FigureGroup::Counts => Some(counts.delivered_ratio()? * counts.sent as f64 / counts.offered.max(1) as f64),
        FigureGroup::Cost => {
            let generator_s = record.generator.as_ref()?.cpu_s;
            let server_s = record.server.as_ref().map_or(0.0, |usage| usage.cpu_s);
            (counts.delivered > 0).then(|| (generator_s + server_s) / counts.delivered as f64)
        }
    }
}

fn range(values: &[f64]) -> (f64, f64) {
    (values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(0.0, f64::max))
}

/// Values of a group in the undisturbed runs of a cell: the usual one, and the limits of the ratios to it. Only runs
/// whose figure may be quoted count, or all if there is none.
struct Usual {
    median: f64,
    least: f64,
    most: f64,
}

impl Usual {
    fn of(undisturbed: &[&RunRecord], group: FigureGroup) -> Option<Usual> {
        let good = |all: bool| -> Vec<f64> {
            let runs = undisturbed.iter().filter(|record| all || record.verdict.allows(group));
            runs.filter_map(|record| figure(record, group)).collect()
        };
        let values = Some(good(false)).filter(|values| values.len() > 1).unwrap_or_else(|| good(true));
        let median = median(&values).filter(|value| *value > 0.0)?;
        let (least, most) = range(&values);
        Some(Usual { median, least: least / median, most: most / median })
    }

    fn moved(&self, ratio: f64, tolerance: f64) -> bool {
        ratio > tolerance * self.most || ratio * tolerance < self.least
    }
}

/// Describes the effect of a disturbance on a group. Returns also how many runs moved without a reason.
fn column(runs: &[&RunRecord], undisturbed: &[&RunRecord], which: (FigureGroup, &str, f64)) -> (String, usize) {
    let (group, name, tolerance) = which;
    let Some(usual) = Usual::of(undisturbed, group) else { return (String::new(), 0) };
    let ratio = |record: &&RunRecord| Some((figure(record, group)? / usual.median, record.verdict.allows(group)));
    let ratios: Vec<(f64, bool)> = runs.iter().filter_map(ratio).collect();
    let values: Vec<f64> = ratios.iter().map(|(ratio, _)| *ratio).collect();
    let Some(middle) = median(&values) else { return (String::new(), 0) };
    let (least, most) = range(&values);
    let moved = ratios.iter().filter(|(ratio, _)| usual.moved(*ratio, tolerance)).count();
    let missed = ratios.iter().filter(|(ratio, allowed)| *allowed && usual.moved(*ratio, tolerance)).count();
    let named = ratios.iter().filter(|(_, allowed)| !allowed).count();
    let mark = if missed > 0 { format!(" {missed} MISSED") } else { String::new() };
    (format!("{name} {middle:.2} [{least:.2}..{most:.2}] moved {moved} named {named}{mark}"), missed)
}

/// Describes the content of the records: medians, and maxima.
fn seen(runs: &[&RunRecord]) -> String {
    let of = |pick: &dyn Fn(&RunRecord) -> f64| {
        let values: Vec<f64> = runs.iter().map(|record| pick(record)).collect();
        format!("{:.1}/{:.1}", median(&values).unwrap_or_default(), range(&values).1)
    };
    let us = |summary: &Option<Summary>, pick: fn(&Summary) -> u64| {
        summary.as_ref().map_or(0.0, |summary| pick(summary) as f64 / 1e3)
    };
    format!(
        "steal {} %, others {} %, own lag p50 {} p99 {} µs, receive lag p50 {} p99 {} µs, pauses {}",
        of(&|record| record.machine.steal * 100.0),
        of(&|record| record.machine.foreign_cores / f64::from(record.machine.cores.max(1)) * 100.0),
        of(&|record| us(&record.times.own_lag, |summary| summary.p50)),
        of(&|record| us(&record.times.own_lag, |summary| summary.p99)),
        of(&|record| us(&record.times.receive_lag, |summary| summary.p50)),
        of(&|record| us(&record.times.receive_lag, |summary| summary.p99)),
        of(&|record| record.agents.iter().map(|agent| agent.pauses.map_or(0, |pauses| pauses.count) as f64).sum()),
    )
}

/// Prints the results of all runs. Returns whether every figure that moved was named.
pub fn print(turns: &[Turn], wanted: impl Fn(&str, &str) -> bool) -> bool {
    let mut missed = 0;
    let mut cells: Vec<&str> = Vec::new();
    turns.iter().for_each(|turn| {
        if !cells.contains(&turn.cell.as_str()) {
            cells.push(&turn.cell);
        }
    });
    for cell in cells {
        let of = |name: &str| -> Vec<&RunRecord> {
            let same = turns.iter().filter(|turn| turn.cell == cell && turn.disturbance == name);
            same.map(|turn| &turn.record).collect()
        };
        let undisturbed = of("");
        let mut names: Vec<&str> = vec![""];
        for turn in turns.iter().filter(|turn| turn.cell == cell && wanted(cell, &turn.disturbance)) {
            if !names.contains(&turn.disturbance.as_str()) {
                names.push(&turn.disturbance);
            }
        }
        for name in names {
            let runs = of(name);
            println!("{cell}/{} ({} runs)", if name.is_empty() { "undisturbed" } else { name }, runs.len());
            for which in FIGURES {
                let (text, unseen) = column(&runs, &undisturbed, which);
                missed += if name.is_empty() { 0 } else { unseen };
                if !text.is_empty() {
                    println!("    {text}");
                }
            }
            println!("    seen: {}", seen(&runs));
        }
    }
    println!("{missed} disturbed figures moved and were not named");
    missed == 0
}
