//! State of a shard's receiving side: subscribers, and what they have received.

use super::rebalancing::Rebalancing;
use crate::subscriber::{IncomingStreams, ReceiveRecorder};
use pubmark_model::protocol::{Client, Role};
use pubmark_model::units::Ns;
use pubmark_model::workload::Workload;

/// The receiving side of a shard.
pub struct Inbound {
    pub clients: Vec<IncomingStreams>,
    pub recorder: ReceiveRecorder,
    /// Streams without a probe so far, of clients that are up or may come up.
    pub unheard: u64,
    pub heard_ns: Ns,
    pub last_ns: Ns,
    /// Clients that may still receive something, once the drain has begun.
    pub undrained: Option<Vec<u32>>,
    pub looked_ns: Ns,
    pub drained: bool,
    /// Assignments of its clients, if they are members of a group.
    pub rebalancing: Rebalancing,
}

impl Inbound {
    pub fn new(workload: &Workload, role: Role, clients: &[Client]) -> Inbound {
        let heard = match role {
            Role::Requester => 1,
            _ => clients.first().map_or(0, |client| u64::from(client.hears_count)),
        };
        let incoming: Vec<IncomingStreams> = match role {
            Role::Subscriber => clients
                .iter()
                .map(|client| {
                    IncomingStreams::new(workload, client.hears_first..client.hears_first + client.hears_count)
                })
                .collect(),
            Role::Requester => {
                clients.iter().map(|client| IncomingStreams::new(workload, client.id..client.id + 1)).collect()
            }
            Role::Publisher | Role::Replier => Vec::new(),
        };
        Inbound {
            unheard: incoming.iter().map(|client| u64::from(client.unheard_count())).sum(),
            clients: incoming,
            recorder: ReceiveRecorder::new(workload, heard),
            heard_ns: 0,
            last_ns: 0,
            undrained: None,
            looked_ns: 0,
            drained: false,
            rebalancing: Rebalancing::default(),
        }
    }

    /// Waits for no probe of this client any more: it has gone.
    pub fn give_up(&mut self, index: usize) {
        let given_up = self.clients.get_mut(index).map_or(0, IncomingStreams::give_up);
        self.unheard -= u64::from(given_up);
    }
}
