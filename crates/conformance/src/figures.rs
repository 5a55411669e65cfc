//! Histograms of a result beside what they should hold.

use crate::wrong::{Wrong, due};
use pubmark_model::protocol::{AgentResult, Features, PackedHistogram};
use pubmark_model::units::{MILLISECOND, Ns, format_time};
use pubmark_stats::Histogram;
use std::ops::RangeInclusive;
use std::time::Duration;

/// How long a message, a wake-up or a look at the clock may take at the median
/// on a machine that does something else as well. What is told apart is several
/// times as long.
pub const SLACK: Ns = 40 * MILLISECOND;

/// For how long an agent is stopped, and what it may call that in `pauses`: it looks now
/// and then, and the machine may let it wait.
pub const STOP: Duration = Duration::from_millis(400);
const STOP_SEEN: RangeInclusive<Ns> = 250 * MILLISECOND..=600 * MILLISECOND;

/// That an agent which says that it tells its pauses has told that of [`STOP`].
pub fn paused(features: &Features, agent: &AgentResult) -> Result<(), Wrong> {
    if !features.pauses {
        return Ok(());
    }
    let pauses = agent.pauses.ok_or_else(|| Wrong::did("its `hello` says `pauses`, and its result has none"))?;
    due(pauses.count >= 1 && STOP_SEEN.contains(&pauses.longest_ns), || {
        format!(
            "it was stopped for {} ms; `pauses` says {} of {} ms at most",
            STOP.as_millis(),
            pauses.count,
            pauses.longest_ns / MILLISECOND
        )
    })
}

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
