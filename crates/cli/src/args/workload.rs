//! The workload of a system, for the commands that take it as options.

use clap::Args;

/// Workload and server of `bench`, `ab` and `capacity`.
#[derive(Args, Default)]
pub struct WorkloadArgs {
    /// Use this pattern: pairs, fan-out, fan-in, request-reply, fan-out-echo, pipeline (shared
    /// subscriptions), tree (wildcards) [default: pairs].
    #[arg(long, value_name = "NAME")]
    pub pattern: Option<String>,
    /// Use inproc, ipc, tcp or udp (libraries) [default: the system's first].
    #[arg(long, value_name = "NAME")]
    pub transport: Option<String>,
    /// Run N pairs of one publisher and one subscriber [default: 1].
    #[arg(long, value_name = "N")]
    pub pairs: Option<String>,
    /// Run N publishers [default: 1].
    #[arg(long, value_name = "N")]
    pub publishers: Option<String>,
    /// Run N subscribers [default: 1].
    #[arg(long, value_name = "N")]
    pub subscribers: Option<String>,
    /// Send R messages/s per publisher, max, 'ramp R to R in T' [default: 1000].
    #[arg(long, value_name = "R|max")]
    pub rate: Option<String>,
    /// Replay a trace in place of --rate (docs/traces.md).
    #[arg(long, value_name = "FILE")]
    pub trace: Option<String>,
    /// Send messages of this size, or 'uniform S to S' [default: 1KiB].
    #[arg(long, value_name = "SIZE")]
    pub payload: Option<String>,
    /// Use quality of service 0, 1 or 2 [default: 0].
    #[arg(long)]
    pub qos: Option<String>,
    /// Add a flow: 'NAME: PATTERN, KEY=VALUE, …'.
    #[arg(long, value_name = "FLOW", help_heading = "Workload")]
    pub flow: Vec<String>,
    /// Space messages by uniform, poisson, burst:K or on-off:T/T [default: uniform].
    #[arg(long, value_name = "KIND", help_heading = "Workload")]
    pub arrival: Option<String>,
    /// Keep sessions and queued messages over restarts [default: false].
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        default_missing_value = "true",
        help_heading = "Workload"
    )]
    pub durable: Option<String>,
    /// Start the server with TLS, and connect over it [default: false].
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        default_missing_value = "true",
        help_heading = "Workload"
    )]
    pub tls: Option<String>,
    /// Inject faults (docs/study-file.md): 'stop server at 5s for 1s', 'kill server at 10s for 2s',
    /// 'kill publishers at 5s', 'cut link at 5s for 2s'.
    #[arg(long, value_name = "FAULT", help_heading = "Workload")]
    pub fault: Vec<String>,
    /// Open N connections per second to a broker [default: 1000].
    #[arg(long, value_name = "N", help_heading = "Workload")]
    pub connect_rate: Option<String>,
    /// Play the clients of a side in N processes [default: the system's, or 1].
    #[arg(long, value_name = "N", help_heading = "Workload")]
    pub agents: Option<String>,
    /// Send for this long before the window [default: the system's, or 1s].
    #[arg(long, value_name = "T", help_heading = "Workload")]
    pub warmup: Option<String>,
    /// Set another key of a study file, or an option of a system: options.NAME.
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Workload")]
    pub set: Vec<String>,
    /// Limit the server to N processors.
    #[arg(long, value_name = "N", help_heading = "Server")]
    pub cpus: Option<String>,
    /// Limit the server to this much memory.
    #[arg(long, value_name = "SIZE", help_heading = "Server")]
    pub memory: Option<String>,
    /// Use stock (vendor) or tuned (recommended) settings [default: tuned].
    #[arg(long, value_name = "stock|tuned", help_heading = "Server")]
    pub settings: Option<String>,
    /// Watch a running server: 'process NAME', 'pid N' or 'container NAME', followed by 'on HOST' if it
    /// runs on another host.
    #[arg(long, value_name = "PROCESS", help_heading = "Server")]
    pub server: Option<String>,
}

impl WorkloadArgs {
    /// Returns the study keys that were given by options of their own, with their values.
    pub fn typed(&self) -> Vec<(String, String)> {
        let fault = (!self.fault.is_empty()).then(|| self.fault.join(", "));
        let given = [
            ("transport", &self.transport),
            ("pattern", &self.pattern),
            ("pairs", &self.pairs),
            ("publishers", &self.publishers),
            ("subscribers", &self.subscribers),
            ("rate", &self.rate),
            ("trace", &self.trace),
            ("arrival", &self.arrival),
            ("payload", &self.payload),
            ("qos", &self.qos),
            ("durable", &self.durable),
            ("tls", &self.tls),
            ("connect_rate", &self.connect_rate),
            ("agents", &self.agents),
            ("warmup", &self.warmup),
            ("cpus", &self.cpus),
            ("memory", &self.memory),
            ("watch", &self.server),
            ("fault", &fault),
            ("use", &self.settings),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))).collect()
    }
}
