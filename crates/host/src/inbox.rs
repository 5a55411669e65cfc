//! Where the words of agents wait to be read. What an agent says faster than it is read is not
//! kept: the run fails by its name.

use crate::agent::Incoming;
use pubmark_model::secret::Secrets;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// So many lines of an agent may wait: it says about one a second.
const UNREAD_LINES: usize = 1_000;

/// So many bytes of an agent's lines may wait, unless a single line has more.
const UNREAD_BYTES: usize = 16 << 20;

/// What of an agent waits to be read.
#[derive(Default)]
struct Unread {
    lines: AtomicUsize,
    bytes: AtomicUsize,
    /// Whether it has said too much: nothing more of it is kept but its end.
    overrun: AtomicBool,
}

struct Waiting {
    host: usize,
    agent: usize,
    incoming: Incoming,
    bytes: usize,
    unread: Arc<Unread>,
}

/// By host, and by number of the agent there.
type UnreadOfAgents = HashMap<(usize, usize), Arc<Unread>>;

/// Takes in what agents say; there may be many of one inbox.
#[derive(Clone)]
pub struct Outbox {
    sender: Sender<Waiting>,
    agents: Arc<Mutex<UnreadOfAgents>>,
}

/// Holds what agents have said until it is read.
pub struct Inbox(Receiver<Waiting>);

/// An inbox, and its entrance.
pub fn inbox() -> (Outbox, Inbox) {
    let (sender, waiting) = channel();
    (Outbox { sender, agents: Arc::default() }, Inbox(waiting))
}

impl Outbox {
    /// Takes in a line of an agent, which is known by its host and its number there, or its end. A
    /// line that is no event is kept without the secrets.
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

    /// Takes in that the connection to a host has ended.
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
        // Nobody listens any more when the run is over.
        let _ = self.sender.send(Waiting { host, agent, incoming, bytes, unread });
    }
}

impl Inbox {
    /// Waits for the next word: of which host, and of which agent there.
    ///
    /// # Errors
    /// Where none came in this time, and where none can come any more.
    pub fn recv_timeout(&self, within: Duration) -> Result<(usize, usize, Incoming), RecvTimeoutError> {
        let Waiting { host, agent, incoming, bytes, unread } = self.0.recv_timeout(within)?;
        unread.lines.fetch_sub(1, Ordering::Relaxed);
        unread.bytes.fetch_sub(bytes, Ordering::Relaxed);
        Ok((host, agent, incoming))
    }
}

/// Puts what an agent of this machine says into an inbox, under this number.
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
