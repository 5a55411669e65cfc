//! Reads the program that plays clients from a system file, if it is not pubmark itself.

use super::{AgentSpec, System};
use crate::diagnostic::Diagnostic;
use crate::document::{Entry, Scalar, Table};
use crate::protocol::{ROWS_VERSION, VERSION};
use crate::server::{PlaceError, fill_places};
use crate::setting::MOST_AGENTS;
use crate::units::parse_time;
use crate::workload::Transport;

/// Keys of `[agent]`.
const SIDES: [&str; 2] = ["publisher", "subscriber"];

impl AgentSpec {
    /// Reads `agent`: one command for both sides.
    pub(super) fn read(&mut self, entry: &Entry, errors: &mut Vec<Diagnostic>) {
        self.sending = words(entry, errors);
        self.receiving = self.sending.clone();
    }

    /// Reads `agent = { publisher = […], subscriber = […] }`.
    pub(super) fn read_sides(&mut self, table: &Table, errors: &mut Vec<Diagnostic>) {
        for entry in &table.entries {
            match entry.key.as_str() {
                "publisher" => self.sending = words(entry, errors),
                "subscriber" => self.receiving = words(entry, errors),
                _ => errors.push(entry.unknown("`agent`", SIDES)),
            }
        }
        if self.sending.is_empty() || self.receiving.is_empty() {
            errors.push(
                Diagnostic::at(table.at, "`agent` names a command for one side only")
                    .help("write `agent = { publisher = [\"…\"], subscriber = [\"…\"] }`, or one command for both"),
            );
        }
    }

    /// Reads `[env]`.
    pub(super) fn read_environment(&mut self, table: &Table, errors: &mut Vec<Diagnostic>) {
        for entry in &table.entries {
            if let Some(value) = entry.one(errors) {
                check(value, errors);
                self.environment.push((entry.key.clone(), value.text.clone()));
            }
        }
    }

    /// Reads `agents`, `agent_protocol` and `start_timeout`; false if the key is none of them.
    pub(super) fn read_key(&mut self, entry: &Entry, errors: &mut Vec<Diagnostic>) -> bool {
        if !["agents", "agent_protocol", "start_timeout"].contains(&entry.key.as_str()) {
            return false;
        }
        let Some(value) = entry.one(errors) else { return true };
        if entry.key == "agent_protocol" {
            match value.text.parse().ok().filter(|version| [VERSION, ROWS_VERSION].contains(version)) {
                Some(version) => self.protocol = version,
                None => errors.push(Diagnostic::at_value(
                    value.at,
                    format!("`agent_protocol` is {}: pubmark speaks {VERSION} and {ROWS_VERSION}", value.text),
                )),
            }
            return true;
        }
        if entry.key == "agents" {
            match value.text.parse().ok().filter(|count| (1..=MOST_AGENTS).contains(count)) {
                Some(count) => self.processes = count,
                None => errors.push(Diagnostic::at_value(
                    value.at,
                    format!("`agents` is {}: write how many processes a side has, 1 to {MOST_AGENTS}", value.text),
                )),
            }
            return true;
        }
        match parse_time(&value.text) {
            Ok(0) => errors.push(Diagnostic::at_value(value.at, "`start_timeout` is 0: no program is that quick")),
            Ok(ns) => self.start_timeout_ns = ns,
            Err(error) => errors.push(Diagnostic::at_value(value.at, error)),
        }
        true
    }

    /// Checks that agent settings have an agent.
    pub(super) fn check(&self, transports: &[Transport], errors: &mut Vec<Diagnostic>) {
        if self.differs() && transports.contains(&Transport::Inproc) {
            errors.push(
                Diagnostic::whole("over `inproc` one process plays both sides, and `agent` names a program for each")
                    .help("leave `inproc` out of `transports`"),
            );
        }
        let stray = [
            (!self.environment.is_empty(), "[env]"),
            (self.processes != 1, "`agents`"),
            (self.writes_rows(), "`agent_protocol`"),
        ];
        for (_, what) in stray.into_iter().filter(|(there, _)| *there && self.built_in()) {
            errors.push(
                Diagnostic::whole(format!("{what} is for an agent of its own, and the file names none"))
                    .help("name it (`agent = [\"program\", \"argument\"]`); a server has [server.environment]"),
            );
        }
    }
}

/// Returns a program, or a program and its arguments.
pub(super) fn words(entry: &Entry, errors: &mut Vec<Diagnostic>) -> Vec<String> {
    entry.values.iter().for_each(|value| check(value, errors));
    if entry.values.first().is_none_or(|program| program.text.is_empty()) {
        errors.push(
            Diagnostic::at(entry.key_at, format!("`{}` names no program", entry.key))
                .help("write `[\"program\", \"argument\"]`"),
        );
    }
    entry.values.iter().map(|value| value.text.clone()).collect()
}

fn check(value: &Scalar, errors: &mut Vec<Diagnostic>) {
    if let Err(error) = fill(&value.text, "", "") {
        errors.push(Diagnostic::at_value(value.at, error).help("places known here: {here}, {cache}"));
    }
}

/// Fills in the placeholders of an agent's command and environment.
fn fill(text: &str, here: &str, cache: &str) -> Result<String, PlaceError> {
    fill_places(text, |name, choice| match (name, choice) {
        ("here", None) => Ok(here.to_owned()),
        ("cache", None) => Ok(cache.to_owned()),
        _ => Err(PlaceError::Unknown(name.to_owned())),
    })
}

impl System {
    /// Returns a word of an agent's command or environment with its placeholders filled in; `cache`
    /// is the folder into which the system is installed.
    pub fn fill_for_agent(&self, text: &str, cache: &str) -> String {
        // Unknown placeholders were refused when the file was read.
        fill(text, &self.here, cache).unwrap_or_else(|_| text.to_owned())
    }
}
