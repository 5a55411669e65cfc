//! Transit time of a message on this machine without an agent: a bare pair of sockets runs beside the cases. Agents'
//! times are compared with those of the pair, so that a busy machine fails no agent.

use pubmark_host::clock;
use pubmark_model::units::{MILLISECOND, Ns};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval between two messages.
const EVERY: Duration = Duration::from_millis(4);

/// Time that an agent may take beyond the bare pair, in any language.
const OWN: Ns = MILLISECOND;

/// Factor on the bare pair's time: an agent passes a message through more steps.
const TIMES: u64 = 3;

/// Allowed delay if nothing was measured.
const UNMEASURED: Ns = 40 * MILLISECOND;

/// By message: when it was sent, and how long it took.
type Ways = Arc<Mutex<Vec<(Ns, Ns)>>>;

/// A bare pair that runs until it is dropped.
pub struct BarePair {
    ways: Ways,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BarePair {
    /// Starts the pair. If sockets cannot be opened, it measures nothing.
    pub fn start() -> BarePair {
        let mut bare = BarePair { ways: Ways::default(), stop: Arc::default(), threads: Vec::new() };
        bare.threads = bare.play().unwrap_or_default();
        bare
    }

    fn play(&self) -> io::Result<Vec<JoinHandle<()>>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let mut near = TcpStream::connect(listener.local_addr()?)?;
        let mut far = listener.accept()?.0;
        near.set_nodelay(true)?;
        let (stop, ways) = (self.stop.clone(), self.ways.clone());
        let send = move || {
            while !stop.load(Ordering::Acquire) && near.write_all(&clock::now().to_le_bytes()).is_ok() {
                thread::sleep(EVERY);
            }
        };
        // The sender's end closes its connection.
        let receive = move || {
            let mut sent = [0; 8];
            while far.read_exact(&mut sent).is_ok() {
                let (sent_ns, now) = (Ns::from_le_bytes(sent), clock::now());
                ways.lock().unwrap_or_else(PoisonError::into_inner).push((sent_ns, now.saturating_sub(sent_ns)));
            }
        };
        let thread = |name: &str| thread::Builder::new().name(name.into());
        Ok(vec![thread("bare sender").spawn(send)?, thread("bare receiver").spawn(receive)?])
    }

    /// Returns the allowed delay of messages sent between these instants, to an agent that waited this long for a
    /// processor meanwhile.
    pub fn between(&self, from_ns: Ns, to_ns: Ns, waited_ns: Ns) -> AllowedDelay {
        let ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let within = ways.iter().filter(|(sent, _)| (from_ns..to_ns).contains(sent)).map(|(_, way)| *way);
        let starved = waited_ns as f64 / to_ns.saturating_sub(from_ns).max(1) as f64;
        AllowedDelay { starved, ..AllowedDelay::of(within.collect()) }
    }
}

impl Drop for BarePair {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Allowed delay of messages, derived from the times of bare ones.
#[derive(Clone, Debug, Default)]
pub struct AllowedDelay {
    ways: Vec<Ns>,
    /// Share of the time that the agent waited for a processor.
    starved: f64,
}

/// Quantiles that are compared with the time of a bare message, each with the largest share of the time that the agent
/// may have waited for a processor: a busy machine delays most messages of a process with much work, and hardly those
/// of a bare pair.
const QUANTILES: [(f64, f64); 4] = [(0.0, f64::MAX), (0.1, BLURRED), (0.25, 0.15), (0.5, 0.05)];

/// Share of waiting for a processor beyond which an agent is slow in all its work.
const BLURRED: f64 = 0.3;

impl AllowedDelay {
    /// Derives the delays from these times of bare messages.
    pub fn of(mut ways: Vec<Ns>) -> AllowedDelay {
        ways.sort_unstable();
        AllowedDelay { ways, starved: 0.0 }
    }

    /// Returns the quantiles that can be compared.
    pub fn quantiles(&self) -> impl Iterator<Item = f64> + '_ {
        QUANTILES.iter().filter(|(_, starved)| self.starved <= *starved).map(|(quantile, _)| *quantile)
    }

    /// Returns whether so many messages were delayed that a deliberately late one cannot be distinguished from them.
    pub fn blurred(&self) -> bool {
        self.starved > BLURRED
    }

    /// Returns the allowed delay of this quantile of the messages, ns.
    pub fn at(&self, quantile: f64) -> Ns {
        let place = (self.ways.len() as f64 * quantile) as usize;
        match self.ways.get(place).or(self.ways.last()) {
            Some(way) if self.blurred() => TIMES * (OWN + way),
            Some(way) => OWN + TIMES * way,
            None => UNMEASURED,
        }
    }

    /// Returns the allowed delay of a single message, ns: the machine may delay any of them.
    pub fn single(&self) -> Ns {
        UNMEASURED + self.at(1.0)
    }
}

impl fmt::Display for AllowedDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = (self.starved * 100.0).round();
        write!(f, "by what bare messages took; the machine let it wait for a processor {percent} % of the time")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_may_be_a_millisecond_later_and_three_times_what_a_bare_one_is() {
        let late = AllowedDelay::of((1..=100).rev().map(|way| way * 1_000).collect());
        assert_eq!((late.at(0.0), late.at(0.5), late.at(1.0)), (1_003_000, 1_153_000, 1_300_000));
        assert_eq!(late.single(), 41_300_000);
        assert_eq!(AllowedDelay::default().at(0.5), UNMEASURED);
        assert_eq!(late.quantiles().collect::<Vec<_>>(), [0.0, 0.1, 0.25, 0.5]);
        let busy = AllowedDelay { starved: 0.2, ..late };
        assert_eq!((busy.quantiles().collect::<Vec<_>>(), busy.at(0.0)), (vec![0.0, 0.1], 1_003_000));
        let busier = AllowedDelay { starved: 0.9, ..busy };
        assert_eq!((busier.quantiles().collect::<Vec<_>>(), busier.at(0.0)), (vec![0.0], 3_003_000));
    }

    #[test]
    fn the_pair_measures_what_was_sent_meanwhile() {
        let (bare, from) = (BarePair::start(), clock::now());
        let measured = || bare.between(from, clock::now(), 0).ways.len() >= 3;
        while !measured() {
            thread::yield_now();
        }
        assert!(bare.between(from, from, 0).ways.is_empty());
    }
}
