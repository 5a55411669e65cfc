//! NATS core, and JetStream for a client with one consumer. Headers are not passed on, queue groups are refused; a
//! wildcard must be at the end (`a.>`).

mod jetstream;

use super::protocol::{Ask, Hub, PublisherAnswer, Speech};
use crate::routes::{Address, Filter};
use crate::script::PeerScript;
use jetstream::{AnswerInbox, ApiRequest, ConsumerConfig, PullConsumer};
use pubmark_wire::Malformed;
use pubmark_wire::nats::{FromClient, FromServer};
use serde_json::json;
use std::rc::Rc;

const INFO: &str = r#"{"server_id":"PEER","server_name":"pubmark-peer","version":"0.0.0-peer","proto":1,"headers":true,"max_payload":MAX,"auth_required":false,"tls_required":false}"#;

/// Limit if the script has none.
const MAX_PAYLOAD_BYTES: u32 = 64 << 20;
/// Error text of a refused message if the script has none.
const REFUSAL: &str = "Permissions Violation for Publish";

struct Subscription {
    /// Identifier that the client chose.
    name: Box<[u8]>,
    subject: Box<[u8]>,
}

/// Token of the consumer's subscription: no client has so many others.
const CONSUMER: u32 = u32::MAX;

/// A connection.
pub struct NatsServer {
    denied: bool,
    script: Rc<PeerScript>,
    /// Messages received on the connection.
    published: u64,
    /// Subscriptions by token; one that has ended stays, without a name.
    subscriptions: Vec<Subscription>,
    inbox: Option<AnswerInbox>,
    consumer: Option<PullConsumer>,
}

impl Speech for NatsServer {
    const SCHEME: &'static str = "nats";

    fn new(denied: bool) -> Self {
        NatsServer {
            denied,
            script: Rc::default(),
            published: 0,
            subscriptions: Vec::new(),
            inbox: None,
            consumer: None,
        }
    }

    fn obey(&mut self, script: &Rc<PeerScript>) {
        self.script = script.clone();
    }

    fn greet(&mut self, out: &mut Vec<u8>) -> bool {
        if self.denied {
            FromServer::Error(b"maximum connections exceeded").put(out);
        } else {
            let most = self.script.limits.payload_bytes.unwrap_or(MAX_PAYLOAD_BYTES);
            FromServer::Info(INFO.replace("MAX", &most.to_string()).as_bytes()).put(out);
        }
        self.denied
    }

    fn input(&mut self, bytes: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<usize, Malformed> {
        let mut done = 0;
        while let Some((item, used)) = FromClient::decode(&bytes[done..])? {
            match item {
                FromClient::Publish { subject, reply, payload, .. } => match ApiRequest::to(subject) {
                    Some(request) => self.request(request, reply, payload, out, hub),
                    None => self.publish(subject, reply.unwrap_or_default(), payload, out, hub),
                },
                FromClient::Subscribe { subject, subscription, .. }
                    if AnswerInbox::of(subject, subscription).is_some() =>
                {
                    self.inbox = AnswerInbox::of(subject, subscription);
                }
                FromClient::Subscribe { subject, group, subscription } => match (filter(subject), group) {
                    (Some(filter), None) => {
                        hub(Ask::Subscribe(filter, self.subscriptions.len() as u32));
                        self.subscriptions.push(Subscription { name: subscription.into(), subject: subject.into() });
                    }
                    _ => FromServer::Error(b"Invalid Subject").put(out),
                },
                FromClient::Unsubscribe { subscription, .. } => self.unsubscribe(subscription, hub),
                FromClient::Ping => FromServer::Pong.put(out),
                FromClient::Pong | FromClient::Connect(_) => {}
            }
            done += used;
        }
        Ok(done)
    }

    fn deliver(&mut self, token: u32, to: Address<'_>, payload: &[u8], _: u8, out: &mut Vec<u8>) {
        if let Some(consumer) = self.consumer.as_mut().filter(|_| token == CONSUMER) {
            consumer.deliver(to, payload, out);
            return;
        }
        if let Some(Subscription { name, .. }) = self.subscriptions.get(token as usize) {
            let reply = (!to.reply.is_empty()).then_some(to.reply);
            FromServer::Message { subject: to.topic, subscription: name, reply, headers: &[], payload }.put(out);
        }
    }

    fn kept_bytes(&self) -> usize {
        self.consumer.as_ref().map_or(0, PullConsumer::kept_bytes)
    }
}

impl NatsServer {
    /// Handles a message. One that names the client's inbox is acknowledged there.
    fn publish(&mut self, subject: &[u8], reply: &[u8], payload: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) {
        self.published += 1;
        if let Some(end) = self.script.end.as_ref().filter(|end| self.published >= end.after) {
            FromServer::Error(end.words.as_bytes()).put(out);
            hub(Ask::Close);
            return;
        }
        let inbox = self.inbox.as_ref().filter(|inbox| inbox.has(reply));
        if let Some(inbox) = inbox.filter(|_| self.published <= self.script.refuse.early) {
            return inbox.no_responders(reply, out);
        }
        let to = Address { topic: subject, reply: if inbox.is_some() { b"" } else { reply } };
        let answer = hub(Ask::Publish { to, payload, qos: inbox.is_some().into() }).answer;
        let words = || self.script.refuse.words.as_deref().unwrap_or(REFUSAL);
        match (inbox, answer) {
            (Some(inbox), PublisherAnswer::Acknowledged) => {
                let ack = format!("{{\"stream\":\"peer\",\"seq\":{}}}", self.published);
                inbox.answer(reply, ack.as_bytes(), out);
            }
            (Some(inbox), PublisherAnswer::Refused) => {
                let error = json!({"error": {"code": 400, "err_code": 10_077, "description": words()}});
                inbox.answer(reply, error.to_string().as_bytes(), out);
            }
            (None, PublisherAnswer::Refused) => FromServer::Error(words().as_bytes()).put(out),
            _ => {}
        }
    }

    /// Handles a request to JetStream.
    fn request(
        &mut self,
        request: ApiRequest,
        reply: Option<&[u8]>,
        payload: &[u8],
        out: &mut Vec<u8>,
        hub: &mut Hub<'_>,
    ) {
        match request {
            ApiRequest::Ack => return,
            ApiRequest::Next => {
                match (&mut self.consumer, &self.inbox, reply) {
                    (Some(consumer), ..) => consumer.asked(payload, out),
                    (None, Some(inbox), Some(reply)) => inbox.no_responders(reply, out),
                    _ => {}
                }
                return;
            }
            ApiRequest::Consumer => {
                let Some(config) = ConsumerConfig::read(payload) else {
                    FromServer::Error(b"Invalid Consumer").put(out);
                    return;
                };
                let pushed = self
                    .subscriptions
                    .iter()
                    .find(|one| Some(&*one.subject) == config.deliver.as_deref().map(str::as_bytes));
                let hears = pushed.map(|one| &*one.name).or(self.inbox.as_ref().map(|inbox| &*inbox.subscription));
                let new = PullConsumer::new(hears.unwrap_or_default(), config.deliver.is_some());
                if let (None, Some(filter)) = (&self.consumer, filter(config.filter.as_bytes())) {
                    hub(Ask::Subscribe(filter, CONSUMER));
                    hub(Ask::Replay(filter, CONSUMER));
                    self.consumer = Some(new);
                }
            }
            ApiRequest::Other => {}
        }
        if let (Some(inbox), Some(reply)) = (&self.inbox, reply) {
            inbox.answer(reply, b"{\"success\":true}", out);
        }
    }

    fn unsubscribe(&mut self, name: &[u8], hub: &mut Hub<'_>) {
        for (token, subscription) in self.subscriptions.iter_mut().enumerate() {
            if *subscription.name == *name {
                if let Some(filter) = filter(&subscription.subject) {
                    hub(Ask::Unsubscribe(filter, token as u32));
                }
                subscription.name = Box::default();
            }
        }
    }
}

fn filter(subject: &[u8]) -> Option<Filter<'_>> {
    let (prefix, below) = match subject.strip_suffix(b">") {
        Some(prefix) if prefix.is_empty() || prefix.ends_with(b".") => (prefix, true),
        _ => (subject, false),
    };
    let plain = prefix.split(|byte| *byte == b'.').all(|token| token != b"*" && token != b">");
    plain.then_some(if below { Filter::Below(prefix) } else { Filter::Exact(prefix) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speech::Handled;

    fn say(nats: &mut NatsServer, bytes: &[u8]) -> (String, Vec<String>) {
        let (mut out, mut asked) = (Vec::new(), Vec::new());
        let hub = &mut |ask: Ask<'_>| {
            asked.push(match ask {
                Ask::Publish { to, payload, .. } => format!("{} {}", to.topic.escape_ascii(), payload.escape_ascii()),
                Ask::Subscribe(Filter::Below(prefix), token) => format!("below {} {token}", prefix.escape_ascii()),
                Ask::Subscribe(Filter::Exact(topic), token) => format!("exact {} {token}", topic.escape_ascii()),
                other => format!("{other:?}"),
            });
            Handled { answer: PublisherAnswer::Acknowledged, listeners: 0 }
        };
        assert_eq!(nats.input(bytes, &mut out, hub).unwrap(), bytes.len());
        (String::from_utf8(out).unwrap(), asked)
    }

    #[test]
    fn a_conversation() {
        let mut nats = NatsServer::new(false);
        let mut out = Vec::new();
        assert!(!nats.greet(&mut out));
        assert!(serde_json::from_slice::<serde_json::Value>(&out[5..]).unwrap()["max_payload"].is_u64());
        let (answer, asked) = say(&mut nats, b"CONNECT {}\r\nPING\r\nSUB a.b 7\r\nSUB a.> 8\r\nPUB a.b 2\r\nhi\r\n");
        assert_eq!(answer, "PONG\r\n");
        assert_eq!(asked, ["exact a.b 0", "below a. 1", "a.b hi"]);
        out.clear();
        nats.deliver(1, Address::of(b"a.c"), b"hi", 0, &mut out);
        assert_eq!(out, b"MSG a.c 8 2\r\nhi\r\n");
        assert_eq!(say(&mut nats, b"UNSUB 7\r\n").1.len(), 1);
    }

    #[test]
    fn a_consumer_is_sent_what_it_asks_for_and_a_publisher_hears_of_its_message() {
        let mut nats = NatsServer::new(false);
        let body = "{\"config\":{\"filter_subject\":\"a.>\"}}";
        let make = format!("PUB $JS.API.CONSUMER.CREATE.S.c.a.> _INBOX.c.0.api {}\r\n{body}\r\n", body.len());
        let early = b"SUB _INBOX.c.0.* 1\r\nPUB $JS.API.CONSUMER.MSG.NEXT.S.c _INBOX.c.0.m 11\r\n{\"batch\":1}\r\n";
        assert_eq!(say(&mut nats, early).0, "HMSG _INBOX.c.0.m 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n");
        let (answer, asked) = say(&mut nats, make.as_bytes());
        assert_eq!(answer, "MSG _INBOX.c.0.api 1 16\r\n{\"success\":true}\r\n");
        assert_eq!(asked, ["below a. 4294967295", "Replay(Below([97, 46]), 4294967295)"]);
        let mut out = Vec::new();
        for payload in [b"x", b"y"] {
            nats.deliver(CONSUMER, Address::of(b"a.b"), payload, 1, &mut out);
        }
        assert_eq!((out.as_slice(), nats.kept_bytes()), (&b""[..], 2), "it has asked for nothing");
        let (answer, _) = say(&mut nats, b"PUB $JS.API.CONSUMER.MSG.NEXT.S.c _INBOX.c.0.m 11\r\n{\"batch\":1}\r\n");
        assert_eq!((answer.as_str(), nats.kept_bytes()), ("MSG a.b 1 $JS.ACK.peer 1\r\nx\r\n", 1));
        let (answer, asked) = say(&mut nats, b"PUB a.b _INBOX.c.0.7 1\r\nz\r\nPUB $JS.ACK.peer 4\r\n+ACK\r\n");
        assert_eq!(
            (answer.as_str(), &asked[..]),
            ("MSG _INBOX.c.0.7 1 25\r\n{\"stream\":\"peer\",\"seq\":1}\r\n", &["a.b z".to_owned()][..])
        );
    }

    #[test]
    fn what_it_does_not_know_it_refuses() {
        let mut nats = NatsServer::new(false);
        for line in ["SUB a.* 1\r\n", "SUB a group 1\r\n", "SUB *.> 1\r\n"] {
            let (answer, asked) = say(&mut nats, line.as_bytes());
            assert!(answer.starts_with("-ERR") && asked.is_empty(), "{line}");
        }
        let mut out = Vec::new();
        assert!(NatsServer::new(true).greet(&mut out));
        assert!(out.starts_with(b"-ERR"));
    }
}
