//! Publishers with last wills: when their connections end, and how they leave.

use super::connection::State;
use super::state::{Shard, WillConnections};
use crate::control::ThreadReport;
use crate::session::Session;
use pubmark_model::protocol::ConnectionEnd;
use pubmark_model::units::Ns;

impl<S: Session> Shard<'_, S> {
    /// Notes that a client opens a connection, whose will the server gets.
    pub(super) fn opens(&mut self, index: usize) {
        if let Some(wills) = &mut self.wills {
            wills.opens(index, self.ids[index]);
        }
    }

    /// Notes that a client's connection ends now, without a goodbye. Called before the connection is closed.
    pub(super) fn ends(&mut self, index: usize, now: Ns) {
        let is_accepted = matches!(self.connections[index].state, State::Up | State::Resending);
        let at_ns = now.saturating_add_signed(self.context.ahead_ns);
        if let Some(wills) = &mut self.wills {
            wills.ended(index, self.ids[index], is_accepted.then_some(at_ns));
        }
    }

    /// Notes that a client's connection ends, and that the server may not have got its goodbye.
    pub(super) fn ends_unsaid(&mut self, index: usize) {
        if let Some(wills) = &mut self.wills {
            wills.ended(index, self.ids[index], None);
        }
    }

    /// Reports the connections that have ended, before what was sent.
    pub(super) fn say_ends(&mut self) {
        let Some(wills) = &mut self.wills else { return };
        // The server may have accepted the last attempt of a client that is away.
        for (index, connection) in self.connections.iter().enumerate() {
            if connection.is_away() {
                wills.ended(index, self.ids[index], None);
            }
        }
        let _ = self.reports.send(ThreadReport::Ends(wills.take_ends()));
    }

    /// Returns the connections that have ended without a goodbye since then.
    pub(super) fn later_ends(&mut self) -> Vec<ConnectionEnd> {
        self.wills.as_mut().map(WillConnections::take_ends).unwrap_or_default()
    }

    /// Says goodbye to the server once everything is sent and acknowledged, or given up: a will that subscribers get
    /// from now on is not due.
    pub(super) fn leave(&mut self) {
        let is_settled = self.workload.qos == 0 || self.outbound.said_drained;
        let may_leave = is_settled && self.context.control.draining().is_some();
        let Some(wills) = self.wills.as_mut().filter(|wills| may_leave && !wills.left) else { return };
        wills.left = true;
        self.close_all();
        let left = self.connections.iter_mut().filter(|connection| connection.state == State::Up);
        left.for_each(|connection| connection.drop_carrier(State::Gone));
    }
}
