//! Host connections that neither end nor send: a host that stands still, and a network that is cut with the connection
//! in it.

use super::{Network, Sshd, WHY, ip, is_in_window};
use crate::left_out::leave_out;
use crate::support::{Place, stderr, wait_for};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Maximum silence of either end of a host connection here.
const SILENCE: &str = "3s";
/// No request goes to a host from the window's start to its end.
const WINDOW_S: u64 = 300;

fn signal(signal: &str, pids: &[String]) {
    let _ = Command::new("kill").arg(signal).args(pids).stderr(Stdio::null()).status();
}

fn bench(command: &mut Command, hosts: &str) -> Child {
    let duration = format!("{WINDOW_S}s");
    command.args(["--pairs", "2", "--rate", "100", "--json", "--warmup", "300ms", "--duration", &duration]);
    command.args(["--repeats", "1", "--out", "r", "--hosts", hosts]).env("PUBMARK_SILENCE", SILENCE);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Returns why the only run of a coordinator failed, which must happen before its window is over.
fn error_of(coordinator: Child, began: Instant) -> String {
    let output = coordinator.wait_with_output().unwrap();
    assert!(began.elapsed().as_secs() < WINDOW_S, "it was noticed at the window's end");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    told["runs"][0]["error"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_host_that_stands_still_in_mid_window_is_lost_by_name_and_leaves_nothing() {
    let Some(network) = Network::new('i') else { return leave_out("a_host_that_stands_still_in_mid_window", WHY) };
    let place = Place::new();
    let hosts = network.hosts(&place);
    let began = Instant::now();
    let coordinator = bench(&mut place.command(&["bench", "mosquitto"]), &hosts);
    let in_window = || network.processes().iter().filter(|pid| is_in_window(pid)).count();
    wait_for("the load", || (in_window() == 2).then_some(()));
    let stopped = network.processes_of("subscribers");
    signal("-STOP", &stopped);
    let error = error_of(coordinator, began);
    signal("-CONT", &stopped);
    assert!(error.contains("host subscribers is lost") && error.contains("nothing was heard of it for 3s"), "{error}");
    wait_for("all to end", || network.processes().is_empty().then_some(()));
    wait_for("the folders' end", || (std::fs::read_dir(place.tmp()).unwrap().count() == 0).then_some(()));
}

/// The coordinator is on its own host, and its connection to the other one is `ssh` over the network that is cut.
#[test]
fn a_host_whose_line_is_in_the_network_that_is_cut_ends_by_itself_before_it_is_back() {
    let hosts = vec![("here".to_owned(), "coordinator"), ("b1".to_owned(), "server")];
    let Some(network) = Network::of('j', hosts) else { return leave_out("a_host_whose_line_is_in_the_network", WHY) };
    let place = Place::new();
    let (here, there) = (network.namespace("here"), network.namespace("b1"));
    let (address, within) = (network.address("b1"), ["ip", "netns", "exec", there.as_str()]);
    let Some(sshd) = Sshd::at(&place, &address, &within) else {
        return leave_out("a_host_whose_line_is_in_the_network", "there is no sshd here");
    };
    // Its output is visible there.
    let folder = place.path("there");
    std::fs::create_dir(&folder).unwrap();
    let hosts = sshd.hosts(&place, &sshd.key);
    let text = std::fs::read_to_string(&hosts).unwrap();
    let own = format!("\"{address}\", \"env\", \"TMPDIR={}\", \"PUBMARK_SILENCE={SILENCE}\"]", folder.display());
    std::fs::write(&hosts, text.replacen(&format!("\"{address}\"]"), &own, 1)).unwrap();
    let plain = place.command(&[]);
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &here]).arg(plain.get_program()).args(["bench", "mosquitto"]);
    command.current_dir(place.path(".")).stdin(Stdio::null());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let began = Instant::now();
    let coordinator = bench(&mut command, &hosts);
    let of_pubmark = || {
        let is_ssh = |pid: &String| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.starts_with("sshd") || name.is_empty()
        };
        network.processes_of("b1").into_iter().filter(|pid| !is_ssh(pid)).collect::<Vec<_>>()
    };
    let in_window = || network.processes_of("b1").iter().filter(|pid| is_in_window(pid)).count();
    wait_for("the load", || (in_window() == 2).then_some(()));
    assert!(ip(&["-n", &there, "link", "set", "e", "down"]));
    let error = error_of(coordinator, began);
    assert!(error.contains("host b1 is lost") && error.contains("nothing was heard of it for 3s"), "{error}");
    wait_for("all of pubmark's to end while the network is down", || of_pubmark().is_empty().then_some(()));
    wait_for("its folders' end", || (std::fs::read_dir(&folder).unwrap().count() == 0).then_some(()));
    assert!(ip(&["-n", &there, "link", "set", "e", "up"]));
    assert_eq!((of_pubmark(), std::fs::read_dir(&folder).unwrap().count()), (Vec::new(), 0));
    place.assert_swept();
    assert_eq!(network.processes_of("here"), Vec::<String>::new());
    // Only the session of ssh is left: it cannot know yet that its client has gone.
    signal("-KILL", &network.processes_of("b1"));
}
