//! Why agents did not play a run to its end.

use super::hello::Misfit;
use pubmark_model::protocol::{BadHistogram, UPDATE_AGENT, VERSION};
use pubmark_model::relations::Contradiction;
use pubmark_model::units::{Ns, SECOND, format_time};
use std::fmt;

/// What was wrong, and with whom.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It cannot play.
    #[error("the agent {0}")]
    Misfit(Misfit),
    /// It ended.
    #[error("agent {agent} ended in mid-run: {end}")]
    Ended {
        /// Which.
        agent: String,
        /// How, in words, with the end of its log.
        end: String,
    },
    /// It said what nobody understands.
    #[error("agent {agent} said what is no word of the protocol: {line}")]
    Garbage {
        /// Which.
        agent: String,
        /// The line's beginning.
        line: String,
    },
    /// It cannot go on.
    #[error("agent {agent} cannot go on: {message}")]
    Fatal {
        /// Which.
        agent: String,
        /// What it says.
        message: String,
    },
    /// It answered `hello` with an error.
    #[error(
        "agent {agent} answered `hello` with an error: {message}; this pubmark speaks version {VERSION}: {UPDATE_AGENT}"
    )]
    Unwilling {
        /// Which.
        agent: String,
        /// What it says.
        message: String,
    },
    /// It could, and yet something is wrong.
    #[error("agent {agent}: {message}")]
    Error {
        /// Which.
        agent: String,
        /// What it says.
        message: String,
    },
    /// It said a word of the protocol at the wrong time, or twice.
    #[error("agent {agent} said out of turn: {said}")]
    OutOfTurn {
        /// Which.
        agent: String,
        /// The word.
        said: String,
    },
    /// It speaks of other publishers than its own, or of what cannot be.
    #[error("agent {agent} does not answer for what it was told to play: {what}")]
    Wrong {
        /// Which.
        agent: String,
        /// What is wrong.
        what: String,
    },
    /// Its figures contradict the plan, the run's times, or each other.
    #[error("agent {agent} {contradiction}")]
    Contradiction {
        /// Which.
        agent: String,
        /// Which figures.
        contradiction: Contradiction,
    },
    /// It handed in what is no histogram.
    #[error("agent {agent}: {bad}")]
    BadHistogram {
        /// Which.
        agent: String,
        /// Which histogram, and what is wrong with it.
        bad: BadHistogram,
    },
    /// It did not say where a client is bound.
    #[error("the agent did not say where its {client} is bound")]
    Unbound {
        /// Role and number.
        client: String,
    },
    /// They did not do in time what they should.
    #[error("agents ({}{}) did not {what} in time{known}", agents.join(", "), others(*more))]
    Silent {
        /// Who is missing, as far as that can be read.
        agents: Vec<String>,
        /// How many there are beside those.
        more: usize,
        /// What they should have done.
        what: &'static str,
        /// What is known of the reason.
        known: Silence,
    },
}

impl Refusal {
    /// Of an agent that says that something is wrong: whether it had been greeted, and whether
    /// it cannot go on.
    pub fn of_error(agent: String, message: String, (greeted, fatal): (bool, bool)) -> Refusal {
        match (greeted, fatal) {
            (false, _) => Refusal::Unwilling { agent, message },
            (true, true) => Refusal::Fatal { agent, message },
            (true, false) => Refusal::Error { agent, message },
        }
    }
}

/// A deadline that is noticed later than this was slept through.
const SLEPT: Ns = SECOND;

/// What is known when the time is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// How late the coordinator noticed the deadline, ns.
    pub late_ns: Ns,
    /// How long ago any of them has said anything, ns; none if none has.
    pub quiet_ns: Option<Ns>,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Of what the agents did meanwhile, nothing is known.
        if self.late_ns >= SLEPT {
            let late = format_time(self.late_ns / SECOND * SECOND);
            return write!(f, "; pubmark itself did not run for {late}: it was stopped, or the machine was suspended");
        }
        match self.quiet_ns {
            Some(quiet_ns) if quiet_ns >= SLEPT => {
                write!(f, "; the last that was heard of them is {} old", format_time(quiet_ns / SECOND * SECOND))
            }
            Some(_) => Ok(()),
            None => write!(f, "; nothing was heard of them at all"),
        }
    }
}

fn others(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" and {more} more") }
}
