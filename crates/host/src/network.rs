//! Bytes that a network interface of this host has sent, by the kernel's count.

use crate::clock;
use nix::ifaddrs::getifaddrs;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use serde::{Deserialize, Serialize};
use std::fs::read_to_string;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// An extra reading precedes each edge of the window by this time; it is also the time
/// between two readings if the end is not known.
const STEP: Ns = 10 * MILLISECOND;
/// The reading at the beginning comes this much earlier, so that it is not after a
/// message due at that instant.
const EARLY: Ns = MILLISECOND / 2;
/// Maximum number of readings: then every second one is dropped, and they come half as
/// often.
const LOOKS_MAX: usize = 8_192;

/// A snapshot of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkLook {
    /// The interface's name.
    pub interface: String,
    /// The kernel's identifier of its network namespace; empty if it cannot be read.
    pub namespace: String,
    /// The instant, ns.
    pub at_ns: Ns,
    /// Total bytes that the interface has sent.
    pub sent_bytes: u64,
}

/// Takes a snapshot of the interface that has this address; `None` if no interface has
/// it.
pub fn look(address: &str) -> Option<NetworkLook> {
    let interface = interface_of(address)?;
    let namespace = std::fs::read_link("/proc/self/ns/net").map(|link| link.display().to_string());
    let (at_ns, sent_bytes) = read(&interface)?;
    Some(NetworkLook { interface, namespace: namespace.unwrap_or_default(), at_ns, sent_bytes })
}

/// Returns the interface that has an address, which may be a host name.
fn interface_of(address: &str) -> Option<String> {
    let wanted: Vec<IpAddr> = (address, 0).to_socket_addrs().ok()?.map(|socket| socket.ip()).collect();
    let ip = |address: &nix::sys::socket::SockaddrStorage| -> Option<IpAddr> {
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or(address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    };
    let mut own = getifaddrs().ok()?;
    let found = own.find(|one| one.address.as_ref().and_then(ip).is_some_and(|address| wanted.contains(&address)))?;
    Some(found.interface_name)
}

/// Reads the bytes that an interface has sent, and the instant of the reading.
fn read(interface: &str) -> Option<(Ns, u64)> {
    let text = read_to_string("/proc/net/dev").ok()?;
    Some((clock::now(), sent(&text, interface)?))
}

/// Returns the bytes that an interface has sent, from the text of `/proc/net/dev`.
fn sent(text: &str, interface: &str) -> Option<u64> {
    /// Index of the column after the name: eight are for received data.
    const SENT: usize = 8;
    let columns = text.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    columns.split_whitespace().nth(SENT)?.parse().ok()
}

/// Samples an interface around the edges of a window, on its own thread, until it is
/// dropped.
pub struct NetworkWatch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<(Ns, u64)>>>,
}

impl NetworkWatch {
    /// Starts to sample for a window; without a known end, until
    /// [`NetworkWatch::finish`].
    pub fn start(interface: String, from_ns: Ns, length_ns: Option<Ns>) -> NetworkWatch {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::Builder::new().name("network".into());
        let thread = thread.spawn(move || watch(&interface, from_ns, length_ns, &stopped)).ok();
        NetworkWatch { stop, thread }
    }

    /// Ends the sampling. Returns the bytes sent between two instants; `None` if there
    /// are no samples.
    pub fn finish(mut self, from_ns: Ns, to_ns: Ns) -> Option<u64> {
        self.end().and_then(|looks| between(&looks, from_ns, to_ns))
    }

    fn end(&mut self) -> Option<Vec<(Ns, u64)>> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl Drop for NetworkWatch {
    fn drop(&mut self) {
        self.end();
    }
}

fn watch(interface: &str, from_ns: Ns, length_ns: Option<Ns>, stop: &AtomicBool) -> Vec<(Ns, u64)> {
    clock::exact_timers();
    let wait = |until: Ns| {
        while clock::now() < until && !stop.load(Ordering::Relaxed) {
            thread::park_timeout(Duration::from_nanos(until.saturating_sub(clock::now())));
        }
        !stop.load(Ordering::Relaxed)
    };
    let mut looks = Vec::new();
    let mut edges = vec![from_ns.saturating_sub(STEP), from_ns.saturating_sub(EARLY)];
    edges.extend(length_ns.into_iter().flat_map(|length| [(from_ns + length).saturating_sub(STEP), from_ns + length]));
    for edge in edges {
        // The end of a run is an edge too, if it comes first.
        let goes_on = wait(edge);
        looks.extend(read(interface));
        if !goes_on {
            return looks;
        }
    }
    let mut step = STEP;
    while length_ns.is_none() {
        let goes_on = wait(clock::now() + step);
        looks.extend(read(interface));
        if !goes_on {
            break;
        }
        if looks.len() >= LOOKS_MAX {
            let mut keep = false;
            looks.retain(|_| {
                keep = !keep;
                keep
            });
            step = (2 * step).min(SECOND);
        }
    }
    looks
}

/// Returns the bytes sent between two instants by linear interpolation: a late reading
/// shifts next to nothing.
fn between(looks: &[(Ns, u64)], from_ns: Ns, to_ns: Ns) -> Option<u64> {
    let (first, last) = (looks.first()?.1, looks.last()?.1);
    let sent_by = |at: Ns| {
        let after = looks.partition_point(|(seen, _)| *seen < at);
        match (after.checked_sub(1).and_then(|before| looks.get(before)), looks.get(after)) {
            (Some((from, before)), Some((to, then))) => {
                let part = (at - from) as f64 / (to - from).max(1) as f64;
                before.saturating_add((part * then.saturating_sub(*before) as f64).round() as u64)
            }
            (None, _) => first,
            (_, None) => last,
        }
    };
    (looks.len() > 1).then(|| sent_by(to_ns).saturating_sub(sent_by(from_ns)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn the_ninth_number_behind_the_name_is_what_was_sent() {
        let text = "Inter-|   Receive      |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes\n    \
                    lo: 1 2 3 4 5 6 7 8 900 10 11 12 13 14 15 16\n lo2:21 2 3 4 5 6 7 8 901 10 11 12 13 14 15 16\n";
        assert_eq!(["lo", "lo2", "l", "eth0"].map(|name| sent(text, name)), [Some(900), Some(901), None, None]);
    }

    #[test]
    fn what_lies_beside_the_window_is_not_in_it() {
        // 100 bytes before it, 1,000 in its 10 ns, and 50 after it.
        let looks = [(90, 0), (100, 100), (105, 600), (110, 1_100), (115, 1_150)];
        assert_eq!(between(&looks, 100, 110), Some(1_000));
        assert_eq!(between(&looks, 101, 109), Some(800));
        // The readings at both edges came 2 late: 20 of 240 and 40 of 240 are outside.
        let late = [(90, 0), (102, 240), (105, 600), (112, 1_320)];
        assert_eq!(between(&late, 100, 110), Some(1_114 - 200));
        assert_eq!((between(&looks[..1], 100, 110), between(&[], 100, 110)), (None, None));
        assert_eq!(between(&looks, 200, 210), Some(0), "nothing is known of what came after");
    }

    #[test]
    fn the_loopback_is_found_by_its_address_and_counts_what_is_sent() {
        assert_eq!(look("192.0.2.1"), None, "TEST-NET-1 (RFC 5737) is nobody's");
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let before = look("127.0.0.1").unwrap();
        for _ in 0..100 {
            socket.send_to(&[0; 1_000], socket.local_addr().unwrap()).unwrap();
        }
        let after = look("localhost").unwrap();
        assert_eq!((&after.interface, &after.namespace), (&before.interface, &before.namespace));
        assert!(after.at_ns >= before.at_ns && after.sent_bytes - before.sent_bytes >= 100_000, "{before:?} {after:?}");
    }
}
