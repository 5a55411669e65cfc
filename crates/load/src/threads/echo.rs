//! The echo that the first subscriber sends back in a fan-out with an answer.

use crate::control::Control;
use crate::drivers::socket::{DriverError, Sent, Socket};
use pubmark_model::header::{END, Header};
use pubmark_model::protocol::{Client, Role};
use pubmark_model::workload::Workload;

/// The last message, kept by the subscriber that answers.
pub(super) struct Echo(Vec<u8>);

impl Echo {
    /// Makes the echo of this client; `None` if it does not answer.
    pub(super) fn of(workload: &Workload, client: &Client) -> Option<Echo> {
        let answers = workload.pattern.echoed() && (client.role, client.id) == (Role::Subscriber, 0);
        answers.then(|| Echo(Vec::with_capacity(workload.payload_bytes as usize)))
    }

    /// Keeps the message to send back.
    #[inline]
    pub(super) fn keep(&mut self, message: &[u8]) {
        self.0.clear();
        self.0.extend_from_slice(message);
    }

    /// Sends the message back unchanged and returns it. It sends nothing once the drain has
    /// begun, because the publisher no longer waits, and nothing for end markers.
    #[inline]
    pub(super) fn back(&self, socket: &mut dyn Socket, control: &Control) -> Result<&[u8], DriverError> {
        if Header::read(&self.0).is_none_or(|header| header.sequence != END) {
            while socket.send(&self.0)? == Sent::Full && !control.silenced() && control.draining().is_none() {}
        }
        Ok(&self.0)
    }
}
