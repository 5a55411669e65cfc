//! What an agent measured.

use super::packed::{PackedError, PackedHistogram};
use super::ranges::Ranges;
use super::seen::SeenBits;
use crate::counts::{LedgerCounts, PublisherTotal, RefusalCount};
use crate::times::TimeFigures;
use crate::units::Ns;
use crate::used::{self, UsageReading, Used};
use pubmark_stats::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What an agent measured: of each flow, and of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentResult {
    /// Of each flow of `prepare`, in its order.
    pub flows: Vec<FlowResult>,
    /// CPU time and memory of the agent's process over the window.
    pub usage: AgentUsage,
    /// The library that was loaded: `library`, `version`, `path`.
    pub versions: Map<String, Value>,
    /// Options as they took effect.
    pub applied: Map<String, Value>,
    /// Event loops, or threads that play clients; 0 where the agent does not say.
    #[serde(default)]
    pub loops: u32,
    /// How connections to a broker came about; none for libraries.
    #[serde(default)]
    pub connections: Option<Connections>,
    /// What the first attempt to connect that failed met.
    #[serde(default)]
    pub connect_error: Option<String>,
    /// How the first connection was lost that had been up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_loss: Option<String>,
    /// What the server said of limits of its own that it reached while the clients were connected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_reached: Vec<String>,
    /// Times from a client's connecting until the server accepted it, as a histogram.
    #[serde(default)]
    pub connect_time: Option<PackedHistogram>,
    /// Times that clients were without their connection: from its loss until
    /// they were accepted again, subscribed, and had sent again what the server
    /// had not acknowledged; as a histogram. Losses that lasted to the end are
    /// not among them.
    #[serde(default)]
    pub reconnect_time: Option<PackedHistogram>,
    /// Gaps within the window in which the agent did not run though it should
    /// have: it, or the machine below it, was stopped. None where it cannot tell.
    #[serde(default)]
    pub pauses: Option<Stalls>,
    /// What the runtime says of itself; none where there is none, as in C.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeFigures>,
    /// How what was measured is made (language, call, copies, flags …), in the
    /// agent's own words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made: BTreeMap<String, String>,
    /// What the verdict should know: limits that were hit, sends that failed.
    pub remarks: Vec<String>,
}

/// What the runtime of a language says of itself over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeFigures {
    /// Times for which it stopped the program, for garbage collection most often;
    /// none where it does not tell.
    #[serde(default)]
    pub pauses: Option<RuntimePauses>,
    /// Garbage collections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collections: Option<u64>,
    /// What the program allocated, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_bytes: Option<u64>,
}

/// Times for which a runtime stopped its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimePauses {
    /// How often.
    pub count: u64,
    /// All of them together, ns.
    pub total_ns: Ns,
    /// The longest, ns.
    pub longest_ns: Ns,
    /// When it began, ns from the window's beginning.
    pub longest_at_ns: Ns,
}

/// What an agent measured of one flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// What each publisher sent.
    pub publishers: Vec<PublisherTotal>,
    /// The ledger, over all subscribers of the agent.
    pub ledger: LedgerCounts,
    /// Messages that arrived within the window's time, each counted once,
    /// whenever they were due; of a count at `max` those of the window alone.
    pub arrived: u64,
    /// When the first message of the window was sent, ns; count-limited runs at `max`.
    pub first_sent_ns: Option<Ns>,
    /// When the last message of the window was sent, ns; count-limited runs at `max`. None
    /// where the agent cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sent_ns: Option<Ns>,
    /// When the last message of the window arrived, ns.
    pub last_arrival_ns: Option<Ns>,
    /// Distributions of times; none where nothing was measured, or the agent
    /// cannot tell.
    pub histograms: TimeFigures<Option<PackedHistogram>>,
    /// How its publishers waited; none where the agent cannot tell.
    #[serde(default)]
    pub pacing: Option<PacingFigures>,
    /// Sum of |l_i − l_(i−1)| over consecutive messages of a stream, ns.
    pub jitter_sum_ns: f64,
    /// How many such pairs there were.
    pub jitter_pairs: u64,
    /// Counts and latencies by time slice.
    pub series: SliceSeries,
    /// Silences of subscribers; none where the agent cannot tell.
    #[serde(default)]
    pub stalls: Option<Stalls>,
    /// For competing subscribers: which sequences arrived, so that the
    /// coordinator can unite the ledgers of several agents.
    #[serde(default)]
    pub seen: Vec<SeenBits>,
    /// Messages of the window that the server acknowledged (QoS 1 and 2).
    #[serde(default)]
    pub acked: u64,
    /// Messages of the window that were sent and never acknowledged; never a
    /// part of them.
    #[serde(default)]
    pub unacked: Ranges,
    /// Messages of the window that the server refused, in words or by a code. They are among
    /// `unacked` as well.
    #[serde(default)]
    pub refused: Ranges,
    /// The same, counted by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<RefusalCount>,
    /// Messages of the window that a subscriber should have got and did not
    /// (QoS 1 and 2): ranges for each subscriber; never a part of them.
    #[serde(default)]
    pub missing: Ranges,
}

/// A histogram of a result that is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` of its result is no histogram of times: {problem}")]
pub struct BadHistogram {
    /// Which.
    pub field: String,
    /// What is wrong with it.
    pub problem: PackedError,
}

impl AgentResult {
    /// What all its publishers sent.
    pub fn publishers(&self) -> impl Iterator<Item = &PublisherTotal> {
        self.flows.iter().flat_map(|flow| &flow.publishers)
    }

    /// Reads all its histograms.
    ///
    /// # Errors
    /// The first one that is none.
    pub fn histograms(&self) -> Result<ResultHistograms, BadHistogram> {
        let read = |field: String, packed: &Option<PackedHistogram>, digits: u8| {
            let histogram = packed.as_ref().map(|packed| packed.read(digits)).transpose();
            histogram.map_err(|problem| BadHistogram { field, problem })
        };
        let mut all = ResultHistograms::default();
        for (number, flow) in self.flows.iter().enumerate() {
            let mut times = TimeFigures::none();
            let packed = TimeFigures::NAMES.zip(flow.histograms.as_ref()).into_array();
            for ((name, packed), time) in packed.into_iter().zip(times.as_mut().into_array()) {
                *time = read(format!("flows[{number}].histograms.{name}"), packed, PackedHistogram::DIGITS)?;
            }
            let mut slices = Vec::with_capacity(flow.series.latency.len());
            for (slice, packed) in flow.series.latency.iter().enumerate() {
                let field = format!("flows[{number}].series.latency[{slice}]");
                let histogram = read(field, packed, PackedHistogram::SLICE_DIGITS)?;
                slices.push(histogram.map_or(0, |histogram| histogram.count()));
            }
            all.flows.push(FlowHistograms { times, slices });
        }
        read("connect_time".into(), &self.connect_time, PackedHistogram::DIGITS)?;
        let reconnects = read("reconnect_time".into(), &self.reconnect_time, PackedHistogram::DIGITS)?;
        all.reconnects = reconnects.map(|histogram| histogram.count());
        Ok(all)
    }
}

/// The histograms of a result, read.
#[derive(Clone, Debug, Default)]
pub struct ResultHistograms {
    /// Of each flow.
    pub flows: Vec<FlowHistograms>,
    /// How many times `reconnect_time` has; none where it is not there.
    pub reconnects: Option<u64>,
}

/// The histograms of a flow, read.
#[derive(Clone, Debug)]
pub struct FlowHistograms {
    /// Of each time that is measured.
    pub times: TimeFigures<Option<Histogram>>,
    /// How many latencies each slice of the window has.
    pub slices: Vec<u64>,
}

impl FlowHistograms {
    /// How many times one of them has, 0 where it is null.
    pub fn count(&self, of: impl Fn(&TimeFigures<Option<Histogram>>) -> &Option<Histogram>) -> u64 {
        of(&self.times).as_ref().map_or(0, Histogram::count)
    }
}

/// How publishers waited for their due times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacingFigures {
    /// The processors that waiting awake might cost, over all publishers.
    pub budget_cores: f64,
    /// What it did cost: time awake before due times over the window's length.
    pub spent_cores: f64,
    /// How long before a due time publishers woke up at last, ns; the longest of
    /// all loops.
    pub margin_ns: Ns,
}

impl PacingFigures {
    /// Adds those of other publishers.
    pub fn add(&mut self, other: &PacingFigures) {
        self.budget_cores += other.budget_cores;
        self.spent_cores += other.spent_cores;
        self.margin_ns = self.margin_ns.max(other.margin_ns);
    }
}

/// How connections to a broker came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connections {
    /// Clients that wanted one.
    pub wanted: u64,
    /// Clients that got one.
    pub opened: u64,
    /// Attempts that failed: refused, reset, or not answered in time.
    pub refused: u64,
    /// Attempts after a failed one.
    pub retried: u64,
    /// Connections that ended while they were needed.
    pub lost: u64,
    /// Lost ones that came back, with the client able to do its part again.
    #[serde(default)]
    pub reconnected: u64,
    /// When the first attempt began, ns on the agent's clock.
    pub first_ns: Ns,
    /// When the last client was accepted.
    pub last_ns: Ns,
}

impl Connections {
    /// Adds those of another agent.
    pub fn add(&mut self, other: &Connections) {
        let first = [self.first_ns, other.first_ns].into_iter().filter(|at| *at > 0).min();
        self.first_ns = first.unwrap_or(0);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.wanted = self.wanted.saturating_add(other.wanted);
        self.opened = self.opened.saturating_add(other.opened);
        self.refused = self.refused.saturating_add(other.refused);
        self.retried = self.retried.saturating_add(other.retried);
        self.lost = self.lost.saturating_add(other.lost);
        self.reconnected = self.reconnected.saturating_add(other.reconnected);
    }
}

/// Counts and latencies by time slice of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SliceSeries {
    /// Length of a slice, ns.
    pub slice_ns: Ns,
    /// Messages sent in each slice.
    pub sent: Vec<u64>,
    /// Messages that arrived in each slice.
    pub delivered: Vec<u64>,
    /// The headline of the arrivals in each slice, as histograms of 2 digits;
    /// none for a slice in which nothing arrived.
    pub latency: Vec<Option<PackedHistogram>>,
}

/// Silences of subscribers that should have heard something, or of an agent
/// that should have run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// The longest, ns.
    pub longest_ns: Ns,
    /// When that one began, ns from the window's beginning.
    pub longest_at_ns: Ns,
}

impl Stalls {
    /// Adds the silences of others: the longest of all stays the longest.
    pub fn add(&mut self, other: &Stalls) {
        self.count = self.count.saturating_add(other.count);
        if other.longest_ns > self.longest_ns {
            (self.longest_ns, self.longest_at_ns) = (other.longest_ns, other.longest_at_ns);
        }
    }
}

/// CPU time and memory of an agent's process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentUsage {
    /// Length of the accounting interval: the measured window, ns.
    pub wall_ns: Ns,
    /// CPU time of all threads in it, ns, by CLOCK_PROCESS_CPUTIME_ID.
    pub cpu_ns: Ns,
    /// The part in user mode, ns.
    pub user_ns: Ns,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Resident set size samples, bytes.
    pub rss_bytes: Vec<u64>,
    /// Unique set size samples, bytes.
    pub uss_bytes: Vec<u64>,
    /// Where nobody knows the window's end beforehand: readings from its
    /// beginning to the stop, so that the coordinator can cut out the window.
    /// Then the figures above are of all that time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<UsageReading>,
}

impl AgentUsage {
    /// What was used between two instants, where there are readings; else all.
    pub fn within(&self, from_ns: Ns, to_ns: Ns) -> AgentUsage {
        if self.course.is_empty() {
            return self.clone();
        }
        let Used { cpu_ns, user_ns, voluntary_switches, involuntary_switches } =
            used::between(&self.course, from_ns, to_ns);
        // The first sample is taken under load, however short the window is.
        let samples = used::samples_by(&self.course, to_ns).max(1);
        let taken = |samples_of: &[u64]| samples_of.iter().copied().take(samples).collect();
        AgentUsage {
            wall_ns: to_ns.saturating_sub(from_ns),
            cpu_ns,
            user_ns,
            voluntary_switches,
            involuntary_switches,
            rss_bytes: taken(&self.rss_bytes),
            uss_bytes: taken(&self.uss_bytes),
            course: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_histogram_that_is_none_is_named() {
        let says = |flow: FlowResult| {
            let result = AgentResult { flows: vec![FlowResult::default(), flow], ..AgentResult::default() };
            result.histograms().map(drop).map_err(|bad| bad.field)
        };
        let packed = |value: Value| Some(serde_json::from_value::<PackedHistogram>(value).unwrap());
        let sound = TimeFigures { latency: packed(json!([[5, 1]])), ..TimeFigures::none() };
        assert_eq!(says(FlowResult { histograms: sound, ..FlowResult::default() }), Ok(()));
        let histograms = TimeFigures { own_lag: packed(json!("abc")), ..TimeFigures::none() };
        let flow = FlowResult { histograms, ..FlowResult::default() };
        assert_eq!(says(flow), Err("flows[1].histograms.own_lag".into()));
        let series = SliceSeries { latency: vec![None, packed(json!({}))], ..SliceSeries::default() };
        let flow = FlowResult { series, ..FlowResult::default() };
        assert_eq!(says(flow), Err("flows[1].series.latency[1]".into()));
        let result = AgentResult { reconnect_time: packed(json!([[5, 0]])), ..AgentResult::default() };
        let said = result.histograms().unwrap_err().to_string();
        assert!(said.starts_with("`reconnect_time` of its result is no histogram of times: "), "{said}");
    }
}
