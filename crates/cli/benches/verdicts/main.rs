//! Measures from which amount a disturbance affects a figure, and whether the verdict reports it.
//!
//!     cargo bench -p pubmark --bench verdicts
//!     cargo bench -p pubmark --bench verdicts -- --rounds 6 zeromq-1000/load mosquitto
//!     cargo bench -p pubmark --bench verdicts -- --keep runs.jsonl
//!     cargo bench -p pubmark --bench verdicts -- --judge runs.jsonl
//!
//! Runs are disturbed by a known amount, in turns with undisturbed ones of the same cell. For each disturbance a line
//! shows how far each figure moved against the undisturbed runs, what the record contains about it, and in how many
//! runs a reason names that figure. `--keep` appends the runs to a file; `--judge` judges the runs of such a file again
//! with the bounds of this build, so that bounds can be tried without measuring again. `CELL/NAME` plays only cells and
//! disturbances with that text in their names.
//!
//! Exit code 1 if a disturbed figure was not caught, 2 if something could not be run.

mod disturb;
mod table;

use disturb::{Disturbance, disturbances};
use pubmark_judge::verdict;
use pubmark_model::record::RunRecord;
use pubmark_study::registry;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Measured cells, by name: the arguments of `pubmark bench`.
const CELLS: [(&str, &[&str]); 8] = [
    ("kernel-1000", &["kernel", "--transport", "tcp", "--rate", "1000"]),
    ("zeromq-1000", &["zeromq", "--transport", "tcp", "--rate", "1000"]),
    ("mosquitto-1000", &["mosquitto", "--pairs", "1", "--rate", "1000"]),
    ("zeromq-20000", &["zeromq", "--transport", "tcp", "--rate", "20000"]),
    ("mosquitto-20000", &["mosquitto", "--pairs", "1", "--rate", "20000"]),
    ("kernel-max", &["kernel", "--transport", "tcp", "--rate", "max"]),
    ("zeromq-max", &["zeromq", "--transport", "tcp", "--rate", "max"]),
    ("mosquitto-max", &["mosquitto", "--pairs", "1", "--rate", "max"]),
];
/// Number of disturbed runs after each undisturbed one.
const BETWEEN: usize = 3;

/// A run with its disturbance.
#[derive(Serialize, Deserialize)]
struct Turn {
    cell: String,
    disturbance: String,
    record: RunRecord,
}

/// Parameters of the command line.
#[derive(Default)]
struct Asked {
    bench: bool,
    rounds: usize,
    keep: Option<PathBuf>,
    judge: Option<PathBuf>,
    filters: Vec<String>,
}

impl Asked {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Asked, String> {
        let mut asked = Asked { rounds: 4, ..Asked::default() };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--bench" => asked.bench = true,
                "--rounds" => asked.rounds = value()?.parse().map_err(|error| format!("--rounds: {error}"))?,
                "--keep" => asked.keep = Some(value()?.into()),
                "--judge" => asked.judge = Some(value()?.into()),
                unknown if unknown.starts_with("--") => {
                    return Err(format!(
                        "unknown option {unknown}\nusage: cargo bench -p pubmark --bench verdicts -- [--rounds N] [--keep FILE | --judge FILE] [CELL/NAME]..."
                    ));
                }
                _ => asked.filters.push(argument),
            }
        }
        Ok(asked)
    }

    fn wants(&self, cell: &str, disturbance: &str) -> bool {
        let name = format!("{cell}/{disturbance}");
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter.as_str()))
    }
}

/// Makes one run of a cell.
fn run(cell: &[&str], disturbance: &Disturbance) -> Result<RunRecord, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let _load = disturbance.begin()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_pubmark"));
    command.arg("bench").args(cell).args(["--payload", "1KiB", "--repeats", "1", "--json", "--quiet"]);
    command.args(["--warmup", "300ms", "--duration", "2s", "--set", "drain=3s"]);
    command.args(disturbance.arguments()).arg("--out").arg(folder.path().join("results"));
    let output = command.output().map_err(|error| error.to_string())?;
    let complaint = || String::from_utf8_lossy(&output.stderr).into_owned();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|_| complaint())?;
    let record: RunRecord = serde_json::from_value(json["runs"][0].clone()).map_err(|error| error.to_string())?;
    record.error.map_or(Ok(()), Err)?;
    serde_json::from_value(json["runs"][0].clone()).map_err(|error| error.to_string())
}

/// Plays all selected turns.
fn play(asked: &Asked) -> Result<Vec<Turn>, String> {
    let mut turns = Vec::new();
    for (cell, arguments) in CELLS {
        let all: Vec<Disturbance> = disturbances(arguments.contains(&"max"));
        let wanted: Vec<&Disturbance> = all.iter().filter(|one| asked.wants(cell, one.name())).collect();
        for _ in 0..if wanted.is_empty() { 0 } else { asked.rounds } {
            for (index, disturbance) in wanted.iter().enumerate() {
                let undisturbed = (index % BETWEEN == 0).then_some(&NONE);
                for disturbance in undisturbed.into_iter().chain([*disturbance]) {
                    let record = run(arguments, disturbance)
                        .map_err(|error| format!("{cell}/{}: {error}", disturbance.name()))?;
                    let turn = Turn { cell: cell.into(), disturbance: disturbance.name().into(), record };
                    asked.keep.as_deref().map_or(Ok(()), |path| append(path, &turn))?;
                    turns.push(turn);
                }
            }
        }
    }
    Ok(turns)
}

fn append(path: &Path, turn: &Turn) -> Result<(), String> {
    let line = serde_json::to_string(turn).map_err(|error| error.to_string())? + "\n";
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(|error| format!("{}: {error}", path.display()))
}

/// Judges the runs of a file again.
fn judged(path: &Path) -> Result<Vec<Turn>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut turns: Vec<Turn> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{}: {error}", path.display()))?;
    for Turn { record, .. } in &mut turns {
        let system = registry::built_in(&record.system).ok_or(format!("no system {}", record.system))?;
        record.rates.lower_bound = verdict::lower_bound(record);
        record.verdict = verdict::judge(record, &system, 0, None, None);
    }
    Ok(turns)
}

/// Disturbance of undisturbed runs.
static NONE: Disturbance = Disturbance::NONE;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(end) = disturb::as_load(&arguments) {
        return end;
    }
    let asked = match Asked::parse(arguments.into_iter()) {
        Ok(asked) => asked,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    // `cargo test --benches` only checks that it builds.
    if !asked.bench && asked.judge.is_none() {
        return ExitCode::SUCCESS;
    }
    let turns = match &asked.judge {
        Some(path) => judged(path),
        None => play(&asked),
    };
    match turns {
        Ok(turns) if table::print(&turns, |cell, name| asked.wants(cell, name)) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
