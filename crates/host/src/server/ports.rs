//! Free ports for a server, and the listeners on a port. No socket is opened to a server;
//! the kernel's tables show who listens.

use super::processes;
use crate::error::HostError;
use std::collections::{HashSet, VecDeque};
use std::fs::read_to_string;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Mutex, PoisonError};

/// Lowest port that is used; well-known ports are below it.
const LOWEST: u16 = 10_000;
/// Upper bound: Linux uses ephemeral ports from 32768 on; some systems from lower.
const HIGHEST: u16 = 32_000;

/// The listener on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listener {
    /// There is none.
    Nobody,
    /// One of the given processes.
    Own,
    /// Another process: its number and name, if they can be seen.
    Foreign(Option<(i32, String)>),
}

/// A socket of `/proc/net/tcp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Socket {
    port: u16,
    listens: bool,
    /// True if it is a connection that this end has not closed.
    is_open: bool,
    inode: u64,
}

/// Parses the kernel's table. The kernel returns it in pieces, and a socket may be in two of
/// them if others come and go meanwhile.
fn parse_sockets<'a>(text: &'a str) -> Vec<Socket> {
    let mut seen = HashSet::new();
    let socket = |line: &'a str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // Both addresses; many sockets may listen at one.
        let ends = (*fields.get(1)?, *fields.get(2)?, *fields.get(9)?);
        if !seen.insert(ends) {
            return None;
        }
        let port = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
        // Listening; established, or closed by the other end alone.
        let state = *fields.get(3)?;
        let (listens, is_open) = (state == "0A", matches!(state, "01" | "08"));
        Some(Socket { port, listens, is_open, inode: fields.get(9)?.parse().ok()? })
    };
    text.lines().filter_map(socket).collect()
}

/// Returns the TCP sockets of a process's network namespace; `self` for this one's.
fn sockets(process: &str) -> Vec<Socket> {
    let table = |name| read_to_string(format!("/proc/{process}/net/{name}")).unwrap_or_default();
    let mut found = parse_sockets(&table("tcp"));
    found.extend(parse_sockets(&table("tcp6")));
    found
}

fn candidates() -> Range<u16> {
    let range = read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let low = range.split_whitespace().next().and_then(|low| low.parse().ok()).unwrap_or(HIGHEST);
    // If ephemeral ports begin very low, no port is safe from them, and the usual range
    // is as good as any.
    if low > LOWEST + 1_000 { LOWEST..low.min(HIGHEST) } else { LOWEST..HIGHEST }
}

fn can_be_bound(port: u16) -> bool {
    let no_sixth = !std::path::Path::new("/proc/net/if_inet6").exists();
    (no_sixth || TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).is_ok())
        && TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
}

/// Reserves a port among the pubmarks of a network namespace, so that no two of them choose it before a
/// server listens: by a socket with a name of the kernel's, which disappears with its process.
fn reserve(port: u16) -> Option<Reserved> {
    let name = SocketAddr::from_abstract_name(format!("pubmark-port-{port}")).ok()?;
    Some(Reserved(UnixDatagram::bind_addr(&name).ok()?))
}

/// A reserved port.
struct Reserved(#[expect(dead_code, reason = "it reserves while it is open")] UnixDatagram);

/// Number of reservations that are kept: the servers of the first ones listen by then.
const RESERVED_MAX: usize = 64;
static RESERVED: Mutex<VecDeque<Reserved>> = Mutex::new(VecDeque::new());

/// Returns this many different free TCP ports below the ephemeral ones, which connections
/// of the load generator may use at any time. Concurrent coordinators get different ones.
pub fn free(count: usize) -> Result<Vec<u16>, HostError> {
    let candidates = candidates();
    let taken: HashSet<u16> = sockets("self").into_iter().map(|socket| socket.port).collect();
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    let offset = (random % candidates.len() as u64) as usize;
    let from_offset = candidates.clone().cycle().skip(offset).take(candidates.len());
    let free = from_offset.filter(|port| !taken.contains(port)).filter(|port| can_be_bound(*port));
    let (found, reserved): (Vec<u16>, Vec<Reserved>) =
        free.filter_map(|port| Some((port, reserve(port)?))).take(count).unzip();
    if found.len() < count {
        return Err(HostError::NoPorts { count, first: candidates.start, last: candidates.end - 1 });
    }
    let mut kept = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    kept.extend(reserved);
    let superfluous = kept.len().saturating_sub(RESERVED_MAX);
    kept.drain(..superfluous);
    Ok(found)
}

/// Returns the listener on a port of this machine.
pub fn listener(own: &[i32], port: u16) -> Listener {
    let inodes: HashSet<u64> = sockets("self")
        .into_iter()
        .filter(|socket| socket.listens && socket.port == port)
        .map(|socket| socket.inode)
        .collect();
    if inodes.is_empty() {
        return Listener::Nobody;
    }
    // If a foreign socket listens as well (on another address, or shared), clients may
    // reach that one: it counts.
    let own_sockets: HashSet<u64> = own.iter().flat_map(|pid| open_sockets(*pid)).collect();
    if inodes.is_subset(&own_sockets) {
        return Listener::Own;
    }
    let foreign = |pid: &i32| open_sockets(*pid).any(|inode| inodes.contains(&inode) && !own_sockets.contains(&inode));
    Listener::Foreign(processes::all().into_iter().find(foreign).map(|pid| (pid, processes::name(pid))))
}

/// True if something listens on a port in the network namespace of a process, for example
/// in a container. `None` if that cannot be seen.
pub fn listens_within(pid: i32, port: u16) -> Option<bool> {
    std::fs::metadata(format!("/proc/{pid}/net/tcp")).ok()?;
    Some(sockets(&pid.to_string()).iter().any(|socket| socket.listens && socket.port == port))
}

/// Returns how many connections to a port are open at its end, in the network namespace
/// of a process (`self` for this one's). `None` if that cannot be seen.
pub fn connections_within(process: &str, port: u16) -> Option<usize> {
    std::fs::metadata(format!("/proc/{process}/net/tcp")).ok()?;
    Some(sockets(process).iter().filter(|socket| socket.is_open && socket.port == port).count())
}

/// Returns the inodes of the sockets that a process has open.
fn open_sockets(pid: i32) -> impl Iterator<Item = u64> {
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    links.filter_map(|link| {
        let target = std::fs::read_link(link.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:2AF8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1 0 100 0 0 10 0\n   1: 0100007F:2AF8 0100007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 12346 1\n";
        let listens = Socket { port: 11_000, listens: true, is_open: false, inode: 12_345 };
        let open = Socket { listens: false, is_open: true, inode: 12_346, ..listens };
        assert_eq!(parse_sockets(text), [listens, open]);
        assert_eq!(parse_sockets(&text.repeat(2)), [listens, open], "a table in pieces");
    }

    #[test]
    fn free_ports_are_different_and_below_the_ephemeral_ones() {
        let mut ports = free(20).unwrap();
        assert!(ports.iter().all(|port| candidates().contains(port)));
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 20);
    }

    #[test]
    fn a_port_is_given_to_one_coordinator_only() {
        let [port] = free(1).unwrap()[..] else { panic!() };
        assert!(reserve(port).is_none(), "another pubmark would look for the next one");
    }

    #[test]
    fn a_connection_counts_until_its_own_end_is_closed() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let open = || connections_within("self", port).unwrap();
        assert_eq!(open(), 0, "one that listens is none");
        let client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (server, _) = socket.accept().unwrap();
        assert_eq!(open(), 1, "the end at the port, and not the client's");
        drop(client);
        assert_eq!(open(), 1, "what has come may not have been read yet");
        drop(server);
        assert_becomes(open, &0);
    }

    /// Asserts that this is found before long. Between its fork and its exec a child that another test starts holds
    /// this process's sockets as well.
    fn assert_becomes<T: PartialEq + std::fmt::Debug>(found: impl Fn() -> T, expected: &T) {
        let ends = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while found() != *expected {
            assert!(std::time::Instant::now() < ends, "{:?} in place of {expected:?}", found());
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_listener_of_a_port_is_found() {
        let own = std::process::id() as i32;
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(socket) = TcpListener::bind(address) else { continue };
            let port = socket.local_addr().unwrap().port();
            assert_becomes(|| listener(&[own], port), &Listener::Own);
            assert!(listens_within(own, port).unwrap());
            assert_becomes(|| listener(&[1], port), &Listener::Foreign(Some((own, processes::name(own)))));
            drop(socket);
            assert_becomes(|| listener(&[own], port), &Listener::Nobody);
        }
    }
}
