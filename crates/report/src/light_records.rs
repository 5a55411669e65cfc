//! Reading of a results folder with little memory.
//!
//! Most of a record consists of distributions, time slices and reports of each part. No figure of a
//! cell is computed from these, and with many runs they would fill the memory. So records are read
//! one at a time, and only the fields for figures and sentences are kept. Curves need the
//! distributions, which are read again, cell by cell. Runs that the page lists one by one are read
//! again as well.
//!
//! [`lighten`] removes fields that no figure reads. To compute a figure from one of them, let that
//! function keep it.

use crate::analysis::by_cell;
use crate::curves::{Curves, Merging};
use crate::figures::allows;
use crate::records::{Line, ReadError, RecordFile, Records, latest, only};
use pubmark_model::cell::Cell;
use pubmark_model::fault::Script;
use pubmark_model::flow::is_whole;
use pubmark_model::line::JsonLine;
use pubmark_model::record::{AgentShare, Deployment, FigureGroup, RunRecord, Series};
use pubmark_model::times::TimeFigures;
use pubmark_model::tuning::{SettingDifference, Use};
use pubmark_model::units::total;
use pubmark_stats::HistogramError;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Largest number of runs of a results folder with which all of them are in the page.
const RUNS_WHOLE: usize = 2_500;
/// Number of runs in the page if there are more. A page of tens of thousands of runs has thousands
/// of cells, whose figures and curves need the room.
const RUNS_MAX: usize = 1_000;
/// Number of the last different texts that a new one is compared with. If all texts of a system
/// differ, reading takes no longer.
const SAYINGS_MAX: usize = 8;

/// Why what was left out of records cannot be had again.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The file, or a line of it.
    File(ReadError),
    /// A run's histogram.
    Histogram {
        /// The cell in words.
        cell: String,
        /// Description of the problem.
        source: HistogramError,
    },
}

impl From<ReadError> for Unread {
    fn from(error: ReadError) -> Unread {
        Unread::File(error)
    }
}

/// The records of a report.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The runs in the order in which they ended, one for each cell and repeat.
    pub runs: Vec<RunRecord>,
    /// True if the last line of the file is incomplete.
    pub torn: bool,
    /// Records that a later one of the same cell and repeat stands in the place of.
    pub superseded: usize,
    /// Place of the fields that were not kept; `None` if the records are complete.
    rest: Option<Rest>,
}

/// Place of the fields that are not kept in memory.
#[derive(Debug)]
struct Rest {
    file: RecordFile,
    /// By run: its line, and the number of its flow there.
    lines: Vec<(Line, usize)>,
    /// By run, a place in `sayings`.
    said: Vec<usize>,
    sayings: Sayings,
}

impl Kept {
    /// Records as they are.
    pub fn whole(records: Records) -> Kept {
        let runs = records.runs.into_iter().flat_map(RunRecord::by_flow).collect();
        Kept { runs, torn: records.torn, superseded: records.superseded, rest: None }
    }

    /// Reads the records of a folder without the fields that no figure needs.
    pub fn light(dir: &Path) -> Result<Kept, ReadError> {
        let Some(file) = RecordFile::open(dir)? else { return Ok(Kept::whole(Records::default())) };
        let (mut runs, mut lines, mut said, mut sayings) = (Vec::new(), Vec::new(), Vec::new(), Sayings::default());
        let torn = file.each(&mut |run, line| {
            for (flow, mut run) in run.by_flow().into_iter().enumerate() {
                said.push(sayings.keep(&mut run));
                lighten(&mut run);
                runs.push(run);
                lines.push((line, flow));
            }
        })?;
        let keep = latest(&runs);
        let superseded = runs.iter().zip(&keep).filter(|(run, kept)| !**kept && is_whole(&run.cell)).count();
        let mut kept = Kept { runs, torn, superseded, rest: Some(Rest { file, lines, said, sayings }) };
        kept.only(&keep);
        Ok(kept)
    }

    /// Leaves the runs that are to be kept.
    pub fn only(&mut self, keep: &[bool]) {
        only(&mut self.runs, keep);
        if let Some(rest) = &mut self.rest {
            only(&mut rest.lines, keep);
            only(&mut rest.said, keep);
        }
    }

    /// Gives the first run of each system what the others say as it does: sentences
    /// are of that one.
    pub fn tell_once(&mut self) {
        let Some(rest) = &self.rest else { return };
        let mut told: HashMap<String, Told> = HashMap::new();
        for (run, said) in self.runs.iter_mut().zip(&rest.said) {
            let Saying { versions, made, differences } = &rest.sayings.all[*said];
            let told = told.entry(run.system.clone()).or_default();
            if !told.versions && !versions.is_empty() {
                told.versions = true;
                run.versions = versions.clone();
            }
            if !told.made && made.iter().any(|texts| !texts.is_empty()) {
                told.made = true;
                let agents = run.agents.len().max(made.len());
                run.agents.resize_with(agents, AgentShare::default);
                run.agents.iter_mut().zip(made).for_each(|(agent, texts)| agent.made = texts.clone());
            }
            let settings = run.settings.as_mut().filter(|_| !differences.is_empty());
            if let Some(settings) = settings.filter(|settings| !told.settings.contains(&settings.asked)) {
                told.settings.push(settings.asked);
                settings.differences = differences.clone();
            }
        }
    }

    /// The curves of each cell, of the runs that count for the percentiles.
    pub fn curves<'a>(
        &self,
        cells: impl Iterator<Item = &'a Cell>,
        cells_of_runs: &[usize],
    ) -> Result<Vec<Curves>, Unread> {
        let cells: Vec<&Cell> = cells.collect();
        let runs_of = by_cell(cells.len(), cells_of_runs.iter().enumerate().map(|(run, cell)| (*cell, run)));
        cells.into_iter().zip(runs_of).map(|(cell, runs)| self.curves_of(cell, &runs)).collect()
    }

    fn curves_of(&self, cell: &Cell, runs: &[usize]) -> Result<Curves, Unread> {
        let may_be_quoted = |run: &RunRecord| allows(run, FigureGroup::LatencyP99);
        let any = runs.iter().any(|run| may_be_quoted(&self.runs[*run]));
        let mut merging = Merging::default();
        for run in runs {
            let histograms = match &self.rest {
                None => Cow::Borrowed(&self.runs[*run].histograms),
                Some(rest) => Cow::Owned(rest.histograms(*run, &self.runs[*run])?),
            };
            let record = &self.runs[*run];
            let counts = if any { may_be_quoted(record) } else { record.error.is_none() };
            let added = merging.add(&histograms, counts);
            added.map_err(|source| Unread::Histogram { cell: cell.label(), source })?;
        }
        Ok(merging.curves())
    }

    /// The records of these runs as the page has them; none where the runs are whole
    /// anyhow.
    pub fn evidence(&self, runs: &[usize]) -> Result<Option<BTreeMap<usize, Vec<u8>>>, ReadError> {
        let Some(rest) = &self.rest else { return Ok(None) };
        let again = |run: &usize| rest.again(*run).map(|record| (*run, evidence(record)));
        runs.iter().map(again).collect::<Result<_, _>>().map(Some)
    }
}

impl Rest {
    /// The whole record of a run.
    fn again(&self, run: usize) -> Result<RunRecord, ReadError> {
        let (line, flow) = self.lines[run];
        Ok(self.file.again(line)?.by_flow().swap_remove(flow))
    }

    /// The histograms of a run.
    fn histograms(&self, run: usize, light: &RunRecord) -> Result<TimeFigures<Option<String>>, ReadError> {
        match is_whole(&light.cell) {
            true => self.file.histograms(self.lines[run].0),
            false => Ok(self.again(run)?.histograms),
        }
    }
}

/// A record as the page has it: JSON without the histograms.
pub(crate) fn evidence(run: RunRecord) -> Vec<u8> {
    let bare = RunRecord { histograms: TimeFigures::none(), ..run };
    bare.to_json().unwrap_or_default()
}

/// The runs that are in the page one by one, as indices: all, or where they are
/// many the first of each cell, as many of each as there is room for. Figures and
/// curves are of all runs nevertheless.
pub(crate) fn chosen(cells_of_runs: &[usize], cells: usize) -> Vec<usize> {
    let all = cells_of_runs.len();
    if all <= RUNS_WHOLE {
        return (0..all).collect();
    }
    let mut seen = vec![0; cells];
    let mut places: Vec<(usize, usize)> = Vec::with_capacity(all);
    for (index, cell) in cells_of_runs.iter().enumerate() {
        places.push((seen[*cell], index));
        seen[*cell] += 1;
    }
    // The first runs of all cells, then the second ones, as long as there is room.
    places.sort_unstable();
    let mut chosen: Vec<usize> = places.into_iter().take(RUNS_MAX).map(|(_, index)| index).collect();
    chosen.sort_unstable();
    chosen
}

/// Most frequent texts of a system's runs.
#[derive(Debug, PartialEq)]
struct Saying {
    versions: Map<String, Value>,
    /// By agent.
    made: Vec<BTreeMap<String, String>>,
    differences: Vec<SettingDifference>,
}

/// Texts of one kind that were found for a system.
#[derive(Default)]
struct Told {
    versions: bool,
    made: bool,
    settings: Vec<Use>,
}

/// Texts of runs, equal ones only once.
#[derive(Debug, Default)]
struct Sayings {
    all: Vec<Saying>,
    of_system: HashMap<String, Vec<usize>>,
}

impl Sayings {
    /// Takes out of a run what others may say as well. Its place.
    fn keep(&mut self, run: &mut RunRecord) -> usize {
        let saying = Saying {
            versions: std::mem::take(&mut run.versions),
            made: run.agents.iter_mut().map(|agent| std::mem::take(&mut agent.made)).collect(),
            differences: run.settings.as_mut().map(|own| std::mem::take(&mut own.differences)).unwrap_or_default(),
        };
        let known = self.of_system.entry(run.system.clone()).or_default();
        let same = known.iter().rev().take(SAYINGS_MAX).find(|place| self.all[**place] == saying);
        if let Some(place) = same {
            return *place;
        }
        known.push(self.all.len());
        self.all.push(saying);
        self.all.len() - 1
    }
}

/// Takes out of a record what no figure and no sentence of a report is made of.
fn lighten(run: &mut RunRecord) {
    run.options = BTreeMap::new();
    run.applied = Map::new();
    run.pacing = None;
    // Of the server only the fact that there was one is kept, what it asked of its disk, and what its members used.
    let kept = |of: &Deployment| Deployment {
        disk: of.disk,
        syncs: of.syncs,
        members: of.members.clone(),
        ..Deployment::default()
    };
    run.deployment = run.deployment.as_ref().map(kept);
    if let Some(connections) = &mut run.connections {
        (connections.first_error, connections.first_loss) = (None, None);
    }
    if let Some(churn) = &mut run.churn {
        churn.first_error = None;
    }
    if let Some(wire) = &mut run.wire {
        wire.interfaces = Vec::new();
    }
    run.faults = Script::default();
    run.link = None;
    // Whether agents without runtime figures exist is kept by keeping one.
    if run.agents.iter().all(|agent| agent.runtime.is_none()) {
        run.agents.truncate(1);
    }
    for agent in &mut run.agents {
        let ran_on = std::mem::take(&mut agent.ran_on);
        *agent = AgentShare { runtime: agent.runtime, ran_on, ..AgentShare::default() };
    }
    run.agents.shrink_to_fit();
    if let Some(file) = &mut run.system_file {
        file.sha256 = String::new();
    }
    run.histograms = TimeFigures::none();
    run.series = in_one(&run.series);
    run.flows = Vec::new();
    run.usage_series = None;
    run.phases = None;
    // One host shows how far the clocks may be off.
    let widest = run.hosts.drain(..).max_by_key(|host| host.clock.bound_ns);
    run.hosts = widest.into_iter().collect();
    run.remarks = Vec::new();
    run.verdict.reasons.shrink_to_fit();
    run.verdict.notes.shrink_to_fit();
}

/// Returns the series as a single slice, which is enough for backlogs and the largest lag.
fn in_one(series: &Series) -> Series {
    let sum = |slices: &[u64]| if slices.is_empty() { Vec::new() } else { vec![total(slices.iter().copied())] };
    let slice_ns = series.slice_ns.saturating_mul(series.sent.len() as u64);
    let lag = series.lag.iter().copied().max().into_iter().collect();
    Series { slice_ns, sent: sum(&series.sent), delivered: sum(&series.delivered), lag, ..Series::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::fault::Script;
    use pubmark_model::figure::Figure;
    use pubmark_model::record::{Counts, FaultEvent, MachineLoad, Rates, SCHEMA, Series, Verdict};
    use pubmark_model::setting::Settings;
    use pubmark_model::workload::Workload;
    use serde_json::json;

    #[test]
    fn a_light_record_has_the_figures_of_its_faults() {
        let workload = Workload::resolve(&Settings::default()).unwrap();
        let mut run: RunRecord = serde_json::from_value(json!({
            "schema": SCHEMA, "cell": {}, "repeat": 1, "position": 0, "system": "s", "versions": {}, "started": "",
            "workload": workload, "options": {}, "applied": {}, "window_ns": 5_000_000_000_u64,
            "counts": Counts::default(), "rates": Rates::default(), "agents": [], "histograms": {},
            "series": Series::default(), "machine": MachineLoad::default(), "remarks": [],
            "verdict": Verdict::default(),
        }))
        .unwrap();
        run.faults = Script::parse("cut link at 1s for 500ms").unwrap();
        let event = json!({
            "what": run.faults.0[0].what, "who": run.faults.0[0].who,
            "at_ns": 1_000_000_000, "until_ns": 1_500_000_000,
        });
        run.fault_log = vec![serde_json::from_value::<FaultEvent>(event).unwrap()];
        assert_eq!(Figure::FAULT_RATIO.value(&run), Some(0.1));
        lighten(&mut run);
        assert_eq!(Figure::FAULT_RATIO.value(&run), Some(0.1));
    }
}
