//! Agents of other languages that come with pubmark: a small part of their real conformance suite (`make test-agents`
//! has the whole), wrong versions of them, and the report about a binding.

use crate::left_out::{has_agents, is_long, leave_out};
use crate::support::{Place, stderr, stdout};
use pubmark_host::cache::cache_folder;
use pubmark_host::programs::find_program;
use pubmark_study::registry;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Each names its language's floor, which `make test` installs with it.
const SYSTEMS: [&str; 3] = ["zeromq-cpp", "zeromq-node", "zeromq-python"];

/// Returns whether these systems can be used here. Notes the test as left out if not.
pub fn here(test: &str, systems: &[&str]) -> bool {
    has_agents(&format!("bindings::{test}"), systems)
}

/// Returns the output of `agent-check --json`: each case with its outcome.
fn cases(place: &Place, arguments: &[&str]) -> Vec<(String, String)> {
    let output = place.run(&[&["agent-check", "--json"], arguments].concat());
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    said["cases"].as_array().unwrap().iter().map(|case| (text(&case["case"]), text(&case["outcome"]))).collect()
}

#[test]
fn agents_in_three_languages_measure_as_they_should() {
    const ONLY: &str = "hello,send-schedule,send-sequences,send-instants,send-lag,receive-counts,receive-latency,\
                        receive-losses,receive-bodies,receive-silence,meet-request-reply,meet-pipeline,\
                        send-clock-offset,receive-clock-offset";
    for system in SYSTEMS {
        if !here("agents_in_three_languages_measure_as_they_should", &[system]) {
            continue;
        }
        let place = Place::new();
        let cases = cases(&place, &["--system", system, "--transport", "tcp", "--only", ONLY]);
        let otherwise: Vec<_> = cases.iter().filter(|(_, outcome)| outcome != "as_due").collect();
        assert!(cases.len() == 14 && otherwise.is_empty(), "{system}: {otherwise:?} of {cases:?}");
        place.assert_swept();
    }
}

#[test]
fn an_agent_in_python_that_writes_rows_measures_as_it_should() {
    const NAME: &str = "an_agent_in_python_that_writes_rows_measures_as_it_should";
    const ONLY: &str = "hello,input-ends,send-schedule,send-instants,send-lag,send-max,send-usage,receive-counts,\
                        receive-latency,receive-losses,receive-bodies,receive-jitter,crash,meet-request-reply,\
                        meet-pipeline";
    if !here(NAME, &["zeromq-python"]) {
        return;
    }
    let place = Place::new();
    let python = cache_folder(&registry::built_in("zeromq-python").unwrap()).join("python/bin/python");
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/zeromq-python/agent.py");
    let [python, agent] = [python, agent].map(|path| path.display().to_string());
    let own = env!("CARGO_BIN_EXE_pubmark");
    let flags = ["--driver", "zeromq", "--transport", "tcp", "--only", ONLY, "--"];
    let cases = cases(&place, &[&flags[..], &[own, "rows", &python, "-B", &agent, "rows"]].concat());
    let otherwise: Vec<_> = cases.iter().filter(|(_, outcome)| outcome == "otherwise").collect();
    assert!(cases.len() >= 15 && otherwise.is_empty(), "{otherwise:?} of {cases:?}");
    place.assert_swept();
}

#[test]
fn more_rows_than_there_is_memory_for_are_refused_when_a_study_is_planned() {
    if !here("more_rows_than_there_is_memory_for_are_refused_when_a_study_is_planned", &["zeromq-python"]) {
        return;
    }
    let place = Place::new();
    let python = cache_folder(&registry::built_in("zeromq-python").unwrap()).join("python/bin/python");
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/zeromq-python/agent.py");
    let system = format!(
        "title = \"rows\"\nabout = \"writes rows\"\nlicence = \"MIT\"\ndriver = \"zeromq\"\nagent_protocol = 3\n\
         agent = [\"{}\", \"-B\", \"{}\", \"rows\"]\ntransports = [\"tcp\"]\npatterns = [\"pairs\"]\n",
        python.display(),
        agent.display()
    );
    std::fs::write(place.path("rows.toml"), system).unwrap();
    let load = ["--transport", "tcp", "--pattern", "pairs", "--warmup", "1s"];
    let bench = |rate: &[&str]| place.run(&[&["bench", "./rows.toml", "--out", "r"][..], &load, rate].concat());
    let output = bench(&["--rate", "1000000", "--duration", "9s"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("`668 MiB`") && said.contains("512 MiB"), "{said}");
    assert!(!place.path("r").exists());
    let output = bench(&["--rate", "100", "--duration", "300ms", "--repeats", "1", "-q"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let counts = &place.records("r")[0]["counts"];
    assert_eq!((&counts["sent"], &counts["delivered"]), (&30.into(), &30.into()), "{counts}");
    place.assert_swept();
}

/// Set by `make test-agents`: toolchains of all languages are here.
const ALL_LANGUAGES: &str = "PUBMARK_TEST_AGENTS";

/// One line of a right agent, its replacement, and the case that must find the fault.
struct Fault {
    system: &'static str,
    file: &'static str,
    right: &'static str,
    wrong: &'static str,
    case: &'static str,
}

const fn fault(
    system: &'static str,
    file: &'static str,
    right: &'static str,
    wrong: &'static str,
    case: &'static str,
) -> Fault {
    Fault { system, file, right, wrong, case }
}

/// Halved times, and unread bodies, in each language. The C++ lines are also part of the agents of Fast DDS and Cyclone
/// DDS.
const FAULTS: [Fault; 12] = [
    fault(
        "zeromq-cpp",
        "cpp/clients.h",
        "times[kLatency].record(value);",
        "times[kLatency].record(value / 2);",
        "receive-latency",
    ),
    fault("zeromq-cpp", "cpp/clients.h", "bool sound = !work.full ||", "bool sound = true ||", "receive-bodies"),
    fault(
        "zeromq-python",
        "zeromq-python/books.py",
        "                latencies.append(latency)",
        "                latencies.append(latency // 2)",
        "receive-latency",
    ),
    fault(
        "zeromq-python",
        "zeromq-python/books.py",
        "if self.body and bytes(",
        "if False and bytes(",
        "receive-bodies",
    ),
    fault(
        "zeromq-node",
        "zeromq-node/books.mjs",
        "times.latency.record(latency);",
        "times.latency.record(latency / 2);",
        "receive-latency",
    ),
    fault(
        "zeromq-node",
        "zeromq-node/books.mjs",
        "const sound = work.verify !== \"full\"",
        "const sound = true",
        "receive-bodies",
    ),
    fault(
        "zeromq-mono",
        "zeromq-dotnet/Books.cs",
        "        Latency.Record(latency);",
        "        Latency.Record(latency / 2);",
        "receive-latency",
    ),
    fault(
        "zeromq-mono",
        "zeromq-dotnet/Books.cs",
        "var sound = work.Verify != \"full\"",
        "var sound = work.Verify != \"none\"",
        "receive-bodies",
    ),
    fault(
        "zeromq-go-pure",
        "zeromq-go/books.go",
        "in.latency.record(latency)",
        "in.latency.record(latency / 2)",
        "receive-latency",
    ),
    fault(
        "zeromq-go-pure",
        "zeromq-go/books.go",
        "if w.Verify == \"full\" {",
        "if w.Verify == \"none\" {",
        "receive-bodies",
    ),
    fault(
        "zeromq-java",
        "zeromq-java/Books.java",
        "            latency.record(took);",
        "            latency.record(took / 2);",
        "receive-latency",
    ),
    fault(
        "zeromq-java",
        "zeromq-java/Books.java",
        "work.verify.equals(\"full\")",
        "work.verify.equals(\"none\")",
        "receive-bodies",
    ),
];

impl Fault {
    fn folder(&self) -> &'static str {
        match self.system {
            "zeromq-mono" => "zeromq-dotnet",
            "zeromq-go-pure" => "zeromq-go",
            other => other,
        }
    }

    /// Copies the agent's sources into another folder, with the line changed.
    fn copy(&self, place: &Place) {
        for folder in [self.folder(), "cpp"] {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents").join(folder);
            std::fs::create_dir(place.path(folder)).unwrap();
            for entry in std::fs::read_dir(from).unwrap().flatten().filter(|entry| entry.path().is_file()) {
                std::fs::copy(entry.path(), place.path(folder).join(entry.file_name())).unwrap();
            }
        }
        let text = std::fs::read_to_string(place.path(self.file)).unwrap();
        assert_eq!(text.matches(self.right).count(), 1, "{} has `{}` once", self.file, self.right);
        std::fs::write(place.path(self.file), text.replace(self.right, self.wrong)).unwrap();
    }

    /// Builds the copy, if its language needs that. Returns the command that starts it.
    fn build(&self, place: &Place) -> Vec<String> {
        let cache = cache_folder(&registry::built_in(self.system).unwrap());
        let path = |path: PathBuf| path.display().to_string();
        let (folder, built) = (place.path(self.folder()), place.path("built"));
        let make = |words: &[String]| {
            let mut make = Command::new("make");
            make.arg("-s").arg("-C").arg(&folder).arg(format!("DEST={}", built.display())).args(words);
            let made = make.output().unwrap();
            assert!(made.status.success(), "{}: {}", self.system, stderr(&made));
        };
        match self.system {
            "zeromq-cpp" => {
                make(&["FLAGS=-std=c++17 -O0".to_owned()]);
                vec![path(built.join("pubmark-zeromq-cpp"))]
            }
            "zeromq-node" => {
                std::os::unix::fs::symlink(cache.join("node_modules"), place.path("node_modules")).unwrap();
                vec!["node".to_owned(), path(folder.join("agent.mjs"))]
            }
            "zeromq-mono" => {
                make(&["RUNTIME=".to_owned()]);
                vec!["mono".to_owned(), path(built.join("agent.dll"))]
            }
            "zeromq-go-pure" => {
                make(&["pure".to_owned()]);
                ["--binding", "pure"].iter().fold(vec![path(built.join("zeromq-go-pure"))], with)
            }
            "zeromq-java" => {
                make(&[format!("LIB={}", cache.join("lib").display()), "jeromq".to_owned()]);
                ["--binding", "jeromq"].iter().fold(vec![path(built.join("zeromq-java"))], with)
            }
            _ => vec![path(cache.join("python/bin/python")), path(folder.join("agent.py"))],
        }
    }
}

fn with(mut words: Vec<String>, word: &&str) -> Vec<String> {
    words.push((*word).to_owned());
    words
}

#[test]
fn a_wrong_agent_in_the_place_of_a_right_one_is_refused() {
    const NAME: &str = "a_wrong_agent_in_the_place_of_a_right_one_is_refused";
    let all = std::env::var_os(ALL_LANGUAGES).is_some();
    let long = is_long(&format!("bindings::{NAME}, but for agents in C++"));
    for fault in FAULTS {
        let place = Place::new();
        // The changed line exists, even if it cannot be built here.
        fault.copy(&place);
        if !long && fault.system != "zeromq-cpp" {
            continue;
        }
        if !all && !SYSTEMS.contains(&fault.system) {
            leave_out(&format!("bindings::{NAME}"), &format!("{} is played by `make test-agents`", fault.system));
            continue;
        }
        if !here(NAME, &[fault.system]) {
            continue;
        }
        let only = ["--driver", "zeromq", "--transport", "tcp", "--only", fault.case, "--"];
        let command = fault.build(&place);
        let words: Vec<&str> = only.into_iter().chain(command.iter().map(String::as_str)).collect();
        let expected = [(format!("tcp/{}", fault.case), "otherwise".to_owned())];
        assert_eq!(cases(&place, &words), expected, "{}, {}", fault.system, fault.wrong);
    }
}

/// The agent prints this instead of `hello`, so that it is the last line of its log.
#[test]
fn a_runtime_that_is_too_old_is_named() {
    let place = Place::new();
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents");
    let refused = |command: &mut Command, says: &[&str]| {
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = stderr(&output);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{said}");
        let last = said.lines().last().unwrap_or_default();
        says.iter().for_each(|says| assert!(last.contains(says), "should say {says:?}: {said}"));
    };
    let java = place.path("java");
    std::fs::write(&java, "#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n").unwrap();
    std::fs::set_permissions(&java, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", place.path("").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.arg(agents.join("zeromq-java/zeromq-java.sh")).args(["--binding", "null"]).env("PATH", path);
    refused(&mut command, &["this is Java 8 (", "it needs 17 or newer", "apt-get install"]);
    if find_program("node").is_none() {
        leave_out("bindings::a_runtime_that_is_too_old_is_named", "there is no node");
        return;
    }
    let old = place.path("old.cjs");
    std::fs::write(
        &old,
        "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.4' } });",
    )
    .unwrap();
    let mut command = Command::new("node");
    command.arg("-r").arg(&old).arg(agents.join("zeromq-node/agent.mjs"));
    refused(&mut command, &["this is Node 18.20.4 (", "it needs 20 or newer", "https://nodejs.org"]);
}

#[test]
fn messages_that_go_in_batches_are_each_accounted_for() {
    if !here("messages_that_go_in_batches_are_each_accounted_for", &["zeromq-cpp"]) {
        return;
    }
    let place = Place::new();
    // A count that is not a multiple of a batch: the end marker flushes the last ones.
    let set = ["options.batch=16", "count=1003", "drain=30s"].map(|set| ["--set", set]).concat();
    let usual = ["bench", "zeromq-cpp", "--transport", "tcp", "--pattern", "pipeline", "--rate", "2000", "--out", "r"];
    let output = place.run(&[&usual[..], &["--payload", "64B", "--repeats", "1", "-q"], &set].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let record = &place.records("r")[0];
    let counts = &record["counts"];
    for (what, due) in [("sent", 1003), ("delivered", 1003), ("lost", 0), ("duplicated", 0), ("corrupted", 0)] {
        assert_eq!(counts[what], due, "{what} of {counts}");
    }
    let agents = record["agents"].as_array().unwrap();
    assert!(agents.iter().all(|agent| agent["applied"]["batch"] == 16), "{record}");
    let refused = place.run(&[
        "bench",
        "zeromq-cpp",
        "--transport",
        "tcp",
        "--pattern",
        "request-reply",
        "--set",
        "options.batch=2",
    ]);
    assert!(stderr(&refused).contains("leave batch at 1"), "{}", stderr(&refused));
    place.assert_swept();
}

#[test]
fn a_report_tells_a_binding_from_its_language() {
    if !here("a_report_tells_a_binding_from_its_language", &["zeromq-python", "null-python", "zeromq-cpp"]) {
        return;
    }
    let place = Place::new();
    place.study(
        "title = \"t\"\nbaseline = \"zeromq-cpp\"\n[workload]\npattern = \"request-reply\"\nrate = \"max\"\n\
         payload = \"64B\"\nwarmup = \"200ms\"\nduration = \"500ms\"\n[axes]\ntransport = [\"inproc\", \"tcp\"]\n\
         system = [\"zeromq-cpp\", \"zeromq-python\", \"null-python\"]\n[run]\nrepeats = 1\n\
         [[skip]]\nsystem = \"null-python\"\ntransport = \"tcp\"\nwhy = \"w\"\n",
    );
    let output = place.run(&["run", "study.toml", "--out", "r", "-q"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let records = place.records("r");
    assert_eq!(records.len(), 5);
    for record in &records {
        assert!(record["error"].is_null() && record["counts"]["lost"] == 0, "{record}");
        let agents = record["agents"].as_array().unwrap();
        let said =
            |what: &str| agents.iter().all(|agent| agent["made"][what].as_str().is_some_and(|text| !text.is_empty()));
        assert!(["language", "binding", "call", "flags"].into_iter().all(said), "{record}");
        let told = agents.iter().all(|agent| agent["runtime"]["pauses"]["count"].is_u64());
        assert_eq!(told, record["system"] != "zeromq-cpp", "C++ has no runtime that stops it: {record}");
    }
    let summary = std::fs::read_to_string(place.path("r/summary.csv")).unwrap();
    let rows: Vec<Vec<&str>> = summary.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|head| *head == name).unwrap();
    let figure = |row: &[&str], name: &str| row[column(name)].parse::<f64>().unwrap_or(f64::NAN);
    let of = |system: &str, transport: &str| {
        let is = |row: &&Vec<&str>| row[column("system")] == system && row[column("transport")] == transport;
        rows.iter().find(is).unwrap_or_else(|| panic!("{summary}"))
    };
    let python = of("zeromq-python", "tcp");
    let (whole, floor) = (figure(python, "message_time_ns"), figure(python, "language_floor_ns"));
    let (null, cpp) = (of("null-python", "inproc"), of("zeromq-cpp", "tcp"));
    // If the machine was not quiet, neither can be compared.
    if figure(null, "p50_runs") > 0.0 {
        assert_eq!(floor, figure(null, "message_time_ns"), "one floor for all transports: {summary}");
        let beyond = figure(python, "binding_ns");
        assert!((beyond - (whole - floor)).abs() <= 1.0 || beyond.is_nan() && whole <= floor, "{summary}");
    } else {
        assert!(floor.is_nan(), "{summary}");
    }
    let times = figure(python, "over_baseline");
    match figure(cpp, "p50_runs") > 0.0 {
        true => assert!((times * figure(cpp, "message_time_ns") / whole - 1.0).abs() < 0.001, "{summary}"),
        false => assert!(times.is_nan(), "{summary}"),
    }
    let shown = stdout(&place.run(&["report", "r", "--all"]));
    assert!(shown.contains("How zeromq-python is made:"), "{shown}");
    place.assert_swept();
}
