//! Backlogs in the system: before and during the window.

use super::*;

/// Judges a run at a constant rate of 1,000/s for 10 s, in 20 slices: the messages sent and arrived in each, in
/// hundredths of the rate, and the median latency, ms.
fn flow(slices: impl Fn(usize) -> (u64, u64, u64)) -> Verdict {
    judged("none", |record| {
        let series = &mut record.series;
        series.slice_ns = SECOND / 2;
        for slice in 0..20 {
            let (sent, delivered, ms) = slices(slice);
            series.sent.push(5 * sent);
            series.delivered.push(5 * delivered);
            series.latency_p50_ns.push(ms * MILLISECOND);
        }
        let mut sorted: Vec<u64> = series.latency_p50_ns.iter().copied().filter(|ns| *ns > 0).collect();
        sorted.sort_unstable();
        record.times.latency.as_mut().unwrap().p50 = sorted[sorted.len() / 2];
    })
}

#[test]
fn a_pipe_that_is_longer_than_the_warm_up_is_no_backlog() {
    // The default warm-up is 1 s, the latency 2 s: nothing comes in the first two slices.
    let verdict = flow(|slice| if slice < 2 { (100, 0, 0) } else { (100, 100, 2_000) });
    assert_eq!(found(&verdict), [(Reason::NotSteady, vec![Rates, Cost])]);
    let says = "the warm-up of 1.000 s is shorter than the latency, 2.000 s at the median";
    assert!(verdict.reasons[0].evidence.starts_with(says), "{:?}", verdict.reasons);
    // A growing queue has a growing latency.
    let verdict = flow(|slice| (100, 80, 2_000 + 100 * slice as u64));
    assert_eq!(found(&verdict), [(Reason::NotSteady, vec![Rates, LatencyP50, LatencyP99, Cost])]);
    assert!(verdict.reasons[0].evidence.starts_with("a backlog grew"), "{:?}", verdict.reasons);
    assert!(verdict.is_overloaded(LatencyP50) && verdict.compares(LatencyP50) && !verdict.compares(Cost));
}

/// Publishers wait for the server: what is sent in the window has arrived, and the rest is sent after it.
#[test]
fn what_a_server_does_not_take_in_time_is_a_backlog() {
    let verdict = flow(|slice| (90, 90, 100 + 100 * slice as u64));
    assert_eq!(found(&verdict), [(Reason::NotSteady, vec![Rates, LatencyP50, LatencyP99, Cost])]);
    let says = "a backlog grew: 9000 arrivals in the window for 10000 messages due in it";
    assert_eq!(verdict.reasons[0].evidence, says);
    assert!(verdict.is_overloaded(LatencyP50));
}

#[test]
fn a_backlog_without_rising_latency_is_no_overload() {
    let constant = |_: usize| 5_u64;
    let falling = |slice: usize| 900 - 20 * slice as u64;
    let leap = |slice: usize| if slice < 10 { 5 } else { 900 };
    for ms in [constant as fn(usize) -> u64, falling, leap] {
        let verdict = flow(|slice| (100, 80, ms(slice)));
        assert!(verdict.reasons[0].evidence.starts_with("a backlog grew"), "{:?}", verdict.reasons);
        assert!(!verdict.is_overloaded(LatencyP50) && !verdict.compares(LatencyP50));
    }
}

#[test]
fn a_backlog_that_is_worked_off_in_the_window_is_seen() {
    // Two hundredths more arrive than were sent, in the first slices.
    let verdict = flow(|slice| if slice < 4 { (100, 110, 168) } else { (100, 100, 1) });
    assert_eq!(found(&verdict), [(Reason::NotSteady, vec![Rates, LatencyP99])], "most slices are as they should be");
    let says = "a backlog from before the window was worked off in it: 10200 arrivals for 10000 messages due";
    assert_eq!(verdict.reasons[0].evidence, says);
    // Messages in flight at the edges are no backlog.
    let verdict = flow(|slice| if slice == 0 { (100, 110, 1) } else { (100, 100, 1) });
    assert!(verdict.valid, "{:?}", verdict.reasons);
}

#[test]
fn a_backlog_that_rose_and_fell_is_seen_unless_it_was_a_standstill() {
    let risen = |slice| match slice {
        8..10 => (100, 30, 50),
        10..12 => (100, 170, 400),
        _ => (100, 100, 1),
    };
    let verdict = flow(risen);
    assert_eq!(found(&verdict), [(Reason::NotSteady, vec![LatencyP99])]);
    let says = "a backlog rose and fell: 5.000 s into the window subscribers were behind by 700 messages, 700.000 ms of traffic";
    assert_eq!(verdict.reasons[0].evidence, says);
    let long = |slice| match slice {
        4..10 => (100, 60, 50),
        10..16 => (100, 140, 400),
        _ => (100, 100, 1),
    };
    assert_eq!(
        found(&flow(long)),
        [(Reason::NotSteady, vec![LatencyP50, LatencyP99])],
        "more than half of it is behind"
    );
    let silent = judged("none", |record| {
        record.series.slice_ns = SECOND / 2;
        record.series.sent = vec![500; 20];
        record.series.delivered = vec![500, 500, 0, 0, 1_500, 500, 500, 500, 500, 500];
        record.series.delivered.resize(20, 500);
        record.stalls = Some(Stalls::one(SECOND, SECOND));
    });
    assert!(silent.valid, "{:?}", silent.reasons);
}
