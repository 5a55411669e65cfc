//! What is measured: one file in `systems/` each.

mod deployment;
mod differences;
mod parse;
mod settings;

use crate::options::{OptionSpec, Options};
use crate::server::ServerSpec;
use crate::tuning::Fixed;
use crate::wire_protocol::Protocol;
use crate::workload::{Pattern, Transport};
use std::sync::LazyLock;

/// A system as its file describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct System {
    /// Its name: the file's name, a study's `system`, a bench's TARGET.
    pub name: String,
    /// The text of its file: what another host is told.
    pub source: String,
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
    /// A program of its own that plays clients by the agent protocol; empty: pubmark's.
    pub agent: String,
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

/// What brings a system to this machine. Everything but Debian's packages is pinned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Install {
    /// Debian packages.
    pub debian: Vec<String>,
    /// Maven artifacts, `group:artifact:version[:extension[:classifier]]`: jars
    /// with what they depend on, archives unpacked.
    pub maven: Vec<String>,
    /// Python packages that hold a program, `name==version`.
    pub pip: Vec<String>,
    /// Rust programs, `name@version`.
    pub cargo: Vec<String>,
    /// Go programs, `path@version`.
    pub go: Vec<String>,
    /// What to do by hand, where none of these has it.
    pub manual: String,
}

impl Install {
    /// Whether something goes into pubmark's own cache folder.
    pub fn cached(&self) -> bool {
        !(self.maven.is_empty() && self.pip.is_empty() && self.cargo.is_empty() && self.go.is_empty())
    }
}

/// Finds a system by name; the registry of those that come with pubmark.
pub type Systems<'a> = &'a dyn Fn(&str) -> Option<&'a System>;

/// What is known of a system of which only records tell: nothing.
pub static UNKNOWN: LazyLock<System> = LazyLock::new(System::default);

impl System {
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

    /// The option of this name.
    pub fn option(&self, name: &str) -> Option<&OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }
}
