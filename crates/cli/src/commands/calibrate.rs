//! `pubmark calibrate`: measures what this machine and this generator can do.

use super::shared::{interrupt_flag, program, raise_open_files};
use crate::args::CalibrateArgs;
use crate::failure::{Code, Failure};
use crate::output::{Voice, note, print};
use pubmark_calibrate::Calibrator;
use pubmark_judge::calibration::{Calibration, Compared};
use pubmark_model::endpoint::{Carrier, Endpoint};
use pubmark_model::wire_protocol::Protocol;
use pubmark_report::text::{bytes, count, time};
use pubmark_stats::Summary;
use pubmark_study::calibration_file;
use pubmark_study::context::RunError;

/// Measures, saves and prints.
pub fn calibrate(args: &CalibrateArgs, voice: Voice) -> Result<Code, Failure> {
    let relay = args.relay.as_deref().map(relay).transpose()?;
    let interrupt = interrupt_flag()?;
    raise_open_files();
    let mut say = |what: &str| voice.note(what);
    let how = Calibrator::new(program()?, relay, args.connections, args.quick, &interrupt, &mut say);
    let measured = how.and_then(pubmark_calibrate::calibrate);
    let calibration = match measured {
        Ok(calibration) => calibration,
        Err(RunError::Interrupted) => {
            note("interrupted: nothing is saved");
            return Ok(Code::Run);
        }
        Err(error) => return Err(Failure::run(error)),
    };
    print(&if args.json {
        serde_json::to_string_pretty(&calibration).unwrap_or_default()
    } else {
        table(&calibration)
    });
    let path = calibration_file::save(&calibration)
        .map_err(|error| Failure::run(format!("the calibration cannot be saved: {error}")))?;
    note(&format!("saved: {}", path.display()));
    Ok(Code::Done)
}

/// Returns the relay's address if the bare loops support it: MQTT over plain TCP.
fn relay(text: &str) -> Result<String, Failure> {
    let endpoint = Endpoint::parse(text).map_err(Failure::usage)?;
    if endpoint.protocol != Protocol::Mqtt || endpoint.carrier != Carrier::Plain {
        return Err(Failure::usage(format!("--relay {text}: write mqtt://HOST:PORT, the endpoint of an MQTT broker")));
    }
    Ok(text.to_owned())
}

/// Returns a table of all figures with their units and meanings.
fn table(calibration: &Calibration) -> String {
    let machine = &calibration.machine;
    let mut lines = vec![
        format!(
            "{}, {} processors, kernel {}, pubmark {}{}",
            machine.processor.as_deref().unwrap_or("unknown processor"),
            machine.cores,
            machine.kernel.as_deref().unwrap_or("unknown"),
            machine.pubmark,
            if calibration.quick { ", quick: rough figures" } else { "" }
        ),
        String::new(),
    ];
    cost(calibration, &mut lines);
    unthrottled(calibration, &mut lines);
    wake(calibration, &mut lines);
    most(calibration, &mut lines);
    connections(calibration, &mut lines);
    lines.extend(calibration.remarks.iter().map(|remark| format!("remark: {remark}")));
    lines.join("\n")
}

fn lag(summary: Option<&Summary>) -> String {
    summary.map_or("-".into(), |lag| {
        format!("mean {}, p99 {}, max {}", time(lag.mean), time(lag.p99 as f64), time(lag.max as f64))
    })
}

fn cost(calibration: &Calibration, lines: &mut Vec<String>) {
    lines.push(format!(
        "Cost of a message through {} (CPU seconds per million messages, user and system; bare: a loop that does no more than the kernel asks for)",
        calibration.relay
    ));
    for cost in &calibration.cost {
        lines.push(format!(
            "  {} connections, {} msg/s, {}, quantum {}",
            cost.connections,
            count(cost.rate_per_s),
            bytes(cost.payload_bytes as f64),
            time(cost.quantum_ns as f64)
        ));
        for (what, figures) in [("send", &cost.send_cpu_s_per_million), ("receive", &cost.receive_cpu_s_per_million)] {
            let Compared { ours_median, bare_median, ratio, ours, .. } = figures;
            let runs = ours.len();
            lines.push(format!(
                "    {what:<8} agents {ours_median:>6.2}   bare {bare_median:>6.2}   ratio {ratio:.2}   (medians of {runs})"
            ));
        }
        let (send, receive) = (&cost.send_cpu_s_per_million, &cost.receive_cpu_s_per_million);
        let (ours, bare) = (send.ours_median + receive.ours_median, send.bare_median + receive.bare_median);
        if bare > 0.0 {
            let ratio = ours / bare;
            lines.push(format!("    together agents {ours:>6.2}   bare {bare:>6.2}   ratio {ratio:.2}"));
        }
        lines.push(format!("    send lag agents {}", lag(cost.ours_lag_ns.as_ref())));
        lines.push(format!("             bare   {}", lag(cost.bare_lag_ns.as_ref())));
    }
    lines.push(String::new());
}

fn unthrottled(calibration: &Calibration, lines: &mut Vec<String>) {
    lines.push("Unthrottled into a sink that throws everything away, one sender process".into());
    for one in &calibration.unthrottled {
        let (messages, volume) = (&one.messages_per_s, &one.bytes_per_s);
        lines.push(format!(
            "  {:<6} agents {}/s ({}/s)   bare {}/s ({}/s)   ratio {:.2}{}",
            bytes(one.payload_bytes as f64),
            count(messages.ours_median),
            bytes(volume.ours_median),
            count(messages.bare_median),
            bytes(volume.bare_median),
            messages.ratio,
            if one.pinned { "" } else { "   (not pinned: there is one processor)" }
        ));
    }
    lines.push(String::new());
}

fn wake(calibration: &Calibration, lines: &mut Vec<String>) {
    let wake = &calibration.wake;
    lines.push("Wake-ups: how late after 1 ms of sleep (contained in every lag and latency)".into());
    for (what, summary) in
        [("clock_nanosleep", &wake.nanosleep_ns), ("ppoll", &wake.ppoll_ns), ("a reader on loopback", &wake.reader_ns)]
    {
        let figures = summary.as_ref().map_or("-".into(), |late| {
            format!("p50 {}, p99 {}, max {}", time(late.p50 as f64), time(late.p99 as f64), time(late.max as f64))
        });
        lines.push(format!("  {what:<20} {figures}"));
    }
    lines.push(String::new());
}

fn most(calibration: &Calibration, lines: &mut Vec<String>) {
    let most = &calibration.most;
    lines.push(format!(
        "The most that one agent offers with a p99 lag of its own up to {} ({} connections, {}, {} event loops)",
        time(most.bound_ns as f64),
        most.connections,
        bytes(most.payload_bytes as f64),
        most.shards
    ));
    let missed = most.missed_per_s.map_or("no rate was missed".into(), |rate| format!("{}/s was missed", count(rate)));
    lines.push(format!("  {}/s; {missed}", count(most.per_s)));
    lines.push(String::new());
}

fn connections(calibration: &Calibration, lines: &mut Vec<String>) {
    lines.push("Idle connections".into());
    for one in &calibration.connections {
        lines.push(format!(
            "  {} of {} by {} agents in {:.2} s ({}/s), user memory {}",
            one.opened,
            one.wanted,
            one.agents,
            one.ramp_s,
            count(one.per_s),
            bytes(one.user_bytes as f64)
        ));
    }
    lines.push(format!("  one more takes {:.0} B of user memory", calibration.bytes_per_connection));
}
