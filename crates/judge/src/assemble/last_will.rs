//! Last wills: combines the results of all agents.

use super::merge::merge;
use pubmark_model::last_will::WillCounts;
use pubmark_model::protocol::{PackedHistogram, WillResult};
use pubmark_model::record::WillFigures;
use pubmark_stats::Histogram;

/// Returns the figures for a record; `None` if no agent reports last wills.
pub fn united<'a>(
    results: impl Iterator<Item = &'a WillResult>,
    remarks: &mut Vec<String>,
) -> Option<Box<WillFigures>> {
    let results: Vec<&WillResult> = results.collect();
    let mut counts = WillCounts::default();
    results.iter().for_each(|result| counts.add(&result.counts));
    let latency = merge(PackedHistogram::DIGITS, results.iter().filter_map(|result| result.latency.as_ref()), remarks);
    let latency_ns = latency.as_ref().and_then(Histogram::summary);
    (!results.is_empty()).then(|| Box::new(WillFigures { counts, latency_ns }))
}
