//! A server that pubmark did not start is watched as its own are, and parts are bound to the processors that they are
//! given.

use crate::hosts::{Network, WHY, only_run};
use crate::left_out::leave_out;
use crate::support::{ENDLESS, Place, children, free_port, interrupt, stderr, wait_for};
use serde_json::Value;
use std::process::{Child, Command, Stdio};

/// A Mosquitto of the test, under a name that no other process has. It ends when this is dropped.
struct Broker {
    process: Child,
    name: String,
    url: String,
}

impl Broker {
    fn new(place: &Place, address: &str, within: &[&str]) -> Broker {
        let (port, name) = (free_port(), format!("pmw{}{}", std::process::id(), within.len()));
        let (program, config) = (place.path(&name), place.path("m.conf"));
        std::os::unix::fs::symlink("/usr/sbin/mosquitto", &program).unwrap();
        std::fs::write(&config, format!("listener {port} {address}\nallow_anonymous true\nuser root\n")).unwrap();
        let mut words = within.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        words.extend([program, "-c".into(), config].map(|path| path.display().to_string()));
        let mut command = Command::new(&words[0]);
        let process = command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Broker { process, name, url: format!("mqtt://{address}:{port}") }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn assert_seen(run: &Value, broker: &Broker) {
    let deployment = &run["deployment"];
    assert_eq!((&deployment["attached"], &deployment["pid"]), (&"seen".into(), &broker.process.id().into()));
    assert!(run["server"]["cpu_s"].as_f64().unwrap() > 0.0, "{}", run["server"]);
    assert!(run["server"]["rss_bytes_median"].as_u64().unwrap() > 1 << 20, "{}", run["server"]);
    let over_time = &run["usage_series"]["server"];
    for figure in ["cpu_cores", "rss_bytes", "threads"] {
        let slices = over_time[figure].as_array().unwrap_or_else(|| panic!("{figure}: {over_time}"));
        assert!(slices.len() > 1, "{figure}: {over_time}");
    }
    assert!(over_time["threads"].as_array().unwrap().iter().all(|threads| threads.as_u64() >= Some(1)), "{over_time}");
}

#[test]
fn a_server_that_is_named_is_watched_here_and_on_its_host() {
    let place = Place::new();
    let broker = Broker::new(&place, "127.0.0.1", &[]);
    let bench = |url: &str, more: &[&str]| {
        let mut command = place.command(&["bench", url, "--pairs", "2", "--rate", "200", "--warmup", "300ms"]);
        command.args(["--duration", "2s", "--repeats", "1", "--json"]).args(more);
        command
    };
    for (out, watch) in [("a", format!("process {}", broker.name)), ("b", format!("pid {}", broker.process.id()))] {
        assert_seen(&only_run(&mut bench(&broker.url, &["--server", &watch, "--out", out])), &broker);
    }
    let missing = bench(&broker.url, &["--server", "process pmw-nobody", "--out", "c"]).output().unwrap();
    let told: Value = serde_json::from_slice(&missing.stdout).unwrap_or_else(|_| panic!("{}", stderr(&missing)));
    let error = told["runs"][0]["error"].as_str().unwrap();
    assert!(error.contains("there is no process called `pmw-nobody` to watch"), "{error}");
    let own = bench("mosquitto", &["--server", "pid 2"]).output().unwrap();
    assert_eq!(own.status.code(), Some(2));
    assert!(stderr(&own).contains("mosquitto is started for the run, and watched anyway"), "{}", stderr(&own));

    let Some(network) = Network::new('v') else { return leave_out("a_server_that_is_named_on_its_host", WHY) };
    let space = network.namespace("server");
    let broker = Broker::new(&place, &network.address("server"), &["ip", "netns", "exec", &space]);
    let hosts = network.hosts(&place);
    let watch = format!("process {} on server", broker.name);
    assert_seen(&only_run(&mut bench(&broker.url, &["--server", &watch, "--hosts", &hosts, "--out", "d"])), &broker);
    let unknown = bench(&broker.url, &["--server", "pid 2 on nowhere", "--hosts", &hosts]).output().unwrap();
    assert!(stderr(&unknown).contains("there is no host `nowhere`"), "{}", stderr(&unknown));
}

/// Returns the processors that each thread of a process may use, as the kernel writes them.
fn allowed(pid: i32) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let list = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("status")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(|list| list.trim().to_owned())
    };
    threads.filter_map(list).collect()
}

#[test]
fn publishers_subscribers_and_server_are_bound_to_the_processors_that_they_are_given() {
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 2) {
        return leave_out("publishers_subscribers_and_server_are_bound", "there is one processor");
    }
    let place = Place::new();
    let bench = |pin: &str, duration: &str, out: &str| {
        let mut command = place.command(&["bench", "mosquitto", "--rate", "100", "--warmup", "300ms", "--json"]);
        command.args(["--duration", duration, "--repeats", "1", "--set", &format!("pin={pin}"), "--out", out]);
        command
    };
    let pin = "publishers 1, subscribers 0, server 1";
    let mut watched = bench(pin, ENDLESS, "watched");
    let mut coordinator = watched.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let below = || {
        let first = children(coordinator.id());
        let second = first.iter().flat_map(|(pid, _)| children(*pid as u32)).collect::<Vec<_>>();
        first.into_iter().chain(second).collect::<Vec<_>>()
    };
    let bound = |is: &dyn Fn(&str) -> bool, cpu: &str| {
        below().iter().any(|(pid, line)| is(line) && allowed(*pid).iter().any(|list| list == cpu))
    };
    let server = |line: &str| line.contains("mosquitto") && line.contains("-c");
    let agent = |line: &str| line.contains(" agent");
    wait_for("all to be bound", || (bound(&server, "1") && bound(&agent, "0") && bound(&agent, "1")).then_some(()));
    interrupt(&coordinator);
    coordinator.wait().unwrap();

    let run = only_run(&mut bench(pin, "1s", "r"));
    let by = run["deployment"]["applied"]["by"].as_str().unwrap();
    assert!(by.ends_with("affinity"), "{by}");
    assert_eq!(run["deployment"]["applied"]["cpus"], 1.0);
    assert_eq!(run["workload"]["pin"], "publishers 1, subscribers 0, server 1");
    for (pin, said) in [("server 1000", "has no processor 1000 for server"), ("server x", "is not a pinning")] {
        let refused = bench(pin, "1s", said).output().unwrap();
        let all = format!("{}{}", stderr(&refused), String::from_utf8_lossy(&refused.stdout));
        assert!(all.contains(said), "{pin}: {all}");
    }
}
