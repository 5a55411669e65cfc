//! Systems that users provide: in their own files, with their own agents, without a build.

use crate::agents::greeting_that_knows;
use crate::book::page::{Page, root};
use crate::left_out::leave_out;
use crate::support::{Place, stderr, stdout};
use pubmark_host::programs::find_program;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Output;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pubmark");

/// Returns a system in virtual time, whose runs take no time.
pub fn timeless(more: &str) -> String {
    format!(
        "{more}\ntitle = \"Mine\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mock\"\npatterns = [\"pairs\"]\ntransports = [\"inproc\"]\n"
    )
}

/// A place without the system files of the user who runs the tests.
pub struct Guests(pub Place);

impl Guests {
    pub fn new() -> Guests {
        Guests(Place::new())
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.0.command(arguments).env("XDG_CONFIG_HOME", self.0.path("config")).output().unwrap()
    }

    /// Makes a short bench into a folder. Returns its first record.
    fn bench(&self, out: &str, arguments: &[&str]) -> Value {
        let all = [&["bench"], arguments, &["--repeats", "1", "--out", out]].concat();
        let output = self.run(&all);
        let code = output.status.code();
        assert!(code == Some(0) || code == Some(3), "{all:?}: {}", stderr(&output));
        let records = self.0.records(out);
        assert!(records[0]["error"].is_null(), "{}", records[0]["error"]);
        records[0].clone()
    }

    pub fn refused(&self, arguments: &[&str], says: &[&str]) {
        let output = self.run(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        says.iter().for_each(|says| assert!(said.contains(says), "should say {says:?}: {said}"));
        assert!(!said.contains('\x1b') && !said.contains("panicked"), "{said:?}");
    }
}

#[test]
fn a_system_is_known_wherever_its_file_lies() {
    let place = Guests::new();
    for name in ["systems/here.toml", "config/pubmark/systems/home.toml", "more/given.toml", "path.toml"] {
        place.write(name, &timeless(""));
    }
    let cases: [(&str, &[&str]); 4] = [
        ("here", &["here"]),
        ("home", &["home"]),
        ("given", &["given", "--systems", "more"]),
        ("path", &["./path.toml"]),
    ];
    for (name, arguments) in cases {
        let record = place.bench(name, arguments);
        assert_eq!((record["system"].as_str(), record["cell"]["system"].as_str()), (Some(name), Some(name)));
        let file = &record["system_file"];
        assert_eq!((&file["built_in"], &file["replaces"]), (&Value::Bool(false), &Value::Bool(false)));
        let kept = std::fs::read_to_string(place.0.path(&format!("{name}/systems/{name}.toml"))).unwrap();
        assert_eq!(kept, timeless(""));
        let environment = std::fs::read(place.0.path(&format!("{name}/environment.json"))).unwrap();
        let environment: Value = serde_json::from_slice(&environment).unwrap();
        assert_eq!(environment["systems"][name]["sha256"], file["sha256"]);
        assert!(environment["systems"][name]["path"].as_str().unwrap().ends_with(&format!("{name}.toml")));
    }
    let listed = place.run(&["systems", "--systems", "more", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let names: Vec<&str> = listed.as_array().unwrap().iter().filter_map(|system| system["name"].as_str()).collect();
    assert!(["given", "here", "home", "mosquitto"].iter().all(|name| names.contains(name)), "{names:?}");
    let script = stdout(&place.run(&["completions", "bash"]));
    assert!(script.contains(" here ") && script.contains(" home "), "they are completed");
    // A repeated measurement uses the folder's own file.
    std::fs::remove_file(place.0.path("path.toml")).unwrap();
    place.refused(&["run", "path/study.toml", "--out", "again"], &["unknown system `path`"]);
    let again = place.run(&["run", "path/study.toml", "--out", "again", "--systems", "path/systems"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
}

#[test]
fn a_study_names_files_from_its_own_folder() {
    let place = Guests::new();
    place.write("deep/mine.toml", &timeless(""));
    let study = "title = \"t\"\n[workload]\npattern = \"pairs\"\ntransport = \"inproc\"\nrate = 2000\nduration = \"1s\"\n\
                 [axes]\nsystem = [\"./mine.toml\", \"kernel\"]\n[options.mine]\n[run]\nrepeats = 1\n";
    place.write("deep/study.toml", study);
    let output = place.run(&["run", "deep/study.toml", "--out", "r", "--only", "system=mine"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(place.0.records("r")[0]["system"], "mine");
    let resolved = std::fs::read_to_string(place.0.path("r/study.toml")).unwrap();
    assert!(resolved.contains("\"mine\"") && !resolved.contains("./mine.toml"), "{resolved}");
    // It resumes only with the file that it began with.
    place.write("deep/mine.toml", &timeless("homepage = \"h\""));
    let again = ["run", "deep/study.toml", "--out", "r", "--only", "system=mine", "--resume"];
    place.refused(&again, &["systems/mine.toml is not the file", "--systems"]);
}

#[test]
fn a_name_that_is_taken_is_replaced_only_on_demand() {
    let place = Guests::new();
    place.write("systems/mock.toml", &timeless(""));
    let taken = ["systems/mock.toml:1:1: a system `mock` comes with pubmark", "replaces = true"];
    place.refused(&["bench", "mock"], &taken);
    place.refused(&["ab", "mock", "--b", "payload=2KiB", "--fail-on", "p99 > +1%"], &taken);
    place.bench("other", &["kernel", "--transport", "inproc", "--duration", "200ms", "--warmup", "100ms"]);
    place.write("systems/mock.toml", &timeless("replaces = true"));
    let record = place.bench("r", &["mock"]);
    assert_eq!(record["system_file"]["replaces"], true);
    assert!(record["remarks"].to_string().contains("the system `mock` is the user's"), "{}", record["remarks"]);
    // The same file is not another system.
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems/mock.toml");
    place.write("systems/mock.toml", &std::fs::read_to_string(own).unwrap());
    assert_eq!(place.bench("same", &["mock"])["system_file"]["built_in"], true);
    assert_eq!(place.bench("same-path", &["./systems/mock.toml"])["system_file"]["built_in"], true);
}

/// Text that no file of a results folder contains.
const HUSH: &str = "hush-hush-token";

/// Plays with pubmark's own agent, and logs how it was started.
const SCRIPT: &str = "#!/bin/sh\necho \"$1 in $(pwd) with $MODE\" >> started\nexec \"$PUBMARK\" \"$MODE\"\n";

pub fn with_agent(agent: &str) -> String {
    format!(
        "title = \"Mine\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"kernel\"\ntransports = [\"tcp\"]\n\
         patterns = [\"pairs\", \"fan-out\"]\n{agent}\n[env]\nPUBMARK = \"{PROGRAM}\"\nMODE = \"agent\"\nAPI_TOKEN = \"{HUSH}\"\n"
    )
}

#[test]
fn an_agent_is_started_as_its_file_says() {
    let place = Guests::new();
    place.write("mine/agent.sh", SCRIPT);
    place.write("mine/both.toml", &with_agent("agent = [\"sh\", \"agent.sh\", \"both\"]\nagents = 2"));
    let short = ["--duration", "500ms", "--warmup", "100ms", "--rate", "100", "--transport", "tcp"];
    let record = place.bench("both", &[&["mine/both.toml", "--pairs", "3"], &short[..]].concat());
    let names: Vec<&str> = record["agents"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["publishers-1", "publishers-2", "subscribers-1", "subscribers-2"]);
    assert_eq!(record["counts"]["delivered"], record["counts"]["expected"]);
    let started = std::fs::read_to_string(place.0.path("mine/started")).unwrap();
    let folder = place.0.path("mine").canonicalize().unwrap();
    assert_eq!(started, format!("both in {} with agent\n", folder.display()).repeat(1 + 4), "asked, and then played");
    let kept = std::fs::read_to_string(place.0.path("both/systems/both.toml")).unwrap();
    assert!(kept.contains("API_TOKEN = \"***\"") && !kept.contains(HUSH), "{kept}");
    assert!(!stdout(&place.run(&["systems", "mine/both.toml"])).contains(HUSH));

    std::fs::remove_file(place.0.path("mine/started")).unwrap();
    let sides =
        "agent = { publisher = [\"sh\", \"{here}/agent.sh\", \"one\"], subscriber = [\"sh\", \"agent.sh\", \"two\"] }";
    place.write("mine/sides.toml", &with_agent(sides));
    place.bench("sides", &[&["mine/sides.toml"], &short[..]].concat());
    let started = std::fs::read_to_string(place.0.path("mine/started")).unwrap();
    let mut who: Vec<&str> = started.lines().filter_map(|line| line.split(' ').next()).collect();
    who.sort_unstable();
    assert_eq!(who, ["one", "one", "two", "two"], "each asked, and then played");
    place.0.assert_swept();
}

#[test]
fn a_study_says_how_many_agents_a_side_has() {
    let place = Guests::new();
    place.write("agent.sh", SCRIPT);
    place.write("mine.toml", &with_agent("agent = [\"sh\", \"agent.sh\", \"x\"]\nagents = 3\nwarmup = \"300ms\""));
    place.write(
        "study.toml",
        "title = \"t\"\n[workload]\ntransport = \"tcp\"\npairs = 4\nrate = 100\nduration = \"500ms\"\n\
         [axes]\nsystem = [\"./mine.toml\", \"kernel\"]\nagents = [1, 2]\n[run]\nrepeats = 1\n",
    );
    let output = place.run(&["run", "study.toml", "--out", "r"]);
    let records = place.0.records("r");
    assert_eq!(records.len(), 4, "{}", stderr(&output));
    for record in &records {
        let (agents, cell) = (record["cell"]["agents"].as_u64().unwrap(), &record["cell"]);
        let played: Vec<Vec<&str>> = ["publisher", "subscriber"]
            .iter()
            .map(|role| {
                let plays = |agent: &&Value| agent["roles"] == json!([role]);
                let agents = record["agents"].as_array().unwrap().iter().filter(plays);
                agents.filter_map(|agent| agent["name"].as_str()).collect()
            })
            .collect();
        assert_eq!((played[0].len() as u64, played[1].len() as u64), (agents, agents), "{cell}: {played:?}");
        let counts = &record["counts"];
        assert_eq!(
            (&counts["sent"], &counts["delivered"], &counts["lost"]),
            (&json!(200), &json!(200), &json!(0)),
            "{cell}"
        );
        assert_eq!(record["workload"]["agents"], if agents == 1 { Value::Null } else { agents.into() });
        let warmup_ms = if record["system"] == "mine" { 300 } else { 1_000 };
        assert_eq!(record["workload"]["warmup_ns"], warmup_ms * 1_000_000);
    }
    let one = ["bench", "./mine.toml", "--transport", "tcp", "--agents", "2"];
    place.refused(&one, &["mine cannot have 2 agents a side: each side has one client", "help: set more clients"]);
    place.0.assert_swept();
}

#[test]
fn an_agent_that_is_missing_is_told_when_a_study_is_planned() {
    let place = Guests::new();
    let install = |agent: &str| with_agent(agent) + "[install]\nmanual = \"ask its makers\"\n";
    place.write("far.toml", &install("agent = \"no-such-agent\""));
    place.write("near.toml", &install("agent = [\"./bin/agent\"]"));
    let looked = ["the agent `no-such-agent` of far is not found", "on the PATH", "pubmark/bin", "ask its makers"];
    place.refused(&["bench", "./far.toml"], &looked);
    let near = place.0.path("bin/agent").display().to_string();
    place.refused(&["bench", "./near.toml"], &["the agent `./bin/agent` of near is not found", &near]);
    let described = stdout(&place.run(&["systems", "./far.toml"]));
    assert!(described.contains("agent:       no-such-agent") && described.contains("missing:"), "{described}");
    assert!(!place.0.path("r").exists());
}

#[test]
fn the_agent_itself_is_asked_what_it_is() {
    let place = Guests::new();
    place.write("agent.sh", SCRIPT);
    place.write("systems/mine.toml", &with_agent("agent = [\"sh\", \"{here}/../agent.sh\", \"x\"]"));
    let listed = stdout(&place.run(&["systems"]));
    let broker = listed.lines().find(|line| line.starts_with("mosquitto ")).unwrap();
    assert!(broker.contains("  mqtt, QoS 0 to 2, durable"), "{broker}");
    let mock = listed.lines().find(|line| line.starts_with("mock ")).unwrap();
    assert!(mock.contains("  QoS 0 to 2, durable"), "what has no transport begins with what it has: {mock}");
    let row = listed.lines().find(|line| line.starts_with("mine ")).unwrap();
    assert!(row.contains("not asked"), "{row}");
    assert!(!place.0.path("systems/started").exists(), "a list starts nothing");
    // A built-in driver is asked about a transport of the file.
    place.write("systems/ours.toml", &timeless("").replace("mock", "kernel").replace("inproc", "tcp"));
    assert!(stdout(&place.run(&["systems", "ours"])).contains("\nversion: "));
    let shown = stdout(&place.run(&["systems", "mine"]));
    assert!(place.0.path("systems/started").exists());
    let (commands, answer) = (shown.find("agent:       sh ").unwrap(), shown.find("drivers:").unwrap());
    assert!(commands < answer, "first what would be started: {shown}");
    assert!(shown[answer..].contains("kernel"), "{shown}");
    place.write(
        "systems/other.toml",
        &with_agent("agent = [\"sh\", \"../agent.sh\"]").replace("\"kernel\"", "\"pyzmq\""),
    );
    let shown = stdout(&place.run(&["systems", "other"]));
    assert!(shown.contains("has no driver `pyzmq`; it has: "), "{shown}");
    place.write("systems/slow.toml", &with_agent("agent = [\"sleep\", \"600\"]\nstart_timeout = \"50ms\""));
    let shown = stdout(&place.run(&["systems", "slow"]));
    assert!(shown.contains("`hello` was due; within 0.05 s nothing came (start_timeout)"), "{shown}");
    let run = place.run(&["bench", "slow", "--transport", "tcp", "--repeats", "1", "--out", "r"]);
    assert!(stderr(&run).contains("did not say hello in time"), "{}", stderr(&run));
}

#[test]
fn an_option_that_an_agent_does_not_know_is_refused_before_a_server_is_started() {
    let place = Guests::new();
    place.write("agent.sh", &greeting_that_knows(2, &["mqtt"], json!({"mqtt": ["inflight"]})));
    let file = |more: &str| {
        format!(
            "title = \"Mine\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mqtt\"\nagent = [\"sh\", \"agent.sh\"]\n\
             patterns = [\"pairs\"]\n[server]\nendpoint = \"mqtt://{{address}}:{{port}}\"\n\
             command = [\"sh\", \"-c\", \": >{{here}}/started {{options.depth}}\"]\n\
             [options.depth]\nkind = \"count\"\ndefault = 3\ndoc = \"of the server alone\"\n{more}"
        )
    };
    place.write("mine.toml", &file(""));
    let set = |option: &str| ["bench", "./mine.toml", "--out", "r", "--set", option].map(str::to_owned);
    let refused = |option: &str, says: &[&str]| {
        let arguments = set(option);
        place.refused(&arguments.each_ref().map(String::as_str), says);
    };
    let why = "cannot be given to mine: its agent shell 7.1 does not know it";
    refused("options.keep_alive=5s", &[&format!("options.keep_alive {why}"), "known: inflight"]);
    place.write("mine.toml", &file("[options.inflights]\nkind = \"count\"\ndefault = 1\ndoc = \"a slip\"\n"));
    refused("options.depth=5", &[&format!("options.inflights {why}"), "did you mean `inflight`?"]);
    place.write("mine.toml", &file(""));
    place.write(
        "study.toml",
        "title = \"t\"\n[axes]\nsystem = \"./mine.toml\"\noptions.depth = [1, 2]\noptions.inflight = [5]\n",
    );
    let planned = place.run(&["run", "study.toml", "--dry-run"]);
    assert_eq!(planned.status.code(), Some(0), "{}", stderr(&planned));
    assert!(!place.0.path("started").exists() && !place.0.path("r").exists(), "nothing was begun");
    assert!(stdout(&place.run(&["systems", "./mine.toml"])).contains("\nknows:       inflight\n"));
}

/// Returns a hello of a shell agent: without options, and with its own features.
fn greeting_that_plays(protocol: u32, features: &str) -> String {
    greeting_that_knows(protocol, &["kernel"], json!({"kernel": []}))
        .replace("\"options\"", &format!("\"features\":{features},\"options\""))
}

#[test]
fn what_a_study_needs_and_an_agent_has_not_is_refused_when_it_is_planned() {
    let place = Guests::new();
    let both = "patterns = [\"pairs\", \"fan-out\"]";
    let all = "patterns = [\"pairs\", \"fan-out\", \"request-reply\"]";
    let file = |agent: &str| with_agent(agent).replace(both, all);
    place.write("old.sh", &greeting_that_plays(1, "{}"));
    place.write("agent.sh", &greeting_that_plays(2, "{}"));
    place.write("crashes.sh", &greeting_that_plays(2, "{\"crash\":true}"));
    place.write("old.toml", &file("agent = [\"sh\", \"old.sh\"]"));
    place.write("mine.toml", &file("agent = [\"sh\", \"agent.sh\"]"));
    place.write(
        "sides.toml",
        &file("agent = { publisher = [\"sh\", \"agent.sh\"], subscriber = [\"sh\", \"crashes.sh\"] }"),
    );
    let study = |system: &str, more: &str| {
        format!("title = \"t\"\n[workload]\ntransport = \"tcp\"\n{more}\n[axes]\nsystem = \"./{system}.toml\"\n")
    };
    let arrivals = "[axes]\narrival = [\"uniform\", \"poisson\"]\npattern = [\"fan-out\", \"request-reply\"]\n";
    let two = study("mine", "").replace("[axes]\n", arrivals);
    for (text, says) in [
        (two.as_str(), &["shell 7.1 cannot play the arrival `poisson`", "cannot play the pattern `request-reply`"][..]),
        (&study("old", ""), &["old cannot be played: the agent shell 7.1 speaks version 1", "update the agent"]),
        (
            &study("sides", "duration = \"2s\"\n[faults]\nfault = \"kill publishers at 1s\""),
            &["shell 7.1 cannot play", "`crash`"],
        ),
    ] {
        place.write("study.toml", text);
        for more in [&["--dry-run"][..], &["--out", "r"]] {
            place.refused(&[&["run", "study.toml"], more].concat(), says);
        }
        assert!(!place.0.path("r").exists(), "nothing was begun");
    }
    for fits in [study("mine", ""), study("sides", "duration = \"2s\"\n[faults]\nfault = \"kill subscribers at 1s\"")] {
        place.write("study.toml", &fits);
        let planned = place.run(&["run", "study.toml", "--dry-run"]);
        assert_eq!(planned.status.code(), Some(0), "{fits}: {}", stderr(&planned));
    }
}

#[test]
fn an_agent_that_answers_hello_with_an_error_is_told_with_what_helps() {
    let place = Guests::new();
    let error = r#"{"type":"error","message":"I speak 1","fatal":true}"#;
    place.write("agent.sh", &format!("read hello\necho '{error}'"));
    place.write("mine.toml", &with_agent("agent = [\"sh\", \"agent.sh\"]"));
    let helps = "I speak 1; this pubmark speaks version 2: update the agent, or take its release for this version";
    let told = |arguments: &[&str], code: i32| {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        let said = stdout(&output) + &stderr(&output);
        assert!(said.contains(helps), "{arguments:?}: {said}");
    };
    told(&["bench", "./mine.toml", "--transport", "tcp", "--repeats", "1", "--out", "r"], 3);
    told(&["systems", "./mine.toml"], 0);
    let agent = place.0.path("agent.sh").display().to_string();
    told(&["agent-check", "--only", "hello", "sh", &agent], 1);
}

#[test]
fn an_agent_is_given_the_options_that_it_knows() {
    let place = Guests::new();
    place.write("agent.sh", &greeting_that_knows(2, &["kernel"], json!({"kernel": ["linger", "speed"]})));
    let agent =
        "agent = [\"sh\", \"agent.sh\"]\n[options.speed]\nkind = \"text\"\ndefault = \"low\"\ndoc = \"of the agent\"";
    place.write("mine.toml", &with_agent(agent));
    let short = ["--transport", "tcp", "--repeats", "1", "--out", "r", "--set", "connect_timeout=2s"];
    let output = place.run(&[&["bench", "./mine.toml", "--set", "options.speed=high"], &short[..]].concat());
    assert_eq!(output.status.code(), Some(3), "it says no more than hello: {}", stderr(&output));
    let told = std::fs::read_to_string(place.0.path("told")).unwrap();
    let prepare = told.lines().find(|line| line.contains("prepare")).unwrap();
    let prepare: Value = serde_json::from_str(prepare).unwrap();
    assert_eq!(prepare["options"], json!({"linger": "10s", "speed": "high"}));
}

#[test]
fn a_new_file_is_read_as_it_was_written() {
    let place = Guests::new();
    for protocol in ["mqtt", "nats", "redis", "amqp", "kafka", "zenoh"] {
        let output = place.run(&["systems", &format!("my-{protocol}"), "--new", "--protocol", protocol]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    assert_eq!(place.run(&["systems", "my-agent", "--new", "--agent"]).status.code(), Some(0));
    let listed = stdout(&place.run(&["systems"]));
    assert_eq!(listed.lines().filter(|line| line.starts_with("my-")).count(), 7, "{listed}");
    assert!(!listed.contains("refused"), "{listed}");
    place.refused(&["systems", "my-mqtt", "--new", "--protocol", "nats"], &["systems/my-mqtt.toml: File exists"]);
    place.refused(&["systems", "../x", "--new", "--agent"], &["`../x` is not a name for a system"]);
    place.refused(&["systems", "x", "--new"], &["--protocol mqtt|nats|redis|amqp|amqp1|kafka|zenoh"]);
    assert!(!place.0.path("x.toml").exists());
}

#[test]
fn a_strangers_files_are_in_nobodys_way() {
    let place = Guests::new();
    let folder = place.0.path("systems");
    let bad: [(&str, Vec<u8>); 6] = [
        ("binary", vec![0xff; 4_000]),
        ("deep", b"a = ".iter().copied().chain([b'['; 100_000]).collect()),
        ("escape", timeless("homepage = \"\\u001b]0;mine\\u0007\"").into_bytes()),
        ("large", vec![b'#'; 3 << 20]),
        ("ours", timeless("homepage = 18446744073709551616").replace("title", "titel").into_bytes()),
        ("up", timeless("").into_bytes()),
    ];
    for (name, text) in &bad {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    }
    let outside = with_agent("agent = \"sh\"") + "[server.files.\"../../x\"]\ntext = \"\"\n";
    std::fs::write(folder.join("up.toml"), outside).unwrap();
    std::fs::write(folder.join("\u{1b}[2J.toml"), "").unwrap();
    nix::unistd::mkfifo(&folder.join("pipe.toml"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    let listed = place.run(&["systems"]);
    assert_eq!(listed.status.code(), Some(0), "{}", stderr(&listed));
    let text = stdout(&listed);
    assert_eq!(text.matches("(no system)").count(), 8, "{text}");
    assert!(!text.contains('\x1b') && text.contains("\\u{1b}[2J"), "{text}");
    for (name, says) in [
        ("binary", "not UTF-8 text from line 1 on"),
        ("deep", "deep.toml:1:"),
        ("escape", "escape.toml:1:12: there is a control character (\\u{1b}) here"),
        ("large", "larger than 1 MiB"),
        ("ours", "unknown key `titel`"),
        ("up", "is to be below the folder of the run"),
        ("pipe", "it is a FIFO, and not a file"),
    ] {
        place.refused(&["bench", name], &[says]);
        place.refused(&["systems", &format!("systems/{name}.toml")], &[says]);
    }
    place.refused(&["bench", "../../etc/passwd"], &["this is not a name"]);
    place.refused(&["bench", "mock", "--systems", "gone"], &["--systems gone: there is no such folder"]);
    place.bench("r", &["mock"]);
}

#[test]
fn what_a_hostile_agent_says_is_shown_and_not_obeyed() {
    let place = Guests::new();
    let lines = [
        r#"{"type":"error","message":"\u001b[2J\u001b]0;mine\u0007","fatal":true}"#,
        "\u{1b}[2J",
        r#"{"type":"progress","sent":18446744073709551616,"received":0}"#,
        "\u{9b}2J{",
    ];
    for (index, line) in lines.iter().enumerate() {
        place.write("line", &format!("{line}\n"));
        place.write("mine.toml", &with_agent("agent = [\"sh\", \"-c\", \"read -r hello; cat line; exec sleep 600\"]"));
        let out = format!("r{index}");
        let output = place.run(&["bench", "./mine.toml", "--transport", "tcp", "--repeats", "1", "--out", &out]);
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        let everything = stdout(&output) + &stderr(&output);
        assert!(!everything.contains(['\x1b', '\u{9b}', '\x07']), "{everything:?}");
        assert!(everything.contains("\\u{") || everything.contains("18446744073709551616"), "{everything}");
        let page = std::fs::read_to_string(place.0.path(&out).join("report.html")).unwrap();
        assert!(!page.contains('\x1b'));
    }
}

/// Returns the file that docs/systems.md links under this name, or tells the reader to save.
fn from_the_docs(name: &str) -> String {
    if let Ok(example) = std::fs::read_to_string(root().join("docs/examples").join(name)) {
        return example;
    }
    let page = Page::read(Path::new("docs/systems.md"));
    let block = page.blocks.iter().find(|block| block.file.as_deref() == Some(name)).unwrap();
    block.text.clone()
}

/// Installs and measures a broker that pubmark does not know, by the page alone.
fn from_a_registry(test: &str, name: &str, tool: &str) {
    if find_program(tool).is_none() {
        leave_out(test, &format!("there is no {tool}"));
        return;
    }
    let place = Guests::new();
    let file = format!("{name}.toml");
    place.write(&file, &from_the_docs(&file));
    // Kept from one run of the tests to the next.
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/guests");
    let run = |arguments: &[&str]| {
        let mut command = place.0.command(arguments);
        command.env("XDG_CONFIG_HOME", place.0.path("config")).env("XDG_CACHE_HOME", cache).output().unwrap()
    };
    let path = format!("./{file}");
    let installed = run(&["systems", &path, "--install"]);
    if !installed.status.success() {
        let said = stderr(&installed);
        leave_out(test, &format!("{tool} cannot bring it: {}", said.lines().last().unwrap_or_default()));
        return;
    }
    let again = run(&["systems", &path, "--install"]);
    assert!(!stderr(&again).contains("+ "), "it is there: {}", stderr(&again));
    let short =
        ["--pairs", "2", "--rate", "50", "--duration", "1s", "--warmup", "500ms", "--repeats", "1", "--qos", "1"];
    let output = run(&[&["bench", &path, "--out", "r"], &short[..]].concat());
    let records = place.0.records("r");
    let record = records.first().unwrap_or_else(|| panic!("{}", stderr(&output)));
    assert!(record["error"].is_null(), "{}", record["error"]);
    assert_eq!((&record["counts"]["delivered"], &record["counts"]["acked_lost"]), (&100.into(), &0.into()));
    assert_eq!((&record["system_file"]["built_in"], record["system"].as_str()), (&false.into(), Some(name)));
    assert!(record["versions"].to_string().contains('.'), "{}", record["versions"]);
    place.0.assert_swept();
}

/// Uses a library with the driver of docs/add-a-language.md, with the files that the program carries.
#[test]
fn a_library_in_python_is_measured_by_a_driver_of_100_lines() {
    let test = "a_library_in_python_is_measured_by_a_driver_of_100_lines";
    if find_program("python3").is_none() {
        leave_out(test, "there is no python3");
        return;
    }
    let (place, page) = (Guests::new(), Page::read(Path::new("docs/add-a-language.md")));
    let driver = std::fs::read_to_string(root().join("docs/examples/pyzmq_agent.py")).unwrap();
    assert!(driver.lines().count() <= 100);
    place.write("pyzmq_agent.py", &driver);
    let file = page.blocks.iter().find(|block| block.file.as_deref() == Some("pyzmq.toml")).unwrap();
    place.write("pyzmq.toml", &file.text);
    let cache = PathBuf::from(concat!(env!("CARGO_TARGET_TMPDIR"), "/guests"));
    let run = |arguments: &[&str]| {
        let mut command = place.0.command(arguments);
        command.env("XDG_CONFIG_HOME", place.0.path("config")).env("XDG_CACHE_HOME", &cache).output().unwrap()
    };
    let installed = run(&["systems", "zeromq-python", "--install"]);
    if !installed.status.success() {
        let said = stderr(&installed);
        leave_out(test, &format!("pip cannot bring it: {}", said.lines().last().unwrap_or_default()));
        return;
    }
    // At the path that the page gives; those of other versions of the program are beside them.
    let agents = std::fs::read_dir(cache.join("pubmark")).unwrap().flatten().map(|entry| entry.path());
    let folders = agents.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("agents-"));
    let own = |folder: &PathBuf| {
        let text = std::fs::read_to_string(folder.join("zeromq-python/pubmark_agent.py")).unwrap_or_default();
        text == include_str!("../../../../agents/zeromq-python/pubmark_agent.py")
    };
    let folder = folders.into_iter().find(own).expect("the files that the program carries").join("zeromq-python");
    for name in ["pubmark_agent.py", "books.py"] {
        place.write(name, &std::fs::read_to_string(folder.join(name)).unwrap());
    }
    let installed = run(&["systems", "./pyzmq.toml", "--install"]);
    assert!(installed.status.success(), "{}", stderr(&installed));
    let only = "hello,send-schedule,send-lag,receive-latency,receive-counts,meet-pipeline";
    let checked = run(&["agent-check", "--system", "./pyzmq.toml", "--transport", "tcp", "--only", only]);
    assert!(stdout(&checked).ends_with("6 cases as due.\n"), "{}{}", stdout(&checked), stderr(&checked));
    let short = ["--transport", "tcp", "--rate", "100", "--duration", "1s", "--warmup", "500ms", "--repeats", "1"];
    let output = run(&[&["bench", "./pyzmq.toml", "--out", "r"], &short[..]].concat());
    let records = place.0.records("r");
    let record = records.first().unwrap_or_else(|| panic!("{}", stderr(&output)));
    assert!(record["error"].is_null(), "{}", record["error"]);
    assert_eq!((&record["counts"]["delivered"], &record["counts"]["lost"]), (&100.into(), &0.into()));
}

#[test]
fn a_broker_in_python_is_measured_from_the_page_alone() {
    from_a_registry("a_broker_in_python_is_measured_from_the_page_alone", "amqtt", "python3");
}

#[test]
fn a_broker_in_javascript_is_measured_from_the_page_alone() {
    from_a_registry("a_broker_in_javascript_is_measured_from_the_page_alone", "aedes", "npm");
}
