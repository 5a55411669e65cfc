//! Files of messages that a study sends. A resolved study has their contents in its table `[payloads]`.

use super::Study;
use super::parse::Parser;
use crate::diagnostic::Diagnostic;
use crate::document::Table;
use crate::payload::PayloadBodies;

/// Keys of the bodies of messages.
pub(super) const BODIES: [&str; 2] = [PAYLOAD_FILE, "payload_template"];
/// Keys whose default they replace.
pub(super) const BODIES_REPLACE: [&str; 2] = ["payload", "payload_content"];

/// The key of a file of messages.
const PAYLOAD_FILE: &str = "payload_file";

impl Study {
    /// Returns the names of the files of messages that it needs and does not have.
    pub fn missing_payloads(&self) -> Vec<String> {
        let is_missing = |name: &String| !self.payloads.contains_key(name);
        let mut names: Vec<String> = self.values_of(PAYLOAD_FILE).filter(is_missing).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns the table of messages, from which they are read again.
    pub(super) fn payloads_table(&self) -> toml::Table {
        let text = |bodies: &PayloadBodies| bodies.lines().map_or_else(String::new, |lines| lines.join("\n"));
        self.payloads.iter().map(|(name, bodies)| (name.clone(), text(bodies).into())).collect()
    }
}

impl Parser<'_> {
    /// Reads the messages of files from a resolved study.
    pub(super) fn payloads(&mut self, table: &Table) {
        for entry in &table.entries {
            let Some(value) = entry.one(&mut self.errors) else { continue };
            match PayloadBodies::of_lines(&entry.key, &value.text) {
                Ok(bodies) => drop(self.study.payloads.insert(entry.key.clone(), bodies)),
                Err(error) => self.errors.push(Diagnostic::at_value(value.at, error)),
            }
        }
    }
}
