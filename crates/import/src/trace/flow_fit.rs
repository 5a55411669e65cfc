//! Statistics of one flow of a trace, and its table in a study.

use super::arrivals::Arrivals;
use super::counts::Counts;
use super::sizes::Sizes;
use crate::toml_text::{comment, quoted};
use pubmark_model::units::Ns;

/// Longest topic that a comment shows, characters.
const TOPIC_SHOWN: usize = 100;

/// Statistics of one flow. They take a few kilobytes, however many messages the flow has.
pub(super) struct FlowFit {
    /// Number of messages.
    pub messages: u64,
    counts: Counts,
    arrivals: Arrivals,
    sizes: Sizes,
}

/// The whole trace, as its flows see it.
pub(super) struct TraceExtent {
    /// Number of messages of all flows.
    pub messages: u64,
    /// Time from the first to the last message, ns.
    pub last_ns: Ns,
    /// The same with the usual gap after the last message, ns.
    pub length_ns: Ns,
    /// Factor of the rates.
    pub scale: f64,
}

/// A flow's table.
pub(super) struct FlowTable {
    /// Text of the table.
    pub text: String,
    /// True if its rate changes over time.
    pub changes: bool,
}

impl FlowFit {
    pub(super) fn new() -> FlowFit {
        FlowFit { messages: 0, counts: Counts::new(), arrivals: Arrivals::default(), sizes: Sizes::new() }
    }

    /// Adds a message at this time since the beginning of the trace.
    pub(super) fn add(&mut self, at_ns: Ns, bytes: u64) {
        self.messages += 1;
        self.counts.add(at_ns);
        self.arrivals.add(at_ns);
        self.sizes.add(bytes);
    }

    /// Returns the table of the flow `name`, whose topic is `topic`.
    pub(super) fn table(&mut self, name: &str, topic: &str, extent: &TraceExtent) -> FlowTable {
        let share = 100.0 * self.messages as f64 / extent.messages as f64;
        let rate = self.counts.rate(extent.last_ns, extent.length_ns, extent.scale);
        let arrival = self.arrivals.fit(self.counts.dispersion(extent.last_ns));
        let sizes = self.sizes.fit();
        let over_time = match rate.changes {
            true => format!(" # leaves {:.0} % of the variation over time unexplained", 100.0 * rate.unexplained),
            false => String::new(),
        };
        let topic: String = topic.chars().take(TOPIC_SHOWN).collect();
        let text = format!(
            "\n# {}: {} messages, {share:.1} %\n[flows.{name}]\npairs = 1\nrate = {}{over_time}\narrival = \"{}\" # {}\n\
             payload = {} # {}\n",
            comment(&topic),
            self.messages,
            rate.text,
            arrival.value,
            arrival.evidence,
            quoted(&sizes.value),
            sizes.evidence
        );
        FlowTable { text, changes: rate.changes }
    }
}
