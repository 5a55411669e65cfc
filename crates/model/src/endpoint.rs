//! Where a server is: `mqtt://user:password@host:1883/path`.

use crate::login::{HIDDEN, is_plain_path, without_logins};
pub use crate::wire_protocol::Carrier;
use crate::wire_protocol::{Protocol, Scheme};
use std::fmt;

/// A server's address, as a URL names it.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// What is spoken there.
    pub protocol: Protocol,
    /// How bytes are carried.
    pub carrier: Carrier,
    /// User name, percent-decoded.
    pub user: Option<String>,
    /// Password, percent-decoded.
    pub password: Option<String>,
    /// Host name or address; an IPv6 address without its brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// What follows the port, with its slash; empty if nothing does.
    pub path: String,
}

/// Why a text is no endpoint. No login is repeated in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// It has no scheme.
    #[error("`{0}` is no endpoint: write SCHEME://HOST:PORT with one of {known}", known = schemes())]
    NoUrl(String),
    /// Its scheme is not known.
    #[error("`{0}://` is no scheme that is known here: write one of {known}", known = schemes())]
    Scheme(String),
    /// There is an `@` where none can be.
    #[error("an endpoint holds an `@` after its host: write %40, and `/` and `?` of a password as %2F and %3F")]
    AtSign,
    /// The address is not closed.
    #[error("an IPv6 address lacks its closing bracket")]
    Bracket,
    /// The port is none.
    #[error("`{0}` is no port: write a number from 1 to 65535")]
    Port(String),
    /// The host is none.
    #[error("`{0}` is no host: write a name or an address")]
    Host(String),
    /// A `%` in the login stands for nothing.
    #[error("the login of an endpoint holds a % that two hexadecimal digits do not follow")]
    Percent,
    /// The login is no text.
    #[error("the login of an endpoint is not UTF-8 when its % are decoded")]
    Utf8(#[from] std::str::Utf8Error),
}

fn schemes() -> String {
    Scheme::all().map(|(_, scheme)| format!("{}://", scheme.name)).collect::<Vec<_>>().join(", ")
}

impl Endpoint {
    /// Reads a URL. The error says what is wrong and what can be written.
    pub fn parse(text: &str) -> Result<Endpoint, EndpointError> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| EndpointError::NoUrl(without_logins(text)))?;
        let (protocol, &Scheme { carrier, port: default_port, .. }) = Scheme::all()
            .find(|(_, known)| known.name == scheme)
            .ok_or_else(|| EndpointError::Scheme(scheme.to_owned()))?;
        let (authority, path) = rest.find(['/', '?']).map_or((rest, ""), |slash| rest.split_at(slash));
        if path.contains('@') {
            return Err(EndpointError::AtSign);
        }
        let (login, address) = authority.rsplit_once('@').map_or((None, authority), |(login, at)| (Some(login), at));
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
            None => (None, None),
            Some((user, "")) => (Some(decode(user)?), None),
            Some((user, password)) => (Some(decode(user)?), Some(decode(password)?)),
        };
        let (host, port) = match address.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or(EndpointError::Bracket)?;
                (host, port.strip_prefix(':'))
            }
            None => address.split_once(':').map_or((address, None), |(host, port)| (host, Some(port))),
        };
        let port = match port {
            None => default_port,
            Some(text) => {
                text.parse().ok().filter(|port| *port > 0).ok_or_else(|| EndpointError::Port(text.to_owned()))?
            }
        };
        if host.is_empty() || !host.chars().all(|c| c.is_ascii_alphanumeric() || "-._:%".contains(c)) {
            return Err(EndpointError::Host(host.to_owned()));
        }
        Ok(Endpoint { protocol, carrier, user, password, host: host.into(), port, path: path.into() })
    }

    /// What follows the `?`, which may hold a token: never shown.
    pub fn query(&self) -> Option<String> {
        self.path.split_once('?').map(|(_, query)| query.to_owned())
    }

    /// Whether it holds what may not be shown.
    pub fn is_secret(&self) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        let plain = is_plain_path(path.trim_start_matches('/'));
        self.user.is_some() || self.password.is_some() || self.query().is_some() || !plain
    }

    fn scheme(&self) -> &'static str {
        let mine = self.protocol.schemes().iter().find(|scheme| scheme.carrier == self.carrier);
        mine.map_or("", |scheme| scheme.name)
    }

    /// `host:port`, with brackets where they are needed.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Without user, password, query, and any path that servers do not have in common:
/// what may be shown and recorded.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, query) = match self.path.split_once('?') {
            Some((path, _)) => (path, format!("?{HIDDEN}")),
            None => (self.path.as_str(), String::new()),
        };
        let path = if is_plain_path(path.trim_start_matches('/')) { path.to_owned() } else { format!("/{HIDDEN}") };
        write!(f, "{}://{}{path}{query}", self.scheme(), self.address())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn decode(text: &str) -> Result<String, EndpointError> {
    let bad = || EndpointError::Percent;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()).ok_or_else(bad)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| bad())?);
        rest = &after[2..];
    }
    // Of a text that is none the error holds the bytes, and these are a secret.
    String::from_utf8(bytes).map_err(|error| error.utf8_error().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let endpoint = Endpoint::parse("mqtts://us%40er:p%3Aw@broker.example:8884/x").unwrap();
        assert_eq!((endpoint.protocol, endpoint.carrier, endpoint.port), (Protocol::Mqtt, Carrier::Tls, 8884));
        assert_eq!((endpoint.user.as_deref(), endpoint.password.as_deref()), (Some("us@er"), Some("p:w")));
        assert_eq!(endpoint.to_string(), "mqtts://broker.example:8884/***", "neither a password nor a path is shown");
        assert_eq!(Endpoint::parse("nats://localhost").unwrap().port, 4222);
        assert_eq!(Endpoint::parse("redis://[::1]:7000").unwrap().address(), "[::1]:7000");
        assert_eq!(Endpoint::parse("redis://:secret@h").unwrap().password.as_deref(), Some("secret"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, says) in [
            ("mosquitto", "is no endpoint"),
            ("http://x", "no scheme that is known"),
            ("mqtt://", "no host"),
            ("mqtt://h:0", "no port"),
            ("mqtt://h:99999", "no port"),
            ("mqtt://[::1", "closing bracket"),
            ("mqtt://%zz@h", "hexadecimal"),
            ("mqtt://a b", "no host"),
            ("mqtt://me:pass/word@h", "write %40"),
        ] {
            let error = Endpoint::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
