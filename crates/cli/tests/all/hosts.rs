//! A run over three hosts, which are network namespaces of this machine: the
//! server on one, publishers on the second, subscribers on the third. Nothing
//! is found by 127.0.0.1, by a process of this machine's or by a path of it.

use crate::left_out::leave_out;
use crate::support::{Place, children, stderr, wait_for};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// Three namespaces on a bridge of a fourth. They end when this is dropped.
struct Network {
    /// Of this process alone: tests run side by side.
    name: String,
    subnet: u8,
}

fn ip(arguments: &[&str]) -> bool {
    let output = Command::new("ip").args(arguments).stderr(Stdio::null()).stdout(Stdio::null()).status();
    output.is_ok_and(|status| status.success())
}

impl Network {
    /// None where this machine does not let one be made.
    fn new(letter: char) -> Option<Network> {
        let id = std::process::id();
        let network = Network { name: format!("pm{letter}{id}"), subnet: (id % 200) as u8 + 20 };
        let bridge = network.namespace("hub");
        let mut made = ip(&["netns", "add", &bridge])
            && ip(&["-n", &bridge, "link", "add", "hub", "type", "bridge"])
            && ip(&["-n", &bridge, "link", "set", "hub", "up"]);
        for (index, host) in ["server", "publishers", "subscribers"].into_iter().enumerate() {
            let (space, end) = (network.namespace(host), format!("e{index}"));
            let address = format!("{}/24", network.address(host));
            made = made
                && ip(&["netns", "add", &space])
                && ip(&["-n", &bridge, "link", "add", &end, "type", "veth", "peer", "name", "e", "netns", &space])
                && ip(&["-n", &bridge, "link", "set", &end, "master", "hub", "up"])
                && ip(&["-n", &space, "address", "add", &address, "dev", "e"])
                && ip(&["-n", &space, "link", "set", "e", "up"])
                && ip(&["-n", &space, "link", "set", "lo", "up"]);
        }
        made.then_some(network)
    }

    fn namespace(&self, host: &str) -> String {
        format!("{}-{host}", self.name)
    }

    fn address(&self, host: &str) -> String {
        let last = ["server", "publishers", "subscribers"].iter().position(|known| *known == host).unwrap() + 1;
        format!("10.{}.77.{last}", self.subnet)
    }

    /// The file that says which host plays which part.
    fn placement(&self, place: &Place) -> String {
        let host = |name: &str| {
            let prefix = ["ip", "netns", "exec", &self.namespace(name)].map(str::to_owned);
            json!({ "name": name, "prefix": prefix, "address": self.address(name) })
        };
        let text = json!({
            "server": host("server"), "publishers": host("publishers"), "subscribers": host("subscribers")
        });
        let path = place.path("hosts.json");
        std::fs::write(&path, text.to_string()).unwrap();
        path.display().to_string()
    }

    /// The processes that are in it.
    fn processes(&self) -> Vec<String> {
        let inside = |host: &str| {
            let output = Command::new("ip").args(["netns", "pids", &self.namespace(host)]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        ["server", "publishers", "subscribers"].into_iter().flat_map(inside).collect()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in ["server", "publishers", "subscribers", "hub"] {
            ip(&["netns", "del", &self.namespace(host)]);
        }
    }
}

const WHY: &str = "network namespaces cannot be made here";

#[test]
fn a_run_over_three_hosts_counts_exactly_and_leaves_nothing() {
    let Some(network) = Network::new('a') else { return leave_out("a_run_over_three_hosts", WHY) };
    let place = Place::new();
    let hosts = network.placement(&place);
    let mut command = place.command(&["bench", "mosquitto", "--qos", "1", "--pairs", "3"]);
    command.args(["--rate", "100", "--warmup", "300ms", "--duration", "2s", "--repeats", "1", "--json"]);
    let output = command.args(["--hosts", &hosts, "--out", "r"]).output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let run = &told["runs"][0];
    assert_eq!(run["error"], Value::Null);
    let count = |name: &str| run["counts"][name].as_u64().unwrap_or_else(|| panic!("{name}: {}", run["counts"]));
    assert_eq!(["sent", "acked", "delivered", "lost", "acked_lost"].map(count), [600, 600, 600, 0, 0]);
    assert_eq!(
        run["deployment"]["endpoint"].as_str().unwrap().split(':').nth(1).unwrap(),
        format!("//{}", network.address("server"))
    );
    let host_of = |role: &str| {
        let agents = run["agents"].as_array().unwrap();
        let agent = agents.iter().find(|agent| agent["roles"] == json!([role])).unwrap();
        agent["host"].as_str().unwrap().to_owned()
    };
    assert_eq!((host_of("publisher").as_str(), host_of("subscriber").as_str()), ("publishers", "subscribers"));
    let hosts = run["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 3);
    for host in hosts {
        // The namespaces share a clock: what is found lies within its own bound.
        let (offset, bound) =
            (host["clock"]["offset_ns"].as_i64().unwrap(), host["clock"]["bound_ns"].as_u64().unwrap());
        assert!(offset.unsigned_abs() <= bound, "{host}");
        assert!(host["machine"]["cores"].as_u64().unwrap() > 0, "{host}");
    }
    assert!(run["server"]["cpu_s"].as_f64().unwrap() > 0.0, "{}", run["server"]);
    assert!(!run["usage_series"]["generator"].is_null() && !run["usage_series"]["server"].is_null());
    assert_eq!(network.processes(), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(place.tmp()).unwrap().count(), 0, "a folder is left behind");
}

#[test]
fn a_server_elsewhere_is_killed_and_comes_back_by_the_script() {
    let Some(network) = Network::new('b') else { return leave_out("a_server_elsewhere_is_killed", WHY) };
    let place = Place::new();
    let hosts = network.placement(&place);
    let mut command = place.command(&["bench", "mosquitto", "--pairs", "2", "--rate", "100"]);
    command.args(["--warmup", "300ms", "--duration", "4s", "--repeats", "1", "--json"]);
    command.args(["--fault", "kill server at 1s for 500ms, stop publishers at 3s for 300ms"]);
    let output = command.args(["--hosts", &hosts, "--out", "r"]).output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let run = &told["runs"][0];
    assert_eq!(run["error"], Value::Null);
    let [kill, stop] = run["fault_log"].as_array().unwrap().as_slice() else { panic!("{}", run["fault_log"]) };
    for (event, asked_ms) in [(kill, 1_000), (stop, 3_000)] {
        assert!(event["at_ns"].as_u64().unwrap() >= asked_ms * 1_000_000, "{event}");
        assert!(event["until_ns"].as_u64() > event["at_ns"].as_u64(), "{event}");
    }
    assert!(kill["note"].as_str().unwrap().contains("listened again"), "{kill}");
    assert_eq!(run["connections"]["reconnected"], 4);
    assert!(run["counts"]["lost"].as_u64().unwrap() > 0, "{}", run["counts"]);
    assert_eq!(network.processes(), Vec::<String>::new());
}

#[test]
fn a_coordinator_that_is_killed_leaves_nothing_on_any_host() {
    let Some(network) = Network::new('c') else { return leave_out("a_coordinator_that_is_killed", WHY) };
    let place = Place::new();
    let hosts = network.placement(&place);
    let mut command = place.command(&["bench", "mosquitto", "--pairs", "2", "--rate", "100"]);
    command.args(["--warmup", "300ms", "--duration", "600s", "--repeats", "1", "--hosts", &hosts, "--out", "r"]);
    let mut coordinator = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // A host, an agent on two of them; a keeper and the server on the third.
    wait_for("all to run", || (network.processes().len() >= 7).then_some(()));
    assert_eq!(children(coordinator.id()).len(), 3, "a prefix command each");
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    wait_for("all to end", || network.processes().is_empty().then_some(()));
    assert_eq!(std::fs::read_dir(place.tmp()).unwrap().count(), 0, "a folder is left behind");
}
