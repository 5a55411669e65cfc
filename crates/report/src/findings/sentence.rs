//! A sentence, and what sentences name.

use crate::text::clean;
use serde::Serialize;

/// Longest name of a system or place, characters.
pub(super) const NAME_CHARS: usize = 80;
/// Systems that a sentence names.
pub(super) const NAMED_MAX: usize = 3;

/// A sentence.
#[derive(Debug, Serialize, PartialEq, Eq)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Finding"))]
pub struct Sentence {
    #[cfg_attr(
        test,
        ts(
            type = "\"machine\" | \"arms\" | \"capacity\" | \"delivery\" | \"latency\" | \"throughput\" | \"cost\" | \"validity\""
        )
    )]
    pub about: &'static str,
    #[cfg_attr(test, ts(type = "\"kept\" | \"lost\" | \"winner\" | \"tie\" | \"open\" | \"unranked\" | \"note\""))]
    pub outcome: &'static str,
    pub text: String,
}

/// A system's name as a sentence has it.
pub(super) fn name(system: &str) -> String {
    clean(system, NAME_CHARS)
}
