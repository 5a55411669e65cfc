//! A client's part in request-reply.

use crate::session::ClientSpec;
use pubmark_model::protocol::Role;
use std::ops::Range;

/// Bytes of a message by which whoever asked recognises the answer: publisher and sequence.
const CORRELATION: Range<usize> = 8..16;

/// A client's part.
pub enum RequestPart {
    /// Its messages are no requests.
    OneWay,
    /// It asks, and listens on this topic.
    Asks(String),
    /// It answers, to this topic: that of the last request, or the usual one if requests name none.
    Answers(String),
}

impl RequestPart {
    /// Returns the part of this client.
    pub fn of(spec: &ClientSpec) -> RequestPart {
        match (spec.role, spec.reply.clone()) {
            (Role::Requester, Some(reply)) => RequestPart::Asks(reply),
            (Role::Replier, Some(reply)) => RequestPart::Answers(reply),
            _ => RequestPart::OneWay,
        }
    }

    /// Notes where the answer to a request is to go. Requests that name no topic change nothing.
    #[inline]
    pub fn asked(&mut self, reply: Option<&[u8]>) {
        if let (RequestPart::Answers(to), Some(Ok(reply))) = (self, reply.map(str::from_utf8))
            && *to != reply
        {
            reply.clone_into(to);
        }
    }

    /// Returns the topic for answers that a request names.
    #[inline]
    pub fn reply(&self) -> Option<&str> {
        if let RequestPart::Asks(reply) = self { Some(reply) } else { None }
    }

    /// Returns the topic of an answer; `None` if the client does not answer.
    #[inline]
    pub fn to(&self) -> Option<&str> {
        if let RequestPart::Answers(to) = self { Some(to) } else { None }
    }

    /// Returns what a request and its answer have in common; `None` for other messages.
    #[inline]
    pub fn correlation<'a>(&self, message: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            RequestPart::OneWay => None,
            RequestPart::Asks(_) | RequestPart::Answers(_) => message.get(CORRELATION),
        }
    }
}
