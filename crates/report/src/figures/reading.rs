//! What one run says of a figure.

use super::column::Column;
use pubmark_model::protocol::RuntimeFigures;
use pubmark_model::record::{RunRecord, Usage};
use pubmark_stats::Summary;

/// Fewest latencies of a run of which a 99th percentile is given.
const P99_SAMPLES_MIN: u64 = 1_000;
/// Fewest latencies of a run of which a 99.9th percentile is given.
const P999_SAMPLES_MIN: u64 = 10_000;
/// The width of a histogram's buckets as a share of the value. No figure is
/// taken to be measured better.
pub const RESOLUTION: f64 = 1.0 / 1_024.0;

/// What one run says of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The figure, in its own unit.
    pub value: f64,
    /// The least difference that the measurement can tell, in the same unit.
    pub step: f64,
    /// What the clocks of two hosts may have added to it or taken from it, in the
    /// same unit; 0 where one clock measured it. No noise: repeats may all be wrong
    /// by it, and to the same side.
    pub clock: f64,
    /// The run's repeat, and so its block.
    pub repeat: u32,
}

impl Observation {
    /// What a run says of a figure, if it has it; a percentile only of enough
    /// samples.
    pub(super) fn of(column: Column, run: &RunRecord) -> Option<Observation> {
        let value = scalar(column, run).or_else(|| percentile(column, run).map(|ns| ns as f64))?;
        let clock = run.widest_clocks().filter(|_| column.is_one_way()).map_or(0.0, |pair| pair.bound_ns as f64);
        Some(Observation { value, step: step(column, run).max(value.abs() * RESOLUTION), clock, repeat: run.repeat })
    }

    /// The same in another unit.
    pub(crate) fn scaled(&self, change: impl Fn(f64) -> f64) -> Observation {
        let value = change(self.value);
        let [step, clock] = [self.step, self.clock].map(|more| (change(self.value + more) - value).abs());
        Observation { value, step, clock, repeat: self.repeat }
    }

    /// This less another.
    pub(crate) fn less(&self, floor: &Observation) -> Observation {
        let (step, clock) = (self.step + floor.step, self.clock + floor.clock);
        Observation { value: self.value - floor.value, step, clock, repeat: self.repeat }
    }

    /// This as a multiple of another, where that is above 0.
    pub(crate) fn over(&self, floor: &Observation) -> Option<Observation> {
        let value = self.value / floor.value;
        let of = |own: f64, floors: f64| own / floor.value + value * floors / floor.value;
        let (step, clock) = (of(self.step, floor.step), of(self.clock, floor.clock));
        (floor.value > 0.0 && value.is_finite()).then_some(Observation { value, step, clock, repeat: self.repeat })
    }
}

/// Processors used by generator, library and server together.
pub(crate) fn cpu_cores(run: &RunRecord) -> Option<f64> {
    together(run, |usage| usage.cpu_cores)
}

/// What one run says of a figure that is one number a run.
fn scalar(column: Column, run: &RunRecord) -> Option<f64> {
    let counts = &run.counts;
    let each = |total: f64| (counts.delivered > 0).then(|| total / counts.delivered as f64);
    let is_rate = matches!(column, Column::Offered | Column::Sent | Column::Delivered | Column::DeliveredBytes);
    // A count of which nothing arrived has no window, and records of earlier versions have
    // rates over a nanosecond.
    let has_window = run.workload.window_ns().is_some() || counts.delivered > 0;
    if is_rate && !has_window {
        return None;
    }
    Some(match column {
        Column::Offered => run.rates.offered_per_s,
        Column::Sent => run.rates.sent_per_s,
        Column::Delivered => run.rates.delivered_per_s,
        Column::DeliveredBytes => run.rates.delivered_bytes_per_s,
        Column::DeliveredRatio => counts.delivered_ratio()?,
        Column::Lost => counts.lost as f64,
        Column::Duplicated => counts.duplicated as f64,
        Column::Reordered => counts.reordered as f64,
        Column::Unanswered if run.workload.pattern.echoed() => counts.unanswered as f64,
        // Records of before have a 0 here where nobody had looked.
        Column::Corrupted => counts.corrupted.filter(|_| run.workload.checks_bodies())? as f64,
        Column::LatencyMean => run.times.latency.as_ref()?.mean,
        Column::Jitter => run.jitter_ns?,
        Column::CpuCores => cpu_cores(run)?,
        Column::CpuPerMessage => each(together(run, |usage| usage.cpu_s)? * 1e9)?,
        Column::RssMax => together(run, |usage| usage.rss_bytes_max as f64)?,
        Column::Uss => together(run, |usage| usage.uss_bytes_median as f64)?,
        Column::ServerCores => run.server.as_ref()?.cpu_cores,
        Column::ServerRss => run.server.as_ref()?.rss_bytes_median as f64,
        Column::ServerRssMax => run.server.as_ref()?.rss_bytes_max as f64,
        Column::ServerUss => run.server.as_ref()?.uss_bytes_median as f64,
        Column::Acked if run.workload.qos > 0 => counts.acked as f64,
        Column::AckedLost if run.workload.qos > 0 => counts.acked_lost? as f64,
        Column::Refused if run.workload.qos > 0 || counts.refused > 0 => counts.refused as f64,
        Column::Connected => run.connections.as_ref()?.opened as f64,
        Column::ConnectP50 => run.connections.as_ref()?.time_ns.as_ref()?.p50 as f64,
        Column::ConnectP99 => run.connections.as_ref()?.time_ns.as_ref()?.p99 as f64,
        Column::Late if run.times.latency.is_some() => counts.late as f64,
        Column::Reconnected => run.connections.as_ref()?.reconnected as f64,
        Column::ReconnectP99 => run.connections.as_ref()?.reconnect_ns.as_ref()?.p99 as f64,
        Column::NotSent => counts.not_sent as f64,
        Column::Silence => run.recovery?.silence_ns? as f64,
        Column::Beyond => run.recovery?.beyond_ns? as f64,
        // Where it was not within the window, it took at least as long as was watched.
        Column::CaughtUp => run.recovery.and_then(|cost| cost.caught_up_after_ns.or(cost.watched_ns))? as f64,
        Column::ListensAfter => run.recovery?.listens_after_ns? as f64,
        Column::ClientsBack => run.recovery?.clients_back_after_ns? as f64,
        Column::ClientsNotBack => run.recovery?.clients_not_back? as f64,
        Column::RuntimePaused => {
            let paused = runtimes(run).filter_map(|own| own.pauses).map(|pauses| pauses.total_ns);
            paused.max()? as f64 / run.window_ns.max(1) as f64
        }
        Column::RuntimePauseMax => {
            runtimes(run).filter_map(|own| own.pauses).map(|pauses| pauses.longest_ns).max()? as f64
        }
        Column::Allocated => {
            let known: Vec<u64> = runtimes(run).filter_map(|own| own.allocated_bytes).collect();
            each(known.iter().sum::<u64>() as f64).filter(|_| known.len() == run.agents.len())?
        }
        Column::ClockBound => run.widest_clocks()?.bound_ns as f64,
        Column::WireBytes => each(run.wire.as_ref()?.sent_bytes as f64)?,
        Column::Discovery => run.discovery_ns? as f64,
        Column::SteadyAfter => run.pilot.filter(|pilot| pilot.repeat == run.repeat)?.steady_after_ns? as f64,
        Column::SwitchesPerMessage => {
            each(together(run, |usage| usage.voluntary_switches as f64 + usage.involuntary_switches as f64)?)?
        }
        _ => return None,
    })
}

/// What the runtimes of its agents say.
fn runtimes(run: &RunRecord) -> impl Iterator<Item = RuntimeFigures> {
    run.agents.iter().filter_map(|agent| agent.runtime)
}

/// A run's own percentile, ns.
fn percentile(column: Column, run: &RunRecord) -> Option<u64> {
    let of = |summary: &Option<Summary>, samples_min: u64, pick: fn(&Summary) -> u64| {
        summary.as_ref().filter(|summary| summary.count >= samples_min).map(pick)
    };
    match column {
        Column::LatencyMin => of(&run.times.latency, 1, |summary| summary.min),
        Column::LatencyP50 => of(&run.times.latency, 1, |summary| summary.p50),
        Column::LatencyP90 => of(&run.times.latency, 1, |summary| summary.p90),
        Column::LatencyP95 => of(&run.times.latency, 1, |summary| summary.p95),
        Column::LatencyP99 => of(&run.times.latency, P99_SAMPLES_MIN, |summary| summary.p99),
        Column::LatencyP999 => of(&run.times.latency, P999_SAMPLES_MIN, |summary| summary.p999),
        Column::LatencyMax => of(&run.times.latency, 1, |summary| summary.max),
        Column::IntendedP50 => of(&run.times.intended_latency, 1, |summary| summary.p50),
        Column::IntendedP99 => of(&run.times.intended_latency, P99_SAMPLES_MIN, |summary| summary.p99),
        Column::ServiceP50 => of(&run.times.service_latency, 1, |summary| summary.p50),
        Column::ServiceP99 => of(&run.times.service_latency, P99_SAMPLES_MIN, |summary| summary.p99),
        Column::SendLagP50 => of(&run.times.send_lag, 1, |summary| summary.p50),
        Column::SendLagP99 => of(&run.times.send_lag, P99_SAMPLES_MIN, |summary| summary.p99),
        Column::OwnLagP50 => of(&run.times.own_lag, 1, |summary| summary.p50),
        Column::OwnLagP99 => of(&run.times.own_lag, P99_SAMPLES_MIN, |summary| summary.p99),
        Column::ReceiveLagP50 => of(&run.times.receive_lag, 1, |summary| summary.p50),
        Column::ReceiveLagP99 => of(&run.times.receive_lag, P99_SAMPLES_MIN, |summary| summary.p99),
        _ => None,
    }
}

/// The least difference in a figure that a run could have shown: a message,
/// a page of memory, a nanosecond.
fn step(column: Column, run: &RunRecord) -> f64 {
    /// Bytes; smaller pages there are none.
    const PAGE: f64 = 4_096.0;
    let a_second = 1e9 / run.window_ns.max(1) as f64;
    match column {
        Column::Offered | Column::Sent | Column::Delivered => a_second,
        Column::DeliveredBytes => a_second * run.workload.payload_bytes as f64,
        Column::DeliveredRatio => 1.0 / run.counts.expected.max(1) as f64,
        Column::RssMax | Column::Uss | Column::ServerRss | Column::ServerRssMax | Column::ServerUss => PAGE,
        Column::CpuCores | Column::ServerCores | Column::SwitchesPerMessage => 0.0,
        // What happens by chance scatters by the root of how often it happens;
        // what never did is not known to scatter.
        Column::Lost
        | Column::Duplicated
        | Column::Reordered
        | Column::Unanswered
        | Column::Corrupted
        | Column::AckedLost
        | Column::Late
        | Column::NotSent
        | Column::ClientsNotBack
        | Column::Reconnected => scalar(column, run).unwrap_or(0.0).max(0.0).sqrt(),
        Column::CaughtUp => run.workload.slice_ns() as f64,
        Column::SteadyAfter => run.pilot.map_or(1.0, |pilot| pilot.slice_ns as f64),
        _ => 1.0,
    }
}

/// Generator (with the library in it) and server: the cost of the system as a
/// whole. None where a part of it was not seen: the generator, or a server
/// that runs elsewhere.
fn together(run: &RunRecord, of: impl Fn(&Usage) -> f64) -> Option<f64> {
    let generator = of(run.generator.as_ref()?);
    match (&run.server, &run.deployment) {
        (Some(server), _) => Some(generator + of(server)),
        (None, None) => Some(generator),
        (None, Some(_)) => None,
    }
}
