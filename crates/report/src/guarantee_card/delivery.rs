//! Rows of the guarantee card that are of all runs together: order, duplicates and redelivery.

use crate::document::{Entry, Head, Mark, Note, Row, Table};
use crate::report::Report;
use crate::text::{NONE, clean, whole};
use pubmark_model::record::RunRecord;
use pubmark_model::system::System;
use pubmark_model::wire_protocol::Protocol;
use serde::Serialize;
use std::collections::BTreeMap;

/// Longest statement that is shown, characters.
const STATEMENT_CHARS: usize = 200;

const ORDER: &str = "out of order within a publisher";
const ORDER_ACROSS: &str = "out of order across publishers";
const DUPLICATES: &str = "arrived again";
const REDELIVERY: &str = "redelivered against its protocol";
/// No ledger of a subscriber compares the times of two publishers.
const NO_ORDER_ACROSS: &str = "pubmark compares only messages of one publisher";
const NO_REDELIVERY: &str = "pubmark checks only what MQTT and AMQP say on redelivery";

/// A count over all runs of a quality of service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct DeliveryRow {
    /// What is counted.
    what: &'static str,
    /// Statement of the protocol that was broken, if the count is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<String>,
    /// Quality of service; `None` if it was not measured at all.
    qos: Option<u64>,
    /// Runs that were counted.
    runs: u64,
    /// Copies that they delivered, each counted once.
    delivered: u64,
    /// Copies, or violations of the statement.
    count: Option<u64>,
    /// Reason why there is no count.
    not_measured: Option<&'static str>,
}

/// Such a row as the page shows it.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "DeliveryRow"))]
pub(super) struct DeliveryRowView {
    /// What is counted, or the statement that was broken.
    what: String,
    qos: Option<u64>,
    runs: u64,
    delivered: u64,
    /// Null if it is not measured.
    count: Option<u64>,
    /// Why it is not measured.
    why: Option<&'static str>,
}

/// Counts of the runs of a quality of service.
#[derive(Default)]
struct Sums {
    runs: u64,
    delivered: u64,
    reordered: u64,
    duplicated: u64,
    violations: BTreeMap<String, u64>,
}

/// Returns the rows of these runs: by quality of service, and at the end what no run measures.
pub(super) fn rows<'a>(report: &Report, runs: impl Iterator<Item = &'a RunRecord>) -> Vec<DeliveryRow> {
    let mut by_qos: BTreeMap<u64, Sums> = BTreeMap::new();
    for run in runs {
        let sums = by_qos.entry(u64::from(run.workload.qos)).or_default();
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut sums.runs, 1);
        add(&mut sums.delivered, run.counts.delivered);
        add(&mut sums.reordered, run.counts.reordered);
        add(&mut sums.duplicated, run.counts.duplicated);
        for (statement, count) in &run.violations {
            add(sums.violations.entry(clean(statement, STATEMENT_CHARS)).or_default(), *count);
        }
    }
    if by_qos.is_empty() {
        return Vec::new();
    }
    let checks = |system: &System| matches!(system.protocol(), Some(Protocol::Mqtt | Protocol::Amqp));
    let is_checked = report.cells().iter().all(|result| checks(&result.cell.system));
    let mut rows = Vec::new();
    for (qos, sums) in &by_qos {
        let row = |what, statement, count| DeliveryRow {
            what,
            statement,
            qos: Some(*qos),
            runs: sums.runs,
            delivered: sums.delivered,
            count: Some(count),
            not_measured: None,
        };
        rows.push(row(ORDER, None, sums.reordered));
        rows.push(row(DUPLICATES, None, sums.duplicated));
        rows.extend(sums.violations.iter().map(|(said, count)| row(REDELIVERY, Some(said.clone()), *count)));
        // At QoS 0 nothing is redelivered.
        if is_checked && *qos > 0 && sums.violations.is_empty() {
            rows.push(row(REDELIVERY, None, 0));
        }
    }
    let unknown = |what, why| DeliveryRow {
        what,
        statement: None,
        qos: None,
        runs: 0,
        delivered: 0,
        count: None,
        not_measured: Some(why),
    };
    rows.push(unknown(ORDER_ACROSS, NO_ORDER_ACROSS));
    let may_redeliver = by_qos.keys().any(|qos| *qos > 0);
    if may_redeliver && !is_checked && by_qos.values().all(|sums| sums.violations.is_empty()) {
        rows.push(unknown(REDELIVERY, NO_REDELIVERY));
    }
    rows
}

/// Returns the rows as the page shows them.
pub(super) fn view(rows: &[DeliveryRow]) -> Vec<DeliveryRowView> {
    let view = |row: &DeliveryRow| DeliveryRowView {
        what: row.text(),
        qos: row.qos,
        runs: row.runs,
        delivered: row.delivered,
        count: row.count,
        why: row.not_measured,
    };
    rows.iter().map(view).collect()
}

/// Returns the rows as a table; `None` without any.
pub(super) fn table(rows: &[DeliveryRow]) -> Option<Table> {
    let heads = [("of all messages", false), ("QoS", true), ("runs", true), ("delivered", true), ("count", true)];
    let number = |amount: u64| Entry::plain(whole(amount as f64));
    let measured = rows.iter().filter(|row| row.not_measured.is_none());
    let shown = measured.map(|row| Row {
        entries: vec![
            Entry::plain(row.text()),
            Entry::plain(row.qos.map_or_else(|| NONE.to_owned(), |qos| qos.to_string())),
            number(row.runs),
            number(row.delivered),
            row.count.map_or_else(Entry::none, number),
        ],
        mark: Mark::Plain,
        bar: None,
    });
    let unknown = rows.iter().filter_map(|row| Some(format!("{}: not measured: {}", row.what, row.not_measured?)));
    (!rows.is_empty()).then(|| Table {
        title: "Order, duplicates and redelivery in all runs".into(),
        heads: heads.into_iter().map(|(name, is_numeric)| Head::new(name, is_numeric, 0)).collect(),
        groups: vec![shown.collect()],
        notes: unknown.map(Note::on_rows).collect(),
        ends_in_prose: false,
        whole: "--json",
        bars: None,
    })
}

impl DeliveryRow {
    fn text(&self) -> String {
        self.statement.clone().unwrap_or_else(|| self.what.to_owned())
    }
}
