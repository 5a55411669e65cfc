//! Servers that serve several runs, if a study allows it (`fresh = "cell"`).

use crate::support::{Place, alive, stderr, stdout, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pubmark_model::cell::Cell;
use pubmark_model::plan::cells;
use pubmark_model::record::RunRecord;
use pubmark_model::setting::FreshServer;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_study::context::RunContext;
use pubmark_study::registry;
use pubmark_study::run::{FinishedRecord, make};
use pubmark_study::servers::Servers;
use serde_json::Value;
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;

const STUDY: &str = "title = \"t\"\n[workload]\nwarmup = \"50ms\"\nduration = \"300ms\"\nqos = 1\n[axes]\n\
                     system = [\"mosquitto\"]\nrate = [100, 200]\n[run]\nrepeats = 2\nfresh = \"cell\"\n";

/// Runs of a study, made one by one, and the server between them.
struct Stage {
    place: Place,
    cells: Vec<Cell>,
    servers: Servers,
    made: u64,
}

impl Stage {
    fn of(text: &str) -> Stage {
        let study = Study::parse("t", text, &registry::built_in, &ReadOptions::default()).unwrap();
        assert_eq!(study.fresh(), FreshServer::Cell);
        let cells = cells(&study).unwrap();
        Stage { place: Place::new(), cells, servers: Servers::new(FreshServer::Cell), made: 0 }
    }

    /// Makes a run and sets its validity, whatever the machine did meanwhile.
    fn run(&mut self, cell: usize, is_valid: bool) -> RunRecord {
        self.run_and(cell, is_valid, |_| ())
    }

    /// Makes a run, and calls `act` before its clients disconnect; the result is dropped once its server has been
    /// released, or ended.
    fn run_and<T>(&mut self, cell: usize, is_valid: bool, act: impl FnOnce(&RunRecord) -> T) -> RunRecord {
        let agent = [env!("CARGO_BIN_EXE_pubmark").to_owned(), "agent".to_owned()];
        let never = AtomicBool::new(false);
        let cell = &self.cells[cell];
        let at = pubmark_model::plan::Place { repeat: 1, position: self.made };
        self.made += 1;
        let mut stage = RunContext {
            agent: &agent,
            logs: self.place.0.path(),
            awake: false,
            interrupt: &never,
            servers: &mut self.servers,
            news: &mut |_| {},
        };
        let FinishedRecord { mut record, tear_down } = make(cell, at, &mut stage).unwrap();
        record.verdict.valid = is_valid;
        let lasting = act(&record);
        let (stays, left) = tear_down.settle(&record);
        assert_eq!(stays, None);
        drop(lasting);
        self.servers.put(left);
        assert_eq!((record.counts.lost, record.counts.duplicated), (0, 0), "nothing of another run is heard");
        assert!(record.counts.delivered > 0);
        record
    }
}

/// Returns its server's process, and how many runs that had served before.
fn served(record: &RunRecord) -> (i32, u32) {
    let deployment = record.deployment.as_ref().unwrap();
    assert_eq!(deployment.fresh.as_deref(), Some("cell"));
    (deployment.pid.unwrap() as i32, deployment.served.unwrap())
}

#[test]
fn one_server_serves_runs_that_need_the_very_same() {
    let mut stage = Stage::of(STUDY);
    let (first, none) = served(&stage.run(0, true));
    assert_eq!(none, 0);
    let second = stage.run(1, true);
    assert_eq!(served(&second), (first, 1), "another rate is the same server");
    // The window is 300 ms of a server that has lived for longer.
    let used = second.server.as_ref().unwrap();
    assert!(used.cpu_s > 0.0 && used.rss_bytes_max > 0, "{used:?}");
    assert_eq!(served(&stage.run(0, false)), (first, 2));
    assert!(!alive(first), "it has served a run that was not valid");
    let (anew, none) = served(&stage.run(0, true));
    assert!(anew != first && none == 0);
    drop(stage.servers);
    assert!(!alive(anew), "it ends with the study");
}

#[test]
fn a_server_that_was_killed_between_runs_is_started_anew() {
    let mut stage = Stage::of(STUDY);
    let (first, _) = served(&stage.run(0, true));
    kill(Pid::from_raw(first), Signal::SIGKILL).unwrap();
    wait_for("its end", || (!alive(first)).then_some(()));
    let (second, none) = served(&stage.run(0, true));
    assert!(second != first && none == 0);
    assert_eq!(served(&stage.run(1, true)), (second, 1));
}

#[test]
fn a_server_that_has_a_client_left_serves_no_other_run() {
    let mut stage = Stage::of(STUDY);
    let stay = |record: &RunRecord| {
        let endpoint = &record.deployment.as_ref().unwrap().endpoint;
        TcpStream::connect(endpoint.strip_prefix("mqtt://").unwrap()).unwrap()
    };
    let (first, _) = served(&stage.run_and(0, true, stay));
    assert!(!alive(first));
    let (second, none) = served(&stage.run(0, true));
    assert!(second != first && none == 0);
}

#[test]
fn another_need_and_a_run_whose_parts_fail_have_servers_of_their_own() {
    let mut stage = Stage::of(&STUDY.replace("rate = [100, 200]", "options.set_tcp_nodelay = [\"true\", \"false\"]"));
    let (first, _) = served(&stage.run(0, true));
    let (second, none) = served(&stage.run(1, true));
    assert!(second != first && none == 0 && !alive(first), "an option that the server is told");
    let fault = "[faults]\nfault = \"stop subscribers at 100ms for 50ms\"\n";
    let mut failing = Stage::of(&format!("{STUDY}{fault}"));
    let (one, _) = served(&failing.run(0, true));
    assert!(!alive(one), "nobody else may have it");
    // The server of earlier runs ends before a run whose parts fail.
    stage.cells.extend(failing.cells);
    let (third, none) = served(&stage.run(2, true));
    assert!(third != second && none == 0 && !alive(second) && !alive(third));
}

/// Returns the numbers of servers by process, in the order of the runs.
fn starts(records: &[Value]) -> usize {
    let mut pids: Vec<u64> = records.iter().map(|record| record["deployment"]["pid"].as_u64().unwrap()).collect();
    pids.dedup();
    pids.len()
}

#[test]
fn a_study_starts_as_many_servers_as_it_has_to() {
    let place = Place::new();
    place.study(STUDY);
    let output = place.run(&["run", "study.toml", "--out", "shared"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "a noisy machine may spoil a verdict: {}", stderr(&output));
    let records = place.records("shared");
    assert_eq!(records.len(), 4);
    let mut due = 0;
    for (index, record) in records.iter().enumerate() {
        due = if index > 0 && records[index - 1]["verdict"]["valid"] == true { due + 1 } else { 0 };
        let deployment = &record["deployment"];
        assert_eq!((&deployment["fresh"], &deployment["served"]), (&"cell".into(), &due.into()), "run {index}");
        let log = place.path(&format!("shared/logs/run-{index}-server.log"));
        assert_eq!(log.exists(), due == 0, "the log of a server is that of the run that started it: {}", log.display());
    }
    let spoilt = records[..3].iter().filter(|record| record["verdict"]["valid"] == false).count();
    assert_eq!(starts(&records), 1 + spoilt);
    place.assert_swept();
    place.study(&STUDY.replace("fresh = \"cell\"\n", ""));
    let output = place.run(&["run", "study.toml", "--out", "own"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let own = place.records("own");
    assert_eq!(starts(&own), 4, "a server for each run, where the study says nothing");
    assert!(
        own.iter().all(|record| record["deployment"]["fresh"].is_null() && record["deployment"]["served"].is_null())
    );
}

#[test]
fn an_end_in_the_midst_leaves_no_server() {
    for (signal, code) in [(Signal::SIGINT, Some(3)), (Signal::SIGKILL, None)] {
        let place = Place::new();
        place.study(&STUDY.replace("repeats = 2", "repeats = 100"));
        let mut coordinator = place
            .command(&["run", "study.toml", "--out", "r"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let record = wait_for("a finished run", || place.records("r").into_iter().next());
        kill(Pid::from_raw(coordinator.id() as i32), signal).unwrap();
        let ended = wait_for("its end", || coordinator.try_wait().unwrap());
        assert_eq!(ended.code(), code);
        let server = record["deployment"]["pid"].as_i64().unwrap() as i32;
        wait_for("the server's end", || (!alive(server)).then_some(()));
        wait_for("its folder's removal", || std::fs::read_dir(place.tmp()).unwrap().next().is_none().then_some(()));
    }
}

#[test]
fn what_cannot_be_shared_is_said_before_a_run_is_made() {
    let place = Place::new();
    let refused = |text: &str| {
        place.study(text);
        let output = place.run(&["run", "study.toml", "--out", "r", "--dry-run"]);
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        stderr(&output)
    };
    let wrong = refused(&STUDY.replace("\"cell\"", "\"cel\""));
    assert!(wrong.contains("fresh: `cel` is not one of run, cell: did you mean `cell`?"), "{wrong}");
    let hosts = "[hosts.b1]\nreach = [\"ssh\", \"b1\"]\naddress = \"10.0.0.1\"\n";
    let afar = refused(&format!("{STUDY}{hosts}"));
    let said = "fresh = cell: servers on other hosts are started for each run, and mosquitto's is on b1";
    assert!(afar.contains(said) && afar.contains("leave `fresh` out"), "{afar}");
}

#[test]
fn a_plan_counts_the_starts_that_are_saved() {
    let place = Place::new();
    let seconds = |text: &str| {
        place.study(text);
        let said = stdout(&place.run(&["run", "study.toml", "--dry-run"]));
        let (_, about) = said.split_once("about ").unwrap_or_else(|| panic!("{said}"));
        about.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    let own = seconds(&STUDY.replace("fresh = \"cell\"\n", ""));
    assert_eq!(own - seconds(STUDY), 15, "three of four starts, 5 s each");
}
