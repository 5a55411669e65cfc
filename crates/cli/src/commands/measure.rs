//! Runs a command that measures (`run`, `bench`, `ab`, `capacity`): from a plan to records and a report.

use super::shared::{agent_command, interrupt_flag, raise_open_files};
use super::{engine, fit};
use crate::args::MeasureArgs;
use crate::failure::Failure;
use crate::output::{Voice, colour, print, width};
use crate::progress::ProgressDisplay;
use crate::progress::board::SharedBoard;
use crate::serve::live::{LiveReport, Make, Pages, linger};
use crate::serve::{HttpServer, metrics};
use crate::telemetry::push::OtlpPush;
use pubmark_host::install;
use pubmark_host::lock::Lock;
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::record::RunRecord;
use pubmark_report::page::Content;
use pubmark_report::words::SKIPPED;
use pubmark_report::{BriefPlaces, Report};
use pubmark_study::ask::check_agents;
use pubmark_study::credentials;
use pubmark_study::plan::StudyPlan;
use pubmark_study::registry::{Registry, origin};
use pubmark_study::results::{new_folder, newest_folder};
use pubmark_study::runner::{Ending, RunStudy, StudyError, run_study};
use pubmark_study::strategy::Strategy;
use pubmark_study::survey::HostSurvey;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Default parent of results folders.
const RESULTS: &str = "results";

/// Name of the page within a results folder.
pub const PAGE: &str = "report.html";

/// Begins a command that measures; with `--on` replaces this process by the engine's program.
pub fn begin(args: &MeasureArgs) -> Result<(), Failure> {
    if let Some(on) = &args.on {
        return Err(engine::hand_over(on, std::env::args_os().skip(1)));
    }
    raise_open_files();
    Ok(())
}

/// Converts errors of a plan.
pub fn planned(errors: Vec<Diagnostic>) -> Failure {
    Failure::from(StudyError::Plan(errors))
}

/// Skips the cells of a plan that cannot be measured, and prints the reasons; checks that agents can do the rest. A
/// plan for `--dry-run` is made without asking any host or agent. `wrong` converts an error of the plan. Returns the
/// survey of the hosts.
pub fn prepare(
    plan: &mut StudyPlan,
    args: &MeasureArgs,
    wrong: &dyn Fn(Vec<Diagnostic>) -> Failure,
    voice: Voice,
) -> Result<HostSurvey, Failure> {
    if args.install && !args.dry_run {
        fit::install_missing(plan, voice);
    }
    let survey = if args.dry_run { HostSurvey::default() } else { fit::survey(plan, args.install, voice)? };
    let (left_out, left) = fit::leave_out(plan, &survey);
    match &left_out[..] {
        // No cell is left: the reason is the error.
        [why] if left.is_err() => return Err(Failure::usage(why)),
        _ => left_out.iter().for_each(|why| voice.note(&format!("{SKIPPED}: {why}"))),
    }
    left.map_err(|error| wrong(vec![error]))?;
    check_agents(plan, &survey.greetings).map_err(wrong)?;
    credentials::check(plan).map_err(wrong)?;
    note_replaced(plan, voice);
    Ok(survey)
}

/// Prints which systems of the user replace those that come with pubmark.
fn note_replaced(plan: &StudyPlan, voice: Voice) {
    let mut told: Vec<&str> = Vec::new();
    for cell in plan.cells().iter().filter(|cell| cell.skipped.is_none()) {
        let system = &cell.system;
        if told.contains(&system.name.as_str()) {
            continue;
        }
        told.push(&system.name);
        if origin(system).replaces {
            let called = install::called(system);
            voice.note(&format!("{} is {called}, and not the one that comes with pubmark", system.name));
        }
    }
}

/// Returns the results folder: the given one, the newest of this name, or a new one, just made and empty.
pub fn folder(args: &MeasureArgs, name: &str) -> Result<PathBuf, Failure> {
    match (&args.out, args.resume) {
        (Some(folder), _) => Ok(folder.clone()),
        (None, false) => new_folder(Path::new(RESULTS), name).map_err(|error| Failure::from(StudyError::from(error))),
        (None, true) => newest_folder(Path::new(RESULTS), name).ok_or_else(|| {
            Failure::usage(format!(
                "there is no {RESULTS}/{name}-TIME to go on with: name the folder with --out, or omit --resume"
            ))
        }),
    }
}

/// Removes a folder that this program made, if it stayed empty.
fn leave_no_empty(folder: &Path, args: &MeasureArgs) {
    if args.out.is_none() {
        let _ = std::fs::remove_dir(folder);
    }
}

/// Appends advice to an error.
fn advised(error: Failure) -> Failure {
    match error {
        Failure::Occupied(text) => Failure::Occupied(text + ", or go on with --resume"),
        Failure::Full(text) => Failure::Full(text + ", and --resume goes on after them"),
        error => error,
    }
}

/// Makes the runs of a command and their report: with a display, metrics and a live report, as far as they are
/// requested.
pub struct Measurement<'a> {
    args: &'a MeasureArgs,
    registry: &'a Registry,
    folder: PathBuf,
    /// Runs of earlier folders, which stand before those of this one.
    pub earlier: Vec<RunRecord>,
    /// Keeps the results folder for this process, from the first run to the report.
    lock: Option<Lock>,
    agent: Vec<String>,
    /// Set when the user interrupts.
    interrupt: Arc<AtomicBool>,
    progress: ProgressDisplay,
    _metrics: Option<HttpServer>,
    watched: Option<(Arc<LiveReport>, HttpServer)>,
}

impl<'a> Measurement<'a> {
    /// Begins a measurement whose results folder has this name, unless `--out` gives it another.
    pub fn begin(
        args: &'a MeasureArgs,
        name: &str,
        registry: &'a Registry,
        voice: Voice,
    ) -> Result<Measurement<'a>, Failure> {
        let folder = folder(args, name)?;
        Measurement::within(args, &folder, registry, voice).inspect_err(|_| leave_no_empty(&folder, args))
    }

    fn within(
        args: &'a MeasureArgs,
        folder: &Path,
        registry: &'a Registry,
        voice: Voice,
    ) -> Result<Measurement<'a>, Failure> {
        let (interrupt, agent) = (interrupt_flag()?, agent_command()?);
        let shared = Arc::new(SharedBoard::default());
        let metrics = args.metrics.map(|address| metrics::serve(shared.clone(), address)).transpose()?;
        let mut watched = None;
        if let Some(port) = args.watch {
            let live = LiveReport::new(shared.clone(), folder, pages(registry.clone()));
            let server = live.serve(port)?;
            watched = Some((live, server));
        }
        let mut progress = ProgressDisplay::new(voice, shared.clone(), interrupt.clone());
        if let Some(collector) = &args.otlp {
            let push = OtlpPush::start(shared, collector.clone(), folder.display().to_string());
            progress.push_to(push.map_err(Failure::run)?);
        }
        if let Some((live, _)) = &watched {
            let live = live.clone();
            progress.between_runs(move || live.refresh());
        }
        let (folder, earlier, lock) = (folder.to_owned(), Vec::new(), None);
        Ok(Measurement {
            args,
            registry,
            folder,
            earlier,
            lock,
            agent,
            interrupt,
            progress,
            _metrics: metrics,
            watched,
        })
    }

    /// Returns the results folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the runs that a strategy asks for.
    pub fn measure(
        &mut self,
        plan: &StudyPlan,
        reference: Option<&str>,
        strategy: &mut dyn Strategy,
    ) -> Result<Ending, Failure> {
        let how = RunStudy {
            folder: &self.folder,
            resume: self.args.resume,
            earlier: &self.earlier,
            reference,
            agent: &self.agent,
            interrupt: &self.interrupt,
        };
        match run_study(plan, &how, strategy, &mut self.progress) {
            Ok((ending, lock)) => {
                self.lock = Some(lock);
                Ok(ending)
            }
            Err(error) => {
                self.progress.finish();
                leave_no_empty(&self.folder, self.args);
                Err(advised(Failure::from(error)))
            }
        }
    }

    /// Begins or resumes a search in a folder within the results folder, and makes its report.
    pub fn search(&mut self, plan: &StudyPlan, within: &Path, strategy: &mut dyn Strategy) -> Result<Ending, Failure> {
        let folder = self.folder.join(within);
        let resume = folder.join("runs.jsonl").exists();
        let (agent, interrupt) = (&self.agent[..], &*self.interrupt);
        let how = RunStudy { folder: &folder, resume, earlier: &[], reference: None, agent, interrupt };
        let (ending, _lock) = run_study(plan, &how, strategy, &mut self.progress)?;
        finish(&folder, self.registry)?;
        Ok(ending)
    }

    /// Removes the display from the screen, and makes the report of the records.
    pub fn report(&mut self) -> Result<Report, Failure> {
        self.progress.finish();
        let report = finish(&self.folder, self.registry)?;
        self.lock = None;
        Ok(report)
    }

    /// Keeps serving the live report until Ctrl-C, if standard error is a terminal.
    pub fn linger(self) {
        let is_over = self.interrupt.load(Ordering::Relaxed);
        if let Some((live, server)) = self.watched.filter(|_| !is_over && std::io::stderr().is_terminal()) {
            live.refresh_for_good();
            linger(&server, &self.interrupt);
        }
    }
}

/// Returns a function that makes the live report of a results folder so far.
fn pages(registry: Registry) -> Box<Make> {
    Box::new(move |folder| {
        let report = Report::load(folder, &|name| registry.find(name)).map_err(|error| error.to_string())?;
        let content = Content::of(&[&report], true);
        Ok(Pages { html: content.html(), data: content.data_json() })
    })
}

/// Reads the results again and writes `summary.csv`.
pub fn load(folder: &Path, registry: &Registry) -> Result<Report, Failure> {
    let report = Report::load(folder, &|name| registry.find(name)).map_err(Failure::run)?;
    report.write_csv(&folder.join("summary.csv")).map_err(Failure::run)?;
    Ok(report)
}

/// Reads the results again and writes `summary.csv` and `report.html`.
fn finish(folder: &Path, registry: &Registry) -> Result<Report, Failure> {
    let report = load(folder, registry)?;
    Report::write_html(&[&report], &folder.join(PAGE)).map_err(Failure::run)?;
    Ok(report)
}

/// Prints a result in the requested output.
pub fn show(
    args: &MeasureArgs,
    json: impl FnOnce() -> Result<serde_json::Value, Failure>,
    markdown: impl FnOnce() -> String,
    terminal: impl FnOnce(usize, bool) -> String,
) -> Result<(), Failure> {
    print(&if args.json {
        serde_json::to_string_pretty(&json()?).unwrap_or_default()
    } else if args.markdown {
        markdown()
    } else {
        terminal(width(), colour())
    });
    Ok(())
}

/// Prints a report; `json` is the command's own JSON output.
pub fn show_report(
    args: &MeasureArgs,
    report: &Report,
    json: impl FnOnce() -> Result<serde_json::Value, Failure>,
) -> Result<(), Failure> {
    show(args, json, || report.markdown(), |width, colour| report.terminal(width, colour))
}

/// Prints the result of a study: the short one, or all tables and where the page is;
/// `json`: as this command has it.
pub fn show_study(
    (args, all): (&MeasureArgs, bool),
    (report, folder): (&Report, &Path),
    voice: Voice,
    json: impl FnOnce() -> Result<serde_json::Value, Failure>,
) -> Result<(), Failure> {
    let places = BriefPlaces { page: folder.join(PAGE), folders: vec![folder.to_owned()] };
    let markdown = || if all { report.markdown_whole() } else { report.markdown() };
    show(args, json, markdown, |width, colour| match all {
        true => report.terminal_whole(width, colour),
        false => report.brief(&places, width, colour),
    })?;
    if args.json || args.markdown || all || !report.has_brief() {
        voice.note(&format!("report: {}", places.page.display()));
    }
    Ok(())
}
