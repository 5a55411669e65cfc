//! Waiting for events of connections.

use crate::clock;
use pubmark_model::units::{MILLISECOND, Ns};
use rustix::event::{PollFd, PollFlags, epoll};
use std::os::fd::OwnedFd;

/// Maximum wait: the control flags are checked this often even without a notification.
pub const TICK: Ns = 50 * MILLISECOND;
/// Events taken at once.
pub const EVENTS: usize = 512;

/// Waits for events, for at most `left` ns. epoll counts milliseconds (and the call that does not
/// is younger than many kernels), so threads with a schedule wait for epoll by ppoll, to the
/// nanosecond: `exact`.
pub fn await_events(epoll: &OwnedFd, left: Ns, exact: bool, events: &mut Vec<epoll::Event>) -> rustix::io::Result<()> {
    let exact = exact && left > 0;
    if exact {
        let mut all = [PollFd::new(epoll, PollFlags::IN)];
        if rustix::event::poll(&mut all, Some(&clock::timespec(left)))? == 0 {
            return Ok(());
        }
    }
    let left = if exact { 0 } else { left };
    epoll::wait(epoll, rustix::buffer::spare_capacity(events), Some(&clock::timespec(left))).map(|_| ())
}
