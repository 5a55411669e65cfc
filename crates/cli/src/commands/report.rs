//! `pubmark report`

use super::measure::{PAGE, load};
use super::promises;
use super::shared::has_results;
use crate::args::{ReportArgs, ReportFormat};
use crate::failure::{Code, Failure};
use crate::output::{colour, note, print, width};
use pubmark_report::{BriefPlaces, Constraints, Report, interval_log, percentile_tables};
use pubmark_study::registry::Registry;
use serde_json::Value;
use std::path::Path;

/// Page of several folders that are read as one result, in the first of them.
const JOINED: &str = "joined.html";

/// Makes the report of a folder again, or one of several.
pub fn report(args: &ReportArgs, registry: &Registry) -> Result<Code, Failure> {
    if args.folders.len() > 1 && !args.join && (args.csv || args.json) {
        return Err(Failure::usage(
            "--csv and --json are of one results folder: give them one at a time, or --join them",
        ));
    }
    args.folders.iter().try_for_each(|folder| has_results(folder))?;
    if let Some(format) = args.format {
        let [folder] = args.folders.as_slice() else {
            return Err(Failure::usage("--format is of one results folder: give them one at a time"));
        };
        print(formatted(format, folder, registry)?.trim_end());
        return Ok(Code::Done);
    }
    let cards = promises::cards(&args.cards, registry)?;
    if let Some((first, others)) = args.folders.split_first().filter(|(_, others)| args.join && !others.is_empty()) {
        let mut joined = Report::joined(first, others, &|name| registry.find(name)).map_err(Failure::usage)?;
        hold_to(&mut joined, args, &cards)?;
        let places =
            BriefPlaces { page: args.out.clone().unwrap_or_else(|| first.join(JOINED)), folders: args.folders.clone() };
        print(&shown(&joined, args, &places)?);
        Report::write_html(&[&joined], &places.page).map_err(Failure::run)?;
        name_page(&[&joined], args, &places.page);
        return Ok(Code::Done);
    }
    let mut reports =
        args.folders.iter().map(|folder| load(folder, registry)).collect::<Result<Vec<Report>, Failure>>()?;
    reports.iter_mut().try_for_each(|report| hold_to(report, args, &cards))?;
    let name = if reports.len() > 1 { "comparison.html" } else { PAGE };
    let path = args.out.clone().unwrap_or_else(|| args.folders[0].join(name));
    for (report, folder) in reports.iter().zip(&args.folders) {
        let places = BriefPlaces { page: path.clone(), folders: vec![folder.clone()] };
        print(&shown(report, args, &places)?);
    }
    let all: Vec<&Report> = reports.iter().collect();
    Report::write_html(&all, &path).map_err(Failure::run)?;
    name_page(&all, args, &path);
    Ok(Code::Done)
}

/// Ranks the systems again at the promise of the command line.
fn hold_to(report: &mut Report, args: &ReportArgs, cards: &[Report]) -> Result<(), Failure> {
    let Some(promise) = &args.promise else { return Ok(()) };
    report.hold_to(promises::read(promise)?, cards).map_err(Failure::usage)
}

/// Returns the results in the format of another tool.
fn formatted(format: ReportFormat, folder: &Path, registry: &Registry) -> Result<String, Failure> {
    let json = |value: Value| serde_json::to_string_pretty(&value).unwrap_or_default();
    Ok(match format {
        ReportFormat::Bencher => json(load(folder, registry)?.bencher_json()),
        ReportFormat::GithubBenchmark => json(load(folder, registry)?.github_benchmark_json()),
        ReportFormat::Hgrm => percentile_tables(folder).map_err(Failure::run)?,
        ReportFormat::Hlog => interval_log(folder).map_err(Failure::run)?,
        ReportFormat::Omb => json(load(folder, registry)?.omb_json().map_err(Failure::run)?),
    })
}

/// Says where the page is, unless the short result has said it.
fn name_page(reports: &[&Report], args: &ReportArgs, path: &Path) {
    let is_short = !(args.json || args.csv || args.markdown || args.all || args.constraints.is_some());
    if !is_short || reports.iter().any(|report| !report.has_brief()) {
        note(&format!("report: {}", path.display()));
    }
}

fn shown(report: &Report, args: &ReportArgs, places: &BriefPlaces) -> Result<String, Failure> {
    if let Some(text) = &args.constraints {
        let constraints = Constraints::parse(text, report).map_err(Failure::usage)?;
        return Ok(match (args.json, args.markdown) {
            (true, _) => serde_json::to_string_pretty(&report.fitting_json(&constraints)).unwrap_or_default(),
            (_, true) => report.fitting_markdown(&constraints),
            _ => report.fitting(&constraints, width(), colour()),
        });
    }
    Ok(if args.json {
        serde_json::to_string_pretty(&report.json()).unwrap_or_default()
    } else if args.csv {
        report.csv().map_err(Failure::run)?
    } else if args.markdown && args.all {
        report.markdown_whole()
    } else if args.markdown {
        report.markdown()
    } else if args.all {
        report.terminal_whole(width(), colour())
    } else {
        report.brief(places, width(), colour())
    })
}
