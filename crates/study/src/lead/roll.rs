//! Of whom something is still missing. It is asked at each word of each agent, so
//! that those who are missing are counted, and not looked for.

/// A roll of agents, by number.
#[derive(Default)]
pub struct Roll {
    missing: Vec<bool>,
    left: usize,
}

impl Roll {
    /// All of so many are missing.
    pub fn of_all(count: usize) -> Roll {
        Roll { missing: vec![true; count], left: count }
    }

    /// Those are missing for whom it is said.
    pub fn of(missing: Vec<bool>) -> Roll {
        let left = missing.iter().filter(|missing| **missing).count();
        Roll { missing, left }
    }

    /// Whether this one is missing.
    pub fn is_missing(&self, agent: usize) -> bool {
        self.missing.get(agent).is_some_and(|missing| *missing)
    }

    /// This one is missing no longer. Whether nobody is.
    pub fn cross_off(&mut self, agent: usize) -> bool {
        if let Some(missing) = self.missing.get_mut(agent).filter(|missing| **missing) {
            *missing = false;
            self.left -= 1;
        }
        self.is_complete()
    }

    /// Whether nobody is missing.
    pub fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// How many are missing.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Who is missing, by number.
    pub fn missing(&self) -> impl Iterator<Item = usize> {
        self.missing.iter().enumerate().filter(|(_, missing)| **missing).map(|(agent, _)| agent)
    }
}
