//! Bounds from which a disturbance counts, each with the figures that it affects. Each was set by an experiment that
//! disturbs runs by a known amount, `make verdicts`; `docs/accuracy.md` has the results.

use pubmark_model::record::FigureGroup;
use pubmark_model::units::{MILLISECOND, Ns};

/// Amounts from which each figure is affected.
pub type Bounds = &'static [(f64, FigureGroup)];

/// Returns the figures of `bounds` that this amount affects.
pub fn touched(bounds: Bounds, amount: f64) -> Vec<FigureGroup> {
    bounds.iter().filter(|(bound, _)| amount > *bound).map(|(_, figures)| *figures).collect()
}

/// Share of all processor time that the hypervisor took away, if messages are sent by a schedule. With 2 to 3 % of it
/// medians are 13 to 17 % higher, 99th percentiles two to four times, and a message costs a quarter more.
pub const STEAL: Bounds =
    &[(0.01, FigureGroup::LatencyP99), (0.02, FigureGroup::LatencyP50), (0.02, FigureGroup::Cost)];

/// Share of stolen processor time at `rate = "max"`, which uses all processors.
pub const STEAL_AT_MAX: Bounds = &[
    (0.01, FigureGroup::LatencyP99),
    (0.02, FigureGroup::LatencyP50),
    (0.02, FigureGroup::Rates),
    (0.02, FigureGroup::Cost),
];

/// Share of the machine's processors that other programs kept busy, if messages are sent by a schedule: up to a point,
/// the system finds another processor. From there on processors are awake when they are needed, and medians fall before
/// they rise. If others have most of the machine, 20,000 messages per second no longer get through. Undisturbed runs
/// show 2 to 5 %.
pub const FOREIGN: Bounds = &[
    (0.05, FigureGroup::LatencyP99),
    (0.25, FigureGroup::LatencyP50),
    (0.25, FigureGroup::Cost),
    (0.60, FigureGroup::Rates),
    (0.60, FigureGroup::Counts),
];

/// Share of processors busy with other programs at `rate = "max"`. The kernel's work between two processes counts as
/// others': up to 11 % on two processors.
pub const FOREIGN_AT_MAX: Bounds = &[
    (0.12, FigureGroup::LatencyP99),
    (0.12, FigureGroup::LatencyP50),
    (0.12, FigureGroup::Rates),
    (0.12, FigureGroup::Cost),
    (0.60, FigureGroup::Counts),
];

/// Share of the machine's processors that publishers kept busy waiting for due times: for the system, they are other
/// programs.
pub const AWAKE: Bounds =
    &[(0.25, FigureGroup::LatencyP50), (0.25, FigureGroup::LatencyP99), (0.25, FigureGroup::Cost)];

/// Share of the window in which an agent did not run. Messages due meanwhile arrive late, and all of them arrive.
pub const PAUSED: Bounds =
    &[(0.0, FigureGroup::LatencyP99), (0.05, FigureGroup::LatencyP50), (0.05, FigureGroup::Cost)];
/// Share of the window in which an agent did not run, at `rate = "max"`, where nothing is sent meanwhile.
pub const PAUSED_AT_MAX: Bounds = &[
    (0.0, FigureGroup::LatencyP99),
    (0.05, FigureGroup::LatencyP50),
    (0.05, FigureGroup::Rates),
    (0.05, FigureGroup::Cost),
];
/// If an agent stood still at the window's end, the numbers of messages sent and arrived in the window may differ: by
/// more than this share.
pub const PAUSED_RATES: f64 = 0.01;

/// Share of a fault's silence by which a pause of an agent, or the longest generator delay, may have lengthened it. A longer
/// one counts against rates, and so against the silence.
pub const WITHIN_SILENCE: f64 = 0.05;

/// Share of messages without a latency: not sent, lost or damaged. These might have been the slowest.
pub const WITHOUT_LATENCY: Bounds = &[(0.001, FigureGroup::LatencyP99), (0.05, FigureGroup::LatencyP50)];

/// Share of offered messages that must be sent.
pub const OFFERED: f64 = 0.999;

/// Ratio from which the median of the generator delay counts, over the bound on its 99th percentile (`max_send_lag`).
/// Messages that all come 60 to 270 µs late have the same headline.
pub const OWN_LAG_P50: f64 = 1.0;

/// Ratio of generator delay to latency, each at the same percentile, for messages that have the delay in their latency.
pub const OWN_LAG_WITHIN: f64 = 0.10;

/// Ratio of the longest generator delay to a latency up to which the delay does not count: messages that come this much
/// later leave a server this much later at most, so that no percentile moves by more.
pub const OWN_LAG_SMALL: f64 = 0.01;

/// Ratio of the clock uncertainty of two hosts to a latency between them: up to there it is quoted with that bound
/// beside it.
pub use pubmark_model::record::CLOCK_SHARE as CLOCK;

/// Ratio of the receiver's own part to the latency, each at the same percentile.
pub const RECEIVE: f64 = 0.25;

/// A trend counts if chance would make it in fewer than this share of runs …
pub const TREND_P: f64 = 0.01;
/// … and if it moves the figure by this much over the window.
pub const TREND_CHANGE: f64 = 0.25;
/// A backlog counts if it grew by more than this share of what was due …
pub const BACKLOG_GREW: f64 = 0.05;
/// … if this share was there at the window's start, and was worked off …
pub const BACKLOG_LEFT: f64 = 0.01;
/// … or if it rose to this share within the window, and fell.
pub const BACKLOG_ROSE: f64 = 0.05;
/// Ratio of the median of all arrivals to the median of the best quarter of slices, from which a backlog counts against
/// the median.
pub const BACKLOG_P50: f64 = 1.25;

/// Number of samples below which the 99th percentile is unreliable.
pub const P99_SAMPLES: u64 = 1_000;
/// Number of samples below which the median is unreliable.
pub const P50_SAMPLES: u64 = 100;

/// Share of the window from which a computing event loop keeps no schedule.
pub const BUSY: f64 = 0.97;
/// Ratio of generator delay to its bound below which a run proves by itself that its rate can be offered, whatever an
/// earlier calibration found.
pub const IN_TIME: f64 = 0.1;

/// Share of the window by which the snapshots at its edges may be late …
pub const LATE: f64 = 0.10;
/// … and a delay that is never too late, because a busy machine causes it, ns.
pub const LATE_NS: Ns = 50 * MILLISECOND;
