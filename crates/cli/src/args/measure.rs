//! Options of the commands that measure.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Machines, results, and who may look on: the same for `run`, `bench`, `ab` and `capacity`.
#[derive(Args)]
pub struct MeasureArgs {
    /// The machines that may be used, in place of the study's own: a file with a table [hosts.NAME]
    /// each (reach, address, roles).
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,
    /// Have an engine choose the machines and run this over them: ray, or ray:ADDRESS of a cluster.
    /// It is the program pubmark-ENGINE.
    #[arg(long, value_name = "ENGINE[:ADDRESS]", conflicts_with = "hosts")]
    pub on: Option<String>,
    /// First install the systems that are not here, or on their hosts, and can be installed.
    #[arg(long)]
    pub install: bool,
    /// The results folder [default: a new one in results/].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with a results folder: --out, or else the newest of the same name. What is asked has to
    /// be the same; --budget may be any.
    #[arg(long)]
    pub resume: bool,
    /// Print what would be measured and how long that takes; measure nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Print Markdown instead of a table.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Serve the report live on 127.0.0.1, at any free port unless one is given. What it shows
    /// is made between runs, so that it takes nothing from a measurement; with a terminal it
    /// stays after the last run, until Ctrl-C.
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    pub watch: Option<u16>,
    /// Serve metrics for Prometheus at http://ADDR/metrics while it runs: a port of 127.0.0.1
    /// (0 for any that is free), or ADDRESS:PORT. There is no password: at an address that is not
    /// loopback, anyone who can reach it can read them.
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    pub metrics: Option<SocketAddr>,
}

/// `9464` or `127.0.0.1:9464`.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse().map_err(|_| "write PORT or ADDRESS:PORT, such as 9464 or 127.0.0.1:9464".into())
}
