//! The report: a results folder read and analysed.

use crate::analysis::{CellResult, ReasonCount, analyse, merged};
use crate::capacity::CapacityResult;
use crate::claims::{ClaimResult, Evidence, decide};
use crate::command::{command, command_with_repeats};
use crate::curves::Curves;
use crate::languages;
use crate::light_records::{self, Kept, Unread};
use crate::points::group::points;
use crate::points::{Point, headline};
use crate::promises::{self, PromiseOutcome, PromiseTest, UntestedPromise};
use crate::ranking::RankingRules;
use crate::records::{ReadError, Records, place, read_records};
use crate::reference::Reference;
use crate::searches::{self, SearchedPart};
use crate::text::counted;
use crate::words::{self, FAILED, OK, UNRELIABLE};
use pubmark_files::{self as files, Links};
use pubmark_model::capacity::{CAPACITY, HEADROOM};
use pubmark_model::cell::Cell;
use pubmark_model::diagnostic::{Diagnostic, Diagnostics};
use pubmark_model::flow::FLOW;
use pubmark_model::plan;
use pubmark_model::promise::Promise;
use pubmark_model::record::RunRecord;
use pubmark_model::study::{ReadOptions, Study, named_systems};
use pubmark_model::system::{System, Systems, is_system_name};
use pubmark_stats::HistogramError;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// From this layout of records on, the headline latency is without the
/// generator's own lag.
const OWN_LAG_APART: u32 = 2;

/// Why no report could be made or written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file of the results folder cannot be read.
    #[error("cannot read {path}: {source}; is this a results folder?", path = path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The study as resolved cannot be understood.
    #[error(transparent)]
    Study(#[from] Box<Diagnostics>),
    /// The environment is not JSON.
    #[error("{path}: not JSON: {source}; without the file the report can still be made", path = path.display())]
    Environment {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        source: serde_json::Error,
    },
    /// The records cannot be read.
    #[error(transparent)]
    Records(#[from] ReadError),
    /// A record's histogram cannot be read.
    #[error(
        "a run of {cell} has a damaged histogram: {source}; remove its line from runs.jsonl, \
         and `pubmark run --resume` makes the run again"
    )]
    Histogram {
        /// The cell in words.
        cell: String,
        /// Description of the problem.
        source: HistogramError,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl From<Unread> for ReportError {
    fn from(unread: Unread) -> ReportError {
        match unread {
            Unread::File(error) => ReportError::Records(error),
            Unread::Histogram { cell, source } => ReportError::Histogram { cell, source },
        }
    }
}

/// Number of runs by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Runs of which every figure may be quoted.
    pub valid: usize,
    /// Runs of which some figures may be quoted and others not.
    pub partly: usize,
    /// Runs that were made and of which nothing may be quoted.
    pub invalid: usize,
    /// Runs that could not be made.
    pub failed: usize,
    /// Runs that the study plans and that have no record.
    pub missing: usize,
    /// Runs made again because one before did not count or could not be made: the one
    /// before is in none of the other numbers.
    pub made_again: usize,
}

impl RunCounts {
    /// Returns the number of runs that have a record.
    pub fn made(&self) -> usize {
        self.valid + self.unreliable() + self.failed
    }

    /// Returns the number of runs of which some figure, or all, is unreliable.
    pub fn unreliable(&self) -> usize {
        self.partly + self.invalid
    }

    /// Returns how many runs are in each state: `9 runs: 6 ok, 2 unreliable, 1 failed`.
    pub fn words(&self) -> String {
        format!(
            "{}: {} {OK}, {} {UNRELIABLE}, {} {FAILED}",
            counted(self.made(), "run"),
            self.valid,
            self.unreliable(),
            self.failed
        )
    }
}

/// A study's records, analysed.
#[derive(Clone, Debug)]
pub struct Report {
    study: Study,
    environment: Value,
    cells: Vec<CellResult>,
    points: Vec<Point>,
    claims: Vec<ClaimResult>,
    /// The records of the study's cells, each with its cell.
    runs: Vec<RunRecord>,
    cells_of_runs: Vec<usize>,
    /// By cell.
    curves: Vec<Curves>,
    /// Data that the page needs of incomplete runs, by run.
    evidence: Option<BTreeMap<usize, Vec<u8>>>,
    /// True if a system of any run is the user's own.
    has_brought: bool,
    /// The results folder as it was given; empty where the records came from memory.
    folder: PathBuf,
    name: String,
    /// Systems that are brokers.
    brokers: Vec<String>,
    reference: Option<Reference>,
    /// The searches for its headroom, which have folders of their own.
    pub(crate) searched_headroom: Vec<SearchedPart<Report>>,
    /// Searches for the capacities that it asks for.
    pub(crate) searched_capacity: Vec<SearchedPart<Report>>,
    /// What became of the promise that systems are ranked at.
    promise: Option<PromiseOutcome>,
    pub(crate) torn: bool,
    superseded: usize,
    pub(crate) strays: usize,
}

impl Report {
    /// Returns whether a cell takes part in a comparison of systems, or is a reference
    /// beside one: its place there is known, whatever its own figures are worth.
    pub fn is_compared(&self, cell: usize) -> bool {
        let result = &self.cells[cell];
        self.points.iter().filter(|point| point.members.contains(&cell)).any(|point| {
            let is_known = !result.figures.comparable(headline(point.unthrottled)).is_empty();
            is_known && point.best().is_some_and(|ranked| !ranked.candidates().is_empty())
        })
    }

    /// Reads and analyses a results folder. `systems` finds the systems that
    /// the study names. A missing `environment.json` counts as null; where it
    /// says `"quick": true`, the study was cut down.
    ///
    /// Of [`Report::runs`] it has what figures and sentences are made of; the records
    /// as they are written are read by [`read_records`].
    ///
    /// # Errors
    /// Where a file cannot be read or understood.
    pub fn load(dir: &Path, systems: Systems<'_>) -> Result<Report, ReportError> {
        // A search is of few runs, and each of its steps asks its whole record what gave out.
        Self::read(dir, systems, |study| match study.recorded_capacity() {
            Some(_) => read_records(dir).map(Kept::whole),
            None => Kept::light(dir),
        })
    }

    fn read(
        dir: &Path,
        systems: Systems<'_>,
        records: impl FnOnce(&Study) -> Result<Kept, ReadError>,
    ) -> Result<Report, ReportError> {
        let (study, environment) = study_of(dir, systems)?;
        let study = study.by_flow();
        let own = study.systems.clone();
        let systems = |name: &str| own.iter().find(|system| system.name == name).cloned().or_else(|| systems(name));
        let known = |name: &str| systems(name).or_else(|| Some(System::unknown(name)));
        let cells = plan::cells(&study).map_err(|errors| {
            let file = dir.join("study.toml").display().to_string();
            Box::new(Diagnostics { file, text: study.to_toml(), errors })
        })?;
        let kept = records(&study)?;
        let mut report = Self::analysed(study, cells, environment, kept)?;
        report.folder = dir.to_owned();
        let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        report.name = whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        report.reference = reference(dir, &report, &known)?;
        let load = |folder: &Path| Report::load(folder, &systems);
        if report.study.headroom() {
            report.searched_headroom = searches::read(&dir.join(HEADROOM), &report.study, &load)?;
        }
        if report.study.asked_capacity().is_some() {
            report.searched_capacity = searches::read(&dir.join(CAPACITY), &report.study, &load)?;
            match report.study.promise() {
                Some(promise) => report.rank_at(promise, &report.promise_tests(promise)),
                None => report.decide_claims(),
            }
        }
        Ok(report)
    }

    /// Sets environment and name of records that are in memory.
    pub(crate) fn set_origin(&mut self, environment: Value, name: String) {
        (self.environment, self.name) = (environment, name);
    }

    /// Analyses records that are in memory.
    ///
    /// # Errors
    /// Where the study's cells cannot be made, or a histogram cannot be read.
    pub fn of(study: Study, records: &Records) -> Result<Report, ReportError> {
        let study = study.by_flow();
        let cells = plan::cells(&study).map_err(|errors: Vec<Diagnostic>| {
            Box::new(Diagnostics { file: study.title.clone(), text: String::new(), errors })
        })?;
        Self::analysed(study, cells, Value::Null, Kept::whole(records.clone()))
    }

    fn analysed(study: Study, cells: Vec<Cell>, environment: Value, mut kept: Kept) -> Result<Report, ReportError> {
        let mut analysis = analyse(cells, &study, &kept.runs);
        languages::relate(&mut analysis.cells, study.baseline.as_deref());
        let rules = RankingRules::of(&study);
        let points = points(&analysis.cells, &study.ranked_figures(), rules);
        let deployed = |name: &str| kept.runs.iter().any(|run| run.system == name && run.deployment.is_some());
        // If a system is not known any more, its runs show whether it is a broker.
        let is_broker = |system: &System| system.broker() || system.driver.is_empty() && deployed(&system.name);
        let systems = analysis.cells.iter().map(|result| &result.cell.system).filter(|system| is_broker(system));
        let mut brokers: Vec<String> = systems.map(|system| system.name.clone()).collect();
        brokers.dedup();
        let is_known: Vec<bool> = analysis.cells_of_runs.iter().map(Option::is_some).collect();
        kept.only(&is_known);
        kept.tell_once();
        let cells_of_runs: Vec<usize> = analysis.cells_of_runs.into_iter().flatten().collect();
        let curves = kept.curves(analysis.cells.iter().map(|result| &result.cell), &cells_of_runs)?;
        let evidence = kept.evidence(&light_records::chosen(&cells_of_runs, analysis.cells.len()))?;
        let brought = |run: &RunRecord| run.system_file.as_ref().is_some_and(|file| !file.built_in);
        let mut report = Report {
            claims: Vec::new(),
            points,
            strays: is_known.iter().filter(|known| !**known).count(),
            cells: analysis.cells,
            study,
            environment,
            has_brought: kept.runs.iter().any(brought),
            runs: kept.runs,
            cells_of_runs,
            curves,
            evidence,
            folder: PathBuf::new(),
            name: String::new(),
            brokers,
            reference: None,
            searched_headroom: Vec::new(),
            searched_capacity: Vec::new(),
            promise: None,
            torn: kept.torn,
            superseded: kept.superseded,
        };
        match report.study.promise() {
            Some(promise) => report.rank_at(promise, &report.promise_tests(promise)),
            None => report.decide_claims(),
        }
        Ok(report)
    }

    /// Ranks systems again, without those whose runs, here or in the reports of cards, broke a promise.
    ///
    /// # Errors
    /// If no run tests it.
    pub fn hold_to(&mut self, promise: Promise, cards: &[Report]) -> Result<(), UntestedPromise> {
        let mut tests = self.promise_tests(promise);
        tests.extend(cards.iter().flat_map(|card| card.promise_tests(promise)));
        if tests.is_empty() {
            return Err(UntestedPromise { promise });
        }
        self.study.set_promise(promise);
        self.rank_at(promise, &tests);
        Ok(())
    }

    /// Returns what became of the promise that systems are ranked at; `None` without one.
    pub fn promise(&self) -> Option<&PromiseOutcome> {
        self.promise.as_ref()
    }

    /// True if a run here tests a promise.
    pub fn tests(&self, promise: Promise) -> bool {
        !self.promise_tests(promise).is_empty()
    }

    fn promise_tests(&self, promise: Promise) -> Vec<PromiseTest> {
        let cells = self.cells_of_runs.iter().map(|cell| &self.cells[*cell]);
        promises::tests(promise, self.runs.iter().zip(cells))
    }

    fn rank_at(&mut self, promise: Promise, tests: &[PromiseTest]) {
        self.promise = Some(promises::mark(promise, tests, &mut self.cells));
        for search in &mut self.searched_capacity {
            promises::mark(promise, tests, &mut search.report.cells);
        }
        self.points = points(&self.cells, &self.study.ranked_figures(), RankingRules::of(&self.study));
        self.decide_claims();
    }

    /// Decides the claims by what is there: again, once searches have been read.
    fn decide_claims(&mut self) {
        let capacities = self.capacities();
        self.claims = decide(&self.study.claims, self.held(&capacities));
    }

    /// Returns the results folder; empty if the records came from memory.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The study as resolved.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// Returns the environment of the measurement, as recorded; null if there is none.
    pub fn environment(&self) -> &Value {
        &self.environment
    }

    /// Returns the runs, those with several flows once.
    pub(crate) fn whole_runs(&self) -> impl Iterator<Item = &RunRecord> {
        let runs = self.runs.iter().zip(&self.cells_of_runs);
        runs.filter(|(_, cell)| self.cells[**cell].is_whole()).map(|(run, _)| run)
    }

    /// By cell: the number of the cell that was measured for it, of those that the study's axes cross to without that of
    /// flows.
    pub fn measured_cells(&self) -> Vec<usize> {
        let mut places: Vec<String> = Vec::new();
        let without_flow = |result: &CellResult| {
            let mut axes = result.cell.axes.clone();
            axes.remove(FLOW);
            place(&axes)
        };
        let mut number = |axes: String| {
            let known = places.iter().position(|known| *known == axes);
            known.unwrap_or_else(|| {
                places.push(axes);
                places.len() - 1
            })
        };
        match self.study.flows.is_empty() {
            true => (0..self.cells.len()).collect(),
            false => self.cells.iter().map(|result| number(without_flow(result))).collect(),
        }
    }

    /// The cells in the study's order, those without records and those skipped
    /// included.
    pub fn cells(&self) -> &[CellResult] {
        &self.cells
    }

    /// The points at which systems are compared.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Returns the results of the study's claims.
    pub fn claims(&self) -> &[ClaimResult] {
        &self.claims
    }

    /// The records of the study's cells, in the order in which the runs ended; those
    /// of a folder without what no figure is made of ([`Report::load`]).
    pub fn runs(&self) -> &[RunRecord] {
        &self.runs
    }

    /// The cell of each of [`Report::runs`], as an index into [`Report::cells`].
    pub fn cells_of_runs(&self) -> &[usize] {
        &self.cells_of_runs
    }

    /// Returns the records that claims are tested on.
    pub(crate) fn held<'a>(&'a self, capacities: &'a [CapacityResult]) -> Evidence<'a> {
        Evidence {
            points: &self.points,
            cells: &self.cells,
            runs: (&self.runs, &self.cells_of_runs),
            rules: RankingRules::of(&self.study),
            study: &self.study,
            capacities,
        }
    }

    /// The name of the results folder; empty where there is none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `broker`, `library` or `reference`.
    pub(crate) fn kind(&self, system: &str) -> &'static str {
        match system {
            system
                if self.cells.iter().any(|result| {
                    result.is_reference && !result.breaks_promise && result.cell.system.name == system
                }) =>
            {
                "reference"
            }
            system if self.brokers.iter().any(|broker| broker == system) => "broker",
            _ => "library",
        }
    }

    /// The command that makes one cell's runs again.
    pub(crate) fn command(&self, cell: &Cell) -> String {
        command(&self.folder, cell, self.has_brought)
    }

    /// Returns the command that measures the whole study again with this many runs of each
    /// cell; none if its questions decide how many there are, or it has no folder.
    pub(crate) fn command_with_repeats(&self, repeats: u32) -> Option<String> {
        let has_folder = !self.folder.as_os_str().is_empty();
        let command = || command_with_repeats(&self.folder, repeats, self.has_brought);
        (has_folder && !self.study.until_decided()).then(command)
    }

    /// The curves of a cell, of its runs together.
    pub(crate) fn curves(&self, cell: usize) -> &Curves {
        &self.curves[cell]
    }

    /// The record of a run as the page has it, JSON without histograms; empty of one
    /// that the page does not have.
    pub(crate) fn evidence(&self, run: usize) -> Cow<'_, [u8]> {
        match &self.evidence {
            None => Cow::Owned(light_records::evidence(self.runs[run].clone())),
            Some(held) => Cow::Borrowed(held.get(&run).map(Vec::as_slice).unwrap_or_default()),
        }
    }

    /// The published figures that the study names, held against its cells;
    /// none where it names none, or the folder does not have them.
    pub fn reference(&self) -> Option<&Reference> {
        self.reference.as_ref()
    }

    /// True if headline latencies contain the generator delay, as in records of schema 1.
    pub fn has_timer_in_latency(&self) -> bool {
        self.runs.iter().any(|run| run.schema < OWN_LAG_APART)
    }

    /// True if headline latencies of the two reports have the same meaning and can be compared.
    /// Latencies from the due time always have.
    pub fn means_the_same_by_latency(&self, other: &Report) -> bool {
        let layouts = |report: &Report| {
            let old = report.runs.iter().filter(|run| run.schema < OWN_LAG_APART).count();
            (old > 0, old < report.runs.len())
        };
        let (one, other) = (layouts(self), layouts(other));
        !(one.0 && other.1 || one.1 && other.0)
    }

    /// Returns the number of runs in each state and the most frequent reasons, each with
    /// its runs and, unless these are all, its figures:
    /// `9 runs: 6 ok, 3 unreliable, 0 failed. Reasons: noisy-machine 2 (p99), clock 1.`
    pub fn states(&self, reasons_max: usize) -> String {
        let mut reasons =
            merged(self.cells.iter().filter(|result| result.is_whole()).flat_map(CellResult::all_reasons));
        reasons.sort_by_key(|found| (std::cmp::Reverse(found.runs), found.reason.to_string()));
        let said = |found: &ReasonCount| {
            let figures = words::figures(&found.figures);
            let figures = if figures.is_empty() { figures } else { format!(" ({figures})") };
            format!("{} {}{figures}", found.reason, found.runs)
        };
        let said: Vec<String> = reasons.iter().take(reasons_max).map(said).collect();
        let said = if said.is_empty() { String::new() } else { format!(" Reasons: {}.", said.join(", ")) };
        format!("{}.{said}", self.counts().words())
    }

    /// Returns the number of runs by state.
    pub fn counts(&self) -> RunCounts {
        let sum = |of: fn(&CellResult) -> usize| self.cells.iter().filter(|result| result.is_whole()).map(of).sum();
        RunCounts {
            valid: sum(|cell| cell.valid_runs),
            partly: sum(|cell| cell.partly_runs),
            invalid: sum(|cell| cell.invalid_runs),
            failed: sum(|cell| cell.failed_runs),
            missing: sum(|cell| cell.missing_runs),
            made_again: self.superseded,
        }
    }
}

/// Reads the study of a folder, with its systems as they were used, and where it was measured.
pub(crate) fn study_of(dir: &Path, systems: Systems<'_>) -> Result<(Study, Value), ReportError> {
    let path = dir.join("study.toml");
    let text = read_text(&path).map_err(|source| ReportError::Io { path: path.clone(), source })?;
    let file = path.display().to_string();
    // Records outlive the systems that a build knows: the folder has its own.
    let own = systems_of(&dir.join("systems"), &text);
    let systems = |name: &str| own.iter().find(|system| system.name == name).cloned().or_else(|| systems(name));
    let known = |name: &str| systems(name).or_else(|| Some(System::unknown(name)));
    let reading = ReadOptions { recorded: true, ..ReadOptions::default() };
    let mut study = Study::parse(&file, &text, &known, &reading).map_err(Box::new)?;
    let environment = environment(&dir.join("environment.json"))?;
    study.quick = environment["quick"] == true;
    Ok((study, environment))
}

fn read_text(path: &Path) -> io::Result<String> {
    files::read_text(path, Links::Refuse)
}

/// The systems of a folder, as they were used: those that the study names and that
/// this version understands.
fn systems_of(folder: &Path, study: &str) -> Vec<Arc<System>> {
    let mut systems: Vec<Arc<System>> = Vec::new();
    for name in named_systems(study).into_iter().filter(|name| is_system_name(name)) {
        let file = folder.join(format!("{name}.toml"));
        // A file of another version's may have what is not known here; what is missing is looked up elsewhere.
        let read = read_text(&file).ok();
        systems
            .extend(read.and_then(|text| System::parse(&name, &file.display().to_string(), &text).ok().map(Arc::new)));
    }
    systems
}

fn reference(dir: &Path, report: &Report, systems: Systems<'_>) -> Result<Option<Reference>, ReportError> {
    let Some(source) = &report.study.reference else { return Ok(None) };
    let path = dir.join(pubmark_model::reference::FILE);
    match read_text(&path) {
        Ok(text) => {
            let read = Reference::read(&path.display().to_string(), &text, source, systems, &report.cells);
            Ok(Some(read.map_err(Box::new)?))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ReportError::Io { path, source }),
    }
}

fn environment(path: &Path) -> Result<Value, ReportError> {
    match read_text(path) {
        Ok(text) => {
            serde_json::from_str(&text).map_err(|source| ReportError::Environment { path: path.to_owned(), source })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Value::Null),
        Err(source) => Err(ReportError::Io { path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests;
