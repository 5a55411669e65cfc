//! Refusals of the server, in words.

use crate::drivers::foreign_peer::printable;
use crate::session::{MessageRefusal, RefusalKind, SessionError};
use pubmark_wire::amqp1::{Amqp1Failure, Symbol};

pub(super) const RESOURCE_LIMIT: Symbol<'static> = Symbol(b"amqp:resource-limit-exceeded");
/// A server releases a message that has nowhere to go, or for which it has no room.
pub(super) const RELEASED: MessageRefusal<'static> =
    MessageRefusal { code: None, words: "released: the server did not take it", kind: RefusalKind::Limit };
pub(super) const MODIFIED: MessageRefusal<'static> =
    MessageRefusal { words: "modified: the server did not take it", ..RELEASED };

/// Returns the refusal of a message, with these words, for this reason.
pub(super) fn rejected<'a>(words: &'a str, failure: Option<Amqp1Failure<'_>>) -> MessageRefusal<'a> {
    let is_limit = failure.is_some_and(|failure| failure.condition == RESOURCE_LIMIT);
    MessageRefusal { code: None, words, kind: RefusalKind::limit_or_final(is_limit) }
}

pub(super) fn out_of_turn(what: &str) -> SessionError {
    SessionError::Foreign(format!("the server breaks AMQP 1.0: {what}, out of turn"))
}

pub(super) fn in_words(failure: Amqp1Failure<'_>) -> String {
    let condition = printable(failure.condition.0);
    match failure.text {
        Some(text) => format!("{condition}: {}", String::from_utf8_lossy(text.0)),
        None => condition,
    }
}

/// Makes the error for the reason with which the server ends something.
pub(super) fn ended(what: &str, error: Option<Amqp1Failure<'_>>) -> SessionError {
    let Some(failure) = error else { return SessionError::Busy(format!("the server ended the {what}")) };
    let said = format!("the server ended the {what}: {}", in_words(failure));
    match failure.condition.0 {
        b"amqp:resource-limit-exceeded" | b"amqp:link:message-size-exceeded" => SessionError::Limit(said),
        b"amqp:unauthorized-access"
        | b"amqp:not-allowed"
        | b"amqp:not-found"
        | b"amqp:not-implemented"
        | b"amqp:invalid-field"
        | b"amqp:precondition-failed" => SessionError::Denied(said),
        b"amqp:connection:framing-error" | b"amqp:decode-error" => SessionError::Foreign(said),
        _ => SessionError::Busy(said),
    }
}
