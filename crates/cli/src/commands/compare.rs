//! `pubmark compare`

use super::gates;
use super::shared::{has_results, pairs};
use crate::args::CompareArgs;
use crate::failure::{Code, Failure};
use crate::output::{colour, print, width};
use pubmark_report::Report;
use pubmark_report::compare::{Comparison, GateOutcome, Gates, Only, Selection, compare_with};
use pubmark_study::registry;
use serde::Serialize;
use std::path::Path;

/// What `--json` prints.
#[derive(Serialize)]
struct Compared<'a> {
    a: &'a str,
    b: &'a str,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

/// Compares two results folders, and decides the gates.
pub fn compare(args: &CompareArgs) -> Result<Code, Failure> {
    let selection = selection(args)?;
    let (a, b) = (load(&args.a)?, load(&args.b)?);
    let comparison = compare_with(&a, &b, &selection).map_err(|error| Failure::usage(format!("--only: {error}")))?;
    let names = [args.a.display().to_string(), args.b.display().to_string()];
    let [name_a, name_b] = [names[0].as_str(), names[1].as_str()];
    if comparison.same.is_empty() {
        return Err(Failure::usage(format!(
            "{name_a} and {name_b} have no cell in common ({} only in the first, {} only in the second): \
             compare results of one study, or narrow neither with --only",
            comparison.only_a.len(),
            comparison.only_b.len()
        )));
    }
    if args.json {
        let compared = Compared { a: name_a, b: name_b, comparison: &comparison };
        print(&serde_json::to_string_pretty(&compared).unwrap_or_default());
    } else if args.markdown {
        print(&comparison.markdown([name_a, name_b]));
    } else {
        print(&comparison.terminal([name_a, name_b], width(), colour()));
    }
    gates::write_junit(args.gates.junit.as_deref(), "pubmark compare", &comparison.gates)?;
    Ok(match comparison.gates_say() {
        GateOutcome::Passed => Code::Done,
        GateOutcome::Failed => Code::Gate,
        GateOutcome::TooNoisy if args.allow_noisy => Code::Done,
        GateOutcome::TooNoisy | GateOutcome::Undecided => Code::Run,
    })
}

fn selection(args: &CompareArgs) -> Result<Selection, Failure> {
    let only = pairs(&args.only, "--only")?;
    Ok(Selection {
        gates: Gates::parse(&args.gates.fail_on, &args.gates.require, true).map_err(Failure::usage)?,
        only: only.iter().map(|(axis, values)| Only::new(axis, values)).collect(),
    })
}

fn load(folder: &Path) -> Result<Report, Failure> {
    has_results(folder)?;
    Report::load(folder, &registry::find).map_err(Failure::usage)
}
