//! The processors on which client threads run. The scheduler decides it, and two threads that share
//! a processor can be several times as fast or as slow as two that do not.

use pubmark_model::protocol::{ClientProcessors, Role};
use std::sync::{Mutex, PoisonError};

/// Threads beyond this number are not sampled.
const THREADS_MAX: usize = 64;
/// Processors beyond this number are not told apart.
const PROCESSORS_MAX: usize = 1_024;
/// Fields of `/proc/PID/stat` between the name and the processor on which a thread last ran.
const FIELDS_BEFORE: usize = 36;

/// Threads with clients: whether they send, and their numbers.
static CLIENTS: Mutex<Vec<(bool, i32)>> = Mutex::new(Vec::new());

/// Notes that this thread plays clients of a role.
pub fn plays(role: Role) {
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if clients.len() < THREADS_MAX {
        clients.push((role.sends(), nix::unistd::gettid().as_raw()));
    }
}

/// Adds a sample of each client thread that lives.
pub fn sample(seen: &mut ClientProcessors) {
    let clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for (sends, thread) in clients {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
        let Some(processor) = last_processor(&stat).filter(|processor| *processor < PROCESSORS_MAX) else { continue };
        let samples = if sends { &mut seen.publishers } else { &mut seen.subscribers };
        samples.resize(samples.len().max(processor + 1), 0);
        samples[processor] += 1;
    }
}

/// Returns the processor from the text of a thread's `stat`, whose name may contain anything.
fn last_processor(stat: &str) -> Option<usize> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(FIELDS_BEFORE)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;
    use std::sync::Barrier;

    #[test]
    fn threads_that_are_pinned_are_seen_where_they_are() {
        let own = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let allowed = |processor: &usize| own.is_set(*processor).unwrap_or(false);
        let last = (0..CpuSet::count()).rfind(allowed).unwrap();
        let together = Barrier::new(3);
        let mut seen = ClientProcessors::default();
        std::thread::scope(|scope| {
            for role in [Role::Publisher, Role::Subscriber] {
                let together = &together;
                scope.spawn(move || {
                    let mut set = CpuSet::new();
                    set.set(last).unwrap();
                    sched_setaffinity(Pid::from_raw(0), &set).unwrap();
                    plays(role);
                    together.wait();
                    together.wait();
                });
            }
            together.wait();
            sample(&mut seen);
            together.wait();
        });
        // Threads of other tests may be seen as well.
        assert!(seen.publishers[last] >= 1 && seen.subscribers[last] >= 1, "{seen:?}");
    }

    #[test]
    fn what_is_no_stat_has_no_processor() {
        let stat = format!("7 (a) b) R {}3 0", "1 ".repeat(FIELDS_BEFORE - 1));
        assert_eq!((last_processor(&stat), last_processor(""), last_processor("7 (a) R 1")), (Some(3), None, None));
    }
}
