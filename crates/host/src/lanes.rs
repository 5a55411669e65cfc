//! Parallel work on many hosts. Most of it is waiting, so several hosts are handled at
//! once, limited by the threads of this machine.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Maximum number of hosts handled at once.
const LANES: usize = 32;

/// Calls `work` for each item, several at once. Returns the results in the order of the
/// items.
pub fn in_lanes<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let count = items.len();
    let waiting = Mutex::new(items.into_iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(count));
    let lane = || {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((index, item)) = next else { return };
            let result = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..count.min(LANES) {
            // If no thread is available, this one does all the work.
            let _ = thread::Builder::new().name("hosts".into()).spawn_scoped(scope, lane);
        }
        lane();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn all_are_done_in_their_order_and_several_at_once() {
        // Opens only when this many have arrived.
        let gate = Barrier::new(LANES);
        let done = in_lanes((0..3 * LANES).collect(), |number| {
            gate.wait();
            2 * number
        });
        assert_eq!(done, (0..3 * LANES).map(|number| 2 * number).collect::<Vec<_>>());
        assert!(in_lanes(Vec::<u8>::new(), |number| number).is_empty());
    }
}
