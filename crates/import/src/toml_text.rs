//! Texts and comments in a study file.

use std::fmt::Write;

/// Returns a text as a TOML basic string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            char if char.is_control() => drop(write!(out, "\\u{:04X}", u32::from(char))),
            char => out.push(char),
        }
    }
    out.push('"');
    out
}

/// Returns a text for a comment of one line.
pub(crate) fn comment(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}
