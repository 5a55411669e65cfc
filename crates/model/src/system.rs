//! What is measured: one file in `systems/` each.

mod agent;
mod deployment;
mod differences;
mod parse;
mod settings;

use crate::options::{OptionSpec, Options, common};
use crate::protocol::{ROWS_VERSION, VERSION};
use crate::secret::{Secrets, is_secret_name};
use crate::server::ServerSpec;
use crate::tuning::Fixed;
use crate::units::{Ns, SECOND};
use crate::wire_protocol::Protocol;
use crate::workload::{Pattern, Transport};
use std::sync::Arc;

/// A system as its file describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct System {
    /// Its name: the file's name, a study's `system`, a bench's TARGET.
    pub name: String,
    /// The text of its file: what another host is told.
    pub source: String,
    /// Whether the user brings it; else it comes with pubmark.
    pub brought: bool,
    /// The folder of its file, absolute; empty where it comes with pubmark and
    /// has no agent of its own.
    pub here: String,
    /// What comes with pubmark for its agent: paths below the parent of `here`,
    /// and texts. They are put there when it is installed.
    pub carried: &'static [(&'static str, &'static str)],
    /// Whether it means to stand in for one of this name that comes with pubmark.
    pub replaces: bool,
    /// Its name as its makers write it.
    pub title: String,
    /// What it is, in a sentence.
    pub about: String,
    /// Its licence (SPDX).
    pub licence: String,
    /// Where it lives on the web.
    pub homepage: String,
    /// The driver that speaks to it.
    pub driver: String,
    /// The program that plays its clients.
    pub agent: AgentSpec,
    /// The system that is the floor of its agent's language: the same agent with a
    /// queue in place of the library; empty where there is none.
    pub floor: String,
    /// The transports that it has: of a library; a broker is reached over its protocol.
    pub transports: Vec<Transport>,
    /// The patterns that its driver plays.
    pub patterns: Vec<Pattern>,
    /// The patterns in which it promises to lose, duplicate and reorder nothing.
    pub lossless: Vec<Pattern>,
    /// The levels of quality of service that it has, 0 to 2; default: 0 alone.
    pub qos: Vec<u8>,
    /// Whether subscriptions, and what waits for them, can outlive the server; default false.
    pub durable: bool,
    /// From the start to the window where the study does not say, ns: what it
    /// takes until it is warm; none where the study's default will do.
    pub warmup_ns: Option<Ns>,
    /// By when it is warm at the latest, ns: a pilot run finds the warm-up within
    /// this where the study says neither `warmup` nor `warmup_max`; none: no pilot.
    pub warmup_max_ns: Option<Ns>,
    /// How it is started; none for libraries, and for servers that can only be attached to.
    pub server: Option<ServerSpec>,
    /// What brings it here.
    pub install: Install,
    /// The options of its driver, the common ones included.
    pub options: Vec<OptionSpec>,
    /// Settings that no option changes, and that are not its makers'.
    pub fixed: Vec<Fixed>,
    /// What to know about it before quoting a figure.
    pub notes: Vec<String>,
}

/// A program of its own that plays a system's clients by the agent protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSpec {
    /// The command of those that send; empty: pubmark itself plays both sides.
    pub sending: Vec<String>,
    /// The command of those that receive and reply.
    pub receiving: Vec<String>,
    /// Variables of its environment, beside those of pubmark itself.
    pub environment: Vec<(String, String)>,
    /// Processes a side, over which its clients are spread; at least 1.
    pub processes: u32,
    /// How long it may take to say hello, ns.
    pub start_timeout_ns: Ns,
    /// The version of the agent protocol that it speaks: 2, or 3, where it writes rows.
    pub protocol: u32,
}

impl Default for AgentSpec {
    fn default() -> Self {
        AgentSpec {
            sending: Vec::new(),
            receiving: Vec::new(),
            environment: Vec::new(),
            processes: 1,
            start_timeout_ns: 10 * SECOND,
            protocol: VERSION,
        }
    }
}

impl AgentSpec {
    /// Whether it writes rows, of which pubmark makes the figures.
    pub fn writes_rows(&self) -> bool {
        self.protocol == ROWS_VERSION
    }

    /// Whether pubmark itself plays.
    pub fn built_in(&self) -> bool {
        self.sending.is_empty()
    }

    /// Whether the two sides are played by different programs, so that no
    /// process can play both.
    pub fn differs(&self) -> bool {
        self.sending != self.receiving
    }

    /// The command of a side.
    pub fn command(&self, sends: bool) -> &[String] {
        if sends { &self.sending } else { &self.receiving }
    }
}

/// What brings a system to this machine. Everything but Debian's packages and
/// what is built in place is pinned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Install {
    /// Debian packages, `name` or `name=version`.
    pub apt: Vec<String>,
    /// Maven artifacts, `group:artifact:version[:extension[:classifier]]`: jars
    /// with what they depend on, archives unpacked.
    pub maven: Vec<String>,
    /// Python packages, `name==version`: into an environment of their own, with
    /// what they depend on.
    pub pip: Vec<String>,
    /// Packages of Node, `name@version`, with what they depend on.
    pub npm: Vec<String>,
    /// Rust programs, `name@version`.
    pub cargo: Vec<String>,
    /// Go programs, `path@version`.
    pub go: Vec<String>,
    /// A command that is run in the folder of the system's file.
    pub build: Vec<String>,
    /// What to do by hand, where none of these has it.
    pub manual: String,
}

impl Install {
    /// Whether something goes into pubmark's own cache folder.
    pub fn cached(&self) -> bool {
        let kinds = [&self.maven, &self.pip, &self.npm, &self.cargo, &self.go, &self.build];
        kinds.into_iter().any(|kind| !kind.is_empty())
    }
}

/// Finds a system by name.
pub type Systems<'a> = &'a dyn Fn(&str) -> Option<Arc<System>>;

/// Options that say how a server is started, and nothing to its clients.
const READ_BY_PUBMARK: [&str; 3] = ["endpoint", "deployment", "persistence"];

/// The most characters of a system's name.
const NAME_CHARS_MAX: usize = 64;

/// Whether a system can be called so: it is a file's name, a folder's in the
/// cache, and a word on the command line.
pub fn is_system_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.len() <= NAME_CHARS_MAX && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain)
}

impl System {
    /// A system of which only records tell: nothing but its name is known.
    pub fn unknown(name: &str) -> Arc<System> {
        Arc::new(System { name: name.to_owned(), ..System::default() })
    }

    /// Its options, each with its default; those without one are left out.
    pub fn defaults(&self) -> Options {
        self.options.iter().filter_map(|spec| Some((spec.name.clone(), spec.default.clone()?))).collect()
    }

    /// What its clients speak to its server; none of a library.
    pub fn protocol(&self) -> Option<Protocol> {
        Protocol::of_driver(&self.driver)
    }

    /// Whether its clients meet at a server.
    pub fn broker(&self) -> bool {
        self.protocol().is_some()
    }

    /// Of a run's options those that the driver of its clients has to know, by
    /// name: what the study sets, and what this file declares. What the server
    /// is told, and what pubmark itself reads, is none of them.
    pub fn asks_of_clients<'a>(&self, options: &'a Options, set: &[String]) -> Vec<&'a str> {
        let usual = self.protocol().map_or_else(common, Protocol::options);
        let declared = |name: &String| usual.iter().all(|option| option.name != *name);
        let elsewhere = |name: &String| {
            READ_BY_PUBMARK.contains(&name.as_str()) || self.server.as_ref().is_some_and(|server| server.is_told(name))
        };
        let asked = options.keys().filter(|name| (set.contains(name) || declared(name)) && !elsewhere(name));
        asked.map(String::as_str).collect()
    }

    /// What nothing that is shown or kept of a run with these options may repeat:
    /// the secrets among them, and those in the environments that it sets.
    pub fn secrets(&self, options: &Options) -> Secrets {
        let server = self.server.as_ref().map(|server| server.variables(options));
        let mine = Secrets::marked(options, |name| self.is_secret(name));
        mine.and_variables(server.iter().flatten()).and_variables(&self.agent.environment)
    }

    /// Whether the value of an option may be neither shown nor recorded. An option that
    /// it does not declare is judged by its name.
    pub fn is_secret(&self, option: &str) -> bool {
        self.option(option).map_or_else(|| is_secret_name(option), OptionSpec::is_secret)
    }

    /// The option of this name.
    pub fn option(&self, name: &str) -> Option<&OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }
}
