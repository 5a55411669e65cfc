//! What is looked at while the clients of a run connect, and how long this process itself stood still.

use pubmark_model::units::{Ns, SECOND};
use std::time::Duration;

/// How long clients may take to connect and to hear each other before the server's log is looked
/// into, and the time between two looks.
const PATIENCE: Ns = SECOND;
/// A wait that ends so much too late was a standstill of this process.
const STOOD_STILL: Ns = SECOND;

/// What is looked at while clients connect, and pubmark's own standstills.
#[derive(Default)]
pub struct SetupWatch {
    /// When the server's log is looked into next, ns; 0 as long as no client connects.
    look_ns: Ns,
    /// The longest standstill of this process, ns.
    stood_still_ns: Ns,
}

impl SetupWatch {
    /// A wait was to last this long, and took so many ns.
    pub fn waited(&mut self, wanted: Duration, took_ns: Ns) {
        let over_ns = took_ns.saturating_sub(wanted.as_nanos() as Ns);
        if over_ns >= STOOD_STILL {
            self.stood_still_ns = self.stood_still_ns.max(over_ns);
        }
    }

    /// Whether the server's log is to be looked into at this instant; asked while clients connect.
    pub fn is_due(&mut self, now: Ns) -> bool {
        let began = self.look_ns > 0;
        if began && now < self.look_ns {
            return false;
        }
        self.look_ns = now + PATIENCE;
        began
    }

    /// What is to be said of standstills behind an error that is about time; nothing where there
    /// was none.
    pub fn standstill(&self) -> String {
        match self.stood_still_ns {
            0 => String::new(),
            ns => format!(
                "; pubmark itself did not run for {:.1} s: it was stopped, or the whole machine was",
                ns as f64 / SECOND as f64
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_ends_much_too_late_was_a_standstill() {
        let mut watch = SetupWatch::default();
        watch.waited(Duration::from_millis(50), SECOND);
        assert_eq!(watch.standstill(), "");
        watch.waited(Duration::from_millis(50), 25 * SECOND + SECOND / 20);
        watch.waited(Duration::from_millis(50), 3 * SECOND);
        let says = "; pubmark itself did not run for 25.0 s: it was stopped, or the whole machine was";
        assert_eq!(watch.standstill(), says);
    }

    #[test]
    fn a_log_is_looked_into_when_clients_have_had_a_second_and_then_each_second() {
        let mut watch = SetupWatch::default();
        let looks: Vec<Ns> = (10..40).filter(|tenths| watch.is_due(tenths * SECOND / 10)).collect();
        assert_eq!(looks, [20, 30]);
    }
}
