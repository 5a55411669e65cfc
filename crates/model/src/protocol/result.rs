//! An agent's result.

use super::churn::ChurnResult;
use super::histograms::{PackedError, PackedHistogram};
use super::last_will::WillResult;
use super::ranges::Ranges;
use super::sequences::SeenBits;
use crate::catch_up::CatchUp;
use crate::churn::ConnectTimes;
use crate::counts::{ByteCounts, LedgerCounts, PublisherTotal, RefusalCount};
use crate::last_will::ConnectionEnd;
use crate::rebalances::Rebalances;
use crate::times::TimeFigures;
use crate::units::Ns;
use crate::window_usage::{self, UsageReading, WindowUsage};
use pubmark_stats::{Histogram, Summary};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An agent's result: the figures of each flow, and of the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentResult {
    /// Results of each flow of `prepare`, in its order.
    pub flows: Vec<FlowResult>,
    /// CPU time and memory of the agent's process over the window.
    pub usage: AgentUsage,
    /// The loaded library: `library`, `version`, `path`.
    pub versions: Map<String, Value>,
    /// Effective options.
    pub applied: Map<String, Value>,
    /// Number of event loops, or of threads that play clients; 0 if not supported by this agent.
    #[serde(default)]
    pub loops: u32,
    /// Counts of connections to a broker; `None` for libraries.
    #[serde(default)]
    pub connections: Option<Connections>,
    /// Error of the first failed attempt to connect.
    #[serde(default)]
    pub connect_error: Option<String>,
    /// Reason of the first loss of an established connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_loss: Option<String>,
    /// Limits of its own that the server reported as reached while the clients were connected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_reached: Vec<String>,
    /// Violations of the protocol by the server, as clients saw them: their number by statement of the specification.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub violations: BTreeMap<String, u64>,
    /// Times from a client's connection attempt until the server accepted it, as a histogram.
    #[serde(default)]
    pub connect_time: Option<PackedHistogram>,
    /// The parts of these times that handshakes of TLS took, as a histogram; `None` without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_handshake_time: Option<PackedHistogram>,
    /// Times from the acceptance of a client until the server confirmed its subscription, as a histogram.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribe_time: Option<PackedHistogram>,
    /// Times without a connection, as a histogram: from its loss until the client was accepted
    /// again, subscribed, and had sent again what the server had not acknowledged. Losses that
    /// lasted to the end are excluded.
    #[serde(default)]
    pub reconnect_time: Option<PackedHistogram>,
    /// Pauses of the agent within the window, because it, or the machine below it, was stopped.
    /// `None` if not supported by this agent.
    #[serde(default)]
    pub pauses: Option<Stalls>,
    /// Figures of the runtime; `None` if there is none, as in C.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeFigures>,
    /// Build info of the measured program (language, call, copies, flags …), in the agent's own
    /// words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub made: BTreeMap<String, String>,
    /// Remarks for the verdict: limits that were reached, sends that failed.
    pub remarks: Vec<String>,
}

/// Figures of a language's runtime over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeFigures {
    /// Pauses of the program, mostly for garbage collection; `None` if not supported by this
    /// runtime.
    #[serde(default)]
    pub pauses: Option<RuntimePauses>,
    /// Number of garbage collections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collections: Option<u64>,
    /// Allocated bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_bytes: Option<u64>,
}

/// Pauses of a program by its runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimePauses {
    /// Number of pauses.
    pub count: u64,
    /// Their total length, ns.
    pub total_ns: Ns,
    /// Length of the longest, ns.
    pub longest_ns: Ns,
    /// Start of the longest, ns from the window's beginning.
    pub longest_at_ns: Ns,
}

/// An agent's result for one flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Totals of each publisher.
    pub publishers: Vec<PublisherTotal>,
    /// The ledger of all subscribers of the agent.
    pub ledger: LedgerCounts,
    /// Messages that arrived during the window, each counted once, whatever their due time; for a
    /// count at `max`, only messages of the window.
    pub arrived: u64,
    /// Messages sent before the window, by the instant of sending. `None` if not supported by this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_before: Option<u64>,
    /// Messages that arrived before the window, each counted once. `None` if not supported by this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived_before: Option<u64>,
    /// Bytes of its messages, if their sizes vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<ByteCounts>,
    /// Instant at which the first message of the window was sent, ns; count-limited runs at `max`.
    pub first_sent_ns: Option<Ns>,
    /// Instant at which the last message of the window was sent, ns. `None` if not supported by this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sent_ns: Option<Ns>,
    /// Instant at which the last message of the window arrived, ns.
    pub last_arrival_ns: Option<Ns>,
    /// Distributions of times; `None` if nothing was measured, or not supported by this agent.
    pub histograms: TimeFigures<Option<PackedHistogram>>,
    /// Waiting figures of its publishers; `None` if not supported by this agent.
    #[serde(default)]
    pub pacing: Option<PacingFigures>,
    /// Sum of |l_i − l_(i−1)| over consecutive messages of a stream, ns.
    pub jitter_sum_ns: f64,
    /// Number of such pairs.
    pub jitter_pairs: u64,
    /// Counts and latencies by time slice.
    pub series: SliceSeries,
    /// Silences of subscribers; `None` if not supported by this agent.
    #[serde(default)]
    pub stalls: Option<Stalls>,
    /// The time in which late subscribers caught up; `None` if none of them subscribed, or if none is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUp>,
    /// Rebalances of the group that its subscribers are members of; `None` if no coordinator assigns their shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebalances: Option<Rebalances>,
    /// For competing subscribers: the sequences that arrived, so that the coordinator can merge the
    /// ledgers of several agents.
    #[serde(default)]
    pub seen: Vec<SeenBits>,
    /// Messages of the window that the server acknowledged (QoS 1 and 2).
    #[serde(default)]
    pub acked: u64,
    /// Messages of the window that were sent and never acknowledged; all of them or `None`.
    #[serde(default)]
    pub unacked: Ranges,
    /// Messages of the window that the server refused, by a text or a code. They are also in
    /// `unacked`.
    #[serde(default)]
    pub refused: Ranges,
    /// Counts of the refused messages by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<RefusalCount>,
    /// Messages of the window that a subscriber should have received and did not (QoS 1 and 2):
    /// ranges for each subscriber; all of them or `None`.
    #[serde(default)]
    pub missing: Ranges,
    /// Counts and latencies of each subscriber, if the run has 2 to 64 of them; empty if not
    /// supported by this agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscribers: Vec<SubscriberFigures>,
    /// Clients that came and went; from the agent with subscriber 0, if the workload has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub churn: Option<Box<ChurnResult>>,
    /// Last wills of the publishers that its subscribers receive from, if they have some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wills: Option<Box<WillResult>>,
    /// Connections of its publishers that ended without a goodbye after `sent`, if they have last wills: a server may
    /// publish these, and need not do so before the run is over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<ConnectionEnd>,
}

/// Error: a histogram of a result is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` of its result is not a histogram of times: {problem}")]
pub struct BadHistogram {
    /// The field.
    pub field: String,
    /// The reason.
    pub problem: PackedError,
}

impl AgentResult {
    /// Returns the totals of all its publishers.
    pub fn publishers(&self) -> impl Iterator<Item = &PublisherTotal> {
        self.flows.iter().flat_map(|flow| &flow.publishers)
    }

    /// Decodes all its histograms.
    ///
    /// # Errors
    /// Returns the first invalid histogram.
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
            let mut churn = ConnectTimes::default();
            if let Some(result) = &flow.churn {
                let field = |name| format!("flows[{number}].churn.{name}");
                let count = |name, packed| {
                    let histogram = read(field(name), packed, PackedHistogram::DIGITS)?;
                    Ok(histogram.map_or(0, |histogram| histogram.count()))
                };
                let ConnectTimes { connect, tls_handshake, subscribe } = &result.times;
                churn = ConnectTimes {
                    connect: count("times.connect", connect)?,
                    tls_handshake: count("times.tls_handshake", tls_handshake)?,
                    subscribe: count("times.subscribe", subscribe)?,
                };
                count("own_lag", &result.own_lag)?;
            }
            let latency = flow.wills.as_ref().map_or(&None, |wills| &wills.latency);
            let latency = read(format!("flows[{number}].wills.latency"), latency, PackedHistogram::DIGITS)?;
            let wills = latency.map_or(0, |histogram| histogram.count());
            all.flows.push(FlowHistograms { times, slices, churn, wills });
        }
        read("connect_time".into(), &self.connect_time, PackedHistogram::DIGITS)?;
        read("tls_handshake_time".into(), &self.tls_handshake_time, PackedHistogram::DIGITS)?;
        read("subscribe_time".into(), &self.subscribe_time, PackedHistogram::DIGITS)?;
        let reconnects = read("reconnect_time".into(), &self.reconnect_time, PackedHistogram::DIGITS)?;
        all.reconnects = reconnects.map(|histogram| histogram.count());
        Ok(all)
    }
}

/// The decoded histograms of a result.
#[derive(Clone, Debug, Default)]
pub struct ResultHistograms {
    /// Histograms of each flow.
    pub flows: Vec<FlowHistograms>,
    /// Number of times in `reconnect_time`; `None` if it is absent.
    pub reconnects: Option<u64>,
}

/// The decoded histograms of a flow.
#[derive(Clone, Debug)]
pub struct FlowHistograms {
    /// Histograms of each measured time.
    pub times: TimeFigures<Option<Histogram>>,
    /// Number of latencies in each slice of the window.
    pub slices: Vec<u64>,
    /// Number of times of the clients that came and went.
    pub churn: ConnectTimes<u64>,
    /// Number of times of last wills.
    pub wills: u64,
}

impl FlowHistograms {
    /// Returns the number of times in a histogram, 0 if it is absent.
    pub fn count(&self, of: impl Fn(&TimeFigures<Option<Histogram>>) -> &Option<Histogram>) -> u64 {
        of(&self.times).as_ref().map_or(0, Histogram::count)
    }
}

/// Figures of how publishers waited for their due times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacingFigures {
    /// Budget of processors for busy waiting, over all publishers.
    pub budget_cores: f64,
    /// Processors used for it: busy time before due times divided by the window's length.
    pub spent_cores: f64,
    /// Time before a due time at which publishers finally woke up, ns; the longest of all loops.
    pub margin_ns: Ns,
}

impl PacingFigures {
    /// Adds the figures of other publishers.
    pub fn add(&mut self, other: &PacingFigures) {
        self.budget_cores += other.budget_cores;
        self.spent_cores += other.spent_cores;
        self.margin_ns = self.margin_ns.max(other.margin_ns);
    }
}

/// Counts of connections to a broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connections {
    /// Clients that requested one.
    pub wanted: u64,
    /// Clients that opened one.
    pub opened: u64,
    /// Attempts that failed: refused, reset, or not answered in time.
    pub refused: u64,
    /// Attempts after a failed one.
    pub retried: u64,
    /// Connections that ended while they were needed.
    pub lost: u64,
    /// Lost connections that were restored, with the client able to work again.
    #[serde(default)]
    pub reconnected: u64,
    /// Instant of the first attempt, ns on the agent's clock.
    pub first_ns: Ns,
    /// Instant at which the last client was accepted, ns on the agent's clock.
    pub last_ns: Ns,
}

impl Connections {
    /// Adds the counts of another agent.
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
    /// Headline latency of the arrivals in each slice, as histograms of 2 digits; `None` for a
    /// slice without arrivals.
    pub latency: Vec<Option<PackedHistogram>>,
}

/// Silences of subscribers that should have received something, or pauses of an agent that should
/// have run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stalls {
    /// Their number.
    pub count: u64,
    /// Length of the longest, ns.
    pub longest_ns: Ns,
    /// Start of the longest, ns from the window's beginning.
    pub longest_at_ns: Ns,
    /// Start of the first, ns from the window's beginning; `None` if there was none or it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_at_ns: Option<Ns>,
}

impl Stalls {
    /// Makes a single one, of this length and with this start.
    pub fn one(longest_ns: Ns, at_ns: Ns) -> Stalls {
        Stalls { count: 1, longest_ns, longest_at_ns: at_ns, first_at_ns: Some(at_ns) }
    }

    /// Adds other silences: the longest of both is kept, and the first.
    pub fn add(&mut self, other: &Stalls) {
        let both_known = self.first_at_ns.zip(other.first_at_ns).map(|(mine, other)| mine.min(other));
        self.first_at_ns = match (self.count, other.count) {
            (_, 0) => self.first_at_ns,
            (0, _) => other.first_at_ns,
            _ => both_known,
        };
        self.count = self.count.saturating_add(other.count);
        if other.longest_ns > self.longest_ns {
            (self.longest_ns, self.longest_at_ns) = (other.longest_ns, other.longest_at_ns);
        }
    }
}

/// The most subscribers with figures of their own.
pub const OWN_FIGURES_MAX: u32 = 64;

/// Counts and latencies of one subscriber.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubscriberFigures {
    /// Its number, from 0.
    pub subscriber: u32,
    /// Its ledger.
    pub ledger: LedgerCounts,
    /// Its latencies; `None` if they were not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Summary>,
}

/// The processors on which client threads ran: by processor, from 0, how many samples saw a thread
/// there. Empty if the agent does not support it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientProcessors {
    /// Of threads that send.
    pub publishers: Vec<u32>,
    /// Of threads that only receive.
    pub subscribers: Vec<u32>,
}

impl ClientProcessors {
    /// True if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.publishers.is_empty() && self.subscribers.is_empty()
    }

    /// Adds samples.
    pub fn add(&mut self, other: &ClientProcessors) {
        let both = [(&mut self.publishers, &other.publishers), (&mut self.subscribers, &other.subscribers)];
        for (own, others) in both {
            own.resize(own.len().max(others.len()), 0);
            own.iter_mut().zip(others).for_each(|(own, other)| *own = own.saturating_add(*other));
        }
    }

    /// Returns the probability that a sample of a publisher's thread and one of a subscriber's were
    /// on the same processor; `None` without samples of both.
    pub fn shared_ratio(&self) -> Option<f64> {
        let sum = |samples: &[u32]| samples.iter().map(|count| f64::from(*count)).sum::<f64>();
        let pairs = sum(&self.publishers) * sum(&self.subscribers);
        let same = self.publishers.iter().zip(&self.subscribers);
        let same: f64 = same.map(|(one, other)| f64::from(*one) * f64::from(*other)).sum();
        (pairs > 0.0).then(|| same / pairs)
    }
}

/// CPU time and memory of an agent's process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentUsage {
    /// Length of the accounting interval: the measured window, ns.
    pub wall_ns: Ns,
    /// CPU time of all threads in it, ns, by CLOCK_PROCESS_CPUTIME_ID.
    pub cpu_ns: Ns,
    /// CPU time in user mode, ns.
    pub user_ns: Ns,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Resident set size samples, bytes.
    pub rss_bytes: Vec<u64>,
    /// Unique set size samples, bytes.
    pub uss_bytes: Vec<u64>,
    /// The processors on which its client threads ran.
    #[serde(default, skip_serializing_if = "ClientProcessors::is_empty")]
    pub ran_on: ClientProcessors,
    /// Readings from the window's beginning to the stop, if the window's end is not known in
    /// advance, so that the coordinator can cut out the window. The figures above are then of all
    /// that time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<UsageReading>,
}

impl AgentUsage {
    /// Returns the usage between two instants if there are readings; otherwise all of it.
    pub fn within(&self, from_ns: Ns, to_ns: Ns) -> AgentUsage {
        if self.course.is_empty() {
            return self.clone();
        }
        let WindowUsage { cpu_ns, user_ns, voluntary_switches, involuntary_switches, written_bytes: _ } =
            window_usage::between(&self.course, from_ns, to_ns);
        // The first sample is taken under load, however short the window is.
        let samples = window_usage::samples_by(&self.course, to_ns).max(1);
        let taken = |samples_of: &[u64]| samples_of.iter().copied().take(samples).collect();
        AgentUsage {
            wall_ns: to_ns.saturating_sub(from_ns),
            cpu_ns,
            user_ns,
            voluntary_switches,
            involuntary_switches,
            rss_bytes: taken(&self.rss_bytes),
            uss_bytes: taken(&self.uss_bytes),
            ran_on: self.ran_on.clone(),
            course: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn threads_share_a_processor_as_often_as_both_are_seen_there() {
        let seen = |publishers: &[u32], subscribers: &[u32]| ClientProcessors {
            publishers: publishers.to_vec(),
            subscribers: subscribers.to_vec(),
        };
        assert_eq!(seen(&[8], &[0, 8]).shared_ratio(), Some(0.0));
        assert_eq!(seen(&[0, 3], &[0, 5]).shared_ratio(), Some(1.0));
        assert_eq!(seen(&[6, 2], &[1, 3]).shared_ratio(), Some(12.0 / 32.0));
        assert_eq!((seen(&[8], &[]).shared_ratio(), seen(&[0], &[7]).shared_ratio()), (None, None));
        let mut all = seen(&[1], &[2, 3]);
        all.add(&seen(&[1, 1], &[u32::MAX]));
        assert_eq!(all, seen(&[2, 1], &[u32::MAX, 3]));
    }

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
        assert!(said.starts_with("`reconnect_time` of its result is not a histogram of times: "), "{said}");
    }
}
