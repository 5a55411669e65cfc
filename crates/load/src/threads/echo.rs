//! What the first subscriber sends back, in a fan-out that has an answer.

use crate::control::Control;
use crate::drivers::socket::{DriverError, Sent, Socket};
use pubmark_model::header::{END, Header};
use pubmark_model::protocol::{Client, Role};
use pubmark_model::workload::Workload;

/// What the subscriber that answers keeps for it.
pub(super) struct Echo(Vec<u8>);

impl Echo {
    /// For this client, if it is the one.
    pub(super) fn of(workload: &Workload, client: &Client) -> Option<Echo> {
        let answers = workload.pattern.echoed() && (client.role, client.id) == (Role::Subscriber, 0);
        answers.then(|| Echo(Vec::with_capacity(workload.payload_bytes as usize)))
    }

    /// The message to send back.
    #[inline]
    pub(super) fn keep(&mut self, message: &[u8]) {
        self.0.clear();
        self.0.extend_from_slice(message);
    }

    /// Sends it back as it came, which is what it returns; not when the drain has begun, for then
    /// nobody waits for it. End markers have no answer.
    #[inline]
    pub(super) fn back(&self, socket: &mut dyn Socket, control: &Control) -> Result<&[u8], DriverError> {
        if Header::read(&self.0).is_none_or(|header| header.sequence != END) {
            while socket.send(&self.0)? == Sent::Full && !control.silenced() && control.draining().is_none() {}
        }
        Ok(&self.0)
    }
}
