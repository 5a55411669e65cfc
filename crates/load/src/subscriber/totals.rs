//! How much each publisher sent, and which of their connections ended.

use pubmark_model::protocol::{ConnectionEnd, PublisherTotal};
use pubmark_model::setting::MOST_CLIENTS;
use std::ops::Range;

/// Messages sent by each publisher, indexed by its number.
#[derive(Debug, Default)]
pub struct Totals {
    totals: Vec<Option<PublisherTotal>>,
    /// Connections that ended without a goodbye, by publisher and connection, if publishers have last wills.
    ends: Vec<ConnectionEnd>,
}

impl Totals {
    /// True if nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.totals.is_empty()
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
        Totals { totals, ends: Vec::new() }
    }

    /// Adds the connections that ended without a goodbye.
    #[must_use]
    pub fn with_ends(mut self, mut ends: Vec<ConnectionEnd>) -> Totals {
        ends.sort_unstable_by_key(|end| (end.publisher, end.connection));
        self.ends = ends;
        self
    }

    pub(super) fn of(&self, publisher: u32) -> Option<&PublisherTotal> {
        self.totals.get(publisher as usize).and_then(Option::as_ref)
    }

    /// Returns the connections of these publishers that ended without a goodbye.
    pub(super) fn ends_of(&self, publishers: &Range<u32>) -> &[ConnectionEnd] {
        let from = |id: u32| self.ends.partition_point(|end| end.publisher < id);
        &self.ends[from(publishers.start)..from(publishers.end.max(publishers.start))]
    }
}
