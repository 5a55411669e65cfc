//! What a run is doing, for whoever watches it: no figure of a record comes
//! from here.

use pubmark_host::server::watch::ServerWatch;
use pubmark_model::protocol::Progress;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};

/// Rates over less than this say nothing, ns.
const SPAN_MIN: Ns = 200 * MILLISECOND;

/// What a run has come to. Instants are of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A server is started, and clients connect.
    Starting,
    /// The load runs.
    Load {
        /// When it begins, ns.
        start_ns: Ns,
        /// When the window begins, ns.
        from_ns: Ns,
        /// When it ends, ns; none where it ends with a count.
        to_ns: Option<Ns>,
    },
    /// All is sent, and what is on its way is waited for.
    Draining,
}

/// The load so far, over all agents.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Messages sent, warm-up included.
    pub sent: u64,
    /// Messages received, warm-up included.
    pub received: u64,
    /// Messages sent a second, over about the last second.
    pub sent_per_s: f64,
    /// The same of those received.
    pub received_per_s: f64,
    /// The greatest lag of a send that the generator itself caused, over about
    /// the last second, ns; none where no agent tells it.
    pub own_lag_max_ns: Option<Ns>,
}

/// What is new of a run.
#[derive(Clone, Debug)]
pub enum News {
    /// It has come to another phase.
    Phase(Phase),
    /// The load has gone on.
    Figures(Figures),
    /// A server was started for it, which can be looked at until the run ends.
    Server(ServerWatch),
}

/// What the agents of a run said last.
pub struct Live(Vec<Heard>);

#[derive(Clone, Copy, Default)]
struct Heard {
    progress: Progress,
    /// From where the next rates count.
    base: Progress,
    /// When that was, ns.
    base_ns: Ns,
    sent_per_s: f64,
    received_per_s: f64,
}

impl Live {
    /// Of so many agents nothing is heard yet.
    pub fn new(agents: usize) -> Live {
        Live(vec![Heard::default(); agents])
    }

    /// The load starts: rates count from here.
    pub fn start(&mut self, start_ns: Ns) {
        self.0.iter_mut().for_each(|heard| heard.base_ns = start_ns);
    }

    /// Messages sent so far.
    pub fn sent(&self) -> u64 {
        self.0.iter().map(|heard| heard.progress.sent).sum()
    }

    /// An agent says how far it has come.
    pub fn hear(&mut self, agent: usize, progress: Progress, now_ns: Ns) -> Figures {
        let heard = &mut self.0[agent];
        let span_ns = now_ns.saturating_sub(heard.base_ns);
        heard.progress = progress;
        if span_ns >= SPAN_MIN {
            let per_s = |now: u64, then: u64| now.saturating_sub(then) as f64 * SECOND as f64 / span_ns as f64;
            heard.sent_per_s = per_s(progress.sent, heard.base.sent);
            heard.received_per_s = per_s(progress.received, heard.base.received);
            (heard.base, heard.base_ns) = (progress, now_ns);
        }
        Figures {
            sent: self.sent(),
            received: self.0.iter().map(|heard| heard.progress.received).sum(),
            sent_per_s: self.0.iter().map(|heard| heard.sent_per_s).sum(),
            received_per_s: self.0.iter().map(|heard| heard.received_per_s).sum(),
            own_lag_max_ns: self.0.iter().filter_map(|heard| heard.progress.own_lag_max_ns).max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(sent: u64, received: u64, own_lag_max_ns: Option<Ns>) -> Progress {
        Progress { sent, received, own_lag_max_ns }
    }

    #[test]
    fn each_agents_rate_is_over_its_own_last_second() {
        let mut live = Live::new(2);
        live.start(10 * SECOND);
        let first = live.hear(0, said(500, 0, Some(70)), 10 * SECOND + SECOND / 2);
        assert_eq!((first.sent, first.sent_per_s, first.received_per_s), (500, 1_000.0, 0.0));
        let second = live.hear(1, said(0, 900, None), 11 * SECOND);
        assert_eq!((second.sent_per_s, second.received, second.received_per_s), (1_000.0, 900, 900.0));
        assert_eq!(second.own_lag_max_ns, Some(70), "who does not send has no lag");
        let third = live.hear(0, said(2_500, 0, Some(7)), 11 * SECOND + SECOND / 2);
        assert_eq!((third.sent_per_s, third.received_per_s, third.own_lag_max_ns), (2_000.0, 900.0, Some(7)));
    }

    #[test]
    fn a_word_right_behind_another_makes_no_rate() {
        let mut live = Live::new(1);
        live.start(SECOND);
        live.hear(0, said(100, 0, None), 2 * SECOND);
        let soon = live.hear(0, said(150, 0, Some(9)), 2 * SECOND + MILLISECOND);
        assert_eq!((soon.sent, soon.sent_per_s, soon.own_lag_max_ns), (150, 100.0, Some(9)));
        let later = live.hear(0, said(300, 0, None), 3 * SECOND);
        assert_eq!((later.sent, later.sent_per_s), (300, 200.0));
    }
}
