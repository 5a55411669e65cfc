//! Traces that a study replays. A resolved study has their hashes in its table `[traces]`.

use super::Study;
use super::parse::Parser;
use super::payloads::{BODIES, BODIES_REPLACE};
use crate::diagnostic::Diagnostic;
use crate::document::Table;
use crate::profile::trace::TraceFile;
use crate::setting::{Key, Settings, as_typed, key};
use crate::workload::resolve::WorkloadFiles;

/// The key of a trace, and the one of a flow of it.
const TRACE: &str = "trace";
const TRACE_FLOW: &str = "trace_flow";

/// Keys whose default a trace replaces.
const REPLACED: [&str; 3] = ["rate", "arrival", "payload"];

impl Study {
    /// Returns the values of a key of flows, wherever the study sets it.
    pub(super) fn values_of<'s>(&'s self, name: &'s str) -> impl Iterator<Item = String> + 's {
        let of_settings = move |settings: &Settings| key(name).and_then(|key| key.value(settings));
        let own = of_settings(&self.settings).into_iter();
        let of_flows = self.flows.iter().filter_map(move |flow| of_settings(&flow.settings));
        let axes = self.axes.iter().chain(self.parts.iter().flat_map(|part| &part.axes));
        let is_key = move |axis: &str| axis.rsplit('.').next() == Some(name);
        let on_axes = axes.filter(move |axis| is_key(&axis.name)).flat_map(|axis| axis.values.clone());
        own.chain(of_flows).chain(on_axes).map(|value| as_typed(&value))
    }

    /// Returns the traces that it needs and has not read, and the flows of traces that it names.
    pub fn missing_traces(&self) -> (Vec<String>, Vec<String>) {
        let is_missing = |name: &String| self.traces.get(name).is_none_or(|trace| trace.rows.is_empty());
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names.dedup();
            names
        };
        (sorted(self.values_of(TRACE).filter(is_missing).collect()), sorted(self.values_of(TRACE_FLOW).collect()))
    }

    /// Returns the contents of the files that its settings name.
    pub(crate) fn files(&self) -> WorkloadFiles<'_> {
        WorkloadFiles { sizes: &self.sizes, traces: &self.traces, payloads: &self.payloads }
    }

    /// Returns the table of traces.
    pub(super) fn traces_table(&self) -> toml::Table {
        self.traces.iter().map(|(name, trace)| (name.clone(), trace.sha256.clone().into())).collect()
    }
}

impl Parser<'_> {
    /// Returns the keys that keep no default, because the study does not set them and names a trace or messages of
    /// its own.
    pub(super) fn replaced_by_files(&self) -> Vec<&'static Key> {
        let is_set = |name: &&str| self.study.values_of(name).next().is_some();
        let of_trace = REPLACED.iter().filter(|_| is_set(&TRACE));
        let of_bodies = BODIES_REPLACE.iter().filter(|_| BODIES.iter().any(&is_set));
        let is_unset = |key: &&Key| key.value(&self.study.settings).is_none();
        of_trace.chain(of_bodies).filter_map(|name| key(name)).filter(is_unset).collect()
    }

    /// Reads the hashes of traces from a resolved study.
    pub(super) fn traces(&mut self, table: &Table) {
        for entry in &table.entries {
            let Some(value) = entry.one(&mut self.errors) else { continue };
            let is_hash = value.text.len() == 64 && value.text.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_hash {
                let trace = TraceFile { sha256: value.text.clone(), rows: Vec::new() };
                self.study.traces.insert(entry.key.clone(), trace);
            } else {
                let message = format!("`{}` is not the SHA-256 of a trace", value.text);
                self.errors.push(Diagnostic::at_value(value.at, message).help("leave [traces] out"));
            }
        }
    }
}
