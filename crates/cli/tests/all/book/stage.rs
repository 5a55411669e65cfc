//! Runs a page's commands in a folder of its own.

use super::command::{Flags, Typed, commands, flags, operands, shortened};
use super::page::{Block, Page};
use super::tools;
use crate::conformance::of_the_page;
use crate::support::{Place, children, pubmark, stderr, stdout};
use pubmark_model::endpoint::Endpoint;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Seconds that a command may take, shortened.
const PATIENCE_S: &str = "240";

/// Replacement for a command that a test cannot run.
#[derive(Clone, Copy, Debug)]
pub enum Instead {
    /// Only make its plan: `--dry-run`.
    Plan,
    /// Only show what it would install.
    Show,
    /// Only parse its arguments: append `--help`.
    Read,
    /// Run it with these additional words.
    Part(&'static [&'static str]),
}

/// A kind of command that is not run, with the reason.
pub struct Exception {
    /// Words that the command must contain.
    pub words: &'static [&'static str],
    pub instead: Instead,
    pub why: &'static str,
}

/// Reason why agents of other languages are not played as pages describe them.
const LANGUAGES: &str = "its language may not be here; tests of their own play some";

/// All exceptions. One that no page needs fails the test.
pub const EXCEPTIONS: &[Exception] = &[
    Exception { words: &["--with"], instead: Instead::Read, why: "needs an earlier folder; join.rs plays it" },
    Exception { words: &["run", "brokerless"], instead: Instead::Plan, why: "hours, or a quarter of one" },
    Exception { words: &["run", "iot-edge"], instead: Instead::Plan, why: "days; brokers that are not installed" },
    Exception { words: &["run", "multi-publisher"], instead: Instead::Plan, why: "a day; brokers in Java" },
    Exception { words: &["run", "faults"], instead: Instead::Plan, why: "hours; needs the proxy that Go builds" },
    Exception { words: &["run", "field"], instead: Instead::Plan, why: "an hour; brokers that are not installed" },
    Exception { words: &["run", "queues"], instead: Instead::Plan, why: "minutes to hours; brokers in Java" },
    Exception { words: &["run", "streams"], instead: Instead::Plan, why: "minutes to hours; brokers in Java" },
    Exception { words: &["run", "mixed"], instead: Instead::Plan, why: "minutes: its faults need their whole window" },
    Exception { words: &["run", "power"], instead: Instead::Plan, why: "hours; needs the proxy that Go builds" },
    Exception {
        words: &["run", "power-cluster"],
        instead: Instead::Plan,
        why: "minutes: clusters of three; power.rs cuts members",
    },
    Exception {
        words: &["run", "failover"],
        instead: Instead::Plan,
        why: "minutes: clusters of three; clusters.rs plays one",
    },
    Exception { words: &["run", "durability"], instead: Instead::Plan, why: "hours; needs the proxy that Go builds" },
    Exception {
        words: &["run", "bindings"],
        instead: Instead::Plan,
        why: "minutes to hours; languages that may not be here",
    },
    Exception {
        words: &["run", "dds"],
        instead: Instead::Plan,
        why: "minutes to hours; libraries that may not be here",
    },
    Exception {
        words: &["run", "quickstart"],
        instead: Instead::Part(&["--only", "system=kernel,zeromq", "--only", "transport=tcp", "--only", "rate=1000"]),
        why: "72 runs; other tests make them",
    },
    Exception { words: &["systems", "--install"], instead: Instead::Show, why: "changes the machine; downloads" },
    Exception { words: &["zeromq-python"], instead: Instead::Read, why: LANGUAGES },
    Exception { words: &["zeromq-node"], instead: Instead::Read, why: LANGUAGES },
    Exception { words: &["zeromq-cpp"], instead: Instead::Read, why: LANGUAGES },
    Exception { words: &["null-cpp"], instead: Instead::Read, why: LANGUAGES },
    Exception { words: &["zeromq-dotnet"], instead: Instead::Read, why: LANGUAGES },
    Exception { words: &["zeromq-go"], instead: Instead::Read, why: LANGUAGES },
    Exception { words: &["zeromq-java"], instead: Instead::Read, why: LANGUAGES },
    Exception { words: &["zeromq-rust"], instead: Instead::Read, why: LANGUAGES },
    Exception { words: &["zeromq-rust-pure"], instead: Instead::Read, why: LANGUAGES },
    Exception { words: &["null-rust"], instead: Instead::Read, why: LANGUAGES },
    Exception { words: &["zerorpc-python"], instead: Instead::Read, why: LANGUAGES },
    Exception { words: &["fastdds"], instead: Instead::Read, why: LANGUAGES },
    Exception { words: &["cyclonedds"], instead: Instead::Read, why: LANGUAGES },
    Exception { words: &["bench", "kafka"], instead: Instead::Read, why: "downloads; kafka.rs plays it" },
    Exception { words: &["bench", "./amqtt.toml"], instead: Instead::Read, why: "downloads; a test of its own does" },
    Exception {
        words: &["capacity", "mosquitto"],
        instead: Instead::Read,
        why: "minutes; tests of their own search where the answer is known",
    },
    Exception { words: &["card", "mosquitto"], instead: Instead::Read, why: "minutes; card.rs measures its own" },
    Exception {
        words: &["ab", "mosquitto"],
        instead: Instead::Read,
        why: "minutes; tests of their own have two arms in virtual time",
    },
    Exception { words: &["ab", "zeromq"], instead: Instead::Read, why: "two builds that are the reader's own" },
    Exception { words: &["ab", "my/study.toml"], instead: Instead::Read, why: "the reader's own study and builds" },
    Exception {
        words: &["trace"],
        instead: Instead::Read,
        why: "the reader's own server; traces.rs records at others",
    },
    Exception { words: &["calibrate"], instead: Instead::Read, why: "a minute; tests of its own run it" },
    Exception {
        words: &["agent-check", "./pyzmq.toml"],
        instead: Instead::Read,
        why: "downloads; a test of its own does",
    },
    Exception { words: &["bench", "./pyzmq.toml"], instead: Instead::Read, why: "downloads; a test of its own does" },
];

/// The reader's own agent: docs/examples/agent.py.
const AGENT: &str = "agent.py";

/// State that all pages share.
pub struct Stage {
    /// A results folder, made once.
    results: Place,
    /// Commands that were run already.
    done: Mutex<BTreeSet<Vec<String>>>,
    /// Number of uses of each exception.
    used: Vec<AtomicUsize>,
}

const RESULTS: &str = "title = \"Two loads\"\nquestion = \"How late are messages at two rates?\"\n\
    [workload]\nduration = \"2s\"\n[axes]\nsystem = [\"mock\"]\nrate = [500, 1000]\n[run]\nrepeats = 5\n";

impl Stage {
    pub fn new() -> Stage {
        let results = Place::new();
        results.study(RESULTS);
        let output = results.run(&["run", "study.toml", "--out", "r", "-q"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let used = EXCEPTIONS.iter().map(|_| AtomicUsize::new(0)).collect();
        Stage { results, done: Mutex::default(), used }
    }

    /// Returns the exceptions that no page needed.
    pub fn unused(&self) -> Vec<String> {
        let unused = EXCEPTIONS.iter().zip(&self.used).filter(|(_, used)| used.load(Ordering::Relaxed) == 0);
        unused.map(|(one, _)| format!("no page needs the exception {:?} ({})", one.words, one.why)).collect()
    }

    /// Runs all commands of a page in order. Returns the errors.
    pub fn play(&self, page: &Page) -> Vec<String> {
        let place = Place::new();
        let mut wrong = Vec::new();
        for block in &page.blocks {
            if let Some(file) = file_of(block) {
                let path = place.path(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, &block.text).unwrap();
            }
            for typed in commands(page, block) {
                let shown = typed.words.join(" ");
                let outcome =
                    if typed.words[0] == "pubmark" { self.pubmark(&place, &typed) } else { tools::check(&typed.words) };
                wrong.extend(outcome.err().map(|why| format!("{}: {shown}\n{why}", typed.at)));
            }
        }
        wrong.extend(failed_runs(place.0.path()).into_iter().map(|why| format!("{}: {why}", page.path.display())));
        wrong
    }

    fn pubmark(&self, place: &Place, typed: &Typed) -> Result<(), String> {
        let words = &typed.words[1..];
        let known = help_flags(words.first().map_or("", String::as_str));
        let exception = EXCEPTIONS.iter().position(|one| one.words.iter().all(|word| words.iter().any(|w| w == word)));
        let mut words = words.to_vec();
        if let Some(index) = exception {
            self.used[index].fetch_add(1, Ordering::Relaxed);
            match EXCEPTIONS[index].instead {
                Instead::Part(more) => words.extend(more.iter().map(|word| (*word).to_owned())),
                other => return instead(place, &words, other),
            }
        }
        let subcommand = typed.words.get(1).map_or("", String::as_str);
        let (words, peer) = match subcommand {
            "bench" => attached(place, shortened(&words)),
            "run" => (shortened(&words), None),
            _ => (words, None),
        };
        if subcommand == "bench" && !words.iter().any(|word| word == "--out") {
            let new = self.done.lock().unwrap().insert(words.clone());
            if !new {
                return Ok(());
            }
        }
        if ["report", "compare"].contains(&subcommand) {
            operands(&words[1..], &known).iter().for_each(|folder| self.lend(&place.path(folder)));
        }
        if words.iter().any(|word| word == AGENT) && !place.path(AGENT).exists() {
            std::fs::write(place.path(AGENT), of_the_page()).unwrap();
        }
        let output = execute(place, typed, &words);
        drop(peer);
        if let Some(file) = &typed.output {
            std::fs::write(place.path(file), &output.stdout).unwrap();
        }
        expected(subcommand, typed.code, &output)
    }

    /// Puts results into a folder that a page expects.
    fn lend(&self, folder: &Path) {
        if folder.exists() {
            return;
        }
        std::fs::create_dir_all(folder).unwrap();
        for file in ["study.toml", "environment.json", "runs.jsonl", "summary.csv"] {
            std::fs::copy(self.results.path("r").join(file), folder.join(file)).unwrap();
        }
    }
}

/// Returns the file in which a block must be saved.
pub fn file_of(block: &Block) -> Option<&str> {
    let kind = block.language.as_deref().filter(|language| ["toml", "csv"].contains(language))?;
    block.file.as_deref().filter(|file| file.rsplit_once('.').is_some_and(|(_, extension)| extension == kind))
}

/// Checks that the exit code is the promised one; without a promise, 0. The codes of two commands depend on the
/// machine, so they may differ each time; failed runs are checked afterwards.
fn expected(subcommand: &str, promised: Option<i32>, output: &Output) -> Result<(), String> {
    let code = output.status.code().unwrap_or(-1);
    let fine = match (promised, subcommand) {
        (Some(promised), _) => code == promised,
        (None, "run" | "bench") => code == 0 || code == 3,
        (None, "doctor") => code == 0 || code == 1,
        (None, _) => code == 0,
    };
    if fine && !stderr(output).contains("panicked") {
        return Ok(());
    }
    Err(format!("exit code {code}\n{}{}", stdout(output), stderr(output)))
}

fn execute(place: &Place, typed: &Typed, words: &[String]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_pubmark"));
    let before = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", PATIENCE_S]).arg(program).args(words);
    command.current_dir(place.0.path()).stdin(Stdio::null());
    command.env("PATH", format!("{}:{before}", program.parent().unwrap().display())).env("TMPDIR", place.tmp());
    command.env_remove("COLUMNS").envs(typed.environment.iter().cloned());
    command.output().unwrap()
}

fn instead(place: &Place, words: &[String], what: Instead) -> Result<(), String> {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    match what {
        Instead::Plan => {
            words.retain(|word| !["--install", "--resume", "--dry-run"].contains(word));
            words.push("--dry-run");
            let output = place.run(&words);
            let nothing = stderr(&output).contains("every cell is skipped: nothing would be measured");
            // So on a machine that is too small, or has no broker: the plan was made nevertheless.
            return if nothing { Ok(()) } else { expected("", None, &output) };
        }
        Instead::Show | Instead::Part(_) => words.retain(|word| *word != "--install"),
        // After the command of an agent all words are the agent's own.
        Instead::Read => words.insert(if words[0] == "agent-check" { 1 } else { words.len() }, "--help"),
    }
    expected("", None, &place.run(&words))
}

/// Starts a broker without faults at the reader's address. If there is none for its protocol, only the arguments are
/// checked.
fn attached(place: &Place, mut words: Vec<String>) -> (Vec<String>, Option<Peer>) {
    let target = words.get(1).cloned().unwrap_or_default();
    let Some((scheme, _)) = target.split_once("://") else { return (words, None) };
    assert!(Endpoint::parse(&target).is_ok(), "{target} is not an endpoint");
    if !["mqtt", "nats", "redis"].contains(&scheme) {
        words.push("--help".into());
        return (words, None);
    }
    let peer = Peer::start(place, scheme);
    words[1] = peer.1.clone();
    (words, Some(peer))
}

/// A `pubmark peer` with its endpoint. It ends when this is dropped.
struct Peer(Child, String);

impl Peer {
    fn start(place: &Place, protocol: &str) -> Peer {
        let mut command = place.command(&["peer", "--protocol", protocol]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: serde_json::Value = serde_json::from_str(&line).unwrap();
        Peer(child, said["endpoint"].as_str().unwrap().to_owned())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        assert!(children(self.0.id()).is_empty());
    }
}

/// Returns the runs below a folder that failed or delivered nothing. A server that forgets everything in a power cut may
/// deliver nothing.
fn failed_runs(folder: &Path) -> Vec<String> {
    let mut failed = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            failed.extend(failed_runs(&path));
        }
        if entry.file_name() == "runs.jsonl" {
            let text = std::fs::read_to_string(&path).unwrap();
            let records = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
            let may_be_empty = |record: &serde_json::Value| record["faults"].to_string().contains("cut_power");
            let is_empty = |record: &serde_json::Value| record["counts"]["delivered"] == 0 && !may_be_empty(record);
            let bad = records.filter(|record| !record["error"].is_null() || is_empty(record));
            failed.extend(bad.map(|record| format!("{}: {}", record["cell"], record["error"])));
        }
    }
    failed
}

/// Returns the flags of a subcommand; those of the program for an empty name.
pub fn help_flags(subcommand: &str) -> Flags {
    flags(&help(subcommand))
}

/// Returns the help of a subcommand, in 80 columns.
pub fn help(subcommand: &str) -> String {
    let name = (!subcommand.is_empty() && !subcommand.starts_with('-')).then_some(subcommand);
    let output = pubmark().args(name).arg("--help").env("COLUMNS", "80").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{subcommand}: {}", stderr(&output));
    stdout(&output)
}

/// Returns every page: the README, the docs, the pages of studies and agents.
pub fn pages() -> Vec<Page> {
    let root = super::page::root();
    let mut paths: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(PathBuf::from).to_vec();
    let folders = ["docs", "docs/decisions", "docs/evidence"].map(|folder| (folder, false));
    for (folder, below) in folders.into_iter().chain([("studies", true), ("agents", true)]) {
        for entry in std::fs::read_dir(root.join(folder)).unwrap().flatten() {
            let path = if below { entry.path().join("README.md") } else { entry.path() };
            if path.is_file() && path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path.strip_prefix(&root).unwrap().to_owned());
            }
        }
    }
    paths.sort();
    paths.iter().map(|path| Page::read(path)).collect()
}
