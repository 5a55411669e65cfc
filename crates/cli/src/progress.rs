//! Progress on standard error: a live table on a terminal, a plain line per cell elsewhere. Its state is shared with the
//! metrics and the live report.

pub mod board;
pub mod estimate;
pub mod questions;
mod screen;
pub mod table;

use crate::leftovers::mentions;
use crate::output::{Voice, note};
use crate::telemetry::push::OtlpPush;
use board::SharedBoard;
use pubmark_host::clock;
use pubmark_model::record::{FigureGroup, Reason, RunRecord};
use pubmark_model::units::{Ns, SECOND};
use pubmark_report::text::{clean, clean_ends, count, time};
use pubmark_report::words::{FAILED, OK, UNRELIABLE, figures};
use pubmark_study::live::News;
use pubmark_study::runner::{Observer, StudyStart, Tally};
use pubmark_study::strategy::{NextRun, Outlook};
use screen::Screen;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Maximum number of newly decided questions that are printed, one line each.
const DECIDED_MAX: usize = 5;

/// Time without a line after which the end of a run is printed in any case, ns.
const SILENCE_MAX: Ns = 30 * SECOND;

/// Maximum length of a run's printed finding, characters.
const FINDING_CHARS: usize = 200;

/// Displays the progress of a study.
pub struct ProgressDisplay {
    shared: Arc<SharedBoard>,
    interrupt: Arc<AtomicBool>,
    voice: Voice,
    live: bool,
    screen: Option<Screen>,
    /// Number of all runs; 0 if unknown.
    runs: usize,
    label: String,
    /// Instant of the last line about runs, ns.
    said_ns: Ns,
    /// Numbers of questions printed last: decided, open, closed.
    said: Option<(usize, usize, usize)>,
    between: Box<dyn FnMut()>,
    push: Option<OtlpPush>,
}

impl ProgressDisplay {
    /// Returns a display that suits standard error.
    pub fn new(voice: Voice, shared: Arc<SharedBoard>, interrupt: Arc<AtomicBool>) -> ProgressDisplay {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        ProgressDisplay {
            shared,
            interrupt,
            voice,
            live: !voice.quiet && !dumb && std::io::stderr().is_terminal(),
            screen: None,
            runs: 0,
            label: String::new(),
            said_ns: clock::now(),
            said: None,
            between: Box::new(|| {}),
            push: None,
        }
    }

    /// Pushes the results of runs, too.
    pub fn push_to(&mut self, push: OtlpPush) {
        self.push = Some(push);
    }

    /// Sets a function to call between runs, when it takes nothing from a measurement: before the first one, and
    /// whenever a record is on the disk.
    pub fn between_runs(&mut self, act: impl FnMut() + 'static) {
        self.between = Box::new(act);
    }

    /// Removes the display from the screen.
    pub fn finish(&mut self) {
        self.screen = None;
        self.shared.lock().end();
        self.push = None;
        self.say_warnings();
    }

    fn say_warnings(&self) {
        let warnings = std::mem::take(&mut self.shared.lock().warnings);
        warnings.iter().for_each(|warning| self.say(warning));
    }

    fn say(&self, line: &str) {
        match &self.screen {
            Some(screen) => screen.say(line),
            None if self.voice.quiet => {}
            None => note(line),
        }
    }
}

/// Describes a record in one line: the most important figures.
pub fn line(record: &RunRecord) -> String {
    if let Some(error) = &record.error {
        return format!("{FAILED}: {}", clean_ends(error, 2_000));
    }
    let mut parts = delivery(record);
    if let Some(latency) = &record.times.latency {
        parts.push(format!("p50 {}, p99 {}", time(latency.p50 as f64), time(latency.p99 as f64)));
    }
    parts.push(format!("{}/s delivered", count(record.rates.delivered_per_s)));
    if record.counts.lost > 0 && !record.delivery_first() {
        parts.push(format!("{} of {} lost", count(record.counts.lost as f64), count(record.counts.expected as f64)));
    }
    let reasons = reasons(record);
    parts.push(if reasons.is_empty() { OK.into() } else { format!("{UNRELIABLE}: {}", reasons.join(", ")) });
    parts.join(", ")
}

/// Returns each reason with the figures that it makes unreliable, unless these are all:
/// `noisy-machine (p50, p99)`.
fn reasons(record: &RunRecord) -> Vec<String> {
    let mut all: Vec<(Reason, Vec<FigureGroup>)> = Vec::new();
    for finding in &record.verdict.reasons {
        match all.iter_mut().find(|(reason, _)| *reason == finding.reason) {
            Some((_, groups)) => groups.extend(&finding.figures),
            None => all.push((finding.reason, finding.figures.clone())),
        }
    }
    let said = |(reason, groups): &(Reason, Vec<FigureGroup>)| match figures(groups) {
        all if all.is_empty() => reason.to_string(),
        figures => format!("{reason} ({figures})"),
    };
    all.iter().map(said).collect()
}

/// Describes the delivery of messages if that matters more than any latency.
fn delivery(record: &RunRecord) -> Vec<String> {
    let counts = &record.counts;
    let mut parts = Vec::new();
    if record.workload.qos > 0 {
        parts.push(format!("{} acknowledged messages lost", counts.acked_lost_of_acked()));
    }
    if counts.refused > 0 {
        parts.push(format!("{} of {} refused", counts.refused, counts.sent));
    }
    if record.delivery_first() {
        parts.push(format!("{} of {} lost", counts.lost, counts.expected));
        parts.push(format!("{} duplicated", counts.duplicated));
    }
    parts
}

/// Returns the numbers of a cell's runs: `3 runs, 2 ok, 1 unreliable`.
fn tally(runs: &Tally) -> String {
    let states = [(runs.valid, OK), (runs.invalid, UNRELIABLE), (runs.failed, FAILED)];
    let states = states.into_iter().filter(|(count, _)| *count > 0);
    states.fold(format!("{} runs", runs.runs()), |said, (count, state)| format!("{said}, {count} {state}"))
}

impl Observer for ProgressDisplay {
    fn begin(&mut self, start: &StudyStart<'_>) {
        let (runs, done) = {
            let mut board = self.shared.lock();
            board.begin(start);
            board.began_ns = clock::now();
            (board.runs, board.tally().runs())
        };
        (self.runs, self.said) = (if start.left.is_empty() { 0 } else { runs }, None);
        if self.live && self.screen.is_none() {
            self.screen = Screen::start(self.shared.clone(), self.interrupt.clone());
        }
        mentions().iter().for_each(|line| self.say(line));
        match (done, start.left.is_empty()) {
            (0, _) => {}
            (done, false) => self.say(&format!("{done} of {runs} runs are done already")),
            (done, true) => self.say(&format!("going on after {done} runs")),
        }
        (self.between)();
    }

    fn run_begins(&mut self, run: &NextRun) {
        self.label = format!("{} #{}", run.label(), run.place.repeat);
        self.shared.lock().run_begins(run, clock::now());
    }

    fn news(&mut self, news: News) {
        if let News::Left(line) = &news {
            self.say(line);
        }
        self.shared.lock().news(news);
    }

    fn run_ends(&mut self, record: &RunRecord, finding: Option<&str>) {
        let finding = finding.map_or(String::new(), |finding| format!("; {}", clean(finding, FINDING_CHARS)));
        let said = line(record) + &finding;
        let now = clock::now();
        let pushed = self.push.as_ref().and_then(|push| push.finished(record));
        let done = self.shared.lock().run_ends(record, &said, now).filter(|_| self.screen.is_none());
        if let (Some(push), Some(run)) = (&self.push, pushed) {
            push.push(run);
        }
        let told = match done {
            _ if self.voice.verbose || record.error.is_some() => Some(format!("{}: {said}", self.label)),
            Some(cell) if cell.is_done() && cell.tally.runs() > 1 => {
                Some(format!("{}: {}; the last: {said}", cell.label, tally(&cell.tally)))
            }
            Some(cell) if cell.is_done() || now >= self.said_ns + SILENCE_MAX => {
                Some(format!("{}: {said}", self.label))
            }
            _ => None,
        };
        if let Some(told) = told {
            let (number, width) = (record.position + 1, self.runs.to_string().len());
            self.said_ns = now;
            match self.runs {
                0 => self.say(&format!("[{number}] {told}")),
                runs => self.say(&format!("[{number:>width$}/{runs}] {told}")),
            }
        }
        if self.voice.verbose {
            for finding in &record.verdict.reasons {
                self.say(&format!("    {}: {}", finding.reason, finding.evidence));
            }
        }
        self.say_warnings();
        (self.between)();
    }

    fn looked(&mut self, outlook: &Outlook) {
        let (asked, is_new) = {
            let mut board = self.shared.lock();
            let is_new = board.looked(outlook);
            (board.questions.clone().unwrap_or_default(), is_new)
        };
        let said = Some((asked.decided, asked.open, asked.closed));
        if self.said != said && self.screen.is_none() {
            let left = table::duration(outlook.ends_ns.saturating_sub(clock::now()));
            let closed = match asked.closed {
                0 => String::new(),
                closed => format!(", {closed} that no run decides"),
            };
            let (name, decided, open) = (outlook.asked, asked.decided, asked.open);
            self.say(&format!("{name}: {decided} decided, {open} open{closed}; {left} left"));
            let decided = asked.just_decided.iter().filter(|_| is_new);
            decided.clone().take(DECIDED_MAX).for_each(|question| self.say(&format!("  decided: {question}")));
            let hidden = decided.count().saturating_sub(DECIDED_MAX);
            if hidden > 0 {
                self.say(&format!("  … and {hidden} more that are decided"));
            }
            asked.nearest.iter().for_each(|question| self.say(&format!("  open: {}", table::still_open(question))));
        }
        self.said = said;
    }
}
