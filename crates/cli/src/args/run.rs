//! Options of `pubmark run`.

use super::gates::GateArgs;
use super::measure::MeasureArgs;
use clap::Args;
use std::path::PathBuf;

/// `pubmark run`
#[derive(Args)]
#[command(after_help = "\
Examples:
  pubmark run quickstart
  pubmark run brokerless --quick
  pubmark run brokerless --budget 30m --watch
  pubmark run my/study.toml --only system=zeromq,nng --set payload=64B
  pubmark run brokerless --out results/overnight --resume
  pubmark run --omb workload.yaml --driver nats.yaml")]
pub struct RunArgs {
    /// Name of a study (`pubmark studies` lists them), study file, or folder with a study.toml.
    #[arg(required_unless_present = "omb")]
    pub study: Option<String>,
    /// Run this workload of OpenMessaging Benchmark, instead of a study (docs/other-tools.md).
    #[arg(long, value_name = "WORKLOAD", requires = "driver", conflicts_with = "study", help_heading = "Other tools")]
    pub omb: Option<PathBuf>,
    /// With --omb: the driver file, which names the system.
    #[arg(long, value_name = "DRIVER", requires = "omb", help_heading = "Other tools")]
    pub driver: Option<PathBuf>,
    /// Run only these values of an axis, such as rate=100,1000.
    #[arg(long, value_name = "AXIS=VALUES")]
    pub only: Vec<String>,
    /// Use stock (vendor) or tuned (recommended) settings [default: tuned].
    #[arg(long, value_name = "stock|tuned")]
    pub settings: Option<String>,
    /// Set a key of the study file, or an axis to one value.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Run each cell N times [default: from the study].
    #[arg(long, value_name = "N")]
    pub repeats: Option<u32>,
    /// Rank only systems that no run of the study shows to break this, such as 'survives kill'
    /// (docs/guarantee-card.md).
    #[arg(long, value_name = "PROMISE")]
    pub promise: Option<String>,
    /// Run until every claim and ranking is decided, or this time is over.
    #[arg(long, value_name = "T", conflicts_with = "repeats")]
    pub budget: Option<String>,
    /// Add the runs of an earlier results folder of this study and machine. Repeatable.
    #[arg(long, value_name = "DIR")]
    pub with: Vec<PathBuf>,
    /// Shorten the study to a few minutes; its figures are not for quoting.
    #[arg(long)]
    pub quick: bool,
    /// Print all tables instead of the short result.
    #[arg(long, conflicts_with = "json")]
    pub all: bool,
    /// Results, hosts and output.
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// Gates.
    #[command(flatten, next_help_heading = "Gates and objectives")]
    pub gates: GateArgs,
}
