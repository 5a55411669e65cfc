//! Last wills that did not arrive. Those that were not due are violations of the protocol.

use pubmark_model::record::RunRecord;

/// Describes them.
pub fn missing(record: &RunRecord) -> Option<String> {
    let counts = record.wills.as_ref()?.counts;
    let missing = counts.due.saturating_sub(counts.received);
    let due = counts.due;
    (missing > 0).then(|| format!("{missing} of {due} last wills had not arrived when the drain ended"))
}
