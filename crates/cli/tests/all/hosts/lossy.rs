//! A host whose network loses packets.

use super::{Network, WHY, only_run};
use crate::left_out::leave_out;
use crate::support::{Place, stderr};
use serde_json::Value;
use std::process::Command;

/// Returns the rules by which a host's packets are dropped.
fn rules(network: &Network, host: &str) -> Vec<String> {
    let space = network.namespace(host);
    let output = Command::new("ip").args(["netns", "exec", &space, "iptables", "-S", "INPUT"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().filter(|line| line.starts_with("-A")).map(str::to_owned).collect()
}

/// Datagrams are lost and counted; a connection sends them again, and loses nothing.
#[test]
fn a_host_loses_what_it_is_said_to_and_nothing_when_a_run_is_over() {
    const LOST: f64 = 0.1;
    const MESSAGES: u64 = 4_000;
    let Some(network) = Network::new('o') else { return leave_out("hosts::lossy::a_host_loses", WHY) };
    let (place, space) = (Place::new(), network.namespace("subscribers"));
    let theirs = ["-I", "INPUT", "-p", "icmp", "-j", "ACCEPT"];
    if !Command::new("ip").args(["netns", "exec", &space, "iptables"]).args(theirs).status().is_ok_and(|s| s.success())
    {
        return leave_out("hosts::lossy::a_host_loses", "there is no iptables here");
    }
    let before = rules(&network, "subscribers");
    let hosts = network.hosts_with(&place, "subscribers", &format!("loss = \"{}%\"", LOST * 100.0));
    // So slowly that its buffer holds all messages while a busy machine delays the subscriber.
    let counts = |transport: &str| {
        let mut command = place.command(&["bench", "kernel", "--transport", transport, "--rate", "500", "--json"]);
        command.args(["--payload", "64B", "--warmup", "200ms", "--duration", "8s", "--repeats", "1"]);
        let run = only_run(command.args(["--hosts", &hosts, "--out", transport]));
        let held: Vec<&Value> = run["hosts"].as_array().unwrap().iter().collect();
        let of = |name: &str| held.iter().find(|host| host["name"] == name).unwrap()["loss_per_million"].as_u64();
        assert_eq!((of("subscribers"), of("publishers")), (Some(100_000), None), "{held:?}");
        ["sent", "delivered", "lost"].map(|name| run["counts"][name].as_u64().unwrap())
    };
    let [sent, delivered, lost] = counts("udp");
    assert_eq!((sent, delivered + lost), (MESSAGES, MESSAGES));
    // Five standard deviations of a binomial: one run in two million is further off.
    let (expected, deviation) = (MESSAGES as f64 * LOST, (MESSAGES as f64 * LOST * (1.0 - LOST)).sqrt());
    assert!((lost as f64 - expected).abs() < 5.0 * deviation, "{lost} of {sent}");
    assert_eq!(counts("tcp"), [MESSAGES, MESSAGES, 0]);
    assert_eq!(rules(&network, "subscribers"), before, "somebody else's are left alone, and its own is gone");
    assert_eq!(network.processes(), Vec::<String>::new());
}

#[test]
fn the_loopback_loses_nothing_and_says_so() {
    let place = Place::new();
    std::fs::write(place.path("hosts.toml"), "[hosts.local]\nloss = \"1%\"\n").unwrap();
    let output = place.command(&["bench", "kernel", "--hosts", "hosts.toml", "--duration", "1s"]).output().unwrap();
    let said = stderr(&output);
    assert!(!output.status.success() && said.contains("host local: 127.0.0.1 is on the loopback"), "{said}");
}
