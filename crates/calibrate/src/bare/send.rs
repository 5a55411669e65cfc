//! Sends by a schedule: sleeps until a message is due, sends it, and sleeps again.

use super::edges::Edges;
use super::open::open;
use super::plan::{LoopPlan, LoopResult, ReadyMessage};
use pubmark_load::clock;
use pubmark_model::units::{Ns, SECOND};
use pubmark_stats::Histogram;
use std::io::Write;

/// Opens the connections, calls `begin` for the instant of the start, and
/// sends: message i of connection c of C is due at start + (i + c / C) / rate,
/// so that all of them together are evenly spaced.
pub fn send(plan: &LoopPlan, begin: impl FnOnce() -> Result<Ns, String>) -> Result<LoopResult, String> {
    clock::exact_timers();
    let mut message = ReadyMessage::new(plan)?;
    let (mut streams, mut written) = open(plan, false)?;
    let start_ns = begin()?;
    let (from_ns, to_ns) = (start_ns + plan.warmup_ns, start_ns + plan.warmup_ns + plan.window_ns);
    let due_ns = |number: u64| start_ns + (u128::from(number) * u128::from(SECOND) / u128::from(plan.per_s)) as Ns;
    let mut lag = Histogram::latency();
    let mut edges = Edges::default();
    let (mut number, mut due, mut woke) = (0u64, due_ns(0), 0);
    loop {
        let mut now = clock::now();
        while due <= now && due < to_ns {
            edges.enter(due, from_ns);
            let connection = (number % u64::from(plan.connections)) as u32;
            let bytes = message.of(connection);
            streams[connection as usize]
                .write_all(bytes)
                .map_err(|error| format!("connection {connection}: {error}"))?;
            written += bytes.len() as u64;
            if due >= from_ns {
                lag.record(now - due);
            }
            number += 1;
            due = due_ns(number);
            now = clock::now();
        }
        if due >= to_ns {
            break;
        }
        clock::sleep_until(due.max(woke + plan.quantum_ns));
        woke = clock::now();
    }
    edges.enter(due, from_ns);
    edges.leave();
    Ok(LoopResult {
        messages: lag.count(),
        total_messages: number,
        total_bytes: written,
        lag: lag_text(&lag),
        // From due time to due time: the rest of the window is sleep.
        wall_ns: plan.window_ns,
        ..edges.done()
    })
}

fn lag_text(lag: &Histogram) -> Option<String> {
    (!lag.is_empty()).then(|| lag.encode())
}
