//! Arguments of `pubmark ab`.

use super::gates::GateArgs;
use super::measure::MeasureArgs;
use super::workload::WorkloadArgs;
use clap::Args;

/// `pubmark ab`
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 every gate held; 1 a gate is broken; 2 bad usage; 3 undecided in the time (the
last lines say how much more would tell), interrupted, or no run counts.

With --json: one object of a, b, blocks, gates and comparisons.

Examples:
  pubmark ab mosquitto --pairs 5 --rate 400 --qos 1 --duration 3s \\
      --a options.max_inflight_messages=20 --b options.max_inflight_messages=1 \\
      --fail-on 'p99 > +10%'
  pubmark ab zeromq --transport tcp --a options.library=/opt/old/libzmq.so \\
      --b options.library=/opt/new/libzmq.so \\
      --fail-on 'p99 > +5%, delivered_per_s < -1%' --budget 20m
  pubmark ab my/study.toml --a system=./old.toml --b system=./new.toml \\
      --fail-on 'p99 > +10%' \\
      --require 'p99 < 5ms and lost = 0' --junit gate.xml")]
pub struct AbArgs {
    /// A system's name, a system file of one's own, or an endpoint, as of `bench`; or a study: its name, its file, or
    /// a folder with a study.toml.
    pub target: String,
    /// What A, the baseline, sets: a key of a study, options.NAME, or system. Several times for several; what only
    /// the other arm sets is as the study has it.
    #[arg(long, value_name = "KEY=VALUE")]
    pub a: Vec<String>,
    /// The same of B, which is judged by A.
    #[arg(long, value_name = "KEY=VALUE")]
    pub b: Vec<String>,
    /// What makes it fail.
    #[command(flatten)]
    pub gates: GateArgs,
    /// How long it may take. It ends sooner where every gate is decided, or the next look would not come in time.
    #[arg(long, value_name = "T", default_value = "10m")]
    pub budget: String,
    /// Length of the measured window of each run [default: 3s; of a study its own].
    #[arg(long, value_name = "T")]
    pub duration: Option<String>,
    /// Of a study: only these points of an axis.
    #[arg(long, value_name = "AXIS=VALUE[,VALUE]")]
    pub only: Vec<String>,
    /// Who sends what to whom; of a study what is given here holds for all of its cells.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Machines, results, output.
    #[command(flatten)]
    pub measure: MeasureArgs,
}
