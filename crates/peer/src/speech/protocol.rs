//! Interface of the peer's protocols.

use super::coordinator::Coordinator;
use super::members::Leaving;
use crate::routes::{Address, Filter, KeptAddress};
use crate::script::PeerScript;
use pubmark_model::units::Ns;
use pubmark_wire::Malformed;
use std::cell::RefCell;
use std::rc::Rc;

/// Request of a client.
#[derive(Debug, PartialEq, Eq)]
pub enum Ask<'a> {
    /// Pass on a message.
    Publish {
        /// Where it goes.
        to: Address<'a>,
        /// Payload of the message.
        payload: &'a [u8],
        /// Quality of service, 0 to 2.
        qos: u8,
    },
    /// Subscribe, with a token chosen by the connection.
    Subscribe(Filter<'a>, u32),
    /// Subscribe as a member of a group, of which one gets each message: the group's name, and a token.
    Share(Filter<'a>, &'a [u8], u32),
    /// Pass on what is kept of these topics, to the subscription with this token.
    Replay(Filter<'a>, u32),
    /// Unsubscribe.
    Unsubscribe(Filter<'a>, u32),
    /// Close the connection when all output is written.
    Close,
    /// Pass an empty message on to this topic after this time, ns; 0 for at once. A plain relay knows no other time.
    Wake(&'a [u8], Ns),
    /// Say whether this instant is over, ns from the origin (see [`crate::script::Stall`]): acknowledge it then.
    Reached(Ns),
    /// Let a member of the cluster be away.
    Leave(Leaving),
}

/// Answer to the publisher of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublisherAnswer {
    /// The server has it.
    Acknowledged,
    /// No answer.
    Nothing,
    /// The server refuses it.
    Refused,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handled {
    /// Answer to its publisher.
    pub answer: PublisherAnswer,
    /// Number of subscribers of its topic.
    pub listeners: usize,
}

/// A message that the server publishes when its client is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptWill {
    /// Where it goes.
    pub to: KeptAddress,
    /// Its payload.
    pub payload: Box<[u8]>,
    /// Quality of service, 0 to 2.
    pub qos: u8,
}

/// Carries out a client's request.
pub type Hub<'h> = dyn FnMut(Ask<'_>) -> Handled + 'h;

/// The server's side of one connection.
pub trait Speech: Sized {
    /// Scheme of an endpoint.
    const SCHEME: &'static str;

    /// Name of the driver whose clients it serves.
    const DRIVER: &'static str = Self::SCHEME;

    /// Returns a new connection; `denied` if it must be refused.
    fn new(denied: bool) -> Self;

    /// Passes the script to the protocol, which carries out limits, errors of refusals, and the end of a connection.
    /// Does nothing by default.
    fn obey(&mut self, _script: &Rc<PeerScript>) {}

    /// Passes what all connections share, and the place of the member that has accepted this one. Does nothing by default.
    fn share(&mut self, _coordinator: &Rc<RefCell<Coordinator>>, _place: usize) {}

    /// Appends the server's greeting, if the protocol has one. Returns whether the connection is then over.
    fn greet(&mut self, out: &mut Vec<u8>) -> bool;

    /// Handles input, and returns how many bytes it has consumed; the rest is passed again with more behind it. Appends
    /// answers.
    fn input(&mut self, bytes: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<usize, Malformed>;

    /// Appends a message for a subscription of this client. If the client takes no more unacknowledged messages, it is
    /// kept, and appended to the answer to a later acknowledgement.
    fn deliver(&mut self, token: u32, to: Address<'_>, payload: &[u8], qos: u8, out: &mut Vec<u8>);

    /// True if it hears what comes on a connection that it closes: a client may say goodbye before it notices.
    fn hears_to_the_end(&self) -> bool {
        false
    }

    /// Returns the message that is passed on because the client's connection has ended. None by default.
    fn will(&mut self) -> Option<KeptWill> {
        None
    }

    /// Returns the bytes of payload that are kept so.
    fn kept_bytes(&self) -> usize {
        0
    }
}
