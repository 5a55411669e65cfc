//! Conclusions about acknowledged messages.

use super::sentence::{NAMED_MAX, Sentence, name};
use crate::report::Report;
use crate::settings;
use crate::text::clean;
use pubmark_model::fault::Target;
use pubmark_model::record::{Counts, FigureGroup, RunRecord};
use pubmark_model::units::total;

/// Longest name of a cell, characters.
const LABEL_CHARS: usize = 80;

/// A cell's messages, over all runs that were made: one that was lost in a run
/// that does not count is lost all the same.
struct Kept {
    label: String,
    system: String,
    counts: Counts,
    runs: usize,
    /// True if subscribers were killed.
    unheard: bool,
}

/// Describes the acknowledged and lost messages, the most first; `None` if nothing was
/// acknowledged.
pub(super) fn finding(report: &Report) -> Option<Sentence> {
    let mut cells: Vec<Kept> = report
        .cells()
        .iter()
        .map(|result| Kept {
            label: clean(&result.cell.label(), LABEL_CHARS),
            system: name(&result.cell.system.name),
            counts: Counts::default(),
            runs: 0,
            unheard: result.cell.faults.killed_sides().any(|(_, side)| side == Target::Subscribers),
        })
        .collect();
    let known = |run: &RunRecord| {
        run.error.is_none() && run.workload.qos > 0 && run.counts.acked > 0 && run.counts.acked_lost.is_some()
    };
    let told = |(run, cell): &(&RunRecord, &usize)| known(run) && report.cells()[**cell].is_one_flow();
    for (run, cell) in report.runs().iter().zip(report.cells_of_runs()).filter(told) {
        let Kept { counts, runs, .. } = &mut cells[*cell];
        counts.sent += run.counts.sent;
        counts.expected += run.counts.expected;
        counts.acked += run.counts.acked;
        counts.acked_lost = Some(counts.acked_lost.unwrap_or(0) + run.counts.acked_lost.unwrap_or(0));
        *runs += 1;
    }
    cells.retain(|cell| cell.runs > 0);
    let (unheard, mut cells): (Vec<Kept>, Vec<Kept>) = cells.into_iter().partition(|cell| cell.unheard);
    let unheard = unheard_of(&unheard);
    let systems: Vec<String> = cells.iter().map(|cell| cell.system.clone()).collect();
    let systems: Vec<&str> = systems.iter().map(String::as_str).collect();
    let hangs = settings::behind(report, &systems, FigureGroup::Counts);
    let acked = total(cells.iter().map(|cell| cell.counts.acked));
    let all = cells.len();
    cells.retain(|cell| cell.counts.acked_lost > Some(0));
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.counts.acked_lost));
    let (outcome, text) = match cells.as_slice() {
        [] if all == 0 => return unheard.map(|text| Sentence { about: "delivery", outcome: "note", text }),
        [] => ("kept", format!("None of {acked} acknowledged messages was lost.")),
        [only] if all == 1 => {
            let Kept { system, counts, .. } = only;
            ("lost", format!("{system} lost {} acknowledged messages{}.", counts.acked_lost_of_acked(), only.over()))
        }
        lossy => {
            let each = lossy.iter().take(NAMED_MAX);
            let each: Vec<String> = each
                .map(|cell| format!("{} {}{}", cell.label, cell.counts.acked_lost_of_acked(), cell.over()))
                .collect();
            let more = lossy.len().saturating_sub(NAMED_MAX);
            let more = if more == 0 { String::new() } else { format!("; and {more} more") };
            let text = format!(
                "Acknowledged messages were lost in {} of {all} cells: {}{more}.",
                lossy.len(),
                each.join("; ")
            );
            ("lost", text)
        }
    };
    let unheard = unheard.map_or(String::new(), |text| format!(" {text}"));
    Some(Sentence { about: "delivery", outcome, text: text + &hangs + &unheard })
}

/// Describes acknowledged messages that no subscriber could receive because subscribers were
/// killed. This is not a loss by the server.
fn unheard_of(cells: &[Kept]) -> Option<String> {
    let mut all = Counts { acked_lost: Some(0), ..Counts::default() };
    for Kept { counts, .. } in cells {
        all.sent += counts.sent;
        all.expected += counts.expected;
        all.acked += counts.acked;
        all.acked_lost = Some(all.acked_lost? + counts.acked_lost?);
    }
    (!cells.is_empty()).then(|| {
        format!(
            "Where subscribers were killed, {} acknowledged messages did not arrive: no subscriber could take what came \
             after that.",
            all.acked_lost_of_acked()
        )
    })
}

impl Kept {
    /// Over how many runs it is, where that is more than one.
    fn over(&self) -> String {
        if self.runs > 1 { format!(" in {} runs", self.runs) } else { String::new() }
    }
}
