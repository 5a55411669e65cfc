//! What a broker refuses, in words.

use super::names::EXPECTED;
use super::settings::KafkaSettings;
use crate::drivers::foreign_peer::foreign;
use crate::session::SessionError;
use pubmark_wire::kafka::{self as wire, KafkaApi, KafkaResponse, NO_ERROR, ResponseFrame, error_name};

/// Decodes the answer to a request of this kind.
///
/// # Errors
/// What answers is no Kafka broker.
pub fn decoded<'a>(api: KafkaApi, frame: &ResponseFrame<'a>) -> Result<KafkaResponse<'a>, SessionError> {
    KafkaResponse::decode(api, frame.body).map_err(|why| foreign(EXPECTED, frame.body, &why.0))
}

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

/// Checks that a broker takes the requests of the client.
pub fn check_versions(settings: &KafkaSettings, error: i16, lacks: Option<KafkaApi>) -> Result<(), SessionError> {
    let is_needed = |api: &KafkaApi| match api {
        KafkaApi::SaslHandshake | KafkaApi::SaslAuthenticate => settings.has_login(),
        KafkaApi::InitProducerId => settings.is_idempotent(),
        KafkaApi::FindCoordinator
        | KafkaApi::JoinGroup
        | KafkaApi::SyncGroup
        | KafkaApi::Heartbeat
        | KafkaApi::LeaveGroup
        | KafkaApi::OffsetCommit
        | KafkaApi::OffsetFetch
        | KafkaApi::DescribeGroups
        | KafkaApi::DeleteGroups => settings.group.is_some(),
        _ => true,
    };
    if error != NO_ERROR {
        return Err(refused("the question for its versions", error, None));
    }
    match lacks.filter(is_needed) {
        None => Ok(()),
        Some(api) => {
            let (_, version) = api.key();
            Err(SessionError::Denied(format!(
                "the broker does not take {api:?} in version {version}: pubmark needs Kafka 2.3 or later"
            )))
        }
    }
}

/// Checks that a broker takes the mechanism of the login.
pub fn check_mechanism(error: i16) -> Result<(), SessionError> {
    match error {
        NO_ERROR => Ok(()),
        error => Err(SessionError::Denied(format!(
            "the broker takes no login with PLAIN ({}): enable this mechanism",
            error_name(error)
        ))),
    }
}

/// Checks that a broker has accepted the login.
pub fn check_login(error: i16, words: Option<&[u8]>) -> Result<(), SessionError> {
    match error {
        NO_ERROR => Ok(()),
        error => Err(SessionError::Denied(format!("{}: check user and password", in_words(error, words)))),
    }
}
