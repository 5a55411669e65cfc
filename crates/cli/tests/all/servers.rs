//! Servers under limits: started by the real keeper, watched, and ended whatever happens. Nothing is left: no process,
//! no control group, no folder.

use crate::left_out::leave_out;
use crate::support::{Place, alive, pubmark, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pubmark_host::server::accounts::hierarchies;
use pubmark_host::server::certificates::Certificates;
use pubmark_host::server::limits::{Group, name};
use pubmark_host::server::orders::KeepPlan;
use pubmark_host::server::{Server, StartPlan, ports, processes};
use pubmark_host::{clock, machine};
use pubmark_model::cell::Limits;
use pubmark_model::secret::Secrets;
use pubmark_model::server::{ContainerSpec, Places, ServerSpec};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;

static NEVER: AtomicBool = AtomicBool::new(false);
const SECOND: u64 = 1_000_000_000;

/// Ignores SIGTERM, starts a daemon that does too, and stops itself.
const STUBBORN: &str = "trap '' TERM HUP; (setsid sh -c 'trap \"\" TERM; echo daemon $$; while :; do sleep 60; done' &) ; echo server $$; kill -STOP $$; while :; do sleep 60; done";

fn shell(line: &str) -> Vec<String> {
    ["sh", "-c", line].map(str::to_owned).to_vec()
}

pub fn mosquitto() -> ServerSpec {
    ServerSpec {
        endpoint: "mqtt://127.0.0.1:{port}".into(),
        command: ["/usr/sbin/mosquitto", "-c", "{dir}/m.conf"].map(str::to_owned).to_vec(),
        files: vec![("m.conf".into(), "listener {port} 127.0.0.1\nallow_anonymous true\nuser root\n".into())],
        ..ServerSpec::default()
    }
}

pub fn start_plan<'a>(place: &Place, spec: &'a ServerSpec) -> StartPlan<'a> {
    StartPlan {
        system: "thing",
        spec,
        deployment: "native",
        places: Places::default(),
        certificates: None,
        dir: place.path("scratch").join("server"),
        log: place.path("server.log"),
        processors: &[],
        disk: None,
        mesh: None,
        limits: Limits::default(),
        program: PathBuf::from(env!("CARGO_BIN_EXE_pubmark")),
        remove: vec![place.path("scratch")],
        secrets: Secrets::default(),
        grace_ms: 300,
        interrupt: &NEVER,
    }
}

/// Returns the error of a server that does not start; nothing of it is left.
fn refused(place: &Place, plan: &StartPlan) -> String {
    let error = Server::start(plan).err().expect("it should not have started");
    assert_nothing_left(place);
    error.to_string()
}

fn assert_nothing_left(place: &Place) {
    assert!(!place.path("scratch").exists(), "the folder is left");
    let left = working_in(place);
    assert!(left.is_empty(), "left behind: {left:?}");
}

/// Returns the processes of the place's servers, by the working folder that they share.
fn working_in(place: &Place) -> Vec<i32> {
    let works_here = |pid: &i32| {
        std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|folder| folder.starts_with(place.path("scratch")))
    };
    processes::all().into_iter().filter(works_here).filter(|pid| alive(*pid)).collect()
}

fn log(place: &Place) -> String {
    std::fs::read_to_string(place.path("server.log")).unwrap_or_default()
}

/// A keeper that the test uses directly, like a coordinator that may die.
pub struct Keeper {
    pub child: Child,
    output: BufReader<std::process::ChildStdout>,
    plan: KeepPlan,
    group: Group,
}

impl Keeper {
    pub fn start(place: &Place, command: Vec<String>, cpus: Vec<usize>, grace_ms: u64) -> Keeper {
        let (marker, folder) = (name(), place.path("scratch"));
        std::fs::create_dir(&folder).unwrap();
        let group = Group::create(&marker, Limits::default());
        let groups = group.accounts.folders();
        let (log, remove) = (place.path("server.log"), vec![folder.clone()]);
        let plan = KeepPlan { marker, command, folder, log, groups, cpus, remove, grace_ms, ..KeepPlan::default() };
        let mut child = pubmark().arg("keep").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let line = serde_json::to_string(&plan).unwrap();
        child.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Keeper { child, output, plan, group }
    }

    pub fn word(&mut self) -> serde_json::Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_default()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    pub fn left(&self) -> Vec<i32> {
        processes::marked(|marker| marker == self.plan.marker)
    }

    /// Does what the kernel does when a coordinator is killed.
    pub fn coordinator_dies(mut self) {
        drop(self.child.stdin.take());
        let ended = wait_for("the keeper's end", || self.child.try_wait().unwrap());
        assert!(ended.success());
        assert!(self.left().is_empty() && !self.plan.folder.exists());
        assert!(self.plan.groups.iter().all(|group| !group.exists()), "{:?}", self.plan.groups);
    }
}

#[test]
fn a_broker_listens_is_watched_and_is_gone() {
    let place = Place::new();
    let spec = mosquitto();
    let server = Server::start(&start_plan(&place, &spec)).unwrap();
    let port: u16 = server.endpoint().strip_prefix("mqtt://127.0.0.1:").unwrap().parse().unwrap();
    assert_eq!(ports::listener(&[server.pid()], port), ports::Listener::Own);
    assert_eq!(processes::name(server.pid()), "mosquitto");
    assert!(server.started_s() > 0.0);
    let from = clock::now();
    let sampler = server.sample(from, None);
    wait_for("the time of some samples", || (clock::now() > from + SECOND / 2).then_some(()));
    let used = sampler.finish(None);
    assert_eq!(used.processes.len(), 1, "{used:?}");
    assert_eq!(used.processes[0].pid, server.pid());
    assert!(used.usage.rss_bytes_median >= used.usage.uss_bytes_median && used.usage.uss_bytes_median > 0);
    assert_eq!(used.cgroup_memory_bytes_max.is_some(), server.applied().by.starts_with("cgroup"), "{used:?}");
    let (pid, groups) = (server.pid(), server.accounts().folders());
    assert!(groups.iter().all(|group| group.exists()));
    assert_eq!(server.stop(), Default::default());
    assert!(!alive(pid) && groups.iter().all(|group| !group.exists()));
    assert_nothing_left(&place);
}

#[test]
fn a_killed_coordinator_leaves_nothing_of_a_stubborn_server() {
    let place = Place::new();
    let mut keeper = Keeper::start(&place, shell(STUBBORN), Vec::new(), 200);
    let server = keeper.word()["pid"].as_i64().unwrap() as i32;
    wait_for("the daemon and the stop", || (log(&place).contains("daemon") && stopped(server)).then_some(()));
    wait_for("server, daemon and what they run", || (keeper.left().len() >= 3).then_some(()));
    let groups = keeper.group.accounts.processes();
    assert!(groups.is_empty() == keeper.plan.groups.is_empty(), "they are in the group, if there is one");
    if groups.is_empty() {
        leave_out(
            "a_killed_coordinator_leaves_nothing_of_a_stubborn_server",
            "no control group can be made here to leave",
        );
    }
    // Only the end of its input ends a keeper.
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        keeper.signal(signal);
    }
    keeper.signal(Signal::SIGSTOP);
    wait_for("the keeper's stop", || stopped(keeper.child.id() as i32).then_some(()));
    keeper.signal(Signal::SIGCONT);
    wait_for("the same as before", || (keeper.left().len() >= 3).then_some(()));
    keeper.coordinator_dies();
}

/// Uses a coordinator that is really killed: this test's own program, started again.
#[test]
fn a_coordinator_killed_by_force_leaves_nothing() {
    let place = Place::new();
    let spec = ServerSpec { command: shell(STUBBORN), ready_log: "daemon".into(), ..ServerSpec::default() };
    if let Some(folder) = std::env::var_os("PUBMARK_TEST_FOLDER").map(PathBuf::from) {
        let (dir, log, remove) = (folder.join("scratch"), folder.join("server.log"), vec![folder.join("scratch")]);
        let server = Server::start(&StartPlan { dir, log, remove, ..start_plan(&place, &spec) }).unwrap();
        std::fs::write(folder.join("up"), server.pid().to_string()).unwrap();
        wait_for::<()>("the kill", || None);
    }
    let mut coordinator = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "servers::a_coordinator_killed_by_force_leaves_nothing"])
        .env("PUBMARK_TEST_FOLDER", place.path(""))
        // Its own place, which it cannot remove, lies within this one.
        .env("TMPDIR", place.path(""))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the server", || place.path("up").exists().then_some(()));
    wait_for("server, daemon and what they run", || (working_in(&place).len() >= 3).then_some(()));
    let name = format!("pubmark-{}-0", coordinator.id());
    let groups: Vec<PathBuf> = hierarchies("self")
        .into_iter()
        .flat_map(|hierarchy| [hierarchy.own.join(&name), hierarchy.own.with_file_name(&name)])
        .filter(|group| group.exists())
        .collect();
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    wait_for("the server's end", || working_in(&place).is_empty().then_some(()));
    wait_for("the groups' end", || groups.iter().all(|group| !group.exists()).then_some(()));
    wait_for("the folder's end", || (!place.path("scratch").exists()).then_some(()));
}

pub fn stopped(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|text| text.contains("State:\tT"))
}

#[test]
fn a_keeper_says_how_the_server_ended_and_still_clears_up() {
    let place = Place::new();
    let mut keeper = Keeper::start(&place, shell("(setsid sleep 60 &); exit 7"), Vec::new(), 200);
    assert!(keeper.word()["pid"].is_i64());
    assert_eq!(keeper.word()["exited"], "exit status: 7");
    // During exec, a process shows no environment.
    wait_for("its daemon, which runs on", || (keeper.left().len() == 1).then_some(()));
    keeper.coordinator_dies();
}

#[test]
fn a_polite_server_has_its_time() {
    let place = Place::new();
    let line = format!(
        "trap 'echo bye >{}; exit 0' TERM; echo ready; while :; do sleep 0.01; done",
        place.path("last").display()
    );
    let mut keeper = Keeper::start(&place, shell(&line), Vec::new(), 30_000);
    wait_for("the trap", || log(&place).contains("ready").then_some(()));
    assert!(keeper.word()["pid"].is_i64());
    keeper.coordinator_dies();
    assert_eq!(std::fs::read_to_string(place.path("last")).unwrap(), "bye\n");
}

#[test]
fn processors_are_bound_and_open_files_are_raised() {
    let place = Place::new();
    let cpu = *machine::usable_cpus().last().unwrap();
    let line = "grep Cpus_allowed_list /proc/self/status; echo files $(ulimit -Sn) $(ulimit -Hn)";
    let mut keeper = Keeper::start(&place, shell(line), vec![cpu], 200);
    assert!(keeper.word()["pid"].is_i64());
    assert_eq!(keeper.word()["exited"], "exit status: 0");
    let text = log(&place);
    assert!(text.contains(&format!("Cpus_allowed_list:\t{cpu}\n")), "{text}");
    let files: Vec<&str> = text.lines().find_map(|line| line.strip_prefix("files ")).unwrap().split(' ').collect();
    assert_eq!(files[0], files[1]);
    keeper.coordinator_dies();
}

#[test]
fn a_killed_keeper_takes_its_server_along() {
    let place = Place::new();
    let spec = mosquitto();
    let mut server = Server::start(&start_plan(&place, &spec)).unwrap();
    let pid = server.pid();
    kill(parent(pid), Signal::SIGKILL).unwrap();
    wait_for("the server's end", || (!alive(pid)).then_some(()));
    let exit_reason = wait_for("the reason of its exit", || server.ended());
    assert!(exit_reason.starts_with("thing ended: its keeper was killed; the end of its log: "), "{exit_reason}");
    let end = server.stop();
    assert_eq!((end.exit_reason.as_ref(), end.own_failure.as_ref()), (Some(&exit_reason), Some(&exit_reason)));
    assert_nothing_left(&place);
}

#[test]
fn a_server_that_is_killed_has_ended_by_no_failure_of_pubmarks() {
    let place = Place::new();
    let spec = mosquitto();
    let mut server = Server::start(&start_plan(&place, &spec)).unwrap();
    kill(Pid::from_raw(server.pid()), Signal::SIGKILL).unwrap();
    let exit_reason = wait_for("the reason of its exit", || server.ended());
    assert!(exit_reason.starts_with("thing ended: signal: 9"), "{exit_reason}");
    assert_eq!(server.stop().own_failure, None);
    assert_nothing_left(&place);
}

/// The coordinator finds processes that outlive the keeper.
#[test]
fn a_killed_keepers_daemons_are_ended_by_the_coordinator() {
    let place = Place::new();
    let spec = ServerSpec { command: shell(STUBBORN), ready_log: "daemon".into(), ..ServerSpec::default() };
    let server = Server::start(&start_plan(&place, &spec)).unwrap();
    kill(parent(server.pid()), Signal::SIGKILL).unwrap();
    wait_for("the server's end", || (!alive(server.pid())).then_some(()));
    drop(server);
    assert_nothing_left(&place);
}

fn parent(pid: i32) -> Pid {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    Pid::from_raw(status.lines().find_map(|line| line.strip_prefix("PPid:\t")).unwrap().parse().unwrap())
}

#[test]
fn memory_is_limited_and_its_want_is_told() {
    let place = Place::new();
    let spec = ServerSpec {
        command: ["perl", "-e", "my @a; push @a, 'x' x 1048576 while @a < 400; print \"enough\\n\""]
            .map(str::to_owned)
            .to_vec(),
        ..ServerSpec::default()
    };
    let limits = Limits { memory_bytes: Some(64 << 20), cpus: None };
    let mut server = Server::start(&StartPlan { limits, ..start_plan(&place, &spec) }).unwrap();
    let applied = server.applied().clone();
    let exit_reason = wait_for("the hog's end", || server.ended());
    let end = server.stop();
    assert_eq!(end.exit_reason.as_ref(), Some(&exit_reason));
    if applied.memory_bytes.is_some() {
        assert_eq!(applied.memory_bytes, Some(64 << 20));
        assert!(exit_reason.contains("signal: 9 (SIGKILL), killed by the kernel for want of memory"), "{exit_reason}");
        assert!(end.oom_kills >= 1);
    } else {
        assert!(applied.note.is_some(), "{applied:?}");
        assert!(exit_reason.contains("exit status: 0; the end of its log: enough"), "{exit_reason}");
    }
    assert_nothing_left(&place);
}

#[test]
fn processors_are_limited_and_waiting_for_them_is_counted() {
    let place = Place::new();
    let spin = "while :; do :; done & while :; do :; done";
    let spec = ServerSpec { command: shell(spin), ..ServerSpec::default() };
    let limits = Limits { cpus: Some(0.5), memory_bytes: None };
    let server = Server::start(&StartPlan { limits, ..start_plan(&place, &spec) }).unwrap();
    let from = clock::now() + SECOND / 5;
    let sampler = server.sample(from, Some(from + SECOND));
    wait_for("the window's end", || (clock::now() > from + SECOND + SECOND / 20).then_some(()));
    let used = sampler.finish(None);
    let applied = server.applied().clone();
    let end = server.stop();
    if applied.cpus == Some(0.5) {
        assert!((0.05..0.75).contains(&used.usage.cpu_cores), "{used:?}");
        // On a machine that others use it may not reach its limit.
        let reached = used.throttled_s > 0.0;
        assert!(reached || used.usage.cpu_cores < 0.5, "{used:?} {end:?}");
        assert!(end.throttled_s >= used.throttled_s, "{used:?} {end:?}");
    } else {
        assert_eq!(applied.cpus, Some(1.0), "bound to one: {applied:?}");
        assert!((0.05..1.2).contains(&used.usage.cpu_cores) && applied.note.is_some(), "{used:?} {applied:?}");
    }
    assert!(used.processes.len() >= 2, "{used:?}");
    assert_nothing_left(&place);
}

#[test]
fn a_foreign_listener_is_recognised() {
    let place = Place::new();
    let foreign = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = foreign.local_addr().unwrap().port();
    let spec =
        ServerSpec { endpoint: "x://127.0.0.1:{port}".into(), command: shell("sleep 60"), ..ServerSpec::default() };
    let places = Places { ports: vec![(String::new(), port)], ..Places::default() };
    let error = refused(&place, &StartPlan { places, ..start_plan(&place, &spec) });
    let own = std::process::id() as i32;
    let expected = format!("port {port} is held by pid {own} ({}), not by thing", processes::name(own));
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn errors_hold_the_end_of_the_log() {
    let starting = |spec: &ServerSpec| {
        let place = Place::new();
        refused(&place, &start_plan(&place, spec))
    };
    let spec = ServerSpec { endpoint: "x://127.0.0.1:{port}".into(), ..ServerSpec::default() };
    let fails = ServerSpec { command: shell("echo because >&2; exit 3"), ..spec.clone() };
    assert_eq!(starting(&fails), "thing ended while starting: exit status: 3; the end of its log: because");
    let hasty = ServerSpec { start_timeout_ns: SECOND / 5, command: shell("sleep 60"), ..spec.clone() };
    let deaf = ServerSpec { prepare: vec![shell("echo hm")], ..hasty.clone() };
    let error = starting(&deaf);
    assert!(
        error.contains("did not listen on port ") && error.contains("within 0.2 s; the end of its log: hm"),
        "{error}"
    );
    let missing = ServerSpec { command: vec!["/nonexistent/server".into()], ..spec.clone() };
    let error = starting(&missing);
    assert!(error.contains("`/nonexistent/server` cannot be run: No such file"), "{error}");
    let dumb = ServerSpec { ready_log: "READY".into(), endpoint: "x".into(), ..hasty };
    assert_eq!(starting(&dumb), "thing did not say `READY` within 0.2 s; its log is empty");
    let unprepared = ServerSpec { prepare: vec![shell("echo no disk; exit 1")], ..deaf };
    let error = starting(&unprepared);
    assert!(
        error.contains("was not started") && error.contains("ended: exit status: 1; the end of its log: no disk"),
        "{error}"
    );
    assert!(starting(&ServerSpec { command: Vec::new(), ..spec }).contains("has no command"));
}

#[test]
fn preparations_come_first_and_a_log_may_say_when_it_is_up() {
    let place = Place::new();
    let spec = ServerSpec {
        prepare: vec![shell("echo one; cat x/y.conf"), shell("echo $WORD >made")],
        environment: vec![("WORD".into(), "in {dir}".into())],
        files: vec![("x/y.conf".into(), "cpus {cpus}\n".into())],
        command: shell("cat made; sleep 0.05; echo READY; sleep 60"),
        ready_log: "READY".into(),
        ..ServerSpec::default()
    };
    let places = Places { cpus: 2, ..Places::default() };
    let server = Server::start(&StartPlan { places, ..start_plan(&place, &spec) }).unwrap();
    let dir = place.path("scratch").join("server");
    assert_eq!(log(&place), format!("one\ncpus 2\nin {}\nREADY\n", dir.display()));
    assert!(server.started_s() > 0.0);
    drop(server);
    assert_nothing_left(&place);
}

#[test]
fn an_interrupt_ends_the_wait() {
    let place = Place::new();
    let now = AtomicBool::new(true);
    let spec =
        ServerSpec { endpoint: "x://127.0.0.1:{port}".into(), command: shell("sleep 60"), ..ServerSpec::default() };
    assert_eq!(refused(&place, &StartPlan { interrupt: &now, ..start_plan(&place, &spec) }), "interrupted");
}

/// Runs a test again in a process with another environment. Returns true in that one.
fn within(test: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var("PUBMARK_TEST_WITHIN").is_ok_and(|name| name == test) {
        return true;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("servers::{test}"), "--nocapture"])
        .env("PUBMARK_TEST_WITHIN", test)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

#[test]
fn without_a_docker_engine_the_error_says_so() {
    if within("without_a_docker_engine_the_error_says_so", &[("DOCKER_HOST", "unix:///nonexistent/docker.sock")]) {
        let place = Place::new();
        let container =
            ContainerSpec { image: "eclipse-mosquitto:2.0.18".into(), port: 1_883, ..ContainerSpec::default() };
        let spec = ServerSpec { container: Some(container), ..mosquitto() };
        let error = refused(&place, &StartPlan { deployment: "docker", ..start_plan(&place, &spec) });
        let known = ["no engine answers to `docker`: `docker run", "nothing here runs containers (`docker`)"];
        assert!(known.iter().any(|words| error.contains(words)), "{error}");
        let error = refused(&place, &StartPlan { deployment: "vm", ..start_plan(&place, &spec) });
        assert_eq!(error, "`vm` is not a way to start a server: write native or container");
    }
}

/// Replaces the Docker command line: `run` starts a broker on the port within, in the background.
const FAKE_DOCKER: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$*" >>"$here/asked"
case "$1 $3" in
  run*) mosquitto -p "$(cat "$here/within")" >"$here/log" 2>&1 & echo $! >"$here/pid" ;;
  inspect*Pid*) echo "$(cat "$here/pid") 500000000 67108864 sha256:ab" ;;
  image*) echo '["some/image@sha256:cd"]' ;;
  version*) echo 27.1 ;;
  inspect*) echo "137 true false" ;;
  logs*) exec tail -s 0.1 --pid="$(cat "$here/pid")" -n +1 -F "$here/log" ;;
  stop*) kill "$(cat "$here/pid")" ;;
esac
"#;

#[test]
fn a_container_is_run_met_and_removed() {
    let path = std::env::var("PATH").unwrap_or_default();
    let outer = Place::new();
    let bin = outer.path("bin");
    let search = format!("{}:{path}:/usr/sbin", bin.display());
    if std::env::var("PUBMARK_TEST_WITHIN").is_err() {
        use std::os::unix::fs::PermissionsExt;
        std::fs::create_dir(&bin).unwrap();
        std::fs::write(bin.join("docker"), FAKE_DOCKER).unwrap();
        std::fs::set_permissions(bin.join("docker"), PermissionsExt::from_mode(0o755)).unwrap();
    }
    if !within("a_container_is_run_met_and_removed", &[("PATH", &search), ("PUBMARK_TEST_BIN", bin.to_str().unwrap())])
    {
        return;
    }
    let bin = PathBuf::from(std::env::var("PUBMARK_TEST_BIN").unwrap());
    let place = Place::new();
    let within = ports::free(1).unwrap()[0];
    std::fs::write(bin.join("within"), within.to_string()).unwrap();
    let container = ContainerSpec {
        image: "some/image:1".into(),
        command: vec!["serve".into(), "{cpus}".into(), "{tls:tls|plain}".into(), "{tls_key}".into()],
        files: vec![("/etc/x.conf".into(), "port 1\n".into())],
        port: within,
        ..ContainerSpec::default()
    };
    let spec = ServerSpec { container: Some(container), command: Vec::new(), ..mosquitto() };
    let limits = Limits { cpus: Some(0.5), memory_bytes: Some(64 << 20) };
    let places = Places { cpus: 1, ..Places::default() };
    let certificates = Some(Certificates::make("").unwrap());
    let plan = StartPlan { deployment: "docker", limits, places, certificates, ..start_plan(&place, &spec) };
    let mut server = Server::start(&plan).unwrap();
    assert_eq!((server.applied().by.as_str(), server.applied().cpus), ("docker", Some(0.5)));
    assert!(server.applied().note.as_deref().unwrap().starts_with("the word of docker"));
    assert_eq!(processes::name(server.pid()), "mosquitto");
    let facts = server.container().unwrap();
    assert_eq!((facts.engine.as_str(), facts.image.as_str()), ("docker 27.1", "some/image:1"));
    assert_eq!((facts.image_id.as_str(), facts.digest.as_deref()), ("ab", Some("sha256:cd")));
    assert_eq!(server.ended(), None);
    kill(Pid::from_raw(server.pid()), Signal::SIGKILL).unwrap();
    let exit_reason = wait_for("the container's end", || server.ended());
    assert!(
        exit_reason.starts_with("thing ended: exit status: 137, killed by the kernel for want of memory"),
        "{exit_reason}"
    );
    assert_eq!(server.stop().oom_kills, 1);
    let asked = std::fs::read_to_string(bin.join("asked")).unwrap();
    let verbs: Vec<&str> = asked.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(verbs.first(), Some(&"ps"), "{asked}");
    assert_eq!(verbs[verbs.len() - 2..], ["stop", "rm"], "{asked}");
    let run = asked.lines().find(|line| line.starts_with("run ")).unwrap();
    assert!(
        run.contains(" --cpus 0.5 --memory 67108864 ")
            && run.contains("/scratch/server/tls/server.key:/pubmark/tls/server.key:ro "),
        "{run}"
    );
    assert!(run.ends_with(" some/image:1 serve 1 tls /pubmark/tls/server.key"), "{run}");
    assert!(run.contains("/mounts/0:/etc/x.conf:ro "), "{run}");
    assert_nothing_left(&place);
}

/// A JVM that catches its own OutOfMemoryError goes on, but does not answer everything.
#[test]
fn a_server_that_says_that_it_has_no_memory_left_is_heard_though_it_lives_on() {
    let place = Place::new();
    let says =
        "echo 'Exception in thread \"worker\" java.lang.OutOfMemoryError: Java heap space'; echo READY; sleep 600";
    let spec = ServerSpec {
        command: shell(says),
        endpoint: "x".into(),
        ready_log: "READY".into(),
        out_of_memory_log: "java.lang.OutOfMemoryError".into(),
        ..ServerSpec::default()
    };
    let mut server = Server::start(&start_plan(&place, &spec)).unwrap();
    assert_eq!(server.ended(), None);
    let line = "Exception in thread \"worker\" java.lang.OutOfMemoryError: Java heap space";
    assert_eq!(server.stop().out_of_memory.as_deref(), Some(line));
    let spec = ServerSpec { out_of_memory_log: String::new(), ..spec };
    assert_eq!(Server::start(&start_plan(&place, &spec)).unwrap().stop().out_of_memory, None);
}
