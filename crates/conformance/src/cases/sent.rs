//! Messages that the agent sends.

use super::killed::books_fit;
use super::lag::{own_lag, send_lag, window};
use crate::bench::Bench;
use crate::case::{Case, of_sockets as case};
use crate::course::Stop;
use crate::figures::{counts, longer, paused, read};
use crate::sending::{AHEAD_NS, ScriptOutcome, Sending};
use crate::tap::{Answers, ArrivedMessage, Unanswered, fifth};
use crate::wrong::{CaseFailure, due};
use pubmark_model::header::{END, FREE_LEN, Header, PROBE};
use pubmark_model::protocol::PublisherTotal;
use pubmark_model::units::{MILLISECOND, Ns, SECOND, format_time};
use pubmark_model::workload::Transport;
use std::time::Duration;

/// Script that most cases check.
pub static FAN_OUT: Sending = Sending {
    probed: Duration::from_millis(80),
    ..Sending::plain("fan-out", &[("pattern", "fan-out"), ("subscribers", "2")])
};
// A seed beyond 32 bits that no floating-point number holds.
static POISSON: Sending = Sending::plain(
    "poisson",
    &[
        ("pattern", "fan-in"),
        ("publishers", "3"),
        ("arrival", "poisson"),
        ("rate", "313.131"),
        ("seed", "8364758544493064721"),
    ],
);
static BURST: Sending = Sending::plain(
    "burst",
    &[("pattern", "fan-in"), ("publishers", "2"), ("arrival", "burst:10"), ("rate", "313.131")],
);
static COUNT: Sending = Sending::plain("count", &[("pattern", "fan-out"), ("count", "77")]);
/// More than 16 bits can number.
const MANY_MESSAGES: u64 = 70_000;
static MAX: Sending = Sending::plain(
    "max",
    &[("pattern", "pipeline"), ("rate", "max"), ("count", "70000"), ("warmup", "40ms"), ("payload", "32B")],
);
static SHORT: Sending = Sending::plain("short", &[("pattern", "fan-out"), ("payload", "16B")]);
static MIDDLE: Sending = Sending::plain("middle", &[("pattern", "fan-out"), ("payload", "28B")]);
static LONG: Sending =
    Sending::plain("long", &[("pattern", "fan-out"), ("payload", "200KiB"), ("rate", "50"), ("verify", "header")]);
static MANY: Sending = Sending::plain("fan-in", &[("pattern", "fan-in"), ("publishers", "3"), ("rate", "313.131")]);
static PART: Sending = Sending { first: 1, ..Sending::plain("part", &[("pattern", "pairs"), ("pairs", "3")]) };
static PAIRS: Sending = Sending::plain("pairs", &[("pattern", "pairs"), ("pairs", "2")]);
static PIPELINE: Sending = Sending::plain("pipeline", &[("pattern", "pipeline"), ("subscribers", "2")]);
// Three seconds: an agent that reports half of them is more than a second behind, whenever it reports.
pub static SECONDS: Sending =
    Sending::plain("seconds", &[("pattern", "fan-out"), ("rate", "100"), ("duration", "3400ms")]);
static REQUESTS: Sending = Sending {
    answers: Answers { after: Duration::from_millis(20), but: Unanswered::Nothing },
    ..Sending::plain("requests", &[("pattern", "request-reply"), ("pairs", "2"), ("rate", "100")])
};
static UNANSWERED: Sending = Sending {
    answers: Answers { after: Duration::ZERO, but: Unanswered::Last },
    ..Sending::plain("unanswered", &[("pattern", "request-reply"), ("pairs", "2"), ("rate", "100"), ("drain", "100ms")])
};
pub static ECHOED: Sending = Sending {
    answers: Answers { after: Duration::from_millis(10), but: Unanswered::Fifths },
    ..Sending::plain(
        "echoed",
        &[("pattern", "fan-out-echo"), ("subscribers", "2"), ("rate", "10"), ("duration", "2s"), ("drain", "60ms")],
    )
};
pub static STOPPED: Sending =
    Sending { stops: &[MIDDLE_STOP], ..Sending::plain("stopped", &[("pattern", "fan-out"), ("duration", "1200ms")]) };
/// A stop a third into the window, between two due times.
pub const MIDDLE_STOP: Stop = Stop { at_ns: 401 * MILLISECOND, length: crate::figures::STOP };
static EARLY: Sending =
    Sending { early: true, ..Sending::plain("early", &[("pattern", "fan-out"), ("duration", "900ms")]) };

static AHEAD: Sending = Sending { ahead_ns: AHEAD_NS, ..Sending::plain("ahead", &[("pattern", "fan-out")]) };

static KILLED: Sending =
    Sending { killed: true, ..Sending::plain("killed", &[("pattern", "fan-out"), ("duration", "900ms")]) };

pub const CASES: &[Case] = &[
    case("send", "500 messages a second to two subscribers", "a conversation in order, to its end", |bench| {
        bench.sends(&FAN_OUT).map(drop)
    }),
    case("send-probes", "the same", "a probe to each subscriber before the start, every 5 ms", probes),
    case("send-end-markers", "the same", "an end marker to each subscriber after the last message", |bench| {
        let out = bench.sends(&FAN_OUT)?;
        due(out.ended, || "no end marker came within 2 s after `sent`".into())
    }),
    case("send-schedule", "the same", "intended times that are those of the schedule", |bench| {
        schedule(&*bench.sends(&FAN_OUT)?)
    }),
    case("send-sequences", "the same", "sequences from 0, each once, in order, to every subscriber", |bench| {
        sequences(&*bench.sends(&FAN_OUT)?)
    }),
    case(
        "send-body",
        "the same; messages of 28 bytes and of 200 KiB",
        "the body that is given, of the length that is asked for",
        |bench| {
            for sending in [&FAN_OUT, &MIDDLE] {
                bodies(&*bench.sends(sending)?)?;
            }
            if bench.transport == Some(Transport::Udp) { Ok(()) } else { bodies(&*bench.sends(&LONG)?) }
        },
    ),
    case("send-instants", "the same", "in each message when it was sent: after it was due, before it came", instants),
    case("send-free", "the same", "in each message when its publisher was free: from due to sent", free),
    case("send-totals", "the same", "sent, window_first, window_end, offered as scheduled", |bench| {
        totals(&*bench.sends(&FAN_OUT)?)
    }),
    case("send-lag", "the same", "send_lag: sent − intended of each message of the window", |bench| {
        for sending in [&FAN_OUT, &MANY] {
            send_lag(&*bench.sends(sending)?)?;
        }
        Ok(())
    }),
    case("send-own-lag", "the same", "own_lag: sent − free of each message of the window", |bench| {
        for sending in [&FAN_OUT, &MANY] {
            own_lag(&*bench.sends(sending)?)?;
        }
        Ok(())
    }),
    case("send-first", "the same", "first_sent_ns: when the first message of the window was sent", first),
    case("send-series", "the same", "series.sent: messages by the slice in which they were sent", |bench| {
        sent_series(&*bench.sends(&FAN_OUT)?)
    }),
    case("send-empty", "the same", "nothing received: no latency, and counts of 0", empty),
    case(
        "send-versions",
        "the same",
        "library and version of what was loaded, and options as they took effect",
        |bench| {
            let out = bench.sends(&FAN_OUT)?;
            let text =
                |key: &str| out.agent.versions.get(key).and_then(|value| value.as_str()).unwrap_or_default().len();
            due(text("library") > 0 && text("version") > 0, || {
                "`versions` names no library, or no version of it".into()
            })?;
            due(!out.agent.applied.is_empty(), || "`applied` is empty: no option took effect".into())
        },
    ),
    case("send-progress", "100 messages a second for 3.4 s", "progress each second, with what was sent", progress),
    case(
        "send-poisson",
        "poisson arrivals of three publishers, with a seed of 63 bits",
        "the gaps that the seed gives each of them",
        |bench| {
            let out = bench.sends(&POISSON)?;
            schedule(&out).and_then(|()| totals(&out))
        },
    ),
    case(
        "send-burst",
        "bursts of 10 of two publishers",
        "ten messages due at one instant, and the next ten when the mean rate says so",
        |bench| {
            let out = bench.sends(&BURST)?;
            schedule(&out).and_then(|()| totals(&out))
        },
    ),
    case("send-count", "77 messages instead of a time", "77 messages in the window", |bench| {
        let out = bench.sends(&COUNT)?;
        schedule(&out).and_then(|()| sequences(&out)).and_then(|()| totals(&out))
    }),
    case(
        "send-max",
        "70,000 messages as fast as possible",
        "intended is when it was sent; offered is what was sent",
        max,
    ),
    case("send-short", "messages of 16 bytes", "the header and nothing else", |bench| {
        let out = bench.sends(&SHORT)?;
        schedule(&out).and_then(|()| bodies(&out)).and_then(|()| sequences(&out))
    }),
    case(
        "send-many",
        "three publishers for one subscriber, each with 313.131 messages a second",
        "each at its own offset within the interval",
        |bench| {
            let out = bench.sends(&MANY)?;
            schedule(&out).and_then(|()| sequences(&out)).and_then(|()| totals(&out))
        },
    ),
    case("send-part", "the last two publishers of three", "those two, by their own numbers", |bench| {
        let out = bench.sends(&PART)?;
        schedule(&out).and_then(|()| totals(&out))
    }),
    case("send-pairs", "two pairs", "each publisher to its own subscriber alone", pairs),
    case("send-pipeline", "a pipeline with two subscribers", "each message to one of them", pipeline),
    case(
        "send-requests",
        "requests that are due every 10 ms, and whose replies take 20 ms",
        "one at a time; latency is from due time to reply, and what a reply takes is not a lag of its own",
        requests,
    ),
    case(
        "send-unanswered",
        "requests, the last of which has no reply",
        "it is given up after `drain_ns`, and was not delivered",
        unanswered,
    ),
    case(
        "send-echoed",
        "messages that one of two echoes after 10 ms, but for every fifth",
        "one at a time; latency is the round trip; those without an echo are counted as unanswered",
        echoed,
    ),
    case(
        "send-stopped",
        "a process that is stopped for 400 ms",
        "nothing left out, the lag is its own, and a pause where it tells them",
        stopped,
    ),
    case(
        "send-clock-offset",
        "clock_offset_ns of an hour",
        "the instants in messages are so much ahead, and all other figures as if there were none",
        |bench| {
            let out = bench.sends(&AHEAD)?;
            schedule(&out).and_then(|()| instants_of(&out)).and_then(|()| totals(&out))
        },
    ),
    case("crash", "crash in the middle of the window", "silence, no listener, and books that are what came", killed),
    case("stop-early", "stop in the middle of the window", "result at once, with what was sent by then", early),
];

/// Checks that each publisher's messages have the intended times of its schedule.
pub fn schedule(out: &ScriptOutcome) -> Result<(), CaseFailure> {
    for publisher in out.publishers() {
        let (dues, _) = out.plan(publisher);
        let came = out.messages(out.socket_of(publisher), publisher);
        due(came.len() == dues.len(), || {
            format!("publisher {publisher}: {} messages came, and {} were due", came.len(), dues.len())
        })?;
        for header in came.iter().filter_map(|heard| heard.header) {
            let wanted = dues.get(header.sequence as usize).map(|at| out.start_ns + at).unwrap_or_default();
            // Logarithms and divisions in floating point may differ in the last bit.
            due(header.intended_ns.abs_diff(wanted) <= 2, || {
                let off = header.intended_ns as i64 - wanted as i64;
                format!(
                    "publisher {publisher}, sequence {}: its intended time is {off} ns from the schedule's",
                    header.sequence
                )
            })?;
        }
    }
    Ok(())
}

/// Checks that every socket receives 0, 1, 2, … from each publisher.
pub fn sequences(out: &ScriptOutcome) -> Result<(), CaseFailure> {
    for socket in 0..out.heard.len() {
        for publisher in out.publishers() {
            let came = out.messages(socket, publisher);
            let wanted = out.plan(publisher).0.len();
            due(came.len() == wanted, || {
                format!("subscriber {socket} got {} of {wanted} messages of publisher {publisher}", came.len())
            })?;
            for (place, header) in came.iter().filter_map(|heard| heard.header).enumerate() {
                due(header.sequence as usize == place, || {
                    format!(
                        "subscriber {socket}: message {place} of publisher {publisher} has sequence {}",
                        header.sequence
                    )
                })?;
            }
        }
    }
    Ok(())
}

fn bodies(out: &ScriptOutcome) -> Result<(), CaseFailure> {
    let length = out.workload.payload_bytes as usize;
    for heard in out.messages(0, 0) {
        let sequence = heard.header.map(|header| header.sequence).unwrap_or_default();
        due(heard.length == length, || format!("sequence {sequence} has {} bytes, not {length}", heard.length))?;
        due(heard.wrong_at.is_none(), || {
            format!("sequence {sequence}: byte {} of the body is wrong", heard.wrong_at.unwrap_or_default())
        })?;
    }
    Ok(())
}

fn instants(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    instants_of(&*bench.sends(&FAN_OUT)?)
}

fn instants_of(out: &ScriptOutcome) -> Result<(), CaseFailure> {
    let mut ways = Vec::new();
    let mut last = 0;
    for heard in out.messages(0, 0) {
        let Some(Header { intended_ns, sequence, sent_ns: Some(sent_ns), .. }) = heard.header else { continue };
        due(sent_ns >= intended_ns, || format!("sequence {sequence} says that it was sent before it was due"))?;
        due(sent_ns <= heard.at_ns, || format!("sequence {sequence} says that it was sent after it had come"))?;
        due(sent_ns >= last, || format!("sequence {sequence} says that it was sent before the one before it"))?;
        last = sent_ns;
        ways.push(heard.at_ns - sent_ns);
    }
    ways.sort_unstable();
    for quantile in out.late.quantiles() {
        let way = ways.get((ways.len() as f64 * quantile) as usize).copied().unwrap_or_default();
        due(way <= out.late.at(quantile), || {
            format!(
                "at p{} messages came {} after they say that they were sent; bare ones may take {}",
                quantile * 100.0,
                format_time(way),
                format_time(out.late.at(quantile))
            )
        })?;
    }
    Ok(())
}

/// Checks that probes come about as often as the protocol says.
fn probes(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    const EVERY: Ns = 5 * MILLISECOND;
    let out = bench.sends(&FAN_OUT)?;
    due(out.probed, || "no probe came within 2 s".into())?;
    let probe = |heard: &&ArrivedMessage| heard.header.is_some_and(|header| header.sequence == PROBE);
    for heard in &out.heard {
        let at: Vec<Ns> = heard.iter().filter(probe).map(|heard| heard.at_ns).collect();
        let mut gaps: Vec<Ns> = at.windows(2).map(|two| two[1] - two[0]).collect();
        gaps.sort_unstable();
        let (gap, allowed) = (gaps.get(gaps.len() / 4).copied(), 2 * EVERY + out.late.at(0.5));
        due(gap.is_some_and(|gap| gap <= allowed), || {
            format!("of {} probes three in four came more than {} after that before", at.len(), format_time(allowed))
        })?;
    }
    Ok(())
}

fn first(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let out = bench.sends(&FAN_OUT)?;
    let wanted = window(&out).iter().filter_map(|header| header.sent_ns).min().unwrap_or_default();
    let said = out.result.first_sent_ns.unwrap_or_default();
    due(said.abs_diff(wanted) <= MILLISECOND, || {
        format!("`first_sent_ns` is {said}; by the messages themselves the first of the window was sent at {wanted}")
    })
}

fn free(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let out = bench.sends(&FAN_OUT)?;
    for header in out.messages(0, 0).iter().filter_map(|heard| heard.header) {
        let (Some(sent_ns), Some(free_ns)) = (header.sent_ns, header.free_ns) else { continue };
        let sequence = header.sequence;
        due((header.intended_ns..=sent_ns).contains(&free_ns), || {
            format!("sequence {sequence}: *free* is {free_ns}, intended {} and sent {sent_ns}", header.intended_ns)
        })?;
        due(sequence > 0 || free_ns == header.intended_ns, || {
            "before the first message the system made nobody wait: *free* has to be its intended time".into()
        })?;
    }
    Ok(())
}

pub fn totals(out: &ScriptOutcome) -> Result<(), CaseFailure> {
    let planned = |publisher| {
        let (dues, window) = out.plan(publisher);
        let (first, end) = (window.start as u64, window.end as u64);
        PublisherTotal {
            publisher,
            sent: dues.len() as u64,
            window_first: first,
            window_end: end,
            offered: end - first,
        }
    };
    let planned: Vec<PublisherTotal> = out.publishers().map(planned).collect();
    due(out.totals == planned, || format!("`sent` says {:?}; due was {planned:?}", out.totals))?;
    let mut result = out.result.publishers.clone();
    result.sort_by_key(|total| total.publisher);
    due(result == out.totals, || format!("`result` says {result:?}, `sent` said {:?}", out.totals))
}

/// Checks that `series.sent` counts messages in the slice of their own instants.
pub fn sent_series(out: &ScriptOutcome) -> Result<(), CaseFailure> {
    let series = &out.result.series;
    let slice = out.workload.slice_ns();
    due(series.slice_ns == slice, || format!("`slice_ns` is {}, not {slice}", series.slice_ns))?;
    let (from, to) = out.window();
    let mut wanted = vec![0u64; ((to - from).div_ceil(slice)) as usize];
    for sent_ns in out.messages(0, 0).iter().filter_map(|heard| heard.header?.sent_ns) {
        if let Some(count) = sent_ns.checked_sub(from).and_then(|at| wanted.get_mut((at / slice) as usize)) {
            *count += 1;
        }
    }
    let said = (0..wanted.len()).map(|at| series.sent.get(at).copied().unwrap_or(0));
    let apart: u64 = said.zip(&wanted).map(|(said, wanted)| said.abs_diff(*wanted)).sum();
    // An agent may use the end or the start of a send.
    due(series.sent.len() <= wanted.len() && apart <= wanted.iter().sum::<u64>() / 50, || {
        format!("`series.sent` is {:?}; by the messages' own instants {wanted:?}", series.sent)
    })
}

fn empty(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let out = bench.sends(&FAN_OUT)?;
    let result = &out.result;
    due(result.histograms.latency.is_none() && result.histograms.service_latency.is_none(), || {
        "it has a latency, and received nothing".into()
    })?;
    let ledger = result.ledger;
    due(ledger == Default::default() && result.arrived == 0, || format!("it received nothing, and counts {ledger:?}"))?;
    due(result.series.delivered.iter().sum::<u64>() == 0, || "`series.delivered` counts what it never received".into())
}

fn progress(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let out = bench.sends(&SECONDS)?;
    due(out.progress.len() >= 2, || format!("in 3.4 s it said `progress` {} times", out.progress.len()))?;
    for (at_ns, said) in &out.progress {
        let by = |at: Ns| {
            let sent = |heard: &&crate::tap::ArrivedMessage| {
                heard.header.is_some_and(|h| h.sent_ns.is_some_and(|sent| sent <= at))
            };
            out.messages(0, 0).iter().filter(|heard| sent(heard)).count() as u64
        };
        let (least, most) = (by(at_ns.saturating_sub(SECOND)), by(*at_ns));
        due((least..=most).contains(&said.sent), || {
            format!("a `progress` says {} sent, when it was {most} and a second before {least}", said.sent)
        })?;
    }
    Ok(())
}

fn max(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    if bench.transport == Some(Transport::Udp) {
        return Err(CaseFailure::NotTried("udp loses what comes too fast".into()));
    }
    let out = bench.sends(&MAX)?;
    let total = out.totals.first().copied().unwrap_or_default();
    due(total.window_end - total.window_first == MANY_MESSAGES && total.offered == MANY_MESSAGES, || {
        format!("{MANY_MESSAGES} messages were asked for in the window; it says {total:?}")
    })?;
    let came = out.messages(0, 0);
    due(came.len() as u64 == total.sent, || format!("{} messages came, and it says {} sent", came.len(), total.sent))?;
    for (place, header) in came.iter().filter_map(|heard| heard.header).enumerate() {
        due(header.sequence as usize == place, || format!("message {place} has sequence {}", header.sequence))?;
        due(header.sent_ns == Some(header.intended_ns), || {
            format!("sequence {}: at `max` the intended time is the time of sending", header.sequence)
        })?;
    }
    Ok(())
}

fn pairs(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let out = bench.sends(&PAIRS)?;
    schedule(&out)?;
    totals(&out)?;
    for (subscriber, other) in [(0, 1), (1, 0)] {
        let foreign = out.messages(subscriber, other).len();
        due(foreign == 0, || format!("subscriber {subscriber} got {foreign} messages of publisher {other}"))?;
        let (own, planned) = (out.messages(subscriber, subscriber as u32).len(), out.plan(subscriber as u32).0.len());
        due(own == planned, || format!("subscriber {subscriber} got {own} of {planned} messages of its publisher"))?;
    }
    Ok(())
}

fn pipeline(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let out = bench.sends(&PIPELINE)?;
    let came =
        |socket| out.messages(socket, 0).iter().filter_map(|heard| Some(heard.header?.sequence)).collect::<Vec<_>>();
    let mut all = [came(0), came(1)].concat();
    all.sort_unstable();
    let planned: Vec<u32> = (0..out.plan(0).0.len() as u32).collect();
    due(all == planned, || {
        format!("two subscribers together got {} messages, {} were due, each once", all.len(), planned.len())
    })
}

fn requests(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let out = bench.sends(&REQUESTS)?;
    schedule(&out)?;
    totals(&out)?;
    for requester in 0..2 {
        let came = out.messages(requester, requester as u32);
        let gap = came.windows(2).filter_map(|two| Some((two[1].header?.sent_ns?, two[0].at_ns)));
        for (next, at) in gap {
            due(next >= at + 20 * MILLISECOND, || "a request was sent before the reply to the one before it".into())?;
        }
    }
    let count = out.totals.iter().map(|total| total.window_end - total.window_first).sum();
    let replied = |header: &Header| {
        let came = out.messages(header.publisher as usize, header.publisher);
        let came = came.iter().find(|heard| heard.header == Some(*header)).map_or(0, |heard| heard.at_ns);
        let intended_ns = (came + 20 * MILLISECOND).saturating_sub(header.intended_ns);
        (intended_ns, intended_ns.saturating_sub(header.own_lag_ns().unwrap_or(0)))
    };
    let truth: Vec<(Ns, Ns)> = window(&out).iter().map(replied).collect();
    let figures = &out.result.histograms;
    let intended = truth.iter().map(|(intended, _)| *intended);
    longer("intended_latency", &read("intended_latency", figures.intended_latency.as_ref())?, intended, &out.late)?;
    let latency = truth.iter().map(|(_, latency)| *latency);
    longer("latency", &read("latency", figures.latency.as_ref())?, latency, &out.late)?;
    own_lag(&out)?;
    let own = read("own_lag", figures.own_lag.as_ref())?.value_at(0.5);
    due(own <= out.late.single(), || {
        format!("it had to wait for replies, and calls {} of that its own lag at the median", format_time(own))
    })?;
    let ledger = out.result.ledger;
    due((ledger.expected, ledger.delivered) == (count, count), || {
        format!("{count} replies came; its ledger says {} of {}", ledger.delivered, ledger.expected)
    })
}

fn unanswered(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let out = bench.sends(&UNANSWERED)?;
    schedule(&out)?;
    totals(&out)?;
    let expected: u64 = out.totals.iter().map(|total| total.window_end - total.window_first).sum();
    let replied = expected - out.totals.len() as u64;
    let ledger = out.result.ledger;
    due((ledger.expected, ledger.delivered) == (expected, replied), || {
        format!(
            "{replied} of {expected} requests were answered; its ledger says {} of {}",
            ledger.delivered, ledger.expected
        )
    })?;
    counts("latency", &read("latency", out.result.histograms.latency.as_ref())?, replied)
}

fn echoed(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let out = bench.sends(&ECHOED)?;
    schedule(&out)?;
    sequences(&out)?;
    totals(&out)?;
    let window = out.totals.iter().flat_map(|total| total.window_first..total.window_end);
    let (silent, answered): (Vec<u64>, Vec<u64>) = window.partition(|sequence| fifth(*sequence as u32));
    let histogram = read("latency", out.result.histograms.latency.as_ref())?;
    counts("latency", &histogram, answered.len() as u64)?;
    let least = histogram.value_at(1e-9);
    due(least >= 10 * MILLISECOND - 10 * MILLISECOND / 500, || {
        format!("echoes were held back for 10 ms; the least `latency` is {least} ns")
    })?;
    let ledger = out.result.ledger;
    let (unanswered, heard) = (silent.len() as u64, (ledger.expected, ledger.delivered, ledger.corrupted));
    due(ledger.unanswered == unanswered && heard == (0, 0, 0), || {
        format!("{unanswered} were not echoed, and echoes are no deliveries; the ledger says {ledger:?}")
    })
}

fn stopped(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let out = bench.sends(&STOPPED)?;
    schedule(&out)?;
    let late: Vec<Header> = out.messages(0, 0).iter().filter_map(|heard| heard.header).collect();
    let lag = |header: &Header| header.sent_ns.map(|sent| sent.saturating_sub(header.intended_ns)).unwrap_or_default();
    let most = late.iter().max_by_key(|header| lag(header));
    let Some(most) = most else { return Err(CaseFailure::did("no message came")) };
    due(lag(most) >= 300 * MILLISECOND, || {
        format!(
            "it was stopped for 400 ms, and no message says that it was sent more than {} ms late",
            lag(most) / MILLISECOND
        )
    })?;
    if out.workload.payload_bytes as usize >= FREE_LEN {
        let own = most.own_lag_ns().unwrap_or_default();
        due(own >= 300 * MILLISECOND, || {
            format!("of the 400 ms for which it was stopped the messages call {} ms its own lag", own / MILLISECOND)
        })?;
    }
    for (name, packed) in [("send_lag", &out.result.histograms.send_lag), ("own_lag", &out.result.histograms.own_lag)] {
        let greatest = read(name, packed.as_ref())?.max();
        due(greatest >= 300 * MILLISECOND, || {
            format!("it was stopped for 400 ms, and the greatest of `{name}` is {} ms", greatest / MILLISECOND)
        })?;
    }
    paused(&bench.features, &out.agent)
}

fn early(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let out = bench.sends(&EARLY)?;
    let total = out.result.publishers.first().copied().unwrap_or_default();
    let (came, planned) = (out.messages(0, 0).len() as u64, out.plan(0).0.len() as u64);
    due(total.sent < planned && total.sent >= came, || {
        format!("{came} messages had come when it was stopped, of {planned}; it says {} sent", total.sent)
    })?;
    due(total.adds_up(), || format!("its totals do not add up: {total:?}"))
}

fn killed(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let out = bench.sends(&KILLED)?;
    let undead = out.undead.as_ref().map(|what| format!("its clients had been killed, and {what}"));
    due(undead.is_none(), || undead.unwrap_or_default())?;
    let ended = out.heard.iter().flatten().any(|heard| heard.header.is_some_and(|header| header.sequence == END));
    due(!ended, || "an end marker came: nobody was there to send it".into())?;
    let (came, (dues, window)) = (out.messages(0, 0), out.plan(0));
    let sequence = |heard: &ArrivedMessage| heard.header.map_or(0, |header| u64::from(header.sequence));
    due(came.iter().map(|heard| sequence(heard)).eq(0..came.len() as u64), || {
        "what came is not the beginning of what was due".into()
    })?;
    books_fit(came.len() as u64, (dues.len(), window.len()), &out.totals, &out.result)
}
