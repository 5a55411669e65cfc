//! Scripts of messages to the agent, with known delays, losses and damage.

use super::sent::MIDDLE_STOP;
use crate::receiving::Playback;
use crate::sending::AHEAD_NS;
use crate::tap::{MessageFlaw, ScriptedMessage};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};

/// Number of messages before the window.
pub const WARMUP: u32 = 50;
pub const ALL: u32 = 250;

/// Delay of messages that are deliberately late: every other one a step more.
pub const LATE: Ns = 200 * MILLISECOND;
pub const STEP: Ns = 40 * MILLISECOND;

/// Sender's own part of the delay, of even and odd messages: so their latencies are 120 and 220 ms.
pub const OWN: [Ns; 2] = [80 * MILLISECOND, 20 * MILLISECOND];
pub const LATENCY: [Ns; 2] = [120 * MILLISECOND, 220 * MILLISECOND];

/// Returns the due time of message `sequence`: within the warm-up, or within the window.
fn due_at(sequence: u32) -> Ns {
    match sequence.checked_sub(WARMUP) {
        None => Ns::from(sequence) * MILLISECOND,
        Some(of_window) => 100 * MILLISECOND + Ns::from(of_window) * 18 * MILLISECOND / 10,
    }
}

/// Returns a message that is sent at its due time.
pub fn line(sequence: u32, at: Ns) -> ScriptedMessage {
    ScriptedMessage { at, due: at as i64, own: 0, sequence, flaw: MessageFlaw::None, ahead: 0 }
}

/// Returns the message with this delay in its header, of which `own` is the sender's.
pub fn late_by(line: ScriptedMessage, late: Ns, own: Ns) -> ScriptedMessage {
    ScriptedMessage { due: line.at as i64 - late as i64, own, ..line }
}

fn usual(sequence: u32) -> ScriptedMessage {
    line(sequence, due_at(sequence))
}

fn plain(_: u32) -> Vec<ScriptedMessage> {
    (0..ALL).map(usual).collect()
}

fn late(_: u32) -> Vec<ScriptedMessage> {
    let late = |sequence: u32| {
        let line = line(sequence, due_at(sequence) + LATE + STEP);
        let odd = sequence as usize % 2;
        late_by(line, if sequence < WARMUP { LATE + STEP } else { LATE + odd as Ns * STEP }, OWN[odd])
    };
    (0..ALL).map(late).collect()
}

/// Delay of the messages after each second gap, and difference between the publishers' delays.
pub const AFTER_GAP: Ns = 25 * MILLISECOND;
pub const APART: Ns = 60 * MILLISECOND;

/// Loses every tenth message; between two gaps all have the same delay.
fn gaps(publisher: u32) -> Vec<ScriptedMessage> {
    let most = 2 * APART + 2 * AFTER_GAP;
    let late = |sequence: u32| {
        let after = Ns::from(sequence / 10 % 2) * AFTER_GAP;
        let late = if sequence < WARMUP { most } else { AFTER_GAP + Ns::from(publisher) * APART + after };
        late_by(line(sequence, due_at(sequence) + most), late, 0)
    };
    (0..ALL).filter(|sequence| sequence % 10 != 9).map(late).collect()
}

fn flawed(_: u32) -> Vec<ScriptedMessage> {
    let mut lines = Vec::new();
    for line in (0..ALL).map(usual) {
        let with = |flaw| ScriptedMessage { flaw, ..line };
        let second = SECOND as i64;
        match line.sequence {
            // Lost.
            60 | 61 | 100 | 249 => {}
            // Twice, and three times; also of the warm-up.
            30 | 70 => lines.extend([line; 2]),
            80 => lines.extend([line; 3]),
            // After one that follows.
            90 | 91 | 120 => {}
            92 => lines.extend([line, usual(90), usual(91)].map(|late| ScriptedMessage { at: line.at, ..late })),
            121 => lines.extend([line, ScriptedMessage { at: line.at, ..usual(120) }]),
            130 => lines.extend([
                line,
                with(MessageFlaw::Length(-1)),
                with(MessageFlaw::Length(-32)),
                with(MessageFlaw::Length(-60)),
            ]),
            140 => lines.extend([line, with(MessageFlaw::Publisher(1_000)), with(MessageFlaw::Publisher(1))]),
            // With the number of a lost message: due before the start, and in two seconds.
            150 => lines.extend([line, ScriptedMessage { sequence: 60, due: -second, ..line }]),
            160 => lines.extend([line, ScriptedMessage { sequence: 61, due: line.due + 2 * second, ..line }]),
            // Bodies are not checked.
            170 => lines.push(with(MessageFlaw::Body(40))),
            // A number that its publisher never used, after the window.
            248 => lines.extend([line, self::line(ALL + 7, 520 * MILLISECOND)]),
            // It comes before it is due.
            55 => lines.push(ScriptedMessage { due: line.due + 300 * MILLISECOND as i64, ..line }),
            _ => lines.push(line),
        }
    }
    lines
}

/// Sends one message that is a byte too long.
fn longer(_: u32) -> Vec<ScriptedMessage> {
    let more = |line: ScriptedMessage| match line.sequence {
        100 => vec![line, ScriptedMessage { flaw: MessageFlaw::Length(1), ..line }],
        _ => vec![line],
    };
    (0..ALL).map(usual).flat_map(more).collect()
}

/// Positions at which the bodies of late messages are changed, and the delay of these messages.
pub const SPOILT_AT: [usize; 6] = [32, 40, 47, 55, 62, 63];
pub const SPOILT_LATE: Ns = 90 * MILLISECOND;

fn spoilt(_: u32) -> Vec<ScriptedMessage> {
    let flaw = |line: ScriptedMessage| match line.sequence {
        40 => ScriptedMessage { flaw: MessageFlaw::Body(50), ..line },
        sequence @ 100..160 if sequence % 10 == sequence / 10 % 2 => {
            let flaw = MessageFlaw::Body(SPOILT_AT[(sequence as usize - 100) / 10]);
            ScriptedMessage { flaw, ..late_by(line, SPOILT_LATE, 0) }
        }
        _ => line,
    };
    (0..ALL).map(usual).map(flaw).collect()
}

/// Sends few large messages: 5 to 28 belong to the window.
fn large(_: u32) -> Vec<ScriptedMessage> {
    const AT: [usize; 8] = [32, 100, 4_096, 16_384, 65_536, 131_072, 200_000, usize::MAX];
    let one = |sequence: u32| {
        let line = line(sequence, Ns::from(sequence) * 15 * MILLISECOND + 30 * MILLISECOND);
        let changed = sequence.checked_sub(6).and_then(|at| AT.get(at as usize / 2).filter(|_| at % 2 == at / 2 % 2));
        ScriptedMessage { flaw: changed.map_or(MessageFlaw::None, |at| MessageFlaw::Body(*at)), ..line }
    };
    (0..29).map(one).collect()
}

fn in_the_middle(_: u32) -> Vec<ScriptedMessage> {
    let flaw = |line: ScriptedMessage| ScriptedMessage {
        flaw: if line.sequence == 100 { MessageFlaw::Body(25) } else { MessageFlaw::None },
        ..line
    };
    late(0).into_iter().map(flaw).collect()
}

/// The second of two publishers sends some messages twice, and its last long after the window, when the end markers of
/// the first have come.
fn follows(publisher: u32) -> Vec<ScriptedMessage> {
    let one = |sequence: u32| {
        let line = usual(sequence);
        let (last, again) = (publisher == 1 && sequence >= ALL - 20, publisher == 1 && (60..100).contains(&sequence));
        let at = if last { line.at + 400 * MILLISECOND } else { line.at };
        std::iter::repeat_n(ScriptedMessage { at, ..line }, if again { 2 } else { 1 })
    };
    (0..ALL).flat_map(one).collect()
}

/// One of several agents: sends a message with the number of another agent's publisher.
fn in_part(_: u32) -> Vec<ScriptedMessage> {
    let foreign = |line: ScriptedMessage| match line.sequence {
        100 => vec![line, ScriptedMessage { flaw: MessageFlaw::Publisher(u32::MAX), ..line }],
        _ => vec![line],
    };
    (0..ALL).map(usual).flat_map(foreign).collect()
}

/// More messages than 16 bits can number, sent a hundred at a time.
pub const MANY: u64 = 70_000;

fn many(_: u32) -> Vec<ScriptedMessage> {
    (0..MANY as u32).map(|sequence| line(sequence, Ns::from(sequence / 100) * MILLISECOND)).collect()
}

/// Silences of the window, the first from its start and the last until its end, with a message every 4 ms between them,
/// ns.
pub const SILENCES: [(Ns, Ns); 5] = [
    (0, 150 * MILLISECOND),
    (250 * MILLISECOND, 250 * MILLISECOND),
    (600 * MILLISECOND, 503 * MILLISECOND),
    (1_203 * MILLISECOND, 180 * MILLISECOND),
    (1_483 * MILLISECOND, 217 * MILLISECOND),
];

fn silences(_: u32) -> Vec<ScriptedMessage> {
    let between = SILENCES.windows(2).flat_map(|two| {
        let from = 100 * MILLISECOND + two[0].0 + two[0].1;
        (0..=25).map(move |number| from + number * (100 * MILLISECOND + two[1].0 - from) / 25)
    });
    let warmup = (0..WARMUP).map(due_at);
    warmup.chain(between).zip(0..).map(|(at, sequence)| line(sequence, at)).collect()
}

/// Sends with a silence of 500 ms in a window of 1,200 ms.
fn silence(_: u32) -> Vec<ScriptedMessage> {
    let at = |sequence: u32| match sequence {
        0..WARMUP => Ns::from(sequence) * 2 * MILLISECOND,
        WARMUP..150 => 100 * MILLISECOND + Ns::from(sequence - WARMUP) * 3 * MILLISECOND,
        _ => 900 * MILLISECOND + Ns::from(sequence - 150) * 3 * MILLISECOND,
    };
    (0..ALL).map(|sequence| line(sequence, at(sequence))).collect()
}

/// Sends a message every 6 ms throughout a window of 1,200 ms.
fn steady(_: u32) -> Vec<ScriptedMessage> {
    let at = |sequence: u32| match sequence.checked_sub(WARMUP) {
        None => Ns::from(sequence) * 2 * MILLISECOND,
        Some(of_window) => 100 * MILLISECOND + Ns::from(of_window) * 6 * MILLISECOND,
    };
    (0..ALL).map(|sequence| line(sequence, at(sequence))).collect()
}

fn without_the_last(_: u32) -> Vec<ScriptedMessage> {
    (0..ALL - 1).map(usual).collect()
}

pub const fn script(
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
    lines: fn(u32) -> Vec<ScriptedMessage>,
) -> Playback {
    Playback {
        name,
        settings,
        lines,
        window: WARMUP as u64..ALL as u64,
        sent: ALL as u64,
        stops: &[],
        first: 0,
        follows: false,
        killed: false,
        ends: true,
        ahead_ns: 0,
    }
}

pub static KNOWN: Playback = script("known delays", &[("pattern", "fan-out")], late);
/// Offset of a clock that is behind, ns: less than the uptime of any machine.
pub const BEHIND_NS: i64 = -10 * SECOND as i64;
pub static BEHIND: Playback =
    Playback { ahead_ns: BEHIND_NS, ..script("a clock behind", &[("pattern", "fan-out")], late) };
pub static AHEAD: Playback =
    Playback { ahead_ns: AHEAD_NS, ..script("a clock ahead", &[("pattern", "fan-out")], late) };
pub static FLAWED: Playback = script("flaws", &[("pattern", "fan-out"), ("verify", "header")], flawed);
pub static LONGER: Playback = script("a longer one", &[("pattern", "fan-out")], longer);
pub static SPOILT: Playback = script("bodies", &[("pattern", "fan-out"), ("verify", "full")], spoilt);
pub static LARGE: Playback = Playback {
    window: 5..29,
    sent: 29,
    ..script(
        "large bodies",
        &[("pattern", "fan-out"), ("verify", "full"), ("payload", "200KiB"), ("rate", "60")],
        large,
    )
};
pub static MIDDLE: Playback =
    script("28 bytes", &[("pattern", "fan-out"), ("payload", "28B"), ("verify", "full")], in_the_middle);
pub static GAPS: Playback =
    script("gaps", &[("pattern", "fan-in"), ("publishers", "3"), ("duration", "600ms"), ("rate", "313.131")], gaps);
pub static FOLLOWS: Playback =
    Playback { follows: true, ..script("the last come late", &[("pattern", "fan-in"), ("publishers", "2")], follows) };
pub static PART: Playback = Playback { first: 1, ..script("a part", &[("pattern", "pairs"), ("pairs", "3")], in_part) };
const fn many_by(pattern: &'static [(&'static str, &'static str)], name: &'static str) -> Playback {
    Playback { window: 10_000..MANY, sent: MANY, ..script(name, pattern, many) }
}
pub static MANY_PUSHED: Playback = many_by(
    &[("pattern", "pipeline"), ("rate", "100000"), ("duration", "800ms"), ("payload", "32B"), ("drain", "5s")],
    "70,000 of a pipeline",
);
pub static MANY_PUBLISHED: Playback = many_by(
    &[("pattern", "fan-out"), ("rate", "100000"), ("duration", "800ms"), ("payload", "32B"), ("drain", "5s")],
    "70,000",
);
pub static SHORT: Playback = script("16 bytes", &[("pattern", "fan-out"), ("payload", "16B")], late);
pub static TWO: Playback = script("two publishers", &[("pattern", "fan-in"), ("publishers", "2")], plain);
pub static PIPELINE: Playback = script("a pipeline", &[("pattern", "pipeline")], plain);
pub static SILENT: Playback = Playback {
    window: WARMUP as u64..WARMUP as u64 + 104,
    sent: WARMUP as u64 + 104,
    ..script("silences", &[("pattern", "fan-out"), ("duration", "1700ms")], silences)
};
pub static UNMARKED: Playback = Playback { ends: false, ..script("no end markers", &[("pattern", "fan-out")], plain) };
pub static MARKED: Playback = script("the last is lost", &[("pattern", "fan-out")], without_the_last);
pub static DEADLINE: Playback = Playback {
    ends: false,
    ..script("the last is lost without a word", &[("pattern", "fan-out"), ("drain", "1s")], without_the_last)
};
pub static ECHO: Playback = script("requests", &[("pattern", "request-reply"), ("pairs", "2")], plain);
pub static STOPPED: Playback =
    Playback { stops: &[MIDDLE_STOP], ..script("stopped", &[("pattern", "fan-out"), ("duration", "1200ms")], steady) };
pub static COUNTED: Playback =
    script("a count at max", &[("pattern", "fan-out"), ("rate", "max"), ("count", "200")], plain);
/// Killed in the silence: a hundred messages of the window have come, a hundred follow.
pub static KILLED: Playback =
    Playback { killed: true, ..script("killed", &[("pattern", "fan-out"), ("duration", "1200ms")], silence) };
