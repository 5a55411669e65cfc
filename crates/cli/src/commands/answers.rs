//! Which runs of a study are unreliable or failed, and which figures have no result.

use pubmark_model::record::FigureGroup;
use pubmark_report::words::OPEN;
use pubmark_report::{QuestionKind, QuestionState, Report, Status};

/// Returns how many runs are in each state, and the reasons; none if all are ok.
pub fn not_ok(report: &Report) -> Option<String> {
    let counts = report.counts();
    (counts.valid < counts.made()).then(|| report.states(usize::MAX))
}

/// The cells of which some figure, or all, is unreliable in all runs, and the capacities
/// that are asked for and not known: a line each.
pub fn unanswered(report: &Report) -> Vec<String> {
    let capacities = report.questions().into_iter().filter_map(|asked| match asked.state {
        QuestionState::Open { why, .. } if asked.kind == QuestionKind::Capacity => {
            Some(format!("{OPEN}: {}: {why}", asked.text))
        }
        _ => None,
    });
    (0..report.cells().len()).filter_map(|cell| question(report, cell)).chain(capacities).collect()
}

/// A system that is compared with others is answered also where its own figures are unreliable.
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
            // Of figures that the cell has none are open: it is answered.
            if open.is_empty() {
                return None;
            }
            open.join(", ")
        }
    };
    Some(format!("no reliable {what} for {}", result.cell.label()))
}
