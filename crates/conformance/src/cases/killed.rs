//! Killed clients: nothing of them stays at the server, and their counts are complete.

use crate::case::{Case, CaseNeeds};
use crate::crash::{CrashOutcome, ENDED, LOST_EVERY, of_publishers, of_subscribers, open, publishes, subscribes, who};
use crate::figures::SLACK;
use crate::order::planned;
use crate::wrong::{CaseFailure, due};
use pubmark_model::header::END;
use pubmark_model::protocol::{FlowResult, PublisherTotal, Ranges};
use pubmark_model::units::{MILLISECOND, Ns, format_time};
use pubmark_peer::ClientAct;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of messages in flight, at 500 per second.
const HELD_BACK: u64 = 20;

pub const CASES: &[Case] = &[
    Case {
        name: "server-crash",
        sent: "crash in the middle of the window, to a publisher at a server that acknowledges all but every 7th message",
        due: "no leave is taken, nothing follows, and the books are what came and what was acknowledged",
        needs: CaseNeeds::Peer,
        run: |bench| published(&of_publishers(bench)?),
    },
    Case {
        name: "server-receive-crash",
        sent: "crash in a silence, to a subscriber at a server",
        due: "no leave is taken, nothing is heard any more, and the books are what came",
        needs: CaseNeeds::Peer,
        run: |bench| heard(&of_subscribers(bench)?),
    },
];

fn published(crashed: &CrashOutcome) -> Result<(), CaseFailure> {
    vanished(crashed, publishes)?;
    let came = sequences(crashed);
    due(!came.contains(&END.into()), || "an end marker came: nobody was there to send it".into())?;
    due(came.iter().copied().eq(0..came.len() as u64), || "what came is not the beginning of what was due".into())?;
    let (dues, window) = planned(&crashed.workload, 0);
    books_fit(came.len() as u64, (dues.len(), window.len()), &crashed.totals, &crashed.result)?;
    if crashed.workload.qos > 0 { acknowledged(crashed, &came) } else { Ok(()) }
}

fn heard(crashed: &CrashOutcome) -> Result<(), CaseFailure> {
    vanished(crashed, subscribes)?;
    half_came(&crashed.result, crashed.drained_after, 400 * MILLISECOND)?;
    match count(&crashed.result.missing) {
        Some(missing) if crashed.workload.qos > 0 => due(missing == 100, || {
            format!("100 messages of the window came for somebody who was dead; `missing` names {missing}")
        }),
        _ => Ok(()),
    }
}

/// Checks that clients of this kind have gone without a disconnect message, and that none comes back.
fn vanished(crashed: &CrashOutcome, kind: fn(&ClientAct) -> bool) -> Result<(), CaseFailure> {
    let (before, after) = crashed.seen.split_at(crashed.by_then);
    let killed = who(before, kind);
    due(!killed.is_empty(), || "before it was killed the server had seen nothing of it".into())?;
    let polite = crashed.seen.iter().any(|event| event.act == ClientAct::TookLeave && killed.contains(&event.client));
    due(!polite, || "its clients had been killed, and one of them took its leave of the server".into())?;
    let more = after.iter().filter(|event| kind(&event.act)).count();
    due(more == 0, || format!("its clients had been killed, and {more} more words of them came to the server"))?;
    due(open(&crashed.seen, kind).is_empty(), || {
        format!("its clients had been killed, and {} s later a connection was still open", ENDED.as_secs())
    })
}

/// Returns the messages that came to the server, in the order of arrival, without probes.
fn sequences(crashed: &CrashOutcome) -> Vec<u64> {
    let sequence = |act: ClientAct| match act {
        ClientAct::Published(header) => header.map(|header| header.sequence).filter(|sequence| *sequence <= END),
        _ => None,
    };
    crashed.seen.iter().filter_map(|event| sequence(event.act)).map(u64::from).collect()
}

/// Checks that the server acknowledged all in `acked`, and that all it did not acknowledge is in `unacked`.
fn acknowledged(crashed: &CrashOutcome, came: &[u64]) -> Result<(), CaseFailure> {
    let total = crashed.totals.first().copied().unwrap_or_default();
    let window = total.window_first..total.window_end;
    let confirms = |sequence: &&u64| window.contains(*sequence) && !(**sequence + 1).is_multiple_of(LOST_EVERY);
    let confirmed: BTreeSet<u64> = came.iter().filter(confirms).copied().collect();
    let (acked, most) = (crashed.result.acked, confirmed.len() as u64);
    due(acked <= most && most <= acked + HELD_BACK, || {
        format!("the server acknowledged {most} messages of the window; `acked` is {acked}")
    })?;
    let Some(unacked) = &crashed.result.unacked.0 else { return Ok(()) };
    let named: BTreeSet<u64> = unacked.iter().flat_map(|range| range.first..range.end.min(total.sent)).collect();
    let of_window = total.window_end - total.window_first;
    due(acked + named.len() as u64 == of_window, || {
        format!("{of_window} of the window were sent; `acked` is {acked}, and `unacked` names {}", named.len())
    })?;
    let owed = window.filter(|sequence| !confirmed.contains(sequence) && !named.contains(sequence)).count();
    due(owed == 0, || format!("{owed} messages that the server never acknowledged are not in `unacked`"))
}

/// Returns the number of messages in these ranges, if they are known.
fn count(ranges: &Ranges) -> Option<u64> {
    Some(ranges.0.as_ref()?.iter().map(|range| range.end - range.first).sum())
}

/// Checks the reports of killed publishers: the number sent must fit what came, and the numbers of messages due in all
/// and in the window.
pub fn books_fit(
    came: u64,
    (dues, of_window): (usize, usize),
    totals: &[PublisherTotal],
    result: &FlowResult,
) -> Result<(), CaseFailure> {
    let total = totals.first().copied().unwrap_or_default();
    let said = result.publishers.first().copied().unwrap_or_default();
    due(total == said && total.adds_up(), || format!("`sent` said {total:?}, and its result {said:?}"))?;
    due(came <= total.sent && total.sent <= came + HELD_BACK && total.sent < dues as u64, || {
        format!("{came} messages came of {dues} that were due in all; it says {} sent", total.sent)
    })?;
    let sent = total.window_end - total.window_first;
    due(sent <= total.offered && total.offered < of_window as u64, || {
        format!("{sent} of the window were sent; what fell due later is not offered, and it says {total:?}")
    })
}

/// Checks the result of subscribers that were killed when half of 200 messages had come, without a silence longer than
/// `silence_ns`.
pub fn half_came(result: &FlowResult, drained_after: Duration, silence_ns: Ns) -> Result<(), CaseFailure> {
    let ledger = result.ledger;
    due((ledger.expected, ledger.delivered) == (200, 100), || {
        format!(
            "100 of 200 messages had come when its clients were killed; it says {} of {}",
            ledger.delivered, ledger.expected
        )
    })?;
    due(drained_after < Duration::from_millis(1_500), || {
        format!("nothing could come any more, and it was drained after {} ms", drained_after.as_millis())
    })?;
    let longest = result.stalls.map_or(0, |stalls| stalls.longest_ns);
    due(longest < silence_ns + SLACK, || {
        let silence = format_time(silence_ns);
        format!("until it was killed something came every {silence}; `stalls` says that nothing came for {longest} ns")
    })
}
