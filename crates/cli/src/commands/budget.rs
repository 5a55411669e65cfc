//! `pubmark run --budget`: a study's questions and their results.

use crate::failure::{Code, Failure};
use crate::progress::estimate::costs;
use crate::progress::table::{CANNOT_ESTIMATE, duration};
use pubmark_files::{Links, read_text};
use pubmark_model::plan::cells;
use pubmark_model::record::RunRecord;
use pubmark_model::setting::StopRule;
use pubmark_model::study::Study;
use pubmark_model::units::{Ns, SECOND, format_time, parse_time};
use pubmark_model::windows::{MessagesAsked, WINDOW_MIN};
use pubmark_report::words::{FAILED, UNRELIABLE};
use pubmark_report::{ClaimResult, QuestionKind, QuestionState, Records, Report, StudyQuestion};
use pubmark_study::budget::{Budget, BudgetEnd, OpenQuestion, QuestionsSeen};
use pubmark_study::plan::StudyPlan;
use pubmark_study::strategy::Decided;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;

/// Minimum time of a study, ns.
const BUDGET_MIN: Ns = SECOND;

/// Repeats of every cell that a study must have time for; otherwise its `[quick]` table is used.
const BLOCKS_WORTH: u64 = 3;

/// Maximum number of lines of each kind at the end.
const LINES_MAX: usize = 40;

/// Parses the time.
pub fn read(typed: &str) -> Result<Ns, Failure> {
    let budget_ns = parse_time(typed).map_err(|error| Failure::usage(format!("--budget: {error}")))?;
    if budget_ns < BUDGET_MIN {
        return Err(Failure::usage("--budget: less than 1s is too little for anything"));
    }
    Ok(budget_ns)
}

/// Returns whether the time is too short to decide anything of the whole study.
pub fn is_short(plan: &StudyPlan, budget_ns: Ns) -> bool {
    let cells = plan.cells().iter().filter(|cell| cell.skipped.is_none());
    let block_ns: Ns = costs(plan.study().fresh(), cells).iter().sum();
    block_ns.saturating_mul(BLOCKS_WORTH) > budget_ns
}

/// Returns whether a results folder belongs to a shortened study.
pub fn is_quick(folder: &Path) -> bool {
    let text = read_text(&folder.join("environment.json"), Links::Refuse).unwrap_or_default();
    let told: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    told["quick"] == true
}

/// Checks that a study can be measured with a time.
pub fn check(study: &Study, budget: Option<Ns>) -> Result<(), Failure> {
    match budget {
        None if study.until_decided() => Err(Failure::usage(format!(
            "this study is measured until its questions are decided (stop = \"{}\"): say for how long with --budget, \
             such as --budget 30m",
            StopRule::Decided
        ))),
        Some(_) if !study.interleaved() => Err(Failure::usage(
            "--budget makes blocks, in which systems follow one another: leave order = \"sequential\" out",
        )),
        _ => Ok(()),
    }
}

/// Returns the questions of a study, before anything is measured.
pub fn asked(plan: &StudyPlan) -> Result<Vec<StudyQuestion>, Failure> {
    let report = Report::of(plan.study().clone(), &Records::default()).map_err(Failure::run)?;
    let questions = report.questions();
    if questions.is_empty() {
        return Err(Failure::usage(
            "there is nothing to decide: a study asks who is best where two systems or more share a point, and whether \
             its claims hold, and for the capacity of its cells where [capacity] names an objective; without --budget it is measured as it stands",
        ));
    }
    Ok(questions)
}

/// Returns one line for each window that is shorter than in the study's file, with the reason.
pub fn shortened(plan: &StudyPlan) -> Vec<String> {
    let Ok(whole) = cells(&plan.study().with_whole_windows()) else { return Vec::new() };
    let mut counted: BTreeMap<(Ns, Ns, MessagesAsked), usize> = BTreeMap::new();
    for (cell, whole) in plan.cells().iter().zip(&whole).filter(|(cell, _)| cell.skipped.is_none()) {
        let windows = cell.workload.window_ns().zip(whole.workload.window_ns());
        let shorter = windows.filter(|(ns, whole_ns)| ns < whole_ns);
        if let Some(((ns, whole_ns), asked)) = shorter.zip(MessagesAsked::of(plan.study(), &cell.axes)) {
            *counted.entry((ns, whole_ns, asked)).or_default() += 1;
        }
    }
    let line = |((ns, whole_ns, asked), cells): ((Ns, Ns, MessagesAsked), usize)| {
        let why = match ns {
            WINDOW_MIN => format!("no window is shorter, and {} messages for {} fit", asked.messages, asked.figure),
            _ => format!("{} messages for {}", asked.messages, asked.figure),
        };
        format!("windows of {} instead of {} in {cells} cells: {why}", format_time(ns), format_time(whole_ns))
    };
    counted.into_iter().map(line).collect()
}

/// Evaluates records as a report of this study does.
pub fn look(study: &Study) -> impl FnMut(&[RunRecord]) -> Result<QuestionsSeen, Box<dyn Error + Send + Sync>> {
    move |records| {
        let records = Records { runs: records.to_vec(), ..Records::default() };
        let report = Report::of(study.clone(), &records)?;
        let measured = report.measured_cells();
        let of_plan = |cells: Vec<usize>| {
            let cells: BTreeSet<usize> = cells.into_iter().map(|cell| measured[cell]).collect();
            cells.into_iter().collect::<Vec<_>>()
        };
        let mut beside = vec![Vec::new(); measured.iter().max().map_or(0, |last| last + 1)];
        measured.iter().zip(report.beside()).for_each(|(cell, others)| beside[*cell].extend(others));
        let beside = beside.into_iter().map(of_plan).collect();
        let mut seen = seen(report.questions());
        seen.open.iter_mut().for_each(|open| open.cells = of_plan(std::mem::take(&mut open.cells)));
        Ok(QuestionsSeen { beside, ..seen })
    }
}

/// Outcome of a study whose time is over or whose questions are decided.
pub struct BudgetOver {
    end: BudgetEnd,
    given_up: Vec<usize>,
    run_ns: Vec<Ns>,
}

impl BudgetOver {
    /// Returns the outcome of a strategy.
    pub fn of(strategy: &Budget<'_>) -> BudgetOver {
        BudgetOver { end: strategy.end(), given_up: strategy.given_up(), run_ns: strategy.run_ns() }
    }
}

fn seen(questions: Vec<StudyQuestion>) -> QuestionsSeen {
    let mut seen = QuestionsSeen::default();
    for question in questions {
        let text = question.text;
        match question.state {
            QuestionState::Decided(answer) => seen.decided.push(Decided { text, answer }),
            QuestionState::Closed(_) => seen.closed += 1,
            QuestionState::Open { cells, groups, compares, blocks_more, .. } => {
                seen.open.push(OpenQuestion { text, cells, groups, compares, blocks_more });
            }
        }
    }
    seen
}

/// Describes the outcome of a study: decided questions, open ones with the time that each would still take, and
/// questions that no further run decides.
pub fn told(report: &Report, over: &BudgetOver, interrupted: bool, took_ns: Ns) -> String {
    let (questions, measured) = (report.questions(), report.measured_cells());
    let (mut decided, mut open, mut closed) = (Vec::new(), Vec::new(), Vec::new());
    for question in &questions {
        let text = &question.text;
        match &question.state {
            QuestionState::Decided(answer) => decided.push(format!("{text}: {answer}")),
            QuestionState::Closed(why) => closed.push(format!("{text}: {why}")),
            QuestionState::Open { cells, groups, why, blocks_more, .. } => {
                let counts_never = |cell: &usize| {
                    let result = &report.cells()[*cell];
                    result.runs > 0 && groups.iter().any(|group| result.runs_for(*group) == 0)
                };
                let is_given_up = |cell: &usize| over.given_up.contains(&measured[*cell]) || counts_never(cell);
                let given_up: Vec<usize> = cells.iter().copied().filter(is_given_up).collect();
                let more_ns = blocks_more.map(|blocks| {
                    {
                        let cells: BTreeSet<usize> = cells.iter().map(|cell| measured[*cell]).collect();
                        cells.iter().map(|cell| over.run_ns[*cell]).sum::<Ns>()
                    }
                    .saturating_mul(u64::from(blocks))
                });
                let not_counted = given_up.iter().find_map(|cell| Some((cell, report.why_not_counted(*cell, groups)?)));
                let said = match (not_counted, more_ns) {
                    (Some((cell, (reasons, machine))), _) => {
                        let whose = if machine { "the machine is busy" } else { "unreliable runs" };
                        let label = report.cells()[*cell].cell.label();
                        format!("{text}: {whose} ({label}: {reasons})")
                    }
                    (None, None) if question.kind == QuestionKind::Capacity => format!("{text}: {why}"),
                    (None, Some(more_ns)) => format!("{text}: {why}; about {} more", duration(more_ns)),
                    (None, None) => format!("{text}: {why}; {CANNOT_ESTIMATE}"),
                };
                open.push((more_ns.filter(|_| given_up.is_empty()).unwrap_or(Ns::MAX), said));
            }
        }
    }
    // Claims stay before points if they take as long.
    open.sort_by_key(|(more_ns, _)| *more_ns);
    let open: Vec<String> = open.into_iter().map(|(_, said)| said).collect();
    let is_search = |question: &&StudyQuestion| question.kind == QuestionKind::Capacity;
    let searches = questions.iter().filter(is_search).any(|asked| matches!(asked.state, QuestionState::Open { .. }));
    let made_again = report.counts().made_again;
    let runs = report.runs().len() + made_again;
    let again = match made_again {
        0 => String::new(),
        again => format!(", {again} of them repeated because the one before was {UNRELIABLE} or {FAILED}"),
    };
    let mut text = format!(
        "\n{} of {} questions decided; {runs} runs{again}; {}{}\n",
        decided.len(),
        questions.len(),
        duration(took_ns),
        match over.end {
            _ if interrupted => ": interrupted",
            BudgetEnd::Decided if open.is_empty() => ": nothing is open",
            BudgetEnd::Decided if searches => ": the time is over",
            BudgetEnd::Decided => ": what is open cannot be measured further",
            BudgetEnd::Time => ": the time is over",
        }
    );
    for (head, lines) in [("decided", decided), ("open", open), ("no further run decides", closed)] {
        if lines.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{head}\n"));
        let hidden = lines.len().saturating_sub(LINES_MAX);
        lines.into_iter().take(LINES_MAX).for_each(|line| text.push_str(&format!("  {line}\n")));
        if hidden > 0 {
            text.push_str(&format!("  … and {hidden} more; the report has them all\n"));
        }
    }
    text
}

/// Returns the exit code.
pub fn code(report: &Report) -> Code {
    let is_open = |question: &StudyQuestion| matches!(question.state, QuestionState::Open { .. });
    let open = if report.questions().iter().any(is_open) { Code::Run } else { Code::Done };
    match report.claims().iter().any(ClaimResult::breaks) {
        true => open.worst(Code::Gate),
        false => open,
    }
}

#[cfg(test)]
mod tests;
