//! State of a session's incoming messages: fragments, and the keys that the router has numbered.

use crate::spare;
use pubmark_wire::zenoh::{Declaration, KeyExpr};

/// Bytes of all keys of one session at most.
const KEYS_BYTES: usize = 1 << 20;

/// The fragments of one message.
#[derive(Default)]
pub struct Fragments {
    message: Vec<u8>,
    /// Channel and number of the next fragment.
    next: Option<(bool, u32)>,
}

impl Fragments {
    /// True if no fragment waits for another.
    pub fn is_empty(&self) -> bool {
        self.next.is_none()
    }

    /// Returns the bytes of the fragments that wait.
    pub fn bytes(&self) -> u64 {
        self.message.len() as u64
    }

    /// Adds a fragment with its channel and number. Returns the message if it was the last one. A fragment that does
    /// not belong to the one before it is dropped with that, because the rest of its message is gone.
    pub fn add(&mut self, place: (bool, u32), begins: bool, more: bool, part: &[u8]) -> Option<Vec<u8>> {
        if !begins && !self.next.is_some_and(|next| follows(next, place)) {
            self.give_up();
            return None;
        }
        if begins {
            self.message.clear();
        }
        spare::keep(&mut self.message, part);
        self.next = more.then(|| (place.0, place.1.wrapping_add(1)));
        (!more).then(|| std::mem::take(&mut self.message))
    }

    /// Takes a message's memory back for others.
    pub fn give_back(&mut self, mut message: Vec<u8>) {
        spare::release(&mut message);
    }

    fn give_up(&mut self) {
        self.next = None;
        spare::release(&mut self.message);
    }
}

/// True if a fragment is the expected one. Numbers start again from 0 after a power of two.
fn follows(expected: (bool, u32), place: (bool, u32)) -> bool {
    place == expected || (place == (expected.0, 0) && expected.1.is_power_of_two())
}

/// Keys by number.
pub struct KeyTable {
    /// Key of the subscription.
    own: Box<[u8]>,
    declared: Vec<(u16, Box<[u8]>)>,
    declared_bytes: usize,
    /// The last topic that was asked for.
    topic: Vec<u8>,
}

impl KeyTable {
    /// Returns the table of a subscription to this key.
    pub fn new(own: &str) -> KeyTable {
        KeyTable { own: own.as_bytes().into(), declared: Vec::new(), declared_bytes: 0, topic: Vec::new() }
    }

    /// Returns the text of a message's key.
    pub fn topic(&mut self, key: &KeyExpr<'_>) -> &[u8] {
        self.topic.clear();
        let stem = match (key.scope, key.by_sender) {
            (0, _) => None,
            (_, false) => Some(&self.own),
            (scope, true) => self.declared.iter().find(|(number, _)| *number == scope).map(|(_, text)| text),
        };
        self.topic.extend_from_slice(stem.map_or(&[], |text| text));
        self.topic.extend_from_slice(key.suffix);
        &self.topic
    }

    /// Notes a declaration of the router.
    ///
    /// # Errors
    /// If the keys take too much memory.
    pub fn declared(&mut self, declaration: &Declaration<'_>) -> Result<(), String> {
        let number = match declaration {
            Declaration::Key(number, _) | Declaration::KeyGone(number) => *number,
            _ => return Ok(()),
        };
        let known = self.declared.iter().position(|(known, _)| *known == number);
        if let Some((_, text)) = known.map(|place| self.declared.swap_remove(place)) {
            self.declared_bytes -= text.len();
        }
        if let Declaration::Key(_, key) = declaration {
            let text: Box<[u8]> = self.topic(key).into();
            self.declared_bytes += text.len();
            self.declared.push((number, text));
        }
        match self.declared_bytes <= KEYS_BYTES {
            true => Ok(()),
            false => Err(format!("the router declares keys of more than {KEYS_BYTES} bytes")),
        }
    }
}
