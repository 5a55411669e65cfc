//! `pubmark claims`

use super::measure::load;
use super::shared::has_results;
use crate::args::ClaimsArgs;
use crate::failure::{Code, Failure};
use crate::output::{print, width};
use pubmark_study::registry::Registry;

/// Prints the results of a study's claims.
pub fn claims(args: &ClaimsArgs, registry: &Registry) -> Result<Code, Failure> {
    has_results(&args.folder)?;
    let report = load(&args.folder, registry)?;
    let text = if args.json {
        serde_json::to_string_pretty(&report.claims_json()).unwrap_or_default()
    } else if args.markdown {
        report.claims_markdown()
    } else if args.all {
        report.claims_text(width())
    } else {
        report.claims_brief(width())
    };
    print(text.trim_end());
    let breaks = report.claims().iter().any(|claim| claim.breaks());
    Ok(if breaks { Code::Gate } else { Code::Done })
}
