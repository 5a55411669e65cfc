//! The highest rate that one agent can offer before its generator delay is too long.

use crate::calibrate::Calibrator;
use crate::ours::{AgentLoad, DRAIN};
use pubmark_judge::calibration::{Attempt, HighestRate};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::Rate;
use pubmark_study::context::RunError;

const CONNECTIONS: u32 = 1_000;
const PAYLOAD_BYTES: u64 = 64;
/// Initial rate of the search, messages a second over all connections.
const FIRST: u64 = 20_000;
/// Final rate, if the search does not end before.
const LAST: u64 = 100_000_000;
/// Steps between the last rate that was kept and the first that was not.
const STEPS: usize = 3;
/// The generator delay at p99 that is too long.
const BOUND: Ns = MILLISECOND;
/// Attempts at a rate until it counts as missed: other programs may have been busy.
const ATTEMPTS: usize = 2;
/// Minimum share of due messages that must be sent.
const SENT: f64 = 0.999;
const WINDOW: Ns = SECOND;
const WARMUP: Ns = 200 * MILLISECOND;

impl Calibrator<'_> {
    /// Doubles the rate until it is missed, and then halves the gap.
    pub(crate) fn most(&mut self) -> Result<HighestRate, RunError> {
        let mut most = HighestRate {
            connections: CONNECTIONS,
            payload_bytes: PAYLOAD_BYTES,
            shards: 1,
            bound_ns: BOUND,
            ..HighestRate::default()
        };
        let (mut kept, mut missed, mut rate) = (0, None, FIRST);
        while missed.is_none() && rate <= LAST {
            match self.keeps(rate, &mut most)? {
                true => (kept, rate) = (rate, rate * 2),
                false => missed = Some(rate),
            }
        }
        for _ in 0..STEPS {
            let Some(above) = missed else { break };
            let middle = kept.midpoint(above);
            match self.keeps(middle, &mut most)? {
                true => kept = middle,
                false => missed = Some(middle),
            }
        }
        (most.per_s, most.missed_per_s) = (kept as f64, missed.map(|rate| rate as f64));
        Ok(most)
    }

    /// Returns whether a rate is kept in any attempt.
    fn keeps(&mut self, per_s: u64, most: &mut HighestRate) -> Result<bool, RunError> {
        for _ in 0..ATTEMPTS {
            if self.offer(per_s, most)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether a rate is kept in this attempt.
    fn offer(&mut self, per_s: u64, most: &mut HighestRate) -> Result<bool, RunError> {
        (self.say)(&format!("the most that can be offered: {per_s} messages/s?"));
        let (sink, endpoint) = self.sink(u64::from(CONNECTIONS))?;
        let load = AgentLoad {
            publishers: CONNECTIONS,
            subscribers: 0,
            // A number of messages a second over 1,000 connections is the same number in
            // 1,000 s on each.
            rate: Rate::per_kilosecond(per_s * 1_000 / u64::from(CONNECTIONS)),
            payload_bytes: PAYLOAD_BYTES,
            warmup_ns: self.time(WARMUP),
            window_ns: self.time(WINDOW),
            drain_ns: DRAIN,
        };
        let record = self.run_agents(&endpoint, &load)?;
        self.drained(sink)?;
        // There are only publishers.
        most.shards = record.agents.iter().map(|agent| agent.loops).max().unwrap_or(1).max(1);
        let own_lag_p99_ns = record.times.own_lag.as_ref().map(|lag| lag.p99);
        let sent = record.counts.sent as f64 >= SENT * record.counts.offered as f64;
        let kept = sent && own_lag_p99_ns.is_some_and(|late| late <= BOUND);
        most.attempts.push(Attempt {
            asked_per_s: per_s as f64,
            sent_per_s: record.rates.sent_per_s,
            own_lag_p99_ns,
            kept,
        });
        Ok(kept)
    }
}
