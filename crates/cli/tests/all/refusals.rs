//! Servers that are missing, refuse, use another protocol, or exit: each is reported clearly, in bounded time, with the
//! documented exit code.

mod publishers;

use crate::support::{Benched, PATIENCE, Place, bench_arguments, free_port, stderr, stdout, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pubmark_host::server::Server;
use pubmark_model::server::{Places, ServerSpec};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const SECRET: &str = "hidden-word";
const PROTOCOLS: [&str; 5] = ["mqtt", "nats", "redis", "amqp", "kafka"];

/// Behaviour of an impostor towards clients.
#[derive(Clone, Copy)]
enum Manner {
    /// Accepts and sends nothing.
    Silent,
    /// Sends this at once.
    Says(&'static [u8]),
    /// Answers this to its first input.
    Answers(&'static [u8]),
    /// Closes at once.
    Closes,
}

/// A listener that is not a broker.
struct Impostor {
    address: SocketAddr,
    over: Arc<AtomicBool>,
}

impl Impostor {
    fn new(manner: Manner) -> Impostor {
        let listener = TcpListener::bind(("127.0.0.1", free_port())).unwrap();
        let address = listener.local_addr().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        thread::spawn(move || {
            let mut guests = Vec::new();
            for guest in listener.incoming().map_while(Result::ok) {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                guests.extend(treat(guest, manner));
            }
        });
        Impostor { address, over }
    }

    fn endpoint(&self, protocol: &str) -> String {
        format!("{protocol}://{}", self.address)
    }
}

/// Returns the connection, if it stays open.
fn treat(mut guest: TcpStream, manner: Manner) -> Option<TcpStream> {
    guest.set_read_timeout(Some(PATIENCE)).unwrap();
    match manner {
        Manner::Silent => {}
        Manner::Says(words) => guest.write_all(words).ok()?,
        Manner::Answers(words) => {
            (guest.read(&mut [0; 512]).ok()? > 0).then_some(())?;
            guest.write_all(words).ok()?;
        }
        Manner::Closes => return None,
    }
    Some(guest)
}

impl Drop for Impostor {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// Runs benches in parallel that must all fail: endpoint, and texts of the error.
fn all_fail(cases: &[(String, Vec<&str>)]) {
    thread::scope(|scope| {
        for (endpoint, wanted) in cases {
            scope.spawn(move || {
                let place = Place::new();
                let bench = place.bench(&[endpoint]);
                bench.assert_failed(wanted);
                place.assert_swept();
            });
        }
    });
}

fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

pub fn mosquitto(settings: &str) -> ServerSpec {
    ServerSpec {
        endpoint: "mqtt://127.0.0.1:{port}".into(),
        command: command(&["mosquitto", "-c", "{dir}/m.conf"]),
        files: vec![("m.conf".into(), format!("listener {{port}} 127.0.0.1\nuser root\n{settings}\n"))],
        ..ServerSpec::default()
    }
}

fn redis(more: &[&str]) -> ServerSpec {
    let mut words =
        command(&["redis-server", "--bind", "127.0.0.1", "--port", "{port}", "--dir", "{dir}", "--save", ""]);
    words.extend(command(more));
    ServerSpec { endpoint: "redis://127.0.0.1:{port}".into(), command: words, ..ServerSpec::default() }
}

fn nats(more: &[&str]) -> ServerSpec {
    let mut words = command(&["nats-server", "-a", "127.0.0.1", "-p", "{port}"]);
    words.extend(command(more));
    ServerSpec { endpoint: "nats://127.0.0.1:{port}".into(), command: words, ..ServerSpec::default() }
}

/// Returns the address of a server, without its protocol.
fn address(server: &Server) -> String {
    server.endpoint().split_once("://").unwrap().1.to_owned()
}

#[test]
fn where_nothing_listens_the_connection_is_refused() {
    let cases: Vec<_> = PROTOCOLS
        .iter()
        .map(|protocol| (format!("{protocol}://127.0.0.1:{}", free_port()), vec!["127.0.0.1", "refused"]))
        .collect();
    all_fail(&cases);
}

#[test]
fn a_server_of_another_protocol_is_recognised() {
    let (home, second, third) = (Place::new(), Place::new(), Place::new());
    let mqtt = home.serve(&mosquitto("allow_anonymous true"), Places::default());
    let resp = second.serve(&redis(&[]), Places::default());
    let nats = third.serve(&nats(&[]), Places::default());
    let http = Impostor::new(Manner::Answers(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"));
    let at = |protocol: &str, server: &Server| format!("{protocol}://{}", address(server));
    all_fail(&[
        (at("redis", &nats), vec!["INFO"]),
        (at("mqtt", &resp), vec![&address(&resp)]),
        (at("mqtt", &nats), vec!["INFO"]),
        (at("amqp", &mqtt), vec![&address(&mqtt)]),
        (at("amqp", &nats), vec!["INFO"]),
        (http.endpoint("mqtt"), vec!["HTTP"]),
        (http.endpoint("redis"), vec!["HTTP"]),
        (http.endpoint("amqp"), vec!["HTTP"]),
        (http.endpoint("kafka"), vec!["HTTP"]),
        (at("kafka", &nats), vec!["INFO"]),
    ]);
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_long() {
    let silent = Impostor::new(Manner::Silent);
    // One that speaks the protocol has longer: the first group of a cluster on a busy machine took over 10 s.
    let greets = Impostor::new(Manner::Answers(b"\x20\x02\x00\x00"));
    all_fail(&[
        (silent.endpoint("mqtt"), vec!["did not answer the handshake within 10 s"]),
        (greets.endpoint("mqtt"), vec!["did not answer the subscription within 20"]),
    ]);
}

#[test]
fn garbage_and_hanging_up_are_said() {
    let garbage = Impostor::new(Manner::Says(b"\xff\xfe\x00\x01garbage\r\n\x80\x80\x80\x80\x80\xff\xff\xff\xff\xff"));
    let closes = Impostor::new(Manner::Closes);
    let cases: Vec<_> = PROTOCOLS
        .iter()
        .flat_map(|protocol| {
            [(garbage.endpoint(protocol), vec!["garbage"]), (closes.endpoint(protocol), vec!["(5 attempts)"])]
        })
        .collect();
    all_fail(&cases);
}

/// Checks that the bench fails for its password, and that no output or file contains it.
fn assert_secretive(endpoint: &str, more: &[&str], wanted: &str) {
    let place = Place::new();
    let mut arguments = vec![endpoint];
    arguments.extend(more);
    let bench = place.bench(&arguments);
    bench.assert_failed(&[wanted]);
    assert!(!bench.said.contains(SECRET), "{}", bench.said);
    let shown = place.run(&["report", "r"]);
    assert!(!(stdout(&shown) + &stderr(&shown)).contains(SECRET));
    assert_eq!(files_with(&place.path("r"), SECRET), [""; 0]);
    place.assert_swept();
}

/// Returns the files below a folder that contain a text.
fn files_with(folder: &std::path::Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(text) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn a_wrong_password_is_said_and_never_shown() {
    let places = [Place::new(), Place::new(), Place::new()];
    let passwords = ServerSpec {
        prepare: vec![command(&["mosquitto_passwd", "-b", "-c", "{dir}/passwords", "me", "right"])],
        ..mosquitto("password_file {dir}/passwords")
    };
    let mqtt = places[0].serve(&passwords, Places::default());
    let resp = places[1].serve(&redis(&["--requirepass", "right"]), Places::default());
    let nats = places[2].serve(&nats(&["--user", "me", "--pass", "right"]), Places::default());
    let option = format!("options.password={SECRET}");
    for version in ["options.mqtt_version=3.1.1", "options.mqtt_version=5"] {
        assert_secretive(&format!("mqtt://me:{SECRET}@{}", address(&mqtt)), &["--set", version], "not authorised");
    }
    assert_secretive(&format!("mqtt://me@{}", address(&mqtt)), &["--set", &option], "not authorised");
    assert_secretive(&format!("mqtt://{}", address(&mqtt)), &[], "not authorised");
    for resp_version in ["options.resp=2", "options.resp=3"] {
        assert_secretive(&format!("redis://:{SECRET}@{}", address(&resp)), &["--set", resp_version], "password");
        assert_secretive(&format!("redis://{}", address(&resp)), &["--set", resp_version], "password");
    }
    assert_secretive(&format!("nats://me:{SECRET}@{}", address(&nats)), &[], "password");
    assert_secretive(&format!("nats://{}", address(&nats)), &[], "password");
    // The right password is accepted, and is not shown either.
    for endpoint in [&mqtt, &nats].map(|server| server.endpoint().replace("://", "://me:right@")) {
        let place = Place::new();
        let bench = place.bench(&[&endpoint]);
        assert!(bench.error().is_empty() && bench.count("delivered") > 0, "{}", bench.error());
        assert!(!bench.record.to_string().contains("me:right"));
    }
}

/// One event loop on each side, so that some clients of both are accepted, in any order.
#[test]
fn a_run_goes_on_with_those_that_were_let_in() {
    let (home, place) = (Place::new(), Place::new());
    let server = home.serve(&mosquitto("allow_anonymous true\nmax_connections 12"), Places::default());
    let more = ["--pairs", "10", "--set", "options.shards=1", "--set", "connect_timeout=2s"];
    let bench = place.bench(&[&[server.endpoint()], &more[..]].concat());
    assert_eq!((bench.code, bench.error()), (3, ""), "{}", bench.said);
    let connections = &bench.record["connections"];
    assert_eq!((&connections["wanted"], &connections["opened"]), (&20.into(), &12.into()), "{connections}");
    assert!(connections["refused"].as_u64().unwrap() >= 8, "{connections}");
    let missed = bench.evidence("connections-missed").unwrap();
    assert!(missed.starts_with("12 of 20 clients got a connection; the first attempt that failed: "), "{missed}");
    let missing = ["offered-rate-missed", "messages-lost"].iter().any(|reason| bench.evidence(reason).is_some());
    assert!(missing, "{}", bench.record["verdict"]);
    place.assert_swept();
}

/// Returns the bytes that a process has read, also from sockets: shows that a run is in progress without its output.
fn read_bytes(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).unwrap_or(0)
}

/// Messages are large, so that a few of them exceed all earlier traffic: when the server has read this much, the window
/// is open.
const LARGE: [&str; 10] =
    ["--pairs", "2", "--payload", "20KB", "--rate", "100", "--warmup", "50ms", "--set", "drain=1s"];
const MIDST_BYTES: u64 = 60 * 20_000;

/// Returns an endpoint that passes on all connections to a server. Before it passes on more than [`MIDST_BYTES`], it
/// sends the server a signal: so the signal comes in the middle of the messages, however slow the machine is.
fn disturbed(server: &Server, signal: Signal) -> String {
    let (scheme, address) = server.endpoint().split_once("://").unwrap();
    let (address, pid) = (address.to_owned(), server.pid());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let passed = Arc::new(AtomicU64::new(0));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(upstream) = TcpStream::connect(&address) else { return };
            let (mut back, mut to_client) = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || {
                let _ = std::io::copy(&mut back, &mut to_client);
                let _ = to_client.shutdown(Shutdown::Both);
            });
            let passed = passed.clone();
            thread::spawn(move || {
                let (mut from, mut to, mut bytes) = (client, upstream, [0; 4096]);
                while let Ok(length @ 1..) = from.read(&mut bytes) {
                    let before = passed.fetch_add(length as u64, Ordering::Relaxed);
                    if (before..before + length as u64).contains(&MIDST_BYTES) {
                        kill(Pid::from_raw(pid), signal).unwrap();
                    }
                    if to.write_all(&bytes[..length]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    });
    format!("{scheme}://127.0.0.1:{port}")
}

#[test]
fn a_server_that_is_killed_ends_the_run_with_what_was_counted() {
    let homes = [Place::new(), Place::new(), Place::new()];
    let servers = [
        homes[0].serve(&mosquitto("allow_anonymous true\nmax_queued_messages 0"), Places::default()),
        homes[1].serve(&redis(&[]), Places::default()),
        homes[2].serve(&nats(&[]), Places::default()),
    ];
    thread::scope(|scope| {
        for (server, qos) in servers.iter().zip(["1", "0", "0"]) {
            let endpoint = disturbed(server, Signal::SIGKILL);
            scope.spawn(move || {
                let place = Place::new();
                let bench = place.bench(&[&[&*endpoint, "--qos", qos, "--duration", "2s"], &LARGE[..]].concat());
                assert_eq!((bench.code, bench.error()), (3, ""), "{}", bench.said);
                let died = bench.evidence("server-died").unwrap();
                assert!(died.contains("4 of 4 connections"), "{died}");
                assert!(bench.count("delivered") > 0 && bench.count("not_sent") > 0, "{}", bench.record["counts"]);
                assert_eq!(bench.record["connections"]["lost"], 4);
                place.assert_swept();
            });
        }
    });
}

#[test]
fn a_server_that_stands_still_is_waited_for_with_a_bound() {
    let (home, place) = (Place::new(), Place::new());
    let server = home.serve(&mosquitto("allow_anonymous true\nmax_queued_messages 0"), Places::default());
    let endpoint = disturbed(&server, Signal::SIGSTOP);
    let bench = place.bench(&[&[&*endpoint, "--qos", "1", "--duration", "2s"], &LARGE[..]].concat());
    assert_eq!((bench.code, bench.error()), (3, ""), "{}", bench.said);
    assert!(bench.count("lost") > 0 && bench.count("delivered") > 0, "{}", bench.record["counts"]);
    assert!(bench.evidence("messages-lost").is_some(), "{}", bench.record["verdict"]);
    place.assert_swept();
}

/// The server that pubmark itself has started is found below its keeper.
#[test]
fn the_death_of_a_server_of_its_own_is_told_with_its_status() {
    let place = Place::new();
    let mut arguments = vec!["mosquitto", "--qos", "1", "--duration", "2s"];
    arguments.extend(LARGE);
    let child =
        place.command(&bench_arguments(&arguments)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A Mosquitto that only prints its version reads no messages.
    let server = wait_for("the server and messages", || {
        let below = pubmark_host::server::processes::descendants(child.id() as i32);
        let name = pubmark_host::server::processes::name;
        below.into_iter().find(|pid| name(*pid) == "mosquitto" && read_bytes(*pid) > MIDST_BYTES)
    });
    kill(Pid::from_raw(server), Signal::SIGKILL).unwrap();
    let bench = Benched::read(child.wait_with_output().unwrap());
    assert_eq!((bench.code, bench.error()), (3, ""), "{}", bench.said);
    let died = bench.evidence("server-died").unwrap();
    assert!(died.contains("mosquitto ended: signal: 9"), "{died}");
    assert!(bench.evidence("resource-limit-hit").is_none(), "{}", bench.record["verdict"]);
    place.assert_swept();
}

/// Its server dies with it, which is not a fault of the server.
#[test]
fn the_death_of_a_keeper_is_a_failure_of_pubmarks_and_is_repeated() {
    let place = Place::new();
    let mut arguments = vec!["mosquitto", "--qos", "1", "--duration", "2s"];
    arguments.extend(LARGE);
    let child =
        place.command(&bench_arguments(&arguments)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let keeper = wait_for("messages at the server", || {
        let below = pubmark_host::server::processes::descendants(child.id() as i32);
        let name = pubmark_host::server::processes::name;
        below.into_iter().find(|pid| name(*pid) == "mosquitto" && read_bytes(*pid) > MIDST_BYTES).and_then(parent)
    });
    kill(Pid::from_raw(keeper), Signal::SIGKILL).unwrap();
    let bench = Benched::read(child.wait_with_output().unwrap());
    let says = "a part of pubmark itself failed: mosquitto ended: its keeper was killed";
    assert!(bench.code == 3 && bench.error().contains(says), "{}: {}", bench.code, bench.error());
    assert_eq!(bench.evidence("server-died"), None);
    let again = place.run(&["run", "r/study.toml", "--out", "r", "--resume", "-q"]);
    let records = place.records("r");
    assert!(records.len() == 2 && records[1]["error"].is_null(), "{}", stderr(&again));
    place.assert_swept();
}

fn parent(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:\t"))?.parse().ok()
}

/// At its start, and in mid-run: messages of 1 MB do not fit. If there is no control group, nothing limits the server,
/// and the record says so.
#[test]
fn a_server_without_memory_is_told_from_one_that_crashed() {
    let place = Place::new();
    let limited = |memory| {
        let more = ["--payload", "1MB", "--set", "connect_timeout=2s", "--set", "drain=1s"];
        let bench = place.bench(&[&["mosquitto", "--qos", "1", "--memory", memory], &more[..]].concat());
        std::fs::rename(place.path("r"), place.path(memory)).unwrap();
        place.assert_swept();
        let by = bench.record["deployment"]["applied"]["by"].as_str().unwrap_or("cgroup").to_owned();
        by.starts_with("cgroup").then_some(bench)
    };
    if let Some(bench) = limited("1MiB") {
        bench.assert_failed(&["mosquitto ended while starting", "killed by the kernel for want of memory"]);
    }
    if let Some(bench) = limited("3MiB") {
        let said = format!("{} {}", bench.error(), bench.record["verdict"]);
        assert!(bench.code == 3 && said.contains("for want of memory"), "{said}");
        let hit = bench.evidence("resource-limit-hit");
        assert!(hit.is_none_or(|evidence| evidence.contains("(limit: 3MiB)")), "{said}");
    }
}

#[test]
fn bad_usage_is_said_before_anything_runs() {
    let place = Place::new();
    for (arguments, wanted) in [
        (&["mosquitto", "--set", "options.max_inflight_messages=many"][..], &["many", "whole number"][..]),
        (&["mosquitto", "--set", "options.max_inflight=1"], &["max_inflight", "did you mean"]),
        (&["mosquitto", "--qos", "3"], &["whole number from 0 to 2"]),
        (&["redis", "--qos", "1"], &["redis", "quality of service"]),
        (&["nats", "--qos", "1"], &["nats", "quality of service"]),
        (&["mosquitto", "--memory", "lots"], &["lots"]),
        (&["mqtt://"], &["host"]),
        (&["http://127.0.0.1:80"], &["http", "mqtt"]),
        (&["mosquito"], &["did you mean `mosquitto`?"]),
        (&["redis", "--pattern", "pipeline"], &["redis", "pipeline"]),
        (&["nats", "--durable"], &["nats", "durable"]),
    ] {
        let mut all = vec!["bench"];
        all.extend(arguments);
        let output = place.run(&all);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(wanted.iter().all(|text| said.contains(text)), "{arguments:?} should say {wanted:?}: {said}");
        assert!(!place.path("results").exists(), "nothing was begun");
    }
    place.assert_swept();
}

#[test]
fn systems_are_listed_and_shown_with_the_reasons_for_their_tuning() {
    let place = Place::new();
    let (list, json) = (place.run(&["systems"]), place.run(&["systems", "--json"]));
    let json: Value = serde_json::from_str(&stdout(&json)).unwrap();
    for system in pubmark_study::registry::Registry::default().systems() {
        assert!(stdout(&list).contains(&system.name), "{}", system.name);
        assert!(json.to_string().contains(&format!("\"{}\"", system.name)), "{}", system.name);
    }
    // The mock is here on every machine, and no server of another's is installed.
    let groups: Vec<String> = stdout(&list).split("\n\n").map(str::to_owned).collect();
    let of = |name: &str| groups.iter().find(|group| group.contains(name)).unwrap_or_else(|| panic!("{groups:#?}"));
    assert!(of("\nmock ").starts_with("INSTALLED\n"), "{groups:#?}");
    assert!(of("pubmark bench PROTOCOL://HOST:PORT").starts_with("RUNNING ELSEWHERE: "), "{groups:#?}");
    let shown = stdout(&place.run(&["systems", "mosquitto"]));
    for wanted in ["mosquitto -c", "max_queued_messages", "it drops acknowledged messages", "EPL-2.0"] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
}

#[test]
fn a_study_leaves_out_what_is_missing_and_says_why() {
    let place = Place::new();
    place.study("title = \"t\"\n[workload]\nduration = \"200ms\"\nwarmup = \"50ms\"\n[axes]\nsystem = [\"mosquitto\", \"emqx\"]\n[run]\nrepeats = 1\n");
    let output = place.run(&["run", "study.toml", "--out", "r"]);
    let (table, said) = (stdout(&output), stderr(&output));
    let kept = std::fs::read_to_string(place.path("r/study.toml")).unwrap();
    let why = said.lines().find_map(|line| line.split_once("skipped: ")).unwrap().1.split(':').next().unwrap();
    assert!(kept.contains("[[skip]]") && kept.contains(why), "{kept}");
    let words: Vec<&str> = why.split_whitespace().take(5).collect();
    assert!(table.contains("emqx") && table.contains(&words.join(" ")), "{table}");
    let records = place.records("r");
    assert_eq!(records.len(), 1);
    assert!(records[0]["error"].is_null() && records[0]["system"] == "mosquitto");
}

#[test]
fn what_is_secret_cannot_be_an_axis() {
    let place = Place::new();
    for (option, value) in [("password", SECRET.to_owned()), ("endpoint", format!("redis://me:{SECRET}@127.0.0.1"))] {
        place.study(&format!("title = \"t\"\n[axes]\nsystem = [\"redis\"]\n\"options.{option}\" = [\"{value}\"]\n"));
        let output = place.run(&["run", "study.toml", "--out", "r"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("cannot be an axis") && said.contains("[options]"), "{said}");
        assert!(!said.contains(SECRET) && !place.path("r").exists(), "{said}");
    }
}

/// Errors name arguments as they were typed: a flag by its name, `--set` by its own.
#[test]
fn what_was_typed_is_named_as_it_was_typed() {
    let place = Place::new();
    for (words, said) in [
        (vec!["bench", "mosquitto", "--set", "options.tls=true"], "--set options.tls=true: unknown option `tls`"),
        (vec!["bench", "mock", "--set", "rate=fast"], "--set rate=fast: "),
        (vec!["bench", "mock", "--rate", "fast"], "--rate=fast: "),
        (vec!["bench", "mock", "--duration", "soon"], "--duration=soon: "),
        (vec!["capacity", "mock", "--set", "options.tls=true"], "--set options.tls=true: unknown option `tls`"),
    ] {
        let output = place.run(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).contains(&format!("error: {said}")), "{words:?}: {}", stderr(&output));
    }
}

/// A failed gating claim decides the exit code, though other figures have no result.
#[test]
fn a_claim_that_fails_is_code_1_also_where_a_figure_has_no_answer() {
    let place = Place::new();
    // A system with another name, because `mock` is never judged.
    place.system("swift", include_str!("../../../../systems/mock.toml"));
    place.study(
        "title = \"t\"\n[workload]\nrate = 100\nduration = \"5s\"\n[axes]\nsystem = [\"swift\"]\n[run]\nrepeats = 2\n\
         [[claims]]\nid = \"1\"\nsays = \"a message takes a microsecond\"\nrequire = \"p50 < 1us\"\ngate = true\n",
    );
    let output = place.run(&["run", "study.toml", "--out", "r"]);
    assert!(stderr(&output).contains("no reliable "), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1), "{}{}", stdout(&output), stderr(&output));
    let told = place.run(&["claims", "r"]);
    assert_eq!(told.status.code(), Some(1), "{}", stderr(&told));
    assert!(stdout(&told).starts_with("1  fails (gate)  a message takes a microsecond\n"), "{}", stdout(&told));
    let all = place.run(&["claims", "r", "--all"]);
    assert!(stdout(&all).contains("1: fails (gate)"), "{}", stdout(&all));
}

/// A run that ends by count at `max` has no end if nothing arrives, and so no rates.
#[test]
fn a_count_of_which_nothing_arrives_has_no_rates() {
    let place = Place::new();
    let common = ["bench", "mock", "--rate", "max", "--repeats", "1", "--json"];
    for (lose_every, arrives) in [("1", false), ("2", true)] {
        let (option, out) = (format!("options.lose_every={lose_every}"), format!("r{lose_every}"));
        let output = place.run(&[&common[..], &["--count", "5000", "--set", &option, "--out", &out]].concat());
        let record = &place.records(&out)[0];
        assert!(record["error"].is_null(), "{record}");
        assert_eq!(record["counts"]["sent"], 5_000);
        assert_eq!(record["counts"]["delivered"].as_u64().unwrap() > 0, arrives);
        for rate in ["offered_per_s", "sent_per_s", "delivered_per_s", "delivered_bytes_per_s"] {
            assert_eq!(record["rates"][rate].as_f64().unwrap() > 0.0, arrives, "{rate}: {}", record["rates"]);
        }
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["summary"]["sent_per_s"].is_null(), !arrives, "{}", told["summary"]);
    }
}
