//! Progress of a run, for displays: no figure of a record comes from here.

use pubmark_host::server::watch::ServerWatch;
use pubmark_model::protocol::Progress;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};

/// Shortest span over which a rate is computed, ns.
const SPAN_MIN: Ns = 200 * MILLISECOND;

/// Phase of a run. Instants are of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A server is started, and clients connect.
    Starting,
    /// The load runs.
    Load {
        /// Start of the load, ns.
        start_ns: Ns,
        /// Start of the window, ns.
        from_ns: Ns,
        /// End of the window, ns; `None` if a count ends it.
        to_ns: Option<Ns>,
    },
    /// All messages are sent; the drain runs.
    Draining,
}

/// The load so far, summed over all agents.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Messages sent, including warm-up.
    pub sent: u64,
    /// Messages received, including warm-up.
    pub received: u64,
    /// Messages sent per second, over about the last second.
    pub sent_per_s: f64,
    /// Messages received per second, over about the last second.
    pub received_per_s: f64,
    /// Largest generator delay of a send over about the last second, ns; `None` if no agent reports it.
    pub own_lag_max_ns: Option<Ns>,
}

/// News of a run.
#[derive(Clone, Debug)]
pub enum News {
    /// The run has entered another phase.
    Phase(Phase),
    /// New figures of the load.
    Figures(Figures),
    /// A server was started for the run; it can be watched until the run ends.
    Server(ServerWatch),
    /// The run is over and has left something at a server; the text says what, and how to remove it.
    Left(String),
}

/// Latest reports of a run's agents.
pub struct LatestReports {
    agents: Vec<Heard>,
    /// Messages sent and received, over all agents.
    sent: u128,
    received: u128,
    /// Reports since the last figures were made, and the instant of those figures, ns.
    words: usize,
    made_ns: Ns,
}

#[derive(Clone, Copy, Default)]
struct Heard {
    progress: Progress,
    /// Report from which the next rates count.
    base: Progress,
    /// Instant of that report, ns.
    base_ns: Ns,
    sent_per_s: f64,
    received_per_s: f64,
}

/// Figures sum all agents. They are made after reports from one `PART`th of the agents, so that a report costs the same
/// with any number of agents …
const PART: usize = 16;
/// … and after this time at the latest, ns.
const STALE: Ns = SECOND / 2;

impl LatestReports {
    /// Returns the state before the first report of these agents.
    pub fn new(agents: usize) -> LatestReports {
        LatestReports { agents: vec![Heard::default(); agents], sent: 0, received: 0, words: 0, made_ns: 0 }
    }

    /// Notes the start of the load, from which rates count.
    pub fn start(&mut self, start_ns: Ns) {
        self.agents.iter_mut().for_each(|heard| heard.base_ns = start_ns);
    }

    /// Returns the number of messages sent so far.
    pub fn sent(&self) -> u64 {
        u64::try_from(self.sent).unwrap_or(u64::MAX)
    }

    /// Takes in an agent's progress. Returns figures if they are due.
    pub fn hear(&mut self, agent: usize, progress: Progress, now_ns: Ns) -> Option<Figures> {
        let heard = &mut self.agents[agent];
        let span_ns = now_ns.saturating_sub(heard.base_ns);
        self.sent = self.sent - u128::from(heard.progress.sent) + u128::from(progress.sent);
        self.received = self.received - u128::from(heard.progress.received) + u128::from(progress.received);
        heard.progress = progress;
        if span_ns >= SPAN_MIN {
            let per_s = |now: u64, then: u64| now.saturating_sub(then) as f64 * SECOND as f64 / span_ns as f64;
            heard.sent_per_s = per_s(progress.sent, heard.base.sent);
            heard.received_per_s = per_s(progress.received, heard.base.received);
            (heard.base, heard.base_ns) = (progress, now_ns);
        }
        self.words += 1;
        let is_time = self.words >= self.agents.len().div_ceil(PART) || now_ns >= self.made_ns + STALE;
        is_time.then(|| {
            (self.words, self.made_ns) = (0, now_ns);
            self.figures()
        })
    }

    fn figures(&self) -> Figures {
        Figures {
            sent: self.sent(),
            received: u64::try_from(self.received).unwrap_or(u64::MAX),
            sent_per_s: self.agents.iter().map(|heard| heard.sent_per_s).sum(),
            received_per_s: self.agents.iter().map(|heard| heard.received_per_s).sum(),
            own_lag_max_ns: self.agents.iter().filter_map(|heard| heard.progress.own_lag_max_ns).max(),
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
        let mut live = LatestReports::new(2);
        live.start(10 * SECOND);
        let first = live.hear(0, said(500, 0, Some(70)), 10 * SECOND + SECOND / 2).unwrap();
        assert_eq!((first.sent, first.sent_per_s, first.received_per_s), (500, 1_000.0, 0.0));
        let second = live.hear(1, said(0, 900, None), 11 * SECOND).unwrap();
        assert_eq!((second.sent_per_s, second.received, second.received_per_s), (1_000.0, 900, 900.0));
        assert_eq!(second.own_lag_max_ns, Some(70), "who does not send has no lag");
        let third = live.hear(0, said(2_500, 0, Some(7)), 11 * SECOND + SECOND / 2).unwrap();
        assert_eq!((third.sent_per_s, third.received_per_s, third.own_lag_max_ns), (2_000.0, 900.0, Some(7)));
    }

    #[test]
    fn a_word_right_behind_another_makes_no_rate() {
        let mut live = LatestReports::new(1);
        live.start(SECOND);
        live.hear(0, said(100, 0, None), 2 * SECOND);
        let soon = live.hear(0, said(150, 0, Some(9)), 2 * SECOND + MILLISECOND).unwrap();
        assert_eq!((soon.sent, soon.sent_per_s, soon.own_lag_max_ns), (150, 100.0, Some(9)));
        let later = live.hear(0, said(300, 0, None), 3 * SECOND).unwrap();
        assert_eq!((later.sent, later.sent_per_s), (300, 200.0));
    }

    #[test]
    fn of_many_agents_figures_are_made_for_a_part_of_the_words_and_none_is_older_than_half_a_second() {
        let mut live = LatestReports::new(1_600);
        live.start(SECOND);
        live.hear(0, said(1, 0, None), 2 * SECOND).unwrap();
        let mut made = Vec::new();
        for word in 1..=1_600_u32 {
            let progress = said(u64::from(word), 1, None);
            made.extend(live.hear(word as usize % 1_600, progress, 2 * SECOND + Ns::from(word)));
        }
        assert_eq!(made.len(), PART);
        let (sum, last) = ((1..=1_600).sum::<u64>(), made[PART - 1]);
        assert_eq!((last.sent, last.received, live.sent()), (sum, 1_600, sum), "each agent's last word counts, once");
        let alone = live.hear(7, said(8, 1, None), 2 * SECOND + STALE / 2);
        let stale = live.hear(7, said(9, 1, None), 3 * SECOND).map(|figures| figures.sent);
        assert_eq!((alone, stale), (None, Some(sum - 7 + 9)));
    }
}
