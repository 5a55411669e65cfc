//! Faulty agents: shell scripts that follow the protocol only in part.

use pubmark_host::agent::Agent;
use pubmark_host::clock;
use pubmark_host::inbox::{inbox, into_inbox};
use pubmark_model::plan::Place;
use pubmark_model::plan::cells;
use pubmark_model::secret::Secrets;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_study::context::RunContext;
use pubmark_study::registry;
use pubmark_study::run;
use pubmark_study::servers::Servers;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Longer than any deadline of a run here; a longer wait means forever.
const PATIENCE: Duration = Duration::from_secs(60);
const BOUND: &str = r#"{"type":"bound","endpoints":[{"role":"publisher","id":0,"endpoint":"ipc:///tmp/x"}]}"#;
const READY: &str = r#"{"type":"ready"}"#;

/// Returns shell code that sends a hello.
fn hello() -> String {
    let now = clock::now();
    let hello = r#"{"type":"hello","protocol":2,"name":"liar","version":"1","pid":1,"drivers":["kernel","mock"],"features":{"transports":["ipc"]}"#;
    answer(&[&format!("{hello},\"clock_ns\":{now}}}")])
}

/// Returns shell code that answers a command of the coordinator with these lines.
fn answer(lines: &[&str]) -> String {
    let mut script = "read -r word\n".to_owned();
    lines.iter().for_each(|line| script += &format!("echo '{line}'\n"));
    script
}

/// Sends nothing more, and does not exit.
const SILENCE: &str = "exec sleep 3600\n";

/// Returns the error of a run whose agents are this shell script.
fn run(system: &'static str, workload: &str, script: String) -> String {
    let text =
        format!("title = \"t\"\n[workload]\nconnect_timeout = \"500ms\"\n{workload}\n[axes]\nsystem = \"{system}\"\n");
    let (outbox, inbox) = channel();
    std::thread::spawn(move || {
        let study = Study::parse("t", &text, &registry::built_in, &ReadOptions::default()).unwrap();
        let cell = cells(&study).unwrap().remove(0);
        let logs = tempfile::tempdir().unwrap();
        let command = ["sh".to_owned(), "-c".to_owned(), script];
        let mut servers = Servers::default();
        let mut stage = RunContext {
            servers: &mut servers,
            agent: &command,
            logs: logs.path(),
            awake: false,
            interrupt: &AtomicBool::new(false),
            news: &mut |_| {},
        };
        let place = Place { repeat: 1, position: 0 };
        let made = run::make(&cell, place, &mut stage);
        let _ = outbox.send(match made {
            Ok(_) => "a record".to_owned(),
            Err(error) => error.to_string(),
        });
    });
    inbox.recv_timeout(PATIENCE).expect("a run that waits without a deadline")
}

#[test]
fn an_agent_that_does_not_read_holds_up_its_run_no_longer_than_its_deadline() {
    // More than a pipe holds.
    let error = run("kernel", "transport = \"ipc\"\npairs = 5000", hello() + SILENCE);
    assert!(error.contains("did not bind in time"), "{error}");
}

#[test]
fn ready_counts_once_an_agent() {
    // Publishers report it for their subscribers as well.
    let twice = hello() + &answer(&[BOUND, READY, READY]) + SILENCE;
    let error = run("kernel", "transport = \"ipc\"\npattern = \"fan-out\"", twice);
    assert!(error.contains("said out of turn") && error.contains("ready"), "{error}");
}

/// Reports that this publisher sent this many messages, all within the window.
fn sent(publisher: u32, count: u64) -> String {
    format!(r#"{{"publisher":{publisher},"sent":{count},"window_first":0,"window_end":{count},"offered":{count}}}"#)
}

/// Plays an agent up to `sent`, which reports these totals.
fn up_to_sent(totals: &str) -> String {
    let ready = answer(&[r#"{"type":"bound","endpoints":[]}"#, READY]);
    hello() + &ready + &answer(&[&format!(r#"{{"type":"sent","publishers":[{totals}]}}"#)])
}

#[test]
fn an_agent_answers_for_the_publishers_that_it_was_told_to_play() {
    let two = "pattern = \"fan-in\"\npublishers = 2";
    for (totals, says) in [
        (sent(0, 5) + "," + &sent(7, 5), "it speaks of publisher 7, and not of 1"),
        (sent(0, 5) + "," + &sent(0, 5), "it speaks of publisher 0, and not of 1"),
        (sent(0, 5), "it speaks of 1 publishers, and plays 2"),
        (sent(0, 5) + "," + &sent(1, 1 << 40), "cannot be"),
    ] {
        let error = run("mock", two, up_to_sent(&totals) + SILENCE);
        assert!(error.contains("does not answer for what it was told to play") && error.contains(says), "{error}");
    }
    let whole = sent(0, 5) + "," + &sent(1, 5);
    let error = run("mock", two, up_to_sent(&whole) + &answer(&[READY]) + SILENCE);
    assert!(error.contains("said out of turn"), "{error}");
}

#[test]
fn agents_that_do_not_end_are_ended_together() {
    let folder = tempfile::tempdir().unwrap();
    let (outbox, _inbox) = inbox();
    let command = ["sh".to_owned(), "-c".to_owned(), SILENCE.to_owned()];
    let start = |index: usize| {
        let log = folder.path().join(format!("{index}.log"));
        Agent::start(
            &command,
            "stubborn",
            &log,
            folder.path(),
            &Secrets::default(),
            into_inbox(index, outbox.clone(), &Secrets::default()),
        )
        .unwrap()
    };
    let ended_in = |count: usize| {
        let mut agents: Vec<Agent> = (0..count).map(start).collect();
        let began = Instant::now();
        Agent::finish_all(&mut agents);
        let pids: Vec<i32> = agents.iter().map(Agent::pid).collect();
        assert!(pids.iter().all(|pid| is_gone(*pid)), "{pids:?}");
        began.elapsed()
    };
    let (one, many) = (ended_in(1), ended_in(10));
    assert!(many < 3 * one, "{many:?} for ten, {one:?} for one");
}

fn is_gone(pid: i32) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}
