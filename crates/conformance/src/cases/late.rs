//! Delays, silences and stops longer than a second: at the start of the window, in the middle and at its end. They are
//! played in parallel with the other cases.

use super::heard::{intended, last_arrival, latency, series, service, silent_for};
use super::lag::{own_lag, send_lag, window};
use super::scripts::{late_by, line, script};
use super::sent::{schedule, sent_series, sequences, totals};
use crate::bench::Bench;
use crate::case::{Case, of_sockets as case};
use crate::course::Stop;
use crate::figures::{longer, paused_for, read};
use crate::receiving::{Playback, Received};
use crate::sending::{ScriptOutcome, Sending};
use crate::tap::{MessageFlaw, ScriptedMessage};
use crate::wrong::{CaseFailure, due};
use pubmark_model::header::Header;
use pubmark_model::protocol::LedgerCounts;
use pubmark_model::units::{MILLISECOND, Ns, SECOND, format_time};

/// Stops in a window of 8.5 s, between two due times: the duration of a call belongs to the system.
const STOPS: &[Stop] = &[Stop::ms(111, 1_100), Stop::ms(2_011, 2_100), Stop::ms(5_011, 5_100)];

pub static STOPPED_SENDER: Sending = Sending {
    stops: STOPS,
    ..Sending::plain(
        "stopped for seconds",
        &[("pattern", "fan-out"), ("rate", "50"), ("duration", "8500ms"), ("drain", "3s")],
    )
};

pub static STOPPED_RECEIVER: Playback = Playback {
    stops: STOPS,
    window: 5..430,
    sent: 430,
    ..script("stopped for seconds", &[("pattern", "fan-out"), ("duration", "8500ms"), ("rate", "60")], every_20_ms)
};

pub static LATE: Playback = Playback {
    window: 5..5 + MESSAGES,
    sent: 5 + MESSAGES,
    ..script("late by seconds", &[("pattern", "fan-out"), ("duration", "6s")], late)
};

/// Silences of the window of [`LATE`], ns.
const SILENCES: [(Ns, Ns); 4] = [
    (0, 300 * MILLISECOND),
    (700 * MILLISECOND, 1_200 * MILLISECOND),
    (2_300 * MILLISECOND, 2_200 * MILLISECOND),
    (5_600 * MILLISECOND, 400 * MILLISECOND),
];

/// Interval of messages of [`LATE`] outside the silences.
const GAP: Ns = 10 * MILLISECOND;

/// Messages from the end of one silence to the start of the next, both included.
const MESSAGES: u64 = 41 + 41 + 111;

/// Delays of the messages after the last long silence, in turn: total delay, the sender's part of it, and the flaw in
/// their headers.
const LATENESS: [(Ns, Ns, MessageFlaw); 8] = [
    (0, 0, MessageFlaw::None),
    (1_200 * MILLISECOND, 0, MessageFlaw::None),
    (1_200 * MILLISECOND, 0, MessageFlaw::FreeTooLate),
    (1_250 * MILLISECOND, 0, MessageFlaw::FreeTooEarly),
    (2_500 * MILLISECOND, 1_100 * MILLISECOND, MessageFlaw::None),
    (4_400 * MILLISECOND, 0, MessageFlaw::None),
    (5_000 * MILLISECOND, 4_700 * MILLISECOND, MessageFlaw::None),
    (5_000 * MILLISECOND, 0, MessageFlaw::None),
];

fn late(_: u32) -> Vec<ScriptedMessage> {
    let warmup = (0..5).map(|sequence| 10 * MILLISECOND * sequence);
    let between = SILENCES.windows(2).flat_map(|two| {
        let (from, to) = (two[0].0 + two[0].1, two[1].0);
        (0..=(to - from) / GAP).map(move |number| 100 * MILLISECOND + from + number * GAP)
    });
    let one = |(at, sequence): (Ns, u32)| {
        let line = line(sequence, at);
        // Messages that could not have been due within the window come on time.
        let (late, own, flaw) = LATENESS[sequence as usize % LATENESS.len()];
        match at >= 100 * MILLISECOND + late && at > 4 * SECOND {
            true => ScriptedMessage { flaw, ..late_by(line, late, own) },
            false => line,
        }
    };
    warmup.chain(between).zip(0..).map(one).collect()
}

fn every_20_ms(_: u32) -> Vec<ScriptedMessage> {
    (0..430).map(|sequence| line(sequence, Ns::from(sequence) * 20 * MILLISECOND)).collect()
}

const SECONDS: &str = "stops of 1.1 s, 2.1 s and 5.1 s";

pub const CASES: &[Case] = &[
    case(
        "send-stopped-long",
        SECONDS,
        "nothing left out, all of the lag is its own, and as many pauses where it tells them",
        |bench| stopped_sender(bench, &*bench.sends(&STOPPED_SENDER)?),
    ),
    case(
        "receive-late",
        "messages that are late by up to 5 s, of which up to 4.7 s are their sender's; silences of up to 2.2 s",
        "every time of each, in its slice; the silences",
        |bench| late_messages(&*bench.receives(&LATE)?),
    ),
    case("receive-stopped-long", SECONDS, "nothing is lost, and what came meanwhile is late by it", |bench| {
        stopped_receiver(bench, &*bench.receives(&STOPPED_RECEIVER)?)
    }),
    case(
        "receive-progress",
        "messages for 6 s, with silences",
        "progress each second, with what was received",
        |bench| progress(&*bench.receives(&LATE)?),
    ),
];

fn stopped_sender(bench: &Bench<'_>, out: &ScriptOutcome) -> Result<(), CaseFailure> {
    schedule(out)?;
    sequences(out)?;
    totals(out)?;
    send_lag(out)?;
    own_lag(out)?;
    sent_series(out)?;
    let lag = |header: &Header| header.sent_ns.unwrap_or(0).saturating_sub(header.intended_ns);
    let headers = window(out);
    for (from_ns, to_ns) in &out.stopped {
        let within = |header: &&Header| (*from_ns..*to_ns).contains(&header.intended_ns);
        for header in headers.iter().filter(within) {
            let (lag, least) = (lag(header), *to_ns - header.intended_ns);
            due(lag >= least, || {
                format!(
                    "sequence {} fell due while it was stopped, {} before that was over; it says that it was {} late",
                    header.sequence,
                    format_time(least),
                    format_time(lag)
                )
            })?;
            // Hardly any of it belongs to the system: nothing blocked it.
            let own = header.own_lag_ns().unwrap_or(0);
            due(own >= lag - lag / 4 || lag < 100 * MILLISECOND, || {
                format!(
                    "sequence {} was late by {} since it was stopped, and calls {} of that its own lag",
                    header.sequence,
                    format_time(lag),
                    format_time(own)
                )
            })?;
        }
    }
    let (from, to) = out.window();
    paused_for(&bench.features, &out.agent, STOPS, to - from)
}

fn late_messages(received: &Received) -> Result<(), CaseFailure> {
    let wanted = LedgerCounts { expected: MESSAGES, delivered: MESSAGES, ..LedgerCounts::default() };
    let said = received.result.ledger;
    due(said == wanted, || format!("its ledger says {said:?}; due was {wanted:?}"))?;
    latency(received, &LATE)?;
    intended(received, &LATE)?;
    service(received, &LATE)?;
    series(received, &LATE)?;
    last_arrival(received, &LATE)?;
    silent_for(received, &SILENCES)
}

fn stopped_receiver(bench: &Bench<'_>, received: &Received) -> Result<(), CaseFailure> {
    let ledger = received.result.ledger;
    due((ledger.expected, ledger.delivered) == (425, 425), || {
        format!("425 messages were sent, and none was lost; it says {} of {}", ledger.delivered, ledger.expected)
    })?;
    let came = |went_ns: Ns| {
        let stop = received.stopped.iter().find(|(from, to)| (*from..*to).contains(&went_ns));
        stop.map_or(went_ns, |(_, to)| *to)
    };
    let sound = received.sound(&STOPPED_RECEIVER.window);
    let figures = &received.result.histograms;
    let intended = sound.iter().map(|said| came(said.went_ns).saturating_sub(said.due_ns));
    longer(
        "intended_latency",
        &read("intended_latency", figures.intended_latency.as_ref())?,
        intended,
        &received.late,
    )?;
    let service = sound.iter().map(|said| came(said.went_ns).saturating_sub(said.sent_ns));
    longer("service_latency", &read("service_latency", figures.service_latency.as_ref())?, service, &received.late)?;
    paused_for(&bench.features, &received.agent, STOPS, received.window_end() - received.window_ns())
}

fn progress(received: &Received) -> Result<(), CaseFailure> {
    due(received.progress.len() >= 4, || format!("in 6 s it said `progress` {} times", received.progress.len()))?;
    for (at_ns, said) in &received.progress {
        let by = |at: Ns| received.said[0].iter().filter(|said| said.went_ns <= at).count() as u64;
        let (least, most) = (by(at_ns.saturating_sub(SECOND)), by(*at_ns));
        due((least..=most).contains(&said.received), || {
            format!("a `progress` says {} received, when it was {most} and a second before {least}", said.received)
        })?;
    }
    Ok(())
}
