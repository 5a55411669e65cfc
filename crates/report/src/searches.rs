//! The searches that followed a study's runs, each in a results folder of its own.

use pubmark_model::study::Study;
use std::path::Path;

/// A search of one part of a study.
#[derive(Clone, Debug)]
pub(crate) struct SearchedPart<R> {
    /// Which; none of a study that has no parts.
    pub part: Option<String>,
    /// Report of its records.
    pub report: R,
}

/// Reads those that lie in a folder: one, or one for each part of the study.
pub(crate) fn read<R, E>(
    folder: &Path,
    study: &Study,
    load: &dyn Fn(&Path) -> Result<R, E>,
) -> Result<Vec<SearchedPart<R>>, E> {
    let parts = study.chosen_parts();
    let is_only = parts.len() == 1;
    let mut all = Vec::new();
    for part in parts {
        let own = match &part {
            Some(name) if !is_only => {
                // No other folder than one beside the others.
                if name.starts_with('.') || name.contains(['/', '\\']) {
                    continue;
                }
                folder.join(name)
            }
            _ => folder.to_owned(),
        };
        if own.join("runs.jsonl").exists() {
            all.push(SearchedPart { part, report: load(&own)? });
        }
    }
    Ok(all)
}
