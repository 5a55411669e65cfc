//! `pubmark run`

use super::shared::{by_flags, hosts, pairs};
use super::study::{StudyTarget, measure_study};
use super::{budget, gates, measure, omb, studies};
use crate::args::RunArgs;
use crate::failure::{Code, Failure};
use crate::output::Voice;
use pubmark_files::{Links, read_text};
use pubmark_host::environment::environment;
use pubmark_model::diagnostic::{Diagnostic, Diagnostics};
use pubmark_model::record::RunRecord;
use pubmark_model::reference;
use pubmark_model::setting::StopRule;
use pubmark_model::study::{ReadOptions, Study, has_quick_table, named_systems};
use pubmark_model::units::Ns;
use pubmark_report::{Reference, earlier_runs};
use pubmark_study::plan::StudyPlan;
use pubmark_study::registry::{Registry, STUDIES, origin};
use pubmark_study::study_files;
use std::path::{Path, PathBuf};

/// Runs a study.
pub fn run(args: &RunArgs, mut registry: Registry, voice: Voice) -> Result<Code, Failure> {
    measure::begin(&args.measure)?;
    let budget_ns = args.budget.as_deref().map(budget::read).transpose()?;
    let NamedStudy { name, file, text, reference } = named(args, &registry, voice)?;
    let gates = gates::own(&args.gates)?;
    let wrong = |errors| Failure::usage(Diagnostics { file: file.clone(), text: text.clone(), errors });
    let mut plan = read(args, &name, (&file, &text), budget_ns, (&mut registry, voice))?;
    let gates = gates.of_flows(&plan.study().flows).map_err(Failure::usage)?;
    let asked = plan.extent();
    let reference = match plan.study().reference {
        Some(_) => published((&file, &text), reference, (&registry, voice))?,
        None => None,
    };
    measure::prepare(&mut plan, &args.measure, &wrong, voice)?;
    let (plan, earlier) = with_earlier(plan, args, (&wrong, &registry))?;
    let target = StudyTarget { name: &name, reference: reference.as_deref(), earlier, asked };
    let Some(measured) = measure_study(&plan, target, budget_ns, &args.measure, (&registry, voice))? else {
        return Ok(Code::Done);
    };
    let result = (&measured.report, measured.folder());
    measure::show_study((&args.measure, args.all), result, voice, || Ok(measured.report.json()))?;
    measured.conclude((&gates, &args.gates), "pubmark run", &args.measure, voice)
}

/// Returns the study that the command line names, or the one of files of another tool.
fn named(args: &RunArgs, registry: &Registry, voice: Voice) -> Result<NamedStudy, Failure> {
    let (Some(workload), Some(driver)) = (&args.omb, &args.driver) else {
        return find(args.study.as_deref().unwrap_or_default());
    };
    let study = omb::study((workload, driver), registry)?;
    study.remarks.iter().for_each(|remark| voice.note(&remark.to_string()));
    Ok(NamedStudy {
        name: format!("omb-{}", omb::stem(workload)),
        file: format!("{} as a study", workload.display()),
        text: study.text,
        reference: Beside::Text(None),
    })
}

/// Reads the runs of earlier folders that the study goes on from, and plans as many repeats
/// more as it has.
fn with_earlier(
    plan: StudyPlan,
    args: &RunArgs,
    (wrong, registry): (&dyn Fn(Vec<Diagnostic>) -> Failure, &Registry),
) -> Result<(StudyPlan, Vec<RunRecord>), Failure> {
    if args.with.is_empty() {
        return Ok((plan, Vec::new()));
    }
    let here = environment(Path::new("."));
    let earlier = earlier_runs(&args.with, (plan.study(), plan.cells()), &here, &|name| registry.find(name));
    let earlier = earlier.map_err(Failure::usage)?;
    let system_of = |run: &RunRecord| plan.cells().iter().map(|cell| &cell.system).find(|of| of.name == run.system);
    let has_changed = |run: &&RunRecord| system_of(run).map(|system| origin(system)) != run.system_file;
    if let Some(run) = earlier.iter().find(has_changed) {
        return Err(Failure::usage(format!(
            "the file of the system {} is not the one of the earlier runs",
            run.system
        )));
    }
    let most = earlier.iter().map(|run| run.repeat).max().unwrap_or_default();
    let mut study = plan.into_study();
    study.add_repeats(most);
    Ok((StudyPlan::new(study).map_err(wrong)?, earlier))
}

/// Reads a study with the changes of the command line, and plans it.
fn read(
    args: &RunArgs,
    name: &str,
    (file, text): (&str, &str),
    budget_ns: Option<Ns>,
    (registry, voice): (&mut Registry, Voice),
) -> Result<StudyPlan, Failure> {
    let mut set = pairs(&args.set, "--set")?;
    set.extend(args.settings.iter().map(|asked| ("use".to_owned(), asked.clone())));
    set.extend(args.repeats.map(|repeats| ("repeats".to_owned(), repeats.to_string())));
    set.extend(args.promise.iter().map(|promise| ("promise".to_owned(), promise.clone())));
    set.extend(budget_ns.map(|_| ("stop".to_owned(), StopRule::Decided.to_string())));
    let only = pairs(&args.only, "--only")?;
    require_named(args, (file, text), &set, &only, registry)?;
    let names = registry.names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let systems = |name: &str| registry.find(name);
    let planned = |quick| -> Result<StudyPlan, Failure> {
        let reading = ReadOptions { quick, set: &set, only: &only, names: &names, recorded: false };
        let flags: Vec<&str> = set.iter().skip(args.set.len()).map(|(key, _)| key.as_str()).collect();
        let by_flags = |errors| Failure::usage(by_flags(errors, &flags));
        let mut study = Study::parse(file, text, &systems, &reading).map_err(by_flags)?;
        study_files::load(&mut study, folder_of(args, file)).map_err(Failure::usage)?;
        if let Some(named) = &args.measure.hosts {
            study.hosts = hosts(named)?;
        }
        budget::check(&study, budget_ns)?;
        if budget_ns.is_some() {
            study.shorten_windows();
        }
        let wrong = |errors| Failure::usage(Diagnostics { file: file.to_owned(), text: text.to_owned(), errors });
        StudyPlan::new(study).map_err(wrong)
    };
    let plan = planned(args.quick)?;
    let Some(budget_ns) = budget_ns.filter(|_| !args.quick && has_quick_table(text)) else { return Ok(plan) };
    let resume = args.measure.resume;
    let is_short = match resume {
        // A resumed study goes on as it began.
        true => budget::is_quick(&measure::folder(&args.measure, name)?),
        false => budget::is_short(&plan, budget_ns),
    };
    if !is_short {
        return Ok(plan);
    }
    if !resume {
        voice.note("cut down by its [quick] table: there is no time for three blocks of the whole study");
    }
    planned(true)
}

/// Reads the system files that a study names by their paths, below the study's own folder, or that the command line
/// names; refuses those that it names and that are invalid.
fn require_named(
    args: &RunArgs,
    (file, text): (&str, &str),
    set: &[(String, String)],
    only: &[(String, String)],
    registry: &mut Registry,
) -> Result<(), Failure> {
    let require =
        |registry: &mut Registry, named: &str, base: &Path| registry.require(named, base).map_err(Failure::usage);
    let typed = |pairs: &[(String, String)]| -> Vec<String> {
        let values = pairs.iter().filter(|(key, _)| key == "system");
        values.flat_map(|(_, value)| value.split(',').map(|name| name.trim().to_owned())).collect()
    };
    for named in typed(set) {
        require(registry, &named, Path::new(""))?;
    }
    let folder = folder_of(args, file);
    for named in named_systems(text) {
        require(registry, &named, folder)?;
    }
    for named in typed(only) {
        if registry.find(&named).is_none() {
            require(registry, &named, Path::new(""))?;
        }
    }
    Ok(())
}

/// Returns the folder of a study's file; the current one if the study is included.
fn folder_of<'a>(args: &RunArgs, file: &'a str) -> &'a Path {
    let is_file = |study: &String| Path::new(study).exists();
    Path::new(file).parent().filter(|_| args.study.as_ref().is_some_and(is_file)).unwrap_or(Path::new(""))
}

/// A study named on the command line.
pub(super) struct NamedStudy {
    /// Name of the study.
    pub name: String,
    /// Name of its file for errors.
    pub file: String,
    /// Text of its file.
    pub text: String,
    /// Its published figures: their text, or the path where they would be.
    reference: Beside,
}

enum Beside {
    Text(Option<&'static str>),
    At(PathBuf),
}

/// Reads the published figures of a study that names some, checked against its whole file: only a part of it may be
/// measured.
fn published(
    (study_file, study_text): (&str, &str),
    beside: Beside,
    (registry, voice): (&Registry, Voice),
) -> Result<Option<String>, Failure> {
    let systems = |name: &str| registry.find(name);
    let (file, read) = match beside {
        Beside::Text(text) => (format!("{study_file}: {}", reference::FILE), text.map(str::to_owned)),
        Beside::At(path) => match read_text(&path, Links::Follow) {
            Ok(text) => (path.display().to_string(), Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                voice.note(&format!("no published figures in the report: there is no {}", path.display()));
                return Ok(None);
            }
            Err(error) => return Err(Failure::usage(format!("{}: {error}", path.display()))),
        },
    };
    let study = Study::parse(study_file, study_text, &systems, &ReadOptions::default()).map_err(Failure::usage)?;
    let check = |text: &String| Reference::check(&file, text, &systems, &study).map(drop);
    read.as_ref().map_or(Ok(()), check).map_err(Failure::usage)?;
    Ok(read)
}

/// Finds a study: one that comes with pubmark, or a file.
pub(super) fn find(study: &str) -> Result<NamedStudy, Failure> {
    if let Some(included) = STUDIES.iter().find(|included| included.name == study) {
        return Ok(NamedStudy {
            name: included.name.to_owned(),
            file: format!("studies/{study}/study.toml"),
            text: included.text.to_owned(),
            reference: Beside::Text(included.reference),
        });
    }
    let given = Path::new(study);
    let path = if given.is_dir() { given.join("study.toml") } else { given.to_owned() };
    if !path.exists() {
        return Err(studies::unknown(study));
    }
    let text =
        read_text(&path, Links::Follow).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let stem = if path.file_name().is_some_and(|name| name == "study.toml") {
        path.parent().and_then(Path::file_name)
    } else {
        path.file_stem()
    };
    let name = stem.and_then(|stem| stem.to_str()).filter(|stem| !stem.is_empty()).unwrap_or("study");
    let reference = Beside::At(path.with_file_name(reference::FILE));
    Ok(NamedStudy { name: name.to_owned(), file: path.display().to_string(), text, reference })
}
