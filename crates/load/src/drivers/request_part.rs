//! A client's part in request-reply.

use crate::session::ClientSpec;
use pubmark_model::protocol::Role;
use std::ops::Range;

/// Bytes of a message by which whoever asked recognises the answer: publisher and sequence.
const CORRELATION: Range<usize> = 8..16;

/// A client's part. It is small, because most clients of a run have none.
pub struct RequestPart(Option<Box<Exchange>>);

enum Exchange {
    /// The client asks.
    Asks {
        /// The topic on which it listens.
        reply: String,
        /// The request that waits for its answer, if the protocol allows one at a time.
        waits: Option<u32>,
    },
    /// The client answers, to this topic: that of the last request, or the usual one if requests name none.
    Answers(String),
}

impl RequestPart {
    /// Returns the part of this client.
    pub fn of(spec: &ClientSpec) -> RequestPart {
        let exchange = |reply: String| match spec.role {
            Role::Requester => Some(Box::new(Exchange::Asks { reply, waits: None })),
            Role::Replier => Some(Box::new(Exchange::Answers(reply))),
            Role::Publisher | Role::Subscriber => None,
        };
        RequestPart(spec.reply.clone().and_then(exchange))
    }

    /// True if its messages are no requests.
    #[inline]
    pub fn is_one_way(&self) -> bool {
        self.0.is_none()
    }

    /// Notes where the answer to a request is to go. Requests that name no topic change nothing.
    #[inline]
    pub fn asked(&mut self, reply: Option<&[u8]>) {
        if let (Some(Exchange::Answers(to)), Some(Ok(reply))) = (self.0.as_deref_mut(), reply.map(str::from_utf8))
            && *to != reply
        {
            reply.clone_into(to);
        }
    }

    /// Returns the topic for answers that a request names.
    #[inline]
    pub fn reply(&self) -> Option<&str> {
        if let Some(Exchange::Asks { reply, .. }) = self.0.as_deref() { Some(reply) } else { None }
    }

    /// Returns the topic of an answer; `None` if the client does not answer.
    #[inline]
    pub fn to(&self) -> Option<&str> {
        if let Some(Exchange::Answers(to)) = self.0.as_deref() { Some(to) } else { None }
    }

    /// Returns what a request and its answer have in common; `None` for other messages.
    #[inline]
    pub fn correlation<'a>(&self, message: &'a [u8]) -> Option<&'a [u8]> {
        self.0.as_ref().and_then(|_| message.get(CORRELATION))
    }

    /// Notes the request that waits for its answer.
    pub fn waits_for(&mut self, sequence: u32) {
        if let Some(Exchange::Asks { waits, .. }) = self.0.as_deref_mut() {
            *waits = Some(sequence);
        }
    }

    /// Takes an answer. Returns true if the request that waits has still none, because this answers an earlier one.
    pub fn still_waits(&mut self, sequence: Option<u32>) -> bool {
        let Some(Exchange::Asks { waits, .. }) = self.0.as_deref_mut() else { return false };
        let is_other = sequence.is_some() && waits.is_some() && sequence != *waits;
        if !is_other {
            *waits = None;
        }
        is_other
    }
}
