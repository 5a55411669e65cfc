//! Two hosts compare their clocks directly, over the network that is measured:
//! one answers, the other asks.
//!
//! Of many exchanges the one with the shortest round trip counts (Cristian,
//! *Probabilistic clock synchronization*, 1989): whichever way took longer, the
//! truth lies within half of it.

use crate::clock;
use pubmark_model::host::ClockOffset;
use pubmark_model::units::Ns;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Exchanges of one comparison.
const EXCHANGES: u64 = 200;
/// How long an answer is waited for.
const WAIT: Duration = Duration::from_millis(50);
/// So many answers may be missing one after the other.
const MISSING: u32 = 10;
/// Bytes of a question: its number. An answer has the instant after it.
const QUESTION: usize = 8;
const ANSWER: usize = 16;

/// Answers whoever asks what time it is, until it is dropped.
pub struct ClockServer {
    /// Where it listens.
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
                // Whoever asks gets no more than it sent and eight bytes.
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

/// The clock that answers there, less this one.
///
/// # Errors
/// If nobody answers.
pub fn compare(own: IpAddr, server: SocketAddr) -> io::Result<ClockOffset> {
    let socket = UdpSocket::bind((own, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(WAIT))?;
    let (mut best, mut missing) = (None::<ClockOffset>, 0);
    for number in 0..EXCHANGES {
        match exchange(&socket, number) {
            Ok(offset) => {
                missing = 0;
                best = Some(best.filter(|best| best.bound_ns <= offset.bound_ns).unwrap_or(offset));
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

fn exchange(socket: &UdpSocket, number: u64) -> io::Result<ClockOffset> {
    let mut answer = [0; ANSWER];
    let asked = clock::now();
    socket.send(&number.to_le_bytes())?;
    loop {
        let length = socket.recv(&mut answer)?;
        let heard = clock::now();
        let (of, told) = answer.split_at(QUESTION);
        // An answer to an earlier question comes too late.
        if length == ANSWER && of == number.to_le_bytes() {
            let told = Ns::from_le_bytes(told.try_into().unwrap_or_default());
            return Ok(ClockOffset::of_exchange(asked, told, heard));
        }
        if heard > asked + WAIT.as_nanos() as Ns {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn the_true_offset_lies_within_the_bound() {
        for offset_s in [-3_600i64, -1, 0, 1, 3_600] {
            let offset_ns = offset_s * 1_000_000_000;
            // A machine that has run for an hour already, if its clock is behind.
            let base = 4_000 * 1_000_000_000;
            let server = ClockServer::of_clock(HERE, move || (clock::now() + base).saturating_add_signed(offset_ns));
            // It answers as long as it is held.
            let server = server.unwrap();
            let found = compare(HERE, server.at).unwrap();
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
}
