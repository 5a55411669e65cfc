//! Schedule for reading the server's log while the clients of a run connect.

use pubmark_model::units::{Ns, SECOND};

/// Time that clients may take to connect and to receive from each other before the server's log is read, and interval
/// of the readings.
const PATIENCE: Ns = SECOND;

/// Decides when the server's log is read while clients connect.
#[derive(Default)]
pub struct SetupWatch {
    /// Instant of the next reading, ns; 0 until clients connect.
    look_ns: Ns,
}

impl SetupWatch {
    /// Returns whether the server's log must be read at this instant; called while clients connect.
    pub fn is_due(&mut self, now: Ns) -> bool {
        let began = self.look_ns > 0;
        if began && now < self.look_ns {
            return false;
        }
        self.look_ns = now + PATIENCE;
        began
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_looked_into_when_clients_have_had_a_second_and_then_each_second() {
        let mut watch = SetupWatch::default();
        let looks: Vec<Ns> = (10..40).filter(|tenths| watch.is_due(tenths * SECOND / 10)).collect();
        assert_eq!(looks, [20, 30]);
    }
}
