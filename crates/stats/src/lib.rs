//! The statistics of pubmark: latency histograms, percentiles, intervals, trend and ranking.
//!
//! Everything here is a pure function of its arguments: nothing reads a file, a clock or a source
//! of randomness (random numbers are drawn from a seed), so that a report made again years later
//! shows the same figures.
//!
//! Two rules hold throughout. Percentiles are never averaged: those of a run are taken from its
//! merged histograms, and over runs the median of each run's own is taken. An interval is never
//! invented: a single run has a value and no interval, and a ranking that would need one says
//! *undecided*.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod artefact;
mod capacity;
mod capacity_ranking;
mod change;
mod change_point;
mod codec;
mod direction;
mod estimate;
mod gamma;
mod histogram;
mod layout;
mod modes;
mod normal;
mod paired;
mod precise;
mod random;
mod ranking;
mod sequential;
mod student;
mod summary;
mod trend;
mod typical;

pub use artefact::{ARTEFACT_SAMPLES_MIN, Artefact, ArtefactStep, TIMERS_NS, artefacts};
pub use capacity::{CAPACITY_LEVEL, CapacityInterval, CapacitySearch};
pub use capacity_ranking::{CapacityStanding, KnownCapacity, rank_capacities};
pub use change::{APART, Change, FALSE_ALARM, RunOrder, Runs, Scale, change, change_p, holm};
pub use change_point::{ChangePoint, HISTORY_MIN, change_point};
pub use direction::Better;
pub use estimate::{Estimate, Interval, median, median_whole};
pub use histogram::{COUNT_MAX, Histogram, HistogramError, LATENCY_MAX_NS};
pub use modes::{Modes, modes};
pub use normal::{erfc, normal_cdf, normal_two_sided_p};
pub use paired::{
    LOOKS, PairedBound, PairedDecision, PairedOutcome, PairedReading, PairedTest, a_goes_first, next_look,
};
pub use precise::{PreciseFigure, precise_figure};
pub use random::Random;
pub use ranking::{
    BLOCKS_MIN, Blocks, Difference, Looks, PointInput, PointOutcome, REPEATS_MORE_MAX, RankedPoint, RankedTable,
    RankingInput, SAME_WITHIN, SystemOutcome, UndecidedReason, rank_table,
};
pub use sequential::{AlphaSpending, look_after};
pub use student::{student_two_sided_p, student_two_sided_t};
pub use summary::Summary;
pub use trend::{TREND_VALUES_MAX, TREND_VALUES_MIN, Trend, trend};
pub use typical::typical_run;
