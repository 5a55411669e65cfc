//! Arguments as typed. The commands resolve and validate them against the files.

mod ab;
mod capacity;
mod card;
mod gates;
mod measure;
pub mod protocols;
mod run;
mod trace;
mod workload;

pub use ab::AbArgs;
pub use capacity::CapacityArgs;
pub use card::CardArgs;
use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
pub use gates::GateArgs;
pub use measure::MeasureArgs;
use pubmark_model::wire_protocol::Protocol;
use pubmark_peer::PeerProtocol;
pub use run::RunArgs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
pub use trace::{TraceArgs, TraceSource};
pub use workload::WorkloadArgs;

/// pubmark measures message brokers and libraries under the same load, and marks unreliable figures.
#[derive(Parser)]
#[command(
    name = "pubmark",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "\
Exit codes: 0 done; 1 a gate failed; 2 usage error or bad file; 3 a result is missing or \
unreliable, or the command was interrupted (docs/exit-codes.md).

Examples:
  pubmark run quickstart
  pubmark bench mosquitto --pairs 10 --rate 100 --qos 1
  pubmark capacity nats --pairs 10 --until 'p99 < 10ms and lost = 0'

Glossary: docs/glossary.md"
)]
pub struct Arguments {
    /// The command.
    #[command(subcommand)]
    pub command: PubmarkCommand,
    /// Print results and errors only, no progress.
    #[arg(short, long, global = true, display_order = 900)]
    pub quiet: bool,
    /// Print every run, and the reasons why figures are unreliable.
    #[arg(short, long, global = true, display_order = 901)]
    pub verbose: bool,
    /// Search this folder for system files first; repeatable.
    #[arg(long, value_name = "DIR", global = true, display_order = 902)]
    pub systems: Vec<PathBuf>,
}

impl Arguments {
    /// Parses the command line. `--help` shows every option, `-h` those without a heading: the
    /// common ones, which fit on one screen.
    pub fn read() -> Result<Arguments, clap::Error> {
        if std::env::args_os().all(|word| word != "-h") {
            return Arguments::try_parse();
        }
        let command = Arguments::command().mut_subcommands(common_options);
        Arguments::from_arg_matches(&command.try_get_matches()?)
    }
}

/// Hides the options that have a heading.
fn common_options(command: Command) -> Command {
    if command.get_arguments().all(|option| option.get_help_heading().is_none()) {
        return command;
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let after = format!("{after}\n\nAll options: pubmark {} --help", command.get_name());
    let hide = |option: clap::Arg| {
        let hidden = option.is_hide_set() || option.get_help_heading().is_some();
        option.hide(hidden)
    };
    command.mut_args(hide).after_help(after)
}

/// The subcommands, in the order of the help: measure, compare and report, prepare, then the
/// programs that pubmark starts itself.
#[derive(Subcommand)]
pub enum PubmarkCommand {
    /// Run a study: several systems under several workloads.
    Run(Box<RunArgs>),
    /// Measure one system under one workload.
    Bench(Box<BenchArgs>),
    /// Find the highest load that meets an objective, and the factor that limits it.
    Capacity(Box<CapacityArgs>),
    /// Measure what a system's acknowledgements are worth: kill, freeze and cut it off.
    Card(Box<CardArgs>),
    /// Compare two settings in alternating runs, until every gate is decided.
    Ab(Box<AbArgs>),
    /// Compare two results, or find a change in the history of many.
    Compare(CompareArgs),
    /// Print the outcome of a study's claims: holds, fails, open or not tested here.
    Claims(ClaimsArgs),
    /// Record the traffic of a server, or fit a study to a recording.
    Trace(TraceArgs),
    /// Write the report of a result again, or one of several results side by side.
    Report(ReportArgs),
    /// List the included studies, or print one.
    Studies(StudiesArgs),
    /// List systems and their versions, install one, or describe your own.
    Systems(SystemsArgs),
    /// Measure the limits of this machine and of pubmark's load generator.
    Calibrate(CalibrateArgs),
    /// Check this machine or other hosts for anything that disturbs a measurement.
    Doctor(DoctorArgs),
    /// Play clients on standard input and output; pubmark starts it.
    Agent,
    /// Test an agent against the agent protocol, case by case.
    AgentCheck(AgentCheckArgs),
    /// Run agents and servers on this host for a coordinator; pubmark starts it.
    Host,
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Keep a server for a coordinator, and stop it when the coordinator exits.
    #[command(hide = true)]
    Keep,
    /// Start a server under limits.
    #[command(hide = true)]
    Launch(LaunchArgs),
    /// Serve a server's folder, and take back what was not synced.
    #[command(hide = true)]
    LedgerDisk(LedgerDiskArgs),
    /// Remove the leftovers of a run from a server; reads the run from standard input.
    #[command(hide = true)]
    Remove,
    /// Print the brokers of a Kafka cluster, or those that lead.
    #[command(hide = true)]
    AskKafka(AskKafkaArgs),
    /// Keep every processor awake.
    #[command(hide = true)]
    Awake(AwakeArgs),
    /// Act as a broker with scripted delays and faults, to check a measurement against.
    #[command(hide = true)]
    Peer(PeerArgs),
    /// Play clients through an agent that writes rows, on standard input and output.
    #[command(hide = true)]
    Rows(RowsArgs),
    /// Receive MQTT messages and discard them.
    #[command(hide = true)]
    Sink(SinkArgs),
    /// Send or receive MQTT messages in a bare loop.
    #[command(hide = true)]
    Bare(BareArgs),
}

/// `pubmark bench`
#[derive(Args)]
#[command(after_help = "\
Options of the workload and the server take lists: `--rate 500,1000` measures both rates.

Examples:
  pubmark bench zeromq --transport tcp --rate 1000 --payload 1KiB
  pubmark bench nats --pairs 10 --rate 500,1000,2000 --payload 64B,1KiB
  pubmark bench mosquitto --pairs 1000 --rate 10 --cpus 1 --memory 2GB
  pubmark bench mosquitto --pairs 10 --precision 'p99 ±5%' --budget 10m
  pubmark bench mosquitto --rate 100 --fault 'stop server at 2s for 1s'
  pubmark bench mqtt://broker.example:1883 --pairs 100 --rate 10 --qos 1
  pubmark bench ./my-broker.toml --require 'p99 < 5ms and lost = 0'")]
pub struct BenchArgs {
    /// Name or file of a system (`pubmark systems` lists them), or URL of a running server: mqtt(s)://,
    /// ws(s)://, nats:// or tls://, redis(s)://, amqp(s)://, amqp1(s)://, kafka://, zenoh://.
    pub target: String,
    /// Workload and server.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Measure for this long [default: 5s].
    #[arg(long, value_name = "T", conflicts_with = "count")]
    pub duration: Option<String>,
    /// Run each cell N times [default: 3].
    #[arg(long, value_name = "N")]
    pub repeats: Option<String>,
    /// Measure N messages of each publisher, instead of a duration.
    #[arg(long, value_name = "N", help_heading = "Measuring")]
    pub count: Option<String>,
    /// Repeat until a 95 % interval is this narrow: 'p99 ±5%', or ±2% of p50 (of delivered_per_s with
    /// --rate max); +- means ±.
    #[arg(
        long,
        value_name = "±X%",
        conflicts_with = "repeats",
        allow_hyphen_values = true,
        help_heading = "Measuring"
    )]
    pub precision: Option<String>,
    /// Stop --precision after this time [default: 5m].
    #[arg(long, value_name = "T", requires = "precision", help_heading = "Measuring")]
    pub budget: Option<String>,
    /// Search for the highest load with p99 < 10ms and lost = 0, up to 10 times this one, for 1m at
    /// most (stored in headroom/).
    #[arg(long, help_heading = "Measuring")]
    pub headroom: bool,
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

/// `pubmark systems`
#[derive(Args)]
#[command(after_help = "\
Examples:
  pubmark systems
  pubmark systems mosquitto --install
  pubmark systems --hosts hosts.toml
  pubmark systems my-broker --new --protocol mqtt")]
pub struct SystemsArgs {
    /// Print the details of this system: its name, or a system file.
    pub name: Option<String>,
    /// Install it: Debian packages, or pinned downloads in a cache folder.
    #[arg(long, requires = "name")]
    pub install: bool,
    /// Write systems/NAME.toml, a template for a system of your own.
    #[arg(long, requires = "name", conflicts_with = "install")]
    pub new: bool,
    /// With --new: describe a broker of this protocol.
    #[arg(
        long,
        value_parser = protocols::of_sessions(),
        requires = "new",
        hide_possible_values = true,
        help = format!("With --new: describe a broker of this protocol: {}", protocols::spoken_names())
    )]
    pub protocol: Option<Protocol>,
    /// With --new: describe a program that speaks the agent protocol.
    #[arg(long, requires = "new", conflicts_with = "protocol")]
    pub agent: bool,
    /// List or install on the hosts in this file (docs/several-machines.md).
    #[arg(long, value_name = "FILE", conflicts_with = "new")]
    pub hosts: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `pubmark studies`
#[derive(Args)]
#[command(after_help = "\
Examples:
  pubmark studies
  pubmark studies quickstart > my-study.toml
  pubmark studies --from asyncapi.yaml > my-study.toml")]
pub struct StudiesArgs {
    /// Print the file of this study, as a start for your own.
    pub name: Option<String>,
    /// Print a skeleton of a study with a flow for each channel of this AsyncAPI document.
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub from: Option<PathBuf>,
}

/// `pubmark report`
#[derive(Args)]
#[command(after_help = "\
Examples:
  pubmark report results/quickstart-20260101-120000
  pubmark report results/before results/after --out both.html
  pubmark report results/slow-rates results/fast-rates --join
  pubmark report results/brokers --where 'p99 < 20ms and server_memory < 100MB'
  pubmark report results/brokers --promise 'survives kill'")]
pub struct ReportArgs {
    /// Results folders; the page shows several side by side.
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Write the page to this file [default: report.html; for several folders comparison.html or
    /// joined.html, in the first].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Join folders of one study whose values of one axis differ, into one result.
    #[arg(long)]
    pub join: bool,
    /// Print all tables, with every row and every skipped cell, instead of the short result.
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
    /// Print the format of another tool (docs/other-tools.md).
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["markdown", "csv", "json", "all", "constraints"])]
    pub format: Option<ReportFormat>,
    /// Rank only systems that were not seen to break this: 'survives slow consumer', 'survives cut
    /// link', 'survives freeze', 'survives full disk', 'survives kill' or 'survives power cut'.
    #[arg(long, value_name = "PROMISE", conflicts_with_all = ["format", "constraints"])]
    pub promise: Option<String>,
    /// With --promise: results folder of a card whose runs count as well. Repeatable.
    #[arg(long, value_name = "DIR", requires = "promise")]
    pub cards: Vec<PathBuf>,
    /// Print instead the systems that meet these bounds of figures, values of axes and licence:
    /// 'p99 < 20ms and qos = 1 and licence = MIT'.
    #[arg(long = "where", value_name = "CONSTRAINTS", conflicts_with_all = ["csv", "all"])]
    pub constraints: Option<String>,
}

/// Formats of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    /// Bencher Metric Format, JSON.
    Bencher,
    /// Entries of github-action-benchmark, JSON for its tool customSmallerIsBetter.
    GithubBenchmark,
    /// Percentiles of each cell's latency, as HdrHistogram's tools print them, in µs.
    Hgrm,
    /// HdrHistogram interval log, a line per run.
    Hlog,
    /// Result of OpenMessaging Benchmark, JSON; an array of them if there are several cells.
    Omb,
}

/// `pubmark claims`
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 done; 1 a claim with `gate = true` fails; 2 usage error or bad file.

Examples:
  pubmark claims results/brokerless-20260101-120000
  pubmark claims results/brokerless-20260101-120000 --markdown")]
pub struct ClaimsArgs {
    /// Results folder.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Print every part of every claim with its evidence, instead of one line per claim.
    #[arg(long)]
    pub all: bool,
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
Exit codes: 0 every gate passed; 1 a gate failed; 2 usage error or bad file; 3 a gate is too noisy \
to decide, or has no usable runs.

Examples:
  pubmark compare results/before results/after
  pubmark compare results/main results/branch \\
      --fail-on 'p99 > +5%, delivered_per_s < -2%' --markdown
  pubmark compare results/before results/after --only payload=1KiB
  pubmark compare results/before results/after \\
      --require 'p99 < 5ms and lost = 0' --junit gates.xml
  pubmark compare results/brokers --across system=mosquitto,nats
  pubmark compare --history results/nightly-* --fail-on 'p99 > +10%'")]
pub struct CompareArgs {
    /// Baseline folder A, then B (with --across one folder, with --history six or more).
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Compare cells that differ only in this axis: value A with value B.
    #[arg(long, value_name = "AXIS=A,B", conflicts_with = "history")]
    pub across: Option<String>,
    /// Find when a figure changed, over folders in the order of their runs.
    #[arg(long)]
    pub history: bool,
    /// Gates on changes and figures.
    #[command(flatten)]
    pub gates: GateArgs,
    /// Pass gates that are too noisy to decide, instead of exit code 3.
    #[arg(long)]
    pub allow_noisy: bool,
    /// Refused: this command ranks no systems.
    #[arg(long, value_name = "PROMISE", hide = true)]
    pub promise: Option<String>,
    /// Compare only these values of an axis, such as rate=100,1000.
    #[arg(long, value_name = "AXIS=VALUES")]
    pub only: Vec<String>,
    /// Print every comparison instead of the short result.
    #[arg(long)]
    pub all: bool,
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
Exit codes: 0 ready; 1 a measurement would be disturbed, or leftovers could not be removed; \
2 usage error or bad file.

Examples:
  pubmark doctor
  pubmark doctor --hosts hosts.toml
  pubmark doctor mqtt://broker.example:1883 --remove")]
pub struct DoctorArgs {
    /// List the leftovers of killed runs on this server, instead of checking the machine.
    #[arg(value_name = "ENDPOINT", conflicts_with = "hosts")]
    pub endpoint: Option<String>,
    /// Remove these leftovers.
    #[arg(long, requires = "endpoint")]
    pub remove: bool,
    /// Check the hosts in this file, and the way to them, instead of this machine.
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `pubmark agent-check`
#[derive(Args)]
#[command(after_help = "\
Write the options before the command: everything after its first word belongs to the agent.

Exit codes: 0 every case passed; 1 a case failed; 2 usage error.

Examples:
  pubmark agent-check -- pubmark agent
  pubmark agent-check --system nng
  pubmark agent-check --system ./my-library.toml --transport tcp
  pubmark agent-check --transport tcp -- node my-agent.mjs --verbose
  pubmark agent-check --only send-schedule,receive-latency -- python3 agent.py
  pubmark agent-check --list")]
pub struct AgentCheckArgs {
    /// Test the agent of this system (name or file), instead of a command.
    #[arg(long, value_name = "SYSTEM", conflicts_with = "command")]
    pub system: Option<String>,
    /// Test this driver [default: the first that needs no server, or the first].
    #[arg(long, value_name = "NAME")]
    pub driver: Option<String>,
    /// Test inproc, ipc, tcp or udp [default: all of the driver's system, or tcp].
    #[arg(long, value_name = "NAME")]
    pub transport: Option<String>,
    /// Test these cases, by name or beginning of a name [default: all].
    #[arg(long, value_name = "CASE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// List the cases with input and expected output, and test nothing.
    #[arg(long)]
    pub list: bool,
    /// Command of the agent, with its arguments.
    #[arg(trailing_var_arg = true, required_unless_present_any = ["list", "system"], allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// `pubmark completions`
#[derive(Args)]
#[command(after_help = "\
Examples:
  pubmark completions bash > pubmark.bash")]
pub struct CompletionsArgs {
    /// Print the script for this shell.
    pub shell: clap_complete::Shell,
}

/// `pubmark awake`
#[derive(Args)]
pub struct AwakeArgs {
    /// Process id of the coordinator; the spinner exits with it.
    #[arg(long, value_name = "PID")]
    pub parent: i32,
}

/// `pubmark ask-kafka`
#[derive(Args)]
pub struct AskKafkaArgs {
    /// Print the broker of each partition that leads it, instead of all brokers.
    #[arg(long)]
    pub leaders: bool,
    /// HOST:PORT of a broker's listener without TLS and login.
    pub address: String,
}

/// `pubmark ledger-disk`
#[derive(Args)]
pub struct LedgerDiskArgs {
    /// Folder of the server; its content is kept beside it.
    pub folder: PathBuf,
    /// Make a name durable only when its folder is synced.
    #[arg(long)]
    pub strict: bool,
}

/// `pubmark launch`
#[derive(Args)]
pub struct LaunchArgs {
    /// Process id of the keeper; the command exits with it.
    #[arg(long, value_name = "PID")]
    pub parent: i32,
    /// Control group to join; repeatable.
    #[arg(long, value_name = "DIR")]
    pub group: Vec<PathBuf>,
    /// Processor to bind the command to; repeatable.
    #[arg(long, value_name = "N")]
    pub cpu: Vec<usize>,
    /// Command of the server, with its arguments.
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

/// `pubmark peer`
#[derive(Args)]
pub struct PeerArgs {
    /// Speak this protocol; zeromq is ZMTP 3.0 over TCP, for PUB and SUB of libzmq.
    #[arg(long, value_parser = protocols::of_peer(), default_value = "mqtt")]
    pub protocol: PeerProtocol,
    /// Apply this script of delays and faults [default: relay every message].
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Listen at this address.
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub address: IpAddr,
    /// Listen on this port; 0 means any free port.
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
    /// Take a quarter of the time, with rougher figures.
    #[arg(long)]
    pub quick: bool,
    /// Open N idle connections, 10 to 1000000.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    pub connections: u32,
    /// Relay messages through this MQTT broker, instead of pubmark's relay.
    #[arg(long, value_name = "ENDPOINT")]
    pub relay: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `pubmark rows`
#[derive(Args)]
pub struct RowsArgs {
    /// Command of the agent, with its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// `pubmark sink`
#[derive(Args)]
pub struct SinkArgs {
    /// Share the port among N processes.
    #[arg(long, default_value_t = 1)]
    pub processes: u32,
    /// Listen on this port; 0 means any free port.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
}

/// The bare loops of `pubmark bare`.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum BareLoop {
    /// Send by a schedule.
    Send,
    /// Receive and discard.
    Receive,
    /// Send as fast as possible.
    Flood,
}

/// `pubmark bare`
#[derive(Args)]
pub struct BareArgs {
    /// Run this loop.
    pub what: BareLoop,
    /// Connect to this address.
    #[arg(long)]
    pub to: SocketAddr,
    /// Use this as the first part of every topic.
    #[arg(long, default_value = "bare")]
    pub run: String,
    /// Open this many connections.
    #[arg(long)]
    pub connections: u32,
    /// Send this many messages per second, over all connections.
    #[arg(long, default_value_t = 1)]
    pub rate: u64,
    /// Send payloads of this many bytes.
    #[arg(long)]
    pub payload: usize,
    /// Sleep at least this long between two wake-ups, in ns.
    #[arg(long, default_value_t = 0)]
    pub quantum_ns: u64,
    /// Begin the window this long after the start, in ns.
    #[arg(long)]
    pub warmup_ns: u64,
    /// Length of the window, in ns.
    #[arg(long)]
    pub window_ns: u64,
}
