//! Queue of agents' events. Events that an agent sends faster than they are read are not kept:
//! the run fails, with the agent's name.

use crate::agent::Incoming;
use pubmark_model::secret::Secrets;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of unread lines of an agent, which sends about one a second.
const UNREAD_LINES: usize = 1_000;

/// Maximum number of unread bytes of an agent's lines, unless a single line is longer.
const UNREAD_BYTES: usize = 16 << 20;

/// Unread lines of an agent.
#[derive(Default)]
struct Unread {
    lines: AtomicUsize,
    bytes: AtomicUsize,
    /// True if it has sent too much: only its end is kept from then on.
    overrun: AtomicBool,
}

struct Waiting {
    host: usize,
    agent: usize,
    incoming: Incoming,
    bytes: usize,
    unread: Arc<Unread>,
}

/// By host, and by the agent's number on it.
type UnreadOfAgents = HashMap<(usize, usize), Arc<Unread>>;

/// Takes in agents' lines. An inbox may have many outboxes.
#[derive(Clone)]
pub struct Outbox {
    sender: Sender<Waiting>,
    agents: Arc<Mutex<UnreadOfAgents>>,
}

/// Keeps agents' events until they are read.
pub struct Inbox(Receiver<Waiting>);

/// Makes an inbox and its outbox.
pub fn inbox() -> (Outbox, Inbox) {
    let (sender, waiting) = channel();
    (Outbox { sender, agents: Arc::default() }, Inbox(waiting))
}

impl Outbox {
    /// Takes in a line of an agent, identified by its host and its number there, or its end. A
    /// line that is not an event is kept without secrets.
    pub fn put(&self, (host, agent): (usize, usize), line: Option<&[u8]>, secrets: &Secrets) {
        let unread = self.unread(host, agent);
        let bytes = line.map_or(0, <[u8]>::len);
        if line.is_some() {
            if unread.overrun.load(Ordering::Relaxed) {
                return;
            }
            let lines = unread.lines.load(Ordering::Relaxed);
            let waiting = unread.bytes.load(Ordering::Relaxed);
            if lines >= UNREAD_LINES || lines > 0 && waiting.saturating_add(bytes) > UNREAD_BYTES {
                unread.overrun.store(true, Ordering::Relaxed);
                let said = format!("{lines} lines that pubmark had no time to read: an agent says about one a second");
                return self.send(host, agent, Incoming::Garbage(said), 0, unread);
            }
        }
        self.send(host, agent, Incoming::of(line, secrets), bytes, unread);
    }

    /// Notes that the host connection has ended.
    pub fn lost(&self, host: usize) {
        self.send(host, 0, Incoming::Lost, 0, self.unread(host, 0));
    }

    fn unread(&self, host: usize, agent: usize) -> Arc<Unread> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        agents.entry((host, agent)).or_default().clone()
    }

    fn send(&self, host: usize, agent: usize, incoming: Incoming, bytes: usize, unread: Arc<Unread>) {
        unread.lines.fetch_add(1, Ordering::Relaxed);
        unread.bytes.fetch_add(bytes, Ordering::Relaxed);
        // After the end of the run nobody reads it.
        let _ = self.sender.send(Waiting { host, agent, incoming, bytes, unread });
    }
}

impl Inbox {
    /// Waits for the next event. Returns its host, the agent's number there, and the
    /// event.
    ///
    /// # Errors
    /// If none arrived in this time, or none can arrive any more.
    pub fn recv_timeout(&self, within: Duration) -> Result<(usize, usize, Incoming), RecvTimeoutError> {
        let Waiting { host, agent, incoming, bytes, unread } = self.0.recv_timeout(within)?;
        unread.lines.fetch_sub(1, Ordering::Relaxed);
        unread.bytes.fetch_sub(bytes, Ordering::Relaxed);
        Ok((host, agent, incoming))
    }
}

/// Returns a function that puts lines of an agent on this machine into an inbox, under
/// this number.
pub fn into_inbox(number: usize, outbox: Outbox, secrets: &Secrets) -> impl FnMut(Option<&[u8]>) + Send + 'static {
    let secrets = secrets.clone();
    move |line| outbox.put((0, number), line, &secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRESS: &[u8] = b"{\"type\":\"progress\",\"sent\":1,\"received\":1}\n";

    fn read(inbox: &Inbox) -> Vec<(usize, Incoming)> {
        std::iter::from_fn(|| inbox.recv_timeout(Duration::ZERO).ok()).map(|(_, agent, said)| (agent, said)).collect()
    }

    #[test]
    fn an_agent_that_floods_is_stopped_by_itself_alone() {
        let (outbox, inbox) = inbox();
        for _ in 0..1_000_000 {
            outbox.put((0, 3), Some(PROGRESS), &Secrets::default());
        }
        outbox.put((0, 3), None, &Secrets::default());
        outbox.put((0, 4), Some(PROGRESS), &Secrets::default());
        let said = read(&inbox);
        assert_eq!(said.len(), UNREAD_LINES + 3);
        let (agent, Incoming::Garbage(why)) = &said[UNREAD_LINES] else { panic!("{:?}", said[UNREAD_LINES]) };
        assert_eq!((*agent, why.split(' ').next()), (3, Some("1000")));
        assert!(matches!(said[UNREAD_LINES + 1], (3, Incoming::Closed)), "its end is told all the same");
        assert!(matches!(said[UNREAD_LINES + 2], (4, Incoming::Event(_))));
    }

    #[test]
    fn lines_that_are_read_count_no_more_and_long_ones_count_by_their_length() {
        let (outbox, inbox) = inbox();
        for _ in 0..3 * UNREAD_LINES {
            outbox.put((0, 0), Some(PROGRESS), &Secrets::default());
            assert!(matches!(read(&inbox)[..], [(0, Incoming::Event(_))]));
        }
        let long = vec![b'x'; UNREAD_BYTES];
        let kinds = |outbox: &Outbox| {
            (0..3).for_each(|_| outbox.put((0, 0), Some(&long), &Secrets::default()));
            read(&inbox).len()
        };
        assert_eq!(kinds(&outbox), 2, "the first, and that there are too many");
        assert_eq!(kinds(&outbox), 0, "nothing more of it");
    }
}
