//! A subscriber without a socket and without a clock: it is handed messages
//! with the time of their arrival, and keeps recorder and ledger.

mod arrivals;

use crate::ledger::SeenSequences;
use crate::seal::is_sealed;
use crate::window::{Slicer, Window, measures_latency};
use arrivals::Arrivals;
use pubmark_model::header::{END, Header, MAX_SEQUENCE, PROBE, pattern};
use pubmark_model::profile::Profile;
use pubmark_model::protocol::{LedgerCounts, PublisherTotal, Sequences, Stalls};
use pubmark_model::setting::MOST_CLIENTS;
use pubmark_model::times::TimeFigures;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::{Arrival, Extent, Verify, Workload};
use pubmark_stats::Histogram;
use smallvec::SmallVec;
use std::ops::Range;

/// The rate that a ledger makes room for where the schedule sets none, 50
/// million messages per second: above what any system here has been seen to do.
const FASTEST: Profile = Profile::constant(50_000_000_000);

/// Silences below this are never called stalls.
const SHORTEST_STALL: Ns = 100 * MILLISECOND;

/// How many messages of one publisher a ledger must have room for.
pub fn ledger_capacity(workload: &Workload) -> u64 {
    let measured = workload.window_ns().unwrap_or(0);
    let profile = workload.rate.profile().unwrap_or(FASTEST);
    let by_time = profile.due_before(workload.warmup_ns.saturating_add(measured));
    // Poisson arrivals exceed their mean: 12 standard deviations and a floor.
    let spread = if workload.arrival == Arrival::Poisson { 12 * by_time.isqrt() + 64 } else { 64 };
    let burst = if let Arrival::Burst(size) = workload.arrival { u64::from(size) } else { 0 };
    let count = if let Extent::Count(count) = workload.extent { count } else { 0 };
    by_time.saturating_add(spread + burst + count).min(u64::from(MAX_SEQUENCE))
}

/// What one subscriber heard of one publisher.
struct Stream {
    seen: SeenSequences,
    next: u32,
    distinct: u64,
    heard: bool,
    ended: bool,
    last_latency: Option<(u32, Ns)>,
}

impl Stream {
    fn new(capacity: u64) -> Stream {
        Stream {
            seen: SeenSequences::with_capacity(capacity),
            next: 0,
            distinct: 0,
            heard: false,
            ended: false,
            last_latency: None,
        }
    }
}

/// The parts of a workload that each arrival is checked against.
struct Expectation {
    payload: usize,
    body_at: usize,
    body_crc: Option<u32>,
    /// Whether messages carry the checksum of their header.
    seals: bool,
    latency: bool,
    competing: bool,
    /// Whether what comes are the answers to what this client itself sent.
    answers: bool,
    stall_ns: Ns,
}

/// What each publisher sent, found by its number.
#[derive(Debug, Default)]
pub struct Totals(Vec<Option<PublisherTotal>>);

impl Totals {
    /// From the list of the protocol.
    pub fn new(list: &[PublisherTotal]) -> Totals {
        let mut totals = Vec::new();
        for total in list {
            let at = total.publisher as usize;
            if at < MOST_CLIENTS as usize {
                totals.resize(totals.len().max(at + 1), None);
                totals[at] = Some(*total);
            }
        }
        Totals(totals)
    }

    fn of(&self, publisher: u32) -> Option<&PublisherTotal> {
        self.0.get(publisher as usize).and_then(Option::as_ref)
    }
}

/// What the subscribers of one thread write into.
pub struct ReceiveRecorder {
    slicer: Option<Slicer>,
    expect: Expectation,
    counts: LedgerCounts,
    received: u64,
    arrived: u64,
    last_arrival_ns: Option<Ns>,
    times: Arrivals,
    /// When the receiving loop last listened with nothing to do, ns; 0 where nobody says.
    listened_ns: Ns,
    jitter_sum_ns: f64,
    jitter_pairs: u64,
    slices: Vec<u64>,
    stalls: Stalls,
    /// Messages of the window that came first when the drain was over.
    too_late: u64,
    /// When its subscribers were killed, ns.
    crashed_ns: Option<Ns>,
}

impl ReceiveRecorder {
    /// An empty one, for subscribers that hear `heard` publishers each. Until
    /// [`ReceiveRecorder::start`], only probes are understood.
    pub fn new(workload: &Workload, heard: u64) -> ReceiveRecorder {
        let payload = workload.payload_bytes as usize;
        let body_at = workload.body_at();
        let body_crc = (workload.verify == Verify::Full && payload > body_at)
            .then(|| crc32c::crc32c(&pattern(payload)[body_at..]));
        ReceiveRecorder {
            slicer: None,
            expect: Expectation {
                payload,
                body_at,
                body_crc,
                seals: workload.header_checksum,
                // Where one echoes, latency is whole where the echo arrives.
                latency: measures_latency(workload) && !workload.pattern.echoed(),
                competing: workload.competing(),
                answers: false,
                stall_ns: stall_ns(workload, heard),
            },
            counts: LedgerCounts::default(),
            received: 0,
            arrived: 0,
            last_arrival_ns: None,
            times: Arrivals::new(),
            listened_ns: 0,
            jitter_sum_ns: 0.0,
            jitter_pairs: 0,
            slices: Vec::new(),
            stalls: Stalls::default(),
            too_late: 0,
            crashed_ns: None,
        }
    }

    /// Of the publisher to which one of its subscribers echoes: it has the times,
    /// and counts what no echo came of; arrivals are counted by the subscribers.
    fn of_answers(workload: &Workload) -> ReceiveRecorder {
        let mut recorder = ReceiveRecorder::new(workload, 1);
        (recorder.expect.answers, recorder.expect.latency) = (true, measures_latency(workload));
        recorder
    }

    #[inline]
    fn window(&self) -> Option<Window> {
        self.slicer.as_ref().map(|slicer| *slicer.window())
    }

    /// The run's window is known: messages count from now on.
    pub fn start(&mut self, window: Window) {
        self.slices = vec![0; window.slices];
        if self.expect.latency {
            let slices = if window.to_ns.is_some() { window.slices } else { 1 };
            self.times.slice(slices);
        }
        self.slicer = Some(Slicer::new(window));
    }

    #[inline]
    fn measure(&mut self, stream: &mut Stream, header: &Header, now: Ns, slice: Option<usize>) {
        let Some(intended) = now.checked_sub(header.intended_ns) else {
            self.counts.negative += 1;
            return;
        };
        // What its publisher was late by its own doing is not the system's.
        let latency = intended.saturating_sub(header.own_lag_ns().unwrap_or(0));
        let times = TimeFigures {
            latency: Some(latency),
            intended_latency: Some(intended),
            service_latency: header.sent_ns.and_then(|sent| now.checked_sub(sent)),
            receive_lag: (self.listened_ns > 0).then(|| now.saturating_sub(self.listened_ns)),
            ..TimeFigures::none()
        };
        self.times.record(times, slice);
        // RFC 3393: the variation between a message and the one sent before
        // it; undefined where that one did not come. Competing subscribers
        // see only some of a stream: there the one received before counts.
        if let Some((sequence, before)) = stream.last_latency
            && (self.expect.competing || sequence.wrapping_add(1) == header.sequence)
        {
            self.jitter_sum_ns += latency.abs_diff(before) as f64;
            self.jitter_pairs += 1;
        }
        stream.last_latency = Some((header.sequence, latency));
    }

    #[cold]
    fn damaged(&mut self) {
        self.counts.corrupted += 1;
        self.counts.unidentified += 1;
    }

    #[inline]
    fn note_silence(&mut self, any_arrival_ns: &mut Ns, now: Ns) {
        let silence = now.saturating_sub(*any_arrival_ns);
        if silence > self.expect.stall_ns {
            self.stalls.count += 1;
            if silence > self.stalls.longest_ns
                && let Some(window) = self.window()
            {
                self.stalls.longest_ns = silence;
                self.stalls.longest_at_ns = any_arrival_ns.saturating_sub(window.from_ns);
            }
        }
        *any_arrival_ns = now;
    }

    /// Its subscribers are killed: that they hear nothing from now on is no
    /// silence.
    pub fn crashed(&mut self, at_ns: Ns) {
        self.crashed_ns = Some(at_ns);
    }

    /// All data messages received, for the live display.
    #[inline]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The ledger's counts.
    pub fn counts(&self) -> LedgerCounts {
        self.counts
    }

    /// Arrivals within the window's time (where it has no end of its own, those
    /// of its messages), and the last arrival of a window message.
    pub fn arrivals(&self) -> (u64, Option<Ns>) {
        (self.arrived, self.last_arrival_ns)
    }

    /// The times of all arrivals.
    pub fn times(&mut self) -> &TimeFigures<Option<Histogram>> {
        self.times.times()
    }

    /// The receiving loop listened at this instant, and had nothing to do:
    /// what it takes later can have been there since then, and no longer.
    #[inline]
    pub fn listened(&mut self, at_ns: Ns) {
        self.listened_ns = at_ns;
    }

    /// Sum and number of delay variations.
    pub fn jitter(&self) -> (f64, u64) {
        (self.jitter_sum_ns, self.jitter_pairs)
    }

    /// Arrivals, and their latencies, by slice of the window.
    pub fn slices(&mut self) -> (&[u64], &[Histogram]) {
        (&self.slices, self.times.slices())
    }

    /// Silences.
    pub fn stalls(&self) -> Stalls {
        self.stalls
    }

    /// Messages of the window that came when the drain was over: they are lost.
    pub fn too_late(&self) -> u64 {
        self.too_late
    }
}

/// What one subscriber has heard of whom: all that is kept for each of thousands.
pub struct IncomingStreams {
    hears: Range<u32>,
    /// Most subscribers hear one publisher: that one's stream lies here.
    streams: SmallVec<[Stream; 1]>,
    unheard: u32,
    any_arrival_ns: Ns,
}

impl IncomingStreams {
    /// A subscriber that hears these publishers.
    pub fn new(workload: &Workload, hears: Range<u32>) -> IncomingStreams {
        let capacity = ledger_capacity(workload);
        let streams = hears.clone().map(|_| Stream::new(capacity)).collect();
        IncomingStreams { unheard: hears.len() as u32, hears, streams, any_arrival_ns: 0 }
    }

    /// A message arrived at `now`.
    #[inline]
    pub fn arrived(&mut self, recorder: &mut ReceiveRecorder, message: &[u8], now: Ns) {
        let expect = &recorder.expect;
        let is_whole = message.len() == expect.payload && (!expect.seals || is_sealed(message));
        let header = Header::read(message).filter(|_| is_whole);
        let (body_at, body_crc) = (expect.body_at, expect.body_crc);
        self.take(recorder, header, now, || body_crc.is_none_or(|crc| crc32c::crc32c(&message[body_at..]) == crc));
    }

    /// Counts a message that arrived at `now`. `header` is none where the message has another
    /// length than it should, or a header that its checksum does not fit. `is_sound` says
    /// whether its body is as it was sent, and is asked only where that counts.
    #[inline]
    pub(crate) fn take(
        &mut self,
        recorder: &mut ReceiveRecorder,
        header: Option<Header>,
        now: Ns,
        is_sound: impl FnOnce() -> bool,
    ) {
        let Some(header) = header else {
            recorder.damaged();
            return;
        };
        let slot = header.publisher.wrapping_sub(self.hears.start) as usize;
        let Some(stream) = self.streams.get_mut(slot) else {
            recorder.damaged();
            return;
        };
        if header.sequence >= END {
            match header.sequence {
                PROBE if !stream.heard => {
                    stream.heard = true;
                    self.unheard -= 1;
                }
                PROBE => {}
                _ => stream.ended = true,
            }
            return;
        }
        let Some(window) = recorder.window() else {
            recorder.damaged();
            return;
        };
        let header = header.ahead_by(-window.ahead_ns);
        if !plausible(&window, header.intended_ns) {
            recorder.damaged();
            return;
        }
        // Where the clock is read only now and then, the message may know better.
        let now = if recorder.expect.latency { now } else { now.max(header.intended_ns) };
        let measured = window.holds(header.intended_ns);
        // A publisher sends nothing that a ledger has no room for.
        let Some(new) = stream.seen.mark(header.sequence) else {
            recorder.damaged();
            return;
        };
        recorder.received += 1;
        if !new {
            recorder.counts.duplicated += u64::from(measured);
            return;
        }
        stream.distinct += 1;
        let in_order = header.sequence >= stream.next;
        if in_order {
            stream.next = header.sequence + 1;
        } else if measured {
            recorder.counts.reordered += 1;
        }
        let sound = is_sound();
        if measured {
            recorder.last_arrival_ns = Some(now);
            recorder.counts.corrupted += u64::from(!sound);
        }
        let slice = recorder.slicer.as_mut().and_then(|slicer| slicer.slice(now));
        if let Some(slice) = slice.filter(|_| !recorder.expect.answers) {
            // The window of a count is that of its messages: what is left of
            // the warm-up is none of it.
            if measured || window.to_ns.is_some() {
                recorder.arrived += 1;
                recorder.slices[slice] += 1;
            }
            self.any_arrival_ns = self.any_arrival_ns.max(window.from_ns);
            recorder.note_silence(&mut self.any_arrival_ns, now);
        }
        if measured && sound && recorder.expect.latency {
            recorder.measure(stream, &header, now, slice);
        }
    }

    /// A message arrived when the drain was over: one that had come before is a
    /// duplicate, any other is too late.
    pub fn arrived_after(&self, recorder: &mut ReceiveRecorder, message: &[u8]) {
        let Some(header) = Header::read(message).filter(|header| header.sequence < END) else { return };
        let slot = header.publisher.wrapping_sub(self.hears.start) as usize;
        let in_window =
            recorder.window().is_some_and(|window| window.holds(header.ahead_by(-window.ahead_ns).intended_ns));
        let Some(stream) = self.streams.get(slot).filter(|_| in_window && message.len() == recorder.expect.payload)
        else {
            return;
        };
        let sequence = u64::from(header.sequence);
        match stream.seen.count(sequence, sequence + 1) {
            0 => recorder.too_late += 1,
            _ => recorder.counts.duplicated += 1,
        }
    }

    /// Whether it hears this publisher.
    pub fn hears(&self, publisher: u32) -> bool {
        self.hears.contains(&publisher)
    }

    /// How many publishers it hears whose probe has not arrived.
    #[inline]
    pub fn unheard_count(&self) -> u32 {
        self.unheard
    }

    /// The publishers that no probe has come from.
    pub fn unheard(&self) -> Vec<u32> {
        let streams = self.hears.clone().zip(&self.streams);
        streams.filter(|(_, stream)| !stream.heard).map(|(publisher, _)| publisher).collect()
    }

    /// Whether nothing more can come: all that was sent is here, or the end
    /// marker is, which over an orderly transport nothing follows.
    pub fn complete(&self, totals: &Totals, orderly: bool, competing: bool) -> bool {
        // Among those that came may be some that nobody sent.
        let has_all = |stream: &Stream, total: &PublisherTotal| {
            stream.distinct >= total.sent && stream.seen.count(0, total.sent) >= total.sent
        };
        self.hears.clone().zip(&self.streams).all(|(publisher, stream)| {
            (orderly && stream.ended)
                || (!competing && totals.of(publisher).is_some_and(|total| has_all(stream, total)))
        })
    }

    /// Whether every publisher's end marker has come.
    pub fn ended(&self) -> bool {
        self.streams.iter().all(|stream| stream.ended)
    }

    /// Messages that it has received, each counted once.
    pub fn distinct(&self) -> u64 {
        self.streams.iter().map(|stream| stream.distinct).sum()
    }

    /// Closes the ledger: what was expected is known.
    pub fn close(&mut self, recorder: &mut ReceiveRecorder, totals: &Totals) {
        let (Some(window), false) = (recorder.window(), totals.0.is_empty()) else {
            return;
        };
        for (publisher, stream) in self.hears.clone().zip(&self.streams) {
            let Some(total) = totals.of(publisher) else { continue };
            let came = stream.seen.count(total.window_first, total.window_end);
            let of_window = total.window_end.saturating_sub(total.window_first);
            // Its number was damaged, or it is of no message of this run.
            let unsent = stream.seen.count(total.sent, stream.seen.highest());
            recorder.counts.corrupted += unsent;
            recorder.counts.unidentified += unsent;
            if recorder.expect.answers {
                recorder.counts.unanswered += of_window - came;
                continue;
            }
            recorder.counts.delivered += came;
            if !recorder.expect.competing {
                recorder.counts.expected += of_window;
            }
        }
        let notes_silence = !recorder.expect.competing && !recorder.expect.answers;
        if let (Some(to), true) = (window.to_ns, notes_silence) {
            self.any_arrival_ns = self.any_arrival_ns.max(window.from_ns);
            let end = to.min(recorder.crashed_ns.unwrap_or(to)).max(self.any_arrival_ns);
            recorder.note_silence(&mut self.any_arrival_ns, end);
        }
    }

    /// The messages of the window that did not come.
    pub fn missing(&self, totals: &Totals) -> impl Iterator<Item = Sequences> {
        let streams = self.hears.clone().zip(&self.streams);
        let known = streams.filter_map(|(publisher, stream)| Some((stream, totals.of(publisher)?)));
        known.flat_map(|(stream, total)| {
            let gaps = stream.seen.gaps(total.window_first, total.window_end);
            gaps.map(move |(first, end)| Sequences { publisher: total.publisher, first, end })
        })
    }

    /// Which sequences arrived, by publisher.
    pub fn into_seen(self) -> impl Iterator<Item = (u32, SeenSequences)> {
        self.hears.zip(self.streams.into_iter().map(|stream| stream.seen))
    }
}

/// One subscriber, or the receiving side of a requester, with a recorder of its own.
pub struct Subscriber {
    incoming: IncomingStreams,
    recorder: ReceiveRecorder,
}

impl Subscriber {
    /// A subscriber that hears these publishers. Until [`Subscriber::start`],
    /// only probes are understood.
    pub fn new(workload: &Workload, hears: Range<u32>) -> Subscriber {
        Subscriber {
            recorder: ReceiveRecorder::new(workload, hears.len() as u64),
            incoming: IncomingStreams::new(workload, hears),
        }
    }

    /// The hearing side of a publisher whose messages one subscriber echoes.
    pub fn of_answers(workload: &Workload, publisher: u32) -> Subscriber {
        Subscriber {
            recorder: ReceiveRecorder::of_answers(workload),
            incoming: IncomingStreams::new(workload, publisher..publisher + 1),
        }
    }

    /// See [`ReceiveRecorder::listened`].
    #[inline]
    pub fn listened(&mut self, at_ns: Ns) {
        self.recorder.listened(at_ns);
    }

    /// The run's window is known: messages count from now on.
    pub fn start(&mut self, window: Window) {
        self.recorder.start(window);
    }

    /// See [`ReceiveRecorder::crashed`].
    pub fn crashed(&mut self, at_ns: Ns) {
        self.recorder.crashed(at_ns);
    }

    /// A message arrived at `now`.
    #[inline]
    pub fn arrived(&mut self, message: &[u8], now: Ns) {
        self.incoming.arrived(&mut self.recorder, message, now);
    }

    /// See [`IncomingStreams::take`].
    #[inline]
    pub(crate) fn take(&mut self, header: Option<Header>, now: Ns, is_sound: bool) {
        self.incoming.take(&mut self.recorder, header, now, || is_sound);
    }

    /// Whether a probe of every publisher has arrived.
    pub fn heard_all(&self) -> bool {
        self.incoming.unheard_count() == 0
    }

    /// See [`IncomingStreams::complete`].
    pub fn complete(&self, totals: &Totals, orderly: bool) -> bool {
        self.incoming.complete(totals, orderly, self.recorder.expect.competing)
    }

    /// Closes the ledger: what was expected is known.
    pub fn close(&mut self, totals: &Totals) {
        self.incoming.close(&mut self.recorder, totals);
    }

    /// What it heard of whom.
    pub fn incoming(&self) -> &IncomingStreams {
        &self.incoming
    }

    /// What was recorded.
    pub fn recorder(&self) -> &ReceiveRecorder {
        &self.recorder
    }

    /// The same, where histograms are looked at.
    pub fn recorder_mut(&mut self) -> &mut ReceiveRecorder {
        &mut self.recorder
    }

    /// Both, when it is over.
    pub fn into_parts(self) -> (IncomingStreams, ReceiveRecorder) {
        (self.incoming, self.recorder)
    }
}

/// Whether a message of this run can have been due then: not before its start,
/// and not after its window (but for the rounding of a count).
#[inline]
fn plausible(window: &Window, intended_ns: Ns) -> bool {
    intended_ns >= window.start_ns && window.to_ns.is_none_or(|to| intended_ns < to + SECOND)
}

/// The silence that counts as a stall: twenty times the mean gap (or burst
/// period) where the rate is lowest, half a second where messages go out as fast as possible.
fn stall_ns(workload: &Workload, heard: u64) -> Ns {
    let Some(profile) = workload.rate.profile() else {
        return SECOND / 2;
    };
    let burst = if let Arrival::Burst(size) = workload.arrival { u64::from(size) } else { 1 };
    let sharing = if workload.competing() { u64::from(workload.subscribers) } else { 1 };
    let heard = if workload.pattern.round_trip() { 1 } else { heard.max(1) };
    let gap =
        u128::from(burst * sharing) * 1_000_000_000_000 / (u128::from(*profile.per_ks().start()) * u128::from(heard));
    (20 * gap.min(u128::from(SECOND) * 3_600) as Ns).max(SHORTEST_STALL)
}

#[cfg(test)]
mod tests;
