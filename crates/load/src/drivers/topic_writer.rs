//! The topic of each message of a publisher.

use crate::session::{ClientSpec, MARKERS, SubTopics};
use pubmark_model::draw::PublisherDraw;
use pubmark_model::header::END;
use pubmark_model::protocol::Role;

/// Writes a publisher's topics: its own, or those below it. It is small, because there are thousands.
pub struct TopicWriter {
    text: String,
    /// `None` if all messages go to one topic.
    below: Option<Box<Below>>,
}

struct Below {
    /// Bytes of the topic itself and of the separator after it.
    stem_bytes: usize,
    rule: Rule,
}

enum Rule {
    /// Topics by number, in turn.
    Turns(u32),
    /// A topic drawn for each message.
    Drawn(PublisherDraw),
}

impl TopicWriter {
    /// Makes the topics of a client, for a protocol that separates levels by `separator`. A subscriber has none.
    pub fn new(spec: &ClientSpec, separator: char) -> Self {
        let mut text = if spec.role == Role::Subscriber { String::new() } else { spec.topic.clone() };
        let rule = match &spec.leaves {
            SubTopics::Turns(count) => Some(Rule::Turns(*count)),
            SubTopics::Drawn { draw, .. } => Some(Rule::Drawn(draw.clone())),
            SubTopics::None | SubTopics::Share(_) => None,
        };
        let below = rule.map(|rule| {
            text.push(separator);
            Box::new(Below { stem_bytes: text.len(), rule })
        });
        TopicWriter { text, below }
    }

    /// True if all messages go to one topic.
    pub fn is_one(&self) -> bool {
        self.below.is_none()
    }

    /// Returns the number of the topic of the message of this sequence; `None` for that of probes and end markers, if
    /// they have one of their own.
    #[inline]
    pub fn number(&self, sequence: u32) -> Option<u32> {
        match self.below.as_deref() {
            None => Some(0),
            Some(Below { rule: Rule::Turns(count), .. }) => Some(sequence % count),
            Some(Below { rule: Rule::Drawn(draw), .. }) => (sequence < END).then(|| draw.at(sequence)),
        }
    }

    /// Returns the topic of the message of this sequence, without an allocation.
    #[inline]
    pub fn of(&mut self, sequence: u32) -> &str {
        if let Some(below) = &self.below {
            let number = self.number(sequence);
            self.text.truncate(below.stem_bytes);
            match number {
                Some(number) => push_number(&mut self.text, number),
                None => self.text.push_str(MARKERS),
            }
        }
        &self.text
    }

    /// Replaces all topics by one.
    pub fn set(&mut self, topic: &str) {
        topic.clone_into(&mut self.text);
        self.below = None;
    }
}

/// Appends a number without the formatting machinery, because it is done for each message.
fn push_number(text: &mut String, number: u32) {
    if number > 9 {
        push_number(text, number / 10);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::conversation::spec;
    use pubmark_model::draw::Choice;
    use pubmark_model::header::PROBE;
    use pubmark_model::topic_set::{Subscriptions, TopicSet};

    #[test]
    fn topics_take_turns() {
        let mut spec = spec(Role::Publisher, "a.b");
        assert_eq!(TopicWriter::new(&spec, '.').of(7), "a.b");
        spec.leaves = SubTopics::Turns(12);
        let mut topics = TopicWriter::new(&spec, '.');
        assert_eq!(topics.of(11), "a.b.11");
        assert_eq!(topics.of(12), "a.b.0");
    }

    #[test]
    fn a_drawn_topic_is_that_of_its_number_and_markers_have_their_own() {
        let draw = TopicSet::new(100_000, Choice::Zipf(700), Subscriptions::Wildcard).of_publisher(7, 3);
        let leaves = SubTopics::Drawn { draw: draw.clone(), is_first: true };
        let mut topics = TopicWriter::new(&ClientSpec { leaves, ..spec(Role::Publisher, "a/b") }, '/');
        for sequence in [0, 1, 2, 1_000_000] {
            assert_eq!(topics.of(sequence), format!("a/b/{}", draw.at(sequence)));
        }
        assert_eq!([END, PROBE].map(|marker| topics.of(marker).to_owned()), ["a/b/markers", "a/b/markers"]);
        topics.set("c");
        assert_eq!(topics.of(1), "c");
    }
}
