//! Secrets in every place of a study file or a command line that takes one; the tests search all output for them:
//! files, standard output, errors, and the command lines of the processes.

use crate::refusals::mosquitto;
use crate::support::{PATIENCE, Place, children, free_port, stderr, stdout};
use pubmark_model::server::Places;
use std::path::Path;
use std::process::{Output, Stdio};

/// With characters that URLs and JSON escape.
const SECRETS: [&str; 3] = ["hidden-word", "hid\"den\\word", "hid%den/wörd@?"];

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn forms(secret: &str) -> [String; 4] {
    let escaped = json(secret);
    let sparing = secret.replace('%', "%25").replace('"', "%22").replace('\\', "%5C").replace('/', "%2F");
    [secret.to_owned(), percent(secret), escaped[1..escaped.len() - 1].to_owned(), sparing]
}

fn assert_hidden(secret: &str, text: &str, place: &str) {
    for form in forms(secret) {
        assert!(!text.contains(&form), "{form} is shown in {place}: {text}");
    }
}

fn assert_no_file_has(folder: &Path, secret: &str) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => assert_no_file_has(&path, secret),
            false => {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                assert_hidden(secret, &text, &path.display().to_string());
            }
        }
    }
}

fn assert_silent(output: &Output, secret: &str, place: &str) {
    assert_hidden(secret, &stdout(output), place);
    assert_hidden(secret, &stderr(output), place);
}

const HEAD: &str = "title = \"t\"\nquestion = \"q\"\n\
    [workload]\nwarmup = \"50ms\"\nduration = \"200ms\"\nrate = 100\n[run]\nrepeats = 1\n[quick]\nrepeats = 1\n";

/// Places where a secret is allowed, `P` a password and `E` an endpoint with it: the tables of a study, and arguments
/// of the command line.
const ALLOWED: [(&str, &[&str]); 5] = [
    ("[axes]\nsystem = [\"mqtt\"]\n[options]\npassword = P\nusername = \"me\"\nendpoint = H", &[]),
    ("[axes]\nsystem = [\"mqtt\"]\n[options.mqtt]\npassword = P\nendpoint = E", &[]),
    ("[axes]\nsystem = [\"mqtt\"]\npairs = [1, 2]\n[options]\nendpoint = E", &["--only", "pairs=2"]),
    ("[axes]\nsystem = [\"mqtt\"]", &["--set", "options.endpoint=E", "--set", "options.password=P"]),
    (
        "[axes]\nsystem = [\"mqtt\"]\n[parts.a]\nrate = 50\n[options]\nendpoint = E",
        &["--set", "options.mqtt.password=P"],
    ),
];

/// Places where it is refused.
const REFUSED: [(&str, &[&str]); 14] = [
    ("[axes]\nsystem = [\"mqtt\"]\n\"options.password\" = [P, P]", &[]),
    ("[axes]\nsystem = [\"mqtt\"]\n\"options.endpoint\" = [E, H]", &[]),
    ("[axes]\nsystem = [\"mqtt\"]\n[parts.a]\n\"options.password\" = P", &[]),
    ("[axes]\nsystem = [\"mqtt\"]\n[parts.a]\n\"options.endpoint\" = [E]", &[]),
    ("[axes]\nsystem = [\"mqtt\"]\n[quick.axes]\n\"options.password\" = P", &["--quick"]),
    ("[axes]\nsystem = [\"mqtt\"]\n\"options.endpoint\" = [H]\n[[skip]]\nwhy = \"w\"\n\"options.endpoint\" = E", &[]),
    ("[axes]\nsystem = [E]", &[]),
    ("[axes]\nsystem = [\"mqtt\"]\n[options]\npasword = P", &[]),
    ("[axes]\nsystem = [\"mqtt\"]\n[options]\nendpoint = H", &["--set", "options.pasword=P"]),
    ("[axes]\nsystem = [\"mqtt\"]\n[options]\nendpoint = H", &["--set", "password=P"]),
    ("[axes]\nsystem = [\"mqtt\"]\n[options]\nendpoint = H", &["--set", "options.password:P"]),
    ("[axes]\nsystem = [\"mqtt\"]\n[options]\nendpoint = H", &["--only", "options.password=P"]),
    ("[axes]\nsystem = [\"mqtt\"]\n[options]\nendpoint = H", &["--set", "system=E"]),
    ("[axes]\nsystem = [\"mqtt\"]\n[options]\nendpoint = H", &["--set", "rate=E"]),
];

fn in_file(text: &str, secret: &str, address: &str) -> String {
    let endpoint = format!("mqtt://{}:{}@{address}", percent(secret), percent(secret));
    let tables = text.replace("= E", &format!("= {}", json(&endpoint))).replace("[E", &format!("[{}", json(&endpoint)));
    let tables =
        tables.replace("= P", &format!("= {}", json(secret))).replace("[P, P]", &format!("[{0}, {0}]", json(secret)));
    let host = json(&format!("mqtt://{address}"));
    HEAD.to_owned()
        + &tables
            .replace("= H", &format!("= {host}"))
            .replace(" H]", &format!(" {host}]"))
            .replace("[H]", &format!("[{host}]"))
}

fn typed(words: &[&str], secret: &str, address: &str) -> Vec<String> {
    let endpoint = format!("mqtt://{}:{}@{address}", percent(secret), percent(secret));
    let end =
        |word: &str, last: char| word.strip_suffix(last).filter(|rest| rest.ends_with(['=', ':'])).map(str::to_owned);
    let filled = |word: &&str| match (end(word, 'P'), end(word, 'E')) {
        (Some(rest), _) => rest + secret,
        (_, Some(rest)) => rest + &endpoint,
        _ => (*word).to_owned(),
    };
    words.iter().map(filled).collect()
}

/// A run with a secret, its report, and the run that resumes it.
#[test]
fn a_secret_that_is_used_is_in_nothing_that_is_left() {
    let home = Place::new();
    let server = home.serve(&mosquitto("allow_anonymous true"), Places::default());
    let there = server.endpoint().split_once("://").unwrap().1.to_owned();
    let nowhere = format!("127.0.0.1:{}", free_port());
    for (index, (tables, words)) in ALLOWED.into_iter().enumerate() {
        let secret = SECRETS[index % SECRETS.len()];
        // The run's error names the refused connection.
        for address in [&there, &nowhere] {
            let (place, source) = (Place::new(), Place::new());
            let study = source.study(&in_file(tables, secret, address)).display().to_string();
            let more = typed(words, secret, address);
            let mut arguments = vec!["run", &study, "--out", "r", "--set", "connect_timeout=1s"];
            arguments.extend(more.iter().map(String::as_str));
            let output = place.run(&arguments);
            assert_ne!(output.status.code(), Some(2), "{tables}: {}", stderr(&output));
            assert_eq!(place.records("r")[0]["error"].is_null(), *address == there, "{tables}: {}", stderr(&output));
            assert_silent(&output, secret, tables);
            arguments.push("--resume");
            assert_silent(&place.run(&arguments), secret, tables);
            for words in [["report", "r", "--json"], ["report", "r", "--csv"], ["compare", "r", "r"]] {
                assert_silent(&place.run(&words), secret, tables);
            }
            assert_no_file_has(&place.path("r"), secret);
            place.assert_swept();
        }
    }
}

#[test]
fn a_secret_that_is_refused_is_not_repeated() {
    for secret in SECRETS {
        for (tables, words) in REFUSED {
            let (place, source) = (Place::new(), Place::new());
            let study = source.study(&in_file(tables, secret, "127.0.0.1:1")).display().to_string();
            let more = typed(words, secret, "127.0.0.1:1");
            let mut arguments = vec!["run", &study, "--out", "r"];
            arguments.extend(more.iter().map(String::as_str));
            let output = place.run(&arguments);
            assert_eq!(output.status.code(), Some(2), "{tables}: {}", stderr(&output));
            assert_silent(&output, secret, tables);
            assert!(!place.path("r").exists(), "{tables}");
        }
    }
    let place = Place::new();
    let secret = "hidden-word";
    for target in [
        "mqtt:/me:S@h",
        "mqt://me:S@h",
        "mqtt://me:S@h:99999",
        "mqtt://me:x/S@h",
        "mqtt://me:%zzS@h",
        "mqtt://me:S@h o",
    ] {
        let target = target.replace('S', secret);
        for arguments in [vec!["bench", &target], vec!["run", &target], vec!["calibrate", "--relay", &target]] {
            let output = place.run(&arguments);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
            assert_silent(&output, secret, &target);
        }
    }
}

/// All users of a machine see the command lines of its processes.
#[test]
fn the_processes_of_a_run_do_not_show_a_secret() {
    let home = Place::new();
    let server = home.serve(&mosquitto("allow_anonymous true"), Places::default());
    let there = server.endpoint().split_once("://").unwrap().1.to_owned();
    let (place, source) = (Place::new(), Place::new());
    let text = in_file(ALLOWED[0].0, SECRETS[0], &there).replace("\"200ms\"", "\"2s\"");
    let study = source.study(&text).display().to_string();
    let mut child =
        place.command(&["run", &study, "--out", "r"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut seen = 0;
    while child.try_wait().unwrap().is_none() {
        for (_, line) in children(child.id()) {
            assert_hidden(SECRETS[0], &line, "a command line");
            seen += 1;
        }
        std::thread::yield_now();
    }
    assert!(seen > 0, "no process was seen");
}

/// Only its own variables: only the end of the log of an ended server is quoted.
const PRINT: &str = "printenv | grep -e MY_PASSWORD= -e BROKER= -e PLAIN= -e OPTION=";

/// Returns a system whose server prints its environment, and then serves or ends.
fn talkative(secret: &str, then: &str) -> String {
    format!(
        "title = \"Mine\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mqtt\"\npatterns = [\"pairs\"]\n\
         [server]\nendpoint = \"mqtt://{{address}}:{{port}}\"\n\
         command = [\"sh\", \"-c\", \"{PRINT}; {then}\", {secret}]\n\
         [server.environment]\nMY_PASSWORD = {secret}\nBROKER = \"mqtt://me:{percent}@h\"\nPLAIN = \"ws://u:other-word@h\"\n\
         OPTION = \"with {{options.token}}\"\n\
         [server.files.\"m.conf\"]\ntext = \"listener {{port}} {{address}}\\nuser root\\nallow_anonymous true\"\n\
         [options.token]\nkind = \"text\"\ndefault = {secret}\ndoc = \"a\"\n",
        secret = json(secret),
        percent = percent(secret),
    )
}

/// The server prints what a system file sets, and then serves or dies.
#[test]
fn a_secret_of_a_system_file_is_in_nothing_that_is_left() {
    for (index, secret) in SECRETS.into_iter().enumerate() {
        let then = ["exec mosquitto -c {dir}/m.conf", "exit 1"][index % 2];
        let (place, source) = (Place::new(), Place::new());
        let file = source.path("mine.toml");
        std::fs::write(&file, talkative(secret, then)).unwrap();
        let file = file.display().to_string();
        let output =
            place.run(&["bench", &file, "--warmup", "50ms", "--duration", "200ms", "--repeats", "1", "--out", "r"]);
        let records = place.records("r");
        assert_eq!(records.len(), 1, "{}", stderr(&output));
        assert_eq!(records[0]["error"].is_null(), index % 2 == 0, "{}", records[0]["error"]);
        let log = std::fs::read_to_string(place.path("r/logs/run-0-server.log")).unwrap();
        for shown in ["MY_PASSWORD=***", "BROKER=mqtt://***@h", "PLAIN=ws://***@h", "OPTION=with ***"] {
            assert!(log.contains(shown), "{shown}: {log}");
        }
        if index % 2 == 1 {
            assert!(stderr(&output).contains("MY_PASSWORD=***"), "{}", stderr(&output));
        }
        for (said, place) in [(&output, "the run"), (&place.run(&["systems", &file, "--json"]), "the system's JSON")] {
            assert_silent(said, secret, place);
            assert_silent(said, "other-word", place);
        }
        let shown = place.run(&["systems", &file]);
        assert_silent(&shown, secret, "the system");
        assert!(stdout(&shown).contains("PLAIN=ws://***@h\n"), "{}", stdout(&shown));
        assert_silent(&place.run(&["report", "r"]), secret, "the report");
        assert_no_file_has(&place.path("r"), secret);
        assert_no_file_has(&place.path("r"), "other-word");
        place.assert_swept();
    }
}

/// Arguments with `E` for an endpoint with a login, and `P` for a password.
const MISTYPED: [&[&str]; 21] = [
    &["E"],
    &["options.password=P"],
    &["bench", "mock", "E"],
    &["bench", "mock", "options.token=P"],
    &["bench", "mock", "--metrics", "E"],
    &["bench", "mock", "--otlp", "E"],
    &["bench", "mock", "--server", "E"],
    &["bench", "mock", "--require", "E"],
    &["bench", "mock", "--precision", "E"],
    &["bench", "mock", "--fail-on", "E"],
    &["bench", "mock", "--hosts", "E"],
    &["bench", "mock", "--settings", "E"],
    &["run", "a.toml", "--set", "x=1", "options.password=P"],
    &["run", "a.toml", "--set", "x=1", "MY_SECRET=P"],
    &["run", "quickstart", "--watch=E"],
    &["run", "quickstart", "--metrics", "E"],
    &["ab", "mock", "--a", "options.password=P", "--b", "options.pasword=P", "--fail-on", "p99 > +10%"],
    &["ab", "mock", "--b", "rate=E", "--fail-on", "p99 > +10%"],
    &["capacity", "mock", "--until", "E"],
    &["compare", "r", "s", "E"],
    &["systems", "mock", "E"],
];

#[test]
fn what_is_mistyped_on_the_command_line_is_repeated_without_its_secrets() {
    let place = Place::new();
    for secret in SECRETS {
        let (typed, escaped) = (format!("mqtt://me:{secret}@h"), format!("mqtt://me:{}@h", percent(secret)));
        for (words, endpoint) in MISTYPED.iter().flat_map(|words| [(words, &typed), (words, &escaped)]) {
            let filled = |word: &&str| match (word.strip_suffix('E'), word.strip_suffix('P')) {
                (Some(before), _) if before.is_empty() || before.ends_with('=') => before.to_owned() + endpoint,
                (_, Some(before)) if before.ends_with('=') => before.to_owned() + secret,
                _ => (*word).to_owned(),
            };
            let arguments: Vec<String> = words.iter().map(filled).collect();
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let output = place.run(&arguments);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
            assert!(!stderr(&output).is_empty(), "{arguments:?}");
            assert_silent(&output, secret, &arguments.join(" "));
        }
    }
    // Text without a secret is printed as it was typed, and help is no error.
    let said = stderr(&place.run(&["bench", "mock", "too-much"]));
    assert!(said.contains("'too-much'") && said.contains("Usage:"), "{said}");
    let help = place.run(&["bench", "--help"]);
    assert!(help.status.success() && stdout(&help).contains("Usage:") && stderr(&help).is_empty());
    let said = stderr(&place.run(&["bench", "mock", "--settings", "foo"]));
    assert!(said.contains("--settings=foo") && !said.contains("use:"), "{said}");
    let said = stderr(&place.run(&["bench", "mock", "--settings", "mqtt://me:hidden-word@h"]));
    assert!(said.contains("--settings=mqtt://***@h") && said.contains("`mqtt://***@h`"), "{said}");
}

/// A system with secrets in options under secret names, in one that is marked as secret, and in variables; its server
/// prints them all.
const PLANTED: &str = r#"
title = "Planted"
about = "a"
licence = "MIT"
driver = "mqtt"
patterns = ["pairs"]
[server]
endpoint = "mqtt://{address}:{port}"
command = ["sh", "-c", "cat {dir}/m.conf; printenv | grep -e PASS= -e AUTH_HEADER= -e SIGNING; exec mosquitto -c {dir}/m.conf"]
[server.environment]
DBPASS = "planted-1-dbpass"
AUTH_HEADER = "planted-2-header"
SIGNING_KEY = "planted-3-signing"
[server.files."m.conf"]
text = """
listener {port} {address}
allow_anonymous true
user root
# {options.broker_password} {options.admin_token} {options.api_key} {options.shape} {options.depth}
"""
[options.broker_password]
kind = "text"
default = "planted-4-default"
doc = "a"
[options.admin_token]
kind = "text"
default = "none"
doc = "a"
[options.api_key]
kind = "text"
default = "none"
doc = "a"
[options.shape]
kind = "text"
default = "none"
secret = true
doc = "a"
[options.depth]
kind = "text"
default = "shown-depth"
doc = "a"
"#;

/// One rule for every place in which a secret can be given, and for all output and files: each place has its own
/// secret.
#[test]
fn a_secret_from_any_place_is_in_no_output_and_no_file() {
    let (place, source) = (Place::new(), Place::new());
    let file = source.path("planted.toml");
    std::fs::write(&file, PLANTED).unwrap();
    let hosts = source.path("hosts.toml");
    let host = "[hosts.b]\nreach = [\"env\", \"GATE_TOKEN=planted-5-gate\"]\naddress = \"127.0.0.1\"\n\
        roles = [\"server\", \"publishers\", \"subscribers\"]\n";
    std::fs::write(&hosts, host).unwrap();
    let (file, hosts) = (file.display().to_string(), hosts.display().to_string());
    let silent = |output: &Output, what: &str| {
        for secret in ["planted-", "geplant-"] {
            assert_silent(output, secret, what);
        }
    };
    let options = [
        "--set",
        "options.broker_password=geplant-6",
        "--set",
        "options.admin_token=geplant-7",
        "--set",
        "options.api_key=geplant-8",
        "--set",
        "options.shape=geplant-9",
    ];
    for over in [None, Some(&hosts)] {
        let folder = if over.is_some() { "h" } else { "r" };
        let mut words = vec!["bench", &file, "--warmup", "50ms", "--duration", "200ms", "--repeats", "1"];
        words.extend(options);
        words.extend(over.iter().flat_map(|hosts| ["--hosts", hosts.as_str()]));
        let mut dry = words.clone();
        dry.push("--dry-run");
        silent(&place.run(&dry), "a dry run");
        words.extend(["--out", folder, "--json"]);
        let output = place.run(&words);
        silent(&output, "the run");
        let record = &place.records(folder)[0];
        assert!(record["error"].is_null(), "{}: {}", record["error"], stderr(&output));
        for (option, shown) in [("broker_password", "***"), ("shape", "***"), ("depth", "shown-depth")] {
            assert_eq!(record["options"][option], shown, "{option}");
        }
        let study = std::fs::read_to_string(place.path(folder).join("study.toml")).unwrap();
        assert_eq!(study.contains("reach = [\"env\", \"***\"]"), over.is_some(), "{study}");
        for words in [vec!["report", folder], vec!["report", folder, "--json"], vec!["compare", folder, folder]] {
            silent(&place.run(&words), "a report");
        }
        for secret in ["planted-", "geplant-"] {
            assert_no_file_has(&place.path(folder), secret);
        }
        place.assert_swept();
    }
    for words in [vec!["systems", &file], vec!["systems", &file, "--json"]] {
        silent(&place.run(&words), "the system");
    }
}

/// A command that reaches a host is shown by its program only, and its errors without text that looks like a secret.
#[test]
fn what_reaches_a_host_is_not_repeated() {
    let (place, source) = (Place::new(), Place::new());
    let hosts = source.path("hosts.toml");
    for (reach, said) in [
        (
            "[\"no-such-sshpass\", \"-p\", \"planted-1x\", \"ssh\", \"b\"]",
            "host b: `no-such-sshpass ***` could not be started",
        ),
        ("[\"sh\", \"-c\", \"echo denied for planted-1x >&2; exit 1\"]", "denied for ***"),
        ("[\"sh\", \"-c\", \"echo \\\"$1 is wrong\\\" >&2; exit 1\", \"gate\", \"--token=planted-x\"]", "is wrong"),
        ("\"sshpass -p planted-1x ssh b\"", ""),
    ] {
        std::fs::write(&hosts, format!("[hosts.b]\nreach = {reach}\naddress = \"127.0.0.1\"\n")).unwrap();
        let hosts = hosts.display().to_string();
        for words in [["bench", "mosquitto", "--hosts", &hosts], ["doctor", "--hosts", &hosts, "-v"]] {
            let output = place.run(&words);
            assert_silent(&output, "planted-", reach);
            let all = stdout(&output) + &stderr(&output);
            assert!(all.contains(said), "{reach}: {all}");
        }
    }
}

/// The path and a parameter of an endpoint may hold a token, as a login does.
#[test]
fn the_path_and_the_query_of_an_endpoint_are_not_repeated() {
    let place = Place::new();
    let nowhere = format!("127.0.0.1:{}", free_port());
    for (index, tail) in
        ["/planted-1", "/mqtt?token=planted-2", "/mqtt?x=planted-3", "/a/planted-4?b"].iter().enumerate()
    {
        let (endpoint, out) = (format!("ws://{nowhere}{tail}"), format!("r{index}"));
        let words = [
            "bench",
            &endpoint,
            "--duration",
            "200ms",
            "--repeats",
            "1",
            "--set",
            "connect_timeout=300ms",
            "--out",
            &out,
        ];
        let output = place.run(&words);
        assert_silent(&output, "planted-", tail);
        if place.path(&out).exists() {
            assert_no_file_has(&place.path(&out), "planted-");
        }
        let axis = place.run(&["bench", "mqtt", "--set", &format!("options.endpont={endpoint}")]);
        assert_eq!(axis.status.code(), Some(2));
        assert_silent(&axis, "planted-", tail);
    }
}

/// Returns the processes below one, by pid.
fn below(parent: u32) -> Vec<i32> {
    let mut found: Vec<i32> = children(parent).into_iter().map(|(pid, _)| pid).collect();
    let deeper: Vec<i32> = found.iter().flat_map(|pid| below(*pid as u32)).collect();
    found.extend(deeper);
    found
}

/// Another host gets a secret by its input only.
#[test]
fn a_run_over_hosts_shows_no_secret() {
    let (place, source) = (Place::new(), Place::new());
    let secret = SECRETS[0];
    let file = source.path("mine.toml");
    std::fs::write(&file, talkative("none", "exec mosquitto -c {dir}/m.conf").replace(PRINT, "true")).unwrap();
    let hosts = source.path("hosts.toml");
    let host = "[hosts.b]\nreach = [\"env\"]\naddress = \"127.0.0.1\"\nroles = [\"server\", \"publishers\", \"subscribers\"]\n";
    std::fs::write(&hosts, host).unwrap();
    let study = source.study(&format!(
        "{}[axes]\nsystem = [{}]\n[options]\nusername = \"me\"\npassword = \"{secret}\"\n",
        HEAD.replace("\"200ms\"", "\"2s\""),
        json(&file.display().to_string())
    ));
    let (study, hosts) = (study.display().to_string(), hosts.display().to_string());
    let arguments = ["run", &study, "--hosts", &hosts, "--out", "r"];
    let mut child = place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut seen, deadline) = (0, std::time::Instant::now() + PATIENCE);
    while child.try_wait().unwrap().is_none() && std::time::Instant::now() < deadline {
        for pid in below(child.id()) {
            for file in ["cmdline", "environ"] {
                let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                assert_hidden(secret, &String::from_utf8_lossy(&text), file);
                seen += usize::from(!text.is_empty());
            }
        }
        std::thread::yield_now();
    }
    let output = child.wait_with_output().unwrap();
    assert_silent(&output, secret, "a run over hosts");
    let record = &place.records("r")[0];
    assert!(record["error"].is_null() && seen > 0, "{}: {}", record["error"], stderr(&output));
    assert_no_file_has(&place.path("r"), secret);
    place.assert_swept();
}
