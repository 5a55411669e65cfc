//! Limits of its own that a server reports while clients are connected.

use pubmark_model::units::{Ns, SECOND};

/// Maximum number of different limits that are reported.
const TOLD: usize = 8;

/// Limits reported by a server.
#[derive(Default)]
pub struct ReachedLimits {
    /// The server's texts, each once.
    said: Vec<String>,
    /// The first reason for which it blocked publishers.
    blocked_for: Option<String>,
    /// Number of blocked connections.
    blocked: usize,
    /// Instant since which at least one is blocked, ns.
    since_ns: Ns,
    /// Time during which at least one was blocked, ns.
    blocked_ns: Ns,
}

impl ReachedLimits {
    /// Notes a limit that the server reported.
    pub fn reached(&mut self, words: String) {
        if self.said.len() < TOLD && !self.said.contains(&words) {
            self.said.push(words);
        }
    }

    /// Notes that the server takes nothing more from a publisher.
    pub fn block(&mut self, reason: &str, now: Ns) {
        if self.blocked == 0 {
            self.since_ns = now;
        }
        self.blocked += 1;
        self.blocked_for.get_or_insert_with(|| reason.to_owned());
    }

    /// Notes that the server takes messages again.
    pub fn unblock(&mut self, now: Ns) {
        if self.blocked == 1 {
            self.blocked_ns += now.saturating_sub(self.since_ns);
        }
        self.blocked = self.blocked.saturating_sub(1);
    }

    /// Returns the reason why publishers are or were blocked.
    pub fn blocked_for(&self) -> Option<&str> {
        self.blocked_for.as_deref()
    }

    /// Takes everything reported until now.
    pub fn take(&mut self, now: Ns) -> Vec<String> {
        let still_ns = if self.blocked > 0 { now.saturating_sub(self.since_ns) } else { 0 };
        let mut all = std::mem::take(&mut self.said);
        if let Some(reason) = self.blocked_for.take() {
            let blocked_s = (self.blocked_ns + still_ns) as f64 / SECOND as f64;
            all.push(format!("the server took no messages for {blocked_s:.3} s and said why: {reason}"));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_that_in_which_any_publisher_was_blocked() {
        let mut limits = ReachedLimits::default();
        assert!(limits.take(5 * SECOND).is_empty());
        limits.block("low on memory", SECOND);
        limits.block("low on disk", 2 * SECOND);
        limits.unblock(3 * SECOND);
        limits.unblock(4 * SECOND);
        limits.block("low on memory", 8 * SECOND);
        limits.reached("quota".into());
        limits.reached("quota".into());
        assert_eq!(limits.blocked_for(), Some("low on memory"));
        let told = "the server took no messages for 3.500 s and said why: low on memory";
        assert_eq!(limits.take(8 * SECOND + SECOND / 2), ["quota", told]);
    }
}
