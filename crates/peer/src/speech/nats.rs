//! NATS core. Headers are not passed on, queue groups are refused; a wildcard must be at the end (`a.>`).

use super::protocol::{Ask, Hub, PublisherAnswer, Speech};
use crate::routes::{Address, Filter};
use crate::script::PeerScript;
use pubmark_wire::Malformed;
use pubmark_wire::nats::{FromClient, FromServer};
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

/// A connection.
pub struct NatsServer {
    denied: bool,
    script: Rc<PeerScript>,
    /// Messages received on the connection.
    published: u64,
    /// Subscriptions by token; one that has ended stays, without a name.
    subscriptions: Vec<Subscription>,
}

impl Speech for NatsServer {
    const SCHEME: &'static str = "nats";

    fn new(denied: bool) -> Self {
        NatsServer { denied, script: Rc::default(), published: 0, subscriptions: Vec::new() }
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
                FromClient::Publish { subject, reply, payload, .. } => {
                    let to = Address { topic: subject, reply: reply.unwrap_or_default() };
                    self.published += 1;
                    if let Some(end) = self.script.end.as_ref().filter(|end| self.published >= end.after) {
                        FromServer::Error(end.words.as_bytes()).put(out);
                        hub(Ask::Close);
                    } else if hub(Ask::Publish { to, payload, qos: 0 }).answer == PublisherAnswer::Refused {
                        let words = self.script.refuse.words.as_deref().unwrap_or(REFUSAL);
                        FromServer::Error(words.as_bytes()).put(out);
                    }
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
        if let Some(Subscription { name, .. }) = self.subscriptions.get(token as usize) {
            let reply = (!to.reply.is_empty()).then_some(to.reply);
            FromServer::Message { subject: to.topic, subscription: name, reply, headers: &[], payload }.put(out);
        }
    }
}

impl NatsServer {
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
