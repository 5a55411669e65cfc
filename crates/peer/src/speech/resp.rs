//! RESP 2 and 3: channels of Redis, lists as far as request-reply needs them, and a stream for each client that reads
//! one. A pattern is a text with `*` at its end.

mod stream;

use super::protocol::{Ask, Handled, Hub, PublisherAnswer, Speech};
use crate::routes::{Address, Filter};
use crate::script::PeerScript;
use pubmark_wire::Malformed;
use pubmark_wire::resp::{Item, RespCommand, Values, put_bulk, put_front, put_integer, put_line};
use std::collections::VecDeque;
use std::rc::Rc;
use stream::ReadStream;

/// Token of channels; patterns have their positions, from 1.
const CHANNEL: u32 = 0;
/// Token of a list.
const LIST: u32 = u32::MAX;
/// Token of a stream.
const STREAM: u32 = u32::MAX - 1;
/// Error text of a refused message if the script has none.
const REFUSAL: &str = "OOM command not allowed when used memory > 'maxmemory'.";
const VERSION: &[u8] = b"0.0.0-peer";

/// A connection.
pub struct RespServer {
    denied: bool,
    script: Rc<PeerScript>,
    /// Messages received on the connection.
    published: u64,
    three: bool,
    /// Number of channels and patterns that it subscribes to.
    subscriptions: i64,
    patterns: Vec<Box<[u8]>>,
    list: Option<List>,
    stream: Option<ReadStream>,
}

impl Speech for RespServer {
    const SCHEME: &'static str = "redis";

    fn new(denied: bool) -> Self {
        RespServer {
            denied,
            script: Rc::default(),
            published: 0,
            three: false,
            subscriptions: 0,
            patterns: Vec::new(),
            list: None,
            stream: None,
        }
    }

    fn obey(&mut self, script: &Rc<PeerScript>) {
        self.script = script.clone();
    }

    fn greet(&mut self, out: &mut Vec<u8>) -> bool {
        if self.denied {
            put_line(out, b'-', b"ERR max number of clients reached");
        }
        self.denied
    }

    fn input(&mut self, bytes: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<usize, Malformed> {
        let mut done = 0;
        while let Some((item, used)) = Item::decode(&bytes[done..])? {
            match RespCommand::of(&item)? {
                RespCommand::Pop(list) => self.pop(list, out, hub),
                RespCommand::Publish(topic, payload) | RespCommand::Push(topic, payload) => {
                    self.publish(topic, payload, 0, out, hub);
                }
                RespCommand::Add(stream, payload) => self.publish(stream, payload, 1, out, hub),
                RespCommand::Group(stream) => {
                    if self.stream.is_none() {
                        hub(Ask::Subscribe(Filter::Exact(stream), STREAM));
                        hub(Ask::Replay(Filter::Exact(stream), STREAM));
                    }
                    self.stream.get_or_insert_with(|| ReadStream::new(stream));
                    put_line(out, b'+', b"OK");
                }
                RespCommand::Read(name, after) => match &mut self.stream {
                    Some(stream) if stream.is(name) => stream.read(after, self.three, out),
                    _ => put_line(out, b'-', b"NOGROUP No such key"),
                },
                RespCommand::Acknowledge(words) => put_integer(out, words.saturating_sub(2) as i64),
                RespCommand::Hello(version, _) => self.hello(version, out),
                RespCommand::Auth(..) => put_line(out, b'+', b"OK"),
                RespCommand::Ping(text) => self.pong(text, out),
                RespCommand::Subscribe(channels) => self.subscribe(channels, out, hub),
                RespCommand::PatternSubscribe(patterns) => self.subscribe_patterns(patterns, out, hub),
                RespCommand::Quit => {
                    put_line(out, b'+', b"OK");
                    hub(Ask::Close);
                }
                RespCommand::Other(name) if name.eq_ignore_ascii_case(b"INFO") => {
                    put_bulk(out, &[b"redis_version:", VERSION, b"\r\n"].concat());
                }
                RespCommand::Other(_) => put_line(out, b'-', b"ERR unknown command"),
            }
            done += used;
        }
        Ok(done)
    }

    fn deliver(&mut self, token: u32, Address { topic, .. }: Address<'_>, payload: &[u8], _: u8, out: &mut Vec<u8>) {
        if let Some(list) = self.list.as_mut().filter(|_| token == LIST) {
            list.kept.push_back(payload.into());
            return list.serve(out);
        }
        if let Some(stream) = self.stream.as_mut().filter(|_| token == STREAM) {
            return stream.deliver(payload, self.three, out);
        }
        let pattern = (token as usize).checked_sub(1).and_then(|place| self.patterns.get(place));
        put_front(out, self.unasked(), 3 + usize::from(pattern.is_some()));
        match pattern {
            None => put_bulk(out, b"message"),
            Some(pattern) => {
                put_bulk(out, b"pmessage");
                put_bulk(out, pattern);
            }
        }
        put_bulk(out, topic);
        put_bulk(out, payload);
    }
}

/// A list that a client takes messages off. It keeps them for this client alone.
struct List {
    name: Box<[u8]>,
    kept: VecDeque<Box<[u8]>>,
    /// BLPOPs that wait for a message.
    waiting: u32,
}

impl List {
    /// Answers BLPOPs, as far as there are messages.
    fn serve(&mut self, out: &mut Vec<u8>) {
        while self.waiting > 0
            && let Some(payload) = self.kept.pop_front()
        {
            self.waiting -= 1;
            put_front(out, b'*', 2);
            put_bulk(out, &self.name);
            put_bulk(out, &payload);
        }
    }
}

impl RespServer {
    /// Handles a message: PUBLISH and RPUSH are answered with a number, XADD (at QoS 1) with an identifier.
    fn publish(&mut self, topic: &[u8], payload: &[u8], qos: u8, out: &mut Vec<u8>, hub: &mut Hub<'_>) {
        self.published += 1;
        if let Some(end) = self.script.end.as_ref().filter(|end| self.published >= end.after) {
            put_line(out, b'-', end.words.as_bytes());
            hub(Ask::Close);
            return;
        }
        match hub(Ask::Publish { to: Address::of(topic), payload, qos }) {
            Handled { answer: PublisherAnswer::Refused, .. } => {
                let words = self.script.refuse.words.as_deref().unwrap_or(REFUSAL);
                put_line(out, b'-', words.as_bytes());
            }
            Handled { listeners, .. } if qos == 0 => put_integer(out, listeners as i64),
            Handled { .. } => put_bulk(out, format!("{}-0", self.published).as_bytes()),
        }
    }

    /// Handles a BLPOP: it waits for ever, and each client has one list.
    fn pop(&mut self, name: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) {
        if self.list.is_none() {
            hub(Ask::Subscribe(Filter::Exact(name), LIST));
        }
        let list = self.list.get_or_insert_with(|| List { name: name.into(), kept: VecDeque::new(), waiting: 0 });
        if *list.name != *name {
            return put_line(out, b'-', b"ERR the peer has one list for each client");
        }
        list.waiting += 1;
        list.serve(out);
    }

    /// Returns the first byte of a message that is not an answer.
    fn unasked(&self) -> u8 {
        if self.three { b'>' } else { b'*' }
    }

    fn hello(&mut self, version: Option<&[u8]>, out: &mut Vec<u8>) {
        match version {
            Some(b"2") => self.three = false,
            Some(b"3") => self.three = true,
            None => {}
            Some(_) => return put_line(out, b'-', b"NOPROTO unsupported protocol version"),
        }
        let (kind, count) = if self.three { (b'%', 3) } else { (b'*', 6) };
        put_front(out, kind, count);
        for word in [&b"server"[..], b"pubmark-peer", b"version", VERSION, b"proto"] {
            put_bulk(out, word);
        }
        put_integer(out, if self.three { 3 } else { 2 });
    }

    fn pong(&self, text: Option<&[u8]>, out: &mut Vec<u8>) {
        if !self.three && self.subscriptions > 0 {
            put_front(out, b'*', 2);
            put_bulk(out, b"pong");
            put_bulk(out, text.unwrap_or_default());
        } else {
            match text {
                None => put_line(out, b'+', b"PONG"),
                Some(text) => put_bulk(out, text),
            }
        }
    }

    fn subscribe(&mut self, channels: Values<'_>, out: &mut Vec<u8>, hub: &mut Hub<'_>) {
        for channel in channels {
            let Some(channel) = channel.text() else { continue };
            hub(Ask::Subscribe(Filter::Exact(channel), CHANNEL));
            self.subscribed(b"subscribe", channel, out);
        }
    }

    fn subscribe_patterns(&mut self, patterns: Values<'_>, out: &mut Vec<u8>, hub: &mut Hub<'_>) {
        for pattern in patterns {
            let Some(pattern) = pattern.text() else { continue };
            let known = pattern.strip_suffix(b"*").filter(|prefix| !prefix.iter().any(|byte| b"*?[\\".contains(byte)));
            let Some(prefix) = known else {
                put_line(out, b'-', b"ERR a pattern is a text with * at its end");
                continue;
            };
            self.patterns.push(pattern.into());
            hub(Ask::Subscribe(Filter::Below(prefix), self.patterns.len() as u32));
            self.subscribed(b"psubscribe", pattern, out);
        }
    }

    fn subscribed(&mut self, word: &[u8], what: &[u8], out: &mut Vec<u8>) {
        self.subscriptions += 1;
        put_front(out, self.unasked(), 3);
        put_bulk(out, word);
        put_bulk(out, what);
        put_integer(out, self.subscriptions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_wire::resp::put_command;

    fn say(resp: &mut RespServer, words: &[&[u8]]) -> (String, Vec<String>) {
        let (mut bytes, mut out, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        put_command(&mut bytes, words);
        let hub = &mut |ask: Ask<'_>| {
            asked.push(match ask {
                Ask::Subscribe(Filter::Below(prefix), token) => format!("below {} {token}", prefix.escape_ascii()),
                Ask::Subscribe(Filter::Exact(topic), token) => format!("exact {} {token}", topic.escape_ascii()),
                Ask::Publish { to, payload, .. } => format!("{} {}", to.topic.escape_ascii(), payload.escape_ascii()),
                other => format!("{other:?}"),
            });
            Handled { answer: PublisherAnswer::Acknowledged, listeners: 4 }
        };
        assert_eq!(resp.input(&bytes, &mut out, hub).unwrap(), bytes.len());
        (String::from_utf8(out).unwrap(), asked)
    }

    #[test]
    fn both_versions_are_spoken() {
        for (version, front) in [(b"2", '*'), (b"3", '>')] {
            let mut resp = RespServer::new(false);
            assert!(say(&mut resp, &[b"HELLO", version, b"SETNAME", b"x"]).0.contains("pubmark-peer"));
            assert_eq!(say(&mut resp, &[b"PING"]).0, "+PONG\r\n");
            let (answer, asked) = say(&mut resp, &[b"SUBSCRIBE", b"a"]);
            assert_eq!(answer, format!("{front}3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"));
            assert_eq!(asked, ["exact a 0"]);
            assert_eq!(say(&mut resp, &[b"PSUBSCRIBE", b"a.*"]).1, ["below a. 1"]);
            let mut out = Vec::new();
            resp.deliver(1, Address::of(b"a.b"), b"hi", 0, &mut out);
            let wanted = format!("{front}4\r\n$8\r\npmessage\r\n$3\r\na.*\r\n$3\r\na.b\r\n$2\r\nhi\r\n");
            assert_eq!(String::from_utf8(out).unwrap(), wanted);
            assert_eq!(say(&mut resp, &[b"PUBLISH", b"a", b"hi"]), (":4\r\n".into(), vec!["a hi".into()]));
            assert_eq!(say(&mut resp, &[b"QUIT"]), ("+OK\r\n".into(), vec!["Close".into()]));
        }
    }

    #[test]
    fn a_stream_is_read_when_there_is_something() {
        let mut resp = RespServer::new(false);
        say(&mut resp, &[b"HELLO", b"3"]);
        let (answer, asked) = say(&mut resp, &[b"XGROUP", b"CREATE", b"s", b"g", b"0", b"MKSTREAM"]);
        assert_eq!((answer.as_str(), &*asked[0]), ("+OK\r\n", "exact s 4294967294"));
        let read = |resp: &mut RespServer, after: &[u8]| {
            say(resp, &[b"XREADGROUP", b"GROUP", b"g", b"c", b"COUNT", b"9", b"STREAMS", b"s", after]).0
        };
        assert_eq!(read(&mut resp, b"0"), "%1\r\n$1\r\ns\r\n*0\r\n");
        assert_eq!(read(&mut resp, b">"), "", "it waits");
        let mut out = Vec::new();
        resp.deliver(STREAM, Address::of(b"s"), b"hi", 1, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "%1\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nm\r\n$2\r\nhi\r\n"
        );
        assert_eq!(say(&mut resp, &[b"XACK", b"s", b"g", b"1-0"]).0, ":1\r\n");
        let (answer, asked) = say(&mut resp, &[b"XADD", b"s", b"*", b"m", b"hi"]);
        assert_eq!((answer.as_str(), &*asked[0]), ("$3\r\n1-0\r\n", "s hi"));
    }

    #[test]
    fn what_it_does_not_know_it_refuses() {
        let mut resp = RespServer::new(false);
        assert!(say(&mut resp, &[b"PSUBSCRIBE", b"a?*"]).0.starts_with("-ERR"));
        assert!(say(&mut resp, &[b"SELECT", b"1"]).0.starts_with("-ERR"));
        assert!(say(&mut resp, &[b"HELLO", b"4"]).0.starts_with("-NOPROTO"));
        let mut out = Vec::new();
        assert!(RespServer::new(true).greet(&mut out) && out.starts_with(b"-ERR max number"));
    }
}
