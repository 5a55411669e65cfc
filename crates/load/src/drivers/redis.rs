//! Redis and Valkey: a session of RESP 2 or 3.
//!
//! Groups of competing subscribers are unknown to the protocol: a part's group
//! is not looked at, and the system's file leaves such patterns out.

use super::foreign::foreign;
use super::leaves::Leaves;
use crate::session::{Fault, Heard, Part, Session, Terms};
use pubmark_model::options::OptionValues;
use pubmark_wire::resp::{Item, Values, put_command};

/// The settings of all clients.
pub struct Settings {
    /// RESP 3, not 2.
    three: bool,
    /// User and password, where there is a password.
    login: Option<(String, String)>,
}

enum State {
    /// RESP 3: HELLO is sent, which says who the client is, too.
    Greeting,
    /// RESP 2: AUTH is sent, if there is a password, then INFO and PING.
    Asking,
    Connected,
}

/// One client.
pub struct Redis {
    state: State,
    leaves: Leaves,
}

impl Session for Redis {
    type Settings = Settings;

    /// The one that the servers' own documentation of patterns uses. To the
    /// servers it is a character as any other.
    const SEPARATOR: char = '.';
    const REST: &'static str = "*";
    const HINT: &'static str = "it may not speak RESP, or it may expect TLS (rediss://)";

    fn settings(terms: &Terms<'_>) -> Result<Settings, String> {
        if terms.qos > 0 {
            return Err(format!("PUBLISH acknowledges nothing: qos = {} is not to be had, write qos = 0", terms.qos));
        }
        if terms.durable {
            return Err("Redis channels keep nothing for those that are away: leave `durable` out".into());
        }
        let (endpoint, options) = (terms.endpoint, terms.options);
        let three = match options.number("resp") {
            2 => false,
            3 => true,
            other => return Err(format!("resp = {other}: write 2 or 3")),
        };
        let user = endpoint.user.as_deref().filter(|user| !user.is_empty()).or(options.text("username"));
        let login = match (user, endpoint.password.as_deref().or(options.text("password"))) {
            (user, Some(password)) => Some((user.unwrap_or("default").into(), password.into())),
            (None, None) => None,
            (Some(user), None) => return Err(format!("user `{user}` has no password: set `password`")),
        };
        Ok(Settings { three, login })
    }

    fn new(settings: &Settings, part: &Part) -> Self {
        let state = if settings.three { State::Greeting } else { State::Asking };
        Redis { state, leaves: Leaves::new(part, Self::SEPARATOR) }
    }

    fn open(&mut self, settings: &Settings, part: &Part, out: &mut Vec<u8>) {
        let login = settings.login.as_ref().map(|(user, password)| (user.as_bytes(), password.as_bytes()));
        if settings.three {
            let name = part.name.as_bytes();
            match login {
                Some((user, password)) => {
                    put_command(out, &[b"HELLO", b"3", b"AUTH", user, password, b"SETNAME", name]);
                }
                None => put_command(out, &[b"HELLO", b"3", b"SETNAME", name]),
            }
            return;
        }
        match login {
            // Servers before Redis 6 know no users.
            Some((b"default", password)) => put_command(out, &[b"AUTH", password]),
            Some((user, password)) => put_command(out, &[b"AUTH", user, password]),
            None => {}
        }
        put_command(out, &[b"INFO", b"server"]);
        put_command(out, &[b"PING"]);
    }

    fn input(
        &mut self,
        _: &Settings,
        bytes: &[u8],
        _: &mut Vec<u8>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            let item = Item::decode(rest).map_err(|why| foreign("Redis server", rest, &why.0))?;
            let Some((item, item_bytes)) = item else { return Ok(taken) };
            match item {
                Item::Push(values) => told(values, heard),
                Item::Error(text) => self.failed(text)?,
                Item::Array(values) | Item::Map(values) => match self.state {
                    State::Greeting => self.greeted(values, heard),
                    State::Asking | State::Connected => told(values, heard),
                },
                _ if matches!(self.state, State::Greeting) => {
                    return Err(foreign("Redis server", rest, "that does not answer HELLO"));
                }
                // PUBLISH's answer: how many have received it.
                Item::Integer(_) => {}
                Item::Bulk(text) if matches!(self.state, State::Asking) => {
                    if let Some(server) = server_of_info(text) {
                        heard(Heard::Server(&server));
                    }
                }
                Item::Simple(b"PONG") if matches!(self.state, State::Asking) => {
                    self.state = State::Connected;
                    heard(Heard::Connected);
                }
                _ => {}
            }
            taken += item_bytes;
        }
    }

    fn subscribe(&mut self, _: &Settings, part: &Part, out: &mut Vec<u8>) {
        let word: &[u8] = if part.wild { b"PSUBSCRIBE" } else { b"SUBSCRIBE" };
        put_command(out, &[word, part.topic.as_bytes()]);
    }

    fn publish(&mut self, _: &Settings, message: &[u8], sequence: u32, out: &mut Vec<u8>) -> bool {
        put_command(out, &[b"PUBLISH", self.leaves.of(sequence), message]);
        true
    }

    /// A line's end.
    fn tail_bytes(&self, _: &Settings) -> Option<usize> {
        self.leaves.is_one().then_some(2)
    }

    fn keep_alive(&mut self, _: &Settings, out: &mut Vec<u8>) {
        put_command(out, &[b"PING"]);
    }

    /// The servers' `timeout` does not end subscribers, and is off by default.
    fn keep_alive_s(_: &Settings) -> u32 {
        0
    }

    /// The server closes when it has done what was asked before. A client that
    /// closed first, with answers unread, might have its last messages thrown away.
    fn close(&mut self, _: &Settings, _: &Part, out: &mut Vec<u8>) {
        put_command(out, &[b"QUIT"]);
    }

    fn unacknowledged(&self) -> usize {
        0
    }
}

impl Redis {
    /// HELLO's answer: names and values in turn, be it as a map or as an array.
    fn greeted(&mut self, values: Values<'_>, heard: &mut dyn FnMut(Heard<'_>)) {
        let find = |name: &[u8]| {
            let mut values = values;
            while let (Some(key), Some(value)) = (values.next(), values.next()) {
                if key.text() == Some(name) {
                    return value.text().map(String::from_utf8_lossy);
                }
            }
            None
        };
        if let (Some(server), Some(version)) = (find(b"server"), find(b"version")) {
            heard(Heard::Server(&format!("{server} {version}")));
        }
        self.state = State::Connected;
        heard(Heard::Connected);
    }

    fn failed(&self, text: &[u8]) -> Result<(), Fault> {
        let text = String::from_utf8_lossy(text);
        let code = text.split(' ').next().unwrap_or_default();
        let said = format!("the server says '{text}'");
        match code {
            // Whoever may not ask for the version may still publish and subscribe.
            "NOPERM" if matches!(self.state, State::Asking) && text.contains("'info") => Ok(()),
            "NOPROTO" => Err(Fault::Denied(format!("{said}: set resp = 2"))),
            "ERR" if matches!(self.state, State::Greeting) && text.contains("unknown command") => {
                Err(Fault::Denied(format!("{said}: a server before Redis 6 needs resp = 2")))
            }
            "NOAUTH" | "WRONGPASS" => Err(Fault::Denied(format!("{said}: check user and password"))),
            "LOADING" | "BUSY" | "MASTERDOWN" | "TRYAGAIN" | "CLUSTERDOWN" => Err(Fault::Busy(said)),
            _ if text.contains("max number of clients") => Err(Fault::Busy(said)),
            _ => Err(Fault::Denied(said)),
        }
    }
}

/// What the server says unasked, and its answers to subscriptions: a word and what belongs to it.
fn told(mut values: Values<'_>, heard: &mut dyn FnMut(Heard<'_>)) {
    match values.next().and_then(|word| word.text()) {
        Some(b"message") => {
            if let Some(Item::Bulk(payload)) = values.nth(1) {
                heard(Heard::Message(payload));
            }
        }
        Some(b"pmessage") => {
            if let Some(Item::Bulk(payload)) = values.nth(2) {
                heard(Heard::Message(payload));
            }
        }
        Some(b"subscribe" | b"psubscribe") => heard(Heard::Subscribed),
        _ => {}
    }
}

/// Name and version among the lines of INFO. Valkey names Redis's version, too.
fn server_of_info(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let find = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let valkey = find("valkey_version").map(|version| format!("valkey {version}"));
    valkey.or_else(|| find("redis_version").map(|version| format!("redis {version}")))
}

#[cfg(test)]
mod tests;
