//! Helpers of the tests: a place of their own, and the program in it.

use crate::relay;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pubmark_host::install;
use pubmark_host::server::certificates::Certificates;
use pubmark_host::server::{Server, StartPlan, ports};
use pubmark_model::cell::Limits;
use pubmark_model::secret::Secrets;
use pubmark_model::server::{Places, ServerSpec};
use pubmark_study::registry;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Maximum time for which a test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Window of a run that a test watches, and then ends itself.
pub const ENDLESS: &str = "3600s";

/// Returns the program under test.
pub fn pubmark() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pubmark"));
    command.stdin(Stdio::null()).env_remove("COLUMNS").env_remove("NO_COLOR");
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command
}

/// A folder of one test, and the program run in it. The program's own temporary folder lies within, so that leftovers
/// can be found.
pub struct Place(pub tempfile::TempDir);

impl Place {
    pub fn new() -> Place {
        let place = Place(tempfile::Builder::new().prefix("pm").tempdir().unwrap());
        std::fs::create_dir(place.tmp()).unwrap();
        place
    }

    /// Returns a place whose runs can have links: with the installed proxy or, if there is none, with a relay of the
    /// tests.
    pub fn linked() -> Place {
        let place = Place::new();
        if install::missing_tool(install::tools::toxiproxy()).is_some() {
            relay::install(&place.cache());
        }
        place
    }

    /// Returns the cache folder of a place that has one of its own.
    fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    pub fn tmp(&self) -> PathBuf {
        self.0.path().join("t")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = pubmark();
        command.args(arguments).current_dir(self.0.path()).env("TMPDIR", self.tmp());
        // Leftovers of other tests at their servers do not belong to this place.
        command.env("XDG_STATE_HOME", self.path("state"));
        if self.cache().is_dir() {
            command.env("XDG_CACHE_HOME", self.cache());
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Writes the file of a system into the place.
    pub fn system(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path("systems")).unwrap();
        std::fs::write(self.path("systems").join(format!("{name}.toml")), text).unwrap();
    }

    /// Writes the file of a system that is the scripted peer over MQTT: with more keys of the system, words of a shell
    /// before it and arguments behind it, and more keys of the server.
    pub fn peer_system(&self, name: &str, keys: &str, (first, arguments): (&str, &str), server: &str) {
        let program = env!("CARGO_BIN_EXE_pubmark");
        let file = format!(
            r#"title = "{name}"
about = "the scripted peer"
licence = "MIT"
homepage = "https://example.org"
driver = "mqtt"
patterns = ["pairs"]
{keys}

[server]
endpoint = "mqtt://{{address}}:{{port}}"
command = ["sh", "-c", "{first} sleep 1000000 | '{program}' peer --protocol mqtt --port {{port}} {arguments}"]
{server}"#
        );
        self.system(name, &file);
    }

    /// Writes a study file into the place.
    pub fn study(&self, text: &str) -> PathBuf {
        let path = self.path("study.toml");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns the records of a results folder, in the order of their lines.
    pub fn records(&self, folder: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(folder).join("runs.jsonl")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Makes one run of `pubmark bench` into the folder `r`, short unless the arguments say otherwise. Tests read the
    /// record, not the report.
    pub fn bench(&self, arguments: &[&str]) -> Benched {
        Benched::read(self.run(&bench_arguments(arguments)))
    }

    /// Runs a bench of one second that has to succeed, checks that its counts add up, and returns its record.
    pub fn measure(&self, arguments: &[&str]) -> Value {
        let record = self.bench(arguments).record;
        assert!(record["error"].is_null(), "{}", record["error"]);
        assert_adds_up(&record);
        record
    }

    /// Starts a server of the test, for pubmark to attach to. It ends when it is dropped, or with this process.
    pub fn serve(&self, spec: &ServerSpec, places: Places) -> Server {
        self.serve_with(spec, places, None)
    }

    /// Starts a server of the test with these certificates.
    pub fn serve_with(&self, spec: &ServerSpec, places: Places, certificates: Option<Certificates>) -> Server {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let plan = StartPlan {
            system: "server",
            spec,
            deployment: "native",
            places,
            certificates,
            dir: self.path("server"),
            log: self.path("server.log"),
            processors: &[],
            disk: None,
            mesh: None,
            limits: Limits::default(),
            program: PathBuf::from(env!("CARGO_BIN_EXE_pubmark")),
            remove: vec![self.path("server")],
            secrets: Secrets::default(),
            grace_ms: 500,
            interrupt: &NEVER,
        };
        Server::start(&plan).unwrap()
    }

    /// Starts a server as a system's own file describes it.
    pub fn serve_system(&self, name: &str, ports: Vec<(String, u16)>) -> Server {
        let system = registry::built_in(name).unwrap();
        let options = system.options.iter().filter_map(|option| Some((option.name.clone(), option.default.clone()?)));
        let cache = pubmark_host::cache::cache_folder(&system).display().to_string();
        let places = Places { ports, cache, cpus: 1, memory_mb: 512, options: options.collect(), ..Places::default() };
        self.serve(system.server.as_ref().unwrap(), places)
    }

    /// Checks that nothing is left in the program's temporary folder.
    pub fn assert_swept(&self) {
        let left: Vec<_> = std::fs::read_dir(self.tmp()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

/// Result of `pubmark bench --json`.
#[derive(Debug)]
pub struct Benched {
    /// Record of the run.
    pub record: Value,
    /// Exit code.
    pub code: i32,
    /// Standard error.
    pub said: String,
}

/// Settings of the messages of a file or a template, which have sizes of their own.
const BODIES: [&str; 2] = ["payload_file=", "payload_template="];

/// Returns the arguments of a short run, with these additional ones.
pub fn bench_arguments<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["bench"];
    all.extend(arguments);
    all.extend(["--json", "--repeats", "1", "--out", "r"]);
    for (name, value) in [("--warmup", "200ms"), ("--duration", "1s"), ("--rate", "200"), ("--payload", "256B")] {
        let of_trace = ["--rate", "--payload"].contains(&name) && arguments.contains(&"--trace");
        let has_bodies =
            name == "--payload" && arguments.iter().any(|set| BODIES.iter().any(|key| set.starts_with(key)));
        if !arguments.contains(&name) && !of_trace && !has_bodies {
            all.extend([name, value]);
        }
    }
    all
}

/// Runs a bench again, three times at most, while others use the machine: for tests that compare a latency with that of
/// an undisturbed machine.
pub fn undisturbed(bench: impl Fn() -> Benched) -> Benched {
    let mut made = bench();
    for _ in 1..3 {
        if made.evidence("noisy-machine").is_none() {
            break;
        }
        made = bench();
    }
    made
}

impl Benched {
    pub fn read(output: Output) -> Benched {
        let (code, said) = (output.status.code().unwrap(), stderr(&output));
        assert!(!said.contains("panicked"), "{said}");
        let json: Value = serde_json::from_str(&stdout(&output))
            .unwrap_or_else(|error| panic!("exit code {code}, no JSON ({error}): {said}"));
        let record = json["runs"][0].clone();
        assert_adds_up(&record);
        assert!(code == 3 || record["verdict"]["valid"] == true, "exit code {code}: {}", record["verdict"]);
        Benched { record, code, said }
    }

    pub fn count(&self, name: &str) -> u64 {
        count(&self.record, name)
    }

    /// Returns why the run failed; empty if it did not.
    pub fn error(&self) -> &str {
        self.record["error"].as_str().unwrap_or_default()
    }

    /// Returns the evidence for a reason against the run.
    pub fn evidence(&self, reason: &str) -> Option<String> {
        let reasons = self.record["verdict"]["reasons"].as_array()?;
        let found = reasons.iter().find(|finding| finding["reason"] == reason)?;
        Some(found["evidence"].as_str()?.to_owned())
    }

    /// Checks that the run failed for these reasons.
    pub fn assert_failed(&self, wanted: &[&str]) {
        assert_eq!(self.code, 3, "{}", self.said);
        assert!(self.evidence("failed").is_some(), "{}", self.record["verdict"]);
        for text in wanted {
            assert!(self.error().contains(text), "should say {text:?}: {}", self.error());
            assert!(self.said.contains(text), "should say {text:?}: {}", self.said);
        }
    }
}

pub fn count(record: &Value, name: &str) -> u64 {
    record["counts"][name].as_u64().unwrap()
}

/// Checks what is true in every record, whatever happened to the run.
pub fn assert_adds_up(record: &Value) {
    let count = |name| count(record, name);
    assert_eq!(count("offered"), count("sent") + count("not_sent"), "{}", record["counts"]);
    assert_eq!(count("expected"), count("delivered") + count("lost"), "{}", record["counts"]);
    assert!(count("acked") + count("refused") <= count("sent"), "{}", record["counts"]);
    let refusals = record["refusals"].as_array().into_iter().flatten();
    assert_eq!(count("refused"), refusals.map(|one| one["count"].as_u64().unwrap()).sum::<u64>());
    // It is unknown for a failed run.
    assert!(record["counts"]["acked_lost"].as_u64() <= Some(count("lost")), "{}", record["counts"]);
}

/// Returns a port that nobody uses.
pub fn free_port() -> u16 {
    ports::free(1).unwrap()[0]
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits until `look` returns a value, with frequent checks; fails after [`PATIENCE`].
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

/// Interrupts a program as Ctrl-C does.
pub fn interrupt(program: &Child) {
    kill(Pid::from_raw(program.id() as i32), Signal::SIGINT).unwrap();
}

/// Returns the living children of a process, with their command lines.
pub fn children(parent: u32) -> Vec<(i32, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        let (state, ppid) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        if ppid == parent.to_string() && state != "Z" {
            let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default().replace('\0', " ");
            found.push((pid, line));
        }
    }
    found
}

/// Returns whether a process lives (a zombie does not).
pub fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
