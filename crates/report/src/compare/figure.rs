//! The figures that are compared of every cell, and changes in words.

use crate::text;
use pubmark_model::figure::Figure;

/// Figures that are compared for every cell.
pub(super) const HEADLINES: [Figure; 9] = [
    Figure::LATENCY_P50,
    Figure::LATENCY_P99,
    Figure::LATENCY_P999,
    Figure::DELIVERED,
    Figure::DELIVERED_RATIO,
    Figure::LOST,
    Figure::CPU_PER_MESSAGE,
    Figure::CPU_CORES,
    Figure::SERVER_MEMORY,
];

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
