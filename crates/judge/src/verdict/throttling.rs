//! Effect of a CPU quota of pubmark itself on a run.

use super::finding::{FigureFinding, words};
use super::pauses::figures;
use pubmark_model::record::{CpuThrottle, MachineLoad, RunRecord};

/// Finds each host whose agents a quota stopped in the window.
pub fn throttled(record: &RunRecord) -> Vec<FigureFinding> {
    let of = |name: &str, machine: &MachineLoad| machine.throttle.and_then(|throttle| stopped(name, throttle, record));
    match record.hosts.is_empty() {
        true => of("", &record.machine).into_iter().collect(),
        false => record.hosts.iter().filter_map(|host| of(&host.name, &host.machine)).collect(),
    }
}

fn stopped(host: &str, throttle: CpuThrottle, record: &RunRecord) -> Option<FigureFinding> {
    let CpuThrottle { cpus, periods, throttled, waited_ns } = throttle;
    let there = if host.is_empty() { String::new() } else { format!(" on {host}") };
    let evidence = format!(
        "a control group limits pubmark{there} to {cpus} processors, and stopped it in {throttled} of {periods} periods, \
         for {} of processor time",
        words(waited_ns)
    );
    let share = (waited_ns as f64 / record.window_ns.max(1) as f64).min(1.0);
    (throttled > 0).then(|| FigureFinding::of(&figures(share, record), evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::tests::{judged, reasons};
    use pubmark_model::record::FigureGroup::{Cost, LatencyP50, LatencyP99, Rates};
    use pubmark_model::record::{HostShare, Reason};
    use pubmark_model::units::{MILLISECOND, SECOND};
    use pubmark_model::workload::{Pattern, Rate};

    const HALF: CpuThrottle = CpuThrottle { cpus: 0.5, periods: 100, throttled: 86, waited_ns: 5 * SECOND };

    fn with(throttle: CpuThrottle) -> MachineLoad {
        MachineLoad { throttle: Some(throttle), ..MachineLoad::default() }
    }

    #[test]
    fn a_quota_that_stops_pubmark_is_a_reason_that_names_the_figures() {
        let verdict = judged("none", |record| record.machine = with(HALF));
        assert_eq!(reasons(&verdict), [Reason::GeneratorSaturated]);
        assert_eq!(verdict.reasons[0].figures, [LatencyP50, LatencyP99, Cost]);
        assert_eq!(
            verdict.reasons[0].evidence,
            "a control group limits pubmark to 0.5 processors, and stopped it in 86 of 100 periods, for 5.000 s of \
             processor time"
        );
        // Once: the delay affects at most the tail.
        let once = CpuThrottle { throttled: 1, waited_ns: 50 * MILLISECOND, ..HALF };
        assert_eq!(judged("none", |record| record.machine = with(once)).reasons[0].figures, [LatencyP99]);
        let never = CpuThrottle { throttled: 0, waited_ns: 0, ..HALF };
        assert!(judged("none", |record| record.machine = with(never)).valid);
    }

    /// If the next message waits for the one before, fewer are sent.
    #[test]
    fn a_quota_touches_the_rate_at_max_and_in_closed_loops() {
        let at_max = |pattern| {
            let verdict = judged("none", |record| {
                (record.workload.rate, record.workload.pattern) = (Rate::Max, pattern);
                record.machine = with(HALF);
            });
            let found = verdict.reasons.into_iter().find(|found| found.reason == Reason::GeneratorSaturated);
            found.unwrap().figures
        };
        assert_eq!(at_max(Pattern::Pairs), [Rates, Cost]);
        assert_eq!(at_max(Pattern::RequestReply), [Rates, LatencyP50, LatencyP99, Cost]);
    }

    #[test]
    fn a_host_under_a_quota_is_named_and_figures_beyond_all_bounds_are_told() {
        let most = CpuThrottle { cpus: 2.0, periods: u64::MAX, throttled: u64::MAX, waited_ns: u64::MAX };
        let verdict = judged("none", |record| {
            let host = |name: &str, machine| HostShare { name: name.into(), machine, ..HostShare::default() };
            record.hosts = vec![host("a", MachineLoad::default()), host("b", with(most))];
            record.machine = with(most);
        });
        assert_eq!(reasons(&verdict), [Reason::GeneratorSaturated]);
        assert!(verdict.reasons[0].evidence.starts_with("a control group limits pubmark on b to 2 processors"));
    }
}
