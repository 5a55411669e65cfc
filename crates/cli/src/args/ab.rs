//! Arguments of `pubmark ab`.

use super::gates::GateArgs;
use super::measure::MeasureArgs;
use super::workload::WorkloadArgs;
use clap::Args;

/// `pubmark ab`
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 every gate holds; 1 a gate is broken; 2 usage error or bad file; 3 a gate is open \
after the budget, no run is usable, or the command was interrupted.

Examples:
  pubmark ab mosquitto --pairs 5 --rate 400 --qos 1 \\
      --a options.max_inflight_messages=20 --b options.max_inflight_messages=1 \\
      --fail-on 'p99 > +10%'
  pubmark ab zeromq --transport tcp --a options.library=/opt/old/libzmq.so \\
      --b options.library=/opt/new/libzmq.so --fail-on 'p99 > +5%' --budget 20m
  pubmark ab my/study.toml --a system=./old.toml --b system=./new.toml \\
      --fail-on 'p99 > +10%' --require 'lost = 0' --junit gates.xml")]
pub struct AbArgs {
    /// Name or file of a system, URL of a running server, or name, file or folder of a study.
    pub target: String,
    /// Set a key in A, the baseline: a study key, options.NAME or system.
    #[arg(long, value_name = "KEY=VALUE")]
    pub a: Vec<String>,
    /// Set a key in B, which is compared with A.
    #[arg(long, value_name = "KEY=VALUE")]
    pub b: Vec<String>,
    /// Gates on changes and figures.
    #[command(flatten)]
    pub gates: GateArgs,
    /// Stop after this time, or when every gate is decided.
    #[arg(long, value_name = "T", default_value = "10m")]
    pub budget: String,
    /// Measure each run for this long [default: the study's, or 3s].
    #[arg(long, value_name = "T")]
    pub duration: Option<String>,
    /// Use only these values of a study's axis, such as rate=100,1000.
    #[arg(long, value_name = "AXIS=VALUES")]
    pub only: Vec<String>,
    /// Refused: this command ranks no systems.
    #[arg(long, value_name = "PROMISE", hide = true)]
    pub promise: Option<String>,
    /// Workload; for a study it applies to every cell.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Results, hosts and output.
    #[command(flatten)]
    pub measure: MeasureArgs,
}
