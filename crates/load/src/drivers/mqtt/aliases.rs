//! Numbers that replace the topics of a publisher (MQTT 5, 3.3.2.3.4).

/// The aliases of a connection: topic `n` has alias `n` + 1, as far as there are aliases.
pub struct TopicAliases {
    most: u16,
    /// Topics whose alias the server knows, one bit each.
    known: Vec<u64>,
}

impl TopicAliases {
    /// Makes the aliases 1 to `most` of a new connection.
    pub fn new(most: u16) -> TopicAliases {
        TopicAliases { most, known: vec![0; usize::from(most).div_ceil(64)] }
    }

    /// Returns the alias of a topic, and whether the server knows it already; from now on it does. `None` if the topic has
    /// no alias.
    #[inline]
    pub fn of(&mut self, topic: u32) -> Option<(u16, bool)> {
        let alias = u16::try_from(topic).ok()?.checked_add(1).filter(|alias| *alias <= self.most)?;
        let word = &mut self.known[(topic / 64) as usize];
        let bit = 1 << (topic % 64);
        let is_known = *word & bit != 0;
        *word |= bit;
        Some((alias, is_known))
    }

    /// True if the server knows the alias of this topic.
    pub fn knows(&self, topic: u32) -> bool {
        self.known.get((topic / 64) as usize).is_some_and(|word| word >> (topic % 64) & 1 == 1)
    }
}
