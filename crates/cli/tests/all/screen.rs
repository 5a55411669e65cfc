//! Output for users: through a pseudo-terminal, and in a pipe.

use crate::support::{Place, pubmark, stderr, stdout};
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::Read;
use std::process::Stdio;

/// Runs the program with a pseudo-terminal for standard output and error.
fn on_terminal(place: &Place, columns: u16, arguments: &[&str]) -> String {
    let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(Some(&size), None).unwrap();
    let mut command = place.command(arguments);
    command.stdout(Stdio::from(pty.slave.try_clone().unwrap())).stderr(Stdio::from(pty.slave)).env("TERM", "xterm");
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut seen = Vec::new();
    let mut master = File::from(pty.master);
    let mut buffer = [0; 4096];
    // The kernel answers EIO once the last user of the other side has gone.
    while let Ok(read) = master.read(&mut buffer) {
        if read == 0 {
            break;
        }
        seen.extend_from_slice(&buffer[..read]);
    }
    child.wait().unwrap();
    String::from_utf8_lossy(&seen).into_owned()
}

/// Returns text without escape sequences.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            for c in chars.by_ref() {
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
        } else {
            out.push(c);
        }
    }
    out
}

const STUDY: &str = "title = \"A title\"\n[workload]\nduration = \"2s\"\n[axes]\nsystem = [\"mock\"]\nrate = [1000, \"max\"]\npayload = [\"64B\", \"1KiB\"]\n[options.mock]\nsend_cost = \"100us\"\n";

#[test]
fn a_terminal_of_80_or_200_columns_is_filled_and_never_overrun() {
    let place = Place::new();
    place.study(STUDY);
    for columns in [80, 200] {
        let out = format!("r{columns}");
        let seen = on_terminal(&place, columns, &["run", "study.toml", "--out", &out, "--all"]);
        assert!(seen.contains("\x1b["), "colours and a live table");
        let table = plain(seen.rsplit("A title").next().unwrap());
        for line in table.split(['\n', '\r']) {
            assert!(line.chars().count() <= usize::from(columns), "{columns} columns: {line:?}");
        }
        for word in ["mock", "p50", "p99", "delivered", "verdict"] {
            assert!(table.contains(word), "{columns}: {word} in {table}");
        }
        assert!(seen.contains("runs, "), "a progress with the time left: {seen:?}");
        let short = plain(&on_terminal(&place, columns, &["report", &out]));
        for line in short.split(['\n', '\r']) {
            assert!(line.chars().count() <= usize::from(columns), "{columns} columns: {line:?}");
        }
        for word in ["A title", "LATENCY p50 / p99", "THROUGHPUT", "12 runs: ", "Page: ", "--all"] {
            assert!(short.contains(word), "{columns}: {word} in {short}");
        }
        assert!(short.lines().count() <= pubmark_report::BRIEF_LINES_MAX, "{short}");
    }
}

#[test]
fn a_pipe_gets_plain_lines() {
    let place = Place::new();
    place.study(STUDY);
    let output = place.run(&["run", "study.toml", "--out", "r"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!stdout(&output).contains('\x1b') && !stderr(&output).contains('\x1b'));
    assert!(!stderr(&output).contains('\r'));
    let lines = stderr(&output);
    let of_cells = lines.lines().filter(|line| line.starts_with('[')).collect::<Vec<_>>();
    assert_eq!(of_cells.len(), 4, "a line for each cell: {lines}");
    assert!(
        of_cells[3].starts_with("[12/12] mock") && of_cells[3].contains(": 3 runs, 3 ok; the last: p50 "),
        "{lines}"
    );
    let verbose = stderr(&place.run(&["run", "study.toml", "--out", "v", "--verbose"]));
    assert_eq!(verbose.lines().filter(|line| line.starts_with('[')).count(), 12, "a line for each run: {verbose}");
    let quiet = place.run(&["run", "study.toml", "--out", "q", "-q"]);
    assert_eq!(stderr(&quiet), "", "the table alone was asked for");
    assert!(!stdout(&quiet).is_empty());
}

#[test]
fn json_markdown_and_csv_are_nothing_but_that() {
    let place = Place::new();
    place.study(STUDY);
    let json = place.run(&["run", "study.toml", "--out", "r", "--json"]);
    let rows: serde_json::Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 4);
    assert!(stdout(&place.run(&["report", "r", "--markdown"])).contains("| mock |"));
    let csv = stdout(&place.run(&["report", "r", "--csv"]));
    assert!(csv.starts_with("system,rate,payload,runs,valid_runs,"), "{csv}");
    assert_eq!(csv, std::fs::read_to_string(place.path("r/summary.csv")).unwrap());
    let again = place.run(&["report", "r"]);
    assert_eq!(again.status.code(), Some(0));
}

#[test]
fn help_has_examples_for_the_main_commands() {
    for command in ["run", "bench", "agent-check"] {
        let output = pubmark().args([command, "--help"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(stdout(&output).contains("Examples:\n  pubmark"), "{command}");
    }
    let version = pubmark().arg("--version").output().unwrap();
    assert_eq!(stdout(&version).trim(), format!("pubmark {}", env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&pubmark().args(["completions", shell]).output().unwrap());
        assert!(script.contains("agent-check"), "{shell}");
    }
}

#[test]
fn help_of_every_command_fits_two_screens_and_its_short_form_one() {
    let help = |words: &[&str]| stdout(&pubmark().args(words).env("COLUMNS", "100").output().unwrap());
    let top = help(&["--help"]);
    let commands = top.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let names = commands.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let mut seen = 0;
    for name in names {
        let (short, long) = (help(&[name, "-h"]), help(&[name, "--help"]));
        assert!(short.lines().count() <= 50, "{name} -h has {} lines", short.lines().count());
        assert!(long.lines().count() <= 90, "{name} --help has {} lines", long.lines().count());
        let shows = |text: &str| text.contains("\nOutput:\n");
        assert!(!shows(&short) && (!shows(&long) || short.contains(&format!("pubmark {name} --help"))), "{short}");
        seen += 1;
    }
    assert!(seen >= 15, "{top}");
}

#[test]
fn doctor_looks_at_what_matters() {
    let output = pubmark().args(["doctor", "--json"]).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)));
    let found: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let names: Vec<&str> = found.as_array().unwrap().iter().map(|one| one["what"].as_str().unwrap()).collect();
    for name in ["frequency governor", "load", "clock source", "congestion control", "open files a process"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn studies_say_what_they_ask_and_how_long_they_are() {
    let place = Place::new();
    let list = stdout(&place.run(&["studies"]));
    assert!(list.contains("brokerless") && list.contains("quickstart") && list.contains("with --quick"), "{list}");
    let file = stdout(&place.run(&["studies", "quickstart"]));
    std::fs::write(place.path("mine.toml"), file).unwrap();
    let plan = place.run(&["run", "mine.toml", "--dry-run"]);
    assert_eq!(plan.status.code(), Some(0), "{}", stderr(&plan));
    assert!(stdout(&plan).contains("24 cells, 72 runs"), "{}", stdout(&plan));
    assert!(!place.path("results").exists(), "a plan makes nothing");
}
