//! Compares the clocks of two hosts directly over the measured network: one host answers,
//! the other asks.
//!
//! Of many exchanges the one with the shortest round trip is used (Cristian,
//! *Probabilistic clock synchronization*, 1989): whichever direction took longer, the
//! true offset lies within half of it.

use crate::clock;
use pubmark_model::host::{ClockOffset, ClockReading};
use pubmark_model::units::{Ns, SECOND};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Exchanges of one comparison.
const EXCHANGES: u64 = 200;
/// Maximum wait for an answer.
const WAIT: Duration = Duration::from_millis(50);
/// Number of consecutive answers that may be missing.
const MISSING: u32 = 10;
/// Time between two exchanges within a window; the first comes after half of it.
const PERIOD: Ns = SECOND;
/// Maximum number of attempts at an exchange if it took twice as long as the shortest
/// before.
const TRIES: u64 = 4;
/// Maximum number of sightings: then every second one is dropped, and they come half as
/// often.
const SIGHTINGS_MAX: usize = 4_096;
/// Bytes of a question, which is its number. In an answer, the instant follows.
const QUESTION: usize = 8;
const ANSWER: usize = 16;

/// Answers clock questions until it is dropped.
pub struct ClockServer {
    /// Address at which it listens.
    pub at: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ClockServer {
    /// Listens at a free port of this address.
    pub fn start(address: IpAddr) -> io::Result<ClockServer> {
        ClockServer::of_clock(address, clock::now)
    }

    fn of_clock(address: IpAddr, now: impl Fn() -> Ns + Send + 'static) -> io::Result<ClockServer> {
        let socket = UdpSocket::bind((address, 0))?;
        socket.set_read_timeout(Some(WAIT))?;
        let (at, over) = (socket.local_addr()?, Arc::new(AtomicBool::new(false)));
        let ended = over.clone();
        let answer = move || {
            let mut message = [0; ANSWER];
            while !ended.load(Ordering::Relaxed) {
                // An answer is only eight bytes longer than the question.
                if let Ok((QUESTION, from)) = socket.recv_from(&mut message) {
                    message[QUESTION..].copy_from_slice(&now().to_le_bytes());
                    let _ = socket.send_to(&message, from);
                }
            }
        };
        let thread = Some(thread::Builder::new().name("clock".into()).spawn(answer)?);
        Ok(ClockServer { at, over, thread })
    }
}

impl Drop for ClockServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Returns the offset of the clock that answers at `server` from this one.
///
/// # Errors
/// If there is no answer.
pub fn compare(own: IpAddr, server: SocketAddr) -> io::Result<ClockReading> {
    let socket = open(own, server)?;
    let (mut best, mut missing) = (None::<ClockReading>, 0);
    for number in 0..EXCHANGES {
        match exchange(&socket, number) {
            Ok(seen) => {
                missing = 0;
                best = Some(better(best, seen));
            }
            Err(error) if missing == MISSING => {
                let what = format!("nobody at {server} tells the time ({error}): does the network pass UDP?");
                return best.ok_or_else(|| io::Error::new(error.kind(), what));
            }
            Err(_) => missing += 1,
        }
    }
    best.ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, format!("nobody at {server} tells the time")))
}

fn open(own: IpAddr, server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((own, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(WAIT))?;
    Ok(socket)
}

/// Returns the sighting with the shorter round trip.
fn better(best: Option<ClockReading>, seen: ClockReading) -> ClockReading {
    best.filter(|best| best.offset.bound_ns <= seen.offset.bound_ns).unwrap_or(seen)
}

fn exchange(socket: &UdpSocket, number: u64) -> io::Result<ClockReading> {
    let mut answer = [0; ANSWER];
    let asked = clock::now();
    socket.send(&number.to_le_bytes())?;
    loop {
        let length = socket.recv(&mut answer)?;
        let heard = clock::now();
        let (of, told) = answer.split_at(QUESTION);
        // Answers to earlier questions are too late.
        if length == ANSWER && of == number.to_le_bytes() {
            let told = Ns::from_le_bytes(told.try_into().unwrap_or_default());
            return Ok(ClockReading { at_ns: heard, offset: ClockOffset::of_exchange(asked, told, heard) });
        }
        if heard > asked + WAIT.as_nanos() as Ns {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

/// Compares another clock about once a second of a window, on its own thread.
pub struct ClockWatch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<ClockReading>>>,
}

impl ClockWatch {
    /// Begins to compare the clock that answers at `server`, for a window; without a
    /// known end, until [`ClockWatch::finish`].
    ///
    /// # Errors
    /// If there is no socket or thread available.
    pub fn start(own: IpAddr, server: SocketAddr, from_ns: Ns, length_ns: Option<Ns>) -> io::Result<ClockWatch> {
        let socket = open(own, server)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let to_ns = length_ns.map_or(Ns::MAX, |length_ns| from_ns.saturating_add(length_ns));
        let watch = move || watch(&socket, from_ns, to_ns, PERIOD, &stopped);
        let thread = thread::Builder::new().name("clock watch".into()).spawn(watch)?;
        Ok(ClockWatch { stop, thread: Some(thread) })
    }

    /// Ends the comparison. Returns the sightings in their order.
    pub fn finish(mut self) -> Vec<ClockReading> {
        self.end()
    }

    fn end(&mut self) -> Vec<ClockReading> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Vec::new() };
        thread.thread().unpark();
        thread.join().unwrap_or_default()
    }
}

impl Drop for ClockWatch {
    fn drop(&mut self) {
        self.end();
    }
}

fn watch(socket: &UdpSocket, from_ns: Ns, to_ns: Ns, period_ns: Ns, stop: &AtomicBool) -> Vec<ClockReading> {
    let (mut seen, mut shortest_ns, mut number) = (Vec::new(), Ns::MAX, 0);
    let (mut period_ns, mut due_ns) = (period_ns, from_ns.saturating_add(period_ns / 2));
    while due_ns < to_ns {
        while clock::now() < due_ns && !stop.load(Ordering::Relaxed) {
            thread::park_timeout(Duration::from_nanos(due_ns.saturating_sub(clock::now())));
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut best = None;
        for _ in 0..TRIES {
            number += 1;
            // Without an answer, for example while a network is cut, there is no sighting.
            let Ok(found) = exchange(socket, number) else { break };
            best = Some(better(best, found));
            let bound_ns = found.offset.bound_ns;
            shortest_ns = shortest_ns.min(bound_ns);
            if bound_ns <= 2 * shortest_ns {
                break;
            }
        }
        seen.extend(best);
        if seen.len() >= SIGHTINGS_MAX {
            let mut keep = false;
            seen.retain(|_| {
                keep = !keep;
                keep
            });
            period_ns *= 2;
        }
        // A late exchange does not move the later ones.
        due_ns += period_ns * (1 + clock::now().saturating_sub(due_ns) / period_ns);
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn a_window_at_the_end_of_all_time_is_watched_without_overflow() {
        let server = ClockServer::start(HERE).unwrap();
        let watch = ClockWatch::start(HERE, server.at, Ns::MAX - 1, Some(Ns::MAX)).unwrap();
        assert_eq!(watch.finish(), []);
    }

    #[test]
    fn the_true_offset_lies_within_the_bound() {
        for offset_s in [-3_600i64, -1, 0, 1, 3_600] {
            let offset_ns = offset_s * 1_000_000_000;
            // The machine has run for an hour already, in case its clock is behind.
            let base = 4_000 * 1_000_000_000;
            let server = ClockServer::of_clock(HERE, move || (clock::now() + base).saturating_add_signed(offset_ns));
            // It answers until it is dropped.
            let server = server.unwrap();
            let found = compare(HERE, server.at).unwrap().offset;
            let error = found.offset_ns - (base as i64 + offset_ns);
            assert!(error.unsigned_abs() <= found.bound_ns, "{offset_s} s: {error} ns of {found:?}");
        }
    }

    #[test]
    fn who_is_not_answered_says_so() {
        let silent = UdpSocket::bind((HERE, 0)).unwrap();
        let error = compare(HERE, silent.local_addr().unwrap()).unwrap_err().to_string();
        assert!(error.contains("tells the time"), "{error}");
    }

    /// The clock is set ahead by a second in mid-window: each sighting has the offset of
    /// its own instant.
    #[test]
    fn a_clock_is_seen_within_a_window_and_so_is_its_jump() {
        const STEP: Ns = SECOND / 100;
        let from_ns = clock::now() + STEP;
        let jumps_ns = from_ns + 5 * STEP;
        let server = ClockServer::of_clock(HERE, move || {
            let now = clock::now();
            if now < jumps_ns { now } else { now + SECOND }
        });
        let server = server.unwrap();
        let socket = open(HERE, server.at).unwrap();
        let seen = watch(&socket, from_ns, from_ns + 10 * STEP, STEP, &AtomicBool::new(false));
        assert!(!seen.is_empty() && seen.len() <= 10, "{seen:?}");
        assert!(seen.is_sorted_by_key(|one| one.at_ns) && seen[0].at_ns >= from_ns + STEP / 2, "{seen:?}");
        for ClockReading { at_ns, offset } in seen {
            // The clock may have jumped while the answer was in transit.
            let sure = at_ns.saturating_sub(2 * offset.bound_ns) >= jumps_ns || at_ns < jumps_ns;
            let truth = if at_ns < jumps_ns { 0 } else { SECOND as i64 };
            let error = (offset.offset_ns - truth).unsigned_abs();
            assert!(!sure || error <= offset.bound_ns, "{error} ns of {offset:?}");
        }
    }

    #[test]
    fn a_watch_ends_when_it_is_told_and_where_nobody_answers() {
        let silent = UdpSocket::bind((HERE, 0)).unwrap();
        let watch = ClockWatch::start(HERE, silent.local_addr().unwrap(), clock::now(), None).unwrap();
        assert_eq!(watch.finish(), []);
        let server = ClockServer::start(HERE).unwrap();
        let over = ClockWatch::start(HERE, server.at, 1, Some(1)).unwrap();
        assert_eq!(over.finish(), [], "a window that was over before");
    }
}
