//! Free TCP and UDP ports, below the range that the kernel gives to clients.

use std::net::{IpAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

const FIRST: u32 = 10_000;
const COUNT: u32 = 22_000;
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Ports of this address that were free a moment ago, in an order of this
/// process's own, so that agents started together do not race for one. The
/// caller binds, and takes the next one if another was faster.
pub fn candidates(address: IpAddr) -> impl Iterator<Item = u16> {
    let origin = std::process::id().wrapping_mul(7919);
    (0..COUNT)
        .map(move |_| {
            (FIRST + origin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(13)) % COUNT) as u16
        })
        .filter(move |port| TcpListener::bind((address, *port)).is_ok())
        .take(100)
}
