//! Combines what several agents handed in.

use pubmark_model::protocol::PackedHistogram;
use pubmark_model::units::Ns;
use pubmark_stats::Histogram;

/// Merges histograms with this many digits. They were validated on arrival: one that cannot be added is remarked.
pub fn merge<'a>(
    digits: u8,
    packed: impl Iterator<Item = &'a PackedHistogram>,
    remarks: &mut Vec<String>,
) -> Option<Histogram> {
    let mut merged: Option<Histogram> = None;
    for packed in packed {
        let problem = match (packed.read(digits), &mut merged) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(histogram), Some(all)) => all.merge(&histogram).err().map(|error| error.to_string()),
            (Ok(histogram), none) => {
                *none = Some(histogram);
                None
            }
        };
        remarks.extend(problem.map(|problem| format!("a histogram of an agent cannot be used: {problem}")));
    }
    merged
}

/// Returns the number of times above a bound, by the histogram: one that is within its 0.1 % of the bound counts.
pub fn late(latency: &Histogram, bound_ns: Ns) -> u64 {
    latency.nonzero().filter(|(ns, _)| *ns > bound_ns).map(|(_, count)| count).sum()
}

/// Adds counts, element by element.
pub fn add_counts(all: &mut Vec<u64>, more: &[u64]) {
    if all.len() < more.len() {
        all.resize(more.len(), 0);
    }
    all.iter_mut().zip(more).for_each(|(all, more)| *all = all.saturating_add(*more));
}
