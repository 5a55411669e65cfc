//! Connections of publishers that leave a last will with the server.

use pubmark_model::protocol::ConnectionEnd;
use pubmark_model::units::Ns;

/// The connections of each publisher of a shard, by its place there.
pub struct WillConnections {
    /// Number of the connections that it has opened, and of those that have ended.
    counts: Vec<(u32, u32)>,
    /// Ends without a goodbye.
    ends: Vec<ConnectionEnd>,
    /// True if they have left with a goodbye.
    pub left: bool,
}

impl WillConnections {
    /// Makes them for this many publishers, none of which is connected.
    pub fn new(publishers: usize) -> WillConnections {
        WillConnections { counts: vec![(0, 0); publishers], ends: Vec::new(), left: false }
    }

    /// Notes that a publisher opens a connection. One before it, of which nothing more is known, has ended.
    pub fn opens(&mut self, index: usize, publisher: u32) {
        self.ended(index, publisher, None);
        self.counts[index].0 += 1;
    }

    /// Returns the number of a publisher's last connection, from 0; `None` if it has opened none.
    pub fn number(&self, index: usize) -> Option<u32> {
        self.counts.get(index)?.0.checked_sub(1)
    }

    /// Notes that a publisher's last connection has ended without a goodbye, unless that is known: at this instant, or
    /// `None` if the server may not have accepted it.
    pub fn ended(&mut self, index: usize, publisher: u32, at_ns: Option<Ns>) {
        let (opened, ended) = &mut self.counts[index];
        if *ended < *opened {
            *ended = *opened;
            self.ends.push(ConnectionEnd { publisher, connection: *opened - 1, at_ns });
        }
    }

    /// Returns the ends that have not been taken yet.
    pub fn take_ends(&mut self) -> Vec<ConnectionEnd> {
        std::mem::take(&mut self.ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_ends_once_and_has_its_number() {
        let mut wills = WillConnections::new(2);
        assert_eq!(wills.number(1), None);
        wills.ended(1, 7, Some(5));
        wills.opens(1, 7);
        wills.opens(1, 7);
        assert_eq!(wills.number(1), Some(1));
        wills.ended(1, 7, Some(9));
        wills.ended(1, 7, Some(11));
        wills.opens(1, 7);
        let end = |connection, at_ns| ConnectionEnd { publisher: 7, connection, at_ns };
        assert_eq!(wills.take_ends(), [end(0, None), end(1, Some(9))]);
        assert_eq!((wills.number(1), wills.number(0), wills.take_ends().len()), (Some(2), None, 0));
    }
}
