//! Systems that bound others, or that others are held against.

use pubmark_model::system::System;

/// The system that bounds all others.
pub(crate) const FLOOR: &str = "kernel";

/// Systems that others are compared with and that are never ranked.
pub const REFERENCES: [&str; 2] = [FLOOR, "mock"];

/// The driver of an agent that has a queue in place of a library: the floor of
/// its language.
const NULL: &str = "null";

/// True if a system is a reference and not a competitor.
pub(crate) fn is_reference(system: &System) -> bool {
    REFERENCES.contains(&system.name.as_str()) || system.driver == NULL
}
