//! Study runner: asks a strategy for the next run, makes it, appends its record.

use crate::context::{RunContext, RunError};
use crate::live::News;
use crate::pilot::Pilots;
use crate::plan::StudyPlan;
use crate::results::{Results, ResultsError};
use crate::run::login;
use crate::servers::Servers;
use crate::strategy::{NextRun, Outlook, Strategy, StrategyError};
use crate::{calibration_file, redact, registry};
use pubmark_host::clock;
use pubmark_host::lock::Lock;
use pubmark_host::{environment, install, scratch, server};
use pubmark_judge::empty_record::blank;
use pubmark_judge::verdict;
use pubmark_model::cell::Cell;
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::record::RunRecord;
use pubmark_model::setting::FreshServer;
use pubmark_model::study::Study;
use pubmark_model::system::System;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Error of a study as a whole.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The study cannot be planned.
    #[error("{}", .0.iter().map(show).collect::<Vec<_>>().join("\n"))]
    Plan(Vec<Diagnostic>),
    /// The results folder cannot be used.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The records cannot be analysed.
    #[error("the records cannot be looked at: {0}")]
    Look(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StudyError {
    fn of(error: StrategyError, folder: &Path) -> StudyError {
        match error {
            StrategyError::Plan(errors) => StudyError::Plan(errors),
            StrategyError::OtherStudy => ResultsError::OtherStudy(folder.to_owned()).into(),
            StrategyError::Look(error) => StudyError::Look(error),
        }
    }
}

fn show(diagnostic: &Diagnostic) -> String {
    match &diagnostic.help {
        Some(help) => format!("{}\n  help: {help}", diagnostic.message),
        None => diagnostic.message.clone(),
    }
}

/// Description of a study that begins.
pub struct StudyStart<'a> {
    /// Title of the study.
    pub title: &'a str,
    /// Cells that a display lists, including those that are skipped.
    pub rows: &'a [Cell],
    /// Rows of the remaining runs, in their order, if known.
    pub left: &'a [usize],
    /// Records that are on the disk already.
    pub records: &'a [RunRecord],
    /// Lifetime of a server.
    pub fresh: FreshServer,
}

/// Observer of a study, called on the coordinator's thread: no method may block.
pub trait Observer {
    /// The study begins.
    fn begin(&mut self, start: &StudyStart<'_>);
    /// A run begins.
    fn run_begins(&mut self, run: &NextRun);
    /// There is news of the current run.
    fn news(&mut self, news: News);
    /// A run has ended and its record is on the disk. `finding`: the strategy's conclusion from it, if any.
    fn run_ends(&mut self, record: &RunRecord, finding: Option<&str>);
    /// The strategy's conclusions have changed: what is decided and what is open.
    fn looked(&mut self, outlook: &Outlook);
}

/// Runs after a pause as long as this are another session: machine and systems may have
/// changed by more than they do from run to run.
const SESSION_GAP: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

/// Results folder of a study and inputs of its runs.
pub struct RunStudy<'a> {
    /// Path of the results folder.
    pub folder: &'a Path,
    /// True to resume existing results.
    pub resume: bool,
    /// Runs of earlier folders that stand before those of a new one.
    pub earlier: &'a [RunRecord],
    /// The study's `reference.csv`, if it has one.
    pub reference: Option<&'a str>,
    /// Command that starts an agent.
    pub agent: &'a [String],
    /// Set when the user interrupts.
    pub interrupt: &'a AtomicBool,
}

/// Numbers of runs by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Valid runs.
    pub valid: usize,
    /// Runs that may not be quoted.
    pub invalid: usize,
    /// Failed runs.
    pub failed: usize,
}

impl Tally {
    /// Returns the number of all runs.
    pub fn runs(&self) -> usize {
        self.valid + self.invalid + self.failed
    }

    /// Adds a run.
    pub fn count(&mut self, record: &RunRecord) {
        match (&record.error, record.verdict.valid) {
            (Some(_), _) => self.failed += 1,
            (None, true) => self.valid += 1,
            (None, false) => self.invalid += 1,
        }
    }

    /// Adds the numbers of another tally.
    pub fn add(&mut self, other: &Tally) {
        self.valid += other.valid;
        self.invalid += other.invalid;
        self.failed += other.failed;
    }
}

/// Outcome of a study.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Runs that are on the disk.
    pub runs: Tally,
    /// True if the user interrupted it.
    pub interrupted: bool,
}

/// Makes the runs that a strategy asks for, until it asks for none. While the lock is held, no other process can write
/// into the results folder.
///
/// # Errors
/// If the results folder cannot be used, or the strategy cannot go on.
pub fn run_study(
    plan: &StudyPlan,
    how: &RunStudy<'_>,
    strategy: &mut dyn Strategy,
    observer: &mut dyn Observer,
) -> Result<(Ending, Lock), StudyError> {
    let at = |error: StrategyError| StudyError::of(error, how.folder);
    let begun_ns = clock::now();
    let (mut runner, records) = StudyRunner::open(plan, how, strategy.grows())?;
    strategy.begin(&records, begun_ns).map_err(at)?;
    observer.begin(&StudyStart {
        title: &plan.study().title,
        rows: strategy.rows(),
        left: &strategy.left(),
        records: &records,
        fresh: plan.study().fresh(),
    });
    drop(records);
    loop {
        let next = strategy.next(clock::now()).map_err(at)?;
        if let Some(outlook) = strategy.outlook() {
            observer.looked(&outlook);
        }
        let Some(next) = next else { break };
        let from_ns = clock::now();
        let Some(record) = runner.run(&next, observer)? else { break };
        let finding = strategy.note(&record, clock::now().saturating_sub(from_ns));
        observer.run_ends(&record, finding.as_deref());
    }
    runner.close()
}

/// Makes one run after the other, each with its record in the results folder.
struct StudyRunner<'a> {
    how: &'a RunStudy<'a>,
    session: u32,
    awake: bool,
    results: Results,
    logs: PathBuf,
    /// By system, the versions that its first runs reported.
    met: Vec<(String, Map<String, Value>)>,
    pilots: Pilots,
    servers: Servers,
    ending: Ending,
}

impl<'a> StudyRunner<'a> {
    /// Opens the results folder. Returns also the existing records.
    fn open(
        plan: &StudyPlan,
        how: &'a RunStudy<'a>,
        parts_may_grow: bool,
    ) -> Result<(StudyRunner<'a>, Vec<RunRecord>), StudyError> {
        let (study, used) = (plan.study(), used(plan.cells()));
        scratch::sweep();
        server::limits::sweep();
        let text = study.to_toml();
        let (results, records) = if how.resume {
            Results::resume(how.folder, &text, parts_may_grow)?
        } else {
            let mut results = Results::create(how.folder, &text, &environment(study, &used, how.folder))?;
            how.reference.map_or(Ok(()), |text| results.note_reference(text))?;
            results.append_all(how.earlier)?;
            (results, how.earlier.to_vec())
        };
        results.note_systems(&used.iter().map(|system| (system.name.clone(), shown(system))).collect::<Vec<_>>())?;
        let (logs, awake) = (results.logs(), study.awake());
        let pilots = Pilots::of(&records);
        let servers = Servers::new(study.fresh());
        let (met, ending) = (Vec::new(), Ending::default());
        let session = session(&records, how.resume, jiff::Timestamp::now());
        let mut runner = StudyRunner { how, awake, session, results, logs, met, pilots, servers, ending };
        records.iter().for_each(|record| runner.meet(record));
        records.iter().filter(|record| record.error.is_none()).for_each(|record| runner.ending.runs.count(record));
        Ok((runner, records))
    }

    fn meet(&mut self, record: &RunRecord) {
        if record.error.is_none() && self.met.iter().all(|(system, _)| *system != record.system) {
            self.met.push((record.system.clone(), record.versions.clone()));
        }
    }

    /// Makes a run. Its record is on the disk when this returns; `None` if the user interrupted.
    fn run(&mut self, next: &NextRun, observer: &mut dyn Observer) -> Result<Option<RunRecord>, StudyError> {
        let NextRun { cell, place, grown, .. } = next;
        let place = *place;
        if self.how.interrupt.load(Ordering::Relaxed) {
            self.ending.interrupted = true;
            return Ok(None);
        }
        let system = &*cell.system;
        observer.run_begins(next);
        let mut context = RunContext {
            agent: self.how.agent,
            logs: &self.logs,
            awake: self.awake,
            interrupt: self.how.interrupt,
            servers: &mut self.servers,
            news: &mut |news| observer.news(news),
        };
        let secrets = login::secrets(cell);
        let (mut record, tear_down) = match self.pilots.make(cell, place, &mut context) {
            Ok(made) => (made.record, Some(made.tear_down)),
            Err(RunError::Interrupted) => {
                self.ending.interrupted = true;
                return Ok(None);
            }
            Err(error) => {
                let error = error.to_string();
                let mut record = blank(cell, Some(system), place, jiff::Timestamp::now().to_string());
                record.verdict = verdict::failed(&error);
                let own = record.flows.iter_mut().filter_map(|flow| flow.own.as_mut());
                own.for_each(|own| own.verdict.clone_from(&record.verdict));
                record.error = Some(error);
                (record, None)
            }
        };
        record.session = self.session;
        record.system_file = Some(registry::origin(system));
        if record.system_file.as_ref().is_some_and(|file| file.replaces) {
            record
                .remarks
                .push(format!("the system `{}` is the user's, and not the one that comes with pubmark", system.name));
        }
        redact::record(&mut record, &secrets);
        grown.as_ref().map_or(Ok(()), |study| self.results.renew_study(&study.to_toml()))?;
        self.results.append(&record)?;
        // The record is safe, so tear-down may take its time.
        let (stays, left) = tear_down.map(|tear_down| tear_down.settle(&record)).unwrap_or_default();
        stays.into_iter().for_each(|line| observer.news(News::Left(line)));
        self.servers.put(left);
        self.ending.runs.count(&record);
        self.meet(&record);
        Ok(Some(record))
    }

    /// Ends the study: closes the server and the results folder.
    fn close(mut self) -> Result<(Ending, Lock), StudyError> {
        self.servers.end();
        self.results.note_versions(&self.met)?;
        // An empty log folder means that nothing was logged, so it is removed.
        let _ = std::fs::remove_dir(&self.logs);
        Ok((self.ending, self.results.close()))
    }
}

/// Returns the session that begins now: another one after runs of earlier folders, and where a
/// folder is resumed after [`SESSION_GAP`].
fn session(records: &[RunRecord], resume: bool, now: jiff::Timestamp) -> u32 {
    let Some(last) = records.iter().max_by_key(|record| record.session) else { return 1 };
    let starts = || records.iter().filter_map(|record| record.started.parse::<jiff::Timestamp>().ok());
    let is_recent = starts().max().is_some_and(|latest| now.duration_since(latest) < SESSION_GAP);
    if resume && is_recent { last.session } else { last.session.saturating_add(1) }
}

/// Returns the systems of the cells that are not skipped.
fn used(cells: &[Cell]) -> Vec<Arc<System>> {
    let mut used: Vec<Arc<System>> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.skipped.is_none()) {
        if used.iter().all(|system| system.name != cell.system.name) {
            used.push(cell.system.clone());
        }
    }
    used
}

/// Returns a system's file without the secrets that it sets.
fn shown(system: &System) -> String {
    system.secrets(&system.defaults()).hide(&system.source)
}

/// Returns the content of `environment.json` when a study begins.
fn environment(study: &Study, used: &[Arc<System>], folder: &Path) -> Value {
    let mut told = environment::environment(folder);
    let files = used.iter().map(|system| {
        let mut file = serde_json::json!(registry::origin(system));
        if system.brought {
            file["path"] = install::called(system).into();
        }
        (system.name.clone(), file)
    });
    told.insert("systems".into(), Value::Object(files.collect()));
    told.insert("quick".into(), study.quick.into());
    told.insert("calibration".into(), serde_json::json!(calibration_file::of_this_machine()));
    Value::Object(told)
}
