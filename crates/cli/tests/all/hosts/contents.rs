//! Topics, payload files and churn over two hosts: publishers run on one, server and subscribers on the other.

use super::{Network, WHY, only_run};
use crate::left_out::leave_out;
use crate::support::{Place, assert_adds_up};
use serde_json::Value;
use std::process::Command;

/// Makes two hosts, and returns them with the path of their file.
fn two_hosts(letter: char, place: &Place) -> Option<(Network, String)> {
    let hosts = [("far", "publishers"), ("near", "server")].map(|(name, part)| (name.to_owned(), part));
    let network = Network::of(letter, hosts.to_vec())?;
    let path = network.hosts(place);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("[\"server\"]", "[\"server\", \"subscribers\"]")).unwrap();
    Some((network, path))
}

fn bench(place: &Place, hosts: &str, arguments: &[&str]) -> Command {
    let mut command = place.command(&["bench"]);
    command.args(arguments).args(["--hosts", hosts, "--out", "r", "--json"]);
    command.args(["--warmup", "300ms", "--duration", "1s", "--repeats", "1"]);
    command
}

fn counts(run: &Value) -> [u64; 5] {
    ["expected", "delivered", "lost", "duplicated", "corrupted"].map(|name| run["counts"][name].as_u64().unwrap())
}

/// A hundred thousand topics, shared out among two subscribers by name, and clients that come and go at the other host.
#[test]
fn many_topics_and_clients_that_come_and_go_count_exactly_over_two_hosts() {
    let place = Place::new();
    let Some((network, hosts)) = two_hosts('r', &place) else { return leave_out("many_topics_and_clients", WHY) };
    let clients = ["mosquitto", "--pattern", "fan-in", "--publishers", "2", "--subscribers", "2", "--rate", "100"];
    for (topics, subscriptions) in [("topics=2000", "subscriptions=each"), ("topics=100000", "subscriptions=wildcard")]
    {
        let more =
            ["--qos", "1", "--set", topics, "--set", subscriptions, "--set", "churn=20/s", "--set", "verify=full"];
        let run = only_run(&mut bench(&place, &hosts, &[&clients[..], &more].concat()));
        assert_adds_up(&run);
        let copies = if subscriptions.ends_with("each") { 200 } else { 400 };
        assert_eq!(counts(&run), [copies, copies, 0, 0, 0], "{topics}");
        assert_eq!(["due", "connected", "failed"].map(|name| run["churn"][name].as_u64().unwrap()), [20, 20, 0]);
        std::fs::remove_dir_all(place.path("r")).unwrap();
    }
    assert_eq!(network.processes(), Vec::<String>::new());
}

/// The file is on this machine alone. Every byte that the other host sends is checked against it at the second one.
#[test]
fn lines_of_a_file_here_are_sent_from_one_host_and_checked_at_another() {
    let place = Place::new();
    let Some((network, hosts)) = two_hosts('u', &place) else { return leave_out("lines_of_a_file_here", WHY) };
    let lines = ["one", "{\"two\": 2}", "thr\u{e9}e"];
    std::fs::write(place.path("lines.txt"), lines.join("\n") + "\n").unwrap();
    let load = ["mosquitto", "--pairs", "2", "--rate", "100", "--qos", "1", "--set", "verify=full"];
    let run = only_run(&mut bench(&place, &hosts, &[&load[..], &["--set", "payload_file=lines.txt"]].concat()));
    assert_adds_up(&run);
    assert_eq!(counts(&run), [200, 200, 0, 0, 0]);
    // Of each pair those numbered 30 to 129, each behind a header of 36 bytes.
    let bytes = |number: usize| 36 + lines[number % 3].len() as u64;
    let all = 2 * (30..130).map(bytes).sum::<u64>();
    let found = ["sent_bytes", "delivered_bytes"].map(|name| run["counts"][name].as_u64().unwrap());
    assert_eq!(found, [all, all]);
    assert_eq!(network.processes(), Vec::<String>::new());
}
