//! The data that the page shows at once, as JSON. The front end's types
//! (`web/src/page.ts`) are generated from those here.

use super::capacity::{CapacityView, capacities};
use super::explain::{self, Explanation};
use super::records;
use super::side_by_side::{ComparisonView, ReferenceView, Triple, comparison, reference, triple};
use crate::analysis::{CellResult, Status};
use crate::axes::{axis_name, axis_value};
use crate::build_info::{Made, made};
use crate::capacities::{best_of, searches_at};
use crate::capacity::CapacityResult;
use crate::claims::{ClaimResult, PartResult};
use crate::columns::{distance, repeats_more};
use crate::csv;
use crate::curves::{self, Curves};
use crate::document::Rows;
use crate::figures::{Sign, allows};
use crate::findings::{Sentence, findings};
use crate::guarantee_card::{CardView, GuaranteeCard};
use crate::modes;
use crate::notes;
use crate::points::Point;
use crate::ranking::{Placing, Ranked, Why};
use crate::report::Report;
use crate::text::{clean, clean_ends, percent, time};
use crate::words::{CellVerdict, OPEN};
use pubmark_model::figure::{Figure, FigureDescription};
use pubmark_model::record::{FigureGroup, RunRecord};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Longest title, question or remark that is shown, characters.
const PROSE_CHARS: usize = 2_000;
/// Longest name, characters.
const NAME_CHARS: usize = 120;
/// Version of this layout.
const FORMAT: u32 = 1;

/// Everything.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Page<'a> {
    /// Version of this layout.
    #[cfg_attr(test, ts(type = "1"))]
    format: u32,
    /// Version of the program that made the page.
    pubmark: &'static str,
    /// Quantiles of the percentile curves, ascending: 1 − 10^(−k/10).
    quantiles: Vec<f64>,
    /// Bins of a distribution: bin k covers [10^(k/n), 10^((k+1)/n)) ns.
    bins_per_decade: u32,
    /// The figures that a cell may have, in the order of the summary.
    #[cfg_attr(test, ts(type = "Figure[]"))]
    figures: Vec<&'static FigureDescription>,
    /// The meaning of each word for a cell: winner, tie, behind and so on.
    words: BTreeMap<&'static str, &'static str>,
    /// The meaning of each reason of a verdict, and advice.
    reasons: BTreeMap<String, Explanation>,
    /// One, or several to be seen side by side.
    results: Vec<Results<'a>>,
    /// The first two compared; null where there is one.
    comparison: Option<ComparisonView>,
    /// True if the page is served by a program that still measures.
    live: bool,
}

/// A results folder.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Result"))]
struct Results<'a> {
    /// The folder's name.
    name: String,
    title: String,
    question: String,
    /// Values that are the same in all cells, in words.
    constants: String,
    /// True if the study was shortened.
    quick: bool,
    runs: Runs,
    /// Conclusions in sentences.
    findings: Vec<Sentence>,
    /// Remarks on the whole.
    notes: Vec<String>,
    /// In the study's order.
    systems: Vec<System>,
    /// Build info, by the agents' own words.
    made: Vec<Made>,
    /// In the study's order; `system` among them.
    axes: Vec<Axis<'a>>,
    #[cfg_attr(test, ts(as = "Vec<Cell<'static>>"))]
    cells: Cells<'a>,
    /// Cells that differ in the system only.
    #[cfg_attr(test, ts(as = "Vec<PointView<'static>>"))]
    points: Points<'a>,
    claims: Vec<ClaimView>,
    /// Searches for a capacity; empty where the study names no objective.
    capacities: Vec<CapacityView>,
    reference: Option<ReferenceView>,
    /// What its acknowledgements are worth; null unless the folder is that of a card.
    card: Option<CardView>,
    machine: Vec<Fact>,
    /// Findings of `pubmark doctor` before the study began.
    #[cfg_attr(
        test,
        ts(type = "{ what: string; severity: \"good\" | \"note\" | \"bad\"; found: string; mend: string | null }[]")
    )]
    doctor: &'a Value,
    /// A row for each run; the whole record is in the page's details, by the same index.
    records: Vec<Run>,
    /// `summary.csv`, as the program writes it.
    summary_csv: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Runs {
    valid: usize,
    /// Number of runs of which some figures are reliable.
    partly: usize,
    invalid: usize,
    failed: usize,
    missing: usize,
    made_again: usize,
    /// Number of runs with each reason.
    reasons: BTreeMap<String, usize>,
}

/// Counts the runs with each reason.
fn reasons(runs: &[RunRecord]) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for run in runs {
        let of_run: BTreeSet<String> =
            run.verdict.reasons.iter().map(|found| clean(&found.reason.to_string(), NAME_CHARS)).collect();
        of_run.into_iter().for_each(|reason| *counted.entry(reason).or_default() += 1);
    }
    counted
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct System {
    name: String,
    #[cfg_attr(test, ts(type = "\"broker\" | \"library\" | \"reference\""))]
    kind: &'static str,
    /// Version by what has it, as in `server`: `2.0.11`.
    versions: BTreeMap<String, String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Axis<'a> {
    /// Name as in the study file.
    name: &'a str,
    label: String,
    /// In the study's order, or ascending where all are numbers.
    values: Vec<AxisValue<'a>>,
    /// True if all values are numbers, except `max`.
    numeric: bool,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct AxisValue<'a> {
    /// Value as in a cell's axes.
    #[cfg_attr(test, ts(type = "string | number | boolean"))]
    value: &'a Value,
    /// Value as typed on the command line.
    label: String,
}

/// The cells, each made when it is written: of many runs there are thousands. Beside
/// the report the point of each, and by how much the clocks of its hosts may be apart, ns.
struct Cells<'a>(&'a Report, Vec<(usize, u64)>);

impl Serialize for Cells<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Cells(report, beside) = self;
        to.collect_seq(beside.iter().enumerate().map(|(index, (point, apart))| cell(report, index, *point, *apart)))
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Cell<'a> {
    label: String,
    system: &'a str,
    #[cfg_attr(test, ts(type = "Record<string, string | number | boolean>"))]
    axes: &'a Map<String, Value>,
    /// The point that it belongs to, by index.
    point: usize,
    /// True if messages are sent as fast as possible.
    unthrottled: bool,
    /// True if delivery is shown before latency, because delivery was guaranteed or there was a
    /// fault.
    delivery_first: bool,
    pattern: String,
    /// `partly`: some of its figures may be quoted, others not.
    #[cfg_attr(test, ts(type = "\"valid\" | \"partly\" | \"invalid\" | \"failed\" | \"missing\" | \"skipped\""))]
    status: &'static str,
    /// Standing by the ranking figure of its point: a key of `Page.words`.
    word: &'static str,
    /// Factor between this system and the best one of its point, at least and at most, valid for
    /// the table as a whole; for candidates and for systems that are behind.
    distance: Option<(f64, Option<f64>)>,
    /// About how many more repeats would leave one candidate.
    repeats_more: Option<u32>,
    runs: usize,
    valid_runs: usize,
    /// Runs of which some figures may be quoted and others not.
    partly_runs: usize,
    invalid_runs: usize,
    failed_runs: usize,
    missing_runs: usize,
    /// Runs that may be quoted for each group of figures.
    #[cfg_attr(test, ts(type = "Record<Group, number>"))]
    group_runs: BTreeMap<FigureGroup, usize>,
    reasons: Vec<Against>,
    notes: Vec<String>,
    error: Option<String>,
    skipped: Option<String>,
    /// By key; of the runs that count for it or, where there are none, of those that do
    /// not: then it is among `unquoted`.
    figures: BTreeMap<&'static str, Triple>,
    /// Keys of the figures that may not be quoted; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    unquoted: Vec<&'static str>,
    /// Sign before a figure that is a bound.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(test, ts(optional, type = "Record<string, \"≥\" | \"≤\">"))]
    signs: BTreeMap<&'static str, &'static str>,
    /// Figures as multiples of the floor's in the same block, by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    floors: BTreeMap<&'static str, Triple>,
    /// Latency of the runs merged, by where it counts from; absent at `max`.
    #[cfg_attr(test, ts(as = "Curves"))]
    curves: &'a Curves,
    /// The command that makes this cell's runs again.
    command: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Against {
    reason: String,
    runs: usize,
    /// The figures that it takes away, in words; empty for all.
    touches: String,
    evidence: String,
}

/// The points, in the same way.
struct Points<'a>(&'a Report);

impl Serialize for Points<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Points(report) = self;
        // Capacities of a study that asks for them; steps of a search are not points of it.
        let found = report.study().asked_capacity().map_or_else(Vec::new, |_| report.capacities());
        let view = |point| {
            let searches = searches_at(report, &found, point);
            let capacity = capacity_rank(searches.iter().map(|index| &found[*index]));
            PointView { capacity, searches, ..point_view(point, report.cells()) }
        };
        to.collect_seq(report.points().iter().map(view))
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Point"))]
struct PointView<'a> {
    #[cfg_attr(test, ts(type = "Record<string, string | number | boolean>"))]
    axes: &'a Map<String, Value>,
    label: String,
    unthrottled: bool,
    /// Cells, by index, in the study's order of systems.
    #[cfg_attr(test, ts(as = "Vec<usize>"))]
    cells: &'a [usize],
    /// The cell of the kernel floor, by index; null where there is none that is valid.
    floor: Option<usize>,
    /// Best systems by each figure that can be ranked.
    ranks: BTreeMap<&'static str, Rank>,
    /// By figure: at least how many times as good the winner is as the next.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    leads: BTreeMap<&'static str, f64>,
    /// By the capacity that the study asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    capacity: Option<Rank>,
    /// Searches that the rank is about, as indices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    searches: Vec<usize>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Rank {
    #[cfg_attr(test, ts(type = "\"winner\" | \"tie\" | \"alone\" | \"open\" | \"unranked\""))]
    kind: &'static str,
    /// The systems that may be the best, best looking first: the winner alone, those that
    /// tie, or the candidates.
    systems: Vec<String>,
    /// Why it is open or unranked.
    why: Option<String>,
    /// About how many more repeats would leave one candidate.
    repeats_more: Option<u32>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Claim"))]
struct ClaimView {
    id: String,
    says: String,
    #[cfg_attr(test, ts(type = "\"holds\" | \"fails\" | \"open\" | \"not tested here\""))]
    outcome: String,
    evidence: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Fact {
    label: &'static str,
    value: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Run {
    cell: usize,
    repeat: u32,
    started: String,
    valid: bool,
    partly: bool,
    failed: bool,
    reasons: Vec<String>,
    notes: usize,
    p50: Option<u64>,
    p99: Option<u64>,
    delivered_per_s: f64,
    delivered_ratio: Option<f64>,
    lost: u64,
    duplicated: u64,
    /// `None` if servers do not acknowledge.
    acked: Option<u64>,
    acked_lost: Option<u64>,
    /// Messages that the server refused.
    refused: u64,
    /// Generator, library and server together.
    cpu_cores: Option<f64>,
}

impl<'a> Page<'a> {
    pub fn of(reports: &[&'a Report], live: bool) -> Page<'a> {
        Page {
            format: FORMAT,
            pubmark: env!("CARGO_PKG_VERSION"),
            quantiles: curves::quantiles(),
            bins_per_decade: curves::BINS_PER_DECADE,
            figures: explain::figures(),
            words: CellVerdict::ALL.map(|word| (word.text(), word.meaning())).into(),
            reasons: explain::reasons(reports.iter().flat_map(|report| report.runs())),
            results: reports.iter().map(|report| results(report)).collect(),
            comparison: comparison(reports),
            live,
        }
    }
}

fn results(report: &Report) -> Results<'_> {
    let counts = report.counts();
    let mut point_of = vec![0; report.cells().len()];
    for (number, point) in report.points().iter().enumerate() {
        point.members.iter().for_each(|cell| point_of[*cell] = number);
    }
    Results {
        name: clean(report.name(), NAME_CHARS),
        title: clean(&report.study().title, PROSE_CHARS),
        question: clean(&report.study().question, PROSE_CHARS),
        constants: notes::constants(report),
        quick: report.study().quick,
        runs: Runs {
            valid: counts.valid,
            partly: counts.partly,
            invalid: counts.invalid,
            failed: counts.failed,
            missing: counts.missing,
            made_again: counts.made_again,
            reasons: reasons(report.runs()),
        },
        findings: findings(report),
        notes: notes::closing(report, Rows::All).into_iter().chain(records::left_out(report)).collect(),
        systems: systems(report),
        made: made(report),
        axes: axes(report.cells()),
        cells: Cells(report, point_of.into_iter().zip(clocks_apart(report)).collect()),
        points: Points(report),
        claims: report.claims().iter().map(claim_view).collect(),
        capacities: capacities(report),
        reference: reference(report),
        card: GuaranteeCard::of_folder(report).map(|card| card.view()),
        machine: machine(report.environment()),
        doctor: match &report.environment()["doctor"] {
            Value::Null => const { &Value::Array(Vec::new()) },
            doctor => doctor,
        },
        records: records::chosen(report)
            .into_iter()
            .map(|index| self::run(&report.runs()[index], report.cells_of_runs()[index]))
            .collect(),
        summary_csv: csv::render(report).unwrap_or_default(),
    }
}

/// The systems in the study's order, each with the versions of its first run.
fn systems(report: &Report) -> Vec<System> {
    let mut systems: Vec<System> = Vec::new();
    for result in report.cells() {
        let name = &result.cell.system.name;
        if systems.iter().any(|system| system.name == *name) {
            continue;
        }
        let made = report.runs().iter().find(|run| run.system == *name && !run.versions.is_empty());
        let versions = made.iter().flat_map(|run| &run.versions);
        systems.push(System {
            name: name.clone(),
            kind: report.kind(name),
            versions: versions.map(|(what, version)| (clean(what, NAME_CHARS), plain(version))).collect(),
        });
    }
    systems
}

/// A value as text.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => clean(text, PROSE_CHARS),
        other => clean(&other.to_string(), PROSE_CHARS),
    }
}

fn axes(cells: &[CellResult]) -> Vec<Axis<'_>> {
    let mut axes: Vec<Axis<'_>> = Vec::new();
    for (name, value) in cells.iter().flat_map(|result| &result.cell.axes) {
        let at = axes.iter().position(|axis| axis.name == name).unwrap_or_else(|| {
            axes.push(Axis { name, label: axis_name(name), values: Vec::new(), numeric: true });
            axes.len() - 1
        });
        let axis = &mut axes[at];
        if axis.values.iter().all(|known| known.value != value) {
            axis.numeric &= value.is_number() || value == "max";
            axis.values.push(AxisValue { value, label: axis_value(name, value) });
        }
    }
    for axis in axes.iter_mut().filter(|axis| axis.numeric) {
        axis.values.sort_by(|one, other| {
            let number = |value: &AxisValue<'_>| value.value.as_f64().unwrap_or(f64::INFINITY);
            number(one).total_cmp(&number(other))
        });
    }
    axes
}

/// By cell: by how much the clocks of its hosts may be apart, at worst; 0 where all of it
/// was on one.
fn clocks_apart(report: &Report) -> Vec<u64> {
    let mut worst = vec![0; report.cells().len()];
    for (run, cell) in report.runs().iter().zip(report.cells_of_runs()) {
        let bound_ns = run.hosts.iter().map(|host| host.clock.bound_ns).max().unwrap_or(0);
        worst[*cell] = bound_ns.max(worst[*cell]);
    }
    worst
}

/// Returns a remark on the time axis that all hosts share.
fn axis(apart_ns: u64) -> Option<String> {
    let within = time(apart_ns as f64);
    (apart_ns > 0).then(|| {
        format!("starts, windows, faults and series of all hosts are on one axis of time to within {within} (clock)")
    })
}

fn cell(report: &Report, cell: usize, point: usize, apart_ns: u64) -> Cell<'_> {
    let result = &report.cells()[cell];
    let known = || Figure::columns().filter(|column| result.figures.get(*column).is_some());
    let figures = known().filter_map(|column| Some((column.key(), triple(result.figures.get(column)?))));
    let floors = known().filter_map(|column| Some((column.key(), triple(result.figures.over_floor(column)?))));
    let at = &report.points()[point];
    let word = CellVerdict::of(result, at);
    Cell {
        label: clean(&result.cell.label(), NAME_CHARS),
        system: &result.cell.system.name,
        axes: &result.cell.axes,
        point,
        unthrottled: at.unthrottled,
        delivery_first: result.cell.delivery_first(),
        pattern: result.cell.workload.pattern.to_string(),
        status: match result.status {
            Status::Valid => "valid",
            Status::Partly => "partly",
            Status::Invalid => "invalid",
            Status::Failed => "failed",
            Status::Missing => "missing",
            Status::Skipped => "skipped",
        },
        word: word.text(),
        distance: distance(word, result, at).map(|distance| (distance.at_least, distance.at_most)),
        repeats_more: repeats_more(word, at),
        runs: result.runs,
        valid_runs: result.valid_runs,
        partly_runs: result.partly_runs,
        invalid_runs: result.invalid_runs,
        failed_runs: result.failed_runs,
        missing_runs: result.missing_runs,
        group_runs: FigureGroup::ALL.iter().map(|group| (*group, result.runs_for(*group))).collect(),
        reasons: result.all_reasons().iter().map(against).collect(),
        notes: result
            .notes
            .iter()
            .map(|note| clean_ends(&note.evidence, PROSE_CHARS))
            .chain(modes::note(result))
            .chain(axis(apart_ns))
            .collect(),
        error: result.error.as_ref().map(|error| clean_ends(error, PROSE_CHARS)),
        skipped: result.cell.skipped.as_ref().map(|why| clean(why, PROSE_CHARS)),
        figures: figures.collect(),
        unquoted: known().filter(|column| !result.figures.may_be_quoted(*column)).map(Figure::key).collect(),
        signs: known().filter_map(|column| Some((column.key(), sign(result.figures.sign(column))?))).collect(),
        floors: floors.collect(),
        curves: report.curves(cell),
        command: report.command(&result.cell),
    }
}

fn sign(sign: Sign) -> Option<&'static str> {
    match sign {
        Sign::Equal => None,
        Sign::AtLeast => Some("≥"),
        Sign::AtMost => Some("≤"),
    }
}

fn against(count: &crate::analysis::ReasonCount) -> Against {
    Against {
        reason: count.reason.to_string(),
        runs: count.runs,
        touches: notes::touched(&count.figures),
        evidence: clean_ends(&count.evidence, PROSE_CHARS),
    }
}

fn point_view<'a>(point: &'a Point, cells: &[CellResult]) -> PointView<'a> {
    let floor = point.members.iter().copied();
    let mut floor = floor.filter(|cell| cells[*cell].cell.system.name == crate::floor::FLOOR);
    let is_known = |figure| point.members.iter().any(|cell| cells[*cell].figures.get(figure).is_some());
    let known = || point.rankings().filter(|(figure, _)| is_known(*figure));
    let ranks = known().map(|(figure, ranked)| (figure.key(), rank(ranked)));
    let leads = known().filter_map(|(figure, ranked)| Some((figure.key(), ranked.lead()?)));
    let is_floor = |cell: &usize| {
        let may_be = |column| cells[*cell].quotable(column).is_some();
        may_be(Figure::LATENCY_P50) || may_be(Figure::DELIVERED)
    };
    PointView {
        axes: &point.axes,
        label: clean(&pubmark_model::cell::label(&point.axes), NAME_CHARS),
        unthrottled: point.unthrottled,
        cells: &point.members,
        floor: floor.find(is_floor),
        ranks: ranks.collect(),
        leads: leads.collect(),
        capacity: None,
        searches: Vec::new(),
    }
}

fn capacity_rank<'a>(found: impl Iterator<Item = &'a CapacityResult>) -> Option<Rank> {
    let (kind, systems) = best_of(found)?;
    let why = (kind == OPEN).then(|| "the intervals of the searches overlap".to_owned());
    Some(Rank { kind, systems, why, repeats_more: None })
}

fn rank(ranked: &Ranked) -> Rank {
    let (kind, systems, why) = match &ranked.placing {
        Placing::Winner(system) => ("winner", vec![system.clone()], None),
        Placing::Tie(systems) => ("tie", systems.clone(), None),
        Placing::Open { why: Why::TooFew, .. } => ("alone", Vec::new(), Some(Why::TooFew.text())),
        Placing::Open { why, .. } => {
            ("open", ranked.candidates().into_iter().map(str::to_owned).collect(), Some(why.text()))
        }
        Placing::Unranked { least, most } => {
            let why = format!("the shares delivered differ ({} to {})", percent(*least), percent(*most));
            ("unranked", Vec::new(), Some(why))
        }
    };
    Rank { kind, systems, why, repeats_more: ranked.repeats_more() }
}

/// Returns numbered texts on the parts of a claim, if it has several.
fn numbered(claim: &ClaimResult, say: impl Fn(&PartResult) -> String) -> Option<String> {
    let each = claim.parts.iter().zip(1..).map(|(part, number)| format!("({number}) {}", say(part)));
    (claim.parts.len() > 1).then(|| each.collect::<Vec<_>>().join("; "))
}

fn claim_view(claim: &ClaimResult) -> ClaimView {
    ClaimView {
        id: clean(&claim.id, NAME_CHARS),
        says: clean(&numbered(claim, PartResult::sentence).unwrap_or_else(|| claim.sentence()), PROSE_CHARS),
        outcome: claim.outcome.to_string(),
        evidence: match numbered(claim, |part| format!("{}, {}", part.outcome, part.evidence())) {
            Some(each) => format!("{}: {each}", claim.evidence()),
            None => claim.evidence(),
        },
    }
}

/// Returns the facts of `environment.json` in words.
fn machine(environment: &Value) -> Vec<Fact> {
    const FACTS: [(&str, &str); 15] = [
        ("pubmark", "pubmark"),
        ("time", "measured"),
        ("processor", "processor"),
        ("cores", "processors"),
        ("virtual", "virtual machine"),
        ("memory_bytes", "memory"),
        ("kernel", "kernel"),
        ("governor", "frequency governor"),
        ("clocksource", "clock source"),
        ("congestion_control", "TCP congestion control"),
        ("transparent_hugepage", "huge pages"),
        ("open_files", "open files"),
        ("load_average", "load average"),
        ("usable_cpus", "usable processors"),
        ("cpu_quota", "CPU quota, processors"),
    ];
    let fact = |(key, label)| {
        let value = match (key, &environment[key]) {
            (_, Value::Null) => return None,
            ("memory_bytes", value) => value.as_f64().map_or_else(|| plain(value), crate::text::bytes),
            ("virtual", value) => if value == true { "yes" } else { "no" }.into(),
            (_, value) => plain(value),
        };
        Some(Fact { label, value })
    };
    FACTS.into_iter().filter_map(fact).collect()
}

fn run(run: &RunRecord, cell: usize) -> Run {
    let counts = &run.counts;
    Run {
        cell,
        repeat: run.repeat,
        started: clean(&run.started, NAME_CHARS),
        valid: run.verdict.valid,
        partly: !run.verdict.valid && FigureGroup::ALL.iter().any(|group| allows(run, *group)),
        failed: run.error.is_some(),
        reasons: run.verdict.reasons.iter().map(|finding| finding.reason.to_string()).collect(),
        notes: run.verdict.notes.len(),
        p50: run.times.latency.as_ref().map(|latency| latency.p50),
        p99: run.times.latency.as_ref().map(|latency| latency.p99),
        delivered_per_s: run.rates.delivered_per_s,
        delivered_ratio: counts.delivered_ratio(),
        lost: counts.lost,
        duplicated: counts.duplicated,
        acked: (run.workload.qos > 0).then_some(counts.acked),
        acked_lost: counts.acked_lost.filter(|_| run.workload.qos > 0),
        refused: counts.refused,
        cpu_cores: Figure::CPU_CORES.value(run),
    }
}
