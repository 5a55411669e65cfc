//! Options of the commands that measure.

use crate::telemetry::push::Collector;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Results, hosts and output: the same for `run`, `bench`, `ab` and `capacity`.
#[derive(Args)]
pub struct MeasureArgs {
    /// Store the results in this folder [default: a new one in results/].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue an interrupted run: --out, or the newest folder of its name.
    #[arg(long)]
    pub resume: bool,
    /// Print the plan and its duration, and measure nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Use the hosts in this file (docs/several-machines.md).
    #[arg(long, value_name = "FILE", help_heading = "Hosts")]
    pub hosts: Option<PathBuf>,
    /// Let an engine choose the hosts: ray, or ray:ADDRESS of a cluster.
    #[arg(long, value_name = "ENGINE[:ADDR]", conflicts_with = "hosts", help_heading = "Hosts")]
    pub on: Option<String>,
    /// Install missing systems first, on every host that needs them.
    #[arg(long, help_heading = "Hosts")]
    pub install: bool,
    /// Print JSON instead of a table.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print Markdown instead of a table.
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub markdown: bool,
    /// Serve the live report on 127.0.0.1 [default: any free port].
    #[arg(
        long,
        value_name = "PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0",
        help_heading = "Output"
    )]
    pub watch: Option<u16>,
    /// Serve Prometheus metrics, without a password, on [127.0.0.1:]PORT (0: any).
    #[arg(long, value_name = "ADDR", value_parser = listen_address, help_heading = "Output")]
    pub metrics: Option<SocketAddr>,
    /// Push metrics by OTLP/HTTP to the collector at http://HOST:PORT.
    #[arg(long, value_name = "URL", value_parser = Collector::parse, help_heading = "Output")]
    pub otlp: Option<Collector>,
}

/// `9464` or `127.0.0.1:9464`.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse().map_err(|_| "write PORT or ADDRESS:PORT, such as 9464 or 127.0.0.1:9464".into())
}
