//! Subscribers that start late. Before the run they subscribe like others, so that streams exist and are known to work.
//! They leave before the first message is due, and connect at their time as new consumers, which read their streams
//! from the beginning.

use super::connection::State;
use super::state::{Absence, Shard};
use crate::session::Session;
use crate::subscriber::LateStart;
use crate::window::Window;
use pubmark_model::protocol::Role;
use pubmark_model::units::Ns;
use std::cmp::Reverse;

impl<S: Session> Shard<'_, S> {
    /// Lets subscribers that start late leave. No message has been read: `begin` comes before every read.
    pub(super) fn leave_until_start(&mut self, window: &Window) {
        let start_ns = self.workload.subscribers_start_ns.filter(|_| self.role == Role::Subscriber);
        let Some(start_ns) = start_ns else { return };
        self.replays = true;
        self.away.give_up();
        self.again.clear();
        let at_ns = window.from_ns.saturating_add(start_ns);
        self.inbound.last_ns = at_ns;
        for index in 0..self.connections.len() {
            if self.connections[index].state == State::Gone {
                continue;
            }
            let spec = self.spec(index);
            self.connections[index].reset(S::new(&self.settings, &spec), State::Waiting);
            self.inbound.clients[index].late_start = Some(Box::new(LateStart::new(self.workload.late_after_ns)));
            let absence = Absence { since_ns: at_ns, began_ns: None, failed: 0, is_before_start: true };
            self.away.absent.insert(index as u32, absence);
            let turn_ns = (index as f64 * 1e9 / self.ramp.per_s) as Ns;
            self.away.due.push(Reverse((at_ns.saturating_add(turn_ns), index as u32)));
        }
    }

    /// Notes that a late subscriber has subscribed.
    pub(super) fn started(&mut self, index: usize, now: Ns) {
        self.inbound.clients[index].late_start.iter_mut().for_each(|late_start| late_start.subscribed(now));
        self.inbound.last_ns = self.inbound.last_ns.max(now);
    }

    /// True if a late subscriber has not subscribed yet.
    pub(super) fn awaits_start(&self) -> bool {
        self.replays && self.away.absent.values().any(|absence| absence.is_before_start)
    }
}
