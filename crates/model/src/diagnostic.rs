//! Errors in files: message, place and advice.

use crate::login::without_logins;
use crate::printable::printable;
use std::fmt;

/// One error in a file. All errors of a file are reported at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Byte offset in the file, if the error has one place.
    pub offset: Option<usize>,
    /// The error message.
    pub message: String,
    /// Advice.
    pub help: Option<String>,
    /// True if the file's line may be shown with its value: the key is known, and its value is not
    /// a secret.
    pub shows_value: bool,
}

impl Diagnostic {
    /// Creates an error at a byte offset. The line is shown without its value, which may be a
    /// secret under a mistyped name.
    pub fn at(offset: usize, message: impl fmt::Display) -> Self {
        Diagnostic { offset: Some(offset), message: message.to_string(), help: None, shows_value: false }
    }

    /// Creates an error of a value that is not secret.
    pub fn at_value(offset: usize, message: impl fmt::Display) -> Self {
        Diagnostic { shows_value: true, ..Diagnostic::at(offset, message) }
    }

    /// Creates an error of the file as a whole.
    pub fn whole(message: impl fmt::Display) -> Self {
        Diagnostic { offset: None, message: message.to_string(), help: None, shows_value: false }
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, help: impl fmt::Display) -> Self {
        self.help = Some(help.to_string());
        self
    }
}

/// All errors of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// The file's name as the user gave it.
    pub file: String,
    /// The file's text, to show the lines with errors.
    pub text: String,
    /// The errors, in the order of their places.
    pub errors: Vec<Diagnostic>,
}

impl std::error::Error for Diagnostics {}

/// Returns line and column of a byte offset, both from 1. Columns count characters.
pub fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

/// Returns the part of a file's line that may be shown.
fn shown(line: &str, with_value: bool) -> Option<String> {
    // An `@` may belong to a login, and further values may follow the wrong one.
    if with_value && !line.contains('@') && line.matches('=').count() <= 1 {
        return Some(line.to_owned());
    }
    if let Some((key, _)) = line.split_once('=') {
        // Otherwise the `=` is within a value, in a list of several lines.
        let quoted = |quote: char| key.matches(quote).count() % 2 == 0;
        let plain = quoted('"') && quoted('\'') && !key.contains(['@', '\\', ',']);
        return plain.then(|| format!("{key}= …"));
    }
    // The head of a table: a list of values contains quotes or commas.
    let name = line.trim().trim_start_matches('[').trim_end_matches(']');
    let plain = name.chars().all(|c| c.is_alphanumeric() || "._- ".contains(c));
    (plain && line.trim_start().starts_with('[')).then(|| line.to_owned())
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let message = without_logins(&error.message);
            let (message, file) = (printable(&message), printable(&self.file));
            match error.offset {
                None => write!(f, "{file}: {message}")?,
                Some(offset) => {
                    let (line, column) = line_column(&self.text, offset);
                    write!(f, "{file}:{line}:{column}: {message}")?;
                    let source = self.text.lines().nth(line - 1).filter(|source| source.len() < 200);
                    if let Some(source) = source.and_then(|source| shown(source, error.shows_value)) {
                        let column = column.min(source.chars().count().max(1));
                        let gutter = line.to_string().len();
                        let source = printable(&source);
                        write!(f, "\n  {line} | {source}\n  {:gutter$} | {:>column$}", "", "^")?;
                    }
                }
            }
            if let Some(help) = &error.help {
                write!(f, "\n  help: {}", printable(help))?;
            }
        }
        Ok(())
    }
}

/// Returns the known name nearest to a mistyped one, if one is near enough.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(typed, name), name))
        .filter(|(distance, name)| *distance <= name.len().max(typed.len()) / 3)
        .min()
        .map(|(_, name)| name)
}

/// Returns the names that a mistyped one may stand for: the nearest, or else those that contain it.
pub fn meant<'a>(typed: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    /// Fewer letters occur in too many names.
    const PART: usize = 3;
    if let Some(name) = nearest(typed, known.clone()) {
        return Some(format!("`{name}`"));
    }
    let typed = typed.to_lowercase();
    let part =
        |name: &&str| typed.len() >= PART && (name.contains(&typed) || typed.contains(name) && name.len() >= PART);
    let names: Vec<String> = known.into_iter().filter(part).map(|name| format!("`{name}`")).collect();
    (!names.is_empty()).then(|| names.join(" or "))
}

/// Formats `did you mean …?`, or the list of known names.
pub fn suggestion<'a>(typed: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(meant) = meant(typed, known.clone()) {
        return format!("did you mean {meant}?");
    }
    let names: Vec<&str> = known.into_iter().collect();
    if names.is_empty() { "there are none here".into() } else { format!("known: {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_name_is_understood() {
        let known = ["mosquitto", "rabbitmq-mqtt", "rabbitmq-amqp", "nats"];
        assert_eq!(suggestion("rabbitmq", known), "did you mean `rabbitmq-mqtt` or `rabbitmq-amqp`?");
        assert_eq!(suggestion("mosquito", known), "did you mean `mosquitto`?", "a slip of the keys comes first");
        assert_eq!(suggestion("nats-server", known), "did you mean `nats`?");
        assert_eq!(suggestion("q", known), "known: mosquitto, rabbitmq-mqtt, rabbitmq-amqp, nats");
    }
}
