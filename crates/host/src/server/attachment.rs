//! Finds the process of a running server by its listening socket, so that only its usage
//! is counted.

use super::accounts::Accounts;
use super::container;
use super::ports::{self, Listener};
use super::processes;
use super::sample::SampledProcesses;
use crate::error::HostError;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::record::Attached;
use pubmark_model::watch::ProcessSelector;
use std::collections::HashSet;
use std::net::{IpAddr, ToSocketAddrs, UdpSocket};

/// Programs that only forward bytes to a container or another machine: their usage is not
/// the server's.
const FORWARDERS: &[&str] =
    &["docker-proxy", "rootlessport", "rootlesskit", "slirp4netns", "pasta", "ssh", "socat", "kubectl"];

/// Returns where a server runs, and its processes if they can be seen.
pub fn find(endpoint: &str) -> (Attached, Vec<SampledProcesses>) {
    let Ok(endpoint) = Endpoint::parse(endpoint) else { return (Attached::Elsewhere, Vec::new()) };
    if !here(&endpoint) {
        return (Attached::Elsewhere, Vec::new());
    }
    match ports::listener(&[], endpoint.port) {
        Listener::Foreign(Some((pid, name))) if serves(pid, &name) => {
            (Attached::Seen, vec![SampledProcesses { root: pid, ..SampledProcesses::default() }])
        }
        _ => (Attached::Hidden, Vec::new()),
    }
}

/// Returns the processes that the user names as the server.
///
/// # Errors
/// If there are none.
pub fn named(watchee: &ProcessSelector) -> Result<Vec<SampledProcesses>, HostError> {
    let tree = |root: i32| SampledProcesses { root, ..SampledProcesses::default() };
    match watchee {
        ProcessSelector::Pid(pid) if processes::lives(*pid) => Ok(vec![tree(*pid)]),
        ProcessSelector::Pid(pid) => Err(format!("there is no process {pid} to watch").into()),
        ProcessSelector::Process(name) => {
            let own: HashSet<i32> =
                processes::all().into_iter().filter(|pid| processes::is_called(*pid, name)).collect();
            // Descendants of a process of that name are sampled with it.
            let below: HashSet<i32> = own.iter().flat_map(|pid| processes::descendants(*pid)).collect();
            let mut roots: Vec<i32> = own.difference(&below).copied().filter(|pid| processes::lives(*pid)).collect();
            roots.sort_unstable();
            if roots.is_empty() {
                return Err(format!("there is no process called `{name}` to watch (as `ps -e` names it)").into());
            }
            Ok(roots.into_iter().map(tree).collect())
        }
        ProcessSelector::Container(name) => {
            let root = container::first_process(name)
                .ok_or_else(|| format!("neither docker nor podman has a container `{name}` that runs here"))?;
            Ok(vec![SampledProcesses { accounts: Accounts::of(root).unwrap_or_default(), ..tree(root) }])
        }
    }
}

/// True if this process is a server and everything below it belongs to it.
fn serves(pid: i32, name: &str) -> bool {
    let own = std::process::id() as i32;
    let passes_on = FORWARDERS.iter().any(|forwarder| name.starts_with(forwarder));
    !passes_on && pid != own && !processes::descendants(pid).contains(&own)
}

/// True if an endpoint's host is this machine: an address of its own can be bound.
/// Nothing is sent.
pub fn here(endpoint: &Endpoint) -> bool {
    let own = |address: IpAddr| address.is_loopback() || UdpSocket::bind((address, 0)).is_ok();
    let addresses = (endpoint.host.as_str(), endpoint.port).to_socket_addrs().into_iter().flatten();
    addresses.map(|address| address.ip()).any(|address| !address.is_unspecified() && own(address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::process::{Command, Stdio};

    #[test]
    fn another_machine_is_elsewhere_and_a_port_without_a_listener_is_hidden() {
        // TEST-NET-1 (RFC 5737) is not in use.
        assert_eq!(find("mqtt://192.0.2.1:1883").0, Attached::Elsewhere);
        assert_eq!(find("nonsense").0, Attached::Elsewhere);
        let port = ports::free(1).unwrap()[0];
        assert_eq!(find(&format!("mqtt://127.0.0.1:{port}")).0, Attached::Hidden);
    }

    #[test]
    fn what_this_process_listens_on_is_no_server_apart_from_it() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let (where_it_is, watched) = find(&format!("nats://localhost:{port}"));
        assert!(where_it_is == Attached::Hidden && watched.is_empty());
    }

    #[test]
    fn a_process_that_listens_is_found() {
        let script = "import socket,sys\ns=socket.create_server((\"127.0.0.1\",0))\nprint(s.getsockname()[1],flush=True)\nsys.stdin.read()";
        let child = Command::new("python3").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = child else { return };
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (where_it_is, watched) = find(&format!("redis://127.0.0.1:{}", line.trim()));
        let pid = child.id() as i32;
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(where_it_is, Attached::Seen);
        assert_eq!(watched[0].root, pid);
    }

    #[test]
    fn a_server_that_is_named_is_its_processes_and_one_that_is_not_there_is_an_error() {
        let name = format!("pmw-{}", std::process::id());
        let script = format!("printf %s {name} >/proc/self/comm; echo; read end");
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        let pid = child.id() as i32;
        for watchee in [ProcessSelector::Pid(pid), ProcessSelector::Process(name.clone())] {
            let roots: Vec<i32> = named(&watchee).unwrap().iter().map(|watched| watched.root).collect();
            assert_eq!(roots, [pid], "{watchee}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for (watchee, said) in [
            (ProcessSelector::Pid(pid), format!("there is no process {pid} to watch")),
            (
                ProcessSelector::Process(name.clone()),
                format!("there is no process called `{name}` to watch (as `ps -e` names it)"),
            ),
        ] {
            assert_eq!(named(&watchee).unwrap_err().to_string(), said);
        }
    }
}
