//! Messages that a server has not confirmed yet, for protocols that number them from 1 on each connection.

use std::collections::VecDeque;

/// A window over the messages of a channel, which the server numbers from 1. It takes 8
/// bytes a message, from the oldest unconfirmed one to the newest.
pub struct Confirms {
    /// The server's number of the first message of the window.
    first: u64,
    /// Sequences; `None` for messages that are already settled.
    window: VecDeque<Option<u32>>,
    /// Number of unsettled messages.
    open: usize,
}

impl Confirms {
    pub fn new() -> Self {
        Confirms { first: 1, window: VecDeque::new(), open: 0 }
    }

    /// Returns the sequences of unsettled messages, in the order in which they were sent.
    pub fn into_open(self) -> impl Iterator<Item = u32> {
        self.window.into_iter().flatten()
    }

    pub fn open(&self) -> usize {
        self.open
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
                prop_assert_eq!(confirms.open(), plain.len());
            }
        }
    }
}
