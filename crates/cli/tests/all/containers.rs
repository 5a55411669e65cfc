//! Servers in containers of a real engine: measured, limited, killed, restarted, and removed whatever happens. They are
//! played if PUBMARK_TEST_CONTAINERS is 1, as `make test-containers` sets it.

use crate::engines::{WITHIN_LIMITS, containers_wanted, image, podman};
use crate::servers::start_plan;
use crate::support::{Place, alive, free_port, stderr, wait_for};
use pubmark_host::server::{Server, StartPlan, ports, processes};
use pubmark_model::cell::Limits;
use pubmark_model::server::{ContainerSpec, ServerSpec};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Writes the file of the system that comes with pubmark, with another image: one with the Mosquitto of this machine,
/// since images cannot be pulled everywhere.
fn mosquitto(place: &Place) -> String {
    let image = image("mosquitto", &["sh", "mosquitto"]);
    let text = include_str!("../../../../systems/mosquitto.toml");
    let pinned = text.lines().find(|line| line.starts_with("image = ")).unwrap();
    let path = place.path("contained.toml");
    std::fs::write(&path, text.replace(pinned, &format!("image = \"{image}\""))).unwrap();
    path.display().to_string()
}

/// Returns the record of its only run, which must have no error.
fn only_run(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!(told["runs"][0]["error"], Value::Null);
    told["runs"][0].clone()
}

fn bench(place: &Place, system: &str, duration: &str) -> Command {
    let mut command = place.command(&["bench", system, "--set", "options.deployment=container", "--qos", "1"]);
    command.args(["--pairs", "2", "--rate", "100", "--warmup", "300ms", "--duration", duration, "--repeats", "1"]);
    command.arg("--json");
    command
}

/// Returns the containers of a coordinator.
fn of_coordinator(pid: u32) -> Vec<String> {
    let filter = format!("name=^pubmark-{pid}-");
    podman(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]).lines().map(str::to_owned).collect()
}

#[test]
fn a_broker_in_a_container_is_measured_under_limits_that_are_read_back() {
    if !containers_wanted("containers::a_broker_in_a_container_is_measured_under_limits") {
        return;
    }
    let place = Place::new();
    let system = mosquitto(&place);
    let mut command = bench(&place, &system, "2s");
    let child = command.args(["--cpus", "0.5", "--memory", "128MiB"]).stdout(Stdio::piped()).spawn().unwrap();
    let coordinator = child.id();
    let output = child.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &told["runs"][0];
    assert_eq!(run["error"], Value::Null);
    let count = |name: &str| run["counts"][name].as_u64().unwrap();
    assert_eq!(["sent", "acked", "delivered", "lost"].map(count), [400, 400, 400, 0]);
    let deployment = &run["deployment"];
    assert_eq!(deployment["kind"], "container");
    let container = &deployment["container"];
    assert!(container["engine"].as_str().unwrap().starts_with("podman "), "{container}");
    assert_eq!(container["image"], "localhost/pubmark-test-mosquitto:1");
    assert_eq!(container["image_id"].as_str().unwrap().len(), 64, "{container}");
    assert!(container["digest"].as_str().unwrap().starts_with("sha256:"), "{container}");
    let applied = &deployment["applied"];
    assert!(applied["by"].as_str().unwrap().starts_with("cgroup v"), "{applied}");
    assert_eq!((applied["cpus"].as_f64(), applied["memory_bytes"].as_u64()), (Some(0.5), Some(128 << 20)));
    assert!(run["server"]["cpu_s"].as_f64().unwrap() > 0.0, "{}", run["server"]);
    assert!(!run["usage_series"]["server"].is_null(), "what it used over time");
    assert_eq!(deployment["processes"][0]["name"], "mosquitto", "{deployment}");
    assert_eq!(of_coordinator(coordinator), Vec::<String>::new());
    place.assert_swept();
}

#[test]
fn a_contained_broker_is_killed_stopped_and_back_by_the_script() {
    if !containers_wanted("containers::a_contained_broker_is_killed_stopped_and_back") {
        return;
    }
    let place = Place::new();
    let system = mosquitto(&place);
    let mut command = bench(&place, &system, "6s");
    command.args(["--out", "r"]);
    let run = only_run(command.args(["--fault", "kill server at 1s for 500ms, stop server at 4s for 500ms"]));
    let [kill, stop] = run["fault_log"].as_array().unwrap().as_slice() else { panic!("{}", run["fault_log"]) };
    for (event, asked_ms) in [(kill, 1_000), (stop, 4_000)] {
        assert!(event["at_ns"].as_u64().unwrap() >= asked_ms * 1_000_000, "{event}");
        assert!(event["until_ns"].as_u64() > event["at_ns"].as_u64(), "{event}");
    }
    assert!(kill["note"].as_str().unwrap().contains("listened again"), "{kill}");
    assert_eq!(run["connections"]["reconnected"], 4);
    assert_eq!((&run["deployment"]["oom_kills"], &run["counts"]["corrupted"]), (&0.into(), &0.into()));
    let cpu_s = run["server"]["cpu_s"].as_f64().unwrap();
    let cores = run["usage_series"]["server"]["cpu_cores"].as_array().unwrap().iter().filter_map(Value::as_f64);
    assert!(cpu_s > 0.0 && cores.into_iter().all(|cores| (0.0..64.0).contains(&cores)), "{}", run["usage_series"]);
    let log = std::fs::read_dir(place.path("r/logs")).unwrap().map(|entry| entry.unwrap().path());
    let log = log.into_iter().find(|path| path.to_string_lossy().ends_with("server.log")).unwrap();
    let log = std::fs::read_to_string(log).unwrap();
    let starts = log.lines().filter(|line| line.contains("should not be run as root")).count();
    assert_eq!(starts, 2, "each start is in its log once: {log}");
    place.assert_swept();
}

#[test]
fn nothing_is_left_of_a_container_whose_coordinator_is_killed() {
    if !containers_wanted("containers::nothing_is_left_of_a_container_whose_coordinator_is_killed") {
        return;
    }
    let place = Place::new();
    let system = mosquitto(&place);
    // The second is killed while its server stands still.
    for fault in ["none", "stop server at 0s for 500s"] {
        let mut command = bench(&place, &system, "600s");
        command.args(["--fault", fault]);
        let mut coordinator = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let name = wait_for("the container", || of_coordinator(coordinator.id()).pop());
        let state = || podman(&["inspect", "--format", "{{.State.Status}} {{.State.Pid}}", &name]);
        let wanted = if fault == "none" { "running" } else { "paused" };
        let state = wait_for("its state", || Some(state()).filter(|state| state.starts_with(wanted)));
        let pid: i32 = state.split(' ').nth(1).unwrap().parse().unwrap();
        coordinator.kill().unwrap();
        coordinator.wait().unwrap();
        wait_for("the container's end", || of_coordinator(coordinator.id()).is_empty().then_some(()));
        wait_for("its process's end", || (!alive(pid)).then_some(()));
        wait_for("the folder's end", || (std::fs::read_dir(place.tmp()).unwrap().count() == 0).then_some(()));
    }
}

/// A server in a container that pubmark did not start, given by the container's name.
#[test]
fn a_container_that_is_named_is_watched_by_its_control_group() {
    if !containers_wanted("containers::a_container_that_is_named_is_watched") {
        return;
    }
    let place = Place::new();
    let (image, port) = (image("mosquitto", &["sh", "mosquitto"]), free_port());
    let name = format!("pubmark-watched-{}", std::process::id());
    let line = "printf 'user root\nlistener 1883\nallow_anonymous true\n' >/tmp/c; exec mosquitto -c /tmp/c";
    let published = format!("127.0.0.1:{port}:1883");
    let mut started = vec!["run", "--rm", "--detach", "--name", &name, "--publish", &published];
    started.extend(WITHIN_LIMITS);
    started.extend([image.as_str(), "sh", "-c", line]);
    podman(&started);
    wait_for("the broker", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    let (url, watch) = (format!("mqtt://127.0.0.1:{port}"), format!("container {name}"));
    let mut command = place.command(&["bench", &url, "--server", &watch, "--pairs", "2", "--rate", "200", "--json"]);
    command.args(["--warmup", "300ms", "--duration", "2s", "--repeats", "1", "--out", "r"]);
    let output = command.output().unwrap();
    podman(&["rm", "--force", "--time", "0", &name]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let run = &told["runs"][0];
    assert_eq!((&run["error"], &run["deployment"]["attached"]), (&Value::Null, &"seen".into()));
    assert!(run["server"]["cpu_s"].as_f64().unwrap() > 0.0, "{}", run["server"]);
    assert!(run["server"]["rss_bytes_median"].as_u64().unwrap() > 100_000, "{}", run["server"]);
    assert!(run["usage_series"]["server"]["cpu_cores"].as_array().unwrap().len() > 1, "{}", run["usage_series"]);
    place.assert_swept();
}

fn in_shell(line: &str) -> ServerSpec {
    let container = ContainerSpec {
        image: image("mosquitto", &["sh", "mosquitto"]),
        command: ["sh", "-c", line].map(str::to_owned).to_vec(),
        port: 1_883,
        ..ContainerSpec::default()
    };
    ServerSpec { endpoint: "x".into(), ready_log: "READY".into(), container: Some(container), ..ServerSpec::default() }
}

#[test]
fn a_container_that_runs_out_of_memory_says_so() {
    if !containers_wanted("containers::a_container_that_runs_out_of_memory_says_so") {
        return;
    }
    let place = Place::new();
    let spec = in_shell("echo READY; x=aaaaaaaa; while :; do x=$x$x; done");
    let limits = Limits { memory_bytes: Some(32 << 20), cpus: None };
    let plan = StartPlan { deployment: "podman", limits, ..start_plan(&place, &spec) };
    let why = match Server::start(&plan) {
        // It may be gone before it was found.
        Err(error) => error.to_string(),
        Ok(mut server) => {
            assert_eq!(server.applied().memory_bytes, Some(32 << 20));
            let why = wait_for("its end", || server.ended());
            assert_eq!(server.stop().oom_kills, 1);
            why
        }
    };
    assert!(why.contains("137, killed by the kernel for want of memory"), "{why}");
}

#[test]
fn a_published_port_is_at_the_address_that_is_measured_and_what_is_written_is_below_the_run() {
    if !containers_wanted("containers::a_published_port_is_at_the_address") {
        return;
    }
    let place = Place::new();
    let spec = in_shell(
        "echo made >/data/made; echo \"user root\nlistener 1883\nallow_anonymous true\" >/tmp/c; exec mosquitto -c /tmp/c",
    );
    let container = ContainerSpec { volumes: vec!["/data".into()], ..spec.container.clone().unwrap() };
    let spec = ServerSpec {
        endpoint: "mqtt://{address}:{port}".into(),
        ready_log: String::new(),
        container: Some(container),
        ..spec
    };
    let mut plan = StartPlan { deployment: "podman", ..start_plan(&place, &spec) };
    plan.places.address = "127.0.0.5".into();
    let server = Server::start(&plan).unwrap();
    let port: u16 = server.endpoint().strip_prefix("mqtt://127.0.0.5:").unwrap().parse().unwrap();
    assert_eq!(processes::name(server.pid()), "mosquitto");
    assert_eq!(ports::listens_within(server.pid(), 1_883), Some(true));
    // Other tests of this process have containers too.
    let told: Vec<String> = of_coordinator(std::process::id()).iter().map(|name| podman(&["port", name])).collect();
    assert!(told.contains(&format!("1883/tcp -> 127.0.0.5:{port}")), "{told:?}");
    assert!(std::net::TcpStream::connect(("127.0.0.5", port)).is_ok());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "nobody else's address");
    let made = place.path("scratch/server/volumes/0/made");
    assert_eq!(std::fs::read_to_string(made).unwrap(), "made\n");
    drop(server);
    assert!(!place.path("scratch").exists());
}
