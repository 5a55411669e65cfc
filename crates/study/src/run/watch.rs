//! When the server's log is looked into while the clients of a run connect.

use pubmark_model::units::{Ns, SECOND};

/// How long clients may take to connect and to hear each other before the server's log is looked
/// into, and the time between two looks.
const PATIENCE: Ns = SECOND;

/// Says when the server's log is looked into while clients connect.
#[derive(Default)]
pub struct SetupWatch {
    /// When it is looked into next, ns; 0 as long as no client connects.
    look_ns: Ns,
}

impl SetupWatch {
    /// Whether the server's log is to be looked into at this instant; asked while clients connect.
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
