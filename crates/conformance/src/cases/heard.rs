//! Results of the agent for received messages.

use super::killed::half_came;
use super::scripts::*;
use crate::bench::Bench;
use crate::case::{Case, of_sockets as case};
use crate::figures::{TimeDue, apart, holds, paused, read};
use crate::receiving::{Playback, Received};
use crate::tap::SentLine;
use crate::wrong::{CaseFailure, due};
use pubmark_model::protocol::{LedgerCounts, PackedHistogram};
use pubmark_model::units::{MILLISECOND, Ns, SECOND, format_time};
use pubmark_model::workload::{Pattern, Transport};
use pubmark_stats::Histogram;
use std::ops::RangeInclusive;
use std::time::Duration;

const DELAYED: &str = "messages that are 200 or 240 ms late, 80 or 20 ms of it their sender's own";
const FLAWS: &str =
    "messages of which some are lost, come twice, in another order, too short, too long, foreign, too old or too new";

pub const CASES: &[Case] = &[
    case("receive", DELAYED, "a conversation in order, to its end", |bench| bench.receives(&KNOWN).map(drop)),
    case(
        "receive-ready",
        "the same; two publishers, of which one sends no probe yet",
        "not ready before each was heard",
        |bench| {
            for script in [&KNOWN, &TWO] {
                if let Some(early) = &bench.receives(script)?.early {
                    return Err(CaseFailure::did(format!("a publisher had sent no probe yet: {early}")));
                }
            }
            Ok(())
        },
    ),
    case("receive-counts", "the same", "200 expected, 200 delivered, nothing else", |bench| {
        ledger(&*bench.receives(&KNOWN)?, LedgerCounts { expected: 200, delivered: 200, ..LedgerCounts::default() })
    }),
    case("receive-latency", "the same", "latency: arrival − intended − own lag", |bench| {
        latency(&*bench.receives(&KNOWN)?, &KNOWN)
    }),
    case("receive-intended", "the same", "intended_latency: arrival − intended", |bench| {
        intended(&*bench.receives(&KNOWN)?, &KNOWN)
    }),
    case("receive-service", "the same", "service_latency: arrival − sent", |bench| {
        service(&*bench.receives(&KNOWN)?, &KNOWN)
    }),
    case(
        "receive-apart",
        "the same",
        "times that are as far apart as the messages say: intended_latency, latency and service_latency",
        |bench| all_apart(&*bench.receives(&KNOWN)?, &KNOWN),
    ),
    case(
        "receive-clock-offset",
        "clock_offset_ns of an hour, and of −10 s, and messages whose instants are that much ahead",
        "all times: as if there were one clock",
        |bench| {
            for script in [&AHEAD, &BEHIND] {
                let received = bench.receives(script)?;
                all_times(&received, script)?;
            }
            Ok(())
        },
    ),
    case("receive-jitter", "the same", "a mean difference of 100 ms between one latency and the next", jitter),
    case(
        "receive-gaps",
        "three publishers, each late in its own way, of whose messages every tenth is lost",
        "every time of each; jitter of each by itself, and none over a gap",
        across_gaps,
    ),
    case("receive-arrived", "the same", "arrived: what came within the window's time, whenever it was due", arrived),
    case("receive-series", "the same", "counts and latencies by the slice of their arrival", |bench| {
        series(&*bench.receives(&KNOWN)?, &KNOWN)
    }),
    case("receive-last", "the same", "last_arrival_ns: when the last message of the window came", |bench| {
        last_arrival(&*bench.receives(&KNOWN)?, &KNOWN)
    }),
    case("receive-empty", "the same", "nothing sent: no lag and no publishers", empty),
    case("receive-losses", FLAWS, "four of 200 missing", |bench| {
        let received = bench.receives(&FLAWED)?;
        let ledger = received.result.ledger;
        due((ledger.expected, ledger.delivered) == (200, 196), || {
            format!("200 were expected and 196 came; it says {} and {}", ledger.expected, ledger.delivered)
        })
    }),
    case("receive-duplicates", FLAWS, "three arrivals of the window beyond the first", |bench| {
        counted(bench, "duplicated", 3, |ledger| ledger.duplicated)
    }),
    case("receive-reordered", FLAWS, "three behind a later one", |bench| {
        counted(bench, "reordered", 3, |ledger| ledger.reordered)
    }),
    case("receive-foreign", FLAWS, "eight corrupted ones that are no known message", |bench| {
        counted(bench, "corrupted", 8, |ledger| ledger.corrupted)?;
        counted(bench, "unidentified", 8, |ledger| ledger.unidentified)?;
        // A stream of these sockets ends at the announcement of a message that is too long.
        if bench.driver == "kernel" {
            return Ok(());
        }
        let wanted = LedgerCounts { expected: 200, delivered: 200, corrupted: 1, unidentified: 1, ..none() };
        ledger(&*bench.receives(&LONGER)?, wanted)
    }),
    case("receive-negative", FLAWS, "one that came before it was due, without a latency", |bench| {
        counted(bench, "negative", 1, |ledger| ledger.negative)
    }),
    case(
        "receive-flawed-latency",
        FLAWS,
        "a latency for the first arrival of each message that was due by then, and for no other",
        |bench| {
            let received = bench.receives(&FLAWED)?;
            let histogram = read("latency", received.result.histograms.latency.as_ref())?;
            crate::figures::counts("latency", &histogram, 195)
        },
    ),
    case("receive-flawed-arrived", FLAWS, "arrived: each message once", |bench| {
        let received = bench.receives(&FLAWED)?;
        // Warm-up messages arrived long before the window, unless the machine delayed them.
        let arrived = received.result.arrived;
        due(arrived == 196 || received.late.at(1.0) > 30 * MILLISECOND && arrived > 150, || {
            format!("`arrived` is {arrived}: 196 messages came in the window, some of them more than once")
        })
    }),
    case(
        "receive-bodies",
        "messages whose body was changed, verify full: at every part of it, and of 200 KiB",
        "each of the window corrupted, without a latency",
        changed,
    ),
    case(
        "receive-part",
        "pairs of which it plays the last two of three; a message in the name of the first",
        "those two, and one that is not a known message to each",
        |bench| {
            let wanted = LedgerCounts { expected: 400, delivered: 400, corrupted: 2, unidentified: 2, ..none() };
            ledger(&*bench.receives(&PART)?, wanted)
        },
    ),
    case("receive-many", "70,000 messages as fast as they come", "all of them, each with its times", all_of_many),
    case(
        "receive-short",
        "messages of 16 bytes, and of 28",
        "latency: arrival − intended; no service latency of those of 16",
        short,
    ),
    case("receive-two", "two publishers, one subscriber", "the messages of both", |bench| {
        ledger(&*bench.receives(&TWO)?, LedgerCounts { expected: 400, delivered: 400, ..LedgerCounts::default() })
    }),
    case(
        "receive-silence",
        "silences of 150 to 503 ms",
        "as many stalls, the longest with its length and instant",
        stalls,
    ),
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
        if bench.features.drains_by_markers {
            return Err(CaseFailure::NotTried("by its `hello` its drain ends with end markers".into()));
        }
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
    case(
        "drain-follows",
        "messages that come after `drain`, of one of two publishers; the other's end markers have come",
        "drained when they are there, and all delivered",
        |bench| {
            let received = bench.receives(&FOLLOWS)?;
            ledger(&received, LedgerCounts { expected: 400, delivered: 400, duplicated: 40, ..none() })
        },
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

fn ledger(received: &Received, wanted: LedgerCounts) -> Result<(), CaseFailure> {
    let said = received.result.ledger;
    due(said == wanted, || format!("its ledger says {said:?}; due was {wanted:?}"))
}

fn counted(bench: &Bench<'_>, name: &str, wanted: u64, of: fn(&LedgerCounts) -> u64) -> Result<(), CaseFailure> {
    let said = of(&bench.receives(&FLAWED)?.result.ledger);
    due(said == wanted, || format!("`{name}` is {said}, and there were {wanted}"))
}

fn none() -> LedgerCounts {
    LedgerCounts::default()
}

/// Checks that a histogram holds the header's value of each message of the window.
fn truth(
    received: &Received,
    script: &Playback,
    (name, packed): (&str, Option<&PackedHistogram>),
    of: fn(&SentLine) -> Ns,
) -> Result<(), CaseFailure> {
    let due = |said: &SentLine| {
        let said_ns = of(said);
        TimeDue { said_ns, least_ns: said_ns + (said.went_ns - said.sent_ns) }
    };
    let truth: Vec<TimeDue> = received.sound(&script.window).iter().map(due).collect();
    holds(name, &read(name, packed)?, &truth, &received.late)
}

pub fn latency(received: &Received, script: &Playback) -> Result<(), CaseFailure> {
    let packed = received.result.histograms.latency.as_ref();
    truth(received, script, ("latency", packed), |said| said.sent_ns - said.due_ns - said.own_ns)
}

pub fn intended(received: &Received, script: &Playback) -> Result<(), CaseFailure> {
    let packed = received.result.histograms.intended_latency.as_ref();
    truth(received, script, ("intended_latency", packed), |said| said.sent_ns - said.due_ns)
}

pub fn service(received: &Received, script: &Playback) -> Result<(), CaseFailure> {
    truth(received, script, ("service_latency", received.result.histograms.service_latency.as_ref()), |_| 0)
}

/// Checks that the three times differ by what the messages' headers say, whatever their transit took.
pub fn all_apart(received: &Received, script: &Playback) -> Result<(), CaseFailure> {
    let figures = &received.result.histograms;
    let latency = read("latency", figures.latency.as_ref())?;
    let intended = read("intended_latency", figures.intended_latency.as_ref())?;
    let service = read("service_latency", figures.service_latency.as_ref())?;
    let sound = received.sound(&script.window);
    let mean = |of: fn(&SentLine) -> Ns| sound.iter().map(of).sum::<Ns>() as f64 / sound.len().max(1) as f64;
    let late = mean(|said| said.sent_ns - said.due_ns);
    apart(("intended_latency", &intended), ("service_latency", &service), late)?;
    apart(("intended_latency", &intended), ("latency", &latency), mean(|said| said.own_ns))
}

pub fn all_times(received: &Received, script: &Playback) -> Result<(), CaseFailure> {
    latency(received, script)?;
    intended(received, script)?;
    service(received, script)?;
    all_apart(received, script)
}

/// Checks the mean difference between latencies; the transit time is in both of a pair.
fn jitter_is(received: &Received, pairs: u64, wanted: Ns) -> Result<(), CaseFailure> {
    let result = &received.result;
    // The window's first message may follow the last of the warm-up.
    due(result.jitter_pairs.abs_diff(pairs) <= 1, || {
        format!("`jitter_pairs` is {}; {pairs} messages came behind the one before them", result.jitter_pairs)
    })?;
    let service = read("service_latency", result.histograms.service_latency.as_ref())?.mean();
    let mean = result.jitter_sum_ns / result.jitter_pairs.max(1) as f64;
    let allowed = 2.0 * service + wanted as f64 / 100.0 + 200_000.0;
    let allowed = if wanted > 0 { allowed.min(0.4 * wanted as f64) } else { allowed };
    due((mean - wanted as f64).abs() <= allowed, || {
        format!(
            "latencies differ from that before by {} at the mean; by its `jitter_sum_ns` it is {mean:.0} ns",
            format_time(wanted)
        )
    })
}

fn jitter(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    jitter_is(&*bench.receives(&KNOWN)?, 199, LATENCY[1] - LATENCY[0])
}

fn across_gaps(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let received = bench.receives(&GAPS)?;
    ledger(&received, LedgerCounts { expected: 600, delivered: 540, ..none() })?;
    all_times(&received, &GAPS)?;
    // For each publisher eight of nine between two gaps, twenty times.
    jitter_is(&received, 480, 0)
}

fn changed(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let received = bench.receives(&SPOILT)?;
    let count = SPOILT_AT.len() as u64;
    ledger(&received, LedgerCounts { expected: 200, delivered: 200, corrupted: count, ..none() })?;
    let latency = read("latency", received.result.histograms.latency.as_ref())?;
    crate::figures::counts("latency", &latency, 200 - count)?;
    let (arrived, came) =
        (received.result.arrived, went(&received, &all(&received), received.window_ns(), received.window_end()));
    due(came.contains(&arrived), || {
        format!("`arrived` is {arrived}; {came:?} messages came, changed ones among them")
    })?;
    let late = latency.nonzero().filter(|(value, _)| *value >= SPOILT_LATE * 999 / 1_000).map(|(_, count)| count);
    let late = late.sum::<u64>();
    due(late < count / 2, || {
        format!("{count} messages were changed, and 90 ms late; `latency` has {late} values of 90 ms and more")
    })?;
    if bench.transport == Some(Transport::Udp) {
        return Ok(());
    }
    let received = bench.receives(&LARGE)?;
    ledger(&received, LedgerCounts { expected: 24, delivered: 24, corrupted: 8, ..none() })
}

fn short(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let received = bench.receives(&SHORT)?;
    let service_of = received.result.histograms.service_latency.as_ref();
    due(service_of.is_none(), || "it has a `service_latency` of messages that do not say when they were sent".into())?;
    let whole = |received: &Received, script| {
        let packed = received.result.histograms.latency.as_ref();
        truth(received, script, ("latency", packed), |said| said.sent_ns - said.due_ns)
    };
    whole(&received, &SHORT)?;
    let received = bench.receives(&MIDDLE)?;
    ledger(&received, LedgerCounts { expected: 200, delivered: 200, corrupted: 1, ..none() })?;
    whole(&received, &MIDDLE)?;
    service(&received, &MIDDLE)
}

fn all_of_many(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    if bench.transport == Some(Transport::Udp) {
        return Err(CaseFailure::NotTried("udp loses what comes too fast".into()));
    }
    let script = if bench.plays(Pattern::Pipeline) { &MANY_PUSHED } else { &MANY_PUBLISHED };
    let received = bench.receives(script)?;
    let count = MANY - 10_000;
    let expected = if received.workload.competing() { 0 } else { count };
    ledger(&received, LedgerCounts { expected, delivered: count, ..none() })?;
    let figures = &received.result.histograms;
    for (name, packed) in [
        ("latency", &figures.latency),
        ("intended_latency", &figures.intended_latency),
        ("service_latency", &figures.service_latency),
        ("receive_lag", &figures.receive_lag),
    ] {
        if name != "receive_lag" || packed.is_some() {
            crate::figures::counts(name, &read(name, packed.as_ref())?, count)?;
        }
    }
    if let Some(lag) = &figures.receive_lag {
        let most = read("receive_lag", Some(lag))?.max();
        due(most > 0, || "a hundred messages came at a time, and by its `receive_lag` none waited for another".into())?;
    }
    Ok(())
}

fn arrived(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let received = bench.receives(&KNOWN)?;
    let said = received.result.arrived;
    let wanted = went(&received, &all(&received), received.window_ns(), received.window_end());
    due(wanted.contains(&said), || {
        format!("`arrived` is {said}; of the messages {wanted:?} can have come within the window's time")
    })
}

fn all(received: &Received) -> Vec<SentLine> {
    received.said.iter().flatten().copied().collect()
}

/// Returns how many of these messages can have arrived between two instants, by the times of their sending.
fn went(received: &Received, said: &[SentLine], from_ns: Ns, to_ns: Ns) -> RangeInclusive<u64> {
    let late = received.late.single();
    let between = |from_ns, to_ns| said.iter().filter(|said| (from_ns..to_ns).contains(&said.went_ns)).count() as u64;
    between(from_ns, to_ns.saturating_sub(late))..=between(from_ns.saturating_sub(late), to_ns)
}

/// Checks that the slices count the messages that arrived until their ends, and hold their latencies.
pub fn series(received: &Received, script: &Playback) -> Result<(), CaseFailure> {
    let series = &received.result.series;
    let slice = received.workload.slice_ns();
    due(series.slice_ns == slice, || format!("`slice_ns` is {}, not {slice}", series.slice_ns))?;
    let slices = received.workload.window_ns().unwrap_or(0).div_ceil(slice) as usize;
    for (name, length) in [("delivered", series.delivered.len()), ("latency", series.latency.len())] {
        due(length <= slices, || format!("`series.{name}` has {length} slices; the window has {slices}"))?;
    }
    let (from, all, sound) = (received.window_ns(), all(received), received.sound(&script.window));
    let (mut delivered, mut timed) = (0, 0);
    for at in 0..slices {
        let (begins, ends) = (from + at as Ns * slice, (from + (at as Ns + 1) * slice).min(received.window_end()));
        delivered += series.delivered.get(at).copied().unwrap_or(0);
        let latencies = series
            .latency
            .get(at)
            .and_then(Option::as_ref)
            .map(|packed| packed.read(PackedHistogram::SLICE_DIGITS))
            .transpose();
        let latencies = latencies.map_err(|error| CaseFailure::did(format!("`series.latency[{at}]`: {error}")))?;
        timed += latencies.as_ref().map_or(0, Histogram::count);
        for (name, count, of) in [("delivered", delivered, &all), ("latency", timed, &sound)] {
            let wanted = went(received, of, from, ends);
            due(wanted.contains(&count), || {
                format!("`series.{name}` counts {count} messages in its first {} slices; there were {wanted:?}", at + 1)
            })?;
        }
        let Some(latencies) = latencies else { continue };
        let late = received.late.single();
        let of_slice = sound.iter().filter(|said| (begins.saturating_sub(late)..ends).contains(&said.went_ns));
        let took = of_slice.map(|said| said.sent_ns - said.due_ns - said.own_ns);
        let (least, most) = (took.clone().min().unwrap_or(0), took.max().unwrap_or(0));
        let said = (latencies.value_at(1e-9), latencies.max());
        due(said.0 >= least - least / 50 && said.1 <= most + most / 50 + 2 * late, || {
            format!(
                "`series.latency[{at}]` has {} to {}; the messages that came then took {} to {} when they were sent",
                format_time(said.0),
                format_time(said.1),
                format_time(least),
                format_time(most)
            )
        })?;
    }
    Ok(())
}

/// Checks that `last_arrival_ns` is the arrival of the window's last message.
pub fn last_arrival(received: &Received, script: &Playback) -> Result<(), CaseFailure> {
    let last = received.sound(&script.window).iter().map(|said| said.went_ns).max().unwrap_or(0);
    let said = received.result.last_arrival_ns.unwrap_or_default();
    due((last..=last + received.late.single()).contains(&said), || {
        format!("the last message of the window was sent at {last}; `last_arrival_ns` is {said}")
    })
}

fn empty(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let result = &bench.receives(&KNOWN)?.result;
    due(result.histograms.send_lag.is_none() && result.histograms.own_lag.is_none(), || {
        "it has a lag of sending, and sent nothing".into()
    })?;
    due(result.publishers.is_empty(), || format!("it has no publisher, and says {:?}", result.publishers))
}

fn stalls(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    silent_for(&*bench.receives(&SILENT)?, &SILENCES)
}

/// Checks that these silences of the window were reported: their number, and length and instant of the longest. The
/// machine may have added some.
pub fn silent_for(received: &Received, silences: &[(Ns, Ns)]) -> Result<(), CaseFailure> {
    let Some(said) = received.result.stalls else { return Ok(()) };
    let (count, late) = (silences.len() as u64, received.late.single());
    let Some((at, longest)) = silences.iter().max_by_key(|(_, length)| *length) else { return Ok(()) };
    let counted = if received.late.at(1.0) < SHORTEST_SILENCE { said.count == count } else { said.count >= count };
    due(counted, || format!("there were {count} silences; `stalls` says {}", said.count))?;
    due(said.longest_ns.abs_diff(*longest) < late && said.longest_at_ns.abs_diff(*at) < late, || {
        format!(
            "the longest silence was of {} from {} of the window on; `stalls` says of {} from {} on",
            format_time(*longest),
            format_time(*at),
            format_time(said.longest_ns),
            format_time(said.longest_at_ns)
        )
    })
}

/// Length below which a silence is no stall.
const SHORTEST_SILENCE: Ns = 100 * MILLISECOND;

fn stopped(bench: &Bench<'_>) -> Result<(), CaseFailure> {
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

fn counted_at_max(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let received = bench.receives(&COUNTED)?;
    let result = &received.result;
    ledger(&received, LedgerCounts { expected: 200, delivered: 200, ..LedgerCounts::default() })?;
    due(result.arrived == 200, || format!("`arrived` is {}, and the window had 200 messages", result.arrived))?;
    let (series, delivered) = (&result.series, result.series.delivered.iter().sum::<u64>());
    due((series.slice_ns, delivered) == (SECOND, 200), || {
        format!("`series` has {delivered} of 200 messages, in slices of {} ns, not 1 s", series.slice_ns)
    })?;
    due(result.histograms.latency.is_none(), || "it has a `latency` at `max`, where nothing is due".into())?;
    // An agent that reads the clock only rarely knows the time from the message.
    let last_ns = received.said[0].last().map_or(0, |said| said.due_ns);
    let said = result.last_arrival_ns.unwrap_or_default();
    due((last_ns..=last_ns + SECOND).contains(&said), || {
        format!("the last message says that it was sent at {last_ns}; `last_arrival_ns` is {said}")
    })
}

fn killed(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let received = bench.receives(&KILLED)?;
    half_came(&received.result, received.drained_after, 103 * MILLISECOND)
}

fn drained(
    bench: &Bench<'_>,
    script: &'static Playback,
    good: fn(Duration) -> bool,
    why: &str,
) -> Result<(), CaseFailure> {
    let after = bench.receives(script)?.drained_after;
    due(good(after), || format!("{why}, and it said `drained` {} ms after `drain`", after.as_millis()))
}

fn echo(bench: &Bench<'_>) -> Result<(), CaseFailure> {
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
    let length = received.workload.payload_bytes as usize;
    let mut back = received.back.iter().flatten();
    let changed = back.find(|heard| heard.length != length || heard.wrong_at.is_some());
    due(changed.is_none(), || "the body of a reply is not that of its request".into())
}
