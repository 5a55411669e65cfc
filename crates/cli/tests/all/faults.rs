//! Faults as the keeper carries them out, and as a run records them.

use crate::servers::{Keeper, mosquitto, start_plan, stopped};
use crate::support::{Place, alive, bench_arguments, stderr, stdout, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pubmark_study::machine;
use pubmark_study::server::keeper::{Order, Word};
use pubmark_study::server::limits::Limits;
use pubmark_study::server::{Server, ports, processes};
use serde_json::Value;
use std::io::Write;
use std::process::{Child, Stdio};

fn answer(server: &mut Server) -> Word {
    let mut words = wait_for("the keeper's answer", || Some(server.happened()).filter(|words| !words.is_empty()));
    assert_eq!(words.len(), 1, "{words:?}");
    words.remove(0)
}

#[test]
fn a_stopped_server_stands_still_and_goes_on() {
    let place = Place::new();
    let spec = mosquitto();
    let mut server = Server::start(&start_plan(&place, &spec)).unwrap();
    let before = machine::now();
    server.order(Order::Stop);
    let Word::Stopped(at) = answer(&mut server) else { panic!("it was not stopped") };
    assert!((before..machine::now()).contains(&at));
    wait_for("the kernel to say so", || stopped(server.pid()).then_some(()));
    server.order(Order::Continue);
    let Word::Continued(until) = answer(&mut server) else { panic!("it was not let go on") };
    assert!(until > at);
    wait_for("it to run", || (!stopped(server.pid())).then_some(()));
    assert_eq!(server.ended(), None);
    assert_eq!(server.stop().obituary, None);
}

#[test]
fn a_killed_server_comes_back_where_it_was_and_no_other_end_is_excused() {
    let place = Place::new();
    let spec = mosquitto();
    let mut plan = start_plan(&place, &spec);
    plan.limits = Limits { cpus: Some(1.0), memory_bytes: None };
    let mut server = Server::start(&plan).unwrap();
    let (first, endpoint) = (server.pid(), server.endpoint().to_owned());
    let port: u16 = endpoint.rsplit(':').next().unwrap().parse().unwrap();
    let kept = plan.dir.join("kept");
    std::fs::write(&kept, "data").unwrap();
    server.order(Order::Kill);
    assert!(matches!(answer(&mut server), Word::Killed(_)));
    assert!(!alive(first) && !server.is_listening() && server.ended().is_none());
    server.order(Order::Start);
    let Word::Restarted(_, second) = answer(&mut server) else { panic!("it was not started again") };
    wait_for("it to listen", || server.is_listening().then_some(()));
    assert_eq!(ports::listener(&[second], port), ports::Listener::Own);
    assert!(second != first && server.pid() == second && kept.exists());
    let groups = server.accounts().folders();
    assert!(groups.is_empty() || server.accounts().processes().contains(&second), "it is under its limits again");
    let allowed = std::fs::read_to_string(format!("/proc/{second}/status")).unwrap();
    let allowed = allowed.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned();
    assert!(server.applied().by != "affinity" || allowed.parse::<usize>().is_ok(), "{allowed}");
    // Its second life is its own: who kills it now is nobody's script.
    kill(Pid::from_raw(second), Signal::SIGKILL).unwrap();
    let obituary = wait_for("its end to be told", || server.ended());
    assert!(obituary.contains("signal: 9"), "{obituary}");
    drop(server);
    assert!(groups.iter().all(|group| !group.exists()) && !place.path("scratch").exists());
}

#[test]
fn a_coordinator_that_dies_leaves_no_stopped_server() {
    let place = Place::new();
    let tree = "(setsid sh -c 'while :; do sleep 60; done' &) ; while :; do sleep 60; done";
    let command = ["sh", "-c", tree].map(str::to_owned).to_vec();
    let mut keeper = Keeper::start(&place, command, Vec::new(), 300);
    assert!(keeper.word()["pid"].is_number());
    wait_for("both shells and what they wait for", || (keeper.left().len() >= 4).then_some(()));
    keeper.child.stdin.as_mut().unwrap().write_all(b"\"stop\"\n").unwrap();
    assert!(keeper.word()["stopped"].is_number());
    wait_for("all of it to stand still", || keeper.left().into_iter().all(stopped).then_some(()));
    keeper.coordinator_dies();
}

/// A run in which everything stands still but the coordinator: it, and all that
/// stands still below it.
fn standstill(place: &Place) -> (Child, Vec<i32>) {
    let everything = "stop server at 0s for 50s, stop publishers at 0s for 50s, stop subscribers at 0s for 50s";
    let arguments = bench_arguments(&["mosquitto", "--duration", "60s", "--fault", everything]);
    let coordinator = place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let still = wait_for("server and agents to stand still", || {
        let below = processes::descendants(coordinator.id() as i32);
        let still: Vec<i32> = below.into_iter().filter(|pid| stopped(*pid)).collect();
        (still.len() == 3).then_some(still)
    });
    (coordinator, still)
}

#[test]
fn a_coordinator_killed_while_all_stands_still_leaves_nothing() {
    let place = Place::new();
    let (mut coordinator, still) = standstill(&place);
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    wait_for("their end", || still.iter().all(|pid| !alive(*pid)).then_some(()));
    wait_for("the folders' removal", || std::fs::read_dir(place.tmp()).unwrap().next().is_none().then_some(()));
}

#[test]
fn an_interrupt_while_all_stands_still_ends_in_order() {
    let place = Place::new();
    let (mut coordinator, still) = standstill(&place);
    kill(Pid::from_raw(coordinator.id() as i32), Signal::SIGINT).unwrap();
    let status = wait_for("the coordinator's end", || coordinator.try_wait().unwrap());
    assert_eq!(status.code(), Some(3));
    assert!(still.iter().all(|pid| !alive(*pid)));
    place.assert_swept();
}

#[test]
fn a_server_that_was_killed_by_the_script_has_not_died() {
    let place = Place::new();
    let fault = "kill server at 300ms for 200ms";
    let bench = place.bench(&["mosquitto", "--pairs", "2", "--duration", "2s", "--fault", fault]);
    assert_eq!(bench.error(), "");
    let verdict = &bench.record["verdict"];
    assert!(bench.evidence("server-died").is_none() && bench.evidence("offered-rate-missed").is_none(), "{verdict}");
    assert_eq!(bench.record["workload"]["reconnect"], true);
    let event = &bench.record["fault_log"][0];
    assert!(event["until_ns"].as_u64() > event["at_ns"].as_u64(), "{event}");
    assert!(event["note"].as_str().unwrap().contains("listened again"), "{event}");
    let processes = bench.record["deployment"]["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2, "both lives are sampled: {processes:?}");
    assert!(verdict["notes"].to_string().contains("killed by the script"), "{verdict}");
    place.assert_swept();
}

#[test]
fn a_server_cannot_be_stopped_where_there_is_none() {
    let place = Place::new();
    let refused = |arguments: &[&str], says: &[&str]| {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        for text in says {
            assert!(stderr(&output).contains(text), "should say {text:?}: {}", stderr(&output));
        }
    };
    let stop = ["--fault", "stop server at 1s for 1s"];
    refused(&[&["bench", "kernel", "--transport", "tcp"], &stop[..]].concat(), &["library", "[[skip]]"]);
    refused(&[&["bench", "mqtt://127.0.0.1:1"], &stop[..]].concat(), &["not started by pubmark"]);
    refused(&["bench", "mosquitto", "--fault", "stop sever at 1s for 1s"], &["--fault", "did you mean `server`?"]);
    refused(&["bench", "mosquitto", "--fault", "kill subscribers at 1s"], &["dies with them", "stop subscribers"]);
    refused(&["bench", "mosquitto", "--duration", "2s", "--fault", "stop server at 1500ms for 1s"], &["window of 2s"]);
}

#[test]
fn the_script_the_log_and_both_latencies_are_shown() {
    let place = Place::new();
    let study = "title = \"t\"\n[workload]\nwarmup = \"100ms\"\nduration = \"2s\"\nrate = 500\n[axes]\n\
                 system = [\"nats\"]\nfault = [\"none\", \"stop server at 500ms for 300ms, stop server at 1s for 200ms\"]\n\
                 [run]\nrepeats = 1\n";
    place.study(study);
    let output = place.run(&["run", "study.toml", "--out", "r"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let table = stdout(&output);
    for text in ["service p99", "late", "noted in 1 of 1 run", "stopped by the script at", "delivered nothing"] {
        assert!(table.contains(text), "should say {text:?}: {table}");
    }
    let records = place.records("r");
    let of = |faults: usize| -> &Value {
        records.iter().find(|record| record["faults"].as_array().unwrap().len() == faults).unwrap()
    };
    assert_eq!(of(0)["fault_log"], serde_json::json!([]));
    let log = of(2)["fault_log"].as_array().unwrap();
    let times: Vec<u64> =
        log.iter().flat_map(|event| [&event["at_ns"], &event["until_ns"]]).map(|at| at.as_u64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] >= 500_000_000 && times[2] >= 1_000_000_000, "{times:?}");
    place.assert_swept();
}
