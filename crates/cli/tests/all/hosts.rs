//! A run over three hosts, which are network namespaces of this machine: the server on one, publishers on the second,
//! subscribers on the third. Nothing can be reached by 127.0.0.1, by a process of this machine or by a path of it.

mod contents;
mod flows;
mod linked;
mod login;
mod lossy;
mod many;
mod members;
mod preflight;
mod silent;
mod wills;

use crate::left_out::leave_out;
use crate::support::{Place, children, free_port, stderr, wait_for};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Hosts of a run whose parts are each on their own.
const PARTS: [&str; 3] = ["server", "publishers", "subscribers"];

/// Namespaces on a bridge of another one. They end when this is dropped.
pub struct Network {
    /// Unique for this process: tests run in parallel.
    name: String,
    subnet: u8,
    /// Each host, with its role.
    hosts: Vec<(String, &'static str)>,
}

fn ip(arguments: &[&str]) -> bool {
    let output = Command::new("ip").args(arguments).stderr(Stdio::null()).stdout(Stdio::null()).status();
    output.is_ok_and(|status| status.success())
}

impl Network {
    /// Makes a host for each part of a run; returns `None` if this machine does not allow it.
    pub fn new(letter: char) -> Option<Network> {
        Network::of(letter, PARTS.map(|part| (part.to_owned(), part)).to_vec())
    }

    /// Makes these hosts, each for one part.
    pub fn of(letter: char, hosts: Vec<(String, &'static str)>) -> Option<Network> {
        let id = std::process::id();
        let network = Network { name: format!("pm{letter}{id}"), subnet: (id % 200) as u8 + 20, hosts };
        let bridge = network.namespace("hub");
        let mut made = ip(&["netns", "add", &bridge])
            && ip(&["-n", &bridge, "link", "add", "hub", "type", "bridge"])
            && ip(&["-n", &bridge, "link", "set", "hub", "up"]);
        for (index, (host, _)) in network.hosts.iter().enumerate() {
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

    pub fn namespace(&self, host: &str) -> String {
        format!("{}-{host}", self.name)
    }

    pub fn address(&self, host: &str) -> String {
        let last = self.hosts.iter().position(|(known, _)| known == host).unwrap() + 1;
        format!("10.{}.77.{last}", self.subnet)
    }

    /// Writes a file of hosts, each for its part.
    pub fn hosts(&self, place: &Place) -> String {
        let host = |(name, part): &(String, &str)| {
            let (space, address) = (self.namespace(name), self.address(name));
            format!(
                "[hosts.{name}]\nreach = [\"ip\", \"netns\", \"exec\", \"{space}\"]\naddress = \"{address}\"\nroles = [\"{part}\"]\n"
            )
        };
        let path = place.path("hosts.toml");
        std::fs::write(&path, self.hosts.iter().map(host).collect::<String>()).unwrap();
        path.display().to_string()
    }

    /// Writes a file of hosts with one more line in the table of each host of this part.
    pub fn hosts_with(&self, place: &Place, part: &str, line: &str) -> String {
        let path = self.hosts(place);
        let roles = format!("roles = [\"{part}\"]\n");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(&roles), "{text}");
        std::fs::write(&path, text.replace(&roles, &format!("{roles}{line}\n"))).unwrap();
        path
    }

    /// Returns the processes in the network.
    pub fn processes(&self) -> Vec<String> {
        self.hosts.iter().flat_map(|(host, _)| self.processes_of(host)).collect()
    }

    /// Returns the processes of one host.
    pub fn processes_of(&self, host: &str) -> Vec<String> {
        let output = Command::new("ip").args(["netns", "pids", &self.namespace(host)]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in self.hosts.iter().map(|(host, _)| host.as_str()).chain(["hub"]) {
            ip(&["netns", "del", &self.namespace(host)]);
        }
    }
}

pub const WHY: &str = "network namespaces cannot be made here";

#[test]
fn a_run_over_three_hosts_counts_exactly_and_leaves_nothing() {
    let Some(network) = Network::new('a') else { return leave_out("a_run_over_three_hosts", WHY) };
    let place = Place::new();
    let hosts = network.hosts(&place);
    let mut command = place.command(&["bench", "mosquitto", "--qos", "1", "--pairs", "3"]);
    command.args(["--rate", "100", "--warmup", "300ms", "--duration", "2s", "--repeats", "1", "--json"]);
    let run = only_run(command.args(["--hosts", &hosts, "--out", "r"]));
    // The log written there has been copied back.
    let log = std::fs::read_to_string(place.path("r/logs/run-0-server.log")).unwrap();
    assert!(log.contains("mosquitto version"), "{log}");
    let count = |name: &str| run["counts"][name].as_u64().unwrap_or_else(|| panic!("{name}: {}", run["counts"]));
    assert_eq!(["sent", "acked", "delivered", "lost", "acked_lost"].map(count), [600, 600, 600, 0, 0]);
    assert_eq!(
        run["deployment"]["endpoint"].as_str().unwrap().split(':').nth(1).unwrap(),
        format!("//{}", network.address("server"))
    );
    let expected = [("publisher", "publishers"), ("subscriber", "subscribers")];
    assert_eq!(host_by_role(&run), expected.map(|(role, host)| (role.to_owned(), host.to_owned())));
    let hosts = run["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 3);
    for host in hosts {
        // The namespaces share a clock: the offset found lies within its own bound.
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

/// Returns the run of a command that prints JSON; the run must have no error.
pub fn only_run(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let run = told["runs"][0].clone();
    assert_eq!(run["error"], Value::Null);
    run
}

/// Returns the host of each agent, by the agent's role.
fn host_by_role(run: &Value) -> Vec<(String, String)> {
    let agents = run["agents"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut all: Vec<_> = agents.map(|agent| (text(&agent["roles"][0]), text(&agent["host"]))).collect();
    all.sort();
    all
}

#[test]
fn the_sides_of_a_library_are_on_different_hosts_and_counts_are_exact() {
    let Some(network) = Network::new('d') else { return leave_out("the_sides_of_a_library", WHY) };
    let place = Place::new();
    let hosts = network.hosts(&place);
    for system in [["kernel", "udp"], ["kernel", "tcp"], ["zeromq", "tcp"], ["nng", "tcp"]] {
        let mut command = place.command(&["bench", system[0], "--transport", system[1], "--pattern", "fan-out"]);
        command.args(["--subscribers", "3", "--rate", "200", "--warmup", "300ms", "--duration", "1s"]);
        let run = only_run(command.args(["--repeats", "1", "--json", "--hosts", &hosts, "--out", &system.join("-")]));
        let count = |name: &str| run["counts"][name].as_u64().unwrap();
        assert_eq!(["sent", "delivered", "lost"].map(count), [200, 600, 0], "{system:?}");
        let expected = [("publisher", "publishers"), ("subscriber", "subscribers")];
        assert_eq!(host_by_role(&run), expected.map(|(role, host)| (role.to_owned(), host.to_owned())), "{system:?}");
    }
    assert_eq!(network.processes(), Vec::<String>::new());
    let ipc = place.command(&["bench", "zeromq", "--transport", "ipc", "--hosts", &hosts]).output().unwrap();
    assert_eq!(ipc.status.code(), Some(2));
    assert!(stderr(&ipc).contains("ipc stays on one host"), "{}", stderr(&ipc));
}

#[test]
fn both_ends_of_a_pair_share_a_host_where_roles_allow_and_a_plan_says_so() {
    let Some(network) = Network::new('e') else { return leave_out("both_ends_of_a_pair", WHY) };
    let place = Place::new();
    let hosts = network.hosts(&place);
    let text = std::fs::read_to_string(&hosts).unwrap();
    let clients = "roles = [\"publishers\", \"subscribers\"]";
    let text = text.replace("roles = [\"publishers\"]", clients).replace("roles = [\"subscribers\"]", clients);
    std::fs::write(&hosts, text).unwrap();
    let study = "title = \"t\"\n[workload]\npairs = 4\nrate = 100\nwarmup = \"300ms\"\nduration = \"1s\"\n\
                 [run]\nrepeats = 1\n[axes]\nsystem = [\"mosquitto\"]\nplacement = [\"together\", \"apart\"]\n";
    std::fs::write(place.path("s.toml"), study).unwrap();
    let plan = place.command(&["run", "s.toml", "--hosts", &hosts, "--dry-run"]).output().unwrap();
    let plan = String::from_utf8(plan.stdout).unwrap();
    let clients = "clients on publishers, subscribers, both ends of a stream on one";
    assert!(plan.contains(&format!("placement=together  (server on server, {clients})")), "{plan}");
    assert!(plan.contains("publishers on publishers, subscribers on subscribers)"), "{plan}");
    let done = place.command(&["run", "s.toml", "--hosts", &hosts, "--out", "r", "-q"]).output().unwrap();
    assert!(matches!(done.status.code(), Some(0 | 3)), "{}", stderr(&done));
    let runs = std::fs::read_to_string(place.path("r/runs.jsonl")).unwrap();
    let runs: Vec<Value> = runs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_eq!((&run["error"], run["counts"]["delivered"].as_u64()), (&Value::Null, Some(400)));
        let all = host_by_role(&run).into_iter().map(|(role, host)| format!("{role} {host}")).collect::<Vec<_>>();
        let together =
            ["publisher publishers", "publisher subscribers", "subscriber publishers", "subscriber subscribers"];
        let apart = ["publisher publishers", "subscriber subscribers"];
        let is_together = run["cell"]["placement"] == "together";
        let expected = if is_together { &together[..] } else { &apart[..] };
        assert_eq!(run["clocks"].is_null(), is_together, "one clock measures what stays on a host: {}", run["clocks"]);
        assert_eq!(all, expected);
    }
    let again = std::fs::read_to_string(place.path("r/study.toml")).unwrap();
    assert!(again.contains("[hosts.server]"), "a resumed study has its hosts: {again}");
}

/// The host that sends or the one that receives is an hour ahead.
#[test]
fn clocks_that_are_apart_are_compared_and_taken_out() {
    const HOUR_S: i64 = 3_600;
    let own = Command::new("unshare").args(["--time", "--monotonic", "1", "true"]).stderr(Stdio::null()).status();
    let Some(network) = Network::new('g').filter(|_| own.is_ok_and(|status| status.success())) else {
        return leave_out("clocks_that_are_apart", "namespaces of time cannot be made here");
    };
    let place = Place::new();
    let hosts = network.hosts(&place);
    let right = std::fs::read_to_string(&hosts).unwrap();
    for (ahead, offset_s) in [("publishers", -HOUR_S), ("subscribers", HOUR_S)] {
        let space = format!("{}\"]", network.namespace(ahead));
        let shifted = format!("{}\", \"unshare\", \"--time\", \"--monotonic\", \"3600\"]", network.namespace(ahead));
        std::fs::write(&hosts, right.replace(&space, &shifted)).unwrap();
        for system in [["kernel", "tcp"], ["zeromq", "tcp"]] {
            let mut command = place.command(&["bench", system[0], "--transport", system[1], "--rate", "500"]);
            command.args(["--warmup", "300ms", "--duration", "1s", "--repeats", "1", "--json", "--hosts", &hosts]);
            let run = only_run(command.args(["--out", &format!("{ahead}-{}", system[0])]));
            let count = |name: &str| run["counts"][name].as_u64().unwrap();
            assert_eq!(["sent", "delivered", "lost", "corrupted"].map(count), [500, 500, 0, 0], "{ahead} {system:?}");
            let [pair] = run["clocks"].as_array().unwrap().as_slice() else { panic!("{}", run["clocks"]) };
            let (offset, bound) = (pair["offset_ns"].as_i64().unwrap(), pair["bound_ns"].as_u64().unwrap());
            let error = (offset - offset_s * 1_000_000_000).unsigned_abs();
            assert!(error <= bound && pair["taken_out"] == true, "{error} ns: {pair}");
            assert_eq!((&pair["seen_within"], &pair["off_line_ns"]), (&1.into(), &0.into()), "a window of a second");
            // A message's transit time and the bound are what remains of an hour.
            let p50 = run["latency_ns"]["p50"].as_u64().unwrap();
            assert!(p50 + bound > 0 && p50 < 1_000_000_000, "{p50}");
        }
    }
    assert_eq!(network.processes(), Vec::<String>::new());
}

/// An ssh server for one test. It ends when this is dropped.
struct Sshd {
    process: std::process::Child,
    address: String,
    port: u16,
    key: String,
}

impl Sshd {
    /// Starts it on the loopback interface; returns `None` if that is impossible here.
    fn new(place: &Place) -> Option<Sshd> {
        Sshd::at(place, "127.0.0.1", &[])
    }

    /// Starts it at this address, with this command prefix.
    fn at(place: &Place, address: &str, within: &[&str]) -> Option<Sshd> {
        let text = |name: &str| place.path(name).display().to_string();
        let key = |name: &str| {
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-f", &text(name)]);
            command.status().is_ok_and(|status| status.success())
        };
        if !key("host_key") || !key("key") {
            return None;
        }
        // Its privilege separation directory.
        std::fs::create_dir_all("/run/sshd").ok()?;
        let port = free_port();
        let config = format!(
            "Port {port}\nListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PidFile none\nPasswordAuthentication yes\nPermitRootLogin yes\n",
            text("host_key"),
            text("key.pub")
        );
        std::fs::write(place.path("sshd_config"), config).unwrap();
        let mut words = within.to_vec();
        let config = text("sshd_config");
        words.extend(["/usr/sbin/sshd", "-D", "-e", "-f", &config]);
        let process = Command::new(words[0]).args(&words[1..]).stderr(Stdio::null()).spawn().ok()?;
        // As the kernel lists it, in its namespace.
        let listens = format!(":{port:04X} 00000000:0000 0A");
        let sockets = format!("/proc/{}/net/tcp", process.id());
        let is_listed = || std::fs::read_to_string(&sockets).is_ok_and(|text| text.contains(&listens));
        wait_for("sshd to listen", || is_listed().then_some(()));
        Some(Sshd { process, address: address.to_owned(), port, key: text("key") })
    }

    /// Writes a file with one host that is reached through it.
    fn hosts(&self, place: &Place, key: &str) -> String {
        let options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"];
        let options: Vec<String> = options.iter().map(|option| format!("\"-o\", \"{option}\"")).collect();
        let reach =
            format!("\"ssh\", \"-F\", \"none\", \"-i\", \"{key}\", \"-p\", \"{}\", {}", self.port, options.join(", "));
        let path = place.path("hosts.toml");
        let address = &self.address;
        let text = format!("[hosts.b1]\nreach = [{reach}, \"{address}\"]\naddress = \"{address}\"\n");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_host_is_reached_by_ssh_and_a_key_that_is_not_let_in_says_so() {
    let place = Place::new();
    let Some(sshd) = Sshd::new(&place) else { return leave_out("a_host_is_reached_by_ssh", "there is no sshd here") };
    let hosts = sshd.hosts(&place, &sshd.key);
    let mut command = place.command(&["bench", "mosquitto", "--qos", "1", "--pairs", "2", "--rate", "100", "--json"]);
    command.args(["--warmup", "300ms", "--duration", "1s", "--repeats", "1", "--hosts", &hosts, "--out", "r"]);
    let run = only_run(&mut command);
    let count = |name: &str| run["counts"][name].as_u64().unwrap();
    assert_eq!(["sent", "acked", "delivered", "lost"].map(count), [200, 200, 200, 0]);
    assert!(host_by_role(&run).iter().all(|(_, host)| host == "b1"), "{run}");
    assert_eq!(run["clocks"], Value::Null, "one clock measured both ends");
    // Instead of a password prompt, there is an error.
    let hosts = sshd.hosts(&place, "/nonexistent");
    let bench = place.command(&["bench", "mosquitto", "--repeats", "1", "--hosts", &hosts]).output().unwrap();
    let said = stderr(&bench);
    assert!(said.contains("host b1 is lost") && said.contains("Permission denied"), "{said}");
}

#[test]
fn what_is_wrong_with_a_host_is_said_by_its_name() {
    let Some(network) = Network::new('f') else { return leave_out("what_is_wrong_with_a_host", WHY) };
    let place = Place::new();
    let hosts = network.hosts(&place);
    let right = std::fs::read_to_string(&hosts).unwrap();
    let address = network.address("publishers");
    for (from, to, said) in [
        (address.as_str(), "10.9.9.9", "host publishers: 10.9.9.9 is not an address of its own"),
        ("-subscribers\"]", "-nowhere\"]", "host subscribers is lost"),
    ] {
        std::fs::write(&hosts, right.replace(from, to)).unwrap();
        let doctor = place.command(&["doctor", "--hosts", &hosts]).output().unwrap();
        let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
        assert_eq!(doctor.status.code(), Some(1), "{told}");
        assert!(told.contains(said), "{told}");
        assert!(told.contains("clock: "), "the others are looked at all the same: {told}");
        let bench = place.command(&["bench", "mosquitto", "--repeats", "1", "--hosts", &hosts]).output().unwrap();
        assert!(stderr(&bench).contains(said), "{}", stderr(&bench));
    }
}

#[test]
fn a_server_elsewhere_is_killed_and_comes_back_by_the_script() {
    let Some(network) = Network::new('b') else { return leave_out("a_server_elsewhere_is_killed", WHY) };
    let place = Place::new();
    let hosts = network.hosts(&place);
    let mut command = place.command(&["bench", "mosquitto", "--pairs", "2", "--rate", "100"]);
    command.args(["--warmup", "300ms", "--duration", "4s", "--repeats", "1", "--json"]);
    command.args(["--fault", "kill server at 1s for 500ms, stop publishers at 3s for 300ms"]);
    let run = only_run(command.args(["--hosts", &hosts, "--out", "r"]));
    let [kill, stop] = run["fault_log"].as_array().unwrap().as_slice() else { panic!("{}", run["fault_log"]) };
    for (event, asked_ms) in [(kill, 1_000), (stop, 3_000)] {
        assert!(event["at_ns"].as_u64().unwrap() >= asked_ms * 1_000_000, "{event}");
        assert!(event["until_ns"].as_u64() > event["at_ns"].as_u64(), "{event}");
    }
    assert!(kill["note"].as_str().unwrap().contains("listened again"), "{kill}");
    assert_eq!(run["connections"]["reconnected"], 4);
    // A publisher that comes back sends what was due meanwhile, and that is lost if its subscriber comes back later:
    // the order depends on chance and the machine.
    let count = |name: &str| run["counts"][name].as_u64().unwrap();
    assert_eq!((count("expected"), count("delivered") + count("lost")), (count("sent"), count("sent")));
    assert!(count("delivered") > 0 && count("duplicated") == 0, "{}", run["counts"]);
    assert_eq!(network.processes(), Vec::<String>::new());
}

#[test]
fn a_coordinator_that_is_killed_leaves_nothing_on_any_host() {
    let Some(network) = Network::new('c') else { return leave_out("a_coordinator_that_is_killed", WHY) };
    let place = Place::new();
    let hosts = network.hosts(&place);
    let mut command = place.command(&["bench", "mosquitto", "--pairs", "2", "--rate", "100"]);
    command.args(["--warmup", "300ms", "--duration", "600s", "--repeats", "1", "--hosts", &hosts, "--out", "r"]);
    let mut coordinator = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // A host and its cleaner; an agent on two of them; a keeper and the server on the third.
    wait_for("all to run", || (network.processes().len() >= 10).then_some(()));
    assert_eq!(children(coordinator.id()).len(), 3, "a prefix command each");
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    wait_for("all to end", || network.processes().is_empty().then_some(()));
    assert_eq!(std::fs::read_dir(place.tmp()).unwrap().count(), 0, "a folder is left behind");
}

/// Returns the first process in the namespace of a host: `pubmark host`.
pub fn host_process(network: &Network, host: &str) -> Option<String> {
    let serves = |pid: &String| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.ends_with(b"/pubmark\0host\0")
    };
    network.processes_of(host).into_iter().find(serves)
}

/// Returns whether a process is an agent that has been told to start: until its window ends it has a thread for that.
fn is_in_window(pid: &str) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let named = |name: std::io::Result<String>| name.is_ok_and(|name| name.trim_end() == "window");
    tasks.into_iter().any(|task| named(std::fs::read_to_string(task.path().join("comm"))))
}

/// If a host is killed or its connection is cut, the run fails by the host's name, long before its planned end, and
/// nothing of it is left anywhere.
#[test]
fn a_host_that_is_killed_or_whose_line_is_cut_fails_its_run_by_name_and_leaves_nothing() {
    const WINDOW_S: u64 = 300;
    let Some(network) = Network::new('h') else { return leave_out("a_host_that_is_killed", WHY) };
    for host in ["server", "publishers", "subscribers"] {
        for cut in [false, true] {
            let place = Place::new();
            let hosts = network.hosts(&place);
            let text = std::fs::read_to_string(&hosts).unwrap();
            // A local process that carries the host connection, as `ssh` does for a remote host.
            let space = network.namespace(host);
            let own = format!("[\"ip\", \"netns\", \"exec\", \"{space}\"]");
            let carried = format!("[\"sh\", \"-c\", \"cat | ip netns exec {space} $0\"]");
            std::fs::write(&hosts, if cut { text.replace(&own, &carried) } else { text }).unwrap();
            let mut command = place.command(&["bench", "mosquitto", "--pairs", "2", "--rate", "100", "--json"]);
            command.args([
                "--warmup",
                "300ms",
                "--duration",
                &format!("{WINDOW_S}s"),
                "--repeats",
                "1",
                "--hosts",
                &hosts,
                "--out",
                "r",
            ]);
            let began = Instant::now();
            let coordinator = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            wait_for("all to run", || (network.processes().len() >= 10).then_some(()));
            // No request goes to it from then on until the window ends.
            let in_window = || network.processes().iter().filter(|pid| is_in_window(pid)).count();
            wait_for("the load", || (in_window() == 2).then_some(()));
            let struck = if cut {
                // The shell that the coordinator has started, and the carrier below it.
                let below = children(coordinator.id()).into_iter().flat_map(|(shell, _)| children(shell as u32));
                let carries = |pid: &i32| {
                    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "cat")
                };
                let mut all = below.map(|(pid, _)| pid);
                all.find(carries).expect("a process carries the lines").to_string()
            } else {
                host_process(&network, host).expect("a host runs there")
            };
            assert!(Command::new("kill").args(["-9", &struck]).status().unwrap().success());
            let output = coordinator.wait_with_output().unwrap();
            let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
            let error = told["runs"][0]["error"].as_str().unwrap_or_default().to_owned();
            assert!(error.contains(&format!("host {host} is lost")), "{host}, cut {cut}: {error}");
            assert!(began.elapsed().as_secs() < WINDOW_S, "{host}, cut {cut}: it was noticed at the window's end");
            wait_for("all to end", || network.processes().is_empty().then_some(()));
            assert_eq!(
                std::fs::read_dir(place.tmp()).unwrap().count(),
                0,
                "{host}, cut {cut}: a folder is left behind"
            );
        }
    }
}

#[test]
fn the_network_of_a_host_is_cut_where_it_may_be_and_comes_back() {
    let Some(network) = Network::new('n') else { return leave_out("the_network_of_a_host_is_cut", WHY) };
    let place = Place::new();
    let hosts = network.hosts(&place);
    let bench = |out: &str| {
        let mut command = place.command(&["bench", "mosquitto", "--pairs", "2", "--rate", "100", "--warmup", "300ms"]);
        command.args(["--duration", "3s", "--repeats", "1", "--fault", "cut link publishers at 500ms for 1s"]);
        command.args(["--json", "--hosts", &hosts, "--out", out]);
        command
    };
    let refused = bench("r").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = stderr(&refused);
    assert!(said.contains("its table does not allow it") && said.contains("`may_cut = true`"), "{said}");
    network.hosts_with(&place, "publishers", "may_cut = true");
    let space = network.namespace("publishers");
    assert!(ip(&["-n", &space, "route", "add", "224.0.0.0/4", "dev", "e"]));
    let run = only_run(&mut bench("s"));
    let [cut] = run["fault_log"].as_array().unwrap().as_slice() else { panic!("{}", run["fault_log"]) };
    let (at, until) = (cut["at_ns"].as_u64().unwrap(), cut["until_ns"].as_u64().unwrap());
    assert!(cut["host"] == "publishers" && at >= 500_000_000 && until >= at + 1_000_000_000, "{cut}");
    let count = |name: &str| run["counts"][name].as_u64().unwrap();
    assert_eq!((count("sent"), count("delivered") + count("lost")), (600, 600), "{}", run["counts"]);
    // Messages due while the network was down came when it was back.
    assert!(run["latency_ns"]["max"].as_u64().unwrap() > 500_000_000, "{}", run["latency_ns"]);
    let routes = Command::new("ip").args(["-n", &space, "route"]).output().unwrap();
    let routes = String::from_utf8_lossy(&routes.stdout).into_owned();
    assert!(routes.contains("224.0.0.0/4") && routes.contains("/24"), "{routes}");
    assert_eq!(network.processes(), Vec::<String>::new());
}

/// The kernel enforces a host's bandwidth; a limit that it cannot enforce is refused.
#[test]
fn a_host_sends_no_more_than_its_bandwidth_and_as_much_as_before_when_a_run_is_over() {
    const BYTES_PER_S: u64 = 1_000_000;
    let Some(network) = Network::new('y') else { return leave_out("a_host_sends_no_more", WHY) };
    let space = network.namespace("publishers");
    let tc = |arguments: &[&str]| Command::new("tc").args(["-n", &space]).args(arguments).output().unwrap();
    if !tc(&["qdisc", "add", "dev", "e", "root", "tbf", "rate", "8mbit", "burst", "64kb", "latency", "50ms"])
        .status
        .success()
    {
        return leave_out("a_host_sends_no_more", "this kernel has no tbf");
    }
    let place = Place::new();
    let hosts = network.hosts_with(&place, "publishers", "bandwidth = \"1MB\"");
    let bench = |out: &str| {
        let mut command =
            place.command(&["bench", "kernel", "--transport", "tcp", "--rate", "max", "--payload", "10KB"]);
        command.args(["--warmup", "500ms", "--duration", "2s", "--repeats", "1", "--json", "--hosts", &hosts]);
        command.args(["--out", out]);
        command
    };
    // Another program's queue is not touched.
    let refused = bench("r").output().unwrap();
    let said = stderr(&refused);
    assert!(said.contains("host publishers: the bandwidth of e cannot be held"), "{said}");
    let shown = || String::from_utf8(tc(&["qdisc", "show", "dev", "e"]).stdout).unwrap();
    assert!(shown().contains("tbf"), "{}", shown());
    assert!(tc(&["qdisc", "del", "dev", "e", "root"]).status.success());
    let run = only_run(&mut bench("s"));
    let found = run["rates"]["delivered_bytes_per_s"].as_f64().unwrap() / BYTES_PER_S as f64;
    // Headers take 0.7 %; the bucket holds 64 KiB at the window's start.
    assert!((0.8..1.04).contains(&found), "{found} of what it may send");
    let held: Vec<(&str, Option<u64>)> = run["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|host| (host["name"].as_str().unwrap(), host["bandwidth_bytes_per_s"].as_u64()))
        .collect();
    assert!(held.contains(&("publishers", Some(BYTES_PER_S))) && held.contains(&("subscribers", None)), "{held:?}");
    assert!(!shown().contains("tbf"), "{}", shown());
    assert_eq!(network.processes(), Vec::<String>::new());
}

/// A server on a host has the same control groups as one of this machine, with the commands that reach the hosts of the
/// demo.
#[test]
fn limits_of_a_server_hold_on_a_host_as_they_do_here() {
    let Some(network) = Network::new('l') else { return leave_out("limits_of_a_server_hold_on_a_host", WHY) };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/hosts-here.sh");
    let script = std::fs::read_to_string(script).unwrap();
    let words = script.split_once("reach = [").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
    let place = Place::new();
    let table = |name: &str, part: &str| {
        let reach = words.replace("%s", &network.namespace(name));
        let address = network.address(name);
        format!("[hosts.{name}]\nreach = [{reach}]\naddress = \"{address}\"\nroles = [{part}]\n")
    };
    let text = table("server", "\"server\"") + &table("publishers", "\"publishers\", \"subscribers\"");
    std::fs::write(place.path("hosts.toml"), text).unwrap();
    let limits = |more: &[&str], out: &str| {
        let mut command = place.command(&["bench", "mosquitto", "--rate", "100", "--warmup", "100ms", "--json"]);
        command.args(["--duration", "500ms", "--repeats", "1", "--cpus", "1", "--memory", "256MiB", "--out", out]);
        only_run(command.args(more))["deployment"]["applied"].clone()
    };
    let here = limits(&[], "here");
    assert!(here["by"].is_string(), "{here}");
    assert_eq!(limits(&["--hosts", "hosts.toml"], "there"), here);
    assert_eq!(network.processes(), Vec::<String>::new());
}
