//! Faults as the keeper carries them out, and as a run records them.

mod killed;

use crate::servers::{Keeper, mosquitto, start_plan, stopped};
use crate::support::{Benched, Place, alive, bench_arguments, stderr, stdout, undisturbed, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pubmark_host::clock;
use pubmark_host::server::orders::{KeeperAnswer, KeeperOrder};
use pubmark_host::server::{Server, ports, processes};
use pubmark_model::cell::Limits;
use pubmark_model::link::{self, Link, Side};
use serde_json::Value;
use std::io::Write;
use std::process::{Child, Stdio};

fn answer(server: &mut Server) -> KeeperAnswer {
    let mut words = wait_for("the keeper's answer", || Some(server.happened()).filter(|words| !words.is_empty()));
    assert_eq!(words.len(), 1, "{words:?}");
    words.remove(0)
}

#[test]
fn a_stopped_server_stands_still_and_goes_on() {
    let place = Place::new();
    let spec = mosquitto();
    let mut server = Server::start(&start_plan(&place, &spec)).unwrap();
    let before = clock::now();
    server.order(KeeperOrder::Stop);
    let KeeperAnswer::Stopped(at) = answer(&mut server) else { panic!("it was not stopped") };
    assert!((before..clock::now()).contains(&at));
    wait_for("the kernel to say so", || stopped(server.pid()).then_some(()));
    server.order(KeeperOrder::Continue);
    let KeeperAnswer::Continued(until) = answer(&mut server) else { panic!("it was not let go on") };
    assert!(until > at);
    wait_for("it to run", || (!stopped(server.pid())).then_some(()));
    assert_eq!(server.ended(), None);
    assert_eq!(server.stop().exit_reason, None);
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
    server.order(KeeperOrder::Kill);
    assert!(matches!(answer(&mut server), KeeperAnswer::Killed(_)));
    assert!(!alive(first) && !server.is_listening() && server.ended().is_none());
    server.order(KeeperOrder::Start);
    let KeeperAnswer::Restarted(_, second) = answer(&mut server) else { panic!("it was not started again") };
    wait_for("it to listen", || server.is_listening().then_some(()));
    assert_eq!(ports::listener(&[second], port), ports::Listener::Own);
    assert!(second != first && server.pid() == second && kept.exists());
    let groups = server.accounts().folders();
    assert!(groups.is_empty() || server.accounts().processes().contains(&second), "it is under its limits again");
    let allowed = std::fs::read_to_string(format!("/proc/{second}/status")).unwrap();
    let allowed = allowed.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned();
    assert!(server.applied().by != "affinity" || allowed.parse::<usize>().is_ok(), "{allowed}");
    // A kill of the restarted server is not the script's.
    kill(Pid::from_raw(second), Signal::SIGKILL).unwrap();
    let exit_reason = wait_for("its end to be told", || server.ended());
    assert!(exit_reason.contains("signal: 9"), "{exit_reason}");
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
    // A shell that waits has no child left that is just beginning or ending.
    let waits = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
    wait_for("what both shells wait for", || {
        (keeper.left().iter().filter(|pid| waits(pid)).count() == 2).then_some(())
    });
    keeper.child.stdin.as_mut().unwrap().write_all(b"\"stop\"\n").unwrap();
    assert!(keeper.word()["stopped"].is_number());
    wait_for("all of it to stand still", || keeper.left().into_iter().all(stopped).then_some(()));
    keeper.coordinator_dies();
}

/// Returns a run in which everything but the coordinator is stopped: the coordinator, and all stopped processes below
/// it.
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
fn what_a_restart_cost_is_a_row_of_its_own() {
    let place = Place::new();
    let load = ["--pairs", "2", "--rate", "200", "--qos", "1", "--durable", "--warmup", "300ms", "--duration", "5s"];
    let fault = ["--fault", "kill server at 1s for 1s", "--repeats", "1", "--out", "r"];
    let mut bench = place.command(&[&["bench", "mosquitto"][..], &load, &fault].concat());
    let shown = stdout(&bench.env("COLUMNS", "80").output().unwrap());
    let table = shown.split("WHAT THE RESTART COST\n").nth(1).unwrap_or_else(|| panic!("{shown}"));
    assert!(table.lines().next().unwrap().contains("beyond  caught up  all back"), "{shown}");
    assert!(table.lines().nth(2).unwrap().starts_with("mosquitto "), "{shown}");
    let record = &place.records("r")[0];
    let (event, cost) = (&record["fault_log"][0], &record["recovery"]);
    let of = |value: &Value, key: &str| value[key].as_u64().unwrap_or_else(|| panic!("{key}: {value}"));
    let (began, ended) = (of(event, "at_ns"), of(event, "until_ns"));
    assert_eq!(of(cost, "listens_after_ns"), of(event, "listens_ns") - ended, "{event}");
    assert_eq!(of(cost, "beyond_ns") + 1_000_000_000, of(cost, "silence_ns"), "a second was asked for: {cost}");
    assert_eq!(of(cost, "watched_ns"), of(record, "window_ns") - ended, "{cost}");
    assert_eq!(of(cost, "clients_not_back"), 0, "{cost}");
    let away = of(&record["connections"]["reconnect_ns"], "max");
    assert_eq!(of(cost, "clients_back_after_ns"), away.saturating_sub(ended - began), "{cost}");
    // A second in which two publishers send 400 messages is a backlog: working it off takes time.
    let caught_up = cost["caught_up_after_ns"].as_u64();
    assert!(caught_up.is_none_or(|after| after > 0 && after <= of(cost, "watched_ns")), "{cost}");
    let rows: Value = serde_json::from_slice(&place.run(&["report", "r", "--json"]).stdout).unwrap();
    assert_eq!(rows[0]["outage_beyond_ns"], cost["beyond_ns"], "{rows}");
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
    let back = "kill subscribers at 1s for 1s";
    refused(&["bench", "mosquitto", "--fault", back], &["stays away for the rest of the run", "cut link at"]);
    let dead = "kill publishers at 1s, stop publishers at 2s for 1s";
    refused(&["bench", "mosquitto", "--fault", dead], &["nobody is there any more after `kill publishers at 1s`"]);
    let kill = ["--fault", "kill publishers at 1s"];
    refused(&[&["bench", "zeromq", "--transport", "inproc"], &kill[..]].concat(), &["are one process"]);
    refused(&[&["bench", "mock"], &kill[..]].concat(), &["virtual time"]);
    refused(&["bench", "mosquitto", "--duration", "2s", "--fault", "stop server at 1500ms for 1s"], &["window of 2s"]);
}

#[test]
fn the_script_the_log_and_both_latencies_are_shown() {
    let place = Place::new();
    let study = "title = \"t\"\n[workload]\nwarmup = \"100ms\"\nduration = \"2s\"\nrate = 500\n[axes]\n\
                 system = [\"nats\"]\nfault = [\"none\", \"stop server at 500ms for 300ms, stop server at 1s for 200ms\"]\n\
                 [run]\nrepeats = 1\n";
    place.study(study);
    let output = place.run(&["run", "study.toml", "--out", "r", "--all"]);
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

/// Returns the cuts of a run whose link alone fails: checks that all planned ones happened, none too early, each with
/// its repair.
fn cuts(record: &Value) -> Vec<(u64, u64)> {
    let (faults, log) = (record["faults"].as_array().unwrap(), record["fault_log"].as_array().unwrap());
    assert_eq!(faults.len(), log.len());
    let times = faults.iter().zip(log).map(|(fault, event)| {
        assert_eq!((&event["what"], &event["who"]), (&Value::from("cut"), &Value::from("link")));
        let (at, until) = (event["at_ns"].as_u64().unwrap(), event["until_ns"].as_u64().unwrap());
        let due = fault["at_ns"].as_u64().unwrap();
        assert!(at >= due && until >= due + fault["for_ns"].as_u64().unwrap() && until > at, "{fault} {event}");
        (at, until)
    });
    let times: Vec<(u64, u64)> = times.collect();
    assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{times:?}");
    times
}

#[test]
fn a_link_that_fails_by_chance_fails_as_its_seed_says_and_qos_1_loses_nothing() {
    let place = Place::linked();
    let chance = ["--set", "mttf=700ms", "--set", "mttr=100ms", "--set", "seed=3"];
    let load = ["mosquitto", "--pairs", "3", "--qos", "1", "--durable", "--duration", "3s"];
    let bench = place.bench(&[&load[..], &chance].concat());
    assert_eq!(bench.error(), "");
    let axes = bench.record["cell"].as_object().unwrap();
    let second = 1_000_000_000;
    let link = Link {
        side: Side::Subscribers,
        delay_ns: 0,
        jitter_ns: 0,
        bandwidth_bytes_per_s: None,
        mttf_ns: Some(7 * second / 10),
        mttr_ns: Some(second / 10),
    };
    let wanted = link.failures(3 * second, link::seed(3, 1, axes));
    assert_eq!(bench.record["faults"], serde_json::to_value(&wanted).unwrap());
    let cuts = cuts(&bench.record);
    assert!(!cuts.is_empty(), "choose a seed with a failure");
    let connections = &bench.record["connections"];
    let (lost, back) = (connections["lost"].as_u64().unwrap(), connections["reconnected"].as_u64().unwrap());
    assert!((3..=3 * cuts.len() as u64).contains(&lost) && lost == back, "{connections}");
    let counted = ["offered", "expected", "delivered", "lost", "acked_lost"].map(|name| bench.count(name));
    assert_eq!(counted, [1_800, 1_800, 1_800, 0, 0]);
    for reason in ["duplicates", "reordered", "server-died", "not-steady"] {
        assert_eq!(bench.evidence(reason), None);
    }
    let notes = bench.record["verdict"]["notes"].to_string();
    assert!(notes.contains(&format!("the link was cut {}", if cuts.len() == 1 { "once" } else { "" })), "{notes}");
    assert!(!notes.contains("\"server\""), "the server is not to blame: {notes}");
    assert_eq!(bench.record["versions"]["toxiproxy"], "toxiproxy 2.12.0");
    assert!(bench.record["link"]["usage"]["cpu_s"].as_f64().unwrap() > 0.0);
    place.assert_swept();
}

#[test]
fn qos_0_loses_what_the_cut_took_and_the_run_still_counts() {
    let place = Place::linked();
    // Clients wait up to 750 ms before they try again: all are back in time.
    let cut = ["--pairs", "2", "--duration", "2s", "--fault", "cut link at 300ms for 400ms"];
    let bench = place.bench(&[&["mosquitto"], &cut[..]].concat());
    let cuts = cuts(&bench.record);
    let lost = bench.count("lost");
    // At 200 messages per second and pair: half of them, if the machine stutters.
    let least = 2 * (cuts[0].1 - cuts[0].0) / 5_000_000 / 2;
    assert!(lost >= least, "{lost} of at least {least}");
    assert_eq!(lost, bench.count("expected") - bench.count("delivered"));
    assert_eq!((bench.count("expected"), bench.count("duplicated")), (800, 0));
    assert_eq!(bench.evidence("messages-lost"), None);
    assert_eq!(bench.record["connections"]["lost"], 2);
    assert_eq!(bench.record["connections"]["reconnected"], 2);
    let notes = bench.record["verdict"]["notes"].as_array().unwrap();
    let blamed = notes.iter().find(|note| note["evidence"].as_str().unwrap().contains("expected messages")).unwrap();
    assert_eq!(blamed["part"], "link");
}

#[test]
fn acknowledgements_that_a_cut_takes_make_duplicates_of_what_was_delayed() {
    let load = ["mosquitto", "--pairs", "2", "--qos", "1", "--durable", "--duration", "1500ms"];
    let direct = undisturbed(|| Place::linked().bench(&load));
    // The subscribers' acknowledgements have been travelling back for 30 ms when the link is cut.
    let delayed = ["--set", "link_delay=30ms", "--fault", "cut link at 700ms for 100ms"];
    let bench = undisturbed(|| Place::linked().bench(&[&load[..], &delayed].concat()));
    assert_eq!((bench.count("lost"), bench.count("expected")), (0, 600));
    assert!(bench.count("duplicated") > 0, "{}", bench.record["counts"]);
    let p50 = |bench: &Benched| bench.record["latency_ns"]["p50"].as_u64().unwrap();
    let (plain, slow) = (p50(&direct), p50(&bench));
    assert!(slow >= 30_000_000, "{slow}");
    // Once in the direction of the messages, and the proxy's own cost is less than the delay.
    assert!(slow < 2 * 30_000_000 + 2 * plain, "{slow} beside {plain}");
    assert_eq!(direct.record.get("link"), None);
}

#[test]
fn a_link_whose_delay_varies_is_sometimes_faster_and_sometimes_slower_than_it() {
    let set = ["--set", "link_delay=30ms", "--set", "link_jitter=25ms"];
    let bench = Place::linked().bench(&[&["mosquitto", "--pairs", "2"][..], &set].concat());
    let latency = |name: &str| bench.record["latency_ns"][name].as_u64().unwrap();
    assert_eq!(bench.count("lost"), 0);
    let (least, most) = (latency("min"), latency("max"));
    assert!((5_000_000..30_000_000).contains(&least) && most > 30_000_000, "{least} to {most}");
}

#[test]
fn only_the_side_that_goes_over_the_link_loses_its_connections() {
    for (side, losses) in [("publishers", 2), ("both", 4)] {
        let cut = ["--set", &format!("link={side}"), "--fault", "cut link at 300ms for 200ms"];
        let load = ["mosquitto", "--pairs", "2", "--qos", "1", "--durable"];
        let bench = Place::linked().bench(&[&load[..], &cut].concat());
        let connections = &bench.record["connections"];
        assert_eq!(connections["lost"], losses, "{side}: {connections}");
        assert_eq!(connections["reconnected"], losses, "{side}: {connections}");
        assert_eq!([bench.count("expected"), bench.count("delivered"), bench.count("sent")], [400, 400, 400], "{side}");
    }
}

#[test]
fn what_a_killed_server_had_acknowledged_is_lost_where_it_stored_nothing() {
    // It writes its store once per second, by a clock of whole seconds: two of them after the subscriptions they are
    // certainly stored.
    let away = "cut link at 2200ms for 1800ms, kill server at 3200ms for 300ms";
    let load = ["mosquitto", "--pairs", "2", "--qos", "1", "--durable", "--duration", "4500ms"];
    let run = |stored: &str| {
        let option = format!("options.persistence={stored}");
        Place::linked().bench(&[&load[..], &["--set", &option, "--fault", away]].concat())
    };
    let (kept, forgotten) = (run("true"), run("false"));
    for bench in [&kept, &forgotten] {
        assert_eq!((bench.error(), bench.count("expected")), ("", 1_800));
        assert_eq!(bench.evidence("messages-lost"), None);
        assert_eq!(bench.evidence("server-died"), None);
    }
    // A second of 200 messages and two pairs waited in its memory; half of them, if the machine stutters.
    assert!(forgotten.count("acked_lost") >= 200, "{}", forgotten.record["counts"]);
    // Its store is written each second: it has lost what came since.
    assert!(kept.count("acked_lost") <= forgotten.count("acked_lost"), "{}", kept.record["counts"]);
}

#[test]
fn a_coordinator_that_is_killed_leaves_no_link() {
    let place = Place::linked();
    let arguments = bench_arguments(&["mosquitto", "--duration", "60s", "--set", "link_delay=1ms"]);
    let mut coordinator = place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let proxy = wait_for("the proxy", || {
        let below = processes::descendants(coordinator.id() as i32);
        let command = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        below
            .into_iter()
            .find(|pid| command(pid).contains("toxiproxy/bin/server") || command(pid).contains("relay::plays"))
    });
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    wait_for("its end", || (!alive(proxy)).then_some(()));
    wait_for("the folders' removal", || std::fs::read_dir(place.tmp()).unwrap().next().is_none().then_some(()));
}

#[test]
fn a_link_that_cannot_be_is_refused_with_the_way_out() {
    let place = Place::new();
    for (arguments, says) in [
        (&["bench", "kernel", "--transport", "tcp", "--set", "link_delay=1ms"][..], "no link can be put before kernel"),
        (&["bench", "mosquitto", "--set", "mttf=1s"], "set `mttr`"),
        (&["bench", "mosquitto", "--set", "link=both"], "link_delay = \"0s\""),
        (&["bench", "mosquitto", "--set", "link_delay=1500us"], "whole milliseconds"),
        (&["bench", "mosquitto", "--set", "link_bandwidth=1500B"], "whole kB"),
        (&["bench", "mosquitto", "--set", "link_loss=1%"], "cannot be lost on a link"),
        (&["bench", "mosquitto", "--set", "link_jitter=1ms"], "it cannot be more than that"),
        (&["bench", "mosquitto", "--fault", "cut server at 1s for 1s"], "cut link"),
    ] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "should say {says:?}: {}", stderr(&output));
    }
    let list = stdout(&place.run(&["systems"]));
    assert!(list.contains("toxiproxy"), "among the systems, so that it can be found: {list}");
    let systems = stdout(&place.run(&["systems", "--json"]));
    assert!(!systems.contains("toxiproxy"), "a tool is not a system: {systems}");
    assert!(stdout(&place.run(&["systems", "toxiproxy"])).contains("go install"), "and can be asked for");
}

#[test]
fn acknowledged_and_lost_is_seen_on_eighty_columns() {
    let place = Place::new();
    // Messages for a stopped subscriber are in the server's memory only.
    let load = ["--pairs", "2", "--qos", "1", "--durable", "--rate", "200", "--payload", "256B"];
    let window = ["--warmup", "200ms", "--duration", "2s", "--repeats", "1", "--out", "r"];
    let forgets = ["--set", "options.persistence=false", "--set", "options.max_inflight_messages=1"];
    let fault = ["--fault", "stop subscribers at 200ms for 1500ms, kill server at 1s for 200ms"];
    let arguments = [&["bench", "mosquitto"], &load[..], &window, &forgets, &fault].concat();
    let output = place.command(&arguments).env("COLUMNS", "80").output().unwrap();
    let record = &place.records("r")[0];
    let count = |name: &str| record["counts"][name].as_u64().unwrap();
    assert!(count("acked_lost") > 0, "{} {}", record["counts"], stderr(&output));
    let share = format!("{} of {} acknowledged messages", count("acked_lost"), count("acked"));
    let (table, line) = (stdout(&output), stderr(&output));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&table).contains(&format!("mosquitto lost {share}.")), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    // Counts of messages are facts of the run, even if other figures are unreliable.
    let report = place.command(&["report", "r", "--all"]).env("COLUMNS", "80").output().unwrap();
    let table = stdout(&report);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let row = words(table.lines().find(|line| line.starts_with("mosquitto  ")).unwrap());
    let first = ["acked", "acked_lost", "lost", "duplicated"].map(|name| count(name).to_string()).join(" ");
    assert!(row.starts_with(&format!("mosquitto {first} ")), "{row}: {first}");
    assert!(line.contains(&format!(": {share} lost, ")), "the line after the run: {line}");
    let note = record["verdict"]["notes"][0]["evidence"].as_str().unwrap();
    assert!(note.starts_with(&format!("{share} were lost: they had not arrived ")), "{note}");
}

/// A frozen server closes no connection: its clients wait for it, or give it up after a time.
#[test]
fn clients_give_up_a_server_that_is_silent_for_longer_than_they_wait() {
    let bench = |set: &[&str]| {
        let place = Place::new();
        let load = ["--pairs", "3", "--qos", "1", "--durable", "--rate", "50", "--warmup", "200ms", "--duration", "6s"];
        let fault = ["--fault", "stop server at 1s for 3s"];
        let run = place.bench(&[&["mosquitto"][..], &load, &fault, set].concat()).record;
        assert_eq!(run["error"], Value::Null);
        assert_eq!((&run["counts"]["acked_lost"], &run["counts"]["lost"]), (&0.into(), &0.into()), "{}", run["counts"]);
        ["lost", "reconnected"].map(|name| run["connections"][name].as_u64().unwrap())
    };
    assert_eq!(bench(&["--set", "client_timeout=5s"]), [0, 0]);
    let [lost, back] = bench(&["--set", "client_timeout=1s"]);
    assert!(lost >= 6 && back == lost, "each of six, once or again: {back} of {lost}");
    let place = Place::new();
    let set = |set: &str| place.run(&["bench", "mosquitto", "--set", "client_timeout=1s", "--set", set]);
    let slow = set("consume=10");
    assert!(stderr(&slow).contains("as seldom as `consume` says"), "{}", stderr(&slow));
    let library = place.run(&["bench", "zeromq", "--set", "client_timeout=1s"]);
    assert!(stderr(&library).contains("it has no server"), "{}", stderr(&library));
    assert_eq!([slow, library].map(|output| output.status.code()), [Some(2); 2]);
}
