//! Arguments of `pubmark capacity`.

use super::measure::MeasureArgs;
use super::workload::WorkloadArgs;
use clap::Args;
use std::path::PathBuf;

/// `pubmark capacity`
#[derive(Args)]
#[command(after_help = "\
A study's [capacity] section replaces the defaults of --until, --over, --within and --budget.
By default server and clients get half of the cores each; `--set pin=none` turns this off.

Exit codes: 0 the search is finished, also with a lower bound; 2 usage error or bad file; 3 the \
budget is spent, no load meets the objective, or the command was interrupted.

Examples:
  pubmark capacity mosquitto --pairs 10 --payload 1KB --until 'p99 < 5ms'
  pubmark capacity mosquitto --over pairs --rate 10 --until 'p99 < 50ms'
  pubmark capacity mqtt://broker.example:1883 --pairs 10 --qos 1 --json
  pubmark capacity nats --fault 'cut clients at 5s' --until 'caught_up < 10s'
  pubmark capacity dds --only part=demand --until 'lost = 0' --budget 2m
  pubmark capacity nats --pairs 10 --out results/nats --resume --budget 10m")]
pub struct CapacityArgs {
    /// Name or file of a system, URL of a running server, or name or file of a study.
    pub target: String,
    /// Meet this objective (docs/find-the-capacity.md) [default: 'p99 < 10ms and lost = 0'].
    #[arg(long, value_name = "OBJECTIVE")]
    pub until: Option<String>,
    /// Increase rate (of all publishers together), pairs, publishers, subscribers, payload, burst or
    /// flows.NAME.rate, or decrease cpus or memory [default: rate].
    #[arg(long, value_name = "KEY")]
    pub over: Option<String>,
    /// Stop when the interval is narrower than this, 1% to 50% [default: 5%].
    #[arg(long, value_name = "PERCENT")]
    pub within: Option<String>,
    /// Stop a cell's search after this time [default: 3m, more with a fault].
    #[arg(long, value_name = "T")]
    pub budget: Option<String>,
    /// Confirm the result by a run of this length [default: 10s].
    #[arg(long, value_name = "T")]
    pub duration: Option<String>,
    /// Use only these values of a study's axis, such as rate=100,1000.
    #[arg(long, value_name = "AXIS=VALUES")]
    pub only: Vec<String>,
    /// Rank only systems of a study that were not seen to break this, such as 'survives kill'
    /// (docs/guarantee-card.md).
    #[arg(long, value_name = "PROMISE", help_heading = "Output")]
    pub promise: Option<String>,
    /// With --promise: results folder of a card whose runs count. Repeatable.
    #[arg(long, value_name = "DIR", requires = "promise", help_heading = "Output")]
    pub cards: Vec<PathBuf>,
    /// Workload; for a study it applies to every cell.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Results, hosts and output.
    #[command(flatten)]
    pub measure: MeasureArgs,
}
