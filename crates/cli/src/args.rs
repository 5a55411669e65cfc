//! Arguments as typed. What they mean is resolved elsewhere, against the files.

mod ab;
mod capacity;
mod gates;
mod measure;
pub mod protocols;
mod workload;

pub use ab::AbArgs;
pub use capacity::CapacityArgs;
use clap::{Args, Parser, Subcommand};
pub use gates::GateArgs;
pub use measure::MeasureArgs;
use pubmark_model::wire_protocol::Protocol;
use pubmark_peer::PeerProtocol;
use std::net::SocketAddr;
use std::path::PathBuf;
pub use workload::WorkloadArgs;

/// Measures messaging systems, brokers and brokerless libraries, by the same
/// patterns, on the same clock, and says which figure may be believed.
#[derive(Parser)]
#[command(
    name = "pubmark",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "\
Exit codes: 0 done; 1 a gate, or a claim that is a gate, failed; 2 bad usage or bad file;
3 a cell has no answer, or it was interrupted.

Examples:
  pubmark run quickstart
  pubmark bench zeromq --transport tcp --rate 1000 --payload 1KiB
  pubmark doctor"
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: PubmarkCommand,
    /// Say only what was asked for: no progress.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Say more: each verdict's reasons as they come.
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// A folder with system files of one's own, looked at before ./systems and
    /// ~/.config/pubmark/systems; several times for several.
    #[arg(long, value_name = "DIR", global = true)]
    pub systems: Vec<PathBuf>,
}

/// The subcommands.
#[derive(Subcommand)]
pub enum PubmarkCommand {
    /// Run a study: systems crossed with workloads.
    Run(RunArgs),
    /// Measure one system by one workload, without a file.
    Bench(Box<BenchArgs>),
    /// Measure two settings in turns until it is decided whether a change goes too far.
    Ab(Box<AbArgs>),
    /// Find the highest load at which an objective holds, and what gives out first.
    Capacity(Box<CapacityArgs>),
    /// List the systems: what is here, which version, how to get the rest.
    Systems(SystemsArgs),
    /// List the studies that come with pubmark.
    Studies(StudiesArgs),
    /// Make the report of a results folder again, or one of several side by side.
    Report(ReportArgs),
    /// Print what became of a study's claims: holds, fails, open or not tested here.
    Claims(ClaimsArgs),
    /// Compare two results: what has changed, and what is only noise.
    Compare(CompareArgs),
    /// Find what on this machine would spoil a measurement.
    Doctor(DoctorArgs),
    /// Measure what this machine and pubmark's own generator can do.
    Calibrate(CalibrateArgs),
    /// Play clients for a coordinator, on standard input and output.
    Agent,
    /// Try an agent, case by case: whether it may measure.
    AgentCheck(AgentCheckArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Serve a coordinator on another machine, on standard input and output: start agents and
    /// servers for it, watch them, and end them when it is gone.
    Host,
    /// Keep a server for a coordinator, and end it when that is gone.
    #[command(hide = true)]
    Keep,
    /// Become a server under limits.
    #[command(hide = true)]
    Launch(LaunchArgs),
    /// Remove what a run has left at a server; the run is read from standard input.
    #[command(hide = true)]
    Remove,
    /// Keep every processor awake.
    #[command(hide = true)]
    Awake(AwakeArgs),
    /// Be a broker whose delays and faults are scripted, to check a measurement against.
    #[command(hide = true)]
    Peer(PeerArgs),
    /// Play clients through an agent that writes rows, on standard input and output.
    #[command(hide = true)]
    Rows(RowsArgs),
    /// Take MQTT messages and throw them away.
    #[command(hide = true)]
    Sink(SinkArgs),
    /// Send or receive MQTT messages with the least that it takes.
    #[command(hide = true)]
    Bare(BareArgs),
}

/// `pubmark run`
#[derive(Args)]
#[command(after_help = "\
Examples:
  pubmark run quickstart
  pubmark run brokerless --quick
  pubmark run brokerless --budget 30m
  pubmark run my/study.toml --only system=zeromq,nng --set payload=64B \\
      --repeats 5
  pubmark run brokerless --out results/overnight --resume
  pubmark run brokerless --watch --metrics 9464")]
pub struct RunArgs {
    /// A study's name (see `pubmark studies`), a study file, or a folder with a study.toml.
    pub study: String,
    /// Make only these points of an axis.
    #[arg(long, value_name = "AXIS=VALUE[,VALUE]")]
    pub only: Vec<String>,
    /// Whose defaults the systems have: stock (their makers') or tuned (pubmark's) [default: tuned].
    #[arg(long, value_name = "stock|tuned")]
    pub settings: Option<String>,
    /// Set a key of the study, or an axis to one value.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Runs of each cell.
    #[arg(long, value_name = "N")]
    pub repeats: Option<u32>,
    /// Make blocks until each question of the study is decided (its claims, and who is best at each
    /// point), or this time is over. Error rates hold over all looks.
    #[arg(long, value_name = "T", conflicts_with = "repeats")]
    pub budget: Option<String>,
    /// Add the runs of an earlier results folder of this study on this machine: the tables use them
    /// together with the new ones. Repeatable.
    #[arg(long, value_name = "DIR")]
    pub with: Vec<PathBuf>,
    /// Cut the study down to a coffee break; the result says so.
    #[arg(long)]
    pub quick: bool,
    /// Print all tables instead of the short result.
    #[arg(long, conflicts_with = "json")]
    pub all: bool,
    /// What makes it fail.
    #[command(flatten)]
    pub gates: GateArgs,
    /// Machines, results, output.
    #[command(flatten)]
    pub measure: MeasureArgs,
}

/// `pubmark bench`
#[derive(Args)]
#[command(after_help = "\
With --json: one object of cell, runs and summary.

Examples:
  pubmark bench zeromq --transport tcp --rate 1000 --payload 1KiB
  pubmark bench nng --transport ipc --pattern request-reply --rate max \\
      --payload 64B
  pubmark bench zeromq --transport inproc --pattern pipeline --rate max \\
      --repeats 5 --json
  pubmark bench kernel --transport tcp --pattern fan-out --subscribers 8 \\
      --rate 1000
  pubmark bench mosquitto --pairs 1000 --rate 10 --payload 1KB --cpus 1 \\
      --memory 2GB
  pubmark bench mosquitto --pairs 10 --rate 100 --duration 20s \\
      --fault 'stop server at 5s for 1s'
  pubmark bench mqtt://broker.example:1883 --pairs 100 --rate 10 --qos 1
  pubmark bench nats --pairs 10 --rate 500,1000,2000 --payload 64B,1KiB
  pubmark bench mosquitto --pairs 10 --precision 'p99 ±5%' --budget 10m
  pubmark bench ./my-broker.toml --pairs 10 --rate 100")]
pub struct BenchArgs {
    /// A system's name (`pubmark systems` lists them), a system file of one's own, or the endpoint of a broker that is
    /// there already: mqtt:// or mqtts://, ws(s)://, nats:// or tls://, redis(s)://, amqp(s)://, zenoh://.
    pub target: String,
    /// Who sends what to whom.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Length of the measured window [default: 5s].
    #[arg(long, value_name = "T", conflicts_with = "count")]
    pub duration: Option<String>,
    /// Instead of a duration: messages of each publisher in the window.
    #[arg(long, value_name = "N")]
    pub count: Option<String>,
    /// Runs [default: 3].
    #[arg(long, value_name = "N")]
    pub repeats: Option<String>,
    /// Repeat the run until a figure is known this precisely, at 95 % confidence, or --budget is over: ±2%, or
    /// 'p99 ±5%'. Without a name it is the median latency, at --rate max messages delivered a second. ± may
    /// be written +-.
    #[arg(long, value_name = "[FIGURE] ±X%", conflicts_with = "repeats", allow_hyphen_values = true)]
    pub precision: Option<String>,
    /// Stop --precision after this time [default: 5m].
    #[arg(long, value_name = "T", requires = "precision")]
    pub budget: Option<String>,
    /// After the runs, search for how many times this load holds (p99 < 10ms and lost = 0), up to 10 times; a minute
    /// at most. Its steps are no runs, and stand in headroom/ within the results folder.
    #[arg(long)]
    pub headroom: bool,
    /// Print all tables instead of the short result.
    #[arg(long, conflicts_with = "json")]
    pub all: bool,
    /// What makes it fail.
    #[command(flatten)]
    pub gates: GateArgs,
    /// Machines, results, output.
    #[command(flatten)]
    pub measure: MeasureArgs,
}

/// `pubmark systems`
#[derive(Args)]
#[command(after_help = "\
Examples:
  pubmark systems
  pubmark systems mosquitto --install
  pubmark systems --hosts hosts.toml
  pubmark systems my-broker --new --protocol mqtt")]
pub struct SystemsArgs {
    /// One system, in full: its name, or a system file.
    pub name: Option<String>,
    /// Install it: Debian packages, and pinned downloads in a cache folder.
    #[arg(long, requires = "name")]
    pub install: bool,
    /// Write systems/NAME.toml for a system of one's own, to be filled in.
    #[arg(long, requires = "name", conflicts_with = "install")]
    pub new: bool,
    /// With --new: a broker that speaks this.
    #[arg(long, value_parser = protocols::of_sessions(), requires = "new")]
    pub protocol: Option<Protocol>,
    /// With --new: a program of one's own that plays clients by the agent protocol.
    #[arg(long, requires = "new", conflicts_with = "protocol")]
    pub agent: bool,
    /// Ask these machines, or install it there: a file with a table [hosts.NAME] each.
    #[arg(long, value_name = "FILE", conflicts_with = "new")]
    pub hosts: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `pubmark studies`
#[derive(Args)]
pub struct StudiesArgs {
    /// Print this study's file, to start one's own from.
    pub name: Option<String>,
}

/// `pubmark report`
#[derive(Args)]
#[command(after_help = "\
Examples:
  pubmark report results/quickstart-20260101-120000
  pubmark report results/before results/after --out both.html
  pubmark report results/slow-rates results/fast-rates --join
  pubmark report results/brokers --where 'p99 < 20ms and server_memory < 100MB'")]
pub struct ReportArgs {
    /// Results folders; several are shown side by side on one page.
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// The page [default: report.html in the folder; of several, comparison.html in the first, joined.html with --join].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Take several folders for one result: those of one study that differ in the values of one axis, as two sweeps
    /// of rates do. What was measured in both has the repeats of both.
    #[arg(long)]
    pub join: bool,
    /// Print all tables, with every row and every reason why cells were not run, instead of the short result.
    #[arg(long)]
    pub all: bool,
    /// Print Markdown.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub markdown: bool,
    /// Print summary.csv.
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Print which systems meet these constraints instead: bounds of figures, values of axes, and the licence, as in
    /// 'p99 < 20ms and server_memory < 100MB and qos = 1 and licence = MIT'.
    #[arg(long = "where", value_name = "CONSTRAINTS", conflicts_with_all = ["csv", "all"])]
    pub constraints: Option<String>,
}

/// `pubmark claims`
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 done; 1 a claim with `gate = true` fails; 2 bad usage or bad file.

Examples:
  pubmark claims results/brokerless-20260101-120000
  pubmark claims results/brokerless-20260101-120000 --markdown")]
pub struct ClaimsArgs {
    /// A results folder.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Print Markdown.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print JSON, with every point of every claim.
    #[arg(long)]
    pub json: bool,
}

/// `pubmark compare`
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 no gate failed; 1 a gate failed; 2 bad usage; 3 none failed, and of a comparison
under a gate nothing can be said (a single run, no valid run).

Examples:
  pubmark compare results/before results/after
  pubmark compare results/main results/branch \\
      --fail-on 'p99 > +5%, delivered_per_s < -2%' --markdown
  pubmark compare results/before results/after --only payload=1KiB \\
      --fail-on 'lost > 0'
  pubmark compare results/before results/after \\
      --require 'p99 < 5ms and lost = 0' --junit gates.xml
  pubmark compare results/brokers --across system=mosquitto,nats
  pubmark compare --history results/nightly-* --fail-on 'p99 > +10%'")]
pub struct CompareArgs {
    /// The baseline, a results folder, and the results that are to be judged by it; with --across one folder may be
    /// both; with --history six or more, in any order.
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Hold the cells of A that have the first value of an axis against those of B that have the second, and are
    /// alike otherwise: system=mosquitto,nats.
    #[arg(long, value_name = "AXIS=A,B", conflicts_with = "history")]
    pub across: Option<String>,
    /// Look for a change within many folders, by the time of their runs, and say since when it is there.
    #[arg(long)]
    pub history: bool,
    /// What makes the comparison fail: a change where it is beyond the noise.
    #[command(flatten)]
    pub gates: GateArgs,
    /// Let a gate pass that is too noisy to see its own threshold [otherwise: exit code 3].
    #[arg(long)]
    pub allow_noisy: bool,
    /// Compare only these points of an axis.
    #[arg(long, value_name = "AXIS=VALUE[,VALUE]")]
    pub only: Vec<String>,
    /// Print Markdown, for a pull request.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `pubmark doctor`
#[derive(Args)]
#[command(after_help = "\
Examples:
  pubmark doctor
  pubmark doctor mqtt://broker:1883
  pubmark doctor mqtt://user:password@broker:1883 --remove")]
pub struct DoctorArgs {
    /// List what runs that were killed have left at this server, instead of examining the machine.
    #[arg(value_name = "ENDPOINT", conflicts_with = "hosts")]
    pub endpoint: Option<String>,
    /// Remove it.
    #[arg(long, requires = "endpoint")]
    pub remove: bool,
    /// Look at these machines instead, and at the ways to them: a file with a table [hosts.NAME] each.
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `pubmark agent-check`
#[derive(Args)]
#[command(after_help = "\
Examples:
  pubmark agent-check -- pubmark agent
  pubmark agent-check --system nng
  pubmark agent-check --system ./my-library.toml --transport tcp
  pubmark agent-check --transport tcp -- node my-agent.mjs --verbose
  pubmark agent-check --only send-schedule,receive-latency -- python3 agent.py
  pubmark agent-check --list

--driver, --transport, --only and the others stand before the command: all that is behind it is the agent's own.")]
pub struct AgentCheckArgs {
    /// The agent of this system (its name, or its file), with its options, instead of a command.
    #[arg(long, value_name = "SYSTEM", conflicts_with = "command")]
    pub system: Option<String>,
    /// The driver to try [default: the first that the agent names that needs no server, or else the
    /// first; never the mock].
    #[arg(long)]
    pub driver: Option<String>,
    /// The transport to try: inproc, ipc, tcp or udp [default: all of the driver's system, or
    /// tcp where pubmark knows none].
    #[arg(long)]
    pub transport: Option<String>,
    /// Cases to try, by name or by the beginning of their names [default: all].
    #[arg(long, value_name = "CASE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// One JSON object instead of lines.
    #[arg(long)]
    pub json: bool,
    /// Names the cases, with what is sent and what is due, and tries nothing.
    #[arg(long)]
    pub list: bool,
    /// The agent's command, with its arguments.
    #[arg(trailing_var_arg = true, required_unless_present_any = ["list", "system"], allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// `pubmark completions`
#[derive(Args)]
pub struct CompletionsArgs {
    /// bash, zsh, fish, elvish or powershell.
    pub shell: clap_complete::Shell,
}

/// `pubmark awake`
#[derive(Args)]
pub struct AwakeArgs {
    /// The coordinator's process; this one dies with it.
    #[arg(long, value_name = "PID")]
    pub parent: i32,
}

/// `pubmark launch`
#[derive(Args)]
pub struct LaunchArgs {
    /// The keeper's process; the command dies with it.
    #[arg(long, value_name = "PID")]
    pub parent: i32,
    /// A control group to join.
    #[arg(long, value_name = "DIR")]
    pub group: Vec<PathBuf>,
    /// A processor to be bound to.
    #[arg(long, value_name = "N")]
    pub cpu: Vec<usize>,
    /// The command.
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

/// `pubmark peer`
#[derive(Args)]
pub struct PeerArgs {
    /// Protocol to speak; zeromq is ZMTP 3.0 over TCP, between PUB and SUB of libzmq.
    #[arg(long, value_parser = protocols::of_peer(), default_value = "mqtt")]
    pub protocol: PeerProtocol,
    /// What to do to messages and connections [default: a plain relay].
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// The loopback port; 0 for any that is free.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
}

/// `pubmark calibrate`
#[derive(Args)]
#[command(after_help = "\
Examples:
  pubmark calibrate
  pubmark calibrate --quick --json
  pubmark calibrate --connections 100000
  pubmark calibrate --relay mqtt://127.0.0.1:1883")]
pub struct CalibrateArgs {
    /// About a quarter of the time, and rougher figures; the result says so.
    #[arg(long)]
    pub quick: bool,
    /// Idle connections to try, 10 to 1000000.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    pub connections: u32,
    /// An MQTT broker that runs already, to relay messages instead of pubmark's own relay.
    #[arg(long, value_name = "ENDPOINT")]
    pub relay: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `pubmark rows`
#[derive(Args)]
pub struct RowsArgs {
    /// The agent's command and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// `pubmark sink`
#[derive(Args)]
pub struct SinkArgs {
    /// Processes that share the port.
    #[arg(long, default_value_t = 1)]
    pub processes: u32,
    /// The port; 0 is any that is free.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
}

/// The bare loops.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum BareLoop {
    /// By a schedule.
    Send,
    /// And throw away.
    Receive,
    /// As fast as it goes.
    Flood,
}

/// `pubmark bare`
#[derive(Args)]
pub struct BareArgs {
    /// Which loop.
    pub what: BareLoop,
    /// The server.
    #[arg(long)]
    pub to: SocketAddr,
    /// The first part of the topics.
    #[arg(long, default_value = "bare")]
    pub run: String,
    /// Connections.
    #[arg(long)]
    pub connections: u32,
    /// Messages a second over all connections.
    #[arg(long, default_value_t = 1)]
    pub rate: u64,
    /// Bytes of a message's payload.
    #[arg(long)]
    pub payload: usize,
    /// Least time between two wake-ups, ns.
    #[arg(long, default_value_t = 0)]
    pub quantum_ns: u64,
    /// From the start to the window, ns.
    #[arg(long)]
    pub warmup_ns: u64,
    /// The window, ns.
    #[arg(long)]
    pub window_ns: u64,
}
