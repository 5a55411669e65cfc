//! `pubmark studies`

use crate::args::StudiesArgs;
use crate::failure::{Code, Failure};
use crate::output::{note, print};
use pubmark_files::{Links, read_text};
use pubmark_import::{SourceText, asyncapi};
use pubmark_model::diagnostic::meant;
use pubmark_model::reference;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_report::Reference;
use pubmark_study::plan::StudyPlan;
use pubmark_study::registry::{IncludedStudy, Registry, STUDIES};
use pubmark_study::runner::StudyError;

/// Lists the studies, or prints one's file.
pub fn studies(args: &StudiesArgs, registry: &Registry) -> Result<Code, Failure> {
    if let Some(name) = &args.name {
        let included = STUDIES.iter().find(|study| study.name == name).ok_or_else(|| unknown(name))?;
        print(included.text);
        if let Some(published) = published(included, registry)? {
            print(&format!("# {published}: studies/{name}/{}", reference::FILE));
        }
        return Ok(Code::Done);
    }
    if let Some(path) = &args.from {
        let cannot = |error| {
            Failure::usage(format!("--from {}: {error}. Name an AsyncAPI document in YAML or JSON.", path.display()))
        };
        let text = read_text(path, Links::Follow).map_err(cannot)?;
        let source = SourceText { file: &path.display().to_string(), text: &text };
        let study = asyncapi::study(source, &|name| registry.find(name)).map_err(Failure::usage)?;
        print(&study.text);
        study.remarks.iter().for_each(|remark| note(&remark.to_string()));
        return Ok(Code::Done);
    }
    for included in STUDIES {
        let read = |quick: bool| {
            Study::parse(
                included.name,
                included.text,
                &|name| registry.find(name),
                &ReadOptions { quick, ..ReadOptions::default() },
            )
            .map_err(Failure::usage)
        };
        let (whole, quick) = (read(false)?, read(true)?);
        let question = whole.question.clone();
        let runs = |study| StudyPlan::new(study).map(|plan| plan.extent().1).map_err(StudyError::Plan);
        print(&format!(
            "{}\n  {}\n  {} runs where every system is here, {} with --quick\n",
            included.name,
            question,
            runs(whole)?,
            runs(quick)?
        ));
        if let Some(published) = published(included, registry)? {
            print(&format!("  {published}\n"));
        }
    }
    print("`pubmark run NAME` runs one; `pubmark studies NAME` prints its file, to start your own from.");
    Ok(Code::Done)
}

/// Describes the published figures of a study's systems in a few words.
fn published(included: &IncludedStudy, registry: &Registry) -> Result<Option<String>, Failure> {
    let Some(text) = included.reference else { return Ok(None) };
    let study = Study::parse(included.name, included.text, &|name| registry.find(name), &ReadOptions::default());
    let study = study.map_err(Failure::usage)?;
    let Some(source) = &study.reference else { return Ok(None) };
    let rows = Reference::check(reference::FILE, text, &|name| registry.find(name), &study).map_err(Failure::usage)?;
    Ok(Some(format!("compared with {} published figures: {}", rows.len(), source.source)))
}

/// Returns an error: there is no study of this name.
pub fn unknown(name: &str) -> Failure {
    let names = STUDIES.iter().map(|study| study.name);
    let meant = meant(name, names.clone()).map(|near| format!("did you mean {near}? ")).unwrap_or_default();
    Failure::usage(format!(
        "there is no study `{name}`, and no such file: {meant}`pubmark studies` lists those that come with pubmark ({})",
        names.collect::<Vec<_>>().join(", ")
    ))
}
