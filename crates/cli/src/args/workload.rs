//! What is measured of a system, as `bench` and `capacity` are told it.

use clap::Args;

/// What is measured of a system, for commands that take no study.
#[derive(Args)]
pub struct WorkloadArgs {
    /// Who sends to whom: pairs, fan-out, fan-in, request-reply, fan-out-echo, pipeline, tree [default: pairs].
    #[arg(long)]
    pub pattern: Option<String>,
    /// For libraries: inproc, ipc, tcp (udp for the kernel) [default: the first that the system has].
    #[arg(long)]
    pub transport: Option<String>,
    /// Pairs of one publisher and one subscriber [default: 1].
    #[arg(long, value_name = "N")]
    pub pairs: Option<String>,
    /// Publishers [default: 1].
    #[arg(long, value_name = "N")]
    pub publishers: Option<String>,
    /// Subscribers [default: 1].
    #[arg(long, value_name = "N")]
    pub subscribers: Option<String>,
    /// Messages per second and publisher, or max [default: 1000].
    #[arg(long, value_name = "R|max")]
    pub rate: Option<String>,
    /// When messages are due: uniform, poisson or burst:K [default: uniform].
    #[arg(long)]
    pub arrival: Option<String>,
    /// Bytes of a message, its 16-byte header included [default: 1KiB].
    #[arg(long, value_name = "SIZE")]
    pub payload: Option<String>,
    /// Quality of service: 0, 1 or 2 [default: 0].
    #[arg(long)]
    pub qos: Option<String>,
    /// Subscriptions, and what waits for them, outlive connections and the server: true or false.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub durable: Option<String>,
    /// Connections to a broker that are opened in a second [default: 1000].
    #[arg(long, value_name = "N")]
    pub connect_rate: Option<String>,
    /// Processes a side that play clients [default: what the system's file says, or 1].
    #[arg(long, value_name = "N")]
    pub agents: Option<String>,
    /// Time from the start to the measured window [default: what the system's file says, or 1s].
    #[arg(long, value_name = "T")]
    pub warmup: Option<String>,
    /// Processors that the server may use.
    #[arg(long, value_name = "N")]
    pub cpus: Option<String>,
    /// Memory that the server may use.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// The processes of a server that was there already: 'process NAME', 'pid N' or 'container NAME', with 'on HOST' behind it where needed.
    #[arg(long, value_name = "WHAT")]
    pub server: Option<String>,
    /// What happens to a part in the window: "stop server at 5s for 1s" (it stands still and goes on),
    /// "kill server at 10s for 2s" (it ends at once, and is started again), "cut link at 5s for 2s",
    /// "stop publishers at …", "stop subscribers at …", "kill publishers at 5s", "kill subscribers at …"
    /// (for good); several with commas.
    #[arg(long, value_name = "FAULT")]
    pub fault: Vec<String>,
    /// Whose defaults the system has: stock (its makers') or tuned (pubmark's) [default: tuned].
    #[arg(long, value_name = "stock|tuned")]
    pub settings: Option<String>,
    /// Any other key of a study, or an option of the system as options.NAME.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl WorkloadArgs {
    /// The keys of a study that have flags of their own here, as far as they were
    /// given.
    pub fn typed(&self) -> Vec<(String, String)> {
        let fault = (!self.fault.is_empty()).then(|| self.fault.join(", "));
        let given = [
            ("transport", &self.transport),
            ("pattern", &self.pattern),
            ("pairs", &self.pairs),
            ("publishers", &self.publishers),
            ("subscribers", &self.subscribers),
            ("rate", &self.rate),
            ("arrival", &self.arrival),
            ("payload", &self.payload),
            ("qos", &self.qos),
            ("durable", &self.durable),
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
