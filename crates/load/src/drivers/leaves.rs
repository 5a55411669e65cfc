//! The topics that a publisher uses in turn.

use crate::session::ClientSpec;
use std::io::Write;

/// A publisher's topic, or the topics below it.
pub struct Leaves {
    text: Vec<u8>,
    /// Bytes of the topic itself, including the separator after it if there are topics below
    /// it.
    stem_bytes: u32,
    count: u32,
}

impl Leaves {
    /// Makes the client's topics, for a protocol that separates levels by `separator`.
    pub fn new(spec: &ClientSpec, separator: char) -> Self {
        let mut text = spec.topic.clone().into_bytes();
        if spec.leaves > 1 {
            text.extend_from_slice(separator.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Leaves { stem_bytes: text.len() as u32, text, count: spec.leaves }
    }

    /// True if all messages go to one topic.
    pub fn is_one(&self) -> bool {
        self.count <= 1
    }

    /// Returns the topic of the message of this sequence.
    pub fn of(&mut self, sequence: u32) -> &[u8] {
        if self.count > 1 {
            self.text.truncate(self.stem_bytes as usize);
            // Writing into memory cannot fail.
            let _ = write!(self.text, "{}", sequence % self.count);
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::protocol::Role;

    #[test]
    fn leaves_take_turns() {
        let mut spec = ClientSpec {
            role: Role::Publisher,
            id: 0,
            name: "p0".into(),
            topic: "a.b".into(),
            wild: false,
            leaves: 1,
            group: None,
            reply: None,
            row: 0,
        };
        assert_eq!(Leaves::new(&spec, '.').of(7), b"a.b");
        spec.leaves = 12;
        let mut leaves = Leaves::new(&spec, '.');
        assert_eq!(leaves.of(11), b"a.b.11");
        assert_eq!(leaves.of(12), b"a.b.0");
    }
}
