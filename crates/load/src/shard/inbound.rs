//! The receiving side of a shard: whether every publisher was received, and whether every
//! message has arrived.

use super::connection::State;
use super::errors::ShardError;
use super::state::Shard;
use crate::control::ThreadReport;
use crate::session::Session;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};

/// Interval at which the completeness of streams is checked during the drain.
pub const LOOK: Ns = 5 * MILLISECOND;
/// A stream ends when its end marker has arrived and nothing follows for this long.
const QUIET: Ns = 250 * MILLISECOND;
/// Like [`QUIET`] for competing subscribers, where the end markers cannot be assigned.
const QUIET_COMPETING: Ns = SECOND;
/// Like [`QUIET_COMPETING`] if clients reconnect as well: longer than a reconnection
/// usually takes.
const QUIET_RETURNING: Ns = 3 * SECOND;
/// Time after the beginning of the drain in which last wills that are not due may arrive: publishers leave with a
/// goodbye then.
const QUIET_WILLS: Ns = SECOND / 2;

impl<S: Session> Shard<'_, S> {
    /// Waits until each subscriber has received a probe of each of its publishers.
    /// Competing subscribers do not wait for particular publishers.
    pub(super) fn await_probes(&mut self, now: Ns) -> Result<Ns, ShardError> {
        let (unheard, total, timeout_ns) = (self.inbound.unheard, self.streams, self.workload.connect_timeout_ns);
        if unheard == 0 || self.workload.competing() {
            self.ready();
        } else if unheard < total {
            if now > self.inbound.heard_ns.max(self.ramp.settled_ns) + timeout_ns {
                self.remarks.push(format!("{unheard} of {total} streams never carried a probe: their publishers are not connected, or the server does not deliver"));
                self.ready();
            }
        } else {
            // Publishers connect after subscribers, and probe when all of them are there.
            let ramp_ns = Ns::from(self.workload.publishers) * SECOND / Ns::from(self.workload.connect_rate.max(1));
            if now > self.ramp.settled_ns + ramp_ns + 2 * timeout_ns {
                return Err(ShardError::NoProbe(S::unsaid(&self.settings)));
            }
        }
        Ok(Ns::MAX)
    }

    /// Checks whether everything that was sent has arrived.
    pub(super) fn drain(&mut self, now: Ns) {
        let Some((totals, deadline_ns)) = self.context.control.draining() else { return };
        if self.inbound.drained || now < self.inbound.looked_ns + LOOK {
            return;
        }
        let awaits_start = self.awaits_start();
        let inbound = &mut self.inbound;
        inbound.looked_ns = now;
        let connections = &self.connections;
        let everyone = || (0..inbound.clients.len() as u32).collect();
        let mut left: Vec<u32> = inbound.undrained.take().unwrap_or_else(everyone);
        // A subscriber that is away may still get what the server keeps. A publisher that
        // was away may send again what it sent before its end marker: there nothing is
        // lost before the deadline.
        let kept = self.workload.qos > 0 || self.workload.durable;
        let returning = self.workload.reconnect && kept;
        // Of a divided stream each subscriber gets only a part, so none is ever complete.
        let divided = self.workload.is_divided();
        let by_silence = self.workload.competing() || (divided && returning);
        let silence = match by_silence {
            true if returning => QUIET_RETURNING,
            true => QUIET_COMPETING,
            false => QUIET,
        };
        let wills_end_ns = self
            .workload
            .last_will
            .then(|| deadline_ns.saturating_sub(self.workload.drain_ns).saturating_add(QUIET_WILLS));
        let quiet = now > inbound.last_ns + silence && !awaits_start && inbound.rebalancing.is_settled(now);
        left.retain(|index| {
            let client = &mut inbound.clients[*index as usize];
            let connection = &connections[*index as usize];
            let up = connection.state == State::Up || (kept && connection.is_away());
            let over = if by_silence {
                quiet
            } else {
                // If clients reconnect, messages may arrive once more.
                let complete = client.complete(totals, false, divided);
                if returning { complete && quiet } else { complete || (quiet && client.ended()) }
            };
            let over = over && wills_end_ns.is_none_or(|end_ns| now > end_ns && client.has_wills(totals));
            if let Some(late_start) = client.late_start.as_mut().filter(|_| up && over) {
                late_start.ended();
            }
            up && !over && now < *deadline_ns
        });
        inbound.drained = left.is_empty();
        inbound.undrained = Some(left);
        if inbound.drained {
            let _ = self.reports.send(ThreadReport::Drained);
        }
    }
}
