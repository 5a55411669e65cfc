//! The consumer of a queue: its deliveries, and the messages that wait for room.

use crate::routes::{Address, KeptAddress};
use pubmark_wire::amqp::{FieldTable, Frame, Method, Short, TRANSIENT, correlated, put_content};
use std::collections::VecDeque;

/// Separator of exchange and routing key in the name of a route.
pub const SEPARATOR: u8 = 0;

/// Parameters for writing messages.
#[derive(Clone, Copy)]
pub struct Framing {
    /// Channel that is open, or was.
    pub channel: u16,
    /// Longest frame that the client takes.
    pub frame_bytes: u32,
}

/// A message that waits for room in the consumer's window.
struct Waiting {
    to: KeptAddress,
    payload: Box<[u8]>,
}

/// A consumer.
pub struct Consumer {
    name: Box<[u8]>,
    /// Messages that it takes unacknowledged, 0 for no bound; `None` if it acknowledges nothing.
    window: Option<u16>,
    /// Number of the last delivery, from 1.
    delivered: u64,
    /// Deliveries that are not acknowledged, ascending.
    open: VecDeque<u64>,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
}

impl Consumer {
    pub fn new(name: &[u8], window: Option<u16>) -> Consumer {
        let (open, waiting) = (VecDeque::new(), VecDeque::new());
        Consumer { name: name.into(), window, delivered: 0, open, waiting, waiting_bytes: 0 }
    }

    /// Returns the bytes of payload that wait for acknowledgements.
    pub fn kept_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Appends a message, or keeps it until there is room.
    pub fn deliver(&mut self, framing: Framing, to: Address<'_>, payload: &[u8], out: &mut Vec<u8>) {
        if self.is_full() {
            self.waiting_bytes += payload.len();
            self.waiting.push_back(Waiting { to: to.kept(), payload: payload.into() });
        } else {
            self.say(framing, to, payload, out);
        }
    }

    /// Handles an acknowledgement: a delivery's number (0: the last one), and whether it includes all before. Appends
    /// messages for which there is now room. Returns false if there was no such delivery.
    pub fn acknowledged(&mut self, framing: Framing, delivery: u64, multiple: bool, out: &mut Vec<u8>) -> bool {
        let number = if delivery == 0 && multiple { self.delivered } else { delivery };
        match (multiple, self.open.binary_search(&number)) {
            (true, found) if number <= self.delivered => {
                let count = found.map_or_else(|before| before, |at| at + 1);
                self.open.drain(..count);
            }
            (false, Ok(at)) => drop(self.open.remove(at)),
            _ => return false,
        }
        while !self.is_full()
            && let Some(Waiting { to, payload }) = self.waiting.pop_front()
        {
            self.waiting_bytes -= payload.len();
            self.say(framing, to.get(), &payload, out);
        }
        true
    }

    fn is_full(&self) -> bool {
        self.window.is_some_and(|window| window > 0 && self.open.len() >= usize::from(window))
    }

    fn say(&mut self, framing: Framing, to: Address<'_>, payload: &[u8], out: &mut Vec<u8>) {
        self.delivered += 1;
        if self.window.is_some() {
            self.open.push_back(self.delivered);
        }
        let mut parts = to.topic.splitn(2, |byte| *byte == SEPARATOR).map(Short);
        let (exchange, routing_key) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (consumer, delivery) = (Short(&self.name), self.delivered);
        let deliver = Method::Deliver { consumer, delivery, redelivered: false, exchange, routing_key };
        Frame::Method(framing.channel, deliver).put(out);
        let asks = str::from_utf8(to.reply).ok().filter(|reply| !reply.is_empty());
        let properties = asks.map(|reply| correlated(FieldTable(&[]), "", Some(reply)));
        put_content(out, framing.channel, properties.as_deref().unwrap_or(TRANSIENT), payload, framing.frame_bytes);
    }
}
