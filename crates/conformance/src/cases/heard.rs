//! What the agent makes of what it hears.

use super::killed::half_came;
use crate::bench::Bench;
use crate::case::{Case, of_sockets as case};
use crate::figures::{SLACK, STOP, holds, paused, read};
use crate::receiving::{Playback, Received};
use crate::sending::AHEAD_NS;
use crate::tap::{Flaw, Line};
use crate::wrong::{Wrong, due};
use pubmark_model::protocol::{LedgerCounts, PackedHistogram};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use std::time::Duration;

/// Messages before the window, and all of them.
const WARMUP: u32 = 50;
const ALL: u32 = 250;

/// Of each message that is late on purpose: how late, and how much of it is the
/// sender's own.
const LATE: Ns = 200 * MILLISECOND;
const OWN: Ns = 80 * MILLISECOND;
const STEP: Ns = 10 * MILLISECOND;

/// When message `sequence` is due: within the warm-up, or within the window.
fn due_at(sequence: u32) -> Ns {
    match sequence.checked_sub(WARMUP) {
        None => Ns::from(sequence) * 2 * MILLISECOND,
        Some(of_window) => 100 * MILLISECOND + Ns::from(of_window) * 19 * MILLISECOND / 10,
    }
}

fn line(sequence: u32) -> Line {
    let at = due_at(sequence);
    Line { at, due: at, own: 0, sequence, flaw: Flaw::None, ahead: 0 }
}

fn plain(_: u32) -> Vec<Line> {
    (0..ALL).map(line).collect()
}

/// Each late by 200 ms, every other by 10 ms more; 80 ms of it are its sender's.
fn late(_: u32) -> Vec<Line> {
    let late = |line: Line| {
        let more = if line.sequence.is_multiple_of(2) { 0 } else { STEP };
        let due = if line.sequence < WARMUP { line.due } else { line.due + STEP - more };
        Line { at: line.at + LATE + STEP, due, own: OWN, ..line }
    };
    (0..ALL).map(line).map(late).collect()
}

fn flawed(_: u32) -> Vec<Line> {
    let mut lines = Vec::new();
    for line in (0..ALL).map(line) {
        match line.sequence {
            // Lost.
            60 | 61 | 100 | 249 => {}
            // Twice, and three times.
            70 => lines.extend([line; 2]),
            80 => lines.extend([line; 3]),
            // Behind the one that follows.
            90 | 120 => {}
            91 | 121 => lines.extend([line, Line { at: line.at, ..self::line(line.sequence - 1) }]),
            130 => lines.extend([line, Line { flaw: Flaw::Short, ..line }]),
            140 => lines.extend([line, Line { flaw: Flaw::Publisher, ..line }]),
            // A number that its publisher never gave away.
            248 => lines.extend([line, Line { sequence: ALL + 7, due: 520 * MILLISECOND, ..line }]),
            _ => lines.push(line),
        }
    }
    lines
}

fn spoilt(_: u32) -> Vec<Line> {
    let flaw = |line: Line| match line.sequence {
        100 | 101 => Line { flaw: Flaw::Body, ..line },
        _ => line,
    };
    (0..ALL).map(line).map(flaw).collect()
}

/// A silence of 500 ms in a window of 1,200 ms.
fn silence(_: u32) -> Vec<Line> {
    let at = |sequence: u32| match sequence {
        0..WARMUP => Ns::from(sequence) * 2 * MILLISECOND,
        WARMUP..150 => 100 * MILLISECOND + Ns::from(sequence - WARMUP) * 3 * MILLISECOND,
        _ => 900 * MILLISECOND + Ns::from(sequence - 150) * 3 * MILLISECOND,
    };
    (0..ALL).map(|sequence| Line { at: at(sequence), due: at(sequence), ..line(sequence) }).collect()
}

/// A message every 6 ms, throughout a window of 1,200 ms.
fn steady(_: u32) -> Vec<Line> {
    let at = |sequence: u32| match sequence.checked_sub(WARMUP) {
        None => Ns::from(sequence) * 2 * MILLISECOND,
        Some(of_window) => 100 * MILLISECOND + Ns::from(of_window) * 6 * MILLISECOND,
    };
    (0..ALL).map(|sequence| Line { at: at(sequence), due: at(sequence), ..line(sequence) }).collect()
}

fn without_the_last(_: u32) -> Vec<Line> {
    (0..ALL - 1).map(line).collect()
}

const fn script(
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
    lines: fn(u32) -> Vec<Line>,
) -> Playback {
    Playback {
        name,
        settings,
        lines,
        window: WARMUP as u64..ALL as u64,
        sent: ALL as u64,
        stopped: Duration::ZERO,
        killed: false,
        ends: true,
        ahead_ns: 0,
    }
}

static KNOWN: Playback = script("known delays", &[("pattern", "fan-out")], late);
static AHEAD: Playback = Playback { ahead_ns: AHEAD_NS, ..script("a clock ahead", &[("pattern", "fan-out")], late) };
static FLAWED: Playback = script("flaws", &[("pattern", "fan-out"), ("verify", "header")], flawed);
static SPOILT: Playback = script("bodies", &[("pattern", "fan-out"), ("verify", "full")], spoilt);
static SHORT: Playback = script("16 bytes", &[("pattern", "fan-out"), ("payload", "16B")], late);
static TWO: Playback = script("two publishers", &[("pattern", "fan-in"), ("publishers", "2")], plain);
static PIPELINE: Playback = script("a pipeline", &[("pattern", "pipeline")], plain);
static SILENCE: Playback = script("a silence", &[("pattern", "fan-out"), ("duration", "1200ms")], silence);
static UNMARKED: Playback = Playback { ends: false, ..script("no end markers", &[("pattern", "fan-out")], plain) };
static MARKED: Playback = script("the last is lost", &[("pattern", "fan-out")], without_the_last);
static DEADLINE: Playback = Playback {
    ends: false,
    ..script("the last is lost without a word", &[("pattern", "fan-out"), ("drain", "1s")], without_the_last)
};
static ECHO: Playback = script("requests", &[("pattern", "request-reply"), ("pairs", "2")], plain);
static STOPPED: Playback =
    Playback { stopped: STOP, ..script("stopped", &[("pattern", "fan-out"), ("duration", "1200ms")], steady) };
static COUNTED: Playback =
    script("a count at max", &[("pattern", "fan-out"), ("rate", "max"), ("count", "200")], plain);
/// Killed in the silence: a hundred messages of the window have come, a hundred follow.
static KILLED: Playback =
    Playback { killed: true, ..script("killed", &[("pattern", "fan-out"), ("duration", "1200ms")], silence) };

const DELAYED: &str = "messages that are 200 or 210 ms late, 80 ms of it their sender's own";
const FLAWS: &str = "messages of which some are lost, come twice, in another order, too short or foreign";

pub const CASES: &[Case] = &[
    case("receive", DELAYED, "a conversation in order, to its end", |bench| bench.receives(&KNOWN).map(drop)),
    case(
        "receive-ready",
        "the same; two publishers, of which one sends no probe yet",
        "not ready before each was heard",
        |bench| {
            for script in [&KNOWN, &TWO] {
                if let Some(early) = &bench.receives(script)?.early {
                    return Err(Wrong::did(format!("a publisher had sent no probe yet: {early}")));
                }
            }
            Ok(())
        },
    ),
    case("receive-counts", "the same", "200 expected, 200 delivered, nothing else", |bench| {
        ledger(&*bench.receives(&KNOWN)?, LedgerCounts { expected: 200, delivered: 200, ..LedgerCounts::default() })
    }),
    case("receive-latency", "the same", "latency: arrival − intended − own lag", |bench| {
        let received = bench.receives(&KNOWN)?;
        truth(&received, "latency", received.result.histograms.latency.as_ref(), |said| {
            said.sent_ns - said.due_ns - said.own_ns
        })
    }),
    case("receive-intended", "the same", "intended_latency: arrival − intended", |bench| {
        let received = bench.receives(&KNOWN)?;
        truth(&received, "intended_latency", received.result.histograms.intended_latency.as_ref(), |said| {
            said.sent_ns - said.due_ns
        })
    }),
    case("receive-service", "the same", "service_latency: arrival − sent", |bench| {
        let received = bench.receives(&KNOWN)?;
        truth(&received, "service_latency", received.result.histograms.service_latency.as_ref(), |_| 0)
    }),
    case(
        "receive-clock-offset",
        "clock_offset_ns of an hour, and messages whose instants are that much ahead",
        "latency: as if there were one clock",
        |bench| {
            let received = bench.receives(&AHEAD)?;
            truth(&received, "latency", received.result.histograms.latency.as_ref(), |said| {
                said.sent_ns - said.due_ns - said.own_ns
            })
        },
    ),
    case("receive-jitter", "the same", "a mean difference of 10 ms between one latency and the next", jitter),
    case("receive-arrived", "the same", "arrived: what came within the window's time, whenever it was due", arrived),
    case("receive-series", "the same", "counts and latencies by the slice of their arrival", series),
    case("receive-empty", "the same", "nothing sent: no lag and no publishers", empty),
    case("receive-losses", FLAWS, "four of 200 missing, and three arrivals that are no message", |bench| {
        let received = bench.receives(&FLAWED)?;
        let ledger = received.result.ledger;
        due((ledger.expected, ledger.delivered) == (200, 196), || {
            format!("200 were expected and 196 came; it says {} and {}", ledger.expected, ledger.delivered)
        })
    }),
    case("receive-duplicates", FLAWS, "three arrivals beyond the first", |bench| {
        counted(bench, "duplicated", 3, |ledger| ledger.duplicated)
    }),
    case("receive-reordered", FLAWS, "two behind a later one", |bench| {
        counted(bench, "reordered", 2, |ledger| ledger.reordered)
    }),
    case("receive-foreign", FLAWS, "three corrupted ones that are no known message", |bench| {
        counted(bench, "corrupted", 3, |ledger| ledger.corrupted)?;
        counted(bench, "unidentified", 3, |ledger| ledger.unidentified)
    }),
    case(
        "receive-flawed-latency",
        FLAWS,
        "a latency for the first arrival of each message, and for no other",
        |bench| {
            let received = bench.receives(&FLAWED)?;
            let histogram = read("latency", received.result.histograms.latency.as_ref())?;
            crate::figures::counts("latency", &histogram, 196)
        },
    ),
    case(
        "receive-bodies",
        "two messages whose body was changed, verify full",
        "two corrupted, without a latency",
        |bench| {
            let received = bench.receives(&SPOILT)?;
            let wanted = LedgerCounts { expected: 200, delivered: 200, corrupted: 2, ..LedgerCounts::default() };
            ledger(&received, wanted)?;
            crate::figures::counts("latency", &read("latency", received.result.histograms.latency.as_ref())?, 198)
        },
    ),
    case("receive-short", "messages of 16 bytes", "latency: arrival − intended; no service latency", |bench| {
        let received = bench.receives(&SHORT)?;
        let service = received.result.histograms.service_latency.as_ref();
        due(service.is_none(), || "it has a `service_latency` of messages that do not say when they were sent".into())?;
        truth(&received, "latency", received.result.histograms.latency.as_ref(), |said| said.sent_ns - said.due_ns)
    }),
    case("receive-two", "two publishers, one subscriber", "the messages of both", |bench| {
        ledger(&*bench.receives(&TWO)?, LedgerCounts { expected: 400, delivered: 400, ..LedgerCounts::default() })
    }),
    case("receive-silence", "a silence of 500 ms", "one stall, as long as that, when it was", stall),
    case(
        "receive-stopped",
        "a process that is stopped for 400 ms",
        "nothing is lost, what came meanwhile is late, and a pause where it tells them",
        stopped,
    ),
    case(
        "receive-max",
        "a count of 200 at max",
        "a window without an end: all of it arrived, in slices of 1 s, and without a latency",
        counted_at_max,
    ),
    case("receive-crash", "crash in a silence", "nothing is heard any more, and the books are what came", killed),
    case("drain-complete", "all messages, and no end marker", "drained at once: nothing is missing", |bench| {
        drained(bench, &UNMARKED, |after| after < Duration::from_millis(1_500), "nothing was missing")
    }),
    case("drain-marked", "the last message is lost, end markers come", "drained before the deadline of 2 s", |bench| {
        drained(bench, &MARKED, |after| after < Duration::from_millis(1_500), "the end markers had come")
    }),
    case(
        "drain-deadline",
        "the last message is lost, no end marker comes",
        "drained at the deadline, after 1 s",
        |bench| drained(bench, &DEADLINE, |after| after > Duration::from_millis(900), "a message was missing"),
    ),
    case("receive-pipeline", "a pipeline", "expected 0, and a bit for each message that came", |bench| {
        let received = bench.receives(&PIPELINE)?;
        ledger(&received, LedgerCounts { delivered: 200, ..LedgerCounts::default() })?;
        let seen = received.result.seen.iter().find(|seen| seen.publisher == 0);
        let bits = seen.and_then(|seen| seen.read(u64::from(ALL)));
        let ones = bits.map(|bits| bits.iter().map(|byte| byte.count_ones()).sum::<u32>());
        due(ones == Some(ALL), || format!("`seen` has {ones:?} bits set; {ALL} messages came"))
    }),
    case("reply", "requests", "each comes back as it is", echo),
];

fn ledger(received: &Received, wanted: LedgerCounts) -> Result<(), Wrong> {
    let said = received.result.ledger;
    due(said == wanted, || format!("its ledger says {said:?}; due was {wanted:?}"))
}

fn counted(bench: &Bench<'_>, name: &str, wanted: u64, of: fn(&LedgerCounts) -> u64) -> Result<(), Wrong> {
    let said = of(&bench.receives(&FLAWED)?.result.ledger);
    due(said == wanted, || format!("`{name}` is {said}, and there were {wanted}"))
}

/// A histogram holds what was said of each message of the window.
fn truth(
    received: &Received,
    name: &str,
    packed: Option<&PackedHistogram>,
    of: fn(&crate::tap::SentLine) -> Ns,
) -> Result<(), Wrong> {
    let truth: Vec<Ns> = received.sound(&KNOWN.window).iter().map(of).collect();
    holds(name, &read(name, packed)?, &truth, SLACK)
}

fn jitter(bench: &Bench<'_>) -> Result<(), Wrong> {
    let result = &bench.receives(&KNOWN)?.result;
    due((198..=200).contains(&result.jitter_pairs), || {
        format!("`jitter_pairs` is {} of 200 messages in their order", result.jitter_pairs)
    })?;
    let mean = result.jitter_sum_ns / result.jitter_pairs as f64;
    let (least, most) = (0.8 * STEP as f64, (STEP + SLACK) as f64);
    due((least..=most).contains(&mean), || {
        format!("each message was 10 ms later or earlier than the one before it; its mean of that is {mean:.0} ns")
    })
}

fn arrived(bench: &Bench<'_>) -> Result<(), Wrong> {
    let received = bench.receives(&KNOWN)?;
    let (from, to) = (received.start_ns + received.workload.warmup_ns, received.window_end());
    let by = |to: Ns| received.said[0].iter().filter(|said| (from..to).contains(&said.sent_ns)).count() as u64;
    let said = received.result.arrived;
    due((by(to - SLACK)..=by(to)).contains(&said), || {
        format!(
            "`arrived` is {said}; {} messages were sent within the window's time, {} of them well before its end",
            by(to),
            by(to - SLACK)
        )
    })
}

fn series(bench: &Bench<'_>) -> Result<(), Wrong> {
    let received = bench.receives(&KNOWN)?;
    let series = &received.result.series;
    let slice = received.workload.slice_ns();
    due(series.slice_ns == slice, || format!("`slice_ns` is {}, not {slice}", series.slice_ns))?;
    let slices = received.workload.window_ns().unwrap_or(0).div_ceil(slice) as usize;
    due(series.delivered.len() == slices, || {
        format!("`series.delivered` has {} slices; the window has {slices}", series.delivered.len())
    })?;
    due(series.latency.len() == slices, || {
        format!("`series.latency` has {} slices, not {slices}", series.latency.len())
    })?;
    // A message of the window comes 200 ms after it was due: none in the first half.
    let half = slices / 2;
    let (before, after): (u64, u64) = (series.delivered[..half].iter().sum(), series.delivered[half..].iter().sum());
    let to = received.window_end();
    let by = |to: Ns| received.sound(&KNOWN.window).iter().filter(|said| said.sent_ns < to).count() as u64;
    due((by(to - SLACK)..=by(to)).contains(&(after + before)) || before > 0 && after >= by(to - SLACK), || {
        format!(
            "`series.delivered` counts {} messages; {} of the window's were sent within its time",
            before + after,
            by(to)
        )
    })?;
    for (at, packed) in series.latency.iter().enumerate().filter_map(|(at, packed)| Some((at, packed.as_ref()?))) {
        let histogram = packed.read(PackedHistogram::SLICE_DIGITS);
        let histogram = histogram.map_err(|error| Wrong::did(format!("`series.latency[{at}]`: {error}")))?;
        let count = histogram.count();
        due(count <= series.delivered[at], || {
            format!("`series.latency[{at}]` holds {count} values, of {} messages", series.delivered[at])
        })?;
        due(histogram.value_at(0.5) >= (LATE - OWN) * 9 / 10, || {
            format!(
                "`series.latency[{at}]` has a median of {} ns; each message took 120 ms at least",
                histogram.value_at(0.5)
            )
        })?;
    }
    let held = series.latency.iter().flatten().count();
    due(held > 0 || by(to - SLACK) == 0, || "`series.latency` is empty in every slice".into())
}

fn empty(bench: &Bench<'_>) -> Result<(), Wrong> {
    let result = &bench.receives(&KNOWN)?.result;
    due(result.histograms.send_lag.is_none() && result.histograms.own_lag.is_none(), || {
        "it has a lag of sending, and sent nothing".into()
    })?;
    due(result.publishers.is_empty(), || format!("it has no publisher, and says {:?}", result.publishers))
}

fn stall(bench: &Bench<'_>) -> Result<(), Wrong> {
    let received = bench.receives(&SILENCE)?;
    let Some(stalls) = received.result.stalls else { return Ok(()) };
    // From the last message before it, 297 ms into the window, to the first after it.
    let (longest, at) = (503 * MILLISECOND, 297 * MILLISECOND);
    due(stalls.count >= 1 && stalls.longest_ns.abs_diff(longest) < SLACK, || {
        format!("there was a silence of 503 ms; `stalls` says {} of {} ns at most", stalls.count, stalls.longest_ns)
    })?;
    due(stalls.longest_at_ns.abs_diff(at) < SLACK, || {
        format!("the silence began 297 ms into the window; `longest_at_ns` is {}", stalls.longest_at_ns)
    })
}

fn stopped(bench: &Bench<'_>) -> Result<(), Wrong> {
    let received = bench.receives(&STOPPED)?;
    let ledger = received.result.ledger;
    due((ledger.expected, ledger.delivered) == (200, 200), || {
        format!("200 messages were sent, and none was lost; it says {} of {}", ledger.delivered, ledger.expected)
    })?;
    let histograms = &received.result.histograms;
    let latency = read("latency", histograms.latency.as_ref())?;
    due(latency.max() >= 300 * MILLISECOND, || {
        format!(
            "a message came every 6 ms while it was stopped for 400 ms; the greatest `latency` is {} ms",
            latency.max() / MILLISECOND
        )
    })?;
    if histograms.receive_lag.is_some() {
        let lag = read("receive_lag", histograms.receive_lag.as_ref())?;
        crate::figures::counts("receive_lag", &lag, latency.count())?;
    }
    paused(&bench.features, &received.agent)
}

fn counted_at_max(bench: &Bench<'_>) -> Result<(), Wrong> {
    let received = bench.receives(&COUNTED)?;
    let result = &received.result;
    ledger(&received, LedgerCounts { expected: 200, delivered: 200, ..LedgerCounts::default() })?;
    due(result.arrived == 200, || format!("`arrived` is {}, and the window had 200 messages", result.arrived))?;
    let (series, delivered) = (&result.series, result.series.delivered.iter().sum::<u64>());
    due((series.slice_ns, delivered) == (SECOND, 200), || {
        format!("`series` has {delivered} of 200 messages, in slices of {} ns, not 1 s", series.slice_ns)
    })?;
    due(result.histograms.latency.is_none(), || "it has a `latency` at `max`, where nothing is due".into())?;
    // Who looks at the clock only now and then knows it by what the message says.
    let last_ns = received.said[0].last().map_or(0, |said| said.due_ns);
    let said = result.last_arrival_ns.unwrap_or_default();
    due((last_ns..=last_ns + SECOND).contains(&said), || {
        format!("the last message says that it was sent at {last_ns}; `last_arrival_ns` is {said}")
    })
}

fn killed(bench: &Bench<'_>) -> Result<(), Wrong> {
    let received = bench.receives(&KILLED)?;
    half_came(&received.result, received.drained_after, 103 * MILLISECOND)
}

fn drained(bench: &Bench<'_>, script: &'static Playback, good: fn(Duration) -> bool, why: &str) -> Result<(), Wrong> {
    let after = bench.receives(script)?.drained_after;
    due(good(after), || format!("{why}, and it said `drained` {} ms after `drain`", after.as_millis()))
}

fn echo(bench: &Bench<'_>) -> Result<(), Wrong> {
    let received = bench.receives(&ECHO)?;
    for (requester, (said, back)) in received.said.iter().zip(&received.back).enumerate() {
        // The first that came back is the probe.
        let back: Vec<_> = back.iter().filter_map(|heard| heard.header).filter(|h| h.sequence < ALL).collect();
        due(back.len() == said.len(), || {
            format!("requester {requester} asked {} times and was answered {} times", said.len(), back.len())
        })?;
        for (said, back) in said.iter().zip(&back) {
            let wanted = (said.due_ns, requester as u32, said.line.sequence, Some(said.sent_ns));
            due((back.intended_ns, back.publisher, back.sequence, back.sent_ns) == wanted, || {
                format!("the reply to request {} is another message", said.line.sequence)
            })?;
        }
    }
    let body = pubmark_model::header::pattern(received.workload.payload_bytes as usize);
    let changed = received.back.iter().flatten().find(|heard| heard.bytes.get(32..) != body.get(32..));
    due(changed.is_none(), || "the body of a reply is not that of its request".into())
}
