//! The searches that follow the runs of a study: for the capacities that it asks for, and for its headroom.

use super::measure::{Measurement, planned};
use crate::failure::Failure;
use crate::output::Voice;
use crate::progress::estimate::in_words;
use pubmark_host::clock;
use pubmark_model::units::{Ns, SECOND};
use pubmark_study::capacity::Search;
use pubmark_study::plan::StudyPlan;
use pubmark_study::searches::{FollowingSearch, SearchKind, following};

/// Returns the searches that a study asks for, checked before its runs begin.
pub fn asked(plan: &StudyPlan) -> Result<Vec<FollowingSearch>, Failure> {
    following(plan).map_err(planned)
}

/// Returns the searches' share of a study's time: half of it, and no more than their default time. Time that the
/// earlier runs do not need is added.
pub fn share(searches: &[FollowingSearch], budget_ns: Ns) -> Ns {
    usual_ns(searches).min(budget_ns / 2)
}

/// Returns the maximum time of the searches by default.
pub fn usual_ns(searches: &[FollowingSearch]) -> Ns {
    searches.iter().map(|search| search.usual_ns().saturating_mul(search.cells() as u64)).sum()
}

/// Describes a search in one line.
pub fn told(search: &FollowingSearch) -> String {
    let cells = match search.cells() {
        1 => "1 cell".to_owned(),
        cells => format!("{cells} cells"),
    };
    let part = search.part().map_or(String::new(), |part| format!(" of part {part}"));
    let (goal, minutes) = (search.goal(), search.usual_ns() / (60 * SECOND));
    match search.kind() {
        SearchKind::Capacity => format!(
            "the capacity of {cells}{part}: how far `{}` holds over {}, {minutes} min each at most",
            goal.until, goal.over
        ),
        SearchKind::Headroom => format!(
            "the headroom of {cells}{part}: how many times the given load `{}` holds, {minutes} min each at most",
            goal.until
        ),
    }
}

/// Formats the number of searches.
pub fn counted(searches: usize) -> String {
    if searches == 1 { "1 search".into() } else { format!("{searches} searches") }
}

/// Describes the number of searches and their maximum time in one line.
pub fn all_told(searches: &[FollowingSearch], budget_ns: Option<Ns>) -> String {
    let cells: usize = searches.iter().map(FollowingSearch::cells).sum();
    let count = counted(cells);
    match budget_ns {
        None => format!("{count}, {} at most on top of the runs", in_words(usual_ns(searches))),
        Some(budget_ns) => format!(
            "{count}, {} at least of the {} and what the runs leave",
            in_words(share(searches, budget_ns)),
            in_words(budget_ns)
        ),
    }
}

/// Begins or resumes the searches, in their folders within the results folder, until an instant of CLOCK_MONOTONIC, ns,
/// if there is one: each cell gets an equal share of the time left. Returns whether they came to their end; their
/// reports must still be made.
pub fn search(
    measurement: &mut Measurement<'_>,
    searches: &[FollowingSearch],
    ends_ns: Option<Ns>,
    voice: Voice,
) -> Result<bool, Failure> {
    let mut cells_left: usize = searches.iter().map(FollowingSearch::cells).sum();
    for search in searches {
        voice.note(&format!("searching: {}", told(search)));
        // A search ends when its cells have had their shares, so that the next cells have them too.
        let cells = search.cells().max(1) as u64;
        let each_ns = ends_ns.map(|ends_ns| ends_ns.saturating_sub(clock::now()) / cells_left.max(1) as u64);
        let until_ns = each_ns.map(|each_ns| clock::now().saturating_add(each_ns.saturating_mul(cells)));
        cells_left = cells_left.saturating_sub(search.cells());
        let request = search.request(each_ns, until_ns);
        let mut strategy = Search::new(&request, search.goal()).map_err(planned)?;
        let plan = strategy.first_steps().map_err(planned)?;
        let ending = measurement.search(&plan, search.folder(), &mut strategy)?;
        for (cell, why) in strategy.given_up() {
            voice.note(&format!("{}: no result: {why}", cell.label()));
        }
        if ending.interrupted {
            return Ok(false);
        }
    }
    Ok(true)
}
