//! Removal of topics and groups, by a client that does nothing else.

use super::names::{ClientNames, EXPECTED, GREETING};
use super::refusal::{decoded, in_words};
use crate::drivers::foreign_peer::foreign;
use crate::session::{MessageRefusal, RefusalKind, SessionError, SessionEvent};
use pubmark_model::leftovers::Leftover;
use pubmark_wire::kafka::{self as wire, KafkaApi, KafkaRequest, KafkaResponse, NO_ERROR, RequestFrame, ResponseFrame};

/// Time for the end of a topic, ms.
const TOPIC_MS: i32 = 30_000;
/// Correlations of the requests that remove a group: for its members, for their end, and for its own.
const MEMBERS: i32 = 1;
const MEMBER_END: i32 = 2;
const GROUP_END: i32 = 3;

fn put(names: &ClientNames, correlation: i32, request: KafkaRequest<'_>, out: &mut Vec<u8>) {
    RequestFrame { correlation, client: names.client.as_bytes(), request }.put(out);
}

/// Asks for the end of a topic, or for the members of a group, who have to leave before its end. Returns false if it is
/// neither.
pub(super) fn ask(names: &ClientNames, thing: &Leftover, out: &mut Vec<u8>) -> bool {
    let (correlation, request) = match thing {
        Leftover::Topic(topic) => {
            (GREETING, KafkaRequest::DeleteTopics { topic: topic.as_bytes(), timeout_ms: TOPIC_MS })
        }
        Leftover::Group(group) => (MEMBERS, KafkaRequest::DescribeGroups(group.as_bytes())),
        _ => return false,
    };
    put(names, correlation, request, out);
    true
}

/// Handles an answer. Returns true if nothing follows it: a topic or a group is gone, or cannot be removed.
pub(super) fn answered(
    names: &ClientNames,
    frame: &ResponseFrame<'_>,
    out: &mut Vec<u8>,
    heard: &mut dyn FnMut(SessionEvent<'_>),
) -> Result<bool, SessionError> {
    let api = match frame.correlation {
        GREETING => KafkaApi::DeleteTopics,
        MEMBERS => KafkaApi::DescribeGroups,
        MEMBER_END => KafkaApi::LeaveGroup,
        GROUP_END => KafkaApi::DeleteGroups,
        _ => return Err(foreign(EXPECTED, frame.body, "the answer is to a request that was not made")),
    };
    let response = decoded(api, frame)?;
    let error = match response {
        KafkaResponse::DescribeGroups(_, group, members) => {
            for member in members.iter() {
                put(names, MEMBER_END, KafkaRequest::LeaveGroup { group, member }, out);
            }
            put(names, GROUP_END, KafkaRequest::DeleteGroups(group), out);
            return Ok(false);
        }
        KafkaResponse::DeleteTopics(answer) => answer.error,
        KafkaResponse::DeleteGroups(error) => error,
        _ => return Ok(false),
    };
    match error {
        NO_ERROR | wire::UNKNOWN_TOPIC_OR_PARTITION | wire::GROUP_ID_NOT_FOUND => heard(SessionEvent::Acknowledged(0)),
        error => {
            let words = in_words(error, None);
            heard(SessionEvent::Refused(0, MessageRefusal { code: None, words: &words, kind: RefusalKind::Final }));
        }
    }
    Ok(true)
}
