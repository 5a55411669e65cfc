//! Gates: what makes a command fail.

use clap::Args;
use std::path::PathBuf;

/// What makes a command fail, and where that is told.
#[derive(Args, Default)]
pub struct GateArgs {
    /// Fail if this holds; several with commas. A change against the baseline has a sign: 'p99 > +5%',
    /// 'p99 > +2ms', 'delivered_per_s < -1%'. A bound has none: 'p99 > 5ms', 'delivered_ratio < 99.9%', 'lost > 0'.
    /// docs/figures.md lists the figures.
    #[arg(long, value_name = "FIGURE>BOUND")]
    pub fail_on: Vec<String>,
    /// Fail unless this holds of each cell (with a baseline: of B): 'p99 < 5ms and lost = 0'.
    #[arg(long, value_name = "OBJECTIVE")]
    pub require: Vec<String>,
    /// Write what became of the gates as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}
