//! JetStream, as far as a client with one consumer needs it: requests that make and remove things succeed, a message
//! that names an inbox is acknowledged, and a consumer is sent what it has asked for.

use crate::routes::{Address, KeptAddress};
use pubmark_wire::nats::FromServer;
use serde_json::Value;
use std::collections::VecDeque;

/// Subject to which a delivered message is acknowledged.
const ACK: &[u8] = b"$JS.ACK.peer";

/// A request of a client, by its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiRequest {
    /// Makes a consumer.
    Consumer,
    /// Asks for messages.
    Next,
    /// Acknowledges a message.
    Ack,
    /// Any other, which succeeds.
    Other,
}

impl ApiRequest {
    /// Returns the request to this subject, if it is one of JetStream.
    pub fn to(subject: &[u8]) -> Option<ApiRequest> {
        let rest = subject.strip_prefix(b"$JS.")?;
        Some(match rest {
            _ if rest.starts_with(b"ACK.") => ApiRequest::Ack,
            _ if rest.starts_with(b"API.CONSUMER.CREATE.") => ApiRequest::Consumer,
            _ if rest.starts_with(b"API.CONSUMER.MSG.NEXT.") => ApiRequest::Next,
            _ => ApiRequest::Other,
        })
    }
}

/// The subscription to answers: `_INBOX.NAME.*`.
pub struct AnswerInbox {
    /// The subject without its wildcard.
    stem: Box<[u8]>,
    /// Identifier that the client chose.
    pub subscription: Box<[u8]>,
}

impl AnswerInbox {
    /// Returns the inbox of a subscription, if it is one.
    pub fn of(subject: &[u8], subscription: &[u8]) -> Option<AnswerInbox> {
        let stem = subject.strip_suffix(b"*").filter(|stem| stem.starts_with(b"_INBOX.") && stem.ends_with(b"."))?;
        Some(AnswerInbox { stem: stem.into(), subscription: subscription.into() })
    }

    /// True if this subject is in it.
    pub fn has(&self, subject: &[u8]) -> bool {
        subject.starts_with(&self.stem)
    }

    /// Appends what a client hears if nobody serves its request.
    pub fn no_responders(&self, subject: &[u8], out: &mut Vec<u8>) {
        let headers = b"NATS/1.0 503\r\n\r\n";
        FromServer::Message { subject, subscription: &self.subscription, reply: None, headers, payload: b"" }.put(out);
    }

    /// Appends an answer.
    pub fn answer(&self, subject: &[u8], payload: &[u8], out: &mut Vec<u8>) {
        FromServer::Message { subject, subscription: &self.subscription, reply: None, headers: &[], payload }.put(out);
    }
}

/// What the request for a consumer says.
#[derive(Debug, PartialEq, Eq)]
pub struct ConsumerConfig {
    pub filter: String,
    /// Subject to which messages are pushed; `None` if the client asks for them.
    pub deliver: Option<String>,
}

impl ConsumerConfig {
    /// Reads the body of the request.
    pub fn read(body: &[u8]) -> Option<ConsumerConfig> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let text = |name: &str| body["config"][name].as_str().map(str::to_owned);
        Some(ConsumerConfig { filter: text("filter_subject")?, deliver: text("deliver_subject") })
    }
}

/// A consumer of the connection.
pub struct PullConsumer {
    /// Identifier of the subscription that hears its messages.
    subscription: Box<[u8]>,
    /// Messages that it may be sent; `None` for no bound.
    wanted: Option<u64>,
    waiting: VecDeque<(KeptAddress, Box<[u8]>)>,
    waiting_bytes: usize,
}

impl PullConsumer {
    /// Creates a consumer; `pushed` if it need not ask.
    pub fn new(subscription: &[u8], pushed: bool) -> PullConsumer {
        let wanted = if pushed { None } else { Some(0) };
        PullConsumer { subscription: subscription.into(), wanted, waiting: VecDeque::new(), waiting_bytes: 0 }
    }

    /// Returns the bytes of payload that wait until the client asks.
    pub fn kept_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Handles a request for messages, and appends those that wait.
    pub fn asked(&mut self, body: &[u8], out: &mut Vec<u8>) {
        let batch = serde_json::from_slice(body).map_or(1, |body: Value| body["batch"].as_u64().unwrap_or(1));
        self.wanted = self.wanted.map(|wanted| wanted.saturating_add(batch));
        while self.wanted != Some(0)
            && let Some((to, payload)) = self.waiting.pop_front()
        {
            self.waiting_bytes -= payload.len();
            self.say(to.get(), &payload, out);
        }
    }

    /// Appends a message, or keeps it until the client asks.
    pub fn deliver(&mut self, to: Address<'_>, payload: &[u8], out: &mut Vec<u8>) {
        if self.wanted == Some(0) {
            self.waiting_bytes += payload.len();
            self.waiting.push_back((to.kept(), payload.into()));
        } else {
            self.say(to, payload, out);
        }
    }

    fn say(&mut self, to: Address<'_>, payload: &[u8], out: &mut Vec<u8>) {
        self.wanted = self.wanted.map(|wanted| wanted - 1);
        let subscription = &*self.subscription;
        FromServer::Message { subject: to.topic, subscription, reply: Some(ACK), headers: &[], payload }.put(out);
    }
}
