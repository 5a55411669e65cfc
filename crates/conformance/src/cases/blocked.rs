//! A system that makes the agent wait: that time is the system's, and messages not sent because of it were offered
//! nevertheless.

use crate::bench::Bench;
use crate::case::{Case, of_sockets as case};
use crate::figures::read;
use crate::sending::{Reads, ScriptOutcome, Sending};
use crate::wrong::{CaseFailure, due};
use pubmark_model::units::{MILLISECOND, Ns, format_time};
use pubmark_model::workload::{Pattern, Transport};
use std::rc::Rc;
use std::time::Duration;

/// Returns a script for a system that blocks, with a lossless pattern if there is one: its `send` waits for room.
const fn blocked(name: &'static str, settings: &'static [(&'static str, &'static str)], reads: Reads) -> Sending {
    Sending { reads, ..Sending::plain(name, settings) }
}

/// Returns the settings of a blocked publisher in this pattern, with this window and drain.
macro_rules! held {
    ($pattern:literal, $payload:literal, $rate:literal, $duration:literal, $drain:literal) => {
        &[
            ("pattern", $pattern),
            ("payload", $payload),
            ("rate", $rate),
            ("verify", "header"),
            ("duration", $duration),
            ("drain", $drain),
        ]
    };
}

const UNREAD: Reads = Reads::NotFor(Duration::from_millis(800));
const SLOW: Reads = Reads::Every(Duration::from_millis(3));

static UNREAD_PUSHED: Sending = blocked("unread pipeline", held!("pipeline", "256KiB", "200", "700ms", "3s"), UNREAD);
static UNREAD_PUBLISHED: Sending = blocked("unread", held!("fan-out", "256KiB", "200", "700ms", "3s"), UNREAD);
static SLOW_PUSHED: Sending =
    blocked("read slowly pipeline", held!("pipeline", "256KiB", "666.666", "700ms", "3s"), SLOW);
static SLOW_PUBLISHED: Sending = blocked("read slowly", held!("fan-out", "256KiB", "666.666", "700ms", "3s"), SLOW);
static NEVER_PUSHED: Sending =
    blocked("never read pipeline", held!("pipeline", "256KiB", "200", "500ms", "300ms"), Reads::Nothing);
static NEVER_PUBLISHED: Sending =
    blocked("never read", held!("fan-out", "256KiB", "200", "500ms", "300ms"), Reads::Nothing);

pub const CASES: &[Case] = &[
    case(
        "send-blocked",
        "256 KiB a message, and nobody reads for 800 ms",
        "what a send had to wait for is the system's: it is in the latency in full, and is not a lag of its own",
        |bench| waited(&*played(bench, [&UNREAD_PUSHED, &UNREAD_PUBLISHED])?),
    ),
    case(
        "send-slow",
        "256 KiB a message every 1.5 ms, and one is read every 3 ms",
        "what a send had to wait for is the system's: it is in the latency in full, and is not a lag of its own",
        |bench| waited(&*played(bench, [&SLOW_PUSHED, &SLOW_PUBLISHED])?),
    ),
    case(
        "send-given-up",
        "256 KiB a message, and nobody reads any more",
        "sent soon after the window's end and the drain; offered is what was due, sent what was taken",
        |bench| given_up(&*played(bench, [&NEVER_PUSHED, &NEVER_PUBLISHED])?),
    ),
];

fn played(bench: &Bench<'_>, [pushed, published]: [&'static Sending; 2]) -> Result<Rc<ScriptOutcome>, CaseFailure> {
    if bench.transport == Some(Transport::Udp) {
        return Err(CaseFailure::NotTried("udp holds nobody back".into()));
    }
    bench.sends(if bench.plays(Pattern::Pipeline) { pushed } else { published })
}

const NOT_HELD: &str = "its library took all messages at once, though nobody read them: no send had to wait";

/// Checks that the time that the system keeps a publisher waiting counts from the due time to the arrival: only the
/// generator delay in a message's header is subtracted.
fn waited(out: &ScriptOutcome) -> Result<(), CaseFailure> {
    let over_ns = out.read_again_ns.unwrap_or(Ns::MAX);
    let came = out.messages(0, 0);
    let held = came.iter().filter_map(|heard| {
        let header = heard.header?;
        let waited = header.sent_ns?.min(over_ns).checked_sub(header.intended_ns)?;
        (waited >= 100 * MILLISECOND).then_some((waited, heard.at_ns - header.intended_ns, header.own_lag_ns()?))
    });
    let mut held: Vec<(Ns, Ns, Ns)> = held.collect();
    if held.is_empty() {
        return Err(CaseFailure::NotTried(NOT_HELD.into()));
    }
    held.sort_unstable_by_key(|(waited, _, own)| own * 1_000 / waited);
    let (waited, late, own) = held[held.len() / 2];
    due(own <= waited / 4, || {
        format!(
            "{} messages had to wait for room; one that waited {} for it and came {} after it was due calls {} of that its own lag, \
             so that the headline latency has {} of it",
            held.len(),
            format_time(waited),
            format_time(late),
            format_time(own),
            format_time(late.saturating_sub(own))
        )
    })?;
    let lag = read("own_lag", out.result.histograms.own_lag.as_ref())?;
    due(lag.value_at(0.5) <= 100 * MILLISECOND, || {
        format!("half of `own_lag` is {} or more: the system made it wait", format_time(lag.value_at(0.5)))
    })
}

fn given_up(out: &ScriptOutcome) -> Result<(), CaseFailure> {
    let total = out.totals.first().copied().unwrap_or_default();
    let (dues, window) = out.plan(0);
    let came = out.messages(0, 0).len() as u64;
    if came == dues.len() as u64 {
        return Err(CaseFailure::NotTried(NOT_HELD.into()));
    }
    due(total.sent == came, || format!("when it was read again {came} messages came; it says {} sent", total.sent))?;
    let first = window.start as u64;
    let (end, offered) = (total.sent.max(first), window.len() as u64);
    due((total.window_first.max(first), total.window_end.max(first), total.offered) == (first, end, offered), || {
        format!("{offered} were due in the window, from sequence {first} on; it says {total:?}")
    })?;
    due(total.adds_up(), || format!("its totals do not add up: {total:?}"))?;
    due(out.result.publishers == out.totals, || {
        format!("`sent` said {:?}, and its result {:?}", out.totals, out.result.publishers)
    })
}
