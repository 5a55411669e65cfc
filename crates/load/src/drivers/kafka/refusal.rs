//! What a broker refuses, in words.

use crate::session::SessionError;
use pubmark_wire::kafka::{self as wire, error_name};

/// Returns the name of an error and the broker's text for it.
pub fn in_words(error: i16, words: Option<&[u8]>) -> String {
    let name = error_name(error);
    let hint = match error {
        wire::NOT_LEADER_OR_FOLLOWER => ": another broker leads the topic",
        wire::OFFSET_OUT_OF_RANGE => ": the broker has deleted records that were not read yet",
        _ => "",
    };
    match words {
        Some(words) => format!("{name} ({error}): {}{hint}", String::from_utf8_lossy(words)),
        None => format!("{name} ({error}){hint}"),
    }
}

/// True if the error names a limit of the broker.
pub fn is_limit(error: i16) -> bool {
    matches!(
        error,
        wire::RECORD_LIST_TOO_LARGE
            | wire::KAFKA_STORAGE_ERROR
            | wire::THROTTLING_QUOTA_EXCEEDED
            | wire::POLICY_VIOLATION
    )
}

/// Makes the error for a refusal of what a client needs.
pub fn refused(what: &str, error: i16, words: Option<&[u8]>) -> SessionError {
    let said = format!("the broker refuses {what}: {}", in_words(error, words));
    match error {
        error if is_limit(error) => SessionError::Limit(said),
        wire::UNKNOWN_TOPIC_OR_PARTITION
        | wire::LEADER_NOT_AVAILABLE
        | wire::NOT_LEADER_OR_FOLLOWER
        | wire::NOT_CONTROLLER
        | wire::REQUEST_TIMED_OUT
        | wire::BROKER_NOT_AVAILABLE
        | wire::REPLICA_NOT_AVAILABLE
        | wire::NETWORK_EXCEPTION
        | wire::COORDINATOR_LOAD_IN_PROGRESS
        | wire::COORDINATOR_NOT_AVAILABLE
        | wire::UNKNOWN_SERVER_ERROR => SessionError::Busy(said),
        _ => SessionError::Denied(said),
    }
}
