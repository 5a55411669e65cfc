//! Bad input gets a clear error, the documented exit code, and loses nothing.

use crate::support::{Place, stderr};
use std::process::Command;

fn assert_error(place: &Place, arguments: &[&str], code: i32, wanted: &[&str]) {
    let output = place.run(arguments);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    for text in wanted {
        assert!(said.contains(text), "{arguments:?} should say {text:?}:\n{said}");
    }
    assert!(!said.contains("panicked"), "{said}");
    place.assert_swept();
}

#[test]
fn a_bad_study_file_is_reported_whole() {
    let place = Place::new();
    place.study(
        "title = \"t\"\n[workload]\npaylod = \"1KB\"\nrate = \"fast\"\n[axes]\nsystem = [\"zeromk\"]\npayload = [\"1KB\", \"1000\"]\n",
    );
    assert_error(
        &place,
        &["run", "study.toml"],
        2,
        &[
            "study.toml:3:1: unknown key `paylod`",
            "did you mean `payload`?",
            "study.toml:4:8:",
            "study.toml:6:11: unknown system `zeromk`",
            "study.toml:7:19: `1000` is twice on the axis `payload`",
        ],
    );
}

#[test]
fn unknown_names_suggest_known_ones() {
    let place = Place::new();
    assert_error(&place, &["run", "quikstart"], 2, &["did you mean `quickstart`"]);
    assert_error(&place, &["run", "no/such/file.toml"], 2, &["no such file"]);
    assert_error(&place, &["bench", "zermq"], 2, &["did you mean `zeromq`?"]);
    assert_error(&place, &["systems", "nng2"], 2, &["did you mean `nng`?"]);
    assert_error(&place, &["bench", "mock", "--pattern", "fanout"], 2, &["fan-out"]);
    assert_error(&place, &["bench", "mock", "--rate", "-5"], 2, &[]);
    assert_error(&place, &["bench", "mock", "--set", "nonsense"], 2, &["KEY=VALUE"]);
    assert_error(&place, &["bench", "mock", "--set", "options.lose_evry=1"], 2, &["did you mean `lose_every`?"]);
    assert_error(&place, &["bench", "http://127.0.0.1:1883"], 2, &["not a scheme that is known", "mqtt://"]);
    assert_error(&place, &["run", "quickstart", "--only", "transport=udp"], 2, &["inproc, ipc, tcp"]);
    assert_error(&place, &["run", "quickstart", "--only", "payload=1KB"], 2, &["not an axis of this study"]);
    assert_error(&place, &["report", "nowhere"], 2, &["not a results folder"]);
    assert_error(&place, &["agent-check", "/no/such/agent"], 2, &["cannot be started"]);
}

#[test]
fn what_a_system_cannot_do_is_said_before_anything_runs() {
    let place = Place::new();
    assert_error(
        &place,
        &["bench", "zeromq", "--transport", "udp"],
        2,
        &["zeromq has no transport `udp`", "inproc, ipc, tcp"],
    );
    assert_error(&place, &["bench", "kernel", "--transport", "udp", "--payload", "1MB"], 2, &["65,507"]);
    assert_error(&place, &["bench", "nng", "--qos", "1"], 2, &["quality of service"]);
    assert!(!place.path("results").exists(), "nothing was begun");
}

#[test]
fn a_library_that_cannot_be_loaded_fails_the_run_with_the_way_out() {
    let place = Place::new();
    std::fs::write(place.path("text.so"), "no library").unwrap();
    let text = place.path("text.so");
    for (library, wanted) in [
        ("/no/such/libzmq.so.5", "/no/such/libzmq.so.5"),
        (text.to_str().unwrap(), "text.so"),
        ("libc.so.6", "libc.so.6"),
    ] {
        let option = format!("options.library={library}");
        let out = format!("r{}", wanted.len());
        let arguments = ["bench", "zeromq", "--set", &option, "--duration", "100ms", "--repeats", "1", "--out", &out];
        assert_error(&place, &arguments, 3, &["failed", wanted]);
        let records = place.records(&out);
        assert_eq!(records.len(), 1, "the failure is on record");
        assert!(records[0]["error"].as_str().unwrap().contains(wanted));
        assert_eq!(records[0]["verdict"]["reasons"][0]["reason"], "failed");
    }
}

#[test]
fn an_option_that_a_library_lacks_is_an_error_and_never_ignored() {
    let place = Place::new();
    let arguments =
        ["bench", "zeromq", "--transport", "tcp", "--set", "options.tcp_nodelay=false", "--repeats", "1", "--out", "r"];
    assert_error(&place, &arguments, 3, &["nodelay"]);
}

#[test]
fn results_are_never_overwritten() {
    let place = Place::new();
    let bench = ["bench", "mock", "--repeats", "1", "--out", "r"];
    assert_eq!(place.run(&bench).status.code(), Some(0));
    let before = std::fs::read(place.path("r/runs.jsonl")).unwrap();
    assert_error(&place, &bench, 2, &["holds results already", "another folder with --out"]);
    assert_eq!(std::fs::read(place.path("r/runs.jsonl")).unwrap(), before);
}

#[test]
fn resuming_another_study_is_refused() {
    let place = Place::new();
    let study = place.study("title = \"t\"\n[axes]\nsystem = [\"mock\"]\n");
    let run = |extra: &[&str]| {
        let mut arguments = vec!["run", study.to_str().unwrap(), "--out", "r"];
        arguments.extend(extra);
        arguments.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let go = |arguments: Vec<String>| place.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(go(run(&["--resume"])).status.code(), Some(2), "there is nothing to go on with yet");
    assert_eq!(go(run(&[])).status.code(), Some(0));
    let other = go(run(&["--resume", "--set", "payload=64B"]));
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("made by another study"), "{}", stderr(&other));
    assert_eq!(go(run(&["--resume"])).status.code(), Some(0), "the same study goes on, with nothing left to do");
    assert_eq!(place.records("r").len(), 3);
}

#[test]
fn a_damaged_record_is_named_by_its_line() {
    let place = Place::new();
    assert_eq!(place.run(&["bench", "mock", "--out", "r"]).status.code(), Some(0));
    let path = place.path("r/runs.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    std::fs::write(&path, format!("{}\n{{\"broken\": \n{}\n", lines[0], lines[2])).unwrap();
    assert_error(&place, &["report", "r"], 3, &["runs.jsonl:2"]);
}

/// Returns a shell command in a mount namespace of its own, as root of a user namespace if the tests run as an ordinary
/// user.
fn unshare(script: &str) -> Command {
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--mount", "sh", "-c", script]);
    command
}

#[test]
fn a_full_disk_stops_the_study_and_keeps_what_is_finished() {
    let place = Place::new();
    let study = place
        .study("title = \"t\"\n[workload]\nduration = \"2s\"\n[axes]\nsystem = [\"mock\"]\n[run]\nrepeats = 100\n");
    std::fs::create_dir(place.path("disk")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=256k none disk && {} run {} --out disk/r -q; code=$?; cp -r disk/r kept; umount disk; exit $code",
        env!("CARGO_BIN_EXE_pubmark"),
        study.display()
    );
    let output = unshare(&script).current_dir(place.0.path()).env("TMPDIR", place.tmp()).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("No space left on device") && said.contains("--resume"), "{said}");
    let text = std::fs::read_to_string(place.path("kept/runs.jsonl")).unwrap();
    assert!(text.ends_with('\n'), "no half line is left");
    let kept = place.records("kept").len();
    assert!(kept > 3 && kept < 100, "{kept}");
    place.assert_swept();

    let resumed = place.run(&["run", "study.toml", "--out", "kept", "--resume", "-q"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", stderr(&resumed));
    assert_eq!(place.records("kept").len(), 100);
}

#[test]
fn a_folder_that_cannot_be_written_is_said_at_once() {
    let place = Place::new();
    std::fs::create_dir(place.path("locked")).unwrap();
    let script = format!(
        "mount -t tmpfs -o ro none locked && {} bench mock --out locked/r; code=$?; umount locked; exit $code",
        env!("CARGO_BIN_EXE_pubmark")
    );
    let output = unshare(&script).current_dir(place.0.path()).env("TMPDIR", place.tmp()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("locked/r") && stderr(&output).contains("--out"), "{}", stderr(&output));
}
