//! Estimates of run times: by the plan, corrected by finished runs.

use pubmark_model::cell::Cell;
use pubmark_model::server_need::ServerNeed;
use pubmark_model::setting::FreshServer;
use pubmark_model::units::{Ns, SECOND};

/// Time of a run beside its warm-up and window: starting, probing, draining, ns.
const OVERHEAD: Ns = SECOND / 3;

/// Driver with virtual time, whose runs wait for nothing.
const MOCK: &str = "mock";

/// Additional time for starting and ending a server, ns.
const SERVER: Ns = 5 * SECOND;

/// Returns the planned time of a run of a cell, ns. A count at `max` is estimated as a second.
pub fn cost(cell: &Cell) -> Ns {
    let workload = &cell.workload;
    if cell.system.driver == MOCK {
        return OVERHEAD;
    }
    let mut ns =
        OVERHEAD + workload.warmup_max_ns.unwrap_or(workload.warmup_ns) + workload.window_ns().unwrap_or(SECOND);
    if cell.system.broker() {
        let clients = u64::from(workload.publishers) + u64::from(workload.subscribers);
        ns += SERVER + clients * SECOND / u64::from(workload.connect_rate.max(1));
    }
    ns
}

/// Returns the times of consecutive runs, ns: a server that one leaves to the next is not started again.
pub fn costs<'a>(fresh: FreshServer, runs: impl IntoIterator<Item = &'a Cell>) -> Vec<Ns> {
    let mut before = None;
    let cost = |cell: &'a Cell| {
        let is_met = ServerNeed::is_met(fresh, before, cell);
        before = Some(cell);
        cost(cell) - if is_met { SERVER } else { 0 }
    };
    runs.into_iter().map(cost).collect()
}

/// Formats a time for an estimate.
pub fn in_words(ns: Ns) -> String {
    match ns.div_ceil(SECOND) {
        seconds @ ..90 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// Estimate of the remaining time.
#[derive(Default)]
pub struct TimeLeft {
    /// Planned time of unfinished runs, ns.
    left_ns: Ns,
    /// Planned time of finished runs, ns.
    planned_ns: Ns,
    /// Real time of finished runs, ns.
    taken_ns: Ns,
}

impl TimeLeft {
    /// Returns the estimate for runs with this planned time.
    pub fn new(left_ns: Ns) -> TimeLeft {
        TimeLeft { left_ns, ..TimeLeft::default() }
    }

    /// Notes the end of a run with the planned time `cost_ns` and the real time `taken_ns`.
    pub fn done(&mut self, cost_ns: Ns, taken_ns: Ns) {
        self.left_ns = self.left_ns.saturating_sub(cost_ns);
        self.planned_ns += cost_ns;
        self.taken_ns += taken_ns;
    }

    /// Returns the remaining time, ns; `current` is planned and elapsed time of the current run.
    pub fn left_ns(&self, current: Option<(Ns, Ns)>) -> Ns {
        let ratio = if self.planned_ns == 0 { 1.0 } else { self.taken_ns as f64 / self.planned_ns as f64 };
        let scaled = |ns: Ns| (ns as f64 * ratio) as Ns;
        match current {
            // A run that takes longer than planned leaves the time of the others unchanged.
            Some((cost_ns, elapsed_ns)) => {
                scaled(self.left_ns.saturating_sub(cost_ns)) + scaled(cost_ns).saturating_sub(elapsed_ns)
            }
            None => scaled(self.left_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::plan::cells;
    use pubmark_model::study::{ReadOptions, Study};
    use pubmark_study::registry;

    #[test]
    fn virtual_time_takes_none() {
        let cost_of = |system: &str, duration: &str| {
            let text =
                format!("title = \"t\"\n[workload]\nduration = \"{duration}\"\n[axes]\nsystem = [\"{system}\"]\n");
            let transport = [("transport".to_owned(), "tcp".to_owned())];
            let set: &[(String, String)] = if system == "mock" { &[] } else { &transport };
            let reading = ReadOptions { set, ..ReadOptions::default() };
            let study = Study::parse("t", &text, &registry::built_in, &reading).unwrap();
            cost(&cells(&study).unwrap()[0])
        };
        assert_eq!(cost_of("mock", "10m"), cost_of("mock", "1s"));
        assert_eq!(cost_of("kernel", "10m"), cost_of("kernel", "1s") + 599 * SECOND);
    }

    #[test]
    fn a_server_that_is_there_is_not_started_again() {
        let costs_of = |fresh: &str, more: &str| {
            let text = format!(
                "title = \"t\"\n[axes]\nsystem = [\"mosquitto\"]\nrate = [100, 200]\n{more}[run]\nfresh = \"{fresh}\"\n"
            );
            let study = Study::parse("t", &text, &registry::built_in, &ReadOptions::default()).unwrap();
            costs(study.fresh(), &cells(&study).unwrap())
        };
        let alone = costs_of("run", "");
        assert_eq!(alone[0], alone[1]);
        assert_eq!(costs_of("cell", ""), [alone[0], alone[1] - SERVER], "the first one starts it");
        let limited = "cpus = [1, 2]\n";
        assert_eq!(costs_of("cell", limited), [alone[0]; 4], "limits that alternate are another server each time");
        let failing = "[faults]\nfault = \"stop subscribers at 1s for 1s\"\n";
        assert_eq!(costs_of("cell", failing), alone, "a run whose parts fail has its own");
    }

    #[test]
    fn what_runs_took_corrects_what_they_should_take() {
        let mut estimate = TimeLeft::new(100 * SECOND);
        assert_eq!(estimate.left_ns(None), 100 * SECOND);
        assert_eq!(estimate.left_ns(Some((10 * SECOND, 4 * SECOND))), 96 * SECOND);
        estimate.done(10 * SECOND, 20 * SECOND);
        assert_eq!(estimate.left_ns(None), 180 * SECOND);
        assert_eq!(estimate.left_ns(Some((10 * SECOND, 500 * SECOND))), 160 * SECOND, "an overrun costs no other run");
    }
}
