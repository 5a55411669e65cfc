//! The systems under test: one file in `systems/` each.

mod agent;
mod cluster;
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
use serde_json::Value;
use std::sync::Arc;

/// A system as its file describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct System {
    /// Its name: the file's name, a study's `system`, a bench's TARGET.
    pub name: String,
    /// The text of its file, which is sent to other hosts.
    pub source: String,
    /// True if the user supplied it; false if it comes with pubmark.
    pub brought: bool,
    /// The folder of its file, absolute; empty if it comes with pubmark and has no agent of its
    /// own.
    pub here: String,
    /// Files of its agent that come with pubmark: paths below the parent of `here`, and contents.
    /// They are written there when it is installed.
    pub carried: &'static [(&'static str, &'static str)],
    /// True if it intends to replace a system of this name that comes with pubmark.
    pub replaces: bool,
    /// Its name as its vendor writes it.
    pub title: String,
    /// Its description in one sentence.
    pub about: String,
    /// Its licence (SPDX).
    pub licence: String,
    /// Its web page.
    pub homepage: String,
    /// The programming language that it is written in; empty if its file does not say.
    pub language: String,
    /// The year of its first release; empty if its file does not say.
    pub first_release: String,
    /// How it is maintained; empty if its file does not say.
    pub maintenance: String,
    /// Source and date of language, first release and maintenance.
    pub facts_from: String,
    /// The driver for it.
    pub driver: String,
    /// The program that plays its clients.
    pub agent: AgentSpec,
    /// The system that is the floor of its agent's language: the same agent with a queue in place
    /// of the library; empty if there is none.
    pub floor: String,
    /// The transports of a library; a broker is reached over its protocol.
    pub transports: Vec<Transport>,
    /// The patterns that its driver supports.
    pub patterns: Vec<Pattern>,
    /// The patterns in which it guarantees that no message is lost, duplicated or reordered.
    pub lossless: Vec<Pattern>,
    /// Its levels of quality of service, 0 to 2. Default: 0 alone.
    pub qos: Vec<u8>,
    /// True if subscriptions, and messages that wait for them, can outlive the server. Default:
    /// false.
    pub durable: bool,
    /// Warm-up if the study sets none, ns: the time until the system is warm. `None` if the study's
    /// default is long enough.
    pub warmup_ns: Option<Ns>,
    /// Longest warm-up, ns: a pilot run finds the warm-up within this time if the study sets
    /// neither `warmup` nor `warmup_max`. `None` for no pilot run.
    pub warmup_max_ns: Option<Ns>,
    /// Its server; `None` for libraries, and for servers that can only be attached to.
    pub server: Option<ServerSpec>,
    /// Its installation.
    pub install: Install,
    /// The options of its driver, including the common ones.
    pub options: Vec<OptionSpec>,
    /// Options, with their values, that bound the messages that wait for a subscriber so that slow ones overflow the
    /// bound soon: for the guarantee card. Empty if no option does.
    pub full_queue: Vec<(String, Value)>,
    /// Settings that no option changes and that differ from the vendor defaults.
    pub fixed: Vec<Fixed>,
    /// Remarks to read before quoting a figure.
    pub notes: Vec<String>,
}

/// A separate program that plays a system's clients over the agent protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSpec {
    /// The command of those that send; empty if pubmark itself plays both sides.
    pub sending: Vec<String>,
    /// The command of those that receive and reply.
    pub receiving: Vec<String>,
    /// Variables of its environment, in addition to those of pubmark itself.
    pub environment: Vec<(String, String)>,
    /// Number of processes per side, over which its clients are spread; at least 1.
    pub processes: u32,
    /// Time limit for its `hello`, ns.
    pub start_timeout_ns: Ns,
    /// Its version of the agent protocol: 2, or 3 if it writes rows.
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
    /// True if it writes rows, from which pubmark computes the figures.
    pub fn writes_rows(&self) -> bool {
        self.protocol == ROWS_VERSION
    }

    /// True if pubmark itself plays the clients.
    pub fn built_in(&self) -> bool {
        self.sending.is_empty()
    }

    /// True if different programs play the two sides, so that no process can play both.
    pub fn differs(&self) -> bool {
        self.sending != self.receiving
    }

    /// Returns the command of a side.
    pub fn command(&self, sends: bool) -> &[String] {
        if sends { &self.sending } else { &self.receiving }
    }
}

/// Installation of a system on this machine. Versions are fixed, except for Debian packages and
/// programs that are built in place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Install {
    /// Debian packages, `name` or `name=version`.
    pub apt: Vec<String>,
    /// Maven artifacts, `group:artifact:version[:extension[:classifier]]`: jars with their
    /// dependencies, archives unpacked.
    pub maven: Vec<String>,
    /// Python packages, `name==version`: installed with their dependencies into an environment of
    /// their own.
    pub pip: Vec<String>,
    /// Node packages, `name@version`, with their dependencies.
    pub npm: Vec<String>,
    /// Rust programs, `name@version`.
    pub cargo: Vec<String>,
    /// Go programs, `path@version`.
    pub go: Vec<String>,
    /// A command that runs in the folder of the system's file.
    pub build: Vec<String>,
    /// Instructions for an installation by hand, if no other kind applies.
    pub manual: String,
}

impl Install {
    /// True if it installs files into pubmark's own cache folder.
    pub fn cached(&self) -> bool {
        let kinds = [&self.maven, &self.pip, &self.npm, &self.cargo, &self.go, &self.build];
        kinds.into_iter().any(|kind| !kind.is_empty())
    }
}

/// A function that finds a system by name.
pub type Systems<'a> = &'a dyn Fn(&str) -> Option<Arc<System>>;

/// Options for the start of a server, which its clients do not need.
const READ_BY_PUBMARK: [&str; 4] = ["endpoint", "deployment", "persistence", "members"];

/// Maximum length of a system's name, characters.
const NAME_CHARS_MAX: usize = 64;

/// True if this is a valid name of a system: it is used as a file name, as a folder name in the
/// cache, and as a word on the command line.
pub fn is_system_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.len() <= NAME_CHARS_MAX && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain)
}

impl System {
    /// Creates a system of which only the name is known, from records.
    pub fn unknown(name: &str) -> Arc<System> {
        Arc::new(System { name: name.to_owned(), ..System::default() })
    }

    /// Returns its options with their defaults; those without one are left out.
    pub fn defaults(&self) -> Options {
        self.options.iter().filter_map(|spec| Some((spec.name.clone(), spec.default.clone()?))).collect()
    }

    /// Returns the protocol between its clients and its server; `None` for a library.
    pub fn protocol(&self) -> Option<Protocol> {
        Protocol::of_driver(&self.driver)
    }

    /// True if its clients connect to a server.
    pub fn broker(&self) -> bool {
        self.protocol().is_some()
    }

    /// Returns the names of those of a run's options that the driver of its clients must know:
    /// those that the study sets and this file declares. Options of the server or of pubmark itself
    /// are excluded.
    pub fn asks_of_clients<'a>(&self, options: &'a Options, set: &[String]) -> Vec<&'a str> {
        let usual = self.protocol().map_or_else(common, Protocol::options);
        let declared = |name: &String| usual.iter().all(|option| option.name != *name);
        let elsewhere = |name: &String| {
            READ_BY_PUBMARK.contains(&name.as_str()) || self.server.as_ref().is_some_and(|server| server.is_told(name))
        };
        let asked = options.keys().filter(|name| (set.contains(name) || declared(name)) && !elsewhere(name));
        asked.map(String::as_str).collect()
    }

    /// Returns the secrets that no output of a run with these options may repeat: those among the
    /// options, and those in the environments that the system sets.
    pub fn secrets(&self, options: &Options) -> Secrets {
        let server = self.server.as_ref().map(|server| server.variables(options));
        let mine = Secrets::marked(options, |name| self.is_secret(name));
        mine.and_variables(server.iter().flatten()).and_variables(&self.agent.environment)
    }

    /// True if the value of an option must not be shown or recorded. An undeclared option is judged
    /// by its name.
    pub fn is_secret(&self, option: &str) -> bool {
        self.option(option).map_or_else(|| is_secret_name(option), OptionSpec::is_secret)
    }

    /// Returns the option of this name.
    pub fn option(&self, name: &str) -> Option<&OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }
}
