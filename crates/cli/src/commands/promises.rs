//! `--promise`: systems that were seen to break it are not ranked.

use super::measure::load;
use super::shared::has_results;
use crate::failure::Failure;
use pubmark_model::promise::Promise;
use pubmark_report::Report;
use pubmark_study::registry::Registry;
use std::path::PathBuf;

/// Reads the promise of the command line.
pub fn read(text: &str) -> Result<Promise, Failure> {
    Promise::parse(text).map_err(|error| Failure::usage(format!("--promise: {error}")))
}

/// Reads the results folders of cards.
pub fn cards(folders: &[PathBuf], registry: &Registry) -> Result<Vec<Report>, Failure> {
    folders.iter().map(|folder| has_results(folder).and_then(|()| load(folder, registry))).collect()
}

/// Refuses `--promise` for a command that ranks no systems.
pub fn refuse(promise: Option<&str>, command: &str) -> Result<(), Failure> {
    let Some(text) = promise else { return Ok(()) };
    let keys = read(text)?.keys();
    Err(Failure::usage(format!(
        "--promise: `pubmark {command}` decides gates and ranks no systems: measure with qos = 1 and {keys}, and use \
         --require 'acked_lost = 0'"
    )))
}
