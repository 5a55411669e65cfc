//! Arguments of `pubmark capacity`.

use super::measure::MeasureArgs;
use super::workload::WorkloadArgs;
use clap::Args;

/// `pubmark capacity`
#[derive(Args)]
#[command(after_help = "\
Server and clients have processors of their own, half each, where both are here and nothing else
is said (--set pin=none leaves them to the kernel).

Exit codes: 0 the search is over: its steps leave no more open than was asked for, or less than the
machine's own speed moves; also of a lower bound (the load generator gave out before the system),
and where no run of full length confirms it: a line says why; 2 bad usage; 3 no answer within the
budget, or interrupted.

With --json: one object of estimate, lo, hi, limited_by and steps; of a study a list of them.

Examples:
  pubmark capacity mosquitto --pairs 10 --payload 1KB --until 'p99 < 5ms'
  pubmark capacity nats --pairs 10 --budget 10m \\
      --until 'p99 < 10ms and delivered_ratio >= 99.9%'
  pubmark capacity mosquitto --over pairs --rate 10 \\
      --until 'p99 < 50ms and lost = 0'
  pubmark capacity mqtt://broker.example:1883 --pairs 10 --qos 1 --json
  pubmark capacity dds --only part=demand --until 'lost = 0' --budget 2m
  pubmark capacity iot-edge --only part=most-pairs --dry-run
  pubmark capacity nats --pairs 10 --out results/nats --resume --budget 10m")]
pub struct CapacityArgs {
    /// A system's name, a system file of one's own, or the endpoint of a broker that is there already, as of `bench`;
    /// or a study: its name or file. Then each of its cells is searched, a step of each in turn.
    pub target: String,
    /// What has to hold: FIGURE < BOUND, several with `and`. Figures are p50, p90, p95, p99, p999, max, mean (also of
    /// another time, as `service p99`), lost, refused, not_sent, duplicated, reordered, corrupted, acked_lost, late (messages,
    /// or a share with %), delivered (a share), delivered_per_s, jitter, cpu (processors of the server), memory. A
    /// load at which a backlog grows never holds [default: what the study says, or p99 < 10ms and lost = 0].
    #[arg(long, value_name = "OBJECTIVE")]
    pub until: Option<String>,
    /// Increase this until the objective no longer holds: rate (messages a second of all publishers together), pairs,
    /// publishers, subscribers, payload, burst. Or decrease it: cpus, memory (the least the server needs at the given
    /// load). The search begins with the value of its own flag [default: what the study says, or rate].
    #[arg(long, value_name = "KEY")]
    pub over: Option<String>,
    /// How near to each other the ends of the answer are to be, 1% to 50% [default: what the study says, or 5%].
    #[arg(long, value_name = "PERCENT")]
    pub within: Option<String>,
    /// Of a study: only these points of an axis.
    #[arg(long, value_name = "AXIS=VALUE[,VALUE]")]
    pub only: Vec<String>,
    /// How long the search may take, of a study the search of each cell; with --resume from now on [default: what the
    /// study says, or 3m].
    #[arg(long, value_name = "T")]
    pub budget: Option<String>,
    /// Length of the run that confirms the answer. Steps are of 4s, or as long as that run if it is shorter; longer
    /// where 1,100 messages take longer.
    #[arg(long, value_name = "T", default_value = "10s")]
    pub duration: String,
    /// Who sends what to whom; of a study what is given here holds for all of its cells.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Machines, results, output.
    #[command(flatten)]
    pub measure: MeasureArgs,
}
