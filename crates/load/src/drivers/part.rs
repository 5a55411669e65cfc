//! A client's part in request-reply.

use crate::session::ClientSpec;
use pubmark_model::protocol::Role;
use std::ops::Range;

/// Bytes of a message by which whoever asked recognises the answer: publisher and sequence.
const CORRELATION: Range<usize> = 8..16;

/// A client's part.
pub enum Part {
    /// Its messages are no requests.
    OneWay,
    /// It asks, and listens on this topic.
    Asks(String),
    /// It answers, to this topic: that of the last request, or the usual one if requests name none.
    Answers(String),
}

impl Part {
    /// Returns the part of this client.
    pub fn of(spec: &ClientSpec) -> Part {
        match (spec.role, spec.reply.clone()) {
            (Role::Requester, Some(reply)) => Part::Asks(reply),
            (Role::Replier, Some(reply)) => Part::Answers(reply),
            _ => Part::OneWay,
        }
    }

    /// Notes where the answer to a request is to go. Requests that name no topic change nothing.
    #[inline]
    pub fn asked(&mut self, reply: Option<&[u8]>) {
        if let (Part::Answers(to), Some(Ok(reply))) = (self, reply.map(str::from_utf8))
            && *to != reply
        {
            reply.clone_into(to);
        }
    }

    /// Returns the topic for answers that a request names.
    #[inline]
    pub fn reply(&self) -> Option<&str> {
        if let Part::Asks(reply) = self { Some(reply) } else { None }
    }

    /// Returns the topic of an answer; `None` if the client does not answer.
    #[inline]
    pub fn to(&self) -> Option<&str> {
        if let Part::Answers(to) = self { Some(to) } else { None }
    }

    /// Returns what a request and its answer have in common; `None` for other messages.
    #[inline]
    pub fn correlation<'a>(&self, message: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Part::OneWay => None,
            Part::Asks(_) | Part::Answers(_) => message.get(CORRELATION),
        }
    }
}
