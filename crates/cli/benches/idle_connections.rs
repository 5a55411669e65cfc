//! Measures the generator's memory per idle MQTT connection: the slope of the agents' unique set sizes from 1,000 to
//! 9,000 pairs against Mosquitto.
//!
//!     cargo bench -p pubmark --bench idle_connections

use serde_json::Value;
use std::process::Command;

/// Pairs at the two ends of the slope.
const PAIRS: [u32; 2] = [1_000, 9_000];
/// Maximum memory of a connection, bytes.
const MOST_BYTES: f64 = 700.0;

/// Returns the unique set size of each agent, by name, bytes.
fn measure(pairs: u32) -> Result<Vec<(String, f64)>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let pairs = pairs.to_string();
    let flags = ["--rate", "0.1", "--payload", "64B", "--warmup", "1s", "--duration", "4s", "--repeats", "1"];
    let output = Command::new(env!("CARGO_BIN_EXE_pubmark"))
        .args(["bench", "mosquitto", "--pairs", &pairs, "--connect-rate", "4000", "--json", "--out"])
        .arg(folder.path().join("results"))
        .args(flags)
        .output()
        .map_err(|error| error.to_string())?;
    let complaint = || String::from_utf8_lossy(&output.stderr).into_owned();
    let all: Value = serde_json::from_slice(&output.stdout).map_err(|_| complaint())?;
    let run = &all["runs"][0];
    if let Some(error) = run["error"].as_str() {
        return Err(error.to_owned());
    }
    if run["connections"]["opened"] != run["connections"]["wanted"] {
        return Err(format!("not every client was connected: {}", run["connections"]));
    }
    let agents = run["agents"].as_array().ok_or_else(complaint)?;
    Ok(agents
        .iter()
        .filter_map(|agent| Some((agent["name"].as_str()?.to_owned(), agent["usage"]["uss_bytes_median"].as_f64()?)))
        .collect())
}

fn main() {
    let measured: Result<Vec<_>, String> = PAIRS.iter().map(|pairs| measure(*pairs)).collect();
    let measured = measured.unwrap_or_else(|error| panic!("{error}"));
    let [few, many] = measured.as_slice() else { return };
    let span = f64::from(PAIRS[1] - PAIRS[0]);
    let mut good = true;
    println!("generator memory for each idle MQTT connection, from {} to {} pairs:", PAIRS[0], PAIRS[1]);
    for ((name, least), (_, most)) in few.iter().zip(many) {
        let slope = (most - least) / span;
        good &= slope <= MOST_BYTES;
        println!("  {name:<12} {slope:>6.0} B a connection ({:.1} MB to {:.1} MB)", least / 1e6, most / 1e6);
    }
    println!("  bound: {MOST_BYTES:.0} B: {}", if good { "met" } else { "MISSED" });
    std::process::exit(i32::from(!good));
}
