//! Where a disturbance begins to count: for each, the figures that it moves and
//! from how much on. Each is set by an experiment that disturbs runs by a known
//! amount, `make verdicts`; `docs/accuracy.md` has what came out.

use pubmark_model::record::FigureGroup;
use pubmark_model::units::{MILLISECOND, Ns};

/// From how much of something on a figure is touched.
pub type Bounds = &'static [(f64, FigureGroup)];

/// The figures of `bounds` that so much touches.
pub fn touched(bounds: Bounds, amount: f64) -> Vec<FigureGroup> {
    bounds.iter().filter(|(bound, _)| amount > *bound).map(|(_, figures)| *figures).collect()
}

/// The share of all processor time that the hypervisor took away, where messages
/// are sent by a schedule. With 2 to 3 % of it medians are 13 to 17 % higher, 99th
/// percentiles two to four times, and a message costs a quarter more.
pub const STEAL: Bounds =
    &[(0.01, FigureGroup::LatencyP99), (0.02, FigureGroup::LatencyP50), (0.02, FigureGroup::Cost)];

/// The same at `rate = "max"`, where all that there is of the processors is used.
pub const STEAL_AT_MAX: Bounds = &[
    (0.01, FigureGroup::LatencyP99),
    (0.02, FigureGroup::LatencyP50),
    (0.02, FigureGroup::Rates),
    (0.02, FigureGroup::Cost),
];

/// The share of the machine's processors that others kept busy, where messages
/// are sent by a schedule: the system finds another processor, up to a point.
/// From there on processors are awake when they are wanted, and medians fall
/// before they rise. Where others have most of it, 20,000 messages a second no
/// longer get through. Undisturbed runs show 2 to 5 %.
pub const FOREIGN: Bounds = &[
    (0.05, FigureGroup::LatencyP99),
    (0.25, FigureGroup::LatencyP50),
    (0.25, FigureGroup::Cost),
    (0.60, FigureGroup::Rates),
    (0.60, FigureGroup::Counts),
];

/// The same at `rate = "max"`. What the kernel does between two processes counts
/// as others': up to 11 % on two processors.
pub const FOREIGN_AT_MAX: Bounds = &[
    (0.12, FigureGroup::LatencyP99),
    (0.12, FigureGroup::LatencyP50),
    (0.12, FigureGroup::Rates),
    (0.12, FigureGroup::Cost),
    (0.60, FigureGroup::Counts),
];

/// The share of the machine's processors that publishers kept awake before
/// their due times: to the system, they are others.
pub const AWAKE: Bounds =
    &[(0.25, FigureGroup::LatencyP50), (0.25, FigureGroup::LatencyP99), (0.25, FigureGroup::Cost)];

/// The share of the window in which an agent did not run. What was sent
/// meanwhile arrives late, and all of it arrives.
pub const PAUSED: Bounds =
    &[(0.0, FigureGroup::LatencyP99), (0.05, FigureGroup::LatencyP50), (0.05, FigureGroup::Cost)];
/// The same at `rate = "max"`, where nothing is sent meanwhile.
pub const PAUSED_AT_MAX: Bounds = &[
    (0.0, FigureGroup::LatencyP99),
    (0.05, FigureGroup::LatencyP50),
    (0.05, FigureGroup::Rates),
    (0.05, FigureGroup::Cost),
];
/// Where an agent stood still at the window's end, less arrives in it than was
/// sent in it, or more: by more than this share.
pub const PAUSED_RATES: f64 = 0.01;

/// The share of messages without a latency: not sent, lost or damaged. Those
/// would have been the slowest, as far as anybody knows.
pub const WITHOUT_LATENCY: Bounds = &[(0.001, FigureGroup::LatencyP99), (0.05, FigureGroup::LatencyP50)];

/// The share of offered messages that must be sent.
pub const OFFERED: f64 = 0.999;

/// What counts at the median of the generator's own lag, over the bound on its
/// 99th percentile (`max_send_lag`). Messages that all come 60 to 270 µs late
/// have the same headline.
pub const OWN_LAG_P50: f64 = 1.0;

/// The generator's own lag over the latency, each at the same percentile, of
/// messages that have it in their latency.
pub const OWN_LAG_WITHIN: f64 = 0.10;

/// What the clocks of two hosts may be apart over a latency from one to the other:
/// up to there it is quoted with that bound beside it.
pub use pubmark_model::record::CLOCK_SHARE as CLOCK;

/// The receiver's own part over the latency, each at the same percentile.
pub const RECEIVE: f64 = 0.25;

/// A trend counts where chance would make it in fewer of so many runs …
pub const TREND_P: f64 = 0.01;
/// … and it moves the figure by so much over the window.
pub const TREND_CHANGE: f64 = 0.25;
/// A backlog counts where it grew by more than this share of what was sent …
pub const BACKLOG_GREW: f64 = 0.05;
/// … where so much of it was there at the window's beginning, and was worked off …
pub const BACKLOG_LEFT: f64 = 0.01;
/// … or where it rose to so much within the window, and fell.
pub const BACKLOG_ROSE: f64 = 0.05;
/// The median of all arrivals over the median of the quarter of slices that
/// were best: what a backlog must do to it to count against it.
pub const BACKLOG_P50: f64 = 1.25;

/// Fewer samples than this say nothing of the 99th percentile.
pub const P99_SAMPLES: u64 = 1_000;
/// Fewer samples than this say nothing of the median.
pub const P50_SAMPLES: u64 = 100;

/// An event loop that computes for this share of the window keeps no schedule.
pub const BUSY: f64 = 0.97;
/// A run whose own lag is below this share of its bound proves by itself that
/// its rate can be offered, whatever a calibration found on another day.
pub const IN_TIME: f64 = 0.1;

/// The share of the window by which its edges may be looked at too late …
pub const LATE: f64 = 0.10;
/// … and what is never too late, because a busy machine makes it so, ns.
pub const LATE_NS: Ns = 50 * MILLISECOND;
