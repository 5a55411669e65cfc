//! Reading the keys of a table: typed, with all errors at once.

use crate::yaml::{YamlEntry, YamlNode, YamlValue};
use pubmark_model::diagnostic::{Diagnostic, suggestion};

/// Keys of one table while they are read.
pub(crate) struct Fields<'a> {
    entries: &'a [YamlEntry],
    known: Vec<&'static str>,
    /// False if the values can be secrets, and are not shown.
    shows_values: bool,
    errors: Vec<Diagnostic>,
}

impl<'a> Fields<'a> {
    /// Begins to read a table. `what` names it in the error if it is none.
    pub fn of(node: &'a YamlNode, what: &str, shows_values: bool) -> Result<Fields<'a>, Diagnostic> {
        match &node.value {
            YamlValue::Table(entries) => Ok(Fields { entries, known: Vec::new(), shows_values, errors: Vec::new() }),
            other => {
                Err(Diagnostic::at(node.offset, format!("{what} must be a table of keys, but is {}", other.kind())))
            }
        }
    }

    /// Returns the value of a key; `None` if it is absent or empty.
    pub fn node(&mut self, key: &'static str) -> Option<&'a YamlNode> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        let node = &self.entries.iter().find(|entry| entry.key == key)?.node;
        (node.value != YamlValue::Null).then_some(node)
    }

    /// Returns whether the file has a key.
    pub fn has(&mut self, key: &'static str) -> bool {
        self.node(key).is_some()
    }

    /// Returns a whole number, 0 or more.
    pub fn count(&mut self, key: &'static str) -> Option<u64> {
        let node = self.node(key)?;
        let number = match node.value {
            YamlValue::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        };
        if number.is_none() {
            let found = match &node.value {
                YamlValue::Integer(number) => format!("{number}"),
                YamlValue::Text(text) if text.contains("${") => "a placeholder".into(),
                other => other.kind().into(),
            };
            self.wrong(
                key,
                format!("{key} must be a whole number, 0 or more, but is {found}"),
                "Write the number itself.",
            );
        }
        number
    }

    /// Returns a number from 0 to 1.
    pub fn share(&mut self, key: &'static str) -> Option<f64> {
        let node = self.node(key)?;
        let share = match node.value {
            YamlValue::Integer(number) => Some(number as f64),
            YamlValue::Float(number) => Some(number),
            _ => None,
        };
        let share = share.filter(|share| (0.0..=1.0).contains(share));
        if share.is_none() {
            self.wrong(key, format!("{key} must be a number from 0 to 1"), "Write the number itself, such as 0.5.");
        }
        share
    }

    /// Returns a text.
    pub fn text(&mut self, key: &'static str) -> Option<&'a str> {
        let node = self.node(key)?;
        if let YamlValue::Text(text) = &node.value {
            return Some(text);
        }
        self.wrong(key, format!("{key} must be a text, but is {}", node.value.kind()), "Write it in quotes.");
        None
    }

    /// Returns a flag.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        let node = self.node(key)?;
        if let YamlValue::Flag(flag) = node.value {
            return Some(flag);
        }
        self.wrong(key, format!("{key} must be true or false, but is {}", node.value.kind()), "Write true or false.");
        None
    }

    /// Adds an error at a key, with advice.
    pub fn wrong(&mut self, key: &str, message: impl Into<String>, help: impl Into<String>) {
        let (message, help): (String, String) = (message.into(), help.into());
        let error = match self.entries.iter().find(|entry| entry.key == key) {
            None => Diagnostic::whole(message),
            Some(entry) if self.shows_values => Diagnostic::at_value(entry.node.offset.max(entry.offset), message),
            Some(entry) => Diagnostic::at(entry.node.offset.max(entry.offset), message),
        };
        self.errors.push(if help.is_empty() { error } else { error.help(help) });
    }

    /// Returns whether nothing was wrong so far.
    pub fn is_right(&self) -> bool {
        self.errors.is_empty()
    }

    /// Returns all errors in the order of their places; keys that nobody asked for are errors.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        for entry in self.entries {
            if !self.known.contains(&entry.key.as_str()) {
                let error = Diagnostic::at(entry.offset, format!("unknown key `{}`", entry.key));
                self.errors.push(error.help(suggestion(&entry.key, self.known.iter().copied())));
            }
        }
        self.errors.sort_by_key(|error| error.offset);
        self.errors
    }
}
