//! Systems that bound others, or that others are held against.

/// The system that bounds all others.
pub(crate) const FLOOR: &str = "kernel";

/// Systems that others are compared with and that are never ranked.
pub const REFERENCES: [&str; 2] = [FLOOR, "mock"];

/// Whether a system is a reference rather than a competitor.
pub(crate) fn is_reference(system: &str) -> bool {
    REFERENCES.contains(&system)
}
