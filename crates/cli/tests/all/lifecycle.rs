//! Kills and interrupts leave nothing behind and lose no finished run.

use crate::support::{PATIENCE, Place, alive, bench_arguments, children, stderr, stdout, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::Instant;

/// Runs over Unix sockets with two agents each, long enough to be disturbed.
const STUDY: &str = "title = \"t\"\n[workload]\npattern = \"fan-out\"\ntransport = \"ipc\"\nwarmup = \"50ms\"\nduration = \"300ms\"\nrate = 5000\n[axes]\nsystem = [\"kernel\", \"zeromq\"]\nsubscribers = [1, 2]\n[run]\nrepeats = 2\n";

fn start(place: &Place, arguments: &[&str]) -> Child {
    place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the study has finished some runs and is in the middle of another. Returns its agents, by pid.
fn midst(place: &Place, coordinator: &Child, finished: usize) -> Vec<i32> {
    wait_for("finished runs", || (place.records("r").len() >= finished).then_some(()));
    // Agents of a run whose record is written may not have exited yet.
    let before: Vec<i32> = children(coordinator.id()).into_iter().map(|(pid, _)| pid).collect();
    wait_for("two agents with a socket between them", || {
        let agents: Vec<i32> = children(coordinator.id()).into_iter().map(|(pid, _)| pid).collect();
        if agents.iter().any(|pid| before.contains(pid)) {
            return None;
        }
        let socket = std::fs::read_dir(place.tmp()).ok()?.flatten().any(|folder| folder.path().join("0").exists());
        (agents.len() == 2 && socket).then_some(agents)
    })
}

fn finish(child: Child) -> std::process::Output {
    let deadline = Instant::now() + PATIENCE;
    let pid = Pid::from_raw(child.id() as i32);
    let watchdog = std::thread::spawn(move || {
        while Instant::now() < deadline {
            std::thread::park_timeout(deadline - Instant::now());
            if Instant::now() < deadline {
                return;
            }
        }
        let _ = kill(pid, Signal::SIGKILL);
    });
    let output = child.wait_with_output().unwrap();
    watchdog.thread().unpark();
    output
}

fn resume(place: &Place) {
    let output = place.run(&["run", "study.toml", "--out", "r", "--resume"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "a noisy machine may spoil a verdict: {}", stderr(&output));
    let made: Vec<_> = place.records("r").into_iter().filter(|record| record["error"].is_null()).collect();
    assert_eq!(made.len(), 8, "each run is on record, and only once");
    let mut places: Vec<String> = made.iter().map(|record| format!("{}{}", record["cell"], record["repeat"])).collect();
    places.sort();
    places.dedup();
    assert_eq!(places.len(), 8);
    place.assert_swept();
}

#[test]
fn a_killed_agent_fails_its_run_alone() {
    let place = Place::new();
    place.study(STUDY);
    let coordinator = start(&place, &["run", "study.toml", "--out", "r"]);
    let agents = midst(&place, &coordinator, 1);
    kill(Pid::from_raw(agents[0]), Signal::SIGKILL).unwrap();
    let output = finish(coordinator);
    let said = stderr(&output);
    assert!(said.contains("some runs failed"), "{said}");
    // Its cell has another run, which may be an answer.
    assert_eq!(output.status.code(), Some(if said.contains("no reliable ") { 3 } else { 0 }), "{said}");
    let failed: Vec<_> = place.records("r").into_iter().filter(|record| !record["error"].is_null()).collect();
    assert_eq!(failed.len(), 1, "{}", stderr(&output));
    assert!(failed[0]["error"].as_str().unwrap().contains("signal: 9"), "{}", failed[0]["error"]);
    assert!(agents.iter().all(|pid| !alive(*pid)));
    place.assert_swept();
    resume(&place);
}

#[test]
fn a_stopped_agent_is_waited_for_with_a_deadline() {
    let place = Place::new();
    // No other run can give its cell's result.
    place.study(&STUDY.replace("repeats = 2", "repeats = 1"));
    let coordinator =
        start(&place, &["run", "study.toml", "--out", "r", "--set", "drain=1s", "--only", "system=kernel"]);
    let agents = midst(&place, &coordinator, 1);
    kill(Pid::from_raw(agents[1]), Signal::SIGSTOP).unwrap();
    let output = finish(coordinator);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let failed: Vec<_> = place.records("r").into_iter().filter(|record| !record["error"].is_null()).collect();
    assert_eq!(failed.len(), 1);
    let error = failed[0]["error"].as_str().unwrap();
    // A log folder without their logs is not named, and does not exist at the end.
    assert!(error.contains("in time") && error.ends_with("; they wrote no log"), "{error}");
    assert!(!place.path("r/logs").exists());
    assert!(agents.iter().all(|pid| !alive(*pid)));
    place.assert_swept();
}

#[test]
fn a_killed_coordinator_leaves_no_process_and_no_socket() {
    let place = Place::new();
    place.study(STUDY);
    let mut coordinator = start(&place, &["run", "study.toml", "--out", "r"]);
    let agents = midst(&place, &coordinator, 1);
    let finished = place.records("r").len();
    kill(Pid::from_raw(agents[1]), Signal::SIGSTOP).unwrap();
    coordinator.kill().unwrap();
    assert_eq!(coordinator.wait().unwrap().signal(), Some(9));
    wait_for("the agents' end", || agents.iter().all(|pid| !alive(*pid)).then_some(()));
    place.assert_swept();
    assert!(place.records("r").len() >= finished);
    resume(&place);
}

#[test]
fn a_coordinator_killed_as_soon_as_there_is_a_folder_leaves_none() {
    for target in [["kernel", "--transport", "ipc"].as_slice(), &["mosquitto"]] {
        let place = Place::new();
        let mut coordinator = start(&place, &bench_arguments(target));
        let swept = || std::fs::read_dir(place.tmp()).unwrap().next().is_none();
        wait_for("a folder", || (!swept()).then_some(()));
        coordinator.kill().unwrap();
        coordinator.wait().unwrap();
        wait_for("its removal", || swept().then_some(()));
    }
}

#[test]
fn ctrl_c_ends_in_order() {
    let place = Place::new();
    place.study(STUDY);
    let coordinator = start(&place, &["run", "study.toml", "--out", "r"]);
    let agents = midst(&place, &coordinator, 1);
    kill(Pid::from_raw(coordinator.id() as i32), Signal::SIGINT).unwrap();
    let output = finish(coordinator);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("--resume"), "{}", stderr(&output));
    assert!(stdout(&output).contains("missing"), "the table says what is missing: {}", stdout(&output));
    assert!(agents.iter().all(|pid| !alive(*pid)));
    place.assert_swept();
    resume(&place);
}

#[test]
fn a_resumed_study_has_the_table_of_an_undisturbed_one() {
    let place = Place::new();
    place.study("title = \"t\"\n[workload]\nduration = \"20s\"\nwarmup = \"1s\"\n[axes]\nsystem = [\"mock\"]\npairs = [1, 2, 3]\nrate = [500, 1000]\n\"options.lose_every\" = [0, 9]\n[run]\nrepeats = 10\n");
    let whole = place.run(&["run", "study.toml", "--out", "whole", "--markdown", "-q"]);
    assert_eq!(whole.status.code(), Some(3), "lost messages are no valid runs");
    let mut killed = start(&place, &["run", "study.toml", "--out", "r"]);
    wait_for("some runs", || (place.records("r").len() >= 20).then_some(()));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let done = place.records("r").len();
    assert!(done < 120, "it was killed in the middle");
    // A line that the kill has torn is cut off.
    let path = place.path("r/runs.jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"schema\":1,\"cell\":{\"sys");
    std::fs::write(&path, text).unwrap();
    let resumed = place.run(&["run", "study.toml", "--out", "r", "--resume", "--markdown", "-q"]);
    assert_eq!(stdout(&resumed), stdout(&whole));
    assert_eq!(place.records("r").len(), 120);
    let csv = |folder: &str| std::fs::read_to_string(place.path(folder).join("summary.csv")).unwrap();
    assert_eq!(csv("r"), csv("whole"));
    wait_for("the killed run's agent to tidy up", || {
        std::fs::read_dir(place.tmp()).unwrap().next().is_none().then_some(())
    });
}

/// Returns whether the scheduling policy of a process's first thread is the idle class (`SCHED_IDLE`, 5): field 41 of
/// its `stat`.
fn is_idle_class(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let policy = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(38).map(str::to_owned));
    policy.as_deref() == Some("5")
}

#[test]
fn what_keeps_processors_awake_ends_with_the_run_and_with_its_coordinator() {
    let place = Place::new();
    place.study(STUDY);
    let only = ["--only", "system=kernel", "--only", "subscribers=1"];
    let arguments = |folder| [&["run", "study.toml", "--out", folder, "--set", "awake=true"][..], &only].concat();
    let mut coordinator = start(&place, &arguments("killed"));
    let spinner = wait_for("a spinner of the idle class", || {
        children(coordinator.id()).into_iter().map(|(pid, _)| pid).find(|pid| is_idle_class(*pid))
    });
    kill(Pid::from_raw(coordinator.id() as i32), Signal::SIGKILL).unwrap();
    assert_eq!(coordinator.wait().unwrap().signal(), Some(9));
    wait_for("the spinner's end", || (!alive(spinner)).then_some(()));

    let output = place.run(&arguments("whole"));
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let records = place.records("whole");
    assert_eq!(records.len(), 2);
    for record in &records {
        assert!(record["error"].is_null() && record["machine"]["awake"] == true, "{}", record["error"]);
        // The spinners take the rest of every processor: counted as other programs they would be nearly all of it.
        let (foreign, cores) = (record["machine"]["foreign_cores"].as_f64(), record["machine"]["cores"].as_f64());
        let ours = record["generator"]["cpu_cores"].as_f64();
        assert!(foreign.unwrap() < cores.unwrap() - ours.unwrap(), "{}", record["machine"]);
    }
    place.assert_swept();
}

/// A server that ignores SIGTERM, and prints what it should not. While it has time to end, its run is recorded already;
/// and no secret has reached its log, though the coordinator was killed.
#[test]
fn a_record_is_on_the_disk_before_its_server_has_ended() {
    let place = Place::new();
    let system = "title = \"Mine\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mqtt\"\npatterns = [\"pairs\"]\n\
        [server]\nendpoint = \"mqtt://{address}:{port}\"\ncommand = [\"sh\", \"-c\", \"\"\"\n\
        trap '' TERM; echo $$ > {here}/pid; echo \"$MY_TOKEN\"; mosquitto -c {dir}/m.conf &\n\
        while :; do sleep 60; done\"\"\"]\n\
        [server.environment]\nMY_TOKEN = \"hidden-word\"\n\
        [server.files.\"m.conf\"]\ntext = \"listener {port} {address}\\nuser root\\nallow_anonymous true\"\n";
    std::fs::write(place.path("mine.toml"), system).unwrap();
    place.study(
        "title = \"t\"\n[workload]\nwarmup = \"50ms\"\nduration = \"300ms\"\nrate = 100\n\
         [axes]\nsystem = \"./mine.toml\"\n[run]\nrepeats = 1\n",
    );
    let mut coordinator = start(&place, &["run", "study.toml", "--out", "r"]);
    let server = wait_for("the server", || {
        std::fs::read_to_string(place.path("pid")).ok()?.strip_suffix('\n')?.parse::<i32>().ok()
    });
    let lived = wait_for("the record", || {
        let lives = alive(server);
        (!place.records("r").is_empty()).then_some(lives)
    });
    coordinator.kill().unwrap();
    assert_eq!(coordinator.wait().unwrap().signal(), Some(9));
    assert!(lived, "the server was torn down before its run was on the disk");
    assert!(place.records("r")[0]["error"].is_null(), "{}", place.records("r")[0]["error"]);
    wait_for("the server's end", || (!alive(server)).then_some(()));
    let log = std::fs::read_to_string(place.path("r/logs/run-0-server.log")).unwrap();
    assert!(log.contains("***") && !log.contains("hidden-word"), "{log}");
    let output = place.run(&["run", "study.toml", "--out", "r", "--resume"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    assert_eq!(place.records("r").len(), 1, "there was nothing left to make");
}
