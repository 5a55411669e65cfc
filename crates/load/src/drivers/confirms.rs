//! Messages that a server has not confirmed yet, for protocols that number them from 1 on each connection.
//! Those of earlier connections wait until they are sent again.

use crate::session::SettingsError;
use pubmark_model::options::{OptionValues, Options};
use std::collections::VecDeque;

/// Returns the most messages that the window may hold: the option `inflight`.
pub fn inflight(options: &Options) -> Result<usize, SettingsError> {
    match options.number("inflight") {
        0 => Err("inflight = 0: nothing could be published, write 1 at least".into()),
        inflight => Ok(usize::try_from(inflight).unwrap_or(usize::MAX)),
    }
}

/// A window over the messages of a channel, which the server numbers from 1. It takes 8
/// bytes a message, from the oldest unconfirmed one to the newest.
pub struct Confirms {
    /// The server's number of the first message of the window.
    first: u64,
    /// Sequences; `None` for messages that are already settled.
    window: VecDeque<Option<u32>>,
    /// Number of unsettled messages.
    open: usize,
    /// Sequences that were unsettled on earlier connections and have to be published again.
    again: VecDeque<u32>,
}

impl Confirms {
    pub fn new() -> Self {
        Confirms { first: 1, window: VecDeque::new(), open: 0, again: VecDeque::new() }
    }

    /// Returns the window of the client's next connection, on which unsettled messages are published again, in the order
    /// in which they were sent.
    pub fn reconnected(self) -> Confirms {
        Confirms { again: self.window.into_iter().flatten().chain(self.again).collect(), ..Confirms::new() }
    }

    /// Takes the next sequence that has to be published again.
    pub fn next_again(&mut self) -> Option<u32> {
        self.again.pop_front()
    }

    /// True if messages have to be published again.
    pub fn owes(&self) -> bool {
        !self.again.is_empty()
    }

    /// Returns the number of messages that are not settled, with those that wait to be published again.
    pub fn unacknowledged(&self) -> usize {
        self.open + self.again.len()
    }

    /// Returns the number of the next message.
    pub fn next(&self) -> u64 {
        self.first + self.window.len() as u64
    }

    /// Adds a message; returns false if the window holds `most`.
    pub fn push(&mut self, sequence: u32, most: usize) -> bool {
        if self.window.len() >= most {
            return false;
        }
        self.window.push_back(Some(sequence));
        self.open += 1;
        true
    }

    /// Settles message `number` (0: the newest), or all messages up to it. Returns false
    /// if no such message was sent.
    pub fn settle(&mut self, number: u64, multiple: bool, mut each: impl FnMut(u32)) -> bool {
        let newest = self.next() - 1;
        let number = if number == 0 && multiple { newest } else { number };
        if number == 0 || number > newest {
            return false;
        }
        // Messages before the window are settled already.
        let Some(index) = number.checked_sub(self.first).map(|index| index as usize) else { return true };
        let begin = if multiple { 0 } else { index };
        for slot in self.window.range_mut(begin..=index) {
            if let Some(sequence) = slot.take() {
                self.open -= 1;
                each(sequence);
            }
        }
        while let Some(None) = self.window.front() {
            self.window.pop_front();
            self.first += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Compares the window with a plain map from number to sequence.
        #[test]
        fn each_message_is_settled_once(steps in proptest::collection::vec((any::<bool>(), any::<bool>(), 0..30u64), 0..100)) {
            let mut confirms = Confirms::new();
            let (mut plain, mut sent) = (BTreeMap::new(), 0);
            for (publish, multiple, number) in steps {
                if publish {
                    let span = plain.keys().next().map_or(0, |first| sent + 1 - first);
                    prop_assert_eq!(confirms.push(7 * sent as u32, 10), span < 10);
                    if span < 10 {
                        sent += 1;
                        plain.insert(sent, 7 * (sent as u32 - 1));
                    }
                    continue;
                }
                let mut settled = Vec::new();
                let known = confirms.settle(number, multiple, |sequence| settled.push(sequence));
                let number = if number == 0 && multiple { sent } else { number };
                prop_assert_eq!(known, (1..=sent).contains(&number));
                let begin = if multiple { 0 } else { number };
                let expected: Vec<u32> = match known {
                    true => plain.range(begin..=number).map(|(_, sequence)| *sequence).collect(),
                    false => Vec::new(),
                };
                plain.retain(|at, _| !known || !(begin..=number).contains(at));
                prop_assert_eq!(settled, expected);
                prop_assert_eq!(confirms.unacknowledged(), plain.len());
            }
        }
    }
}
