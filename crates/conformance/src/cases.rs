//! The cases, a file for each side of a conversation.

mod heard;
mod killed;
mod met;
mod sent;
mod words;

use crate::case::Case;

/// All of them, in the order in which they are tried.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [words::CASES, sent::CASES, heard::CASES, met::CASES, killed::CASES].into_iter().flatten()
}
