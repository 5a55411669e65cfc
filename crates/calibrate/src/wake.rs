//! Wake-up delays of sleeping threads, which are part of every lag and every latency.

use crate::calibrate::Calibrator;
use pubmark_judge::calibration::Wake;
use pubmark_load::clock;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_stats::Histogram;
use pubmark_study::context::{RunError, failed};
use rustix::event::Timespec;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Time between two wake-ups.
const STEP: Ns = MILLISECOND;
const WINDOW: Ns = 2 * SECOND;
/// Time for which a reader waits for a missing message.
const PATIENCE: Duration = Duration::from_secs(5);

impl Calibrator<'_> {
    /// Measures three kinds of sleepers, one after the other.
    pub(crate) fn wake(&mut self) -> Result<Wake, RunError> {
        let count = self.time(WINDOW) / STEP;
        (self.say)("wake-ups: clock_nanosleep");
        let nanosleep = on_a_thread(move || Ok(sleep(count, clock::now, clock::sleep_until)))?;
        (self.say)("wake-ups: ppoll");
        let ppoll = on_a_thread(move || Ok(sleep(count, clock::now, poll_until)))?;
        (self.say)("wake-ups: a reader");
        let reader = on_a_thread(move || read(count))?;
        Ok(Wake { nanosleep_ns: nanosleep.summary(), ppoll_ns: ppoll.summary(), reader_ns: reader.summary() })
    }
}

/// Runs `work` on its own thread, because timer slack belongs to a thread.
fn on_a_thread(work: impl FnOnce() -> io::Result<Histogram> + Send) -> Result<Histogram, RunError> {
    let measured = thread::scope(|scope| scope.spawn(work).join());
    let measured = measured.map_err(|_| failed("the thread that measures wake-ups ended"))?;
    measured.map_err(RunError::io("wake-ups"))
}

/// Sleeps by a clock, and records the delay of each wake-up.
fn sleep(count: u64, now: impl Fn() -> Ns, until: impl Fn(Ns)) -> Histogram {
    clock::exact_timers();
    let mut late = Histogram::latency();
    let mut due = now() + STEP;
    for _ in 0..count {
        let mut woke = now();
        while woke < due {
            until(due);
            woke = now();
        }
        late.record(woke - due);
        // Counted from now: a late wake-up does not make the next one late.
        due = woke + STEP;
    }
    late
}

fn poll_until(due: Ns) {
    let left = due.saturating_sub(clock::now());
    // An early return does no harm: the caller reads the clock.
    let _ = rustix::event::poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: left as i64 }));
}

/// Measures the time from just before the write until the reader has read, by reader.
fn read(count: u64) -> io::Result<Histogram> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut writer = TcpStream::connect(listener.local_addr()?)?;
    let (mut reader, _) = listener.accept()?;
    writer.set_nodelay(true)?;
    reader.set_read_timeout(Some(PATIENCE))?;
    let mut late = Histogram::latency();
    thread::scope(|scope| -> io::Result<()> {
        let written = scope.spawn(move || -> io::Result<()> {
            clock::exact_timers();
            for _ in 0..count {
                let due = clock::now() + STEP;
                while clock::now() < due {
                    clock::sleep_until(due);
                }
                writer.write_all(&clock::now().to_le_bytes())?;
            }
            Ok(())
        });
        for _ in 0..count {
            let mut stamp = [0; 8];
            reader.read_exact(&mut stamp)?;
            late.record(clock::now().saturating_sub(Ns::from_le_bytes(stamp)));
        }
        written.join().unwrap_or(Err(io::ErrorKind::Other.into()))
    })?;
    Ok(late)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// A clock that advances only when sleepers wake up, at these instants.
    #[test]
    fn a_sleeper_is_late_by_what_lies_beyond_its_due_time_and_the_next_starts_from_there() {
        let (begun, late) = (7 * SECOND, 3 * STEP);
        let first = begun + STEP;
        let second = first + late + STEP;
        // A call that returns early does not count as a wake-up. One that returns exactly
        // at the due time does. A late one delays those that follow.
        let wakes = [first - 5, first + late, second, second + STEP + 40];
        let (now, dues) = (Cell::new(begun), RefCell::new(Vec::new()));
        let found = sleep(
            3,
            || now.get(),
            |due| {
                now.set(wakes[dues.borrow().len()]);
                dues.borrow_mut().push(due);
            },
        );
        assert_eq!(*dues.borrow(), [first, first, second, second + STEP]);
        assert_eq!((found.count(), found.min()), (3, 0));
        assert!(found.max().abs_diff(late) < late / 100, "{}", found.max());
        assert_eq!(found.value_at(0.5), 40);
    }

    #[test]
    fn sleepers_of_this_machine_and_its_readers_are_counted() {
        assert_eq!(sleep(20, clock::now, clock::sleep_until).count(), 20);
        assert_eq!(sleep(20, clock::now, poll_until).count(), 20);
        let read = read(20).unwrap();
        assert_eq!(read.count(), 20);
        assert!(read.min() > 0, "a message takes time");
    }
}
