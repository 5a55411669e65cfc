//! A capacity: the highest load at which an objective holds, as the records of a
//! results folder say it. What a running search knows is computed from the same
//! records by the same code.

mod limit;
mod step;

use crate::cell::Limits;
use crate::objective::Objective;
use crate::record::RunRecord;
use crate::units::{Ns, SECOND};
use crate::words::words;
use crate::workload::{Arrival, Rate, Workload};
pub use limit::CapacityLimit;
use pubmark_stats::{CAPACITY_LEVEL, CapacitySearch};
use serde::Serialize;
pub use step::{CONFIRMING, CapacityStep, StepOutcome};

words! {
    /// What is turned up, or of a limit down, until the objective no longer holds.
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
        /// Processors that the server may use: the fewest that suffice.
        Cpus = "cpus",
        /// Memory that the server may use, bytes: the least that suffices.
        Memory = "memory",
    }
}

impl LoadAxis {
    /// The key of a study that is turned up.
    pub fn key(self) -> &'static str {
        match self {
            LoadAxis::Burst => "arrival",
            other => other.word(),
        }
    }

    /// What a load is counted in.
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

    /// Whether it limits the server. A limit is searched downwards: its load is the
    /// inverse of what the server may use, so that a higher load is the harder one.
    pub fn is_limit(self) -> bool {
        matches!(self, LoadAxis::Cpus | LoadAxis::Memory)
    }

    /// What a user says and reads of a load, and the load of what a user says: of a limit
    /// what the server may use, of all else the load itself.
    pub fn amount(self, load: f64) -> f64 {
        match self {
            LoadAxis::Cpus => CPUS_SCALE / load,
            LoadAxis::Memory => MEMORY_SCALE / load,
            _ => load,
        }
    }

    /// The load of a cell; none where it has none of this kind.
    pub fn load_of(self, workload: &Workload, limits: &Limits) -> Option<f64> {
        match self {
            LoadAxis::Cpus => limits.cpus.map(|cpus| self.amount(cpus)),
            LoadAxis::Memory => limits.memory_bytes.map(|bytes| self.amount(bytes as f64)),
            _ => self.load(workload),
        }
    }

    /// The load of a run.
    fn load_of_run(self, record: &RunRecord) -> Option<f64> {
        let number = |name: &str| record.cell.get(name).and_then(serde_json::Value::as_f64);
        let limits = Limits { cpus: number("cpus"), memory_bytes: number("memory").map(|bytes| bytes as u64) };
        self.load_of(&record.workload, &limits)
    }

    /// The load of a workload; none where it has none of this kind, as at `max`.
    pub fn load(self, workload: &Workload) -> Option<f64> {
        match (self, workload.rate, workload.arrival) {
            (LoadAxis::Rate, Rate::Due(profile), _) => Some(profile.fastest_per_s() * f64::from(workload.publishers)),
            (LoadAxis::Rate, Rate::Max, _) => None,
            (LoadAxis::Pairs | LoadAxis::Publishers, ..) => Some(f64::from(workload.publishers)),
            (LoadAxis::Subscribers, ..) => Some(f64::from(workload.subscribers)),
            (LoadAxis::Payload, ..) => Some(workload.payload_bytes as f64),
            (LoadAxis::Burst, _, Arrival::Burst(burst)) => Some(f64::from(burst)),
            (LoadAxis::Burst, ..) => Some(1.0),
            (LoadAxis::Cpus | LoadAxis::Memory, ..) => None,
        }
    }

    /// The value of the key at a load, as it is typed: four digits, of a whole
    /// number if it is one. `publishers` share a rate.
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
            // Four digits, as of a rate.
            LoadAxis::Cpus => format!("{:.3}", self.amount(load).clamp(0.01, 4_096.0)),
            LoadAxis::Memory => {
                let bytes = self.amount(load).clamp((1u64 << 20) as f64, MEMORY_SCALE);
                let unit = 10_f64.powf(bytes.log10().floor() - 3.0).max(1.0);
                format!("{:.0}", (bytes / unit).round() * unit)
            }
        }
    }

    /// Whether loads are whole numbers.
    fn counts(self) -> bool {
        self != LoadAxis::Rate && !self.is_limit()
    }
}

/// The load of a server that may use one processor, and that of one byte: any will do
/// that leaves loads far from 0.
const CPUS_SCALE: f64 = 1_024.0;
const MEMORY_SCALE: f64 = (1u64 << 50) as f64;

fn whole(load: f64, least: f64, most: f64) -> String {
    format!("{:.0}", load.round().clamp(least, most))
}

words! {
    /// Why only a bound of a capacity is known.
    BoundCause {
        /// The load generator gave out first.
        Generator = "generator",
        /// Others used the machine at the loads that would have told.
        Machine = "machine",
        /// The time was over before the other end was found.
        Budget = "budget",
    }
}

/// The folder within a results folder that has the search for its headroom: how far
/// the given loads lie from what holds. It is a results folder of its own, so that
/// its steps are in no figure of the runs beside it.
pub const HEADROOM: &str = "headroom";

/// The folder within a results folder that has the searches for the capacities that
/// its study asks for. They are results folders of their own for the same reason.
pub const CAPACITY: &str = "capacity";

/// How many times a given load the search for its headroom goes up.
pub const HEADROOM_MOST: f64 = 10.0;

/// What is to be found: `[capacity]` of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityGoal {
    /// What has to hold.
    pub until: Objective,
    /// What is turned up.
    pub over: LoadAxis,
    /// How near to each other the ends of the answer are to be, as a fraction.
    pub within: f64,
    /// The load at which the search begins.
    pub start: f64,
    /// Whether the study asks for it, so that a search of each of its cells follows its
    /// runs; otherwise its records say it as they are.
    pub asked: Option<AskedCapacity>,
}

/// What a study says of the searches that it asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AskedCapacity {
    /// The parts whose cells are searched; all, where there is none.
    pub parts: Vec<String>,
    /// The load at which the searches begin; where it says none, the lowest that the
    /// cells have.
    pub start: Option<f64>,
    /// How long the search of a cell may take where the command gives no time, ns.
    pub budget_ns: Option<Ns>,
}

impl AskedCapacity {
    /// Whether the cells of this part are searched.
    pub fn searches(&self, part: Option<&str>) -> bool {
        self.parts.is_empty() || part.is_some_and(|part| self.parts.iter().any(|searched| searched == part))
    }
}

/// The widest and the narrowest interval that can be asked for.
pub const WITHIN: std::ops::RangeInclusive<f64> = 0.01..=0.5;

/// How often a step is made again that says nothing of the system: at one load,
/// and in a whole search.
const AGAIN_MAX: u32 = 1;
const AGAIN_IN_ALL_MAX: u32 = 10;

/// An end is not found that lies more than this beyond all loads that were asked: it is a
/// step of the search before something has held, or failed.
const BEYOND: f64 = 2.0;

/// A search is given up when the server has ended in each of so many steps: lower loads
/// are then not what keeps it alive.
const ENDED_MAX: usize = 4;

/// A capacity as far as it is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityAnswer {
    /// Where the objective ceases to hold; where only a lower bound is known, that.
    /// None where nothing failed, nothing held, or the lower end was not found.
    pub estimate: Option<f64>,
    /// The lower end of the interval. Where nothing failed, the highest load that held.
    pub lo: Option<f64>,
    /// The upper end; none of a lower bound. Where nothing held, the lowest load that failed.
    pub hi: Option<f64>,
    /// Why one of the ends was not found; none where both were, or nothing held.
    pub bound_by: Option<BoundCause>,
    /// How sure the interval is.
    pub level: f64,
    /// How far the processor time of a message moved from step to step beside the edge:
    /// the standard deviation, as a fraction. Both ends have it in them.
    pub drift: f64,
    /// Whether the system may carry more, by what `bound_by` says.
    pub lower_bound: bool,
    /// What gave out first.
    pub limited_by: Option<CapacityLimit>,
    /// What was seen of it.
    pub evidence: Option<String>,
    /// Whether the interval is as narrow as was asked for.
    pub settled: bool,
    /// Whether a run of full length held at the lower end.
    pub confirmed: bool,
    /// Steps that failed while others used the machine, and had to be counted.
    pub disturbed: usize,
}

/// A search, or one that is played again from its records.
#[derive(Clone, Debug)]
pub struct CapacityClimb {
    goal: CapacityGoal,
    search: CapacitySearch,
    steps: Vec<CapacityStep>,
    again: u32,
}

impl CapacityClimb {
    /// A search in which nothing has been asked.
    pub fn new(goal: CapacityGoal) -> CapacityClimb {
        let search = CapacitySearch::new(goal.start, goal.within);
        CapacityClimb { goal, search, steps: Vec::new(), again: 0 }
    }

    /// A search of which these are the records, in the order in which they were made.
    pub fn of<'a>(goal: &CapacityGoal, records: impl IntoIterator<Item = &'a RunRecord>) -> CapacityClimb {
        let mut climb = CapacityClimb::new(goal.clone());
        for record in records {
            climb.note(record);
        }
        climb
    }

    /// A run has been made. What it says; none where it has no load of this kind.
    pub fn note(&mut self, record: &RunRecord) -> Option<&CapacityStep> {
        let load = self.goal.over.load_of_run(record)?;
        let mut step = CapacityStep::of(record, &self.goal.until, load);
        let before = self.steps.iter().filter(|other| other.load == load && !other.counts).count() as u32;
        let most = match step.outcome {
            StepOutcome::Held | StepOutcome::Failed => 0,
            StepOutcome::Generator | StepOutcome::Disturbed | StepOutcome::NotMade => AGAIN_MAX,
        };
        let is_told = matches!(step.outcome, StepOutcome::Held | StepOutcome::Failed);
        // A run of full length that says nothing of the system takes nothing back either.
        step.counts = is_told || !step.confirms && (before >= most || self.again >= AGAIN_IN_ALL_MAX);
        match (step.counts, step.outcome) {
            (true, StepOutcome::Disturbed) => self.search.note_doubtful(load),
            (true, outcome) => self.search.note(load, outcome == StepOutcome::Held),
            (false, _) => self.again += u32::from(!step.confirms),
        }
        self.steps.push(step);
        self.steps.last()
    }

    /// The steps so far.
    pub fn steps(&self) -> &[CapacityStep] {
        &self.steps
    }

    /// What is to be found.
    pub fn goal(&self) -> &CapacityGoal {
        &self.goal
    }

    /// The load of the next step: the last one again, where it said nothing.
    pub fn next(&self) -> f64 {
        let again = self.steps.last().filter(|step| !step.counts && !step.confirms);
        again.map_or_else(|| self.search.next(), |step| step.load)
    }

    /// Whether enough is known: the interval is as narrow as was asked for, or it is the
    /// machine that makes it wider, and not the steps. A run of full length that says
    /// nothing of the system leaves what the steps before it have found.
    pub fn settled(&self) -> bool {
        let enough = self.search.interval().is_some_and(|found| {
            let own = (found.hi / found.lo).ln();
            let asked = (1.0 + self.goal.within).ln();
            let is_whole = self.goal.over.counts() && found.hi - found.lo < 1.0;
            is_whole || own <= (2.0 * self.drift(found.estimate)).min(WIDEST * asked)
        });
        self.steps.last().is_none_or(|step| step.counts || step.confirms) && (self.search.settled() || enough)
    }

    /// Whether the machine's speed moved more than what was asked for.
    pub fn drifts(&self) -> bool {
        self.search.interval().is_some_and(|found| 2.0 * self.drift(found.estimate) > (1.0 + self.goal.within).ln())
    }

    /// Why no run of full length confirms the answer, in words; none where one does.
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

    /// Why it is of no use to go on, if it is: no run can be made, or nothing
    /// holds, however small the load.
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
        // A server cannot be given more than it had at first.
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

    /// How long a step lasts at a load: `usual_ns`, and longer where that would be
    /// too few messages for a percentile.
    pub fn window_ns(&self, load: f64, usual_ns: Ns) -> Ns {
        if self.goal.over != LoadAxis::Rate {
            return usual_ns;
        }
        let seconds = (MESSAGES_MIN / load).ceil().min(LONGEST_S);
        usual_ns.max(seconds as Ns * SECOND)
    }

    /// What the steps so far say together.
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

    /// Whether the lower and the upper end of the interval lie far beyond all loads that
    /// were asked: then they are what was believed before the first step, and were not found.
    fn open_ends(&self) -> [bool; 2] {
        let Some(found) = self.search.interval().filter(|_| !self.settled()) else { return [false; 2] };
        let asked = || self.steps.iter().filter(|step| step.counts).map(|step| step.load);
        [asked().all(|load| load > found.lo * BEYOND), asked().all(|load| load * BEYOND < found.hi)]
    }

    /// Why an end was not found: what was in the way at the loads above `lo`.
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

    /// What a machine's speed does from step to step it does from minute to minute too
    /// (its deviation does not shrink with the time it is averaged over), so that steps
    /// of three minutes do not say what the next three find, however many they are.
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

/// What most steps say, and of two that are as many the cause before what it leads
/// to. The generator, where half of them say so: then it is not known what the
/// system would have done.
fn first(steps: &[&CapacityStep]) -> Option<(CapacityLimit, String)> {
    let says = |limit: CapacityLimit| steps.iter().filter(|step| step.limit == Some(limit)).count();
    let most = CapacityLimit::ALL.iter().copied().rev().max_by_key(|limit| says(*limit))?;
    let limit = if says(CapacityLimit::Generator) * 2 >= steps.len() { CapacityLimit::Generator } else { most };
    let step = steps.iter().find(|step| step.limit == Some(limit))?;
    Some((limit, step.evidence.clone().unwrap_or_default()))
}

/// A 99th percentile is judged by so many messages or more, where there is time:
/// a step is not longer than [`LONGEST_S`].
const MESSAGES_MIN: f64 = 1_100.0;
const LONGEST_S: f64 = 20.0;

/// Steps are beside the edge that are so near to it, as a logarithm, and so many of
/// them say how far they differ.
const NEAR: f64 = 0.15;
const WORKS_MIN: usize = 4;

/// However far the machine's speed moves, the steps by themselves say where the edge is
/// within so many times the width that was asked for.
const WIDEST: f64 = 3.0;

/// Steps that fail up to so far above the interval say what gave out.
const BESIDE: f64 = 1.1;
