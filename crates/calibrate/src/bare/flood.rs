//! Sends as fast as the sockets take it: many prepared messages with one vectored write,
//! one connection after another.

use super::edges::Edges;
use super::open::open;
use super::plan::{LoopPlan, LoopResult, ReadyMessage};
use pubmark_load::clock;
use pubmark_model::units::{MILLISECOND, Ns};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::io::IoSlice;

/// Approximate bytes of one write, like those of the agents.
const BLOCK_BYTES: usize = 64 << 10;
/// Maximum number of parts of one write.
const PARTS: usize = 1_024;
/// Maximum wait for room: the end of the window is checked this often.
const TICK: Ns = 50 * MILLISECOND;

/// Opens the connections, calls `begin` for the instant of the start, and sends.
pub fn flood(plan: &LoopPlan, begin: impl FnOnce() -> Result<Ns, String>) -> Result<LoopResult, String> {
    let message = ReadyMessage::new(plan)?.bytes;
    let mut parts = vec![IoSlice::new(&message); (BLOCK_BYTES / message.len()).clamp(1, PARTS)];
    let (streams, handshakes) = open(plan, false)?;
    for stream in &streams {
        stream.set_nonblocking(true).map_err(|error| error.to_string())?;
    }
    // Offset in its current message for each connection, where the next write continues.
    let mut places = vec![0; streams.len()];
    let start_ns = begin()?;
    clock::exact_timers();
    while clock::now() < start_ns {
        clock::sleep_until(start_ns);
    }
    let (from_ns, to_ns) = (start_ns + plan.warmup_ns, start_ns + plan.warmup_ns + plan.window_ns);
    let timeout = Timespec { tv_sec: 0, tv_nsec: TICK as i64 };
    let mut edges = Edges::default();
    let (mut bytes, mut before) = (0u64, 0);
    'window: loop {
        let mut full = true;
        for (index, (stream, place)) in streams.iter().zip(&mut places).enumerate() {
            parts[0] = IoSlice::new(&message[*place..]);
            match rustix::io::writev(stream, &parts) {
                Ok(written) => {
                    bytes += written as u64;
                    *place = (*place + written) % message.len();
                    full = false;
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(format!("connection {index}: {error}")),
            }
            let now = clock::now();
            if edges.enter(now, from_ns) {
                before = bytes;
            }
            if now >= to_ns {
                break 'window;
            }
        }
        if full {
            let mut all: Vec<PollFd<'_>> = streams.iter().map(|stream| PollFd::new(stream, PollFlags::OUT)).collect();
            match rustix::event::poll(&mut all, Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(format!("ppoll: {error}")),
            }
        }
    }
    edges.leave();
    let whole = |bytes: u64| bytes / message.len() as u64;
    Ok(LoopResult {
        messages: whole(bytes - before),
        total_messages: whole(bytes),
        total_bytes: bytes + handshakes,
        ..edges.done()
    })
}
