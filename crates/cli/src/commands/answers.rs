//! Lists a study's unreliable runs and missing results.

use pubmark_model::record::FigureGroup;
use pubmark_report::words::OPEN;
use pubmark_report::{QuestionKind, QuestionState, Report, Status};

/// Returns how many runs are in each state, and the reasons; none if all are ok.
pub fn not_ok(report: &Report) -> Option<String> {
    let counts = report.counts();
    (counts.valid < counts.made()).then(|| report.states(usize::MAX))
}

/// Returns one line for each cell without a run that counts, for some figures or for all, and for each requested
/// capacity that is unknown.
pub fn unanswered(report: &Report) -> Vec<String> {
    let capacities = report.questions().into_iter().filter_map(|asked| match asked.state {
        QuestionState::Open { why, .. } if asked.kind == QuestionKind::Capacity => {
            Some(format!("{OPEN}: {}: {why}", asked.text))
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
        Status::Invalid | Status::Failed | Status::Missing => "figure".to_owned(),
        Status::Partly => {
            let open = FigureGroup::ALL.iter().filter(|group| !answers(group));
            let open: Vec<&str> = open.map(|group| group.word()).collect();
            // None of the cell's own figures is open: it has a result.
            if open.is_empty() {
                return None;
            }
            open.join(", ")
        }
    };
    Some(format!("no reliable {what} for {}", result.cell.label()))
}
