//! A link before a server on another host: its proxy runs beside the server.

use super::{Network, WHY, only_run};
use crate::left_out::leave_out;
use crate::support::{Place, stderr};
use pubmark_model::units::{MILLISECOND, SECOND};
use std::process::{Command, Stdio};

#[test]
fn a_link_before_a_server_elsewhere_delays_and_is_cut_by_the_script() {
    let own = Command::new("unshare").args(["--time", "--monotonic", "1", "true"]).stderr(Stdio::null()).status();
    let Some(network) = Network::new('k').filter(|_| own.is_ok_and(|status| status.success())) else {
        return leave_out("hosts::linked::a_link_before_a_server_elsewhere", WHY);
    };
    let place = Place::linked();
    let hosts = network.hosts(&place);
    // Events there are given on the coordinator's clock.
    let space = network.namespace("server");
    let ahead = format!("{space}\", \"unshare\", \"--time\", \"--monotonic\", \"3600\"]");
    let text = std::fs::read_to_string(&hosts).unwrap().replace(&format!("{space}\"]"), &ahead);
    std::fs::write(&hosts, text).unwrap();
    let mut command = place.command(&["bench", "mosquitto", "--pairs", "2", "--qos", "1", "--durable", "--json"]);
    command.args(["--rate", "100", "--warmup", "300ms", "--duration", "3s", "--repeats", "1"]);
    command.args([
        "--set",
        "link_delay=40ms",
        "--set",
        "drain=20s",
        "--fault",
        "cut link at 1s for 1s",
        "--hosts",
        &hosts,
        "--out",
        "r",
    ]);
    let run = only_run(&mut command);
    let [cut] = run["fault_log"].as_array().unwrap().as_slice() else { panic!("{}", run["fault_log"]) };
    let (at, until) = (cut["at_ns"].as_u64().unwrap(), cut["until_ns"].as_u64().unwrap());
    assert!(cut["who"] == "link" && at >= SECOND && until >= 2 * SECOND && until > at, "{cut}");
    assert!(until < 3_600 * SECOND, "by the clock of its host: {cut}");
    let count = |name: &str| run["counts"][name].as_u64().unwrap();
    assert_eq!(["sent", "acked", "delivered", "lost"].map(count), [600, 600, 600, 0], "{}", run["counts"]);
    // Only the subscribers' connections go over it.
    assert_eq!((&run["connections"]["lost"], &run["connections"]["reconnected"]), (&2.into(), &2.into()));
    let bound = run["clocks"][0]["bound_ns"].as_u64().unwrap();
    let latency = |name: &str| run["latency_ns"][name].as_u64().unwrap() + bound;
    assert!(latency("min") >= 40 * MILLISECOND, "{}", run["latency_ns"]);
    assert!(latency("max") >= 500 * MILLISECOND, "what was due while it was cut came late: {}", run["latency_ns"]);
    assert!(run["link"]["usage"]["cpu_s"].as_f64().unwrap() > 0.0, "{}", run["link"]);
    assert!(run["versions"]["toxiproxy"].is_string(), "{}", run["versions"]);
    assert_eq!(network.processes(), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(place.tmp()).unwrap().count(), 0, "a folder is left behind");
}

#[test]
fn a_host_without_a_proxy_is_named_before_anything_is_started() {
    let Some(network) = Network::new('q') else { return leave_out("hosts::linked::a_host_without_a_proxy", WHY) };
    // This machine has a proxy.
    let place = Place::linked();
    let hosts = network.hosts(&place);
    let space = network.namespace("server");
    let elsewhere = place.path("nothing").display().to_string();
    let without = format!("{space}\", \"env\", \"XDG_CACHE_HOME={elsewhere}\"]");
    let text = std::fs::read_to_string(&hosts).unwrap().replace(&format!("{space}\"]"), &without);
    std::fs::write(&hosts, text).unwrap();
    let arguments = ["bench", "mosquitto", "--set", "link_delay=1ms", "--hosts", &hosts];
    let output = place.command(&arguments).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("its link needs a proxy: host server: toxiproxy"), "{said}");
}
