//! Ends a library's call that has waited long enough, by a signal.
//!
//! A library that is given a time limit sets a timer each time that it waits, and the
//! timer is then part of the figure that the library is measured by. Here its calls
//! have no limit. A thread looks at all of them every [`WAIT`], and sends a signal, which
//! does nothing, to each thread that is still in the call in which it was at the last
//! look: the call then ends with `EINTR`, after one [`WAIT`] to two.

use super::shared_library::WAIT;
use super::socket::{DriverError, SocketSpec};
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::gettid;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;

/// The time limit of receiving, as these libraries write it: none, and none to wait for
/// where the socket is to spin.
pub(super) fn receive_limit(spec: &SocketSpec<'_>) -> c_int {
    if spec.spin { 0 } else { -1 }
}

/// Does nothing where nobody handles it, and nothing else here sends it.
const SIGNAL: Signal = Signal::SIGURG;

/// All that are looked at; why they cannot be.
static WATCH: OnceLock<Result<Mutex<Vec<Look>>, String>> = OnceLock::new();

thread_local! {
    static THREAD: i32 = gettid().as_raw();
}

/// The calls of one socket, of which one is made at a time.
pub(super) struct Calls(Arc<Call>);

#[derive(Default)]
struct Call {
    /// Goes up as a call begins and as it ends: odd while one is on.
    edges: AtomicU32,
    /// The thread that made the last one, by the kernel's number.
    thread: AtomicI32,
}

/// What was seen last.
struct Look {
    call: Weak<Call>,
    edges: u32,
}

impl Calls {
    /// Has the calls of a socket watched, for as long as this lives.
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

    /// Makes a call, which ends with `EINTR` should it wait.
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

/// Starts the thread that looks.
fn watch() -> Result<Mutex<Vec<Look>>, String> {
    extern "C" fn nothing(_: c_int) {}
    // Without SA_RESTART: a call that is interrupted is not to go on.
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing, which may be done at any point.
    unsafe { sigaction(SIGNAL, &action) }.map_err(|error| format!("{SIGNAL}: {error}"))?;
    thread::Builder::new().name("interrupt".into()).spawn(look_on).map_err(|error| format!("no thread: {error}"))?;
    Ok(Mutex::default())
}

/// Until the process ends.
fn look_on() {
    loop {
        thread::sleep(WAIT);
        if let Some(Ok(looks)) = WATCH.get() {
            looks.lock().unwrap_or_else(PoisonError::into_inner).retain_mut(Look::again);
        }
    }
}

impl Look {
    /// Looks whether the call of the last time is still on, and ends it; whether there
    /// is still somebody to look at.
    fn again(&mut self) -> bool {
        let Some(call) = self.call.upgrade() else { return false };
        let before = std::mem::replace(&mut self.edges, call.edges.load(Ordering::Acquire));
        if self.edges == before && before % 2 == 1 {
            // Should the call end right now, the signal meets a thread that it does nothing to, or none.
            // SAFETY: three numbers; a thread that is not one of this process is refused.
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
        // Two looks at least.
        for _ in 0..2 {
            assert_eq!(waiting.make(|| read(&another.0, &mut [0])), Err(Errno::EINTR));
        }
        write(&writer, b"x")?;
        assert_eq!(outside.join().expect("no panic"), Ok(1), "it was interrupted outside of a call");
        Ok(())
    }
}
