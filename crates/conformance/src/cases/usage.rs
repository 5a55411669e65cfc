//! Compares the agent's report about its process with the kernel's.

use crate::bench::Bench;
use crate::case::{Case, of_sockets as case};
use crate::process::UsageAtInstant;
use crate::sending::{ScriptOutcome, Sending};
use crate::wrong::{CaseFailure, due};
use pubmark_model::units::{MILLISECOND, Ns, format_time};
use std::rc::Rc;

/// Busy all the time, so that there is usage to report.
static BUSY: Sending = Sending {
    watched: true,
    ..Sending::plain("busy", &[("pattern", "fan-out"), ("pacing", "spin"), ("warmup", "300ms"), ("duration", "700ms")])
};
static IDLE: Sending = Sending {
    watched: true,
    ..Sending::plain("watched", &[("pattern", "fan-out"), ("warmup", "300ms"), ("duration", "700ms")])
};

const BUSY_ONE: &str = "a publisher that is awake all the time";

pub const CASES: &[Case] = &[
    case(
        "send-usage",
        BUSY_ONE,
        "processor time and memory of its process over the window, as the kernel says it",
        |bench| usage(&*watched(bench)?),
    ),
    case("send-pinned", BUSY_ONE, "a thread on the one processor that it was given, or a remark", |bench| {
        pinned(&*watched(bench)?)
    }),
];

fn watched(bench: &Bench<'_>) -> Result<Rc<ScriptOutcome>, CaseFailure> {
    bench.sends(if bench.features.pacing.iter().any(|word| word == "spin") { &BUSY } else { &IDLE })
}

/// The kernel and the agent measure at different instants, and the kernel counts in ticks.
const APART: Ns = 30 * MILLISECOND;

fn usage(out: &ScriptOutcome) -> Result<(), CaseFailure> {
    let (used, (from, to)) = (&out.agent.usage, out.window());
    let (Some(first), Some(last)) = (out.used.first(), out.used.last()) else {
        return Err(CaseFailure::NotTried("its process could not be looked at".into()));
    };
    // Delay of the snapshots at the two edges of the window.
    let late = first.at_ns.saturating_sub(from) + last.at_ns.saturating_sub(to);
    let length = to - from;
    due(used.wall_ns.abs_diff(length) <= length / 10 + late, || {
        format!("`wall_ns` is {}, and the window is {} long", used.wall_ns, format_time(length))
    })?;
    for (name, said, of, rough) in [
        ("cpu_ns", used.cpu_ns, (|reading: &UsageAtInstant| reading.cpu_ns) as fn(&UsageAtInstant) -> Ns, 10),
        ("user_ns", used.user_ns, |reading| reading.user_ns, 5),
    ] {
        let wanted = of(last).saturating_sub(of(first));
        due(name != "cpu_ns" || said > 0 || wanted < APART / 10, || {
            format!("`{name}` is 0; its process used {}", format_time(wanted))
        })?;
        due(said.abs_diff(wanted) <= wanted / rough + APART + late, || {
            format!(
                "`{name}` is {}; by the kernel its process used {} in the window",
                format_time(said),
                format_time(wanted)
            )
        })?;
    }
    for (name, samples, of) in [
        ("rss_bytes", &used.rss_bytes, (|reading: &UsageAtInstant| reading.rss_bytes) as fn(&UsageAtInstant) -> u64),
        ("uss_bytes", &used.uss_bytes, |reading| reading.uss_bytes),
    ] {
        let (least, most) = (out.used.iter().map(of).min().unwrap_or(0), out.used.iter().map(of).max().unwrap_or(0));
        due(!samples.is_empty(), || format!("`{name}` has no sample"))?;
        let near = least - least / 8..=most + most / 8;
        due(most == 0 || samples.iter().all(|bytes| near.contains(bytes)), || {
            format!("`{name}` is {samples:?}; by the kernel it was from {least} to {most} bytes")
        })?;
    }
    Ok(())
}

fn pinned(out: &ScriptOutcome) -> Result<(), CaseFailure> {
    let Some(processor) = out.pinned else {
        return Err(CaseFailure::NotTried("this machine has one processor: there is nothing to choose".into()));
    };
    let wanted = processor.to_string();
    let held = out.used.iter().any(|reading| reading.allowed.contains(&wanted));
    due(held || !out.agent.remarks.is_empty(), || {
        format!("its publisher was to use processor {processor} alone; none of its threads did, and no remark says so")
    })
}
