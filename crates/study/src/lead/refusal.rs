//! Errors that end a run because of its agents.

use super::hello::Misfit;
use pubmark_model::protocol::{BadHistogram, UPDATE_AGENT, VERSION};
use pubmark_model::relations::Contradiction;
use pubmark_model::units::{Ns, SECOND, format_time};
use std::fmt;

/// Cause of the error, and the agent concerned.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The agent cannot play.
    #[error("the agent {0}")]
    Misfit(Misfit),
    /// The agent ended.
    #[error("agent {agent} ended in mid-run: {end}")]
    Ended {
        /// Name of the agent.
        agent: String,
        /// Description of its end, with the end of its log.
        end: String,
    },
    /// The agent sent a line that is not an event.
    #[error("agent {agent} said what is not a word of the protocol: {line}")]
    Garbage {
        /// Name of the agent.
        agent: String,
        /// Beginning of the line.
        line: String,
    },
    /// The agent cannot go on.
    #[error("agent {agent} cannot go on: {message}")]
    Fatal {
        /// Name of the agent.
        agent: String,
        /// Text of its error.
        message: String,
    },
    /// The agent read the command to start after the start.
    #[error("agent {agent} cannot go on: {message}")]
    TooLate {
        /// Name of the agent.
        agent: String,
        /// Text of its error.
        message: String,
    },
    /// The agent answered `hello` with an error.
    #[error(
        "agent {agent} answered `hello` with an error: {message}; this pubmark speaks version {VERSION}: {UPDATE_AGENT}"
    )]
    Unwilling {
        /// Name of the agent.
        agent: String,
        /// Text of its error.
        message: String,
    },
    /// The agent reported an error that is not fatal.
    #[error("agent {agent}: {message}")]
    Error {
        /// Name of the agent.
        agent: String,
        /// Text of its error.
        message: String,
    },
    /// The agent sent an event of the protocol at the wrong time, or twice.
    #[error("agent {agent} said out of turn: {said}")]
    OutOfTurn {
        /// Name of the agent.
        agent: String,
        /// The event.
        said: String,
    },
    /// The agent reports publishers that are not its own, or impossible values.
    #[error("agent {agent} does not answer for what it was told to play: {what}")]
    Wrong {
        /// Name of the agent.
        agent: String,
        /// Description of the fault.
        what: String,
    },
    /// Its figures contradict the plan, the run's times, or each other.
    #[error("agent {agent} {contradiction}")]
    Contradiction {
        /// Name of the agent.
        agent: String,
        /// The figures that contradict.
        contradiction: Contradiction,
    },
    /// The agent handed in an invalid histogram.
    #[error("agent {agent}: {bad}")]
    BadHistogram {
        /// Name of the agent.
        agent: String,
        /// The histogram, and its fault.
        bad: BadHistogram,
    },
    /// The agent did not report the endpoint of a client.
    #[error("the agent did not say where its {client} is bound")]
    Unbound {
        /// Role and number of the client.
        client: String,
    },
    /// Agents did not answer in time.
    #[error("agents ({}{}) did not {what} in time{known}", agents.join(", "), others(*more))]
    Silent {
        /// Names of the missing agents, as many as are readable.
        agents: Vec<String>,
        /// Number of missing agents beside those.
        more: usize,
        /// Description of what they should have done.
        what: &'static str,
        /// Known facts about the cause.
        known: Silence,
    },
}

impl Refusal {
    /// Returns the error for an agent that reports one: whether it had been greeted, and whether the error is fatal.
    pub fn of_error(agent: String, message: String, (greeted, fatal): (bool, bool)) -> Refusal {
        match (greeted, fatal) {
            (false, _) => Refusal::Unwilling { agent, message },
            (true, true) => Refusal::Fatal { agent, message },
            (true, false) => Refusal::Error { agent, message },
        }
    }
}

/// If the coordinator notices a deadline later than this, it was stopped or starved meanwhile.
const SLEPT: Ns = SECOND;

/// Facts known when the time is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// Delay with which the coordinator noticed the deadline, ns.
    pub late_ns: Ns,
    /// Time since the last message of any of the agents, ns; `None` if none has sent any.
    pub quiet_ns: Option<Ns>,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing is known of what the agents did meanwhile.
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
