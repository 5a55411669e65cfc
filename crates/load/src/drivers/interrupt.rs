//! Ends a library's call that has waited long enough, by a signal.
//!
//! A library with a time limit sets a timer each time that it waits, and the timer's cost
//! then becomes a part of the library's figure. Here its calls have no limit. A thread
//! checks all calls every [`WAIT`], and sends a signal with an empty handler to each
//! thread that is still in the same call as at the last check. The call then ends with
//! `EINTR`, after one to two [`WAIT`]s.

use super::shared_library::WAIT;
use super::socket::{DriverError, SocketSpec};
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::gettid;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;

/// Returns the receive time limit in the form that these libraries use: no limit, or no
/// wait if the socket is to spin.
pub(super) fn receive_limit(spec: &SocketSpec<'_>) -> c_int {
    if spec.spin { 0 } else { -1 }
}

/// A signal that is ignored by default and that nothing else here sends.
const SIGNAL: Signal = Signal::SIGURG;

/// All watched calls, or the reason why they cannot be watched.
static WATCH: OnceLock<Result<Mutex<Vec<Look>>, String>> = OnceLock::new();

thread_local! {
    static THREAD: i32 = gettid().as_raw();
}

/// The calls of one socket, which makes one at a time.
pub(super) struct Calls(Arc<Call>);

#[derive(Default)]
struct Call {
    /// Incremented as a call begins and as it ends: odd during a call.
    edges: AtomicU32,
    /// The kernel's number of the thread that made the last call.
    thread: AtomicI32,
}

/// The state of a call at the last check.
struct Look {
    call: Weak<Call>,
    edges: u32,
}

impl Calls {
    /// Has the calls of a socket watched until this value is dropped.
    pub(super) fn new() -> Result<Calls, DriverError> {
        match WATCH.get_or_init(watch) {
            Ok(looks) => {
                let call = Arc::new(Call::default());
                let look = Look { call: Arc::downgrade(&call), edges: 0 };
                looks.lock().unwrap_or_else(PoisonError::into_inner).push(look);
                Ok(Calls(call))
            }
            Err(why) => Err(DriverError::new(format!("calls that wait cannot be ended: {why}"))),
        }
    }

    /// Makes a call, which ends with `EINTR` if it waits too long.
    #[inline]
    pub(super) fn make<T>(&self, call: impl FnOnce() -> T) -> T {
        let Call { edges, thread } = &*self.0;
        let before = edges.load(Ordering::Relaxed);
        thread.store(THREAD.with(|thread| *thread), Ordering::Relaxed);
        edges.store(before.wrapping_add(1), Ordering::Release);
        let result = call();
        edges.store(before.wrapping_add(2), Ordering::Release);
        result
    }
}

/// Starts the watching thread.
fn watch() -> Result<Mutex<Vec<Look>>, String> {
    extern "C" fn nothing(_: c_int) {}
    // Without SA_RESTART, so that an interrupted call does not continue.
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing, which is allowed at any point.
    unsafe { sigaction(SIGNAL, &action) }.map_err(|error| format!("{SIGNAL}: {error}"))?;
    thread::Builder::new().name("interrupt".into()).spawn(look_on).map_err(|error| format!("no thread: {error}"))?;
    Ok(Mutex::default())
}

/// Checks all calls until the process ends.
fn look_on() {
    loop {
        thread::sleep(WAIT);
        if let Some(Ok(looks)) = WATCH.get() {
            looks.lock().unwrap_or_else(PoisonError::into_inner).retain_mut(Look::again);
        }
    }
}

impl Look {
    /// Ends the call if it is still the one of the last check. Returns false if the
    /// socket is gone.
    fn again(&mut self) -> bool {
        let Some(call) = self.call.upgrade() else { return false };
        let before = std::mem::replace(&mut self.edges, call.edges.load(Ordering::Acquire));
        if self.edges == before && before % 2 == 1 {
            // If the call ends right now, the signal has no effect on its thread, or the thread is gone.
            // SAFETY: three numbers; a thread of another process is refused.
            unsafe {
                libc::syscall(libc::SYS_tgkill, libc::getpid(), call.thread.load(Ordering::Relaxed), SIGNAL as c_int)
            };
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;
    use nix::unistd::{pipe, read, write};

    #[test]
    fn a_call_that_waits_for_ever_ends_and_one_that_gets_something_does_not() -> nix::Result<()> {
        let calls = Calls::new().expect("a thread that looks");
        let (reader, writer) = pipe()?;
        let mut byte = [0];
        for _ in 0..3 {
            assert_eq!(calls.make(|| read(&reader, &mut byte)), Err(Errno::EINTR));
        }
        write(&writer, b"x")?;
        assert_eq!(calls.make(|| read(&reader, &mut byte)), Ok(1));
        Ok(())
    }

    #[test]
    fn a_thread_outside_of_a_call_is_left_alone() -> nix::Result<()> {
        let calls = Calls::new().expect("a thread that looks");
        calls.make(|| ());
        let (waiting, another) = (Calls::new().expect("a thread that looks"), pipe()?);
        let (reader, writer) = pipe()?;
        let outside = thread::spawn(move || {
            calls.make(|| ());
            read(&reader, &mut [0])
        });
        // At least two checks.
        for _ in 0..2 {
            assert_eq!(waiting.make(|| read(&another.0, &mut [0])), Err(Errno::EINTR));
        }
        write(&writer, b"x")?;
        assert_eq!(outside.join().expect("no panic"), Ok(1), "it was interrupted outside of a call");
        Ok(())
    }
}
