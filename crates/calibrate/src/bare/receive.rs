//! Receives and discards: waits for a socket that has something, and reads it.

use super::edges::Edges;
use super::open::open;
use super::plan::{All, LoopPlan, LoopResult, ReadyMessage};
use pubmark_load::clock;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;
/// Events taken at once.
const EVENTS: usize = 512;
/// Maximum wait: the edges of the window are checked this often.
const TICK: Ns = 50 * MILLISECOND;
/// Time that missing messages have to arrive.
const DRAIN: Ns = 5 * SECOND;
/// The input's number among the connections.
const INPUT: u64 = u64::MAX;

struct Receiver {
    epoll: OwnedFd,
    streams: Vec<TcpStream>,
    events: Vec<epoll::Event>,
    buffer: Vec<u8>,
    bytes: u64,
}

impl Receiver {
    /// Reads what arrives within the tick. Returns whether there is input.
    #[inline]
    fn step(&mut self) -> Result<bool, String> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: TICK as i64 };
        self.events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(format!("epoll: {error}")),
        }
        let mut input = false;
        for event in &self.events {
            let index = event.data.u64();
            if index == INPUT {
                input = true;
                continue;
            }
            match rustix::io::read(&self.streams[index as usize], &mut *self.buffer) {
                Ok(0) => return Err(format!("the server ended connection {index}")),
                Ok(read) => self.bytes += read as u64,
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(format!("connection {index}: {error}")),
            }
        }
        Ok(input)
    }
}

/// Opens and subscribes the connections, calls `begin` for the instant of the start, and
/// receives. After the window, `all` is called when there is input: it returns the total
/// number of messages, which the loop then waits for.
pub fn receive(
    plan: &LoopPlan,
    input: impl AsFd,
    begin: impl FnOnce() -> Result<Ns, String>,
    all: impl FnOnce() -> Result<All, String>,
) -> Result<LoopResult, String> {
    let message_bytes = ReadyMessage::new(plan)?.bytes.len() as u64;
    let (streams, _) = open(plan, true)?;
    let cannot = |error: Errno| format!("epoll: {error}");
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(cannot)?;
    for (index, stream) in streams.iter().enumerate() {
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&epoll, stream, data, epoll::EventFlags::IN).map_err(cannot)?;
    }
    let start_ns = begin()?;
    let (from_ns, to_ns) = (start_ns + plan.warmup_ns, start_ns + plan.warmup_ns + plan.window_ns);
    let mut receiver =
        Receiver { epoll, streams, events: Vec::with_capacity(EVENTS), buffer: vec![0; READ_BYTES], bytes: 0 };
    let mut edges = Edges::default();
    let mut before = 0;
    loop {
        let now = clock::now();
        if edges.enter(now, from_ns) {
            before = receiver.bytes;
        }
        if now >= to_ns {
            break;
        }
        receiver.step()?;
    }
    edges.leave();
    let messages = (receiver.bytes - before) / message_bytes;
    epoll::add(&receiver.epoll, &input, epoll::EventData::new_u64(INPUT), epoll::EventFlags::IN).map_err(cannot)?;
    let mut deadline = clock::now() + DRAIN + DRAIN;
    while !receiver.step()? && clock::now() < deadline {}
    let all = all()?;
    epoll::delete(&receiver.epoll, &input).map_err(cannot)?;
    deadline = clock::now() + DRAIN;
    while receiver.bytes < all.messages * message_bytes && clock::now() < deadline {
        receiver.step()?;
    }
    Ok(LoopResult {
        messages,
        total_messages: receiver.bytes / message_bytes,
        total_bytes: receiver.bytes,
        ..edges.done()
    })
}
