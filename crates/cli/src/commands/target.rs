//! Target of a command: one system, or a study.

use super::run::{NamedStudy, find};
use super::shared::{by_flags, hosts, pairs};
use crate::args::{MeasureArgs, WorkloadArgs};
use crate::failure::Failure;
use pubmark_files::{Links, read_text};
use pubmark_model::study::{ReadOptions, Study, named_systems};
use pubmark_study::registry::Registry;
use pubmark_study::study_files;
use std::path::Path;

/// Returns whether a target is one system: its name, its file, or an endpoint.
pub fn is_system(target: &str, registry: &Registry) -> bool {
    target.contains("://") || registry.knows(target) || is_system_file(target)
}

/// Returns whether a file describes a system, and no study.
fn is_system_file(target: &str) -> bool {
    let text = read_text(Path::new(target), Links::Follow).unwrap_or_default();
    text.lines().any(|line| line.trim_start().starts_with("driver")) && !text.contains("[axes]")
}

/// Returns a study by its name or file, with `set` and the arguments' settings; also its name.
pub fn study_at(
    target: &str,
    mut set: Vec<(String, String)>,
    only: &[String],
    (workload, measure): (&WorkloadArgs, &MeasureArgs),
    registry: &mut Registry,
) -> Result<(String, Study), Failure> {
    let NamedStudy { name, file, text, .. } = find(target)?;
    let typed = workload.typed();
    let flags: Vec<&str> = typed.iter().map(|(key, _)| key.as_str()).collect();
    let by_flags = |errors| Failure::usage(by_flags(errors, &flags));
    set.extend(typed.iter().cloned());
    set.extend(pairs(&workload.set, "--set")?);
    let only = pairs(only, "--only")?;
    let folder = Path::new(&file).parent().filter(|_| Path::new(target).exists()).unwrap_or(Path::new(""));
    for named in named_systems(&text) {
        registry.require(&named, folder).map_err(Failure::usage)?;
    }
    let names = registry.names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let systems = |name: &str| registry.find(name);
    let reading = ReadOptions { quick: false, set: &set, only: &only, names: &names, recorded: false };
    let mut study = Study::parse(&file, &text, &systems, &reading).map_err(by_flags)?;
    study_files::load(&mut study, folder).map_err(Failure::usage)?;
    if let Some(named) = &measure.hosts {
        study.hosts = hosts(named)?;
    }
    Ok((name, study))
}
