//! `--promise`: systems that were seen to break it are not ranked.

use super::measure::load;
use super::shared::has_results;
use crate::failure::Failure;
use pubmark_model::promise::Promise;
use pubmark_model::study::Study;
use pubmark_report::Report;
use pubmark_study::plan::StudyPlan;
use pubmark_study::registry::Registry;
use serde_json::Value;
use std::path::PathBuf;

/// Folder within the results of a search: the runs that test its promise.
pub const TESTS: &str = "promise";
/// Axes by which cells that test a promise differ from others, in the order in which they are tried.
const BY: [&str; 3] = ["part", "fault", "consume"];
/// Keys that concern the tests alone.
const OF_TESTS: [&str; 2] = ["power", "promise"];

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

/// Takes the cells that test a promise out of a study whose capacity is searched. Returns a study of them; `None` if none
/// tests it, or if all do.
pub fn take_tests(study: &mut Study, promise: Promise) -> Option<Study> {
    for axis in BY {
        let values = study.axis(axis).map_or_else(Vec::new, |axis| axis.values.clone());
        let tests = |value: &Value| {
            StudyPlan::new(narrowed(study, axis, vec![value.clone()])).is_ok_and(|plan| plan.tests(promise))
        };
        let (testing, others): (Vec<Value>, Vec<Value>) = values.into_iter().partition(tests);
        if testing.is_empty() || others.is_empty() {
            continue;
        }
        let mut own = narrowed(study, axis, testing);
        own.title = format!("Does it keep `{promise}`? {}", own.title);
        (own.ab, own.reference, own.questions, own.capacity) = (None, None, None, None);
        *study = narrowed(study, axis, others);
        // `power` is refused where no power is cut.
        let is_of_tests = |name: &str| name == "promise" || name == "power" && promise == Promise::PowerCut;
        study.lift(&OF_TESTS.into_iter().filter(|name| is_of_tests(name)).collect::<Vec<_>>());
        study.axes.retain(|axis| !is_of_tests(&axis.name));
        return Some(own);
    }
    None
}

/// Returns a study with these values of an axis alone, and without claims.
fn narrowed(study: &Study, name: &str, values: Vec<Value>) -> Study {
    let mut own = study.clone();
    own.claims.clear();
    let is_left = |part: &str| name != "part" || values.iter().any(|value| *value == part);
    own.parts.retain(|part| is_left(&part.name));
    own.axes.iter_mut().filter(|axis| axis.name == name).for_each(|axis| axis.values.clone_from(&values));
    own
}
