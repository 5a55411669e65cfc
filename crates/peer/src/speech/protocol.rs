//! What every protocol of the peer offers, and what it is offered.

use crate::routes::Filter;
use crate::script::PeerScript;
use pubmark_wire::Malformed;
use std::rc::Rc;

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Ask<'a> {
    /// To hand on a message.
    Publish {
        /// Where to.
        topic: &'a [u8],
        /// The message.
        payload: &'a [u8],
        /// Quality of service, 0 to 2.
        qos: u8,
    },
    /// To get messages, under a name of its own.
    Subscribe(Filter<'a>, u32),
    /// To get them no more.
    Unsubscribe(Filter<'a>, u32),
    /// To be let go, when what was said is written.
    Close,
}

/// What the publisher of a message is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublisherAnswer {
    /// That the server has it.
    Acknowledged,
    /// Nothing.
    Nothing,
    /// That the server refuses it.
    Refused,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handled {
    /// What its publisher is told.
    pub answer: PublisherAnswer,
    /// How many listen to its topic.
    pub listeners: usize,
}

/// Carries out what a client asks for.
pub type Hub<'h> = dyn FnMut(Ask<'_>) -> Handled + 'h;

/// The server's side of one connection.
pub trait Speech: Sized {
    /// The scheme of an endpoint.
    const SCHEME: &'static str;

    /// The name of the driver whose clients it serves.
    const DRIVER: &'static str = Self::SCHEME;

    /// A new connection; `denied` if it is to be refused.
    fn new(denied: bool) -> Self;

    /// What of the script is for the protocol to carry out: limits, the words of refusals, the end of
    /// a connection. By default nothing.
    fn obey(&mut self, _script: &Rc<PeerScript>) {}

    /// Appends what the server says first, if it speaks first; whether the
    /// connection is then over.
    fn greet(&mut self, out: &mut Vec<u8>) -> bool;

    /// Takes what has arrived, and returns how many bytes it is done with; the
    /// rest comes again with more behind it. Appends answers.
    fn input(&mut self, bytes: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<usize, Malformed>;

    /// Appends a message for a subscription of this client's. What cannot be
    /// said now, because the client takes no more unacknowledged, is kept and
    /// said with an acknowledgement's answer.
    fn deliver(&mut self, token: u32, topic: &[u8], payload: &[u8], qos: u8, out: &mut Vec<u8>);

    /// Bytes of payload that are kept so.
    fn kept_bytes(&self) -> usize {
        0
    }
}
