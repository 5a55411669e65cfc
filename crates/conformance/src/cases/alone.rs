//! All clients in one agent: what it says has to fit together.

use crate::case::{Case, Needs, Wrong, due};
use crate::figures::{SLACK, counts, read};
use crate::order::{clients, prepare, workload};
use crate::subject::Bench;
use crate::talk::Talk;
use pubmark_host::clock;
use pubmark_host::server::ports;
use pubmark_model::protocol::{PublisherTotal, Role};
use pubmark_model::units::MILLISECOND;
use pubmark_model::workload::Transport;

pub const CASES: &[Case] = &[
    Case {
        name: "alone-pairs",
        sent: "two pairs in one agent",
        due: "all that was due, sent and delivered",
        needs: Needs::Alone,
        run: |bench| alone(bench, &[("pattern", "pairs"), ("pairs", "2")]),
    },
    Case {
        name: "alone-fan-out",
        sent: "one publisher and two subscribers in one agent",
        due: "all that was due, sent and delivered",
        needs: Needs::Alone,
        run: |bench| alone(bench, &[("pattern", "fan-out"), ("subscribers", "2")]),
    },
    Case {
        name: "alone-fan-in",
        sent: "two publishers and one subscriber in one agent",
        due: "all that was due, sent and delivered",
        needs: Needs::Alone,
        run: |bench| alone(bench, &[("pattern", "fan-in"), ("publishers", "2")]),
    },
    Case {
        name: "alone-request-reply",
        sent: "a requester and its replier in one agent",
        due: "all that was due, sent and answered",
        needs: Needs::Alone,
        run: |bench| alone(bench, &[("pattern", "request-reply"), ("rate", "100")]),
    },
    Case {
        name: "alone-pipeline",
        sent: "a pipeline of one publisher and two subscribers in one agent",
        due: "all that was due, sent and delivered",
        needs: Needs::Alone,
        run: |bench| alone(bench, &[("pattern", "pipeline"), ("subscribers", "2")]),
    },
];

/// Where the clients of one agent meet: known beforehand, as all are prepared at once.
fn places(bench: &Bench<'_>, talk: &Talk, count: usize) -> Result<Vec<String>, Wrong> {
    let free = || ports::free(count).map_err(|error| Wrong::NotTried(error.to_string()));
    let folder = talk.scratch.path().display().to_string();
    Ok(match bench.transport {
        Some(Transport::Tcp) => free()?.iter().map(|port| format!("tcp://127.0.0.1:{port}")).collect(),
        Some(Transport::Udp) => free()?.iter().map(|port| format!("udp://127.0.0.1:{port}")).collect(),
        Some(Transport::Ipc) => (0..count).map(|number| format!("ipc://{folder}/{number}")).collect(),
        Some(Transport::Inproc) | None => (0..count).map(|number| format!("inproc://{number}")).collect(),
    })
}

fn alone(bench: &Bench<'_>, settings: &[(&str, &str)]) -> Result<(), Wrong> {
    let workload = workload(bench, settings)?;
    let mut talk = Talk::greeted(bench)?;
    let asks = workload.pattern.round_trip();
    let bound = places(bench, &talk, if asks { workload.subscribers } else { workload.publishers } as usize)?;
    let (binds, connects) = if asks { (Role::Replier, Role::Requester) } else { (Role::Publisher, Role::Subscriber) };
    let mut all = clients(&workload, binds, &bound, &[]);
    all.extend(clients(&workload, connects, &[], &bound));
    let order = prepare(bench, &workload, all, &talk.scratch);
    talk.prepare(order)?;
    talk.ready()?;
    talk.begin(clock::now() + 150 * MILLISECOND);
    let totals = talk.sent(workload.warmup_ns + workload.window_ns().unwrap_or(0) + workload.drain_ns)?;
    talk.drain(totals.clone(), workload.drain_ns)?;
    let result = talk.stop()?;
    talk.exit()?;
    let of_window = |total: &PublisherTotal| total.window_end - total.window_first;
    let sent: u64 = totals.iter().map(of_window).sum();
    let offered: u64 = totals.iter().map(|total| total.offered).sum();
    due(totals.len() == workload.publishers as usize && offered > 0 && sent == offered, || {
        format!("of {offered} messages that were due in the window it sent {sent}: {totals:?}")
    })?;
    let copies = u64::from(pubmark_model::topology::copies(&workload));
    let ledger = result.ledger;
    let expected = if workload.competing() { 0 } else { sent * copies };
    due((ledger.expected, ledger.delivered) == (expected, sent * copies), || {
        format!("{} were to be delivered; its ledger says {ledger:?}", sent * copies)
    })?;
    let latency = read("latency", result.latency.as_deref())?;
    counts("latency", &latency, ledger.delivered, 3)?;
    due(latency.value_at(0.5) < SLACK, || {
        format!("the median of `latency` is {} ns between clients of one process", latency.value_at(0.5))
    })
}
