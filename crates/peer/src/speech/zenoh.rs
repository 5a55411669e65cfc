//! Zenoh 1.x, as a router. Queries are refused, and a wildcard must be at the end (`a/**`).

use super::protocol::{Ask, Hub, PublisherAnswer, Speech};
use crate::routes::{Address, Filter};
use crate::script::PeerScript;
use pubmark_wire::Malformed;
use pubmark_wire::zenoh::{
    BatchReader, DATA_PRIORITY, DO_NOT_DROP, Declaration, EXPRESS, FrameChannel, InitTerms, InterestMode, KeyExpr,
    MAX_BATCH_BYTES, NetworkItem, NodeKind, PATCH, TransportItem, VERSION,
};
use std::rc::Rc;

const COOKIE: &[u8] = b"pubmark-peer";
const ID: &[u8] = b"pubmark-peer";
/// Lease that the router announces, ms.
const LEASE_MS: u64 = 10_000;
/// Reasons of a Close: the maximum of sessions is reached, and any other.
const MAX_SESSIONS: u8 = 3;
const GENERIC: u8 = 0;

/// A connection.
pub struct ZenohServer {
    denied: bool,
    script: Rc<PeerScript>,
    /// Messages received on the connection.
    published: u64,
    channel: FrameChannel,
    batch_bytes: u16,
    /// Keys that the client has declared, by number.
    keys: Vec<(u16, Box<[u8]>)>,
    /// Subscriptions by token: the client's number and the key; one that has ended stays, without a key.
    subscriptions: Vec<(u32, Box<[u8]>)>,
    /// Fragments of a message.
    fragments: Vec<u8>,
    /// A message's key.
    key: Vec<u8>,
}

impl Speech for ZenohServer {
    const SCHEME: &'static str = "zenoh";

    fn new(denied: bool) -> Self {
        ZenohServer {
            denied,
            script: Rc::default(),
            published: 0,
            channel: FrameChannel::new(true, 0),
            batch_bytes: MAX_BATCH_BYTES,
            keys: Vec::new(),
            subscriptions: Vec::new(),
            fragments: Vec::new(),
            key: Vec::new(),
        }
    }

    fn obey(&mut self, script: &Rc<PeerScript>) {
        self.script = script.clone();
    }

    fn greet(&mut self, out: &mut Vec<u8>) -> bool {
        if self.denied {
            TransportItem::Close(MAX_SESSIONS).put(out);
        }
        self.denied
    }

    fn input(&mut self, bytes: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<usize, Malformed> {
        let mut done = 0;
        while let Some((mut batch, used)) = BatchReader::decode(&bytes[done..])? {
            while let Some(item) = batch.next_item()? {
                match item {
                    TransportItem::InitSyn(terms) => self.accept(&terms, out),
                    TransportItem::OpenSyn { .. } => {
                        TransportItem::OpenAck { lease_ms: LEASE_MS, first: 0 }.put(out);
                    }
                    TransportItem::Network(item) => self.hear(&item, out, hub)?,
                    TransportItem::Fragment { first, more, part, .. } => {
                        if first {
                            self.fragments.clear();
                        }
                        self.fragments.extend_from_slice(part);
                        if !more {
                            let message = std::mem::take(&mut self.fragments);
                            self.hear(&NetworkItem::decode(&message)?, out, hub)?;
                            self.fragments = message;
                        }
                    }
                    TransportItem::Close(_) => {
                        hub(Ask::Close);
                    }
                    _ => {}
                }
            }
            done += used;
        }
        Ok(done)
    }

    fn deliver(&mut self, token: u32, to: Address<'_>, payload: &[u8], _: u8, out: &mut Vec<u8>) {
        if self.subscriptions.get(token as usize).is_some() {
            // Each in a batch of its own: a slow subscriber takes one message at a time.
            let (key, qos) = (KeyExpr::text(to.topic), DATA_PRIORITY | DO_NOT_DROP | EXPRESS);
            self.channel.put_push(out, key, qos, payload, self.batch_bytes);
        }
    }
}

impl ZenohServer {
    fn accept(&mut self, terms: &InitTerms<'_>, out: &mut Vec<u8>) {
        let ours =
            InitTerms { version: VERSION, kind: NodeKind::Router, id: ID, patch: PATCH.min(terms.patch), ..*terms };
        self.channel = FrameChannel::new(true, terms.resolution);
        self.batch_bytes = terms.batch_bytes;
        TransportItem::InitAck(ours, COOKIE).put(out);
    }

    fn hear(&mut self, item: &NetworkItem<'_>, out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<(), Malformed> {
        match item {
            NetworkItem::Put { key, payload } => self.published(key, payload, out, hub)?,
            NetworkItem::Declare(_, Declaration::Key(number, key)) => {
                let text = self.text(key)?.into();
                self.keys.retain(|(known, _)| known != number);
                self.keys.push((*number, text));
            }
            NetworkItem::Declare(_, Declaration::Subscriber(number, key)) => {
                let text: Box<[u8]> = self.text(key)?.into();
                let filter = filter(&text).ok_or_else(|| Malformed::new("a wildcard is not at the end"))?;
                hub(Ask::Subscribe(filter, self.subscriptions.len() as u32));
                self.subscriptions.push((*number, text));
            }
            NetworkItem::Declare(_, Declaration::SubscriberGone(number)) => self.unsubscribe(*number, hub),
            NetworkItem::Interest { number, mode: InterestMode::Current | InterestMode::CurrentFuture, .. } => {
                self.channel.put_frame(&NetworkItem::Declare(Some(*number), Declaration::Final), out);
            }
            _ => {}
        }
        Ok(())
    }

    /// Zenoh refuses no message: one that the script refuses ends the session.
    fn published(
        &mut self,
        key: &KeyExpr<'_>,
        payload: &[u8],
        out: &mut Vec<u8>,
        hub: &mut Hub<'_>,
    ) -> Result<(), Malformed> {
        self.published += 1;
        let over = self.script.end.as_ref().is_some_and(|end| self.published >= end.after);
        let to = Address::of(self.text(key)?);
        if over || hub(Ask::Publish { to, payload, qos: 0 }).answer == PublisherAnswer::Refused {
            TransportItem::Close(GENERIC).put(out);
            hub(Ask::Close);
        }
        Ok(())
    }

    /// Returns a key's text.
    fn text(&mut self, key: &KeyExpr<'_>) -> Result<&[u8], Malformed> {
        self.key.clear();
        if key.scope > 0 {
            let known = self.keys.iter().find(|(number, _)| *number == key.scope);
            let (_, stem) = known.ok_or_else(|| Malformed::new("a key was not declared"))?;
            self.key.extend_from_slice(stem);
        }
        self.key.extend_from_slice(key.suffix);
        Ok(&self.key)
    }

    fn unsubscribe(&mut self, number: u32, hub: &mut Hub<'_>) {
        for (token, (known, key)) in self.subscriptions.iter_mut().enumerate() {
            if *known == number && !key.is_empty() {
                if let Some(filter) = filter(key) {
                    hub(Ask::Unsubscribe(filter, token as u32));
                }
                *key = Box::default();
            }
        }
    }
}

fn filter(key: &[u8]) -> Option<Filter<'_>> {
    let (prefix, below) = match key.strip_suffix(b"**") {
        Some(prefix) if prefix.is_empty() || prefix.ends_with(b"/") => (prefix, true),
        _ => (key, false),
    };
    let plain = !prefix.contains(&b'*');
    plain.then_some(if below { Filter::Below(prefix) } else { Filter::Exact(prefix) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speech::Handled;
    use pubmark_wire::zenoh::DEFAULT_RESOLUTION;

    fn say(server: &mut ZenohServer, bytes: &[u8]) -> (Vec<u8>, Vec<String>) {
        let (mut out, mut asked) = (Vec::new(), Vec::new());
        let hub = &mut |ask: Ask<'_>| {
            asked.push(match ask {
                Ask::Publish { to, payload, .. } => format!("{} {}", to.topic.escape_ascii(), payload.len()),
                Ask::Subscribe(Filter::Below(prefix), token) => format!("below {} {token}", prefix.escape_ascii()),
                Ask::Subscribe(Filter::Exact(topic), token) => format!("exact {} {token}", topic.escape_ascii()),
                Ask::Unsubscribe(_, token) => format!("gone {token}"),
                other => format!("{other:?}"),
            });
            Handled { answer: PublisherAnswer::Acknowledged, listeners: 0 }
        };
        assert_eq!(server.input(bytes, &mut out, hub).unwrap(), bytes.len());
        (out, asked)
    }

    #[test]
    fn a_conversation() {
        let mut server = ZenohServer::new(false);
        let mut out = Vec::new();
        assert!(!server.greet(&mut out) && out.is_empty());
        let terms = InitTerms {
            version: VERSION,
            kind: NodeKind::Client,
            id: b"c",
            resolution: DEFAULT_RESOLUTION,
            batch_bytes: 1_000,
            patch: 1,
        };
        TransportItem::InitSyn(terms).put(&mut out);
        TransportItem::OpenSyn { lease_ms: 1, first: 0, cookie: COOKIE }.put(&mut out);
        let (answer, asked) = say(&mut server, &out);
        let (mut batch, used) = BatchReader::decode(&answer).unwrap().unwrap();
        assert!(matches!(batch.next_item(), Ok(Some(TransportItem::InitAck(ack, COOKIE))) if ack.batch_bytes == 1_000));
        let (mut batch, _) = BatchReader::decode(&answer[used..]).unwrap().unwrap();
        assert_eq!(batch.next_item(), Ok(Some(TransportItem::OpenAck { lease_ms: LEASE_MS, first: 0 })));
        assert!(asked.is_empty());

        out.clear();
        let mut channel = FrameChannel::new(true, DEFAULT_RESOLUTION);
        let one = KeyExpr::declared(1);
        for item in [
            NetworkItem::Declare(None, Declaration::Key(1, KeyExpr::text(b"a/b"))),
            NetworkItem::Declare(None, Declaration::Subscriber(7, one)),
            NetworkItem::Declare(None, Declaration::Subscriber(8, KeyExpr::text(b"a/**"))),
            NetworkItem::Interest { number: 3, mode: InterestMode::Current, key: None },
            NetworkItem::Put { key: KeyExpr { suffix: b"/c", ..one }, payload: b"hi" },
            NetworkItem::Declare(None, Declaration::SubscriberGone(7)),
        ] {
            channel.put_frame(&item, &mut out);
        }
        channel.put_push(&mut out, one, DATA_PRIORITY, &[1; 2_500], 1_000);
        let (answer, asked) = say(&mut server, &out);
        assert_eq!(asked, ["exact a/b 0", "below a/ 1", "a/b/c 2", "gone 0", "a/b 2500"]);
        let (mut batch, _) = BatchReader::decode(&answer).unwrap().unwrap();
        batch.next_item().unwrap();
        let over = NetworkItem::Declare(Some(3), Declaration::Final);
        assert_eq!(batch.next_item(), Ok(Some(TransportItem::Network(over))));
        out.clear();
        server.deliver(1, Address::of(b"a/c"), b"hi", 0, &mut out);
        let (mut batch, _) = BatchReader::decode(&out).unwrap().unwrap();
        batch.next_item().unwrap();
        let put = NetworkItem::Put { key: KeyExpr::text(b"a/c"), payload: b"hi" };
        assert_eq!(batch.next_item(), Ok(Some(TransportItem::Network(put))));
    }

    #[test]
    fn what_it_does_not_know_it_refuses() {
        let mut out = Vec::new();
        for key in [&b"a/*"[..], b"*/**", b"a/x**"] {
            let mut server = ZenohServer::new(false);
            out.clear();
            let subscribe = NetworkItem::Declare(None, Declaration::Subscriber(1, KeyExpr::text(key)));
            FrameChannel::new(true, DEFAULT_RESOLUTION).put_frame(&subscribe, &mut out);
            let hub = &mut |_: Ask<'_>| Handled { answer: PublisherAnswer::Acknowledged, listeners: 0 };
            assert!(server.input(&out.clone(), &mut Vec::new(), hub).is_err(), "{}", key.escape_ascii());
        }
        out.clear();
        assert!(ZenohServer::new(true).greet(&mut out));
        assert!(BatchReader::decode(&out).unwrap().is_some());
    }
}
