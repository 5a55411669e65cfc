//! Redis and Valkey: a session of RESP 2 or 3.
//!
//! The protocol has no groups of competing subscribers: a client's group is ignored, and
//! the system's file excludes such patterns.
//!
//! Requests and answers go over lists. The sender appends with RPUSH, and the receiver waits with BLPOP.
//! While a connection waits, the server handles nothing else of it, so a client has one request at
//! a time.
//!
//! At QoS 1 topics are streams (`redis/streams.rs`).
//!
//! A client of a server with several members connects to a Sentinel, which names the primary, and then goes there. The
//! answer to HELLO tells whom it has reached. A member of a Redis Cluster is asked for the client's stream: it names the
//! member that has it.

mod replies;
mod streams;

use super::foreign_peer::foreign;
use super::option_file::Logins;
use super::request_part::RequestPart;
use super::topic_writer::TopicWriter;
use crate::session::{
    ClientSettings, ClientSpec, Copies, MessageRefusal, RefusalKind, Session, SessionError, SessionEvent, SettingsError,
};
use crate::topics::{self, PrefixRules};
use pubmark_model::header::Header;
use pubmark_model::leftovers::Leftover;
use pubmark_model::options::OptionValues;
use pubmark_model::units::MILLISECOND;
use pubmark_wire::resp::{Item, Values, put_command};
use replies::Replies;
use streams::{RedisStream, RedisStreamSettings};

/// Forbidden are the special characters of patterns.
const PREFIX: PrefixRules = PrefixRules { what: "a channel", forbidden: "*?[]\\", first: "", most_bytes: 65_000 };

/// Name of the primary at the Sentinels of a system's file.
const PRIMARY: &[u8] = b"pubmark";

/// The settings of all clients.
pub struct RedisSettings {
    /// True for RESP 3, false for RESP 2.
    three: bool,
    /// User and password, if there is a password.
    login: Option<(String, String)>,
    /// Users and passwords of single clients.
    logins: Option<Logins>,
    /// The database to select; 0 is selected by default.
    database: u64,
    /// How long a requester waits for an answer, s.
    answer_s: String,
    /// At QoS 1.
    streams: Option<RedisStreamSettings>,
}

enum State {
    /// RESP 3: HELLO is sent, which also identifies the client.
    Greeting,
    /// RESP 2: AUTH is sent if there is a password, SELECT if there is a database, then
    /// INFO and PING.
    Asking,
    /// RESP 3: HELLO is answered, SELECT is not.
    Selecting,
    /// A Sentinel is asked for the primary.
    Locating,
    /// A member of a Redis Cluster is asked for the client's stream.
    Placing,
    Connected,
}

/// One client.
pub struct Redis {
    state: State,
    replies: Replies,
    topics: TopicWriter,
    part: RequestPart,
    stream: Option<Box<RedisStream>>,
    /// Channels whose subscription the server has not confirmed.
    unsubscribed: u32,
    /// True if lists of an earlier run are removed.
    removes: bool,
    /// True if the server has several members.
    in_cluster: bool,
}

impl Session for Redis {
    type Settings = RedisSettings;

    /// The separator that the servers' own documentation of patterns uses. For the
    /// servers it is an ordinary character.
    const SEPARATOR: char = '.';
    const REST: &'static str = "*";
    const HINT: &'static str = "it may not speak RESP, or it may expect TLS (rediss://)";

    const REMOVAL_QOS: u8 = 0;

    fn settings(terms: &ClientSettings<'_>) -> Result<RedisSettings, SettingsError> {
        if terms.durable && terms.qos == 0 {
            return Err("channels keep nothing for those that are away: leave `durable` out, or write qos = 1".into());
        }
        let (endpoint, options) = (terms.endpoint, terms.options);
        if terms.qos == 0 && options.number("wait_replicas") > 0 {
            return Err(
                "channels have no replicas that could be waited for: leave wait_replicas out, or write qos = 1".into(),
            );
        }
        let three = match options.number("resp") {
            2 => false,
            3 => true,
            other => return Err(format!("resp = {other}: write 2 or 3").into()),
        };
        let user = endpoint.user.as_deref().filter(|user| !user.is_empty()).or(options.text("username"));
        let login = match (user, endpoint.password.as_deref().or(options.text("password"))) {
            (None, None | Some("")) => None,
            (user, Some(password)) => Some((user.unwrap_or("default").into(), password.into())),
            (Some(user), None) => {
                return Err(format!(
                    "user `{user}` has no password: set `password`, or write redis://USER:PASSWORD@HOST, or \
                     redis://:PASSWORD@HOST where there is only a password"
                )
                .into());
            }
        };
        topics::check_prefix(options.text("prefix").unwrap_or_default(), &PREFIX)?;
        let answer_s = format!("{}", terms.answer_ns.unwrap_or_default().max(MILLISECOND) as f64 / 1e9);
        let streams = if terms.qos > 0 { Some(RedisStreamSettings::read(terms, three)?) } else { None };
        Ok(RedisSettings {
            three,
            login,
            logins: Logins::of(terms)?,
            database: options.number("database"),
            answer_s,
            streams,
        })
    }

    fn new(settings: &RedisSettings, spec: &ClientSpec) -> Self {
        let state = if settings.three { State::Greeting } else { State::Asking };
        Redis {
            state,
            replies: Replies::default(),
            topics: TopicWriter::new(spec, Self::SEPARATOR),
            part: RequestPart::of(spec),
            stream: settings.streams.as_ref().map(|_| Box::new(RedisStream::new(spec))),
            unsubscribed: 0,
            removes: false,
            in_cluster: false,
        }
    }

    fn at(&mut self, _address: &str) {
        self.in_cluster = true;
    }

    fn open(&mut self, settings: &RedisSettings, spec: &ClientSpec, out: &mut Vec<u8>) {
        let own = settings.logins.as_ref().and_then(|logins| logins.row(spec.row));
        let login = own.or(settings.login.as_ref().map(|(user, password)| (user.as_str(), password.as_str())));
        let login = login.map(|(user, password)| (user.as_bytes(), password.as_bytes()));
        if settings.three {
            let name = spec.name.as_bytes();
            match login {
                Some((user, password)) => {
                    put_command(out, &[b"HELLO", b"3", b"AUTH", user, password, b"SETNAME", name]);
                }
                None => put_command(out, &[b"HELLO", b"3", b"SETNAME", name]),
            }
            // A Sentinel has no databases.
            if !self.in_cluster {
                settings.select(out);
            }
            return;
        }
        match login {
            // Servers before Redis 6 have no users.
            Some((b"default", password)) => put_command(out, &[b"AUTH", password]),
            Some((user, password)) => put_command(out, &[b"AUTH", user, password]),
            None => {}
        }
        settings.select(out);
        put_command(out, &[b"INFO", b"server"]);
        put_command(out, &[b"PING"]);
    }

    fn resume(&mut self, settings: &RedisSettings, spec: &ClientSpec) {
        let earlier = std::mem::replace(self, Self::new(settings, spec));
        self.stream = earlier.stream.map(|stream| Box::new(stream.resumed(spec)));
    }

    fn resend(&mut self, settings: &RedisSettings, copies: &mut dyn Copies, out: &mut Vec<u8>) -> bool {
        let next = self.stream.as_mut().and_then(|stream| stream.next_again());
        next.is_some_and(|sequence| self.publish(settings, copies.message(sequence), sequence, out))
    }

    fn input(
        &mut self,
        settings: &RedisSettings,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<usize, SessionError> {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            let item = Item::decode(rest).map_err(|why| foreign("the Redis protocol", rest, &why.0))?;
            let Some((item, item_bytes)) = item else { return Ok(taken) };
            taken += item_bytes;
            if let (Some(stream), Some(settings), State::Connected) = (&mut self.stream, &settings.streams, &self.state)
            {
                stream.heard(settings, (item, self.in_cluster), out, heard)?;
                continue;
            }
            match item {
                Item::Push(values) => self.told(values, heard),
                item if matches!(self.state, State::Locating) => return Err(located(item)),
                Item::Array(values) if self.is_connected() && !self.part.is_one_way() => {
                    self.popped(settings, values, out, heard);
                }
                Item::Error(text) => self.failed(text, heard)?,
                Item::Array(values) | Item::Map(values) => match self.state {
                    State::Greeting => self.greeted(settings, values, out, heard)?,
                    _ => self.told(values, heard),
                },
                Item::Simple(_) if matches!(self.state, State::Selecting) => self.connected(heard),
                _ if matches!(self.state, State::Greeting) => {
                    return Err(foreign("the Redis protocol", rest, "that does not answer HELLO"));
                }
                Item::Integer(_) if matches!(self.state, State::Placing) => self.connected(heard),
                Item::Integer(_) if self.removes => heard(SessionEvent::Acknowledged(0)),
                // The answer to PUBLISH: the number of receivers. To RPUSH: the length of the list.
                Item::Integer(_) => self.replies.count(),
                Item::Bulk(text) if matches!(self.state, State::Asking) => {
                    if let Some(server) = server_of_info(text) {
                        heard(SessionEvent::Server(&server));
                    }
                }
                Item::Simple(b"PONG") if matches!(self.state, State::Asking) => {
                    self.connected(heard);
                }
                Item::Simple(b"PONG") if !self.part.is_one_way() => heard(SessionEvent::Subscribed),
                _ => {}
            }
        }
    }

    fn packet_payload_bytes(settings: &RedisSettings, payload_bytes: u64) -> u64 {
        settings.streams.as_ref().map_or(payload_bytes, |streams| streams.answer_bytes)
    }

    fn announced(&self, rest: &[u8]) -> u64 {
        Item::announced(rest)
    }

    fn subscribe(&mut self, _: &RedisSettings, spec: &ClientSpec, out: &mut Vec<u8>) {
        if let Some(stream) = &mut self.stream {
            return stream.subscribe(out);
        }
        if spec.reply.is_some() {
            put_command(out, &[b"PING"]);
            if self.part.to().is_some() {
                put_command(out, &[b"BLPOP", spec.topic.as_bytes(), b"0"]);
            }
            return;
        }
        let word: &[u8] = if spec.wild { b"PSUBSCRIBE" } else { b"SUBSCRIBE" };
        let channels: Vec<_> = spec.hears(Self::SEPARATOR).collect();
        let words: Vec<&[u8]> = [word].into_iter().chain(channels.iter().map(|channel| channel.as_bytes())).collect();
        put_command(out, &words);
        self.unsubscribed = spec.hears_count();
    }

    fn publish(&mut self, settings: &RedisSettings, message: &[u8], sequence: u32, out: &mut Vec<u8>) -> bool {
        if let (Some(stream), Some(settings)) = (&mut self.stream, &settings.streams) {
            return stream.publish(settings, (self.topics.of(sequence).as_bytes(), sequence), message, out);
        }
        self.replies.expect(sequence);
        let topic = self.topics.of(sequence).as_bytes();
        if let Some(to) = self.part.to() {
            put_command(out, &[b"RPUSH", to.as_bytes(), message]);
            put_command(out, &[b"BLPOP", topic, b"0"]);
        } else if let Some(reply) = self.part.reply() {
            put_command(out, &[b"RPUSH", topic, message]);
            put_command(out, &[b"BLPOP", reply.as_bytes(), settings.answer_s.as_bytes()]);
            self.part.waits_for(sequence);
        } else {
            put_command(out, &[b"PUBLISH", topic, message]);
        }
        true
    }

    /// The end of the line.
    fn tail_bytes(&self, _: &RedisSettings) -> Option<usize> {
        (self.topics.is_one() && self.stream.is_none()).then_some(2)
    }

    fn keep_alive(&mut self, _: &RedisSettings, out: &mut Vec<u8>) {
        put_command(out, &[b"PING"]);
    }

    /// The servers' `timeout` does not end subscribers, and is off by default.
    fn keep_alive_s(_: &RedisSettings) -> u32 {
        0
    }

    /// Asks the server to close after it has processed all earlier commands. If the
    /// client closed first, with unread answers, the server might discard its last
    /// messages.
    fn close(&mut self, _: &RedisSettings, _: &ClientSpec, out: &mut Vec<u8>) {
        // The server would not read it from a client that waits for a list or a stream.
        if self.part.is_one_way() && self.stream.is_none() {
            put_command(out, &[b"QUIT"]);
        }
    }

    fn leaves(settings: &RedisSettings, spec: &ClientSpec) -> Vec<Leftover> {
        if settings.streams.is_some() {
            return streams::leaves(spec);
        }
        spec.reply.clone().into_iter().flat_map(|reply| [spec.topic.clone(), reply]).map(Leftover::Queue).collect()
    }

    fn remove(&mut self, _: &RedisSettings, thing: &Leftover, _: u32, out: &mut Vec<u8>) -> bool {
        let (Leftover::Queue(key) | Leftover::Stream(key)) = thing else { return false };
        self.removes = true;
        put_command(out, &[b"DEL", key.as_bytes()]);
        true
    }

    fn unacknowledged(&self) -> usize {
        self.stream.as_ref().map_or(0, |stream| stream.unacknowledged())
    }
}

impl RedisSettings {
    /// Selects the database, if it is not the first.
    fn select(&self, out: &mut Vec<u8>) {
        if self.database > 0 {
            put_command(out, &[b"SELECT", self.database.to_string().as_bytes()]);
        }
    }
}

impl Redis {
    fn is_connected(&self) -> bool {
        matches!(self.state, State::Connected)
    }

    /// Handles what BLPOP took off a list: a request, or the answer to one. After the answer to an
    /// earlier request, which came too late, it waits for the right one.
    fn popped(
        &mut self,
        settings: &RedisSettings,
        mut values: Values<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) {
        let (Some(Item::Bulk(list)), Some(Item::Bulk(message))) = (values.next(), values.next()) else { return };
        if self.part.still_waits(Header::read(message).map(|header| header.sequence))
            && let Some(reply) = self.part.reply()
        {
            put_command(out, &[b"BLPOP", reply.as_bytes(), settings.answer_s.as_bytes()]);
        }
        heard(SessionEvent::Message { topic: list, payload: message, is_retained: false });
    }

    /// Handles the answer to HELLO: alternating names and values, as a map or as an
    /// array.
    fn greeted(
        &mut self,
        settings: &RedisSettings,
        values: Values<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        let find = |name: &[u8]| {
            let mut values = values;
            while let (Some(key), Some(value)) = (values.next(), values.next()) {
                if key.text() == Some(name) {
                    return value.text().map(String::from_utf8_lossy);
                }
            }
            None
        };
        let mode = find(b"mode").filter(|_| self.in_cluster).unwrap_or_default();
        if mode == "sentinel" {
            put_command(out, &[b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", PRIMARY]);
            self.state = State::Locating;
            return Ok(());
        }
        if let Some(role) = find(b"role").filter(|role| self.in_cluster && mode != "cluster" && role != "master") {
            return Err(SessionError::Busy(format!("the Sentinels name a member that is a {role}")));
        }
        if let (Some(server), Some(version)) = (find(b"server"), find(b"version")) {
            heard(SessionEvent::Server(&format!("{server} {version}")));
        }
        match (settings.database, &self.stream) {
            (_, Some(stream)) if mode == "cluster" => {
                stream.locate(out);
                self.state = State::Placing;
            }
            (0, _) => self.connected(heard),
            _ => {
                if self.in_cluster {
                    settings.select(out);
                }
                self.state = State::Selecting;
            }
        }
        Ok(())
    }

    fn connected(&mut self, heard: &mut dyn FnMut(SessionEvent<'_>)) {
        self.state = State::Connected;
        heard(SessionEvent::Connected);
    }

    /// Handles push messages and answers to subscriptions: a word and its arguments.
    fn told(&mut self, mut values: Values<'_>, heard: &mut dyn FnMut(SessionEvent<'_>)) {
        match values.next().and_then(|word| word.text()) {
            Some(b"message") => {
                if let (Some(Item::Bulk(topic)), Some(Item::Bulk(payload))) = (values.next(), values.next()) {
                    heard(SessionEvent::Message { topic, payload, is_retained: false });
                }
            }
            Some(b"pmessage") => {
                if let (Some(Item::Bulk(topic)), Some(Item::Bulk(payload))) = (values.nth(1), values.next()) {
                    heard(SessionEvent::Message { topic, payload, is_retained: false });
                }
            }
            Some(b"subscribe" | b"psubscribe") => {
                self.unsubscribed = self.unsubscribed.saturating_sub(1);
                if self.unsubscribed == 0 {
                    heard(SessionEvent::Subscribed);
                }
            }
            _ => {}
        }
    }

    /// Handles an error. For a connected client, it answers a PUBLISH or a subscription.
    fn failed(&mut self, text: &[u8], heard: &mut dyn FnMut(SessionEvent<'_>)) -> Result<(), SessionError> {
        let text = String::from_utf8_lossy(text);
        let code = text.split(' ').next().unwrap_or_default();
        if matches!(self.state, State::Connected)
            && let Some(sequence) = self.replies.next()
        {
            let is_limit = matches!(code, "OOM" | "MISCONF" | "BUSY") || text.contains("limit");
            heard(SessionEvent::Refused(
                sequence,
                MessageRefusal { code: None, words: &text, kind: RefusalKind::limit_or_final(is_limit) },
            ));
            return Ok(());
        }
        let said = format!("the server says '{text}'");
        match code {
            "MOVED" => Err(text
                .rsplit(' ')
                .next()
                .and_then(|to| to.rsplit_once(':'))
                .map_or_else(|| SessionError::Busy(said), |(host, port)| elsewhere(host, port))),
            // A client without permission to ask for the version may still publish and
            // subscribe.
            "NOPERM" if matches!(self.state, State::Asking) && text.contains("'info") => Ok(()),
            "NOPROTO" => Err(SessionError::Denied(format!("{said}: set resp = 2"))),
            "ERR" if matches!(self.state, State::Greeting) && text.contains("unknown command") => {
                Err(SessionError::Denied(format!("{said}: a server before Redis 6 needs resp = 2")))
            }
            "NOAUTH" | "WRONGPASS" => Err(SessionError::Denied(format!("{said}: check user and password"))),
            "LOADING" | "BUSY" | "MASTERDOWN" | "TRYAGAIN" | "CLUSTERDOWN" => Err(SessionError::Busy(said)),
            "OOM" | "MISCONF" => Err(SessionError::Limit(said)),
            _ if text.contains("max number of clients") => Err(SessionError::Limit(said)),
            _ => Err(SessionError::Denied(said)),
        }
    }
}

/// Returns what follows from a Sentinel's answer: the primary's address.
fn located(item: Item<'_>) -> SessionError {
    let mut parts = item.values().into_iter().flatten().filter_map(|part| part.text()).map(String::from_utf8_lossy);
    if let (Some(host), Some(port)) = (parts.next(), parts.next()) {
        return elsewhere(&host, &port);
    }
    let said = if let Item::Error(text) = item { String::from_utf8_lossy(text) } else { "nothing".into() };
    SessionError::Busy(format!("a Sentinel names no primary: '{said}'"))
}

/// Makes the error that names another member.
fn elsewhere(host: &str, port: &str) -> SessionError {
    SessionError::Elsewhere(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

/// Finds name and version among the lines of INFO. Valkey also gives Redis's version.
fn server_of_info(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let find = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let valkey = find("valkey_version").map(|version| format!("valkey {version}"));
    valkey.or_else(|| find("redis_version").map(|version| format!("redis {version}")))
}

#[cfg(test)]
mod tests;
