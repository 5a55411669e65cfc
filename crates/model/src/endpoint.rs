//! Address of a server: `mqtt://user:password@host:1883`.
//!
//! The syntax is RFC 3986. Each scheme defines its path and query (the table in
//! `wire_protocol.rs`): each part sets an option of the driver, or is refused by name.

use crate::login::{HIDDEN, is_plain_path, without_logins};
use crate::options::Options;
pub use crate::wire_protocol::Carrier;
use crate::wire_protocol::{ParameterMeaning, Protocol, Scheme};
use serde_json::Value;
use std::fmt;
use std::net::Ipv6Addr;

/// A server's address as a URL.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Protocol.
    pub protocol: Protocol,
    /// Transport of the bytes.
    pub carrier: Carrier,
    /// User name, percent-decoded; empty if only a password is given.
    pub user: Option<String>,
    /// Password, percent-decoded; empty if nothing follows the colon.
    pub password: Option<String>,
    /// Host name or address; an IPv6 address without its brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The path with its slash, as written; empty if there is none.
    pub path: String,
    /// Options of the driver that path and query set, by name.
    pub options: Vec<(&'static str, Value)>,
    query: Option<String>,
}

/// Reasons why a text is not an endpoint. No error contains a login.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The text has no scheme.
    #[error("`{0}` is not an endpoint: write SCHEME://HOST:PORT with one of {known}", known = schemes())]
    NoUrl(String),
    /// The scheme is unknown.
    #[error("`{0}://` is not a scheme that is known here: write one of {known}", known = schemes())]
    Scheme(String),
    /// An `@` is at a wrong place.
    #[error(
        "an endpoint holds an `@` after its host: write %40, and `/`, `?` and `#` of a password as %2F, %3F and %23"
    )]
    AtSign,
    /// The text has a fragment.
    #[error("an endpoint holds a `#`, and servers know no fragments: leave it out, or write %23")]
    Fragment,
    /// The text names several servers.
    #[error("an endpoint names one server, and this one holds a comma: measure one server at a time")]
    Several,
    /// The address's bracket is not closed.
    #[error("an IPv6 address lacks its closing bracket")]
    Bracket,
    /// The address lacks brackets.
    #[error("`{0}` holds several colons: write an IPv6 address in brackets, as in [::1]:1883")]
    NoBrackets(String),
    /// The port is invalid.
    #[error("`{0}` is not a port: write a number from 1 to 65535")]
    Port(String),
    /// The host is invalid.
    #[error("`{0}` is not a host: write a name or an address")]
    Host(String),
    /// A character must be encoded.
    #[error("an endpoint holds {0:?} after its host: write it as % and two hexadecimal digits for each byte")]
    Character(char),
    /// A `%` is not followed by two digits.
    #[error("an endpoint holds a % that two hexadecimal digits do not follow: write %25")]
    Percent,
    /// A part contains a zero byte.
    #[error("an endpoint holds %00: no name and no password can")]
    Zero,
    /// A part is not valid UTF-8.
    #[error("an endpoint is not UTF-8 when its % are decoded")]
    Utf8(#[from] std::str::Utf8Error),
    /// The scheme takes no path.
    #[error("{scheme}:// takes no path: leave out what follows the port{hint}")]
    Path {
        /// The scheme.
        scheme: &'static str,
        /// Advice.
        hint: &'static str,
    },
    /// The path does not have the form that the scheme requires.
    #[error("the path of {scheme}:// is {wanted}")]
    BadPath {
        /// The scheme.
        scheme: &'static str,
        /// The required form.
        wanted: &'static str,
    },
    /// The query has an unknown parameter.
    #[error("{scheme}:// takes no parameter `{name}`: {known}")]
    Parameter {
        /// The scheme.
        scheme: &'static str,
        /// The parameter's name.
        name: String,
        /// The known parameters, or advice.
        known: String,
    },
    /// A parameter's value is invalid. It may be secret, so it is not shown.
    #[error("the parameter `{name}` of an endpoint is {wanted}")]
    Value {
        /// The parameter's name.
        name: String,
        /// The required form.
        wanted: String,
    },
    /// Two parts set the same thing.
    #[error("an endpoint sets `{0}` twice: write it once")]
    Twice(String),
}

fn schemes() -> String {
    Scheme::all().map(|(_, scheme)| format!("{}://", scheme.name)).collect::<Vec<_>>().join(", ")
}

impl Endpoint {
    /// Parses a URL. The error says what is wrong and what can be written.
    pub fn parse(text: &str) -> Result<Endpoint, EndpointError> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| EndpointError::NoUrl(without_logins(text)))?;
        let (protocol, known) = Scheme::all()
            .find(|(_, known)| known.name.eq_ignore_ascii_case(scheme))
            .ok_or_else(|| EndpointError::Scheme(scheme.to_owned()))?;
        let (authority, tail) = rest.find(['/', '?', '#']).map_or((rest, ""), |end| rest.split_at(end));
        if tail.contains('@') {
            return Err(EndpointError::AtSign);
        }
        if tail.contains('#') {
            return Err(EndpointError::Fragment);
        }
        let (login, address) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (Some(decode(user)?), Some(decode(password)?)),
            None if login.is_empty() => (None, None),
            None => (Some(decode(login)?), None),
        };
        let (host, port) = host_and_port(address)?;
        let (path, query) = tail.split_once('?').map_or((tail, None), |(path, query)| (path, Some(query.to_owned())));
        check_characters(tail)?;
        let port = port.unwrap_or(known.port);
        let (path, options) = (path.to_owned(), Vec::new());
        let carrier = known.carrier;
        let mut endpoint = Endpoint { protocol, carrier, user, password, host, port, path, options, query };
        endpoint.read_path(known)?;
        endpoint.read_query(known)?;
        Ok(endpoint)
    }

    /// Sets the options of the path. A WebSocket's path is left as it is, as part of the resource.
    fn read_path(&mut self, scheme: &Scheme) -> Result<(), EndpointError> {
        let Some(name) = self.path.strip_prefix('/').filter(|_| !self.carrier.is_websocket()) else { return Ok(()) };
        let scheme = scheme.name;
        let name = decode(name)?;
        match self.protocol.path() {
            None if name.is_empty() => {}
            None => {
                let hint = match self.protocol {
                    Protocol::Mqtt => "; topics begin with what options.prefix says",
                    _ => "",
                };
                return Err(EndpointError::Path { scheme, hint });
            }
            Some(path) if path.accepts(&self.path[1..]) => {
                if let Some(value) = path.value(&name) {
                    self.options.push((path.option, value));
                }
            }
            Some(path) => return Err(EndpointError::BadPath { scheme, wanted: path.wanted }),
        }
        Ok(())
    }

    /// Sets the options of the query. A WebSocket's query is left as it is, as part of the
    /// resource.
    fn read_query(&mut self, scheme: &Scheme) -> Result<(), EndpointError> {
        let Some(query) = self.query.clone().filter(|_| !self.carrier.is_websocket()) else { return Ok(()) };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            let known = self.protocol.parameters();
            let Some((_, meaning)) = known.iter().find(|(known, _)| *known == name) else {
                let names = known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
                let known = match names.as_str() {
                    "" => "it takes none; options are set with --set options.NAME=VALUE".to_owned(),
                    names => format!("it takes {names}; other options are set with --set options.NAME=VALUE"),
                };
                return Err(EndpointError::Parameter { scheme: scheme.name, name, known });
            };
            self.set(name, &value, meaning)?;
        }
        Ok(())
    }

    fn set(&mut self, name: String, value: &str, meaning: &ParameterMeaning) -> Result<(), EndpointError> {
        match *meaning {
            ParameterMeaning::Is(only) if value == only => {}
            ParameterMeaning::Is(only) => return Err(EndpointError::Value { name, wanted: format!("`{only}` here") }),
            ParameterMeaning::Password if self.password.is_some() => return Err(EndpointError::Twice(name)),
            ParameterMeaning::Password => {
                self.user.get_or_insert_default();
                self.password = Some(value.to_owned());
            }
            ParameterMeaning::Option(option, unit) => {
                let spec = self.protocol.options().into_iter().find(|spec| spec.name == option);
                let kind = spec.map_or(crate::options::OptionKind::Text, |spec| spec.kind);
                let read = kind.read(&format!("{value}{unit}")).ok().filter(|_| !value.is_empty());
                let wanted = if unit.is_empty() { kind.word().to_owned() } else { format!("a number of {unit}") };
                let value = read.ok_or(EndpointError::Value { name: name.clone(), wanted })?;
                if self.options.iter().any(|(set, _)| *set == option) {
                    return Err(EndpointError::Twice(name));
                }
                self.options.push((option, value));
            }
        }
        Ok(())
    }

    /// Returns the driver's options, overridden by those of path and query.
    #[must_use]
    pub fn applied_to(&self, options: &Options) -> Options {
        let mut options = options.clone();
        options.extend(self.options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        options
    }

    /// Returns the text after the `?`, which may hold a token: never show it.
    pub fn query(&self) -> Option<String> {
        self.query.clone()
    }

    /// Returns the resource that a WebSocket requests: path and query. Without a path, this is the
    /// one that MQTT servers agree on (the standard leaves it open).
    pub fn resource(&self) -> String {
        let path = if self.path.is_empty() { "/mqtt" } else { &self.path };
        self.query.as_ref().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"))
    }

    /// Returns the URL of the same server at another address.
    pub fn at(url: &str, address: &str) -> String {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (authority, tail) = rest.find(['/', '?', '#']).map_or((rest, ""), |end| rest.split_at(end));
        let login = authority.rsplit_once('@').map_or(String::new(), |(login, _)| format!("{login}@"));
        format!("{scheme}://{login}{address}{tail}")
    }

    /// True if it contains something that must not be shown.
    pub fn is_secret(&self) -> bool {
        self.user.is_some() || self.password.is_some() || self.query.is_some() || !self.is_path_plain()
    }

    /// True if its path may be shown. A path that sets an option, such as a virtual host, may be
    /// shown; a WebSocket's path may be a token.
    fn is_path_plain(&self) -> bool {
        !self.carrier.is_websocket() || is_plain_path(self.path.trim_start_matches('/'))
    }

    fn scheme(&self) -> &'static str {
        let mine = self.protocol.schemes().iter().find(|scheme| scheme.carrier == self.carrier);
        mine.map_or("", |scheme| scheme.name)
    }

    /// Returns `host:port`, with brackets if needed.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Formats the endpoint for display and records: without user, password, query, and any WebSocket
/// path that is not a common one.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let query = if self.query.is_some() { format!("?{HIDDEN}") } else { String::new() };
        let path = if self.is_path_plain() { self.path.clone() } else { format!("/{HIDDEN}") };
        write!(f, "{}://{}{path}{query}", self.scheme(), self.address().replace('%', "%25"))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Splits `host`, `host:port`, `[address]` or `[address]:port`. An empty port counts as no port
/// (RFC 3986).
fn host_and_port(address: &str) -> Result<(String, Option<u16>), EndpointError> {
    if address.contains(',') {
        return Err(EndpointError::Several);
    }
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or(EndpointError::Bracket)?;
            let host = decode(host)?;
            // A zone, the name of an interface, may follow a link-local address only.
            let (plain, zone) = host.split_once('%').unwrap_or((&host, "1"));
            if plain.parse::<Ipv6Addr>().is_err() || zone.is_empty() || !zone.chars().all(is_name) {
                return Err(EndpointError::Host(host));
            }
            let port = match rest.strip_prefix(':') {
                None if rest.is_empty() => "",
                Some(port) => port,
                None => return Err(EndpointError::Port(rest.to_owned())),
            };
            (host, port)
        }
        None if address.matches(':').count() > 1 => return Err(EndpointError::NoBrackets(address.to_owned())),
        None => {
            let (host, port) = address.split_once(':').unwrap_or((address, ""));
            let host = decode(host)?;
            if host.is_empty() || !host.chars().all(is_name) {
                return Err(EndpointError::Host(host));
            }
            (host, port)
        }
    };
    if port.is_empty() {
        return Ok((host, None));
    }
    // `parse` would accept a sign.
    let number = port.parse().ok().filter(|number| *number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()));
    Ok((host, Some(number.ok_or_else(|| EndpointError::Port(port.to_owned()))?)))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._".contains(c)
}

/// Checks that path and query hold only characters that a URL allows: they go into a request
/// unchanged.
fn check_characters(tail: &str) -> Result<(), EndpointError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "/?%-._~!$&'()*+,;=:@".contains(c);
    if let Some(other) = tail.chars().find(|c| !fits(*c)) {
        return Err(EndpointError::Character(other));
    }
    let digits = |at: usize| tail.as_bytes().get(at..at + 2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    tail.match_indices('%').all(|(at, _)| digits(at + 1)).then_some(()).ok_or(EndpointError::Percent)
}

fn decode(text: &str) -> Result<String, EndpointError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok()).ok_or(EndpointError::Percent)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| EndpointError::Percent)?);
        rest = &after[2..];
    }
    if bytes.contains(&0) {
        return Err(EndpointError::Zero);
    }
    // The error of an invalid text would hold its bytes, which are a secret.
    String::from_utf8(bytes).map_err(|error| error.utf8_error().into())
}

#[cfg(test)]
mod tests;
