//! Ends a run before its start if a server refuses what publishers send, takes nothing from them,
//! or closes the connections of clients that it had accepted.

use super::connection::{ConnectionLoss, State};
use super::errors::ShardError;
use super::state::{ProbeRefusal, Shard};
use crate::session::{RefusalKind, Session};
use crate::window::Window;
use pubmark_model::units::Ns;

/// Connection losses allowed before the start for each client that reconnects, on average.
const LOSSES_EACH: u64 = 3;
/// Refused probes allowed for each publisher, on average, if a limit is the reason: it may pass.
const REFUSALS_EACH: u64 = 3;

impl<S: Session> Shard<'_, S> {
    /// Checks that the run can still begin.
    ///
    /// # Errors
    /// The server's refusal, as soon as it makes waiting useless.
    pub(super) fn check_setup(&mut self, now: Ns) -> Result<(), ShardError> {
        if self.window.is_some() {
            return Ok(());
        }
        // A server that refuses a message may end the connection as well: its text gives the
        // reason.
        if let Some(words) = self.refused_probe() {
            return Err(ShardError::Refused(words.into()));
        }
        if let Some(reason) = self.limits.blocked_for() {
            return Err(ShardError::Refused(format!("the server takes no messages: {reason}").into()));
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.await_repliers(now)?;
        self.await_answers(now)
    }

    /// Returns the text of a refusal that is final, or that all publishers got, or that they
    /// get again and again.
    fn refused_probe(&self) -> Option<String> {
        let (answers, publishers) = (&self.outbound.setup, self.connections.len() as u64);
        let refusal = answers.refusal.as_ref()?;
        let by_all = answers.acknowledged == 0 && answers.refused >= publishers;
        let again = answers.refused >= REFUSALS_EACH.saturating_mul(publishers);
        let is_hopeless = match refusal.kind {
            RefusalKind::Final => true,
            RefusalKind::Limit => by_all || again,
            RefusalKind::Unsettled => false,
        };
        is_hopeless.then(|| self.refused_first(refusal))
    }

    fn refused_first(&self, refusal: &ProbeRefusal) -> String {
        let id = self.ids.get(refusal.index).copied().unwrap_or_default();
        format!("the server refuses the first message of publisher {id}: {}", refusal.words)
    }

    /// Fails if messages are acknowledged and none of the first ones is.
    fn await_answers(&self, now: Ns) -> Result<(), ShardError> {
        let timeout_ns = self.workload.connect_timeout_ns;
        let asks = self.publishes() && self.workload.qos > 0 && self.said_ready && self.ramp.settled;
        if asks && self.outbound.setup.acknowledged == 0 && now > self.ramp.settled_ns + timeout_ns {
            let seconds = timeout_ns as f64 / 1e9;
            let said = match &self.outbound.setup.refusal {
                Some(refusal) => format!("{}, for {seconds} s", self.refused_first(refusal)),
                None => {
                    format!("the server accepts publishers, and acknowledged none of their messages in {seconds} s")
                }
            };
            return Err(ShardError::Refused(said.into()));
        }
        Ok(())
    }

    /// Handles the end of a connection that was up, before the start.
    pub(super) fn lost_in_setup(&mut self, index: usize, loss: &ConnectionLoss) {
        let hopeless = matches!(loss, ConnectionLoss::Session(error) if error.is_final() || error.is_limit());
        let clients = self.connections.len() as u64;
        let all = self.connections.iter().all(|connection| connection.state == State::Gone);
        let again = self.ramp.counts.lost >= LOSSES_EACH.saturating_mul(clients);
        if hopeless || all || again {
            let (role, id) = (format!("{:?}", self.role).to_lowercase(), self.ids[index]);
            let wordless = matches!(loss, ConnectionLoss::Ended(_)) && self.publishes();
            let hint = if wordless { S::unsaid(&self.settings) } else { "" };
            let said = format!("{role} {id} lost its connection before the start: {}{hint}", loss.text());
            self.failure.get_or_insert(ShardError::Refused(said.into()));
        }
    }

    /// Describes when a loss occurred.
    pub(super) fn when(window: Option<&Window>, now: Ns) -> String {
        match window {
            None => " before the start".into(),
            Some(window) => {
                format!(" {:.3} s into the window", (now as i64 - window.from_ns as i64) as f64 / 1e9)
            }
        }
    }
}
