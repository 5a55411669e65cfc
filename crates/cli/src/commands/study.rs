//! Runs of a study, of a file or of one cell: makes them, reports them, and returns an exit code.

use super::budget::{self, BudgetOver};
use super::measure::{Measurement, PAGE};
use super::{answers, gates, searches};
use crate::args::{GateArgs, MeasureArgs};
use crate::failure::{Code, Failure};
use crate::output::{Voice, print};
use crate::progress::estimate::{cost, costs, in_words};
use pubmark_host::clock;
use pubmark_model::host::{HostSpec, Placement};
use pubmark_model::record::RunRecord;
use pubmark_model::units::Ns;
use pubmark_report::compare::Gates;
use pubmark_report::text::counted;
use pubmark_report::{ClaimResult, Report, StudyQuestion};
use pubmark_study::budget::Budget;
use pubmark_study::plan::StudyPlan;
use pubmark_study::registry::Registry;
use pubmark_study::repeats::Repeats;
use pubmark_study::runner::Ending;
use std::path::Path;

/// Cells without a reliable figure that are named.
const UNANSWERED_MAX: usize = 3;

/// A study to be measured.
pub struct StudyTarget<'a> {
    /// Name of its results folder.
    pub name: &'a str,
    /// Its published figures.
    pub reference: Option<&'a str>,
    /// Runs of earlier folders that count with those of this one.
    pub earlier: Vec<RunRecord>,
    /// Numbers of its cells and runs before anything was skipped.
    pub asked: (usize, usize),
}

/// A study that was measured.
pub struct MeasuredStudy<'a> {
    /// Report of its records.
    pub report: Report,
    measurement: Measurement<'a>,
    ending: Ending,
    budget: Option<BudgetOver>,
    took_ns: Ns,
}

/// Measures a study: all its runs or, with a time, those that its questions need; then the searches that it asks for.
/// Returns `None` if only the plan was requested.
pub fn measure_study<'a>(
    plan: &StudyPlan,
    target: StudyTarget<'_>,
    budget_ns: Option<Ns>,
    args: &'a MeasureArgs,
    (registry, voice): (&'a Registry, Voice),
) -> Result<Option<MeasuredStudy<'a>>, Failure> {
    let questions = budget_ns.map(|_| budget::asked(plan)).transpose()?;
    let following = searches::asked(plan)?;
    if args.dry_run {
        dry_run(plan, target.asked, budget_ns.zip(questions));
        following.iter().for_each(|search| print(&format!("then {}", searches::told(search))));
        if !following.is_empty() {
            print(&searches::all_told(&following, budget_ns));
        }
        return Ok(None);
    }
    let begun_ns = clock::now();
    let mut measurement = Measurement::begin(args, target.name, registry, voice)?;
    measurement.earlier = target.earlier;
    let (mut ending, budget) = match budget_ns {
        None => (measurement.measure(plan, target.reference, &mut Repeats::new(plan))?, None),
        Some(budget_ns) => {
            let of_runs_ns = budget_ns - searches::share(&following, budget_ns);
            let mut look = budget::look(plan.study());
            let mut strategy = Budget::new(plan, of_runs_ns, &cost, &mut look);
            let ending = measurement.measure(plan, target.reference, &mut strategy)?;
            (ending, Some(BudgetOver::of(&strategy)))
        }
    };
    if !ending.interrupted && !following.is_empty() {
        let ends_ns = budget_ns.map(|budget_ns| begun_ns.saturating_add(budget_ns));
        ending.interrupted |= !searches::search(&mut measurement, &following, ends_ns, voice)?;
    }
    let took_ns = clock::now().saturating_sub(begun_ns);
    let report = measurement.report()?;
    Ok(Some(MeasuredStudy { report, measurement, ending, budget, took_ns }))
}

impl MeasuredStudy<'_> {
    /// Returns its results folder.
    pub fn folder(&self) -> &Path {
        self.measurement.folder()
    }

    /// Keeps serving the live report if a user watches it. Returns whether the runs were interrupted, and says how to go
    /// on with them.
    pub fn end(self, voice: Voice) -> bool {
        if self.ending.interrupted {
            let folder = self.folder().display();
            voice.note(&format!("interrupted: to continue, use the same command with --out {folder} --resume"));
        }
        self.measurement.linger();
        self.ending.interrupted
    }

    /// Prints the outcome, decides gates, and keeps serving the live report if a user watches it. Returns the
    /// exit code.
    pub fn conclude(
        self,
        (gates, gate_args): (&Gates, &GateArgs),
        suite: &str,
        args: &MeasureArgs,
        voice: Voice,
    ) -> Result<Code, Failure> {
        if let Some(over) = &self.budget {
            let told = budget::told(&self.report, over, self.ending.interrupted, self.took_ns);
            // Requested data must be the only output.
            if args.json || args.markdown { voice.note(&told) } else { print(&told) }
        }
        // The short result says it, too.
        let is_data = args.json || args.markdown;
        let not_ok =
            answers::not_ok(&self.report).filter(|_| is_data && (self.budget.is_some() || !self.ending.interrupted));
        not_ok.iter().for_each(|line| voice.note(line));
        let own = if self.budget.is_some() { self.questions_code(voice) } else { self.runs_code(voice) };
        let gate = gates::decide(&self.report, gates, gate_args, suite, voice)?;
        self.measurement.linger();
        Ok(gate.map_or(own, |gate| gate.worst(own)))
    }

    fn runs_code(&self, voice: Voice) -> Code {
        let again = format!("to continue, use the same command with --out {} --resume", self.folder().display());
        if self.ending.interrupted {
            voice.note(&format!("interrupted: finished runs are kept; {again}"));
            return Code::Run;
        }
        if self.ending.runs.failed > 0 {
            voice.note(&format!("some runs failed: {again}"));
        }
        let unanswered = answers::unanswered(&self.report);
        unanswered.iter().take(UNANSWERED_MAX).for_each(|line| voice.note(line));
        let more = unanswered.len().saturating_sub(UNANSWERED_MAX);
        if more > 0 {
            voice.note(&format!("{more} more like this: see {}", self.folder().join(PAGE).display()));
        }
        let refuted = self.report.claims().iter().any(ClaimResult::breaks);
        let open = if unanswered.is_empty() { Code::Done } else { Code::Run };
        if refuted { open.worst(Code::Gate) } else { open }
    }

    fn questions_code(&self, voice: Voice) -> Code {
        let code = budget::code(&self.report);
        if self.ending.interrupted || code == Code::Run {
            let folder = self.folder().display();
            voice.note(&format!("to go on: the same command and --out {folder} --resume, with any --budget"));
        }
        if self.ending.interrupted { Code::Run } else { code }
    }
}

/// Prints the plan: its cells and runs, beside the numbers without skips. With a time, also the questions.
fn dry_run(plan: &StudyPlan, asked: (usize, usize), questions: Option<(Ns, Vec<StudyQuestion>)>) {
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
        return;
    }
    let order = plan.order();
    let planned = || order.iter().map(|run| &plan.cells()[run.cell]);
    let ns: Ns = costs(plan.study().fresh(), planned()).iter().sum();
    // Each drain ends with the last message, or lasts to its end if one is lost.
    let drains_ns: Ns = planned().filter(|cell| !cell.faults.is_empty()).map(|cell| cell.workload.drain_ns).sum();
    let most =
        if drains_ns > 0 { format!(", {} if all lose messages", in_words(ns + drains_ns)) } else { String::new() };
    for cell in plan.cells() {
        match &cell.skipped {
            Some(why) => print(&format!("{}  (skipped: {why})", cell.label())),
            None => print(&format!("{}{}", cell.label(), placed(&cell.placement))),
        }
    }
    let of = |count: usize, all: usize, noun: &str| match counted(all, noun) {
        told if all > count => format!("{count} of {told}"),
        told => told,
    };
    let here = plan.extent();
    let (cells, runs) = (of(here.0, asked.0, "cell"), of(here.1, asked.1, "run"));
    print(&format!("{cells}, {runs}, about {}{most}", in_words(ns)));
}

/// Describes which host plays what, if hosts other than this one take part.
fn placed(placement: &Placement) -> String {
    if placement.local() && placement.hosts().len() == 1 {
        return String::new();
    }
    let names = |hosts: &[HostSpec]| hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ");
    let Placement { publishers, subscribers, .. } = placement;
    let server = placement.of_members().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ");
    match (publishers == subscribers, publishers.len()) {
        (false, _) => {
            format!(
                "  (server on {server}, publishers on {}, subscribers on {})",
                names(publishers),
                names(subscribers)
            )
        }
        (true, 1) => format!("  (server on {server}, clients on {})", names(publishers)),
        (true, _) => format!("  (server on {server}, clients on {}, both ends of a stream on one)", names(publishers)),
    }
}
