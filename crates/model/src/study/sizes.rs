//! Files of sizes that payloads of a study name. A resolved study has their contents in its table `[sizes]`.

use super::Study;
use super::parse::Parser;
use crate::capacity::LoadAxis;
use crate::diagnostic::Diagnostic;
use crate::document::Table;
use crate::payload::{Payload, PayloadSizes, SizeClass, read_sizes};
use crate::setting::{Settings, as_typed, key};
use serde_json::Value;

/// The key of sizes of messages.
const PAYLOAD: &str = "payload";

impl Study {
    /// Returns the sizes of messages that it sets, as typed.
    fn payloads(&self) -> impl Iterator<Item = Payload> {
        let of_settings = |settings: &Settings| key(PAYLOAD).and_then(|key| key.value(settings));
        let own = of_settings(&self.settings).into_iter();
        let of_flows = self.flows.iter().filter_map(|flow| of_settings(&flow.settings));
        let axes = self.axes.iter().chain(self.parts.iter().flat_map(|part| &part.axes));
        let on_axes = axes.filter(|axis| axis.name == PAYLOAD).flat_map(|axis| axis.values.clone());
        let all: Vec<Value> = own.chain(of_flows).chain(on_axes).collect();
        all.into_iter().filter_map(|value| Payload::parse(&as_typed(&value)).ok())
    }

    /// Returns the names of the files of sizes that it needs and does not have.
    pub fn missing_sizes(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for payload in self.payloads() {
            if let Payload::File(name) = payload
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
        let line = |class: &SizeClass| format!("{} {}", class.least, class.weight);
        let text = |sizes: &PayloadSizes| sizes.classes().iter().map(line).collect::<Vec<String>>().join("\n");
        self.sizes.iter().map(|(name, sizes)| (name.clone(), text(sizes).into())).collect()
    }
}

impl Parser<'_> {
    /// Refuses sizes that vary where a search changes the size.
    pub(super) fn check_sizes(&mut self) {
        let Some(goal) = &self.study.capacity else { return };
        let varies = |payload: &Payload| !matches!(payload, Payload::Constant(_));
        if let Some(payload) =
            self.study.payloads().find(varies).filter(|_| goal.loads().any(|over| over == LoadAxis::Payload))
        {
            let message = format!("[capacity] cannot search over `payload`, which is `{payload}`");
            self.errors.push(Diagnostic::whole(message).help("set one size, or search over another load"));
        }
    }

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
