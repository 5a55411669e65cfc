//! Measures the cost of pubmark's own message path: ZeroMQ as pubmark measures it, against a plain C loop on the same
//! libzmq.
//!
//!     cargo bench -p pubmark --bench zeromq_parity
//!     cargo bench -p pubmark --bench zeromq_parity -- --quick --free pipeline/tcp
//!
//! All threads of both sides are on one processor, so that a figure is the work per message. On two and more it also
//! depends on where the kernel puts the threads, which differs between rounds by up to a factor of three: `--free`
//! leaves them to the kernel, `--roles` keeps the senders on the first half of the processors.
//!
//! The memory of both is one arena, of which nothing is given back during a turn: see [`MEMORY`]; `--defaults` keeps
//! the allocator's settings. With `--limit` the C loop has a time limit on each receive, as most programs have: compare
//! with a run without to see its cost.
//!
//! The two take turns, so that other load of the machine affects both, and each turn of pubmark is compared with the
//! turn of C before it. The ratio of a case is the median of these pairs. Exit code 1 if one is out of bounds, 2 if
//! something could not be run.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::Duration;

/// Maximum ratio of pubmark's median round trip to that of the loop.
const ROUND_TRIP_MOST: f64 = 1.10;
/// Minimum ratio of pubmark's throughput to that of the loop.
const THROUGHPUT_LEAST: f64 = 0.90;

/// Settings of glibc's allocator, for both sides. By default it returns freed memory to the kernel now and then, and a
/// message of 32 KiB then costs up to eight page faults: if a queue of 2,000 of them runs empty, chance decides which
/// turns do so, and either side is up to 1.6 times as fast as the other.
const MEMORY: [(&str, &str); 2] = [("MALLOC_TRIM_THRESHOLD_", "1073741824"), ("MALLOC_ARENA_MAX", "1")];

const WARMUP: Duration = Duration::from_millis(500);

/// Reasons of pubmark against a run on a machine that is not quiet. Both sides are affected, so the pair is valid; any
/// other reason would mean that less was done than claimed.
const TOLERATED: [&str; 2] = ["noisy-machine", "not-steady"];

/// The C loop's time limit of a receive with `--limit`, ms.
const LIMIT_MS: u32 = 20;

const OPTIONS: [&str; 6] = ["--bench", "--quick", "--free", "--roles", "--defaults", "--limit"];

/// Rounds, their length, and settings of both sides.
struct Effort {
    rounds: usize,
    window: Duration,
    /// `roles` or `none`, as pubmark's key `pin`.
    pin: &'static str,
    /// Settings of the allocator.
    memory: &'static [(&'static str, &'static str)],
    /// The C loop's time limit of a receive, ms; 0 is none.
    limit_ms: u32,
}

const FULL: Effort = Effort { rounds: 7, window: Duration::from_secs(2), pin: "none", memory: &MEMORY, limit_ms: 0 };
const QUICK: Effort = Effort { rounds: 3, window: Duration::from_secs(1), ..FULL };

#[derive(Clone, Copy)]
enum Pattern {
    RequestReply,
    Pipeline,
}

impl Pattern {
    fn word(self) -> &'static str {
        match self {
            Pattern::RequestReply => "request-reply",
            Pattern::Pipeline => "pipeline",
        }
    }

    fn holds(self, ratio: f64) -> bool {
        match self {
            Pattern::RequestReply => ratio <= ROUND_TRIP_MOST,
            Pattern::Pipeline => ratio >= THROUGHPUT_LEAST,
        }
    }

    fn bound(self) -> String {
        match self {
            Pattern::RequestReply => format!("≤ {ROUND_TRIP_MOST:.2}"),
            Pattern::Pipeline => format!("≥ {THROUGHPUT_LEAST:.2}"),
        }
    }

    fn words(self, value: f64) -> String {
        match self {
            Pattern::RequestReply => format!("{:.2} µs", value / 1e3),
            Pattern::Pipeline => format!("{:.1} k/s", value / 1e3),
        }
    }
}

#[derive(Clone, Copy)]
struct Case {
    pattern: Pattern,
    transport: &'static str,
    payload_bytes: u32,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = match self.payload_bytes {
            bytes if bytes % 1024 == 0 => format!("{}KiB", bytes / 1024),
            bytes => format!("{bytes}B"),
        };
        write!(f, "{}/{}/{size}", self.pattern.word(), self.transport)
    }
}

fn cases(filters: &[String]) -> Vec<Case> {
    let mut cases = Vec::new();
    for pattern in [Pattern::RequestReply, Pattern::Pipeline] {
        for transport in ["tcp", "ipc", "inproc"] {
            for payload_bytes in [64, 32_768] {
                cases.push(Case { pattern, transport, payload_bytes });
            }
        }
    }
    cases.retain(|case| filters.is_empty() || filters.iter().any(|filter| case.to_string().contains(filter.as_str())));
    cases
}

/// One turn of one side.
struct Turn {
    /// Median round trip, ns, or messages per second.
    value: f64,
    /// The libzmq that was used: version and file.
    library: (String, PathBuf),
    /// True if pubmark found that the machine was not quiet.
    noisy: bool,
}

/// Both sides, and their folder.
struct Ring {
    folder: tempfile::TempDir,
    c_loop: PathBuf,
}

impl Ring {
    fn new() -> Result<Ring, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        let c_loop = compile(folder.path())?;
        Ok(Ring { folder, c_loop })
    }

    fn play_c(&self, case: Case, effort: &Effort) -> Result<Turn, String> {
        let mut command = Command::new(&self.c_loop);
        command.args([case.pattern.word(), case.transport, &case.payload_bytes.to_string()]);
        command.args([WARMUP.as_millis().to_string(), effort.window.as_millis().to_string()]);
        command.args([effort.pin, &effort.limit_ms.to_string()]).arg(self.folder.path());
        let output = run(command.envs(effort.memory.iter().copied()))?;
        if !output.status.success() {
            return Err(format!("{case}: the C loop ended with {}: {}", output.status, tail(&output.stderr)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines();
        let value = lines.next().and_then(|line| line.parse().ok());
        match (value, lines.next(), lines.next()) {
            (Some(value), Some(version), Some(path)) => {
                Ok(Turn { value, library: (version.to_owned(), real(path)), noisy: false })
            }
            _ => Err(format!("{case}: the C loop printed something else than three lines: {text}")),
        }
    }

    fn play_pubmark(&self, case: Case, effort: &Effort) -> Result<Turn, String> {
        let results = self.folder.path().join("results");
        let mut command = Command::new(env!("CARGO_BIN_EXE_pubmark"));
        command.args(["bench", "zeromq", "--rate", "max", "--repeats", "1", "--json", "--quiet"]);
        command.args(["--pattern", case.pattern.word(), "--transport", case.transport]);
        command.args(["--payload", &format!("{}B", case.payload_bytes)]);
        command.args(["--set", &format!("pin={}", effort.pin), "--warmup", &format!("{}ms", WARMUP.as_millis())]);
        command.args(["--duration", &format!("{}ms", effort.window.as_millis())]);
        command.arg("--out").arg(&results);
        let output = run(command.envs(effort.memory.iter().copied()))?;
        std::fs::remove_dir_all(&results).map_err(|error| format!("cannot remove {}: {error}", results.display()))?;
        // An invalid run has another exit code, but also its figures.
        let said = || format!("{case}: pubmark ended with {}: {}", output.status, tail(&output.stderr));
        let record: Value = serde_json::from_slice(&output.stdout).map_err(|_| said())?;
        let run = &record["runs"][0];
        let reasons = run["verdict"]["reasons"].as_array().ok_or_else(said)?;
        let tolerated = |reason: &&Value| TOLERATED.contains(&reason["reason"].as_str().unwrap_or_default());
        if let Some(fault) = reasons.iter().find(|reason| !tolerated(reason)) {
            return Err(format!("{case}: pubmark's run is invalid: {}: {}", fault["reason"], fault["evidence"]));
        }
        let value = match case.pattern {
            Pattern::RequestReply => &run["latency_ns"]["p50"],
            Pattern::Pipeline => &run["rates"]["delivered_per_s"],
        };
        let value = value.as_f64().ok_or_else(said)?;
        let version = |name: &str| run["versions"][name].as_str().unwrap_or("unknown").to_owned();
        Ok(Turn { value, library: (version("version"), real(&version("path"))), noisy: !reasons.is_empty() })
    }
}

fn compile(folder: &Path) -> Result<PathBuf, String> {
    let program = folder.join("zeromq_loop");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/zeromq_loop.c");
    let mut command = Command::new("cc");
    command.args(["-O2", "-pthread", "-o"]).arg(&program).args([source, "-lzmq", "-ldl"]);
    let output =
        command.output().map_err(|error| format!("no C compiler: cc: {error}\nhint: apt-get install gcc libc6-dev"))?;
    if output.status.success() {
        return Ok(program);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let missing = text.contains("zmq.h: No such file") || text.contains("cannot find -lzmq");
    let hint = if missing { "\nhint: apt-get install libzmq3-dev" } else { "" };
    Err(format!("{source} does not compile: {}{hint}", text.trim()))
}

fn run(command: &mut Command) -> Result<Output, String> {
    command.output().map_err(|error| format!("{} cannot be run: {error}", command.get_program().display()))
}

fn tail(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[text.len().saturating_sub(500)..]).trim().to_owned()
}

fn real(path: &str) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.into())
}

/// Returns the median of the rounds, of which there is at least one.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    pubmark_stats::median(&values.collect::<Vec<f64>>()).unwrap_or(f64::NAN)
}

/// Result of a case.
struct Outcome {
    passed: bool,
    noisy: usize,
}

/// Plays a case and prints its line.
fn compare(ring: &Ring, case: Case, effort: &Effort) -> Result<Outcome, String> {
    let mut pairs = Vec::new();
    for _ in 0..effort.rounds {
        let c = ring.play_c(case, effort)?;
        let pubmark = ring.play_pubmark(case, effort)?;
        if c.library != pubmark.library {
            return Err(format!(
                "not the same libzmq: the C loop has {:?}, pubmark {:?}; remove one of them, or set LD_LIBRARY_PATH",
                c.library, pubmark.library
            ));
        }
        pairs.push((c, pubmark));
    }
    let pattern = case.pattern;
    let ratios = || pairs.iter().map(|(c, pubmark)| pubmark.value / c.value);
    let ratio = median(ratios());
    let passed = pattern.holds(ratio);
    println!(
        "{:<27}{:>14}{:>14}{:>8.3}  {:<14}{:<8}{}",
        case.to_string(),
        pattern.words(median(pairs.iter().map(|(c, _)| c.value))),
        pattern.words(median(pairs.iter().map(|(_, pubmark)| pubmark.value))),
        ratio,
        format!("{:.3}..{:.3}", ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max)),
        pattern.bound(),
        if passed { "pass" } else { "FAIL" },
    );
    Ok(Outcome { passed, noisy: pairs.iter().filter(|(_, pubmark)| pubmark.noisy).count() })
}

/// Plays the cases. Returns whether all passed.
fn bench(filters: &[String], effort: &Effort) -> Result<bool, String> {
    let cases = cases(filters);
    if cases.is_empty() {
        return Err(format!("no case has {} in its name, such as request-reply/tcp/64B", filters.join(" or ")));
    }
    let ring = Ring::new()?;
    println!("{} rounds of {:?} after {WARMUP:?}; figures are medians over the rounds\n", effort.rounds, effort.window);
    let [case, c, pubmark, ratio, range, bound] = ["case", "C loop", "pubmark", "ratio", "min..max", "bound"];
    println!("{case:<27}{c:>14}{pubmark:>14}{ratio:>8}  {range:<14}{bound}");
    let (mut failed, mut noisy) = (0, 0);
    for case in &cases {
        let outcome = compare(&ring, *case, effort)?;
        failed += usize::from(!outcome.passed);
        noisy += outcome.noisy;
    }
    println!("\n{} of {} cases pass", cases.len() - failed, cases.len());
    if noisy > 0 {
        println!(
            "{noisy} of {} runs met a machine that was not quiet: better stop what else it does",
            cases.len() * effort.rounds
        );
    }
    Ok(failed == 0)
}

/// Binds this process, and all that it starts, to one of its processors.
fn stay_on_one_processor() -> nix::Result<()> {
    let this = Pid::from_raw(0);
    let usable = sched_getaffinity(this)?;
    let first = (0..CpuSet::count()).find(|cpu| usable.is_set(*cpu).unwrap_or(false)).unwrap_or(0);
    let mut one = CpuSet::new();
    one.set(first)?;
    sched_setaffinity(this, &one)
}

fn main() -> ExitCode {
    let (options, filters): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    if let Some(unknown) = options.iter().find(|option| !OPTIONS.contains(&option.as_str())) {
        eprintln!(
            "error: unknown option {unknown}\nusage: cargo bench -p pubmark --bench zeromq_parity -- [--quick] [--free|--roles] [--defaults] [--limit] [CASE-FILTER]..."
        );
        return ExitCode::from(2);
    }
    // `cargo test --benches` only checks that it builds.
    let given = |name: &str| options.iter().any(|option| option == name);
    if !given("--bench") {
        return ExitCode::SUCCESS;
    }
    let mut effort = if given("--quick") { QUICK } else { FULL };
    if given("--defaults") {
        effort.memory = &[];
    }
    if given("--limit") {
        effort.limit_ms = LIMIT_MS;
    }
    if given("--roles") {
        effort.pin = "roles";
    } else if !given("--free")
        && let Err(error) = stay_on_one_processor()
    {
        eprintln!("error: this process cannot be kept on one processor: {error}");
        return ExitCode::from(2);
    }
    match bench(&filters, &effort) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
