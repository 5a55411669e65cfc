//! Clients that give up a silent server: a frozen member closes no connection.

use super::connection::{ConnectionLoss, State};
use super::errors::ShardError;
use super::state::Shard;
use crate::session::Session;
use pubmark_model::units::{Ns, format_time};

/// Turns within the time limit. A client that hears nothing in more of them gives the connection up: at the latest one
/// turn after the limit.
const TURNS: u8 = 4;

impl<S: Session> Shard<'_, S> {
    /// Ends the connections on which nothing came for the time limit, though it was due: an acknowledgement, or, for a
    /// subscriber, anything.
    pub(super) fn end_silent(&mut self, now: Ns) -> Result<(), ShardError> {
        let (Some(timeout_ns), Some(window)) = (self.workload.client_timeout_ns, self.window) else { return Ok(()) };
        let is_played = now >= window.start_ns && window.to_ns.is_none_or(|to_ns| now < to_ns);
        if !is_played || now < self.silence_ns + timeout_ns / Ns::from(TURNS) {
            return Ok(());
        }
        self.silence_ns = now;
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            let waits = !self.role.sends() || connection.session.unacknowledged() > 0;
            connection.silent = if waits { connection.silent.saturating_add(1) } else { 0 };
            if connection.silent > TURNS && matches!(connection.state, State::Up | State::Resending) {
                let limit = format_time(timeout_ns);
                self.lost(
                    index,
                    &ConnectionLoss::Closed(format!("the server was silent for {limit} (client_timeout)")),
                )?;
            }
        }
        Ok(())
    }
}
