//! Arguments of `pubmark card`.

use super::measure::MeasureArgs;
use clap::Args;

/// `pubmark card`
#[derive(Args)]
#[command(after_help = "\
For each quality of service of the system, the card has a run without a disturbance, with a killed, \
a frozen and a cut-off server, with a power cut and a full disk, and with slow subscribers, also with a \
bounded queue (docs/guarantee-card.md).

Exit codes: 0 done; 2 usage error or bad file; 3 nothing could be measured, or the command was \
interrupted.

Examples:
  pubmark card mosquitto
  pubmark card mosquitto --set durable=true --set options.max_queued_messages=0
  pubmark card nats-jetstream --set rate=1000 --json
  pubmark card mqtt://broker.example:1883 --set qos=1")]
pub struct CardArgs {
    /// Name or file of a system, or URL of a running server.
    pub target: String,
    /// Set a key of a study file, or an option of the system: options.NAME.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Results, hosts and output.
    #[command(flatten)]
    pub measure: MeasureArgs,
}
