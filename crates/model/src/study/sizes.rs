//! Files of sizes that payloads of a study name. A resolved study has their contents in its table `[sizes]`.

use super::Study;
use super::parse::Parser;
use crate::diagnostic::Diagnostic;
use crate::document::Table;
use crate::payload::{Class, Payload, PayloadSizes, read_sizes};
use crate::setting::{Settings, as_typed, key};

/// The key of sizes of messages.
const PAYLOAD: &str = "payload";

impl Study {
    /// Returns the names of the files of sizes that it needs and does not have.
    pub fn missing_sizes(&self) -> Vec<String> {
        let of_settings = |settings: &Settings| key(PAYLOAD).and_then(|key| key.value(settings));
        let own = of_settings(&self.settings).into_iter();
        let of_flows = self.flows.iter().filter_map(|flow| of_settings(&flow.settings));
        let axes = self.axes.iter().chain(self.parts.iter().flat_map(|part| &part.axes));
        let on_axes = axes.filter(|axis| axis.name == PAYLOAD).flat_map(|axis| axis.values.clone());
        let mut names: Vec<String> = Vec::new();
        for value in own.chain(of_flows).chain(on_axes) {
            if let Ok(Payload::File(name)) = Payload::parse(&as_typed(&value))
                && !self.sizes.contains_key(&name)
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        names
    }

    /// Returns the table of sizes, from which they are read again.
    pub(super) fn sizes_table(&self) -> toml::Table {
        let line = |class: &Class| format!("{} {}", class.least, class.weight);
        let text = |sizes: &PayloadSizes| sizes.classes().iter().map(line).collect::<Vec<String>>().join("\n");
        self.sizes.iter().map(|(name, sizes)| (name.clone(), text(sizes).into())).collect()
    }
}

impl Parser<'_> {
    /// Reads the sizes of files from a resolved study.
    pub(super) fn sizes(&mut self, table: &Table) {
        for entry in &table.entries {
            let Some(value) = entry.one(&mut self.errors) else { continue };
            match read_sizes(&entry.key, &value.text) {
                Ok(sizes) => drop(self.study.sizes.insert(entry.key.clone(), sizes)),
                Err(error) => self.errors.push(Diagnostic::at_value(value.at, error)),
            }
        }
    }
}
