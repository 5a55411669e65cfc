//! Reads the cluster of a server from a system file.

use super::deployment::Deployment;
use crate::cluster::{ClusterProbe, ClusterSpec};
use crate::diagnostic::Diagnostic;
use crate::document::{Entry, Table, flag};

const CLUSTER: [&str; 6] = ["name", "replicas", "beside", "discovery", "standby_log", "cut_links"];
const PROBE: [&str; 5] = ["http", "command", "path", "is", "count"];

impl Deployment {
    /// Reads `[cluster]`.
    pub(super) fn read_cluster(&mut self, table: &Table, errors: &mut Vec<Diagnostic>) {
        let mut cluster = self.server.cluster.take().unwrap_or_default();
        for entry in &table.entries {
            match entry.key.as_str() {
                "name" => cluster.name = self.text(entry, errors),
                "replicas" => cluster.replicas = plain(entry, errors),
                "beside" => cluster.beside = self.list(entry, errors),
                "discovery" => cluster.discovery = self.text(entry, errors),
                "standby_log" => cluster.standby_log = plain(entry, errors),
                "cut_links" => cluster.cut_links = table.words("cut_links", flag, errors).contains(&true),
                _ => errors.push(entry.unknown("[cluster]", CLUSTER)),
            }
        }
        self.server.cluster = Some(cluster);
    }

    /// Reads `[[cluster.joined]]` or `[cluster.leader]`.
    pub(super) fn read_probe(&mut self, is_leader: bool, table: &Table, errors: &mut Vec<Diagnostic>) {
        let mut probe = ClusterProbe::default();
        for entry in &table.entries {
            match entry.key.as_str() {
                "http" => probe.http = self.text(entry, errors),
                "command" => probe.command = self.list(entry, errors),
                "path" => probe.path = plain(entry, errors),
                "is" => probe.is = self.text(entry, errors),
                "count" => probe.count = self.text(entry, errors),
                _ => errors.push(entry.unknown(&format!("[{}]", table.name), PROBE)),
            }
        }
        if probe.http.is_empty() == probe.command.is_empty() {
            errors.push(
                Diagnostic::at(table.at, format!("[{}] asks nothing, or in two ways", table.name))
                    .help("write either `http` or `command`"),
            );
        }
        if !probe.http.is_empty() && probe.path.is_empty() {
            errors.push(Diagnostic::at(table.at, format!("[{}] has no `path` into the JSON", table.name)));
        }
        let cluster = self.server.cluster.get_or_insert_default();
        if is_leader {
            cluster.leader = Some(probe);
        } else {
            cluster.joined.push(probe);
        }
    }
}

impl ClusterSpec {
    /// Checks what no table shows alone.
    pub(super) fn check(&self, at: usize, errors: &mut Vec<Diagnostic>) {
        if self.joined.is_empty() {
            errors.push(
                Diagnostic::at(
                    at,
                    "[cluster] has no [[cluster.joined]]: nothing would show that its members have joined",
                )
                .help("write an `http` or a `command`, and the `is` or the `count` that is expected"),
            );
        }
        if self.joined.iter().any(|probe| probe.is.is_empty() && probe.count.is_empty()) {
            errors.push(Diagnostic::at(at, "a [[cluster.joined]] has neither `is` nor `count`"));
        }
        if self.leader.is_some() && self.name.is_empty() {
            errors.push(
                Diagnostic::at(at, "[cluster] has a [cluster.leader], but no `name`")
                    .help("write the name by which a member is called in the answer, such as `name = \"n{member}\"`"),
            );
        }
    }
}

fn plain(entry: &Entry, errors: &mut Vec<Diagnostic>) -> String {
    entry.one(errors).map(|value| value.text.clone()).unwrap_or_default()
}
