//! Lists a study's unreliable runs and missing results.

use pubmark_model::record::{FigureGroup, Reason};
use pubmark_report::{CellResult, QuestionKind, QuestionState, Report, Status};

/// Describes how many runs are unreliable, wholly or for some figures, and why; `None` if all count for everything.
pub fn left_out(report: &Report) -> Option<String> {
    let counts = report.counts();
    let left_out = counts.partly + counts.invalid + counts.failed;
    let mut reasons: Vec<(Reason, usize)> = Vec::new();
    for found in report.cells().iter().flat_map(CellResult::all_reasons) {
        match reasons.iter_mut().find(|(reason, _)| *reason == found.reason) {
            Some((_, runs)) => *runs += found.runs,
            None => reasons.push((found.reason, found.runs)),
        }
    }
    reasons.sort_by_key(|(_, runs)| std::cmp::Reverse(*runs));
    let mut why: Vec<String> = reasons.iter().map(|(reason, runs)| format!("{reason} {runs}")).collect();
    if counts.failed > 0 {
        why.push(format!("failed {}", counts.failed));
    }
    let all = left_out + counts.valid;
    let figures = if counts.partly > 0 { " (for some figures or all)" } else { "" };
    let verb = if left_out == 1 { "was" } else { "were" };
    (left_out > 0).then(|| format!("{left_out} of {all} runs {verb} left out{figures}: {}", why.join(", ")))
}

/// Returns one line for each cell without a run that counts, for some figures or for all, and for each requested
/// capacity that is unknown.
pub fn unanswered(report: &Report) -> Vec<String> {
    let capacities = report.questions().into_iter().filter_map(|asked| match asked.state {
        QuestionState::Open { why, .. } if asked.kind == QuestionKind::Capacity => {
            Some(format!("no answer: {}: {why}", asked.text))
        }
        _ => None,
    });
    (0..report.cells().len()).filter_map(|cell| question(report, cell)).chain(capacities).collect()
}

/// A system that is compared with others has a result even if its own figures are unreliable.
fn question(report: &Report, cell: usize) -> Option<String> {
    let result = &report.cells()[cell];
    let is_compared = report.is_compared(cell);
    let answers = |group: &FigureGroup| result.runs_for(*group) > 0 || is_compared && result.compared_for(*group) > 0;
    let what = match result.status {
        Status::Valid | Status::Skipped => return None,
        Status::Invalid if is_compared => return None,
        Status::Invalid | Status::Failed | Status::Missing => "no run counts".to_owned(),
        Status::Partly => {
            let open = FigureGroup::ALL.iter().filter(|group| !answers(group));
            let open: Vec<&str> = open.map(|group| group.word()).collect();
            // None of the cell's own figures is open: it has a result.
            if open.is_empty() {
                return None;
            }
            format!("no run counts for {}", open.join(", "))
        }
    };
    Some(format!("no answer: {}: {what}", result.cell.label()))
}
