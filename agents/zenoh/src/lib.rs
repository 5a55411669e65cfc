//! The agent of pubmark that speaks Zenoh, and a Zenoh router for it to speak to.

pub mod driver;
pub mod router;
mod settings;

pub use settings::OPTIONS;

/// The version of the Zenoh library that is built in.
pub const ZENOH_VERSION: &str = "1.10.2";

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_that_is_told_is_the_one_that_is_built_in() {
        let lock = include_str!("../Cargo.lock");
        let built_in = format!("name = \"zenoh\"\nversion = \"{}\"\n", super::ZENOH_VERSION);
        assert!(lock.contains(&built_in), "ZENOH_VERSION is not the version in Cargo.lock");
    }
}
