//! How much each publisher sent.

use pubmark_model::protocol::PublisherTotal;
use pubmark_model::setting::MOST_CLIENTS;

/// Messages sent by each publisher, indexed by its number.
#[derive(Debug, Default)]
pub struct Totals(Vec<Option<PublisherTotal>>);

impl Totals {
    /// True if nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes the totals from the list of the protocol.
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

    pub(super) fn of(&self, publisher: u32) -> Option<&PublisherTotal> {
        self.0.get(publisher as usize).and_then(Option::as_ref)
    }
}
