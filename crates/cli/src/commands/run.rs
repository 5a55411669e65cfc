//! `pubmark run`

use super::budget::{self, ByReport};
use super::shared::{agent_command, by_flags, hosts, interrupt_flag, pairs, raise_open_files};
use super::{answers, engine, fit, gates, searches, studies};
use crate::args::RunArgs;
use crate::failure::{Code, Failure};
use crate::output::{Voice, colour, print, width};
use crate::progress::ProgressDisplay;
use crate::progress::board::SharedBoard;
use crate::progress::estimate::{cost, costs, in_words};
use crate::serve::live::{LiveReport, Pages, linger};
use crate::serve::{HttpServer, metrics};
use pubmark_files::{Links, read_text};
use pubmark_host::clock;
use pubmark_host::install;
use pubmark_host::lock::Lock;
use pubmark_model::diagnostic::Diagnostics;
use pubmark_model::host::{HostSpec, Placement};
use pubmark_model::reference;
use pubmark_model::setting::StopRule;
use pubmark_model::study::{ReadOptions, Study, has_quick_table, named_systems};
use pubmark_model::units::Ns;
use pubmark_report::page::Content;
use pubmark_report::{ClaimOutcome, Reference, Report, StudyQuestion};
use pubmark_study::ask::check_agents;
use pubmark_study::budget::{BudgetEnding, BudgetRequest, run_until_decided};
use pubmark_study::conduct::{Conduct, ConductError, Ending, conduct};
use pubmark_study::plan::StudyPlan;
use pubmark_study::registry;
use pubmark_study::results::{new_folder, newest_folder};
use pubmark_study::searches::FollowingSearch;
use pubmark_study::survey::Survey;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where results go that are given no folder of their own.
const RESULTS: &str = "results";

/// The page within a results folder.
pub const PAGE: &str = "report.html";

/// Runs a study.
pub fn run(args: &RunArgs, voice: Voice) -> Result<Code, Failure> {
    if let Some(on) = &args.on {
        return Err(engine::hand_over(on, std::env::args_os().skip(1)));
    }
    registry::load().map_err(Failure::usage)?;
    let budget_ns = args.budget.as_deref().map(budget::read).transpose()?;
    let NamedStudy { name, file, text, reference } = find(&args.study)?;
    let gates = gates::own(&args.gates)?;
    let wrong = |errors| Failure::usage(Diagnostics { file: file.clone(), text: text.clone(), errors });
    let mut plan = read(args, &name, (&file, &text), budget_ns, voice)?;
    let asked = plan.extent();
    let reference = published(&file, &text, reference, voice)?;
    raise_open_files();
    if args.install {
        fit::install_missing(&plan, voice);
    }
    // A plan is drawn without anybody being asked.
    let survey = if args.dry_run { Survey::default() } else { fit::survey(&plan, args.install, voice)? };
    let (left_out, left) = fit::leave_out(&mut plan, &survey);
    left_out.iter().for_each(|why| voice.note(&format!("left out: {why}")));
    left.map_err(|error| wrong(vec![error]))?;
    check_agents(&plan, &survey.greetings).map_err(wrong)?;
    note_replaced(&plan, voice);
    let questions = budget_ns.map(|_| budget::asked(&plan)).transpose()?;
    let following = searches::asked(&plan)?;
    if args.dry_run {
        let code = dry_run(&plan, asked, budget_ns.zip(questions));
        following.iter().for_each(|search| print(&format!("then {}", searches::told(search))));
        if !following.is_empty() {
            print(&searches::all_told(&following, budget_ns));
        }
        return Ok(code);
    }
    let time = budget_ns.map(|budget_ns| StudyTime::of(budget_ns, &following));
    let folder = folder(args, &name)?;
    let outlets = Outlets { metrics: args.serving.metrics, watch: args.watch };
    let results = (folder.as_path(), args.resume);
    let Carried { mut over, watched, interrupt, lock } =
        carry_out(&plan, reference.as_deref(), results, time.as_ref().map(|time| time.of_runs_ns), (voice, outlets))
            .map_err(|error| WayOn::Resume.advise(error))
            .inspect_err(|_| leave_no_empty(&folder, args.out.as_deref()))?;
    over.search(&following, &folder, time, (&interrupt, voice))?;
    let report = finish(&folder)?;
    drop(lock);
    let shown = if args.json {
        serde_json::to_string_pretty(&report.json()).unwrap_or_default()
    } else if args.markdown {
        report.markdown()
    } else {
        report.terminal(width(), colour())
    };
    print(&shown);
    let code = over.told(&report, &folder, args.json || args.markdown, (voice, WayOn::Resume));
    let code = gates::decide(&report, &gates, &args.gates, "pubmark run", voice)?.map_or(code, |gate| gate.worst(code));
    if let Some((live, server)) = watched.filter(|_| !over.ending.interrupted && std::io::stderr().is_terminal()) {
        live.refresh_for_good();
        linger(&server, &interrupt);
    }
    Ok(code)
}

/// Reads a study as the command line has it, and plans it.
fn read(
    args: &RunArgs,
    name: &str,
    (file, text): (&str, &str),
    budget_ns: Option<Ns>,
    voice: Voice,
) -> Result<StudyPlan, Failure> {
    let mut set = pairs(&args.set, "--set")?;
    set.extend(args.settings.iter().map(|asked| ("use".to_owned(), asked.clone())));
    set.extend(args.repeats.map(|repeats| ("repeats".to_owned(), repeats.to_string())));
    set.extend(budget_ns.map(|_| ("stop".to_owned(), StopRule::Decided.to_string())));
    let only = pairs(&args.only, "--only")?;
    require_named(args, file, text, &set, &only)?;
    let names: Vec<&str> = registry::systems().into_iter().map(|system| system.name.as_str()).collect();
    let planned = |quick| -> Result<StudyPlan, Failure> {
        let reading = ReadOptions { quick, set: &set, only: &only, names: &names, recorded: false };
        let flags: Vec<&str> = set.iter().skip(args.set.len()).map(|(key, _)| key.as_str()).collect();
        let by_flags = |errors| Failure::usage(by_flags(errors, &flags));
        let mut study = Study::parse(file, text, &registry::find, &reading).map_err(by_flags)?;
        if let Some(named) = &args.hosts {
            study.hosts = hosts(named)?;
        }
        budget::check(&study, budget_ns)?;
        if budget_ns.is_some() {
            study.shorten_windows();
        }
        let wrong = |errors| Failure::usage(Diagnostics { file: file.to_owned(), text: text.to_owned(), errors });
        StudyPlan::new(study).map_err(wrong)
    };
    let plan = planned(args.quick)?;
    let Some(budget_ns) = budget_ns.filter(|_| !args.quick && has_quick_table(text)) else { return Ok(plan) };
    let is_short = match args.resume {
        // It goes on as it began.
        true => budget::is_quick(&folder(args, name)?),
        false => budget::is_short(&plan, budget_ns),
    };
    if !is_short {
        return Ok(plan);
    }
    if !args.resume {
        voice.note("cut down by its [quick] table: there is no time for three blocks of the whole study");
    }
    planned(true)
}

/// Reads the system files that a study names by their paths, below the study's own
/// folder, or that the command line names; refuses those that it names and that
/// are none.
fn require_named(
    args: &RunArgs,
    file: &str,
    text: &str,
    set: &[(String, String)],
    only: &[(String, String)],
) -> Result<(), Failure> {
    let require = |named: &str, base: &Path| registry::require(named, base).map_err(Failure::usage);
    let typed = |pairs: &[(String, String)]| -> Vec<String> {
        let values = pairs.iter().filter(|(key, _)| key == "system");
        values.flat_map(|(_, value)| value.split(',').map(|name| name.trim().to_owned())).collect()
    };
    for named in typed(set) {
        require(&named, Path::new(""))?;
    }
    let folder = Path::new(file).parent().filter(|_| Path::new(&args.study).exists()).unwrap_or(Path::new(""));
    for named in named_systems(text) {
        require(&named, folder)?;
    }
    for named in typed(only).iter().filter(|named| registry::find(named).is_none()) {
        require(named, Path::new(""))?;
    }
    Ok(())
}

/// Says which systems are the user's in place of those that come with pubmark.
pub fn note_replaced(plan: &StudyPlan, voice: Voice) {
    let mut told: Vec<&str> = Vec::new();
    for cell in plan.cells().iter().filter(|cell| cell.skipped.is_none()) {
        let Some(system) = registry::find(&cell.system).filter(|system| !told.contains(&system.name.as_str())) else {
            continue;
        };
        told.push(&system.name);
        if registry::origin(system).replaces {
            voice.note(&format!(
                "{} is {}, and not the one that comes with pubmark",
                system.name,
                install::called(system)
            ));
        }
    }
}

/// A study that was asked for.
pub(super) struct NamedStudy {
    /// Its name.
    pub name: String,
    /// What errors name.
    pub file: String,
    /// The text of its file.
    pub text: String,
    /// Its published figures: their text, or where they would be.
    reference: Beside,
}

enum Beside {
    Text(Option<&'static str>),
    At(PathBuf),
}

/// The published figures of a study that names some, checked against the whole
/// of it, before anything is cut down or left out.
fn published(file: &str, text: &str, beside: Beside, voice: Voice) -> Result<Option<String>, Failure> {
    let study = Study::parse(file, text, &registry::find, &ReadOptions::default()).map_err(Failure::usage)?;
    if study.reference.is_none() {
        return Ok(None);
    }
    let (file, read) = match beside {
        Beside::Text(text) => (format!("{file}: {}", reference::FILE), text.map(str::to_owned)),
        Beside::At(path) => match read_text(&path, Links::Follow) {
            Ok(text) => (path.display().to_string(), Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                voice.note(&format!("no published figures in the report: there is no {}", path.display()));
                return Ok(None);
            }
            Err(error) => return Err(Failure::usage(format!("{}: {error}", path.display()))),
        },
    };
    let check = |text: &String| Reference::check(&file, text, &registry::find, &study).map(drop);
    read.as_ref().map_or(Ok(()), check).map_err(Failure::usage)?;
    Ok(read)
}

/// Finds a study: one that comes with pubmark, or a file.
pub(super) fn find(study: &str) -> Result<NamedStudy, Failure> {
    if let Some(included) = registry::STUDIES.iter().find(|included| included.name == study) {
        return Ok(NamedStudy {
            name: included.name.to_owned(),
            file: format!("studies/{study}/study.toml"),
            text: included.text.to_owned(),
            reference: Beside::Text(included.reference),
        });
    }
    let given = Path::new(study);
    let path = if given.is_dir() { given.join("study.toml") } else { given.to_owned() };
    if !path.exists() {
        return Err(studies::unknown(study));
    }
    let text =
        read_text(&path, Links::Follow).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let stem = if path.file_name().is_some_and(|name| name == "study.toml") {
        path.parent().and_then(Path::file_name)
    } else {
        path.file_stem()
    };
    let name = stem.and_then(|stem| stem.to_str()).filter(|stem| !stem.is_empty()).unwrap_or("study");
    let reference = Beside::At(path.with_file_name(reference::FILE));
    Ok(NamedStudy { name: name.to_owned(), file: path.display().to_string(), text, reference })
}

fn folder(args: &RunArgs, name: &str) -> Result<PathBuf, Failure> {
    folder_of(args.out.as_deref(), args.resume, name)
}

/// The results folder: as given, the newest of this name, or a new one.
pub(super) fn folder_of(out: Option<&Path>, resume: bool, name: &str) -> Result<PathBuf, Failure> {
    match (out, resume) {
        (Some(folder), _) => Ok(folder.to_owned()),
        (None, false) => fresh(name),
        (None, true) => newest_folder(Path::new(RESULTS), name).ok_or_else(|| {
            Failure::usage(format!(
                "there is no {RESULTS}/{name}-TIME to go on with: name the folder with --out, or leave --resume out"
            ))
        }),
    }
}

/// `results/NAME-TIME`, just made and empty.
pub fn fresh(name: &str) -> Result<PathBuf, Failure> {
    new_folder(Path::new(RESULTS), name).map_err(|error| Failure::from(ConductError::from(error)))
}

/// A folder of this program's own making, in which nothing came to be, is not left.
pub fn leave_no_empty(folder: &Path, given: Option<&Path>) {
    if given.is_none() {
        let _ = std::fs::remove_dir(folder);
    }
}

/// What else shows a study that goes on.
#[derive(Clone, Default)]
pub struct Outlets {
    /// Where metrics are to be had.
    pub metrics: Option<SocketAddr>,
    /// The port of the live report.
    pub watch: Option<u16>,
}

/// How a study ended.
pub struct Over {
    /// What became of its runs.
    pub ending: Ending,
    /// Where its questions decided how many there were: how far that came.
    decided: Option<BudgetEnding>,
    took_ns: Ns,
}

/// A study that is over.
pub struct Carried {
    /// How it ended.
    pub over: Over,
    /// Its live report, which is still served.
    pub watched: Option<(Arc<LiveReport>, HttpServer)>,
    /// Set when the user wants to stop.
    pub interrupt: Arc<AtomicBool>,
    /// Keeps the results folder for this process.
    pub lock: Lock,
}

/// Conducts a study with a progress display: all its runs or, with a time, those that
/// its questions need until they are decided.
pub fn carry_out(
    plan: &StudyPlan,
    reference: Option<&str>,
    (folder, resume): (&Path, bool),
    budget_ns: Option<Ns>,
    (voice, outlets): (Voice, Outlets),
) -> Result<Carried, Failure> {
    let began_ns = clock::now();
    let interrupt = interrupt_flag()?;
    raise_open_files();
    let agent = agent_command()?;
    let shared = Arc::new(SharedBoard::default());
    let _metrics = outlets.metrics.map(|address| metrics::serve(shared.clone(), address)).transpose()?;
    let mut watched = None;
    if let Some(port) = outlets.watch {
        let live = LiveReport::new(shared.clone(), folder, Box::new(pages));
        let server = live.serve(port)?;
        watched = Some((live, server));
    }
    let mut progress = ProgressDisplay::new(voice, shared, interrupt.clone());
    if let Some((live, _)) = &watched {
        let live = live.clone();
        progress.between_runs(move || live.refresh());
    }
    let how = Conduct { folder, resume, reference, agent: &agent, interrupt: &interrupt };
    let over = match budget_ns {
        None => conduct(plan, &how, &mut progress).map(|(ending, lock)| (ending, None, lock)),
        Some(budget_ns) => {
            let request = BudgetRequest { budget_ns, cost: &cost };
            let decided = run_until_decided(plan, &how, &request, &mut ByReport(plan.study()), &mut progress);
            decided.map(|(over, lock)| (over.ending, Some(over), lock))
        }
    };
    progress.finish();
    let (ending, decided, lock) = over?;
    let over = Over { ending, decided, took_ns: clock::now().saturating_sub(began_ns) };
    Ok(Carried { over, watched, interrupt, lock })
}

/// The live report of what is in a results folder so far.
fn pages(folder: &Path) -> Result<Pages, String> {
    let report = Report::load(folder, &registry::find).map_err(|error| error.to_string())?;
    let content = Content::of(&[&report], true);
    Ok(Pages { html: content.html(), data: content.data_json() })
}

/// Reads the results again and writes `summary.csv`.
pub fn load(folder: &Path) -> Result<Report, Failure> {
    let report = Report::load(folder, &registry::find).map_err(Failure::run)?;
    report.write_csv(&folder.join("summary.csv")).map_err(Failure::run)?;
    Ok(report)
}

/// The same, and writes `report.html`.
pub fn finish(folder: &Path) -> Result<Report, Failure> {
    let report = load(folder)?;
    Report::write_html(&[&report], &folder.join(PAGE)).map_err(Failure::run)?;
    Ok(report)
}

/// What can be done about runs that are missing.
#[derive(Clone, Copy)]
pub enum WayOn {
    /// The same command goes on with its results folder.
    Resume,
    /// It has to be given again.
    Again,
}

impl WayOn {
    /// An error with the way on behind it.
    pub fn advise(self, error: Failure) -> Failure {
        match (self, error) {
            (WayOn::Resume, Failure::Occupied(text)) => Failure::Occupied(text + ", or go on with --resume"),
            (WayOn::Resume, Failure::Full(text)) => Failure::Full(text + ", and --resume goes on after them"),
            (_, error) => error,
        }
    }
}

/// The time of a study.
#[derive(Clone, Copy)]
pub struct StudyTime {
    /// What its runs have of it, ns; the searches that follow them have the rest.
    pub of_runs_ns: Ns,
    ends_ns: Ns,
}

impl StudyTime {
    /// Shares out a time that begins now.
    pub fn of(budget_ns: Ns, following: &[FollowingSearch]) -> StudyTime {
        let of_runs_ns = budget_ns - searches::share(following, budget_ns);
        StudyTime { of_runs_ns, ends_ns: clock::now().saturating_add(budget_ns) }
    }
}

impl Over {
    /// Makes the searches that follow the runs, in the time that is left where there is
    /// one.
    pub fn search(
        &mut self,
        following: &[FollowingSearch],
        folder: &Path,
        time: Option<StudyTime>,
        (interrupt, voice): (&AtomicBool, Voice),
    ) -> Result<(), Failure> {
        if self.ending.interrupted || following.is_empty() {
            return Ok(());
        }
        let from_ns = clock::now();
        let ended = searches::search(following, folder, time.map(|time| time.ends_ns), (interrupt, voice))?;
        self.ending.interrupted |= !ended;
        let folders = following.iter().map(|search| folder.join(search.folder()));
        folders.filter(|own| own.join("runs.jsonl").exists()).try_for_each(|own| finish(&own).map(drop))?;
        self.took_ns += clock::now().saturating_sub(from_ns);
        Ok(())
    }

    /// Says where the results are, and how it went, by exit code. What is asked for `as_data`
    /// is data alone.
    pub fn told(&self, report: &Report, folder: &Path, as_data: bool, (voice, way_on): (Voice, WayOn)) -> Code {
        if let Some(over) = &self.decided {
            let told = budget::told(report, over, self.took_ns);
            if as_data { voice.note(&told) } else { print(&told) }
        }
        voice.note(&format!("report: {}", folder.join(PAGE).display()));
        match self.decided {
            Some(_) => self.told_of_questions(report, folder, voice, way_on),
            None => self.told_of_runs(report, folder, voice, way_on),
        }
    }

    fn told_of_runs(&self, report: &Report, folder: &Path, voice: Voice, way_on: WayOn) -> Code {
        let again = match way_on {
            WayOn::Resume => format!("go on with the same command and --out {} --resume", folder.display()),
            WayOn::Again => "for the others give the command again, with another --out".into(),
        };
        if self.ending.interrupted {
            voice.note(&format!("interrupted: finished runs are kept; {again}"));
            return Code::Run;
        }
        if let Some(left_out) = answers::left_out(report) {
            voice.note(&left_out);
        }
        if self.ending.runs.failed > 0 {
            voice.note(&format!("some runs could not be made: {again}"));
        }
        let unanswered = answers::unanswered(report);
        unanswered.iter().for_each(|line| voice.note(line));
        let refuted = report.claims().iter().any(|claim| claim.outcome == ClaimOutcome::Fails);
        let open = if unanswered.is_empty() { Code::Done } else { Code::Run };
        if refuted { open.worst(Code::Gate) } else { open }
    }

    fn told_of_questions(&self, report: &Report, folder: &Path, voice: Voice, way_on: WayOn) -> Code {
        if let Some(left_out) = answers::left_out(report) {
            voice.note(&left_out);
        }
        let code = budget::code(report);
        if self.ending.interrupted || code == Code::Run {
            voice.note(&match way_on {
                WayOn::Resume => {
                    format!("to go on: the same command and --out {} --resume, with any --budget", folder.display())
                }
                WayOn::Again => "what is open takes a longer --budget, or a wider --precision".to_owned(),
            });
        }
        if self.ending.interrupted { Code::Run } else { code }
    }
}

/// What is planned: its cells and runs, beside those that there would be if
/// nothing had to be left out here. With a time, the questions.
fn dry_run(plan: &StudyPlan, asked: (usize, usize), questions: Option<(Ns, Vec<StudyQuestion>)>) -> Code {
    if let Some((budget_ns, questions)) = questions {
        let cells = plan.cells().iter().filter(|cell| cell.skipped.is_none());
        let block_ns: Ns = costs(plan.study().fresh(), cells).iter().sum();
        questions.iter().for_each(|question| print(&question.text));
        budget::shortened(plan).iter().for_each(|line| print(line));
        print(&format!(
            "{} questions; one block of all {} cells takes about {}, of {}",
            questions.len(),
            plan.extent().0,
            in_words(block_ns),
            in_words(budget_ns)
        ));
        return Code::Done;
    }
    let order = plan.order();
    let ns: Ns = costs(plan.study().fresh(), order.iter().map(|run| &plan.cells()[run.cell])).iter().sum();
    for cell in plan.cells() {
        match &cell.skipped {
            Some(why) => print(&format!("{}  (skipped: {why})", cell.label())),
            None => print(&format!("{}{}", cell.label(), placed(&cell.placement))),
        }
    }
    let of = |count: usize, all: usize| if all > count { format!("{count} of {all}") } else { count.to_string() };
    let here = plan.extent();
    print(&format!("{} cells, {} runs, about {}", of(here.0, asked.0), of(here.1, asked.1), in_words(ns)));
    Code::Done
}

/// Which host plays what, where they are not all this one.
fn placed(placement: &Placement) -> String {
    if placement.local() && placement.hosts().len() == 1 {
        return String::new();
    }
    let names = |hosts: &[HostSpec]| hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ");
    let Placement { server, publishers, subscribers } = placement;
    match (publishers == subscribers, publishers.len()) {
        (false, _) => {
            format!(
                "  (server on {}, publishers on {}, subscribers on {})",
                server.name,
                names(publishers),
                names(subscribers)
            )
        }
        (true, 1) => format!("  (server on {}, clients on {})", server.name, names(publishers)),
        (true, _) => {
            format!("  (server on {}, clients on {}, both ends of a stream on one)", server.name, names(publishers))
        }
    }
}
