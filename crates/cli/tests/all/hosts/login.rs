//! Servers that others can reach require a password, which appears nowhere.

use super::{Network, WHY, host_process};
use crate::left_out::leave_out;
use crate::support::{ENDLESS, Place, interrupt, stderr, wait_for};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Returns the content of a file of that name below a folder.
fn file_below(folder: &Path, name: &str) -> Option<String> {
    std::fs::read_dir(folder).ok()?.flatten().find_map(|entry| match entry.path() {
        path if path.is_dir() => file_below(&path, name),
        path if entry.file_name() == name => std::fs::read_to_string(path).ok().filter(|text| !text.is_empty()),
        _ => None,
    })
}

/// Returns the port that is open in the network of a process.
fn listener(pid: &str) -> Option<u16> {
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).ok()?;
    let ports = table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let local = words.next()?;
        (words.nth(1) == Some("0A")).then(|| u16::from_str_radix(local.split_once(':')?.1, 16).ok())?
    });
    ports.into_iter().next()
}

/// Returns the texts below a folder, and the command lines of all processes.
fn texts(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let text = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    entries.map(|entry| if entry.path().is_dir() { texts(&entry.path()) } else { text(&entry.path()) }).collect()
}

/// Waits for a program's end. Returns all its output.
fn all_output(program: Child) -> String {
    let output = program.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output)
}

fn command_lines() -> String {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let read = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
    all.map(|entry| String::from_utf8_lossy(&read(entry)).replace('\0', " ")).collect()
}

#[test]
fn a_server_that_others_can_reach_wants_a_password_that_stands_nowhere() {
    let Some(network) = Network::new('p') else { return leave_out("a_server_that_others_can_reach", WHY) };
    let place = Place::new();
    let hosts = network.hosts(&place);
    // The file of each password, and the text before it.
    for (system, scheme, file, before, refusal) in [
        ("mosquitto", "mqtt", "passwords", "$6$", "not authorised"),
        ("redis", "redis", "redis.conf", "on >", "NOAUTH"),
        ("nats", "nats", "nats.conf", "password: \"", "Authorization Violation"),
    ] {
        let bench = |duration: &str, out: &str| {
            let mut command = place.command(&["bench", system, "--rate", "50", "--warmup", "100ms"]);
            command.args(["--duration", duration, "--repeats", "1", "--hosts", &hosts, "--out", out]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        // It lasts until a stranger has tried to connect.
        let watched = bench(ENDLESS, &format!("{system}-watched"));
        let secret = wait_for("the server's password", || {
            let text = file_below(&place.tmp(), file)?;
            let rest = text.split_once(before)?.1;
            Some(rest.split([' ', '"', '\n']).next()?.to_owned()).filter(|secret| secret.len() >= 32)
        });
        let host = wait_for("the host", || host_process(&network, "server"));
        let port = wait_for("the server to listen", || listener(&host));
        assert!(!command_lines().contains(&secret), "{system}: a process shows it");
        let endpoint = format!("{scheme}://{}:{port}", network.address("server"));
        let space = format!("--net=/run/netns/{}", network.namespace("subscribers"));
        let mut stranger = Command::new("nsenter");
        stranger.args([&space, env!("CARGO_BIN_EXE_pubmark"), "bench", &endpoint, "--repeats", "1"]);
        stranger.args(["--duration", "200ms", "--warmup", "100ms", "--set", "connect_timeout=1s", "--json"]);
        stranger.args(["--out", &format!("{system}-stranger")]).current_dir(place.0.path());
        let stranger = stranger.output().unwrap();
        let said = String::from_utf8_lossy(&stranger.stdout).into_owned() + &stderr(&stranger);
        assert!(said.contains(refusal), "{system}: {said}");
        interrupt(&watched);
        let told = all_output(watched) + &all_output(bench("1s", system));
        let records = place.records(system);
        assert!(records[0]["error"].is_null(), "{system}: {}", records[0]["error"]);
        assert_eq!(records[0]["counts"]["lost"], 0, "{system}");
        let shown = told + &texts(&place.path(system)) + &texts(&place.path(&format!("{system}-watched")));
        assert!(!shown.contains(&secret), "{system}: it stands in what is left");
        assert!(shown.contains(&format!("{scheme}://{}", network.address("server"))), "{system}: where it was");
    }
    assert_eq!(network.processes(), Vec::<String>::new());
}
