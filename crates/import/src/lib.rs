//! From the files of other tools to a study file.
//!
//! Everything here is a function of the text that it is given. Whatever changes a measurement and has no counterpart in
//! a study is an error, with its place and a way out; whatever does not matter is a remark.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod asyncapi;
mod fields;
mod flow_name;
pub mod omb;
mod toml_text;
pub mod trace;
mod yaml;

use std::fmt;

/// A file that was read.
#[derive(Clone, Copy, Debug)]
pub struct SourceText<'a> {
    /// Name of the file, for errors.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// A study made from files of another tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedStudy {
    /// Text of a study file.
    pub text: String,
    /// Differences from the other tool, and the keys that were ignored.
    pub remarks: Vec<Remark>,
}

/// A remark on a file of another tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// A key without effect on the traffic.
    Ignored {
        /// Name of the file.
        file: String,
        /// The key.
        key: String,
        /// Reason why it has no effect.
        why: String,
    },
    /// Something that pubmark measures in another way.
    Differs(String),
    /// A choice that the file made.
    Chosen(String),
}

impl Remark {
    /// Creates a remark on a key without effect.
    fn ignored(file: &str, key: &str, why: &str) -> Remark {
        Remark::Ignored { file: file.to_owned(), key: key.to_owned(), why: why.to_owned() }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remark::Ignored { file, key, why } => write!(f, "ignored: {key} ({file}): {why}"),
            Remark::Differs(text) => write!(f, "differs: {text}"),
            Remark::Chosen(text) => f.write_str(text),
        }
    }
}
