//! Clients whose connections the script cuts. They are closed as the kernel closes those of a
//! killed process, without a disconnect, and all at once; then the clients come back.

use super::connection::{ConnectionLoss, State};
use super::state::Shard;
use crate::session::Session;
use pubmark_model::fault::is_cut;

impl<S: Session> Shard<'_, S> {
    /// Carries out the orders to cut clients that have come since the last call.
    pub(super) fn cut(&mut self) {
        while let Some(percent) = self.context.control.cut_percent(self.cuts) {
            self.cuts += 1;
            for index in 0..self.connections.len() {
                if self.connections[index].state == State::Up && is_cut(self.ids[index], percent) {
                    self.gone(index, &ConnectionLoss::Closed("the script cut it".into()));
                }
            }
        }
    }
}
