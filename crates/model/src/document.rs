//! TOML with places: the tables of a file, read strictly, with all errors collected.

use crate::diagnostic::{Diagnostic, suggestion};
use crate::value::ValueError;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Text of a scalar with its place in the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scalar {
    pub text: String,
    pub at: usize,
}

/// A value of one key: a scalar or a list of scalars.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub key: String,
    pub key_at: usize,
    pub values: Vec<Scalar>,
    pub is_list: bool,
}

/// A table under a dotted name, with its scalar entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub name: String,
    pub at: usize,
    pub entries: Vec<Entry>,
}

/// A file's tables in order. Tables of an array of tables share their name.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// True if the file is valid TOML; if not, there are no tables.
    pub sound: bool,
    pub tables: Vec<Table>,
}

const MAX_ERRORS: usize = 50;
const MAX_DEPTH: usize = 8;

impl Document {
    /// Parses a file into tables. Syntax errors are collected, not fatal.
    pub fn parse(text: &str, errors: &mut Vec<Diagnostic>) -> Document {
        let (root, syntax) = DeTable::parse_recoverable(text);
        let mut document = Document { sound: syntax.is_empty(), tables: Vec::new() };
        for error in syntax.iter().take(MAX_ERRORS) {
            let at = error.span().map_or(0, |span: Range<usize>| span.start);
            errors.push(Diagnostic::at(at, error.message().trim()));
        }
        if document.sound {
            document.walk(String::new(), 0, root.get_ref(), 0, errors);
        }
        document
    }

    fn walk(&mut self, name: String, at: usize, table: &DeTable<'_>, depth: usize, errors: &mut Vec<Diagnostic>) {
        if depth > MAX_DEPTH {
            errors.push(Diagnostic::at(at, "tables are nested too deeply"));
            return;
        }
        let mine = self.tables.len();
        self.tables.push(Table { name: name.clone(), at, entries: Vec::new() });
        for (key, value) in table {
            let key_at = key.span().start;
            let path = if name.is_empty() { key.get_ref().to_string() } else { format!("{name}.{}", key.get_ref()) };
            match value.get_ref() {
                DeValue::Table(inner) => self.walk(path, key_at, inner, depth + 1, errors),
                DeValue::Array(items) if items.iter().any(|item| item.get_ref().is_table()) => {
                    for item in items {
                        match item.get_ref() {
                            DeValue::Table(inner) => {
                                self.walk(path.clone(), item.span().start, inner, depth + 1, errors)
                            }
                            _ => errors.push(Diagnostic::at(
                                item.span().start,
                                "a list holds either tables or plain values, not both",
                            )),
                        }
                    }
                }
                other => {
                    let (items, is_list) = match other {
                        DeValue::Array(items) => (items.iter().collect(), true),
                        _ => (vec![value], false),
                    };
                    let values: Vec<Scalar> = items.iter().filter_map(|item| scalar(item, errors)).collect();
                    // An invalid value has been reported, so its key is left out.
                    if values.len() == items.len() {
                        let key = key.get_ref().to_string();
                        self.tables[mine].entries.push(Entry { key, key_at, values, is_list });
                    }
                }
            }
        }
    }
}

fn scalar(value: &Spanned<DeValue<'_>>, errors: &mut Vec<Diagnostic>) -> Option<Scalar> {
    let at = value.span().start;
    let text = match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        _ => {
            errors.push(Diagnostic::at(at, "a text, a decimal number, true or false is wanted here"));
            return None;
        }
    };
    Some(Scalar { text, at })
}

impl Entry {
    /// Returns the value of a key that takes one; reports a list or an empty value.
    pub fn one<'a>(&'a self, errors: &mut Vec<Diagnostic>) -> Option<&'a Scalar> {
        if self.is_list {
            errors.push(
                Diagnostic::at(self.key_at, format!("`{}` takes one value, not a list", self.key))
                    .help("a list of values to compare belongs into [axes]"),
            );
            return None;
        }
        self.values.first()
    }

    /// Creates the error that this key is not one of `known`.
    pub fn unknown<'a>(&self, place: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Diagnostic {
        Diagnostic::at(self.key_at, format!("unknown key `{}` in {place}", self.key)).help(suggestion(&self.key, known))
    }
}

impl Table {
    /// Parses the words of a key's list; empty if the key is absent.
    pub fn words<T: Copy, E: std::fmt::Display>(
        &self,
        key: &str,
        parse: fn(&str) -> Result<T, E>,
        errors: &mut Vec<Diagnostic>,
    ) -> Vec<T> {
        let Some(entry) = self.entries.iter().find(|entry| entry.key == key) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for value in &entry.values {
            match parse(&value.text) {
                Ok(word) => found.push(word),
                Err(error) => errors.push(Diagnostic::at_value(value.at, error)),
            }
        }
        found
    }

    /// Returns the texts of a key's list; empty if the key is absent.
    pub fn texts(&self, key: &str) -> Vec<String> {
        let entry = self.entries.iter().find(|entry| entry.key == key);
        entry.map(|entry| entry.values.iter().map(|value| value.text.clone()).collect()).unwrap_or_default()
    }
}

/// Parses `true` or `false`.
pub(crate) fn flag(text: &str) -> Result<bool, ValueError> {
    text.parse().map_err(|_| ValueError::Flag(text.to_owned()))
}
