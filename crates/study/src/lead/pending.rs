//! Set of agents that something is still missing from. It is queried at each message of each agent, so it counts the
//! missing agents instead of searching for them.

/// A set of missing agents, by number.
#[derive(Default)]
pub struct MissingAgents {
    missing: Vec<bool>,
    left: usize,
}

impl MissingAgents {
    /// Returns a set in which all of this many agents are missing.
    pub fn of_all(count: usize) -> MissingAgents {
        MissingAgents { missing: vec![true; count], left: count }
    }

    /// Returns a set of the agents for which `missing` is true.
    pub fn of(missing: Vec<bool>) -> MissingAgents {
        let left = missing.iter().filter(|missing| **missing).count();
        MissingAgents { missing, left }
    }

    /// Returns whether this agent is missing.
    pub fn is_missing(&self, agent: usize) -> bool {
        self.missing.get(agent).is_some_and(|missing| *missing)
    }

    /// Removes this agent. Returns whether the set is then empty.
    pub fn cross_off(&mut self, agent: usize) -> bool {
        if let Some(missing) = self.missing.get_mut(agent).filter(|missing| **missing) {
            *missing = false;
            self.left -= 1;
        }
        self.is_complete()
    }

    /// Returns whether no agent is missing.
    pub fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Returns the number of missing agents.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Returns the missing agents, by number.
    pub fn missing(&self) -> impl Iterator<Item = usize> {
        self.missing.iter().enumerate().filter(|(_, missing)| **missing).map(|(agent, _)| agent)
    }
}
