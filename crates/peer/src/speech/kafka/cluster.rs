//! The members of a cluster as brokers: who leads a partition, and what the others say about it.

use crate::routes::Filter;
use crate::speech::coordinator::Coordinator;
use crate::speech::members::PeerMembers;
use crate::speech::protocol::{Ask, Hub};
use pubmark_model::units::{MILLISECOND, Ns};
use pubmark_wire::kafka::{
    BrokerMap, FetchHead, FetchPartition, NO_ERROR, NOT_LEADER_OR_FOLLOWER, begin_fetched, end_fetched, put_fetched,
};
use std::cell::RefCell;

/// Appends the answer about a topic with so many partitions.
pub fn put_map(members: &PeerMembers, (correlation, topic): (i32, &[u8]), partitions: u32, out: &mut Vec<u8>) {
    let node = |place: Option<usize>| place.map_or(-1, |place| place as i32);
    let brokers = (0..).zip(&members.ports).map(|(place, port)| (place, &b"127.0.0.1"[..], *port)).collect();
    let leaders = (0..partitions).map(|partition| (partition as i32, node(members.leader(partition)))).collect();
    BrokerMap { brokers, leaders }.put(correlation, topic, out);
}

/// Appends the answer to a fetch of this partition by a broker that does not lead it.
pub fn put_moved((correlation, topic): (i32, &[u8]), partition: i32, out: &mut Vec<u8>) {
    let at = begin_fetched(&FetchHead { correlation, error: NO_ERROR, topic, partitions: 1 }, out);
    let moved = FetchPartition { partition, error: NOT_LEADER_OR_FOLLOWER, high_watermark: -1, records_bytes: 0 };
    put_fetched(&moved, out);
    end_fetched(out, at);
}

/// Returns the number of the broker that coordinates all groups: the first one that is not away.
pub fn coordinator(members: &PeerMembers) -> i32 {
    (0..members.ports.len()).find(|place| members.is_here(*place)).unwrap_or_default() as i32
}

/// Token of the subscription by which a connection hears that its fetch has waited for long enough.
const WAITED: u32 = u32::MAX - 2;

/// The wait of a connection's fetches for records. Its next leader may have a client's partition meanwhile.
#[derive(Default)]
pub struct Patience {
    /// The topic of its own, once it has waited.
    topic: Option<Box<[u8]>>,
    is_running: bool,
}

impl Patience {
    /// Lets the fetch that has come be answered after this time, ms, unless an earlier one is to be.
    pub fn begin(&mut self, all: &RefCell<Coordinator>, wait_ms: i32, hub: &mut Hub<'_>) {
        if std::mem::replace(&mut self.is_running, true) {
            return;
        }
        let topic = self.topic.get_or_insert_with(|| {
            let topic = format!("waited/{}", all.borrow_mut().cluster.number()).into_bytes();
            hub(Ask::Subscribe(Filter::Exact(&topic), WAITED));
            topic.into()
        });
        hub(Ask::Wake(topic, Ns::from(wait_ms.unsigned_abs()).max(1) * MILLISECOND));
    }

    /// True if a message for the subscription with this token ends the wait.
    pub fn ends(&mut self, token: u32) -> bool {
        token == WAITED && std::mem::take(&mut self.is_running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::PeerScript;
    use crate::speech::Speech;
    use crate::speech::kafka::KafkaServer;
    use crate::speech::protocol::{Handled, PublisherAnswer};
    use pubmark_wire::kafka::{NO_PRODUCER, begin_batch, begin_produce, end_batch, end_produce, put_record};
    use std::rc::Rc;

    #[test]
    fn a_member_that_goes_away_takes_no_more_of_what_came_with_its_last_message() {
        let away = "keep = true\nports = [0, 0]\naway = [{ member = 0, from = '1s', for = '1s' }]";
        let all = Rc::new(RefCell::new(Coordinator::default()));
        all.borrow_mut().cluster = PeerMembers::new(vec![1, 2]);
        let mut server = KafkaServer::new(false);
        server.obey(&Rc::new(PeerScript::parse(away).unwrap()));
        server.share(&all, 0);
        let mut bytes = Vec::new();
        for number in 0..3 {
            let start = begin_produce(&mut bytes, number, b"client", (-1, 1_000), (b"topic", 0));
            let batch = begin_batch(&mut bytes, 0);
            put_record(&mut bytes, 0, b"hi");
            end_batch(&mut bytes, batch, 1, NO_PRODUCER);
            end_produce(&mut bytes, start);
        }
        let (mut published, mut left, mut out) = (0, 0, Vec::new());
        let heard = server.input(&bytes, &mut out, &mut |ask| {
            published += u32::from(matches!(ask, Ask::Publish { .. }));
            left += u32::from(matches!(ask, Ask::Leave(_)));
            Handled { answer: PublisherAnswer::Acknowledged, listeners: 0 }
        });
        assert_eq!((heard.unwrap(), published, left, out.len()), (bytes.len(), 1, 1, 0));
    }
}
