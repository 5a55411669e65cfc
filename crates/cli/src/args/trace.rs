//! Arguments of `pubmark trace`.

use clap::Args;
use std::path::PathBuf;

/// `pubmark trace`
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 done; 2 usage error or bad file; 3 the connection was lost.

Examples:
  pubmark trace mqtt://broker.example:1883 --duration 5m --out trace.csv
  pubmark trace nats://127.0.0.1 --topic 'plant.>' --out trace.csv
  pubmark trace trace.csv --fit > study.toml
  pubmark trace trace.csv --fit --scale 2x > twice.toml
  pubmark trace lines.txt --from mosquitto_sub --out trace.csv
  pubmark trace capture.pcap --from pcap --out trace.csv")]
pub struct TraceArgs {
    /// URL of a running server, to record its messages; or a file, to fit or convert it.
    #[arg(value_name = "ENDPOINT|FILE")]
    pub source: String,
    /// Print a study that sends similar traffic [default for a file in CSV].
    #[arg(long)]
    pub fit: bool,
    /// Multiply the rates of the study, such as 2x or 0.5x [default: 1x].
    #[arg(long, value_name = "N", requires = "fit")]
    pub scale: Option<String>,
    /// Read the output of another tool, and write CSV unless --fit is set.
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<TraceSource>,
    /// Record this topic, subject, channel or binding, in the server's spelling [default: all].
    #[arg(long, value_name = "FILTER")]
    pub topic: Option<String>,
    /// Set an option of the connection, such as tls_ca=ca.pem (docs/connect.md).
    #[arg(long, value_name = "OPTION=VALUE")]
    pub set: Vec<String>,
    /// Record for this long from the subscription on [default: until Ctrl-C].
    #[arg(long, value_name = "T")]
    pub duration: Option<String>,
    /// Write to this file [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Formats of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TraceSource {
    /// Lines of `mosquitto_sub -F '%U %t %l'`.
    #[value(name = "mosquitto_sub")]
    MosquittoSub,
    /// Lines of the Redis command MONITOR.
    RedisMonitor,
    /// Captures of tcpdump: MQTT, NATS and Redis without TLS.
    Pcap,
}
