//! Reads the installation and the server from a system file.

use super::agent::words;
use super::{Install, System};
use crate::diagnostic::Diagnostic;
use crate::document::{Entry, Scalar, Table};
use crate::endpoint::Endpoint;
use crate::server::{ContainerSpec, Places, ServerSpec, TlsFiles};
use crate::units::parse_time;

/// Content of the tables about a server, until all of them have been read.
#[derive(Default)]
pub(super) struct Deployment {
    install: Install,
    pub(super) server: ServerSpec,
    container: ContainerSpec,
    server_at: Option<usize>,
    container_at: Option<usize>,
    /// True if the container uses the machine's network.
    shares_network: bool,
    /// Texts with placeholders, to be checked when the options are known.
    filled: Vec<Scalar>,
}

impl Deployment {
    /// Reads a table; returns false if it is none of these.
    pub fn read(&mut self, table: &Table, errors: &mut Vec<Diagnostic>) -> bool {
        if let Some(path) = table.name.strip_prefix("server.files.") {
            self.read_file(path, false, table, errors);
            return true;
        }
        if let Some(path) = table.name.strip_prefix("container.files.") {
            self.read_file(path, true, table, errors);
            return true;
        }
        match table.name.as_str() {
            "install" => self.read_install(table, errors),
            "server" => self.read_server(table, errors),
            "cluster" => self.read_cluster(table, errors),
            "cluster.joined" | "cluster.leader" => self.read_probe(table.name == "cluster.leader", table, errors),
            "container" => self.read_container(table, errors),
            "server.prepare" => {
                for entry in &table.entries {
                    match entry.key.as_str() {
                        "command" => {
                            let words = self.list(entry, errors);
                            self.server.prepare.push(words);
                        }
                        _ => errors.push(entry.unknown("[[server.prepare]]", ["command"])),
                    }
                }
            }
            "server.environment" => self.server.environment = self.variables(table, errors),
            "container.environment" => self.container.environment = self.variables(table, errors),
            "server.files" | "container.files" if table.entries.is_empty() => {}
            _ => return false,
        }
        true
    }

    fn read_install(&mut self, table: &Table, errors: &mut Vec<Diagnostic>) {
        for entry in &table.entries {
            match entry.key.as_str() {
                "apt" => self.install.apt = pins(entry, apt, errors),
                "maven" => self.install.maven = pins(entry, maven, errors),
                "pip" => self.install.pip = pins(entry, pip, errors),
                "npm" => self.install.npm = pins(entry, npm, errors),
                "cargo" => self.install.cargo = pins(entry, at_version, errors),
                "go" => self.install.go = pins(entry, at_version, errors),
                "build" => self.install.build = words(entry, errors),
                "manual" => self.install.manual = entry.one(errors).map(|value| value.text.clone()).unwrap_or_default(),
                _ => errors.push(entry.unknown("[install]", INSTALL)),
            }
        }
    }

    fn read_server(&mut self, table: &Table, errors: &mut Vec<Diagnostic>) {
        self.server_at = Some(table.at);
        for entry in &table.entries {
            match entry.key.as_str() {
                "endpoint" => self.server.endpoint = self.text(entry, errors),
                "subscriber_endpoint" => self.server.subscriber_endpoint = self.text(entry, errors),
                "command" => self.server.command = self.list(entry, errors),
                "version" => self.server.version = self.list(entry, errors),
                "version_after" => self.server.version_after = self.text(entry, errors),
                "ready_log" => self.server.ready_log = self.text(entry, errors),
                "out_of_memory_log" => self.server.out_of_memory_log = self.text(entry, errors),
                "limit_log" => self.server.limit_log = self.text(entry, errors),
                "start_timeout" => {
                    let Some(value) = entry.one(errors) else { continue };
                    match parse_time(&value.text) {
                        Ok(ns) if ns > 0 => self.server.start_timeout_ns = ns,
                        Ok(_) => {
                            errors.push(Diagnostic::at_value(value.at, "`start_timeout` is 0: no server is that quick"))
                        }
                        Err(error) => errors.push(Diagnostic::at_value(value.at, error)),
                    }
                }
                _ => errors.push(entry.unknown(
                    "[server]",
                    [
                        "endpoint",
                        "subscriber_endpoint",
                        "command",
                        "version",
                        "version_after",
                        "ready_log",
                        "out_of_memory_log",
                        "limit_log",
                        "start_timeout",
                    ],
                )),
            }
        }
    }

    fn read_container(&mut self, table: &Table, errors: &mut Vec<Diagnostic>) {
        self.container_at = Some(table.at);
        for entry in &table.entries {
            match entry.key.as_str() {
                "image" => {
                    let Some(value) = entry.one(errors) else { continue };
                    let name = value.text.rsplit('/').next().unwrap_or_default();
                    if name.split_once(':').is_none_or(|(_, tag)| tag.is_empty() || tag == "latest") {
                        errors.push(
                            Diagnostic::at_value(value.at, format!("the image `{}` is not pinned", value.text))
                                .help("write its version as its tag: `name:1.2.3`"),
                        );
                    }
                    self.container.image = value.text.clone();
                }
                "command" => self.container.command = self.list(entry, errors),
                "port" => {
                    let Some(value) = entry.one(errors) else { continue };
                    match value.text.parse() {
                        Ok(port) if port > 0 => self.container.port = port,
                        _ => errors.push(Diagnostic::at_value(value.at, format!("`{}` is not a port", value.text))),
                    }
                }
                "volumes" => self.container.volumes = self.folders(entry, errors),
                "network" => match entry.one(errors).map(|value| (value.text.as_str(), value.at)) {
                    Some(("host", _)) => self.shares_network = true,
                    Some((other, at)) => errors.push(
                        Diagnostic::at_value(at, format!("`{other}` is not a network of a container"))
                            .help("write \"host\", or leave it out and name the `port` that is published"),
                    ),
                    None => {}
                },
                _ => errors.push(entry.unknown("[container]", ["image", "command", "port", "network", "volumes"])),
            }
        }
    }

    /// Returns folders within a container.
    fn folders(&mut self, entry: &Entry, errors: &mut Vec<Diagnostic>) -> Vec<String> {
        let folders = self.list(entry, errors);
        for (folder, value) in folders.iter().zip(&entry.values) {
            if !folder.starts_with('/') || folder.split('/').any(|part| part == "..") {
                let what = format!("the folder `{folder}` is to be absolute, in the container");
                errors.push(Diagnostic::at_value(value.at, what));
            }
        }
        folders
    }

    fn read_file(&mut self, path: &str, contained: bool, table: &Table, errors: &mut Vec<Diagnostic>) {
        if contained != path.starts_with('/') || path.split('/').any(|part| part == "..") {
            let wanted = if contained { "absolute, in the container" } else { "below the folder of the run" };
            errors.push(Diagnostic::at(table.at, format!("the file's path `{path}` is to be {wanted}")));
        }
        let mut text = None;
        for entry in &table.entries {
            match entry.key.as_str() {
                "text" => text = Some(self.text(entry, errors)),
                _ => errors.push(entry.unknown("a file", ["text"])),
            }
        }
        let Some(text) = text else {
            errors.push(Diagnostic::at(table.at, format!("the file `{path}` has no `text`")));
            return;
        };
        let files = if contained { &mut self.container.files } else { &mut self.server.files };
        files.push((path.to_owned(), text));
    }

    fn variables(&mut self, table: &Table, errors: &mut Vec<Diagnostic>) -> Vec<(String, String)> {
        table.entries.iter().map(|entry| (entry.key.clone(), self.text(entry, errors))).collect()
    }

    /// Returns the one text of a key, which may contain placeholders.
    pub(super) fn text(&mut self, entry: &Entry, errors: &mut Vec<Diagnostic>) -> String {
        let Some(value) = entry.one(errors) else { return String::new() };
        self.filled.push(value.clone());
        value.text.clone()
    }

    /// Returns the words of a command, which may contain placeholders.
    pub(super) fn list(&mut self, entry: &Entry, errors: &mut Vec<Diagnostic>) -> Vec<String> {
        if !entry.is_list || entry.values.is_empty() {
            errors.push(
                Diagnostic::at(entry.key_at, format!("`{}` takes a list of words", entry.key))
                    .help("write `[\"program\", \"argument\"]`"),
            );
        }
        self.filled.extend(entry.values.iter().cloned());
        entry.values.iter().map(|value| value.text.clone()).collect()
    }

    /// Combines the tables, and checks what no table shows alone.
    pub fn finish(mut self, system: &System, errors: &mut Vec<Diagnostic>) -> (Option<ServerSpec>, Install) {
        let Some(at) = self.server_at else {
            let stray = self.container_at.is_some() || self.server != ServerSpec::default();
            if stray || !self.container.environment.is_empty() || !self.container.files.is_empty() {
                errors.push(
                    Diagnostic::whole("[server] is missing: it says where clients connect to")
                        .help("write at least `[server]` with `endpoint = \"mqtt://127.0.0.1:{port}\"`"),
                );
            }
            return (None, self.install);
        };
        match self.container_at {
            Some(at) => {
                let no_port = self.container.port == 0 && !self.shares_network;
                for (missing, key) in [(self.container.image.is_empty(), "image"), (no_port, "port")] {
                    if missing {
                        errors.push(Diagnostic::at(at, format!("[container] has no `{key}`")));
                    }
                }
                if self.container.port > 0 && self.shares_network {
                    let what = "[container] has a `port` and the machine's network: nothing is published there";
                    errors.push(Diagnostic::at(at, what).help("leave `port` out, and write {port} where it listens"));
                }
                self.server.container = Some(self.container);
            }
            None if self.server.command.is_empty() => errors.push(Diagnostic::at(
                at,
                "[server] has no `command`, and there is no [container] either: nothing would start it",
            )),
            None => {}
        }
        self.server.cluster.iter().for_each(|cluster| cluster.check(at, errors));
        let places = sample(system, &self.server);
        for value in &self.filled {
            if let Err(error) = places.fill(&value.text) {
                errors.push(Diagnostic::at_value(value.at, error).help(KNOWN_PLACES));
            }
        }
        if self.server.endpoint.is_empty() {
            errors.push(Diagnostic::at(at, "[server] has no `endpoint`"));
        }
        if [false, true].into_iter().any(|contained| self.server.takes_tls(contained)) {
            let places = Places { tls: Some(TlsFiles::default()), ..places.clone() };
            let filled = Endpoint::parse(&places.fill(&self.server.endpoint).unwrap_or_default());
            if filled.is_ok_and(|endpoint| !endpoint.carrier.is_tls()) {
                errors.push(
                    Diagnostic::at(at, "the server takes {tls_key}, but its `endpoint` has no scheme for TLS")
                        .help("write it for both cases, as in `{tls:mqtts|mqtt}://{address}:{port}`"),
                );
            }
        }
        let all = [("endpoint", &self.server.endpoint), ("subscriber_endpoint", &self.server.subscriber_endpoint)];
        for (key, endpoint) in all.into_iter().filter(|(_, endpoint)| !endpoint.is_empty()) {
            match Endpoint::parse(&places.fill(endpoint).unwrap_or_default()) {
                Ok(endpoint) if Some(endpoint.protocol) == system.protocol() => {}
                Ok(endpoint) => errors.push(Diagnostic::at(
                    at,
                    format!("`{key}` speaks {}, but the driver speaks {}", endpoint.protocol, system.driver),
                )),
                Err(error) => errors.push(Diagnostic::at(at, format!("{key}: {error}"))),
            }
        }
        (Some(self.server), self.install)
    }
}

/// Keys of `[install]`.
const INSTALL: [&str; 8] = ["apt", "pip", "npm", "maven", "cargo", "go", "build", "manual"];

const KNOWN_PLACES: &str = "places: {port}, {port.NAME}, {first.port.NAME}, {first.address}, {member}, {members:A|B}, {each:TEXT|SEPARATOR}, {pubmark}, {address}, {dir}, {here}, {cache}, {cpus}, {memory_mb}, {durable:A|B}, {user}, {password}, {password_hash}, {login:A|B}, {tls:A|B}, {tls_cert}, {tls_key}, {tls_ca}, and {options.NAME} and {options.NAME:A|B} where that option has a default";

/// Returns placeholders with a sample value each.
fn sample(system: &System, server: &ServerSpec) -> Places {
    Places {
        ports: server.ports().into_iter().zip(11_000..).collect(),
        member: 1,
        members: Vec::new(),
        addresses: Vec::new(),
        program: "/pubmark".into(),
        dir: "/run/x".into(),
        cache: "/cache/x".into(),
        here: "/here/x".into(),
        cpus: 2,
        memory_mb: 1024,
        durable: false,
        address: String::new(),
        login: None,
        tls: None,
        options: system.defaults(),
    }
}

/// Reads names and versions in the format of a registry's client. A word that begins with a dash
/// would be an option of the client.
fn pins(entry: &Entry, pinned: fn(&str) -> bool, errors: &mut Vec<Diagnostic>) -> Vec<String> {
    let whole = |text: &str| !text.starts_with('-') && !text.contains(char::is_whitespace) && pinned(text);
    for value in entry.values.iter().filter(|value| !whole(&value.text)) {
        let form = match entry.key.as_str() {
            "apt" => "name, or name=version",
            "maven" => "group:artifact:version[:extension[:classifier]]",
            "pip" => "name==version",
            _ => "name@version",
        };
        let wrong = if entry.key == "apt" { "is not a package" } else { "names no version" };
        errors.push(Diagnostic::at_value(value.at, format!("`{}` {wrong}", value.text)).help(format!("write {form}")));
    }
    entry.values.iter().map(|value| value.text.clone()).collect()
}

fn apt(text: &str) -> bool {
    !text.is_empty()
}

fn maven(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    (3..=5).contains(&parts.len()) && parts.iter().all(|part| !part.is_empty()) && parts[2] != "LATEST"
}

fn pip(text: &str) -> bool {
    text.split_once("==").is_some_and(|(name, version)| !name.is_empty() && !version.is_empty())
}

/// True for `name@version`, where the name may be `@scope/name`; a range or a tag is not a version.
fn npm(text: &str) -> bool {
    let version = text.rsplit_once('@').filter(|(name, _)| !name.is_empty()).map(|(_, version)| version);
    version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

fn at_version(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, version)| !name.is_empty() && !version.is_empty())
}
