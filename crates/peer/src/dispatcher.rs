//! Decides about each message, by the script. The time is passed in, and there is no socket: tests run in virtual time.

use crate::delay::Span;
use crate::routes::{Address, KeptAddress};
use crate::script::PeerScript;
use crate::speech::{KeptWill, PublisherAnswer};
use crate::tally::PeerTally;
use pubmark_model::header::{Header, MAX_SEQUENCE, PROBE};
use pubmark_model::units::Ns;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::rc::Rc;

/// A message that waits for its due time.
#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    /// Where it goes.
    pub to: KeptAddress,
    /// Payload, damaged if the script says so.
    pub payload: Box<[u8]>,
    /// Quality of service of its publisher.
    pub qos: u8,
    /// Instant from which its latency counts, if it is counted: its intended time plus the generator delay.
    counted_ns: Option<Ns>,
}

/// A message with its due time, ordered by that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedMessage {
    /// Due time, ns.
    pub at_ns: Ns,
    /// Number of creation, which orders equal due times.
    made: u64,
    /// The message.
    pub message: Rc<Message>,
    /// The only receiving client, if the message waited for its stall.
    pub only: Option<usize>,
}

impl Ord for PlannedMessage {
    fn cmp(&self, other: &PlannedMessage) -> std::cmp::Ordering {
        (self.at_ns, self.made).cmp(&(other.at_ns, other.made))
    }
}

impl PartialOrd for PlannedMessage {
    fn partial_cmp(&self, other: &PlannedMessage) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A message that waits for its publisher's next one.
struct Held {
    at_ns: Ns,
    copies: u32,
    message: Rc<Message>,
}

/// State of a publisher.
#[derive(Default)]
struct Line {
    /// Latest due time of its messages.
    last_ns: Ns,
    held: Option<Held>,
}

/// Dispatcher of messages.
pub struct Dispatcher {
    script: Rc<PeerScript>,
    origin_ns: Option<Ns>,
    lines: HashMap<u32, Line>,
    agenda: BinaryHeap<Reverse<PlannedMessage>>,
    made: u64,
    waiting_bytes: usize,
    /// Instant at which the server has served all messages so far.
    served_ns: Ns,
    /// Requests so far, by publisher and sequence, if answers are delayed.
    asked: HashSet<(u32, u32)>,
    /// Counts of its actions.
    pub tally: PeerTally,
}

impl Dispatcher {
    /// Returns a dispatcher with this script.
    pub fn new(script: PeerScript) -> Dispatcher {
        Dispatcher {
            script: Rc::new(script),
            origin_ns: None,
            lines: HashMap::new(),
            agenda: BinaryHeap::new(),
            made: 0,
            waiting_bytes: 0,
            served_ns: 0,
            asked: HashSet::new(),
            tally: PeerTally::default(),
        }
    }

    /// Returns the script.
    pub fn script(&self) -> &Rc<PeerScript> {
        &self.script
    }

    /// Handles a message that arrived at `now`. Returns the answer to its publisher. Probes, end markers and messages
    /// too short for a header have no faults, but probes may be refused: they pass at once, an end marker after all
    /// earlier messages of its publisher.
    pub fn arrived(&mut self, to: Address<'_>, payload: &[u8], qos: u8, now: Ns) -> PublisherAnswer {
        let header = Header::read(payload);
        if let Some(header) = header.filter(|header| header.sequence < MAX_SEQUENCE) {
            return self.data(to, payload, qos, &header, now);
        }
        if self.script.refuse.probes && header.is_some_and(|header| header.sequence == PROBE) {
            return PublisherAnswer::Refused;
        }
        let message = Message { to: to.kept(), payload: payload.into(), qos, counted_ns: None };
        let line = header.filter(|header| header.sequence != PROBE).map(|header| {
            let line = self.lines.entry(header.publisher).or_default();
            (line.last_ns, line.held.take())
        });
        let (last_ns, held) = line.unwrap_or_default();
        if let Some(Held { at_ns, copies, message }) = held {
            self.plan(at_ns.max(now), copies, message);
        }
        self.plan(last_ns.max(now), 1, Rc::new(message));
        PublisherAnswer::Acknowledged
    }

    fn data(&mut self, to: Address<'_>, payload: &[u8], qos: u8, header: &Header, now: Ns) -> PublisherAnswer {
        let Header { intended_ns, publisher, sequence, .. } = *header;
        let sent_ns = header.sent_ns.unwrap_or(intended_ns);
        let from_ns = intended_ns.saturating_add(header.own_lag_ns().unwrap_or(0));
        if (publisher, sequence) == (0, 0) {
            self.origin_ns = Some(intended_ns);
        }
        let since = self.origin_ns.and_then(|origin| intended_ns.checked_sub(origin));
        let counted = self.script.counts(since);
        let (script, counts) = (&self.script, &mut self.tally.counts);
        let one = u64::from(counted);
        counts.messages += one;
        if script.topics && counted {
            *self.tally.topics.entry(to.topic.into()).or_default() += 1;
        }
        if script.refuse.meet(publisher, sequence) {
            counts.refused += one;
            return PublisherAnswer::Refused;
        }
        if script.lose.meet(publisher, sequence) {
            counts.lost += one;
            return PublisherAnswer::Nothing;
        }
        if script.swallow.meet(publisher, sequence) {
            counts.swallowed += one;
            return PublisherAnswer::Acknowledged;
        }
        let mut payload: Box<[u8]> = payload.into();
        if script.corrupt.meets(publisher, sequence) {
            script.corrupt.strike(&mut payload);
            counts.corrupted += one;
        }
        let line = self.lines.entry(publisher).or_default();
        let delay_ns = script.delay.as_ref().map(|delay| delay.of(publisher, sequence));
        // A server also takes messages by the time of their sending, so that the order is known beforehand.
        let delay_ns = delay_ns.or(script.service.map(|_| 0));
        let mut at_ns = delay_ns.map_or(now, |delay_ns| sent_ns.saturating_add(delay_ns));
        if let Some(Span(delay_ns)) = script.answer_delay
            && !self.asked.insert((publisher, sequence))
        {
            at_ns = now.saturating_add(delay_ns);
        }
        if script.ordered {
            at_ns = at_ns.max(line.last_ns);
        }
        if script.service.is_some() {
            self.served_ns = self.served_ns.max(at_ns).saturating_add(script.service_ns());
            at_ns = self.served_ns;
        }
        let stalled_until = self.origin_ns.and_then(|origin| {
            script.stalled_until(at_ns.checked_sub(origin)?).map(|until| origin.saturating_add(until))
        });
        counts.stalled += u64::from(stalled_until.is_some()) * one;
        at_ns = stalled_until.unwrap_or(at_ns);
        line.last_ns = line.last_ns.max(at_ns);
        let twice = script.duplicate.meet(publisher, sequence);
        counts.duplicated += u64::from(twice) * one;
        let copies = 1 + u32::from(twice);
        let message = Rc::new(Message { to: to.kept(), payload, qos, counted_ns: counted.then_some(from_ns) });
        if script.reorder.meet(publisher, sequence) && line.held.is_none() {
            line.held = Some(Held { at_ns, copies, message });
            return PublisherAnswer::Acknowledged;
        }
        let held = line.held.take();
        if let Some(held) = &held {
            counts.reordered += u64::from(held.message.counted_ns.is_some());
            line.last_ns = line.last_ns.max(held.at_ns);
        }
        self.plan(at_ns, copies, message);
        if let Some(held) = held {
            self.plan(held.at_ns.max(at_ns), held.copies, held.message);
        }
        PublisherAnswer::Acknowledged
    }

    /// Handles the will of a client whose connection has ended at `now`.
    pub fn bequeathed(&mut self, will: KeptWill, now: Ns) {
        let KeptWill { to, payload, qos } = will;
        let plan = &self.script.will;
        if Header::read(&payload).is_some_and(|header| plan.withhold.contains(&header.publisher)) {
            return;
        }
        let at_ns = now.saturating_add(plan.delay.0);
        self.plan(at_ns, 1, Rc::new(Message { to, payload, qos, counted_ns: None }));
    }

    /// Passes an empty message on at this instant.
    pub fn wake(&mut self, topic: &[u8], at_ns: Ns) {
        let message = Message { to: Address::of(topic).kept(), payload: Box::default(), qos: 0, counted_ns: None };
        self.plan(at_ns, 1, Rc::new(message));
    }

    /// True if this instant, ns from the origin, is over at `now`.
    pub fn has_reached(&self, since_ns: Ns, now: Ns) -> bool {
        self.origin_ns.is_some_and(|origin| now >= origin.saturating_add(since_ns))
    }

    fn plan(&mut self, at_ns: Ns, copies: u32, message: Rc<Message>) {
        for _ in 0..copies {
            self.push(PlannedMessage { at_ns, made: 0, message: message.clone(), only: None });
        }
    }

    fn push(&mut self, planned: PlannedMessage) {
        self.made += 1;
        self.waiting_bytes += planned.message.payload.len();
        self.agenda.push(Reverse(PlannedMessage { made: self.made, ..planned }));
    }

    /// Returns the due time of the next message.
    pub fn due_ns(&self) -> Option<Ns> {
        self.agenda.peek().map(|Reverse(planned)| planned.at_ns)
    }

    /// Returns the next message that is due at `now`.
    pub fn next(&mut self, now: Ns) -> Option<PlannedMessage> {
        if self.due_ns()? > now {
            return None;
        }
        let Reverse(planned) = self.agenda.pop()?;
        self.waiting_bytes -= planned.message.payload.len();
        Some(planned)
    }

    /// Returns the bytes of payload that wait for their due time, including copies.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Returns whether a message may go to the subscriber with this number, which is `client`; if the subscriber
    /// stalls, the message waits until the stall ends.
    pub fn may_go(&mut self, planned: &PlannedMessage, client: usize, subscriber: u32) -> bool {
        let until = self.origin_ns.and_then(|origin| {
            let until = self.script.subscriber_stalled_until(subscriber, planned.at_ns.checked_sub(origin)?);
            until.map(|until| origin + until)
        });
        let Some(at_ns) = until else { return true };
        self.tally.counts.stalled_copies += u64::from(planned.message.counted_ns.is_some());
        self.push(PlannedMessage { at_ns, only: Some(client), ..planned.clone() });
        false
    }

    /// Returns the end of the server's stall at `now`, if there is one.
    pub fn stalled_until(&self, now: Ns) -> Option<Ns> {
        let origin = self.origin_ns?;
        Some(origin + self.script.stalled_until(now.checked_sub(origin)?)?)
    }

    /// Counts a copy that was written between these two instants.
    pub fn written(&mut self, planned: &PlannedMessage, begun_ns: Ns, ended_ns: Ns) {
        if let Some(from_ns) = planned.message.counted_ns {
            self.tally.written(planned.at_ns, from_ns, begun_ns, ended_ns);
        }
    }
}

#[cfg(test)]
mod tests;
