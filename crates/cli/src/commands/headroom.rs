//! The search for a study's headroom, after its runs.

use super::shared::agent_command;
use crate::failure::Failure;
use crate::output::Voice;
use crate::progress::climb::ClimbDisplay;
use pubmark_model::capacity::{HEADROOM, LoadAxis};
use pubmark_study::climb::{climb, first};
use pubmark_study::conduct::{Conduct, ConductError};
use pubmark_study::headroom::HeadroomSearch;
use pubmark_study::plan::StudyPlan;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The search that a study asks for, checked before its runs begin; none where it
/// asks for none, or gives no load.
pub fn asked(plan: &StudyPlan) -> Result<Option<HeadroomSearch>, Failure> {
    let planned = |errors| Failure::from(ConductError::Plan(errors));
    let search = HeadroomSearch::of(plan).map_err(planned)?;
    if let Some(search) = &search {
        first(&search.request(), search.goal()).map_err(planned)?;
    }
    Ok(search)
}

/// Makes the search, or goes on with it, in its folder within the results folder.
/// Whether it came to its end.
pub fn search(search: &HeadroomSearch, results: &Path, interrupt: &AtomicBool, voice: Voice) -> Result<bool, Failure> {
    let folder = results.join(HEADROOM);
    voice.note(&format!("searching for the headroom: how many times the given load `{}` holds", search.goal().until));
    let agent = agent_command()?;
    let resume = folder.join("runs.jsonl").exists();
    let how = Conduct { folder: &folder, resume, reference: None, agent: &agent, interrupt };
    let mut display = ClimbDisplay::new(voice, LoadAxis::Rate, true);
    let over = climb(&search.request(), search.goal(), &how, &mut display).map_err(Failure::from)?;
    over.given_up.iter().for_each(|(cell, why)| voice.note(&format!("{}: no headroom: {why}", cell.label())));
    Ok(!over.ending.interrupted)
}
