//! Free TCP and UDP ports, below the kernel's ephemeral range.

use std::net::{IpAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

const FIRST: u32 = 10_000;
const COUNT: u32 = 22_000;
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Returns ports of this address that were just free, in an order that differs by
/// process, so that agents started together do not compete for one. The caller binds, and
/// takes the next port if another process was faster.
pub fn candidates(address: IpAddr) -> impl Iterator<Item = u16> {
    let origin = std::process::id().wrapping_mul(7919);
    (0..COUNT)
        .map(move |_| {
            (FIRST + origin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(13)) % COUNT) as u16
        })
        .filter(move |port| TcpListener::bind((address, *port)).is_ok())
        .take(100)
}
