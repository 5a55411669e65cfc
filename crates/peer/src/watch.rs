//! What clients do, as their server sees it, told while it happens.

use crate::speech::Ask;
use pubmark_model::header::Header;
use std::sync::mpsc::Sender;

/// What a client did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAct {
    /// It published a message with this header; none in what is too short for one.
    Published(Option<Header>),
    /// It subscribed.
    Subscribed,
    /// It took its leave in the words of the protocol: it unsubscribed, or said
    /// that it goes.
    TookLeave,
    /// Its connection ended.
    Ended,
}

/// A client and what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientEvent {
    /// Its number, from 0: each connection is a client.
    pub client: usize,
    /// What it did.
    pub act: ClientAct,
}

/// Tells whoever looks on, if anybody does.
#[derive(Debug, Default)]
pub(crate) struct ClientWatch(pub(crate) Option<Sender<ClientEvent>>);

impl ClientWatch {
    /// A client asks for something.
    #[inline]
    pub(crate) fn asked(&self, client: usize, ask: &Ask<'_>) {
        if self.0.is_some() {
            self.tell(
                client,
                match ask {
                    Ask::Publish { payload, .. } => ClientAct::Published(Header::read(payload)),
                    Ask::Subscribe(..) => ClientAct::Subscribed,
                    Ask::Unsubscribe(..) | Ask::Close => ClientAct::TookLeave,
                },
            );
        }
    }

    /// A client's connection has ended.
    pub(crate) fn ended(&self, client: usize) {
        self.tell(client, ClientAct::Ended);
    }

    fn tell(&self, client: usize, act: ClientAct) {
        if let Some(watch) = &self.0 {
            // Nobody may be left to look on.
            let _ = watch.send(ClientEvent { client, act });
        }
    }
}
