//! Gates: bounds on figures that decide the exit code.

use clap::Args;
use std::path::PathBuf;

/// Gates of a command, and a file for their outcome.
#[derive(Args, Default)]
pub struct GateArgs {
    /// Fail if a figure crosses a bound: 'p99 > 5ms', or (ab, compare) changes by more: 'p99 > +5%';
    /// separate several with commas (docs/figures.md).
    #[arg(long, value_name = "CONDITION")]
    pub fail_on: Vec<String>,
    /// Fail unless every cell (of B) meets this: 'p99 < 5ms and lost = 0'.
    #[arg(long, value_name = "OBJECTIVE")]
    pub require: Vec<String>,
    /// Write the outcome of the gates as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}
