//! The start of a broker as its system file describes it, with placeholders (`{port}`, `{dir}`, …)
//! that are filled in for each run.

use crate::cluster::ClusterSpec;
use crate::login::HIDDEN;
use crate::options::Options;
use crate::units::{Ns, SECOND};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// A server as a system file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSpec {
    /// The endpoint of its clients: `mqtt://127.0.0.1:{port}`.
    pub endpoint: String,
    /// The endpoint of subscribers, if the server has a separate one for them; otherwise empty. In
    /// a container there is one endpoint for all.
    pub subscriber_endpoint: String,
    /// The server's program and arguments. Empty if it cannot be started natively.
    pub command: Vec<String>,
    /// Programs that run to their end before it, in order (`artemis create …`).
    pub prepare: Vec<Vec<String>>,
    /// Environment variables of all of them, in addition to those of pubmark itself.
    pub environment: Vec<(String, String)>,
    /// Files that are written first: path below `{dir}`, and content.
    pub files: Vec<(String, String)>,
    /// A command that prints the version, for servers whose protocol does not report it.
    pub version: Vec<String>,
    /// Text before the version in that command's output.
    pub version_after: String,
    /// Text in the server's log when it is ready, for a server whose port opens before; empty if
    /// the open port is enough.
    pub ready_log: String,
    /// Text in the server's log when it has run out of memory, even if it continues; empty if it
    /// logs nothing of the kind.
    pub out_of_memory_log: String,
    /// Text in the server's log when it has reached a limit of its own, so that it accepts no more
    /// from clients; empty if it logs nothing of the kind.
    pub limit_log: String,
    /// Time limit for the server to listen, ns.
    pub start_timeout_ns: Ns,
    /// Its container, if it can run in one.
    pub container: Option<ContainerSpec>,
    /// Its cluster, if it can have several members.
    pub cluster: Option<ClusterSpec>,
}

impl Default for ServerSpec {
    fn default() -> Self {
        ServerSpec {
            endpoint: String::new(),
            subscriber_endpoint: String::new(),
            command: Vec::new(),
            prepare: Vec::new(),
            environment: Vec::new(),
            files: Vec::new(),
            version: Vec::new(),
            version_after: String::new(),
            ready_log: String::new(),
            out_of_memory_log: String::new(),
            limit_log: String::new(),
            start_timeout_ns: 60 * SECOND,
            container: None,
            cluster: None,
        }
    }
}

impl ServerSpec {
    /// Returns every text that can contain placeholders.
    fn all_texts(&self) -> impl Iterator<Item = &String> {
        self.texts().chain(self.container_texts())
    }

    fn container_texts(&self) -> impl Iterator<Item = &String> {
        self.container.iter().flat_map(|container| {
            let values = container.environment.iter().chain(&container.files).map(|(_, value)| value);
            container.command.iter().chain(values)
        })
    }

    /// True if the server can be given a user and a password that are generated for it.
    pub fn takes_login(&self) -> bool {
        self.all_texts().any(|text| text.contains("{password"))
    }

    /// True if the server can be started with TLS, natively or in its container.
    pub fn takes_tls(&self, in_container: bool) -> bool {
        let is_key = |text: &String| text.contains("{tls_key}");
        if in_container { self.container_texts().any(is_key) } else { self.texts().any(is_key) }
    }

    /// True if a member of its cluster can be asked who leads.
    pub fn tells_leader(&self) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| cluster.leader.is_some())
    }

    /// True if this option is passed to the server.
    pub fn is_told(&self, option: &str) -> bool {
        let places = [format!("{{options.{option}}}"), format!("{{options.{option}:")];
        self.all_texts().any(|text| places.iter().any(|place| text.contains(place)))
    }

    /// Returns the variables of its environment and of its container's, both as written and with
    /// these options filled in.
    pub fn variables(&self, options: &Options) -> Vec<(String, String)> {
        let container = self.container.iter().flat_map(|container| &container.environment);
        let written = self.environment.iter().chain(container);
        let places = Places { options: options.clone(), ..Places::default() };
        let known =
            |name: &str, choice: Option<&str>| Ok(places.value(name, choice).unwrap_or_else(|_| format!("{{{name}}}")));
        let filled = |(name, value): &(String, String)| Some((name.clone(), fill_places(value, known).ok()?));
        written.clone().cloned().chain(written.filter_map(filled)).collect()
    }

    /// Returns every text that can contain placeholders, except those of the container.
    fn texts(&self) -> impl Iterator<Item = &String> {
        let values = self.environment.iter().chain(&self.files).map(|(_, value)| value);
        let commands = self.prepare.iter().flatten().chain(&self.command).chain(&self.version);
        commands
            .chain(values)
            .chain([&self.endpoint, &self.subscriber_endpoint])
            .chain(self.cluster.iter().flat_map(ClusterSpec::texts))
    }

    /// Returns the names of the ports that it needs, sorted; the empty name is the main one.
    pub fn ports(&self) -> Vec<String> {
        let mut names: Vec<String> = self.all_texts().flat_map(|text| Places::ports_in(text)).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// The endpoints of a server's clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerEndpoints {
    /// Endpoint of all clients, except those with one of their own.
    pub clients: String,
    /// Endpoints of all members, if there are several; then `clients` is the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// Endpoints at which clients ask which member leads, if there are several members and such a service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discovery: Vec<String>,
    /// Endpoint of subscribers, if the server has a separate one for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscribers: Option<String>,
    /// Certificate (PEM) of the authority that signed the server's, if it was made for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
}

impl ServerEndpoints {
    /// Creates one endpoint for all clients.
    pub fn one(endpoint: impl Into<String>) -> ServerEndpoints {
        ServerEndpoints { clients: endpoint.into(), ..ServerEndpoints::default() }
    }

    /// Returns the endpoint of clients that send, or of those that receive.
    pub fn of(&self, sends: bool) -> &str {
        self.subscribers.as_deref().filter(|_| !sends).unwrap_or(&self.clients)
    }

    /// Returns the endpoints, each changed by a function.
    #[must_use]
    pub fn map(self, change: impl Fn(&str) -> String) -> ServerEndpoints {
        ServerEndpoints {
            clients: change(&self.clients),
            members: self.members.iter().map(|endpoint| change(endpoint)).collect(),
            discovery: self.discovery.iter().map(|endpoint| change(endpoint)).collect(),
            subscribers: self.subscribers.as_deref().map(change),
            authority: self.authority,
        }
    }
}

/// A server in a container.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerSpec {
    /// Image with a fixed tag.
    pub image: String,
    /// Arguments of the image's entry point; empty for its own.
    pub command: Vec<String>,
    /// Environment variables in the container.
    pub environment: Vec<(String, String)>,
    /// Files mounted into it: absolute path in the container, and text.
    pub files: Vec<(String, String)>,
    /// Folders within it that it writes to: absolute paths.
    pub volumes: Vec<String>,
    /// The port within the container that is published as `{port}`; 0 if the container shares the
    /// machine's network and gets `{address}` and `{port}` itself.
    pub port: u16,
}

/// Values of a system file's placeholders in one run.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// `{port}` and `{port.NAME}`: free ports, by name; the empty name is the main one.
    pub ports: Vec<(String, u16)>,
    /// `{member}`: the number of the server's member, from 1; 0 counts as 1.
    pub member: u32,
    /// Ports of all members, if there are several: for `{each:TEXT|SEPARATOR}` and `{first.port.NAME}`.
    /// `{members:A|B}`: A if there are several, else B.
    pub members: Vec<Vec<(String, u16)>>,
    /// Addresses of all members, if they have different ones: for `<address>` and `{first.address}`.
    pub addresses: Vec<String>,
    /// `{pubmark}`: the `pubmark` program.
    pub program: String,
    /// `{dir}`: an empty folder of this run.
    pub dir: String,
    /// `{cache}`: the folder into which the system was installed.
    pub cache: String,
    /// `{here}`: the folder of the system's file.
    pub here: String,
    /// `{cpus}`: processors that the server may use, a whole number, at least 1.
    pub cpus: u32,
    /// `{memory_mb}`: MB (2^20 bytes) that the server may use; without a limit, those of the
    /// machine.
    pub memory_mb: u64,
    /// `{durable:A|B}`: A if subscriptions outlive the server, else B. They do if the workload is
    /// durable, unless the option `persistence` of the system is off.
    pub durable: bool,
    /// `{address}`: the address on which it listens; empty for 127.0.0.1.
    pub address: String,
    /// `{login:A|B}`: A if there is a login, else B.
    pub login: Option<ServerLogin>,
    /// The files of `{tls_cert}`, `{tls_key}` and `{tls_ca}`, which are empty without TLS.
    /// `{tls:A|B}`: A if there are such files, else B.
    pub tls: Option<TlsFiles>,
    /// `{options.NAME}`; a value that is the text `{cpus}` is filled in like it.
    /// `{options.NAME:A|B}`: B if the value is `false`, 0 or empty, else A.
    pub options: Options,
}

/// A user and a password that clients must give.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServerLogin {
    /// `{user}`.
    pub user: String,
    /// `{password}`.
    pub password: String,
    /// `{password_hash}`: the password as a password file of Mosquitto holds it.
    pub password_hash: String,
}

impl fmt::Debug for ServerLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{HIDDEN}", self.user)
    }
}

/// Paths of the certificates with which a server is started (PEM).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// `{tls_cert}`: the server's certificate.
    pub certificate: String,
    /// `{tls_key}`: its private key.
    pub key: String,
    /// `{tls_ca}`: the certificate of the authority that signed it.
    pub authority: String,
}

impl TlsFiles {
    /// Returns the paths of the files in a folder.
    pub fn in_folder(folder: &str) -> TlsFiles {
        let path = |name: &str| format!("{folder}/{name}");
        TlsFiles { certificate: path("server.crt"), key: path("server.key"), authority: path("ca.crt") }
    }
}

/// Reasons why a text's placeholders cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// A brace is missing.
    #[error("`{{{0}` is not closed")]
    NotClosed(String),
    /// The text for one of two cases is missing.
    #[error("write `{{{0}:A|B}}`")]
    NoChoice(String),
    /// The placeholder is unknown.
    #[error("`{{{0}}}` is not a place that can be filled in")]
    Unknown(String),
}

impl Places {
    /// Fills in the placeholders of a text. A text that looks like a placeholder (`{`, small
    /// letters, dots and underscores, then `}` or `:…|…}`) and is unknown is an error; other braces
    /// are unchanged.
    pub fn fill(&self, text: &str) -> Result<String, PlaceError> {
        fill_places(text, |name, choice| self.value(name, choice))
    }

    fn value(&self, name: &str, choice: Option<&str>) -> Result<String, PlaceError> {
        let either = |name: &str, holds: bool| {
            let choice = choice.and_then(|choice| choice.split_once('|'));
            let (yes, no) = choice.ok_or_else(|| PlaceError::NoChoice(name.to_owned()))?;
            Ok(if holds { yes } else { no }.to_owned())
        };
        match name {
            "durable" => {
                let stored = self.options.get("persistence") != Some(&Value::Bool(false));
                return either("durable", self.durable && stored);
            }
            "login" => return either("login", self.login.is_some()),
            "tls" => return either("tls", self.tls.is_some()),
            "members" => return either("members", self.members.len() > 1),
            "each" => return self.each(choice),
            _ => {}
        }
        let option = name.strip_prefix("options.").and_then(|option| self.options.get(option));
        if let (Some(value), Some(_)) = (option, choice) {
            return either(name, is_set(value));
        }
        let login = |part: fn(&ServerLogin) -> &String| {
            self.login.as_ref().map_or_else(String::new, |login| part(login).clone())
        };
        let tls = |part: fn(&TlsFiles) -> &String| self.tls.as_ref().map_or_else(String::new, |tls| part(tls).clone());
        let port = |name: &str| port_in(&self.ports, name);
        let found = match (name, choice) {
            (_, Some(_)) => None,
            ("here", None) => Some(self.here.clone()),
            ("port", None) => port(""),
            ("dir", None) => Some(self.dir.clone()),
            ("member", None) => Some(self.member.max(1).to_string()),
            ("pubmark", None) => Some(self.program.clone()),
            ("address", None) if self.address.is_empty() => Some("127.0.0.1".into()),
            ("address", None) => Some(self.address.clone()),
            ("user", None) => Some(login(|login| &login.user)),
            ("password", None) => Some(login(|login| &login.password)),
            ("password_hash", None) => Some(login(|login| &login.password_hash)),
            ("tls_cert", None) => Some(tls(|tls| &tls.certificate)),
            ("tls_key", None) => Some(tls(|tls| &tls.key)),
            ("tls_ca", None) => Some(tls(|tls| &tls.authority)),
            ("cache", None) => Some(self.cache.clone()),
            ("cpus", None) => Some(self.cpus.to_string()),
            ("memory_mb", None) => Some(self.memory_mb.to_string()),
            _ => match name.split_once('.') {
                Some(("port", name)) => port(name),
                Some(("first", "address")) => Some(self.address_of(0)?),
                Some(("first", name)) => {
                    let name = if name == "port" { "" } else { name.strip_prefix("port.").unwrap_or(name) };
                    port_in(self.members.first().unwrap_or(&self.ports), name)
                }
                Some(("options", name)) => self.options.get(name).map(|value| match value {
                    // The number of processors that the server may use.
                    Value::String(text) if text == "{cpus}" => self.cpus.to_string(),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                }),
                _ => None,
            },
        };
        found.ok_or_else(|| PlaceError::Unknown(name.to_owned()))
    }

    /// Returns a text once for each member, with `<member>`, `<address>`, `<port>` and `<port.NAME>` of that member.
    fn each(&self, choice: Option<&str>) -> Result<String, PlaceError> {
        let choice = choice.and_then(|choice| choice.split_once('|'));
        let (text, separator) = choice.ok_or_else(|| PlaceError::NoChoice("each".into()))?;
        let alone = [self.ports.clone()];
        let all = if self.members.is_empty() { &alone[..] } else { &self.members };
        let of_member = |(index, ports): (usize, &Vec<(String, u16)>)| {
            let mut filled = text.replace("<member>", &(index + 1).to_string());
            filled = filled.replace("<address>", &self.address_of(index)?);
            for (name, port) in ports {
                let place = if name.is_empty() { "<port>".to_owned() } else { format!("<port.{name}>") };
                filled = filled.replace(&place, &port.to_string());
            }
            Ok(filled)
        };
        let filled: Vec<String> = all.iter().enumerate().map(of_member).collect::<Result<_, PlaceError>>()?;
        Ok(filled.join(separator))
    }

    /// Returns the address of the member at a place.
    fn address_of(&self, index: usize) -> Result<String, PlaceError> {
        self.addresses.get(index).map_or_else(|| self.value("address", None), |address| Ok(address.clone()))
    }

    /// Returns the values of another member, by its number, as far as they are known.
    #[must_use]
    pub fn of_member(&self, number: u32) -> Places {
        let place = (number as usize).saturating_sub(1);
        Places {
            member: number,
            ports: self.members.get(place).cloned().unwrap_or_default(),
            address: self.addresses.get(place).unwrap_or(&self.address).clone(),
            ..self.clone()
        }
    }

    /// Returns the names of the ports that a text uses.
    pub fn ports_in(text: &str) -> Vec<String> {
        let mut names = Vec::new();
        for part in text.split(['{', '<']).skip(1) {
            let Some((place, _)) = part.split_once(['}', '>']) else { continue };
            let place = place.strip_prefix("first.").unwrap_or(place);
            let name = if place == "port" { Some("") } else { place.strip_prefix("port.") };
            names.extend(name.map(str::to_owned));
        }
        names.sort();
        names.dedup();
        names
    }
}

/// Returns the port of a name as text.
fn port_in(ports: &[(String, u16)], name: &str) -> Option<String> {
    ports.iter().find(|(known, _)| known == name).map(|(_, port)| port.to_string())
}

/// True if an option's value is not `false`, 0 or an empty text.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Bool(is_on) => *is_on,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        _ => false,
    }
}

/// Fills in the placeholders of a text; `value` returns their values by name and by the text after
/// a colon. An unknown placeholder is an error.
pub(crate) fn fill_places(
    text: &str,
    value: impl Fn(&str, Option<&str>) -> Result<String, PlaceError>,
) -> Result<String, PlaceError> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        rest = &rest[open..];
        let name_len = rest[1..].find(|c: char| !(c.is_ascii_lowercase() || c == '_' || c == '.')).unwrap_or(0);
        let name = &rest[1..1 + name_len];
        let after = &rest[1 + name_len..];
        if name.is_empty() || !(after.starts_with('}') || after.starts_with(':')) {
            filled.push('{');
            rest = &rest[1..];
            continue;
        }
        let close = after.find('}').ok_or_else(|| PlaceError::NotClosed(name.to_owned()))?;
        filled.push_str(&value(name, after[..close].strip_prefix(':'))?);
        rest = &after[close + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscribers_have_a_place_of_their_own_where_the_server_has_one_for_them() {
        let one = ServerEndpoints::one("mqtt://a:1");
        assert_eq!((one.of(true), one.of(false)), ("mqtt://a:1", "mqtt://a:1"));
        let two = ServerEndpoints { subscribers: Some("mqtt://a:2".into()), ..one };
        let two = two.map(|endpoint| endpoint.replace('a', "b"));
        assert_eq!((two.of(true), two.of(false)), ("mqtt://b:1", "mqtt://b:2"));
    }

    #[test]
    fn a_member_knows_its_own_ports_and_those_of_all() {
        let ports = |first: u16| vec![(String::new(), first), ("route".to_owned(), first + 1)];
        let text =
            "{member} {port.route} {first.port.route} {members:yes|no} {each:n<member>@<address>:<port.route>|, }";
        let first = |places: &Places| places.fill("{first.address}:{first.port}").unwrap();
        let alone = Places { ports: ports(1), ..Places::default() };
        assert_eq!(alone.fill(text).unwrap(), "1 2 2 no n1@127.0.0.1:2");
        let second = Places { ports: ports(5), member: 2, members: vec![ports(1), ports(5)], ..Places::default() };
        assert_eq!(second.fill(text).unwrap(), "2 6 2 yes n1@127.0.0.1:2, n2@127.0.0.1:6");
        assert_eq!((first(&alone), first(&second)), ("127.0.0.1:1".into(), "127.0.0.1:1".into()));
        let apart = Places { addresses: vec!["a".into(), "b".into()], address: "b".into(), ..second.clone() };
        assert_eq!(apart.fill(text).unwrap(), "2 6 2 yes n1@a:2, n2@b:6");
        assert_eq!(first(&apart), "a:1");
        assert_eq!(Places::ports_in(text), ["route"]);
        assert_eq!(second.fill("{each:x}"), Err(PlaceError::NoChoice("each".into())));
    }

    #[test]
    fn places_are_filled_and_other_braces_left_alone() {
        let places = Places {
            ports: vec![(String::new(), 11_000), ("admin".into(), 11_001)],
            dir: "/tmp/x".into(),
            cpus: 2,
            durable: true,
            options: [("max_queued".to_owned(), Value::from(0))].into_iter().collect(),
            ..Places::default()
        };
        let text = "-kernel {127,0,0,1} {port} {port.admin} {dir}/a {cpus} {durable:yes|no} {options.max_queued} {}";
        assert_eq!(places.fill(text).unwrap(), "-kernel {127,0,0,1} 11000 11001 /tmp/x/a 2 yes 0 {}");
        assert_eq!(Places::ports_in(text), ["", "admin"]);
        let text = "{login:user|#} {user} {password} {password_hash}";
        assert_eq!(places.fill(text).unwrap(), "#   ");
        let login = ServerLogin { user: "u".into(), password: "p".into(), password_hash: "$6$".into() };
        assert!(!format!("{login:?}").contains(":p"), "{login:?}");
        let closed = Places { login: Some(login), ..places.clone() };
        assert_eq!(closed.fill(text).unwrap(), "user u p $6$");
        let text = "{tls:a|b} {tls_cert} {tls_key} {tls_ca}";
        assert_eq!(places.fill(text).unwrap(), "b   ");
        let encrypted = Places { tls: Some(TlsFiles::in_folder("/t")), ..places.clone() };
        assert_eq!(encrypted.fill(text).unwrap(), "a /t/server.crt /t/server.key /t/ca.crt");
        assert_eq!(places.fill("{login}"), Err(PlaceError::NoChoice("login".into())));
        let mut forgetful = places.clone();
        forgetful.options.insert("persistence".to_owned(), Value::from(false));
        assert_eq!(forgetful.fill("{durable:yes|no}").unwrap(), "no");
        forgetful.options.insert("threads".to_owned(), Value::from("{cpus}"));
        assert_eq!(forgetful.fill("{options.threads}").unwrap(), "2");
        let text = "{options.threads:on|off} {options.max_queued:a|#} {options.persistence:yes|no}";
        assert_eq!(forgetful.fill(text).unwrap(), "on # no");
        assert_eq!(places.fill("{prot}").unwrap_err().to_string(), "`{prot}` is not a place that can be filled in");
        assert_eq!(places.fill("{durable:a}"), Err(PlaceError::NoChoice("durable".into())));
        assert_eq!(places.fill("{durable:a|b").unwrap_err().to_string(), "`{durable` is not closed");
    }
}
