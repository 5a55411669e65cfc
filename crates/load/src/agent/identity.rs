//! Who an agent is: its name, its version, its drivers.

use crate::drivers::{self, DriverKind};

/// The name of the driver that runs in virtual time.
pub const MOCK: &str = "mock";

/// Who an agent is, and which drivers it has: the program that calls
/// [`serve`](super::serve) says so.
#[derive(Clone, Copy, Debug)]
pub struct AgentInfo {
    /// Its name, for `hello`.
    pub name: &'static str,
    /// Its version, for `hello`.
    pub version: &'static str,
    /// Its drivers, by name; the mock comes on top.
    pub drivers: &'static [(&'static str, DriverKind)],
}

/// The agent that is built into pubmark.
pub const BUILT_IN: AgentInfo =
    AgentInfo { name: "pubmark", version: env!("CARGO_PKG_VERSION"), drivers: drivers::REGISTRY };
