//! Measures the generator delay that remains in the figures, and the cost of each kind of pacing for the measured
//! system: one after the other, in turns.
//!
//!     cargo bench -p pubmark --bench pacing [-- ROUNDS]
//!
//! 1,000 msg/s of 1 KiB over one connection. Prints medians over the rounds, µs; and the server's and the generator's
//! processors. It has no bounds: its purpose is the choice of the defaults (docs/accuracy.md).

use pubmark_stats::median;
use serde_json::Value;
use std::process::{Command, ExitCode};

/// Measured systems.
const SYSTEMS: [&[&str]; 5] = [
    &["kernel", "--transport", "inproc"],
    &["kernel", "--transport", "tcp"],
    &["zeromq", "--transport", "inproc"],
    &["zeromq", "--transport", "tcp"],
    &["mosquitto"],
];

/// Kinds of pacing.
const WAYS: [(&str, &[&str]); 5] = [
    ("sleep", &["pacing=sleep"]),
    ("hybrid", &["pacing=hybrid"]),
    ("hybrid, awake", &["pacing=hybrid", "awake=true"]),
    ("hybrid, receive spins", &["pacing=hybrid", "receive=spin"]),
    ("spin", &["pacing=spin"]),
];

/// Columns: the name, its place in a record, and the divisor.
const FIGURES: [(&str, &str, f64); 9] = [
    ("p50", "/latency_ns/p50", 1e3),
    ("p99", "/latency_ns/p99", 1e3),
    ("from due", "/intended_latency_ns/p50", 1e3),
    ("service", "/service_latency_ns/p50", 1e3),
    ("own p50", "/own_lag_ns/p50", 1e3),
    ("own p99", "/own_lag_ns/p99", 1e3),
    ("server", "/server/cpu_cores", 1.0),
    ("generator", "/generator/cpu_cores", 1.0),
    ("spent", "/pacing/spent_cores", 1.0),
];

fn run(system: &[&str], settings: &[&str]) -> Result<Value, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    let output = Command::new(env!("CARGO_BIN_EXE_pubmark"))
        .arg("bench")
        .args(system)
        .args(["--rate", "1000", "--payload", "1KiB", "--duration", "3s", "--repeats", "1", "--json", "-q"])
        .args(settings)
        .arg("--out")
        .arg(folder.path().join("results"))
        .output()
        .map_err(|error| error.to_string())?;
    let json: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok(json["runs"][0].clone())
}

/// Measures one system, each kind of pacing in each round.
fn measure(system: &[&str], rounds: usize) -> Result<(), String> {
    let mut all: Vec<Vec<Value>> = vec![Vec::new(); WAYS.len()];
    for _ in 0..rounds {
        for ((_, settings), runs) in WAYS.iter().zip(&mut all) {
            runs.push(run(system, settings)?);
        }
    }
    println!("{}", system.join(" "));
    for ((way, _), runs) in WAYS.iter().zip(&all) {
        print!("  {way:<22}");
        for (_, place, unit) in FIGURES {
            let values = runs.iter().filter_map(|run| run.pointer(place)?.as_f64()).map(|value| value / unit);
            match median(&values.collect::<Vec<f64>>()) {
                Some(value) if unit > 1.0 => print!(" {value:>9.1}"),
                Some(value) => print!(" {value:>9.3}"),
                None => print!(" {:>9}", "–"),
            }
        }
        println!();
    }
    Ok(())
}

fn main() -> ExitCode {
    let rounds = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(3).max(1);
    print!("{:<24}", "");
    FIGURES.iter().for_each(|(name, _, _)| print!(" {name:>9}"));
    println!();
    for system in SYSTEMS {
        if let Err(error) = measure(system, rounds) {
            eprintln!("{}: {error}", system.join(" "));
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
