//! The figures that are compared: their names, which way is better, and how
//! they read.

use crate::figures::Column;
use crate::text;
use pubmark_model::diagnostic::suggestion;
use pubmark_stats::Better;

/// What is compared of every cell.
pub(super) const HEADLINES: [Column; 9] = [
    Column::LatencyP50,
    Column::LatencyP99,
    Column::LatencyP999,
    Column::Delivered,
    Column::DeliveredRatio,
    Column::Lost,
    Column::CpuPerMessage,
    Column::CpuCores,
    Column::ServerRss,
];

/// Short names, the first of a column the one that is shown.
const SHORT: [(&str, Column); 14] = [
    ("p50", Column::LatencyP50),
    ("p90", Column::LatencyP90),
    ("p95", Column::LatencyP95),
    ("p99", Column::LatencyP99),
    ("p999", Column::LatencyP999),
    ("p99.9", Column::LatencyP999),
    ("delivered", Column::Delivered),
    ("cpu", Column::CpuPerMessage),
    ("cpu_per_message", Column::CpuPerMessage),
    ("cores", Column::CpuCores),
    ("server_cores", Column::ServerCores),
    ("server_rss", Column::ServerRss),
    ("max", Column::LatencyMax),
    ("jitter", Column::Jitter),
];

/// Whether each run has a value of the figure, so that runs can be compared.
/// Multiples of the floor relate whole cells.
pub fn comparable(column: Column) -> bool {
    !matches!(column, Column::FloorLatency | Column::FloorDelivered)
}

/// The short name of a figure, where it has one, or else its column. Either
/// can be typed.
pub fn short_name(column: Column) -> &'static str {
    SHORT.iter().find(|(_, other)| *other == column).map_or(column.word(), |(name, _)| name)
}

/// A name that no figure has that can be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no figure{near}")]
pub struct UnknownColumn {
    /// What was written, harmless.
    name: String,
    /// What may have been meant, in words that follow others.
    near: String,
}

/// The figure of this name, short or a column of `summary.csv`.
///
/// # Errors
/// Where there is none that can be compared, with what may have been meant.
pub fn named(name: &str) -> Result<Column, UnknownColumn> {
    let columns = || Column::ALL.iter().copied().filter(|column| comparable(*column));
    let short = SHORT.iter().find(|(short, _)| *short == name).map(|(_, column)| *column);
    let found = short.or_else(|| columns().find(|column| column.word() == name));
    found.ok_or_else(|| {
        let known: Vec<&str> = SHORT.iter().map(|(short, _)| *short).chain(columns().map(Column::word)).collect();
        // Long names are slow to measure against, and mean none of these.
        let near = if name.len() > 60 { String::new() } else { format!(": {}", suggestion(name, known)) };
        UnknownColumn { name: text::clean(name, 60), near }
    })
}

/// Which way the figure is better, in a cell of this kind; `None` where
/// neither is. Processors kept busy are a cost at a given rate; unthrottled,
/// they may be what more messages are paid with.
pub(super) fn better(column: Column, unthrottled: bool) -> Option<Better> {
    match column {
        Column::Sent | Column::Delivered | Column::DeliveredBytes | Column::DeliveredRatio | Column::Connected => {
            Some(Better::Higher)
        }
        Column::Offered | Column::Acked | Column::FloorLatency | Column::FloorDelivered => None,
        Column::CpuCores | Column::ServerCores if unthrottled => None,
        _ => Some(Better::Lower),
    }
}

/// A value of the figure with its unit.
pub(super) fn shown(column: Column, value: f64) -> String {
    let word = column.word();
    match column {
        Column::DeliveredRatio => text::percent(value),
        Column::DeliveredBytes => format!("{}/s", text::bytes(value)),
        _ if word.contains("_ns") => text::time(value),
        _ if word.contains("_bytes") => text::bytes(value),
        Column::CpuCores | Column::ServerCores | Column::SwitchesPerMessage => text::number(value),
        _ => text::count(value),
    }
}

/// `+5.1 %`; a change that rounds to nothing has no sign.
pub(super) fn signed_percent(percent: f64) -> String {
    match percent.abs() {
        size if size.is_infinite() => format!("{}∞ %", sign(percent)),
        size if size < 0.05 => "0 %".into(),
        size if size < 9.95 => format!("{}{size:.1} %", sign(percent)),
        size if size < 1e4 => format!("{}{size:.0} %", sign(percent)),
        size => format!("× {}", text::number(percent.signum() * size / 100.0 + 1.0)),
    }
}

pub(super) fn sign(value: f64) -> char {
    if value < 0.0 { '−' } else { '+' }
}
