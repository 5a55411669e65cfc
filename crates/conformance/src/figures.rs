//! Histograms of a result beside what they should hold.

use crate::wrong::{Wrong, due};
use pubmark_model::protocol::PackedHistogram;
use pubmark_model::units::{MILLISECOND, Ns, format_time};
use pubmark_stats::Histogram;

/// How long a message, a wake-up or a look at the clock may take at the median
/// on a machine that does something else as well. What is told apart is several
/// times as long.
pub const SLACK: Ns = 40 * MILLISECOND;

/// A histogram of a result.
pub fn read(name: &str, packed: Option<&PackedHistogram>) -> Result<Histogram, Wrong> {
    let packed = packed.ok_or_else(|| Wrong::did(format!("`{name}` is null, though there are values for it")))?;
    packed.read(PackedHistogram::DIGITS).map_err(|error| Wrong::did(format!("`{name}`: {error}")))
}

/// That a histogram has so many values.
pub fn counts(name: &str, histogram: &Histogram, count: u64) -> Result<(), Wrong> {
    due(histogram.count() == count, || format!("`{name}` holds {} values, not {count}", histogram.count()))
}

/// That a histogram holds these values, each by up to `late` longer at the
/// median and never shorter.
pub fn holds(name: &str, histogram: &Histogram, truth: &[Ns], late: Ns) -> Result<(), Wrong> {
    counts(name, histogram, truth.len() as u64)?;
    let mut sorted = truth.to_vec();
    sorted.sort_unstable();
    for (quantile, called) in [(0.0, "least"), (0.5, "median"), (0.9, "p90")] {
        let at = ((sorted.len() as f64 * quantile).ceil() as usize).clamp(1, sorted.len()) - 1;
        let (wanted, said) = (sorted[at], histogram.value_at(quantile.max(1e-9)));
        // A histogram of 3 digits rounds by up to a thousandth.
        let (least, most) = (wanted - wanted / 500, wanted + late);
        // A few may have been held up on the way, whatever the agent did.
        let most = if called == "p90" { most + 4 * late } else { most };
        due((least.min(wanted.saturating_sub(1_000))..=most).contains(&said), || {
            format!(
                "the {called} of `{name}` is {}; it was {} when sent and at most {} more on the way",
                format_time(said),
                format_time(wanted),
                format_time(late)
            )
        })?;
    }
    Ok(())
}
