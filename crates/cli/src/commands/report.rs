//! `pubmark report`

use super::run::finish;
use crate::args::ReportArgs;
use crate::failure::{Code, Failure};
use crate::output::{colour, print, width};

/// Makes the report of a folder again.
pub fn report(args: &ReportArgs) -> Result<Code, Failure> {
    if !args.folder.join("runs.jsonl").exists() {
        return Err(Failure::usage(format!("{} is no results folder: it has no runs.jsonl", args.folder.display())));
    }
    let report = finish(&args.folder)?;
    if args.json {
        print(&serde_json::to_string_pretty(&report.summary_json()).unwrap_or_default());
    } else if args.csv {
        print(&report.csv().map_err(Failure::run)?);
    } else if args.markdown {
        print(&report.markdown());
    } else {
        print(&report.terminal(width(), colour()));
    }
    Ok(Code::Done)
}
