//! A subscriber without socket or clock. The caller passes in messages with their arrival
//! times; the subscriber keeps recorder and ledger.

mod arrivals;
mod capacity;
mod last_will;
mod late_start;
mod round_trip;
mod silence;
mod sized;
mod sized_arrival;
mod stream;
mod totals;

use crate::ledger::SeenSequences;
use crate::reply_times::ReplyTimes;
use crate::seal::is_sealed;
use crate::window::{Slicer, Window, measures_latency};
use arrivals::Arrivals;
pub use capacity::ledger_capacity;
use last_will::WillArrivals;
pub use last_will::WillRecord;
pub use late_start::LateStart;
use pubmark_model::counts::ByteCounts;
use pubmark_model::header::{END, Header, PROBE, SENT_LEN, WILL, WILL_LEN};
use pubmark_model::protocol::{LedgerCounts, PublisherTotal, Sequences, Stalls};
use pubmark_model::record::CatchUp;
use pubmark_model::times::TimeFigures;
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::workload::{Verify, Workload};
use pubmark_stats::Histogram;
use silence::stall_ns;
use sized::SizedMessages;
use smallvec::SmallVec;
use std::ops::Range;
use stream::Stream;
pub use totals::Totals;

/// The parts of a workload that each arrival is checked against.
struct Expectation {
    payload: usize,
    body_at: usize,
    body_crc: Option<u32>,
    /// True if messages carry the checksum of their header.
    seals: bool,
    /// The length and the body of each message, if sizes vary.
    sized: Option<Box<SizedMessages>>,
    latency: bool,
    /// True if each message is for one of several subscribers.
    divided: bool,
    /// Offset of the replier's times, if answers have them.
    reply_times_at: Option<usize>,
    /// Time after the send from which on an answer is late, ns.
    answer_ns: Ns,
    /// True if arrivals are the answers to messages that this client sent.
    answers: bool,
    stall_ns: Ns,
    /// Part of the window in which messages are due and subscribers connected, so that silences count, ns from its
    /// beginning.
    due_after_ns: Ns,
    due_before_ns: Ns,
}

/// Times and counts of arrivals, recorded by all subscribers of one thread.
pub struct ReceiveRecorder {
    slicer: Option<Slicer>,
    expect: Expectation,
    counts: LedgerCounts,
    received: u64,
    arrived: u64,
    arrived_before: u64,
    /// Bytes of what arrived, if sizes vary.
    bytes: ByteCounts,
    last_arrival_ns: Option<Ns>,
    times: Arrivals,
    /// Instant at which the receiving loop last waited with nothing to do, ns; 0 if
    /// unknown.
    listened_ns: Ns,
    jitter_sum_ns: f64,
    jitter_pairs: u64,
    slices: Vec<u64>,
    stalls: Stalls,
    /// Messages of the window that first arrived after the drain.
    too_late: u64,
    /// The time in which those that start late caught up.
    catch_up: Option<CatchUp>,
    /// Last wills, if publishers have some.
    wills: Option<Box<WillRecord>>,
    /// Instant at which the subscribers were killed, ns.
    crashed_ns: Option<Ns>,
    /// The replier's times in the message that is counted now.
    reply_times: Option<ReplyTimes>,
    /// Part of a topic that the next messages come from. Order is checked within each.
    pub part: u32,
}

impl ReceiveRecorder {
    /// Makes an empty recorder for subscribers that receive from `heard` publishers each.
    /// Until [`ReceiveRecorder::start`], only probes are recognised.
    pub fn new(workload: &Workload, heard: u64) -> ReceiveRecorder {
        let payload = workload.payload_bytes as usize;
        let body_at = workload.body_at(payload);
        let tells_late = workload.pattern.requests() && workload.least_payload_bytes() >= SENT_LEN as u64;
        let is_checked = workload.verify == Verify::Full && payload > body_at && !workload.sizes_vary();
        let body_crc = is_checked.then(|| crc32c::crc32c(&workload.payload_content.message(payload)[body_at..]));
        ReceiveRecorder {
            slicer: None,
            expect: Expectation {
                payload,
                body_at,
                body_crc,
                seals: workload.header_checksum,
                sized: SizedMessages::of(workload),
                // If one subscriber echoes, the full latency is measured where the echo
                // arrives.
                latency: measures_latency(workload) && !workload.pattern.echoed(),
                divided: workload.is_divided(),
                reply_times_at: workload.reply_times_at(),
                answer_ns: workload.answer_ns(),
                answers: false,
                stall_ns: stall_ns(workload, heard),
                due_after_ns: workload.span.start_ns.max(workload.subscribers_start_ns).unwrap_or(0),
                due_before_ns: workload.span.end_ns.unwrap_or(Ns::MAX),
            },
            counts: LedgerCounts { late_answers: tells_late.then_some(0), ..LedgerCounts::default() },
            received: 0,
            arrived: 0,
            arrived_before: 0,
            bytes: ByteCounts::default(),
            last_arrival_ns: None,
            times: Arrivals::new(),
            listened_ns: 0,
            jitter_sum_ns: 0.0,
            jitter_pairs: 0,
            slices: Vec::new(),
            stalls: Stalls::default(),
            too_late: 0,
            catch_up: None,
            wills: workload.last_will.then(Box::default),
            crashed_ns: None,
            reply_times: None,
            part: 0,
        }
    }

    /// Makes the recorder of a publisher to which one of its subscribers echoes. It has
    /// the times and counts messages without an echo; the subscribers count arrivals.
    fn of_answers(workload: &Workload) -> ReceiveRecorder {
        let mut recorder = ReceiveRecorder::new(workload, 1);
        (recorder.expect.answers, recorder.expect.latency) = (true, measures_latency(workload));
        recorder
    }

    #[inline]
    fn window(&self) -> Option<Window> {
        self.slicer.as_ref().map(|slicer| *slicer.window())
    }

    /// Starts the recording with the window of the run: messages count from now on.
    pub fn start(&mut self, window: Window) {
        self.slices = vec![0; window.slices];
        if self.expect.latency {
            let slices = if window.to_ns.is_some() { window.slices } else { 1 };
            self.times.begin(slices, self.expect.reply_times_at.is_some());
        }
        self.slicer = Some(Slicer::new(window));
    }

    #[inline]
    fn measure(&mut self, stream: &mut Stream, header: &Header, now: Ns, slice: Option<usize>) {
        let Some(intended) = now.checked_sub(header.intended_ns) else {
            self.counts.negative += 1;
            return;
        };
        // Generator delay is not part of the system's latency.
        let latency = intended.saturating_sub(header.own_lag_ns().unwrap_or(0));
        let (request_latency, reply_latency, replier_time) = self.legs(header, now);
        let times = TimeFigures {
            latency: Some(latency),
            intended_latency: Some(intended),
            service_latency: header.sent_ns.and_then(|sent| now.checked_sub(sent)),
            receive_lag: (self.listened_ns > 0).then(|| now.saturating_sub(self.listened_ns)),
            request_latency,
            reply_latency,
            replier_time,
            ..TimeFigures::none()
        };
        self.times.record(times, slice);
        // RFC 3393: the variation between a message and the one sent before it; undefined
        // if that one did not arrive. Subscribers of a divided stream see only some of its
        // messages: for them it is the one received before.
        if let Some((sequence, before)) = stream.last_latency
            && (self.expect.divided || sequence.wrapping_add(1) == header.sequence)
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

    /// Notes that the subscribers were killed: their silence from now on is not a stall.
    pub fn crashed(&mut self, at_ns: Ns) {
        self.crashed_ns = Some(at_ns);
    }

    /// Returns all data messages received, for the live display.
    #[inline]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns the ledger's counts.
    pub fn counts(&self) -> LedgerCounts {
        self.counts
    }

    /// Returns the arrivals within the window's time (for a window of a message count:
    /// those of its messages), and the last arrival of a window message.
    pub fn arrivals(&self) -> (u64, Option<Ns>) {
        (self.arrived, self.last_arrival_ns)
    }

    /// Returns the arrivals before the window, each message counted once.
    pub fn arrived_before(&self) -> u64 {
        self.arrived_before
    }

    /// Returns the time in which those that start late caught up; `None` if none of them subscribed.
    pub fn catch_up(&self) -> Option<CatchUp> {
        self.catch_up
    }

    /// Returns the last wills, if publishers have some.
    pub fn wills(&self) -> Option<&WillRecord> {
        self.wills.as_deref()
    }

    /// Returns the header of a last will, which is not as long as a message.
    #[cold]
    fn will(&self, message: &[u8]) -> Option<Header> {
        let is_will = |header: &Header| message.len() == WILL_LEN && header.sequence == WILL;
        Header::read(message).filter(|header| self.wills.is_some() && is_will(header))
    }

    /// Returns the bytes of what arrived, if sizes vary.
    pub fn bytes(&self) -> ByteCounts {
        self.bytes
    }

    /// Returns the times of all arrivals.
    pub fn times(&mut self) -> &TimeFigures<Option<Histogram>> {
        self.times.times()
    }

    /// Notes that the receiving loop waited at this instant with nothing to do: a later
    /// message cannot have been there before it.
    #[inline]
    pub fn listened(&mut self, at_ns: Ns) {
        self.listened_ns = at_ns;
    }

    /// Returns the sum and the number of delay variations.
    pub fn jitter(&self) -> (f64, u64) {
        (self.jitter_sum_ns, self.jitter_pairs)
    }

    /// Returns arrivals, and their latencies, by slice of the window.
    pub fn slices(&mut self) -> (&[u64], &[Histogram]) {
        (&self.slices, self.times.slices())
    }

    /// Returns the silences.
    pub fn stalls(&self) -> Stalls {
        self.stalls
    }

    /// Returns the messages of the window that arrived after the drain; they are lost.
    pub fn too_late(&self) -> u64 {
        self.too_late
    }
}

/// The streams that one subscriber receives. It is small, because there are thousands.
pub struct IncomingStreams {
    hears: Range<u32>,
    /// Streams by publisher. Most subscribers have one, which is stored inline.
    streams: SmallVec<[Stream; 1]>,
    unheard: u32,
    any_arrival_ns: Ns,
    /// Last wills that it has received.
    wills: Option<Box<WillArrivals>>,
    /// What it has received since its start, if it starts late.
    pub late_start: Option<Box<LateStart>>,
}

impl IncomingStreams {
    /// Makes a subscriber that receives from these publishers.
    pub fn new(workload: &Workload, hears: Range<u32>) -> IncomingStreams {
        let capacity = ledger_capacity(workload);
        let streams = hears.clone().map(|_| Stream::new(capacity)).collect();
        IncomingStreams {
            unheard: hears.len() as u32,
            hears,
            streams,
            any_arrival_ns: 0,
            wills: None,
            late_start: None,
        }
    }

    /// Records a message that arrived at `now`.
    #[inline]
    pub fn arrived(&mut self, recorder: &mut ReceiveRecorder, message: &[u8], now: Ns) {
        if recorder.expect.sized.is_some() {
            return self.arrived_sized(recorder, message, now);
        }
        let has_times = recorder.note_reply(message);
        let expect = &recorder.expect;
        let is_whole = message.len() == expect.payload && (!expect.seals || is_sealed(message));
        let header = Header::read(message).filter(|_| is_whole).or_else(|| recorder.will(message));
        let (body_at, body_crc) = (expect.body_at, expect.body_crc);
        let is_sound = |crc| has_times && crc32c::crc32c(&message[body_at..]) == crc;
        self.take(recorder, header, now, || body_crc.is_none_or(is_sound));
    }

    /// Counts a message that arrived at `now`. `header` is `None` if the message has the
    /// wrong length, or its header does not fit its checksum. `is_sound` returns whether the
    /// body is as it was sent; it is called only if that counts.
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
        if header.sequence >= WILL {
            match header.sequence {
                PROBE if !stream.heard => {
                    stream.heard = true;
                    self.unheard -= 1;
                }
                PROBE => {}
                END => stream.ended = true,
                _ if recorder.wills.is_none() => recorder.damaged(),
                _ => self.wills.get_or_insert_default().arrived(header.publisher, header.intended_ns, now),
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
        // If the clock is read only now and then, the message's own time may be later.
        let now = if recorder.expect.latency { now } else { now.max(header.intended_ns) };
        let measured = window.holds(header.intended_ns);
        // A publisher sends no message that a ledger has no room for.
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
        let next = stream.next(recorder.part);
        if header.sequence >= *next {
            *next = header.sequence + 1;
        } else if measured {
            recorder.counts.reordered += 1;
        }
        let sound = is_sound();
        if measured {
            recorder.note_late_answer(&header, now);
            recorder.last_arrival_ns = Some(now);
            recorder.counts.corrupted += u64::from(!sound);
        }
        let slice = recorder.slicer.as_mut().and_then(|slicer| slicer.slice(now));
        if let Some(slice) = slice.filter(|_| !recorder.expect.answers) {
            // The window of a message count consists of its messages: the rest of the
            // warm-up does not belong to it.
            if measured || window.to_ns.is_some() {
                recorder.arrived += 1;
                recorder.slices[slice] += 1;
            }
            self.any_arrival_ns = self.any_arrival_ns.max(window.from_ns + recorder.expect.due_after_ns);
            recorder.note_silence(&mut self.any_arrival_ns, now);
        } else if now < window.from_ns && !recorder.expect.answers {
            recorder.arrived_before += 1;
        }
        if let Some(late_start) = &mut self.late_start {
            late_start.arrived(now, header.intended_ns.saturating_add(header.own_lag_ns().unwrap_or(0)));
        }
        if measured && sound && recorder.expect.latency {
            recorder.measure(stream, &header, now, slice);
        }
    }

    /// Records a message that arrived after the drain: a duplicate if it had arrived
    /// before, otherwise too late.
    pub fn arrived_after(&self, recorder: &mut ReceiveRecorder, message: &[u8]) {
        let Some(header) = Header::read(message).filter(|header| header.sequence < WILL) else { return };
        let slot = header.publisher.wrapping_sub(self.hears.start) as usize;
        let in_window =
            recorder.window().is_some_and(|window| window.holds(header.ahead_by(-window.ahead_ns).intended_ns));
        let is_whole = match &recorder.expect.sized {
            None => message.len() == recorder.expect.payload,
            Some(sized) => sized.header(message).is_some(),
        };
        let Some(stream) = self.streams.get(slot).filter(|_| in_window && is_whole) else { return };
        let sequence = u64::from(header.sequence);
        match stream.seen.count(sequence, sequence + 1) {
            0 => recorder.too_late += 1,
            _ => recorder.counts.duplicated += 1,
        }
    }

    /// True if the subscriber receives from this publisher.
    pub fn hears(&self, publisher: u32) -> bool {
        self.hears.contains(&publisher)
    }

    /// Returns the number of its publishers whose probe has not arrived.
    #[inline]
    pub fn unheard_count(&self) -> u32 {
        self.unheard
    }

    /// Returns the number of publishers whose probes are not awaited any more.
    pub fn give_up(&mut self) -> u32 {
        std::mem::take(&mut self.unheard)
    }

    /// Returns the publishers from which no probe has arrived.
    pub fn unheard(&self) -> Vec<u32> {
        let streams = self.hears.clone().zip(&self.streams);
        streams.filter(|(_, stream)| !stream.heard).map(|(publisher, _)| publisher).collect()
    }

    /// True if nothing more can arrive: everything that was sent is here, or the end
    /// marker is, which is the last message of an orderly transport.
    pub fn complete(&self, totals: &Totals, orderly: bool, divided: bool) -> bool {
        // Some of those that arrived may never have been sent.
        let has_all = |stream: &Stream, total: &PublisherTotal| {
            stream.distinct >= total.sent && stream.seen.count(0, total.sent) >= total.sent
        };
        self.hears.clone().zip(&self.streams).all(|(publisher, stream)| {
            (orderly && stream.ended) || (!divided && totals.of(publisher).is_some_and(|total| has_all(stream, total)))
        })
    }

    /// True if every publisher's end marker has arrived.
    pub fn ended(&self) -> bool {
        self.streams.iter().all(|stream| stream.ended)
    }

    /// True if all last wills that are due have arrived.
    pub fn has_wills(&self, totals: &Totals) -> bool {
        let none = WillArrivals::default();
        self.wills.as_deref().unwrap_or(&none).has_all(&self.hears, totals)
    }

    /// Returns the number of distinct messages received.
    pub fn distinct(&self) -> u64 {
        self.streams.iter().map(|stream| stream.distinct).sum()
    }

    /// Closes the ledger, now that the expected messages are known.
    pub fn close(&mut self, recorder: &mut ReceiveRecorder, totals: &Totals) {
        let (Some(window), false) = (recorder.window(), totals.is_empty()) else {
            return;
        };
        if let Some(caught_up) = self.late_start.as_ref().and_then(|late_start| late_start.result(window.from_ns)) {
            recorder.catch_up.iter_mut().for_each(|all| all.add(&caught_up));
            recorder.catch_up.get_or_insert(caught_up);
        }
        if let Some(wills) = &mut recorder.wills {
            wills.close(self.wills.as_deref(), &self.hears, totals, window.ahead_ns);
        }
        for (publisher, stream) in self.hears.clone().zip(&self.streams) {
            let Some(total) = totals.of(publisher) else { continue };
            let came = stream.seen.count(total.window_first, total.window_end);
            let of_window = total.window_end.saturating_sub(total.window_first);
            // Its number was damaged, or it is not of this run.
            let unsent = stream.seen.count(total.sent, stream.seen.highest());
            recorder.counts.corrupted += unsent;
            recorder.counts.unidentified += unsent;
            if recorder.expect.answers {
                recorder.counts.unanswered += of_window - came;
                continue;
            }
            recorder.counts.delivered += came;
            if !recorder.expect.divided {
                recorder.counts.expected += of_window;
            }
        }
        let notes_silence = !recorder.expect.divided && !recorder.expect.answers;
        if let (Some(to), true) = (window.to_ns, notes_silence) {
            self.any_arrival_ns = self.any_arrival_ns.max(window.from_ns + recorder.expect.due_after_ns);
            let to = to.min(window.from_ns.saturating_add(recorder.expect.due_before_ns));
            let end = to.min(recorder.crashed_ns.unwrap_or(to)).max(self.any_arrival_ns);
            recorder.note_silence(&mut self.any_arrival_ns, end);
        }
    }

    /// Returns the messages of the window that did not arrive.
    pub fn missing(&self, totals: &Totals) -> impl Iterator<Item = Sequences> {
        let streams = self.hears.clone().zip(&self.streams);
        let known = streams.filter_map(|(publisher, stream)| Some((stream, totals.of(publisher)?)));
        known.flat_map(|(stream, total)| {
            let gaps = stream.seen.gaps(total.window_first, total.window_end);
            gaps.map(move |(first, end)| Sequences { publisher: total.publisher, first, end })
        })
    }

    /// Returns the sequences that arrived, by publisher.
    pub fn into_seen(self) -> impl Iterator<Item = (u32, SeenSequences)> {
        self.hears.zip(self.streams.into_iter().map(|stream| stream.seen))
    }
}

/// One subscriber, or the receiving side of a requester, with its own recorder.
pub struct Subscriber {
    incoming: IncomingStreams,
    recorder: ReceiveRecorder,
}

impl Subscriber {
    /// Makes a subscriber that receives from these publishers. Until
    /// [`Subscriber::start`], only probes are recognised.
    pub fn new(workload: &Workload, hears: Range<u32>) -> Subscriber {
        Subscriber {
            recorder: ReceiveRecorder::new(workload, hears.len() as u64),
            incoming: IncomingStreams::new(workload, hears),
        }
    }

    /// Makes the receiving side of a publisher whose messages one subscriber echoes.
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

    /// Starts the recording with the window of the run: messages count from now on.
    pub fn start(&mut self, window: Window) {
        self.recorder.start(window);
    }

    /// See [`ReceiveRecorder::crashed`].
    pub fn crashed(&mut self, at_ns: Ns) {
        self.recorder.crashed(at_ns);
    }

    /// Records a message that arrived at `now`.
    #[inline]
    pub fn arrived(&mut self, message: &[u8], now: Ns) {
        self.incoming.arrived(&mut self.recorder, message, now);
    }

    /// See [`IncomingStreams::take`].
    #[inline]
    pub(crate) fn take(&mut self, header: Option<Header>, now: Ns, is_sound: bool) {
        self.incoming.take(&mut self.recorder, header, now, || is_sound);
    }

    /// True if a probe of every publisher has arrived.
    pub fn heard_all(&self) -> bool {
        self.incoming.unheard_count() == 0
    }

    /// See [`IncomingStreams::complete`].
    pub fn complete(&self, totals: &Totals, orderly: bool) -> bool {
        self.incoming.complete(totals, orderly, self.recorder.expect.divided)
    }

    /// Closes the ledger, now that the expected messages are known.
    pub fn close(&mut self, totals: &Totals) {
        self.incoming.close(&mut self.recorder, totals);
    }

    /// Returns the streams.
    pub fn incoming(&self) -> &IncomingStreams {
        &self.incoming
    }

    /// Returns the recorder.
    pub fn recorder(&self) -> &ReceiveRecorder {
        &self.recorder
    }

    /// Returns the recorder for access to its histograms.
    pub fn recorder_mut(&mut self) -> &mut ReceiveRecorder {
        &mut self.recorder
    }

    /// Returns streams and recorder at the end.
    pub fn into_parts(self) -> (IncomingStreams, ReceiveRecorder) {
        (self.incoming, self.recorder)
    }
}

/// True if a message of this run can have been due then: not before its start, and not
/// after its window (except for the rounding of a count).
#[inline]
fn plausible(window: &Window, intended_ns: Ns) -> bool {
    intended_ns >= window.start_ns && window.to_ns.is_none_or(|to| intended_ns < to + SECOND)
}

#[cfg(test)]
mod tests;
