//! Last wills over hosts whose clocks are apart, with several agents of each side.

use super::{Network, WHY, only_run};
use crate::known_answers::Peer;
use crate::left_out::leave_out;
use crate::support::{Place, count};
use crate::wills::{time, wills};
use pubmark_model::units::{MILLISECOND, SECOND};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Hosts of two sides, and the leads of their clocks, s.
const CLIENTS: [(&str, &str, u64); 4] =
    [("p1", "publishers", 3_600), ("p2", "publishers", 5), ("s1", "subscribers", 0), ("s2", "subscribers", 61)];

/// Makes these hosts and one for a server. Returns `None` if this machine does not allow it.
fn hosts(place: &Place, letter: char) -> Option<(Network, String)> {
    let own = Command::new("unshare").args(["--time", "--monotonic", "1", "true"]).stderr(Stdio::null()).status();
    let parts = CLIENTS.map(|(name, part, _)| (name.to_owned(), part));
    let all = [("server".to_owned(), "server")].into_iter().chain(parts).collect();
    let network = Network::of(letter, all).filter(|_| own.is_ok_and(|status| status.success()))?;
    let path = network.hosts(place);
    let mut text = std::fs::read_to_string(&path).unwrap();
    for (name, _, ahead_s) in CLIENTS {
        let space = network.namespace(name);
        let shifted = format!("{space}\", \"unshare\", \"--time\", \"--monotonic\", \"{ahead_s}\"]");
        text = text.replace(&format!("{space}\"]"), &shifted);
    }
    std::fs::write(&path, text).unwrap();
    Some((network, path))
}

/// Checks counts and times of wills that come after this delay: the leads of the clocks are in none.
fn assert_delayed(run: &Value, counts: [u64; 3], delay_ns: u64) {
    let what = format!("{} {} {}", run["wills"], run["clocks"], run["counts"]);
    let pairs = run["clocks"].as_array().unwrap_or_else(|| panic!("{what}"));
    let bound_ns = pairs.iter().map(|pair| pair["bound_ns"].as_u64().unwrap()).max().unwrap();
    assert_eq!((pairs.len(), pairs.iter().all(|pair| pair["taken_out"] == true)), (4, true), "{what}");
    assert_eq!((wills(run), time(run, "count")), (counts, counts[1]), "{what}");
    // A histogram is exact to 0.1 %.
    assert!(time(run, "min") + bound_ns >= delay_ns - delay_ns / 1_000, "{what}");
    assert!(time(run, "max") < bound_ns + 4 * SECOND, "{what}");
    assert_eq!((count(run, "unidentified"), &run["violations"]), (0, &Value::Null), "{what}");
}

#[test]
fn scripted_delays_of_wills_come_out_whatever_the_clocks_of_the_hosts_say() {
    let place = Place::new();
    let Some((network, hosts)) = hosts(&place, 'r') else {
        return leave_out("hosts::wills::scripted_delays_of_wills", WHY);
    };
    let script = place.path("script.toml");
    std::fs::write(&script, "will = { delay = \"50ms\", withhold = [1] }").unwrap();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &network.namespace("server"), env!("CARGO_BIN_EXE_pubmark"), "peer"]);
    command.args(["--address", &network.address("server"), "--script", script.to_str().unwrap()]);
    let peer = Peer::spawn(&mut command);
    // Publishers 1, 3, 5 and 7 lose their connections: one of each agent.
    let mut command = place.command(&["bench", &peer.endpoint, "--pattern", "fan-out", "--publishers", "8"]);
    command.args(["--subscribers", "4", "--rate", "50", "--payload", "64B", "--set", "agents=2", "--hosts", &hosts]);
    command.args(["--set", "last_will=true", "--fault", "cut 50% of publishers at 500ms", "--set", "drain=2s"]);
    let run =
        only_run(command.args(["--warmup", "300ms", "--duration", "1s", "--repeats", "1", "--json", "--out", "r"]));
    assert_delayed(&run, [16, 12, 0], 50 * MILLISECOND);
    assert_eq!(run["agents"].as_array().unwrap().len(), 8, "{}", run["agents"]);
    drop(peer);
    assert_eq!(network.processes(), Vec::<String>::new());
}

/// A link before the server delays what subscribers get.
#[test]
fn wills_of_a_real_server_are_timed_over_tls_and_a_link_by_one_clock() {
    let place = Place::linked();
    let Some((network, hosts)) = hosts(&place, 'u') else {
        return leave_out("hosts::wills::wills_of_a_real_server", WHY);
    };
    for (out, more) in [("plain", &["--set", "agents=2"][..]), ("tls", &["--tls", "--qos", "1"])] {
        let mut command = place.command(&["bench", "mosquitto", "--pattern", "fan-out", "--publishers", "4"]);
        command.args(["--subscribers", "2", "--rate", "50", "--payload", "64B", "--set", "link_delay=40ms"]);
        command.args(["--set", "last_will=true", "--fault", "kill publishers at 500ms", "--hosts", &hosts]).args(more);
        command.args(["--warmup", "300ms", "--duration", "1s", "--repeats", "1", "--json"]);
        let run = only_run(command.args(["--out", out]));
        assert_delayed(&run, [8, 8, 0], 40 * MILLISECOND);
    }
    assert_eq!(network.processes(), Vec::<String>::new());
}
