//! Measures the cost of a report of many runs: time, memory, the size of its page and its lines on a terminal, for
//! 2,000 runs and for 20,000; the time until its page answers the first click; and the exponent with which each grows.
//!
//!     cargo bench -p pubmark --bench many_runs
//!
//! Node opens the page in Chromium (`make web-check` installs both).
//!
//! Two systems in virtual time are measured once at ten rates, ten repeats of each; the folder contains copies of these
//! records for each of many payloads.
//!
//! Exit code 1 if a bound is missed, 2 if something could not be run.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Number of measured runs.
const MEASURED: usize = 200;
/// Numbers of payloads with copies in the two folders.
const PAYLOADS: [usize; 2] = [10, 100];
/// Reports of each folder; the fastest counts.
const REPORTS: usize = 3;

/// Bounds of the larger folder: lines on a terminal, bytes of the page, s, bytes of memory, s until the page answers.
const LINES_MAX: f64 = 200.0;
const PAGE_MAX: f64 = 15e6;
const WALL_MAX_S: f64 = 10.0;
const MEMORY_MAX: f64 = 200e6;
const ANSWERED_MAX_S: f64 = 3.0;
/// Maximum exponent of a report's growth: linear, plus the difference between two measurements on one machine.
const POWER_MAX: f64 = 1.05;

/// Argument that makes this program report one folder and print the cost: the memory of children is that of the largest
/// child that a process ever had.
const ONE: &str = "--one-report";

const STUDY: &str = "title = \"Many runs\"\nquestion = \"What does a report of many runs cost?\"\n\
    [workload]\nwarmup = \"100ms\"\nduration = \"1s\"\n[run]\nrepeats = 10\n\
    [axes]\nsystem = [\"swift\", \"slow\"]\npayload = [64]\n\
    rate = [1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900]\n";

/// Cost of a report.
#[derive(Clone, Copy)]
struct Cost {
    wall_s: f64,
    user_s: f64,
    memory_bytes: f64,
    page_bytes: f64,
    lines: f64,
    /// Time from opening the page until it answers the first click.
    answered_s: f64,
}

impl Cost {
    /// Returns each part with its name, its unit's size and its bound.
    fn parts(&self) -> [(&'static str, f64, f64, f64); 6] {
        [
            ("wall time, s", self.wall_s, 1.0, WALL_MAX_S),
            ("user time, s", self.user_s, 1.0, f64::INFINITY),
            ("peak memory, MB", self.memory_bytes, 1e6, MEMORY_MAX),
            ("page, MB", self.page_bytes, 1e6, PAGE_MAX),
            ("lines", self.lines, 1.0, LINES_MAX),
            ("page answers, s", self.answered_s, 1.0, ANSWERED_MAX_S),
        ]
    }
}

/// Reports a folder in a separate process, and prints the cost.
fn one(folder: &str) -> Result<(), String> {
    let began = Instant::now();
    let output = pubmark(&["report", folder], Path::new("."))?;
    let wall_s = began.elapsed().as_secs_f64();
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    let lines = output.lines().count();
    // Linux counts it in KiB.
    let memory_bytes = used.max_rss() as f64 * 1_024.0;
    println!("{}", json!([wall_s, seconds(used.user_time()), memory_bytes, lines]));
    Ok(())
}

/// Returns the program's standard output.
fn pubmark(arguments: &[&str], within: &Path) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pubmark"));
    command.args(arguments).current_dir(within).stdin(Stdio::null()).env_remove("COLUMNS");
    let output = command.output().map_err(|error| format!("pubmark cannot be started: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("pubmark {arguments:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn measure(folder: &Path) -> Result<Cost, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program).arg(ONE).arg(folder).output().map_err(|error| error.to_string())?;
    let said: [f64; 4] = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let page = std::fs::metadata(folder.join("report.html")).map_err(|error| error.to_string())?;
    let [wall_s, user_s, memory_bytes, lines] = said;
    Ok(Cost { wall_s, user_s, memory_bytes, page_bytes: page.len() as f64, lines, answered_s: 0.0 })
}

/// Measures both systems in virtual time. Returns the results folder.
fn measured(place: &Path) -> Result<PathBuf, String> {
    let text = |error: std::io::Error| error.to_string();
    std::fs::create_dir(place.join("systems")).map_err(text)?;
    let mock = include_str!("../../../systems/mock.toml");
    for (name, delay) in [("swift", "100us"), ("slow", "110us")] {
        let system = mock.replace("default = \"100us\"", &format!("default = \"{delay}\""));
        std::fs::write(place.join("systems").join(format!("{name}.toml")), system).map_err(text)?;
    }
    std::fs::write(place.join("study.toml"), STUDY).map_err(text)?;
    pubmark(&["run", "study.toml", "--out", "measured", "-q"], place)?;
    Ok(place.join("measured"))
}

/// Returns a folder with a copy of each run of another for each of this many payloads.
fn multiplied(measured: &Path, payloads: usize, folder: PathBuf) -> Result<PathBuf, String> {
    let text = |error: std::io::Error| error.to_string();
    let sizes: Vec<usize> = (1..=payloads).map(|number| 64 * number).collect();
    std::fs::create_dir_all(folder.join("systems")).map_err(text)?;
    for system in ["swift.toml", "slow.toml"] {
        std::fs::copy(measured.join("systems").join(system), folder.join("systems").join(system)).map_err(text)?;
    }
    let study = std::fs::read_to_string(measured.join("study.toml")).map_err(text)?;
    let multiple = study.replace("payload = [64]\n", &format!("payload = {sizes:?}\n"));
    if payloads > 1 && multiple == study {
        return Err("the resolved study has its payload elsewhere".into());
    }
    std::fs::write(folder.join("study.toml"), multiple).map_err(text)?;
    let records = std::fs::read_to_string(measured.join("runs.jsonl")).map_err(text)?;
    let file = std::fs::File::create(folder.join("runs.jsonl")).map_err(text)?;
    let mut out = std::io::BufWriter::new(file);
    for line in records.lines() {
        let mut run: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        for size in &sizes {
            run["cell"]["payload"] = (*size).into();
            run["workload"]["payload_bytes"] = (*size).into();
            writeln!(out, "{run}").map_err(text)?;
        }
    }
    out.flush().map_err(text)?;
    Ok(folder)
}

/// Returns the cost of the cheapest of several reports.
fn cheapest(folder: &Path) -> Result<Cost, String> {
    let costs: Vec<Cost> = (0..REPORTS).map(|_| measure(folder)).collect::<Result<_, _>>()?;
    let cheapest = costs.into_iter().min_by(|one, other| one.wall_s.total_cmp(&other.wall_s)).ok_or("no report")?;
    Ok(Cost { answered_s: answered(&folder.join("report.html"))?, ..cheapest })
}

/// Returns the time until a page in a browser answers the first click, s.
fn answered(page: &Path) -> Result<f64, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/tests/opened.mjs");
    let output = Command::new("node").arg(script).arg(page).output();
    let output = output.map_err(|error| format!("the page cannot be opened: node: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let ms: Result<f64, _> = said.trim().parse();
    ms.map(|ms| ms / 1e3).map_err(|_| format!("the page cannot be opened: {}", String::from_utf8_lossy(&output.stderr)))
}

fn compare() -> Result<bool, String> {
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let measured = measured(place.path())?;
    let mut costs = Vec::new();
    for payloads in PAYLOADS {
        let folder = multiplied(&measured, payloads, place.path().join(format!("x{payloads}")))?;
        costs.push(cheapest(&folder)?);
    }
    let [few, many] = costs.as_slice() else { return Err("two folders were meant".into()) };
    let [runs, more_runs] = PAYLOADS.map(|payloads| payloads * MEASURED);
    println!("{:<16} {:>12} {:>12} {:>7} {:>8}", "report of runs", runs, more_runs, "power", "bound");
    let mut good = true;
    let factor = PAYLOADS[1] as f64 / PAYLOADS[0] as f64;
    for ((name, few, unit, bound), (_, many, ..)) in few.parts().into_iter().zip(many.parts()) {
        let power = (many / few).ln() / factor.ln();
        let holds = many <= bound && power <= POWER_MAX;
        good &= holds;
        let shown = if bound.is_finite() { format!("{}", bound / unit) } else { "–".into() };
        let word = if holds { "met" } else { "MISSED" };
        println!("{name:<16} {:>12.2} {:>12.2} {power:>7.2} {shown:>8}  {word}", few / unit, many / unit);
    }
    println!("bounds are those of {more_runs} runs, and a power of {POWER_MAX} at most: linear, but for noise");
    Ok(good)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [first, folder] if first == ONE => one(folder).map(|()| true),
        _ => compare(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
