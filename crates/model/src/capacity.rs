//! A capacity: the highest load at which an objective holds, computed from the records of a results
//! folder. A running search computes its state from the same records with the same code.

mod limit;
mod step;

use crate::cell::{Cell, Limits};
use crate::flow::{ALL, split_place};
use crate::objective::Objective;
use crate::profile::Profile;
use crate::record::RunRecord;
use crate::units::{Ns, SECOND};
use crate::words::words;
use crate::workload::{Arrival, Rate, Workload};
pub use limit::CapacityLimit;
use pubmark_stats::{CAPACITY_LEVEL, CapacitySearch};
use serde::Serialize;
use serde_json::Value;
pub use step::{CONFIRMING, CapacityStep, StepOutcome};

words! {
    /// The load that a search raises, or the limit that it lowers, until the objective no longer
    /// holds.
    LoadAxis {
        /// Messages a second, of all publishers together.
        Rate = "rate",
        /// Pairs of one publisher and one subscriber.
        Pairs = "pairs",
        /// Publishers.
        Publishers = "publishers",
        /// Subscribers.
        Subscribers = "subscribers",
        /// Bytes of a message.
        Payload = "payload",
        /// Messages that are due at once.
        Burst = "burst",
        /// Processors that the server may use: the search finds the fewest that suffice.
        Cpus = "cpus",
        /// Memory that the server may use, bytes: the search finds the least that suffices.
        Memory = "memory",
    }
}

impl LoadAxis {
    /// Returns the key of a study that the search varies.
    pub fn key(self) -> &'static str {
        match self {
            LoadAxis::Burst => "arrival",
            other => other.word(),
        }
    }

    /// Returns the unit in which a load is counted.
    pub fn unit(self) -> &'static str {
        match self {
            LoadAxis::Rate => "messages/s offered, all publishers together",
            LoadAxis::Pairs => "pairs",
            LoadAxis::Publishers => "publishers",
            LoadAxis::Subscribers => "subscribers",
            LoadAxis::Payload => "bytes",
            LoadAxis::Burst => "messages at once",
            LoadAxis::Cpus => "processors of the server",
            LoadAxis::Memory => "bytes of the server's memory",
        }
    }

    /// True if the axis is a limit of the server. A limit is searched downwards: its load is the
    /// inverse of what the server may use, so a higher load is harder.
    pub fn is_limit(self) -> bool {
        matches!(self, LoadAxis::Cpus | LoadAxis::Memory)
    }

    /// Converts a load to the amount that users read and type, and back. For a limit, this is the
    /// amount that the server may use; otherwise it is the load itself.
    pub fn amount(self, load: f64) -> f64 {
        match self {
            LoadAxis::Cpus => CPUS_SCALE / load,
            LoadAxis::Memory => MEMORY_SCALE / load,
            _ => load,
        }
    }

    /// Returns the load of a cell; `None` if the cell has no load of this kind.
    pub fn load_of(self, workload: &Workload, limits: &Limits) -> Option<f64> {
        match self {
            LoadAxis::Cpus => limits.cpus.map(|cpus| self.amount(cpus)),
            LoadAxis::Memory => limits.memory_bytes.map(|bytes| self.amount(bytes as f64)),
            _ => self.load(workload),
        }
    }

    /// Returns the load of a workload; `None` if it has no load of this kind, such as at `max`.
    pub fn load(self, workload: &Workload) -> Option<f64> {
        match (self, &workload.rate, workload.arrival) {
            (LoadAxis::Rate, Rate::Due(Profile::Trace(_)), _) => None,
            (LoadAxis::Rate, Rate::Due(profile), _) => Some(profile.fastest_per_s() * f64::from(workload.publishers)),
            (LoadAxis::Rate, Rate::Max, _) => None,
            (LoadAxis::Pairs | LoadAxis::Publishers, ..) => Some(f64::from(workload.publishers)),
            (LoadAxis::Subscribers, ..) => Some(f64::from(workload.subscribers)),
            (LoadAxis::Payload, ..) if workload.sizes_vary() => None,
            (LoadAxis::Payload, ..) => Some(workload.payload_bytes as f64),
            (LoadAxis::Burst, _, Arrival::Burst(burst)) => Some(f64::from(burst)),
            (LoadAxis::Burst, ..) => Some(1.0),
            (LoadAxis::Cpus | LoadAxis::Memory, ..) => None,
        }
    }

    /// Formats the value of the key at a load as a user types it: four digits, and a whole number
    /// if it is a count. `publishers` share a rate.
    pub fn value(self, load: f64, publishers: u32) -> String {
        match self {
            LoadAxis::Rate => {
                let each = load / f64::from(publishers.max(1));
                let unit = 10_f64.powf(each.log10().floor() - 3.0).max(0.001);
                let thousandths = ((each / unit).round() * unit * 1e3).round().clamp(1.0, 1e12) as u64;
                let (whole, rest) = (thousandths / 1_000, thousandths % 1_000);
                match rest {
                    0 => whole.to_string(),
                    rest => format!("{whole}.{rest:03}").trim_end_matches('0').to_owned(),
                }
            }
            LoadAxis::Burst => format!("burst:{}", whole(load, 1.0, 1e6)),
            LoadAxis::Payload => whole(load, 16.0, (1u64 << 30) as f64),
            LoadAxis::Pairs | LoadAxis::Publishers | LoadAxis::Subscribers => whole(load, 1.0, 1e6),
            // Four digits, like a rate.
            LoadAxis::Cpus => format!("{:.3}", self.amount(load).clamp(0.01, 4_096.0)),
            LoadAxis::Memory => {
                let bytes = self.amount(load).clamp((1u64 << 20) as f64, MEMORY_SCALE);
                let unit = 10_f64.powf(bytes.log10().floor() - 3.0).max(1.0);
                format!("{:.0}", (bytes / unit).round() * unit)
            }
        }
    }

    /// True if loads are whole numbers.
    fn counts(self) -> bool {
        self != LoadAxis::Rate && !self.is_limit()
    }
}

/// Loads of a server that may use one processor, and one byte. Any number works that keeps loads
/// far from 0.
const CPUS_SCALE: f64 = 1_024.0;
const MEMORY_SCALE: f64 = (1u64 << 50) as f64;

fn whole(load: f64, least: f64, most: f64) -> String {
    format!("{:.0}", load.round().clamp(least, most))
}

words! {
    /// Reasons why only a bound of a capacity is known.
    BoundCause {
        /// The load generator reached its limit first.
        Generator = "generator",
        /// Other programs used the machine at the loads that would have decided.
        Machine = "machine",
        /// The time was over before the other end was found.
        Budget = "budget",
    }
}

/// Folder within a results folder for the headroom search: the distance from the given loads to the
/// highest load that holds. It is a results folder of its own, so its steps are not part of the
/// figures of the runs beside it.
pub const HEADROOM: &str = "headroom";

/// Folder within a results folder for the capacity searches that the study asks for. They are
/// results folders of their own for the same reason.
pub const CAPACITY: &str = "capacity";

/// Highest load of a headroom search, as a multiple of the given load.
pub const HEADROOM_MOST: f64 = 10.0;

/// The goal of a capacity search: `[capacity]` of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityGoal {
    /// The objective that must hold.
    pub until: Objective,
    /// The load that is varied.
    pub over: LoadAxis,
    /// The flow whose load it is, if the study has several.
    pub flow: Option<String>,
    /// Target width of the capacity interval, as a fraction.
    pub within: f64,
    /// The load at which the search begins.
    pub start: f64,
    /// Set if the study asks for the capacity, so that a search of each cell follows its runs.
    /// Otherwise the capacity is computed from the existing records.
    pub asked: Option<AskedCapacity>,
}

impl CapacityGoal {
    /// Reads what is varied: `pairs`, or the load of a flow, such as `flows.telemetry.rate`.
    ///
    /// # Errors
    /// If there is no such load, or if it is none of a flow.
    pub fn read_over(text: &str) -> Result<(LoadAxis, Option<String>), String> {
        let (flow, word) = split_place(text).map_or((None, text), |(flow, word)| (Some(flow.to_owned()), word));
        let over = LoadAxis::parse(word).map_err(|error| error.to_string())?;
        match flow {
            Some(_) if over.is_limit() => Err(format!("`{word}` limits the server, and not a flow: write `{word}`")),
            flow => Ok((over, flow)),
        }
    }

    /// Returns what is wrong with its flows, if the study has these, and what to write.
    pub fn check_flows(&self, flows: &[&str]) -> Option<(String, String)> {
        let known = flows.join(", ");
        let named = self.flow.as_deref().into_iter().chain(self.until.flows());
        if let Some(unknown) = named.into_iter().find(|name| *name != ALL && !flows.contains(name)) {
            let help = if flows.is_empty() { "leave it out".to_owned() } else { format!("its flows: {known}") };
            return Some((format!("the study has no flow `{unknown}`"), help));
        }
        let is_whose = self.flow.is_none() && !self.over.is_limit() && !flows.is_empty();
        is_whose.then(|| {
            let (over, first) = (self.over, flows[0]);
            (format!("`{over}` is of one flow"), format!("write flows.{first}.{over}; its flows: {known}"))
        })
    }

    /// Returns the key of a study that a search over this load varies.
    pub fn key_of(&self, over: LoadAxis) -> String {
        self.with_flow(over, over.key())
    }

    /// Returns what a study and a command write for this load: see [`CapacityGoal::read_over`].
    pub fn text_of(&self, over: LoadAxis) -> String {
        self.with_flow(over, over.word())
    }

    fn with_flow(&self, over: LoadAxis, word: &str) -> String {
        match self.flow.as_ref().filter(|_| !over.is_limit()) {
            Some(flow) => format!("flows.{flow}.{word}"),
            None => word.to_owned(),
        }
    }

    /// Returns the key of a study that the search varies.
    pub fn key(&self) -> String {
        self.key_of(self.over)
    }

    /// Returns the workload of a cell that has the load.
    pub fn workload<'c>(&self, cell: &'c Cell) -> &'c Workload {
        let flow = self.flow.as_ref().and_then(|name| cell.flows.iter().find(|flow| flow.name == *name));
        flow.map_or(&cell.workload, |flow| &flow.workload)
    }

    /// Returns the load of a cell; `None` if it has none of this kind.
    pub fn load_of(&self, cell: &Cell) -> Option<f64> {
        self.over.load_of(self.workload(cell), &cell.limits)
    }

    /// Returns the load of a run.
    fn load_of_run(&self, record: &RunRecord) -> Option<f64> {
        let number = |name: &str| record.cell.get(name).and_then(Value::as_f64);
        let limits = Limits { cpus: number("cpus"), memory_bytes: number("memory").map(|bytes| bytes as u64) };
        let own = match &self.flow {
            None => &record.workload,
            Some(name) => &record.flows.iter().find(|flow| flow.name == *name)?.own.as_ref()?.workload,
        };
        self.over.load_of(own, &limits)
    }

    /// Returns the loads that parts of the study can be searched over, its own first.
    pub fn loads(&self) -> impl Iterator<Item = LoadAxis> {
        let more = self.asked.iter().flat_map(|asked| asked.more.iter().copied());
        std::iter::once(self.over).chain(more)
    }
}

/// Settings of the searches that a study asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AskedCapacity {
    /// The parts whose cells are searched; empty means all.
    pub parts: Vec<String>,
    /// Further loads: a part is searched over the first that it sets, of the goal's load and
    /// these.
    pub more: Vec<LoadAxis>,
    /// The load at which the searches begin. Default: the lowest load of the cells.
    pub start: Option<f64>,
    /// Time limit for the search of a cell if the command gives none, ns.
    pub budget_ns: Option<Ns>,
}

impl AskedCapacity {
    /// True if the cells of this part are searched.
    pub fn searches(&self, part: Option<&str>) -> bool {
        self.parts.is_empty() || part.is_some_and(|part| self.parts.iter().any(|searched| searched == part))
    }
}

/// Allowed target widths of an interval, as a fraction.
pub const WITHIN: std::ops::RangeInclusive<f64> = 0.01..=0.5;

/// Maximum number of repeats of an inconclusive step: at one load, and in a whole search.
const AGAIN_MAX: u32 = 1;
const AGAIN_IN_ALL_MAX: u32 = 10;

/// An end of the interval that is beyond all measured loads by more than this factor was not found:
/// nothing has held, or nothing has failed, yet.
const BEYOND: f64 = 2.0;

/// The search stops when the server has ended in each of this many steps: lower loads do not keep
/// it alive.
const ENDED_MAX: usize = 4;

/// A capacity as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CapacityAnswer {
    /// The load at which the objective ceases to hold; if only a lower bound is known, that bound.
    /// `None` if nothing failed, nothing held, or the lower end was not found.
    pub estimate: Option<f64>,
    /// Lower end of the interval. If nothing failed, the highest load that held.
    pub lo: Option<f64>,
    /// Upper end of the interval; `None` for a lower bound. If nothing held, the lowest load that
    /// failed.
    pub hi: Option<f64>,
    /// Reason why one of the ends was not found; `None` if both were found, or nothing held.
    pub bound_by: Option<BoundCause>,
    /// Confidence level of the interval.
    pub level: f64,
    /// Standard deviation of the processor time of a message between the steps near the edge, as a
    /// fraction. Both ends of the interval include it.
    pub drift: f64,
    /// True if the system may carry more, for the reason in `bound_by`.
    pub lower_bound: bool,
    /// The part that reached its limit first.
    pub limited_by: Option<CapacityLimit>,
    /// Evidence for `limited_by`.
    pub evidence: Option<String>,
    /// True if the interval is as narrow as requested.
    pub settled: bool,
    /// True if the objective held in a run of full length at the lower end.
    pub confirmed: bool,
    /// Number of steps that failed while other programs used the machine, and had to be counted.
    pub disturbed: usize,
}

/// A capacity search, or one that is replayed from its records.
#[derive(Clone, Debug)]
pub struct CapacityCourse {
    goal: CapacityGoal,
    search: CapacitySearch,
    steps: Vec<CapacityStep>,
    again: u32,
}

impl CapacityCourse {
    /// Creates a search without steps.
    pub fn new(goal: CapacityGoal) -> CapacityCourse {
        let search = CapacitySearch::new(goal.start, goal.within);
        CapacityCourse { goal, search, steps: Vec::new(), again: 0 }
    }

    /// Replays a search from its records, in the order in which they were made.
    pub fn of<'a>(goal: &CapacityGoal, records: impl IntoIterator<Item = &'a RunRecord>) -> CapacityCourse {
        let mut climb = CapacityCourse::new(goal.clone());
        for record in records {
            climb.note(record);
        }
        climb
    }

    /// Sets the load at which a search without steps begins.
    pub fn begin(&mut self, load: f64) {
        self.goal.start = load;
        self.search = CapacitySearch::new(load, self.goal.within);
    }

    /// Adds a run. Returns its step; `None` if the run has no load of this kind.
    pub fn note(&mut self, record: &RunRecord) -> Option<&CapacityStep> {
        let load = self.goal.load_of_run(record)?;
        if self.steps.is_empty() && self.goal.until.is_of_fault() {
            // Such a search begins where that without a fault led.
            self.begin(load);
        }
        let mut step = CapacityStep::of(record, &self.goal.until, load);
        let before = self.steps.iter().filter(|other| other.load == load && !other.counts).count() as u32;
        let most = match step.outcome {
            StepOutcome::Held | StepOutcome::Failed => 0,
            StepOutcome::Generator | StepOutcome::Disturbed | StepOutcome::NotMade => AGAIN_MAX,
        };
        let is_told = matches!(step.outcome, StepOutcome::Held | StepOutcome::Failed);
        // An inconclusive run of full length leaves the earlier result unchanged.
        step.counts = is_told || !step.confirms && (before >= most || self.again >= AGAIN_IN_ALL_MAX);
        match (step.counts, step.outcome) {
            (true, StepOutcome::Disturbed) => self.search.note_doubtful(load),
            (true, outcome) => self.search.note(load, outcome == StepOutcome::Held),
            (false, _) => self.again += u32::from(!step.confirms),
        }
        self.steps.push(step);
        self.steps.last()
    }

    /// Returns the steps so far.
    pub fn steps(&self) -> &[CapacityStep] {
        &self.steps
    }

    /// Returns the goal of the search.
    pub fn goal(&self) -> &CapacityGoal {
        &self.goal
    }

    /// Returns the load of the next step: the last load again if that step was inconclusive.
    pub fn next(&self) -> f64 {
        let again = self.steps.last().filter(|step| !step.counts && !step.confirms);
        again.map_or_else(|| self.search.next(), |step| step.load)
    }

    /// True if enough is known: the interval is as narrow as requested, or the machine's drift
    /// makes it wider, not the number of steps. An inconclusive run of full length leaves the
    /// result of the steps before it unchanged.
    pub fn settled(&self) -> bool {
        let enough = self.search.interval().is_some_and(|found| {
            let own = (found.hi / found.lo).ln();
            let asked = (1.0 + self.goal.within).ln();
            let is_whole = self.goal.over.counts() && found.hi - found.lo < 1.0;
            is_whole || own <= (2.0 * self.drift(found.estimate)).min(WIDEST * asked)
        });
        self.steps.last().is_none_or(|step| step.counts || step.confirms) && (self.search.settled() || enough)
    }

    /// True if the machine's speed varied more than the target width.
    pub fn drifts(&self) -> bool {
        self.search.interval().is_some_and(|found| 2.0 * self.drift(found.estimate) > (1.0 + self.goal.within).ln())
    }

    /// Says why no run of full length confirms the answer; `None` if one does.
    pub fn unconfirmed(&self) -> Option<String> {
        let Some(last) = self.steps.iter().rfind(|step| step.confirms) else {
            return Some("there was no time for the run of full length at the low end".into());
        };
        let evidence = last.evidence.as_deref().unwrap_or("the reason is not known");
        Some(match last.outcome {
            StepOutcome::Held => return None,
            StepOutcome::Failed => format!("in the run of full length it did not hold: {}", last.unmet.join("; ")),
            StepOutcome::Disturbed => {
                format!("others used the machine in the run of full length: {}", last.unmet.join("; "))
            }
            StepOutcome::Generator => format!("the run of full length is unreliable: {evidence}"),
            StepOutcome::NotMade => format!("the run of full length failed: {evidence}"),
        })
    }

    /// Says why more steps are useless: no run can be made, or nothing holds, however small the
    /// load. `None` if they may help.
    pub fn hopeless(&self) -> Option<String> {
        let first = self.steps.iter().take(1 + AGAIN_MAX as usize);
        let unmade = first.clone().filter(|step| step.outcome == StepOutcome::NotMade).count();
        if unmade > AGAIN_MAX as usize {
            return self.steps.last().and_then(|step| step.unmet.first().cloned());
        }
        let held = self.steps.iter().any(|step| step.outcome == StepOutcome::Held);
        let gave_out = |step: &CapacityStep| step.server_ended || step.outcome == StepOutcome::NotMade;
        if let Some(last) = self.steps.last()
            && !held
            && self.steps.len() >= ENDED_MAX
            && self.steps.iter().all(gave_out)
        {
            let why = last.evidence.as_deref().unwrap_or("the reason is not known");
            let (steps, unit) = (self.steps.len(), self.goal.over.unit());
            let load = self.goal.over.amount(last.load);
            return Some(format!("the server ended in each of {steps} steps, down to {load} {unit}: {why}"));
        }
        let lowest = self.steps.iter().map(|step| step.load).fold(f64::INFINITY, f64::min);
        // The server cannot be given more than it had at first.
        let least = if self.goal.over.is_limit() {
            self.goal.start
        } else if self.goal.over.counts() {
            1.0
        } else {
            self.goal.start / 256.0
        };
        (!held && lowest <= least && self.steps.last().is_some_and(|step| step.counts)).then(|| {
            let over = self.goal.over;
            format!("the objective does not hold at {} {} either", over.amount(lowest), over.unit())
        })
    }

    /// Returns the length of a step at a load: `usual_ns`, or longer if that is too short for
    /// enough messages for a percentile.
    pub fn window_ns(&self, load: f64, usual_ns: Ns) -> Ns {
        if self.goal.over != LoadAxis::Rate {
            return usual_ns;
        }
        let seconds = (MESSAGES_MIN / load).ceil().min(LONGEST_S);
        usual_ns.max(seconds as Ns * SECOND)
    }

    /// Computes the capacity from the steps so far.
    pub fn answer(&self) -> CapacityAnswer {
        let counted = || self.steps.iter().filter(|step| step.counts);
        let held = || counted().filter(|step| step.outcome == StepOutcome::Held).map(|step| step.load);
        let failed = || counted().filter(|step| step.outcome != StepOutcome::Held);
        let (highest, lowest) = (held().reduce(f64::max), failed().map(|step| step.load).reduce(f64::min));
        let found = self.search.interval();
        let edge = found.map_or(f64::INFINITY, |found| found.hi) * BESIDE;
        let mut near: Vec<&CapacityStep> = failed().filter(|step| step.load <= edge).collect();
        if near.is_empty() {
            near.extend(failed().min_by(|one, other| one.load.total_cmp(&other.load)));
        }
        let limit = first(&near);
        let by_generator = found.is_some() && limit.as_ref().is_some_and(|(by, _)| *by == CapacityLimit::Generator);
        let drift = found.map_or(0.0, |found| self.drift(found.estimate));
        let moved = drift.exp();
        let [below, above] = self.open_ends();
        let (estimate, lo, hi) = match found {
            Some(_) if below && above => (None, highest, lowest),
            Some(found) if below => (None, None, Some(found.hi * moved)),
            Some(found) if by_generator || above => (Some(found.lo / moved), Some(found.lo / moved), None),
            Some(found) => (Some(found.estimate), Some(found.lo / moved), Some(found.hi * moved)),
            None => (None, highest, lowest),
        };
        let is_bound = by_generator || below || above || found.is_none() && highest.is_some();
        let bound_by = is_bound.then(|| self.bound_cause(by_generator, lo.unwrap_or_default()));
        let full = self.steps.iter().rfind(|step| step.confirms && step.counts);
        CapacityAnswer {
            estimate,
            lo,
            hi,
            level: CAPACITY_LEVEL,
            drift,
            bound_by,
            lower_bound: estimate.is_some() && hi.is_none(),
            settled: self.settled(),
            confirmed: full.is_some_and(|step| step.outcome == StepOutcome::Held),
            disturbed: counted().filter(|step| step.outcome == StepOutcome::Disturbed).count(),
            limited_by: limit.as_ref().map(|(by, _)| *by),
            evidence: limit.map(|(_, evidence)| evidence),
        }
    }

    /// Returns for the lower and the upper end whether it lies far beyond all measured loads. Such
    /// an end comes from the prior of the search and was not found.
    fn open_ends(&self) -> [bool; 2] {
        let Some(found) = self.search.interval().filter(|_| !self.settled()) else { return [false; 2] };
        let asked = || self.steps.iter().filter(|step| step.counts).map(|step| step.load);
        [asked().all(|load| load > found.lo * BEYOND), asked().all(|load| load * BEYOND < found.hi)]
    }

    /// Returns why an end was not found: the obstacle at the loads above `lo`.
    fn bound_cause(&self, by_generator: bool, lo: f64) -> BoundCause {
        let met = |outcome| self.steps.iter().any(|step| step.load >= lo && step.outcome == outcome);
        if by_generator || met(StepOutcome::Generator) {
            BoundCause::Generator
        } else if met(StepOutcome::Disturbed) {
            BoundCause::Machine
        } else {
            BoundCause::Budget
        }
    }

    /// Returns the drift of the machine's speed near `edge`. The speed varies from minute to minute
    /// as it does from step to step (its deviation does not shrink with averaging time), so steps
    /// of three minutes do not predict the next three minutes, however many they are.
    fn drift(&self, edge: f64) -> f64 {
        let is_near = |step: &&CapacityStep| (step.load / edge).ln().abs() <= NEAR;
        let works = self.steps.iter().filter(is_near).filter_map(|step| step.work_s);
        let works: Vec<f64> = works.map(f64::ln).collect();
        if works.len() < WORKS_MIN {
            return 0.0;
        }
        let mean = works.iter().sum::<f64>() / works.len() as f64;
        let squares: f64 = works.iter().map(|work| (work - mean).powi(2)).sum();
        (squares / (works.len() - 1) as f64).sqrt()
    }
}

/// Returns the limit that most steps name. With equal numbers, a cause comes before its effect. The
/// generator wins if at least half of the steps name it, because the system's behaviour is then
/// unknown.
fn first(steps: &[&CapacityStep]) -> Option<(CapacityLimit, String)> {
    let says = |limit: CapacityLimit| steps.iter().filter(|step| step.limit == Some(limit)).count();
    let most = CapacityLimit::ALL.iter().copied().rev().max_by_key(|limit| says(*limit))?;
    let limit = if says(CapacityLimit::Generator) * 2 >= steps.len() { CapacityLimit::Generator } else { most };
    let step = steps.iter().find(|step| step.limit == Some(limit))?;
    Some((limit, step.evidence.clone().unwrap_or_default()))
}

/// A step lasts long enough for this many messages, which a 99th percentile needs, but at most
/// [`LONGEST_S`].
const MESSAGES_MIN: f64 = 1_100.0;
const LONGEST_S: f64 = 20.0;

/// Steps within this distance of the edge, as a logarithm, are near it; at least this many are
/// needed to measure their drift.
const NEAR: f64 = 0.15;
const WORKS_MIN: usize = 4;

/// However far the machine's speed drifts, the steps alone must locate the edge within this many
/// times the target width.
const WIDEST: f64 = 3.0;

/// Steps that fail up to this factor above the interval show what reached its limit.
const BESIDE: f64 = 1.1;
