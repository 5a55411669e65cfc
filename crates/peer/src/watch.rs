//! Events of clients, as their server sees them, reported while they happen.

use crate::speech::Ask;
use pubmark_model::header::Header;
use std::sync::mpsc::Sender;

/// Action of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAct {
    /// It published a message with this header; `None` if the message is too short for one.
    Published(Option<Header>),
    /// It subscribed.
    Subscribed,
    /// It disconnected by the protocol: it unsubscribed, or sent a disconnect message.
    TookLeave,
    /// Its connection ended.
    Ended,
}

/// A client's action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientEvent {
    /// Number of the client, from 0: each connection is a client.
    pub client: usize,
    /// The action.
    pub act: ClientAct,
}

/// Sender of client events, if there is a receiver.
#[derive(Debug, Default)]
pub(crate) struct ClientWatch(pub(crate) Option<Sender<ClientEvent>>);

impl ClientWatch {
    /// Reports a client's request.
    #[inline]
    pub(crate) fn asked(&self, client: usize, ask: &Ask<'_>) {
        if self.0.is_some() {
            let act = match ask {
                Ask::Publish { payload, .. } => ClientAct::Published(Header::read(payload)),
                Ask::Subscribe(..) | Ask::Share(..) => ClientAct::Subscribed,
                Ask::Unsubscribe(..) | Ask::Close => ClientAct::TookLeave,
                // It has just subscribed, or is a member of a group or a cluster.
                Ask::Replay(..) | Ask::Wake(..) | Ask::Reached(_) | Ask::Leave(_) => return,
            };
            self.tell(client, act);
        }
    }

    /// Reports the end of a client's connection.
    pub(crate) fn ended(&self, client: usize) {
        self.tell(client, ClientAct::Ended);
    }

    fn tell(&self, client: usize, act: ClientAct) {
        if let Some(watch) = &self.0 {
            // The receiver may be gone.
            let _ = watch.send(ClientEvent { client, act });
        }
    }
}
