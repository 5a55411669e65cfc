//! Checks that the offered rate equals the requested one, and shows the delay of sending.
//!
//!     cargo bench -p pubmark --bench offered_rate
//!
//! Exit code 1 if an offered or a sent rate is off by more than 0.1 %.

use serde_json::Value;
use std::process::{Command, ExitCode};

/// Maximum relative error of a rate.
const TOLERANCE: f64 = 0.001;

fn run(rate: &str, duration: &str, pacing: &str, folder: &str) -> Result<Value, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_pubmark"))
        .args(["bench", "zeromq", "--transport", "inproc", "--payload", "64B", "--repeats", "1", "--json", "-q"])
        .args(["--rate", rate, "--duration", duration, "--out", folder, "--set", &format!("pacing={pacing}")])
        .output()
        .map_err(|error| error.to_string())?;
    let json: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok(json["runs"][0].clone())
}

fn main() -> ExitCode {
    let Ok(place) = tempfile::tempdir() else {
        eprintln!("no temporary folder can be made");
        return ExitCode::from(2);
    };
    println!(
        "{:<8} {:>8} {:>12} {:>12} {:>10} {:>10} {:>10}",
        "pacing", "asked/s", "offered/s", "sent/s", "lag p50", "lag p99", "lag max"
    );
    let mut good = true;
    for (rate, duration) in [("1", "10s"), ("1000", "5s"), ("50000", "5s")] {
        for pacing in ["sleep", "hybrid", "spin"] {
            let folder = place.path().join(format!("{rate}-{pacing}")).display().to_string();
            let record = match run(rate, duration, pacing, &folder) {
                Ok(record) => record,
                Err(error) => {
                    eprintln!("{rate}: {error}");
                    return ExitCode::from(2);
                }
            };
            let figure = |name: &str| record["rates"][name].as_f64().unwrap_or_default();
            let lag = |name: &str| record["send_lag_ns"][name].as_f64().unwrap_or_default() / 1e3;
            let (offered, sent) = (figure("offered_per_s"), figure("sent_per_s"));
            let asked: f64 = rate.parse().unwrap_or_default();
            let holds = [offered, sent].iter().all(|rate| (rate / asked - 1.0).abs() <= TOLERANCE);
            good &= holds;
            println!(
                "{pacing:<8} {rate:>8} {offered:>12.2} {sent:>12.2} {:>7.1} µs {:>7.1} µs {:>7.0} µs  {}",
                lag("p50"),
                lag("p99"),
                lag("max"),
                if holds { "pass" } else { "FAIL" }
            );
        }
    }
    if good { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
