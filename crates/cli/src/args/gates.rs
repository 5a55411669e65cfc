//! Gates: what makes a command fail.

use clap::Args;
use std::path::PathBuf;

/// What makes a command fail, and where that is told.
#[derive(Args, Default)]
pub struct GateArgs {
    /// What makes it fail. A change, where there is a baseline: FIGURE > +PERCENT% or FIGURE < -PERCENT%, without the %
    /// an amount (figures are the columns of summary.csv, or p50, p90, p99, p999, delivered, cpu). Or a bound with a
    /// unit: 'p99 > 5ms', 'delivered < 99.9%'. Several with commas.
    #[arg(long, value_name = "FIGURE>BOUND")]
    pub fail_on: Vec<String>,
    /// What has to hold of each cell (with a baseline: of B): 'p99 < 5ms and lost = 0', by the figures of
    /// `pubmark capacity --until`.
    #[arg(long, value_name = "OBJECTIVE")]
    pub require: Vec<String>,
    /// Write what became of the gates as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}
