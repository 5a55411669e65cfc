//! What is happening, on standard error: a live line on a terminal, a plain
//! line a run elsewhere.

use crate::output::note;
use indicatif::{ProgressBar, ProgressStyle};
use pubmark_model::cell::Cell;
use pubmark_model::record::RunRecord;
use pubmark_report::text::{clean, count, time};
use pubmark_study::conduct::Observer;
use std::io::IsTerminal;
use std::time::Duration;

/// Shows a study as it goes by.
pub struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    verbose: bool,
    runs: usize,
    label: String,
    invalid: usize,
}

impl Progress {
    /// A display that suits standard error.
    pub fn new(quiet: bool, verbose: bool) -> Progress {
        let live = !quiet && std::io::stderr().is_terminal();
        let bar = live.then(|| {
            let bar = ProgressBar::new(0);
            // A bar without a template that parses is still a bar.
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} runs, {eta} left  {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Progress { bar, quiet, verbose, runs: 0, label: String::new(), invalid: 0 }
    }

    /// Takes the display off the screen.
    pub fn finish(&self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }

    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None if self.quiet => {}
            None => note(line),
        }
    }

    fn show(&self, rest: &str) {
        let invalid = if self.invalid > 0 { format!("  [{} not valid]", self.invalid) } else { String::new() };
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}{rest}{invalid}", self.label));
        }
    }
}

/// A record in a line: the figures that matter most.
pub fn line(record: &RunRecord) -> String {
    if let Some(error) = &record.error {
        return format!("failed: {}", clean(error, 2_000));
    }
    let mut parts = Vec::new();
    if let Some(latency) = &record.latency_ns {
        parts.push(format!("p50 {}, p99 {}", time(latency.p50 as f64), time(latency.p99 as f64)));
    }
    parts.push(format!("{}/s delivered", count(record.rates.delivered_per_s)));
    if record.counts.lost > 0 {
        parts.push(format!("{} of {} lost", count(record.counts.lost as f64), count(record.counts.expected as f64)));
    }
    let reasons: Vec<String> = record.verdict.reasons.iter().map(|finding| finding.reason.to_string()).collect();
    parts.push(if reasons.is_empty() { "valid".into() } else { format!("not valid: {}", reasons.join(", ")) });
    parts.join(", ")
}

impl Observer for Progress {
    fn begin(&mut self, runs: usize, done: usize) {
        self.runs = runs;
        if let Some(bar) = &self.bar {
            bar.set_length(runs as u64);
            bar.set_position(done as u64);
            bar.reset_eta();
        }
        if done > 0 {
            self.say(&format!("{done} of {runs} runs are done already"));
        }
    }

    fn run_begins(&mut self, cell: &Cell, repeat: u32, number: usize) {
        self.label = format!("{} #{repeat}", cell.label());
        let _ = number;
        self.show("");
    }

    fn progress(&mut self, sent: u64, received: u64) {
        self.show(&format!("  {} sent, {} received", count(sent as f64), count(received as f64)));
    }

    fn run_ends(&mut self, record: &RunRecord) {
        self.invalid += usize::from(!record.verdict.valid);
        let number = record.position + 1;
        if self.bar.is_none() || self.verbose || record.error.is_some() {
            let width = self.runs.to_string().len();
            self.say(&format!("[{number:>width$}/{}] {}: {}", self.runs, self.label, line(record)));
        }
        if self.verbose {
            for finding in &record.verdict.reasons {
                self.say(&format!("    {}: {}", finding.reason, finding.evidence));
            }
        }
        self.bar.iter().for_each(|bar| bar.inc(1));
    }
}
